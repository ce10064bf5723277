package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/progress"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/merge"
)

const mergeHelp = `Check that the rank artifacts of a data-parallel self-benchmark are one run, and
write the merged artifact.

One argument is a base path: the path of rank 0's file, beside which the other
ranks' files are found by name (results.json, results_dp1.json, ...; each may have
.gz or .zst behind it). A directory stands for benchmark_results.json in it. Several
arguments, or one whose name ends in _dpN, are the rank files themselves, in any
order. Without an argument the base path is ` + artifact.DefaultBase + `, or
what the environment variable ` + artifact.BaseEnv + ` says.

Every rule that is broken is reported, with file, place, what was expected and what
stood there; nothing is written then. The output is byte for byte what Python's
json.dump(indent=2) makes of the merged document; it replaces its target atomically.`

const mergeExample = `  # every rank beside rank 0's file; writes results/benchmark_results_merged.json
  fpm merge results/benchmark_results.json

  # the ranks of this node only
  fpm merge --ranks 8-15 /tmp/benchmark_results.json

  # look, but write nothing
  fpm merge --check results/

  # wait for workers that are still benchmarking
  fpm merge --wait 20m results/ -o merged.json`

func newMerge(a *app) *cobra.Command {
	var opt merge.Options
	var ranks string
	cmd := &cobra.Command{
		Use:     "merge [BASE | FILE...]",
		Short:   "Check the rank artifacts of one run and merge them",
		Long:    mergeHelp,
		Example: mergeExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Inputs = args
			if err := a.mergeOptions(cmd, &opt, ranks); err != nil {
				return err
			}
			return a.merge(cmd, opt)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&opt.Output, "output", "o", "", "`PATH` to write (default: the base path with _merged, or _dpN_merged when N is the lowest rank)")
	flags.StringVar(&ranks, "ranks", "", "merge only these DP ranks, such as `0-3,7`")
	flags.BoolVar(&opt.CheckOnly, "check", false, "verify only, write nothing")
	flags.BoolVar(&opt.Force, "force", false, "replace a target that is not a merged artifact of this run")
	flags.DurationVar(&opt.Wait, "wait", 0, "wait so long for files that are missing or incomplete")
	flags.DurationVar(&opt.Grace, "grace", 90*time.Second, "after --wait, go on waiting so long with a warning")
	return cmd
}

func (a *app) mergeOptions(cmd *cobra.Command, opt *merge.Options, ranks string) error {
	opt.DefaultBase = artifact.DefaultBase
	if base := a.getenv(artifact.BaseEnv); base != "" {
		opt.DefaultBase = base
	}
	opt.MaxFindings = int(a.opts.maxFindings)
	opt.Warn = a.warn
	changed := cmd.Flags().Changed
	if changed("ranks") {
		set, err := artifact.ParseRanks(ranks)
		if err != nil {
			return usage("--ranks: " + err.Error())
		}
		opt.Ranks = set
	}
	switch {
	case changed("output") && opt.Output == "":
		return usage("--output: the path is empty")
	case strings.HasSuffix(opt.Output, ".gz") || strings.HasSuffix(opt.Output, ".zst"):
		return usage("--output: the merged artifact is not compressed; choose a name without .gz or .zst")
	case opt.CheckOnly && (changed("output") || opt.Force):
		return usage("--check writes nothing, so --output and --force have no place with it")
	case opt.Wait < 0 || opt.Grace < 0:
		return usage("--wait and --grace take a duration of 0 or more")
	case changed("grace") && opt.Wait == 0:
		return usage("--grace has no place without --wait")
	}
	return nil
}

func usage(message string) error {
	return &exitcode.Error{Code: exitcode.Usage, Message: message}
}

func (a *app) merge(cmd *cobra.Command, opt merge.Options) error {
	meter := a.meter("merging", 0)
	if meter != nil {
		opt.Progress = meter
	}
	result, err := merge.Run(cmd.Context(), opt)
	meter.Stop()
	if err != nil {
		return err
	}
	return a.finish(mergeReport(result, opt.CheckOnly))
}

func mergeReport(result *merge.Result, checkOnly bool) *report.Report {
	r := report.New("merge", result.Findings, result.Errors, result.Warnings)
	for _, failure := range result.Failures {
		r.Fail(failure)
	}
	if r.Status != report.OK {
		return r
	}
	sources := artifact.RankSet(result.SourceRanks)
	r.Details = report.Object{
		{Key: "run_id", Value: result.RunID},
		{Key: "source_ranks", Value: result.SourceRanks},
		{Key: "global_size", Value: result.GlobalSize},
		{Key: "points", Value: result.Points},
	}
	run := fmt.Sprintf("%s %s of %d, %s, run %s", words.Plural(len(sources), "rank", "ranks"), sources, result.GlobalSize,
		words.Count(result.Points, "point", "points"), report.Escape(result.RunID))
	if checkOnly {
		r.Summary = "checked " + run + ": one run, nothing written"
		return r
	}
	r.Details = append(r.Details, report.Detail{Key: "merged_output_path", Value: result.Output}, report.Detail{Key: "bytes", Value: result.Bytes})
	r.Summary = fmt.Sprintf("merged %s\nwrote %s (%s)", run, report.Escape(result.Output), progress.Bytes(result.Bytes))
	return r
}
