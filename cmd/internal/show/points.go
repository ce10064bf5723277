package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/table"
)

// regimes returns the seed regimes of points by benchmark id: more than one where ranks
// differ.
func (d *Document) regimes(points []*inspect.Point) map[int64][]string {
	of := make(map[int64][]string, len(points))
	for _, p := range points {
		of[p.ID] = nil
	}
	for _, f := range d.Facts {
		for _, r := range f.Results {
			list, wanted := of[r.ID]
			if wanted && r.Regime != "" && len(list) < maxFew && !slices.Contains(list, r.Regime) {
				of[r.ID] = append(list, r.Regime)
			}
		}
	}
	return of
}

func (d *Document) pointsTitle() string {
	f := d.reference()
	if f == nil {
		return "points: none"
	}
	order := map[Order]string{ByWall: "the longest first", BySkew: "the largest skew first"}[d.Sort]
	return fmt.Sprintf("points: %d, %s, wall times of the slowest rank", f.PointsTotal, cmp.Or(order, "in the order of execution"))
}

// sorted returns points in the order in which they are shown.
func (d *Document) sorted(points []inspect.Point) []*inspect.Point {
	list := make([]*inspect.Point, len(points))
	key := make(map[*inspect.Point]float64)
	for i := range points {
		list[i] = &points[i]
		switch d.Sort {
		case ByWall:
			key[list[i]] = points[i].Wall
		case BySkew:
			key[list[i]] = points[i].Skew().Ratio
		}
	}
	if len(key) > 0 {
		slices.SortStableFunc(list, func(a, b *inspect.Point) int { return cmp.Compare(key[b], key[a]) }) // NaN is the least
	}
	return list
}

// maxRankColumns is how many ranks have a column at most; no terminal shows more.
const maxRankColumns = 64

// fewRanks is how many ranks have columns that are worth more than those of the grid.
const fewRanks = 8

// points is the table of points, of the first so many; 0 is all.
func (d *Document) points(limit int) *table.Table {
	t := &table.Table{Noun: "points", Columns: []table.Column{
		{Title: "point", Right: true},
		{Title: "phase"},
		{Title: "batch", Right: true},
		{Title: "prefill", Right: true, Priority: 1},
		{Title: "KV tok", Right: true, Priority: 1},
		{Title: "regime", Priority: 6, Flex: true},
		{Title: "expected", Priority: 5},
		{Title: "observed", Priority: 3},
		{Title: "wall [ms]", Right: true},
		{Title: "slowest", Right: true, Priority: 3},
		{Title: "skew", Right: true, Priority: 2},
		{Title: "min [ms]", Right: true, Priority: 4},
		{Title: "padding", Right: true, Priority: 8},
		{Title: "reasons", Priority: 9, Flex: true},
	}}
	f := d.reference()
	if f == nil {
		return t
	}
	t.Total = f.PointsTotal
	points := d.sorted(f.Points)
	if limit > 0 {
		points = points[:min(limit, len(points))]
	}
	ranks := 0
	for i := range points {
		ranks = max(ranks, len(points[i].Walls))
	}
	columns := min(ranks, maxRankColumns)
	if ranks == 1 {
		columns = 0 // the wall time is that of the one rank
	}
	// Of few ranks the times of each say more than padding and reasons; of many, the slowest
	// and the fastest do.
	priority := 7
	if ranks > fewRanks {
		priority = 10
	}
	for rank := range columns {
		t.Columns = append(t.Columns, table.Column{Title: fmt.Sprintf("rank %d [ms]", rank), Right: true, Priority: priority, Plural: "columns of single ranks"})
	}
	if ranks > maxRankColumns {
		t.More = []string{fmt.Sprintf("rank %d to rank %d [ms]", columns, ranks-1)}
	}
	regimes := d.regimes(points)
	for i := range points {
		t.Rows = append(t.Rows, pointRow(points[i], regimes[points[i].ID], columns))
	}
	return t
}

// pointLines lays the table of points out, with its legend.
func (d *Document) pointLines(l Layout, usual int) []string {
	limit := l.rows(usual)
	return append(l.lines(d.points(limit), limit), d.legend(l.Width)...)
}

func pointRow(p *inspect.Point, regimes []string, ranks int) []string {
	s := p.Skew()
	slowest, skew, fastest := "", "", ""
	if s.Slowest != s.Fastest {
		slowest, skew, fastest = "rank "+strconv.Itoa(s.Slowest), "-", millis(s.Least)
	}
	if !math.IsNaN(s.Ratio) {
		slowest, skew, fastest = "rank "+strconv.Itoa(s.Slowest), ratio(s.Ratio), millis(s.Least)
	}
	observed := ""
	if len(p.Dispatch) > 0 {
		observed = p.Observed()
	}
	if p.Unexpected() {
		observed += " !"
	}
	padding := ""
	if p.Padding >= 0 {
		padding = number(p.Padding)
	}
	row := []string{
		number(p.ID), clip(p.Type), number(p.BatchSize), number(p.PrefillTokens), number(p.KVReadTokens),
		strings.Join(regimes, " or "), expected(p), observed, millis(p.Wall), slowest, skew, fastest, padding, strings.Join(p.Reasons, ", "),
	}
	for rank := range ranks {
		wall := "-"
		if rank < len(p.Walls) {
			wall = millis(p.Walls[rank])
		}
		row = append(row, wall)
	}
	return row
}

// ratio is a wall time over a median.
func ratio(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case v >= 1e6:
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// number is a coordinate; those are never negative.
func number(n int64) string {
	if n < 0 {
		return "-"
	}
	return strconv.FormatInt(n, 10)
}

// expected is the expected graph mode with its capture size.
func expected(p *inspect.Point) string {
	text := clip(p.ExpectedMode)
	if p.CaptureSize >= 0 {
		text += " " + strconv.FormatInt(p.CaptureSize, 10)
	}
	return text
}

// legend explains the marks in the table of points.
func (d *Document) legend(width int) []string {
	f := d.reference()
	if f == nil {
		return nil
	}
	marks := []string{"slowest, min, skew: the rank with the largest wall time, the smallest one, and the largest over the lower median of the ranks' wall times, of two ranks the faster one's; - where the median is not above 0"}
	if slices.ContainsFunc(f.Points, func(p inspect.Point) bool { return strings.Contains(p.Observed(), inspect.NotObserved) }) {
		marks = append(marks, "unavailable: samples whose dispatch was not observed")
	}
	if slices.ContainsFunc(f.Points, func(p inspect.Point) bool { return p.Unexpected() }) {
		marks = append(marks, "!: observed, and not as expected")
	}
	return table.Paragraph("", "("+strings.Join(marks, "; ")+")", width)
}
