package main

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
)

// parsePolicy returns the policy of a command line and an environment.
func parsePolicy(t *testing.T, vars map[string]string, args ...string) (trace.Policy, error) {
	t.Helper()
	a := newApp(t.Output(), t.Output(), environment(vars))
	var policy trace.Policy
	cmd := &cobra.Command{Use: "try", Args: noArgs, SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) (err error) {
		policy, err = a.policy(cmd)
		return err
	}}
	addPolicyFlags(cmd)
	cmd.SetArgs(append([]string{}, args...)) // none is not those of the test
	err := cmd.Execute()
	return policy, err
}

func TestFlagsBeatVariables(t *testing.T) {
	base := trace.DefaultPolicy()
	base.Enabled = true
	with := func(change func(*trace.Policy)) trace.Policy {
		p := base
		change(&p)
		return p
	}
	off := with(func(p *trace.Policy) { p.Enabled = false })
	for _, c := range []struct {
		name string
		vars map[string]string
		args []string
		want trace.Policy
	}{
		{"nothing", nil, nil, base},
		{"a variable", map[string]string{trace.EnvOutputPath: "/v"}, nil, with(func(p *trace.Policy) { p.Output = "/v" })},
		{"a flag before a variable", map[string]string{trace.EnvOutputPath: "/v"}, []string{"-o", "/f"}, with(func(p *trace.Policy) { p.Output = "/f" })},
		{"a flag before a variable that is wrong", map[string]string{trace.EnvMaxSegments: "none"}, []string{"--max-segments", "8"}, with(func(p *trace.Policy) { p.MaxSegments = 8 })},
		{"off by a variable", map[string]string{trace.EnvTrace: "no"}, nil, off},
		{"on by a flag all the same", map[string]string{trace.EnvTrace: "no"}, []string{"--fpm-trace"}, base},
		{"off by a flag", map[string]string{trace.EnvTrace: "1"}, []string{"--no-fpm-trace"}, off},
		{"off by a flag's value", nil, []string{"--fpm-trace=false"}, off},
		{"on by a flag's value", map[string]string{trace.EnvTrace: "0"}, []string{"--no-fpm-trace=false"}, base},
		{"a flag that repeats the default", map[string]string{trace.EnvMode: "full"}, []string{"--mode", "sampled"}, base},
	} {
		got, err := parsePolicy(t, c.vars, c.args...)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestPolicyTellsAllProblems(t *testing.T) {
	_, err := parsePolicy(t, map[string]string{trace.EnvTrace: "maybe", trace.EnvRollBytes: "1G"}, "--mode", "fast", "--sample-interval", "never")
	const want = `DYN_FPM_TRACE is "maybe": it takes 1, true, on or yes, or 0, false, off or no; ` +
		`--mode is "fast": it takes sampled or full; ` +
		`--sample-interval is "never": it takes a positive number of milliseconds, or a duration such as 5s; ` +
		`DYN_FPM_JSONL_GZ_ROLL_BYTES is "1G": it takes a positive integer`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if exitcode.Of(err) != exitcode.Usage {
		t.Errorf("exit status %d", exitcode.Of(err))
	}
	if _, err := parsePolicy(t, nil, "--fpm-trace", "--no-fpm-trace"); exitcode.Of(err) != exitcode.Usage {
		t.Errorf("both switches: %v", err)
	}
}

func TestPortsThatCannotBeJudged(t *testing.T) {
	r := portsReport(trace.Ports{First: 40000, Last: 40008}, trace.Ports{}, errors.New("permission denied"))
	const want = "FPM ports 40000-40008: unknown whether they overlap the ephemeral port range: permission denied"
	if r.Status != report.OK || r.Total != 0 || r.Summary != want {
		t.Errorf("%+v", r)
	}
}
