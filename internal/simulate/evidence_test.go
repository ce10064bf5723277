package simulate_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/internal/simulate"
)

// The parts of an artifact that the rules on evidence are about.
type (
	artifact struct {
		Timing struct {
			Measured float64 `json:"measured_iteration_seconds"`
			Elapsed  float64 `json:"benchmark_elapsed_seconds"`
		}
		WarmupEvidence  struct{ Records []warmup } `json:"warmup_evidence"`
		Results         []result
		IterationGroups json.RawMessage `json:"iteration_groups"`
	}
	warmup struct {
		Kind   string
		Start  int `json:"forward_index_start"`
		End    int `json:"forward_index_end"`
		Before int `json:"completed_points_before"`
		Count  int `json:"observed_forward_count"`
	}
	point struct {
		PointType   string `json:"point_type"`
		BenchmarkID int    `json:"benchmark_id"`
		Tokens      int    `json:"total_prefill_tokens"`
		KV          int    `json:"total_kv_read_tokens"`
		Batch       int    `json:"batch_size"`
		Capture     *int   `json:"expected_capture_size"`
		Padding     *int   `json:"padding_tokens"`
	}
	result struct {
		Point  point
		Regime string `json:"kv_seed_regime"`
		FPMs   []fpm
	}
	fpm struct {
		Rank        int                `json:"dp_rank"`
		Counter     int                `json:"counter_id"`
		Worker      string             `json:"worker_id"`
		Wall        float64            `json:"wall_time"`
		Scheduled   map[string]float64 `json:"scheduled_requests"`
		Measurement *measurement       `json:"benchmark_measurement"`
		Sample      *sample            `json:"benchmark_sample"`
	}
	measurement struct {
		PointKey string `json:"point_key"`
		Prompts  struct {
			SHA256   string
			Requests json.RawMessage
		}
		Preparation struct {
			Completed int    `json:"completed_points_before"`
			Regime    string `json:"kv_seed_regime"`
			Warmups   int    `json:"warmup_records_before"`
		}
		Expected int   `json:"expected_internal_samples"`
		Raws     []fpm `json:"raw_fpms"`
		Estimate struct {
			Method  string
			Indices []int `json:"raw_sample_indices"`
		}
	}
	sample struct {
		Index   int `json:"sample_index"`
		Forward int `json:"forward_index"`
		Timing  struct {
			Start float64 `json:"start_monotonic"`
			End   float64 `json:"end_monotonic"`
		}
	}
)

func decode(t *testing.T, text string) artifact {
	t.Helper()
	var a artifact
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestGroupsAreTheSameText(t *testing.T) {
	for _, opt := range shapes() {
		var first string
		for rank, text := range makeRun(t, opt) {
			groups := string(decode(t, text).IterationGroups)
			if rank == 0 {
				first = groups
			} else if groups != first {
				t.Errorf("%+v: the groups of rank %d have other bytes", opt, rank)
			}
		}
	}
}

// A rank's own results repeat its part of the groups.
func TestResultsAreInTheGroups(t *testing.T) {
	for _, opt := range shapes() {
		for rank, text := range makeRun(t, opt) {
			doc := parse(t, text)
			groups, results := doc.Get("iteration_groups").Elems, doc.Get("results").Elems
			if len(groups) != opt.Points || len(results) != opt.Points {
				t.Fatalf("%d groups and %d results for %d points", len(groups), len(results), opt.Points)
			}
			for i := range groups {
				in := groups[i].Get("rank_results").Elems[rank].Get("fpms")
				if !jsonvalue.Equal(in, results[i].Get("fpms")) {
					t.Errorf("%+v: rank %d, position %d: the metrics differ", opt, rank, i)
				}
			}
		}
	}
}

func TestMeasuredSecondsAreTheSum(t *testing.T) {
	for _, opt := range shapes() {
		for _, text := range makeRun(t, opt) {
			a := decode(t, text)
			var groups []struct {
				Wall    float64                `json:"wall_time"`
				Results []struct{ FPMs []fpm } `json:"rank_results"`
			}
			if err := json.Unmarshal(a.IterationGroups, &groups); err != nil {
				t.Fatal(err)
			}
			var sum pyjson.Summer
			for _, g := range groups {
				longest := 0.0
				for _, r := range g.Results {
					longest = max(longest, r.FPMs[0].Wall)
				}
				if g.Wall != longest {
					t.Errorf("wall time %v, the longest is %v", g.Wall, longest)
				}
				sum.Add(g.Wall)
			}
			if a.Timing.Measured != sum.Sum() || a.Timing.Elapsed < sum.Sum() {
				t.Errorf("timing %+v, the sum is %v", a.Timing, sum.Sum())
			}
		}
	}
}

func TestScheduleIsThePoint(t *testing.T) {
	for _, opt := range shapes() {
		for _, r := range decode(t, makeRun(t, opt)[0]).Results {
			s := r.FPMs[0].Scheduled
			got := []float64{s["num_prefill_requests"] + s["num_decode_requests"], s["sum_prefill_tokens"], s["sum_prefill_kv_tokens"] + s["sum_decode_kv_tokens"]}
			want := []float64{float64(r.Point.Batch), float64(r.Point.Tokens), float64(r.Point.KV)}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: point %+v has the schedule %v", opt, r.Point, s)
			}
		}
	}
}

