package pyjson

import "bytes"

// Reindenter lays JSON text out again as json.dump(indent=2) does at a nesting level.
// The text comes in chunks that may end anywhere, in any layout; the tokens go out as
// they came, literals untouched. It is a machine over bytes and not a parser: the text
// must be known to be valid JSON, or the output is as meaningless as the input.
//
// Text that has the wanted layout already is the common case, and the fast one: it is
// compared with the expected line breaks and copied in long runs.
type Reindenter struct {
	level    int  // of the innermost open container's elements
	inString bool // between the quotes of a string
	escaped  bool // in a string, behind a backslash
	opened   bool // behind an opening bracket, with only white space since
}

// NewReindenter returns a Reindenter for one value at a nesting level; 0 is the top of a
// document.
func NewReindenter(level int) *Reindenter { return &Reindenter{level: level} }

// Reset prepares r for the next value.
func (r *Reindenter) Reset(level int) { *r = Reindenter{level: level} }

// Append appends what the next chunk of text becomes and returns the extended slice. src
// must not overlap dst.
func (r *Reindenter) Append(dst, src []byte) []byte {
	at, kept := 0, 0 // src[kept:at] goes out as it stands
	if r.inString {
		at = r.stringEnd(src, 0)
	}
	for at < len(src) {
		c := src[at]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			if end, ok := r.matchClose(src, at); ok {
				at = end
				continue
			}
			dst = append(dst, src[kept:at]...)
			at = spaceEnd(src, at)
			kept = at
			continue
		}
		if r.breaks(c) {
			dst = append(dst, src[kept:at]...)
			dst = AppendMargin(dst, r.level)
			kept = at
		}
		at = r.token(src, at)
		switch {
		case c == ',' && !r.match(src, &at):
			dst = append(dst, src[kept:at]...)
			dst = AppendMargin(dst, r.level)
			kept = at
		case c == ':' && at < len(src) && src[at] == ' ':
			at++
		case c == ':':
			dst = append(dst, src[kept:at]...)
			dst = append(dst, ' ')
			kept = at
		}
	}
	return append(dst, src[kept:]...)
}

// breaks steps over the bracket of a container that begins or ends and tells whether a
// line break belongs before the token that starts with c.
func (r *Reindenter) breaks(c byte) bool {
	opened := r.opened
	r.opened = false
	if c == '}' || c == ']' {
		r.level--
		return !opened
	}
	return opened
}

// token returns the end of the token at src[at], or of the part of it that is there.
func (r *Reindenter) token(src []byte, at int) int {
	switch src[at] {
	case '"':
		r.inString = true
		return r.stringEnd(src, at+1)
	case '{', '[':
		r.level++
		at++
		r.opened = !r.matchFirst(src, &at)
		return at
	case ',', ':', '}', ']':
		return at + 1
	}
	for at++; at < len(src); at++ {
		if c := src[at]; c <= ' ' || c == ',' || c == '}' || c == ']' {
			break
		}
	}
	return at
}

// stringEnd returns the index behind the closing quote of the string that src[at] is in,
// or the length of src.
func (r *Reindenter) stringEnd(src []byte, at int) int {
	if r.escaped && at < len(src) {
		r.escaped = false
		at++
	}
	quote := indexFrom(src, at, '"')
	for {
		slash := bytes.IndexByte(src[at:quote], '\\')
		if slash < 0 {
			break
		}
		at += slash + 2
		if at > len(src) {
			r.escaped = true
			return len(src)
		}
		if at > quote { // looked for only then, so that many escapes cost no rescans
			quote = indexFrom(src, at, '"')
		}
	}
	if quote == len(src) {
		return quote
	}
	r.inString = false
	return quote + 1
}

// indexFrom returns the first index of c in src from at on, or the length of src.
func indexFrom(src []byte, at int, c byte) int {
	if i := bytes.IndexByte(src[at:], c); i >= 0 {
		return at + i
	}
	return len(src)
}

// match steps over the expected line break, if it is there.
func (r *Reindenter) match(src []byte, at *int) bool {
	end, ok := matchMargin(src, *at, r.level)
	if ok {
		*at = end
	}
	return ok
}

// matchFirst steps over the line break before the first element of a container. Where it
// could be an empty one it does not.
func (r *Reindenter) matchFirst(src []byte, at *int) bool {
	end, ok := matchMargin(src, *at, r.level)
	if !ok || end == len(src) || src[end] <= ' ' || src[end] == '}' || src[end] == ']' {
		return false
	}
	*at = end
	return true
}

// matchClose returns the end of the line break and the closing bracket at src[at], if
// both are there as they should be.
func (r *Reindenter) matchClose(src []byte, at int) (int, bool) {
	if r.opened {
		return 0, false
	}
	end, ok := matchMargin(src, at, r.level-1)
	if !ok || end == len(src) || src[end] != '}' && src[end] != ']' {
		return 0, false
	}
	r.level--
	return end + 1, true
}

// matchMargin returns the end of the line break for a level at src[at], if it is there
// whole.
func matchMargin(src []byte, at, level int) (int, bool) {
	end := at + 1 + 2*level
	if level < 0 || end > len(src) || end-at > len(margin) || string(src[at:end]) != margin[:end-at] {
		return 0, false
	}
	return end, true
}

func spaceEnd(src []byte, at int) int {
	for at < len(src) && (src[at] == ' ' || src[at] == '\n' || src[at] == '\t' || src[at] == '\r') {
		at++
	}
	return at
}
