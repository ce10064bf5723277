package inspect

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// mergedText is a node-local merge of ranks 1 and 2 of 3, reduced to what is read.
const mergedText = `{
  "artifact_type": "merged", "run_id": "r", "grid_digest": "g", "status": "complete", "valid": true,
  "dp": {"ranks": [0, 1, 2], "source_ranks": [1, 2], "managed_size": 2, "global_size": 3},
  "coverage": {"expected_points": 6, "completed_points": 6, "skipped_points": 0},
  "timing": {"started_at": "a", "completed_at": "b", "benchmark_elapsed_seconds": 9.5, "measured_iteration_seconds": 3.5,
    "rank_benchmark_elapsed_seconds": {"2": 9.5, "1": 9.25, "x": 1, "3": null}},
  "rank_files": ["a.json", 7, "b.json"], "merged_output_path": "m.json",
  "results": [
    {"point": {"benchmark_id": 1, "point_type": "decode", "dp_rank": 0}, "fpms": [{"wall_time": 1}]},
    {"point": {"benchmark_id": 1, "point_type": "decode", "dp_rank": 1}, "kv_seed_regime": "real_kv", "fpms": [{"wall_time": 1.5}]},
    {"point": {"benchmark_id": 1, "point_type": "decode", "dp_rank": 2}, "kv_seed_regime": "real_kv", "fpms": [{"wall_time": 0}]},
    {"point": {"benchmark_id": 2, "point_type": "decode", "dp_rank": 0}, "fpms": [{"wall_time": 2}]},
    {"point": {"benchmark_id": 2, "point_type": "decode", "dp_rank": 1}, "kv_seed_regime": "real_kv", "fpms": [{"wall_time": 2}]},
    {"point": {"benchmark_id": 2, "point_type": "decode", "dp_rank": 2}, "kv_seed_regime": "real_kv", "fpms": [{"wall_time": 2}]}
  ],
  "iteration_groups": [
    {"benchmark_id": 1, "point": {"benchmark_id": 1, "point_type": "decode"}, "wall_time": 1.5, "rank_results": [
      {"dp_rank": 0, "fpms": [{"wall_time": 1}]}, {"dp_rank": 1, "fpms": [{"wall_time": 1.5}]}, {"dp_rank": 2, "fpms": [{"wall_time": 0}]}]}
  ],
  "rank_warmup_evidence": {
    "2": {"status": "recorded", "records": [{"kind": "global", "status": "completed", "forward_index_start": 0, "forward_index_end": 4, "validation": {"status": "passed"}}]},
    "0": {"status": "unavailable", "records": [], "reason": "rank_artifact_not_loaded"},
    "1": {"status": "recorded", "records": [{"kind": "global", "status": "running"}, {"kind": "eager_shape"}]},
    "none": 1
  }
}`

