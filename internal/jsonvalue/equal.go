package jsonvalue

import "strconv"

// Equal tells whether two values are equal as the merge contract defines it; see the
// package comment. Two absent values are equal.
func Equal(a, b *Value) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind {
		return false
	}
	switch a.Kind {
	case Object:
		return equalMembers(a, b)
	case Array:
		return equalElems(a.Elems, b.Elems)
	}
	return equalScalars(a, b)
}

// equalScalars compares two scalars of the same kind.
func equalScalars(a, b *Value) bool {
	switch a.Kind {
	case String:
		return EqualStrings(a.Raw, b.Raw)
	case Number:
		return EqualNumbers(a.Raw, b.Raw)
	}
	return true // null, true and false have one value each
}

func equalElems(a, b []Value) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !Equal(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func equalMembers(a, b *Value) bool {
	if len(a.Members) != len(b.Members) {
		return false
	}
	find := lookup{members: b.Members}
	for i := range a.Members {
		m := &a.Members[i]
		if other := find.at(i, m.Name); other == nil || !Equal(&m.Value, other) {
			return false
		}
	}
	return true
}

// lookup finds members by name. Two objects of one producer have their keys in the same
// order, so it looks at the same position first; a large object in another order is
// indexed, lest an input make the comparison quadratic.
type lookup struct {
	members []Member
	index   map[string]int
}

// indexFrom is the size from which an index beats a search.
const indexFrom = 16

func (l *lookup) at(i int, name string) *Value {
	if i < len(l.members) && l.members[i].Name == name {
		return &l.members[i].Value
	}
	if len(l.members) < indexFrom {
		return (&Value{Members: l.members}).Get(name)
	}
	if l.index == nil {
		l.index = make(map[string]int, len(l.members))
		for j := range l.members {
			l.index[l.members[j].Name] = j
		}
	}
	if j, ok := l.index[name]; ok {
		return &l.members[j].Value
	}
	return nil
}

// Difference is one place at which two values differ: neither both objects nor both
// arrays there, and not equal.
type Difference struct {
	Pointer string // JSON Pointer of the place, behind the prefix given to [Diff]
	A, B    *Value // nil when that side has nothing there
	Parent  *Value // b's value around the place, where B is absent; nil at the top
}

// Diff yields every deepest difference between a and b until yield returns false: what a
// has in a's order, and inside each object or array what only b has after it. Elements
// of arrays are paired by position. It yields nothing exactly when the values are equal.
func Diff(a, b *Value, prefix string, yield func(Difference) bool) {
	d := differ{pointer: []byte(prefix), yield: yield}
	d.values(a, b, nil)
}

type differ struct {
	pointer []byte
	yield   func(Difference) bool
}

// values goes on while it returns true.
func (d *differ) values(a, b, parent *Value) bool {
	if a != nil && b != nil && a.Kind == b.Kind {
		switch a.Kind {
		case Object:
			return d.objects(a, b)
		case Array:
			return d.arrays(a, b)
		}
		if equalScalars(a, b) {
			return true
		}
	}
	if a == nil && b == nil {
		return true
	}
	return d.yield(Difference{Pointer: string(d.pointer), A: a, B: b, Parent: parent})
}

func (d *differ) objects(a, b *Value) bool {
	inB := lookup{members: b.Members}
	for i := range a.Members {
		m := &a.Members[i]
		if !d.member(m.Name, &m.Value, inB.at(i, m.Name), b) {
			return false
		}
	}
	inA := lookup{members: a.Members}
	for i := range b.Members {
		m := &b.Members[i]
		if inA.at(i, m.Name) == nil && !d.member(m.Name, nil, &m.Value, b) {
			return false
		}
	}
	return true
}

func (d *differ) arrays(a, b *Value) bool {
	for i := range max(len(a.Elems), len(b.Elems)) {
		if !d.member(strconv.Itoa(i), elem(a.Elems, i), elem(b.Elems, i), b) {
			return false
		}
	}
	return true
}

func elem(elems []Value, i int) *Value {
	if i < len(elems) {
		return &elems[i]
	}
	return nil
}

// member compares what two containers have under one name.
func (d *differ) member(name string, a, b, parent *Value) bool {
	length := len(d.pointer)
	d.pointer = AppendToken(d.pointer, name)
	more := d.values(a, b, parent)
	d.pointer = d.pointer[:length]
	return more
}
