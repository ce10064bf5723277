package jsonstream_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// countedReads is a source that knows how often it was read.
type countedReads struct {
	io.ReaderAt
	n int
}

func (c *countedReads) ReadAt(p []byte, off int64) (int, error) {
	c.n++
	return c.ReaderAt.ReadAt(p, off)
}

// An Ahead reads what its source has, wherever and however much of it is asked for.
func TestAhead(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = byte(rng.Uint32())
	}
	plain, ahead := bytes.NewReader(text), jsonstream.NewAhead(bytes.NewReader(text))
	for range 2000 {
		off := rng.Int64N(int64(len(text)) + 100)
		want := make([]byte, rng.IntN(1<<rng.IntN(18)))
		got := make([]byte, len(want))
		n, err := plain.ReadAt(want, off)
		m, errAhead := ahead.ReadAt(got, off)
		if n != m || !bytes.Equal(want, got) || (err != errAhead && len(want) > 0) {
			t.Fatalf("%d bytes at %d: %d, %v; want %d, %v", len(want), off, m, errAhead, n, err)
		}
	}
}

// Small pieces one behind the other are read together.
func TestAheadReadsTogether(t *testing.T) {
	src := &countedReads{ReaderAt: bytes.NewReader(make([]byte, 1<<20))}
	ahead := jsonstream.NewAhead(src)
	for off := range int64(1 << 10) {
		if _, err := ahead.ReadAt(make([]byte, 64), off*64); err != nil {
			t.Fatal(err)
		}
	}
	if src.n != 1 {
		t.Errorf("%d reads for 64 KiB", src.n)
	}
}
