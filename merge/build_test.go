package merge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/protocol"
)

// shape says what a test's run is like.
type shape struct {
	ranks, points, raw int
	legacy             bool // no evidence blocks
	bare               bool // no engine blocks
	reversed           bool // file order is the reverse of the benchmark ids
}

// two is the smallest run in which ranks, points and samples can differ.
func two() shape { return shape{ranks: 2, points: 2, raw: 2} }

// testRun is a run as trees, to be changed before it is written.
type testRun struct {
	shape
	docs  []*jsonvalue.Value // by rank
	texts []func(string) string
}

func literal(f float64) string { return string(pyjson.AppendFloat(nil, f)) }

func (s shape) id(group int) int {
	if s.reversed {
		return s.points - group
	}
	return group + 1
}

func (s shape) point(group int) string {
	return fmt.Sprintf(`{"point_type": "decode", "benchmark_id": %d, "total_prefill_tokens": 0, "total_kv_read_tokens": %d, "batch_size": %d,
		"sample_reasons": ["lattice"], "partition": null, "rows": null}`, s.id(group), 100*s.id(group), s.id(group))
}

// pointKey is the content key of a group's point; empty, which no merge accepts, if it
// cannot be computed.
func (s shape) pointKey(group int) string {
	point, err := jsonvalue.Parse([]byte(s.point(group)), 0)
	if err != nil {
		return ""
	}
	key, _ := protocol.PointKey(point)
	return key
}

// wall is the wall time of a raw sample in seconds.
func wall(rank, group, i int) float64 {
	return 0.01*float64(group+1) + 0.0011*float64(i) + 0.0001*float64(rank)
}

// estimate is how the samples of a point are reduced, and to which.
func (s shape) estimate() (method, indices string, retained int) {
	switch s.raw {
	case 1:
		return "single_step", "0", 0
	case 2:
		return "last_step", "1", 1
	}
	var list []string
	for i := 1; i < s.raw; i++ {
		list = append(list, fmt.Sprint(i))
	}
	return "adjacent_upper_median", strings.Join(list, ", "), 1 + (s.raw-1)/2
}

func (s shape) retained(rank, group int) float64 {
	_, _, i := s.estimate()
	return wall(rank, group, i)
}

func (s shape) sample(rank, group, i int) string {
	start := 100 + 10*float64(group) + float64(i)/10
	return fmt.Sprintf(`{"worker_id": "w%[1]d", "dp_rank": %[1]d, "counter_id": %[2]d, "wall_time": %[3]s, "benchmark_sample": {
		"sample_index": %[4]d, "forward_index": %[5]d, "timing": {"basis": "inter_output", "start_monotonic": %[6]s, "end_monotonic": %[7]s},
		"cudagraph": {"status": "observed", "runtime_mode": "FULL", "num_unpadded_tokens": 3, "num_padded_tokens": 4, "num_paddings": 1}}}`,
		rank, s.id(group), literal(wall(rank, group, i)), i, 5+group*s.raw+i, literal(start), literal(start+wall(rank, group, i)))
}

func (s shape) fpms(rank, group int) string {
	evidence := ""
	if !s.legacy {
		var samples []string
		for i := range s.raw {
			samples = append(samples, s.sample(rank, group, i))
		}
		method, indices, _ := s.estimate()
		evidence = fmt.Sprintf(`, "benchmark_measurement": {"schema_version": 1, "point_key": "%s", "dp_rank": %d,
			"preparation": {"grid_digest": "grid", "completed_points_before": %d, "warmup_records_before": 1},
			"expected_internal_samples": %d, "raw_fpms": [%s], "estimate": {"method": "%s", "raw_sample_indices": [%s]}}`,
			s.pointKey(group), rank, group, s.raw, strings.Join(samples, ","), method, indices)
	}
	return fmt.Sprintf(`[{"version": 1, "worker_id": "w%[1]d", "dp_rank": %[1]d, "counter_id": %[2]d, "wall_time": %[3]s, "queued_requests": {"num_decode_requests": 0}%[4]s}]`,
		rank, s.id(group), literal(s.retained(rank, group)), evidence)
}

