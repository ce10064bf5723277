package pyjson

import "bytes"

// LayoutCheck tells whether a text already has the layout that json.dump(indent=2) gives
// a value at a nesting level. Like a [Reindenter] it takes the text in chunks and trusts
// it to be valid JSON.
//
// A text that passes need not be laid out again: it can be copied as it stands, or moved
// to another level by a [Shifter].
type LayoutCheck struct {
	layout Reindenter
	out    []byte
	ahead  []byte // what the text goes on with if it has the layout
	behind []byte // text whose layout is not decided so far
}

// NewLayoutCheck returns a check for one value at a nesting level.
func NewLayoutCheck(level int) *LayoutCheck {
	return &LayoutCheck{layout: Reindenter{level: level}}
}

// Feed takes the next chunk and returns false when the text does not have the layout.
func (c *LayoutCheck) Feed(src []byte) bool {
	c.out = c.layout.Append(append(c.out[:0], c.ahead...), src)
	old := min(len(c.behind), len(c.out))
	if !bytes.Equal(c.out[:old], c.behind[:old]) {
		return false
	}
	out := c.out[old:]
	if c.behind = c.behind[old:]; len(c.behind) > 0 {
		c.ahead = c.ahead[:0]
		c.behind = append(c.behind, src...)
		return len(c.behind) <= maxBehind
	}
	n := min(len(out), len(src))
	if !bytes.Equal(out[:n], src[:n]) {
		return false
	}
	c.ahead = append(c.ahead[:0], out[n:]...)
	c.behind = append(c.behind[:0], src[n:]...)
	return len(c.behind) <= maxBehind
}

// maxBehind is more white space than any layout has between two tokens: beyond it there
// is nothing left to decide.
const maxBehind = 4 << 10

// End tells whether the text that was fed, as a whole, has the layout.
func (c *LayoutCheck) End() bool { return len(c.ahead) == 0 && len(c.behind) == 0 }

// Shifter moves a text that has the layout of json.dump(indent=2) at one level to a
// lower level: it takes as many spaces from the beginning of each line but the first. A
// JSON string holds no line break, so that this is exact.
type Shifter struct {
	spaces int // to take from each line
	due    int // to take from what comes next
}

// NewShifter returns a Shifter by a number of levels, 0 or more.
func NewShifter(levels int) *Shifter { return &Shifter{spaces: 2 * levels} }

// Append appends what the next chunk of text becomes and returns the extended slice.
func (s *Shifter) Append(dst, src []byte) []byte {
	for len(src) > 0 {
		if s.due > 0 {
			n := min(s.due, len(src))
			s.due -= n
			src = src[n:]
			continue
		}
		end := bytes.IndexByte(src, '\n') + 1
		if end == 0 {
			return append(dst, src...)
		}
		dst = append(dst, src[:end]...)
		src = src[end:]
		s.due = s.spaces
	}
	return dst
}
