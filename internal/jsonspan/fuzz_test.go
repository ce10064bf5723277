package jsonspan

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// addSeeds gives a fuzz target pairs of texts, and a size of windows with each.
func addSeeds(f *testing.F) {
	for _, pair := range [][2]string{
		{"[12]", "[1 2]"}, {"[1,2]", "[ 1 , 2 ]"}, {"12", "123"}, {"12", "12 3"}, {"[true]", "[tr ue]"}, {`["a b"]`, `["ab"]`},
		{`"a\\"`, `"a\""`}, {`"\\\""`, `"\\\"" `}, {"[1]", "[1"}, {"[\n1\n]", "[1]"}, {"[\r\n1\r\n]", "[\n1\n]"}, {"[]", "[\n]"},
		{`{"a":1,"b":[2]}`, `{"b":[2.0],"\u0061":10e-1}`}, {`{"\ud800":1}`, `{"\ud801":1}`}, {"[1]", "[1,2]"}, {`{"a":{}}`, `{"a":{"b":1}}`},
		{"0", "-0.0"}, {"1e1000000000", "10e999999999"}, {`"\u00e9"`, `"é"`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]), byte(3))
	}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		d := randomDocument(r, 3)
		other := d.clone()
		if seed%2 == 0 {
			other.mutate(r)
		}
		a, b := d.spell(nil, layouts[r.IntN(len(layouts))]), other.spell(nil, layouts[r.IntN(len(layouts))])
		f.Add(a.b, b.b, byte(seed))
	}
}

func comparer(window byte) *Comparer {
	c := New()
	c.a.buf, c.b.buf, c.small = make([]byte, 1+window%16), make([]byte, 1+window/16), int64(window%3)*20
	return c
}

// sound returns a document's value, and its place without the white space around it.
func sound(text []byte) (*jsonvalue.Value, jsonstream.Span, bool) {
	if _, err := jsonstream.Check(bytes.NewReader(text), jsonstream.Limits{}); err != nil {
		return nil, jsonstream.Span{}, false
	}
	v, err := jsonvalue.Parse(text, 0)
	span := jsonstream.Span{Off: int64(len(text) - len(bytes.TrimLeft(text, " \t\r\n"))), Len: int64(len(bytes.Trim(text, " \t\r\n")))}
	return v, span, err == nil
}

// FuzzText requires that what is said to be equal is, and that two texts which differ in
// white space alone are said to be equal.
func FuzzText(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, a, b []byte, window byte) {
		_, spanA, ok := sound(a)
		if !ok {
			t.Skip("a is to be a document")
		}
		c := comparer(window)
		inA := a[spanA.Off:spanA.End()]
		equal := textImpliesEqual(t, "", c, inA, b)
		_, spanB, ok := sound(b)
		if !ok {
			return
		}
		var compactA, compactB bytes.Buffer
		if errA, errB := json.Compact(&compactA, a), json.Compact(&compactB, b); errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		same := bytes.Equal(compactA.Bytes(), compactB.Bytes())
		end, known, err := c.Text(bytes.NewReader(a), spanA, bytes.NewReader(b), spanB)
		if err != nil || known != same || equal != same || (same && end != spanB.End()) {
			t.Fatalf("%q and %q: %t up to %d, without an end %t, %v, want %t up to %d", a, b, known, end, equal, err, same, spanB.End())
		}
	})
}

// FuzzValues requires that the comparison in place finds what one of trees finds.
func FuzzValues(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, a, b []byte, window byte) {
		x, spanA, okA := sound(a)
		y, spanB, okB := sound(b)
		if !okA || !okB {
			t.Skip("both are to be documents")
		}
		got, err := comparer(window).Values(bytes.NewReader(a), spanA, bytes.NewReader(b), spanB)
		if err != nil {
			t.Fatalf("%q and %q: %v", a, b, err)
		}
		if equal := jsonvalue.Equal(x, y); equal != (got == nil) {
			t.Fatalf("%q and %q: %+v, want equal to be %t", a, b, got, equal)
		}
		var want *Difference
		jsonvalue.Diff(x, y, "", func(d jsonvalue.Difference) bool {
			want = &Difference{Pointer: d.Pointer, AbsentA: d.A == nil, AbsentB: d.B == nil}
			if want.OffB = offset(d.B, d.Parent); want.AbsentA {
				want.OffA = got.OffA // a tree of b does not tell
			} else {
				want.OffA = d.A.Offset
			}
			return false
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q and %q (-want +got):\n%s", a, b, diff)
		}
		if diff := cmp.Diff(everyDifference(t, x, y), each(t, comparer(window), a, b)); diff != "" {
			t.Fatalf("every difference of %q and %q (-want +got):\n%s", a, b, diff)
		}
	})
}

func offset(v, parent *jsonvalue.Value) int64 {
	if v == nil {
		v = parent
	}
	return v.Offset
}
