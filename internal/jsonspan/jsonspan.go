// Package jsonspan compares JSON values where they stand: a byte range of one document
// with a byte range of another, in bounded memory, whatever their size.
//
// Equality is that of merge.md: objects in any key order, numbers by exact decimal
// value, strings by code unit. It is established in steps, the cheap ones first:
//
//  1. [Comparer.Bytes]: the same bytes. Equal bytes need no second parse.
//  2. [Comparer.Text]: the same bytes but for white space between tokens, as when one
//     document is indented otherwise, or the value stands at another depth.
//  3. [Comparer.Values]: the same value, spelled or ordered differently. It also says
//     where the first difference is.
//
// The first side must have been checked before. Of the second, steps one and two need no
// knowledge: what is equal to a valid text is valid.
package jsonspan

import (
	"bytes"
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

const (
	windowSize = 256 << 10
	smallValue = 256 << 10 // compared in memory below this size
)

// Comparer holds the buffers of comparisons. It serves one goroutine.
type Comparer struct {
	a, b        window
	left, right tape
	small       int64 // size up to which values are compared in memory
	// Of the values at hand: where large containers inside them end on either side, by their
	// beginnings, and where in a the last comparison of texts found the first difference.
	endsA, endsB ends
	differs      int64
}

// New returns a Comparer.
func New() *Comparer { return &Comparer{small: smallValue} }

// ends are the ends of large containers by their beginnings. A descent into a value scans
// it for the places of its members, then each large member for those of its own, and so on:
// of values nested deep that would take the depth times the size, if what one scan has
// walked past were not jumped over by the next.
type ends map[int64]int64

// maxEnds bounds how many are kept; beyond, containers are scanned again.
const maxEnds = 1 << 16

func (e ends) note(span jsonstream.Span) {
	if len(e) < maxEnds {
		e[span.Off] = span.End()
	}
}

// skip reads the value that comes next in the outermost container, and jumps over it if it
// was walked past before.
func (e ends) skip(s *jsonstream.Scanner, least int64) (jsonstream.Span, error) {
	if len(e) > 0 {
		off := s.NextOffset()
		if end, ok := e[off]; ok {
			return jsonstream.Span{Off: off, Len: end - off}, s.JumpTo(end)
		}
	}
	return s.SkipNoting(least, e.note)
}

// begin makes the Comparer know nothing of the values at hand.
func (c *Comparer) begin() {
	if c.endsA == nil {
		c.endsA, c.endsB = ends{}, ends{}
	}
	clear(c.endsA)
	clear(c.endsB)
}

// unknown is where texts differ that were not compared yet.
const unknown = -1

// sameText tells whether two values have the same text but for white space. Differs is where
// in a the text around them is known to differ: texts that reach beyond it need no look.
func (c *Comparer) sameText(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, differs int64) (same bool, first int64, err error) {
	if spanA.Off <= differs && differs < spanA.End() {
		return false, differs, nil
	}
	if same, err := c.lines(a, spanA, b, spanB); same || err != nil {
		return same, unknown, err
	}
	_, same, err = c.Text(a, spanA, b, spanB)
	return same, c.differs, err
}

// window is a forward reader of one side.
type window struct {
	src  io.ReaderAt
	off  int64 // of the first byte behind rest
	left int64 // bytes of the side behind rest; negative: up to the end of the source
	rest []byte
	buf  []byte
}

func (w *window) reset(src io.ReaderAt, off, length int64) {
	if w.buf == nil {
		w.buf = make([]byte, windowSize)
	}
	w.src, w.off, w.left, w.rest = src, off, length, nil
}

// fill reads more when rest is used up. Nothing in rest afterwards means the end.
func (w *window) fill() error {
	if len(w.rest) > 0 || w.left == 0 {
		return nil
	}
	buf := w.buf
	if w.left > 0 && w.left < int64(len(buf)) {
		buf = buf[:w.left]
	}
	n, err := w.src.ReadAt(buf, w.off)
	if n == 0 && err != nil && err != io.EOF {
		return &jsonstream.ReadError{Offset: w.off, Err: err}
	}
	w.rest = buf[:n]
	w.off += int64(n)
	if w.left > 0 {
		w.left -= int64(n)
	}
	if n == 0 {
		w.left = 0
	}
	return nil
}

// at is the offset of the first byte of rest.
func (w *window) at() int64 { return w.off - int64(len(w.rest)) }

// Bytes tells whether the text of the span in a stands in b from offB on. A number or a
// literal name may go on there; any other value is whole.
func (c *Comparer) Bytes(a io.ReaderAt, span jsonstream.Span, b io.ReaderAt, offB int64) (bool, error) {
	c.a.reset(a, span.Off, span.Len)
	c.b.reset(b, offB, span.Len)
	for {
		if err := c.fill(); err != nil {
			return false, err
		}
		n := min(len(c.a.rest), len(c.b.rest))
		if n == 0 {
			return len(c.a.rest) == 0 && c.a.at() == span.End(), nil
		}
		if !bytes.Equal(c.a.rest[:n], c.b.rest[:n]) {
			return false, nil
		}
		c.a.rest, c.b.rest = c.a.rest[n:], c.b.rest[n:]
	}
}

func (c *Comparer) fill() error {
	if err := c.a.fill(); err != nil {
		return err
	}
	return c.b.fill()
}
