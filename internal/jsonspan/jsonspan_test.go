package jsonspan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func whole(text string) jsonstream.Span { return jsonstream.Span{Len: int64(len(text))} }

func TestBytes(t *testing.T) {
	long := strings.Repeat("[1, 2] ", 100)
	for _, tc := range []struct {
		a    string
		span jsonstream.Span
		b    string
		offB int64
		want bool
	}{
		{"[1]", whole("[1]"), "[1]", 0, true},
		{"x[1]y", jsonstream.Span{Off: 1, Len: 3}, "ab[1]cd", 2, true},
		{"[1]", whole("[1]"), "[1", 0, false},
		{"[1]", whole("[1]"), "[2]", 0, false},
		{"[1]", whole("[1]"), "[1]", 1, false},
		{"[1]", whole("[1]"), "", 0, false},
		{"[1]", whole("[1]"), "[1]", 100, false},
		{"[1", jsonstream.Span{Len: 3}, "[1]", 0, false}, // a has become shorter
		{"[1", jsonstream.Span{Len: 3}, "[1", 0, false},
		{"[1]", whole("[1]"), "[ 1]", 0, false},
		{long, whole(long), long, 0, true},
		{long, whole(long), long[:len(long)-1] + "x", 0, false},
		{long, whole(long), "x" + long, 1, true},
	} {
		for how, c := range comparers() {
			got, err := c.Bytes(strings.NewReader(tc.a), tc.span, strings.NewReader(tc.b), tc.offB)
			if got != tc.want || err != nil {
				t.Errorf("%s: %.20q %v in %.20q at %d: %t, %v, want %t", how, tc.a, tc.span, tc.b, tc.offB, got, err, tc.want)
			}
		}
	}
}

func TestText(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		end  int64 // in b, -1 when it is not equal
	}{
		{`{"a":[1,2]}`, `{"a":[1,2]}`, 11},
		{`{"a":[1,2]}`, "{\n  \"a\" : [ 1 ,\t2 ]\r\n}", 22},
		{"{\n  \"a\" : [ 1 ,\t2 ]\r\n}", `{"a":[1,2]}`, 11},
		{`{"a":[1,2]}`, " \n{\"a\":[1,2]} , 3", 13},
		{"[]", "[ ]", 3},
		{"[\n]", "[]", 2},
		{"12", "12", 2},
		{"12", " 12 ", 3},
		{"-1.5e+7", "-1.5e+7,", 7},
		{"null", "null]", 4},
		{`"a b"`, `"a b"`, 5},
		{`"a\"b\\"`, `"a\"b\\"x`, 8},
		// White space within tokens.
		{`["a b"]`, `["ab"]`, -1},
		{`["ab"]`, `["a b"]`, -1},
		{`["a b"]`, `["a  b"]`, -1},
		{`[" "]`, `[""]`, -1},
		{"[12]", "[1 2]", -1},
		{"[ 12 ]", "[1 2]", -1},
		{"[12]", "[1\n2]", -1},
		{"[-1]", "[- 1]", -1},
		{"[1.5]", "[1. 5]", -1},
		{"[1e+5]", "[1e +5]", -1},
		{"[1e5]", "[1 e5]", -1},
		{"[true]", "[tr ue]", -1},
		{"[null]", "[nul l]", -1},
		// Everything else.
		{"[1]", "[2]", -1},
		{"[1,2]", "[1 2]", -1},
		{"[1]", "[1", -1},
		{"[1]", "[1 ", -1},
		{"[1]", "", -1},
		{"[1]", "[10]", -1},
		{"[10]", "[1]", -1},
		{"[1,2]", "[1,,2]", -1},
		{"[[1]]", "[1]", -1},
		{`{"a":1}`, `{"a":1,}`, -1},
		{`"ab"`, `"ab`, -1},
		{`"a\n"`, `"a\t"`, -1},
		{`"a\\"`, `"a\""`, -1},
		{"[1]", "[\v1]", -1},
		{"[1]", "[\u00a01]", -1},
		// A value that goes on where that of a ends.
		{"12", "123", -1},
		{"12", "12.5", -1},
		{"12", "12e5", -1},
		{"0", "01", -1},
		{"null", "nullx", -1},
		{"12", "12]", 2},
		{`""`, `"""`, 2},
	} {
		for how, c := range comparers() {
			end, equal, err := c.Text(strings.NewReader(tc.a), whole(tc.a), strings.NewReader(tc.b), jsonstream.Span{Len: -1})
			if err != nil || equal != (tc.end >= 0) || (equal && end != tc.end) {
				t.Errorf("%s: %q and %q: %t up to %d, %v, want up to %d", how, tc.a, tc.b, equal, end, err, tc.end)
			}
			if tc.end < 0 {
				continue
			}
			if _, equal, err = c.Text(strings.NewReader(tc.a), whole(tc.a), strings.NewReader(tc.b), whole(tc.b[:tc.end])); !equal || err != nil {
				t.Errorf("%s: %q and %q, whose length is known: %t, %v", how, tc.a, tc.b, equal, err)
			}
			if _, equal, err = c.Text(strings.NewReader(tc.a), whole(tc.a), strings.NewReader(tc.b), whole(tc.b[:tc.end-1])); equal || err != nil {
				t.Errorf("%s: %q and a byte less of %q: %t, %v", how, tc.a, tc.b, equal, err)
			}
		}
	}
}

