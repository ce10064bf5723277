package schemas_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/probe"
	"github.com/fpm-project/fpm/schemas"
)

// documentsByName returns texts of documents by the schema that they satisfy.
func documentsByName(t testing.TB) map[string][]string {
	t.Helper()
	opt := simulate.Options{Dir: t.TempDir(), Ranks: 2, Points: 2, Raw: 2}
	run, err := simulate.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	demo := readFile(t, filepath.Join("..", "testdata", "demo", "replies.json"))
	path, _ := mergedFiles(t, simulate.Options{}, nil)
	result, err := probe.Run(t.Context(), probe.Options{Merged: path, Probe: probed(probe.Input{Name: "-", Replies: demo})})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]string{
		"rank-artifact": {
			string(readFile(t, run.Files[1])),
			string(readFile(t, "testdata/rank-artifact.json")),
			string(readFile(t, "testdata/rank-artifact-legacy.json")),
		},
		"merged-artifact":      {string(readFile(t, path))},
		"worker-probe":         {string(readFile(t, result.Sidecar))},
		"worker-probe-replies": {string(demo)},
		"report":               {string(printed(t, fullReport()))},
	}
}

// compiled is a schema compiled both ways.
type compiled struct {
	whole  *schemas.Validator
	stream *schemas.Stream
}

func compile(t testing.TB, name string) compiled {
	t.Helper()
	whole, err := schemas.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := schemas.CompileStream(name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled{whole, stream}
}

// streamed returns what the stream says of a document, sorted.
func (c compiled) streamed(t testing.TB, text string) (list []schemas.Located) {
	t.Helper()
	if err := c.stream.Check(strings.NewReader(text), func(l schemas.Located) { list = append(list, l) }); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b schemas.Located) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return list
}

// Element by element the verdict is that of the whole, and each offset is the value's.
func TestStreamAgreesWithTheWhole(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	broken := 0
	for name, texts := range documentsByName(t) {
		c := compile(t, name)
		for _, text := range texts {
			if got := c.streamed(t, text); len(got) > 0 {
				t.Fatalf("%s: a sound document: %+v", name, got)
			}
			for range 20 {
				doc := jsontest.Parse(t, text)
				for range 1 + rng.IntN(3) {
					damage(rng, doc)
				}
				broken += c.sameVerdict(t, name, jsontest.Indent(doc))
			}
		}
	}
	if broken < 60 {
		t.Errorf("only %d documents broke their schema", broken)
	}
}

