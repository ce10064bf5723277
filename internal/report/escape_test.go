package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		"plain text, C:\\dir \"x\"": "plain text, C:\\dir \"x\"",
		"a\x1b[31mb":                `a\u001b[31mb`,
		"a\r\n\tb\x00\x7f":          `a\r\n\tb\u0000\u007f`,
		"\u009b\u0085":              `\u009b\u0085`,
		"\u202e\u2066\u200b\ufeff":  `\u202e\u2066\u200b\ufeff`,
		"\u2028\U000e0041":          `\u2028\U000e0041`,
		"\xff\xc3":                  `\xff\xc3`,
		"\xed\xa0\x80\xed\xbf\xbf":  `\ud800\udfff`,
		"\xed\xa0":                  `\xed\xa0`,
		"é漢😀\u00a0\ufffd":           "é漢😀\u00a0\ufffd",
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestEscapeCut(t *testing.T) {
	for _, c := range []struct {
		in   string
		max  int
		want string
	}{
		{"abcd", 4, "abcd"},
		{"abcde", 4, "abcd…"},
		{"éééé", 4, "éééé"},
		{"ééééé", 4, "éééé…"},
		{"ab\x1b", 7, "ab…"}, // not inside of an escape
		{"ab\x1b", 8, `ab\u001b`},
		{"", 0, ""},
	} {
		if got := escapeCut(c.in, c.max); got != c.want {
			t.Errorf("escapeCut(%q, %d) = %q, want %q", c.in, c.max, got, c.want)
		}
	}
}

// FuzzPrint: whatever the files say, no format lets through more than graphic characters
// and its own line ends, and each keeps its own grammar.
func FuzzPrint(f *testing.F) {
	f.Add(hostile, hostile, hostile, 3, false)
	f.Add("results.json", "/run_id", "\"\x1b\"", 0, true)
	f.Add("a,b:c%d\n", "::add-mask::", "##[error]", 1, false)
	f.Add("\xed\xa0\x80", "\xc2", "\xf0\x9f", -1, true)
	f.Fuzz(func(t *testing.T, file, pointer, text string, rank int, fail bool) {
		c := finding.NewCollector(0)
		for _, rule := range []finding.ID{finding.RunID, finding.EngineUnverified} {
			c.Add(finding.Finding{
				Rule: rule, File: file, Pointer: pointer, Line: 1, Column: 2, Rank: rank,
				Message: text, Expected: text, Actual: pointer, Hint: text,
			})
		}
		r := reportOf("merge", c)
		r.Summary = strings.ReplaceAll(text, "\n", " ")
		r.Details = Object{{"output", file}, {"inputs", []string{file}}, {text, map[string]any{pointer: text}}}
		r.Items = Items{Key: "items", Values: []any{text}}
		if fail {
			r.Fail(&exitcode.Error{Code: exitcode.Failed, Message: text, File: file, Hint: text})
		}
		for _, format := range Formats() {
			out := print(t, format, r, TextOptions{})
			onlyGraphic(t, format, out)
			grammar(t, format, r, out)
		}
		colored := print(t, Text, r, TextOptions{Color: true})
		for _, own := range []string{string(bold), string(red), string(yellow), string(faint), reset} {
			colored = strings.ReplaceAll(colored, own, "")
		}
		if colored != print(t, Text, r, TextOptions{}) {
			t.Error("colour changes more than colour")
		}
	})
}

func onlyGraphic(t *testing.T, format Format, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("%s: not UTF-8: %q", format, out)
	}
	for _, c := range out {
		if c != '\n' && !unicode.IsGraphic(c) {
			t.Errorf("%s lets %U through: %q", format, c, out)
		}
	}
}

// grammar checks what a reader of the format relies on.
func grammar(t *testing.T, format Format, r *Report, out string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	switch format {
	case JSON:
		if !jsontext.Value(out).IsValid() {
			t.Errorf("not one strict JSON document: %s", out)
		}
	case JSONL:
		for _, line := range lines {
			if !jsontext.Value(line).IsValid() {
				t.Errorf("a line is not strict JSON: %s", line)
			}
		}
		if want := len(r.Findings) + len(r.Items.Values) + 1; len(lines) != want {
			t.Errorf("%d lines, want %d: %s", len(lines), want, out)
		}
	case JUnit, GitLab, SARIF:
		if err := checks[format](r, out); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	case GitHub:
		for _, line := range lines {
			if !strings.HasPrefix(line, "::error ") && !strings.HasPrefix(line, "::warning ") && !strings.HasPrefix(line, "::notice ") {
				t.Errorf("a line is no annotation: %q", line)
			}
		}
		if want := len(r.Findings) + len(r.Fatal) + 1; len(lines) != want {
			t.Errorf("%d lines, want %d: %s", len(lines), want, out)
		}
	}
}

func TestQuote(t *testing.T) {
	for path, want := range map[string]string{
		"run/benchmark_results_dp1.json": "run/benchmark_results_dp1.json", "": "''", "-x": "'./-x'",
		"a b": "'a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "~": "'~'", "é": "'é'",
	} {
		if got := Quote(path); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}