func TestTextOfASpan(t *testing.T) {
	a, b := `{"x": [1, 2], "y": 3}`, `[0, [1,2], [1,2,3]]`
	end, equal, err := New().Text(strings.NewReader(a), jsonstream.Span{Off: 6, Len: 6}, strings.NewReader(b), jsonstream.Span{Off: 4, Len: 5})
	if end != 9 || !equal || err != nil {
		t.Errorf("Text = %d, %t, %v", end, equal, err)
	}
	if _, equal, _ := New().Text(strings.NewReader(a[:10]), jsonstream.Span{Off: 6, Len: 6}, strings.NewReader(b), jsonstream.Span{Off: 4, Len: 5}); equal {
		t.Error("equal, although a has become shorter")
	}
}

// Any layout of a document has its text, and no other document's.
func TestTextInRandomLayouts(t *testing.T) {
	all := comparers()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		d := randomDocument(r, 4)
		other := d.clone()
		other.mutate(r)
		different := firstDifference(&d, &other) != nil
		a := d.spell(nil, layouts[r.IntN(len(layouts))]).in(" [", "")
		for _, l := range layouts {
			b, wrong := d.spell(nil, l), other.spell(nil, l)
			for how, c := range all {
				end, equal, err := c.Text(a.src(), a.span, b.in(" \n ", "]").src(), jsonstream.Span{Len: -1})
				if !equal || err != nil || end != 3+b.span.Len {
					t.Fatalf("%s: %s and its layout %q, %s: %t up to %d, %v", how, a.b, b.b, l.name, equal, end, err)
				}
				if _, equal, err = c.Text(a.src(), a.span, b.src(), b.span); !equal || err != nil {
					t.Fatalf("%s: %s and its layout %q, %s: %t, %v", how, a.b, b.b, l.name, equal, err)
				}
				if _, equal, err = c.Text(a.src(), a.span, wrong.in("", "]").src(), jsonstream.Span{Len: -1}); err != nil || (different && equal) {
					t.Fatalf("%s: %s and another document, %s, %s: %t, %v", how, a.b, wrong.b, l.name, equal, err)
				}
			}
		}
	}
}

// However a layout of a document is damaged, what is said to be equal is a document.
func TestTextOfDamagedText(t *testing.T) {
	all := comparers()
	equals := 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 4))
		d := randomDocument(r, 3)
		a, b := d.spell(nil, layouts[r.IntN(len(layouts))]), d.spell(nil, layouts[r.IntN(len(layouts))])
		b.b = damage(r, b.b)
		for how, c := range all {
			if textImpliesEqual(t, how, c, a.b, b.b) {
				equals++
			}
		}
	}
	if equals == 0 {
		t.Error("no damaged text was equal: the test tests nothing")
	}
}

