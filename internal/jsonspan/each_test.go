package jsonspan

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// everyDifference is what Each must yield, by way of trees: where all arrays that meet are
// of the same length, that of another implementation.
func everyDifference(t *testing.T, x, y *jsonvalue.Value) (list []Difference) {
	t.Helper()
	if !sameLengths(x, y) {
		err := eachValue(x, y, "", func(d Difference) error { list = append(list, d); return nil })
		if err != nil || (len(list) == 0) != jsonvalue.Equal(x, y) {
			t.Fatalf("%d differences, %v", len(list), err)
		}
		return list
	}
	jsonvalue.Diff(x, y, "", func(d jsonvalue.Difference) bool {
		want := Difference{Pointer: d.Pointer, AbsentA: d.A == nil, AbsentB: d.B == nil, OffB: offset(d.B, d.Parent)}
		if d.A != nil {
			want.OffA = d.A.Offset
		}
		list = append(list, want)
		return true
	})
	return list
}

func sameLengths(x, y *jsonvalue.Value) bool {
	for i := range min(len(x.Elems), len(y.Elems)) {
		if !sameLengths(&x.Elems[i], &y.Elems[i]) {
			return false
		}
	}
	for i := range x.Members {
		if v := y.Get(x.Members[i].Name); v != nil && !sameLengths(&x.Members[i].Value, v) {
			return false
		}
	}
	return x.Kind != jsonvalue.Array || y.Kind != jsonvalue.Array || len(x.Elems) == len(y.Elems)
}

// each returns what Each yields for two documents.
func each(t *testing.T, c *Comparer, a, b []byte) (list []Difference) {
	t.Helper()
	_, spanA, _ := sound(a)
	_, spanB, _ := sound(b)
	err := c.Each(bytes.NewReader(a), spanA, bytes.NewReader(b), spanB, func(d Difference) error { list = append(list, d); return nil })
	if err != nil {
		t.Fatalf("%q and %q: %v", a, b, err)
	}
	return list
}

func TestEach(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		d := randomDocument(r, 4)
		other := d.clone()
		for range r.IntN(5) {
			other.mutate(r)
		}
		if r.IntN(2) == 0 {
			other.shuffle(r)
		}
		a, b := d.spell(nil, layouts[r.IntN(len(layouts))]), other.spell(r, layouts[r.IntN(len(layouts))])
		x, _, okA := sound(a.b)
		y, _, okB := sound(b.b)
		if !okA || !okB {
			t.Fatalf("%q or %q is unsound", a.b, b.b)
		}
		want := everyDifference(t, x, y)
		for how, c := range comparers() {
			if diff := cmp.Diff(want, each(t, c, a.b, b.b)); diff != "" {
				t.Fatalf("%s: %q and %q (-want +got):\n%s", how, a.b, b.b, diff)
			}
		}
	}
}

func TestEachAligns(t *testing.T) {
	lost := func(pointer string, offA, offB int64, occupied bool) Difference {
		return Difference{Pointer: pointer, OffA: offA, OffB: offB, AbsentB: true, Occupied: occupied}
	}
	added := func(pointer string, offB int64) Difference {
		return Difference{Pointer: pointer, OffB: offB, AbsentA: true}
	}
	for _, tc := range []struct {
		a, b string
		want []Difference
	}{
		{"[1, 2, 3]", "[1, 3]", []Difference{lost("/1", 4, 4, true)}},
		{"[1, 2, 3]", "[2, 3]", []Difference{lost("/0", 1, 1, true)}},
		{"[1, 2, 3]", "[1, 2]", []Difference{lost("/2", 7, 0, false)}},
		{"[1, 2]", "[]", []Difference{lost("/0", 1, 0, false), lost("/1", 4, 0, false)}},
		{"[1, 2, 3, 4]", "[1, 4]", []Difference{lost("/1", 4, 4, true), lost("/2", 7, 0, false)}},
		{"[1, 3]", "[1, 2, 3]", []Difference{added("/1", 4)}},
		{"[]", "[5, 6]", []Difference{added("/0", 1), added("/1", 4)}},
		{"[1, 1]", "[1, 1, 1]", []Difference{added("/2", 7)}},
		{"[1, 2, 3, 4]", "[1, 9, 4]", []Difference{{Pointer: "/1", OffA: 4, OffB: 4}, lost("/2", 7, 7, true)}},
		{`{"x": [[1, 2], 3]}`, `{"x": [3]}`, []Difference{lost("/x/0", 7, 7, true)}},
	} {
		for how, c := range comparers() {
			if diff := cmp.Diff(tc.want, each(t, c, []byte(tc.a), []byte(tc.b))); diff != "" {
				t.Errorf("%s: %s and %s (-want +got):\n%s", how, tc.a, tc.b, diff)
			}
		}
	}
}

func TestEachEnds(t *testing.T) {
	enough := errors.New("enough")
	for how, c := range comparers() {
		for _, pair := range [][2]string{{"[1, 2]", "[3, 4]"}, {`{"a": 1, "b": 2}`, `{"c": 1, "d": 2}`}, {"[]", "[1, 2]"}, {"[1, 2]", "[]"}, {"1", "2"}, {"1", "[]"}} {
			n := 0
			a, b := pair[0], pair[1]
			err := c.Each(bytes.NewReader([]byte(a)), whole(a), bytes.NewReader([]byte(b)), whole(b), func(Difference) error { n++; return enough })
			if !errors.Is(err, enough) || n != 1 {
				t.Errorf("%s: %s and %s: %d differences, %v", how, a, b, n, err)
			}
		}
	}
}

func TestEachOfUnreadableText(t *testing.T) {
	c := New()
	c.small = 0
	text := `{"a": [1, 2, 3]}`
	err := c.Each(bytes.NewReader([]byte(text)), whole(text), failing{}, whole(text), func(Difference) error { return nil })
	var read *jsonstream.ReadError
	if !errors.As(err, &read) {
		t.Errorf("%v", err)
	}
}

// Long arrays are paired by position, so that the places of their elements are not held.
func TestEachOfManyElements(t *testing.T) {
	const n = maxAligned + 10
	long := "[" + strings.Repeat("1,", n-1) + "1]"
	for name, c := range map[string]struct {
		a, b string
		want []string
	}{
		"same length": {long, long[:len(long)-2] + "2]", []string{"/262153"}},
		"b has more":  {long, "[1,1,3," + long[1:], []string{"/2", "/262154", "/262155", "/262156"}},
		"a has more":  {"[1,1,3," + long[1:], long, []string{"/2", "/262154", "/262155", "/262156"}},
	} {
		var got []string
		err := New().Each(strings.NewReader(c.a), spanOf([]byte(c.a)), strings.NewReader(c.b), spanOf([]byte(c.b)), func(d Difference) error {
			if at := int64(2); d.Pointer == "/262156" && (d.AbsentA && d.OffB != int64(len(c.b))-at || d.AbsentB && d.OffA != int64(len(c.a))-at) {
				t.Errorf("%s: %+v", name, d)
			}
			got = append(got, d.Pointer)
			return nil
		})
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
