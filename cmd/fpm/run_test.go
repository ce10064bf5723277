package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
)

// session runs a command that does what body does, as "fpm try", and returns its exit
// status and streams.
func session(ctx context.Context, env map[string]string, body func(*app) error, args ...string) (code exitcode.Code, stdout, stderr string) {
	var out, errs bytes.Buffer
	a := newApp(&out, &errs, environment(env))
	root := newRoot(a)
	try := &cobra.Command{Use: "try", Args: noArgs, RunE: func(*cobra.Command, []string) error { return body(a) }}
	a.prepare(try)
	root.AddCommand(try)
	code = a.execute(ctx, root, append([]string{"try"}, args...))
	return code, out.String(), errs.String()
}

func TestErrorsOfCommands(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code exitcode.Code
		want string
	}{
		{"none", nil, 0, ""},
		{"own", &exitcode.Error{Code: exitcode.Failed, File: "r.json", Message: "it changed", Hint: "wait"}, 3, "fpm: r.json: it changed\n    hint: wait\n"},
		{"system", &fs.PathError{Op: "open", Path: "r.json", Err: syscall.ENOENT}, 3, "fpm: r.json: cannot open: no such file or directory\n    hint: check the path\n"},
		{"usage", &exitcode.Error{Code: exitcode.Usage, Message: "no ranks"}, 2, "fpm: no ranks\n    hint: run 'fpm try --help'\n"},
		{"interrupted", fmt.Errorf("scan: %w", context.Canceled), 130, "fpm: interrupted\n"},
		{"hostile", errors.New("\x1b[2J"), 3, "fpm: \\u001b[2J\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, stdout, stderr := session(t.Context(), nil, func(*app) error { return c.err })
			if code != c.code || stdout != "" || stderr != c.want {
				t.Errorf("exit %d, stdout %q, stderr %q, want exit %d, stderr %q", code, stdout, stderr, c.code, c.want)
			}
		})
	}
}