// damage changes a few bytes.
func damage(r *rand.Rand, text []byte) []byte {
	text = bytes.Clone(text)
	for range 1 + r.IntN(2) {
		at := r.IntN(len(text))
		switch c := []byte(" \n\t\r\"\\,:[]{}0e-.\v\xff")[r.IntN(18)]; r.IntN(3) {
		case 0:
			text[at] = c
		case 1:
			text = append(text[:at:at], append([]byte{c}, text[at:]...)...)
		default:
			if len(text) > 1 {
				text = append(text[:at:at], text[at+1:]...)
			}
		}
	}
	return text
}

// textImpliesEqual fails the test when Text says that a, a document, stands in b and it
// does not.
func textImpliesEqual(t *testing.T, how string, c *Comparer, a, b []byte) bool {
	t.Helper()
	end, equal, err := c.Text(bytes.NewReader(a), jsonstream.Span{Len: int64(len(a))}, bytes.NewReader(b), jsonstream.Span{Len: -1})
	if err != nil {
		t.Fatalf("%s: %q and %q: %v", how, a, b, err)
	}
	if !equal {
		return false
	}
	if !json.Valid(b[:end]) {
		t.Fatalf("%s: %q is said to stand in %q up to %d, which is not JSON", how, a, b, end)
	}
	x, errX := jsonvalue.Parse(a, 0)
	y, errY := jsonvalue.Parse(b[:end], 0)
	if errX != nil || errY != nil || !jsonvalue.Equal(x, y) {
		t.Fatalf("%s: %q is said to stand in %q up to %d: %v, %v", how, a, b, end, errX, errY)
	}
	return true
}

func TestValues(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want *Difference
	}{
		{`{"a":1,"b":[2]}`, `{ "b" : [2.0], "\u0061" : 10e-1 }`, nil},
		{"[1, 2]", "[2, 1]", &Difference{Pointer: "/0", OffA: 1, OffB: 1}},
		{"[1]", "[1, 2]", &Difference{Pointer: "/1", OffA: 0, OffB: 4, AbsentA: true}},
		{"[1, 2]", "[1]", &Difference{Pointer: "/1", OffA: 4, OffB: 0, AbsentB: true}},
		{"[[1, 2]]", " [[1]]", &Difference{Pointer: "/0/1", OffA: 5, OffB: 2, AbsentB: true}},
		{`{"a":{"b":1}}`, `{"a":{}}`, &Difference{Pointer: "/a/b", OffA: 10, OffB: 5, AbsentB: true}},
		{`{"a":{}}`, `{"a":{"b":1}}`, &Difference{Pointer: "/a/b", OffA: 5, OffB: 10, AbsentA: true}},
		{`{"a":null}`, `{}`, &Difference{Pointer: "/a", OffA: 5, OffB: 0, AbsentB: true}},
		{`{"a":1,"b":2}`, `{"b":3,"a":4}`, &Difference{Pointer: "/a", OffA: 5, OffB: 11}},
		{`{"b":2}`, `{"c":0,"b":2,"a":1}`, &Difference{Pointer: "/c", OffA: 0, OffB: 5, AbsentA: true}},
		{`{"b":2}`, `{"c":0,"b":3}`, &Difference{Pointer: "/b", OffA: 5, OffB: 11}},
		{`{"a/~":[true]}`, `{"a\/~":[1]}`, &Difference{Pointer: "/a~1~0/0", OffA: 8, OffB: 9}},
		{"true", "1", &Difference{}},
		{"true", "false", &Difference{}},
		{"0", "false", &Difference{}},
		{"null", "{}", &Difference{}},
		{"[]", "{}", &Difference{}},
		{`"1"`, "1", &Difference{}},
		{"[]", "[ ]", nil},
		{"0", "-0.0", nil},
		{"0.1", "0.10000000000000001", &Difference{}},
		{"1e1000000000", "10e999999999", nil},
		{`"\u00e9"`, `"é"`, nil},
		{`"e"`, `"é"`, &Difference{}},
		{`["\ud800"]`, `["\ud801"]`, &Difference{Pointer: "/0", OffA: 1, OffB: 1}},
		{`{"\ud800":1}`, `{"\ud801":1}`, &Difference{Pointer: "/\xed\xa0\x80", OffA: 10, OffB: 0, AbsentB: true}},
		{`{"":1}`, `{"":2}`, &Difference{Pointer: "/", OffA: 4, OffB: 4}},
		{`" "`, `"  "`, &Difference{}},
	} {
		for how, c := range comparers() {
			a, b := strings.TrimLeft(tc.a, " "), strings.TrimLeft(tc.b, " ")
			spanB := jsonstream.Span{Off: int64(len(tc.b) - len(b)), Len: int64(len(b))}
			got, err := c.Values(strings.NewReader(a), whole(a), strings.NewReader(tc.b), spanB)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s: %s and %s: %v (-want +got):\n%s", how, tc.a, tc.b, err, diff)
			}
		}
	}
}

