package inspect

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/simulate"
)

func read(t testing.TB, text string, opt Options) *Facts {
	t.Helper()
	f, err := Read(strings.NewReader(text), opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sameFacts compares facts: NaN equals NaN, and of blocks the values count.
func sameFacts(a, b *Facts) string {
	return cmp.Diff(a, b, cmpopts.EquateNaNs(), cmpopts.EquateEmpty(), cmp.Comparer(func(a, b *jsonvalue.Value) bool { return jsonvalue.Equal(a, b) }))
}

// small is a document with one of everything.
const small = `{
	"status": "partial", "stop_reason": "timeout", "valid": false, "usable": true, "timing_valid": true, "error": null,
	"run_id": "r\u0075n", "grid_digest": "grid", "dp": {"rank": 1, "size": 3},
	"coverage": {"expected_points": 4, "completed_points": 2, "skipped_points": 1}, "missing_phases": ["decode"],
	"timing": {"started_at": "a", "completed_at": "b", "benchmark_elapsed_seconds": 2.5, "measured_iteration_seconds": 1},
	"config": {"mode": "agg"}, "kvwarm": null,
	"skipped_points": [{"point": {"point_type": "decode", "benchmark_id": 9, "batch_size": 2}, "reason": "measured_kv_read_mismatch", "kv_seed_regime": "real_kv"}],
	"warmup_evidence": {"status": "recorded", "records": [
		{"kind": "global", "status": "failed", "validation": {"status": "failed", "reason": "why"}, "forward_index_start": 0, "forward_index_end": null,
		 "completed_points_before": 0, "requested_shape": {"prompt_lengths": [ 3, 4 ]}}, null]},
	"iteration_groups": [
		{"benchmark_id": 2, "wall_time": 0.5, "point": {"point_type": "decode", "benchmark_id": 2, "total_kv_read_tokens": 16, "batch_size": 4,
		 "expected_cudagraph_mode": "FULL", "expected_capture_size": 4, "padding_tokens": 0, "sample_reasons": ["a", "b"]},
		 "rank_results": [
			{"dp_rank": 0, "fpms": [{"wall_time": 0.5, "benchmark_measurement": {"raw_fpms": [
				{"wall_time": 0.5, "benchmark_sample": {"forward_index": 3, "cudagraph": {"status": "observed", "runtime_mode": "M.FULL"}}},
				{"wall_time": 0.5, "benchmark_sample": {"forward_index": 4, "cudagraph": {"status": "unavailable"}}}]}}]},
			{"fpms": [{"wall_time": 0.25, "benchmark_measurement": {"raw_fpms": [
				{"benchmark_sample": {"forward_index": 7, "cudagraph": {"status": "observed", "runtime_mode": "FULL"}}}]}}], "dp_rank": 1}]},
		{"benchmark_id": 1, "wall_time": "1", "point": {"point_type": "prefill", "total_prefill_tokens": 8, "batch_size": 1, "sample_reasons": ["a", "b"]},
		 "rank_results": [{"dp_rank": 2, "fpms": [{"wall_time": 1e999}]}, {"dp_rank": -1, "fpms": [{"wall_time": 1}]}]},
		7],
	"results": [
		{"point": {"point_type": "decode", "benchmark_id": 2}, "kv_seed_regime": "real_kv", "fpms": [{"wall_time": 0.25, "benchmark_measurement": {"raw_fpms": [
			{"wall_time": 9, "benchmark_sample": {"forward_index": 7}}, {"wall_time": 1}, {"wall_time": 2}, {"wall_time": 6.5}, {"wall_time": null}, 5]}}]},
		{"point": {}, "fpms": []}, null]
}`

func TestFacts(t *testing.T) {
	nan := math.NaN()
	no, yes := false, true
	at := func(text string) int64 { return int64(strings.Index(small, text)) }
	reasons := []string{"a", "b"}
	want := &Facts{
		File: "x.json", Rank: 1, Size: 3, RunID: "run", GridDigest: "grid", Status: "partial", StopReason: "timeout",
		Valid: &no, Usable: &yes, TimingValid: &yes, Expected: 4, Completed: 2, SkippedCount: 1, Missing: []string{"decode"},
		StartedAt: "a", CompletedAt: "b", Elapsed: 2.5, Measured: 1,
		Blocks: map[string]*jsonvalue.Value{"config": jsontest.Parse(t, `{"mode": "agg"}`), "kvwarm": jsontest.Parse(t, "null")},
		BlockAt: map[string]int64{"config": at(`{"mode"`), "kvwarm": at(`null,
	"skipped_points"`)},
		Skipped: []Skipped{{
			Coordinates: Coordinates{ID: 9, Type: "decode", BatchSize: 2, CaptureSize: -1, Padding: -1},
			Reason:      "measured_kv_read_mismatch", Regime: "real_kv",
		}},
		SkippedTotal: 1, WarmupTotal: 2, WarmupStatus: "recorded",
		Warmup: []WarmupRecord{
			{Kind: "global", Status: "failed", Validation: "failed", Reason: "why", End: -1, Count: -1, Shape: `{"prompt_lengths":[3,4]}`},
			{Start: -1, End: -1, Count: -1, CompletedBefore: -1},
		},
		Points: []Point{
			{
				Coordinates: Coordinates{ID: 2, Type: "decode", BatchSize: 4, KVReadTokens: 16, ExpectedMode: "FULL", CaptureSize: 4, Reasons: reasons},
				Wall:        0.5, Walls: []float64{0.5, 0.25, nan}, Forward: 7, Dispatch: []Dispatch{{"FULL", 2}, {"unavailable", 1}},
			},
			{
				Coordinates: Coordinates{ID: 1, Type: "prefill", BatchSize: 1, PrefillTokens: 8, CaptureSize: -1, Padding: -1, Reasons: reasons},
				Position:    1, Wall: nan, Walls: []float64{nan, nan, nan}, Forward: -1,
			},
			{Coordinates: Coordinates{}, Position: 2, Wall: nan, Walls: []float64{nan, nan, nan}, Forward: -1},
		},
		PointsTotal: 3,
		Results: []Result{
			{ID: 2, Regime: "real_kv", Wall: 0.25, Type: "decode", Forward: 7, Offset: at(`"results"`) + int64(strings.Index(small[at(`"results"`):], `2}`))},
			{Wall: nan, Forward: -1, Offset: at(`{}, "fpms": []`)},
			{Wall: nan, Forward: -1, Offset: at("null]\n}")},
		},
		Samples: Samples{Raw: 5, Later: 3, SlowFirst: 1, Outliers: 1, Worst: []Outlier{{2, 0, 9, 2}, {2, 3, 6.5, 2}}},
	}
	if diff := sameFacts(want, read(t, small, Options{File: "x.json"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Neither the order of keys nor what is judged beside changes the facts; only offsets move.
func TestFactsWhateverTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := append(soundDocs(t), small)
	for _, text := range texts {
		plain := read(t, text, Options{})
		for _, strict := range []*finding.Scope{nil, {Out: finding.NewCollector(0)}} {
			root := jsontest.Parse(t, text)
			for range 5 {
				got := read(t, jsontest.Indent(root), Options{Strict: strict})
				for i := range got.Results {
					got.Results[i].Offset = plain.Results[i].Offset
				}
				got.BlockAt = plain.BlockAt
				for i := range got.Warmup { // a shape is quoted as it stands
					got.Warmup[i].Shape = plain.Warmup[i].Shape
				}
				if diff := sameFacts(plain, got); diff != "" {
					t.Fatalf("(-plain +shuffled):\n%s", diff)
				}
				jsontest.Shuffle(random, root)
			}
		}
	}
}

func TestMistypedValuesAreLeftOut(t *testing.T) {
	root := jsontest.Parse(t, small)
	for i := range root.Members {
		for _, text := range []string{`null`, `7`, `-1.5`, `"x"`, `[]`, `{}`, `[[1], {"a": 2}]`, `{"status": [], "records": {"rank": "x"}}`} {
			doc := root.Clone()
			doc.Members[i].Value = *jsontest.Parse(t, text)
			judge(t, []string{jsontest.Indent(doc)})
		}
	}
	for _, text := range []string{`[]`, `7`, `null`, `"x"`, `{}`} {
		f := read(t, text, Options{})
		if f.Rank != finding.NoRank || f.Expected != -1 || !math.IsNaN(f.Elapsed) || f.Valid != nil {
			t.Errorf("%s: %+v", text, f)
		}
	}
}

func TestSkipGroups(t *testing.T) {
	text := soundDocs(t)[1]
	whole := read(t, text, Options{})
	root := jsontest.Parse(t, text)
	groups := root.Get("iteration_groups")
	_, end, _ := strings.Cut(text[groups.Offset:], "\n  ]")
	span := jsonstream.Span{Off: groups.Offset, Len: int64(len(text)) - groups.Offset - int64(len(end))}
	whole.Points, whole.PointsTotal = nil, 0
	for _, at := range []jsonstream.Span{{}, span, {Off: span.Off + 1, Len: 3}} {
		if diff := sameFacts(whole, read(t, text, Options{SkipGroups: true, GroupsAt: at})); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", at, diff)
		}
	}
	// What is jumped over is not read.
	blank := text[:span.Off] + strings.Repeat("x", int(span.Len)) + text[span.End():]
	if diff := sameFacts(whole, read(t, blank, Options{SkipGroups: true, GroupsAt: span})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The errors are those of the text, wherever it ends, and the facts are those until then.
func TestBrokenText(t *testing.T) {
	for end := range len(small) {
		f, err := Read(strings.NewReader(small[:end]), Options{Strict: &finding.Scope{Out: finding.NewCollector(0)}})
		var fault *jsonstream.Fault
		if f == nil || !errors.As(err, &fault) || !fault.Truncated {
			t.Fatalf("cut at %d: %v", end, err)
		}
	}
	for _, text := range []string{small + "x", "", `{"dp": 1, }`} {
		if _, err := Read(strings.NewReader(text), Options{}); err == nil {
			t.Errorf("no error in %q", text)
		}
	}
}

// failing is a source that breaks off.
type failing struct {
	text string
	from int64
}

var errSource = errors.New("source")

func (f failing) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.from {
		return 0, errSource
	}
	return strings.NewReader(f.text).ReadAt(p, off)
}

func TestSourceErrors(t *testing.T) {
	if _, err := Read(failing{small, 0}, Options{}); !errors.Is(err, errSource) {
		t.Error(err)
	}
	if _, err := ReadPoint(failing{small, 0}, 1); !errors.Is(err, errSource) {
		t.Error(err)
	}
}

func TestCaps(t *testing.T) {
	long := strings.Repeat("é", 600)
	list := func(n int, text string) string { return "[" + strings.Repeat(text+",", n-1) + text + "]" }
	var reasons, modes strings.Builder
	for i := range 40 {
		fmt.Fprintf(&reasons, `"reason %d",`, i)
		fmt.Fprintf(&modes, `{"benchmark_sample": {"cudagraph": {"status": "observed", "runtime_mode": "mode %02d"}}},`, i)
	}
	f := read(t, `{"run_id": "`+long+`", "error": "`+strings.Repeat("x", 600)+`", "dp": {"rank": 0, "size": 1},
		"missing_phases": `+list(50, `"x"`)+`, "skipped_points": `+list(1500, "{}")+`,
		"warmup_evidence": {"status": "recorded", "records": `+list(10_500, "{}")+`},
		"config": `+list(60_000, "1")+`, "limits": "`+strings.Repeat("x", 1<<20)+`",
		"results": [{"point": {"sample_reasons": [`+reasons.String()+`"x"]}}],
		"iteration_groups": [{"point": {"sample_reasons": [`+reasons.String()+`"y"]}, "rank_results": [{"dp_rank": 0, "fpms": [{"benchmark_measurement": {"raw_fpms": [`+modes.String()+`{}]}}]}]}]}`, Options{})
	if f.RunID != strings.Repeat("é", 256)+"…" || f.Error != strings.Repeat("x", 512)+"…" {
		t.Errorf("texts %q, %q", f.RunID, f.Error)
	}
	if len(f.Missing) != 16 || len(f.Skipped) != 1000 || f.SkippedTotal != 1500 || len(f.Warmup) != 10_000 || f.WarmupTotal != 10_500 {
		t.Errorf("%d phases, %d of %d skipped, %d of %d records", len(f.Missing), len(f.Skipped), f.SkippedTotal, len(f.Warmup), f.WarmupTotal)
	}
	if !slices.Equal(f.TooLarge, []string{"config", "limits"}) || len(f.Blocks) != 0 {
		t.Errorf("too large: %q", f.TooLarge)
	}
	p := f.Points[0]
	if len(p.Reasons) != 16 || p.Reasons[15] != "reason 15" {
		t.Errorf("reasons %q", p.Reasons)
	}
	if n := len(p.Dispatch); n != 16 || p.Dispatch[0] != (Dispatch{"…", 25}) || p.Dispatch[15] != (Dispatch{"mode 14", 1}) {
		t.Errorf("%d modes: %v", n, p.Dispatch)
	}
}

// A rank whose number is large does not make room for the ranks below it at every point.
func TestManyWalls(t *testing.T) {
	const group = `{"rank_results": [{"dp_rank": 65535, "fpms": [{"wall_time": 1}]}]},`
	f := read(t, `{"dp": {}, "iteration_groups": [`+strings.Repeat(group, 200)+`7]}`, Options{})
	walls := 0
	for _, p := range f.Points {
		walls += len(p.Walls)
	}
	if f.PointsTotal != 201 || walls > maxWalls || walls < maxWalls/2 {
		t.Errorf("%d of %d points with %d wall times", len(f.Points), f.PointsTotal, walls)
	}
}

func TestManyTexts(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"dp": {}, "results": [`)
	for i := range 10_000 {
		fmt.Fprintf(&b, `{"kv_seed_regime": "%0200d", "point": {"sample_reasons": ["%d"]}},`, i, i)
	}
	f := read(t, b.String()+"0]}", Options{})
	bytes := 0
	seen := map[string]bool{}
	for _, r := range f.Results {
		if !seen[r.Regime] {
			bytes += len(r.Regime)
			seen[r.Regime] = true
		}
	}
	if bytes > maxTexts || bytes < maxTexts/2 || !seen["…"] {
		t.Errorf("%d bytes of texts", bytes)
	}
}

func TestWorstSamples(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"dp": {}, "results": [`)
	for i := range 30 {
		fmt.Fprintf(&b, `{"point": {"benchmark_id": %d}, "fpms": [{"benchmark_measurement": {"raw_fpms": [{"wall_time": %d}, {"wall_time": 1}, {"wall_time": 0}, {"wall_time": 3}]}}]},`, i, i)
	}
	// Two samples: the faster one is the median. A median of 0 leaves any other time beyond.
	b.WriteString(`{"point": {"benchmark_id": 97}, "fpms": [{"benchmark_measurement": {"raw_fpms": [{"wall_time": 7}, {"wall_time": 2}]}}]},
		{"point": {"benchmark_id": 98}, "fpms": [{"benchmark_measurement": {"raw_fpms": [{"wall_time": 0}, {"wall_time": 0}, {"wall_time": 1}]}}]},
		{"point": {"benchmark_id": 99}, "fpms": [{"benchmark_measurement": {"raw_fpms": [{"wall_time": 7}]}}]}]}`)
	f := read(t, b.String(), Options{})
	s := f.Samples
	// Of the thirty points, the median is 0 for the first and 1 for the others: above 3
	// are the first samples from 4 to 29.
	if s.SlowFirst != 27 || s.Outliers != 3 || s.Raw != 126 || len(s.Worst) != 20 {
		t.Errorf("%d slow, %d outliers of %d: %v", s.SlowFirst, s.Outliers, s.Raw, s.Worst)
	}
	if w := s.Worst; !math.IsInf(w[0].Wall/w[0].Median, 1) || w[3].ID != 29 || w[19].ID != 13 {
		t.Errorf("worst: %v", s.Worst)
	}
}

func TestReadPoint(t *testing.T) {
	docs := files(t, "testdata/sound/benchmark_results.json")
	f := read(t, docs[0], Options{})
	for _, p := range f.Points {
		d, err := ReadPoint(strings.NewReader(docs[0]), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(d.Coordinates, p.Coordinates) || d.Position != p.Position || d.Wall != p.Wall || len(d.Ranks) != 2 {
			t.Errorf("%+v", d)
		}
		for i, r := range d.Ranks {
			if r.Rank != i || r.Wall != p.Walls[i] || !r.Measured || r.Prompts.Status != "recorded" || len(r.Prompts.Hash) != 64 || r.Prompts.Requests < 1 ||
				r.CompletedBefore != int64(p.Position) || r.WarmupBefore < 1 || int(r.Expected) != len(r.Samples) || r.SamplesTotal != len(r.Samples) || r.Worker == "" || len(r.Indices) == 0 || r.Method == "" {
				t.Errorf("%+v", r)
			}
			for k, s := range r.Samples {
				if s.Index != int64(k) || s.Basis == "" || math.Abs(s.End-s.Start-s.Wall) > 1e-9 || (s.Status == "observed") != (s.Padded-s.Unpadded == s.Paddings && s.Mode != "") {
					t.Errorf("%+v", s)
				}
			}
		}
		if d.Ranks[0].Samples[0].Forward != p.Forward {
			t.Errorf("forward %d, not %d", d.Ranks[0].Samples[0].Forward, p.Forward)
		}
	}
	for _, text := range []string{docs[0], `{}`, `[]`, `{"iteration_groups": [{"benchmark_id": "9"}, 9]}`} {
		if d, err := ReadPoint(strings.NewReader(text), 9); d != nil || !errors.Is(err, ErrNoPoint) {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if _, err := ReadPoint(strings.NewReader(docs[0][:len(docs[0])-900]), 99); err == nil || errors.Is(err, ErrNoPoint) {
		t.Errorf("a document that breaks off: %v", err)
	}
}

func TestReadPointWhateverTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	want, err := ReadPoint(strings.NewReader(small), 2)
	if err != nil {
		t.Fatal(err)
	}
	root := jsontest.Parse(t, small)
	for range 10 {
		jsontest.Shuffle(random, root)
		got, err := ReadPoint(strings.NewReader(jsontest.Indent(root)), 2)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// BenchmarkRead reads a rank artifact of 16 ranks. A file of 75 MB takes as long for each
// of its bytes.
func BenchmarkRead(b *testing.B) {
	docs := simulated(b, simulate.Options{Ranks: 16, Points: 60, Raw: 4})
	for name, strict := range map[string]*finding.Scope{"merge": nil, "strict": {Out: finding.NewCollector(0)}} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(docs[0])))
			b.ReportAllocs()
			for b.Loop() {
				read(b, docs[0], Options{Strict: strict})
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(small)
	random := rand.New(rand.NewPCG(5, 6))
	for range 5 {
		root := jsontest.Parse(f, small)
		jsontest.Shuffle(random, root)
		f.Add(string(root.AppendCompact(nil)))
	}
	// The tool takes a minute to make a long seed's offspring small.
	for _, opt := range []simulate.Options{{Ranks: 1, Points: 2, Raw: 1}, {Ranks: 2, Points: 1, Raw: 1, Legacy: true}} {
		root := jsontest.Parse(f, simulated(f, opt)[0])
		jsontest.Apply(f, root, jsontest.Del("/engine"), jsontest.Del("/cudagraph"), jsontest.Del("/limits"), jsontest.Del("/synchronization"))
		f.Add(string(root.AppendCompact(nil)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := jsonstream.Check(strings.NewReader(text), jsonstream.Limits{})
		sound := err == nil
		out := finding.NewCollector(0)
		facts, err := Read(strings.NewReader(text), Options{File: "x", Strict: &finding.Scope{Out: out, File: "x", Rank: finding.NoRank}})
		if sound && err != nil {
			t.Fatalf("%v in sound text", err)
		}
		if !sound {
			return
		}
		Compare([]*Facts{facts, facts}, out)
		root := jsontest.Parse(t, text)
		for _, found := range out.Findings() {
			if v, missing := jsontest.Find(root, found.Pointer); missing > 1 || found.Offset != v.Offset {
				t.Errorf("%+v: the value is at %d, %d steps missing", found, v.Offset, missing)
			}
		}
		for _, p := range facts.Points {
			if _, err := ReadPoint(strings.NewReader(text), p.ID); err != nil && !errors.Is(err, ErrNoPoint) {
				t.Fatal(err)
			}
		}
	})
}

// The committed run is one that another program wrote.
func TestSoundRunIsWhole(t *testing.T) {
	paths, err := filepath.Glob("testdata/sound/*.json")
	if err != nil || len(paths) != 2 {
		t.Fatal(paths, err)
	}
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f := read(t, string(text), Options{File: path})
		if f.Rank != i || f.Size != 2 || len(f.Points) != 4 || len(f.Results) != 4 || f.WarmupTotal == 0 || len(f.TooLarge) != 0 || len(f.Blocks) != 9 {
			t.Errorf("%+v", f)
		}
	}
}

// Empty entries take no more room than their text, and sound ones are kept however many
// were short before them.
func TestManyShortEntries(t *testing.T) {
	const n = 200_000
	short := "[" + strings.Repeat("{},", n-1) + "{}]"
	f := read(t, `{"dp": {}, "results": `+short+`, "iteration_groups": `+short+`}`, Options{})
	if len(f.Points) < freeEntries || len(f.Points) > freeEntries+n*6/leastGroup || f.PointsTotal != n {
		t.Errorf("%d of %d points are kept", len(f.Points), f.PointsTotal)
	}
	if len(f.Results) < freeEntries || len(f.Results) > freeEntries+n*3/leastResult {
		t.Errorf("%d results are kept", len(f.Results))
	}
	const group = `{"benchmark_id": 1, "point": {"benchmark_id": 1}, "expected_dp_ranks": [0], "complete": true, "wall_time": 1, "rank_results": [{"dp_rank": 0, "fpms": [{"counter_id": 1}]}]}`
	f = read(t, `{"dp": {}, "iteration_groups": [`+strings.Repeat(group+",", 20_000)+group+`]}`, Options{})
	if len(f.Points) != 20_001 {
		t.Fatalf("%d points are kept", len(f.Points))
	}
	for i, p := range f.Points {
		if len(p.Walls) != 1 {
			t.Fatalf("point %d has %d wall times", i, len(p.Walls))
		}
	}
}
