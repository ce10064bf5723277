package top

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
)

// Column is a column of the table. A view can be sorted by any of them.
type Column string

// The columns.
const (
	ByWorker  Column = "worker"
	ByRank    Column = "rank"
	ByRate    Column = "rate"
	ByWall    Column = "wall"
	ByPrefill Column = "prefill"
	ByDecode  Column = "decode"
	ByKV      Column = "kv"
	ByQueue   Column = "queue"
	ByGaps    Column = "gaps"
	ByRestart Column = "restarts"
	BySilence Column = "silence"
)

// Columns returns every column in the order of the table.
func Columns() []Column {
	return []Column{ByWorker, ByRank, ByRate, ByWall, ByPrefill, ByDecode, ByKV, ByQueue, ByGaps, ByRestart, BySilence}
}

// Metric is what a sparkline shows.
type Metric string

// The metrics of sparklines.
const (
	DecodeMetric  Metric = "decode"
	RateMetric    Metric = "rate"
	WallMetric    Metric = "wall"
	PrefillMetric Metric = "prefill"
	QueueMetric   Metric = "queue"
)

// Metrics returns every metric, the default first.
func Metrics() []Metric {
	return []Metric{DecodeMetric, RateMetric, WallMetric, PrefillMetric, QueueMetric}
}

// of returns the metric of a second.
func (m Metric) of(s *Second) float64 {
	switch m {
	case RateMetric:
		return float64(s.Passes)
	case WallMetric:
		return s.Wall
	case PrefillMetric:
		return s.Prefill
	case QueueMetric:
		return s.Queue
	default:
		return s.Decode
	}
}

// View says how a snapshot is shown.
type View struct {
	Width  int // of the terminal; 0 is as wide as the table is
	Color  bool
	Sort   Column // ByWorker if empty
	Down   bool   // the largest first; names from the end of the alphabet
	Filter string // only lines whose worker, "rank N" or source contains it, whatever the case
	Metric Metric // DecodeMetric if empty
	Empty  string // said while nothing has been received; there is a usual text for terminals
}

// column is how a column looks.
type column struct {
	by    Column
	title string
	width int // least width
	left  bool
	rank  int // the lowest are left out last when there is no room
	cell  func(*Line) string
	value func(*Line) float64 // what is sorted by; nil for the worker
}

func columns() []column {
	return []column{
		{ByWorker, "WORKER", 8, true, 0, func(l *Line) string { return name(l) }, nil},
		{ByRank, "RANK", 4, false, 0, func(l *Line) string { return fmt.Sprint(l.Rank) }, func(l *Line) float64 { return float64(l.Rank) }},
		{ByRate, "RATE/s", 6, false, 1, func(l *Line) string { return mean(l.Rate) }, func(l *Line) float64 { return l.Rate }},
		{ByWall, "WALL", 6, false, 2, func(l *Line) string { return seconds(l.Wall) }, func(l *Line) float64 { return l.Wall }},
		{ByPrefill, "PREF/s", 6, false, 4, func(l *Line) string { return short(l.Prefill) }, func(l *Line) float64 { return l.Prefill }},
		{ByDecode, "DEC/pass", 8, false, 3, func(l *Line) string { return mean(l.Decode) }, func(l *Line) float64 { return l.Decode }},
		{ByKV, "KV", 6, false, 9, func(l *Line) string { return short(l.KV) }, func(l *Line) float64 { return l.KV }},
		{ByQueue, "QUEUE", 5, false, 5, func(l *Line) string { return short(float64(l.Queue)) }, func(l *Line) float64 { return float64(l.Queue) }},
		{ByGaps, "GAPS", 5, false, 6, gaps, func(l *Line) float64 { return float64(l.Gaps) }},
		{ByRestart, "STARTS", 6, false, 10, func(l *Line) string { return short(float64(l.Restarts)) }, func(l *Line) float64 { return float64(l.Restarts) }},
		{BySilence, "SILENT", 6, false, 1, func(l *Line) string { return span(l.Silence) }, func(l *Line) float64 { return float64(l.Silence) }},
	}
}

// name is what a worker without an id is called by.
func name(l *Line) string {
	if l.Worker == "" {
		return report.Escape(l.Source)
	}
	return report.Escape(l.Worker)
}

// gaps of a sampled trace are not judged.
func gaps(l *Line) string {
	if l.Sampled {
		return "-"
	}
	return short(float64(l.Gaps))
}

// short writes a number of 0 or more in five characters at most.
func short(x float64) string {
	switch {
	case !(x >= 0): // not a number; counts never are below
		return "-"
	case x < 99999.5:
		return fmt.Sprintf("%.0f", x)
	}
	for _, unit := range "kMGTPE" {
		if x /= 1000; x < 999.95 {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") + string(unit)
		}
	}
	return "many"
}

// mean writes a mean, of which small ones have a decimal place.
func mean(x float64) string {
	if x > 0 && x < 99.95 {
		return fmt.Sprintf("%.1f", x)
	}
	return short(x)
}

