package jsonstream

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fpm-project/fpm/internal/finding"
)

// checkFault compares a fault with what is wanted, but for its message unless that is
// given, and requires that it has one.
func checkFault(t *testing.T, how string, err error, want Fault) {
	t.Helper()
	var got *Fault
	if !errors.As(err, &got) {
		t.Errorf("%s: error %v, want a fault of %s", how, err, want.Rule)
		return
	}
	ignore := cmpopts.IgnoreUnexported(Fault{})
	if want.Message == "" {
		ignore = cmp.Options{ignore, cmpopts.IgnoreFields(Fault{}, "Message")}
	}
	if diff := cmp.Diff(want, *got, ignore); diff != "" {
		t.Errorf("%s (-want +got):\n%s", how, diff)
	}
	if got.Message == "" || got.Error() != got.Message {
		t.Errorf("%s: message %q, error %q", how, got.Message, got.Error())
	}
}

// checkFaultEverywhere requires that the ways of reading a document agree on its fault,
// whatever the size of the reads.
func checkFaultEverywhere(t *testing.T, text string, limits Limits, want Fault) {
	t.Helper()
	for _, window := range []int{1, 7, 4096} {
		limits.Window = window
		src := strings.NewReader(text)
		lenient, err := Check(src, limits)
		if lenient {
			t.Errorf("%.80q is said to be sound but for lone surrogates", text)
		}
		checkFault(t, fmt.Sprintf("%.80q checked, window %d", text, window), err, want)
		mode := Strict
		if strings.Contains(text, `\ud800`) {
			mode = Lenient
		}
		checkFault(t, fmt.Sprintf("%.80q walked, window %d", text, window), walkAll(src, mode, limits), want)
		checkFault(t, fmt.Sprintf("%.80q skipped leniently, window %d", text, window), checkAs(src, Lenient, limits), want)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		text    string
		rule    finding.ID
		offset  int64
		pointer string
	}{
		// Grammar.
		{"\ufeff{}", finding.JSONSyntax, 0, ""},
		{"{'a':1}", finding.JSONSyntax, 1, ""},
		{"['a']", finding.JSONSyntax, 1, "/0"},
		{"[01]", finding.JSONSyntax, 2, ""},
		{"[1,]", finding.JSONSyntax, 2, ""},
		{`{"a":1,}`, finding.JSONSyntax, 6, ""},
		{"[,1]", finding.JSONSyntax, 1, ""},
		{"[1 2]", finding.JSONSyntax, 3, ""},
		{`{"a" 1}`, finding.JSONSyntax, 5, "/a"},
		{`{"a":}`, finding.JSONSyntax, 5, "/a"},
		{`{"a"}`, finding.JSONSyntax, 4, "/a"},
		{`{"a":1 "b":2}`, finding.JSONSyntax, 7, ""},
		{`{"a":[{"b":1]}`, finding.JSONSyntax, 12, "/a"}, // the decoder names one container too far out
		{`[{"a":1},[1}]`, finding.JSONSyntax, 11, "/1"},
		{"{1:2}", finding.JSONSyntax, 1, ""},
		{"{null:2}", finding.JSONSyntax, 1, ""},
		{"{[]:2}", finding.JSONSyntax, 1, ""},
		{"{{\x00", finding.JSONSyntax, 1, ""},
		{`{"a":1,[[[`, finding.JSONSyntax, 7, ""},
		{"[.5]", finding.JSONSyntax, 1, "/0"},
		{"[1.]", finding.JSONSyntax, 3, "/0"},
		{"[+1]", finding.JSONSyntax, 1, "/0"},
		{"[1,-]", finding.JSONSyntax, 4, "/1"},
		{"[1e]", finding.JSONSyntax, 3, "/0"},
		{"[0x10]", finding.JSONSyntax, 2, ""},
		{"[True]", finding.JSONSyntax, 1, "/0"},
		{"[nulL]", finding.JSONSyntax, 4, "/0"},
		{"// x\n1", finding.JSONSyntax, 0, ""},
		{"]", finding.JSONSyntax, 0, ""},
		{"[1, \x00]", finding.JSONSyntax, 4, "/1"},
		// Behind the document.
		{"{} {}", finding.JSONSyntax, 3, ""},
		{"{}{", finding.JSONSyntax, 2, ""},
		{"[1]\n]", finding.JSONSyntax, 4, ""},
		{"1,", finding.JSONSyntax, 1, ""},
		{"1 2", finding.JSONSyntax, 2, ""},
		{"null nul", finding.JSONSyntax, 5, ""},
		{`"a" "b`, finding.JSONSyntax, 4, ""},
		{"{} NaN", finding.JSONSyntax, 3, ""},
		{"{}\x00", finding.JSONSyntax, 2, ""},
		// Strings.
		{`["\x41"]`, finding.JSONSyntax, 2, "/0"},
		{`["\u12G4"]`, finding.JSONSyntax, 2, "/0"},
		{"[\"a\x01\"]", finding.JSONSyntax, 3, "/0"},
		{"[\"a\nb\"]", finding.JSONSyntax, 3, "/0"},
		{"[1, \"ab\xffc\"]", finding.JSONSyntax, 7, "/1"},
		{"[\"\xed\xa0\x80\"]", finding.JSONSyntax, 2, "/0"}, // a raw surrogate
		{"[\"\xc0\x80\"]", finding.JSONSyntax, 2, "/0"},
		// Numbers that are none.
		{"NaN", finding.JSONNumber, 0, ""},
		{"-Infinity", finding.JSONNumber, 0, ""},
		{" Infinity ", finding.JSONNumber, 1, ""},
		{`{"a": {"b": [1.5, NaN]}}`, finding.JSONNumber, 18, "/a/b/1"},
		{`{"a": {"b": [-Infinity]}}`, finding.JSONNumber, 13, "/a/b/0"},
		{`{"a":Infinity}`, finding.JSONNumber, 5, "/a"},
		{"[-NaN]", finding.JSONSyntax, 2, "/0"}, // Python does not write this
		{"[Nano]", finding.JSONSyntax, 1, "/0"},
		{"[NaN_]", finding.JSONSyntax, 1, "/0"},
		{"[Infinity1]", finding.JSONSyntax, 1, "/0"},
		{"[-Infinit]", finding.JSONSyntax, 2, "/0"},
		{"[nan]", finding.JSONSyntax, 2, "/0"},
		{"[NaN", finding.JSONNumber, 1, "/0"},
		{"[Na", finding.JSONSyntax, 1, "/0"},
		{"{NaN: 1}", finding.JSONSyntax, 1, ""},
		{"[1 NaN]", finding.JSONSyntax, 3, ""},
		{"[1NaN]", finding.JSONSyntax, 2, ""},
		{"[nNaN]", finding.JSONSyntax, 2, "/0"},
		{"[1e-Infinity]", finding.JSONSyntax, 4, "/0"},
		{"[\"NaN\", \"-Infinity\x01\"]", finding.JSONSyntax, 18, "/1"},
		{`["\NaN"]`, finding.JSONSyntax, 2, "/0"},
		// Names that occur twice.
		{`{"a":1,"a":2}`, finding.JSONDuplicateKey, 7, "/a"},
		{`{"valid":1,"v\u0061lid":2}`, finding.JSONDuplicateKey, 11, "/valid"},
		{`{"v\u0061lid":1,"valid":2}`, finding.JSONDuplicateKey, 16, "/valid"},
		{`[{"x":{"b":1,"c":[],"b":1}}]`, finding.JSONDuplicateKey, 20, "/0/x/b"},
		{`{"":1,"":2}`, finding.JSONDuplicateKey, 6, "/"},
		{`{"a/~":1,"a/~":2}`, finding.JSONDuplicateKey, 9, "/a~1~0"},
		{`{"😀":1,"\ud83d\ude00":2}`, finding.JSONDuplicateKey, 10, "/😀"},
		// Lone surrogates are text, but nothing else is forgiven for them.
		{`{"\ud800":1,"\ud800":2}`, finding.JSONDuplicateKey, 12, "/\ufffd"},
		{`{"\ud800":1,"\uD800":2}`, finding.JSONDuplicateKey, 12, "/\ufffd"},
		{`{"x":"\ud800","b":1,"b":2}`, finding.JSONDuplicateKey, 20, "/b"},
		{`{"b":1,"b":2,"x":"\ud800"}`, finding.JSONDuplicateKey, 7, "/b"},
		{"[\"\\ud800\", \"ab\xff\"]", finding.JSONSyntax, 14, "/1"},
		{"[\"ab\xff\", \"\\ud800\"]", finding.JSONSyntax, 4, "/0"},
		{"[\"\\ud800\xff\"]", finding.JSONSyntax, 8, "/0"},
		{`["\ud800\u12G4"]`, finding.JSONSyntax, 8, "/0"},
		{`["\ud800", NaN]`, finding.JSONNumber, 11, "/1"},
		{`["\ud800",]`, finding.JSONSyntax, 9, ""},
		{`["\ud800"] x`, finding.JSONSyntax, 11, ""},
	} {
		checkFaultEverywhere(t, c.text, Limits{}, Fault{Rule: c.rule, Offset: c.offset, Pointer: c.pointer})
	}
}

