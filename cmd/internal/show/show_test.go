package show

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/table"
)

// Small documents of each kind; nothing in them is sound as a whole.
const (
	rankText = `{"artifact_type": "rank", "run_id": "run\u001b[2J", "status": "complete", "valid": false, "usable": false,
"dp": {"rank": 1, "size": 3}, "coverage": {"expected_points": 3, "completed_points": 2, "skipped_points": 1},
"timing": {"started_at": "2026-01-01T00:00:00Z", "completed_at": "2026-01-01T00:01:00Z", "benchmark_elapsed_seconds": 60, "measured_iteration_seconds": 1e-9},
"skipped_points": [{"point": {"benchmark_id": 3, "point_type": "decode"}, "reason": "measured_kv_read_mismatch"}], "missing_phases": ["prefill"],
"config": {"mode": "agg"}, "limits": {"max_model_len": 4096, "num_gpu_blocks": 10}, "cudagraph": {"mode": "FULL", "capture_sizes": [1, 2]},
"kvwarm": {"enabled": true, "warm_eligible": true, "stages": [{"batch": 4, "depth": 9, "failed": true, "why": "\u202e"}, 7]},
"measurement_protocol": {"unobserved": ["kv_cache_tensors"]},
"engine": {"model": {"model": "漢字"}, "versions": {"vllm": "1"}, "parallel": {"data_parallel_size": 3}, "list": [{"a": null}, []], "capture_error": "no \n"},
"warmup_evidence": {"status": "recorded", "records": [{"kind": "global", "status": "completed", "forward_index_start": 0, "forward_index_end": 3, "validation": {"status": "failed", "reason": "x\u0007"}}, {}]},
"results": [{"point": {"benchmark_id": 1, "point_type": "decode"}, "kv_seed_regime": "fake_fallback", "fpms": [{"wall_time": 0}]}],
"iteration_groups": [
 {"benchmark_id": 1, "point": {"benchmark_id": 1, "point_type": "decode", "batch_size": 4, "total_kv_read_tokens": 64, "expected_cudagraph_mode": "FULL", "expected_capture_size": 4, "padding_tokens": 0, "sample_reasons": ["explicit"]},
  "wall_time": 2, "rank_results": [{"dp_rank": 0, "fpms": [{"wall_time": 1}]}, {"dp_rank": 1, "fpms": [{"wall_time": 2, "benchmark_measurement": {
   "raw_fpms": [{"wall_time": 2, "benchmark_sample": {"sample_index": 0, "forward_index": 3, "cudagraph": {"status": "observed", "runtime_mode": "CUDAGraphMode.NONE"}}}],
   "estimate": {"method": "single_step", "raw_sample_indices": [0]}}}]}]},
 {"benchmark_id": 2, "point": 0}]}`
	mergedText = `{"artifact_type": "merged", "run_id": "r", "dp": {"ranks": [0, 1], "source_ranks": [1]}, "rank_files": ["a"], "merged_output_path": "m",
"results": [{"point": {"benchmark_id": 1, "point_type": "decode"}, "fpms": [{"wall_time": 1}]}], "iteration_groups": [{"benchmark_id": 1, "point": {"benchmark_id": 1}}],
"timing": {"rank_benchmark_elapsed_seconds": {"0": 1, "1": 2}},
"rank_warmup_evidence": {"0": {"status": "unavailable", "records": [], "reason": "rank_artifact_not_loaded"}, "1": {"status": "recorded", "records": [{"kind": "global"}]}}}`
	sidecarText = `{"schema": "dynamo.fpm.benchmark_worker_probe", "schema_version": 1, "run_id": "r\u001b", "merged_output_path": "m", "rank_files": ["a", "b"],
"merged": {"resolution": "worker_probe_partial", "attention": {"backend_resolved": "FA"}, "worker_probe": {"error": null, "disagreements": [{}],
 "responses": [{"response": {"dp_rank": 0, "worker_rank": 1, "attention_backends": {"l0": "FA", "l1": "FA"}, "mla_prefill_backend": null, "cudagraph_mode_resolved": "FULL", "cudagraph_capture_sizes_resolved": [1, 2], "capture_errors": {"x": 1}}, "issues": []}, {"response": "x", "issues": ["not JSON"]}],
 "coverage": {"complete": false, "expected_dp_ranks": [0, 1], "expected_workers_per_dp": 2, "observed_workers": [{}], "missing_dp_ranks": [1]}}},
"ranks": {"0": {"rank_file": "a", "resolution": "worker_probe", "worker_probe": {"coverage": {"complete": true}}}}}`
)

