package jsonspan

import (
	"bytes"
	"io"

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
	for {
		if err := c.fill(); err != nil {
			return 0, false, err
		}
		if len(c.a.rest) == 0 {
			whole := c.a.at() == spanA.End() && !m.inString
			return c.b.at(), whole && (spanB.Len < 0 || c.b.at() == spanB.End()), nil
		}
		if len(c.b.rest) == 0 {
			return c.b.at(), false, nil
		}
		i, j, ok := m.match(c.a.rest, c.b.rest)
		if !ok {
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

// match advances over both texts until one is used up, and tells how far it came.
func (m *matcher) match(a, b []byte) (i, j int, ok bool) {
	for i < len(a) && j < len(b) {
		if m.inString {
			n, ok := m.matchString(a[i:], b[j:])
			if !ok {
				return i, j, false
			}
			i, j = i+n, j+n
			continue
		}
		x, y := a[i], b[j]
		switch {
		case isSpace(x):
			m.gapA = true
			i += spaces(a[i:])
		case isSpace(y):
			m.gapB = true
			j += spaces(b[j:])
		case x != y || (m.gapB && !m.gapA && isWord(m.last) && isWord(x)):
			return i, j, false
		default:
			m.last, m.gapA, m.gapB = x, false, false
			m.inString = x == '"'
			i, j = i+1, j+1
		}
	}
	return i, j, true
}

// matchString compares up to the closing quote, or to the end of the shorter text.
func (m *matcher) matchString(a, b []byte) (n int, ok bool) {
	n = min(len(a), len(b))
	if m.escaped {
		m.escaped = false
		return 1, a[0] == b[0]
	}
	if quote := bytes.IndexByte(a[:n], '"'); quote >= 0 {
		n = quote + 1
	}
	if escape := bytes.IndexByte(a[:n], '\\'); escape >= 0 {
		n = escape + 1
		m.escaped = true
	} else if a[n-1] == '"' {
		m.inString = false
	}
	return n, bytes.Equal(a[:n], b[:n])
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func spaces(text []byte) int {
	for i, c := range text {
		if !isSpace(c) {
			return i
		}
	}
	return len(text)
}

// isWord tells whether a byte may be part of a number or of true, false and null.
func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '+' || c == '.'
}
