package jsonspan

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// spellings are scalars; those of one line are equal, and no others.
var spellings = [][]string{
	{"null"}, {"true"}, {"false"},
	{"0", "-0", "0.0", "0e7"}, {"1", "1.0", "10e-1", "0.01E2"}, {"12", "1.2e1", "120E-1"}, {"-12"}, {"2"},
	{"0.1", "1e-1", "0.10"}, {"0.10000000000000001"}, {"1e400", "10E399"},
	{`""`}, {`" "`}, {`"  "`, `" \u0020"`}, {`"12"`, `"\u00312"`}, {`"1 2"`}, {`"null"`},
	{`"A/b"`, `"\u0041\/b"`, `"A\u002Fb"`}, {`"é"`, `"\u00e9"`, `"\u00E9"`}, {`"😀"`, `"\ud83d\ude00"`},
	{`"\ud800"`, `"\uD800"`}, {`"\ud801"`}, {`"\\"`, `"\u005c"`}, {`"\\\\\""`, `"\u005c\\\u0022"`}, {`"\" "`}, {`"[{,:}]"`},
}

// names are spelled like strings; each is used once in an object.
var names = [][]string{
	{`"a"`, `"\u0061"`}, {`"b"`}, {`""`}, {`"a/b"`, `"a\/b"`}, {`"~"`}, {`"~1"`}, {`"é"`, `"\u00e9"`}, {`"0"`}, {`"\ud800"`, `"\uD800"`}, {`"\ud801"`},
	{`"\""`, `"\u0022"`}, {`" "`}, {`"wall_time"`, `"w\u0061ll_time"`},
}

// document is a JSON value before it is spelled.
type document struct {
	kind    byte // '[', '{', or 's' for a scalar
	scalar  int  // of spellings
	members []entry
}

type entry struct {
	name int // of names; of arrays unused
	doc  document
}

func randomDocument(r *rand.Rand, depth int) document {
	kinds := "ss[{"
	if depth == 0 {
		kinds = "s"
	}
	d := document{kind: kinds[r.IntN(len(kinds))], scalar: r.IntN(len(spellings))}
	if d.kind != 's' {
		for _, name := range r.Perm(len(names))[:r.IntN(6)] {
			d.members = append(d.members, entry{name, randomDocument(r, depth-1)})
		}
	}
	return d
}

func (d *document) clone() document {
	c := *d
	c.members = slices.Clone(d.members)
	for i := range c.members {
		c.members[i].doc = c.members[i].doc.clone()
	}
	return c
}

// shuffle puts the members of all objects in another order.
func (d *document) shuffle(r *rand.Rand) {
	if d.kind == '{' {
		r.Shuffle(len(d.members), func(i, j int) { d.members[i], d.members[j] = d.members[j], d.members[i] })
	}
	for i := range d.members {
		d.members[i].doc.shuffle(r)
	}
}

// mutate changes one place. The document may be equal to what it was: two equal elements
// may have changed places.
func (d *document) mutate(r *rand.Rand) {
	if n := len(d.members); n > 0 && r.IntN(4) > 0 {
		d.members[r.IntN(n)].doc.mutate(r)
		return
	}
	n := len(d.members)
	switch choice := r.IntN(4); {
	case d.kind == 's' && choice == 0:
		*d = document{kind: '['}
	case d.kind == 's':
		d.scalar = (d.scalar + 1 + r.IntN(len(spellings)-1)) % len(spellings)
	case n == 0 || choice == 0: // something more, at the end
		d.members = append(d.members, entry{d.unused(), document{kind: 's'}})
	case choice == 1: // something less, anywhere
		i := r.IntN(n)
		d.members = slices.Delete(d.members, i, i+1)
	case choice == 2:
		d.kind = '[' + '{' - d.kind
	default:
		i, j := r.IntN(n), r.IntN(n)
		d.members[i].doc, d.members[j].doc = d.members[j].doc, d.members[i].doc
	}
}

func (d *document) unused() int {
	for name := range names {
		if d.find(name) == nil {
			return name
		}
	}
	panic("an object with all names")
}

func (d *document) find(name int) *document {
	for i := range d.members {
		if d.members[i].name == name {
			return &d.members[i].doc
		}
	}
	return nil
}

func (d *document) token(i int) string {
	if d.kind == '[' {
		return "/" + strconv.Itoa(i)
	}
	return string(jsonvalue.AppendToken(nil, string(jsonvalue.Unquote(nil, []byte(names[d.members[i].name][0])))))
}