// read reads one text as the command would read a file.
func read(text []byte, sample int64) (*Result, error) {
	r := newReading(context.Background(), Options{Sample: sample})
	_, err := r.content("x.json", bytes.NewReader(text))
	r.fault("x.json", err)
	if len(r.traces) > 0 { // which are read as files
		dir, err := os.MkdirTemp("", "show")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		r.traces = []string{filepath.Join(dir, "x.jsonl")}
		if err := os.WriteFile(r.traces[0], text, 0o600); err != nil {
			return nil, err
		}
	}
	if err := r.summarise(); err != nil {
		return nil, err
	}
	r.conclude()
	return &r.result, err
}

// traceText is two rows of a trace, and lines that are none.
const traceText = `{"timestamp":1,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"dynamo","component":"backend","producer_id":"w\u001b漢"},"capture_mode":"full","observed_at_unix_ms":1767225600000,"fpm":{"version":1,"worker_id":"w","dp_rank":0,"counter_id":1,"wall_time":0.5,"scheduled_requests":{"num_prefill_requests":1,"sum_prefill_tokens":9,"sum_prefill_kv_tokens":0,"num_decode_requests":2,"sum_decode_kv_tokens":7},"queued_requests":{"num_prefill_requests":3,"sum_prefill_tokens":4,"num_decode_requests":0,"sum_decode_kv_tokens":0}}}}
{"received_at_ns":1767225601000000000,"metrics":{"version":1,"worker_id":"w","dp_rank":3,"counter_id":9,"wall_time":0.25,"scheduled_requests":{"num_prefill_requests":1,"sum_prefill_tokens":9,"sum_prefill_kv_tokens":0,"num_decode_requests":2,"sum_decode_kv_tokens":7},"queued_requests":{"num_prefill_requests":3,"sum_prefill_tokens":4,"num_decode_requests":0,"sum_decode_kv_tokens":0}}}
{"timestamp":1,"event":7}
hello
`

var selections = []Selection{{}, {Points: true}, {Warmup: true}, {Engine: true}, {Samples: true}, {Points: true, Warmup: true, Engine: true, Samples: true}}

// check checks what must hold of a document, whatever it is: every line fits and can be
// shown, and the data is JSON.
func check(d *Document, width, limit int) error {
	for _, sel := range selections {
		for _, line := range d.Text(sel, Layout{Width: width, Limit: limit}) {
			if table.Width(line) > max(width, 20) {
				return fmt.Errorf("%+v: %d columns of %d: %q", sel, table.Width(line), width, line)
			}
			for _, c := range line {
				if !unicode.IsGraphic(c) {
					return fmt.Errorf("%+v: %U in %q", sel, c, line)
				}
			}
		}
		if _, err := json.Marshal(d.Data(sel)); err != nil {
			return fmt.Errorf("%+v: %w", sel, err)
		}
	}
	return nil
}

