package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

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
	r.Details = statsDetails(stats)
	r.Items = report.Items{Key: "streams"}
	for _, s := range stats.Streams {
		r.Items.Values = append(r.Items.Values, streamObject(s))
	}
	r.Body = strings.Join(statsLines(stats, most), "\n")
	return a.finish(r)
}

func statsDetails(stats *trace.Stats) report.Object {
	all := stats.Total()
	details := report.Object{
		{Key: "files", Value: stats.Files}, {Key: "rows", Value: stats.Rows},
		{Key: "invalid_rows", Value: stats.BadRows}, {Key: "rows_of_other_streams", Value: stats.Others},
	}
	if stats.Rows > 0 {
		details = append(details, report.Object{
			{Key: "first", Value: stamp(all.FirstUnixMS)}, {Key: "last", Value: stamp(all.LastUnixMS)},
		}...)
	}
	return append(details, report.Object{
		{Key: "quantile_error", Value: trace.QuantileError},
		{Key: "damaged", Value: stats.Holes}, {Key: "torn", Value: tornObjects(stats.Torn)},
	}...)
}

// streamObject is a stream in the JSON formats. What a sampled capture cannot tell is null.
func streamObject(s *trace.Stream) report.Object {
	object := report.Object{
		{Key: "namespace", Value: s.ID.Namespace}, {Key: "component", Value: s.ID.Component},
		{Key: "producer_id", Value: s.ID.Producer}, {Key: "worker_id", Value: s.ID.Worker}, {Key: "dp_rank", Value: s.ID.Rank},
		{Key: "capture_mode", Value: captureMode(s)},
		{Key: "rows", Value: s.Rows}, {Key: "busy_rows", Value: s.Busy},
		{Key: "first_unix_ms", Value: s.FirstUnixMS}, {Key: "last_unix_ms", Value: s.LastUnixMS}, {Key: "span_s", Value: s.Seconds()},
		{Key: "busy_share", Value: s.BusyShare()},
		{Key: "wall_time_s", Value: report.Object{
			{Key: "count", Value: s.Wall.Count()}, {Key: "sum", Value: s.WallSum},
			{Key: "p50", Value: s.Percentile(0.5)}, {Key: "p90", Value: s.Percentile(0.9)}, {Key: "p99", Value: s.Percentile(0.99)},
			{Key: "max", Value: s.WallMax},
		}},
		{Key: "prefill_tokens", Value: s.Prefill}, {Key: "decode_tokens", Value: s.Decode},
	}
	return append(object, streamRates(s)...)
}

func streamRates(s *trace.Stream) report.Object {
	var prefill, decode, missing, runs, longest any // null
	gaps := []trace.Gap{}
	if s.Complete() {
		prefill, decode = s.PerSecond(s.Prefill), s.PerSecond(s.Decode)
		missing, runs, longest = s.Missing, s.GapRuns, s.LongestGap
		gaps = append(gaps, s.Gaps...)
	}
	return report.Object{
		{Key: "prefill_tokens_per_s", Value: prefill}, {Key: "decode_tokens_per_s", Value: decode},
		{Key: "prefill_tokens_per_busy_s", Value: s.PerBusySecond(s.Prefill)}, {Key: "decode_tokens_per_busy_s", Value: s.PerBusySecond(s.Decode)},
		{Key: "queued_requests", Value: report.Object{{Key: "mean", Value: s.QueueMean()}, {Key: "max", Value: s.QueuedMax}}},
		{Key: "missing", Value: missing}, {Key: "gap_runs", Value: runs}, {Key: "longest_gap", Value: longest}, {Key: "gaps", Value: gaps},
		{Key: "unrecorded", Value: s.Unrecorded}, {Key: "restarts", Value: s.Restarts}, {Key: "repeated_counters", Value: s.Repeats},
	}
}

// captureMode returns the mode of a stream's rows, "mixed" or "" when it has none.
func captureMode(s *trace.Stream) string {
	switch {
	case s.Full == s.Rows:
		return "full"
	case s.Sampled == s.Rows:
		return "sampled"
	case s.Full+s.Sampled == 0:
		return ""
	default:
		return "mixed"
	}
}

