package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/goldentest"
)

// faults are findings of every shape.
func faults() *finding.Collector {
	c := finding.NewCollector(0)
	c.Add(finding.Finding{
		Rule: finding.EngineMismatch, File: "results_dp1.json", Pointer: "/engine/attention/backend_requested",
		Offset: 812, Line: 31, Column: 27, Rank: 1,
		Message: "rank 1 started with another engine than rank 0", Expected: `null (rank 0)`, Actual: `"FLASHINFER"`,
	})
	c.Add(finding.Finding{
		Rule: finding.ResultDiffers, File: "results_dp1.json", Pointer: "/results/2/fpms/0/wall_time",
		Offset: 2210, Line: 88, Column: 22, Rank: 1, BenchmarkID: 3,
		Message: "not what the group records for this rank", Expected: "0.021", Actual: "0.022",
	})
	c.Add(finding.Finding{
		Rule: finding.JSONSyntax, File: "results_dp3.json", Offset: 4096, Line: 120, Column: 1, Rank: finding.NoRank,
		Message: "the file ends inside an object",
	})
	c.Add(finding.Finding{
		Rule: finding.EngineUnverified, File: "results_dp2.json", Offset: -1, Rank: 2,
		Message: "the engine of rank 2 could not be compared: missing engine block",
	})
	c.Add(finding.Finding{Rule: finding.RunID, Offset: -1, Rank: 0, Message: "of no single file"})
	return c
}

// hostile is text such as an attacker would put into an artifact.
const hostile = "a\x1b[31mred\x1b]0;title\x07\r\n::error::x\t\x7f\u009b2J\u202egnp.exe\u2066\ufeff\u2028\U000e0041\xff\xed\xa0\x80 100%,é漢😀"

func reports() map[string]*Report {
	rejected := reportOf("merge", faults())
	rejected.Version = "v1.2.3"

	cut := reportOf("merge", faults())
	cut.Findings = cut.Findings[:2]

	quiet := reportOf("merge", faults())
	quiet.Quiet = true

	failed := reportOf("merge", faults())
	failed.Fail(&exitcode.Error{Code: exitcode.Failed, File: "results_dp4.json", Message: "missing", Hint: "every rank of the run must be there; --ranks names a part of them"})
	failed.Fail(&fs.PathError{Op: "open", Path: "results_dp5.json", Err: syscall.EACCES})

	usage := &Report{Command: "merge"}
	usage.Fail(&exitcode.Error{Code: exitcode.Usage, Message: "unknown flag: --fast", Hint: "run 'fpm merge --help'"})

	ok := reportOf("merge", finding.NewCollector(0))
	ok.Summary = "merged 2 ranks, 3 points"
	ok.Details = Object{{"output", "m.json"}, {"ranks", []int{0, 1}}, {"inputs", []string{"a.json", "b.json"}}, {"ratio", 0.5}, {"more", Object{{"z", nil}, {"a", true}}}}

	warned := finding.NewCollector(0)
	warned.Add(finding.Finding{Rule: finding.RankPartialRun, File: "r.json", Pointer: "/status", Line: 4, Column: 13, Message: "the run is partial: 3 of 9 points"})
	warning := reportOf("merge", warned)
	warning.Summary = "merged 2 ranks, 3 points\nwrote m.json"

	body := reportOf("probe-report", warned)
	body.Body, body.Summary = "what was found\x1b[31m\nin two lines", "wrote m.json"
	bodyRejected := reportOf("probe-report", faults())
	bodyRejected.Body = body.Body
	bodyFailed := &Report{Command: "probe-report", Body: body.Body}
	bodyFailed.Fail(io.ErrUnexpectedEOF)

	items := &Report{Command: "rules", Status: OK, Summary: "a list", Items: Items{Key: "rules", Values: []any{Object{{"id", "a"}}, Object{{"id", "b"}}}}}

	evil := finding.NewCollector(0)
	evil.Add(finding.Finding{Rule: finding.RunID, File: hostile, Pointer: "/" + hostile, Line: 1, Column: 2, Message: hostile, Expected: hostile, Actual: strings.Repeat("\x1b", 100), Hint: hostile})
	bad := reportOf(hostile, evil)
	bad.Fail(&exitcode.Error{Code: exitcode.Failed, File: hostile, Message: hostile, Hint: hostile})
	bad.Details = Object{{"output", hostile}, {"inputs", []string{hostile}}, {"other", []any{hostile}}}

	repeated := finding.NewCollector(0)
	for i := range int64(3) {
		repeated.Add(finding.Finding{Rule: finding.SampleEstimate, File: "./run/a.json", Pointer: "/results/7", Offset: i, Line: 9, Column: 1 + int(i), Message: "differs", Expected: "[1](2) & <3>"})
	}

	return map[string]*Report{
		"twice":    reportOf("merge", repeated),
		"rejected": rejected, "cut": cut, "quiet": quiet, "failed": failed, "usage": usage, "ok": ok,
		"warning": warning, "items": items, "hostile": bad,
		"body": body, "body-rejected": bodyRejected, "body-failed": bodyFailed,
	}
}

