package jsonstream

import (
	"bytes"
	"fmt"
	"testing"
)

// sampleText is about size bytes of a rank artifact's iteration groups, as json.dump
// with an indentation of two lays them out.
func sampleText(size int) []byte {
	b := bytes.NewBufferString("{\n  \"schema_version\": 2,\n  \"iteration_groups\": [")
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, sampleGroup, i+1, 64*i, 0.0312+float64(i)*1.7e-7, i, i+1, float64(i)*0.0017)
	}
	b.WriteString("\n  ]\n}")
	return b.Bytes()
}

const sampleGroup = `
    {
      "benchmark_id": %d,
      "point": {
        "phase": "decode",
        "batch_size": 16,
        "context_length": %d
      },
      "wall_time": %v,
      "rank_results": [
        {
          "dp_rank": 0,
          "fpms": [
            {
              "version": 1,
              "worker_id": "3141592653589793",
              "dp_rank": 0,
              "counter_id": %d,
              "forward_index": %d,
              "wall_time": %v,
              "scheduled_requests": {
                "num_prefill_requests": 0,
                "sum_prefill_tokens": 0,
                "var_prefill_length": 0.0,
                "num_decode_requests": 16
              },
              "benchmark_sample": {
                "state": "accepted",
                "timing_basis": "device \u00b5s",
                "raw_sample_indices": [
                  1,
                  2
                ]
              }
            }
          ]
        }
      ]
    }`

func BenchmarkSkip(b *testing.B) {
	benchmark(b, func(s *Scanner) error { _, err := s.Skip(); return err })
}

func BenchmarkWalk(b *testing.B) {
	benchmark(b, walk)
}

func benchmark(b *testing.B, read func(*Scanner) error) {
	text := sampleText(4 << 20)
	b.SetBytes(int64(len(text)))
	s := New(nil, 0, 0, Strict, Limits{})
	for b.Loop() {
		s.Reset(bytes.NewReader(text), 0, 0, Strict)
		if err := read(s); err != nil {
			b.Fatal(err)
		}
	}
}
