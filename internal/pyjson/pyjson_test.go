package pyjson_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// vectors returns the lines of a file that CPython wrote, without the remarks.
func vectors(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	scan := bufio.NewScanner(f)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		if !strings.HasPrefix(scan.Text(), "#") {
			lines = append(lines, scan.Text())
		}
	}
	if err := scan.Err(); err != nil {
		t.Fatal(err)
	}
	if len(lines) < 20 {
		t.Fatalf("%s has %d vectors", name, len(lines))
	}
	return lines
}

func float(t *testing.T, bits string) float64 {
	t.Helper()
	u, err := strconv.ParseUint(bits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return math.Float64frombits(u)
}

func TestAppendFloatVectors(t *testing.T) {
	for _, line := range vectors(t, "floats.txt") {
		bits, want, _ := strings.Cut(line, " ")
		if got := string(pyjson.AppendFloat(nil, float(t, bits))); got != want {
			t.Errorf("AppendFloat(%s) = %s, want %s", bits, got, want)
		}
	}
}

func TestAppendFloatKeepsWhatIsThere(t *testing.T) {
	if got := string(pyjson.AppendFloat([]byte("1.5 "), 2)); got != "1.5 2.0" {
		t.Errorf("got %q", got)
	}
}

func FuzzAppendFloatReadsBack(f *testing.F) {
	for _, seed := range []float64{0, 1e-5, 1e16, 0.1, math.MaxFloat64, 5e-324} {
		f.Add(math.Float64bits(seed))
	}
	f.Fuzz(func(t *testing.T, bits uint64) {
		want := math.Float64frombits(bits)
		if math.IsNaN(want) || math.IsInf(want, 0) {
			t.Skip("no JSON number")
		}
		text := string(pyjson.AppendFloat(nil, want))
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Float64bits(got) != bits {
			t.Errorf("%x is printed as %s, which reads back as %x (%v)", bits, text, math.Float64bits(got), err)
		}
		if !strings.ContainsAny(text, ".e") {
			t.Errorf("%s reads as an integer", text)
		}
	})
}

// appendWTF8 encodes a code point, a surrogate too.
func appendWTF8(s []byte, r rune) []byte {
	if r >= 0xd800 && r <= 0xdfff {
		return append(s, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
	}
	return utf8.AppendRune(s, r)
}

func TestAppendStringVectors(t *testing.T) {
	for _, line := range vectors(t, "strings.txt") {
		points, want, _ := strings.Cut(line, " ")
		var s []byte
		for p := range strings.SplitSeq(points, ",") {
			r, err := strconv.ParseInt(p, 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			s = appendWTF8(s, rune(r))
		}
		if got := string(pyjson.AppendString(nil, string(s))); got != want {
			t.Errorf("AppendString(%s) = %s, want %s", points, got, want)
		}
	}
}

// Python carries undecodable bytes of a path as low surrogates.
func TestAppendStringStrayBytes(t *testing.T) {
	for s, want := range map[string]string{
		"a\xff\xc3":    `"a\udcff\udcc3"`,
		"\xed\xa0":     `"\udced\udca0"`,
		"\xed\xa0x":    `"\udced\udca0x"`,
		"\xf0\x9f\x98": `"\udcf0\udc9f\udc98"`,
		"":             `""`,
	} {
		if got := string(pyjson.AppendString(nil, s)); got != want {
			t.Errorf("AppendString(%q) = %s, want %s", s, got, want)
		}
	}
}

func FuzzAppendStringReadsBack(f *testing.F) {
	f.Add("plain")
	f.Add("é\u2028\x7f\"\\\n\U0001f600")
	f.Fuzz(func(t *testing.T, s string) {
		text := pyjson.AppendString(nil, s)
		for _, c := range text {
			if c < ' ' || c > '~' {
				t.Fatalf("%q is not printable ASCII", text)
			}
		}
		var got string
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && got != s {
			t.Errorf("%q is read back as %q", s, got)
		}
	})
}

func TestSummerVectors(t *testing.T) {
	for _, line := range vectors(t, "sums.txt") {
		fields := strings.Fields(line)
		var s pyjson.Summer
		for _, bits := range fields[1:] {
			s.Add(float(t, bits))
		}
		want := float(t, fields[0])
		if got := s.Sum(); math.Float64bits(got) != math.Float64bits(want) && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("sum of %v = %v, want %v", fields[1:], got, want)
		}
	}
}

// The compensation belongs to the sum that is returned, not to the values still to come.
func TestSummerSumChangesNothing(t *testing.T) {
	var peeked, plain pyjson.Summer
	for range 10 {
		peeked.Add(0.1)
		plain.Add(0.1)
		peeked.Sum()
	}
	if peeked.Sum() != plain.Sum() || plain.Sum() != 1 {
		t.Errorf("sums %v and %v, want 1", peeked.Sum(), plain.Sum())
	}
}

func TestAppend(t *testing.T) {
	doc := pyjson.Object{
		{"b", pyjson.Array{1, int64(-2), 0.5, nil, true, "é"}},
		{"a", pyjson.Object{}},
		{"empty", pyjson.Array{}},
		{"raw", pyjson.Raw("1.50")},
		{"deep", pyjson.Object{{"z", pyjson.Array{pyjson.Array{false}}}}},
	}
	compact := `{"b":[1,-2,0.5,null,true,"\u00e9"],"a":{},"empty":[],"raw":1.50,"deep":{"z":[[false]]}}`
	if got := string(pyjson.AppendCompact(nil, doc)); got != compact {
		t.Errorf("compact:\n got %s\nwant %s", got, compact)
	}
	sorted := `{"a":{},"b":[1,-2,0.5,null,true,"\u00e9"],"deep":{"z":[[false]]},"empty":[],"raw":1.50}`
	if got := string(pyjson.AppendSorted(nil, doc)); got != sorted {
		t.Errorf("sorted:\n got %s\nwant %s", got, sorted)
	}
	if doc[0].Key != "b" {
		t.Error("AppendSorted reordered its argument")
	}
	for level := range 4 {
		got := string(pyjson.Append(nil, doc, level))
		if want := indent(t, compact, level); got != want {
			t.Errorf("level %d:\n got %s\nwant %s", level, got, want)
		}
	}
}

func TestAppendDeeperThanTheMargin(t *testing.T) {
	var doc any = pyjson.Array{}
	for range 300 {
		doc = pyjson.Array{doc}
	}
	want := indent(t, string(pyjson.AppendCompact(nil, doc)), 0)
	if got := string(pyjson.Append(nil, doc, 0)); got != want {
		t.Error("the indentation of deep levels is wrong")
	}
}

func TestAppendRefusesOtherTypes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a type without JSON was accepted")
		}
	}()
	pyjson.Append(nil, struct{}{}, 0)
}

func TestAppendCanonicalNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"0":                      "0",
		"-0":                     "0",
		"-0.0":                   "-0.0",
		"1":                      "1",
		"1.0":                    "1.0",
		"10e-1":                  "1.0",
		"1E5":                    "100000.0",
		"1e16":                   "1e+16",
		"0.00001":                "1e-05",
		"123456789012345678901":  "123456789012345678901",
		"0.10000000000000000001": "0.1",
		"1e999":                  "Infinity",
		"-1e999":                 "-Infinity",
		"1e-999":                 "0.0",
		"1.7976931348623157e308": "1.7976931348623157e+308",
	} {
		if got := canonical(t, text); got != want {
			t.Errorf("canonical %s = %s, want %s", text, got, want)
		}
	}
}

func TestAppendCanonicalStringsAndKeys(t *testing.T) {
	for text, want := range map[string]string{
		`{"b": 1, "a": [ ], "B": { }}`:         `{"B":{},"a":[],"b":1}`,
		`{"\ue000": 1, "\ud83d\ude00": 2}`:     `{"\ue000":1,"\ud83d\ude00":2}`,
		`{"\ue000": 1, "\ud800": 2, "z": 3}`:   `{"z":3,"\ud800":2,"\ue000":1}`,
		"{\"é\": \"\\u0041\\/\", \"e\": null}": `{"e":null,"\u00e9":"A/"}`,
	} {
		if got := canonical(t, text); got != want {
			t.Errorf("canonical %s = %s, want %s", text, got, want)
		}
	}
}

func canonical(t *testing.T, text string) string {
	t.Helper()
	v, err := jsonvalue.Parse([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return string(pyjson.AppendCanonical(nil, v))
}
