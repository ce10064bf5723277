package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/probe"
	"github.com/fpm-project/fpm/probe/rpc"
)

const probeHelp = `Say what the workers of a run really resolved - attention backend, prefill backend,
CUDA graph mode - and how much of the fleet has said so.

The replies of the workers come from a file (--replies), from a live vLLM server in
development mode (--url), or there are none (--failed, --skipped). They are kept,
unchanged, in the sidecar of the merged artifact, MERGED with _worker_probe before its
extension, next to it; the merged artifact and the rank artifacts are never written.
Without any of these options the sidecar that is there is checked: everything in it is
computed again from the replies that it records.

A probe that failed fails no pipeline: the failure is recorded and the exit status is
0, unless --require asks for more. Replies that are missing establish neither agreement
nor disagreement.`

const probeExample = `  # from replies that were saved
  fpm probe-report results/benchmark_results_merged.json --replies replies.json

  # from the server that was measured, while it still runs
  fpm probe-report results/benchmark_results_merged.json --url http://127.0.0.1:8000

  # in CI: check the sidecar, and fail unless every worker was observed
  fpm probe-report results/benchmark_results_merged.json --require complete

  # the merged document with the result in its engine object
  fpm probe-report results/benchmark_results_merged.json --apply > served.json`

// probeFlags are the options of probe-report.
type probeFlags struct {
	replies, url, failed, skipped string
	require                       string
	apply, force                  bool
	call                          rpc.Options
}

