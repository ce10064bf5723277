package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/cmd/internal/synthesis"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/progress"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/internal/words"
)

const simulateRunHelp = `Write the rank artifacts of a synthetic self-benchmark run: one file per DP rank, with
full measurement, execution and warmup evidence, as Python's json.dump(indent=2) lays
them out. The run keeps every rule, or breaks the one that --break names, at one place
and with as little else as can be. The same options give the same bytes.

Where the rule to break is about a merged artifact (merged.*), that artifact is made of
the rank files and written, too; where it is about a worker probe (probe.*), so is the
sidecar. Where it is about traces (trace.*) there are no rank files: a small recording of
two workers is written, in segments as 'fpm trace record' leaves them, with a file
series for each worker and a stream for each of its ranks. For all other rules only the
rank files are written. The last line says which command finds the fault, for a check
looks at some rules only when it is asked to.

Each rank file repeats every rank's measurements, so that the size of a run grows with
the square of the ranks.`

func newSimulate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Make synthetic artifacts for demos, CI and load tests",
		Long:  "Make synthetic artifacts for demos, CI and load tests.",
	}
	cmd.AddCommand(newSimulateRun(a), newSimulateStream(a))
	return cmd
}

func newSimulateRun(a *app) *cobra.Command {
	opt := simulate.Options{Ranks: 2, Points: 4, Raw: 4}
	var broken string
	var force bool
	cmd := &cobra.Command{
		Use:   "run -o DIR",
		Short: "Write the rank artifacts of a synthetic run, or break a rule",
		Long:  simulateRunHelp,
		Example: `  fpm simulate run -o demo --ranks 4 --points 20
  fpm simulate run -o broken --break group.wall-time && fpm merge broken`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			opt.Break = finding.ID(broken)
			return a.simulateRun(cmd, opt, force)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&opt.Dir, "output", "o", "", "directory `DIR` for the rank files; made if it is not there")
	flags.IntVar(&opt.Ranks, "ranks", opt.Ranks, "data-parallel ranks, and files")
	flags.IntVar(&opt.Points, "points", opt.Points, "points of the grid")
	flags.IntVar(&opt.Raw, "raw", opt.Raw, "raw samples of each decode point")
	flags.Uint64Var(&opt.Seed, "seed", 0, "another seed is another run of the same shape")
	flags.BoolVar(&opt.Legacy, "legacy", false, "an older engine's run, without measurement evidence")
	flags.BoolVar(&opt.Shuffle, "shuffle", false, "an execution order other than that of the benchmark ids")
	flags.BoolVar(&force, "force", false, "replace files that are no rank artifacts")
	flags.StringVar(&broken, "break", "", "break this `RULE` (fpm rules lists them)")
	if err := cmd.RegisterFlagCompletionFunc("break", cobra.FixedCompletions(ruleIDs(), cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func (a *app) simulateRun(cmd *cobra.Command, opt simulate.Options, force bool) error {
	if opt.Dir == "" {
		return usage("no directory to write to: give -o DIR")
	}
	if cmd.Flags().Changed("break") {
		if _, ok := finding.Lookup(opt.Break); !ok {
			return mistypedRule(fmt.Sprintf("--break: no rule %q", opt.Break), string(opt.Break))
		}
	}
	if slices.Contains(synthesis.OfHosts(), opt.Break) {
		return &exitcode.Error{
			Code: exitcode.Usage, Message: fmt.Sprintf("--break: %s is about a host, and no file breaks it", opt.Break),
			Hint: "'fpm trace ports --base-port 40000' breaks it on a host with the usual range of local ports",
		}
	}
	kind := synthesis.RankFiles
	if b, ok := synthesis.Find(opt.Break); ok {
		kind = b.Kind
	}
	if !force {
		if err := checkReplaceable(opt, kind); err != nil {
			return err
		}
	}
	result, err := synthesis.Run(cmd.Context(), opt, kind)
	var option *simulate.OptionError
	var excluded *simulate.ExcludedError
	var occupied *synthesis.OccupiedError
	if errors.As(err, &occupied) {
		return &exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Hint: "choose another directory", Err: err}
	}
	if errors.As(err, &option) || errors.As(err, &excluded) {
		return &exitcode.Error{Code: exitcode.Usage, Message: err.Error(), Err: err}
	}
	if err != nil {
		return err
	}
	r := &report.Report{
		Command: "simulate run",
		Status:  report.OK,
		Summary: fmt.Sprintf("wrote %s to %s (%s)", written(result, kind), report.Escape(opt.Dir), progress.Bytes(result.Bytes)),
		Details: report.Object{{Key: "files", Value: result.Files}, {Key: "bytes", Value: result.Bytes}},
	}
	if rule, broken := finding.Lookup(opt.Break); broken {
		check := slices.Concat([]string{"fpm"}, checking(rule), []string{opt.Dir})
		r.Details = append(r.Details, report.Detail{Key: "check", Value: check})
		check[len(check)-1] = report.Quote(opt.Dir)
		r.Summary += fmt.Sprintf("\nit breaks %s, which is found by: %s", rule.ID, report.Escape(strings.Join(check, " ")))
	}
	return a.finish(r)
}

// checking returns what checks a rule: arguments of fpm before the directory of a run.
func checking(rule finding.Rule) []string {
	switch rule.ID {
	case finding.SchemaViolation:
		return []string{"validate", "--schema"}
	case finding.ProbeUnobserved:
		return []string{"validate", "--require", "observed"}
	case finding.ProbeDisagree:
		return []string{"validate", "--require", "agree"}
	case finding.ProbeIncomplete:
		return []string{"validate", "--require", "complete"}
	case finding.TraceProducer:
		return []string{"validate", "--expect-producers", "2"}
	case finding.TraceRank:
		return []string{"validate", "--expect-ranks", "0-1"}
	}
	if rule.Level == finding.Strict {
		return []string{"validate", "--strict"}
	}
	return []string{"validate"}
}

// written names the files in words.
func written(result synthesis.Result, kind synthesis.Kind) string {
	n := len(result.Files)
	switch {
	case kind == synthesis.Recording:
		return "a recording, " + words.Count(n, "segment", "segments")
	case result.Sidecar != "":
		return words.Count(n-2, "rank file", "rank files") + ", a merged artifact and its sidecar"
	case result.Merged != "":
		return words.Count(n-1, "rank file", "rank files") + " and a merged artifact"
	}
	return words.Count(n, "rank file", "rank files")
}

// checkReplaceable refuses to write over files that are not what a run has there.
func checkReplaceable(opt simulate.Options, kind synthesis.Kind) error {
	if kind == synthesis.Recording {
		for _, path := range synthesis.RecordingFiles(opt) {
			if err := checkKind(path, detect.Trace, "no segment of a trace"); err != nil {
				return err
			}
		}
		return nil
	}
	base := artifact.ParseBase(filepath.Join(opt.Dir, artifact.DefaultName))
	for rank := range opt.Ranks {
		if err := checkKind(base.Rank(rank), detect.Rank, "no rank artifact"); err != nil {
			return err
		}
	}
	if kind == synthesis.RankFiles {
		return nil
	}
	merged := synthesis.Merged(opt)
	return errors.Join(checkKind(merged, detect.Merged, "no merged artifact"), checkKind(artifact.Sidecar(merged), detect.Sidecar, "no sidecar"))
}

// checkKind refuses a file that is there and of another kind.
func checkKind(path string, kind detect.Kind, what string) error {
	f, err := input.Open(path, input.Options{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if found, err := detect.Look(f, path); err != nil || found.Kind != kind {
		return errors.Join(err, &exitcode.Error{Code: exitcode.Failed, File: path, Message: "the file is there and is " + what, Hint: "choose another directory, or replace it with --force"})
	}
	return nil
}
