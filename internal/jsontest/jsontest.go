// Package jsontest edits small JSON documents for tests, and tells where things stand in
// them.
//
// A test of a rule takes a sound document, changes one thing in it and asks for the
// finding. [Set], [Del] and [Under] name the thing by JSON Pointer, where "*" is every
// element of an array and a final "-" the place behind its last:
//
//	jsontest.Apply(t, doc, jsontest.Set("/fpms/*/dp_rank", "1"), jsontest.Del("/status"))
//
// [Find] and [LineColumn] find a value again by other means than the code under test.
package jsontest

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Parse parses a document.
func Parse(t testing.TB, text string) *jsonvalue.Value {
	t.Helper()
	v, err := jsonvalue.Parse([]byte(text), 0)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

// Indent returns the text of a document as json.dump(indent=2) lays it out.
func Indent(v *jsonvalue.Value) string { return string(v.AppendIndent(nil, 0)) }

// Edit changes a document in place. An edit that finds nothing to change fails the test.
type Edit func(t testing.TB, root *jsonvalue.Value)

// Apply makes the edits, one after the other.
func Apply(t testing.TB, root *jsonvalue.Value, edits ...Edit) {
	t.Helper()
	for _, edit := range edits {
		edit(t, root)
	}
}

// Set gives the place that pointer names a value: a new one where an object lacks the
// key. The empty pointer is the document itself.
func Set(pointer, text string) Edit {
	return func(t testing.TB, root *jsonvalue.Value) {
		t.Helper()
		if pointer == "" {
			*root = *Parse(t, text)
			return
		}
		each(t, root, pointer, func(parent *jsonvalue.Value, token string) {
			value := *Parse(t, text)
			switch {
			case parent.Kind == jsonvalue.Object:
				parent.Set(token, value)
			case token == "-":
				parent.Elems = append(parent.Elems, value)
			default:
				parent.Elems[index(t, parent, token)] = value
			}
		})
	}
}

// Del removes what pointer names.
func Del(pointer string) Edit {
	return func(t testing.TB, root *jsonvalue.Value) {
		t.Helper()
		each(t, root, pointer, func(parent *jsonvalue.Value, token string) {
			if parent.Kind == jsonvalue.Array {
				i := index(t, parent, token)
				parent.Elems = slices.Delete(parent.Elems, i, i+1)
				return
			}
			i := slices.IndexFunc(parent.Members, func(m jsonvalue.Member) bool { return m.Name == token })
			if i < 0 {
				t.Fatalf("nothing to delete at %s", pointer)
			}
			parent.Members = slices.Delete(parent.Members, i, i+1)
		})
	}
}

// Under makes edits whose pointers start at the value that pointer names.
func Under(pointer string, edits ...Edit) Edit {
	return func(t testing.TB, root *jsonvalue.Value) {
		t.Helper()
		if pointer == "" {
			Apply(t, root, edits...)
			return
		}
		each(t, root, pointer, func(parent *jsonvalue.Value, token string) {
			child := step(parent, token)
			if child == nil {
				t.Fatalf("nothing to edit at %s", pointer)
			}
			Apply(t, child, edits...)
		})
	}
}

// each calls fn with the container and the last token of every place that pointer names.
func each(t testing.TB, v *jsonvalue.Value, pointer string, fn func(parent *jsonvalue.Value, token string)) {
	t.Helper()
	token, rest, inner := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	tokens := []string{unescape(token)}
	if token == "*" {
		tokens = tokens[:0]
		for i := range v.Elems {
			tokens = append(tokens, strconv.Itoa(i))
		}
		if len(tokens) == 0 {
			t.Fatalf("no element for the * of %s", pointer)
		}
	}
	for _, token := range tokens {
		if !inner {
			fn(v, token)
			continue
		}
		child := step(v, token)
		if child == nil {
			t.Fatalf("nothing at %s of %s", token, pointer)
		}
		each(t, child, rest, fn)
	}
}

func unescape(token string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

func index(t testing.TB, parent *jsonvalue.Value, token string) int {
	t.Helper()
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(parent.Elems) {
		t.Fatalf("no element %s", token)
	}
	return i
}

func step(v *jsonvalue.Value, token string) *jsonvalue.Value {
	if v.Kind != jsonvalue.Array {
		return v.Get(token)
	}
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(v.Elems) {
		return nil
	}
	return &v.Elems[i]
}

// Find returns the value that pointer leads to. Where the way ends early, it is the
// innermost value that exists, and missing counts the steps that do not.
func Find(root *jsonvalue.Value, pointer string) (v *jsonvalue.Value, missing int) {
	if pointer == "" {
		return root, 0
	}
	tokens := strings.Split(pointer, "/")[1:]
	for i, token := range tokens {
		child := step(root, unescape(token))
		if child == nil {
			return root, len(tokens) - i
		}
		root = child
	}
	return root, 0
}

// LineColumn returns the line and the column in bytes, both from 1, of an offset.
func LineColumn(text []byte, off int64) (line, column int) {
	before := text[:off]
	return bytes.Count(before, []byte("\n")) + 1, len(before) - bytes.LastIndexByte(before, '\n')
}

// Shuffle puts the members of every object in v in another order, but leaves the values
// of the keys in keep as they are.
func Shuffle(random *rand.Rand, v *jsonvalue.Value, keep ...string) {
	random.Shuffle(len(v.Members), func(i, j int) { v.Members[i], v.Members[j] = v.Members[j], v.Members[i] })
	for i := range v.Members {
		if !slices.Contains(keep, v.Members[i].Name) {
			Shuffle(random, &v.Members[i].Value, keep...)
		}
	}
	for i := range v.Elems {
		Shuffle(random, &v.Elems[i], keep...)
	}
}
