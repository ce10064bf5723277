package jsonstream

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// addSeeds gives a fuzz target texts that have been trouble somewhere.
func addSeeds(f *testing.F) {
	for _, text := range []string{
		"", " ", "0", "-", "1.", "1e", "01", "nul", `"`, `"\`, `"\u`, `"\ud800`, `"\ud800\u`, `"\ud800\ud8`, "[", "{", `{"a"`, `{"a":`, "[1,", "]", "}", ",", ":",
		`{"a": [1.5e+3, true, false, null, -0], "é\u00e9\n": {"x": {}, "y": []}}`,
		`{"\ud800":1,"\ud801":2}`, `{"\ud800":1,"\uD800":2}`, `{"valid":1,"v\u0061lid":2}`, "[\"\\ud800\",\"\xff\"]", "[\"\xed\xa0\x80\"]",
		"\n{\n{\x00", `{"a":1,[[[`, "NaN", "[-Infinity]", `{"a":Infinity}`, "[1,NaN]", "[Nano]", "[1e-Infinity]", "\ufeff{}", "{'a':1}", "[1,]", `{"a":1,}`, "{} {}", "[1] nul",
		"[[1].5]", "[[1]5]", "[{} {}]", `{"a":[1],"b":2,"a":3}`, `{"a":[1] "b":2}`, "[1 , 2, 3, {\"x\": [-Infinity]}]",
		nestText(DefaultDepth, false), nestText(DefaultDepth+1, true),
	} {
		f.Add([]byte(text))
	}
	for seed := range uint64(20) {
		f.Add(randomText(seed))
		f.Add(randomContainer(seed))
	}
}

// verdict tells what a text is without the package's own scanner: a sound document, with
// lone surrogates or without, or the rules of which one must be broken.
func verdict(text []byte) (sound, lenient bool, rules []finding.ID) {
	broken := []finding.ID{finding.JSONSyntax, finding.JSONNumber, finding.JSONDuplicateKey, finding.JSONDepth}
	lax := []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}
	if !isSound(text, lax...) {
		return false, false, broken
	}
	tree, err := jsonvalue.Parse(text, 0)
	switch {
	case errors.Is(err, jsonvalue.ErrDepth):
		return false, false, broken
	case !utf8.Valid(text):
		return false, false, []finding.ID{finding.JSONSyntax, finding.JSONDuplicateKey}
	case err != nil || hasTwins(tree):
		return false, false, []finding.ID{finding.JSONDuplicateKey}
	}
	return true, !isSound(text), nil
}

// hasTwins tells whether a name occurs twice in an object.
func hasTwins(v *jsonvalue.Value) bool {
	seen := map[string]bool{}
	for i := range v.Members {
		m := &v.Members[i]
		if seen[m.Name] || hasTwins(&m.Value) {
			return true
		}
		seen[m.Name] = true
	}
	for i := range v.Elems {
		if hasTwins(&v.Elems[i]) {
			return true
		}
	}
	return false
}

func FuzzCheck(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		sound, lenient, rules := verdict(text)
		got, err := Check(bytes.NewReader(text), Limits{})
		if sound {
			if err != nil || got != lenient {
				t.Fatalf("Check(%q) = %t, %v, want %t", text, got, err, lenient)
			}
			return
		}
		var fault *Fault
		if !errors.As(err, &fault) || got {
			t.Fatalf("Check(%q) = %t, %v, want a fault", text, got, err)
		}
		if !contains(rules, fault.Rule) || fault.Offset < 0 || fault.Offset > int64(len(text)) || fault.Message == "" {
			t.Fatalf("Check(%q): %+v, want one of %s", text, fault, rules)
		}
		if fault.Pointer != "" && fault.Pointer[0] != '/' {
			t.Fatalf("Check(%q): pointer %q", text, fault.Pointer)
		}
		if fault.Truncated && fault.Rule != finding.JSONSyntax {
			t.Fatalf("Check(%q): truncated, and %s", text, fault.Rule)
		}
	})
}

func contains(rules []finding.ID, rule finding.ID) bool {
	for _, r := range rules {
		if r == rule {
			return true
		}
	}
	return false
}

// FuzzScannerWalk requires that reading member by member and skipping come to the same.
func FuzzScannerWalk(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, mode := range []Mode{Strict, Lenient, Trusted} {
			skipped := New(bytes.NewReader(text), 0, 0, mode, Limits{Window: 16})
			walked := New(source{text, 5}, 0, 0, mode, Limits{})
			start := walked.NextOffset()
			span, skipErr := skipped.Skip()
			walkErr := walk(walked)
			if !sameFault(skipErr, walkErr) {
				t.Fatalf("%q, mode %d: skipping %+v, walking %+v", text, mode, skipErr, walkErr)
			}
			if skipErr != nil {
				continue
			}
			if span != (Span{start, walked.Offset() - start}) {
				t.Fatalf("%q, mode %d: skipped %v, walked %d to %d", text, mode, span, start, walked.Offset())
			}
			if errA, errB := skipped.End(), walked.End(); !sameFault(errA, errB) {
				t.Fatalf("%q, mode %d: behind it %v and %v", text, mode, errA, errB)
			}
		}
	})
}

func FuzzJumpTo(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, mode := range []Mode{Strict, Lenient, Trusted} {
			checkJumps(t, text, mode)
		}
	})
}