// firstDifference finds it the plain way. Offsets are filled in by the caller.
func firstDifference(a, b *document) *Difference {
	if a.kind != b.kind || (a.kind == 's' && a.scalar != b.scalar) {
		return &Difference{}
	}
	for i := range a.members {
		var other *document
		if a.kind == '{' {
			other = b.find(a.members[i].name)
		} else if i < len(b.members) {
			other = &b.members[i].doc
		}
		if other == nil {
			return &Difference{Pointer: a.token(i), AbsentB: true}
		}
		if d := firstDifference(&a.members[i].doc, other); d != nil {
			return d.under(a.token(i))
		}
	}
	for i := range b.members {
		if (a.kind == '{' && a.find(b.members[i].name) == nil) || (a.kind == '[' && i >= len(a.members)) {
			return &Difference{Pointer: b.token(i), AbsentA: true}
		}
	}
	return nil
}

// layout writes white space.
type layout struct {
	name    string
	newline string
	indent  string
	colon   string
	random  *rand.Rand // instead of the others
}

var layouts = []layout{
	{name: "compact", colon: ":"},
	{name: "indent 1", newline: "\n", indent: " ", colon: ": "},
	{name: "indent 2", newline: "\n", indent: "  ", colon: ": "},
	{name: "indent 4", newline: "\n", indent: "    ", colon: ": "},
	{name: "indent 11", newline: "\n", indent: "           ", colon: " :\t"},
	{name: "tabs", newline: "\n", indent: "\t", colon: ": "},
	{name: "CRLF", newline: "\r\n", indent: "  ", colon: ": "},
	{name: "spaces", newline: " ", colon: " : "},
	{name: "random", colon: ":", random: rand.New(rand.NewPCG(1, 1))},
}

func (l *layout) gap(level int) string {
	if l.random != nil {
		return strings.Repeat([]string{"", "", " ", "\n", "\t", "\r", " \n "}[l.random.IntN(7)], l.random.IntN(4))
	}
	return l.newline + strings.Repeat(l.indent, level)
}

// text is a spelled document with the offsets of its values by their pointers.
type text struct {
	b    []byte
	at   map[string]int64
	span jsonstream.Span
}

// spell writes a document; r chooses among the spellings, nil the first of each.
func (d *document) spell(r *rand.Rand, l layout) *text {
	t := &text{at: map[string]int64{}}
	t.value(d, r, &l, "", 0)
	t.span.Len = int64(len(t.b))
	return t
}

// in puts a text between others.
func (t *text) in(before, behind string) *text {
	moved := &text{b: slices.Concat([]byte(before), t.b, []byte(behind)), at: map[string]int64{}, span: t.span}
	moved.span.Off += int64(len(before))
	for pointer, at := range t.at {
		moved.at[pointer] = at + int64(len(before))
	}
	return moved
}

func (t *text) src() io.ReaderAt { return bytes.NewReader(t.b) }

func (t *text) value(d *document, r *rand.Rand, l *layout, pointer string, level int) {
	t.at[pointer] = int64(len(t.b))
	if d.kind == 's' {
		t.b = append(t.b, choose(r, spellings[d.scalar])...)
		return
	}
	t.b = append(t.b, d.kind)
	for i := range d.members {
		if i > 0 {
			t.b = append(t.b, ',')
		}
		t.b = append(t.b, l.gap(level+1)...)
		if d.kind == '{' {
			t.b = append(append(t.b, choose(r, names[d.members[i].name])...), l.colon...)
		}
		t.value(&d.members[i].doc, r, l, pointer+d.token(i), level+1)
	}
	if len(d.members) > 0 {
		t.b = append(t.b, l.gap(level)...)
	}
	t.b = append(t.b, d.kind+2)
}

func choose(r *rand.Rand, texts []string) string {
	if r == nil {
		return texts[0]
	}
	return texts[r.IntN(len(texts))]
}

// place fills in the offsets of a difference between two texts.
func (d *Difference) place(a, b *text) *Difference {
	if d == nil {
		return nil
	}
	parent := d.Pointer[:max(strings.LastIndexByte(d.Pointer, '/'), 0)]
	d.OffA, d.OffB = a.at[d.Pointer], b.at[d.Pointer]
	if d.AbsentA {
		d.OffA = a.at[parent]
	}
	if d.AbsentB {
		d.OffB = b.at[parent]
	}
	return d
}

// comparers are of all kinds of windows and of memory.
func comparers() map[string]*Comparer {
	all := map[string]*Comparer{"usual": New()}
	for _, size := range [][2]int{{1, 1}, {1, 5}, {3, 2}, {7, 16}, {40, 30}} {
		for _, small := range []int64{0, 10, smallValue} {
			c := New()
			c.a.buf, c.b.buf, c.small = make([]byte, size[0]), make([]byte, size[1]), small
			all[fmt.Sprintf("windows %v, %d in memory", size, small)] = c
		}
	}
	return all
}