func TestSoundTextHasNoFault(t *testing.T) {
	for text, lenient := range map[string]bool{
		"0":                                      false,
		" \r\n\t{ } ":                            false,
		`["NaN", "-Infinity", "Infinity"]`:       false,
		`{"NaN": 1, "a": "\\NaN"}`:               false,
		`[1e999999999, -0.0, 1E+5]`:              false,
		`{"a":{"a":{"a":1}},"b":[{"a":1}]}`:      false,
		`"\ud83d\ude00"`:                         false,
		`["\uFFFE", "\u0000", "` + "\x7f" + `"]`: false,
		`"\ud800"`:                               true,
		`"\ude00\ud83d"`:                         true,
		`"\uD800\u0041"`:                         true,
		`{"\ud800":1,"\ud801":2,"\ufffd":3}`:     true,
		`{"a":{"\udc00":[]},"b":{"\udc00":1}}`:   true,
	} {
		got, err := Check(strings.NewReader(text), Limits{})
		if err != nil || got != lenient {
			t.Errorf("Check(%q) = %t, %v, want %t", text, got, err, lenient)
		}
		mode := Strict
		if lenient {
			mode = Lenient
		}
		if err := walkAll(strings.NewReader(text), mode, Limits{}); err != nil {
			t.Errorf("walking %q: %v", text, err)
		}
		if err := walkAll(strings.NewReader(text), Trusted, Limits{}); err != nil {
			t.Errorf("walking %q as trusted: %v", text, err)
		}
	}
}

