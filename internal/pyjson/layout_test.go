package pyjson_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// checkLayout feeds a text in chunks of a size.
func checkLayout(text string, level, chunk int) bool {
	c := pyjson.NewLayoutCheck(level)
	for at := 0; at < len(text); at += chunk {
		if !c.Feed([]byte(text[at:min(at+chunk, len(text))])) {
			return false
		}
	}
	return c.End()
}

func TestLayoutCheck(t *testing.T) {
	const laid = "[\n    {\n      \"a b\": 1,\n      \"c\": [],\n      \"d\": {}\n    },\n    \"x\\\"\\n: , [\"\n  ]"
	for _, tc := range []struct {
		name string
		text string
		want bool
	}{
		{"laid out", laid, true},
		{"empty", "[]", true},
		{"scalar", "12", true},
		{"another level", strings.ReplaceAll(laid, "\n  ", "\n"), false},
		{"no space behind a colon", strings.Replace(laid, `": 1`, `":1`, 1), false},
		{"two spaces behind a colon", strings.Replace(laid, `": 1`, `":  1`, 1), false},
		{"space before a comma", strings.Replace(laid, "1,", "1 ,", 1), false},
		{"space before a colon", strings.Replace(laid, `b":`, `b" :`, 1), false},
		{"space in an empty list", strings.Replace(laid, "[]", "[ ]", 1), false},
		{"line break in an empty object", strings.Replace(laid, "{}", "{\n      }", 1), false},
		{"one line too few", strings.Replace(laid, ",\n      \"c\"", ", \"c\"", 1), false},
		{"blank line", strings.Replace(laid, ",\n", ",\n\n", 1), false},
		{"carriage return", strings.ReplaceAll(laid, "\n", "\r\n"), false},
		{"tab", strings.Replace(laid, "      \"c\"", "\t\t\t\"c\"", 1), false},
		{"space at the end", laid + " ", false},
	} {
		for chunk := 1; chunk <= len(tc.text); chunk++ {
			if got := checkLayout(tc.text, 1, chunk); got != tc.want {
				t.Errorf("%s, in chunks of %d: %t, want %t", tc.name, chunk, got, tc.want)
			}
		}
	}
}

func TestShifter(t *testing.T) {
	const text = "[\n        1,\n        {\n          \"a\": \"  \"\n        }\n      ]"
	for levels := range 4 {
		want := strings.ReplaceAll(text, "\n"+strings.Repeat("  ", levels), "\n")
		for chunk := 1; chunk <= len(text); chunk++ {
			s := pyjson.NewShifter(levels)
			var got []byte
			for at := 0; at < len(text); at += chunk {
				got = s.Append(got, []byte(text[at:min(at+chunk, len(text))]))
			}
			if string(got) != want {
				t.Errorf("by %d levels, in chunks of %d: %q, want %q", levels, chunk, got, want)
			}
		}
	}
}

// What passes the check is what the Reindenter leaves alone, and the Shifter then does
// what it does.
func FuzzLayout(f *testing.F) {
	for _, text := range []string{"[]", "[\n      1\n    ]", `{"a": [1, {"b": "\n"}]}`, "{\n      \"a\": \"x\\\\\"\n    }", "[ ]", "1 "} {
		f.Add(text, uint8(3))
	}
	f.Fuzz(func(t *testing.T, text string, chunk uint8) {
		if !json.Valid([]byte(text)) {
			t.Skip("the text is trusted to be valid")
		}
		const level = 2
		size := max(int(chunk), 1)
		same := string(pyjson.NewReindenter(level).Append(nil, []byte(text))) == text
		if got := checkLayout(text, level, size); got != same {
			t.Fatalf("%q laid out: %t, but reindented to the same text: %t", text, got, same)
		}
		if !same {
			return
		}
		want := pyjson.NewReindenter(level-1).Append(nil, []byte(text))
		if got := pyjson.NewShifter(1).Append(nil, []byte(text)); string(got) != string(want) {
			t.Fatalf("%q shifted to %q, want %q", text, got, want)
		}
	})
}
