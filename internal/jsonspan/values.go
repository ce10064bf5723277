package jsonspan

import (
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Difference is the first place, in the order of the first side, where two values
// differ. The offset of a side that lacks the value is that of the innermost container
// that should hold it.
type Difference struct {
	Pointer          string // from the compared values on
	OffA, OffB       int64
	AbsentA, AbsentB bool
	// Occupied tells of a lost element of an array that another one has its place, which
	// OffB is that of ([Comparer.Each] only).
	Occupied bool
}

// nested makes the scanners of a descent small: there are two for each level.
var nested = jsonstream.Limits{Window: 16 << 10}

// Values compares the value of a span in a with that of a span in b, both checked
// before. It returns nil when they are equal.
//
// Values of moderate size are compared in memory. A larger container is compared member
// by member: its members are located first and then compared each by its span, so that
// what is held is names and offsets, never text.
func (c *Comparer) Values(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span) (*Difference, error) {
	c.begin()
	return c.values(a, spanA, b, spanB, unknown)
}

func (c *Comparer) values(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, differs int64) (*Difference, error) {
	same, differs, err := c.sameText(a, spanA, b, spanB, differs)
	if same || err != nil {
		return nil, err
	}
	if spanA.Len <= c.small && spanB.Len <= c.small {
		return c.inMemory(a, spanA, b, spanB)
	}
	sa := jsonstream.New(a, spanA.Off, 0, jsonstream.Trusted, nested)
	sb := jsonstream.New(b, spanB.Off, 0, jsonstream.Trusted, nested)
	kind := sa.Peek()
	switch {
	case kind != sb.Peek():
		return &Difference{OffA: spanA.Off, OffB: spanB.Off}, nil
	case kind == '{':
		return c.objects(a, sa, b, sb, differs)
	case kind == '[':
		return c.arrays(a, sa, b, sb, differs)
	}
	return scalars(sa, sb)
}

func scalars(sa, sb *jsonstream.Scanner) (*Difference, error) {
	va, err := sa.Scalar()
	if err != nil {
		return nil, err
	}
	vb, err := sb.Scalar()
	if err != nil || equalLiterals(va.Kind, va.Raw, vb.Raw) {
		return nil, err
	}
	return &Difference{OffA: va.Offset, OffB: vb.Offset}, nil
}

func equalLiterals(kind jsontext.Kind, a, b []byte) bool {
	switch kind {
	case '0':
		return jsonvalue.EqualNumbers(a, b)
	case '"':
		return jsonvalue.EqualStrings(a, b)
	}
	return true // null, true and false are their kind
}

// EachPair walks two arrays side by side and calls fn with the places of each pair of
// elements, as long as both have one. Both arrays come next in their scanners.
func EachPair(a, b *jsonstream.Scanner, fn func(i int, spanA, spanB jsonstream.Span) error) error {
	if _, err := a.EnterArray(); err != nil {
		return err
	}
	if _, err := b.EnterArray(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		spanA, moreA, err := next(a)
		if err != nil {
			return err
		}
		spanB, moreB, err := next(b)
		if err != nil || !moreA || !moreB {
			return err
		}
		if err := fn(i, spanA, spanB); err != nil {
			return err
		}
	}
}

func (c *Comparer) arrays(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, differs int64) (*Difference, error) {
	startA, err := sa.EnterArray()
	if err != nil {
		return nil, err
	}
	startB, err := sb.EnterArray()
	if err != nil {
		return nil, err
	}
	for i := 0; ; i++ {
		spanA, moreA, err := c.endsA.next(sa, c.small)
		if err != nil {
			return nil, err
		}
		spanB, moreB, err := c.endsB.next(sb, c.small)
		if err != nil || (!moreA && !moreB) {
			return nil, err
		}
		switch {
		case !moreB:
			return &Difference{Pointer: element(i), OffA: spanA.Off, OffB: startB, AbsentB: true}, nil
		case !moreA:
			return &Difference{Pointer: element(i), OffA: startA, OffB: spanB.Off, AbsentA: true}, nil
		}
		if d, err := c.values(a, spanA, b, spanB, differs); d != nil || err != nil {
			return d.under(element(i)), err
		}
	}
}

// element is the reference token of an element of an array.
func element(i int) string { return "/" + strconv.Itoa(i) }

func next(s *jsonstream.Scanner) (span jsonstream.Span, more bool, err error) {
	if more, err = s.More(); err != nil || !more {
		return span, false, err
	}
	span, err = s.Skip()
	return span, true, err
}

// next is the next element, of which what is large is noted.
func (e ends) next(s *jsonstream.Scanner, least int64) (span jsonstream.Span, more bool, err error) {
	if more, err = s.More(); err != nil || !more {
		return span, false, err
	}
	span, err = e.skip(s, least)
	return span, true, err
}

func (d *Difference) under(token string) *Difference {
	if d != nil {
		d.Pointer = token + d.Pointer
	}
	return d
}

// member is a name with the place of its value.
type member struct {
	name string
	span jsonstream.Span
}

func (m member) token() string { return string(jsonvalue.AppendToken(nil, m.name)) }

func (e ends) members(s *jsonstream.Scanner, least int64) (start int64, list []member, err error) {
	start, _, err = s.Object(func(name []byte) error {
		key := string(name)
		span, err := e.skip(s, least)
		list = append(list, member{key, span})
		return err
	})
	return start, list, err
}

func (c *Comparer) objects(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, differs int64) (*Difference, error) {
	startA, inA, err := c.endsA.members(sa, c.small)
	if err != nil {
		return nil, err
	}
	startB, inB, err := c.endsB.members(sb, c.small)
	if err != nil {
		return nil, err
	}
	places := make(map[string]jsonstream.Span, len(inB))
	for _, m := range inB {
		places[m.name] = m.span
	}
	for _, m := range inA {
		spanB, ok := places[m.name]
		if !ok {
			return &Difference{Pointer: m.token(), OffA: m.span.Off, OffB: startB, AbsentB: true}, nil
		}
		if d, err := c.values(a, m.span, b, spanB, differs); d != nil || err != nil {
			return d.under(m.token()), err
		}
		delete(places, m.name)
	}
	for _, m := range inB {
		if _, added := places[m.name]; added {
			return &Difference{Pointer: m.token(), OffA: startA, OffB: m.span.Off, AbsentA: true}, nil
		}
	}
	return nil, nil
}