func TestEveryKindAtEveryWidth(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		kind detect.Kind
	}{"rank": {rankText, detect.Rank}, "merged": {mergedText, detect.Merged}, "sidecar": {sidecarText, detect.Sidecar}, "trace": {traceText, detect.Trace}} {
		t.Run(name, func(t *testing.T) {
			r, err := read([]byte(c.text), 1)
			if err != nil || len(r.Documents) != 1 || r.Documents[0].Kind != c.kind {
				t.Fatalf("%+v, %v", r, err)
			}
			for width := 1; width < 300; width += 7 {
				for _, limit := range []int{-1, 0, 1} {
					if err := check(r.Documents[0], width, limit); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}

// The text of an artifact in which everything is odd.
func TestOddArtifact(t *testing.T) {
	r, err := read([]byte(rankText), 1)
	if err != nil {
		t.Fatal(err)
	}
	// without the layout, which has tests of its own
	text := strings.Join(strings.Fields(strings.Join(r.Documents[0].Text(Selection{}, Layout{Width: 120}), "\n")), " ")
	for _, want := range []string{
		`run run\u001b[2J`,
		"ranks 1 of 3",
		"status complete, not valid, not usable",
		"coverage 2 of 3 points, 1 skipped, nothing of prefill",
		"measured 1e-09 s, the sum of the points' wall times",
		"elapsed the whole benchmark took 60.000 s",
		"run from 2026-01-01T00:00:00Z to 2026-01-01T00:01:00Z",
		"model 漢字",
		`engine capture no \n`,
		"KV warmup enabled true, eligible true, 2 stages, 1 failed",
		"warmup ledger recorded, 2 records: 1 completed",
		"attention[complete-not-valid]:",
		"attention[skipped-points]: 1 of 3 points were skipped: 1 measured_kv_read_mismatch (point 3",
		"attention[missing-ranks]: Ranks 0,2 of 3 have no artifact",
		"attention[no-real-kv]:",
		"attention[graph-dispatch]:",
		"attention[planner-view]:",
		"note[not-concluded]: Not proven: by equal prompt hashes",
		"NONE !",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// The order of the arguments changes nothing; each file is read once for each naming.
func TestOrderOfArguments(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for name, text := range map[string]string{"b_dp1.json": rankText, "m.json": mergedText, "s.json": sidecarText, "t.json": traceText, "b.json": strings.Replace(rankText, `"rank": 1,`, `"rank": 0,`, 1)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	texts := map[string]bool{}
	for range len(paths) {
		paths = append(paths[1:], paths[0])
		r, err := Read(context.Background(), Options{Paths: paths})
		if err != nil || len(r.Failures)+len(r.Findings) > 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		var kinds []detect.Kind
		var all []string
		for _, d := range r.Documents {
			kinds = append(kinds, d.Kind)
			all = append(all, d.Text(Selection{}, Layout{})...)
		}
		if diff := cmp.Diff([]detect.Kind{detect.Rank, detect.Merged, detect.Sidecar, detect.Trace}, kinds); diff != "" {
			t.Error(diff)
		}
		texts[strings.Join(all, "\n")] = true
	}
	if len(texts) != 1 {
		t.Errorf("%d different texts", len(texts))
	}
}

// Artifacts of two runs are two documents, whatever the order, each with its points.
func TestRunsAreApart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, id string, rank int) string {
		text := strings.Replace(rankText, `"run_id": "run\u001b[2J"`, `"run_id": "`+id+`"`, 1)
		text = strings.Replace(text, `"rank": 1,`, fmt.Sprintf(`"rank": %d,`, rank), 1)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a0, a1, b0, b1 := write("a.json", "A", 0), write("a_dp1.json", "A", 1), write("b.json", "B", 0), write("b_dp1.json", "B", 1)
	for _, paths := range [][]string{{a0, a1, b0, b1}, {b1, a0, b0, a1}} {
		r, err := Read(context.Background(), Options{Paths: paths, Sample: 1})
		if err != nil {
			t.Fatal(err)
		}
		var files [][]string
		for _, d := range r.Documents {
			files = append(files, d.Files)
			if d.reference() == nil || d.Samples == nil {
				t.Errorf("%q: no points", d.Files)
			}
		}
		if diff := cmp.Diff([][]string{{a0, a1}, {b0, b1}}, files); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// A directory without a run of its own is told what it has further down.
func TestRunsBelow(t *testing.T) {
	dir := t.TempDir()
	make := func(names ...string) {
		for _, name := range names {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	below := func() string { return strings.ReplaceAll(strings.Join(runsBelow(dir), ", "), dir, "D") }
	if got := below(); got != "" {
		t.Errorf("of nothing: %s", got)
	}
	make("x/notes.txt", "x/other.json", "x/other_dp1.json.gz")
	if got := below(); got != "D/x/other.json" {
		t.Errorf("files: %s", got)
	}
	make("b/benchmark_results.json", "b/benchmark_results_dp1.json", "a/n/benchmark_results_dp3.json.zst", "c/benchmark_results.json", "d/benchmark_results.json", "e/benchmark_results.json")
	if got := below(); got != "D/a/n, D/b, D/c, D/d, and 1 more" {
		t.Errorf("runs: %s", got)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	path := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(path, []byte(rankText), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(ctx, Options{Paths: []string{path}}); exitcode.Of(err) != exitcode.Interrupted {
		t.Errorf("%v", err)
	}
}

// told counts progress.
type told struct{ expected, done int64 }

func (p *told) Expect(n int64) { p.expected += n }
func (p *told) Add(n int64)    { p.done += n }

func TestProgressComesToItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(path, []byte(rankText), 0o600); err != nil {
		t.Fatal(err)
	}
	var p told
	if _, err := Read(context.Background(), Options{Paths: []string{path}, Progress: &p}); err != nil {
		t.Fatal(err)
	}
	if p.expected == 0 || p.done != p.expected {
		t.Errorf("%d of %d", p.done, p.expected)
	}
}

// FuzzShow: whatever a file holds, it is shown or refused, every line fits the terminal and
// moves no cursor, and the data is JSON.
func FuzzShow(f *testing.F) {
	for _, text := range []string{rankText, mergedText, sidecarText, traceText, `{"schema": "fpm.trace.manifest"}`, `[{"worker_rank": 0}]`, `{"schema": 1}`, "", "{", `{"a": "\ud800"}`} {
		f.Add([]byte(text), 80, 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, width, limit int) {
		r, err := read(text, 1)
		if len(r.Documents) == 0 && r.Errors == 0 && len(r.Failures) == 0 {
			t.Errorf("nothing is said of %q", text)
		}
		if _, fault := jsonstream.Check(bytes.NewReader(text), jsonstream.Limits{}); fault == nil && err != nil {
			t.Errorf("a sound text: %v", err)
		}
		for _, d := range r.Documents {
			if err := check(d, min(max(width, 1), 1000), limit); err != nil {
				t.Error(err)
			}
		}
	})
}
