package inspect

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSkew(t *testing.T) {
	nan := math.NaN()
	for name, c := range map[string]struct {
		walls []float64
		want  Skew
	}{
		"none":                {nil, Skew{-1, -1, nan, nan, nan, nan}},
		"one rank":            {[]float64{2}, Skew{0, 0, 2, 2, 2, nan}},
		"two":                 {[]float64{1, 3}, Skew{1, 0, 3, 1, 1, 3}},
		"even":                {[]float64{1, 3, 2, 6}, Skew{3, 0, 6, 1, 2, 3}},
		"odd":                 {[]float64{4, 1, 2}, Skew{0, 1, 4, 1, 2, 2}},
		"the first of equals": {[]float64{2, 2}, Skew{0, 0, 2, 2, 2, 1}},
		"what is not finite":  {[]float64{nan, 1, math.Inf(1), 3}, Skew{3, 1, 3, 1, 1, 3}},
		"zero":                {[]float64{0, 0}, Skew{0, 0, 0, 0, 0, nan}},
		"one at zero":         {[]float64{0, 1}, Skew{1, 0, 1, 0, 0, nan}},
		"negative":            {[]float64{-2, -1, -1}, Skew{1, 0, -1, -2, -1, nan}},
		"as large as can be":  {[]float64{math.MaxFloat64, math.MaxFloat64}, Skew{0, 0, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, 1}},
		"beyond all bounds":   {[]float64{1e-300, 1e300}, Skew{1, 0, 1e300, 1e-300, 1e-300, nan}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Point{Walls: c.walls}
			if diff := cmp.Diff(c.want, p.Skew(), cmpopts.EquateNaNs()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRankSkews(t *testing.T) {
	points := make([]Point, 5)
	for i := range points {
		points[i].Walls = []float64{1, 1, 1.5 + float64(i)}
	}
	points[1].Walls = []float64{3, 1, 2}
	points[4].Walls = []float64{math.NaN(), 0, 4} // no skew: the median is 0
	want := []RankSkew{{0, 4, 1, 1}, {1, 4, 0, 1}, {2, 4, 3, 1.5}}
	got := RankSkews(points)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got[0].Slow() || got[1].Slow() || !got[2].Slow() {
		t.Errorf("slow: %v %v %v", got[0].Slow(), got[1].Slow(), got[2].Slow())
	}
	if got := RankSkews(points[4:]); got != nil {
		t.Errorf("of points without a skew: %v", got)
	}
	if few := (RankSkew{Points: 3, Slowest: 3, Median: 9}); few.Slow() {
		t.Error("three points say too little")
	}
}

func TestGrids(t *testing.T) {
	point := func(phase string, batch, prefill, kv int64) Point {
		return Point{Coordinates: Coordinates{Type: phase, BatchSize: batch, PrefillTokens: prefill, KVReadTokens: kv}}
	}
	got := Grids([]Point{
		point("decode", 8, 0, 64), point("other", 1, 1, 1), point("decode", 1, 0, 64),
		point("prefill", 2, 128, 0), point("decode", 8, 0, 4096), point("", 0, 0, 0),
	})
	want := []Grid{
		{"prefill", 1, Range{2, 2, 1}, Range{128, 128, 1}, Range{0, 0, 1}},
		{"decode", 3, Range{1, 8, 2}, Range{0, 0, 1}, Range{64, 4096, 2}},
		{"", 1, Range{0, 0, 1}, Range{0, 0, 1}, Range{0, 0, 1}},
		{"other", 1, Range{1, 1, 1}, Range{1, 1, 1}, Range{1, 1, 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTimeline(t *testing.T) {
	f := &Facts{
		Warmup: []WarmupRecord{
			{Kind: "global", Start: 0, End: 5, CompletedBefore: 0},
			{Kind: "no start", Start: -1, End: 12, CompletedBefore: 1},
			{Kind: "no place but its point", Start: -1, End: -1, CompletedBefore: 2},
			{Kind: "running", Start: 20, End: -1, CompletedBefore: 3},
			{Kind: "no place at all", Start: -1, End: -1, CompletedBefore: -1},
			{Kind: "before a point that is none", Start: -1, End: -1, CompletedBefore: 99},
		},
		Results: []Result{{ID: 4, Forward: 5}, {ID: 2, Forward: 9}, {ID: 3, Forward: -1}, {ID: 1, Forward: 15}, {ID: 5, Forward: 16}},
	}
	events, unplaced := Timeline(f)
	if unplaced != 1 {
		t.Errorf("%d points without a place, want 1", unplaced)
	}
	type row struct {
		Kind        string
		Points      []int64
		First, Last int64
	}
	var got []row
	for _, e := range events {
		r := row{Points: e.Points, First: e.First, Last: e.Last}
		if e.Record != nil {
			r.Kind = e.Record.Kind
			if &f.Warmup[e.Index] != e.Record {
				t.Errorf("record %d is another one", e.Index)
			}
		}
		got = append(got, r)
	}
	want := []row{
		{Kind: "global", First: 0, Last: 5},
		{Points: []int64{4, 2}, First: 5, Last: 9},
		{Kind: "no start", First: -1, Last: 12},
		{Kind: "no place but its point", First: -1, Last: -1},
		{Points: []int64{1, 5}, First: 15, Last: 16},
		{Kind: "running", First: 20, Last: -1},
		{Kind: "no place at all", First: -1, Last: -1},
		{Kind: "before a point that is none", First: -1, Last: -1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
