package jsonspan

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/bits"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Text tells whether the value of spanA in a stands at spanB in b, but for white space
// between tokens, and where it ends there. The length of spanB may be negative when it is
// not known; white space may then stand before the value in b.
//
// White space is significant in two places only: within a string, which therefore has to
// be told from the rest, and within a number or a literal name, where a gap makes two
// tokens of one ("1 2" is not "12"). As a is valid JSON, a gap of b alone between two
// bytes that are both part of such tokens is the only way in which b can fail to be.
func (c *Comparer) Text(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span) (endB int64, equal bool, err error) {
	c.a.reset(a, spanA.Off, spanA.Len)
	c.b.reset(b, spanB.Off, spanB.Len)
	var m matcher
	c.differs = unknown
	for {
		if err := c.fill(); err != nil {
			return 0, false, err
		}
		if len(c.a.rest) == 0 {
			whole := c.a.at() == spanA.End() && !m.goesOn(c.b.rest)
			return c.b.at(), whole && (spanB.Len < 0 || c.b.at() == spanB.End()), nil
		}
		if len(c.b.rest) == 0 {
			return c.b.at(), false, nil
		}
		i, j, ok := m.match(c.a.rest, c.b.rest)
		if !ok {
			c.differs = c.a.at() + int64(i)
			return 0, false, nil
		}
		c.a.rest, c.b.rest = c.a.rest[i:], c.b.rest[j:]
	}
}

// matcher is the state of a text comparison between two windows.
type matcher struct {
	inString bool
	escaped  bool // the next byte of the string belongs to an escape
	last     byte // last significant byte
	gapA     bool // white space was skipped behind last, on either side
	gapB     bool
}

// goesOn tells, when a is used up, whether the last token goes on in b: 12 in 123.
func (m *matcher) goesOn(b []byte) bool {
	return m.inString || len(b) > 0 && isWord(m.last) && isWord(b[0])
}

// match advances over both texts until one is used up, and tells how far it came.
func (m *matcher) match(a, b []byte) (i, j int, ok bool) {
	line, misses := 0, 0 // end of the line of a that was looked at last
	for i < len(a) && j < len(b) {
		n := 0
		switch {
		case m.inString:
			n = m.stringEnd(a[i:min(len(a), i+len(b)-j)])
			if !bytes.Equal(a[i:i+n], b[j:j+n]) {
				return i, j, false
			}
			i, j = i+n, j+n
			continue
		case isSpace(a[i]):
			m.gapA = true
			i += spaces(a[i:])
			continue
		case isSpace(b[j]):
			m.gapB = true
			j += spaces(b[j:])
			continue
		case m.gapB && !m.gapA && isWord(m.last) && isWord(a[i]):
			return i, j, false
		case i >= line && misses < patience:
			n, line = wholeLine(a[i:], b[j:])
			line += i
			if n == 0 {
				misses++
			}
		}
		if n == 0 {
			n = m.tokens(a[i:], b[j:])
		}
		if n == 0 {
			return i, j, false
		}
		m.last, m.gapA, m.gapB = a[i+n-1], false, false
		i, j = i+n, j+n
	}
	return i, j, true
}

// patience is the number of lines that are looked for in vain before no others are, up to
// the end of the window: the texts are laid out too differently.
const patience = 32

// wholeLine returns the length of the line that a begins with when b begins with it too,
// else 0, and how far the line goes in a. A line of a, which is valid, ends between two
// tokens: a string holds no line break.
func wholeLine(a, b []byte) (n, end int) {
	end = bytes.IndexByte(a, '\n')
	if end < 0 {
		return 0, len(a)
	}
	n = end
	if n > 0 && a[n-1] == '\r' {
		n--
	}
	if n > len(b) || !bytes.Equal(a[:n], b[:n]) {
		n = 0
	}
	return n, end
}

// tokens returns for how many bytes two texts are the same, up to the next white space of
// either and into the next string.
func (m *matcher) tokens(a, b []byte) int {
	b = b[:min(len(a), len(b))]
	for n, c := range b {
		switch {
		case c != a[n] || isSpace(c):
			return n
		case c == '"':
			m.inString = true
			return n + 1
		}
	}
	return len(b)
}

// stringEnd returns the length of the string that text goes on with, and with its
// closing quote leaves the string.
func (m *matcher) stringEnd(text []byte) int {
	n := 0
	for {
		quote := bytes.IndexByte(text[n:], '"')
		if quote < 0 {
			m.escaped = m.odd(text[n:])
			return len(text)
		}
		m.escaped = m.odd(text[n : n+quote])
		n += quote + 1
		if !m.escaped {
			m.inString = false
			return n
		}
		m.escaped = false
	}
}

// odd tells whether the byte behind text, a part of a string, belongs to an escape: an
// odd number of backslashes is before it.
func (m *matcher) odd(text []byte) bool {
	i := len(text)
	for i > 0 && text[i-1] == '\\' {
		i--
	}
	odd := (len(text)-i)%2 == 1
	if i == 0 {
		return odd != m.escaped
	}
	return odd
}

func isSpace(c byte) bool { return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r') }

// spaces returns the length of the white space that text begins with, of which there is
// at least one byte. Most of it is an indentation.
func spaces(text []byte) int {
	const eight = 0x2020202020202020
	if len(text) > 1 && text[1] > ' ' { // the one space behind a name
		return 1
	}
	i := 1
	for len(text)-i >= 8 {
		other := binary.LittleEndian.Uint64(text[i:]) ^ eight
		if other != 0 {
			i += bits.TrailingZeros64(other) / 8
			break
		}
		i += 8
	}
	for i < len(text) && isSpace(text[i]) {
		i++
	}
	return i
}

// isWord tells whether a byte may be part of a number or of true, false and null.
func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}