// Where several statuses apply, what could not be done wins, and findings are printed.
func TestFindingsAndFailure(t *testing.T) {
	code, stdout, stderr := session(t.Context(), nil, func(a *app) error {
		c := finding.NewCollector(int(a.opts.maxFindings))
		for i := range int64(5) {
			c.Add(finding.Finding{Rule: finding.RunID, File: "r.json", Offset: i, Message: "differs", Pointer: "/run_id"})
		}
		r := report.New("try", c.Findings(), c.Errors(), c.Warnings())
		r.Fail(&exitcode.Error{Code: exitcode.Failed, File: "s.json", Message: "missing"})
		return a.finish(r)
	}, "--max-findings", "2")
	if code != exitcode.Failed || stderr != "fpm: s.json: missing\n" {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	if strings.Count(stdout, "r.json: error[run.id] at /run_id: differs\n") != 2 || !strings.Contains(stdout, "5 errors, 0 warnings (2 of them printed") {
		t.Errorf("stdout %q", stdout)
	}
}

func TestPanic(t *testing.T) {
	panics := func(*app) error { panic("lost \x1b") }
	code, stdout, stderr := session(t.Context(), nil, panics)
	want := `fpm: internal error: lost \u001b
    hint: this is a bug in fpm: please report it with the command line and the output of 'fpm version'; FPM_DEBUG=1 adds a stack trace
`
	if code != exitcode.Bug || stdout != "" || stderr != want {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}

	code, _, stderr = session(t.Context(), map[string]string{"FPM_DEBUG": "1"}, panics)
	if code != exitcode.Bug || !strings.Contains(stderr, "run_test.go") {
		t.Errorf("with FPM_DEBUG: exit %d, stderr %q", code, stderr)
	}

	code, stdout, stderr = session(t.Context(), nil, panics, "--format", "json")
	var doc struct {
		Command, Status string
		Fatal           []struct {
			Code int `json:"exit_status"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if code != exitcode.Bug || stderr != "" || doc.Command != "try" || doc.Status != "failed" || doc.Fatal[0].Code != 70 {
		t.Errorf("exit %d, stderr %q, document %+v", code, stderr, doc)
	}
}

func TestUnprintableReportIsABug(t *testing.T) {
	body := func(a *app) error {
		return a.finish(&report.Report{Command: "try", Status: report.OK, Details: report.Object{{Key: "f", Value: func() {}}}})
	}
	code, stdout, stderr := session(t.Context(), nil, body, "--format", "json")
	if code != exitcode.Bug || stderr != "" || !strings.Contains(stdout, `"exit_status": 70`) {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestQuietAndWarn(t *testing.T) {
	warns := func(a *app) error { a.warn("late\r"); return nil }
	if _, _, stderr := session(t.Context(), nil, warns); stderr != "fpm: warning: late\\r\n" {
		t.Errorf("stderr %q", stderr)
	}
	if _, _, stderr := session(t.Context(), nil, warns, "--quiet"); stderr != "" {
		t.Errorf("quiet, but stderr %q", stderr)
	}
}

func TestAttend(t *testing.T) {
	t.Run("no signal", func(t *testing.T) {
		if got := attend(make(chan os.Signal), io.Discard, time.Now, func(context.Context) int { return 3 }); got != 3 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("the first cancels", func(t *testing.T) {
		signals := make(chan os.Signal, 1)
		signals <- os.Interrupt
		got := attend(signals, io.Discard, time.Now, func(ctx context.Context) int {
			<-ctx.Done()
			code, _, _ := session(ctx, nil, func(*app) error { return ctx.Err() })
			return int(code)
		})
		if got != 130 {
			t.Errorf("got %d", got)
		}
	})
	const said = "fpm: stopped at once by a second signal: what the first one had begun to end was cut short\n"
	for _, c := range []struct {
		name   string
		second os.Signal
		after  time.Duration
		want   int
		stderr string
	}{
		{"another of its kind, at once", syscall.SIGTERM, 0, 7, ""},
		{"another of its kind, before a second has gone by", syscall.SIGTERM, echo - 1, 7, ""},
		{"another of its kind, later", syscall.SIGTERM, echo, 130, said},
		{"one of another kind", os.Interrupt, 0, 130, said},
	} {
		t.Run(c.name, func(t *testing.T) {
			signals := make(chan os.Signal) // what was sent was taken
			var stderr strings.Builder
			at := time.Unix(1000, 0)
			times := []time.Time{at, at.Add(c.after)}
			now := func() (next time.Time) { next, times = times[0], times[1:]; return next }
			release := make(chan struct{})
			go func() {
				signals <- syscall.SIGTERM
				signals <- c.second
				if c.want != 130 {
					close(release)
				}
			}()
			got := attend(signals, &stderr, now, func(ctx context.Context) int {
				<-ctx.Done()
				<-release // a body that takes its time
				return 7
			})
			if got != c.want || stderr.String() != c.stderr {
				t.Errorf("got %d, stderr %q", got, &stderr)
			}
			if c.want == 130 {
				close(release)
			}
		})
	}
}

func TestStreamOutcome(t *testing.T) {
	for _, c := range []struct {
		err  error
		code exitcode.Code
		want string
	}{
		{nil, 0, ""},
		{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}, 0, ""},
		{io.ErrClosedPipe, 0, ""},
		{&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}, 3, "fpm: standard output: cannot write: no space left on device\n"},
	} {
		var errs bytes.Buffer
		s := &stream{w: failing{c.err}}
		_, first := s.Write([]byte("x"))
		_, second := s.Write([]byte("y"))
		if first != c.err || second != c.err {
			t.Errorf("%v: the writes return %v and %v", c.err, first, second)
		}
		if code := s.outcome(&errs); code != c.code || errs.String() != c.want {
			t.Errorf("%v: exit %d, stderr %q", c.err, code, &errs)
		}
	}
}

type failing struct{ err error }

func (f failing) Write(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return len(p), nil
}

// A reader that goes away ends the program quietly, with the status of its work.
func TestClosedPipe(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"rules"}, 0},
		{[]string{"rules", "--format", "json"}, 0},
		{[]string{"completion", "bash"}, 0},
		{[]string{"--help"}, 0},
		{[]string{"nonsense", "--format", "json"}, 2},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var errs bytes.Buffer
		cmd := exec.Command("fpm", c.args...)
		cmd.Stdout, cmd.Stderr = w, &errs
		err = cmd.Run()
		w.Close()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if got := cmd.ProcessState.ExitCode(); got != c.code || errs.Len() > 0 {
			t.Errorf("%v: %v, stderr %q", c.args, cmd.ProcessState, &errs)
		}
	}
}

// A signal ends a wait with the status of an interruption.
func TestInterrupt(t *testing.T) {
	// The warning that the wait goes on is what tells that the program waits.
	cmd := exec.Command("fpm", "merge", "--wait", "1ms", "--grace", "1h", t.TempDir()+"/run.json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, "fpm: warning: ") {
		t.Errorf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	rest, err := io.ReadAll(lines)
	if err != nil || string(rest) != "fpm: interrupted\n" {
		t.Errorf("%q, %v", rest, err)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v", err)
	}
}

func TestTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminal to be had: %v", err)
	}
	defer terminal.Close()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		name       string
		w          io.Writer
		env        map[string]string
		opts       options
		color, bar bool
	}{
		{"terminal", terminal, nil, options{}, true, true},
		{"file", file, nil, options{}, false, false},
		{"buffer", &bytes.Buffer{}, nil, options{}, false, false},
		{"--no-color", terminal, nil, options{noColor: true}, false, true},
		{"NO_COLOR", terminal, map[string]string{"NO_COLOR": "1"}, options{}, false, true},
		{"empty NO_COLOR", terminal, map[string]string{"NO_COLOR": ""}, options{}, true, true},
		{"TERM=dumb", terminal, map[string]string{"TERM": "dumb"}, options{}, false, false},
		{"--quiet", terminal, nil, options{quiet: true}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newApp(c.w, c.w, environment(c.env))
			a.opts = c.opts
			if got := a.color(c.w); got != c.color {
				t.Errorf("colour %t", got)
			}
			meter := a.meter("merge", 1)
			defer meter.Stop()
			if (meter != nil) != c.bar {
				t.Errorf("progress %t", meter != nil)
			}
		})
	}
	if got := columns(file); got != 80 {
		t.Errorf("a file has %d columns", got)
	}
}

// Every command can be found out about, and none forgets what all must do.
func TestTree(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: short help %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.RunE == nil || cmd.Run != nil || cmd.Args == nil {
			t.Errorf("%s was not prepared", cmd.CommandPath())
		}
		if !cmd.HasSubCommands() && !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: the examples do not show it: %q", cmd.CommandPath(), cmd.Example)
		}
		var help bytes.Buffer
		code := run(t.Context(), append(strings.Fields(commandName(cmd)), "--help"), nil, &help, io.Discard, os.LookupEnv)
		if code != 0 || !strings.HasSuffix(help.String(), exitStatusHelp()) {
			t.Errorf("%s --help: exit %d, no exit statuses at the end:\n%s", cmd.CommandPath(), code, &help)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	root := newRoot(newApp(io.Discard, io.Discard, os.LookupEnv))
	root.InitDefaultHelpCmd()
	walk(root)
}

func TestPrepareRefusesACommandWithoutArgs(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	newApp(io.Discard, io.Discard, os.LookupEnv).prepare(&cobra.Command{Use: "x"})
}

func TestFormatOf(t *testing.T) {
	for args, want := range map[string]report.Format{
		"":                              report.Text,
		"--format json":                 report.JSON,
		"--format=jsonl":                report.JSONL,
		"merge --x --format github y":   report.GitHub,
		"--format json --format=github": report.GitHub,
		"--format=junit":                report.JUnit,
		"--format gitlab":               report.GitLab,
		"x --format sarif -y":           report.SARIF,
		"--format xml":                  report.Text,
		"--format":                      report.Text,
		"-- --format json":              report.Text,
	} {
		if got := formatOf(strings.Fields(args)); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"one two", []string{"one two"}},
		{"one two three", []string{"one two", "three"}},
		{"unbreakable x", []string{"unbreakable", "x"}},
	} {
		if diff := cmp.Diff(c.want, wrap(c.text, 8)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

// noEnv is an environment without variables.
func noEnv(string) (string, bool) { return "", false }

// environment is one with the given variables.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}
