package jsonstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func scan(text string) *Scanner { return New(strings.NewReader(text), 0, 0, Strict, Limits{}) }

func TestScalar(t *testing.T) {
	for text, want := range map[string]Scalar{
		"null":          {Kind: 'n', Raw: []byte("null")},
		" true":         {Kind: 't', Offset: 1, Raw: []byte("true")},
		"false ":        {Kind: 'f', Raw: []byte("false")},
		"\n-1.50e2":     {Kind: '0', Offset: 1, Raw: []byte("-1.50e2")},
		` "a\u00e9 b" `: {Kind: '"', Offset: 1, Raw: []byte(`"a\u00e9 b"`)},
		" [1, {}]":      {Kind: '[', Offset: 1},
		" {\"a\":1}":    {Kind: '{', Offset: 1},
	} {
		s := scan(text)
		got, err := s.Scalar()
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		if err := s.End(); err != nil {
			t.Errorf("%q: the value was not read to its end: %v", text, err)
		}
	}
}

func TestSkip(t *testing.T) {
	for _, mode := range []Mode{Strict, Lenient, Trusted} {
		for text, want := range map[string]Span{
			"null":                 {0, 4},
			"  12 ":                {2, 2},
			` "a b" `:              {1, 5},
			" [1, {}]\n":           {1, 7},
			"\t{\"a\" : [ 1 ] }  ": {1, 14},
			"[]":                   {0, 2},
		} {
			got, err := New(strings.NewReader(text), 0, 0, mode, Limits{}).Skip()
			if err != nil || got != want || got.End() != want.Off+want.Len {
				t.Errorf("Skip(%q) = %v, %v, want %v", text, got, err, want)
			}
		}
	}
}