func reportOf(command string, c *finding.Collector) *Report {
	return New(command, c.Findings(), c.Errors(), c.Warnings())
}

func print(t *testing.T, format Format, r *Report, opt TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Print(&b, format, r, opt); err != nil {
		t.Fatal(err)
	}
	if format == Text {
		b.WriteString("-- stderr --\n")
		if err := PrintFatal(&b, r, opt); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestGolden(t *testing.T) {
	formats := map[string][]Format{
		"rejected": Formats(),
		"cut":      {Text, JSONL, JUnit, GitLab, SARIF},
		"quiet":    {Text, GitHub, JUnit, GitLab},
		"failed":   Formats(),
		"usage":    Formats(),
		"ok":       Formats(),
		"warning":  {Text, GitHub, JUnit, GitLab},
		"items":    {Text, JSON, JSONL},
		"hostile":  Formats(),

		"twice":         {JUnit},
		"body":          {Text, GitHub, SARIF},
		"body-rejected": {Text},
		"body-failed":   {Text},
	}
	for name, r := range reports() {
		for _, format := range formats[name] {
			goldentest.Check(t, name+"."+string(format), withoutTable(format, print(t, format, r, TextOptions{})))
		}
	}
	goldentest.Check(t, "failed.color", print(t, Text, reports()["failed"], TextOptions{Color: true}))
}

func TestCode(t *testing.T) {
	with := func(status Status, codes ...exitcode.Code) *Report {
		r := &Report{Status: status}
		for _, c := range codes {
			r.Fail(&exitcode.Error{Code: c})
		}
		return r
	}
	for _, c := range []struct {
		r    *Report
		want exitcode.Code
	}{
		{with(OK), 0},
		{with(Rejected), 1},
		{with(Undetermined), 4},
		{with(Failed), 3},
		{with(Rejected, exitcode.Failed), 3},
		{with(OK, exitcode.Usage), 2},
		{with(OK, exitcode.Failed, exitcode.Bug), 70},
		{with(OK, exitcode.Interrupted, exitcode.Failed), 130},
	} {
		if got := c.r.Code(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.r, got, c.want)
		}
	}
}

func TestFail(t *testing.T) {
	r := reportOf("merge", faults())
	r.Fail(nil)
	if r.Status != Rejected || r.Fatal != nil {
		t.Errorf("no error made %+v", r)
	}
	r.Fail(context.Canceled)
	r.Fail(&exitcode.Error{Code: exitcode.Failed, File: "f", Err: errors.New("cause")})
	want := []Fatal{{Message: "interrupted", Code: 130}, {Message: "cause", File: "f", Code: 3}}
	if diff := cmp.Diff(want, r.Fatal); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Status != Failed || len(r.Findings) != 5 {
		t.Errorf("status %s with %d findings", r.Status, len(r.Findings))
	}
}

func TestParseFormat(t *testing.T) {
	for _, f := range Formats() {
		if got, err := ParseFormat(string(f)); got != f || err != nil {
			t.Errorf("ParseFormat(%s) = %s, %v", f, got, err)
		}
	}
	for _, name := range []string{"", "xml", "JSON"} {
		if got, err := ParseFormat(name); err == nil {
			t.Errorf("ParseFormat(%q) = %s", name, got)
		} else if !strings.Contains(err.Error(), "text, json, jsonl, junit, github, gitlab, sarif") {
			t.Errorf("the error names no formats: %v", err)
		}
	}
}

// What a JSON reader gets back is what the file said, byte for byte where it is UTF-8.
func TestJSONKeepsTheText(t *testing.T) {
	text := strings.ReplaceAll(hostile, "\xff\xed\xa0\x80", "")
	c := finding.NewCollector(0)
	c.Add(finding.Finding{Rule: finding.RunID, File: text, Pointer: text, Message: text, Expected: text, Actual: text})
	var doc struct {
		Findings []map[string]any
	}
	if err := json.Unmarshal([]byte(print(t, JSON, reportOf("merge", c), TextOptions{})), &doc); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"file", "pointer", "message", "expected", "actual"} {
		if got := doc.Findings[0][key]; got != text {
			t.Errorf("%s is %q", key, got)
		}
	}
}

type brokenPipe struct{ after int }

func (w *brokenPipe) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	c := finding.NewCollector(0)
	for i := range int64(500) {
		c.Add(finding.Finding{Rule: finding.RunID, Offset: i, Message: strings.Repeat("x", 100)})
	}
	r := reportOf("merge", c)
	r.Fail(io.ErrUnexpectedEOF)
	for _, format := range Formats() {
		for _, after := range []int{0, 10_000} {
			if err := Print(&brokenPipe{after}, format, r, TextOptions{}); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%s after %d bytes: %v", format, after, err)
			}
		}
	}
	if err := PrintFatal(&brokenPipe{0}, r, TextOptions{}); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("PrintFatal: %v", err)
	}
}