func newProbeReport(a *app) *cobra.Command {
	opt := probeFlags{call: rpc.Options{Proxy: http.ProxyFromEnvironment}}
	cmd := &cobra.Command{
		Use:     "probe-report MERGED",
		Short:   "Record or check what the workers of a run resolved",
		Long:    probeHelp,
		Example: probeExample,
		Args:    oneMerged,
		RunE: func(cmd *cobra.Command, args []string) error {
			require, err := opt.check(cmd)
			if err != nil {
				return err
			}
			return a.probeReport(cmd, args[0], opt, require)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.replies, "replies", "", "`FILE` with the workers' replies as JSON; - is standard input")
	flags.StringVar(&opt.url, "url", "", "ask the live server at this base `URL`")
	flags.StringVar(&opt.failed, "failed", "", "record that the probe failed, with this `TEXT`")
	flags.StringVar(&opt.skipped, "skipped", "", "record that the probe was skipped, with this `TEXT`")
	flags.DurationVar(&opt.call.Timeout, "timeout", 30*time.Second, "with --url, wait so long for the answer")
	flags.StringArrayVar(&opt.call.Headers, "header", nil, "with --url, send this `\"NAME: VALUE\"`; may be repeated")
	flags.StringVar(&opt.call.BearerFile, "bearer-file", "", "with --url, send the bearer token in this `FILE`")
	flags.StringVar(&opt.require, "require", "", "reject unless the workers `observed, agree or complete`")
	flags.BoolVar(&opt.apply, "apply", false, "print the merged document with the result applied; the report goes to standard error")
	flags.BoolVar(&opt.force, "force", false, "replace a file that is no sidecar, and with a failed or skipped probe a sidecar that observed something")
	complete := cobra.FixedCompletions([]string{"observed", "agree", "complete"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("require", complete); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// oneMerged is for commands that take one merged artifact.
func oneMerged(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return fmt.Errorf("%s takes the path of a merged artifact", commandName(cmd))
	case len(args) == 1 && args[0] == "-":
		return errors.New("a merged artifact is a file: - is none")
	default:
		return atMost(1)(cmd, args)
	}
}

// check refuses options that contradict each other.
func (f *probeFlags) check(cmd *cobra.Command) (probe.Requirement, error) {
	changed := cmd.Flags().Changed
	var sources []string
	for _, name := range []string{"replies", "url", "failed", "skipped"} {
		if changed(name) {
			sources = append(sources, "--"+name)
		}
	}
	if len(sources) > 1 {
		return 0, usage(strings.Join(sources, " and ") + " exclude each other: replies come from one place")
	}
	for _, name := range []string{"timeout", "header", "bearer-file"} {
		if changed(name) && !changed("url") {
			return 0, usage("--" + name + " has no place without --url")
		}
	}
	for name, value := range map[string]string{"replies": f.replies, "url": f.url, "bearer-file": f.call.BearerFile} {
		if changed(name) && value == "" {
			return 0, usage("--" + name + ": the value is empty")
		}
	}
	if f.force && len(sources) == 0 {
		return 0, usage("--force has no place where no sidecar is made")
	}
	return parseRequirement(f.require, changed("require"))
}

func parseRequirement(name string, given bool) (probe.Requirement, error) {
	if !given {
		return probe.Nothing, nil
	}
	for _, r := range []probe.Requirement{probe.Observed, probe.Agree, probe.Complete} {
		if r.String() == name {
			return r, nil
		}
	}
	return 0, usage(fmt.Sprintf("--require: %q is none of observed, agree, complete", name))
}

// source returns what gets the replies; nil checks the sidecar that is there.
func (f *probeFlags) source(cmd *cobra.Command) func(context.Context) (probe.Input, error) {
	changed := cmd.Flags().Changed
	switch {
	case changed("replies"):
		return func(context.Context) (probe.Input, error) { return readReplies(cmd.InOrStdin(), f.replies) }
	case changed("url"):
		f.call.BaseURL = f.url
		return f.ask
	case changed("failed"):
		return func(context.Context) (probe.Input, error) { return probe.Input{Failure: probe.Failed(f.failed)}, nil }
	case changed("skipped"):
		return func(context.Context) (probe.Input, error) { return probe.Input{Failure: probe.Skipped(f.skipped)}, nil }
	}
	return nil
}

func readReplies(stdin io.Reader, path string) (probe.Input, error) {
	in := probe.Input{Name: path}
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return in, err
		}
		defer file.Close()
		stdin = file
	}
	var err error
	in.Replies, err = probe.ReadReplies(stdin)
	return in, err
}

// ask calls the live server. That it gave no answer is an outcome to be recorded.
func (f *probeFlags) ask(ctx context.Context) (probe.Input, error) {
	replies, err := rpc.Call(ctx, f.call)
	var (
		failure *rpc.Failure
		option  *rpc.OptionError
	)
	switch {
	case errors.As(err, &failure):
		return probe.Input{Failure: probe.Failed(failure.Error()), Hint: failure.Hint}, nil
	case errors.As(err, &option):
		return probe.Input{}, &exitcode.Error{Code: exitcode.Usage, Message: "--" + option.Option + ": " + option.Message, Hint: option.Hint}
	}
	return probe.Input{Name: f.url, Replies: replies, Refused: refusedAnswer}, err
}

// refusedAnswer makes a failure of an answer that came whole and cannot be taken.
func refusedAnswer(why *probe.TextError) (failure, hint string) {
	f := rpc.Failure{Kind: rpc.ContentError, Message: fmt.Sprintf("the answer cannot be taken: %s (%s)", why.Message, why.Rule)}
	f.Hint = "look what the server sends: it should be JSON with a reply of each worker"
	if why.Rule == finding.InputLimit {
		f.Kind, f.Hint = rpc.LimitError, "look what the server sends: it is more than can be recorded"
	}
	return probe.Failed(f.Error()), f.Hint
}

func (a *app) probeReport(cmd *cobra.Command, merged string, opt probeFlags, require probe.Requirement) error {
	options := probe.Options{
		Merged: merged, Probe: opt.source(cmd), Require: require, Force: opt.force,
		MaxFindings: int(a.opts.maxFindings), Warn: a.warn,
	}
	meter := a.meter("reading", 0)
	if meter != nil {
		options.Progress = meter
	}
	result, err := probe.Run(cmd.Context(), options)
	meter.Stop()
	if err != nil {
		return err
	}
	r := probeReportOf(result)
	if !opt.apply {
		return a.finish(r)
	}
	r.Fail(a.apply(result, merged))
	return a.finishAside(r)
}

// apply prints the document that a result stands for, if there is one.
func (a *app) apply(result *probe.Result, merged string) error {
	document, err := result.Apply(merged)
	if err != nil || document == nil {
		return err
	}
	defer document.Close()
	if note := document.Note(); note != "" {
		a.warn("the merged document is printed as it is: " + note)
	}
	if err := document.WriteLaid(a.stdout); err != nil && a.stdout.err == nil {
		return err // those of the stream are told at the end
	}
	return nil
}

func probeReportOf(result *probe.Result) *report.Report {
	r := report.New("probe-report", result.Findings, result.Errors, result.Warnings)
	for _, failure := range result.Failures {
		r.Fail(failure)
	}
	r.Details = report.Object{{Key: "run_id", Value: result.RunID}, {Key: "sidecar", Value: result.Sidecar}, {Key: "written", Value: result.Written}}
	if s := result.Summary; s != nil {
		r.Details = append(r.Details, report.Detail{Key: "probe", Value: s})
		r.Body = strings.Join(escapedAll(append(s.Text(), result.Notes...)), "\n")
	}
	if result.Written {
		r.Summary = "wrote " + report.Escape(result.Sidecar)
	}
	if len(result.Notes) > 0 {
		r.Details = append(r.Details, report.Detail{Key: "notes", Value: result.Notes})
	}
	return r
}

// escapedAll escapes each line of a text for people, so that a line end in a text of a
// file does not become one of the report.
func escapedAll(lines []string) []string {
	for i, line := range lines {
		lines[i] = report.Escape(line)
	}
	return lines
}
