package inspect

import (
	"cmp"
	"math"
	"slices"
)

// Skew compares the ranks at one point.
type Skew struct {
	Slowest int     // the rank with the largest wall time, the first such; -1 without any
	Wall    float64 // its wall time (seconds); NaN without any
	Median  float64 // of all ranks' wall times (seconds), the mean of the middle two of an even number; NaN without any
	Ratio   float64 // Wall / Median; NaN with fewer than two ranks or a median that is not above 0
}

// Skew compares the wall times of the ranks at a point; those that are not finite do not
// count.
func (p *Point) Skew() Skew {
	s := Skew{Slowest: -1, Wall: math.NaN(), Median: math.NaN(), Ratio: math.NaN()}
	walls := make([]float64, 0, len(p.Walls))
	for rank, w := range p.Walls {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			continue
		}
		walls = append(walls, w)
		if s.Slowest < 0 || w > s.Wall {
			s.Slowest, s.Wall = rank, w
		}
	}
	if len(walls) == 0 {
		return s
	}
	slices.Sort(walls)
	n := len(walls)
	s.Median = walls[(n-1)/2]/2 + walls[n/2]/2
	if n > 1 && s.Median > 0 {
		s.Ratio = s.Wall / s.Median
	}
	return s
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
