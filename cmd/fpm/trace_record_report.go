package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/progress"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace/record"
)

// The bounds of what is printed for people. The manifest has all of it.
const (
	maxStreamLines   = 64
	maxEndpointLines = 16
	maxProducer      = 40 // columns of a producer's id
)

// recordReport says what was recorded, and what was not. Nothing at all is a failure unless
// someone asked for the end, who knows how long it was, and there was nothing to refuse.
func recordReport(m *record.Manifest, err error, asked, text bool) *report.Report {
	r := &report.Report{Command: "trace record", Status: report.OK}
	for _, failure := range failures(err) {
		r.Fail(failure)
	}
	if m.Totals.Received == 0 && r.Status == report.OK && !asked {
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
		message = fmt.Sprintf("no valid payload was received: %s refused", words.Count(m.Totals.Rejected, "message was", "messages were"))
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
		words.Count(t.Written, "row", "rows"), progress.Bytes(int64(t.Bytes)), progress.Bytes(int64(t.Compressed)), words.Count(t.Segments, "segment", "segments"))
	for _, line := range slices.Concat(streamTable(m.Producers), recordLosses(m)) {
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

// streamTable returns a line for each rank.
func streamTable(producers []record.Producer) []string {
	t := table.Table{Columns: []table.Column{{Title: "producer"}}}
	for _, title := range []string{"rank", "received", "written", "busy", "heartbeats", "gaps", "missing", "restarts", "lost"} {
		t.Columns = append(t.Columns, table.Column{Title: title, Right: true})
	}
	left := 0
	for _, p := range producers {
		for _, s := range p.Streams {
			if len(t.Rows) == maxStreamLines {
				left++
				continue
			}
			row := []string{table.Cut(table.Text(p.ProducerID), maxProducer)}
			for _, n := range []any{s.Rank, s.Received, s.Written, s.Busy, s.Heartbeats, s.Gaps, s.Missing, s.Restarts, s.Lost()} {
				row = append(row, fmt.Sprint(n))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	lines := t.Lines(0, 0)
	if left > 0 {
		lines = append(lines, fmt.Sprintf("and %s; the manifest has all of them", words.Count(left, "more rank", "more ranks")))
	}
	return lines
}

// recordLosses says what is not in the files, and where it went.
func recordLosses(m *record.Manifest) (lines []string) {
	t := m.Totals
	add := func(before string, n uint64, one, many string) {
		if n > 0 {
			lines = append(lines, before+words.Count(n, one, many))
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
		lines = append(lines[:maxEndpointLines], fmt.Sprintf("and %s of this kind; the manifest has all of them", words.Count(left, "more line", "more lines")))
	}
	add("", t.Thinned, "payload was left out by sampling", "payloads were left out by sampling")
	add("", t.Surplus, "payload came when there were enough rows", "payloads came when there were enough rows")
	if t.Missing > 0 {
		lines = append(lines, fmt.Sprintf("%s missing by %s, in %s: dropped by the publisher or lost on the way", words.Count(t.Missing, "message is", "messages are"),
			words.Plural(t.Missing, "its number", "their numbers"), words.Count(t.Gaps, "gap", "gaps")))
	}
	add("lost here: ", t.QueueDrops, "payload was overwritten while it waited to be written", "payloads were overwritten while they waited to be written")
	add("lost here: ", t.DiskDrops, "payload could not be written", "payloads could not be written")
	add("lost here: ", t.Crowded, "payload was of a new worker when there were too many, or their ids too long, to be remembered, or too large for the memory that was left",
		"payloads were of new workers when there were too many, or their ids too long, to be remembered, or too large for the memory that was left")
	add("lost here, or not seen to be written: ", t.Pending, "payload", "payloads")
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
