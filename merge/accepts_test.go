package merge

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// accepted is a change after which a rule still holds.
type accepted struct {
	rules   string // the rules that it comes close to
	name    string
	shape   shape
	changes []change
	want    []said // warnings
}

func envelopeAccepted() []accepted {
	return []accepted{
		{"rank.status run.status", "no status, valid", two(), does(every(del("/status"))), nil},
		{"rank.status run.status", "no status on one rank", two(), does(only(1, del("/status"))), nil},
		{"rank.coverage run.coverage", "minus zero, and a key of its own", two(), does(every(set("/coverage/skipped_points", "-0"), set("/coverage/x", "1.0")), only(1, set("/coverage/x", "10e-1"))), nil},
		{"rank.counts", "no lists of what is missing", two(), does(every(del("/skipped_points"), del("/missing_phases"))), nil},
		{"rank.complete", "usable, stop reason and error absent", two(), does(every(del("/usable"), del("/stop_reason"), del("/error"))), nil},
		{"rank.partial rank.partial-run", "partial, no error key", two(), does(partial(), every(del("/error"), del("/missing_phases"))), partialRun0()},
		{"rank.schema", "no version and no type", two(), does(every(del("/schema_version"), del("/artifact_type"))), nil},
		{"rank.schema", "equal by value", two(), does(every(set("/schema_version", "20e-1"), set("/artifact_type", `"r\u0061nk"`))), nil},
		{"rank.dp", "minus zero", two(), does(only(0, set("/dp/rank", "-0"))), nil},
		{"rank.dp", "one rank", shape{ranks: 1, points: 2, raw: 2}, nil, nil},
		{"run.id run.grid", "escapes", two(), does(only(1, set("/run_id", `"\u0072un"`), set("/grid_digest", `"gri\u0064"`))), nil},
		{"run.stop-reason", "absent is null", two(), does(only(1, del("/stop_reason"))), nil},
	}
}

func groupAccepted() []accepted {
	legacy := shape{ranks: 2, points: 2, raw: 1, legacy: true}
	return []accepted{
		{"group.differs", "spelled otherwise", two(), does(every(set("/iteration_groups/0/x", `{"a": ["/\u00e9", 1, 0.5, 1e400], "b": null}`)),
			only(1, set("/iteration_groups/0/x", `{"b": null, "a": ["\/é", 1.0, 5E-1, 0.1e+401]}`))), nil},
		{"group.empty", "one point", shape{ranks: 2, points: 1, raw: 1}, nil, nil},
		{"group.id result.id", "file order is not the order of the ids", shape{ranks: 2, points: 4, raw: 2, reversed: true}, nil, nil},
		{"group.incomplete group.ranks", "equal by value", two(), does(every(set("/iteration_groups/*/expected_dp_ranks", "[0.0, 1.0]"), set("/iteration_groups/0/rank_results/1/dp_rank", "1.0"))), nil},
		{"group.fpm-count result.fpm-count", "keys beside the FPM", two(), does(every(set("/iteration_groups/0/rank_results/0/x", "[]"), set("/results/0/x", "[]"))), nil},
		{"group.counter result.counter group.fpm-rank result.fpm-rank", "equal by value", legacy, does(fpm(1, 1, set("/counter_id", "20e-1"), set("/dp_rank", "1.0"))), nil},
		{"group.wall-time", "spelled otherwise", two(), does(every(set("/iteration_groups/0/wall_time", "1.120E-2"))), nil},
		{"group.wall-time", "an absent FPM wall time is 0", legacy, does(fpm(0, 0, del("/wall_time"))), nil},
		{"group.wall-time", "none has a wall time", shape{ranks: 2, points: 1, raw: 1, legacy: true}, does(fpm(0, 0, del("/wall_time")), fpm(0, 1, del("/wall_time")),
			every(set("/iteration_groups/0/wall_time", "-0.0"), set("/timing/measured_iteration_seconds", "0"))), nil},
		{"group.wall-time", "below the precision of a float", legacy, does(fpm(0, 0, set("/wall_time", "0.1000000000000000000001")), fpm(0, 1, set("/wall_time", "0.1000000000000000000002")),
			every(set("/iteration_groups/0/wall_time", "0.1000000000000000000002"), set("/timing/measured_iteration_seconds", literal(0.1+wall(1, 1, 0))))), nil},
		{"result.id result.point result.differs", "results in another order, spelled otherwise", two(), does(only(1, reversedResults(), set("/results/1/point/batch_size", "1.0"),
			set("/results/0/fpms/0/queued_requests/num_decode_requests", "-0e5"))), nil},
	}
}

