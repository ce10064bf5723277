package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/progress"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace/record"
)

// The bounds of what is printed for people. The manifest has all of it.
const (
	maxStreamLines   = 64
	maxEndpointLines = 16
)

// recordReport says what was recorded, and what was not.
func recordReport(m *record.Manifest, err error, text bool) *report.Report {
	r := &report.Report{Command: "trace record", Status: report.OK}
	for _, failure := range failures(err) {
		r.Fail(failure)
	}
	if m.Totals.Received == 0 && r.Status == report.OK {
		r.Fail(nothingReceived(m))
		r.Status = report.Rejected // which is what its exit status says
	}
	if text {
		r.Body = recordText(m)
		return r
	}
	r.Details = report.Object{
		{Key: "recorded", Value: true}, {Key: "complete", Value: m.Complete}, {Key: "note", Value: m.Note},
		{Key: "prefix", Value: m.Prefix}, {Key: "manifest", Value: m.Path()}, {Key: "capture_mode", Value: m.Mode},
		{Key: "recorded_ms", Value: m.RecordedMS}, {Key: "totals", Value: m.Totals}, {Key: "endpoints", Value: m.Endpoints},
	}
	r.Items.Key = "producers"
	for _, p := range m.Producers {
		r.Items.Values = append(r.Items.Values, p)
	}
	return r
}

// failures takes joined errors apart.
func failures(err error) (list []error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, failures(e)...)
		}
		return list
	}
	if err != nil {
		list = append(list, err)
	}
	return list
}

// nothingReceived is the error of a recording without a row.
func nothingReceived(m *record.Manifest) error {
	message := fmt.Sprintf("nothing was received from %s", words.Count(len(m.Endpoints), "endpoint", "endpoints"))
	if m.Totals.Rejected > 0 {
		message = fmt.Sprintf("no valid payload was received: %d messages were refused", m.Totals.Rejected)
	}
	return &exitcode.Error{Code: exitcode.Rejected, Message: message, Hint: "see the warnings above for the likely causes; 'fpm trace topologies' lists which workers publish"}
}

// recordText is the report for people.
func recordText(m *record.Manifest) string {
	var b strings.Builder
	t := m.Totals
	streams := 0
	for _, p := range m.Producers {
		streams += len(p.Streams)
	}
	duration := time.Duration(m.RecordedMS) * time.Millisecond
	fmt.Fprintf(&b, "recorded %s of %s for %s, %s mode: %s, %s (%s compressed) in %s\n",
		words.Count(streams, "rank", "ranks"), words.Count(len(m.Producers), "producer", "producers"), duration.Round(100*time.Millisecond), m.Mode,
		words.Count(int(t.Written), "row", "rows"), progress.Bytes(int64(t.Bytes)), progress.Bytes(int64(t.Compressed)), words.Count(int(t.Segments), "segment", "segments"))
	streamTable(&b, m.Producers)
	for _, line := range recordLosses(m) {
		fmt.Fprintln(&b, line)
	}
	fmt.Fprintf(&b, "manifest: %s", m.Path())
	switch {
	case !m.Saved():
		fmt.Fprint(&b, " (not complete, and could not be written: this list is the only record)")
	case !m.Complete:
		fmt.Fprint(&b, " (not complete)")
	case t.Received > 0:
		fmt.Fprint(&b, " (complete)")
	}
	return b.String()
}

// streamTable writes a line for each rank.
func streamTable(w io.Writer, producers []record.Producer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	lines, left := 0, 0
	for _, p := range producers {
		for _, s := range p.Streams {
			if lines++; lines > maxStreamLines {
				left++
				continue
			}
			if lines == 1 {
				fmt.Fprintln(table, "PRODUCER\tRANK\tRECEIVED\tWRITTEN\tBUSY\tHEARTBEATS\tGAPS\tMISSING\tRESTARTS\tLOST\t")
			}
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", cell(p.ProducerID), s.Rank, s.Received, s.Written,
				s.Busy, s.Heartbeats, s.Gaps, s.Missing, s.Restarts, s.Lost())
		}
	}
	_ = table.Flush() // to a builder, which takes everything
	if left > 0 {
		fmt.Fprintf(w, "and %d more ranks; the manifest has all of them\n", left)
	}
}

// cell is a text of a peer's in a table.
func cell(text string) string {
	const width = 40
	escaped := []rune(report.Escape(text))
	if len(escaped) > width {
		return string(escaped[:width-1]) + "…"
	}
	return string(escaped)
}