// groups returns the iteration groups and the sum of their wall times.
func (s shape) groups() (text string, seconds float64) {
	var groups []string
	var sum pyjson.Summer
	for g := range s.points {
		var ranks, results []string
		for r := range s.ranks {
			ranks = append(ranks, fmt.Sprint(r))
			results = append(results, fmt.Sprintf(`{"dp_rank": %d, "fpms": %s}`, r, s.fpms(r, g)))
		}
		slowest := s.retained(s.ranks-1, g)
		sum.Add(slowest)
		groups = append(groups, fmt.Sprintf(`{"benchmark_id": %d, "point": %s, "expected_dp_ranks": [%s], "complete": true, "wall_time": %s, "rank_results": [%s]}`,
			s.id(g), s.point(g), strings.Join(ranks, ","), literal(slowest), strings.Join(results, ",")))
	}
	return strings.Join(groups, ","), sum.Sum()
}

func (s shape) results(rank int) string {
	var results []string
	for g := range s.points {
		results = append(results, fmt.Sprintf(`{"point": %s, "kv_seed_regime": "real_kv", "fpms": %s}`, s.point(g), s.fpms(rank, g)))
	}
	return strings.Join(results, ",")
}

func (s shape) document(rank int, groups string, seconds float64) string {
	engine, evidence := "", ""
	if !s.bare {
		engine = fmt.Sprintf(`"engine": {"attention": {"backend_requested": null, "resolution": "pending"}, "parallel": {"data_parallel_rank": %d, "tensor_parallel_size": 1}, "versions": {"vllm": "0.29.0"}},`, rank)
	}
	if !s.legacy {
		evidence = `"measurement_protocol": {"schema_version": 1, "content_seed": "0", "execution_evidence": {"schema_version": 1, "sample_field": "benchmark_sample", "warmup_field": "warmup_evidence"}},
			"warmup_evidence": {"status": "recorded", "records": [{"kind": "global", "status": "completed", "validation": {"status": "not_performed", "reason": null},
			"forward_index_start": 0, "forward_index_end": 5, "observed_forward_count": 5}]},`
	}
	return fmt.Sprintf(`{"schema_version": 2, "artifact_type": "rank", "status": "complete", "valid": true, "usable": true, "stop_reason": null, "run_id": "run", "grid_digest": "grid",
		"timing": {"started_at": "2026-01-01T00:00:0%[1]dZ", "completed_at": "2026-01-01T00:09:0%[1]dZ", "benchmark_elapsed_seconds": %[2]s, "measured_iteration_seconds": %[3]s},
		"dp": {"rank": %[1]d, "size": %[4]d}, "coverage": {"expected_points": %[5]d, "completed_points": %[5]d, "skipped_points": 0},
		"config": {"output_path": "/tmp/rank%[1]d", "threshold": 1e-05, "notes": ["Z\u00fcrich", {}, [], -0.0, 1E+2]}, %[6]s %[7]s
		"results": [%[8]s], "iteration_groups": [%[9]s], "skipped_points": [], "missing_phases": [], "error": null}`,
		rank, literal(90.5-float64(rank)/10), literal(seconds), s.ranks, s.points, engine, evidence, s.results(rank), groups)
}

// build makes a run that keeps every rule.
func build(t testing.TB, s shape) *testRun {
	t.Helper()
	r := &testRun{shape: s}
	groups, seconds := s.groups()
	for rank := range s.ranks {
		r.docs = append(r.docs, jsontest.Parse(t, s.document(rank, groups, seconds)))
		r.texts = append(r.texts, func(text string) string { return text })
	}
	return r
}

// change is something done to a run.
type change func(t testing.TB, r *testRun)

func (r *testRun) apply(t testing.TB, changes ...change) *testRun {
	t.Helper()
	for _, c := range changes {
		c(t, r)
	}
	return r
}

// every edits the files of all ranks.
func every(edits ...jsontest.Edit) change {
	return func(t testing.TB, r *testRun) {
		t.Helper()
		for _, doc := range r.docs {
			jsontest.Apply(t, doc, edits...)
		}
	}
}