func TestTruncatedAtEveryByte(t *testing.T) {
	for _, text := range []string{
		"{\n  \"a\" : [ 1.5e+3 , true, false, null, -0 ],\r\n \"é\\u00e9\\n\" : { \"x\": {}, \"y\" : [ ] } }",
		`{"lone": "\ud800", "\udc00\ud800": ["` + "\U0001F600" + `\ud83d\ude00"]}`,
	} {
		for n := range len(text) {
			for _, window := range []int{1, 4096} {
				_, err := Check(strings.NewReader(text[:n]), Limits{Window: window})
				var f *Fault
				if !errors.As(err, &f) || f.Rule != finding.JSONSyntax || !f.Truncated || f.Offset > int64(n) {
					t.Errorf("%q: %+v, want a truncated text", text[:n], err)
				}
			}
		}
	}
}

func TestNotTruncated(t *testing.T) {
	for _, text := range []string{"x", "[1}", "{} ", "{}{", "[1]nul", `{"a":1,"a"`, "[NaN"} {
		_, err := Check(strings.NewReader(text), Limits{})
		var f *Fault
		if errors.As(err, &f) && f.Truncated {
			t.Errorf("%q is said to be truncated: %v", text, err)
		}
	}
}

func TestDepth(t *testing.T) {
	const most = DefaultDepth
	for _, object := range []bool{false, true} {
		if _, err := Check(strings.NewReader(nestText(most, object)), Limits{}); err != nil {
			t.Errorf("depth %d, objects %t: %v", most, object, err)
		}
		text, pointer, at := nestText(most+1, object), strings.Repeat("/0", most), int64(most)
		if object {
			pointer, at = strings.Repeat("/a", most), int64(strings.Index(text, "{}"))
		}
		checkFaultEverywhere(t, text, Limits{}, Fault{Rule: finding.JSONDepth, Offset: at, Pointer: pointer, Message: "nesting deeper than 512"})
	}
	// A limit of the caller's, which may only be a lower one.
	checkFaultEverywhere(t, `{"a":[[1]]}`, Limits{Depth: 2}, Fault{Rule: finding.JSONDepth, Offset: 6, Pointer: "/a/0"})
	checkFault(t, "a higher limit", walkAll(strings.NewReader(nestText(most+1, false)), Strict, Limits{Depth: most + 1}),
		Fault{Rule: finding.JSONDepth, Offset: most, Pointer: strings.Repeat("/0", most)})
}

func TestDepthAroundThePlaceCounts(t *testing.T) {
	src := strings.NewReader("[[1]]")
	for _, mode := range []Mode{Strict, Lenient, Trusted} {
		s := New(src, 0, DefaultDepth-2, mode, Limits{})
		if _, err := s.Skip(); err != nil {
			t.Errorf("mode %d: %v", mode, err)
		}
		s.Reset(src, 0, DefaultDepth-1, mode)
		_, err := s.Skip()
		checkFault(t, "skipped", err, Fault{Rule: finding.JSONDepth, Offset: 1, Pointer: "/0"})
		s.Reset(src, 0, DefaultDepth-1, mode)
		checkFault(t, "walked", walk(s), Fault{Rule: finding.JSONDepth, Offset: 1, Pointer: "/0"})
	}
}

// Frequent slips are named in words that say what to mend.
func TestExplained(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1,}`:            "a comma before the end of an object or array",
		"[1,\n  ]":             "a comma before the end of an object or array",
		`{'a': 1}`:             "a single quote: strings and keys stand in double quotes",
		`{"a": 'x'}`:           "a single quote: strings and keys stand in double quotes",
		"\xef\xbb\xbf{}":       "a byte-order mark before the document",
		"\x1f\x8b\x08\x00":     "compressed data: a file of it is named .gz or .zst",
		"\x28\xb5\x2f\xfd\x00": "compressed data: a file of it is named .gz or .zst",
	} {
		_, err := Check(strings.NewReader(text), Limits{})
		if fault, ok := errors.AsType[*Fault](err); !ok || fault.Rule != finding.JSONSyntax || fault.Message != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
