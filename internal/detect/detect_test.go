package detect

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/input"
)

func TestLook(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, file, text string
		want             Kind
		run              string
	}{
		{"rank artifact", "r.json", `{"schema_version": 2, "artifact_type": "rank", "run_id": "a", "dp": {"rank": 0, "size": 1}, "iteration_groups": []}`, Rank, "a"},
		{"what follows the decision is not read", "r.json", `{"artifact_type": "rank", "run_id": "a", "dp": {"rank": 0}, broken`, Rank, "a"},
		{"rank artifact of an older writer", "r.json", `{"status": "complete", "coverage": {}, "results": []}`, Rank, ""},
		{"rank artifact that is cut off", "r.json", `{"kvwarm": {"enabled": true}, "run_id": "a", "stat`, Rank, "a"},
		{"rank artifact of another type", "r.json", `{"artifact_type": "x", "run_id": "a", "dp": {"rank": 0}}`, Rank, "a"},
		{"merged artifact", "m.json", `{"artifact_type": "merged", "run_id": "a", "dp": {"ranks": [0, 1], "source_ranks": [0, 1]}}`, Merged, "a"},
		{"merged artifact whose type is lost", "m.json", `{"run_id": "a", "dp": {"source_ranks": [0]}}`, Merged, "a"},
		{"a rank that calls itself merged", "m.json", `{"artifact_type": "merged", "run_id": "a", "dp": {"rank": 0}}`, Rank, "a"},
		{"a rank with source ranks", "r.json", `{"artifact_type": "rank", "run_id": "a", "dp": {"rank": 0, "source_ranks": [0]}}`, Rank, "a"},
		{"a rank with the keys of a sidecar", "r.json", `{"merged": {}, "ranks": {}, "artifact_type": "rank", "run_id": "a", "dp": {}}`, Rank, "a"},
		{"a rank with the keys of a row", "r.json", `{"timestamp": 1, "event": {"schema": "dynamo.fpm.trace.v1"}, "artifact_type": "rank", "run_id": "a"}`, Rank, "a"},
		{"a rank with a schema", "r.json", `{"schema": "fpm.trace.manifest", "artifact_type": "rank", "run_id": "a", "dp": {}}`, Rank, "a"},
		{"a merged artifact with the keys of a row", "m.json", `{"received_at_ns": 1, "metrics": {}, "artifact_type": "merged", "run_id": "a", "dp": {}}`, Merged, "a"},
		{"a merged artifact with a rank", "m.json", `{"artifact_type": "merged", "run_id": "a", "dp": {"rank": 0, "source_ranks": [0]}}`, Merged, "a"},
		{"a sidecar with the keys of a row", "s.json", `{"timestamp": 1, "event": {"schema": "dynamo.fpm.trace.v1"}, "results": [], "coverage": {}, "schema": "dynamo.fpm.benchmark_worker_probe"}`, Sidecar, ""},
		{"sidecar", "m_worker_probe.json", `{"schema": "dynamo.fpm.benchmark_worker_probe", "schema_version": 1, "run_id": "a", "merged": {}, "ranks": {}}`, Sidecar, "a"},
		{"trace", "t.jsonl", `{"timestamp": 1, "event": {"schema": "dynamo.fpm.trace.v1"}}` + "\n" + `{"timestamp": 2}`, Trace, ""},
		{"rows of a receive tool", "t.jsonl", `{"received_at_ns": 1, "metrics": {}}`, Trace, ""},
		{"trace whose first row is cut", "t.json", `{"timestamp": 1, "ev` + "\n" + `{"timestamp": 2, "event": {"schema": "dynamo.fpm.trace.v1"}}`, Trace, ""},
		{"trace whose first row is cut behind its keys", "t.json", `{"timestamp": 1, "event": {"sch`, Trace, ""},
		{"trace whose first row is another object", "t.json", `{"a": 1}` + "\n" + `{"received_at_ns": 1, "metrics": {}}` + "\n", Trace, ""},
		{"trace whose first line is text", "t.json", "hello\n\n" + `{"timestamp": 2, "event": {}}`, Trace, ""},
		{"trace whose only row is no JSON", "t.w.000000.jsonl", "hello", Trace, ""},
		{"segment without a row", "t.w.000000.jsonl.gz", "", Trace, ""},
		{"a list of rows", "t.json", "[\n" + `{"timestamp": 2, "event": {}}` + "\n]", Unknown, ""},
		{"manifest", "t.manifest.json", `{"schema": "fpm.trace.manifest", "schema_version": 1}`, Manifest, ""},
		{"replies", "replies.json", `[{"dp_rank": 0, "worker_rank": 0}, 1]`, Replies, ""},
		{"replies of a server", "replies.json", `{"results": [{"dp_rank": 0}]}`, Replies, ""},
		{"serving benchmark", "b.json", `{"backend": "vllm", "request_throughput": 1, "mean_ttft_ms": 2}`, Foreign, ""},
		{"report", "r.json", `{"schema": "fpm.report", "schema_version": 1, "command": "merge", "status": "ok", "findings": []}`, Foreign, ""},
		{"leftover", "benchmark_results.json.tmp", `{"artifact_type": "rank", "run_id": "a", "dp": {}}`, Leftover, "a"},
		{"empty", "e.json", ``, Damaged, ""},
		{"text", "e.json", `hello`, Damaged, ""},
		{"byte-order mark", "e.json", "\ufeff{}", Damaged, ""},
		{"some object", "e.json", `{"a": 1}`, Unknown, ""},
		{"some lines", "e.jsonl", "{\"a\": 1}\n{\"a\": 2}\n", Unknown, ""},
		{"two objects in a line", "e.json", `{"a": 1} {"a": 2}`, Damaged, ""},
		{"a number", "e.json", `12`, Unknown, ""},
		{"a list", "e.json", `[1, 2]`, Unknown, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := Look(strings.NewReader(test.text), test.file)
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != test.want || got.RunID != test.run || got.What == "" {
				t.Errorf("Look = %+v, want kind %s of run %q", got, test.want, test.run)
			}
		})
	}
}