// only edits the file of one rank.
func only(rank int, edits ...jsontest.Edit) change {
	return func(t testing.TB, r *testRun) { t.Helper(); jsontest.Apply(t, r.docs[rank], edits...) }
}

// fpmsOf edits what a rank has for a group: the list of FPMs in the groups of every file
// and in its own results.
func fpmsOf(group, rank int, edits ...jsontest.Edit) change {
	return func(t testing.TB, r *testRun) {
		t.Helper()
		every(jsontest.Under(fmt.Sprintf("/iteration_groups/%d/rank_results/%d/fpms", group, rank), edits...))(t, r)
		only(rank, jsontest.Under(fmt.Sprintf("/results/%d/fpms", group), edits...))(t, r)
	}
}

// fpm edits a rank's FPM for a group.
func fpm(group, rank int, edits ...jsontest.Edit) change {
	return fpmsOf(group, rank, jsontest.Under("/0", edits...))
}

// pointOf edits a point in the groups and in the results of every file.
func pointOf(group int, edits ...jsontest.Edit) change {
	return every(jsontest.Under(fmt.Sprintf("/iteration_groups/%d/point", group), edits...), jsontest.Under(fmt.Sprintf("/results/%d/point", group), edits...))
}

// inText replaces the first old in the text of a rank's file.
func inText(rank int, old, new string) change {
	return func(t testing.TB, r *testRun) {
		t.Helper()
		before := r.texts[rank]
		r.texts[rank] = func(text string) string {
			text = before(text)
			if !strings.Contains(text, old) {
				t.Fatalf("no %s in the text", old)
			}
			return strings.Replace(text, old, new, 1)
		}
	}
}

// text is a rank's file.
func (r *testRun) text(rank int) string { return r.texts[rank](jsontest.Indent(r.docs[rank])) }

// write writes the files of the given ranks, or of all, and returns their paths. The base
// path is the first rank's path without its rank.
func (r *testRun) write(t testing.TB, dir string, ranks ...int) (paths []string) {
	t.Helper()
	if ranks == nil {
		for rank := range r.ranks {
			ranks = append(ranks, rank)
		}
	}
	base := artifact.ParseBase(filepath.Join(dir, "run.json"))
	for _, rank := range ranks {
		paths = append(paths, base.Rank(rank))
		writeFile(t, base.Rank(rank), r.text(rank))
	}
	return paths
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// runMerge merges, and checks what holds of any merge: what it wrote is there, and it wrote
// nothing else.
func runMerge(t testing.TB, opt Options) *Result {
	t.Helper()
	dir := filepath.Dir(slices.Concat(opt.Inputs, []string{opt.DefaultBase})[0])
	before := dirNames(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result, err := Run(ctx, opt)
	if err != nil {
		t.Fatal(err)
	}
	want := before
	if result.Output != "" && filepath.Dir(result.Output) == dir {
		if want = append(want, filepath.Base(result.Output)); int64(len(readFile(t, result.Output))) != result.Bytes {
			t.Errorf("%d bytes were not written", result.Bytes)
		}
		slices.Sort(want)
	}
	if after := dirNames(t, dir); !slices.Equal(after, slices.Compact(want)) {
		t.Errorf("the directory had %v, and now %v", before, after)
	}
	if (result.Output != "" || result.RunID != "") && (result.Errors > 0 || len(result.Failures) > 0) {
		t.Errorf("%d errors, failures %v, but %q was written", result.Errors, result.Failures, result.Output)
	}
	return result
}

func dirNames(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// merged merges a run that must pass, and returns the merged text with the directory
// taken out of its paths.
func (r *testRun) merged(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	paths := r.write(t, dir)
	result := runMerge(t, Options{Inputs: paths[:1]})
	if result.Errors > 0 || len(result.Failures) > 0 || result.Output == "" {
		t.Fatalf("not merged: %v, %v", result.Findings, result.Failures)
	}
	return strings.ReplaceAll(readFile(t, result.Output), dir, "@DIR@")
}