// sameVerdict compares the two ways and returns 1 for a document that breaks its schema.
func (c compiled) sameVerdict(t *testing.T, name, text string) int {
	t.Helper()
	want, err := c.whole.Validate([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []schemas.Violation
	doc := jsontest.Parse(t, text)
	for _, l := range c.streamed(t, text) {
		got = append(got, l.Violation)
		at, missing := jsontest.Find(doc, l.Pointer)
		if missing > 0 || at.Offset != l.Offset {
			t.Errorf("%s at %d, want %d (%d steps missing)", l.Pointer, l.Offset, at.Offset, missing)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-whole +stream):\n%s\nof %s", name, diff, text)
	}
	return min(1, len(got))
}

// damage changes one value somewhere in a document.
func damage(rng *rand.Rand, v *jsonvalue.Value) {
	for depth := 0; ; depth++ {
		n := len(v.Elems) + len(v.Members)
		if n == 0 || depth > 0 && rng.IntN(5) == 0 {
			break
		}
		if i := rng.IntN(n); v.Kind == jsonvalue.Array {
			v = &v.Elems[i]
		} else {
			v = &v.Members[i].Value
		}
	}
	switch {
	case len(v.Elems) > 0 && rng.IntN(2) == 0:
		v.Elems = v.Elems[:rng.IntN(len(v.Elems))]
	case len(v.Elems) > 0:
		v.Elems = append(v.Elems, *v.Elems[0].Clone())
	case len(v.Members) > 0 && rng.IntN(2) == 0:
		i := rng.IntN(len(v.Members))
		v.Members = slices.Delete(v.Members, i, i+1)
	default:
		texts := []string{"null", "true", `"x"`, `""`, "-1", "1.0", "0", "7", "1e999999999", "[]", "{}", "[null,1]", `{"x":1,"0":[2]}`}
		parsed, err := jsonvalue.Parse([]byte(texts[rng.IntN(len(texts))]), 0)
		if err != nil {
			panic(err) // none of the texts above
		}
		*v = *parsed
	}
}

// The bounds of arrays and objects hold although their parts are judged one by one.
func TestStreamKeepsBounds(t *testing.T) {
	path, _ := mergedFiles(t, simulate.Options{}, nil)
	text := string(readFile(t, path))
	merged := compile(t, "merged-artifact")
	for _, c := range []struct{ pointer, value, want string }{
		{"/results", "[]", "/results minItems must have at least 1 elements"},
		{"/skipped_points", "[{},{}]", "/skipped_points maxItems must have at most 0 elements"},
		{"/iteration_groups/0/rank_results/1/fpms", "[]", "/iteration_groups/0/rank_results/1/fpms minItems must have at least 1 elements"},
		{"/timing/rank_benchmark_elapsed_seconds", "{}", "/timing/rank_benchmark_elapsed_seconds minProperties must have at least 1 keys"},
		{"/timing/rank_benchmark_elapsed_seconds", `{"00":1}`, `/timing/rank_benchmark_elapsed_seconds/00 pattern the key must match "^(0|[1-9][0-9]*)$"`},
		{"/iteration_groups/1/point/rows", "[[1,2],[1,2,3],[1]]", "/iteration_groups/1/point/rows/1 maxItems must have at most 2 elements;/iteration_groups/1/point/rows/2 minItems must have at least 2 elements"},
	} {
		doc := jsontest.Parse(t, text)
		jsontest.Apply(t, doc, jsontest.Set(c.pointer, c.value))
		var got []string
		for _, l := range merged.streamed(t, jsontest.Indent(doc)) {
			got = append(got, l.Pointer+" "+l.Keyword+" "+l.Message)
		}
		if strings.Join(got, ";") != c.want {
			t.Errorf("%s = %s: %q, want %s", c.pointer, c.value, got, c.want)
		}
	}
}

func TestStreamErrors(t *testing.T) {
	none := func(schemas.Located) { t.Error("a violation") }
	var unknown *schemas.UnknownError
	if err := schemas.CheckStream(strings.NewReader("{}"), "no-such", none); !errors.As(err, &unknown) {
		t.Errorf("an unknown schema: %v", err)
	}
	for text, offset := range map[string]int64{"": 0, `{"dp": }`: 7, `{"dp": {}`: 9} {
		var syntax *schemas.SyntaxError
		err := schemas.CheckStream(strings.NewReader(text), "rank-artifact", none)
		if !errors.As(err, &syntax) || syntax.Offset != offset {
			t.Errorf("%q: %v, want a SyntaxError at %d", text, err, offset)
		}
	}
	failed := errors.New("the disk is gone")
	if err := schemas.CheckStream(failing{failed}, "rank-artifact", none); !errors.Is(err, failed) {
		t.Errorf("a read error: %v", err)
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// endless is a document with a part that repeats, without being held: head, the element n
// times with commas between, tail.
type endless struct {
	head, element, tail string
	n                   int64
}

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	unit := e.element + ","
	body := int64(len(unit))*e.n - 1
	n := 0
	for n < len(p) {
		at := off + int64(n)
		var rest string
		switch inside := at - int64(len(e.head)); {
		case inside < 0:
			rest = e.head[at:]
		case inside < body:
			rest = unit[inside%int64(len(unit)):]
			rest = rest[:min(int64(len(rest)), body-inside)]
		case inside-body < int64(len(e.tail)):
			rest = e.tail[inside-body:]
		default:
			return n, io.EOF
		}
		n += copy(p[n:], rest)
	}
	return n, nil
}

// However long an array or an unknown value is, little is held of it.
func TestStreamHoldsLittle(t *testing.T) {
	for what, doc := range map[string]endless{
		"results":  {`{"results":[`, `{"point":{"benchmark_id":1},"fpms":[]}`, `]}`, 20_000},
		"unknown":  {`{"unknown":[`, `{"a":[1,2,3]}`, `]}`, 200_000},
		"integers": {`{"cudagraph":{"capture_sizes":[`, `-1`, `]}}`, 20_000},
		"samples":  {`{"results":[{"fpms":[{"benchmark_measurement":{"raw_fpms":[`, `{"dp_rank":0,"counter_id":0}`, `]}}]}]}`, 20_000},
	} {
		s, err := schemas.CompileStream("rank-artifact")
		if err != nil {
			t.Fatal(err)
		}
		base, most, n := heap(), uint64(0), 0
		if err := s.Check(doc, func(schemas.Located) {
			if n++; n%10_000 == 1 {
				most = max(most, heap())
			}
		}); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if most == 0 {
			t.Errorf("%s: %d violations: memory was not looked at", what, n)
		}
		if most > base+2<<20 {
			t.Errorf("%s: %d bytes are held", what, most-base)
		}
	}
}

// heap returns the bytes that are held.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// FuzzStream: on any strict document both ways agree.
func FuzzStream(f *testing.F) {
	for name, texts := range documentsByName(f) {
		for _, text := range texts {
			f.Add(slices.Index(schemas.Names(), name), []byte(text))
		}
	}
	var all []compiled
	for _, name := range schemas.Names() {
		all = append(all, compile(f, name))
	}
	f.Add(0, []byte(`{"dp":{"rank":1e1000001}}`))
	f.Add(1, []byte(`{"ranks":{"a%2f/~":1},"x\ud800":2}`))
	f.Fuzz(func(t *testing.T, which int, document []byte) {
		c := all[uint(which)%uint(len(all))]
		want, err := c.whole.Validate(document)
		if err != nil || bytes.Contains(document, []byte(`\u`)) {
			return // not strict, or with keys that the two ways spell differently
		}
		var got []schemas.Violation
		if err := c.stream.Check(bytes.NewReader(document), func(l schemas.Located) { got = append(got, l.Violation) }); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(got, func(a, b schemas.Violation) int {
			return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
		})
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Fatalf("(-whole +stream):\n%s", diff)
		}
	})
}

func ExampleCheckStream() {
	document := strings.NewReader(`{"run_id": "r", "results": [{"point": {"benchmark_id": "one"}, "fpms": []}]}`)
	err := schemas.CheckStream(document, "rank-artifact", func(l schemas.Located) {
		if l.Keyword != "required" {
			fmt.Printf("byte %d, %s: %s\n", l.Offset, l.Pointer, l.Message)
		}
	})
	fmt.Println(err)
	// Output:
	// byte 71, /results/0/fpms: must have at least 1 elements
	// byte 55, /results/0/point/benchmark_id: expected integer, but got string
	// <nil>
}
