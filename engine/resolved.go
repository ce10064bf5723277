package engine

import (
	"math/bits"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// pending is what an engine block says where a worker probe may answer later.
const pending = "pending_worker_probe"

// Layout says how many ways the workers of one data-parallel rank are split: tensor,
// prefill-context and pipeline parallel sizes. The workers of a rank are counted with the
// tensor rank running fastest and the pipeline rank slowest.
type Layout struct{ TP, PCP, PP int64 }

// WorkerLayout returns the layout that an engine block's parallel object records; ok is
// false unless each of the three sizes is an integer of at least 1 and their product fits
// 63 bits.
func WorkerLayout(block *jsonvalue.Value) (l Layout, ok bool) {
	parallel := block.Get(keyParallel)
	workers := uint64(1)
	for _, size := range []struct {
		key string
		to  *int64
	}{{"tensor_parallel_size", &l.TP}, {"prefill_context_parallel_size", &l.PCP}, {"pipeline_parallel_size", &l.PP}} {
		n, ok := parallel.Get(size.key).Int64()
		if !ok || n < 1 {
			return Layout{}, false
		}
		high, low := bits.Mul64(workers, uint64(n))
		if high != 0 || low>>63 != 0 {
			return Layout{}, false
		}
		workers, *size.to = low, n
	}
	return l, true
}

// Workers is the number of workers of one data-parallel rank.
func (l Layout) Workers() int64 { return l.TP * l.PCP * l.PP }

// Probed tells whether an engine block carries what a worker probe resolved: builds before
// the sidecar rewrote the artifacts' own blocks.
func Probed(block *jsonvalue.Value) bool {
	if block.Get("worker_probe") != nil {
		return true
	}
	resolved := block.Get("resolved")
	if resolved != nil && resolved.Kind != jsonvalue.Null {
		return true
	}
	resolution, ok := block.Get("resolution").Str()
	return ok && resolution != pending
}

// Setting is something that an engine asks for at start-up and that its workers resolve.
type Setting int

// The settings, in the order of reports.
const (
	AttentionBackend Setting = iota
	MLAPrefillBackend
	CUDAGraphMode
	CUDAGraphCaptureSizes
)

// Settings returns every setting.
func Settings() []Setting {
	return []Setting{AttentionBackend, MLAPrefillBackend, CUDAGraphMode, CUDAGraphCaptureSizes}
}

// place is where an engine block records what was asked for.
func (s Setting) place() []string {
	return [...][]string{
		{"attention", "backend_requested"},
		{"attention", "mla_prefill_backend_requested"},
		{"graph", "cudagraph_mode"},
		{"graph", "cudagraph_capture_sizes"},
	}[s]
}

// String names the setting for people.
func (s Setting) String() string {
	return [...]string{"attention backend", "MLA prefill backend", "CUDA graph mode", "CUDA graph capture sizes"}[s]
}

// Requested returns what an engine block records as asked for, nil when it records
// nothing. Null stands for automatic selection of a backend.
func Requested(block *jsonvalue.Value, s Setting) *jsonvalue.Value {
	for _, key := range s.place() {
		block = block.Get(key)
	}
	return block
}