// reversedResults puts a file's own results into another order.
func reversedResults() jsontest.Edit {
	return func(_ testing.TB, root *jsonvalue.Value) { slices.Reverse(root.Get("results").Elems) }
}

func timingAccepted() []accepted {
	sum := wall(1, 0, 1) + wall(1, 1, 1)
	const elapsed, measured = "/timing/benchmark_elapsed_seconds", "/timing/measured_iteration_seconds"
	return []accepted{
		{"timing.shape", "whole seconds", two(), does(every(set(elapsed, "100"))), nil},
		{"timing.shape", "empty stamps", two(), does(every(set("/timing/started_at", `""`), set("/timing/completed_at", `"\ud83d\ude00"`))), nil},
		{"timing.measured", "within 1e-9", two(), does(only(1, set(measured, literal(sum*(1+9e-10))))), nil},
		{"timing.exceeds", "elapsed as measured", two(), does(every(set(elapsed, literal(sum)))), nil},
		{"timing.exceeds", "elapsed within 1e-12", two(), does(every(set(elapsed, literal(sum-5e-13)))), nil},
	}
}

func evidenceAccepted() []accepted {
	const execution = "/measurement_protocol/execution_evidence"
	const bm = "/benchmark_measurement"
	everyFPM := func(edits ...jsontest.Edit) change {
		return func(t testing.TB, r *testRun) {
			for g := range r.points {
				for rank := range r.ranks {
					fpm(g, rank, edits...)(t, r)
				}
			}
		}
	}
	return []accepted{
		{"protocol.mismatch protocol.undeclared", "no evidence at all", shape{ranks: 2, points: 2, raw: 1, legacy: true}, nil, nil},
		{"protocol.mismatch", "protocols equal by value", two(), does(only(1, set("/measurement_protocol", `{"execution_evidence": {"sample_field": "benchmark\u005fsample", "schema_version": 1.0, "warmup_field": "warmup_evidence"}, "content_seed": "\u0030", "schema_version": 1}`))), nil},
		{"protocol.invalid protocol.contract", "values that merge does not judge", two(), does(every(set("/measurement_protocol/content_seed", "5"), set(execution+"/x", "[]"))), nil},
		{"protocol.contract-undeclared sample.index", "no contract, no samples", two(), does(every(del(execution), del("/warmup_evidence")), everyFPM(del(bm+"/raw_fpms/*/benchmark_sample"))), nil},
		{"protocol.contract-undeclared", "no contract, no raw FPMs", two(), does(every(del(execution), del("/warmup_evidence")), everyFPM(del(bm+"/raw_fpms"), del(bm+"/estimate"))), nil},
		{"measurement.missing measurement.identity", "unknown keys", two(), does(everyFPM(set(bm+"/x", "{}"), set(bm+"/preparation/x", "null"))), nil},
		{"sample.count sample.reduction sample.estimate", "one sample", shape{ranks: 2, points: 2, raw: 1}, nil, nil},
		{"sample.reduction sample.estimate", "four samples", shape{ranks: 2, points: 2, raw: 4}, nil, nil},
		{"sample.identity", "no worker ids", two(), does(everyFPM(del("/worker_id"), set(bm+"/raw_fpms/0/worker_id", "null"), del(bm+"/raw_fpms/1/worker_id"))), nil},
		{"sample.timing", "start unknown", two(), does(everyFPM(del(bm+"/raw_fpms/0/benchmark_sample/timing/start_monotonic"), set(bm+"/raw_fpms/1/benchmark_sample/timing/start_monotonic", "null"))), nil},
		{"sample.cudagraph", "unavailable", two(), does(everyFPM(set(bm+"/raw_fpms/0/benchmark_sample/cudagraph", `{"status": "unavailable"}`))), nil},
		{"warmup.ledger warmup.reference", "unavailable", two(), does(every(set("/warmup_evidence", `{"status": "unavailable", "records": []}`)), everyFPM(del(bm+"/preparation/warmup_records_before"))), nil},
		{"warmup.record warmup.range warmup.count", "a failure of unknown length", two(), does(every(set("/warmup_evidence/records/0", `{"status": "failed", "validation": {"status": "failed"}}`))), nil},
		{"warmup.overlap", "running, but not before a measurement", two(), does(every(set("/warmup_evidence/records/-", `{"status": "running", "validation": {"status": "not_performed"}}`))), nil},
		{"warmup.overlap", "up to the first sample", two(), does(every(set("/warmup_evidence/records/0/forward_index_end", "5"), set("/warmup_evidence/records/0/forward_index_start", "null"), set("/warmup_evidence/records/0/observed_forward_count", "1"))), nil},
	}
}

