package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

// In golden files the table of rules, which has its own test, is left out, and so are
// the places in it.
var (
	sarifTable = regexp.MustCompile(`(?s)("rules": \[).*?\n {10}\]`)
	sarifIndex = regexp.MustCompile(`"ruleIndex": \d+`)
)

func withoutTable(format Format, text string) string {
	if format != SARIF {
		return text
	}
	text = sarifTable.ReplaceAllString(text, `${1}"…"]`)
	return sarifIndex.ReplaceAllString(text, `"ruleIndex": "…"`)
}

// checkLine checks that a text from a decoded report has nothing that a terminal or a
// page could obey.
func checkLine(text string) error {
	for _, c := range text {
		if c != '\n' && !unicode.IsGraphic(c) {
			return fmt.Errorf("%q has %U", text, c)
		}
	}
	return nil
}

// Every report of the tests, in each of the formats for continuous integration, is what
// the format's readers require.
func TestFormatsForCI(t *testing.T) {
	all := reports()
	all["empty"] = reportOf("validate", finding.NewCollector(0))
	for _, status := range []Status{Rejected, Failed, Undetermined} {
		all["bare "+string(status)] = &Report{Command: "compare", Status: status}
	}
	for name, r := range all {
		t.Run(name, func(t *testing.T) {
			for format, check := range checks {
				if err := check(r, print(t, format, r, TextOptions{})); err != nil {
					t.Errorf("%s: %v", format, err)
				}
			}
		})
	}
}

var checks = map[Format]func(*Report, string) error{JUnit: checkJUnit, GitLab: checkGitLab, SARIF: checkSARIF}

// bad tells whether readers must take a report for one that did not go well.
func bad(r *Report) bool { return r.Code() != exitcode.OK }

// element is an XML element, whatever it is.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

