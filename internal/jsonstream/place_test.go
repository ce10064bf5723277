package jsonstream

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExcerpt(t *testing.T) {
	pretty := "{\n    \"a\": [\r\n        1,\r\n\t\t\"x  y\"\n    ],\n    \"b\": {}\n} , 7"
	for _, c := range []struct {
		text string
		off  int64
		most int
		want string
	}{
		{pretty, 0, 100, `{"a": [1,"x  y"],"b": {}}`},
		{pretty, 0, 25, `{"a": [1,"x  y"],"b": {}}`},
		{pretty, 0, 24, `{"a": [1,"x  y"],"b": {}…`},
		{pretty, 11, 100, `[1,"x  y"]`},
		{pretty, int64(strings.Index(pretty, "{}")), 100, `{}`},
		{"[1, 2, 3]", 4, 100, "2"},
		{`"日本"`, 0, 5, `"日…`},
		{`["\ud800"]`, 1, 20, `"\ud800"`},
		{"[" + strings.Repeat("[ ", 600), 0, 4, "[[ […"},
		{"[" + strings.Repeat("\n          1,", 100) + "1]", 0, 10, "[1,1,1,1,1…"},
		{"1" + strings.Repeat("0", 1000), 0, 5, "10000…"},
		{`"` + strings.Repeat("x", 1000) + `"`, 0, 5, `"xxxx…`},
	} {
		if got := Excerpt(strings.NewReader(c.text), c.off, c.most); got != c.want {
			t.Errorf("%.40q at %d, at most %d: %q, want %q", c.text, c.off, c.most, got, c.want)
		}
	}
	if got := Excerpt(failing{"[1,2]", 3, errors.New("device not ready")}, 0, 10); got != "" {
		t.Errorf("of a source that cannot be read: %q", got)
	}
}

func TestFind(t *testing.T) {
	text := ` {"a": [1, {"b\u00e9": "x", "c": null}, []], "a/b": {"": {"d": 7}}, "lone": {"\ud800": 3}}`
	at := func(s string) int64 { return int64(strings.Index(text, s)) }
	for _, c := range []struct {
		path string // its steps behind bars
		at   int64
		ok   bool
	}{
		{"", 1, true},
		{"|a", at("[1"), true},
		{"|a|0", at("1,"), true},
		{"|a|1", at(`{"b`), true},
		{"|a|1|bé", at(`"x"`), true},
		{"|a|1|c", at("null"), true},
		{"|a|2", at("[]"), true},
		{"|a/b||d", at("7"), true},
		{"|lone|\xed\xa0\x80", at("3}"), true},
		// Where a step does not exist, the innermost value that does.
		{"|x", 1, false},
		{"|x|y", 1, false},
		{"|a|3", at("[1"), false},
		{"|a|01", at("[1"), false},
		{"|a|x", at("[1"), false},
		{"|a|0|x", at("1,"), false},
		{"|a|1|c|0", at("null"), false},
		{"|a|2|0", at("[]"), false},
		{"|a/b||e", at(`{"d"`), false},
	} {
		steps := strings.Split(c.path, "|")[1:]
		got, ok := Find(strings.NewReader(text), 0, steps...)
		if got != c.at || ok != c.ok {
			t.Errorf("%q: %d, %t, want %d, %t", c.path, got, ok, c.at, c.ok)
		}
	}
	if got, ok := Find(strings.NewReader(text), at("{\"b"), "c"); got != at("null") || !ok {
		t.Errorf("inside an inner value: %d, %t", got, ok)
	}
	if _, ok := Find(failing{text, 30, errors.New("device not ready")}, 0, "lone"); ok {
		t.Error("found in a source that cannot be read so far")
	}
}

func TestPositions(t *testing.T) {
	text := "{\n  \"é\": 1,\r\n\n  \"b\": 2}"
	offsets := []int64{18, 0, 5, 1, 2, 13, 14, 5, int64(len(text)), 100}
	want := []Position{{4, 4}, {1, 1}, {2, 4}, {1, 2}, {2, 1}, {2, 12}, {3, 1}, {2, 4}, {4, 10}, {4, 86}}
	for _, src := range []io.ReaderAt{strings.NewReader(text), source{[]byte(text), 3}} {
		got, err := Positions(src, offsets)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	broken := errors.New("device not ready")
	var read *ReadError
	if _, err := Positions(failing{text, 7, broken}, offsets); !errors.As(err, &read) || read.Offset != 7 || !errors.Is(err, broken) {
		t.Errorf("of a source that cannot be read: %v", err)
	}
	if got, err := Positions(failing{text, 7, broken}, []int64{7, 3}); err != nil || got[0] != (Position{2, 6}) {
		t.Errorf("up to where it can be read: %v, %v", got, err)
	}
}

// A text of several windows: lines are counted across their borders.
func TestPositionsInALongText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	text := make([]byte, 3*windowSize)
	for i := range text {
		if text[i] = 'x'; r.IntN(100) == 0 {
			text[i] = '\n'
		}
	}
	var offsets []int64
	var want []Position
	line, column := 1, 1
	for i, c := range text {
		if i%997 == 0 || i%windowSize < 2 {
			offsets, want = append(offsets, int64(i)), append(want, Position{line, column})
		}
		if column++; c == '\n' {
			line, column = line+1, 1
		}
	}
	r.Shuffle(len(offsets), func(i, j int) {
		offsets[i], offsets[j] = offsets[j], offsets[i]
		want[i], want[j] = want[j], want[i]
	})
	got, err := Positions(source{text, 10_000}, offsets)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