// statsLines is the table for people, with what is not in it.
func statsLines(stats *trace.Stats, most int) []string {
	var lines []string
	if stats.Rows > 0 {
		all := stats.Total()
		lines = append(lines, fmt.Sprintf("%s of %s in %s, %s to %s", count(int(stats.Rows), "row", "rows"), count(len(stats.Streams), "stream", "streams"),
			count(stats.Files, "file", "files"), stamp(all.FirstUnixMS), stamp(all.LastUnixMS)))
		lines = append(lines, statsTable(stats, most)...)
		lines = append(lines, gapLines(stats)...)
	}
	if all := stats.Total(); all.Unrecorded > 0 {
		lines = append(lines, fmt.Sprintf("%d messages were published while no recorder ran, and are not missing", all.Unrecorded))
	}
	if stats.Others > 0 {
		lines = append(lines, fmt.Sprintf("%d rows are of further streams: only %d are told apart", stats.Others, trace.MaxStreams))
	}
	return append(lines, notRead(stats.Torn, stats.Holes, stats.BadRows)...)
}

func statsTable(stats *trace.Stats, most int) []string {
	streams := stats.Streams
	if most > 0 && len(streams) > most {
		streams = streams[:most]
	}
	t := table{left: 1}
	t.add("producer", "rank", "rows", "span", "busy", "p50", "p90", "p99", "max", "prefill/s", "decode/s", "queue", "gaps", "restarts")
	for _, s := range streams {
		t.add(streamRow(s)...)
	}
	lines := t.lines()
	if left := len(stats.Streams) - len(streams); left > 0 {
		lines = append(lines, fmt.Sprintf("and %s; --max-streams 0 prints all", count(left, "more stream", "more streams")))
	}
	return lines
}

// maxProducer is the width of the producer's column.
const maxProducer = 24

// streamName is a stream's producer, with its worker if that is another.
func streamName(s *trace.Stream) string {
	name := s.ID.Producer
	if s.ID.Worker != s.ID.Producer && s.ID.Worker != "" {
		name += "/" + s.ID.Worker
	}
	return cutText(name, maxProducer)
}

func streamRow(s *trace.Stream) []string {
	gaps, mark := "-", "*"
	if s.Complete() {
		gaps, mark = "0", ""
		if s.GapRuns > 0 {
			gaps = fmt.Sprintf("%d (%d)", s.Missing, s.GapRuns)
		}
	}
	return []string{
		streamName(s), fmt.Sprint(s.ID.Rank), fmt.Sprint(s.Rows), seconds(s.Seconds()), fmt.Sprintf("%.0f%%", 100*s.BusyShare()),
		seconds(s.Percentile(0.5)), seconds(s.Percentile(0.9)), seconds(s.Percentile(0.99)), seconds(s.WallMax),
		si(s.Rate(s.Prefill)) + mark, si(s.Rate(s.Decode)) + mark,
		fmt.Sprintf("%s/%d", digits3(s.QueueMean()), s.QueuedMax), gaps, fmt.Sprint(s.Restarts),
	}
}

// gapLines lists the first gaps.
func gapLines(stats *trace.Stats) (lines []string) {
	const shown = 10
	more := uint64(0)
	for _, s := range stats.Streams {
		if !s.Complete() {
			continue
		}
		for i, g := range s.Gaps {
			if len(lines) == shown {
				more += uint64(len(s.Gaps) - i)
				break
			}
			lines = append(lines, fmt.Sprintf("gap of rank %d of %s before %s:%d: %s missing", s.ID.Rank, report.Escape(s.ID.Producer), report.Escape(g.File), g.Line, counters(g)))
		}
		more += s.GapRuns - uint64(len(s.Gaps))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more gaps; fpm trace verify lists them", more))
	}
	return lines
}

func counters(g trace.Gap) string {
	if g.Missing == 1 {
		return fmt.Sprintf("counter %d is", g.First)
	}
	return fmt.Sprintf("counters %d to %d are", g.First, g.Last)
}