// evidenceRuns are the shapes with evidence, and one large enough for eager warmups.
func evidenceRuns() []simulate.Options {
	runs := slices.DeleteFunc(shapes(), func(o simulate.Options) bool { return o.Legacy })
	return append(runs, simulate.Options{Ranks: 2, Points: 300, Raw: 2, Seed: 11, Shuffle: true})
}

func TestMeasurements(t *testing.T) {
	for _, opt := range evidenceRuns() {
		for rank, text := range makeRun(t, opt) {
			keys := map[string]bool{}
			forward := -1
			a := decode(t, text)
			for i, r := range a.Results {
				m := r.FPMs[0].Measurement
				checkIdentity(t, i, &r)
				checkReduction(t, &r.FPMs[0])
				forward = checkSamples(t, &r, forward)
				if keys[m.PointKey] {
					t.Errorf("%+v: the point %+v comes twice", opt, r.Point)
				}
				keys[m.PointKey] = true
				if want := warmupsBefore(a.WarmupEvidence.Records, i); m.Preparation.Warmups != want || r.FPMs[0].Rank != rank {
					t.Errorf("%+v: rank %d, position %d: %d warmups, want %d", opt, rank, i, m.Preparation.Warmups, want)
				}
			}
		}
	}
}

func checkIdentity(t *testing.T, position int, r *result) {
	t.Helper()
	m := r.FPMs[0].Measurement
	p := r.Point
	key := pyjson.Object{ // keys in their sorted order
		{Key: "batch_size", Value: p.Batch}, {Key: "partition", Value: nil}, {Key: "point_type", Value: p.PointType},
		{Key: "rows", Value: nil}, {Key: "total_kv_read_tokens", Value: p.KV}, {Key: "total_prefill_tokens", Value: p.Tokens},
	}
	if want := sum(pyjson.AppendCompact(nil, key)); m.PointKey != want {
		t.Errorf("position %d: point key %s, want %s", position, m.PointKey, want)
	}
	if want := sum(pyjson.AppendCanonical(nil, parse(t, string(m.Prompts.Requests)))); m.Prompts.SHA256 != want {
		t.Errorf("position %d: prompts %s, want %s", position, m.Prompts.SHA256, want)
	}
	if m.Preparation.Completed != position || m.Preparation.Regime != r.Regime {
		t.Errorf("position %d: preparation %+v", position, m.Preparation)
	}
	if (p.Capture == nil) != (p.Padding == nil) {
		t.Errorf("position %d: capture size and padding of %+v", position, p)
	}
}

