package pyjson

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Object is a JSON object whose members keep their order.
type Object []Member

// Member is one key of an [Object] and its value: an Object, an [Array], a [Raw], or one
// of nil, bool, int, int64, float64 and string.
type Member struct {
	Key   string
	Value any
}

// Array is a JSON array. Its elements are of the types a [Member] may have.
type Array []any

// Raw is JSON text that goes out as it stands, such as a number literal of an input.
type Raw []byte

// Append appends v as json.dump(indent=2) lays out a value at a nesting level: the first
// line is not indented, each deeper line by two spaces a level, and empty containers are
// {} and []. It panics on a type that is none of a document's.
func Append(dst []byte, v any, level int) []byte {
	return layout{level: level, indent: true}.append(dst, v)
}

// AppendCompact appends v without any white space, as json.dumps does with the
// separators "," and ":". It panics on a type that is none of a document's.
func AppendCompact(dst []byte, v any) []byte {
	return layout{}.append(dst, v)
}

// AppendSorted appends v as [AppendCompact] does, the keys of every object in code point
// order: the canonical form, of which digests are taken, of a document made here. For a
// parsed one see [AppendCanonical].
func AppendSorted(dst []byte, v any) []byte {
	return layout{sorted: true}.append(dst, v)
}

// layout is a way of printing and the nesting level reached.
type layout struct {
	level  int
	indent bool
	sorted bool
}

func (l layout) append(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return AppendFloat(dst, v)
	case string:
		return AppendString(dst, v)
	case Raw:
		return append(dst, v...)
	case Object:
		return l.appendObject(dst, v)
	case Array:
		return l.appendArray(dst, v)
	}
	panic(fmt.Sprintf("pyjson: no JSON for %T", v)) // a bug of the caller, never an input's doing
}

func (l layout) appendObject(dst []byte, o Object) []byte {
	if len(o) == 0 {
		return append(dst, "{}"...)
	}
	if l.sorted {
		o = slices.SortedStableFunc(slices.Values(o), func(a, b Member) int { return strings.Compare(a.Key, b.Key) })
	}
	inner := l.inner()
	dst = append(dst, '{')
	for i, m := range o {
		dst = inner.separate(dst, i)
		dst = append(AppendString(dst, m.Key), ':')
		if l.indent {
			dst = append(dst, ' ')
		}
		dst = inner.append(dst, m.Value)
	}
	return append(l.newLine(dst), '}')
}

func (l layout) appendArray(dst []byte, a Array) []byte {
	if len(a) == 0 {
		return append(dst, "[]"...)
	}
	inner := l.inner()
	dst = append(dst, '[')
	for i, v := range a {
		dst = inner.separate(dst, i)
		dst = inner.append(dst, v)
	}
	return append(l.newLine(dst), ']')
}

func (l layout) inner() layout {
	l.level++
	return l
}

// separate starts the i-th element of a container.
func (l layout) separate(dst []byte, i int) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return l.newLine(dst)
}

func (l layout) newLine(dst []byte) []byte {
	if !l.indent {
		return dst
	}
	return AppendMargin(dst, l.level)
}

// margin is a line break and the indentation of 128 levels; deeper ones are made of it.
const (
	margin    = "\n" + spaces256
	spaces256 = spaces64 + spaces64 + spaces64 + spaces64
	spaces64  = spaces16 + spaces16 + spaces16 + spaces16
	spaces16  = "                "
)

// AppendMargin appends a line break and the indentation of a nesting level, for documents
// that are written piece by piece.
func AppendMargin(dst []byte, level int) []byte {
	width := 1 + 2*max(level, 0)
	if width <= len(margin) {
		return append(dst, margin[:width]...)
	}
	dst = append(dst, margin...)
	for width -= len(margin); width > 0; width -= len(spaces256) {
		dst = append(dst, spaces256[:min(width, len(spaces256))]...)
	}
	return dst
}