func engineAccepted() []accepted {
	return []accepted{
		{"engine.mismatch", "what is known after start-up differs", two(), does(only(1, set("/engine/resolved", "{}"), set("/engine/worker_probe", "5"), set("/engine/attention/resolution", "null"))), nil},
		{"engine.mismatch engine.unverified", "no engine anywhere", shape{ranks: 2, points: 1, raw: 1, bare: true}, nil, nil},
		{"engine.mismatch engine.unverified", "degraded", two(), does(only(1, set("/engine", `{"attention": 5, "capture_error": null}`))),
			broken(finding.EngineUnverified, 0, "/engine/capture_error", "an engine object without capture_error", "null", 1)},
	}
}

func textAccepted() []accepted {
	deep := strings.Repeat("[", 511) + strings.Repeat("]", 511)
	return []accepted{
		{"json.syntax json.number", "white space and large numbers", two(), does(inText(1, `"config": {`, "\"huge\": [1e400, -1E-400, 123456789012345678901234567890],\r\n\t\"config\":  {")), nil},
		{"json.duplicate-key", "the same key in different objects", two(), does(only(1, set("/note", `{"a": {"a": {"a": 1}}, "A": 1, "a ": 2}`))), nil},
		{"json.depth", "512 levels", two(), does(inText(1, `"config": {`, `"deep": `+deep+`, "config": {`)), nil},
		{"input.limit", "a long string", two(), does(inText(1, `"config": {`, `"long": "`+strings.Repeat("x", 1<<20)+`", "config": {`)), nil},
	}
}

func allAccepted() []accepted {
	return slices.Concat(envelopeAccepted(), groupAccepted(), timingAccepted(), evidenceAccepted(), engineAccepted(), textAccepted())
}

func TestAccepted(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, c := range allAccepted() {
		t.Run(c.name, func(t *testing.T) {
			r := build(t, c.shape).apply(t, c.changes...)
			for range 2 {
				result := runMerge(t, Options{Inputs: r.write(t, t.TempDir())[:1]})
				if diff := cmp.Diff(c.want, sayings(t, result)); diff != "" || len(result.Failures) > 0 || result.Output == "" {
					t.Fatalf("failures %v, findings (-want +got):\n%s", result.Failures, diff)
				}
				for _, doc := range r.docs {
					jsontest.Shuffle(random, doc)
				}
				if c.rules[:5] == "json." || c.rules == "input.limit" {
					return // the text is no longer there to be changed
				}
			}
		})
	}
}

// Every rule has a run that keeps it narrowly, and one that breaks it.
func TestEveryRuleHasVectors(t *testing.T) {
	kept, broken := map[finding.ID]bool{}, map[finding.ID]bool{}
	for _, c := range allAccepted() {
		for _, id := range strings.Fields(c.rules) {
			if _, ok := finding.Lookup(finding.ID(id)); !ok {
				t.Errorf("%s: no rule %s", c.name, id)
			}
			kept[finding.ID(id)] = true
		}
	}
	for _, c := range vectors() {
		for _, s := range c.want {
			broken[s.Rule] = true
		}
	}
	for _, c := range textFaults() {
		broken[c.rule] = true
	}
	for _, rule := range finding.Rules() {
		if aboutRankFiles(rule) && (!kept[rule.ID] || !broken[rule.ID]) {
			t.Errorf("%s: kept %t, broken %t", rule.ID, kept[rule.ID], broken[rule.ID])
		}
	}
}
