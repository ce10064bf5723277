package simulate

import (
	"iter"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// strictEvidenceBreaks change what a merge carries over unread: the files still merge.
func strictEvidenceBreaks() []mutation {
	return []mutation{{
		Break: Break{
			Rule:     finding.ProtocolValue,
			How:      "every file's protocol names a timing metric that nobody knows",
			Evidence: true,
		},
		document: everywhere(put("gpu_time", "measurement_protocol", "timing_metric")),
	}, {
		Break: Break{
			Rule:     finding.MeasurementStrict,
			How:      "a measurement's digest is not that of its prompts, in the last rank's results and in the groups",
			Evidence: true,
		},
		fpms: putFirst(strings.Repeat("0", 64), fact, "prompts", "sha256"),
	}, {
		Break:  Break{Rule: finding.WarmupStrict, How: "a record of the last rank's ledger is of an unknown kind", Evidence: true},
		record: inFirstRecord("start_up", "kind"),
	}}
}

func strictBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.StrictConfig, How: "the last rank's time-out is another", MinRanks: 2},
		document: inVictim(put(1800, "config", "timeout")),
	}, {
		Break: Break{
			Rule: finding.StrictScheduled,
			How:  "a metric has a decode more than its point, in the last rank's results and in the groups",
		},
		fpms: inFirst(func(fpm pyjson.Object) pyjson.Object {
			decodes := at(fpm, "scheduled_requests", "num_decode_requests")
			*decodes = (*decodes).(int) + 1
			return fpm
		}),
	}, {
		Break: Break{
			Rule: finding.StrictWall,
			How:  "a metric took no time, in the last rank's results and in the groups",
		},
		measured: func(position int, m *measurement) {
			if position == 0 {
				m.vanish()
			}
		},
	}, {
		Break: Break{
			Rule:      finding.StrictOrder,
			How:       "the last rank's first two results are in another order than the other ranks'",
			MinRanks:  2,
			MinPoints: 2,
		},
		// Both come after the same warmups, so that what each says of them stays true.
		prepare: func(r *run) { r.grid[1].eager = false },
		fpms:    swapPositions,
		order:   swapFirst,
	}, {
		Break: Break{
			Rule: finding.StrictRegime,
			How:  "a decode result of the last rank has another regime than its point is marked with",
		},
		fpms: func(r *run, position, rank int, fpms pyjson.Array) pyjson.Array {
			if r.evidence > legacy && position == r.decode && rank == r.victim() {
				set(fpms, r.otherRegime(position), 0, fact, "preparation", "kv_seed_regime")
			}
			return fpms
		},
		result: func(r *run, position int, result pyjson.Object) pyjson.Object {
			if position == r.decode {
				set(result, r.otherRegime(position), "kv_seed_regime")
			}
			return result
		},
	}, {
		Break:    Break{Rule: finding.SchemaViolation, How: "a switch of the last rank's file is a word"},
		document: inVictim(put("yes", "synchronization", "enabled")),
	}}
}

// probeBreaks are for rules about the sidecar that begin in the rank artifacts.
func probeBreaks() []mutation {
	return []mutation{{
		Break:    Break{Rule: finding.ProbeNoEngine, How: "no rank recorded its engine"},
		document: everywhere(func(_ *run, doc pyjson.Object) pyjson.Object { return without(doc, "engine") }),
	}}
}

// vanish makes a measurement one of no time. Raw samples must have some: so little that
// the estimate is still within the tolerance of theirs.
func (m *measurement) vanish() {
	const trace = 5e-13 // seconds
	for i := range m.samples {
		m.samples[i].wall = trace
		m.samples[i].start = m.samples[i].end
	}
	m.wall = 0
}

// swapPositions gives the victim's first two measurements each other's position among its
// results.
func swapPositions(r *run, position, rank int, fpms pyjson.Array) pyjson.Array {
	if r.evidence > legacy && position < 2 && rank == r.victim() {
		set(fpms, 1-position, 0, fact, "preparation", "completed_points_before")
	}
	return fpms
}

// swapFirst yields the first two of at least two values the other way round.
func swapFirst(values iter.Seq[any]) iter.Seq[any] {
	return func(yield func(any) bool) {
		var first any
		i := 0
		for v := range values {
			if i++; i == 1 {
				first = v
				continue
			}
			if !yield(v) || i == 2 && !yield(first) {
				return
			}
		}
	}
}

// otherRegime is a regime that a decode point might have and this one has not.
func (r *run) otherRegime(position int) string {
	other := r.grid[position]
	other.realKV = !other.realKV
	return other.regime()
}
