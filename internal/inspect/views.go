package inspect

import (
	"cmp"
	"math"
	"slices"
)

// Skew compares the ranks at one point. The median is the lower one: of two ranks it is the
// faster. The mean of the middle two would hide a straggler of two ranks, as a value over
// the mean of itself and another one is never above 2.
type Skew struct {
	Slowest int     // the rank with the largest wall time, the first such; -1 without any
	Fastest int     // the rank with the smallest wall time, the first such; -1 without any
	Wall    float64 // the slowest rank's wall time (seconds); NaN without any
	Least   float64 // the fastest rank's wall time (seconds); NaN without any
	Median  float64 // the lower median of all ranks' wall times (seconds); NaN without any
	Ratio   float64 // Wall / Median; NaN with fewer than two ranks or a median that is not above 0
}

// Skew compares the wall times of the ranks at a point; those that are not finite do not
// count.
func (p *Point) Skew() Skew { return skew(p.Walls, nil) }

// skew compares wall times by rank. The buffer is used for sorting, when it is large enough.
func skew(times, buffer []float64) Skew {
	nan := math.NaN()
	s := Skew{Slowest: -1, Fastest: -1, Wall: nan, Least: nan, Median: nan, Ratio: nan}
	walls := slices.Grow(buffer[:0], len(times))
	for rank, w := range times {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			continue
		}
		walls = append(walls, w)
		if s.Slowest < 0 || w > s.Wall {
			s.Slowest, s.Wall = rank, w
		}
		if s.Fastest < 0 || w < s.Least {
			s.Fastest, s.Least = rank, w
		}
	}
	if len(walls) == 0 {
		return s
	}
	slices.Sort(walls)
	s.Median = walls[(len(walls)-1)/2]
	s.Ratio = s.over(s.Wall, len(walls))
	return s
}

// over returns a wall time over the median of so many ranks; NaN where that says nothing.
func (s Skew) over(wall float64, ranks int) float64 {
	if ratio := wall / s.Median; ranks > 1 && s.Median > 0 && !math.IsInf(ratio, 0) {
		return ratio
	}
	return math.NaN()
}

// RankSkew is how a rank compares with the others over all points.
type RankSkew struct {
	Rank    int
	Points  int     // at which the rank has a skew
	Slowest int     // of them, those at which it is the slowest, the first of equals
	Median  float64 // lower median of its wall time over the point's median; NaN without points
}

// RankSkews compares the ranks over all points, by rank: those that have a skew anywhere.
func RankSkews(points []Point) (list []RankSkew) {
	skews := make([]Skew, len(points))
	var buffer []float64
	ranks := 0
	for i := range points {
		buffer = slices.Grow(buffer[:0], len(points[i].Walls))
		skews[i] = skew(points[i].Walls, buffer)
		ranks = max(ranks, len(points[i].Walls))
	}
	var ratios []float64
	for rank := range ranks {
		r := RankSkew{Rank: rank}
		ratios = ratios[:0]
		for i := range points {
			if math.IsNaN(skews[i].Ratio) || rank >= len(points[i].Walls) {
				continue
			}
			ratio := skews[i].over(points[i].Walls[rank], 2)
			if math.IsNaN(ratio) {
				continue
			}
			ratios = append(ratios, ratio)
			if skews[i].Slowest == rank {
				r.Slowest++
			}
		}
		if r.Points = len(ratios); r.Points > 0 {
			slices.Sort(ratios)
			r.Median = ratios[(len(ratios)-1)/2]
			list = append(list, r)
		}
	}
	return list
}

// Slow tells whether a rank is the slowest at three of four points or more, of at least
// four, and takes at least a tenth more than the median rank at half of them.
func (r RankSkew) Slow() bool {
	return r.Points >= 4 && 4*r.Slowest >= 3*r.Points && r.Median >= 1.1
}

// Range is what values a coordinate takes.
type Range struct {
	Min      int64 `json:"min"`
	Max      int64 `json:"max"`
	Distinct int   `json:"distinct"`
}

// Grid describes the points of one phase.
type Grid struct {
	Phase         string `json:"phase"`
	Points        int    `json:"points"`
	BatchSize     Range  `json:"batch_size"`
	PrefillTokens Range  `json:"total_prefill_tokens"`
	KVReadTokens  Range  `json:"total_kv_read_tokens"`
}

// Grids returns the axes of the measured grid by phase: prefill, decode, then whatever
// else the artifact names.
func Grids(points []Point) (list []Grid) {
	byPhase := map[string][]*Point{}
	phases := []string{phasePrefill, phaseDecode}
	for i := range points {
		p := &points[i]
		if !slices.Contains(phases, p.Type) && len(phases) < 16 {
			phases = append(phases, p.Type)
		}
		byPhase[p.Type] = append(byPhase[p.Type], p)
	}
	slices.Sort(phases[2:])
	for _, phase := range phases {
		if ps := byPhase[phase]; len(ps) > 0 {
			list = append(list, Grid{
				Phase: phase, Points: len(ps),
				BatchSize:     rangeOf(ps, func(p *Point) int64 { return p.BatchSize }),
				PrefillTokens: rangeOf(ps, func(p *Point) int64 { return p.PrefillTokens }),
				KVReadTokens:  rangeOf(ps, func(p *Point) int64 { return p.KVReadTokens }),
			})
		}
	}
	return list
}

func rangeOf(points []*Point, of func(*Point) int64) Range {
	values := make([]int64, len(points))
	for i, p := range points {
		values[i] = of(p)
	}
	slices.Sort(values)
	distinct := slices.Compact(values)
	return Range{Min: distinct[0], Max: distinct[len(distinct)-1], Distinct: len(distinct)}
}

// Event is a part of a rank's timeline: a warmup record, or measured points in a row.
type Event struct {
	Record *WarmupRecord // nil for points
	Index  int           // of the record in the ledger
	Points []int64       // benchmark ids, in the order of the timeline
	// First and Last are forward indices of the rank's process: of a record where it
	// starts and ends (exclusive), of points the first one of the first and of the last
	// point. -1 is unknown.
	First, Last int64
}

// Timeline orders the warmup records of an artifact and its own results by forward index.
// Unplaced counts the points without one. A record that does not tell where it started
// stands where it ended, or before the point that it says it preceded.
func Timeline(f *Facts) (events []Event, unplaced int) {
	type item struct {
		at    int64
		event Event
	}
	var items []item
	for i := range f.Warmup {
		r := &f.Warmup[i]
		items = append(items, item{f.placeOf(r), Event{Record: r, Index: i, First: r.Start, Last: r.End}})
	}
	for _, r := range f.Results {
		if r.Forward < 0 {
			unplaced++
			continue
		}
		items = append(items, item{r.Forward, Event{Points: []int64{r.ID}, First: r.Forward, Last: r.Forward}})
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	for _, it := range items {
		if n := len(events); n > 0 && it.event.Record == nil && events[n-1].Record == nil {
			events[n-1].Points = append(events[n-1].Points, it.event.Points...)
			events[n-1].Last = it.event.Last
			continue
		}
		events = append(events, it.event)
	}
	return events, unplaced
}

// placeOf is the forward index at which a record stands in the timeline.
func (f *Facts) placeOf(r *WarmupRecord) int64 {
	switch {
	case r.Start >= 0:
		return r.Start
	case r.End >= 0:
		return r.End
	case r.CompletedBefore >= 0:
		for i := r.CompletedBefore; i < int64(len(f.Results)); i++ {
			if f.Results[i].Forward >= 0 {
				return f.Results[i].Forward
			}
		}
	}
	return math.MaxInt64
}