// Objects of many members, in any order.
func TestValuesOfManyMembers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	spell := func(n int, extra string) string {
		parts := make([]string, n)
		for i, k := range r.Perm(n) {
			parts[i] = fmt.Sprintf(`"key %d": %d`, k, k)
		}
		return "{" + strings.Join(parts, ", ") + extra + "}"
	}
	for _, n := range []int{1, 31, 32, 33, 100, 5000} {
		a, same, more, other := spell(n, ""), spell(n, ""), spell(n, `, "new": 1`), strings.Replace(spell(n, ""), ": 0", ": 1", 1)
		for _, small := range []int64{0, smallValue} {
			c := New()
			c.small = small
			values := func(a, b string) *Difference {
				d, err := c.Values(strings.NewReader(a), whole(a), strings.NewReader(b), whole(b))
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			if d := values(a, same); d != nil {
				t.Errorf("%d members: %+v", n, d)
			}
			if d := values(a, more); d == nil || d.Pointer != "/new" || !d.AbsentA || d.OffB != int64(len(more)-2) {
				t.Errorf("%d members and one more: %+v", n, d)
			}
			if d := values(more, a); d == nil || d.Pointer != "/new" || !d.AbsentB || d.OffA != int64(len(more)-2) {
				t.Errorf("%d members and one less: %+v", n, d)
			}
			if d := values(a, other); d == nil || d.Pointer != "/key 0" || d.OffB != int64(strings.Index(other, `"key 0": 1`)+9) {
				t.Errorf("%d members, one changed: %+v", n, d)
			}
		}
	}
}

func TestValuesOfRandomDocuments(t *testing.T) {
	all := comparers()
	equals := 0
	const seeds = 300
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 5))
		d := randomDocument(r, 4)
		a := d.spell(r, layouts[r.IntN(len(layouts))]).in("[", "]")
		again := d.clone()
		again.shuffle(r)
		checkValues(t, all, &d, &again, a, again.spell(r, layouts[r.IntN(len(layouts))]).in("", " "))
		other := again.clone()
		other.mutate(r)
		if checkValues(t, all, &d, &other, a, other.spell(r, layouts[r.IntN(len(layouts))]).in(" ", "")) == nil {
			equals++
		}
	}
	if equals > seeds/3 {
		t.Errorf("%d of %d mutations changed nothing: the test tests too little", equals, seeds)
	}
}

func checkValues(t *testing.T, all map[string]*Comparer, x, y *document, a, b *text) *Difference {
	t.Helper()
	want := firstDifference(x, y).place(a, b)
	for how, c := range all {
		got, err := c.Values(a.src(), a.span, b.src(), b.span)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Fatalf("%s:\n%q\n%q\n%v (-want +got):\n%s", how, a.b, b.b, err, diff)
		}
	}
	return want
}

// largeDocument has strings, gaps and numbers at all places of a window, and values that
// are larger than one.
func largeDocument(r *rand.Rand) document {
	d := document{kind: '['}
	for range 8 {
		inner := document{kind: '{'}
		for _, name := range r.Perm(len(names))[1:] {
			list := document{kind: '['}
			for range 40 {
				list.members = append(list.members, entry{0, randomDocument(r, 3)})
			}
			inner.members = append(inner.members, entry{name, list})
		}
		d.members = append(d.members, entry{0, inner})
	}
	return d
}

