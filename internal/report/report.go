// Package report prints what a command has to say.
//
// A command makes one [Report]: the findings of its checks, what could not be done, and
// a summary or data of its own. [Print] writes it in one of the formats, the same for
// every command: lines for people the way compilers write them, one JSON document, JSON
// lines, or what continuous integration shows: JUnit test results, annotations of a GitHub
// workflow, a GitLab Code Quality report, a SARIF log.
//
// Whatever comes from a file is untrusted. No format lets a control character, an escape
// sequence or a character that changes the direction of text through: see [Escape].
package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/words"
)

// Status is the outcome of a command.
type Status string

// The outcomes.
const (
	OK           Status = "ok"           // done, the evidence holds
	Rejected     Status = "rejected"     // the evidence says no
	Failed       Status = "failed"       // the work could not be done
	Undetermined Status = "undetermined" // the evidence says neither
)

// Report is what a command has to say when it ends.
type Report struct {
	Command  string // as it was called, without the program's name: "merge", "simulate run"
	Status   Status
	Findings []finding.Finding // in report order, located, cut to the maximum
	Total    int               // all findings, errors and warnings, printed or not
	Errors   int               // all findings that reject
	Warnings int               // all findings that do not
	Fatal    []Fatal           // what could not be done
	Body     string            // for people, one or more lines; printed whatever the status
	Summary  string            // for people, one or more lines; printed when the status is ok
	Details  Object            // further members of the JSON document
	Items    Items             // a list that is the command's result; JSON formats only
	Quiet    bool              // leaves warnings out where people read
	Version  string            // of fpm, where a format names it; may be empty
}

// Fatal is something that could not be done: a file that is missing, an unknown flag, a
// bug.
type Fatal struct {
	Message string
	File    string // the path concerned; may be empty
	Hint    string // what to do; may be empty
	Code    exitcode.Code
}

// Detail is a member of a JSON object whose members have an order.
type Detail struct {
	Key   string
	Value any // a value that encoding/json takes
}

// Items is a list of values: a member of the JSON document, a line each in JSON lines.
type Items struct {
	Key    string
	Values []any
}

// New returns the report of a command's findings, of which there are so many errors and
// warnings in all: rejected when there is an error.
func New(command string, findings []finding.Finding, errors, warnings int) *Report {
	r := &Report{
		Command:  command,
		Status:   OK,
		Findings: findings,
		Errors:   errors,
		Warnings: warnings,
		Total:    errors + warnings,
	}
	if errors > 0 {
		r.Status = Rejected
	}
	return r
}

// Fail adds what could not be done and makes the report a failed one. The findings stay:
// they are printed all the same. A nil error changes nothing.
func (r *Report) Fail(err error) {
	if err == nil {
		return
	}
	e := exitcode.From(err)
	message := (&exitcode.Error{Message: e.Message, Err: e.Err}).Error() // without the file
	r.Fatal = append(r.Fatal, Fatal{Message: message, File: e.File, Hint: e.Hint, Code: e.Code})
	r.Status = Failed
}

// Code returns the exit status that the report stands for.
func (r *Report) Code() exitcode.Code {
	code := exitcode.OK
	switch r.Status {
	case Rejected:
		code = exitcode.Rejected
	case Undetermined:
		code = exitcode.Undetermined
	case Failed:
		if len(r.Fatal) == 0 {
			code = exitcode.Failed
		}
	}
	for _, f := range r.Fatal {
		code = exitcode.Worse(code, f.Code)
	}
	return code
}

// Format is a form of a report.
type Format string

// The formats.
const (
	Text   Format = "text"   // lines for people
	JSON   Format = "json"   // one document
	JSONL  Format = "jsonl"  // a finding a line, then the document without them
	JUnit  Format = "junit"  // test results in XML
	GitHub Format = "github" // annotations of a workflow
	GitLab Format = "gitlab" // a Code Quality report
	SARIF  Format = "sarif"  // a log of the Static Analysis Results Interchange Format 2.1.0
)

// Formats returns every format, the default first.
func Formats() []Format { return []Format{Text, JSON, JSONL, JUnit, GitHub, GitLab, SARIF} }

// ForFindings tells whether a format has a place for findings and none for other results.
func (f Format) ForFindings() bool {
	return !slices.Contains([]Format{Text, JSON, JSONL}, f)
}

// ParseFormat returns the format of a name. The error names the formats there are.
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats(), f) {
		return f, nil
	}
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("%q is none of the formats %s", name, strings.Join(names, ", "))
}

// TextOptions say how the text format looks.
type TextOptions struct {
	Color bool // with the escape sequences of colour terminals
}

// Print writes a report. Errors are those of w.
//
// The text format leaves out what could not be done: that belongs on standard error, see
// [PrintFatal].
func Print(w io.Writer, format Format, r *Report, opt TextOptions) error {
	b := bufio.NewWriter(w)
	var err error
	switch format {
	case JSON:
		err = printJSON(b, r)
	case JSONL:
		err = printJSONLines(b, r)
	case JUnit:
		printJUnit(b, r)
	case GitHub:
		printGitHub(b, r)
	case GitLab:
		err = printGitLab(b, r)
	case SARIF:
		err = printSARIF(b, r)
	default:
		printText(b, r, opt)
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// shown returns the findings that people are shown.
func (r *Report) shown() []finding.Finding {
	if !r.Quiet {
		return r.Findings
	}
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f finding.Finding) bool {
		return f.Severity == finding.Warning
	})
}

// closing returns the last lines for people: the body, the summary of a success, the
// outcome of anything else, and how many findings there are in all.
func (r *Report) closing() string {
	var parts []string
	if r.Body != "" {
		parts = append(parts, escapeLines(r.Body))
	}
	if r.Status == OK {
		if r.Summary != "" {
			parts = append(parts, escapeLines(r.Summary))
		}
		if r.Total == 0 {
			return strings.Join(parts, "\n")
		}
	} else if r.Total == 0 && len(r.Fatal) > 0 {
		return strings.Join(parts, "\n") // what could not be done says the rest
	}
	return strings.Join(append(parts, r.outcome()), "\n")
}

// outcome says how the command ended and how many findings there are.
func (r *Report) outcome() string {
	text := "fpm " + Escape(r.Command) + ": " + string(r.Status) + ": " + r.counts()
	if r.cut() > 0 {
		text += fmt.Sprintf(" (%d of them printed; --max-findings 0 prints all)", len(r.Findings))
	}
	return text
}

// cut returns how many findings are not printed.
func (r *Report) cut() int { return r.Total - len(r.Findings) }

// counts says how many errors and warnings there are in all.
func (r *Report) counts() string {
	return words.Count(r.Errors, "error", "errors") + ", " + words.Count(r.Warnings, "warning", "warnings")
}
