package jsonspan

import (
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

func TestLines(t *testing.T) {
	const text = "[\n    1,\n    {\n      \"a\": \" \\n \"\n    }\n  ]"
	deeper := strings.ReplaceAll(text, "\n", "\n    ")
	for _, tc := range []struct {
		name string
		a, b string
		want bool
	}{
		{"the same", text, text, true},
		{"one line", `{"a": 1}`, `{"a": 1}`, true},
		{"deeper", text, deeper, true},
		{"another value", deeper, strings.Replace(text, "1,", "2,", 1), false},
		{"another string", deeper, strings.Replace(text, `" \`, `"  \`, 1), false},
		{"a line less", deeper, strings.Replace(text, "    1,\n", "", 1), false},
		{"a line more", deeper, strings.Replace(text, "    1,\n", "    1,\n    1,\n", 1), false},
		{"one line too deep", strings.Replace(deeper, "\n", "\n ", 1), text, false},
		{"cut", deeper, text[:len(text)-1], false},
		{"empty", text, "", false},
		{"first line only", text, "[\n", false},
	} {
		for range 2 {
			got, err := New().lines(strings.NewReader(tc.a), jsonstream.Span{Len: int64(len(tc.a))}, strings.NewReader(tc.b), jsonstream.Span{Len: int64(len(tc.b))})
			if err != nil || got != tc.want {
				t.Errorf("%s: %t, %v, want %t", tc.name, got, err, tc.want)
			}
			tc.a, tc.b = tc.b, tc.a
		}
	}
}
