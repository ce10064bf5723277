package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/cmd/internal/tracestats"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
)

// traceInputs says, in every reader's help text, what it can be given.
const traceInputs = `PATH is a segment or any other file of rows, plain or gzip; a directory; a pattern
such as 'run*.gz'; or the prefix of a recording, with or without a producer behind it.
Segments are read in the order of their indices, one producer after another. A member
that is cut off or damaged does not end the reading: it goes on with the next one, and
says what was left out.`

// traceSources returns the files that arguments stand for. What could not be found is in
// failures, as long as there is anything.
func traceSources(args []string) (sources []*segment.Source, failures []error, err error) {
	sources, err = segment.Find(args)
	if err == nil {
		return sources, nil, nil
	}
	failures = []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		failures = joined.Unwrap()
	}
	if len(sources) > 0 || len(failures) > 1 {
		return sources, failures, nil
	}
	return nil, nil, failures[0]
}

// readMeter returns a meter of reading files, and what to tell it.
func (a *app) readMeter(label string, sources []*segment.Source) (read func(int64), stop func()) {
	m := a.meter(label, segment.Size(sources))
	return m.Add, m.Stop
}

// atLeastOne is for commands that read one input or more.
func atLeastOne(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s takes files, directories, patterns or prefixes of segments", commandName(cmd))
	}
	return nil
}

// emptyTrace adds the finding of a trace without a row.
func emptyTrace(out *finding.Collector, message string) {
	out.Add(finding.Finding{Rule: finding.TraceEmpty, Offset: -1, Rank: finding.NoRank, Message: message})
}

// traceReport begins the report of a reader.
func traceReport(cmd *cobra.Command, out *finding.Collector, failures []error) *report.Report {
	r := report.New(commandName(cmd), out.Findings(), out.Errors(), out.Warnings())
	for _, err := range failures {
		r.Fail(err)
	}
	return r
}

// moment is the value of a flag that is a time: absolute, or so long ago.
type moment struct {
	now func() time.Time
	at  time.Time
}

func (m *moment) String() string {
	if m.at.IsZero() {
		return ""
	}
	return m.at.Format(time.RFC3339Nano)
}

func (m *moment) Type() string { return "TIME" }

func (m *moment) Set(text string) error {
	if ago, err := time.ParseDuration(text); err == nil {
		if ago < 0 {
			return fmt.Errorf("%q is negative; 10m is ten minutes ago", text)
		}
		m.at = m.now().Add(-ago)
		return nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is neither a time such as 2026-05-04T12:00:00Z nor so long ago, such as 10m", text)
	}
	m.at = at
	return nil
}

// rankSet is the value of a flag that is a set of ranks.
type rankSet struct{ set artifact.RankSet }

func (r *rankSet) String() string {
	if len(r.set) == 0 {
		return ""
	}
	return r.set.String()
}

func (r *rankSet) Type() string { return "RANKS" }

func (r *rankSet) Set(text string) error {
	set, err := artifact.ParseRanks(text)
	r.set = set
	return err
}

func newTraceVerify(a *app) *cobra.Command {
	var expect string
	var ranks rankSet
	cmd := &cobra.Command{
		Use:   "verify PATH...",
		Short: "Check that a capture is whole",
		Long: `Check that every row keeps the rules, and that nothing is missing: no counter of a full
capture, no part of a file, no segment, and no producer or rank that was expected. The
status is 1 when something is, with findings that say what and where.

A capture is whole when nothing is missing of what its publishers numbered between the
first row of a rank and its last. What they dropped before they numbered it, or sent
before and after, cannot be seen. Only full captures can be shown to be whole. A counter
that goes back is a restart, not a gap; what was published while no recorder ran, which
the rows and the manifest tell, is neither, and only warned of.

Where a recorder's manifest lies beside the segments, those that it names must be there
unless newer ones have displaced them.

` + traceInputs,
		Example: `  fpm trace verify /tmp/dynamo-fpm
  fpm trace verify run --expect-ranks 0-7 --expect-producers 4
  fpm trace verify run --expect-producers prefill-0,decode-0 --format junit`,
		Args: atLeastOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			opt := trace.VerifyOptions{Ranks: ranks.set}
			if err := expectProducers(&opt, cmd, expect); err != nil {
				return err
			}
			return a.traceVerify(cmd, args, opt)
		},
	}
	addExpected(cmd.Flags(), &expect, &ranks)
	return cmd
}

func expectProducers(opt *trace.VerifyOptions, cmd *cobra.Command, expect string) error {
	if !cmd.Flags().Changed("expect-producers") {
		return nil
	}
	if n, err := fmt.Sscanf(expect+"\n", "%d\n", &opt.ProducerCount); n == 1 && err == nil && fmt.Sprint(opt.ProducerCount) == expect {
		if opt.ProducerCount < 1 {
			return usage("--expect-producers: the number is at least 1")
		}
		return nil
	}
	opt.ProducerCount = 0
	for id := range strings.SplitSeq(expect, ",") {
		if id = strings.TrimSpace(id); id == "" {
			return usage("--expect-producers: a number, or producer ids with commas in between")
		}
		opt.Producers = append(opt.Producers, id)
	}
	return nil
}

