package jsontest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func TestEdits(t *testing.T) {
	const text = `{"a": {"b": [1, 2, {"c~/": 3}]}, "d": [{"e": 1}, {"e": 2}]}`
	for _, c := range []struct {
		edit Edit
		want string
	}{
		{Set("/a", "null"), `{"a":null,"d":[{"e":1},{"e":2}]}`},
		{Set("/new", "[ ]"), `{"a":{"b":[1,2,{"c~/":3}]},"d":[{"e":1},{"e":2}],"new":[]}`},
		{Set("/a/b/1", "5e1"), `{"a":{"b":[1,5e1,{"c~/":3}]},"d":[{"e":1},{"e":2}]}`},
		{Set("/a/b/-", "4"), `{"a":{"b":[1,2,{"c~/":3},4]},"d":[{"e":1},{"e":2}]}`},
		{Set("/a/b/2/c~0~1", "4"), `{"a":{"b":[1,2,{"c~/":4}]},"d":[{"e":1},{"e":2}]}`},
		{Set("/d/*/e", "0"), `{"a":{"b":[1,2,{"c~/":3}]},"d":[{"e":0},{"e":0}]}`},
		{Set("", "1"), `1`},
		{Del("/a/b/0"), `{"a":{"b":[2,{"c~/":3}]},"d":[{"e":1},{"e":2}]}`},
		{Del("/d/*/e"), `{"a":{"b":[1,2,{"c~/":3}]},"d":[{},{}]}`},
		{Under("/d/1", Set("/e", "7"), Set("/f", "8")), `{"a":{"b":[1,2,{"c~/":3}]},"d":[{"e":1},{"e":7,"f":8}]}`},
		{Under("", Del("/a")), `{"d":[{"e":1},{"e":2}]}`},
	} {
		v := Parse(t, text)
		Apply(t, v, c.edit)
		if got := string(v.AppendCompact(nil)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestFindAndLineColumn(t *testing.T) {
	text := "{\n  \"a\": [\n    1,\n    {\"b\": 2}\n  ]\n}"
	for _, c := range []struct {
		pointer       string
		missing, l, c int
	}{
		{"", 0, 1, 1}, {"/a", 0, 2, 8}, {"/a/1/b", 0, 4, 11}, {"/a/2", 1, 2, 8}, {"/x/y", 2, 1, 1}, {"/a/0/x", 1, 3, 5},
	} {
		v, missing := Find(Parse(t, text), c.pointer)
		line, column := LineColumn([]byte(text), v.Offset)
		if missing != c.missing || line != c.l || column != c.c {
			t.Errorf("%q: %d missing at %d:%d, want %+v", c.pointer, missing, line, column, c)
		}
	}
}

func TestShuffle(t *testing.T) {
	const text = `{"a":{"b":1,"c":2,"d":3},"keep":{"b":1,"c":2,"d":3},"e":[{"f":1,"g":2,"h":3}]}`
	orders := map[string]bool{}
	for seed := range uint64(50) {
		v := Parse(t, text)
		Shuffle(rand.New(rand.NewPCG(seed, 0)), v, "keep")
		orders[string(v.AppendCompact(nil))] = true
		if kept := string(v.Get("keep").AppendCompact(nil)); kept != `{"b":1,"c":2,"d":3}` {
			t.Fatalf("keep is %s", kept)
		}
		if !jsonvalue.Equal(v, Parse(t, text)) {
			t.Fatalf("not the same value: %s", v.AppendCompact(nil))
		}
	}
	if len(orders) < 30 {
		t.Errorf("only %d orders of 216 in 50 runs", len(orders))
	}
}

// failing is a test that notes its failure.
type failing struct {
	testing.TB
	why string
}

func (f *failing) Helper() {}
func (f *failing) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	panic(f)
}

func TestAnEditThatFindsNothingFails(t *testing.T) {
	for _, edit := range []Edit{
		Set("/x/y", "1"), Set("/d/2", "1"), Set("/d/x", "1"), Set("/n/*", "1"), Set("/a", "{"),
		Del("/x"), Del("/d/2"), Del("/x/y"), Under("/x", Set("/y", "1")),
	} {
		f := &failing{TB: t}
		func() {
			defer func() {
				if recover() != any(f) {
					t.Error("did not fail")
				}
			}()
			Apply(f, Parse(t, `{"a": 1, "d": [1, 2], "n": []}`), edit)
		}()
		if f.why == "" {
			t.Error("failed without a reason")
		}
	}
}