func readMerged(t *testing.T, text string) *Merged {
	t.Helper()
	m, err := ReadMerged(strings.NewReader(text), Options{File: "m.json"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReadMerged(t *testing.T) {
	m := readMerged(t, mergedText)
	got := map[string]any{
		"global": m.GlobalRanks, "sources": m.SourceRanks, "files": m.RankFiles, "output": m.Output, "elapsed": m.Elapsed,
		"coverage": []int64{m.Expected, m.Completed, m.SkippedCount}, "rank": m.Rank, "size": m.Size, "results": len(m.Results), "points": len(m.Points),
		"reference ledger": []any{m.WarmupStatus, m.WarmupTotal, len(m.Warmup)},
	}
	want := map[string]any{
		"global": []int{0, 1, 2}, "sources": []int{1, 2}, "files": []string{"a.json", "b.json"}, "output": "m.json",
		"elapsed":  []RankSeconds{{1, 9.25}, {2, 9.5}},
		"coverage": []int64{2, 2, 0}, "rank": finding.NoRank, "size": 3, "results": 6, "points": 1,
		"reference ledger": []any{"recorded", 2, 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var ledgers []string
	for _, l := range m.Ledgers {
		ledgers = append(ledgers, strings.Join([]string{l.Status, l.Reason}, ","))
		if l.Total != len(l.Records) {
			t.Errorf("rank %d: %d of %d records", l.Rank, len(l.Records), l.Total)
		}
	}
	if diff := cmp.Diff([]string{"unavailable,rank_artifact_not_loaded", "recorded,", "recorded,"}, ledgers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRankFacts(t *testing.T) {
	m := readMerged(t, mergedText)
	f := m.RankFacts(m.Ledgers[2])
	var walls []float64
	for _, r := range f.Results {
		walls = append(walls, r.Wall)
	}
	if diff := cmp.Diff([]float64{0, 2}, walls); diff != "" || f.Rank != 2 || f.Warmup[0].End != 4 {
		t.Errorf("%+v\n%s", f, diff)
	}
}

// The results of a run are gone through once, whatever the number of ledgers, and no ledger
// gets a buffer of its own; each rank has one ledger.
func TestManyLedgers(t *testing.T) {
	const ranks, points = 2000, 30
	var text strings.Builder
	text.WriteString(`{"dp": {"ranks": [`)
	for rank := range ranks {
		fmt.Fprintf(&text, "%s%d", comma(rank), rank)
	}
	text.WriteString(`]}, "results": [`)
	for i := range ranks * points {
		fmt.Fprintf(&text, `%s{"point": {"benchmark_id": %d}, "fpms": [{"wall_time": %d}]}`, comma(i), i/ranks, i%ranks)
	}
	text.WriteString(`], "rank_warmup_evidence": {"00": {}, "01": {}`)
	for rank := range ranks {
		fmt.Fprintf(&text, `, "%d": {"status": "recorded", "records": [{}]}`, rank)
	}
	text.WriteString(`}}`)

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m := readMerged(t, text.String())
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > ranks*(32<<10) {
		t.Errorf("%d bytes for %d ledgers", used, ranks)
	}
	if len(m.Ledgers) != ranks {
		t.Fatalf("%d ledgers", len(m.Ledgers))
	}
	for rank, l := range m.Ledgers {
		f := m.RankFacts(l)
		if f.Rank != rank || len(f.Results) != points || f.WarmupTotal != 1 {
			t.Fatalf("rank %d: %+v", rank, f)
		}
		for id, r := range f.Results {
			if r.ID != int64(id) || r.Wall != float64(rank) {
				t.Fatalf("rank %d, point %d: %+v", rank, id, r)
			}
		}
		if again := m.RankFacts(l); &again.Results[0] != &f.Results[0] {
			t.Fatal("the results were split again")
		}
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func TestExplainMerged(t *testing.T) {
	list := ExplainMerged(readMerged(t, mergedText))
	for kind, want := range map[string]string{
		KindMissing: "This is a merge of 2 of 3 ranks: ranks 1-2 took part; of the others it has the measurements, but neither their ledger nor their kv_seed_regime.",
		KindRegimes: "Seed regimes (rows, one for each point and rank): decode: real_kv 4, (none recorded) 2.",
		KindPlanner: "A planner counts every FPM of its phase with wall time > 0 as one sample, whatever status, coverage and regime say.\n" +
			"For decode 5 of 6 FPMs (real_kv 3, (none recorded) 2), dropping 1 with wall time 0.",
	} {
		if diff := cmp.Diff(want, strings.Join(explanation(t, list, kind).Text, "\n")); diff != "" {
			t.Errorf("%s: -want +got:\n%s", kind, diff)
		}
	}
	if got := ExplainMerged(readMerged(t, "{}")); len(got) != 1 {
		t.Errorf("of an empty document: %q", got.Lines())
	}
}

// FuzzReadMerged: whatever a document holds, reading it ends, and what was read can be
// explained.
func FuzzReadMerged(f *testing.F) {
	f.Add([]byte(mergedText))
	f.Add([]byte(`{"dp": {"ranks": [1, 1, -1, 65536, 9e9]}, "rank_warmup_evidence": {"0": {"records": [[]]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		src := bytes.NewReader(text)
		if _, err := jsonstream.Check(src, jsonstream.Limits{}); err != nil {
			return
		}
		m, err := ReadMerged(src, Options{File: "m.json"})
		if err != nil {
			t.Fatalf("a sound text: %v", err)
		}
		for _, line := range ExplainMerged(m).Lines() {
			if strings.ContainsAny(line, "\n\x1b") {
				t.Errorf("%q", line)
			}
		}
		for _, l := range m.Ledgers {
			Timeline(m.RankFacts(l))
		}
	})
}
