package synthesis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/probe"
)

// sample is a small run in the current directory, so that the paths in its documents are
// the same wherever the test runs.
func sample(rule finding.ID) simulate.Options {
	return simulate.Options{Dir: ".", Ranks: 2, Points: 2, Raw: 2, Break: rule}
}

func makeRun(t *testing.T, opt simulate.Options, kind Kind) Result {
	t.Helper()
	t.Chdir(t.TempDir())
	result, err := Run(t.Context(), opt, kind)
	if err != nil {
		t.Fatalf("%s: %v", opt.Break, err)
	}
	return result
}

func parse(t *testing.T, path string) *jsonvalue.Value {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonvalue.Parse(text, 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Every rule about files can be broken, in the order of the table.
func TestEveryRuleIsBreakable(t *testing.T) {
	var want, got []finding.ID
	for _, rule := range finding.Rules() {
		if !slices.Contains(OfHosts(), rule.ID) {
			want = append(want, rule.ID)
		}
	}
	for _, b := range Breakable() {
		got = append(got, b.Rule)
		if b.How == "" {
			t.Errorf("%s does not say how", b.Rule)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-rule table +breakable):\n%s", diff)
	}
}

// A sound run has a sidecar that says the same as a check of it.
func TestSoundRun(t *testing.T) {
	result := makeRun(t, sample(""), WithSidecar)
	want := []string{"benchmark_results.json", "benchmark_results_dp1.json", "benchmark_results_merged.json", "benchmark_results_merged_worker_probe.json"}
	if diff := cmp.Diff(want, result.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	checked, err := probe.Run(t.Context(), probe.Options{Merged: result.Merged, Require: probe.Complete})
	if err != nil || len(checked.Findings) > 0 || len(checked.Failures) > 0 {
		t.Errorf("%+v, %v", checked, err)
	}
	if plain := makeRun(t, sample(""), RankFiles); len(plain.Files) != 2 || plain.Merged != "" || plain.Bytes >= result.Bytes {
		t.Errorf("without more: %+v", plain)
	}
}

// Each broken document differs from the sound one at one place.
func TestBreaksChangeNothingElse(t *testing.T) {
	sound := makeRun(t, sample(""), WithSidecar)
	merged, sidecar := parse(t, sound.Merged), parse(t, sound.Sidecar)
	want := map[finding.ID]string{
		finding.MergedSchema:      "merged /schema_version",
		finding.MergedDP:          "merged /dp/managed_size",
		finding.MergedIdentity:    "merged /run_id",
		finding.MergedStatus:      "merged /usable",
		finding.MergedCoverage:    "merged /skipped_points/0",
		finding.MergedGroups:      "merged /iteration_groups/0/complete",
		finding.MergedResults:     "merged /results/0/point/sample_reasons/0",
		finding.MergedTiming:      "merged /timing/benchmark_elapsed_seconds",
		finding.MergedLedger:      "merged /warmup_evidence",
		finding.MergedEngine:      "merged /engine/parallel/data_parallel_rank",
		finding.MergedPaths:       "merged /worker_probe_path",
		finding.MergedDiffers:     "merged /config/timeout",
		finding.ProbeNoEngine:     "merged /engine merged /worker_probe_path",
		finding.ProbeSidecar:      "sidecar /schema_version",
		finding.ProbeSidecarStale: "sidecar /merged/worker_probe/coverage/complete",
		finding.ProbeRunID:        "sidecar /run_id",
	}
	for id, where := range want {
		result := makeRun(t, sample(id), RankFiles)
		got := differences(t, "merged ", merged, parse(t, result.Merged))
		if result.Sidecar != "" {
			got = append(got, differences(t, "sidecar ", sidecar, parse(t, result.Sidecar))...)
		}
		slices.Sort(got)
		if strings.Join(got, " ") != where {
			t.Errorf("%s: differences at %q, want %s", id, got, where)
		}
	}
}

func differences(t *testing.T, what string, a, b *jsonvalue.Value) (list []string) {
	t.Helper()
	jsonvalue.Diff(a, b, "", func(d jsonvalue.Difference) bool {
		list = append(list, what+d.Pointer)
		return true
	})
	return list
}

// What was probed differs in the other breaks, and a check finds it.
func TestProbedBreaks(t *testing.T) {
	for id, require := range map[finding.ID]probe.Requirement{
		finding.ProbeUnobserved:     probe.Observed,
		finding.ProbeDisagree:       probe.Agree,
		finding.ProbeIncomplete:     probe.Complete,
		finding.ProbeFailed:         probe.Nothing,
		finding.ProbeSkipped:        probe.Nothing,
		finding.ProbeMalformedReply: probe.Nothing,
		finding.ProbeSidecar:        probe.Nothing,
		finding.ProbeSidecarStale:   probe.Nothing,
		finding.ProbeRunID:          probe.Nothing,
		finding.ProbeNoEngine:       probe.Nothing,
	} {
		result := makeRun(t, sample(id), RankFiles)
		checked, err := probe.Run(t.Context(), probe.Options{Merged: result.Merged, Require: require})
		if err != nil || len(checked.Failures) > 0 {
			t.Fatalf("%s: %v, %v", id, err, checked.Failures)
		}
		var got []finding.ID
		for _, f := range checked.Findings {
			got = append(got, f.Rule)
		}
		if !slices.Equal(got, []finding.ID{id}) {
			t.Errorf("%s: found %v", id, got)
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		rule   finding.ID
		change func(*simulate.Options)
	}{
		{finding.MergedLedger, func(o *simulate.Options) { o.Legacy = true }},
		{finding.ProbeDisagree, func(o *simulate.Options) { o.Ranks = 1 }},
		{finding.StrictOrder, func(o *simulate.Options) { o.Points = 1 }},
	} {
		opt := sample(c.rule)
		c.change(&opt)
		var excluded *simulate.ExcludedError
		if _, err := Run(t.Context(), opt, RankFiles); !errors.As(err, &excluded) || excluded.Rule != c.rule {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
	var option *simulate.OptionError
	if _, err := Run(t.Context(), sample("no.rule"), RankFiles); !errors.As(err, &option) {
		t.Errorf("an unknown rule: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, sample(finding.MergedDP), RankFiles); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if names, err := filepath.Glob("*"); err != nil || len(names) > 0 {
		t.Errorf("left behind %v, %v", names, err)
	}
}

// One run after the other in one directory leaves the files of the last one.
func TestOlderFilesAreReplaced(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, opt := range []simulate.Options{sample(finding.ProbeDisagree), sample(finding.MergedDP)} {
		opt.Seed = uint64(len(opt.Break))
		if _, err := Run(t.Context(), opt, RankFiles); err != nil {
			t.Fatal(err)
		}
	}
	names, err := filepath.Glob("*")
	if want := []string{"benchmark_results.json", "benchmark_results_dp1.json", "benchmark_results_merged.json"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("files %v, %v", names, err)
	}
}

// A recording is a full capture of two workers in three segments each; the same options
// give the same bytes, and an older one is replaced.
func TestRecording(t *testing.T) {
	opt := simulate.Options{Dir: t.TempDir(), Ranks: 2, Points: 1, Raw: 1, Break: finding.TraceEmpty}
	read := func() (names []string, text string) {
		t.Helper()
		result, err := Run(t.Context(), opt, RankFiles)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range result.Files {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			names, text = append(names, filepath.Base(path)), text+string(b)
		}
		return names, text
	}
	broken, _ := read()
	opt.Break = ""
	result, err := Run(t.Context(), opt, Recording)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(opt.Dir)
	if err != nil || len(entries) != 6 || len(result.Files) != 6 || len(broken) != 7 || result.Bytes == 0 {
		t.Errorf("%v, %v, %+v, broken %q", entries, err, result, broken)
	}
	opt.Break = finding.TraceRow
	_, first := read()
	_, again := read()
	opt.Seed = 1
	_, other := read()
	if first != again || first == other {
		t.Error("the bytes do not follow from the options")
	}
	for _, path := range RecordingFiles(opt) {
		if filepath.Dir(path) != opt.Dir {
			t.Errorf("%s is not in the directory", path)
		}
	}
}

// Each broken recording differs from the sound one in one file, or by a series.
func TestTraceBreaksChangeOneFile(t *testing.T) {
	want := map[finding.ID]int{finding.TraceProducer: 3, finding.TraceRank: 6, finding.TraceSampled: 3}
	files := func(rule finding.ID) map[string]string {
		t.Helper()
		dir := t.TempDir()
		result, err := Run(t.Context(), simulate.Options{Dir: dir, Ranks: 2, Points: 1, Raw: 1, Break: rule}, Recording)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, path := range result.Files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(path)] = string(text)
		}
		return all
	}
	sound := files("")
	for _, m := range traceBreaks() {
		broken := files(m.Rule)
		changed := 0
		for _, path := range RecordingFiles(simulate.Options{}) {
			a, had := sound[path]
			b, has := broken[path]
			if a != b || had != has {
				changed++
			}
		}
		if changed != max(1, want[m.Rule]) {
			t.Errorf("%s: %d files differ", m.Rule, changed)
		}
	}
}

// Somebody else's segments with the prefix would be read with the recording.
func TestOccupied(t *testing.T) {
	opt := simulate.Options{Dir: t.TempDir(), Ranks: 1, Points: 1, Raw: 1, Break: finding.TraceGap}
	foreign := filepath.Join(opt.Dir, "recording.worker-1.000007.jsonl.gz")
	if err := os.WriteFile(foreign, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Run(t.Context(), opt, Recording)
	var occupied *OccupiedError
	if !errors.As(err, &occupied) || occupied.Path != foreign {
		t.Errorf("%v", err)
	}
	var option *simulate.OptionError
	opt.Ranks = 0
	if _, err := Run(t.Context(), opt, Recording); err == nil {
		t.Error("a recording of no ranks")
	}
	opt.Break = ""
	if _, err := Run(t.Context(), opt, Recording); !errors.As(err, &option) {
		t.Errorf("%v", err)
	}
	opt.Ranks, opt.Break = 1, finding.TracePorts
	if _, err := Run(t.Context(), opt, RankFiles); !errors.As(err, &option) {
		t.Errorf("a rule about a host: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	opt.Dir, opt.Break = t.TempDir(), ""
	if _, err := Run(ctx, opt, Recording); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