// TestForeign: a document of another engine's benchmark is named as what it is, on a line
// of its own, too, as several tools append their results.
func TestForeign(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"date": "x", "backend": "openai", "request_throughput": 1, "mean_ttft_ms": 2}`:               "a result of vLLM's or SGLang's serving benchmark",
		`{"date": "x", "endpoint_type": "openai", "request_throughput": 1, "mean_ttft_ms": 2}`:         "a result of a serving benchmark",
		`{"request_throughput": 1, "input_throughput": 1, "output_throughput": 2}`:                     "a result of a serving benchmark",
		`{"avg_latency": 1, "latencies": [1], "percentiles": {"10": 1}}`:                               "a result of vLLM's latency benchmark",
		`[{"benchmark": {"name": "vLLM benchmark"}, "model": {"name": "m"}, "metric": {}}]`:            "results in the form of the PyTorch benchmark database",
		`{"run_name": "default", "batch_size": 1, "input_len": 8, "output_len": 8, "latency": 1}`:      "a result of SGLang's one-batch benchmark",
		`{"backend": "engine", "successful_requests": 8, "total_latency": 1, "request_throughput": 1}`: "a result of SGLang's offline throughput benchmark",
		`{"engine": {}, "world_info": {}, "request_info": {}, "performance": {}}`:                      "a report of TensorRT-LLM's benchmark",
		`{"iter": 1, "iterLatencyMS": 2.5, "inflightBatchingStats": {}}`:                               "an iteration log of TensorRT-LLM",
		`{"mean_input_tokens": 550, "mean_output_tokens": 150, "num_concurrent_requests": 1}`:          "a summary of LLMPerf",
		`{"request_throughput": {}, "time_to_first_token": {}, "inter_token_latency": {}}`:             "a result of GenAI-Perf or AIPerf",
	} {
		for _, text := range []string{text, text + "\n" + text + "\n"} {
			got, err := Look(strings.NewReader(text), "b.jsonl")
			if err != nil || got.Kind != Foreign || got.What != want {
				t.Errorf("Look(%s) = %+v, %v, want %s", text, got, err, want)
			}
		}
	}
}

func TestSourceRanks(t *testing.T) {
	t.Parallel()
	got, err := Look(strings.NewReader(`{"artifact_type": "merged", "run_id": "a", "dp": {"ranks": [0, 1, 2], "source_ranks": [0, 2]}}`), "m.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]int{0, 2}, got.SourceRanks); d != "" {
		t.Error(d)
	}
}

// TestDamagedSegment: compressed text that is cut off or damaged is that of a trace when a
// row says so, or else the name.
func TestDamagedSegment(t *testing.T) {
	t.Parallel()
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	if _, err := z.Write([]byte(`{"timestamp": 1, "event": {"schema": "dynamo.fpm.trace.v1"}}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	cut := whole.Bytes()[:whole.Len()-4]
	for _, test := range []struct {
		name string
		text []byte
		want Kind
	}{
		{"t.w.000000.jsonl.gz", whole.Bytes(), Trace},
		{"t.gz", whole.Bytes(), Trace},
		{"t.gz", cut, Trace},
		{"t.w.000000.jsonl.gz", cut[:12], Trace},
		{"t.w.000000.jsonl.gz", []byte("no gzip"), Trace},
		{"t.w.000000.jsonl.gz", nil, Trace},
		{"t.json.gz", []byte("no gzip"), Damaged},
		{"t.json.gz", nil, Damaged},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		if err := os.WriteFile(path, test.text, 0o666); err != nil {
			t.Fatal(err)
		}
		in, err := input.Open(path, input.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Look(in, path); err != nil || got.Kind != test.want {
			t.Errorf("%s with %d bytes: %+v, %v, want %s", test.name, len(test.text), got, err, test.want)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
}

func FuzzLook(f *testing.F) {
	f.Add(`{"artifact_type": "rank", "run_id": "a", "dp": {"rank": 0}}`)
	f.Add(`[{"worker_rank": 0}]`)
	f.Add("{}\n{}")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Look(strings.NewReader(text), "x.json")
		if err != nil {
			t.Fatalf("a text in memory cannot be read: %v", err)
		}
		if got.Kind == "" || got.What == "" {
			t.Errorf("no kind, or none in words: %+v", got)
		}
	})
}