func sum(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

func checkReduction(t *testing.T, f *fpm) {
	t.Helper()
	m := f.Measurement
	method, first := "adjacent_upper_median", 1
	switch len(m.Raws) {
	case 1:
		method, first = "single_step", 0
	case 2:
		method = "last_step"
	}
	var indices []int
	var walls []float64
	for i := first; i < len(m.Raws); i++ {
		indices = append(indices, i)
		walls = append(walls, m.Raws[i].Wall)
	}
	slices.Sort(walls)
	if m.Estimate.Method != method || !slices.Equal(m.Estimate.Indices, indices) || m.Expected != len(m.Raws) {
		t.Errorf("estimate %+v of %d of %d samples", m.Estimate, len(m.Raws), m.Expected)
	}
	if f.Wall != walls[len(walls)/2] || walls[0] <= 0 {
		t.Errorf("wall time %v, estimated from %v", f.Wall, walls)
	}
}

// checkSamples checks the raw samples after the one with a forward index, and returns
// the last one's.
func checkSamples(t *testing.T, r *result, forward int) int {
	t.Helper()
	kept := r.FPMs[0]
	for i, raw := range kept.Measurement.Raws {
		s := raw.Sample
		if raw.Rank != kept.Rank || raw.Counter != r.Point.BenchmarkID || raw.Worker != kept.Worker || s.Index != i {
			t.Errorf("point %d, sample %d: %+v", r.Point.BenchmarkID, i, raw)
		}
		if s.Forward <= forward {
			t.Errorf("point %d, sample %d: forward index %d after %d", r.Point.BenchmarkID, i, s.Forward, forward)
		}
		if off := math.Abs(s.Timing.End - s.Timing.Start - raw.Wall); off > 1e-9 {
			t.Errorf("point %d, sample %d: times are off by %v", r.Point.BenchmarkID, i, off)
		}
		forward = s.Forward
	}
	return forward
}

func warmupsBefore(records []warmup, position int) int {
	n := 0
	for _, w := range records {
		if w.Before <= position {
			n++
		}
	}
	return n
}

// Warmups and samples share the counter of forward passes and never overlap.
func TestWarmups(t *testing.T) {
	eager := 0
	for _, opt := range evidenceRuns() {
		for _, text := range makeRun(t, opt) {
			a := decode(t, text)
			var passes []int
			for i, w := range a.WarmupEvidence.Records {
				if (w.Kind == "global") != (i == 0) || w.End-w.Start != w.Count || w.Count < 1 {
					t.Errorf("%+v: record %d is %+v", opt, i, w)
				}
				eager += min(i, 1)
				for f := w.Start; f < w.End; f++ {
					passes = append(passes, f)
				}
				if next := a.Results[w.Before].FPMs[0].Measurement.Raws[0].Sample.Forward; w.End > next {
					t.Errorf("%+v: record %d ends at %d, behind the sample at %d", opt, i, w.End, next)
				}
			}
			for _, r := range a.Results {
				for _, raw := range r.FPMs[0].Measurement.Raws {
					passes = append(passes, raw.Sample.Forward)
				}
			}
			slices.Sort(passes)
			for i, f := range passes {
				if f != i {
					t.Fatalf("%+v: forward pass %d is missing or comes twice", opt, i)
				}
			}
		}
	}
	if eager == 0 {
		t.Error("no run has an eager warmup")
	}
}

func TestShuffleKeepsTheIDs(t *testing.T) {
	a := decode(t, makeRun(t, simulate.Options{Ranks: 1, Points: 30, Raw: 1, Shuffle: true})[0])
	var ids []int
	for _, r := range a.Results {
		ids = append(ids, r.Point.BenchmarkID)
	}
	if slices.IsSorted(ids) {
		t.Error("the order is that of the ids")
	}
	slices.Sort(ids)
	for i, id := range ids {
		if id != i+1 {
			t.Fatalf("ids %v are not 1 to 30", ids)
		}
	}
}

func TestLegacyHasNoEvidence(t *testing.T) {
	for _, text := range makeRun(t, simulate.Options{Ranks: 2, Points: 5, Raw: 4, Legacy: true}) {
		for _, key := range []string{"measurement_protocol", "warmup_evidence", "benchmark_measurement", "benchmark_sample"} {
			if strings.Contains(text, key) {
				t.Errorf("a legacy run mentions %s", key)
			}
		}
		if !strings.Contains(text, `"engine": {`) {
			t.Error("a legacy run has no engine block")
		}
	}
}