// recordLosses says what is not in the files, and where it went.
func recordLosses(m *record.Manifest) (lines []string) {
	t := m.Totals
	add := func(n uint64, format string, args ...any) {
		if n > 0 {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	for _, e := range m.Endpoints {
		if !e.Delivered {
			lines = append(lines, e.Address+" delivered nothing: "+undelivered(e))
		}
		var reasons []string
		for _, reason := range slices.Sorted(maps.Keys(e.Rejected)) {
			reasons = append(reasons, fmt.Sprintf("%s %d", reason, e.Rejected[reason]))
		}
		if len(reasons) > 0 {
			lines = append(lines, fmt.Sprintf("%s: messages refused: %s", e.Address, strings.Join(reasons, ", ")))
		}
	}
	if left := len(lines) - maxEndpointLines; left > 0 {
		lines = append(lines[:maxEndpointLines], fmt.Sprintf("and %d lines more of this kind; the manifest has all of them", left))
	}
	add(t.Thinned, "%d payloads were left out by sampling", t.Thinned)
	add(t.Surplus, "%d payloads came when there were enough rows", t.Surplus)
	add(t.Missing, "%d messages are missing by their numbers, in %s: dropped by the publisher or lost on the way", t.Missing, words.Count(int(t.Gaps), "gap", "gaps"))
	add(t.QueueDrops, "lost here: %d payloads were overwritten while they waited to be written", t.QueueDrops)
	add(t.DiskDrops, "lost here: %d payloads could not be written", t.DiskDrops)
	add(t.Crowded, "lost here: %d payloads were of new workers when there were too many, or their ids too long, to be remembered, or too large for the memory that was left", t.Crowded)
	add(t.Pending, "lost here, or not seen to be written: %d payloads", t.Pending)
	if t.Lost()+t.Pending == 0 && t.Received > 0 {
		lines = append(lines, "nothing that was received is lost; what was dropped before it was numbered, or outside of this time, cannot be seen from here")
	}
	return lines
}

// undelivered says why an endpoint delivered nothing.
func undelivered(e record.EndpointState) string {
	switch {
	case e.Connected && len(e.Rejected) > 0:
		return "every message was refused"
	case e.Connected:
		return "it was connected, and nothing was published"
	case e.Failure != "":
		return report.Escape(e.Failure)
	default:
		return "the time was too short to connect"
	}
}

// liveLine writes what operators should know to standard error, and, on a terminal, how
// the recording goes on a line below it.
type liveLine struct {
	a     *app
	mu    sync.Mutex
	drawn bool
	end   chan struct{}
	ended sync.WaitGroup
}

const (
	liveEvery = time.Second
	eraseLine = "\r\x1b[K"
)

// start begins to draw, when there is a terminal to draw on.
func (l *liveLine) start(r *record.Recorder) {
	l.end = make(chan struct{})
	if l.a.opts.quiet || !l.a.obeysEscapes(l.a.stderr) {
		return
	}
	l.ended.Go(func() {
		ticker := time.NewTicker(liveEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				l.draw(liveText(r.Snapshot()))
			case <-l.end:
				return
			}
		}
	})
}

// stop erases the line.
func (l *liveLine) stop() {
	close(l.end)
	l.ended.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

func liveText(m *record.Manifest) string {
	connected := 0
	for _, e := range m.Endpoints {
		if e.Connected {
			connected++
		}
	}
	t := m.Totals
	return fmt.Sprintf("%s: %d/%d endpoints, %d received, %d written, %d waiting, %d missing, %d refused, %d lost",
		(time.Duration(m.RecordedMS) * time.Millisecond).Round(time.Second), connected, len(m.Endpoints),
		t.Received, t.Written, t.Pending, t.Missing, t.Rejected, t.Lost())
}

func (l *liveLine) draw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if width := columns(l.a.stderr); width > 1 && len(text) >= width {
		text = text[:width-1] // a line that wraps could not be erased
	}
	io.WriteString(l.a.stderr, eraseLine+text)
	l.drawn = true
}

// erase takes the line away. The lock is held.
func (l *liveLine) erase() {
	if l.drawn {
		io.WriteString(l.a.stderr, eraseLine)
		l.drawn = false
	}
}

// warn tells of something that should not be.
func (l *liveLine) warn(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	l.a.warn(text)
}

// say tells of something that goes as it should.
func (l *liveLine) say(text string) {
	if l.a.opts.quiet {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	fmt.Fprintf(l.a.stderr, "fpm trace record: %s\n", report.Escape(text))
}

// Write is for the log of a server.
func (l *liveLine) Write(p []byte) (int, error) {
	l.say(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
