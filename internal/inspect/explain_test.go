package inspect

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// sound returns the facts of a sound artifact of two ranks with a prefill and a decode
// point.
func sound(rank int) *Facts {
	f := newFacts("results.json")
	if rank > 0 {
		f.File = fmt.Sprintf("results_dp%d.json", rank)
	}
	f.Rank, f.Size, f.RunID, f.GridDigest = rank, 2, "run", "grid"
	f.Status, f.Valid, f.Usable, f.TimingValid = "complete", yes(), yes(), yes()
	f.Expected, f.Completed, f.SkippedCount = 2, 2, 0
	f.Points = []Point{
		{Coordinates: Coordinates{ID: 1, Type: "prefill", BatchSize: 1, PrefillTokens: 128, ExpectedMode: "NONE"}, Wall: 2, Walls: []float64{1, 2}, Dispatch: []Dispatch{{"NONE", 2}}},
		{Coordinates: Coordinates{ID: 2, Type: "decode", BatchSize: 8, KVReadTokens: 4096, ExpectedMode: "FULL"}, Position: 1, Wall: 4, Walls: []float64{4, 3}, Dispatch: []Dispatch{{"FULL", 7}, {"unavailable", 1}}},
	}
	f.PointsTotal = 2
	f.Results = []Result{
		{ID: 1, Type: "prefill", Regime: "not_applicable", Wall: 1, Forward: 5},
		{ID: 2, Type: "decode", Regime: "real_kv", Wall: 4, Forward: 9},
	}
	return f
}