func TestObject(t *testing.T) {
	s := scan(` {"a": 1, "b\u00e9\n": {"c": [2]}, "": "x"}`)
	var got []string
	start, ok, err := s.Object(func(name []byte) error {
		literal := s.NameLiteral()
		kind, at := s.Peek(), s.NextOffset()
		span, err := s.Skip()
		got = append(got, fmt.Sprintf("%q %s %c %d %v", name, literal, kind, at, span))
		return err
	})
	if start != 1 || !ok || err != nil {
		t.Errorf("Object = %d, %t, %v", start, ok, err)
	}
	want := []string{
		`"a" "a" 0 7 {7 1}`,
		`"bé\n" "b\u00e9\n" { 23 {23 10}`,
		`"" "" " 39 {39 3}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if s.Offset() != 43 {
		t.Errorf("Offset = %d behind the object, want 43", s.Offset())
	}
}

func TestArray(t *testing.T) {
	s := scan(` [1, [2], "x"] `)
	var got []Span
	start, ok, err := s.Array(func(i int) error {
		if i != len(got) {
			t.Errorf("element %d comes as %d", len(got), i)
		}
		span, err := s.Skip()
		got = append(got, span)
		return err
	})
	if start != 1 || !ok || err != nil {
		t.Errorf("Array = %d, %t, %v", start, ok, err)
	}
	if diff := cmp.Diff([]Span{{2, 1}, {5, 3}, {10, 3}}, got); diff != "" {
		t.Errorf("elements (-want +got):\n%s", diff)
	}
}

func TestOtherKindsAreSkipped(t *testing.T) {
	unexpected := errors.New("fn was called")
	for _, text := range []string{"null", "12", `"x"`, `[{"a":1}]`, `{"a":[1]}`} {
		s := scan(" " + text)
		start, ok, err := int64(0), false, error(nil)
		if text[0] == '{' {
			start, ok, err = s.Array(func(int) error { return unexpected })
		} else {
			start, ok, err = s.Object(func([]byte) error { return unexpected })
		}
		if start != 1 || ok || err != nil {
			t.Errorf("%s: %d, %t, %v", text, start, ok, err)
		}
		if err := s.End(); err != nil {
			t.Errorf("%s: the value was not read to its end: %v", text, err)
		}
	}
}

func TestCallersErrorEndsTheWalk(t *testing.T) {
	enough := errors.New("enough")
	s := scan(`{"a":[1,2],"b":3}`)
	calls := 0
	_, ok, err := s.Object(func([]byte) error {
		_, ok, err := s.Array(func(int) error { calls++; return enough })
		if ok {
			t.Errorf("the array is said to be read")
		}
		return err
	})
	if ok || err != enough || calls != 1 {
		t.Errorf("Object = %t, %v after %d calls", ok, err, calls)
	}
}

func TestSideBySide(t *testing.T) {
	a, b := scan(" [1, [2]]"), scan("[]")
	if start, err := a.EnterArray(); start != 1 || err != nil {
		t.Errorf("EnterArray = %d, %v", start, err)
	}
	if start, err := b.EnterArray(); start != 0 || err != nil {
		t.Errorf("EnterArray = %d, %v", start, err)
	}
	n := 0
	for more, err := a.More(); more || err != nil; more, err = a.More() {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Skip(); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if more, err := b.More(); more || err != nil || n != 2 {
		t.Errorf("%d elements; More of an empty array = %t, %v", n, more, err)
	}
	if errA, errB := a.End(), b.End(); errA != nil || errB != nil {
		t.Errorf("End: %v, %v", errA, errB)
	}
}

func TestMisuse(t *testing.T) {
	for name, misuse := range map[string]func(){
		"no array to enter": func() { _, _ = scan("{}").EnterArray() },
		"a jump before the outermost container": func() {
			_ = scan("[1]").JumpTo(3)
		},
		"a jump in an inner container": func() {
			s := scan("[[1]]")
			_, _, _ = s.Array(func(int) error {
				_, _, err := s.Array(func(int) error { return s.JumpTo(3) })
				return err
			})
		},
		"a jump in a part of a document": func() {
			s := New(strings.NewReader("[1]"), 0, 1, Strict, Limits{})
			_ = s.JumpTo(3)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}

func TestNextOffset(t *testing.T) {
	s := scan("  {\n \"a\" :\t[ 1 ,\r\n 2\n]  } ")
	want := []int64{2, 11, 13, 19, 24}
	var got []int64
	note := func() { got = append(got, s.NextOffset()) }
	note()
	_, _, err := s.Object(func([]byte) error {
		note()
		_, _, err := s.Array(func(int) error { note(); _, err := s.Skip(); return err })
		note()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offsets (-want +got):\n%s", diff)
	}
}

func TestReset(t *testing.T) {
	first, second := strings.NewReader(`{"a":1,"b":}`), strings.NewReader(`[0,{"c":[1, 2]}]`)
	s := New(first, 0, 0, Strict, Limits{})
	if err := walk(s); err == nil {
		t.Fatal("the first document is at fault, and no error came")
	}
	s.Reset(second, 3, 1, Trusted) // a value inside a document
	v, err := s.Tree(100)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Get("c"); got == nil || got.Offset != 8 || len(got.Elems) != 2 {
		t.Errorf("the value inside the second document is %s", v.Excerpt(50))
	}
	if s.Offset() != 15 {
		t.Errorf("Offset = %d, want 15", s.Offset())
	}
}

func TestTree(t *testing.T) {
	text := `{"a": {"b": [1, "x"]}, "c": 2}`
	s := scan(text)
	_, _, err := s.Object(func(name []byte) error {
		v, err := s.Tree(15)
		if err == nil && string(name) == "a" {
			want, _ := jsonvalue.Parse([]byte(text[6:21]), 6)
			if diff := cmp.Diff(want, v); diff != "" {
				t.Errorf("tree (-want +got):\n%s", diff)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	s = scan(text)
	_, _, err = s.Object(func([]byte) error { _, err := s.Tree(14); return err })
	checkFault(t, "a block that is too large", err, Fault{Rule: finding.InputLimit, Offset: 6, Pointer: "/a"})
}

// failing is a source that cannot be read from some offset on.
type failing struct {
	text string
	at   int64
	err  error
}

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	n, err := strings.NewReader(f.text[:f.at]).ReadAt(p, off)
	if err != nil {
		err = f.err
	}
	return n, err
}

func TestReadErrors(t *testing.T) {
	text := `{"a": [1, {"b": "text"}, 2.5, true], "b":` + "\n" + `[], "b": 1}`
	broken := errors.New("device not ready")
	for at := range int64(len(text)) {
		for _, mode := range []Mode{Lenient, Trusted} {
			for _, how := range []func(*Scanner) error{walk, func(s *Scanner) error { _, err := s.Skip(); return err }} {
				err := how(New(failing{text, at, broken}, 0, 0, mode, Limits{}))
				var read *ReadError
				var f *Fault
				duplicate := mode == Lenient && at >= int64(strings.LastIndex(text, `"b"`)+3)
				switch {
				case duplicate:
					if !errors.As(err, &f) || f.Rule != finding.JSONDuplicateKey {
						t.Errorf("%q then an error, mode %d: %v, want what is wrong before it", text[:at], mode, err)
					}
				case !errors.As(err, &read) || read.Offset != at || !errors.Is(err, broken) || read.Error() != broken.Error():
					t.Errorf("%q then an error, mode %d: %#v", text[:at], mode, err)
				case errors.As(err, &f):
					t.Errorf("%q then an error, mode %d: a fault as well: %v", text[:at], mode, f)
				}
			}
		}
	}
}

// A source that ends too early in itself, such as a cut compressed file, is a text that
// ends too early.
func TestReadErrorsThatAreTruncations(t *testing.T) {
	cut := fmt.Errorf("gzip: %w", io.ErrUnexpectedEOF)
	for text, pointer := range map[string]string{
		"":                     "",
		`{"a": [1, [], 2`:      "/a/2",
		`{"a": [1, [], `:       "/a/2",
		`{"a": [1, [`:          "/a/1/0",
		`{"a": `:               "/a",
		`{"a": 1, "b`:          "",
		`{"a": 1`:              "/a",
		`[{"a": "x"}, {"b": "`: "/1/b",
	} {
		want := Fault{Rule: finding.JSONSyntax, Offset: int64(len(text)), Pointer: pointer, Message: cut.Error(), Truncated: true}
		_, err := Check(failing{text, int64(len(text)), cut}, Limits{})
		checkFault(t, fmt.Sprintf("%q", text), err, want)
	}
}

func TestReadTree(t *testing.T) {
	text := `[0, {"a": 1}]`
	v, err := ReadTree(strings.NewReader(text), Span{4, 8})
	if err != nil || v.Offset != 4 || v.Get("a").Offset != 10 {
		t.Errorf("ReadTree = %+v, %v", v, err)
	}
	var read *ReadError
	if _, err := ReadTree(strings.NewReader(text[:8]), Span{4, 8}); !errors.As(err, &read) || read.Offset != 8 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a text that has become shorter: %#v", err)
	}
	broken := errors.New("device not ready")
	if _, err := ReadTree(failing{text, 6, broken}, Span{4, 8}); !errors.As(err, &read) || read.Offset != 6 || !errors.Is(err, broken) {
		t.Errorf("a source that cannot be read: %#v", err)
	}
}

// decode reads a value as encoding/json would, and checks each span against it.
func decode(t *testing.T, s *Scanner, text []byte) (v any, err error) {
	kind, start := s.Peek(), s.NextOffset()
	switch kind {
	case '{':
		members := map[string]any{}
		_, _, err = s.Object(func(name []byte) error {
			key := string(name)
			members[key], err = decode(t, s, text)
			return err
		})
		v = members
	case '[':
		elems := []any{}
		_, _, err = s.Array(func(int) error {
			elem, err := decode(t, s, text)
			elems = append(elems, elem)
			return err
		})
		v = elems
	default:
		var scalar Scalar
		scalar, err = s.Scalar()
		v = scalarValue(scalar)
	}
	if err == nil {
		again := unmarshal(t, text[start:s.Offset()])
		if diff := cmp.Diff(again, v); diff != "" {
			t.Errorf("%q at %d to %d (-encoding/json +scanner):\n%s", text, start, s.Offset(), diff)
		}
	}
	return v, err
}

func scalarValue(v Scalar) any {
	switch v.Kind {
	case 't', 'f':
		return v.Kind == 't'
	case '0':
		return json.Number(v.Raw)
	case '"':
		text, _ := v.Text()
		return text
	}
	return nil
}

func unmarshal(t *testing.T, text []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

func TestRandomDocuments(t *testing.T) {
	for seed := range uint64(3000) {
		text := randomText(seed)
		src := source{text, 1 + int(seed%50)}
		s := New(src, 0, 0, Mode(seed%3), Limits{Window: 1 + int(seed%100)})
		v, err := decode(t, s, text)
		if err == nil {
			err = s.End()
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(unmarshal(t, text), v); diff != "" {
			t.Fatalf("%q (-encoding/json +scanner):\n%s", text, diff)
		}
		checkSkips(t, src, text)
	}
}

// checkSkips requires that a value is skipped to where its walk ends, and that the spans
// of its members are theirs.
func checkSkips(t *testing.T, src io.ReaderAt, text []byte) {
	t.Helper()
	trimmed := bytes.TrimSpace(text)
	want := Span{int64(bytes.Index(text, trimmed)), int64(len(trimmed))}
	for _, mode := range []Mode{Strict, Lenient, Trusted} {
		if got, err := New(src, 0, 0, mode, Limits{}).Skip(); err != nil || got != want {
			t.Fatalf("%q: mode %d: Skip = %v, %v, want %v", text, mode, got, err, want)
		}
	}
	tree, err := New(bytes.NewReader(text), 0, 0, Strict, Limits{}).Tree(want.Len)
	if err != nil {
		t.Fatal(err)
	}
	s := New(src, 0, 0, Strict, Limits{})
	var spans []Span
	next := func() error { span, err := s.Skip(); spans = append(spans, span); return err }
	values := slices.Collect(func(yield func(*jsonvalue.Value) bool) {
		for i := range tree.Elems {
			yield(&tree.Elems[i])
		}
		for i := range tree.Members {
			yield(&tree.Members[i].Value)
		}
	})
	if tree.Kind == jsonvalue.Array {
		_, _, err = s.Array(func(int) error { return next() })
	} else {
		_, _, err = s.Object(func([]byte) error { return next() })
	}
	if err != nil || len(spans) != len(values) {
		t.Fatalf("%q: %d members, %v, want %d", text, len(spans), err, len(values))
	}
	for i, span := range spans {
		v, err := ReadTree(bytes.NewReader(text), span)
		if diff := cmp.Diff(values[i], v, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%q: member %d at %v, %v (-want +got):\n%s", text, i, span, err, diff)
		}
	}
}

// checkJumps requires that a document reads the same, faults and all, whichever member's
// value is jumped over.
func checkJumps(t *testing.T, text []byte, mode Mode) {
	t.Helper()
	src := bytes.NewReader(text)
	want, ends, wantErr := record(src, mode, -1, 0)
	for i, end := range ends {
		got, _, err := record(src, mode, i, end)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q, mode %d, jumping over member %d (-read +jumped):\n%s", text, mode, i, diff)
		}
		if !sameFault(wantErr, err) {
			t.Fatalf("%q, mode %d, jumping over member %d: %+v, want %+v", text, mode, i, err, wantErr)
		}
	}
}

func sameFault(a, b error) bool {
	var x, y *Fault
	if !errors.As(a, &x) || !errors.As(b, &y) {
		return a == b
	}
	x.Message = y.Message // the decoder quotes as much of the text as its buffer holds
	return *x == *y
}

func TestJumpTo(t *testing.T) {
	for _, text := range []string{
		"[[1].5]",
		"[[1]5]",
		"[1 , 2, 3]",
		`[1, [2], {"a":[3, x]}]`,
		"[{} {}]",
		"[[],,1]",
		"[[], 1,]",
		"[[]}",
		"[[]",
		"[[] ] 1",
		"[1, 2, 3, NaN]",
		"[1, 2, 3, {\"x\": [-Infinity]}]",
		`{"a": [1], "b": {"c": 2}, "d": "x"}`,
		`{"a": [1], "b": {"c": 2}, "d": "x"`,
		`{"a": [1], "b": {"c": 2}, "a": 3}`,
		`{"a": [1], "b": {"c": 2}, "b": 3}`,
		`{"a": [1], "b": {"c": 2} "d": 3}`,
		`{"a": [1], "b": {"c": 2}: 3}`,
		`{"a": [1], "b": {"c": 2}, 3}`,
		`{"a": [1], "b": {"c": 2}]`,
		`{"a\u00e9": [1], "aé": 1}`,
		`{"a": [1], "c": {"x": 1, "x": 2}}`,
		`{"a": [1], "b": 12, "c": -}`,
		`{"a": "}", "b": true} {}`,
	} {
		for _, mode := range []Mode{Strict, Lenient, Trusted} {
			checkJumps(t, []byte(text), mode)
		}
	}
	checkJumps(t, []byte(`{"\ud800": [1], "\ud801": 2, "\ud800": 3}`), Lenient)
}

func TestJumpToInRandomDocuments(t *testing.T) {
	for seed := range uint64(3000) {
		text := randomContainer(seed)
		mode := Mode(seed % 2)
		checkJumps(t, text, mode)
		checkJumps(t, damage(rand.New(rand.NewPCG(seed, 2)), text), mode)
	}
}

// Jumps save the reading of what is jumped over.
func TestJumpToReadsNothing(t *testing.T) {
	src := &synthetic{head: `{"a": [`, fill: ' ', size: 1 << 30}
	s := New(src, 0, 0, Strict, Limits{})
	_, _, err := s.Object(func([]byte) error { return s.JumpTo(1<<30 - 1000) })
	var f *Fault
	if !errors.As(err, &f) || !f.Truncated || f.Offset != 1<<30 || src.asked > windowSize+1000 {
		t.Errorf("%d bytes read, error %+v", src.asked, err)
	}
}