func (a *app) traceVerify(cmd *cobra.Command, args []string, opt trace.VerifyOptions) error {
	sources, failures, err := traceSources(args)
	if err != nil {
		return err
	}
	read, stop := a.readMeter("verifying", sources)
	opt.Out, opt.Read = finding.NewCollector(int(a.opts.maxFindings)), read
	stats, err := trace.Verify(cmd.Context(), sources, opt)
	stop()
	if err != nil {
		return err
	}
	r := traceReport(cmd, opt.Out, append(failures, stats.Failures...))
	all := stats.Total()
	r.Details = report.Object{
		{Key: "files", Value: stats.Files}, {Key: "rows", Value: stats.Rows}, {Key: "streams", Value: len(stats.Streams)},
		{Key: "full_rows", Value: all.Full}, {Key: "sampled_rows", Value: all.Sampled}, {Key: "missing", Value: all.Missing},
		{Key: "refused", Value: refusedOfAll(stats)}, {Key: "unrecorded", Value: all.Unrecorded},
		{Key: "restarts", Value: all.Restarts}, {Key: "torn", Value: stats.Holes}, {Key: "recorder", Value: recorders(stats)},
	}
	r.Summary = verified(stats, &all)
	r.Body = strings.Join(slices.Concat(verifiedTable(stats), absent(stats), accounts(stats)), "\n")
	return a.finish(r)
}

// verified says what a capture without errors shows, and no more.
func verified(stats *trace.Stats, all *trace.Stream) string {
	text := fmt.Sprintf("%s of %s in %s: every row is valid, every member whole",
		words.Count(stats.Rows, "row", "rows"), words.Count(len(stats.Streams), "stream", "streams"), words.Count(stats.Files, "file", "files"))
	full := 0
	for _, s := range stats.Streams {
		if s.Complete() {
			full++
		}
	}
	between := "between the first row of a rank and its last"
	if all.Unrecorded > 0 {
		between += fmt.Sprintf(", but for %d published while no recorder ran", all.Unrecorded)
	}
	switch {
	case full == len(stats.Streams) && stats.Others == 0:
		return text + ", no counter missing " + between
	case full > 0:
		return text + fmt.Sprintf(", no counter missing of %s %s; whether rows of the others are missing only a full capture can show",
			words.Count(full, "full stream", "full streams"), between)
	default:
		return text + "; whether rows are missing only a full capture can show"
	}
}

// maxVerified is how many streams are listed for people.
const maxVerified = 64

// verifiedTable sums up the findings in a line for each stream.
func verifiedTable(stats *trace.Stats) []string {
	if len(stats.Streams) == 0 {
		return nil
	}
	t := table.Table{Columns: []table.Column{
		{Title: "producer"}, {Title: "rank", Right: true}, {Title: "mode"}, {Title: "rows", Right: true},
		{Title: "missing (runs)", Right: true}, {Title: "refused", Right: true}, {Title: "not recorded", Right: true}, {Title: "restarts", Right: true},
	}}
	for _, s := range stats.Streams[:min(len(stats.Streams), maxVerified)] {
		missing := "-"
		if s.Complete() {
			missing = fmt.Sprintf("%d (%d)", s.Missing, s.GapRuns)
		}
		t.Rows = append(t.Rows, []string{
			tracestats.Name(s), fmt.Sprint(s.ID.Rank), cmp.Or(tracestats.CaptureMode(s), "-"), fmt.Sprint(s.Rows), missing,
			fmt.Sprint(refusedOf(stats, s)), fmt.Sprint(s.Unrecorded), fmt.Sprint(s.Restarts),
		})
	}
	lines := t.Lines(0, 0)
	if left := len(stats.Streams) - maxVerified; left > 0 {
		lines = append(lines, fmt.Sprintf("and %s", words.Count(left, "more stream", "more streams")))
	}
	return lines
}

// refusedOf returns how many of a stream's missing messages the recorder refused, as far
// as its manifest says.
func refusedOf(stats *trace.Stats, s *trace.Stream) (n uint64) {
	for _, m := range stats.Accounts {
		n += m.Refused(s.ID)
	}
	return min(n, s.Missing)
}

// refusedOfAll is refusedOf for all streams.
func refusedOfAll(stats *trace.Stats) (n uint64) {
	for _, s := range stats.Streams {
		n += refusedOf(stats, s)
	}
	return n
}

// absent says where missing messages went, as far as it is known.
func absent(stats *trace.Stats) []string {
	all := stats.Total()
	if all.Missing == 0 {
		return nil
	}
	const elsewhere = "dropped by the publisher or lost on the way"
	text := fmt.Sprintf("%s absent: ", words.Count(all.Missing, "message", "messages"))
	n := refusedOfAll(stats)
	switch {
	case len(stats.Accounts) == 0:
		return []string{text + elsewhere + ", or by the recorder, whose manifest is not here"}
	case n == 0:
		return []string{text + elsewhere + ", or by the recorder if its manifest says so"}
	case n < all.Missing:
		return []string{text + fmt.Sprintf("%d were refused, see the manifest; the others %s", n, elsewhere)}
	default:
		return []string{text + "all were refused, see the manifest"}
	}
}

// recorders is what the manifests beside the segments say.
func recorders(stats *trace.Stats) []report.Object {
	list := make([]report.Object, len(stats.Accounts))
	for i, m := range stats.Accounts {
		list[i] = report.Object{{Key: "manifest", Value: m.Path}, {Key: "state", Value: m.State}, {Key: "complete", Value: m.Complete}}
	}
	return list
}

func accounts(stats *trace.Stats) (lines []string) {
	for _, m := range stats.Accounts {
		say := "the recording has not ended, or was killed"
		switch {
		case m.Complete:
			say = "the recorder lost nothing that it received"
		case m.State != "recording":
			say = "the recorder lost some of what it received, or could not write it in time"
		}
		lines = append(lines, m.Path+": "+say)
	}
	return lines
}