func TestLargeValues(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 6))
	d := largeDocument(r)
	a := d.spell(nil, layouts[3])
	if a.span.Len < 2*windowSize {
		t.Fatalf("the document has only %d bytes", a.span.Len)
	}
	c := New()
	if same, err := c.Bytes(a.src(), a.span, a.in("[", "").src(), 1); !same || err != nil {
		t.Errorf("Bytes = %t, %v", same, err)
	}
	for _, l := range layouts {
		b := d.spell(nil, l).in("\n", ",")
		if end, equal, err := c.Text(a.src(), a.span, b.src(), jsonstream.Span{Len: -1}); end != b.span.End() || !equal || err != nil {
			t.Errorf("%s: Text = %d, %t, %v, want up to %d", l.name, end, equal, err, b.span.End())
		}
	}
	for range 5 {
		other := d.clone()
		other.shuffle(r)
		checkValues(t, map[string]*Comparer{"usual": c}, &d, &other, a, other.spell(r, layouts[r.IntN(len(layouts))]))
		other.mutate(r)
		checkValues(t, map[string]*Comparer{"usual": c}, &d, &other, a, other.spell(r, layouts[r.IntN(len(layouts))]))
	}
}

// A border of a window may be anywhere in a token or between two.
func TestWindowBorders(t *testing.T) {
	text := "[\n    \"a\\\\\\\"b\\\\\", 12.5e+3, {\"\\\"\" : true},\r\n\t[ ],\"\\\\\\\\\", \"\", null\n]"
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= len(text); n++ {
		for m := 1; m <= len(text); m++ {
			c := New()
			c.a.buf, c.b.buf = make([]byte, n), make([]byte, m)
			for _, b := range []string{text, compact.String(), strings.ReplaceAll(text, "\n", "\n  ")} {
				end, equal, err := c.Text(strings.NewReader(text), whole(text), strings.NewReader(b), whole(b))
				if end != int64(len(b)) || !equal || err != nil {
					t.Fatalf("windows %d and %d, %q: %d, %t, %v", n, m, b, end, equal, err)
				}
				for _, wrong := range []string{strings.Replace(b, "12.5", "12. 5", 1), strings.Replace(b, `b\\"`, `b\\ "`, 1), strings.Replace(b, `\\\\`, `\\\"`, 1)} {
					if _, equal, err := c.Text(strings.NewReader(text), whole(text), strings.NewReader(wrong), whole(wrong)); equal || err != nil {
						t.Fatalf("windows %d and %d, %q: %t, %v", n, m, wrong, equal, err)
					}
				}
			}
		}
	}
}

func TestEachPair(t *testing.T) {
	type pair struct {
		I    int
		A, B string
	}
	for _, tc := range []struct {
		a, b string
		want []pair
	}{
		{"[]", "[]", nil},
		{"[1]", "[]", nil},
		{"[]", "[1]", nil},
		{`[1, {"a": 2}, "x"]`, ` [ [3] , null , 4]`, []pair{{0, "1", "[3]"}, {1, `{"a": 2}`, "null"}, {2, `"x"`, "4"}}},
		{"[1, 2, 3]", "[4]", []pair{{0, "1", "4"}}},
		{"[1]", "[2, 3, 4]", []pair{{0, "1", "2"}}},
	} {
		scan := func(text string) *jsonstream.Scanner {
			return jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Trusted, jsonstream.Limits{})
		}
		cut := func(text string, s jsonstream.Span) string { return text[s.Off:s.End()] }
		var got []pair
		err := EachPair(scan(tc.a), scan(tc.b), func(i int, a, b jsonstream.Span) error {
			got = append(got, pair{i, cut(tc.a, a), cut(tc.b, b)})
			return nil
		})
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s and %s: %v (-want +got):\n%s", tc.a, tc.b, err, diff)
		}
		enough := errors.New("enough")
		if err := EachPair(scan(tc.a), scan(tc.b), func(int, jsonstream.Span, jsonstream.Span) error { return enough }); len(tc.want) > 0 && err != enough {
			t.Errorf("%s and %s: %v, want the caller's error", tc.a, tc.b, err)
		}
	}
}

// failing is a source that cannot be read from some offset on.
type failing struct {
	text string
	at   int64
}

var errBroken = errors.New("device not ready")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	n, err := strings.NewReader(f.text[:f.at]).ReadAt(p, off)
	if err == io.EOF {
		err = errBroken
	}
	return n, err
}

