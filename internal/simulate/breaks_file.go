package simulate

import (
	"math"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/pyjson"
)

func textBreaks() []mutation {
	return []mutation{{
		Break: Break{Rule: finding.JSONSyntax, How: "the last rank's file lacks its end"},
		cut:   int64(len("\n}")),
	}, {
		Break:    Break{Rule: finding.JSONNumber, How: "a number of the last rank's file is NaN"},
		document: inVictim(put(math.NaN(), "kvwarm", "stages", 0, "build_seconds")),
	}, {
		Break: Break{Rule: finding.JSONDuplicateKey, How: "a key of the last rank's file comes twice"},
		document: inVictim(func(_ *run, doc pyjson.Object) pyjson.Object {
			return append(doc, pyjson.Member{Key: "error", Value: nil})
		}),
	}, {
		Break: Break{Rule: finding.JSONDepth, How: "the last rank's file has arrays nested 513 deep"},
		document: inVictim(func(_ *run, doc pyjson.Object) pyjson.Object {
			return append(doc, pyjson.Member{Key: "note", Value: nested(513)})
		}),
	}, {
		Break:    Break{Rule: finding.InputLimit, How: "every file says that the run has 65,537 ranks"},
		document: everywhere(put(artifact.MaxRank+2, "dp", "size")),
	}, {
		Break: Break{Rule: finding.InputKind, How: "every file is a result of a serving benchmark"},
		document: func(*run, int, pyjson.Object) pyjson.Object {
			return pyjson.Object{{Key: "backend", Value: "vllm"}, {Key: "request_throughput", Value: 12.5}}
		},
	}}
}

// nested returns arrays within arrays, the given number of them.
func nested(depth int) pyjson.Array {
	a := pyjson.Array{}
	for range depth - 1 {
		a = pyjson.Array{a}
	}
	return a
}

func envelopeBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.RankStatus, How: "every file says that the run failed"},
		document: everywhere(put("failed", "status")),
	}, {
		Break: Break{Rule: finding.RankCoverage, How: "no file says how many points were expected"},
		document: everywhere(func(_ *run, doc pyjson.Object) pyjson.Object {
			drop(doc, "expected_points", "coverage")
			return doc
		}),
	}, {
		Break:    Break{Rule: finding.RankCounts, How: "the last rank's missing phases are no list"},
		document: inVictim(put(pyjson.Object{}, "missing_phases")),
	}, {
		Break:    Break{Rule: finding.RankComplete, How: "the last rank's complete file is not usable"},
		document: inVictim(put(false, "usable")),
	}}
}

// partial makes a document that of a run which its time-out ended a point early.
func partial(_ *run, doc pyjson.Object) pyjson.Object {
	set(doc, "partial", "status")
	set(doc, false, "valid")
	set(doc, "timeout", "stop_reason")
	expected := at(doc, "coverage", "expected_points")
	*expected = (*expected).(int) + 1
	return doc
}

func partialBreaks() []mutation {
	return []mutation{{
		Break: Break{
			Rule:    finding.RankPartial,
			Entails: []finding.ID{finding.RankPartialRun},
			How:     "the run is partial, and the last rank's file is not usable",
		},
		document: func(r *run, rank int, doc pyjson.Object) pyjson.Object {
			set(doc, rank != r.victim(), "usable")
			return partial(r, doc)
		},
	}, {
		Break:    Break{Rule: finding.RankPartialRun, How: "the run timed out and is partial in every file"},
		document: everywhere(partial),
	}, {
		Break:    Break{Rule: finding.RankSchema, How: "the last rank's file has schema version 3"},
		document: inVictim(put(3, "schema_version")),
	}, {
		Break:    Break{Rule: finding.RankDP, How: "the last rank's file gives its rank as -1"},
		document: inVictim(put(-1, "dp", "rank")),
	}}
}

func identityBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.RunID, How: "the last rank's file is of another run; with one rank, the run has no id"},
		document: anotherIdentity("run_id", forRun, 16),
	}, {
		Break: Break{Rule: finding.RunGrid, How: "the last rank's file is of another grid; with one rank, the grid has no digest"},
		prepare: func(r *run) {
			if r.opt.Ranks == 1 { // in the measurements too, which repeat it
				r.digest = ""
			}
		},
		document: anotherIdentity("grid_digest", forOrder, 32),
	}, {
		Break: Break{
			Rule:     finding.RunStatus,
			Entails:  []finding.ID{finding.RankComplete, finding.RankPartialRun},
			How:      "the run is partial, and the last rank's file calls it complete",
			MinRanks: 2,
		},
		document: func(r *run, rank int, doc pyjson.Object) pyjson.Object {
			partial(r, doc)
			if rank == r.victim() {
				set(doc, "complete", "status")
			}
			return doc
		},
	}, {
		Break: Break{Rule: finding.RunCoverage, How: "the last rank's coverage has a count that the others lack", MinRanks: 2},
		document: inVictim(func(_ *run, doc pyjson.Object) pyjson.Object {
			add(doc, "discarded_points", 0, "coverage")
			return doc
		}),
	}, {
		Break: Break{
			Rule:     finding.RunStopReason,
			Entails:  []finding.ID{finding.RankComplete},
			How:      "the last rank's complete file says that it timed out",
			MinRanks: 2,
		},
		document: inVictim(put("timeout", "stop_reason")),
	}}
}

// anotherIdentity gives the victim an identity of as many bytes in hex that no other rank
// has, or none if there is no other rank.
func anotherIdentity(key string, why purpose, bytes int) func(*run, int, pyjson.Object) pyjson.Object {
	return inVictim(func(r *run, doc pyjson.Object) pyjson.Object {
		id := ""
		if r.opt.Ranks > 1 {
			id = roll(r.opt.Seed, why, 1, 1).hex(bytes)
		}
		set(doc, id, key)
		return doc
	})
}

func timingBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.TimingShape, How: "the last rank's start time is null"},
		document: inVictim(put(nil, "timing", "started_at")),
	}, {
		Break: Break{Rule: finding.TimingMeasured, How: "the last rank's measured seconds are half of the sum"},
		document: inVictim(func(r *run, doc pyjson.Object) pyjson.Object {
			set(doc, r.measured/2, "timing", "measured_iteration_seconds")
			return doc
		}),
	}, {
		Break: Break{Rule: finding.TimingExceeds, How: "the last rank's elapsed seconds are half of the measured ones"},
		document: inVictim(func(r *run, doc pyjson.Object) pyjson.Object {
			set(doc, r.measured/2, "timing", "benchmark_elapsed_seconds")
			return doc
		}),
	}}
}

func engineBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.EngineMismatch, How: "the last rank asked for an attention backend of its own", MinRanks: 2},
		document: inVictim(put("FLASHINFER", "engine", "attention", "backend_requested")),
	}, {
		Break: Break{Rule: finding.EngineUnverified, How: "the last rank's engine capture failed part-way"},
		document: inVictim(func(_ *run, doc pyjson.Object) pyjson.Object {
			add(doc, "capture_error", "RuntimeError: the attention backend is not known yet", "engine")
			return doc
		}),
	}}
}
