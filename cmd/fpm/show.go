package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fpm-project/fpm/cmd/internal/show"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/report"
)

const showHelp = `Show what artifacts say, in tables: the run (model, versions, parallel layout, grid,
coverage, timing), what is worth knowing about it, and its points with wall time, graph
dispatch and the skew between ranks.

Skew is the slowest rank's wall time over the lower median of the ranks' wall times,
which of two ranks is the faster one's. A raw sample is called slow above 3 times the
lower median of its point's raw samples on its rank. The retained wall time of a point is
the producer's own, the upper median of the samples that its estimate names.

PATH is a rank artifact, a merged artifact, a worker-probe sidecar or a segment of a
trace, told by its content. One path may be a base path: rank 0's file, beside which the
other ranks' files are found by name, or a directory, which stands for
` + artifact.DefaultName + ` in it, or else for the trace in it. Rank artifacts of one run
are shown together, several runs one after the other. A path can also be the prefix of a
recording; the files of traces together are summarised as by 'fpm trace stats'.

show judges nothing: whatever can be read is shown, sound or not, and the exit status
is 0. 'fpm validate' judges. What does not fit the terminal is left out, and a line
says what that was; --format json leaves nothing out.`

const showExample = `  # the run, what is worth knowing about it, and its first points
  fpm show results/

  # every point of a merged artifact
  fpm show results/benchmark_results_merged.json --points --all

  # the points at which ranks differ most
  fpm show results/ --points --sort skew

  # warmup records between the measured points, rank by rank
  fpm show results/ --warmup

  # the raw samples of point 17 on every rank
  fpm show results/ --samples 17

  # a recording, by worker and rank
  fpm show /tmp/dynamo-fpm

  # for another program
  fpm show results/ --format json | jq '.documents[0].points[] | [.benchmark_id, .skew]'`

// showFlags are the options of show.
type showFlags struct {
	sel    show.Selection
	sample int64
	sort   string
	all    bool
	limit  int
}

func newShow(a *app) *cobra.Command {
	var opt showFlags
	cmd := &cobra.Command{
		Use:     "show PATH...",
		Short:   "Show what artifacts say, in tables",
		Long:    showHelp,
		Example: showExample,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("show takes the path of an artifact, or of the directory of a run")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			if err := opt.check(cmd); err != nil {
				return err
			}
			return a.show(cmd, args, opt)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&opt.sel.Points, "points", false, "show the points only")
	flags.BoolVar(&opt.sel.Warmup, "warmup", false, "show the warmup records between the points, rank by rank")
	flags.BoolVar(&opt.sel.Engine, "engine", false, "show the engine block, and where ranks differ in it")
	flags.Int64Var(&opt.sample, "samples", 0, "show the raw samples of the point of this benchmark `ID`")
	flags.StringVar(&opt.sort, "sort", string(show.ByExecution), "`KEY` to sort the points by: order (of execution), wall (longest first) or skew (largest first)")
	flags.BoolVar(&opt.all, "all", false, "show all rows of the tables")
	flags.IntVar(&opt.limit, "limit", 0, "show at most `N` rows of each table (usually 10 beside other parts, else 100)")
	return cmd
}

// check refuses options that contradict each other.
func (f *showFlags) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	f.sel.Samples = changed("samples")
	switch {
	case !slices.Contains(show.Orders(), show.Order(f.sort)):
		return usage("--sort takes order, wall or skew, not " + strconv.Quote(f.sort))
	case changed("samples") && f.sample < 1:
		return usage("--samples takes the benchmark id of a point, which is 1 or more")
	case changed("limit") && f.limit < 1:
		return usage("--limit takes a number of 1 or more; --all shows every row")
	case changed("limit") && f.all:
		return usage("--limit and --all exclude each other")
	}
	return nil
}

// rows is the limit of the tables.
func (f *showFlags) rows() int {
	if f.all {
		return -1
	}
	return min(f.limit, 1<<30)
}

func (a *app) show(cmd *cobra.Command, paths []string, opt showFlags) error {
	options := show.Options{Paths: paths, Sort: show.Order(opt.sort), Sample: opt.sample, MaxFindings: int(a.opts.maxFindings), Warn: a.warn}
	meter := a.meter("reading", 0)
	if meter != nil {
		options.Progress = meter
	}
	result, err := show.Read(cmd.Context(), options)
	meter.Stop()
	if err != nil {
		return err
	}
	r := report.New("show", result.Findings, result.Errors, result.Warnings)
	for _, failure := range result.Failures {
		r.Fail(failure)
	}
	layout := show.Layout{Width: a.textWidth(), Limit: opt.rows()}
	r.Items.Key = "documents"
	var body []string
	for i, d := range result.Documents {
		if a.opts.format != report.Text {
			r.Items.Values = append(r.Items.Values, d.Data(opt.sel))
			continue
		}
		if i > 0 {
			body = append(body, "")
		}
		body = append(body, d.Text(opt.sel, layout)...)
	}
	r.Body = strings.Join(body, "\n")
	return a.finish(r)
}

// textWidth is how wide tables may be: as wide as the terminal, or what COLUMNS says; 100
// columns where neither is known, so that a file or a log reads well.
func (a *app) textWidth() int {
	if n, err := strconv.Atoi(a.getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if fd, ok := descriptor(a.stdout.w); ok && term.IsTerminal(fd) {
		return columns(a.stdout.w)
	}
	return 100
}
