package jsonspan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// sampleGroups is about size bytes of a rank artifact's iteration groups.
func sampleGroups(size int) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, sampleGroup, i+1, 64*i, 0.0312+float64(i)*1.7e-7, i, i+1, float64(i)*0.0017)
	}
	b.WriteByte(']')
	return b.Bytes()
}

const sampleGroup = `{"benchmark_id": %d, "point": {"phase": "decode", "batch_size": 16, "context_length": %d}, "wall_time": %v,
"rank_results": [{"dp_rank": 0, "fpms": [{"version": 1, "worker_id": "3141592653589793", "dp_rank": 0, "counter_id": %d,
"forward_index": %d, "wall_time": %v, "scheduled_requests": {"num_prefill_requests": 0, "sum_prefill_tokens": 0,
"var_prefill_length": 0.0, "num_decode_requests": 16}, "benchmark_sample": {"state": "accepted", "timing_basis": "device \u00b5s",
"raw_sample_indices": [1, 2]}}]}]}`

func relayout(b *testing.B, text []byte, indent string) []byte {
	b.Helper()
	var out bytes.Buffer
	err := json.Compact(&out, text)
	if indent != "" {
		out.Reset()
		err = json.Indent(&out, text, "", indent)
	}
	if err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

const sampleSize = 2 << 20

func spanOf(text []byte) jsonstream.Span { return jsonstream.Span{Len: int64(len(text))} }

func BenchmarkBytes(b *testing.B) {
	text := relayout(b, sampleGroups(sampleSize), "  ")
	same := bytes.Clone(text)
	c := New()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if equal, err := c.Bytes(bytes.NewReader(text), spanOf(text), bytes.NewReader(same), 0); !equal || err != nil {
			b.Fatal(equal, err)
		}
	}
}

func BenchmarkText(b *testing.B) {
	text := relayout(b, sampleGroups(sampleSize), "  ")
	long := `["` + strings.Repeat(`\\\"`, sampleSize/4) + `"]`
	for _, bench := range []struct {
		name string
		a, b []byte
	}{
		{"same layout", text, bytes.Clone(text)},
		{"indent 4", text, relayout(b, text, "    ")},
		{"compact", text, relayout(b, text, "")},
		{"escapes", []byte(long), []byte(long + " ")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c := New()
			b.SetBytes(int64(len(bench.b)))
			for b.Loop() {
				_, equal, err := c.Text(bytes.NewReader(bench.a), spanOf(bench.a), bytes.NewReader(bench.b), jsonstream.Span{Len: -1})
				if !equal || err != nil {
					b.Fatal(equal, err)
				}
			}
		})
	}
}

func BenchmarkValues(b *testing.B) {
	text := relayout(b, sampleGroups(sampleSize), "  ")
	var decoded any // its keys are written in another order
	if err := json.Unmarshal(text, &decoded); err != nil {
		b.Fatal(err)
	}
	reordered, err := json.MarshalIndent(decoded, "", "  ")
	if err != nil {
		b.Fatal(err)
	}
	c := New()
	b.SetBytes(int64(len(reordered)))
	for b.Loop() {
		d, err := c.Values(bytes.NewReader(text), spanOf(text), bytes.NewReader(reordered), spanOf(reordered))
		if d != nil || err != nil {
			b.Fatal(d, err)
		}
	}
}
