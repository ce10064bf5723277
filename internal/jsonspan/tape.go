package jsonspan

import (
	"bytes"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// tape is a value of moderate size, flat: its text and a node for each value and name in
// it, in the order of the text. It costs 16 bytes a node and no allocation once it has
// grown, where a tree would cost ten times as much.
type tape struct {
	text  []byte
	base  int64 // offset of text in its document
	nodes []node
	open  []int32 // nodes of the open containers
	dec   jsontext.Decoder
	input bytes.Buffer
}

// node is a value or a name.
type node struct {
	start, end int32 // in text
	next       int32 // node behind this one and all that is in it
	kind       jsontext.Kind
}

// load reads a value that was checked before.
func (t *tape) load(src io.ReaderAt, span jsonstream.Span) error {
	if int64(cap(t.text)) < span.Len {
		t.text = make([]byte, span.Len)
	}
	t.text, t.base, t.nodes, t.open = t.text[:span.Len], span.Off, t.nodes[:0], t.open[:0]
	if n, err := src.ReadAt(t.text, span.Off); int64(n) < span.Len {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return &jsonstream.ReadError{Offset: span.Off + int64(n), Err: err}
	}
	t.input = *bytes.NewBuffer(t.text)
	t.dec.Reset(&t.input, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	for at := 0; ; {
		tok, err := t.dec.ReadToken()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return &jsonstream.ReadError{Offset: t.base + t.dec.InputOffset(), Err: err}
		}
		end := int(t.dec.InputOffset())
		t.add(tok.Kind(), t.skip(at), end)
		at = end
	}
}

// skip returns where the token begins that is read next from at.
func (t *tape) skip(at int) int {
	for isSpace(t.text[at]) || t.text[at] == ',' || t.text[at] == ':' {
		at++
	}
	return at
}

func (t *tape) add(kind jsontext.Kind, start, end int) {
	n := int32(len(t.nodes))
	if kind == '}' || kind == ']' {
		last := len(t.open) - 1
		container := &t.nodes[t.open[last]]
		container.end, container.next = int32(end), n
		t.open = t.open[:last]
		return
	}
	if kind == '{' || kind == '[' {
		t.open = append(t.open, n)
	}
	t.nodes = append(t.nodes, node{start: int32(start), end: int32(end), next: n + 1, kind: kind})
}

func (t *tape) raw(n int32) []byte   { return t.text[t.nodes[n].start:t.nodes[n].end] }
func (t *tape) offset(n int32) int64 { return t.base + int64(t.nodes[n].start) }

func (t *tape) token(name int32) string {
	return string(jsonvalue.AppendToken(nil, string(jsonvalue.Unquote(nil, t.raw(name)))))
}

// inMemory compares two values of moderate size.
func (c *Comparer) inMemory(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span) (*Difference, error) {
	if err := c.left.load(a, spanA); err != nil {
		return nil, err
	}
	if err := c.right.load(b, spanB); err != nil {
		return nil, err
	}
	return compareTapes(&c.left, &c.right, 0, 0), nil
}

// compareTapes compares the values at node i of a and at node j of b.
func compareTapes(a, b *tape, i, j int32) *Difference {
	x, y := a.nodes[i], b.nodes[j]
	switch {
	case x.kind != y.kind:
	case x.kind == '{':
		return compareObjects(a, b, i, j)
	case x.kind == '[':
		return compareArrays(a, b, i, j)
	case bytes.Equal(a.raw(i), b.raw(j)) || equalLiterals(x.kind, a.raw(i), b.raw(j)):
		return nil
	}
	return &Difference{OffA: a.offset(i), OffB: b.offset(j)}
}

func compareArrays(a, b *tape, i, j int32) *Difference {
	endA, endB := a.nodes[i].next, b.nodes[j].next
	m, n := i+1, j+1
	for k := 0; m < endA || n < endB; k++ {
		switch {
		case n >= endB:
			return &Difference{Pointer: element(k), OffA: a.offset(m), OffB: b.offset(j), AbsentB: true}
		case m >= endA:
			return &Difference{Pointer: element(k), OffA: a.offset(i), OffB: b.offset(n), AbsentA: true}
		}
		if d := compareTapes(a, b, m, n); d != nil {
			return d.under(element(k))
		}
		m, n = a.nodes[m].next, b.nodes[n].next
	}
	return nil
}

func compareObjects(a, b *tape, i, j int32) *Difference {
	find := finder{tape: b, object: j, at: j + 1}
	members := 0
	for m := i + 1; m < a.nodes[i].next; m = a.nodes[m+1].next {
		n, ok := find.name(a.raw(m))
		if !ok {
			return &Difference{Pointer: a.token(m), OffA: a.offset(m + 1), OffB: b.offset(j), AbsentB: true}
		}
		if d := compareTapes(a, b, m+1, n+1); d != nil {
			return d.under(a.token(m))
		}
		members++
	}
	// Every member of a is in b, so that b has as many or more.
	for n := j + 1; n < b.nodes[j].next; n = b.nodes[n+1].next {
		if members--; members < 0 {
			return firstAdded(a, b, i, j)
		}
	}
	return nil
}

// firstAdded returns the first member of b that a does not have.
func firstAdded(a, b *tape, i, j int32) *Difference {
	find := finder{tape: a, object: i, at: i + 1}
	for n := j + 1; n < b.nodes[j].next; n = b.nodes[n+1].next {
		if _, ok := find.name(b.raw(n)); !ok {
			return &Difference{Pointer: b.token(n), OffA: a.offset(i), OffB: b.offset(n + 1), AbsentA: true}
		}
	}
	return nil
}

// finder finds members of an object by name. It looks first behind the member that was
// found last, then around; a large object is indexed, lest an input make comparing
// quadratic.
type finder struct {
	tape   *tape
	object int32
	at     int32
	index  map[string]int32
}

// indexFrom is the number of members looked at before the object is indexed.
const indexFrom = 32

func (f *finder) name(raw []byte) (n int32, ok bool) {
	end := f.tape.nodes[f.object].next
	if f.index == nil {
		looked := 0
		for n := f.at; n < end && looked < indexFrom; looked++ {
			if equalNames(raw, f.tape.raw(n)) {
				f.at = f.tape.nodes[n+1].next
				return n, true
			}
			n = f.tape.nodes[n+1].next
		}
		for n := f.object + 1; n < f.at && looked < indexFrom; looked++ {
			if equalNames(raw, f.tape.raw(n)) {
				f.at = f.tape.nodes[n+1].next
				return n, true
			}
			n = f.tape.nodes[n+1].next
		}
		if looked < indexFrom {
			return 0, false
		}
		f.index = map[string]int32{}
		for n := f.object + 1; n < end; n = f.tape.nodes[n+1].next {
			f.index[string(jsonvalue.Unquote(nil, f.tape.raw(n)))] = n
		}
	}
	n, ok = f.index[string(jsonvalue.Unquote(nil, raw))]
	return n, ok
}

func equalNames(a, b []byte) bool {
	return bytes.Equal(a, b) || ((bytes.IndexByte(a, '\\') >= 0 || bytes.IndexByte(b, '\\') >= 0) && jsonvalue.EqualStrings(a, b))
}
