package segment

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// DefaultLevel is the compression level of members. On rows of a busy rank it takes 1.5 µs
// a row and makes a ninth of them; level 6 would take 3.4 µs for a tenth, level 9 ten times
// as long for a twelfth.
const DefaultLevel = 1

// keep is the largest buffer that a writer keeps between flushes, in bytes. A thousand
// quiet producers must not hold a batch each.
const keep = 16 << 10

// Encoder makes gzip members of batches, and lends the buffers for them. The state of a
// compressor is most of a megabyte, so the writers of a process share one encoder. It is
// safe for concurrent use.
type Encoder struct {
	level int

	mu      sync.Mutex
	idle    []*gzip.Writer
	buffers [][]byte
	outputs []*bytes.Buffer
}

// maxIdle bounds the compressors and the buffers that are kept for later.
const maxIdle = 2

// NewEncoder returns an encoder of a compression level from 1 (fast) to 9 (small); 0 is
// [DefaultLevel].
func NewEncoder(level int) (*Encoder, error) {
	if level == 0 {
		level = DefaultLevel
	}
	if level < gzip.BestSpeed || level > gzip.BestCompression {
		return nil, fmt.Errorf("compression level %d is not within 1 to 9", level)
	}
	return &Encoder{level: level}, nil
}

// member appends text as one complete gzip member to dst: without a name, with no time.
func (e *Encoder) member(dst *bytes.Buffer, text []byte) error {
	z, err := e.compressor()
	if err != nil {
		return err
	}
	z.Reset(dst)
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.idle) < maxIdle {
		e.idle = append(e.idle, z)
	}
	return nil
}

func (e *Encoder) compressor() (*gzip.Writer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n := len(e.idle); n > 0 {
		z := e.idle[n-1]
		e.idle = e.idle[:n-1]
		return z, nil
	}
	return gzip.NewWriterLevel(nil, e.level)
}

// output returns an empty buffer for a member, and a function that takes it back.
func (e *Encoder) output() (out *bytes.Buffer, done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out = &bytes.Buffer{}
	if n := len(e.outputs); n > 0 {
		out, e.outputs = e.outputs[n-1], e.outputs[:n-1]
		out.Reset()
	}
	return out, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if out.Cap() <= 2*maxBatch && len(e.outputs) < maxIdle {
			e.outputs = append(e.outputs, out)
		}
	}
}

// borrow returns an empty buffer, a large one when there is one left.
func (e *Encoder) borrow() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := len(e.buffers)
	if n == 0 {
		return nil
	}
	b := e.buffers[n-1]
	e.buffers = e.buffers[:n-1]
	return b[:0]
}

// giveBack takes a buffer that nobody uses any more.
func (e *Encoder) giveBack(b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if cap(b) <= 2*maxBatch && len(e.buffers) < maxIdle {
		e.buffers = append(e.buffers, b)
	}
}
