package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/cmd/internal/tracestats"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
)

const traceStatsHelp = `Summarise a trace in a line for each producer and rank.

  rows        rows, heartbeats included
  span        time between the first and the last row
  busy        in a full capture the share of that time that was spent in forward
              passes; in a sampled one the share of rows that are no heartbeats
  p50 … max   wall time of the passes; percentiles are within 1 %, max is exact
  prefill/s   prompt tokens per second, and decode/s decoded tokens, one for each
              request of a pass. In a full capture that is a second of the span; of
              a sampled one, marked *, a second of the recorded passes, for nobody
              knows the others
  queue       waiting requests, mean/max
  gaps        missing counters (runs of them); only a full capture can tell. They were
              refused by the recorder, dropped by the publisher or lost on the way
  restarts    how often the counter went back

What a sampled capture leaves out is not missing, so its gaps are not judged (-).

` + traceInputs

func newTraceStats(a *app) *cobra.Command {
	var most uint
	cmd := &cobra.Command{
		Use:   "stats PATH...",
		Short: "Summarise a trace by producer and rank",
		Long:  traceStatsHelp,
		Example: `  fpm trace stats /tmp/dynamo-fpm
  fpm trace stats '/var/lib/fpm/*.jsonl.gz' --format json`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.traceStats(cmd, args, int(most))
		},
	}
	cmd.Flags().UintVar(&most, "max-streams", 50, "print at most `N` lines of the table; 0 prints all")
	return cmd
}

func (a *app) traceStats(cmd *cobra.Command, args []string, most int) error {
	sources, failures, err := traceSources(args)
	if err != nil {
		return err
	}
	read, stop := a.readMeter("reading", sources)
	stats, err := trace.Summarise(cmd.Context(), sources, read)
	stop()
	if err != nil {
		return err
	}
	out := finding.NewCollector(0)
	if stats.Rows == 0 {
		emptyTrace(out, "there is no row to summarise")
	}
	r := traceReport(cmd, out, append(failures, stats.Failures...))
	r.Details = tracestats.Details(stats)
	r.Items = report.Items{Key: "streams"}
	for _, s := range stats.Streams {
		r.Items.Values = append(r.Items.Values, tracestats.Stream(s))
	}
	r.Body = strings.Join(tracestats.Lines(stats, tracestats.Layout{Limit: most, More: "; --max-streams 0 prints all"}), "\n")
	return a.finish(r)
}