// seconds writes a wall time.
func seconds(s float64) string {
	switch {
	case !(s > 0):
		return "-"
	case s < 0.0009995:
		return fmt.Sprintf("%.0fµs", s*1e6)
	case s < 0.0995:
		return fmt.Sprintf("%.1fms", s*1e3)
	case s < 0.9995:
		return fmt.Sprintf("%.0fms", s*1e3)
	case s < 99.5:
		return fmt.Sprintf("%.1fs", s)
	default:
		return short(math.Round(s)) + "s"
	}
}

// span writes how long something lasts.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 100*time.Second:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%.0fm", d.Minutes())
	default:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
}

// Select returns the lines that the view's filter leaves, in its order.
func (v *View) Select(lines []Line) []*Line {
	var kept []*Line
	for i := range lines {
		if v.matches(&lines[i]) {
			kept = append(kept, &lines[i])
		}
	}
	var value func(*Line) float64
	for _, c := range columns() {
		if c.by == v.Sort {
			value = c.value
		}
	}
	slices.SortStableFunc(kept, func(a, b *Line) int {
		order := a.compare(b)
		if value != nil {
			order = cmp.Compare(value(a), value(b))
		}
		if v.Down {
			order = -order
		}
		return order
	})
	return kept
}

func (v *View) matches(l *Line) bool {
	text := fmt.Sprintf("%s\nrank %d\n%s", l.Worker, l.Rank, l.Source)
	return strings.Contains(strings.ToLower(text), strings.ToLower(v.Filter))
}

// Table returns the table of lines: a line of titles and one for each. Without a width the
// table has all columns; with one it has those that fit, and a sparkline in the rest.
func (v *View) Table(lines []*Line) []string {
	l := v.layout(lines)
	rows := []string{v.titles(l)}
	for _, line := range lines {
		rows = append(rows, v.row(l, line))
	}
	return rows
}

const (
	maxName   = 28 // characters of a worker's id, where there is a width
	fairName  = 16 // to which longer ones are cut before anything is left out
	minSparks = 10
	extra     = 7 // columns of this rank and above are left out before the sparkline is
)

// layout says where things are in a line.
type layout struct {
	cols   []column
	gutter int // between columns
	sparks int // width of the sparkline; 0 is none
}

// layout chooses the columns, the space between them, and the width of the sparkline. When
// there is little room the space goes first, then what names have beyond the usual, then
// the columns that few need, the sparkline, and the other columns.
func (v *View) layout(lines []*Line) layout {
	cols := columns()
	for _, l := range lines {
		cols[0].width = max(cols[0].width, ansi.StringWidth(name(l)))
	}
	if v.Width == 0 {
		return layout{cols: cols, gutter: 2}
	}
	widest := cols[0].width
	for len(cols) > 1 {
		last := slices.MaxFunc(cols, func(a, b column) int { return cmp.Compare(a.rank, b.rank) })
		for _, sparks := range []int{minSparks, 0} {
			if sparks == 0 && last.rank >= extra {
				continue
			}
			for _, try := range []struct{ gutter, name int }{{2, maxName}, {1, maxName}, {1, fairName}} {
				cols[0].width = min(widest, try.name)
				if l := (layout{cols, try.gutter, sparks}); l.fits(v.Width) {
					return l
				}
			}
		}
		cols = slices.DeleteFunc(cols, func(c column) bool { return c.by == last.by })
	}
	cols[0].width = min(widest, v.Width)
	return layout{cols: cols, gutter: 1}
}

// fits tells whether a line is within the width. The sparkline takes what is left.
func (l *layout) fits(width int) bool {
	left := width - l.gutter*(len(l.cols)-1)
	for _, c := range l.cols {
		left -= c.width
	}
	if l.sparks > 0 {
		left -= l.gutter + l.sparks
		l.sparks = min(Minute, l.sparks+left)
	}
	return left >= 0
}

// cell is a text in its place.
type cell struct {
	text  string
	look  style
	width int
	left  bool
}

// line puts cells into a line. Colour changes nothing but the colour.
func (v *View) line(gutter int, cells []cell) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", gutter))
		}
		text := pad(c.text, c.width, c.left)
		if i == len(cells)-1 {
			text = strings.TrimRight(text, " ")
		}
		b.WriteString(v.paint(c.look, text))
	}
	return b.String()
}

func (v *View) titles(l layout) string {
	var cells []cell
	for _, c := range l.cols {
		look := faint
		if c.by == cmp.Or(v.Sort, ByWorker) {
			look = bold
		}
		cells = append(cells, cell{c.title, look, c.width, c.left})
	}
	if l.sparks > 0 {
		title := strings.ToUpper(string(cmp.Or(v.Metric, DecodeMetric)))
		if long := title + ", LAST MINUTE"; len(long) <= l.sparks {
			title = long
		} else if long := title + " 60s"; len(long) <= l.sparks {
			title = long
		}
		cells = append(cells, cell{title, faint, l.sparks, true})
	}
	return v.line(l.gutter, cells)
}

func (v *View) row(l layout, line *Line) string {
	var cells []cell
	for _, c := range l.cols {
		cells = append(cells, cell{c.cell(line), v.look(c.by, line), c.width, c.left})
	}
	if l.sparks > 0 {
		cells = append(cells, cell{sparkline(&line.Seconds, cmp.Or(v.Metric, DecodeMetric), l.sparks), cyan, l.sparks, true})
	}
	return v.line(l.gutter, cells)
}

