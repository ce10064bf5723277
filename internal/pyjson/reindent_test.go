package pyjson_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/google/go-cmp/cmp"
)

// indent lays text out with the standard library, whose layout for two spaces is
// Python's.
func indent(t testing.TB, text string, level int) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(text), strings.Repeat("  ", level), "  "); err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(b.String(), " \t\r\n")
}

func reindent(text string, level int) string {
	return string(pyjson.NewReindenter(level).Append(nil, []byte(text)))
}

// layouts is one document in the layouts that CPython gave it.
type layouts struct {
	indent2, canonical string
	all                []string
}

func layoutVectors(t *testing.T) []layouts {
	const forms = 7
	lines := vectors(t, "layouts.txt")
	if len(lines)%forms != 0 {
		t.Fatalf("%d lines are no groups of %d", len(lines), forms)
	}
	var docs []layouts
	for i := 0; i < len(lines); i += forms {
		texts := make([]string, forms)
		for k := range texts {
			if err := json.Unmarshal([]byte(lines[i+k]), &texts[k]); err != nil {
				t.Fatal(err)
			}
		}
		docs = append(docs, layouts{texts[0], texts[6], texts[:6]})
	}
	return docs
}

func TestReindentVectors(t *testing.T) {
	for _, doc := range layoutVectors(t) {
		for _, text := range doc.all {
			if diff := cmp.Diff(doc.indent2, reindent(text, 0)); diff != "" {
				t.Errorf("reindenting %q (-want +got):\n%s", text, diff)
			}
		}
	}
}

func TestCanonicalVectors(t *testing.T) {
	for _, doc := range layoutVectors(t) {
		if diff := cmp.Diff(doc.canonical, canonical(t, doc.indent2)); diff != "" {
			t.Errorf("canonical %q (-want +got):\n%s", doc.indent2, diff)
		}
	}
}

func TestReindentKeepsLiterals(t *testing.T) {
	text := "[1.50, -0, 1E+2, \"\\u0041\\/ é [ ] { } , : \\\\\", \"\\\"\", true ]"
	want := "[\n  1.50,\n  -0,\n  1E+2,\n  \"\\u0041\\/ é [ ] { } , : \\\\\",\n  \"\\\"\",\n  true\n]"
	if got := reindent(text, 0); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestReindentEmptyContainers(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                 "[]",
		" [ \n ] ":           "[]",
		"[\n    ]":           "[]",
		"{\t}":               "{}",
		"{\n    }":           "{}",
		"[{ }, [\n    ]]":    "[\n      {},\n      []\n    ]",
		"{\"a\":\r\n{\r\n}}": "{\n      \"a\": {}\n    }",
	} {
		if got := reindent(text, 2); got != want {
			t.Errorf("reindenting %q: got %q, want %q", text, got, want)
		}
	}
}

func TestReindentReset(t *testing.T) {
	r := pyjson.NewReindenter(0)
	r.Append(nil, []byte(`["left open \`))
	r.Reset(1)
	if got, want := string(r.Append(nil, []byte("[1]"))), "[\n    1\n  ]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A long string of escapes must not be searched for its end again and again.
func TestReindentManyEscapesInLinearTime(t *testing.T) {
	text := `"` + strings.Repeat(`\u00e9`, 4<<20) + `"`
	if got := reindent(text, 0); got != text {
		t.Error("the string changed")
	}
}

// scribble returns random JSON with white space wherever it may stand.
func scribble(rng *rand.Rand, depth int) string {
	var b strings.Builder
	space := func() {
		for rng.IntN(3) == 0 {
			b.WriteByte(" \t\r\n"[rng.IntN(4)])
		}
	}
	list := func(open, end string, item func()) {
		b.WriteString(open)
		space()
		for i := range rng.IntN(4) {
			if i > 0 {
				b.WriteString(",")
			}
			space()
			item()
			space()
		}
		b.WriteString(end)
	}
	kind := rng.IntN(9)
	if depth > 6 {
		kind = 4 + rng.IntN(5)
	}
	space()
	switch kind {
	case 0, 1:
		list("[", "]", func() { b.WriteString(scribble(rng, depth+1)) })
	case 2, 3:
		list("{", "}", func() {
			b.WriteString(strconv.Quote(strconv.Itoa(rng.IntN(99))))
			space()
			b.WriteString(":")
			b.WriteString(scribble(rng, depth+1))
		})
	default:
		b.WriteString([]string{"null", "true", "-12.5e+7", `"a \" } \\"`, `"\ud800,:["`}[kind-4])
	}
	space()
	return b.String()
}

func TestReindentProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		text, level := scribble(rng, 0), rng.IntN(5)
		want := indent(t, text, level)
		checkReindent(t, text, want, level)
		checkReindent(t, want, want, level) // what is laid out already stays
	}
}

// checkReindent feeds text whole, byte by byte and in every pair of parts of a few.
func checkReindent(t *testing.T, text, want string, level int) {
	t.Helper()
	if got := reindent(text, level); got != want {
		t.Fatalf("level %d, text %q:\n got %q\nwant %q", level, text, got, want)
	}
	r := pyjson.NewReindenter(level)
	var got []byte
	for i := range len(text) { // a byte at a time, not a character
		got = r.Append(got, []byte(text[i:i+1]))
	}
	if string(got) != want {
		t.Fatalf("level %d, text %q byte by byte:\n got %q\nwant %q", level, text, got, want)
	}
	for cut := 0; cut <= len(text); cut += 1 + len(text)/16 {
		r.Reset(level)
		got := r.Append(nil, []byte(text[:cut]))
		if got = r.Append(got, []byte(text[cut:])); string(got) != want {
			t.Fatalf("level %d, text %q cut at %d:\n got %q\nwant %q", level, text, cut, got, want)
		}
	}
}

func FuzzReindent(f *testing.F) {
	f.Add(`{"a": [1, {}, [ ]], "b": "\"\\"}`, 0)
	f.Add("[\n  1,\n  2\n]", 1)
	f.Add("[\n    [\n      true\n    ]\n  ]", 1)
	f.Add("\"Ē\"", 0)
	f.Fuzz(func(t *testing.T, text string, level int) {
		if level < 0 || level > 200 || len(text) > 1<<12 {
			t.Skip("out of the range of interest")
		}
		if !json.Valid([]byte(text)) {
			reindent(text, level) // no promise but this: it returns
			return
		}
		checkReindent(t, text, indent(t, text, level), level)
	})
}

func benchmarkText(b *testing.B, rows int) string {
	b.Helper()
	row := pyjson.Object{
		{"version", 1}, {"worker_id", "7318219031123"}, {"dp_rank", 3}, {"counter_id", 17},
		{"wall_time", 0.0123456789},
		{"scheduled_requests", pyjson.Object{{"num_prefill_requests", 0}, {"sum_prefill_tokens", 0}, {"var_prefill_length", 0.0}}},
		{"prompts", pyjson.Array{pyjson.Object{{"slot", 0}, {"num_tokens", 4095}, {"sha256", strings.Repeat("0f", 32)}}}},
	}
	doc := make(pyjson.Array, rows)
	for i := range doc {
		doc[i] = pyjson.Array{pyjson.Object{{"fpms", pyjson.Array{row}}}}
	}
	return string(pyjson.AppendCompact(nil, doc))
}

func BenchmarkReindent(b *testing.B) {
	compact := benchmarkText(b, 2000)
	for _, bm := range []struct{ name, text string }{
		{"laidOut", indent(b, compact, 1)},
		{"otherLevel", indent(b, compact, 2)},
		{"compact", compact},
	} {
		b.Run(bm.name, func(b *testing.B) {
			const chunk = 1 << 16
			src := []byte(bm.text)
			dst := make([]byte, 0, 4*chunk)
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				r := pyjson.NewReindenter(1)
				for at := 0; at < len(src); at += chunk {
					dst = r.Append(dst[:0], src[at:min(at+chunk, len(src))])
				}
			}
		})
	}
}

func BenchmarkLayoutCheck(b *testing.B) {
	src := []byte(indent(b, benchmarkText(b, 2000), 1))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if !checkLayout(string(src), 1, 1<<16) {
			b.Fatal("not laid out")
		}
	}
}

func BenchmarkShift(b *testing.B) {
	src := []byte(indent(b, benchmarkText(b, 2000), 3))
	dst := make([]byte, 0, len(src))
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		dst = pyjson.NewShifter(2).Append(dst[:0], src)
	}
}