func (e *element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// junitStructure is what an element may hold by the schema of Jenkins' JUnit reader, which
// refuses what it does not know, children in this order. What it leaves open and other
// readers ask for is required here. The schema that goes with Ant asks for a host, a time
// and properties that no check has, and has no attributes of the root, which others read.
var junitStructure = map[string]struct{ required, optional, children []string }{
	"testsuites": {nil, []string{"name", "time", "tests", "failures", "errors", "disabled"}, []string{"testsuite"}},
	"testsuite": {
		[]string{"name", "tests", "failures", "errors"},
		[]string{"skipped", "time", "timestamp", "hostname", "id", "package"},
		[]string{"properties", "testcase", "system-out", "system-err"},
	},
	"testcase":   {[]string{"name", "classname"}, []string{"time"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"failure":    {[]string{"type"}, []string{"message"}, nil},
	"error":      {[]string{"type"}, []string{"message"}, nil},
	"system-out": {},
}

func checkJUnit(r *Report, text string) error {
	var root element
	if err := xml.Unmarshal([]byte(text), &root); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if root.XMLName.Local != "testsuites" || len(root.Children) == 0 {
		return fmt.Errorf("the root is %s with %d children", root.XMLName.Local, len(root.Children))
	}
	if err := checkElement(&root); err != nil {
		return err
	}
	seen := map[string]bool{}
	if err := checkCounts(&root, seen); err != nil {
		return err
	}
	if failed := root.attr("failures") != "0" || root.attr("errors") != "0"; failed != bad(r) {
		return fmt.Errorf("a reader takes it for failed: %t, but the exit status is %d", failed, r.Code())
	}
	if r.Total > 0 && !strings.Contains(text, r.counts()) {
		return fmt.Errorf("the total is not said: %s", text)
	}
	return nil
}

func checkElement(e *element) error {
	allowed, ok := junitStructure[e.XMLName.Local]
	if !ok {
		return fmt.Errorf("there is no element %s", e.XMLName.Local)
	}
	for _, name := range allowed.required {
		if !slices.ContainsFunc(e.Attrs, func(a xml.Attr) bool { return a.Name.Local == name }) {
			return fmt.Errorf("%s has no %s", e.XMLName.Local, name)
		}
	}
	for _, a := range e.Attrs {
		if !slices.Contains(append(slices.Clone(allowed.required), allowed.optional...), a.Name.Local) {
			return fmt.Errorf("%s has an attribute %s", e.XMLName.Local, a.Name.Local)
		}
		if err := checkLine(a.Value); err != nil || strings.Contains(a.Value, "\n") {
			return fmt.Errorf("%s of %s: %q: %w", a.Name.Local, e.XMLName.Local, a.Value, err)
		}
	}
	last := 0
	for i := range e.Children {
		at := slices.Index(allowed.children, e.Children[i].XMLName.Local)
		if at < last {
			return fmt.Errorf("%s has a child %s there", e.XMLName.Local, e.Children[i].XMLName.Local)
		}
		last = at
		if err := checkElement(&e.Children[i]); err != nil {
			return err
		}
	}
	if len(allowed.children) > 0 && strings.TrimSpace(e.Text) != "" {
		return fmt.Errorf("%s has text: %q", e.XMLName.Local, e.Text)
	}
	return checkLine(e.Text)
}

// checkCounts compares the sums with the test cases, and sees that none has the name of
// another.
func checkCounts(e *element, seen map[string]bool) error {
	cases, outcomes := 0, map[string]int{}
	for _, suite := range append([]element{*e}, e.Children...) {
		for _, c := range suite.Children {
			if c.XMLName.Local != "testcase" {
				continue
			}
			cases++
			for _, outcome := range c.Children {
				outcomes[outcome.XMLName.Local]++
			}
			if e.XMLName.Local == "testsuites" {
				name := suite.attr("name") + "\x00" + c.attr("name")
				if seen[name] {
					return fmt.Errorf("two cases are named %q", c.attr("name"))
				}
				seen[name] = true
			}
		}
	}
	for name, n := range map[string]int{"tests": cases, "failures": outcomes["failure"], "errors": outcomes["error"]} {
		if e.attr(name) != strconv.Itoa(n) {
			return fmt.Errorf("%s says %s %s of %d", e.XMLName.Local, e.attr(name), name, n)
		}
	}
	if e.XMLName.Local == "testsuites" {
		for i := range e.Children {
			if len(e.Children[i].Children) == 0 {
				return fmt.Errorf("suite %s is empty", e.Children[i].attr("name"))
			}
			if err := checkCounts(&e.Children[i], seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkGitLab(r *Report, text string) error {
	var issues []gitlabIssue
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&issues); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if issues == nil {
		return fmt.Errorf("no array: %s", text)
	}
	seen, worst := map[string]bool{}, false
	for _, i := range issues {
		switch {
		case i.Description == "" || i.CheckName == "" || i.Fingerprint == "" || i.Location.Path == "" || i.Location.Lines.Begin < 1:
			return fmt.Errorf("an entry is not whole: %+v", i)
		case strings.HasPrefix(i.Location.Path, "./") || strings.Contains(i.Description, "\n"):
			return fmt.Errorf("an entry is not as it should be: %+v", i)
		case !slices.Contains([]string{"info", "minor", "major", "critical", "blocker"}, i.Severity):
			return fmt.Errorf("there is no severity %q", i.Severity)
		case seen[i.Fingerprint]:
			return fmt.Errorf("two entries have the fingerprint %s", i.Fingerprint)
		}
		if err := checkLine(i.Description); err != nil {
			return err
		}
		seen[i.Fingerprint] = true
		worst = worst || i.Severity == "major" || i.Severity == "blocker"
	}
	if worst != bad(r) {
		return fmt.Errorf("there is an entry that matters: %t, but the exit status is %d", worst, r.Code())
	}
	return nil
}

var sarifSchemaOnce = sync.OnceValue(func() *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.AssertFormat = true
	return c.MustCompile("testdata/sarif-2.1.0.schema.json")
})

func checkSARIF(r *Report, text string) error {
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if err := sarifSchemaOnce().Validate(document); err != nil {
		return fmt.Errorf("%#v", err)
	}
	var log sarifLog // but for the property bags, which are only written
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, `"properties": {`, `"x": {`)), &log); err != nil {
		return err
	}
	run := log.Runs[0]
	if len(run.Results) != len(r.Findings) {
		return fmt.Errorf("%d results of %d findings", len(run.Results), len(r.Findings))
	}
	if got := run.Invocations[0]; got.ExitCode != r.Code() || got.Successful == (r.Status == Failed) {
		return fmt.Errorf("exit status %d: %+v", r.Code(), got)
	}
	return checkResults(run)
}

func checkResults(run sarifRun) error {
	seen := map[string]bool{}
	for _, result := range run.Results {
		if rule := run.Tool.Driver.Rules[result.RuleIndex]; rule.ID != result.RuleID || rule.Configuration.Level != result.Level {
			return fmt.Errorf("result of %s points at rule %s", result.RuleID, rule.ID)
		}
		print := result.Fingerprints["finding/v1"]
		if print == "" || seen[print] {
			return fmt.Errorf("fingerprint %q is empty or not the only one", print)
		}
		seen[print] = true
		if err := checkLine(result.Message.Text); err != nil {
			return err
		}
		if link.MatchString(result.Message.Text) {
			return fmt.Errorf("there is a link in %q", result.Message.Text)
		}
	}
	for _, n := range run.Invocations[0].Notifications {
		if err := checkLine(n.Message.Text); err != nil {
			return err
		}
	}
	return nil
}

// link is how a message would become one: see the rules for messages of the standard.
var link = regexp.MustCompile(`[^\\]\]\(`)

// The checks see what is wrong.
func TestChecksCanFail(t *testing.T) {
	r := reports()["rejected"]
	for _, c := range []struct {
		format   Format
		old, new string
	}{
		{JUnit, `<failure `, `<fault `},
		{JUnit, ` failures="1"`, ` failures="2"`},
		{JUnit, `name="run.id"`, `name="run.id" file="x"`},
		{JUnit, `name="run.id"`, `title="run.id"`},
		{JUnit, `<testcase `, `text<testcase `},
		{JUnit, `of no single file`, "of no \u202e file"},
		{JUnit, "<testcase ", "<system-out></system-out><testcase "},
		{JUnit, `results_dp1.json: result.differs"`, `results_dp1.json: engine.mismatch"`},
		{JUnit, `4 errors, 1 warning`, ``},
		{GitLab, `"major"`, `"bad"`},
		{GitLab, `"begin": 31`, `"begin": 0`},
		{GitLab, `"path": "results_dp1.json"`, `"path": "./results_dp1.json"`},
		{GitLab, `"check_name"`, `"check"`},
		{GitLab, `of no single file`, `of\u001b no single file`},
		{SARIF, `"version": "2.1.0"`, `"version": "2.0.0"`},
		{SARIF, `"startLine": 31`, `"startLine": 0`},
		{SARIF, `"uri": "results_dp1.json"`, `"uri": "a%zz"`},
		{SARIF, `"ruleId": "engine.mismatch"`, `"ruleId": "engine.unverified"`},
		{SARIF, `"level": "warning"`, `"level": "minor"`},
		{SARIF, `"exitCode": 1`, `"exitCode": 0`},
		{SARIF, `"text": "of no single file`, `"text": "[of](no) file`},
		{SARIF, `"columnKind"`, `"columnUnit"`},
	} {
		text := print(t, c.format, r, TextOptions{})
		broken := strings.ReplaceAll(text, c.old, c.new)
		if broken == text {
			t.Errorf("%s has no %s", c.format, c.old)
		} else if checks[c.format](r, broken) == nil {
			t.Errorf("%s: nobody saw %s for %s", c.format, c.new, c.old)
		}
	}
}

// Every rule of the table stands in a log, with its texts.
func TestSARIFRules(t *testing.T) {
	rules := sarifRules()
	table := finding.Rules()
	if len(rules) != len(table) {
		t.Fatalf("%d rules of %d", len(rules), len(table))
	}
	for i, rule := range rules {
		want := table[i]
		if rule.ID != string(want.ID) || rule.Configuration.Level != string(want.Severity) || rule.Short.Text != want.Purpose {
			t.Errorf("%s is listed as %+v", want.ID, rule)
		}
		for _, text := range []string{rule.Full.Text, rule.Help.Text} {
			if !strings.Contains(text, strings.ReplaceAll(want.Example, "](", `\](`)) {
				t.Errorf("%s: %q has no example", want.ID, text)
			}
		}
	}
}

func TestURI(t *testing.T) {
	for path, want := range map[string]string{
		"a.json":              "a.json",
		"./a.json":            "a.json",
		".//./a.json":         "a.json",
		"../run/a_dp1.json":   "../run/a_dp1.json",
		"/tmp/a b.json":       "file:///tmp/a%20b.json",
		"//tmp/a.json":        "file:///tmp/a.json",
		"/":                   "file:///",
		"./":                  ".",
		"c:a?b#c%20":          "c%3Aa%3Fb%23c%2520",
		"http://host/replies": "http%3A//host/replies",
		"é\xff\x1b\n":         "%C3%A9%FF%1B%0A",
	} {
		got := uri(path)
		if got != want {
			t.Errorf("uri(%q) = %q, want %q", path, got, want)
		}
		parsed, err := url.Parse(got)
		if err != nil {
			t.Errorf("%q: %v", got, err)
		} else if strings.HasPrefix(path, "/") == (parsed.Scheme != "file") || parsed.Host != "" {
			t.Errorf("%q was read as %+v", got, parsed)
		}
	}
}

// A fingerprint stays when the text around a value changes and the value, too, and no
// two are the same.
func TestFingerprints(t *testing.T) {
	base := finding.Finding{Rule: finding.RunID, File: "a.json", Pointer: "/run_id", Rank: 1, Offset: 5, Line: 2, Column: 3, Message: "m", Actual: "1"}
	moved := base
	moved.Offset, moved.Line, moved.Column, moved.Message, moved.Actual, moved.File = 50, 20, 30, "n", "2", "./a.json"
	if a, b := (fingerprints{}).of(base), (fingerprints{}).of(moved); a != b {
		t.Errorf("%s became %s", a, b)
	}
	others := []finding.Finding{base, base, base, base, base, base}
	others[1].Rule, others[2].File, others[3].Pointer, others[4].Rank = finding.RunGrid, "b.json", "/run_id/0", 2
	prints, seen := fingerprints{}, map[string]int{}
	for i, f := range others {
		print := prints.of(f)
		if k, again := seen[print]; again {
			t.Errorf("%d has the fingerprint of %d", i, k)
		}
		seen[print] = i
	}
	if got := prints.of(base); got != (fingerprints{}).of(base)+"-3" {
		t.Errorf("the third is %s", got)
	}
	if a, b := (fingerprints{}).name("a", "bc"), (fingerprints{}).name("ab", "c"); a == b {
		t.Error("parts run into each other")
	}
}

// Both formats that have fingerprints have the same ones, and the same every time.
func TestFingerprintsAgree(t *testing.T) {
	r := reports()["rejected"]
	var issues []gitlabIssue
	if err := json.Unmarshal([]byte(print(t, GitLab, r, TextOptions{})), &issues); err != nil {
		t.Fatal(err)
	}
	var a, b []string
	for _, i := range issues {
		a = append(a, i.Fingerprint)
	}
	for _, result := range r.sarifResults() {
		b = append(b, result.Fingerprints["finding/v1"])
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("(-gitlab +sarif):\n%s", diff)
	}
	for format := range checks {
		if print(t, format, r, TextOptions{}) != print(t, format, reports()["rejected"], TextOptions{}) {
			t.Errorf("%s differs from one time to the next", format)
		}
	}
}

// What people are shown leaves warnings out when asked to; the log keeps them.
func TestQuietForCI(t *testing.T) {
	r := reports()["quiet"]
	for format, want := range map[Format]bool{JUnit: false, GitLab: false, GitHub: false, SARIF: true, JSON: true} {
		text := withoutTable(format, print(t, format, r, TextOptions{}))
		if got := strings.Contains(text, string(finding.EngineUnverified)); got != want {
			t.Errorf("%s has a warning: %t", format, got)
		}
	}
}

// A link in a text from a file is none in a log, and JSON is left as it is.
func TestSARIFText(t *testing.T) {
	for in, want := range map[string]string{
		"[click](http://host)": `[click\](http://host)`,
		`[1, 2] ["a"]`:         `[1, 2] ["a"]`,
		"]](](":                `]\](\](`,
	} {
		if got := sarifText(in).Text; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// The decoder that the checks rely on reads the whole document.
func TestJUnitIsOneDocument(t *testing.T) {
	for name, r := range reports() {
		d := xml.NewDecoder(strings.NewReader(print(t, JUnit, r, TextOptions{})))
		depth, roots := 0, 0
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch token.(type) {
			case xml.StartElement:
				if depth++; depth == 1 {
					roots++
				}
			case xml.EndElement:
				depth--
			}
		}
		if roots != 1 {
			t.Errorf("%s has %d roots", name, roots)
		}
	}
}

// Whether a merge would accept what a finding rejects is said wherever people read it.
func TestLevelIsSaid(t *testing.T) {
	for rule, want := range map[finding.ID]map[Format]string{
		finding.StrictWall: {
			Text: "    level:    strict: a merge accepts this\n", JUnit: "level:    strict: a merge accepts this",
			GitHub: "::m (strict)%0A", GitLab: `"m (strict); `, SARIF: `"m (strict)\n`,
		},
		finding.SchemaViolation: {
			Text: "    level:    strict: its schema was asked for\n", JUnit: "level:    strict: its schema was asked for",
			GitHub: "::m (strict)%0A", GitLab: `"m (strict); `, SARIF: `"m (strict)\n`,
		},
		finding.RunID: nil,
	} {
		c := finding.NewCollector(0)
		c.Add(finding.Finding{Rule: rule, File: "a.json", Message: "m"})
		for _, format := range []Format{Text, JUnit, GitHub, GitLab, SARIF} {
			text := print(t, format, reportOf("validate", c), TextOptions{})
			if format == SARIF {
				_, text, _ = strings.Cut(text, `"results"`) // behind the rules
			}
			if want == nil && strings.Contains(text, "strict") || !strings.Contains(text, want[format]) {
				t.Errorf("%s, %s: want %q in\n%s", rule, format, want[format], text)
			}
		}
	}
}
