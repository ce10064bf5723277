package synthesis

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/probe"
)

// mutation is how a break is done.
type mutation struct {
	Break
	ranks           finding.ID                  // what the rank artifacts break
	input           func(ranks int) probe.Input // what was probed; nil for workers that agree
	merged, sidecar *change
	recording       func(*recording) // changes it before it is written
	stale           bool             // the sidecar is that of the run whose rank artifacts break nothing
}

func mutationFor(opt simulate.Options) (mutation, error) {
	if opt.Break == "" {
		return mutation{}, nil
	}
	for _, m := range mutations() {
		if m.Rule == opt.Break {
			return m, m.Excluded(opt)
		}
	}
	return mutation{ranks: opt.Break}, nil // simulate says what there is
}

func mutations() (all []mutation) {
	for _, b := range simulate.Breakable() {
		m := mutation{Break: Break{Break: b}, ranks: b.Rule}
		if b.Rule == finding.ProbeNoEngine {
			m.Kind, m.stale = WithSidecar, true
		}
		all = append(all, m)
	}
	return slices.Concat(all, mergedBreaks(), probeBreaks(), traceBreaks())
}

func mergedBreaks() (all []mutation) {
	for _, b := range []struct {
		rule     finding.ID
		change   *change
		evidence bool
		how      string
	}{
		{finding.MergedSchema, replace("schema_version", "3"), false, "the merged artifact has schema version 3"},
		{finding.MergedDP, replace("dp/managed_size", "0"), false, "the merged artifact was made of no rank files"},
		{finding.MergedIdentity, replace("run_id", `""`), false, "the merged artifact has no run id"},
		{finding.MergedStatus, replace("usable", "false"), false, "the merged artifact is complete and not usable"},
		{finding.MergedCoverage, replace("skipped_points", "[null]"), false, "the merged artifact lists a skipped point and counts none"},
		{finding.MergedGroups, replace("iteration_groups/0/complete", "false"), false, "a group of the merged artifact is not complete"},
		{finding.MergedResults, replace("results/0/point/sample_reasons/0", `"explicit"`), false, "a point of the merged artifact's results has another reason than its group's"},
		{finding.MergedTiming, replaceBy("timing/benchmark_elapsed_seconds", later), false, "the merged artifact's elapsed seconds are those of no rank"},
		{finding.MergedLedger, put("warmup_evidence", `{"status": "unavailable", "records": []}`), true, "the merged artifact still has a rank's own ledger"},
		{finding.MergedEngine, replace("engine/parallel/data_parallel_rank", "0"), false, "the merged artifact's engine is that of a rank"},
		{finding.MergedPaths, replace("worker_probe_path", `"elsewhere.json"`), false, "the merged artifact's sidecar has a name of its own"},
		{finding.MergedDiffers, replace("config/timeout", "1800"), false, "the merged artifact has another time-out than its rank files"},
	} {
		m := mutation{
			Break:  Break{Break: simulate.Break{Rule: b.rule, How: b.how, Evidence: b.evidence}, Kind: WithMerged},
			merged: b.change,
		}
		switch b.rule {
		case finding.MergedIdentity: // without an id it is of no run
		case finding.MergedPaths: // which are not compared
		case finding.MergedDiffers:
		default:
			m.Beside = []finding.ID{finding.MergedDiffers}
		}
		all = append(all, m)
	}
	return all
}

func probeBreaks() []mutation {
	all := []mutation{{
		Break:   Break{Break: simulate.Break{Rule: finding.ProbeSidecar, How: "the sidecar has schema version 2"}},
		sidecar: replace("schema_version", "2"),
	}, {
		Break:   Break{Break: simulate.Break{Rule: finding.ProbeSidecarStale, How: "the sidecar calls its coverage incomplete, which it is not"}},
		sidecar: replace("merged/worker_probe/coverage/complete", "false"),
	}, {
		Break:   Break{Break: simulate.Break{Rule: finding.ProbeRunID, How: "the sidecar is of another run"}},
		sidecar: replace("run_id", `"`+strings.Repeat("0", 32)+`"`),
	}, {
		Break: Break{Break: simulate.Break{Rule: finding.ProbeUnobserved, How: "no worker that replied is of this run"}},
		input: func(ranks int) probe.Input { return replies(worker(ranks)) },
	}, {
		Break: Break{Break: simulate.Break{Rule: finding.ProbeDisagree, How: "the last worker resolved another graph mode", MinRanks: 2}},
		input: func(ranks int) probe.Input {
			list := workers(ranks)
			list[ranks-1]["cudagraph_mode_resolved"] = "NONE"
			return replies(list...)
		},
	}, {
		Break: Break{Break: simulate.Break{Rule: finding.ProbeIncomplete, How: "the last worker had errors when it was asked"}},
		input: func(ranks int) probe.Input {
			list := workers(ranks)
			list[ranks-1]["capture_errors"] = map[string]string{"attention": "not known yet"}
			return replies(list...)
		},
	}, {
		Break: Break{Break: simulate.Break{Rule: finding.ProbeFailed, How: "the probe failed"}},
		input: func(int) probe.Input { return probe.Input{Failure: probe.Failed("TimeoutError: no answer after 30s")} },
	}, {
		Break: Break{Break: simulate.Break{Rule: finding.ProbeSkipped, How: "the probe was skipped"}},
		input: func(int) probe.Input { return probe.Input{Failure: probe.Skipped("another worker extension")} },
	}, {
		Break: Break{Break: simulate.Break{Rule: finding.ProbeMalformedReply, How: "a reply does not say which worker it is of"}},
		input: func(ranks int) probe.Input {
			return replies(append(workers(ranks), map[string]any{"dp_rank": 0, "tp_rank": 0, "attention_backends": map[string]string{}, "cudagraph_capture_sizes_resolved": []int{}})...)
		},
	}}
	for i := range all {
		all[i].Kind = WithSidecar
	}
	return all
}

// agreeing is the replies of every worker of a run, all of them the same.
func agreeing(ranks int) probe.Input { return replies(workers(ranks)...) }

func workers(ranks int) (list []map[string]any) {
	for rank := range ranks {
		list = append(list, worker(rank))
	}
	return list
}

// worker is the reply of the one worker of a rank.
func worker(rank int) map[string]any {
	return map[string]any{
		"dp_rank": rank, "worker_rank": 0, "tp_rank": 0, "pp_rank": 0, "pcp_rank": 0,
		"attention_backends":               map[string]string{"model.layers.0.self_attn.attn": "FLASHINFER_MLA"},
		"mla_prefill_backend":              nil,
		"cudagraph_mode_resolved":          "FULL_AND_PIECEWISE",
		"cudagraph_capture_sizes_resolved": []int{1, 2, 4, 8},
		"capture_errors":                   map[string]string{},
	}
}

func replies(list ...map[string]any) probe.Input {
	text, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("synthesis: %v", err)) // the values above marshal
	}
	return probe.Input{Name: "replies", Replies: text}
}
