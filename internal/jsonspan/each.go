package jsonspan

import (
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Each compares like [Comparer.Values], and yields every deepest difference: in the order
// of a, and inside each object what only b has behind that. Where a lacks the value, OffA
// is 0. An error that yield returns ends the comparison.
//
// Elements of arrays are paired by position. If one array is longer, the beginning and the
// end that both have are paired first: an element that was lost or added makes one
// difference, not one in each element behind it.
func (c *Comparer) Each(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, yield func(Difference) error) error {
	c.begin()
	return c.each(a, spanA, b, spanB, unknown, "", yield)
}

func (c *Comparer) each(a io.ReaderAt, spanA jsonstream.Span, b io.ReaderAt, spanB jsonstream.Span, differs int64, pointer string, yield func(Difference) error) error {
	same, differs, err := c.sameText(a, spanA, b, spanB, differs)
	if same || err != nil {
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
		return c.eachMember(a, sa, b, sb, differs, pointer, yield)
	case kind == '[':
		return c.eachElement(a, sa, b, sb, differs, pointer, yield)
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
	return eachValue(x, y, pointer, yield)
}

// eachValue is each for trees.
func eachValue(x, y *jsonvalue.Value, pointer string, yield func(Difference) error) error {
	switch {
	case x.Kind == jsonvalue.Object && y.Kind == jsonvalue.Object:
		return eachMemberOf(x, y, pointer, yield)
	case x.Kind == jsonvalue.Array && y.Kind == jsonvalue.Array:
		l := aligned{
			n: len(x.Elems), m: len(y.Elems),
			same: func(i, j int) (bool, error) { return jsonvalue.Equal(&x.Elems[i], &y.Elems[j]), nil },
			each: func(i, j int, pointer string) error {
				return eachValue(&x.Elems[i], &y.Elems[j], pointer, yield)
			},
			offA: func(i int) int64 { return x.Elems[i].Offset }, offB: func(j int) int64 { return y.Elems[j].Offset }, startB: y.Offset,
		}
		return l.walk(pointer, yield)
	case jsonvalue.Equal(x, y):
		return nil
	}
	return yield(Difference{Pointer: pointer, OffA: x.Offset, OffB: y.Offset})
}

func eachMemberOf(x, y *jsonvalue.Value, pointer string, yield func(Difference) error) error {
	places := make(map[string]*jsonvalue.Value, len(y.Members))
	for i := range y.Members {
		places[y.Members[i].Name] = &y.Members[i].Value
	}
	for i := range x.Members {
		m := &x.Members[i]
		at := pointer + member{name: m.Name}.token()
		own, err := places[m.Name], error(nil)
		if delete(places, m.Name); own != nil {
			err = eachValue(&m.Value, own, at, yield)
		} else {
			err = yield(Difference{Pointer: at, OffA: m.Value.Offset, OffB: y.Offset, AbsentB: true})
		}
		if err != nil {
			return err
		}
	}
	for i := range y.Members {
		m := &y.Members[i]
		if places[m.Name] != nil {
			if err := yield(Difference{Pointer: pointer + member{name: m.Name}.token(), OffB: m.Value.Offset, AbsentA: true}); err != nil {
				return err
			}
		}
	}
	return nil
}

// aligned are two arrays of n and m elements.
type aligned struct {
	n, m       int
	same       func(i, j int) (bool, error)
	each       func(i, j int, pointer string) error // yields the differences of two elements
	offA, offB func(i int) int64
	startB     int64 // of the array of b
}

func (l *aligned) walk(pointer string, yield func(Difference) error) error {
	from, tail, err := l.common()
	if err != nil {
		return err
	}
	for i := from; i < min(l.n, l.m)-tail; i++ {
		if err := l.each(i, i, pointer+element(i)); err != nil {
			return err
		}
	}
	for i := min(l.n, l.m) - tail; i < l.n-tail; i++ { // a has more
		d := Difference{Pointer: pointer + element(i), OffA: l.offA(i), OffB: l.startB, AbsentB: true}
		if d.Occupied = i < l.m; d.Occupied {
			d.OffB = l.offB(i)
		}
		if err := yield(d); err != nil {
			return err
		}
	}
	for i := min(l.n, l.m) - tail; i < l.m-tail; i++ { // b has more
		if err := yield(Difference{Pointer: pointer + element(i), OffB: l.offB(i), AbsentA: true}); err != nil {
			return err
		}
	}
	return nil
}

// common returns how many elements at the beginning and at the end are the same in both.
// That is asked for only when one array is longer.
func (l *aligned) common() (head, tail int, err error) {
	if l.n == l.m {
		return 0, 0, nil
	}
	most := min(l.n, l.m)
	for same := true; head < most; head++ {
		if same, err = l.same(head, head); err != nil || !same {
			break
		}
	}
	for same := true; err == nil && head+tail < most; tail++ {
		if same, err = l.same(l.n-1-tail, l.m-1-tail); err != nil || !same {
			break
		}
	}
	return head, tail, err
}

// maxAligned is how many elements arrays of different lengths may have for their ends to be
// paired, too: their places are held for that.
const maxAligned = 1 << 18

func (c *Comparer) eachElement(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, differs int64, pointer string, yield func(Difference) error) error {
	startA, n, inA, err := c.endsA.elements(sa, c.small)
	if err != nil {
		return err
	}
	startB, m, inB, err := c.endsB.elements(sb, c.small)
	if err != nil {
		return err
	}
	if n == m || max(n, m) > maxAligned {
		sa.Reset(a, startA, 0, jsonstream.Trusted)
		sb.Reset(b, startB, 0, jsonstream.Trusted)
		return c.eachInOrder(a, sa, b, sb, differs, pointer, yield)
	}
	l := aligned{
		n: n, m: m,
		same: func(i, j int) (bool, error) {
			d, err := c.values(a, inA[i], b, inB[j], unknown)
			return d == nil, err
		},
		each: func(i, j int, pointer string) error { return c.each(a, inA[i], b, inB[j], differs, pointer, yield) },
		offA: func(i int) int64 { return inA[i].Off }, offB: func(j int) int64 { return inB[j].Off }, startB: startB,
	}
	return l.walk(pointer, yield)
}

// eachInOrder pairs elements by their position alone, and holds none of their places.
func (c *Comparer) eachInOrder(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, differs int64, pointer string, yield func(Difference) error) error {
	if _, err := sa.EnterArray(); err != nil {
		return err
	}
	startB, err := sb.EnterArray()
	if err != nil {
		return err
	}
	for i, moreA, moreB := 0, true, true; ; i++ {
		var spanA, spanB jsonstream.Span
		if moreA {
			if spanA, moreA, err = c.endsA.next(sa, c.small); err != nil {
				return err
			}
		}
		if moreB {
			if spanB, moreB, err = c.endsB.next(sb, c.small); err != nil {
				return err
			}
		}
		switch {
		case moreA && moreB:
			err = c.each(a, spanA, b, spanB, differs, pointer+element(i), yield)
		case moreA:
			err = yield(Difference{Pointer: pointer + element(i), OffA: spanA.Off, OffB: startB, AbsentB: true})
		case moreB:
			err = yield(Difference{Pointer: pointer + element(i), OffB: spanB.Off, AbsentA: true})
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// elements counts the elements of an array, and lists the first maxAligned of them.
func (e ends) elements(s *jsonstream.Scanner, least int64) (start int64, n int, list []jsonstream.Span, err error) {
	start, _, err = s.Array(func(int) error {
		span, err := e.skip(s, least)
		if n++; n <= maxAligned {
			list = append(list, span)
		}
		return err
	})
	return start, n, list, err
}

func (c *Comparer) eachMember(a io.ReaderAt, sa *jsonstream.Scanner, b io.ReaderAt, sb *jsonstream.Scanner, differs int64, pointer string, yield func(Difference) error) error {
	_, inA, err := c.endsA.members(sa, c.small)
	if err != nil {
		return err
	}
	startB, inB, err := c.endsB.members(sb, c.small)
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
			err = c.each(a, m.span, b, spanB, differs, at, yield)
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
