package jsonstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
)

// checkSound requires that all ways of reading accept a document.
func checkSound(t *testing.T, text string, limits Limits) {
	t.Helper()
	for _, window := range []int{1, 7, 4096} {
		limits.Window = window
		for _, mode := range []Mode{Strict, Lenient, Trusted} {
			if err := checkAs(strings.NewReader(text), mode, limits); err != nil {
				t.Errorf("%.80q skipped, mode %d, window %d: %v", text, mode, window, err)
			}
			if err := walkAll(strings.NewReader(text), mode, limits); err != nil {
				t.Errorf("%.80q walked, mode %d, window %d: %v", text, mode, window, err)
			}
		}
	}
}

func TestLiteralLimit(t *testing.T) {
	limits := Limits{Literal: 8}
	for _, sound := range []string{`"123456"`, "12345678", "-1.5e+10", `{"123456":"123456"}`, `["éé12"]`, `"\u00e9"`} {
		checkSound(t, sound, limits)
	}
	// What stands before a literal is no part of it.
	checkSound(t, `{          "123456"          :          "123456"          ,"x":12345678          }`, limits)
	checkSound(t, `[0,          12345678,`+strings.Repeat(" ", 5000)+`12345678]`, limits)

	message := "a string or number of more than 8 bytes"
	for _, c := range []struct {
		text    string
		offset  int64
		pointer string
	}{
		{`"1234567"`, 0, ""},
		{"123456789", 0, ""},
		{" -1.50e+10", 1, ""},
		{`["\u00e91"]`, 1, "/0"},
		{`{"a":{"x":[1, "1234567"]}}`, 14, "/a/x/1"},
		{`[0,` + strings.Repeat(" ", 100) + `"1234567"]`, 103, "/1"},
		{`{"a" :   123456789}`, 9, "/a"},
		{`{"a":1, "1234567":1}`, 8, "/1234567"},
	} {
		checkFaultEverywhere(t, c.text, limits, Fault{Rule: finding.InputLimit, Offset: c.offset, Pointer: c.pointer, Message: message})
	}
}

// A literal and the white space before it may take the literal's limit and 64 KiB, not a
// byte more, however the source is read.
func TestLiteralLimitCountsWhiteSpace(t *testing.T) {
	limits := Limits{Literal: 8}
	gap := func(n int) string { return "[1," + strings.Repeat(" ", n) }
	for _, window := range []int{1000, 4096, 1 << 20} {
		limits.Window = window
		for _, sound := range []string{
			gap(slack-1) + `"123456"]`,
			gap(slack+8-2) + "]",
			`{"a"` + strings.Repeat(" ", slack) + `:1}`,
		} {
			err := checkAs(strings.NewReader(sound), Trusted, limits)
			var f *Fault
			if errors.As(err, &f) && f.Rule == finding.InputLimit {
				t.Errorf("window %d: %v", window, err)
			}
		}
		message := "a string or number, with the white space before it, of more than 8 bytes"
		for _, c := range []struct {
			text    string
			offset  int64
			pointer string
		}{
			{gap(slack) + `"123456"]`, 3 + slack, "/1"},
			{gap(slack+8-1) + "]", 2, "/1"}, // where the white space begins
			{gap(slack+8) + "]", 2, "/1"},
			{gap(1<<20) + "1]", 2, "/1"},
			{`[{"a":1,` + strings.Repeat("\n", 1<<20) + `"b":1}]`, 7, "/0"},
			{`[{"a":` + strings.Repeat("\n", 1<<20) + `1}]`, 5, "/0/a"},
			{strings.Repeat(" ", 1<<20) + "1", 0, ""},
			{"1" + strings.Repeat(" ", 1<<20), 1, ""},
			{"[" + strings.Repeat("1", 1<<20) + "]", 1, "/0"},
		} {
			want := Fault{Rule: finding.InputLimit, Offset: c.offset, Pointer: c.pointer, Message: message}
			_, err := Check(strings.NewReader(c.text), limits)
			checkFault(t, fmt.Sprintf("%.20q checked, window %d", c.text, window), err, want)
			checkFault(t, fmt.Sprintf("%.20q walked, window %d", c.text, window), walkAll(strings.NewReader(c.text), Strict, limits), want)
		}
	}
}

func TestKeysLimit(t *testing.T) {
	limits := Limits{Keys: 2}
	checkSound(t, `{"a":1,"b":{"c":1,"d":{"e":{},"f":[1,2,3,4]}}}`, limits)
	checkSound(t, `[{"a":1,"b":1},{"a":1,"b":1},1,2,3]`, limits)
	message := "more than 2 keys in one object"
	checkFaultEverywhere(t, `{"a":1,"b":{}, "c":1}`, limits, Fault{Rule: finding.InputLimit, Offset: 15, Pointer: "/c", Message: message})
	checkFaultEverywhere(t, `[{"x":{"a":1,"b":[1],"c":1}}]`, limits, Fault{Rule: finding.InputLimit, Offset: 21, Pointer: "/0/x/c", Message: message})
}

func TestDefaultKeysLimit(t *testing.T) {
	text := func(keys int) []byte {
		b := []byte("{")
		for i := range keys {
			b = strconv.AppendInt(append(b, '"'), int64(i), 10)
			b = append(b, `":0,`...)
		}
		b[len(b)-1] = '}'
		return b
	}
	// Trusted, as looking for the same name twice takes most of the time.
	if err := checkAs(bytes.NewReader(text(DefaultKeys)), Trusted, Limits{}); err != nil {
		t.Errorf("a million keys: %v", err)
	}
	more := text(DefaultKeys + 1)
	err := checkAs(bytes.NewReader(more), Trusted, Limits{})
	checkFault(t, "one more", err, Fault{Rule: finding.InputLimit, Offset: int64(bytes.LastIndexByte(more, ',')) + 1, Pointer: "/1000000"})
}

