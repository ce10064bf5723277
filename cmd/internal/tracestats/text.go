// Package tracestats writes the statistics of a trace for people and for machines, for every
// command that shows them: a line for each producer and rank, the gaps that can be known,
// and what was left out because it could not be read.
//
// Lines fit a width, where there is one; columns that do not are left out, and a line says
// which.
package tracestats

import (
	"fmt"

	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace"
)

// Layout says how lines are to fit.
type Layout struct {
	Width int    // columns of a terminal; 0 for no bounds
	Limit int    // lines of the table; 0 for all
	More  string // what prints all of them, in the line that says how many there are; may be empty
}

// Lines is the table for people, with what is not in it.
func Lines(stats *trace.Stats, l Layout) (lines []string) {
	say := func(texts ...string) {
		for _, text := range texts {
			lines = append(lines, table.Paragraph("", text, l.Width)...)
		}
	}
	if stats.Rows > 0 {
		all := stats.Total()
		say(fmt.Sprintf("%s of %s in %s, %s to %s", words.Count(stats.Rows, "row", "rows"), words.Count(len(stats.Streams), "stream", "streams"),
			words.Count(stats.Files, "file", "files"), stamp(all.FirstUnixMS), stamp(all.LastUnixMS)))
		shown := stats.Streams
		if l.Limit > 0 && len(shown) > l.Limit {
			shown = shown[:l.Limit]
		}
		lines = append(lines, streams(shown, l.Width > 0 && l.Width < narrow).Lines(l.Width, 0)...)
		if left := len(stats.Streams) - len(shown); left > 0 {
			say("and " + words.Count(left, "more stream", "more streams") + l.More)
		}
		say(gaps(stats)...)
	}
	if all := stats.Total(); all.Unrecorded > 0 {
		say(words.Count(all.Unrecorded, "message was", "messages were") + " published while no recorder ran, and " + words.Plural(all.Unrecorded, "is", "are") + " not missing")
	}
	if stats.Others > 0 {
		say(fmt.Sprintf("%s of further streams: only %d are told apart", words.Count(stats.Others, "row is", "rows are"), trace.MaxStreams))
	}
	say(NotRead(stats.Torn, stats.Holes, stats.BadRows)...)
	return lines
}

// narrow is the width below which producers' names are cut. In a wider table other columns
// make room first: names that are cut are often the same.
const narrow = 60

// streams is the table.
func streams(shown []*trace.Stream, cut bool) *table.Table {
	t := &table.Table{Noun: "streams", Columns: []table.Column{{Title: "producer", Flex: cut}}}
	for _, c := range []struct {
		title    string
		priority int
	}{
		{"rank", 0}, {"rows", 0}, {"span", 3}, {"busy", 1}, {"p50", 1}, {"p90", 4}, {"p99", 2}, {"max", 4},
		{"prefill/s", 1}, {"decode/s", 1}, {"queue", 2}, {"gaps", 0}, {"restarts", 1},
	} {
		t.Columns = append(t.Columns, table.Column{Title: c.title, Priority: c.priority, Right: true})
	}
	for _, s := range shown {
		t.Rows = append(t.Rows, row(s))
	}
	return t
}

// maxProducer is the width of the producer's column.
const maxProducer = 24

// Name is a stream's producer, with its worker if that is another, cut to fit a table.
func Name(s *trace.Stream) string {
	name := s.ID.Producer
	if s.ID.Worker != s.ID.Producer && s.ID.Worker != "" {
		name += "/" + s.ID.Worker
	}
	return table.Cut(name, maxProducer)
}

func row(s *trace.Stream) []string {
	gaps, mark := "-", "*"
	if s.Complete() {
		gaps, mark = "0", ""
		if s.GapRuns > 0 {
			gaps = fmt.Sprintf("%d (%d)", s.Missing, s.GapRuns)
		}
	}
	return []string{
		Name(s), fmt.Sprint(s.ID.Rank), fmt.Sprint(s.Rows), Seconds(s.Seconds()), fmt.Sprintf("%.0f%%", 100*s.BusyShare()),
		Seconds(s.Percentile(0.5)), Seconds(s.Percentile(0.9)), Seconds(s.Percentile(0.99)), Seconds(s.WallMax),
		si(s.Rate(s.Prefill)) + mark, si(s.Rate(s.Decode)) + mark,
		fmt.Sprintf("%s/%d", Digits(s.QueueMean()), s.QueuedMax), gaps, fmt.Sprint(s.Restarts),
	}
}

// gaps lists the first gaps.
func gaps(stats *trace.Stats) (lines []string) {
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
			lines = append(lines, fmt.Sprintf("gap of rank %d of %s before %s:%d: %s missing", s.ID.Rank, s.ID.Producer, g.File, g.Line, counters(g)))
		}
		more += s.GapRuns - uint64(len(s.Gaps))
	}
	if more > 0 {
		lines = append(lines, "and "+words.Count(more, "more gap", "more gaps")+"; fpm trace verify lists "+words.Plural(more, "it", "them"))
	}
	return lines
}

func counters(g trace.Gap) string {
	if g.Missing == 1 {
		return fmt.Sprintf("counter %d is", g.First)
	}
	return fmt.Sprintf("counters %d to %d are", g.First, g.Last)
}

// NotRead returns lines for people about what is not in a result.
func NotRead(torn []trace.Torn, holes, bad uint64) (lines []string) {
	const shown = 5
	for i, t := range torn {
		if i == shown {
			lines = append(lines, "and "+words.Count(holes-shown, "more damaged place", "more damaged places")+"; fpm trace verify lists "+words.Plural(holes-shown, "it", "them"))
			break
		}
		lines = append(lines, t.File+": "+trace.HoleText(&t.Hole))
	}
	if bad > 0 {
		lines = append(lines, words.Count(bad, "line left out that is no valid row", "lines left out that are no valid rows")+"; fpm trace verify says why")
	}
	return lines
}
