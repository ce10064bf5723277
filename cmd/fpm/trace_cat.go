package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/cmd/internal/tracestats"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
)

func newTraceCat(a *app) *cobra.Command {
	var opt trace.CatOptions
	var where string
	var ranks rankSet
	var follow bool
	since, until := moment{now: time.Now}, moment{now: time.Now}
	cmd := &cobra.Command{
		Use:   "cat PATH...",
		Short: "Write the rows of a trace as JSON lines",
		Long: `Write the rows of a trace on standard output, one a line, unchanged byte for byte, and
the report on standard error. Filters and --fpm leave lines out that are no valid rows,
and say how many; without them every line is written.

With --follow it waits for more, also across rolls and for producers that come later,
until it is interrupted, which is no failure then. It says so when segments were deleted
before it had read them.

A last member that is cut off, as a recorder leaves it that was killed, is told of, also
with --quiet, and is no failure. Damage is one: the status is 1.

` + traceInputs,
		Example: `  fpm trace cat /tmp/dynamo-fpm | jq .event.fpm.wall_time
  fpm trace cat run --since 10m --where busy --rank 0-3
  fpm trace cat run --producer decode-0 --fpm --follow`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt.Since, opt.Until, opt.Ranks = since.at, until.at, ranks.set
			if err := checkFilter(&opt.Filter, where); err != nil {
				return err
			}
			if follow {
				return a.traceFollow(cmd, args, opt)
			}
			return a.traceCat(cmd, args, opt)
		},
	}
	flags := cmd.Flags()
	flags.Var(&since, "since", "rows that arrived at this `TIME` or later: RFC 3339, or so long ago, such as 10m")
	flags.Var(&until, "until", "rows that arrived before this `TIME`")
	flags.StringArrayVar(&opt.Producers, "producer", nil, "rows of the producer with this `ID`; may be repeated")
	flags.Var(&ranks, "rank", "rows of these `RANKS`, such as 0-3,7")
	flags.StringVar(&where, "where", "", "`busy` rows, or heartbeat rows")
	flags.BoolVar(&opt.Metric, "fpm", false, "write the metric alone, without what the recorder added")
	flags.BoolVarP(&follow, "follow", "f", false, "go on with what is written to the files, and with new segments")
	complete := cobra.FixedCompletions([]string{"busy", "heartbeat"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("where", complete); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// checkFilter refuses a filter that is none.
func checkFilter(f *trace.Filter, where string) error {
	switch kind := trace.Kind(where); kind {
	case trace.Any, trace.Busy, trace.Heartbeat:
		f.Kind = kind
	default:
		return usage(fmt.Sprintf("--where: %q is neither busy nor heartbeat", where))
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return usage("--since is not before --until, so no row can be in between")
	}
	return nil
}

func (a *app) traceCat(cmd *cobra.Command, args []string, opt trace.CatOptions) error {
	sources, failures, err := traceSources(args)
	if err != nil {
		return err
	}
	// No meter: the rows may go to the terminal that it would draw on.
	copied, err := trace.Cat(cmd.Context(), a.stdout, sources, opt)
	if a.stdout.err != nil {
		return nil // told at the end; a reader that went away is no failure
	}
	if err != nil {
		return err
	}
	return a.copied(cmd, copied, append(failures, copied.Failures...))
}

func (a *app) traceFollow(cmd *cobra.Command, args []string, opt trace.CatOptions) error {
	opt.Warn = func(err error) { a.warn(exitcode.From(err).Error()) }
	opt.Lost = func(t trace.Torn) { a.lost(tracestats.NotRead([]trace.Torn{t}, 1, 0)) }
	ticker := time.NewTicker(segment.PollInterval)
	defer ticker.Stop()
	copied, err := trace.Follow(cmd.Context(), a.stdout, args, opt, ticker.C)
	if a.stdout.err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return a.copied(cmd, copied, copied.Failures)
}

// copied reports on standard error what was written, and what was not.
func (a *app) copied(cmd *cobra.Command, c *trace.Copied, failures []error) error {
	out := finding.NewCollector(0)
	if c.Read() == 0 {
		emptyTrace(out, "there is no row to write")
	}
	damaged(out, c)
	r := traceReport(cmd, out, failures)
	r.Details = report.Object{
		{Key: "rows", Value: c.Lines}, {Key: "rows_left_out", Value: c.Skipped}, {Key: "invalid_rows", Value: c.BadRows},
		{Key: "damaged", Value: c.Holes}, {Key: "torn", Value: tracestats.Torn(c.Torn)},
	}
	if a.opts.format == report.Text {
		if c.Lines == 0 && c.Skipped > 0 {
			a.warn(fmt.Sprintf("0 of %s match", words.Count(c.Skipped, "row", "rows")))
		}
		a.lost(tracestats.NotRead(tolerated(c), c.Holes-c.Damaged-c.Deleted, 0))
		for _, line := range tracestats.NotRead(nil, 0, c.BadRows) {
			a.warn(line)
		}
	}
	return a.finishAside(r)
}

// lost tells of rows that are not among those that were written. --quiet silences warnings,
// but not that data is lost.
func (a *app) lost(lines []string) {
	for _, line := range lines {
		fmt.Fprintf(a.stderr, "fpm: warning: %s\n", report.Escape(line))
	}
}

// tolerated returns the holes that are neither findings nor told of before.
func tolerated(c *trace.Copied) (torn []trace.Torn) {
	for _, t := range c.Torn {
		if !trace.Damage(&t.Hole) && t.Fault != segment.Deleted {
			torn = append(torn, t)
		}
	}
	return torn
}

// damaged adds findings about damage: what was written is not all that was recorded.
func damaged(out *finding.Collector, c *trace.Copied) {
	left := c.Damaged
	for _, t := range c.Torn {
		if trace.Damage(&t.Hole) {
			left--
			out.Add(finding.Finding{Rule: finding.TraceTorn, File: t.File, Offset: -1, Rank: finding.NoRank, Message: trace.HoleText(&t.Hole)})
		}
	}
	if left > 0 {
		out.Add(finding.Finding{Rule: finding.TraceTorn, Offset: -1, Rank: finding.NoRank, Message: words.Count(left, "more part of a file is", "more parts of files are") + " damaged; fpm trace verify lists " + words.Plural(left, "it", "them")})
	}
}
