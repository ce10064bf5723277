package jsonspan

import (
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Each compares like [Comparer.Values], and yields every deepest difference: in the order
// of a, and inside each container what only b has behind that. Elements of arrays are
// paired by position. Where a lacks the value, OffA is 0. An error that yield returns ends
// the comparison.
func (c *Comparer) Each(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, yield func(Difference) error) error {
	return c.each(a, spanA, b, spanB, "", yield)
}

func (c *Comparer) each(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, pointer string, yield func(Difference) error) error {
	if same, err := c.lines(a, spanA, b, spanB); same || err != nil {
		return err
	}
	if _, same, err := c.Text(a, spanA, b, spanB); same || err != nil {
		return err
	}
	if spanA.Len <= c.small && spanB.Len <= c.small {
		return eachInMemory(a, spanA, b, spanB, pointer, yield)
	}
	sa := jsonstream.New(a, spanA.Off, 0, jsonstream.Trusted, nested)
	sb := jsonstream.New(b, spanB.Off, 0, jsonstream.Trusted, nested)
	kind := sa.Peek()
	switch {
	case kind != sb.Peek():
		return yield(Difference{Pointer: pointer, OffA: spanA.Off, OffB: spanB.Off})
	case kind == '{':
		return c.eachMember(a, sa, b, sb, pointer, yield)
	case kind == '[':
		return c.eachElement(a, sa, b, sb, pointer, yield)
	}
	d, err := scalars(sa, sb)
	if d != nil && err == nil {
		d.Pointer = pointer
		err = yield(*d)
	}
	return err
}

func eachInMemory(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, pointer string, yield func(Difference) error) error {
	x, err := jsonstream.ReadTree(a, spanA)
	if err != nil {
		return err
	}
	y, err := jsonstream.ReadTree(b, spanB)
	if err != nil {
		return err
	}
	jsonvalue.Diff(x, y, pointer, func(d jsonvalue.Difference) bool {
		found := Difference{Pointer: d.Pointer, AbsentA: d.A == nil, AbsentB: d.B == nil}
		if d.A != nil {
			found.OffA = d.A.Offset
		}
		if d.B != nil {
			found.OffB = d.B.Offset
		} else {
			found.OffB = d.Parent.Offset // both values exist, so that one below them is missing
		}
		err = yield(found)
		return err == nil
	})
	return err
}

func (c *Comparer) eachElement(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, pointer string, yield func(Difference) error) error {
	if _, err := sa.EnterArray(); err != nil {
		return err
	}
	startB, err := sb.EnterArray()
	if err != nil {
		return err
	}
	var spanA, spanB jsonstream.Span
	for i, moreA, moreB := 0, true, true; ; i++ {
		if moreA {
			if spanA, moreA, err = next(sa); err != nil {
				return err
			}
		}
		if moreB {
			if spanB, moreB, err = next(sb); err != nil {
				return err
			}
		}
		at := pointer + element(i)
		switch {
		case !moreA && !moreB:
			return nil
		case !moreA:
			err = yield(Difference{Pointer: at, OffB: spanB.Off, AbsentA: true})
		case !moreB:
			err = yield(Difference{Pointer: at, OffA: spanA.Off, OffB: startB, AbsentB: true})
		default:
			err = c.each(a, spanA, b, spanB, at, yield)
		}
		if err != nil {
			return err
		}
	}
}

func (c *Comparer) eachMember(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, pointer string, yield func(Difference) error) error {
	_, inA, err := members(sa)
	if err != nil {
		return err
	}
	startB, inB, err := members(sb)
	if err != nil {
		return err
	}
	places := make(map[string]jsonstream.Span, len(inB))
	for _, m := range inB {
		places[m.name] = m.span
	}
	for _, m := range inA {
		at := pointer + m.token()
		if spanB, ok := places[m.name]; ok {
			delete(places, m.name)
			err = c.each(a, m.span, b, spanB, at, yield)
		} else {
			err = yield(Difference{Pointer: at, OffA: m.span.Off, OffB: startB, AbsentB: true})
		}
		if err != nil {
			return err
		}
	}
	for _, m := range inB {
		if _, added := places[m.name]; added {
			if err := yield(Difference{Pointer: pointer + m.token(), OffB: m.span.Off, AbsentA: true}); err != nil {
				return err
			}
		}
	}
	return nil
}