// The names of all open objects are in memory at once, and no longer than these are open.
func TestNameBytesLimit(t *testing.T) {
	limits := Limits{NameBytes: 12}
	checkSound(t, `{"aaaa":1,"bbb":2}`, limits)
	checkSound(t, `{"aaaa":{"bbbb":1}}`, limits)
	checkSound(t, `{"aaa":{"bbbbb":1}, "c":{}}`, limits)
	checkSound(t, `[{"aaaaaaaaaa":1},{"aaaaaaaaaa":1},[{"aaaaaaaaaa":1}]]`, limits)
	message := "more than 12 bytes of keys in one object and those around it"
	for _, c := range []struct {
		text    string
		offset  int64
		pointer string
	}{
		{`{"aaaaaaaaaaa":1}`, 1, "/aaaaaaaaaaa"},
		{`{"aaaa":1,"bbbb":2}`, 10, "/bbbb"},
		{`{"aaaa":1, "bbb":2}`, 11, "/bbb"},
		{`{"aaaa":[{"bbbbb":1}]}`, 10, "/aaaa/0/bbbbb"},
		{`{"aaa":{"bbb":1},"ccccc":{"d":1}}`, 17, "/ccccc"},
	} {
		checkFaultEverywhere(t, c.text, limits, Fault{Rule: finding.InputLimit, Offset: c.offset, Pointer: c.pointer, Message: message})
	}
}

// synthetic is a text of any length: a beginning, and then the same bytes for ever.
type synthetic struct {
	head  string
	fill  byte
	size  int64
	asked int64 // bytes handed out
}

func (s *synthetic) ReadAt(p []byte, off int64) (int, error) {
	if off >= s.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), s.size-off)]
	for n := copy(p, []byte{s.fill}); n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	s.asked += int64(len(p))
	return len(p), nil
}

func TestHugeTokensFailFast(t *testing.T) {
	for _, c := range []struct {
		literal int
		head    string
		fill    byte
		size    int64
		offset  int64
		pointer string
	}{
		{DefaultLiteral, `{"a": "`, 'x', 200 << 20, 6, "/a"},
		{DefaultLiteral, `{"a": 1, `, ' ', 1 << 30, 7, ""},
		{1 << 20, `[1, `, '7', 200 << 20, 4, "/1"},
		{1 << 20, `{"a": 1, "`, 'k', 200 << 20, 9, ""},
		{1 << 20, ` `, '\n', 1 << 30, 0, ""},
		{1 << 20, `[]`, '\t', 1 << 30, 2, ""},
	} {
		limits := Limits{Literal: c.literal}
		for _, how := range []func(io.ReaderAt) error{
			func(src io.ReaderAt) error { _, err := Check(src, limits); return err },
			func(src io.ReaderAt) error { return walkAll(src, Lenient, limits) },
		} {
			src := &synthetic{head: c.head, fill: c.fill, size: c.size}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := how(src)
			runtime.ReadMemStats(&after)
			checkFault(t, fmt.Sprintf("%q and %d MiB of %q", c.head, c.size>>20, c.fill), err,
				Fault{Rule: finding.InputLimit, Offset: c.offset, Pointer: c.pointer})
			if most := int64(c.literal + slack + windowSize); src.asked > most {
				t.Errorf("%q and %q: %d bytes were read, want at most %d", c.head, c.fill, src.asked, most)
			}
			// The decoder doubles its buffer as it grows, up to twice the limit.
			if got := after.TotalAlloc - before.TotalAlloc; got > uint64(4*c.literal)+8*windowSize {
				t.Errorf("%q and %q: %d bytes were allocated", c.head, c.fill, got)
			}
		}
	}
}

func TestDefaultLiteralLimit(t *testing.T) {
	for _, text := range [][]byte{
		[]byte(`{"a": "` + strings.Repeat("x", DefaultLiteral-2) + `"}`),
		[]byte("[\n    1" + strings.Repeat("0", DefaultLiteral-1) + "]"),
	} {
		if _, err := Check(bytes.NewReader(text), Limits{}); err != nil {
			t.Errorf("%.10q, the longest literal: %v", text, err)
		}
		at := int64(bytes.LastIndexAny(text[:10], " ")) + 1
		longer := bytes.Replace(text, []byte("00"), []byte("000"), 1)
		longer = bytes.Replace(longer, []byte("xx"), []byte("xxx"), 1)
		for _, mode := range []Mode{Strict, Lenient} {
			var f *Fault
			if err := checkAs(bytes.NewReader(longer), mode, Limits{}); !errors.As(err, &f) || f.Rule != finding.InputLimit || f.Offset != at {
				t.Errorf("%.10q, one byte more: %+v", text, err)
			}
		}
	}
}

func TestLimitOfTheCaller(t *testing.T) {
	s := New(strings.NewReader(`{"a":[1,2]}`), 0, 0, Strict, Limits{})
	_, _, err := s.Object(func([]byte) error {
		_, _, err := s.Array(func(int) error {
			if _, err := s.Skip(); err != nil {
				return err
			}
			return s.LimitExceeded("more than %d", 0)
		})
		return err
	})
	checkFault(t, "LimitExceeded", err, Fault{Rule: finding.InputLimit, Offset: 7, Pointer: "/a/0", Message: "more than 0"})
}