// look returns the style of a cell: what asks for attention stands out.
func (v *View) look(c Column, l *Line) style {
	switch {
	case c == BySilence && l.Silence > Quiet && !l.Sampled:
		return red
	case c == ByGaps && l.Gaps > 0, c == ByRestart && l.Restarts > 0:
		return yellow
	default:
		return plain
	}
}

// pad cuts or fills a text to a width. What is cut ends in an ellipsis.
func pad(text string, width int, left bool) string {
	text = ansi.Truncate(text, width, "…")
	fill := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if left {
		return text + fill
	}
	return fill + text
}

// sparkline draws the last minute in so many characters, scaled to its largest value. A
// second without a message is blank; one with nothing but heartbeats is the lowest line.
func sparkline(seconds *[Minute]Second, m Metric, width int) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	points := make([]float64, width) // -1 is blank
	top := 0.0
	for i := range points {
		points[i] = point(seconds[i*Minute/width:(i+1)*Minute/width], m)
		top = max(top, points[i])
	}
	text := make([]rune, width)
	for i, p := range points {
		switch {
		case p < 0:
			text[i] = ' '
		case top == 0:
			text[i] = levels[0]
		default:
			text[i] = levels[int(p/top*float64(len(levels)-1)+0.5)]
		}
	}
	return string(text)
}

// point returns the mean of the seconds that had messages, -1 when none had any.
func point(seconds []Second, m Metric) float64 {
	sum, n := 0.0, 0
	for i := range seconds {
		if s := &seconds[i]; s.Passes+s.Heartbeats > 0 {
			sum += m.of(s)
			n++
		}
	}
	if n == 0 {
		return -1
	}
	return sum / float64(n)
}

// Headline says in a line what the whole board shows.
func (v *View) Headline(snap *Snapshot) string {
	var rate float64
	var gaps uint64
	quiet, workers := 0, map[string]bool{}
	for i := range snap.Lines {
		l := &snap.Lines[i]
		rate += l.Rate
		gaps += l.Gaps
		workers[name(l)] = true
		if l.Silence > Quiet && !l.Sampled {
			quiet++
		}
	}
	parts := []string{words.Count(len(workers), "worker", "workers"), words.Count(len(snap.Lines), "rank", "ranks"), mean(rate) + " passes/s"}
	if quiet > 0 {
		parts = append(parts, v.paint(red, fmt.Sprintf("%d silent", quiet)))
	}
	if gaps > 0 {
		parts = append(parts, v.paint(yellow, short(float64(gaps))+" missing"))
	}
	var refused uint64
	up := 0
	for _, e := range snap.Endpoints {
		refused += e.Refused
		if e.State == Connected {
			up++
		}
	}
	if len(snap.Endpoints) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s connected", up, words.Count(len(snap.Endpoints), "endpoint", "endpoints")))
	}
	if refused > 0 {
		parts = append(parts, v.paint(yellow, short(float64(refused))+" refused"))
	}
	if snap.Forgotten > 0 {
		parts = append(parts, fmt.Sprintf("%d forgotten", snap.Forgotten))
	}
	return strings.Join(parts, ", ")
}

// Troubles returns a line for every endpoint that delivers nothing or had messages
// refused.
func (v *View) Troubles(snap *Snapshot) (lines []string) {
	for _, e := range snap.Endpoints {
		if e.State == Connected && e.Refused == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s", report.Escape(e.Address), e.State)
		if e.Detail != "" {
			text += ": " + report.Escape(e.Detail)
		}
		if e.Refused > 0 {
			text += fmt.Sprintf(", %d refused: %s", e.Refused, report.Escape(e.Refusal))
		}
		lines = append(lines, v.paint(yellow, v.cut(text)))
	}
	return lines
}

// cut shortens a text to the width.
func (v *View) cut(text string) string {
	if v.Width == 0 {
		return text
	}
	return ansi.Truncate(text, v.Width, "…")
}

// Plain returns a snapshot as it is printed where there is no terminal: a line of time
// and sums, the table, what is wrong with endpoints.
func (v *View) Plain(snap *Snapshot) string {
	lines := []string{snap.At.Format("15:04:05") + "  " + v.Headline(snap)}
	if kept := v.Select(snap.Lines); len(kept) > 0 {
		lines = append(lines, v.Table(kept)...)
	} else if v.Empty != "" && len(snap.Lines) == 0 {
		lines = append(lines, v.Empty)
	}
	return strings.Join(append(lines, v.Troubles(snap)...), "\n") + "\n"
}

// style is a way to set text off.
type style string

const (
	plain  style = ""
	bold   style = "\x1b[1m"
	faint  style = "\x1b[2m"
	red    style = "\x1b[1;31m"
	yellow style = "\x1b[33m"
	cyan   style = "\x1b[36m"
)

func (v *View) paint(s style, text string) string {
	if !v.Color || s == plain || text == "" {
		return text
	}
	return string(s) + text + "\x1b[0m"
}
