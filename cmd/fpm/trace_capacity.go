package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/cmd/internal/tracestats"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/progress"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// capacityFlags are the options of trace capacity.
type capacityFlags struct {
	mode        string
	interval    time.Duration
	ranks       uint
	producers   uint
	passes      float64
	rowBytes    float64
	compression float64
	rollBytes   uint64
	maxSegments uint
}

func newTraceCapacity(a *app) *cobra.Command {
	var opt capacityFlags
	cmd := &cobra.Command{
		Use:   "capacity [PATH...]",
		Short: "Compute what a recording takes, and how far back it reaches",
		Long: `Compute how many bytes a day a recording takes, and how much time the segments hold that
are kept: the mean row times the rows per second.

Without PATH the load is what the flags say: ranks that each write a row for every
forward pass (full), or one at each interval (sampled; an idle rank does so, too, for
its heartbeats count). With PATH the size of a row, the rows per second and the
compression are those of recorded segments; a flag that is given beats what was measured,
and one row of a rank has no rate: then it is that of the flags.

The limits of size and number are for each producer, of text before compression.

` + traceInputs,
		Example: `  # sampled every 5 seconds, 8 ranks
  fpm trace capacity --ranks 8

  # every pass of 64 producers of 8 ranks, 40 passes a second
  fpm trace capacity --mode full --passes 40 --ranks 8 --producers 64

  # as recorded; with twice as many segments
  fpm trace capacity /tmp/dynamo-fpm --max-segments 8`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opt.check(); err != nil {
				return err
			}
			return a.traceCapacity(cmd, args, opt)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.mode, "mode", string(wire.Sampled), "capture mode: `sampled` or full")
	flags.DurationVar(&opt.interval, "sample-interval", trace.DefaultSampleInterval, "how often a sampled capture writes a row of a rank")
	flags.UintVar(&opt.ranks, "ranks", 1, "ranks of a producer")
	flags.UintVar(&opt.producers, "producers", 1, "producers")
	flags.Float64Var(&opt.passes, "passes", 10, "forward passes a second of a rank, heartbeats included")
	flags.Float64Var(&opt.rowBytes, "row-bytes", 600, "size of a row (bytes)")
	flags.Float64Var(&opt.compression, "compression", 8, "bytes of rows for each byte on disk")
	flags.Uint64Var(&opt.rollBytes, "roll-bytes", trace.DefaultRollBytes, "size at which a segment is full (bytes of rows)")
	flags.UintVar(&opt.maxSegments, "max-segments", trace.DefaultMaxSegments, "segments of a producer that are kept")
	complete := cobra.FixedCompletions([]string{"sampled", "full"}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("mode", complete); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// maxCount bounds what is counted, far beyond any fleet.
const maxCount = 1e9

// check refuses values that mean nothing.
func (f *capacityFlags) check() error {
	switch {
	case f.mode != string(wire.Sampled) && f.mode != string(wire.Full):
		return usage(fmt.Sprintf("--mode: %q is neither sampled nor full", f.mode))
	case f.interval <= 0:
		return usage("--sample-interval is a duration above 0")
	case !(f.passes > 0) || !(f.rowBytes > 0) || !(f.compression > 0) || f.passes > 1e9 || f.rowBytes > 1e9 || f.compression > 1e9:
		return usage("--passes, --row-bytes and --compression are numbers above 0, up to 1e9")
	case f.ranks == 0 || f.producers == 0 || f.rollBytes == 0 || f.maxSegments == 0:
		return usage("--ranks, --producers, --roll-bytes and --max-segments are at least 1")
	case f.ranks > maxCount || f.producers > maxCount || f.maxSegments > maxCount:
		return usage("--ranks, --producers and --max-segments are at most 1000000000")
	}
	return nil
}

// flow is the load that the flags describe.
func (f *capacityFlags) flow() trace.Flow {
	return trace.Flow{
		RowBytes: f.rowBytes, Compression: f.compression, Producers: int(f.producers),
		RowsPerSec: trace.RowsPerSecond(wire.Mode(f.mode), int(f.ranks), f.interval, f.passes),
	}
}

func (a *app) traceCapacity(cmd *cobra.Command, args []string, opt capacityFlags) error {
	flow, out, failures := opt.flow(), finding.NewCollector(0), []error(nil)
	var measured *trace.Measured
	if len(args) > 0 {
		sources, missing, err := traceSources(args)
		if err != nil {
			return err
		}
		if measured, err = a.measure(cmd.Context(), sources); err != nil {
			return err
		}
		failures = append(missing, measured.Failures...)
		if measured.Rows == 0 {
			emptyTrace(out, "there is no row to measure")
		}
		flow = opt.override(cmd, measured.Flow)
	}
	r := traceReport(cmd, out, failures)
	if measured == nil || measured.Rows > 0 {
		describeCapacity(r, flow, measured, opt)
	}
	return a.finish(r)
}

func (a *app) measure(ctx context.Context, sources []*segment.Source) (*trace.Measured, error) {
	read, stop := a.readMeter("measuring", sources)
	defer stop()
	return trace.Measure(ctx, sources, read)
}

// override puts what flags say in place of what was measured.
func (f *capacityFlags) override(cmd *cobra.Command, flow trace.Flow) trace.Flow {
	given := f.flow()
	changed := cmd.Flags().Changed
	if changed("row-bytes") {
		flow.RowBytes = given.RowBytes
	}
	if changed("compression") {
		flow.Compression = given.Compression
	}
	if changed("producers") {
		flow.Producers = given.Producers
	}
	if changed("mode") || changed("sample-interval") || changed("ranks") || changed("passes") || flow.RowsPerSec <= 0 {
		flow.RowsPerSec = given.RowsPerSec
	}
	return flow
}

// describeCapacity fills a report with what a load takes.
func describeCapacity(r *report.Report, flow trace.Flow, measured *trace.Measured, opt capacityFlags) {
	c := flow.Capacity(opt.rollBytes, int(opt.maxSegments))
	r.Details = report.Object{
		{Key: "row_bytes", Value: flow.RowBytes}, {Key: "rows_per_s", Value: flow.RowsPerSec},
		{Key: "compression", Value: flow.Compression}, {Key: "producers", Value: flow.Producers},
		{Key: "roll_bytes", Value: opt.rollBytes}, {Key: "max_segments", Value: opt.maxSegments},
		{Key: "rows_per_day", Value: c.RowsPerDay}, {Key: "bytes_per_day", Value: c.BytesPerDay}, {Key: "stored_bytes_per_day", Value: c.StoredPerDay},
		{Key: "all_stored_bytes_per_day", Value: c.AllStoredPerDay}, {Key: "segments_per_day", Value: c.SegmentsPerDay}, {Key: "segment_s", Value: c.SecondsToSegment},
		{Key: "retained_s_max", Value: c.Retained}, {Key: "retained_s_min", Value: c.RetainedAtLeast},
		{Key: "stored_bytes_max", Value: c.MaxStored}, {Key: "all_stored_bytes_max", Value: c.AllMaxStored},
	}
	r.Body = strings.Join(capacityLines(flow, measured, c, opt), "\n")
}

func capacityLines(flow trace.Flow, measured *trace.Measured, c trace.Capacity, opt capacityFlags) []string {
	var lines []string
	if measured != nil {
		lines = append(lines, fmt.Sprintf("measured: %s of %s in %s, %s on disk", words.Count(measured.Rows, "row", "rows"),
			words.Count(measured.Streams, "stream", "streams"), tracestats.Seconds(measured.Seconds), progress.Bytes(int64(measured.Stored))))
		if measured.RowsPerSec <= 0 {
			lines = append(lines, "they span no time, so the rows a second are those of the flags")
		}
	}
	t := table.Table{Columns: make([]table.Column, 3)}
	add := func(what, value, also string) { t.Rows = append(t.Rows, []string{what, value, also}) }
	add("row", fmt.Sprintf("%.0f bytes", flow.RowBytes), fmt.Sprintf("%s on disk, compressed %s to 1", bytesText(flow.RowBytes/flow.Compression), tracestats.Digits(flow.Compression)))
	add("rows of a producer", fmt.Sprintf("%s a second", tracestats.Digits(flow.RowsPerSec)), fmt.Sprintf("%.0f a day", c.RowsPerDay))
	add("bytes of a producer", bytesText(c.BytesPerDay)+" a day", bytesText(c.StoredPerDay)+" a day on disk")
	if flow.Producers > 1 {
		add(fmt.Sprintf("all %d producers", flow.Producers), bytesText(c.AllStoredPerDay)+" a day", "on disk")
	}
	add("a segment is full", "after "+tracestats.Seconds(c.SecondsToSegment), tracestats.Digits(c.SegmentsPerDay)+" a day")
	add(fmt.Sprintf("%d segments reach back", opt.maxSegments), tracestats.Seconds(c.RetainedAtLeast)+" to "+tracestats.Seconds(c.Retained), "right after a roll, and right before")
	add("they take", bytesText(c.MaxStored), "on disk at most, a producer")
	if flow.Producers > 1 {
		add("", bytesText(c.AllMaxStored), fmt.Sprintf("on disk at most, all %d", flow.Producers))
	}
	return append(lines, t.Lines(0, 0)...)
}

// bytesText returns an amount of bytes in decimal units, as disks are sold.
func bytesText(v float64) string {
	for _, unit := range []string{"bytes", "kB", "MB", "GB", "TB"} {
		if v < 999.5 {
			return tracestats.Digits(v) + " " + unit
		}
		v /= 1000
	}
	return tracestats.Digits(v) + " PB"
}