func block(t *testing.T, text string) *jsonvalue.Value {
	t.Helper()
	v, err := jsonvalue.Parse([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// usual are the kinds that every run has.
var usual = []string{KindRegimes, KindDispatch, KindPlanner}

func TestSoundRunNeedsNoAttention(t *testing.T) {
	var kinds []string
	for _, e := range Explain([]*Facts{sound(1), sound(0)}) {
		kinds = append(kinds, e.Kind)
		if e.Severity != Note {
			t.Errorf("%s asks for attention: %q", e.Kind, e.Text)
		}
	}
	if diff := cmp.Diff(usual, kinds); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplain(t *testing.T) {
	list, err := json.Marshal(NotConcluded())
	if err != nil {
		t.Fatal(err)
	}
	statements := string(list)
	for _, c := range []struct {
		name     string
		kind     string
		severity Severity
		edit     func(t *testing.T, a, b *Facts)
		want     string // lines of text
		data     string // JSON
	}{
		{
			"two runs", KindRuns, Attention,
			func(_ *testing.T, _, b *Facts) { b.RunID = "other" },
			`The artifacts are of 2 runs: rank 0 of run run; rank 1 of run other.
What is said below takes them for one.`,
			`{"runs":[{"run_id":"run","ranks":[0]},{"run_id":"other","ranks":[1]}]}`,
		},
		{
			"failed", KindFailed, Attention,
			func(_ *testing.T, a, _ *Facts) { a.Status, a.Error = "failed", "CUDA out of memory" },
			`rank 0: The benchmark failed: CUDA out of memory.`,
			`{"said":[{"ranks":[0],"reason":"The benchmark failed: CUDA out of memory."}]}`,
		},
		{
			"failed without a word", KindFailed, Attention,
			func(_ *testing.T, a, b *Facts) { a.Status, b.Status = "failed", "failed" },
			`The benchmark failed and does not say why.`, ``,
		},
		{
			"partial", KindPartial, Attention,
			func(_ *testing.T, a, b *Facts) {
				for _, f := range []*Facts{a, b} {
					f.Status, f.StopReason, f.Valid, f.Expected = "partial", "timeout", no(), 9
				}
			},
			`The benchmark ended early (timeout): 2 of 9 points were measured. Those are a beginning of the grid, not a sample of it.`, ``,
		},
		{
			"complete, not valid", KindNotValid, Attention,
			func(_ *testing.T, a, b *Facts) {
				for _, f := range []*Facts{a, b} {
					f.Valid, f.Usable, f.TimingValid, f.Expected, f.Missing, f.Error = no(), no(), no(), 3, []string{"decode"}, "boom"
					f.SkippedCount, f.PointsTotal, f.Points = 1, 1, f.Points[:1]
				}
			},
			`The status is complete, which only means that the benchmark came to its end; the artifact says that it is not valid: ` +
				`2 of 3 points were measured; 1 point was skipped; of decode there is no point at all; the measured groups are 1, the completed points 2; ` +
				`it carries an error: boom; its timing is not valid: the clock of the run is missing, or the iterations took longer than the whole; it calls itself not usable.`, ``,
		},
		{
			"complete, silent about valid", KindNotValid, Attention,
			func(_ *testing.T, a, _ *Facts) { a.Valid = nil },
			`rank 0: The status is complete, which only means that the benchmark came to its end; the artifact does not say that it is valid: the artifact does not show why.`, ``,
		},
		{
			"skipped", KindSkipped, Attention,
			func(_ *testing.T, a, b *Facts) {
				for _, f := range []*Facts{a, b} {
					f.Expected, f.SkippedCount, f.SkippedTotal = 9, 8, 8
					for id := range int64(6) {
						f.Skipped = append(f.Skipped, Skipped{Coordinates: Coordinates{ID: id + 3, Type: "decode", BatchSize: 4, KVReadTokens: 64}, Reason: "measured_kv_read_mismatch"})
					}
					f.Skipped = append(f.Skipped, Skipped{Coordinates: Coordinates{ID: 9, Type: "prefill", BatchSize: 1, PrefillTokens: 7}, Reason: ""})
				}
			},
			`8 of 9 points were skipped: 6 measured_kv_read_mismatch (point 3 (decode, batch 4, KV 64), point 4 (decode, batch 4, KV 64), point 5 (decode, batch 4, KV 64), point 6 (decode, batch 4, KV 64), point 7 (decode, batch 4, KV 64), and 1 more); ` +
				`1 without a reason (point 9 (prefill, batch 1, prefill 7, KV 0)); 1 more were not looked at.
One skipped point makes the artifact neither valid nor usable: mend its reason, or take the point out of the grid, and run again.`,
			`{"skipped":[{"rank":0,"total":8,"reasons":[{"reason":"measured_kv_read_mismatch","points":6,"benchmark_ids":[3,4,5,6,7,8]},{"reason":"","points":1,"benchmark_ids":[9]}]},` +
				`{"rank":1,"total":8,"reasons":[{"reason":"measured_kv_read_mismatch","points":6,"benchmark_ids":[3,4,5,6,7,8]},{"reason":"","points":1,"benchmark_ids":[9]}]}]}`,
		},
		{
			"skipped, not listed", KindSkipped, Attention,
			func(_ *testing.T, a, _ *Facts) { a.SkippedCount = 1 },
			`rank 0: 1 of 2 points were skipped; the artifact does not name them.
One skipped point makes the artifact neither valid nor usable: mend its reason, or take the point out of the grid, and run again.`, `{"skipped":[]}`,
		},
		{
			"missing ranks", KindMissing, Attention,
			func(_ *testing.T, a, b *Facts) { a.Size, b.Size, b.Rank, b.File = 5, 5, 3, "results_dp3.json" },
			`Ranks 1-2,4 of 5 have no artifact among those given.
Look for the others where their node wrote them, or merge what is here as the ranks of one node: fpm merge --ranks 0,3 results.json`,
			`{"size":5,"missing":[1,2,4],"present":[0,3],"command":"fpm merge --ranks 0,3 results.json"}`,
		},
		{
			"missing ranks of files with other names", KindMissing, Attention,
			func(_ *testing.T, a, b *Facts) { a.Size, a.File, b.File = 3, "my run/a'b.json", "-b.json" },
			`Rank 2 of 3 has no artifact among those given.
Look for the others where their node wrote them, or merge what is here as the ranks of one node: fpm merge --ranks 0-1 'my run/a'\''b.json' './-b.json'`, ``,
		},
		{
			"no real KV", KindNoRealKV, Attention,
			func(t *testing.T, a, b *Facts) {
				for _, f := range []*Facts{a, b} {
					f.Blocks["kvwarm"] = block(t, `{"enabled": true, "warm_eligible": true, "skip_reason": null}`)
				}
				a.Results[1].Regime = "fake_fallback"
			},
			`rank 0: KV warmup was enabled and the run eligible for it, but no decode point ran on real KV content (of 1).
With a mixture-of-experts model made-up content biases which experts are used; look at kvwarm.stages and kvwarm.skip_reason.`,
			`{"ranks":[{"rank":0,"decode_points":1}]}`,
		},
		{
			"no real KV that is known of", KindNoRealKV, Attention,
			func(t *testing.T, a, b *Facts) {
				for _, f := range []*Facts{a, b} {
					f.Blocks["kvwarm"] = block(t, `{"enabled": true, "warm_eligible": true, "skip_reason": null}`)
				}
				a.Results[1].Regime = "fake_fallback"
				a.Results = append(a.Results, a.Results[1])
				a.Results[2].Regime = ""
				b.Results[1].Regime = ""
			},
			`rank 0: KV warmup was enabled and the run eligible for it, but no decode point is known to have run on real KV content: 1 of 2 did not, and the others have no kv_seed_regime.
With a mixture-of-experts model made-up content biases which experts are used; look at kvwarm.stages and kvwarm.skip_reason.`,
			`{"ranks":[{"rank":0,"decode_points":2,"without_regime":1}]}`,
		},
		{
			"regimes that differ", KindRegimes, Note,
			func(_ *testing.T, _, b *Facts) { b.Results[1].Regime = "" },
			`Seed regimes (points of rank 0): prefill: not_applicable 1; decode: real_kv 1.
Seed regimes (points of rank 1): prefill: not_applicable 1; decode: (none recorded) 1.`,
			`{"ranks":[{"rank":0,"prefill":[{"name":"not_applicable","count":1}],"decode":[{"name":"real_kv","count":1}]},` +
				`{"rank":1,"prefill":[{"name":"not_applicable","count":1}],"decode":[{"name":"","count":1}]}]}`,
		},
		{
			"dispatch as expected", KindDispatch, Note, func(*testing.T, *Facts, *Facts) {},
			`Graph dispatch: expected FULL: observed FULL and unavailable at 1 point; expected NONE: observed NONE at 1 point.`,
			`{"modes":[{"expected":"FULL","observed":[{"name":"FULL+unavailable","count":1}]},{"expected":"NONE","observed":[{"name":"NONE","count":1}]}],"unexpected":[]}`,
		},
		{
			"dispatch otherwise", KindDispatch, Attention,
			func(_ *testing.T, a, _ *Facts) {
				a.Points[0].ExpectedMode, a.Points[0].Dispatch = "CUDAGraphMode.NONE", []Dispatch{{"CUDAGraphMode.NONE", 1}, {"PIECEWISE", 1}}
			},
			`Graph dispatch: expected FULL: observed FULL and unavailable at 1 point; expected NONE: observed NONE and PIECEWISE at 1 point.
1 point was dispatched otherwise than expected: 1.`, ``,
		},
		{
			"dispatch not recorded", KindDispatch, Note,
			func(_ *testing.T, a, _ *Facts) { a.Points[0].Dispatch, a.Points[1].Dispatch = nil, nil },
			`Which graph each forward pass was dispatched to is not recorded: an expected mode says what was planned, not what ran.`, ``,
		},
		{
			"a slow rank", KindSlowRanks, Note,
			func(_ *testing.T, a, b *Facts) {
				for _, f := range []*Facts{a, b} {
					f.Points = append(f.Points, f.Points...)
					for i := range f.Points {
						f.Points[i].Walls = []float64{1, 1.25}
					}
				}
			},
			`Rank 1 is the slowest at 4 of 4 points, with a median skew of 1.25 (its wall time over the lower median of the ranks').
A point takes as long as its slowest rank: look at that rank's GPU, its clocks and its place before the times are used.`,
			`{"ranks":[{"rank":0,"points":4,"slowest":0,"median_skew":1},{"rank":1,"points":4,"slowest":4,"median_skew":1.25}]}`,
		},
		{
			"a very slow rank", KindSlowRanks, Attention,
			func(_ *testing.T, a, _ *Facts) {
				a.Points = append(a.Points, a.Points...)
				for i := range a.Points {
					a.Points[i].Walls = []float64{2, 1}
				}
			},
			`Rank 0 is the slowest at 4 of 4 points, with a median skew of 2 (its wall time over the lower median of the ranks').
A point takes as long as its slowest rank: look at that rank's GPU, its clocks and its place before the times are used.`, ``,
		},
		{
			"slow first samples", KindSlowFirst, Note,
			func(_ *testing.T, a, _ *Facts) {
				a.Samples = Samples{Raw: 8, SlowFirst: 1, Outliers: 1, Worst: []Outlier{{ID: 2, Sample: 0, Wall: 0.01, Median: 0.001}, {ID: 2, Sample: 3, Wall: 0.005, Median: 0.001}}}
			},
			`1 first raw sample took more than 3 times the median of its point; nothing is removed because of it.
Rank 0: 1 of 8 raw samples, the worst: point 2 sample 0 with 10.000 ms against 1.000 ms.`,
			`{"count":1,"ranks":[{"rank":0,"count":1,"raw_samples":8,"worst":[{"benchmark_id":2,"sample_index":0,"wall_time":0.01,"median":0.001}]}]}`,
		},
		{
			"outliers", KindOutliers, Note,
			func(_ *testing.T, a, b *Facts) {
				a.Samples = Samples{Raw: 8, Outliers: 1, Worst: []Outlier{{ID: 2, Sample: 3, Wall: 5e9, Median: 0.001}}}
				b.Samples = Samples{Raw: 9, Outliers: 2}
				b.Rank, b.File = finding.NoRank, "b.json"
			},
			`3 later raw samples took more than 3 times the median of their points; nothing is removed because of it.
Rank 0: 1 of 8 raw samples, the worst: point 2 sample 3 with 5e+12 ms against 1.000 ms.
b.json: 2 of 9 raw samples.`, ``,
		},
		{
			"planner", KindPlanner, Attention,
			func(_ *testing.T, _, b *Facts) {
				b.Results = append(b.Results, Result{ID: 3, Type: "decode"}, Result{ID: 4, Type: "decode", Wall: -1},
					Result{ID: 5, Type: "decode", Wall: math.NaN()}, Result{ID: 6, Type: "mixed", Wall: 1})
			},
			`A planner counts every FPM of its phase with wall time > 0 as one sample, whatever status, coverage and regime say.
Of rank 0: for prefill 1 of 2 FPMs (not_applicable 1); for decode 1 of 2 FPMs (real_kv 1).
Of rank 1: for prefill 1 of 6 FPMs (not_applicable 1); for decode 1 of 6 FPMs (real_kv 1), dropping 1 with wall time 0, 1 with one below 0, 1 without a finite one.`,
			`{"ranks":[{"rank":0,"phases":[` +
				`{"phase":"prefill","read":1,"dropped_zero":0,"dropped_negative":0,"dropped_unreadable":0,"other_phase":1,"read_by_regime":[{"name":"not_applicable","count":1}]},` +
				`{"phase":"decode","read":1,"dropped_zero":0,"dropped_negative":0,"dropped_unreadable":0,"other_phase":1,"read_by_regime":[{"name":"real_kv","count":1}]}]},` +
				`{"rank":1,"phases":[` +
				`{"phase":"prefill","read":1,"dropped_zero":0,"dropped_negative":0,"dropped_unreadable":0,"other_phase":5,"read_by_regime":[{"name":"not_applicable","count":1}]},` +
				`{"phase":"decode","read":1,"dropped_zero":1,"dropped_negative":1,"dropped_unreadable":1,"other_phase":2,"read_by_regime":[{"name":"real_kv","count":1}]}]}]}`,
		},
		{
			"nothing for a planner", KindPlanner, Attention,
			func(_ *testing.T, a, b *Facts) { a.Results, b.Results = nil, nil },
			`A planner would find nothing to read.`, `{"ranks":[{"rank":0,"phases":[]},{"rank":1,"phases":[]}]}`,
		},
		{
			"what evidence does not prove", KindLimits, Note,
			func(t *testing.T, a, _ *Facts) {
				a.Blocks["measurement_protocol"] = block(t, `{"unobserved": ["kv_cache_tensors", 1, "kv_cache_tensors"]}`)
			},
			NotConcludedShort + "\nThe producer lists 1 thing as unobserved: kv_cache_tensors.", `{"statements":` + statements + `,"unobserved":["kv_cache_tensors"]}`,
		},
		{
			"a ledger alone", KindLimits, Note,
			func(_ *testing.T, _, b *Facts) { b.WarmupStatus = "unavailable" },
			NotConcludedShort, `{"statements":` + statements + `,"unobserved":[]}`,
		},
		{
			"much that evidence does not prove", KindLimits, Note,
			func(t *testing.T, a, _ *Facts) {
				a.Blocks["measurement_protocol"] = block(t, `{"unobserved": ["sampled_continuation_token_ids", "kv_cache_tensors", "recurrent_state_tensors", "execution_history", "x", "expert_placement"]}`)
			},
			NotConcludedShort + "\nThe producer lists 6 things as unobserved: sampled_continuation_token_ids, kv_cache_tensors, recurrent_state_tensors, execution_history, x, and 1 more.", ``,
		},
		{
			"too much", KindNotAllKept, Attention,
			func(_ *testing.T, a, b *Facts) {
				a.PointsTotal, a.WarmupTotal, a.Warmup = 9, 3, make([]WarmupRecord, 2)
				b.TooLarge = []string{"engine"}
			},
			`rank 0: Only the first 2 of 9 groups, the first 2 of 3 warmup records were looked at.
rank 1: Too large to be looked at: engine.`, ``,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := sound(0), sound(1)
			c.edit(t, a, b)
			got := explanation(t, Explain([]*Facts{b, a}), c.kind)
			if diff := cmp.Diff(c.want, strings.Join(got.Text, "\n")); diff != "" {
				t.Errorf("text: -want +got:\n%s", diff)
			}
			if got.Severity != c.severity {
				t.Errorf("severity %s, want %s", got.Severity, c.severity)
			}
			data, err := json.Marshal(got.Data)
			if err != nil {
				t.Fatal(err)
			}
			if c.data != "" {
				if diff := cmp.Diff(c.data, string(data)); diff != "" {
					t.Errorf("data: -want +got:\n%s", diff)
				}
			}
		})
	}
}

func explanation(t *testing.T, list Explanations, kind string) Explanation {
	t.Helper()
	i := slices.IndexFunc(list, func(e Explanation) bool { return e.Kind == kind })
	if i < 0 {
		t.Fatalf("no %s in %q", kind, list.Lines())
	}
	return list[i]
}

// Where KV warmup was not required, or done, its absence explains nothing.
func TestRealKVNotRequired(t *testing.T) {
	for name, c := range map[string]struct{ kvwarm, capacity, regime string }{
		"done":             {`{"enabled": true, "warm_eligible": true}`, ``, "real_kv"},
		"done, random KDA": {`{"enabled": true, "warm_eligible": true}`, ``, "real_attention_kv_random_kda"},
		"off":              {`{"enabled": false, "warm_eligible": true}`, ``, "legacy"},
		"not eligible":     {`{"enabled": true, "warm_eligible": false}`, ``, "fake_fallback"},
		"unknown":          {`{"enabled": true, "warm_eligible": null}`, ``, "fake_fallback"},
		"no regimes":       {`{"enabled": true, "warm_eligible": true}`, ``, ""},
		"no block":         {``, ``, "legacy"},
		"by the group":     {`{"enabled": true, "warm_eligible": true}`, `{"common": {"kvwarm_eligible": false}}`, "fake_fallback"},
	} {
		t.Run(name, func(t *testing.T) {
			f := sound(0)
			f.Results[1].Regime = c.regime
			for name, text := range map[string]string{"kvwarm": c.kvwarm, "capacity": c.capacity} {
				if text != "" {
					f.Blocks[name] = block(t, text)
				}
			}
			for _, e := range Explain([]*Facts{f}) {
				if e.Kind == KindNoRealKV {
					t.Errorf("%q", e.Text)
				}
			}
		})
	}
}

// Facts of a file that says nothing explain nothing but that.
func TestExplainNothing(t *testing.T) {
	if got := Explain(nil); got != nil {
		t.Errorf("of no artifact: %q", got.Lines())
	}
	got := Explain([]*Facts{newFacts("x.json"), nil})
	if len(got) != 1 || got[0].Kind != KindPlanner {
		t.Errorf("%q", got.Lines())
	}
}

// The order of the artifacts changes nothing, and texts of files are escaped for people.
func TestLines(t *testing.T) {
	a, b := sound(0), sound(1)
	a.Status, a.Error = "failed", "\x1b[2J"
	first, second := Explain([]*Facts{a, b}).Lines(), Explain([]*Facts{b, a}).Lines()
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("another order: %s", diff)
	}
	if want := `attention[run-failed]: rank 0: The benchmark failed: \u001b[2J.`; first[0] != want {
		t.Errorf("%q, want %q", first[0], want)
	}
}
