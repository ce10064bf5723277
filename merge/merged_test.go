package merge

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/simulate"
)

// mergedRun is a run that was merged.
type mergedRun struct {
	path  string   // of the merged artifact
	files []string // of the ranks that were merged
	doc   *jsonvalue.Value
}

// mergeRun merges the given ranks of a run, or all.
func mergeRun(t testing.TB, r *testRun, ranks ...int) *mergedRun {
	t.Helper()
	dir := t.TempDir()
	files := r.write(t, dir, ranks...)
	result := runMerge(t, Options{Inputs: files, Ranks: ranks})
	if result.Output == "" {
		t.Fatal(result.Findings, result.Failures)
	}
	return &mergedRun{result.Output, files, jsontest.Parse(t, readFile(t, result.Output))}
}

// check checks the document as it is now.
func (m *mergedRun) check(t testing.TB, opt MergedOptions) *MergedResult {
	t.Helper()
	writeFile(t, m.path, jsontest.Indent(m.doc))
	return validated(t, m.path, opt)
}

func validated(t testing.TB, path string, opt MergedOptions) *MergedResult {
	t.Helper()
	result, err := CheckMerged(t.Context(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func mergedSayings(t *testing.T, result *MergedResult) []said {
	t.Helper()
	return sayings(t, &Result{Findings: result.Findings})
}

// mergedVector is a change to a sound merged artifact, and what must be found then.
type mergedVector struct {
	name  string
	shape shape
	ranks []int // that are merged; nil merges all
	edits []jsontest.Edit
	want  []said
}

func edits(list ...jsontest.Edit) []jsontest.Edit { return list }

func found(rule finding.ID, id int64, pointer, expected, actual string) []said {
	return []said{{rule, finding.NoRank, id, pointer, expected, actual}}
}

// move puts an element of a list elsewhere in it.
func move(pointer string, from, to int) jsontest.Edit {
	return func(t testing.TB, root *jsonvalue.Value) {
		list, missing := jsontest.Find(root, pointer)
		if missing > 0 {
			t.Fatalf("no %s", pointer)
		}
		v := list.Elems[from]
		list.Elems = slices.Insert(slices.Delete(list.Elems, from, from+1), to, v)
	}
}

func mergedEnvelopeVectors() []mergedVector {
	const schema, identity, dp, status, coverage = finding.MergedSchema, finding.MergedIdentity, finding.MergedDP, finding.MergedStatus, finding.MergedCoverage
	const aList = "a list of ranks"
	subset := shape{ranks: 3, points: 2, raw: 1}
	return []mergedVector{
		{"no object", two(), nil, edits(set("", "[1]")), found(schema, 0, "", "a merged artifact", "[1]")},
		{"a rank's", two(), nil, edits(set("/artifact_type", `"rank"`)), found(schema, 0, "/artifact_type", `"merged"`, `"rank"`)},
		{"no type", two(), nil, edits(del("/artifact_type")), found(schema, 0, "/artifact_type", `"merged"`, "absent")},
		{"another version", two(), nil, edits(set("/schema_version", "3")), found(schema, 0, "/schema_version", "2", "3")},
		{"no run id", two(), nil, edits(del("/run_id")), found(identity, 0, "/run_id", "a non-empty string", "absent")},
		{"empty grid digest", shape{ranks: 2, points: 2, raw: 1, legacy: true}, nil, edits(set("/grid_digest", `""`)), found(identity, 0, "/grid_digest", "a non-empty string", `""`)},
		{"no dp", two(), nil, edits(del("/dp")), found(dp, 0, "/dp", "an object with ranks, source_ranks, managed_size and global_size", "absent")},
		{"no global size", two(), nil, edits(del("/dp/global_size")), found(dp, 0, "/dp/global_size", "an integer of at least 1", "absent")},
		{"global size 0", two(), nil, edits(set("/dp/global_size", "0")), found(dp, 0, "/dp/global_size", "an integer of at least 1", "0")},
		{"too large", two(), nil, edits(set("/dp/global_size", "65537")), found(finding.InputLimit, 0, "/dp/global_size", "at most 65536", "65537")},
		{"ranks out of order", two(), nil, edits(move("/dp/ranks", 0, 1)), found(dp, 0, "/dp/ranks", "the ranks 0 to 1 in order", "[1,0]")},
		{"ranks short", two(), nil, edits(del("/dp/ranks/1")), found(dp, 0, "/dp/ranks", "the ranks 0 to 1 in order", "[0]")},
		{"no source ranks", two(), nil, edits(del("/dp/source_ranks")), found(dp, 0, "/dp/source_ranks", aList, "absent")},
		{"empty source ranks", two(), nil, edits(set("/dp/source_ranks", "[]")), found(dp, 0, "/dp/source_ranks", aList, "[]")},
		{"source ranks descend", two(), nil, edits(move("/dp/source_ranks", 0, 1)), found(dp, 0, "/dp/source_ranks/1", "an integer from 2 to 1", "0")},
		{"source rank twice", two(), nil, edits(set("/dp/source_ranks/1", "0")), found(dp, 0, "/dp/source_ranks/1", "an integer from 1 to 1", "0")},
		{"source rank beyond", two(), nil, edits(set("/dp/source_ranks/1", "2")), found(dp, 0, "/dp/source_ranks/1", "an integer from 1 to 1", "2")},
		{"source rank a float", two(), nil, edits(set("/dp/source_ranks/1", "1.0")), found(dp, 0, "/dp/source_ranks/1", "an integer from 1 to 1", "1.0")},
		{"managed size", subset, []int{0, 2}, edits(set("/dp/managed_size", "3")), found(dp, 0, "/dp/managed_size", "2", "3")},
		{"failed", two(), nil, edits(set("/status", `"failed"`)), found(status, 0, "/status", finished, `"failed"`)},
		{"complete, not valid", two(), nil, edits(set("/valid", "false")), found(status, 0, "/valid", "true", "false")},
		{"complete, stopped", two(), nil, edits(set("/stop_reason", `"timeout"`)), found(status, 0, "/stop_reason", "null, or absent", `"timeout"`)},
		{"complete, with an error", two(), nil, edits(set("/error", `"x"`)), found(status, 0, "/error", "null, or absent", `"x"`)},
		{"complete, a phase missing", two(), nil, edits(set("/missing_phases", `["decode"]`)), found(status, 0, "/missing_phases", "[]", `["decode"]`)},
		{"missing phases no list", two(), nil, edits(set("/missing_phases", "1")), found(status, 0, "/missing_phases", "a list", "1")},
		{"complete, points expected", two(), nil, edits(set("/coverage/expected_points", "6")), found(status, 0, "/coverage/completed_points", "6", "4")},
		{"no coverage", two(), nil, edits(del("/coverage")), found(coverage, 0, "/coverage", "an object with expected_points, completed_points and skipped_points", "absent")},
		{"a count is text", two(), nil, edits(set("/coverage/skipped_points", `"0"`)), found(coverage, 0, "/coverage/skipped_points", "an integer of at least 0", `"0"`)},
		{"counts of one rank", two(), nil, edits(set("/coverage", `{"expected_points": 2, "completed_points": 2, "skipped_points": 0}`)), found(coverage, 0, "/coverage/completed_points", "4", "2")},
		{"no multiple", shape{ranks: 2, points: 2, raw: 1}, nil, edits(set("/status", `"partial"`), set("/valid", "false"), set("/stop_reason", `"timeout"`), set("/coverage/expected_points", "7")),
			found(coverage, 0, "/coverage/expected_points", "a multiple of 2", "7")},
		{"no list of skipped points", two(), nil, edits(del("/skipped_points")), found(coverage, 0, "/skipped_points", "a list", "absent")},
		{"skipped points", two(), nil, edits(set("/skipped_points/-", "{}")), found(coverage, 0, "/skipped_points", "0 entries", "1 entry")},
	}
}

func mergedGroupVectors() []mergedVector {
	const rule = finding.MergedGroups
	legacy := shape{ranks: 2, points: 2, raw: 1, legacy: true}
	const fpm = "/iteration_groups/1/rank_results/1/fpms/0"
	return []mergedVector{
		{"no groups", two(), nil, edits(del("/iteration_groups")), found(rule, 0, "/iteration_groups", "a list", "absent")},
		{"groups no list", two(), nil, edits(set("/iteration_groups", "{}")), found(rule, 0, "/iteration_groups", "a list", "{}")},
		{"incomplete", two(), nil, edits(set("/iteration_groups/1/complete", "false")), found(rule, 2, "/iteration_groups/1/complete", "true", "false")},
		{"expected ranks", two(), nil, edits(set("/iteration_groups/0/expected_dp_ranks", "[0]")), found(rule, 1, "/iteration_groups/0/expected_dp_ranks", "the ranks 0 to 1 in order", "[0]")},
		{"id twice", legacy, nil, edits(set("/iteration_groups/1/benchmark_id", "1"), set("/iteration_groups/1/point/benchmark_id", "1"), set("/iteration_groups/1/rank_results/*/fpms/0/counter_id", "1")),
			found(rule, 1, "/iteration_groups/1/benchmark_id", "the ids 1 to 2, each once", "1")},
		{"id no integer", legacy, nil, edits(set("/iteration_groups/1/benchmark_id", "2.0")), found(rule, 0, "/iteration_groups/1/benchmark_id", "an integer of at least 1", "2.0")},
		{"rank twice", legacy, nil, edits(set("/iteration_groups/1/rank_results/1/dp_rank", "0")), slices.Concat(found(rule, 2, "/iteration_groups/1/rank_results/1/dp_rank", "1", "0"),
			found(rule, 2, fpm+"/dp_rank", "0", "1"))},
		{"two FPMs", legacy, nil, edits(set("/iteration_groups/1/rank_results/1/fpms/-", "{}")), found(rule, 2, "/iteration_groups/1/rank_results/1/fpms", "1 FPM", "2 FPMs")},
		{"counter", legacy, nil, edits(set(fpm+"/counter_id", "1"), set("/results/3/fpms/0/counter_id", "1")), found(rule, 2, fpm+"/counter_id", "2", "1")},
		{"FPM of another rank", legacy, nil, edits(set(fpm+"/dp_rank", "0"), set("/results/3/fpms/0/dp_rank", "0")), found(rule, 2, fpm+"/dp_rank", "1", "0")},
		{"wall time", two(), nil, edits(set("/iteration_groups/1/wall_time", "0.0212000000001")), found(rule, 2, "/iteration_groups/1/wall_time", "0.0212", "0.0212000000001")},
		{"no rank results", legacy, nil, edits(set("/iteration_groups/0/rank_results", "[]")), found(rule, 1, "/iteration_groups/0/rank_results", "the ranks 0 to 1 in order", "0 rank results")},
	}
}

func mergedResultVectors() []mergedVector {
	const rule = finding.MergedResults
	legacy := shape{ranks: 2, points: 2, raw: 1, legacy: true}
	noneFor := func(id int64, what, group string) []said {
		return found(rule, id, "/iteration_groups/"+group+"/point", "a result for each global rank", what)
	}
	const fourEntries = "4 entries"
	return []mergedVector{
		{"no results", two(), nil, edits(del("/results")), found(rule, 0, "/results", "a list", "absent")},
		{"results no list", two(), nil, edits(set("/results", "{}")), found(rule, 0, "/results", "a list", "{}")},
		{"no object", two(), nil, edits(set("/results/1", "5")), slices.Concat(found(rule, 0, "/results/1", "an object", "5"), noneFor(1, "none for rank 1", "0"))},
		{"no point", two(), nil, edits(del("/results/1/point")), slices.Concat(found(rule, 0, "/results/1/point", "an object", "absent"), noneFor(1, "none for rank 1", "0"))},
		{"no id", two(), nil, edits(del("/results/1/point/benchmark_id")), slices.Concat(found(rule, 0, "/results/1/point/benchmark_id", "an integer of at least 1", "absent"), noneFor(1, "none for rank 1", "0"))},
		{"no rank", two(), nil, edits(del("/results/1/point/dp_rank")), slices.Concat(found(rule, 1, "/results/1/point/dp_rank", "a global rank", "absent"), noneFor(1, "none for rank 1", "0"))},
		{"no FPMs", two(), nil, edits(del("/results/1/fpms")), found(rule, 1, "/results/1/fpms", "the FPMs of the group", "absent")},
		{"lost", two(), nil, edits(del("/results/2")), slices.Concat(found(rule, 0, "/results", fourEntries, "3 entries"), noneFor(2, "none for rank 0", "1"))},
		{"all lost", two(), nil, edits(set("/results", "[]")), slices.Concat(found(rule, 0, "/results", fourEntries, "0 entries"), noneFor(1, "none for rank 0-1", "0"), noneFor(2, "none for rank 0-1", "1"))},
		{"unknown id", two(), nil, edits(set("/results/1/point/benchmark_id", "7")), slices.Concat(found(rule, 7, "/results/1/point/benchmark_id", "an id of an iteration group", "7"), noneFor(1, "none for rank 1", "0"))},
		{"unknown rank", two(), nil, edits(set("/results/1/point/dp_rank", "2")), slices.Concat(found(rule, 1, "/results/1/point/dp_rank", "a rank from 0 to 1", "2"), noneFor(1, "none for rank 1", "0"))},
		{"twice", two(), nil, edits(set("/results/1/point/dp_rank", "0")), slices.Concat(found(rule, 1, "/results/1/point/dp_rank", "one result for each", "0"), noneFor(1, "none for rank 1", "0"))},
		{"order of ids", two(), nil, edits(move("/results", 3, 0)), slices.Concat(
			found(rule, 1, "/results/1/point", inOrder, "benchmark id 1, rank 0 behind a later one"),
			found(rule, 1, "/results/2/point", inOrder, "benchmark id 1, rank 1 behind a later one"),
			found(rule, 2, "/results/3/point", inOrder, "benchmark id 2, rank 0 behind a later one"))},
		{"order of ranks", two(), nil, edits(move("/results", 3, 2)), found(rule, 2, "/results/3/point", inOrder, "benchmark id 2, rank 0 behind a later one")},
		{"point changed", two(), nil, edits(set("/results/3/point/batch_size", "5")), found(rule, 2, "/results/3/point/batch_size", "2", "5")},
		{"point extended", two(), nil, edits(set("/results/3/point/x", "5")), found(rule, 2, "/results/3/point/x", "absent", "5")},
		{"point shortened", two(), nil, edits(del("/results/3/point/rows")), found(rule, 2, "/results/3/point/rows", "null", "absent")},
		{"FPM changed", legacy, nil, edits(set("/results/3/fpms/0/wall_time", "7")), found(rule, 2, "/results/3/fpms/0/wall_time", "0.0201", "7")},
		{"FPM twice", legacy, nil, edits(set("/results/3/fpms/-", "{}")), found(rule, 2, "/results/3/fpms/1", "absent", "{}")},
		{"regime of a rank that was not merged", shape{ranks: 3, points: 2, raw: 1}, []int{0, 2}, edits(set("/results/4/kv_seed_regime", `"real_kv"`)), found(rule, 2, "/results/4/kv_seed_regime", "absent", `"real_kv"`)},
	}
}

const inOrder = "for each benchmark id ascending, each rank ascending"

func mergedTimingVectors() []mergedVector {
	const rule = finding.MergedTiming
	const ranks = "/timing/rank_benchmark_elapsed_seconds"
	sum := literal(wall(1, 0, 1) + wall(1, 1, 1))
	return []mergedVector{
		{"no timing", two(), nil, edits(del("/timing")), found(rule, 0, "/timing", "an object", "absent")},
		{"stamp", two(), nil, edits(set("/timing/started_at", "5")), found(rule, 0, "/timing/started_at", "a time stamp", "5")},
		{"elapsed text", two(), nil, edits(set("/timing/benchmark_elapsed_seconds", `"90"`)), found(rule, 0, "/timing/benchmark_elapsed_seconds", "a finite number of seconds, at least 0", `"90"`)},
		{"elapsed of the faster rank", two(), nil, edits(set("/timing/benchmark_elapsed_seconds", "90.4")), found(rule, 0, "/timing/benchmark_elapsed_seconds", "90.5", "90.4")},
		{"measured", two(), nil, edits(set("/timing/measured_iteration_seconds", "0.5")), found(rule, 0, "/timing/measured_iteration_seconds", sum, "0.5")},
		{"more measured than elapsed", two(), nil, edits(set("/timing/benchmark_elapsed_seconds", "0.01"), set(ranks, `{"0": 0.01, "1": 0.005}`)), found(rule, 0, "/timing/measured_iteration_seconds", "at most 0.01", sum)},
		{"no elapsed times", two(), nil, edits(del(ranks)), found(rule, 0, ranks, "an object with a duration for each source rank", "absent")},
		{"elapsed time lost", two(), nil, edits(del(ranks + "/1")), found(rule, 0, ranks+"/1", "seconds", "absent")},
		{"elapsed time of another rank", two(), nil, edits(set(ranks+"/2", "1.0")), found(rule, 0, ranks+"/2", "absent", "1.0")},
		{"elapsed time of no rank", two(), nil, edits(set(ranks+"/01", "1.0")), found(rule, 0, ranks+"/01", "absent", "1.0")},
		{"negative elapsed time", two(), nil, edits(set(ranks+"/1", "-1.0")), found(rule, 0, ranks+"/1", "a finite number of seconds, at least 0", "-1.0")},
	}
}

func mergedLedgerVectors() []mergedVector {
	const rule = finding.MergedLedger
	subset := shape{ranks: 3, points: 2, raw: 1}
	const all = "an object with a ledger for each global rank"
	const before = "/iteration_groups/0/rank_results/1/fpms/0/benchmark_measurement/preparation/warmup_records_before"
	return []mergedVector{
		{"no ledgers", two(), nil, edits(del("/rank_warmup_evidence")), found(rule, 0, "/rank_warmup_evidence", all, "absent")},
		{"ledgers no object", two(), nil, edits(set("/rank_warmup_evidence", "[]")), found(rule, 0, "/rank_warmup_evidence", all, "[]")},
		{"a ledger lost", two(), nil, edits(del("/rank_warmup_evidence/1")), found(rule, 0, "/rank_warmup_evidence/1", "an object", "absent")},
		{"a ledger too many", two(), nil, edits(set("/rank_warmup_evidence/2", "{}")), found(rule, 0, "/rank_warmup_evidence/2", "absent", "{}")},
		{"an odd key", two(), nil, edits(set("/rank_warmup_evidence/01", "{}")), found(rule, 0, "/rank_warmup_evidence/01", "absent", "{}")},
		{"a rank's own ledger", two(), nil, edits(set("/warmup_evidence", "{}")), found(rule, 0, "/warmup_evidence", "absent", "{}")},
		{"ledgers of a legacy run", shape{ranks: 2, points: 2, raw: 1, legacy: true}, nil, edits(set("/rank_warmup_evidence", "{}")), found(rule, 0, "/rank_warmup_evidence", "absent", "{}")},
		{"no placeholder", subset, []int{0, 2}, edits(set("/rank_warmup_evidence/1/reason", `"lost"`)), found(rule, 0, "/rank_warmup_evidence/1/reason", `"rank_artifact_not_loaded"`, `"lost"`)},
		{"placeholder with a key", subset, []int{0, 2}, edits(set("/rank_warmup_evidence/1/x", "1")), found(rule, 0, "/rank_warmup_evidence/1/x", "absent", "1")},
		{"unsound ledger", two(), nil, edits(set("/rank_warmup_evidence/1/status", `"x"`)), found(finding.WarmupLedger, 0, "/rank_warmup_evidence/1/status", "recorded or unavailable", `"x"`)},
		{"unsound record", two(), nil, edits(set("/rank_warmup_evidence/1/records/0/status", `"x"`)), found(finding.WarmupRecord, 0, "/rank_warmup_evidence/1/records/0/status", "running, completed or failed", `"x"`)},
		{"unsound range", two(), nil, edits(set("/rank_warmup_evidence/1/records/0/observed_forward_count", "6")), found(finding.WarmupCount, 0, "/rank_warmup_evidence/1/records/0/observed_forward_count", "5", "6")},
		{"reference", two(), nil, edits(set(before, "2"), set("/results/1/fpms/0/benchmark_measurement/preparation/warmup_records_before", "2")), found(finding.WarmupReference, 1, before, "an integer from 0 to 1", "2")},
		{"overlap", two(), nil, edits(set("/rank_warmup_evidence/1/records/0/forward_index_end", "6"), set("/rank_warmup_evidence/1/records/0/forward_index_start", "1")), found(finding.WarmupOverlap, 1, before, "a forward_index_end of at most 5", "6")},
	}
}

func mergedOtherVectors() []mergedVector {
	const engine, path = finding.MergedEngine, finding.MergedPaths
	subset := shape{ranks: 3, points: 2, raw: 1}
	bare := shape{ranks: 2, points: 2, raw: 1, bare: true}
	const aPath = "a non-empty string"
	const measurement = "/iteration_groups/0/rank_results/1/fpms/0/benchmark_measurement"
	return []mergedVector{
		{"engine of a rank", two(), nil, edits(set("/engine/parallel/data_parallel_rank", "0")), found(engine, 0, "/engine/parallel/data_parallel_rank", "null", "0")},
		{"engine without the rank", two(), nil, edits(del("/engine/parallel/data_parallel_rank")), found(engine, 0, "/engine/parallel/data_parallel_rank", "null", "absent")},
		{"capture errors empty", two(), nil, edits(set("/engine/capture_errors", "{}")), found(engine, 0, "/engine/capture_errors", "an object with a text for each degraded rank", "{}")},
		{"capture error of no source rank", subset, []int{0, 2}, edits(set("/engine/capture_errors", `{"1": "x"}`)), found(engine, 0, "/engine/capture_errors/1", "absent", `"x"`)},
		{"capture error no text", two(), nil, edits(set("/engine/capture_errors", `{"1": 5}`)), found(engine, 0, "/engine/capture_errors/1", "a string", "5")},
		{"degraded block", two(), nil, edits(set("/engine/capture_error", `"x"`)), found(engine, 0, "/engine/capture_errors", "an object with a text for each degraded rank", "absent")},
		{"degraded block of some", two(), nil, edits(set("/engine/capture_error", `"x"`), set("/engine/capture_errors", `{"0": "x"}`)), found(engine, 0, "/engine/capture_errors/1", "a text", "absent")},
		{"no rank files", two(), nil, edits(del("/rank_files")), found(path, 0, "/rank_files", "a path for each source rank", "absent")},
		{"rank file lost", two(), nil, edits(del("/rank_files/1")), found(path, 0, "/rank_files", "2 paths", "1 path")},
		{"rank file no text", two(), nil, edits(set("/rank_files/1", "5")), found(path, 0, "/rank_files/1", aPath, "5")},
		{"rank file empty", two(), nil, edits(set("/rank_files/1", `""`)), found(path, 0, "/rank_files/1", aPath, `""`)},
		{"rank file of another rank", two(), nil, edits(set("/rank_files/1", `"x_dp2.json"`)), found(path, 0, "/rank_files/1", "the file of rank 1", `"x_dp2.json"`)},
		{"no output path", bare, nil, edits(del("/merged_output_path")), found(path, 0, "/merged_output_path", aPath, "absent")},
		{"output path empty", two(), nil, edits(set("/merged_output_path", `""`)), found(path, 0, "/merged_output_path", aPath, `""`)},
		{"output path null", two(), nil, edits(set("/merged_output_path", "null")), found(path, 0, "/merged_output_path", aPath, "null")},
		{"sidecar without an engine", bare, nil, edits(set("/worker_probe_path", `"x"`)), found(path, 0, "/worker_probe_path", "absent", `"x"`)},
		{"no sidecar", two(), nil, edits(del("/worker_probe_path")), found(path, 0, "/worker_probe_path", "a path", "absent")},
		{"sidecar of another file", two(), nil, edits(set("/merged_output_path", `"a.json"`), set("/worker_probe_path", `"b_worker_probe.json"`)), found(path, 0, "/worker_probe_path", `"a_worker_probe.json"`, `"b_worker_probe.json"`)},
		{"sidecar no text", two(), nil, edits(set("/merged_output_path", `"a.json"`), set("/worker_probe_path", "1")), found(path, 0, "/worker_probe_path", `"a_worker_probe.json"`, "1")},
		{"protocol", two(), nil, edits(set("/measurement_protocol/schema_version", "2")), found(finding.ProtocolInvalid, 0, "/measurement_protocol/schema_version", "1", "2")},
		{"contract", two(), nil, edits(set("/measurement_protocol/execution_evidence/sample_field", `"x"`)), found(finding.ProtocolContract, 0, "/measurement_protocol/execution_evidence/sample_field", `"benchmark_sample"`, `"x"`)},
		{"measurement lost", two(), nil, edits(del(measurement), del("/results/1/fpms/0/benchmark_measurement")), found(finding.MeasurementMissing, 1, measurement, "an object", "absent")},
		{"sample index", two(), nil, edits(set(measurement+"/raw_fpms/1/benchmark_sample/sample_index", "5"), set("/results/1/fpms/0/benchmark_measurement/raw_fpms/1/benchmark_sample/sample_index", "5")),
			found(finding.SampleIndex, 1, measurement+"/raw_fpms/1/benchmark_sample/sample_index", "1", "5")},
	}
}

func mergedVectors() []mergedVector {
	return slices.Concat(mergedEnvelopeVectors(), mergedGroupVectors(), mergedResultVectors(), mergedTimingVectors(), mergedLedgerVectors(), mergedOtherVectors())
}

func TestMergedRules(t *testing.T) {
	for _, c := range mergedVectors() {
		m := mergeRun(t, build(t, c.shape), c.ranks...)
		jsontest.Apply(t, m.doc, c.edits...)
		result := m.check(t, MergedOptions{})
		if diff := cmp.Diff(sortSaid(c.want), sortSaid(mergedSayings(t, result))); diff != "" || len(result.Failures) > 0 {
			t.Errorf("%s: failures %v, findings (-want +got):\n%s", c.name, result.Failures, diff)
		}
	}
}

// mergedAccepted are changes after which a merged artifact is one still.
func mergedAccepted() []mergedVector {
	legacy := shape{ranks: 2, points: 2, raw: 1, legacy: true}
	subset := shape{ranks: 3, points: 2, raw: 1}
	partialWarning := func(message ...jsontest.Edit) []jsontest.Edit {
		return append(message, set("/status", `"partial"`), set("/valid", "false"), set("/stop_reason", `"timeout"`))
	}
	return []mergedVector{
		{"as it is", two(), nil, nil, nil},
		{"legacy", legacy, nil, nil, nil},
		{"no engine", shape{ranks: 1, points: 2, raw: 1, bare: true}, nil, nil, nil},
		{"another order of execution", shape{ranks: 2, points: 4, raw: 2, reversed: true}, nil, nil, nil},
		{"a subset", subset, []int{0, 2}, nil, nil},
		{"without rank 0", subset, []int{1, 2}, nil, nil},
		{"no version, unknown keys", two(), nil, edits(del("/schema_version"), set("/new", "{}"), set("/results/0/new", "1"), set("/timing/new", "1"), set("/dp/new", "1")), nil},
		{"spelled otherwise", two(), nil, edits(set("/artifact_type", `"m\u0065rged"`), set("/dp/ranks/1", "1.0"), set("/dp/managed_size", "2.0"), set("/results/1/point/dp_rank", "10e-1"), set("/results/3/point/batch_size", "2.0"),
			set("/timing/benchmark_elapsed_seconds", "9.05e1")), nil},
		{"groups before results", two(), nil, edits(moveKey("iteration_groups", 0)), nil},
		{"dp at the end", two(), nil, edits(moveKey("dp", -1)), nil},
		{"protocol at the end", two(), nil, edits(moveKey("measurement_protocol", -1)), nil},
		{"partial", two(), nil, partialWarning(set("/coverage/expected_points", "18")), found(finding.RankPartialRun, 0, "/status", "", "")},
		{"partial, counts beyond 64 bits", two(), nil, partialWarning(set("/coverage/expected_points", "18446744073709551614")), nil},
		{"measured within 1e-9", two(), nil, edits(set("/timing/measured_iteration_seconds", literal((wall(1, 0, 1)+wall(1, 1, 1))*(1+9e-10)))), nil},
		{"as long as measured", legacy, nil, edits(set("/timing/benchmark_elapsed_seconds", literal((wall(1, 0, 0)+wall(1, 1, 0))*(1-9e-10))),
			set("/timing/rank_benchmark_elapsed_seconds", `{"0": 0.001, "1": `+literal((wall(1, 0, 0)+wall(1, 1, 0))*(1-9e-10))+`}`)), nil},
		{"degraded ranks", two(), nil, edits(set("/engine/capture_errors", `{"1": "missing engine block"}`)), nil},
		{"all degraded", two(), nil, edits(set("/engine", `{"capture_errors": {"0": "a", "1": "b"}}`)), nil},
		{"all degraded, a block left", two(), nil, edits(set("/engine/capture_error", `"a"`), set("/engine/capture_errors", `{"0": "a", "1": "b"}`)), nil},
		{"engine no object", two(), nil, edits(set("/engine", "5"), del("/worker_probe_path")), nil},
		{"an older build's", two(), nil, edits(del("/worker_probe_path"), set("/engine/worker_probe", "{}"), set("/engine/resolved", "{}"), set("/engine/resolution", `"worker_probe"`)), nil},
		{"moved", two(), nil, edits(set("/rank_files", `["/x/a.json", "/y/b_dp1.json.gz"]`), set("/merged_output_path", `"/z/m.json"`), set("/worker_probe_path", `"/z/m_worker_probe.json"`)), nil},
		{"a rank without regimes", two(), nil, edits(del("/results/1/kv_seed_regime")), nil},
		{"regime before the FPMs", two(), nil, edits(del("/results/0/kv_seed_regime"), del("/results/0/fpms"), set("/results/0/kv_seed_regime", "null"), copyTo("/results/0/fpms", "/iteration_groups/0/rank_results/0/fpms")), nil},
		{"unavailable ledger", shape{ranks: 2, points: 2, raw: 1}, nil, edits(set("/rank_warmup_evidence/1", `{"status": "unavailable", "records": []}`), del("/iteration_groups/*/rank_results/1/fpms/0/benchmark_measurement/preparation/warmup_records_before"),
			del("/results/1/fpms/0/benchmark_measurement/preparation/warmup_records_before"), del("/results/3/fpms/0/benchmark_measurement/preparation/warmup_records_before")), nil},
	}
}

// copyTo gives a place the value of another.
func copyTo(pointer, from string) jsontest.Edit {
	return func(t testing.TB, root *jsonvalue.Value) {
		v, missing := jsontest.Find(root, from)
		if missing > 0 {
			t.Fatalf("no %s", from)
		}
		jsontest.Apply(t, root, set(pointer, string(v.AppendCompact(nil))))
	}
}

// moveKey puts a top-level key at a place, -1 the last.
func moveKey(name string, to int) jsontest.Edit {
	return func(t testing.TB, root *jsonvalue.Value) {
		i := slices.IndexFunc(root.Members, func(m jsonvalue.Member) bool { return m.Name == name })
		if i < 0 {
			t.Fatalf("no %s", name)
		}
		m := root.Members[i]
		root.Members = slices.Delete(root.Members, i, i+1)
		if to < 0 {
			to = len(root.Members)
		}
		root.Members = slices.Insert(root.Members, to, m)
	}
}

func TestMergedAccepted(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	for _, c := range mergedAccepted() {
		m := mergeRun(t, build(t, c.shape), c.ranks...)
		jsontest.Apply(t, m.doc, c.edits...)
		for range 2 {
			result := m.check(t, MergedOptions{})
			if diff := cmp.Diff(c.want, mergedSayings(t, result)); diff != "" || len(result.Failures) > 0 || !result.Sound {
				t.Errorf("%s: failures %v, findings (-want +got):\n%s", c.name, result.Failures, diff)
			}
			if result.RunID != "run" || len(result.SourceRanks) == 0 || result.GlobalSize != c.shape.ranks || result.Points != c.shape.points || result.Groups.Len == 0 {
				t.Errorf("%s: %+v", c.name, result)
			}
			jsontest.Shuffle(random, m.doc)
		}
	}
}

// What a merge writes is a sound merged artifact, and what its rank files give.
func TestMergedOfSimulatedRuns(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 20))
	for i := range 24 {
		opt := simulate.Options{Ranks: 1 + i%5, Points: 1 + random.IntN(7), Raw: 1 + random.IntN(4), Seed: random.Uint64(), Legacy: i%4 == 3, Shuffle: i%2 == 0, Dir: t.TempDir()}
		warning := finding.ID("")
		if i%3 == 2 {
			opt.Break = finding.RankPartialRun
			warning = opt.Break
		}
		run, err := simulate.Run(context.Background(), opt)
		if excluded := (*simulate.ExcludedError)(nil); errors.As(err, &excluded) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		files := run.Files
		var ranks artifact.RankSet
		for rank := range files {
			if i%2 == 0 || random.IntN(2) == 0 || rank == len(files)-1 && len(ranks) == 0 {
				ranks = append(ranks, rank)
			}
		}
		files = nil
		for _, rank := range ranks {
			files = append(files, run.Files[rank])
		}
		merged, err := Run(t.Context(), Options{Inputs: files, Ranks: ranks, Explicit: true})
		if err != nil || merged.Output == "" {
			t.Fatal(err, merged.Findings, merged.Failures)
		}
		result := validated(t, merged.Output, MergedOptions{RankFiles: files})
		if result.Errors > 0 || len(result.Failures) > 0 || !result.Compared || result.NotCompared != "" || !slices.Equal(result.SourceRanks, ranks) {
			t.Errorf("%+v: %+v", opt, result)
		}
		for _, f := range result.Findings {
			if f.Rule != warning {
				t.Errorf("%+v: %+v", opt, f)
			}
		}
	}
}

// What is wrong with the text is reported by the rules about text.
func TestMergedTexts(t *testing.T) {
	m := mergeRun(t, build(t, two()))
	whole := readFile(t, m.path)
	for _, c := range []struct {
		text string
		rule finding.ID
	}{
		{whole[:len(whole)/2], finding.JSONSyntax},
		{whole + "x", finding.JSONSyntax},
		{"", finding.JSONSyntax},
		{strings.Replace(whole, `"valid": true`, `"valid": NaN`, 1), finding.JSONNumber},
		{strings.Replace(whole, `"valid": true`, `"valid": true, "valid": true`, 1), finding.JSONDuplicateKey},
		{strings.Replace(whole, `"valid": true`, `"valid": `+strings.Repeat("[", 600), 1), finding.JSONDepth},
	} {
		writeFile(t, m.path, c.text)
		result := validated(t, m.path, MergedOptions{RankFiles: m.files})
		if len(result.Findings) != 1 || result.Findings[0].Rule != c.rule || result.Findings[0].Line == 0 || result.Sound || result.Compared || len(result.Failures) > 0 {
			t.Errorf("%.40q: %+v", c.text, result)
		}
	}
	// A lone surrogate is legal.
	writeFile(t, m.path, strings.Replace(whole, `"config": {`, `"config": {"x": "\ud800",`, 1))
	if result := validated(t, m.path, MergedOptions{}); len(result.Findings) > 0 || !result.Sound {
		t.Errorf("%+v", result)
	}
}

func TestMergedFileMissing(t *testing.T) {
	result := validated(t, filepath.Join(t.TempDir(), "x.json"), MergedOptions{})
	if len(result.Failures) != 1 || result.Sound || len(result.Findings) > 0 {
		t.Errorf("%+v", result)
	}
}

func TestMergedCancelled(t *testing.T) {
	m := mergeRun(t, build(t, two()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := CheckMerged(ctx, m.path, MergedOptions{RankFiles: m.files}); !errors.Is(err, context.Canceled) || result != nil {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestMergedFindingsAreBounded(t *testing.T) {
	m := mergeRun(t, build(t, shape{ranks: 3, points: 5, raw: 1}))
	jsontest.Apply(t, m.doc, set("/results/*/fpms/0/queued_requests", "null"))
	result := m.check(t, MergedOptions{MaxFindings: 4, RankFiles: m.files})
	if len(result.Findings) != 4 || result.Errors != 30 || !result.Compared {
		t.Errorf("%d kept, %d errors", len(result.Findings), result.Errors)
	}
}

// Every rule of merged artifacts is among the vectors.
func TestEveryMergedRuleIsBroken(t *testing.T) {
	broken := map[finding.ID]bool{finding.MergedDiffers: true} // see below
	for _, c := range mergedVectors() {
		for _, s := range c.want {
			broken[s.Rule] = true
		}
	}
	for _, rule := range finding.Rules() {
		if strings.HasPrefix(string(rule.ID), "merged.") && !broken[rule.ID] {
			t.Errorf("%s is not broken", rule.ID)
		}
	}
}

// differing returns what is said about differences to the rank files.
func differing(t *testing.T, result *MergedResult) (list []said) {
	t.Helper()
	for _, s := range mergedSayings(t, result) {
		if s.Rule == finding.MergedDiffers {
			list = append(list, s)
		}
	}
	return list
}

func TestMergedDiffers(t *testing.T) {
	const rule = finding.MergedDiffers
	subset := shape{ranks: 3, points: 2, raw: 1}
	for _, c := range []mergedVector{
		{"as it is", two(), nil, nil, nil},
		{"a subset", subset, []int{0, 2}, nil, nil},
		{"legacy", shape{ranks: 2, points: 2, raw: 1, legacy: true}, nil, nil, nil},
		{"moved and packed", two(), nil, edits(set("/rank_files", `["/x/run.json.gz", "/y/run_dp1.json.zst"]`), set("/merged_output_path", `"/z/run_merged.json"`), set("/worker_probe_path", `"/z/run_merged_worker_probe.json"`)), nil},
		{"spelled otherwise", two(), nil, edits(set("/config/threshold", "0.1e-4"), set("/run_id", `"\u0072un"`), moveKey("dp", 0)), nil},
		{"changed", two(), nil, edits(set("/config/threshold", "0.5")), found(rule, 0, "/config/threshold", "1e-05", "0.5")},
		{"added", two(), nil, edits(set("/config/notes/-", "{}"), set("/new", "null")), slices.Concat(found(rule, 0, "/config/notes/5", "absent", "{}"), found(rule, 0, "/new", "absent", "null"))},
		{"a result added", two(), nil, edits(set("/results/-", "{}"), move("/results", 4, 0)), found(rule, 0, "/results/0", "absent", "{}")},
		{"removed", two(), nil, edits(del("/config/threshold"), del("/error")), slices.Concat(found(rule, 0, "/config/threshold", "1e-05", "absent"), found(rule, 0, "/error", "null", "absent"))},
		{"in both lists", two(), nil, edits(set("/results/1/fpms/0/version", "3"), set("/iteration_groups/0/rank_results/1/fpms/0/version", "3")),
			slices.Concat(found(rule, 0, "/results/1/fpms/0/version", "1", "3"), found(rule, 0, "/iteration_groups/0/rank_results/1/fpms/0/version", "1", "3"))},
		{"regime", two(), nil, edits(set("/results/1/kv_seed_regime", `"fake"`)), found(rule, 0, "/results/1/kv_seed_regime", `"real_kv"`, `"fake"`)},
		{"another run", two(), nil, edits(set("/run_id", `"other"`), set("/config/threshold", "0.5")), found(rule, 0, "/run_id", `"run"`, `"other"`)},
		{"file names", two(), nil, edits(set("/rank_files/1", `"/x/other_dp1.json"`)), found(rule, 0, "/rank_files/1", "a path that ends in run_dp1.json", `"/x/other_dp1.json"`)},
		{"renamed, whatever the name was", two(), nil, edits(set("/merged_output_path", `"/x/m.json"`), set("/worker_probe_path", `"/x/m_worker_probe.json"`)), nil},
		{"rank files no list", two(), nil, edits(set("/rank_files", "5")), found(rule, 0, "/rank_files", "2 paths", "5")},
		{"a rank file more", two(), nil, edits(set("/rank_files/-", `"x"`)), found(rule, 0, "/rank_files/2", "absent", `"x"`)},
		{"a rank file less", two(), nil, edits(del("/rank_files/1")), found(rule, 0, "/rank_files/1", "a path that ends in run_dp1.json", "absent")},
		{"a path no text", two(), nil, edits(set("/merged_output_path", "5"), del("/worker_probe_path")), found(rule, 0, "/worker_probe_path", "@DIR@", "absent")},
	} {
		m := mergeRun(t, build(t, c.shape), c.ranks...)
		jsontest.Apply(t, m.doc, c.edits...)
		result := m.check(t, MergedOptions{RankFiles: m.files})
		got := differing(t, result)
		for i := range got {
			if strings.HasPrefix(got[i].Expected, `"/`) {
				got[i].Expected = "@DIR@"
			}
		}
		if diff := cmp.Diff(sortSaid(c.want), sortSaid(got)); diff != "" || len(result.Failures) > 0 || result.Compared != (c.name != "another run") {
			t.Errorf("%s: failures %v, compared %t, findings (-want +got):\n%s", c.name, result.Failures, result.Compared, diff)
		}
	}
}

// A result that was lost or added is one difference, though others stand in its place.
func TestMergedDiffersInOneElement(t *testing.T) {
	m := mergeRun(t, build(t, shape{ranks: 2, points: 4, raw: 2}))
	sound := m.doc
	for _, c := range []struct {
		edit    jsontest.Edit
		pointer string
		actual  string // what the actual value begins with
	}{
		{del("/results/3"), "/results/3", `{"point": {"point_type": "decode","benchmark_id": 3`},
		{del("/results/7"), "/results/7", "absent"},
		{del("/iteration_groups/0"), "/iteration_groups/0", `{"benchmark_id": 2`},
		{copyTo("/results/-", "/results/0"), "/results/8", `{"point": {"point_type": "decode","benchmark_id": 1`},
	} {
		m.doc = sound.Clone()
		jsontest.Apply(t, m.doc, c.edit)
		got := differing(t, m.check(t, MergedOptions{RankFiles: m.files}))
		if len(got) != 1 || got[0].Pointer != c.pointer || !strings.HasPrefix(got[0].Actual, c.actual) || got[0].Expected == "" {
			t.Errorf("%+v, want %s at %s", got, c.actual, c.pointer)
		}
	}
}

// Files that cannot be those of the merged artifact are named as such, and nothing is
// compared.
func TestMergedOfOtherFiles(t *testing.T) {
	const rule = finding.MergedDiffers
	subset := shape{ranks: 3, points: 2, raw: 1}
	given := "the ranks of the files: "
	m := mergeRun(t, build(t, subset), 0, 2)
	all := build(t, subset).write(t, t.TempDir())
	for _, c := range []struct {
		name  string
		files []string
		want  []said
		why   string
	}{
		{"one is missing", m.files[:1], found(rule, 0, "/dp/source_ranks", given+"0", "[0,2]"), "made of"},
		{"one too many", all, found(rule, 0, "/dp/source_ranks", given+"0-2", "[0,2]"), "made of"},
		{"another one", all[:2], found(rule, 0, "/dp/source_ranks", given+"0-1", "[0,2]"), "made of"},
	} {
		result := m.check(t, MergedOptions{RankFiles: c.files})
		if diff := cmp.Diff(c.want, mergedSayings(t, result)); diff != "" || len(result.Failures) > 0 || result.Compared || !strings.Contains(result.NotCompared, c.why) {
			t.Errorf("%s: %+v, findings (-want +got):\n%s", c.name, result, diff)
		}
	}

	// What is wrong with the rank files is reported, and the comparison is not made.
	r := build(t, subset).apply(t, only(2, set("/run_id", `"other"`)))
	files := r.write(t, t.TempDir(), 0, 2)
	result := m.check(t, MergedOptions{RankFiles: files})
	want := broken(finding.RunID, 0, "/run_id", `"run"`, `"other"`, 2)
	if diff := cmp.Diff(want, mergedSayings(t, result)); diff != "" || result.Compared || !strings.Contains(result.NotCompared, "not a sound run") || result.Findings[0].File != files[1] {
		t.Errorf("%+v, findings (-want +got):\n%s", result, diff)
	}
	result = m.check(t, MergedOptions{RankFiles: []string{files[0], filepath.Join(t.TempDir(), "x.json")}})
	if len(result.Failures) != 1 || len(result.Findings) > 0 || result.Compared || result.NotCompared == "" {
		t.Errorf("%+v", result)
	}
}

// Whatever one thing is changed in a merged artifact, the comparison names it, and nothing
// elsewhere.
func TestMergedDiffersAtWhatWasChanged(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	m := mergeRun(t, build(t, shape{ranks: 2, points: 3, raw: 2, reversed: true}))
	sound := m.doc
	reported := 0
	for range 400 {
		m.doc = sound.Clone()
		mutate(t, random, m.doc)
		if !isObject(m.doc) || m.doc.Get("artifact_type") == nil || !jsonvalue.Equal(m.doc.Get("artifact_type"), sound.Get("artifact_type")) {
			continue // no merged artifact any more
		}
		var want []string
		jsonvalue.Diff(sound, m.doc, "", func(d jsonvalue.Difference) bool { want = append(want, d.Pointer); return true })
		result := m.check(t, MergedOptions{RankFiles: m.files})
		if want == nil || !result.Sound || slices.ContainsFunc(result.Findings, func(f finding.Finding) bool { return f.Rule == finding.InputLimit }) {
			continue
		}
		var got []string
		for _, s := range differing(t, result) {
			got = append(got, s.Pointer)
		}
		if result.NotCompared != "" { // the ranks or the run id were changed
			if len(got) != 1 || !strings.HasPrefix(want[0], got[0]) {
				t.Fatalf("%s, at %v; changed at %v", result.NotCompared, got, want)
			}
			continue
		}
		// The document may have been written under any name: merged.paths looks at these.
		want = slices.DeleteFunc(want, func(w string) bool {
			return (w == "/merged_output_path" || w == "/worker_probe_path") && m.doc.Get(w[1:]) != nil
		})
		slices.Sort(want)
		slices.Sort(got)
		if len(got) == 1 && len(want) > 0 && !slices.Contains(want, got[0]) || len(got) < len(want) {
			// An element of a list was lost or added: by position, all behind it differ.
			list := got[0][:strings.LastIndex(got[0], "/")+1]
			want = slices.DeleteFunc(want, func(w string) bool { return strings.HasPrefix(w, list) })
			got = got[1:]
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || !result.Compared {
			t.Fatalf("pointers (-changed +reported):\n%s\n%+v", diff, result.Failures)
		}
		reported++
	}
	if reported < 200 {
		t.Errorf("only %d changes", reported)
	}
}

// The white space of a merged artifact says nothing, nor does that of the rank files.
func TestMergedLayouts(t *testing.T) {
	r := build(t, shape{ranks: 2, points: 3, raw: 2, reversed: true})
	r.texts[0] = func(text string) string { return indentBy(r.docs[0], "\t") }
	m := mergeRun(t, r)
	for name, text := range map[string]string{
		"compact": string(m.doc.AppendCompact(nil)),
		"tabs":    indentBy(m.doc, "\t"),
		"CRLF":    strings.ReplaceAll(jsontest.Indent(m.doc), "\n", "\r\n"),
		"no line": jsontest.Indent(m.doc) + "\n",
	} {
		writeFile(t, m.path, text)
		if result := validated(t, m.path, MergedOptions{RankFiles: m.files}); len(result.Findings)+len(result.Failures) > 0 || !result.Compared {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

// The derived document needs room only when it differs; without any, that is a failure and
// what was found without it is reported.
func TestMergedWithoutRoom(t *testing.T) {
	m := mergeRun(t, build(t, two()))
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "gone"))
	if result := m.check(t, MergedOptions{RankFiles: m.files}); len(result.Failures)+len(result.Findings) > 0 || !result.Compared {
		t.Errorf("%+v", result)
	}
	jsontest.Apply(t, m.doc, set("/valid", "false"))
	result := m.check(t, MergedOptions{RankFiles: m.files})
	if len(result.Failures) != 1 || len(result.Findings) != 1 || result.Compared || result.NotCompared == "" || !strings.Contains(result.Failures[0].Error(), "gone") {
		t.Errorf("%+v", result)
	}
}

// What is too large to be compared as a whole is refused, not held.
func TestMergedLimits(t *testing.T) {
	m := mergeRun(t, build(t, shape{ranks: 1, points: 1, raw: 1, legacy: true}))
	long := `"` + strings.Repeat("x", 9<<20) + `"`
	for _, pointer := range []string{"/results/0/point", "/engine", "/dp", "/rank_files"} {
		doc := m.doc.Clone()
		if one, two := set(pointer+"/x", long), set(pointer+"/y", long); pointer == "/rank_files" {
			jsontest.Apply(t, doc, set(pointer+"/-", long), set(pointer+"/-", long))
		} else {
			jsontest.Apply(t, doc, one, two)
		}
		writeFile(t, m.path, jsontest.Indent(doc))
		result := validated(t, m.path, MergedOptions{RankFiles: m.files})
		if !slices.ContainsFunc(result.Findings, func(f finding.Finding) bool { return f.Rule == finding.InputLimit && f.Line > 0 }) || result.Compared {
			t.Errorf("%s: %+v", pointer, result)
		}
	}
}
