package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

// Object is a JSON object whose members keep their order.
type Object []Detail

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) { return whole(o) }

// jsonFinding is a finding in the JSON formats; what does not apply is absent.
type jsonFinding struct {
	Rule        finding.ID       `json:"rule"`
	Severity    finding.Severity `json:"severity"`
	Level       finding.Level    `json:"level,omitempty"` // absent when the rule is not in the table
	File        string           `json:"file,omitempty"`
	Pointer     *string          `json:"pointer,omitempty"` // "" is the whole document
	Line        int              `json:"line,omitempty"`
	Column      int              `json:"column,omitempty"`
	Rank        *int             `json:"rank,omitempty"` // 0 is a rank
	BenchmarkID int64            `json:"benchmark_id,omitempty"`
	Message     string           `json:"message"`
	Expected    string           `json:"expected,omitempty"`
	Actual      string           `json:"actual,omitempty"`
	Hint        string           `json:"hint,omitempty"`
}

func newJSONFinding(f finding.Finding) jsonFinding {
	rule, _ := finding.Lookup(f.Rule)
	j := jsonFinding{
		Rule: f.Rule, Severity: f.Severity, Level: rule.Level, File: valid(f.File),
		Line: f.Line, Column: f.Column, BenchmarkID: f.BenchmarkID,
		Message: valid(f.Message), Expected: valid(f.Expected), Actual: valid(f.Actual), Hint: valid(f.Hint),
	}
	if pointer := valid(f.Pointer); pointer != "" || f.File != "" {
		j.Pointer = &pointer
	}
	if f.Rank != finding.NoRank {
		j.Rank = &f.Rank
	}
	return j
}

type jsonFatal struct {
	Message string        `json:"message"`
	File    string        `json:"file,omitempty"`
	Hint    string        `json:"hint,omitempty"`
	Code    exitcode.Code `json:"exit_status"`
}

// document returns the members of the report document, its lists left out.
func (r *Report) document() (head, tail Object) {
	head = Object{
		{"schema", "fpm.report"},
		{"schema_version", 1},
		{"command", valid(r.Command)},
		{"status", r.Status},
	}
	tail = Object{{"total", r.Total}, {"errors", r.Errors}, {"warnings", r.Warnings}}
	if len(r.Fatal) > 0 {
		fatal := make([]jsonFatal, len(r.Fatal))
		for i, f := range r.Fatal {
			fatal[i] = jsonFatal{valid(f.Message), valid(f.File), valid(f.Hint), f.Code}
		}
		tail = append(tail, Detail{"fatal", fatal})
	}
	for _, d := range r.Details {
		tail = append(tail, Detail{d.Key, validValue(d.Value)})
	}
	return head, tail
}

// validValue is [valid] for the kinds of values that hold paths; the encoder shows bytes
// that are not UTF-8 in any other as U+FFFD.
func validValue(v any) any {
	switch v := v.(type) {
	case string:
		return valid(v)
	case []string:
		list := make([]string, len(v))
		for i, s := range v {
			list[i] = valid(s)
		}
		return list
	default:
		return v
	}
}

func printJSON(w io.Writer, r *Report) error {
	findings := make([]jsonFinding, len(r.Findings))
	for i, f := range r.Findings {
		findings[i] = newJSONFinding(f)
	}
	head, tail := r.document()
	doc := append(append(head, Detail{"findings", findings}), tail...)
	if r.Items.Key != "" {
		doc = append(doc, Detail{r.Items.Key, append([]any{}, r.Items.Values...)}) // never null
	}
	return writeJSON(w, doc, "  ")
}

func printJSONLines(w io.Writer, r *Report) error {
	for _, f := range r.Findings {
		if err := writeJSON(w, newJSONFinding(f), ""); err != nil {
			return err
		}
	}
	for _, v := range r.Items.Values {
		if err := writeJSON(w, v, ""); err != nil {
			return err
		}
	}
	head, tail := r.document()
	return writeJSON(w, append(head, tail...), "")
}

// writeJSON writes a value and a line end.
func writeJSON(w io.Writer, v any, indent string) error {
	s := stream{w: w, indent: indent}
	s.value(v, "")
	s.put("\n")
	return s.err
}

// marshal returns the JSON text of a value whose lines after the first begin with a prefix.
func marshal(v any, prefix, indent string) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, indent)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	return escaped(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// escaped returns JSON text in which characters without a graphic form are escaped: outside
// of ASCII they can only stand in strings, so that the text as a whole can be treated.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r != '\n' && (r < ' ' || r > '~') }) {
		return text // as nearly all texts are; a long list is not to be copied once more
	}
	dst := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		dst = appendJSONRune(dst, r, text[:n])
		text = text[n:]
	}
	return dst
}

// appendJSONRune appends a character of JSON text, as an escape when it has no graphic
// form. Line ends are those of the layout.
func appendJSONRune(dst []byte, r rune, text []byte) []byte {
	switch {
	case r == '\n' || unicode.IsGraphic(r):
		return append(dst, text...)
	case r > 0xffff:
		r -= 0x10000
		return fmt.Appendf(dst, `\u%04x\u%04x`, 0xd800|r>>10, 0xdc00|r&0x3ff)
	default:
		return fmt.Appendf(dst, `\u%04x`, r)
	}
}
