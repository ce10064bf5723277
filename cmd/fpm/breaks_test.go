package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/cmd/internal/synthesis"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

// outcome is what a command says of a run.
type outcome struct {
	status   exitcode.Code
	rules    []string // of its findings, sorted, each once
	pointers []string // of its findings
	text     string   // all it printed
}

// fpm runs the program.
func fpm(t *testing.T, args ...string) (status exitcode.Code, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errs, func(string) (string, bool) { return "", false })
	return exitcode.Code(code), out.String(), errs.String()
}

// checkRun checks the run in a directory.
func checkRun(t *testing.T, command []string, dir string) outcome {
	t.Helper()
	status, stdout, stderr := fpm(t, slices.Concat(command, []string{"--format", "json", "--max-findings", "1000", dir})...)
	var report struct {
		Findings []struct{ Rule, Pointer string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%s%s: %v", stdout, stderr, err)
	}
	got := outcome{status: status, rules: []string{}, text: stdout + stderr}
	for _, f := range report.Findings {
		got.rules = append(got.rules, f.Rule)
		got.pointers = append(got.pointers, f.Pointer)
	}
	slices.Sort(got.rules)
	got.rules = slices.Compact(got.rules)
	return got
}

// TestBrokenRunsAreFound: of a run that was made to break a rule, that rule is reported,
// and none that it does not entail, whatever the shape of the run.
func TestBrokenRunsAreFound(t *testing.T) {
	shapes := []simulate.Options{
		{Ranks: 2, Points: 3, Raw: 4},
		{Ranks: 1, Points: 1, Raw: 1},
		{Ranks: 3, Points: 5, Raw: 2, Shuffle: true, Seed: 3},
		{Ranks: 2, Points: 2, Raw: 3, Legacy: true},
	}
	for _, b := range synthesis.Breakable() {
		t.Run(string(b.Rule), func(t *testing.T) {
			t.Parallel()
			rule, _ := finding.Lookup(b.Rule)
			found := 0
			for _, opt := range shapes {
				if b.Excluded(opt) != nil {
					continue
				}
				found++
				testBroken(t, rule, b, opt)
			}
			if found == 0 {
				t.Error("broken by no shape of run")
			}
		})
	}
}

func testBroken(t *testing.T, rule finding.Rule, b synthesis.Break, opt simulate.Options) {
	t.Helper()
	dir := t.TempDir()
	args := []string{
		"simulate", "run", "-o", dir, "--break", string(b.Rule), "--ranks", strconv.Itoa(opt.Ranks), "--points", strconv.Itoa(opt.Points),
		"--raw", strconv.Itoa(opt.Raw), "--seed", strconv.FormatUint(opt.Seed, 10), "--shuffle=" + strconv.FormatBool(opt.Shuffle), "--legacy=" + strconv.FormatBool(opt.Legacy),
	}
	if status, stdout, stderr := fpm(t, args...); status != exitcode.OK {
		t.Fatalf("exit status %d: %s%s", status, stdout, stderr)
	}
	want := []string{string(b.Rule)}
	for _, id := range slices.Concat(b.Entails, b.Beside) {
		want = append(want, string(id))
	}
	slices.Sort(want)
	got := checkRun(t, checking(rule), dir)
	if diff := cmp.Diff(want, got.rules); diff != "" {
		t.Errorf("%+v: (-want +got):\n%s\n%s", opt, diff, got.text)
	}
	if (got.status == exitcode.Rejected) != (rule.Severity == finding.Error) {
		t.Errorf("%+v: exit status %d: %s", opt, got.status, got.text)
	}
}

// TestSoundRecordingsAreAccepted: a recording that breaks no rule gives no finding, and has
// what is expected of it.
func TestSoundRecordingsAreAccepted(t *testing.T) {
	for _, ranks := range []int{1, 2, 9} {
		opt := simulate.Options{Dir: t.TempDir(), Ranks: ranks, Points: 1, Raw: 1, Seed: uint64(ranks)}
		if _, err := synthesis.Run(t.Context(), opt, synthesis.Recording); err != nil {
			t.Fatal(err)
		}
		got := checkRun(t, []string{"validate", "--strict", "--schema", "--expect-producers", "worker-0,worker-1", "--expect-ranks", strconv.Itoa(ranks - 1)}, opt.Dir)
		if got.status != exitcode.OK || len(got.rules) > 0 {
			t.Errorf("%+v: %s", opt, got.text)
		}
	}
}

// TestSoundRunsAreAccepted: a run that breaks no rule gives no finding, at any level.
func TestSoundRunsAreAccepted(t *testing.T) {
	for _, opt := range []simulate.Options{
		{Ranks: 2, Points: 4, Raw: 4},
		{Ranks: 1, Points: 1, Raw: 1},
		{Ranks: 2, Points: 40, Raw: 2, Seed: 5, Shuffle: true},
		{Ranks: 3, Points: 7, Raw: 3, Legacy: true},
	} {
		opt.Dir = t.TempDir()
		if _, err := synthesis.Run(t.Context(), opt, synthesis.WithSidecar); err != nil {
			t.Fatal(err)
		}
		got := checkRun(t, []string{"validate", "--strict", "--schema"}, opt.Dir)
		if got.status != exitcode.OK || len(got.rules) > 0 {
			t.Errorf("%+v: %s", opt, got.text)
		}
	}
}
