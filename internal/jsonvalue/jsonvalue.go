// Package jsonvalue holds small JSON values in memory without losing a byte of them.
//
// A rank artifact is too large for a decoded tree; the parts that rules compare (a point,
// an engine block, one forward-pass metric) are small. [Parse] turns the text of one such
// part into a tree of [Value]. Scalars keep their literal text, so that what is written
// again is what was read, and every value knows its byte offset, so that a finding can
// name its place.
//
// [Equal] is the equality of the merge contract: objects in any key order, arrays element
// by element, numbers by exact decimal value (1 = 1.0 = 10e-1, however large the
// exponent), strings by their code units after unescaping. A nil *Value stands for an
// absent key, which differs from null. [Diff] names every place at which two values
// differ.
package jsonvalue

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a JSON value: the first byte of its text, '0' for every number.
type Kind byte

// The kinds.
const (
	Null   Kind = 'n'
	False  Kind = 'f'
	True   Kind = 't'
	String Kind = '"'
	Number Kind = '0'
	Array  Kind = '['
	Object Kind = '{'
)

// String names the kind in words.
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case False, True:
		return "boolean"
	case String:
		return "string"
	case Number:
		return "number"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return "invalid"
}

// Value is one JSON value. A nil *Value is an absent one; the methods accept it.
type Value struct {
	Kind    Kind
	Raw     []byte   // literal text of a scalar; aliases the parsed text
	Offset  int64    // byte offset of the value's first byte in its file
	Elems   []Value  // elements of an Array
	Members []Member // members of an Object, in file order
}

// Member is one member of an object.
type Member struct {
	Name    string // unescaped; lone surrogates in WTF-8
	RawName []byte // quoted literal; aliases the parsed text
	Value   Value
}

// Get returns the member of an object, or nil when v is absent, is not an object or has
// no such member.
func (v *Value) Get(name string) *Value {
	if v == nil {
		return nil
	}
	for i := range v.Members {
		if v.Members[i].Name == name {
			return &v.Members[i].Value
		}
	}
	return nil
}

// Set gives a member of an object a value: in its place where the object has the member,
// else at its end. A new name must be plain ASCII without quotes and backslashes.
func (v *Value) Set(name string, value Value) {
	if old := v.Get(name); old != nil {
		*old = value
		return
	}
	v.Members = append(v.Members, Member{Name: name, RawName: []byte(`"` + name + `"`), Value: value})
}

// IsInt tells whether v is an integer in the contract's sense: a number without fraction
// or exponent, of any size.
func (v *Value) IsInt() bool {
	return v != nil && v.Kind == Number && isPlainInt(v.Raw)
}

// Int64 returns an integer (see [Value.IsInt]) that fits 64 bits. -0 is 0.
func (v *Value) Int64() (n int64, ok bool) {
	if !v.IsInt() {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v.Raw), 10, 64)
	return n, err == nil
}

// Float64 returns a number as the nearest float64; finite is false when v is not a
// number or is beyond the range of a float64.
func (v *Value) Float64() (f float64, finite bool) {
	if v == nil || v.Kind != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(floatLiteral(v.Raw)), 64)
	return f, err == nil && !math.IsInf(f, 0)
}

// Str returns the unescaped text of a string, lone surrogates in WTF-8.
func (v *Value) Str() (s string, ok bool) {
	if v == nil || v.Kind != String {
		return "", false
	}
	return unquoteString(v.Raw), true
}

// Clone returns a deep copy that shares no memory with the parsed text.
func (v *Value) Clone() *Value {
	if v == nil {
		return nil
	}
	c := v.clone()
	return &c
}

func (v *Value) clone() Value {
	c := Value{Kind: v.Kind, Raw: slices.Clone(v.Raw), Offset: v.Offset}
	if v.Elems != nil {
		c.Elems = make([]Value, len(v.Elems))
	}
	for i := range v.Elems {
		c.Elems[i] = v.Elems[i].clone()
	}
	if v.Members != nil {
		c.Members = make([]Member, len(v.Members))
	}
	for i := range v.Members {
		m := &v.Members[i]
		c.Members[i] = Member{Name: strings.Clone(m.Name), RawName: slices.Clone(m.RawName), Value: m.Value.clone()}
	}
	return c
}

// AppendCompact appends the text of v without white space, literals as they were read.
// An absent value appends nothing.
func (v *Value) AppendCompact(dst []byte) []byte {
	w := writer{dst: dst, limit: math.MaxInt}
	w.value(v, 0)
	return w.dst
}

// AppendIndent appends the text of v as Python's json.dump(indent=2) lays it out for a
// value at the given nesting level (1 for the value of a top-level key), literals as they
// were read. An absent value appends nothing.
func (v *Value) AppendIndent(dst []byte, level int) []byte {
	w := writer{dst: dst, limit: math.MaxInt, indent: "  "}
	w.value(v, level)
	return w.dst
}

// Excerpt returns the compact text of v in at most limit bytes (3 or more): what was cut
// is marked by a final "…". An absent value reads "absent".
func (v *Value) Excerpt(limit int) string {
	if v == nil {
		return "absent"
	}
	w := writer{limit: max(limit, len("…"))}
	w.value(v, 0)
	if len(w.dst) <= w.limit {
		return string(w.dst)
	}
	return string(cutRunes(w.dst, w.limit-len("…"))) + "…"
}

// cutRunes returns the longest prefix of text that has at most n bytes and ends with a
// whole character.
func cutRunes(text []byte, n int) []byte {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// writer lays values out. It stops soon after dst has become longer than limit.
type writer struct {
	dst    []byte
	limit  int
	indent string // "" for the compact form
}

func (w *writer) value(v *Value, level int) {
	switch {
	case v == nil || len(w.dst) > w.limit:
	case v.Kind == Array:
		w.container('[', ']', len(v.Elems), level, func(i int) { w.value(&v.Elems[i], level+1) })
	case v.Kind == Object:
		w.container('{', '}', len(v.Members), level, func(i int) { w.member(&v.Members[i], level+1) })
	default:
		w.raw(v.Raw)
	}
}

func (w *writer) member(m *Member, level int) {
	w.raw(m.RawName)
	w.dst = append(w.dst, ':')
	if w.indent != "" {
		w.dst = append(w.dst, ' ')
	}
	w.value(&m.Value, level)
}

func (w *writer) container(open, end byte, n, level int, item func(i int)) {
	w.dst = append(w.dst, open)
	for i := 0; i < n && len(w.dst) <= w.limit; i++ {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.newline(level + 1)
		item(i)
	}
	if n > 0 {
		w.newline(level)
	}
	w.dst = append(w.dst, end)
}

func (w *writer) newline(level int) {
	if w.indent == "" {
		return
	}
	w.dst = append(w.dst, '\n')
	for range level {
		w.dst = append(w.dst, w.indent...)
	}
}

// raw appends a literal; of one that goes beyond the limit, only enough to be cut.
func (w *writer) raw(literal []byte) {
	if room := w.limit - len(w.dst); room < len(literal)-utf8.UTFMax {
		literal = literal[:room+utf8.UTFMax]
	}
	w.dst = append(w.dst, literal...)
}
