package engine

import (
	"fmt"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func TestWorkerLayout(t *testing.T) {
	block := func(tp, pcp, pp string) *jsonvalue.Value {
		return parse(t, fmt.Sprintf(`{"parallel": {"tensor_parallel_size": %s, "prefill_context_parallel_size": %s, "pipeline_parallel_size": %s}}`, tp, pcp, pp))
	}
	for _, c := range []struct {
		block *jsonvalue.Value
		want  Layout
		ok    bool
	}{
		{block("2", "3", "4"), Layout{TP: 2, PCP: 3, PP: 4}, true},
		{block("1", "1", "9223372036854775807"), Layout{TP: 1, PCP: 1, PP: 9223372036854775807}, true},
		{block("2", "1", "4611686018427387904"), Layout{}, false}, // 2^63 workers
		{block("4294967296", "4294967296", "1"), Layout{}, false},
		{block("0", "1", "1"), Layout{}, false},
		{block("-1", "-1", "1"), Layout{}, false},
		{block("1", "1.0", "1"), Layout{}, false},
		{block("1", "1", "true"), Layout{}, false},
		{parse(t, `{"parallel": {"tensor_parallel_size": 1, "pipeline_parallel_size": 1}}`), Layout{}, false},
		{parse(t, `{"parallel": []}`), Layout{}, false},
		{parse(t, `{}`), Layout{}, false},
		{nil, Layout{}, false},
	} {
		got, ok := WorkerLayout(c.block)
		if got != c.want || ok != c.ok {
			t.Errorf("%s: %+v, %t", c.block.Excerpt(200), got, ok)
		}
		if ok && got.Workers() != c.want.TP*c.want.PCP*c.want.PP {
			t.Errorf("%s: %d workers", c.block.Excerpt(200), got.Workers())
		}
	}
}

func TestProbed(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`:                                     false,
		`{"resolved": null, "resolution": null}`: false,
		`{"resolved": null, "resolution": "pending_worker_probe"}`: false,
		`{"resolution": "worker_probe"}`:                           true,
		`{"resolved": {}}`:                                         true,
		`{"worker_probe": null}`:                                   true,
	} {
		if got := Probed(parse(t, text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestRequested(t *testing.T) {
	block := parse(t, `{"attention": {"backend_requested": null, "mla_prefill_backend_requested": "M"}, "graph": {"cudagraph_mode": "FULL", "cudagraph_capture_sizes": [1, 2]}}`)
	want := map[Setting]string{AttentionBackend: "null", MLAPrefillBackend: `"M"`, CUDAGraphMode: `"FULL"`, CUDAGraphCaptureSizes: "[1,2]"}
	for _, s := range Settings() {
		if got := Requested(block, s).Excerpt(100); got != want[s] {
			t.Errorf("%s: %s, want %s", s, got, want[s])
		}
		if got := Requested(parse(t, `{"graph": 1}`), s); got != nil {
			t.Errorf("%s of a block without it: %s", s, got.Excerpt(100))
		}
	}
	if len(want) != len(Settings()) {
		t.Error("not every setting is tested")
	}
}
