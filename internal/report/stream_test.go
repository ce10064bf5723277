package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Written part by part, a value is what encoding/json makes of the whole.
func TestStream(t *testing.T) {
	list := func(values ...any) List {
		return func(yield func(any) bool) {
			for _, v := range values {
				if !yield(v) {
					return
				}
			}
		}
	}
	v := Object{
		{"empty object", Object{}}, {"empty list", list()}, {"nothing", []any{}}, {"null", nil}, {"text <&>", "<&>\u202e\x1b"},
		{"list", list(1, "a", Object{{"b", []int{1, 2}}, {"c", map[string]int{"x": 1}}}, list(list()), []any{nil, []string{}})},
		{"objects", []Object{{{"x", 1}}, {}}}, {"struct", struct {
			A int   `json:"a"`
			L List  `json:"l"`
			M []any `json:"m"`
		}{1, list(1, Object{{"y", 2}}), nil}},
	}
	compact, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, indent := range []string{"", "  "} {
		var want, got bytes.Buffer
		if err := writeJSON(&got, v, indent); err != nil {
			t.Fatal(err)
		}
		encoder := json.NewEncoder(&want)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", indent)
		if err := encoder.Encode(json.RawMessage(compact)); err != nil {
			t.Fatal(err)
		}
		// The encoder escapes what is HTML in texts of values that write themselves.
		plain := strings.NewReplacer(`\u003c`, "<", `\u0026`, "&", `\u003e`, ">").Replace
		if diff := cmp.Diff(plain(want.String()), plain(got.String())); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// A value that cannot be written, and a writer that fails, end the list.
func TestStreamFails(t *testing.T) {
	made := 0
	endless := List(func(yield func(any) bool) {
		for {
			if made++; !yield(make(chan int)) {
				return
			}
		}
	})
	if err := writeJSON(&bytes.Buffer{}, Object{{"a", endless}}, "  "); err == nil || made > 2 {
		t.Errorf("%v after %d values", err, made)
	}
	full := errors.New("full")
	if err := writeJSON(failing{full}, Object{{"a", 1}}, ""); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
