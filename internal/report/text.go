package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
)

// maxValue bounds expected, actual and hint in text, in characters.
const maxValue = 200

// style is a way to set text off; the zero style does not.
type style string

const (
	bold   style = "\x1b[1m"
	red    style = "\x1b[1;31m"
	yellow style = "\x1b[1;33m"
	faint  style = "\x1b[2m"
	reset        = "\x1b[0m"
)

// paint returns text in a style, or as it is without colour.
func (o TextOptions) paint(s style, text string) string {
	if !o.Color || text == "" {
		return text
	}
	return string(s) + text + reset
}

func printText(w io.Writer, r *Report, opt TextOptions) {
	for _, f := range r.shown() {
		printFinding(w, f, opt)
	}
	if closing := r.closing(); closing != "" {
		fmt.Fprintln(w, closing)
	}
}

// printFinding writes a finding as compilers do, so that editors find the place.
func printFinding(w io.Writer, f finding.Finding, opt TextOptions) {
	if place := place(f); place != "" {
		fmt.Fprint(w, opt.paint(bold, place+":"), " ")
	}
	severity := red
	if f.Severity == finding.Warning {
		severity = yellow
	}
	fmt.Fprint(w, opt.paint(severity, fmt.Sprintf("%s[%s]", f.Severity, f.Rule)))
	if f.Pointer != "" {
		fmt.Fprint(w, " at ", Escape(f.Pointer))
	}
	fmt.Fprintf(w, ": %s\n", Escape(f.Message))
	note(w, opt, "level", level(f.Rule))
	note(w, opt, "expected", f.Expected)
	note(w, opt, "actual", f.Actual)
	note(w, opt, "hint", f.Hint)
}

// level says of a rule that a merge does not require who does; it is empty for others.
func level(id finding.ID) string {
	rule, _ := finding.Lookup(id)
	switch {
	case rule.Level != finding.Strict:
		return ""
	case id == finding.SchemaViolation: // a merge, too, refuses some of what breaks a schema
		return "strict: its schema was asked for"
	default:
		return "strict: a merge accepts this"
	}
}

// place returns FILE:LINE:COL as far as it is known.
func place(f finding.Finding) string {
	switch {
	case f.File == "":
		return ""
	case f.Line > 0:
		return fmt.Sprintf("%s:%d:%d", Escape(f.File), f.Line, f.Column)
	default:
		return Escape(f.File)
	}
}

// note writes one labelled line below a finding, when there is something to say.
func note(w io.Writer, opt TextOptions, label, text string) {
	if text != "" {
		pad := strings.Repeat(" ", len("expected")-len(label))
		fmt.Fprintf(w, "    %s%s %s\n", opt.paint(faint, label+":"), pad, escapeCut(text, maxValue))
	}
}

// PrintFatal writes what could not be done, for people.
func PrintFatal(w io.Writer, r *Report, opt TextOptions) error {
	var b strings.Builder
	for _, f := range r.Fatal {
		printFatal(&b, f, opt)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// PrintAside writes what belongs on standard error when a report in a format is on
// standard output: what could not be done, where people read; and, where standard output
// is a file that a service reads, how the command ended, so that nobody has to open the
// file to learn it. [Report.Quiet] leaves out the latter only. Programs that read JSON
// need neither.
func PrintAside(w io.Writer, format Format, r *Report, opt TextOptions) error {
	if format == JSON || format == JSONL {
		return nil
	}
	err := PrintFatal(w, r, opt)
	if format.ForFindings() && !r.Quiet && r.Status != OK && (r.Total > 0 || len(r.Fatal) == 0) && err == nil {
		_, err = fmt.Fprintln(w, r.outcome())
	}
	return err
}

func printFatal(w io.Writer, f Fatal, opt TextOptions) {
	fmt.Fprint(w, opt.paint(red, "fpm:"), " ")
	if f.File != "" {
		fmt.Fprint(w, Escape(f.File), ": ")
	}
	fmt.Fprintln(w, Escape(f.Message))
	if f.Hint != "" {
		fmt.Fprintf(w, "    %s %s\n", opt.paint(faint, "hint:"), escapeCut(f.Hint, maxValue))
	}
}
