package jsonstream

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// sampleText is about size bytes of what forward-pass metrics look like on disk.
func sampleText(size int) []byte {
	if p := os.Getenv("BIGFILE"); p != "" {
		b, _ := os.ReadFile(p)
		return b
	}
	var b bytes.Buffer
	b.WriteString("[")
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n  {\n    \"counter_id\": %d,\n    \"wall_time\": 0.0%d17,\n    \"worker_id\": \"3141592653589793\",\n    \"scheduled_requests\": {\n      \"num_prefill_requests\": %d,\n      \"var_prefill_length\": 0.0\n    },\n    \"raw_sample_indices\": [\n      1,\n      2\n    ]\n  }", i, i, i%7)
	}
	b.WriteString("\n]")
	return b.Bytes()
}

func BenchmarkSkip(b *testing.B) {
	text := sampleText(8 << 20)
	b.SetBytes(int64(len(text)))
	s := New(bytes.NewReader(text), 0, 0, Strict, Limits{})
	for b.Loop() {
		s.Reset(bytes.NewReader(text), 0, 0, Strict)
		if _, err := s.Skip(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	text := sampleText(8 << 20)
	b.SetBytes(int64(len(text)))
	s := New(bytes.NewReader(text), 0, 0, Strict, Limits{})
	for b.Loop() {
		s.Reset(bytes.NewReader(text), 0, 0, Strict)
		if err := walk(s); err != nil {
			b.Fatal(err)
		}
	}
}

func walk(s *Scanner) error {
	var err error
	switch s.Peek() {
	case '{':
		_, _, err = s.Object(func([]byte) error { return walk(s) })
	case '[':
		_, _, err = s.Array(func(int) error { return walk(s) })
	default:
		_, err = s.Scalar()
	}
	return err
}

var _ io.Reader = strings.NewReader("")
