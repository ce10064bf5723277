package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
)

// junit is a report as test results: a suite for each file, and one for what belongs to
// none; in it a test case for each rule that was found broken there, however often. A
// case has one name in a report, since readers drop the second of two.
type junit struct {
	command string // "fpm merge"
	suites  []*junitSuite
	byName  map[string]*junitSuite
}

type junitSuite struct {
	name   string
	cases  []*junitCase
	byName map[string]*junitCase
}

// junitCase is a test case. One that fails or has an error holds its text in that
// element; one that passes, in its output.
type junitCase struct {
	name    string
	outcome string // "failure" (the evidence says no), "error" (not to be judged), "" passes
	kind    string // rule id, or the name of an exit status
	message string // the first
	count   int    // of messages
	text    strings.Builder
}

// printJUnit writes the XML that JUnit's first reporter has made common. It keeps to the
// elements and attributes that strict readers know: there is no attribute for the file
// of a test case.
func printJUnit(w io.Writer, r *Report) {
	j := &junit{command: strings.TrimSpace("fpm " + Escape(r.Command)), byName: map[string]*junitSuite{}}
	for _, f := range r.shown() {
		c := j.testcase(f.File, string(f.Rule), "failure")
		if f.Severity == finding.Warning {
			c.outcome = ""
		}
		c.say(f.Message)
		printFinding(&c.text, f, TextOptions{})
	}
	for _, f := range r.Fatal {
		c := j.testcase(f.File, codeName(f.Code), "error")
		c.say(f.Message)
		printFatal(&c.text, f, TextOptions{})
	}
	j.conclude(r)
	j.write(w, r.closing())
}

// conclude adds the case that stands for the command as a whole, where no other one says
// how it ended.
func (j *junit) conclude(r *Report) {
	switch {
	case r.unexplained():
		outcome := "error"
		if r.Status == Rejected {
			outcome = "failure"
		}
		c := j.testcase("", string(r.Status), outcome)
		c.say(r.outcome())
	case r.Status == OK:
		j.testcase("", "no errors", "")
	}
}

// testcase returns the case of a file and a rule; an empty file is none.
func (j *junit) testcase(file, kind, outcome string) *junitCase {
	suite, name := j.command, kind
	if file != "" {
		suite = Escape(file)
		name = suite + ": " + kind
	}
	s := j.byName[suite]
	if s == nil {
		s = &junitSuite{name: suite, byName: map[string]*junitCase{}}
		j.byName[suite] = s
		j.suites = append(j.suites, s)
	}
	c := s.byName[name]
	if c == nil {
		c = &junitCase{name: name, kind: kind, outcome: outcome}
		s.byName[name] = c
		s.cases = append(s.cases, c)
	}
	return c
}

func (c *junitCase) say(message string) {
	if c.count == 0 {
		c.message = Escape(message)
	}
	c.count++
}

// counts returns the attributes that sum up cases.
func counts(cases []*junitCase) string {
	var failures, errors int
	for _, c := range cases {
		switch c.outcome {
		case "failure":
			failures++
		case "error":
			errors++
		}
	}
	return fmt.Sprintf(`tests="%d" failures="%d" errors="%d"`, len(cases), failures, errors)
}

// write writes the document. The closing lines are output of the last suite: readers
// drop a suite of its own that has no cases.
func (j *junit) write(w io.Writer, closing string) {
	var all []*junitCase
	for _, s := range j.suites {
		all = append(all, s.cases...)
	}
	fmt.Fprintln(w, `<?xml version="1.0" encoding="UTF-8"?>`)
	fmt.Fprintf(w, "<testsuites name=\"%s\" %s>\n", escapeXML.Replace(j.command), counts(all))
	for i, s := range j.suites {
		fmt.Fprintf(w, "  <testsuite name=\"%s\" %s skipped=\"0\">\n", escapeXML.Replace(s.name), counts(s.cases))
		for _, c := range s.cases {
			c.write(w, strings.ReplaceAll(j.command, " ", "."))
		}
		if i == len(j.suites)-1 && closing != "" {
			fmt.Fprintf(w, "    <system-out>%s</system-out>\n", escapeXML.Replace(closing))
		}
		fmt.Fprintln(w, "  </testsuite>")
	}
	fmt.Fprintln(w, "</testsuites>")
}

func (c *junitCase) write(w io.Writer, class string) {
	open := fmt.Sprintf("    <testcase classname=\"%s\" name=\"%s\"", escapeXML.Replace(class), escapeXML.Replace(c.name))
	text := escapeXML.Replace(c.text.String())
	switch {
	case c.outcome != "":
		message := c.message
		if c.count > 1 {
			message += fmt.Sprintf(" (and %d more)", c.count-1)
		}
		fmt.Fprintf(w, "%s>\n      <%s type=\"%s\" message=\"%s\">%s</%s>\n    </testcase>\n",
			open, c.outcome, escapeXML.Replace(c.kind), escapeXML.Replace(message), text, c.outcome)
	case text != "":
		fmt.Fprintf(w, "%s>\n      <system-out>%s</system-out>\n    </testcase>\n", open, text)
	default:
		fmt.Fprintf(w, "%s></testcase>\n", open)
	}
}

// escapeXML is for texts that [Escape] has left without characters that XML forbids.
var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;")