func TestReadErrors(t *testing.T) {
	a := "[\n  1,\n  {\"a\": \"x\"},\n  [2, 3]\n]"
	b := strings.ReplaceAll(a, "\n", "\n ")
	reordered := `[1.0,{"\u0061":"x"},[2.0,3.0]]`
	fails := func(how string, at int64, err error) {
		t.Helper()
		var read *jsonstream.ReadError
		if !errors.As(err, &read) || !errors.Is(err, errBroken) || read.Offset != at {
			t.Errorf("%s: %#v, want the error of offset %d", how, err, at)
		}
	}
	for how, c := range comparers() {
		for at := range int64(len(a)) {
			_, err := c.Bytes(failing{a, at}, whole(a), strings.NewReader(a), 0)
			fails(how, at, err)
			_, err = c.Bytes(strings.NewReader(a), whole(a), failing{a, at}, 0)
			fails(how, at, err)
			_, _, err = c.Text(failing{a, at}, whole(a), strings.NewReader(b), whole(b))
			fails(how, at, err)
			_, _, err = c.Text(strings.NewReader(b), whole(b), failing{a, at}, whole(a))
			fails(how, at, err)
			_, err = c.Values(failing{a, at}, whole(a), strings.NewReader(reordered), whole(reordered))
			fails(how, at, err)
			_, err = c.Values(strings.NewReader(reordered), whole(reordered), failing{a, at}, whole(a))
			fails(how, at, err)
		}
	}
}

func TestValuesOfAShorterSource(t *testing.T) {
	a, b := "[1, 2]", "[1,3]"
	d, err := New().Values(strings.NewReader(a), whole(a), strings.NewReader(b[:4]), whole(b))
	var read *jsonstream.ReadError
	if d != nil || !errors.As(err, &read) || read.Offset != 4 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a value that has become shorter: %+v, %#v", d, err)
	}
}

// countedReads counts the bytes that are read.
type countedReads struct {
	text []byte
	read int64
}

func (r *countedReads) ReadAt(p []byte, off int64) (int, error) {
	n, err := bytes.NewReader(r.text).ReadAt(p, off)
	r.read += int64(n)
	return n, err
}

// Values that are nested deep and differ deep inside are read a few times, not once for
// each level.
func TestDeepValues(t *testing.T) {
	const depth = 400
	deep := func(open, shut string, inner string) []byte {
		return []byte(strings.Repeat(open, depth) + inner + strings.Repeat(shut, depth))
	}
	filler := strings.Repeat("12345678,", 3*smallValue/9)
	for name, c := range map[string]struct {
		open, shut, token string
	}{
		"objects": {`{"x": 1, "a": `, "}", "/a"},
		"arrays":  {`[7, `, "]", "/1"},
		"behind":  {`[`, ", [8]]", "/0"},
	} {
		a := &countedReads{text: deep(c.open, c.shut, "["+filler+"1]")}
		b := &countedReads{text: deep(c.open, c.shut, "["+filler+"2]")}
		want := strings.Repeat(c.token, depth) + "/" + strconv.Itoa(strings.Count(filler, ","))
		d, err := New().Values(a, spanOf(a.text), b, spanOf(b.text))
		if err != nil || d == nil || d.Pointer != want {
			t.Errorf("%s: %v, %v, want a difference at …%s", name, d, err, want[len(want)-20:])
		}
		most := int64(12*len(a.text) + depth*64<<10)
		if a.read > most || b.read > most {
			t.Errorf("%s: of %d bytes, %d and %d were read", name, len(a.text), a.read, b.read)
		}
		a.read, b.read = 0, 0
		var found []string
		err = New().Each(a, spanOf(a.text), b, spanOf(b.text), func(d Difference) error {
			found = append(found, d.Pointer)
			return nil
		})
		if err != nil || len(found) != 1 || found[0] != want {
			t.Errorf("%s: %d differences, %v", name, len(found), err)
		}
		if a.read > most || b.read > most {
			t.Errorf("%s: for each difference of %d bytes, %d and %d were read", name, len(a.text), a.read, b.read)
		}
	}
}
