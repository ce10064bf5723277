package jsonspan

import (
	"bytes"
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// lines tells whether two values are the same text at another depth: each line but the
// first has a constant number of spaces more, or fewer, at its beginning. It is the quick
// way for values that one writer wrote twice; a false says nothing.
func (c *Comparer) lines(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span) (bool, error) {
	if spanA.Len > windowSize || spanB.Len > windowSize {
		return false, nil
	}
	c.a.reset(a, spanA.Off, spanA.Len)
	c.b.reset(b, spanB.Off, spanB.Len)
	if err := c.fill(); err != nil {
		return false, err
	}
	if int64(len(c.a.rest)) < spanA.Len || int64(len(c.b.rest)) < spanB.Len {
		return false, nil // the source gave less than it has; the slower ways ask again
	}
	if len(c.a.rest) < len(c.b.rest) {
		return sameLines(c.b.rest, c.a.rest), nil
	}
	return sameLines(c.a.rest, c.b.rest), nil
}

// sameLines tells whether the lines of deep are those of flat with more indentation.
func sameLines(deep, flat []byte) bool {
	first := bytes.IndexByte(deep, '\n') + 1
	if first == 0 || first > len(flat) {
		return bytes.Equal(deep, flat)
	}
	more := deep[first:][:indent(deep[first:])-min(indent(flat[first:]), indent(deep[first:]))]
	if !bytes.Equal(deep[:first], flat[:first]) {
		return false
	}
	deep, flat = deep[first:], flat[first:]
	for len(deep) > 0 {
		if !bytes.HasPrefix(deep, more) {
			return false
		}
		deep = deep[len(more):]
		n := bytes.IndexByte(deep, '\n') + 1
		if n == 0 {
			n = len(deep)
		}
		if n > len(flat) || !bytes.Equal(deep[:n], flat[:n]) {
			return false
		}
		deep, flat = deep[n:], flat[n:]
	}
	return len(flat) == 0
}

// indent is the number of spaces at the beginning of a line.
func indent(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }
