package jsonvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	text := ` {"a" : [1, "x\u00e9", null], "b": {"c": true}, "d": [], "e": {}} `
	got, err := Parse([]byte(text), 100)
	if err != nil {
		t.Fatal(err)
	}
	at := func(s string) int64 { return 100 + int64(strings.Index(text, s)) }
	scalar := func(k Kind, raw string) Value { return Value{Kind: k, Raw: []byte(raw), Offset: at(raw)} }
	want := &Value{Kind: Object, Offset: 101, Members: []Member{
		{"a", []byte(`"a"`), Value{Kind: Array, Offset: at(`[1`), Elems: []Value{
			scalar(Number, "1"), scalar(String, `"x\u00e9"`), scalar(Null, "null"),
		}}},
		{"b", []byte(`"b"`), Value{Kind: Object, Offset: at(`{"c"`), Members: []Member{
			{"c", []byte(`"c"`), scalar(True, "true")},
		}}},
		{"d", []byte(`"d"`), Value{Kind: Array, Offset: at(`[]`), Elems: []Value{}}},
		{"e", []byte(`"e"`), Value{Kind: Object, Offset: at(`{}`), Members: []Member{}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestParseAliasesText(t *testing.T) {
	text := []byte(`["a", 12]`)
	v, err := Parse(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if &v.Elems[1].Raw[0] != &text[6] || cap(v.Elems[1].Raw) != 2 {
		t.Errorf("Raw is not the capped slice of the text")
	}
}

func TestParseErrors(t *testing.T) {
	for _, text := range []string{"", " ", "[", "[1", "[1,", "[1,]", `{"a"`, `{"a":`, `{"a":1,}`, `{1:2}`, "]", "nul", "NaN", "01", `"a`, "1 2", "1]", "[] []", `"\x"`, "{\"a\":1]"} {
		if v, err := Parse([]byte(text), 0); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, v)
		}
	}
	if _, err := Parse([]byte(`{"a":`), 0); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut text: %v, want io.ErrUnexpectedEOF", err)
	}
}

func TestParseDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	if _, err := Parse(nested(MaxDepth), 0); err != nil {
		t.Errorf("depth %d: %v", MaxDepth, err)
	}
	if _, err := Parse(nested(MaxDepth+1), 0); !errors.Is(err, ErrDepth) {
		t.Errorf("depth %d: %v, want ErrDepth", MaxDepth+1, err)
	}
	if _, err := Parse([]byte(strings.Repeat(`{"a":`, 1<<20)), 0); !errors.Is(err, ErrDepth) {
		t.Errorf("a million levels: %v, want ErrDepth", err)
	}
}

func TestGet(t *testing.T) {
	v := mustParse(t, `{"a": {"b\u00e9": 1}, "c": null}`)
	for _, c := range []struct {
		got  *Value
		want string
	}{
		{v.Get("a").Get("bé"), "1"},
		{v.Get("c"), "null"},
		{v.Get("x"), "absent"},
		{v.Get("x").Get("y"), "absent"},
		{v.Get("c").Get("y"), "absent"},
	} {
		if got := c.got.Excerpt(99); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestNumbers(t *testing.T) {
	type row struct {
		text   string
		isInt  bool
		n      int64
		fits   bool
		f      float64
		finite bool
	}
	for _, want := range []row{
		{"0", true, 0, true, 0, true},
		{"-0", true, 0, true, math.Copysign(0, -1), true},
		{"1.0", false, 0, false, 1, true},
		{"1e2", false, 0, false, 100, true},
		{"9223372036854775807", true, math.MaxInt64, true, 1 << 63, true},
		{"-9223372036854775808", true, math.MinInt64, true, -1 << 63, true},
		{"9223372036854775808", true, math.MaxInt64, false, 1 << 63, true},
		{"1e400", false, 0, false, math.Inf(1), false},
		{"-1e99999999999999999999", false, 0, false, math.Inf(-1), false},
		{"1e-400", false, 0, false, 0, true},
		{"0e99999999999999999999", false, 0, false, 0, true},
		{"0." + strings.Repeat("0", 200000) + "15e200001", false, 0, false, 1.5, true},
		{"-25" + strings.Repeat("0", 200000) + "e-200001", false, 0, false, -2.5, true},
		{"1" + strings.Repeat("0", 20000) + "e99999999999999999999", false, 0, false, math.Inf(1), false},
		{"0." + strings.Repeat("0", 20000), false, 0, false, 0, true},
		{"true", false, 0, false, 0, false},
		{`"1"`, false, 0, false, 0, false},
		{"null", false, 0, false, 0, false},
	} {
		v := mustParse(t, want.text)
		got := row{text: want.text, isInt: v.IsInt()}
		got.n, got.fits = v.Int64()
		got.f, got.finite = v.Float64()
		if got != want {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
	var absent *Value
	if _, ok := absent.Int64(); ok || absent.IsInt() {
		t.Error("an absent value is an integer")
	}
	if _, finite := absent.Float64(); finite {
		t.Error("an absent value is finite")
	}
}

func TestStr(t *testing.T) {
	for text, want := range map[string]string{
		`""`:                   "",
		`"a/b"`:                "a/b",
		`"a\/b"`:               "a/b",
		`"\"\\\b\f\n\r\t"`:     "\"\\\b\f\n\r\t",
		`"\u00E9\u00e9é"`:      "ééé",
		`"\ud83d\ude00😀"`:      "😀😀",
		`"\ud800"`:             "\xed\xa0\x80",
		`"\uDFFF"`:             "\xed\xbf\xbf",
		`"\ude00\ud83d"`:       "\xed\xb8\x80\xed\xa0\xbd",
		`"\ud83d\ud83d\ude00"`: "\xed\xa0\xbd😀",
		`"\ud800\u0041"`:       "\xed\xa0\x80A",
		`"\ud800\\u0041"`:      "\xed\xa0\x80\\u0041",
		`"\ud800x"`:            "\xed\xa0\x80x",
		`"\ufffd"`:             "\ufffd",
		`"\u0000"`:             "\x00",
	} {
		got, ok := mustParse(t, text).Str()
		if !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, ok, want)
		}
	}
	var absent *Value
	if _, ok := absent.Str(); ok {
		t.Error("an absent value is a string")
	}
	if _, ok := mustParse(t, "1").Str(); ok {
		t.Error("a number is a string")
	}
}

func TestKindString(t *testing.T) {
	for text, want := range map[string]string{"null": "null", "true": "boolean", "false": "boolean", `""`: "string", "-1": "number", "[]": "array", "{}": "object"} {
		if got := mustParse(t, text).Kind.String(); got != want {
			t.Errorf("%s: kind %s, want %s", text, got, want)
		}
	}
	if got := Kind(0).String(); got != "invalid" {
		t.Errorf("zero kind: %s", got)
	}
}

func TestExcerpt(t *testing.T) {
	long := `"` + strings.Repeat("é", 1000) + `"`
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{`{ "a" : [ 1 , {} ] , "b" : "x\u00e9" }`, 99, `{"a":[1,{}],"b":"x\u00e9"}`},
		{`[1, 2]`, 5, `[1,2]`},
		{`[1, 23]`, 5, `[1…`},
		{`[1, 2]`, 0, "…"},
		{`[1, 2]`, -7, "…"},
		{long, 8, `"éé…`},
		{long, 9, `"éé…`},
		{`{"a":` + long + `}`, 12, `{"a":"é…`},
		{`["` + strings.Repeat("x", 50) + `",` + long + `]`, 20, `["xxxxxxxxxxxxxxx…`},
		{`{"` + strings.Repeat("x", 50) + `":1}`, 20, `{"xxxxxxxxxxxxxxx…`},
	} {
		got := mustParse(t, c.text).Excerpt(c.limit)
		if got != c.want || len(got) > max(c.limit, 3) {
			t.Errorf("Excerpt(%.40s, %d) = %s, want %s", c.text, c.limit, got, c.want)
		}
	}
}

// An excerpt of a large value must not lay out all of it.
func TestExcerptIsBounded(t *testing.T) {
	v := mustParse(t, "["+strings.Repeat(`{"a":[1]},`, 100000)+"0]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		v.Excerpt(80)
	}
	runtime.ReadMemStats(&after)
	allocated := (after.TotalAlloc - before.TotalAlloc) / 100
	if allocated > 4096 {
		t.Errorf("an excerpt of 80 bytes allocated %d bytes", allocated)
	}
}

func TestAppendIndent(t *testing.T) {
	v := mustParse(t, `{"a":[],"b":{},"c":[1.50,{"\u00e9\/":null}]}`)
	want := "{\n    \"a\": [],\n    \"b\": {},\n    \"c\": [\n      1.50,\n      {\n        \"\\u00e9\\/\": null\n      }\n    ]\n  }"
	if diff := cmp.Diff(want, string(v.AppendIndent(nil, 1))); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}
	if got := string(mustParse(t, " 7 ").AppendIndent([]byte("x"), 3)); got != "x7" {
		t.Errorf("scalar: %q", got)
	}
}

// The layouts of the standard library, which keeps literals too, are the reference.
func TestLayoutsOfRandomDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		text := randomDocument(r, 3).spell(r)
		v := mustParse(t, text)
		var indented, compact bytes.Buffer
		if err := errors.Join(json.Indent(&indented, []byte(strings.TrimSpace(text)), "", "  "), json.Compact(&compact, []byte(text))); err != nil {
			t.Fatal(err)
		}
		if got := string(v.AppendIndent(nil, 0)); got != indented.String() {
			t.Fatalf("indented:\n%s\nwant:\n%s", got, indented.String())
		}
		if got := string(v.AppendCompact(nil)); got != compact.String() {
			t.Fatalf("compact:\n%s\nwant:\n%s", got, compact.String())
		}
	}
}

func TestClone(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 100 {
		text := []byte(randomDocument(r, 3).spell(r))
		v, err := Parse(text, 5)
		if err != nil {
			t.Fatal(err)
		}
		want := v.Clone()
		got := v.Clone()
		if diff := cmp.Diff(v, got); diff != "" {
			t.Fatalf("clone (-original +clone):\n%s", diff)
		}
		clear(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the clone changed with the text:\n%s", diff)
		}
	}
	var absent *Value
	if absent.Clone() != nil {
		t.Error("clone of an absent value")
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, `{"b":2.0,"a":10e-1}`, true},
		{`{"a":1}`, `{"a":1,"b":null}`, false},
		{`{"a":1,"b":null}`, `{"a":1,"c":null}`, false},
		{`{"\u0061":1}`, `{"a":1}`, true},
		{`{"\ud800":1}`, `{"\ud801":1}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[1]`, `[1,2]`, false},
		{`[]`, `{}`, false},
		{`true`, `1`, false},
		{`false`, `0`, false},
		{`true`, `true`, true},
		{`true`, `false`, false},
		{`null`, `null`, true},
		{`null`, `false`, false},
		{`"1"`, `1`, false},
		{`0.1`, `0.10000000000000001`, false},
		{`0`, `-0`, true},
		{`0.0`, `-0e5`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`9007199254740993`, `9007199254740993.0`, true},
		{`1e1000000000`, `10e999999999`, true},
		{`1e1000000000`, `1e1000000001`, false},
		{`"\ud83d\ude00"`, `"😀"`, true},
		{`"\ud800"`, `"\ud801"`, false},
		{`"\ud800"`, `"\ufffd"`, false},
		{`"\uD800"`, `"\ud800"`, true},
		{`"\/"`, `"/"`, true},
		{`"é"`, `"\u00E9"`, true},
		{`"e\u0301"`, `"é"`, false},
		{`"a"`, `"b"`, false},
	} {
		a, b := mustParse(t, c.a), mustParse(t, c.b)
		if Equal(a, b) != c.want || Equal(b, a) != c.want {
			t.Errorf("%s and %s: equal %v, %v; want %v", c.a, c.b, Equal(a, b), Equal(b, a), c.want)
		}
	}
	null := mustParse(t, "null")
	if Equal(nil, null) || Equal(null, nil) || !Equal(nil, nil) {
		t.Error("absent must equal absent alone")
	}
}

func TestEqualWhateverTheSpelling(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		doc := randomDocument(r, 3)
		plain, a, b := mustParse(t, doc.spell(nil)), mustParse(t, doc.spell(r)), mustParse(t, doc.spell(r))
		for _, pair := range [][2]*Value{{a, a}, {plain, a}, {a, plain}, {a, b}} {
			if !Equal(pair[0], pair[1]) {
				t.Fatalf("not equal:\n%s\n%s", pair[0].AppendCompact(nil), pair[1].AppendCompact(nil))
			}
			Diff(pair[0], pair[1], "", func(d Difference) bool {
				t.Fatalf("a difference at %q between equals", d.Pointer)
				return false
			})
		}
	}
}

func TestOneChangeIsOneDifference(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 2000 {
		doc := randomDocument(r, 3)
		before := mustParse(t, doc.spell(r))
		place := "/x" + doc.mutate(r)
		after := mustParse(t, doc.spell(r))
		if Equal(before, after) || Equal(after, before) {
			t.Fatalf("equal in spite of a change at %s", place)
		}
		if got := pointers(before, after); !cmp.Equal(got, []string{place}) {
			t.Fatalf("differences at %q, changed %q", got, place)
		}
		if got := pointers(after, before); !cmp.Equal(got, []string{place}) {
			t.Fatalf("reversed: differences at %q, changed %q", got, place)
		}
	}
}

func pointers(a, b *Value) (places []string) {
	Diff(a, b, "/x", func(d Difference) bool {
		places = append(places, d.Pointer)
		return true
	})
	return places
}

func TestDiff(t *testing.T) {
	type row struct{ Pointer, A, B, Parent string }
	show := func(v *Value) string { return v.Excerpt(99) }
	for _, c := range []struct {
		name, a, b string
		want       []row
	}{
		{"equal", `{"a":[1]}`, `{"a":[1.0]}`, nil},
		{"top", `1`, `2`, []row{{"", "1", "2", "absent"}}},
		{"order", `{"z":1,"a":2}`, `{"new":0,"a":3,"z":4}`, []row{
			{"/z", "1", "4", `{"new":0,"a":3,"z":4}`}, {"/a", "2", "3", `{"new":0,"a":3,"z":4}`}, {"/new", "absent", "0", `{"new":0,"a":3,"z":4}`},
		}},
		{"missing", `{"a":{"b":null}}`, `{"a":{}}`, []row{{"/a/b", "null", "absent", "{}"}}},
		{"kinds", `{"a":{}}`, `{"a":[]}`, []row{{"/a", "{}", "[]", `{"a":[]}`}}},
		{"longer", `[1]`, `[2,3,4]`, []row{{"/0", "1", "2", "[2,3,4]"}, {"/1", "absent", "3", "[2,3,4]"}, {"/2", "absent", "4", "[2,3,4]"}}},
		{"shorter", `[1,[2]]`, `[1]`, []row{{"/1", "[2]", "absent", "[1]"}}},
		{"tokens", `{"a/b~":{"":1}}`, `{"a/b~":{"":2}}`, []row{{"/a~1b~0/", "1", "2", `{"":2}`}}},
	} {
		var got []row
		Diff(mustParse(t, c.a), mustParse(t, c.b), "", func(d Difference) bool {
			got = append(got, row{d.Pointer, show(d.A), show(d.B), show(d.Parent)})
			return true
		})
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestDiffOfAbsentValues(t *testing.T) {
	v := mustParse(t, "[1]")
	for _, c := range []struct {
		a, b *Value
		want int
	}{{nil, nil, 0}, {v, nil, 1}, {nil, v, 1}} {
		if got := len(pointers(c.a, c.b)); got != c.want {
			t.Errorf("%s and %s: %d differences, want %d", c.a.Excerpt(9), c.b.Excerpt(9), got, c.want)
		}
	}
}

func TestDiffStops(t *testing.T) {
	a, b := mustParse(t, `{"a":[1,2],"b":3}`), mustParse(t, `{"c":0,"a":[5,6,7],"b":4}`)
	for stop := range 5 {
		calls := 0
		Diff(a, b, "", func(Difference) bool { calls++; return calls <= stop })
		if calls != stop+1 {
			t.Errorf("told to stop at call %d, made %d", stop+1, calls)
		}
	}
}

// Two objects with many keys in opposite orders must not cost the product of their sizes.
func TestLargeObjects(t *testing.T) {
	const keys = 200000
	var up, down strings.Builder
	for i := range keys {
		up.WriteString(spellNumberKey(i))
		down.WriteString(spellNumberKey(keys - 1 - i))
	}
	a := mustParse(t, "{"+strings.TrimSuffix(up.String(), ",")+"}")
	b := mustParse(t, "{"+strings.TrimSuffix(down.String(), ",")+"}")
	start := time.Now()
	if !Equal(a, b) || len(pointers(a, b)) != 0 {
		t.Error("the same keys in another order differ")
	}
	if spent := time.Since(start); spent > time.Minute {
		t.Errorf("comparing %d keys took %v", keys, spent)
	}
}

func spellNumberKey(i int) string {
	return `"` + big.NewInt(int64(i)).String() + `":1,`
}

func TestCompareNumbers(t *testing.T) {
	huge := strings.Repeat("9", 5000) // an exponent of thousands of digits
	one := "1" + strings.Repeat("0", 5000)
	ascending := []string{
		"-1e" + one, "-1e" + huge, "-1e1000000000000000000", "-10", "-9.5", "-1", "-1e-5", "-1e-" + huge, "-1e-" + one,
		"0", "1e-" + one, "1e-" + huge, "0.01e-1000000000000000000", "0.1e-1000000000000000000", "0.00123", "0.0123e0", "0.1", "0.10000000000000001", "1", "1.5", "1.50000000000000000000000000001", "9.99", "10", "99", "100", "12345678901234567890", "12345678901234567891",
		"1e99", "1e999999999999999998", "1e999999999999999999", "1e1000000000000000000", "100e1000000000000000000", "1e" + huge, "1e" + one, "2e" + one,
	}
	for i, a := range ascending {
		for j, b := range ascending {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := CompareNumbers([]byte(a), []byte(b)); got != want {
				t.Errorf("%.30s against %.30s: %d, want %d", a, b, got, want)
			}
			if got := EqualNumbers([]byte(a), []byte(b)); got != (i == j) {
				t.Errorf("%.30s equals %.30s: %v", a, b, got)
			}
		}
	}
}

func TestEqualNumbers(t *testing.T) {
	huge, carried := strings.Repeat("9", 5000), "1"+strings.Repeat("0", 5000)
	for _, c := range [][2]string{
		{"1", "1.0"}, {"1", "10e-1"}, {"1", "0.1e1"}, {"1", "0.0001E+0004"}, {"100", "1e2"}, {"0", "-0"}, {"0", "0e9"}, {"-0.0", "0e-" + huge},
		{"10e" + huge, "1e" + carried},
		{"0.1e" + carried, "1e" + huge},
		{"1e-" + huge, "10e-" + carried},
		{"0.1e-" + huge, "1e-" + carried},
		{"1e000000000000000000000000005", "1e5"},
		{"10e999999999999999999", "1e1000000000000000000"},
		{"123.4500e-2", "1.2345"},
		{"1e-1000000000000000000", "0.01e-999999999999999998"},
	} {
		if !EqualNumbers([]byte(c[0]), []byte(c[1])) || !EqualNumbers([]byte(c[1]), []byte(c[0])) {
			t.Errorf("%.40s and %.40s are not equal", c[0], c[1])
		}
	}
}

// A long literal must cost time in proportion to its length only.
func TestEqualNumbersIsLinear(t *testing.T) {
	digits := strings.Repeat("7", 8<<20)
	start := time.Now()
	if EqualNumbers([]byte("1e"+digits), []byte("2e"+digits)) || !EqualNumbers([]byte("0.1e"+digits), []byte("0.10e"+digits)) || EqualNumbers([]byte(digits), []byte(digits+".5")) {
		t.Error("wrong verdict on long literals")
	}
	if spent := time.Since(start); spent > time.Minute {
		t.Errorf("took %v", spent)
	}
}

func TestEqualAllocatesNothing(t *testing.T) {
	text := `{"point":{"batch_size":4,"point_type":"decode","rows":null},"wall_time":0.062,"ranks":[0,1,2]}`
	a, b := mustParse(t, text), mustParse(t, text)
	if n := testing.AllocsPerRun(100, func() { Equal(a, b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	x, y := []byte("12.50"), []byte("1.25e1")
	if n := testing.AllocsPerRun(100, func() { EqualNumbers(x, y) }); n != 0 {
		t.Errorf("numbers: %v allocations", n)
	}
}

func TestAppendToken(t *testing.T) {
	if got := string(AppendToken([]byte("/a"), "b~c/d")); got != "/a/b~0c~1d" {
		t.Error(got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.50,"x\ud800"],"b":{}}`, "[[[]]]", ` "é" `, "-0e+9", "tru", `{"a":1}}`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		valid := jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		v, err := Parse(bytes.Clone(text), 0)
		if errors.Is(err, ErrDepth) {
			return
		}
		if (err == nil) != valid {
			t.Fatalf("Parse: %v, valid: %v", err, valid)
		}
		if err != nil {
			return
		}
		checkOffsets(t, text, v)
		again, err := Parse(v.AppendIndent(nil, 0), 0)
		if err != nil {
			t.Fatal(err)
		}
		unique := jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true))
		if unique && (!Equal(v, v) || !Equal(v, again) || len(pointers(again, v)) > 0) {
			t.Fatalf("the value is not equal to itself: %s", v.AppendCompact(nil))
		}
		if got := v.Excerpt(20); len(got) > 20 {
			t.Fatalf("excerpt of %d bytes", len(got))
		}
	})
}

func checkOffsets(t *testing.T, text []byte, v *Value) {
	if kindOf(text[v.Offset]) != v.Kind || !bytes.HasPrefix(text[v.Offset:], v.Raw) {
		t.Fatalf("offset %d of %s: text there is %.20q", v.Offset, v.Kind, text[v.Offset:])
	}
	for i := range v.Elems {
		checkOffsets(t, text, &v.Elems[i])
	}
	for i := range v.Members {
		checkOffsets(t, text, &v.Members[i].Value)
	}
}

func FuzzEqualNumbers(f *testing.F) {
	f.Add("1.0", "10e-1")
	f.Add("-0", "0e5")
	f.Add("0.00120", "12E-4")
	f.Add("1e19", "10000000000000000000")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := rat(a)
		y, okY := rat(b)
		if !okX || !okY {
			t.Skip("not two numbers of small exponents")
		}
		if got, want := CompareNumbers([]byte(a), []byte(b)), x.Cmp(y); got != want {
			t.Errorf("CompareNumbers(%s, %s) = %d, want %d", a, b, got, want)
		}
		if got, want := EqualNumbers([]byte(a), []byte(b)), x.Cmp(y) == 0; got != want {
			t.Errorf("EqualNumbers(%s, %s) = %v, want %v", a, b, got, want)
		}
		f, finite := (&Value{Kind: Number, Raw: []byte(a)}).Float64()
		if want, _ := x.Float64(); math.Abs(want) != math.Abs(f) || finite == math.IsInf(want, 0) {
			t.Errorf("Float64(%s) = %v, %v, want %v", a, f, finite, want)
		}
		if shifted := a + "e-0"; !strings.ContainsAny(a, "eE") && !EqualNumbers([]byte(a), []byte(shifted)) {
			t.Errorf("%s differs from %s", a, shifted)
		}
	})
}

// rat converts a JSON number with an exponent of up to three digits.
func rat(literal string) (*big.Rat, bool) {
	if !jsontext.Value(literal).IsValid() || kindOf(literal[0]) != Number || strings.TrimSpace(literal) != literal {
		return nil, false
	}
	if e := strings.IndexAny(literal, "eE"); e >= 0 && len(literal)-e > 5 {
		return nil, false
	}
	return new(big.Rat).SetString(literal)
}

func FuzzUnquote(f *testing.F) {
	for _, seed := range []string{`"a"`, `"\ud83d\ude00"`, `"\ud800\u0041"`, `"\/\b\\"`, `"é\u00e9"`, `"\uDBFF\uDFFF"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, literal string) {
		if !jsontext.Value(literal).IsValid(jsontext.AllowInvalidUTF8(true)) || literal[0] != '"' || literal[len(literal)-1] != '"' {
			t.Skip("not a quoted literal")
		}
		got := Unquote(nil, []byte(literal))
		// The standard decoder replaces lone surrogates and broken UTF-8; elsewhere it agrees.
		var want string
		if err := json.Unmarshal([]byte(literal), &want); err != nil {
			t.Fatal(err)
		}
		if !strings.ContainsRune(want, '\ufffd') && want != string(got) {
			t.Errorf("Unquote(%s) = %q, want %q", literal, got, want)
		}
		if !EqualStrings([]byte(literal), []byte(literal)) {
			t.Errorf("%s differs from itself", literal)
		}
		if requoted := requote(got); !EqualStrings([]byte(literal), requoted) || !EqualStrings(requoted, []byte(literal)) {
			t.Errorf("%s differs from its other spelling %s", literal, requoted)
		}
	})
}

// requote writes text with the shortest escapes that JSON allows, WTF-8 as it is.
func requote(text []byte) []byte {
	literal := []byte{'"'}
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			literal = append(literal, '\\', c)
		case c < ' ':
			literal = append(literal, spellUnit(nil, rune(c))...)
		default:
			literal = append(literal, c)
		}
	}
	return append(literal, '"')
}

func BenchmarkParse(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 5))
	doc := &document{kind: Array}
	for range 200 {
		doc.elems = append(doc.elems, randomDocument(r, 3))
	}
	text := mustParse(b, doc.spell(r)).AppendIndent(nil, 0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(text, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func countTree(v *Value) int {
	n := 1
	for i := range v.Elems {
		n += countTree(&v.Elems[i])
	}
	for i := range v.Members {
		n += countTree(&v.Members[i].Value)
	}
	return n
}

// The values of a text are counted as they are in its tree, and a text of any length is
// refused by the same bound.
func TestMaxValues(t *testing.T) {
	long := strings.Repeat(" ", uncounted)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		text := randomDocument(r, 4).spell(r)
		n := countTree(mustParse(t, text))
		if got := countValues([]byte(text)); got != n {
			t.Fatalf("%d values in %s, counted %d", n, text, got)
		}
		for _, text := range []string{text, text + long} {
			for _, most := range []int{n, n + 1} {
				p := Parser{MaxValues: most}
				if _, err := p.Parse([]byte(text), 0); errors.Is(err, ErrValues) != (most == n) {
					t.Fatalf("%d of less than %d values: %v", n, most, err)
				}
			}
		}
	}
}

// Nothing is built of a text with too many values, and of a large container nothing is
// held beside it.
func TestLargeContainers(t *testing.T) {
	const n = 100_000
	var object strings.Builder
	for i := range n {
		fmt.Fprintf(&object, `, "k%d": %d`, i, i)
	}
	text := []byte(`{"a": [1, 2], "b": [` + strings.Repeat("0, ", n-1) + `0], "c": {` + object.String()[2:] + `}, "d": 3}`)
	p := Parser{MaxValues: 2*n + 8}
	v, err := p.Parse(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if b, c := v.Get("b"), v.Get("c"); len(b.Elems) != n || len(c.Members) != n || string(c.Members[n-1].Value.Raw) != strconv.Itoa(n-1) || len(v.Members) != 4 {
		t.Errorf("%d elements, %d members, %d in all", len(b.Elems), len(c.Members), len(v.Members))
	}
	if cap(p.p.elems)+cap(p.p.members) > 2*4096 {
		t.Errorf("%d and %d values are held", cap(p.p.elems), cap(p.p.members))
	}
	p.MaxValues--
	if allocated := testing.AllocsPerRun(1, func() {
		if _, err := p.Parse(text, 0); !errors.Is(err, ErrValues) {
			t.Error(err)
		}
	}); allocated > 1 {
		t.Errorf("%v allocations for a text that is refused", allocated)
	}
}
