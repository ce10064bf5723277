package validate

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/merge"
)

// simulated writes a run and returns its files.
func simulated(t testing.TB, opt simulate.Options) []string {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	done, err := simulate.Run(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return done.Files
}

func checked(t testing.TB, opt Options) *Result {
	t.Helper()
	result, err := Validate(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func mergedOf(t testing.TB, files []string, output string) {
	t.Helper()
	result, err := merge.Run(context.Background(), merge.Options{Inputs: files, Explicit: true, Subset: true, Output: output})
	if err != nil || result.Output == "" {
		t.Fatalf("%v, %+v", err, result)
	}
}

func rulesOf(findings []finding.Finding) []string {
	rules := map[string]bool{}
	for _, f := range findings {
		rules[string(f.Rule)] = true
	}
	return slices.Sorted(maps.Keys(rules))
}

func codes(result *Result) (codes []exitcode.Code) {
	for _, f := range result.Failures {
		codes = append(codes, f.Code)
	}
	return codes
}

func TestRunsAreToldApart(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	small := simulate.Options{Ranks: 2, Points: 2, Raw: 2}
	for name, seed := range map[string]uint64{"a": 1, "b": 2} {
		opt := small
		opt.Dir, opt.Seed = filepath.Join(root, name), seed
		simulated(t, opt)
	}
	result := checked(t, Options{Paths: []string{root}, Strict: true})
	if result.Errors != 0 || len(result.Runs) != 2 || len(result.Failures) != 0 {
		t.Fatalf("%d errors, %d runs, failures %v", result.Errors, len(result.Runs), result.Failures)
	}
	for _, run := range result.Runs {
		if run.Merge != Accepted || run.Strict != Accepted || len(run.Facts) != 2 || run.RunID == "" {
			t.Errorf("%+v", run)
		}
	}
}

// The ranks of one run may stand in one folder each, by the node that wrote them.
func TestRanksOfSeveralFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := simulated(t, simulate.Options{Ranks: 3, Points: 2, Raw: 2})
	for i, file := range files {
		node := filepath.Join(root, string(rune('a'+i)))
		if err := os.Mkdir(node, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file, filepath.Join(node, filepath.Base(file))); err != nil {
			t.Fatal(err)
		}
	}
	result := checked(t, Options{Paths: []string{root}})
	if result.Errors != 0 || len(result.Runs) != 1 || len(result.Runs[0].Facts) != 3 {
		t.Errorf("%d errors, runs %+v", result.Errors, result.Runs)
	}
}

// Copies of a run in two folders are two runs; two files of one rank in one folder are a
// fault.
func TestCopies(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, name := range []string{"a", "b"} {
		simulated(t, simulate.Options{Dir: filepath.Join(root, name), Ranks: 2, Points: 2, Raw: 2})
	}
	result := checked(t, Options{Paths: []string{root}})
	if result.Errors != 0 || len(result.Runs) != 2 {
		t.Errorf("%d runs, %v", len(result.Runs), result.Findings)
	}
	text, err := os.ReadFile(filepath.Join(root, "a", "benchmark_results_dp1.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "again.json"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	result = checked(t, Options{Paths: []string{root}})
	if d := cmp.Diff([]string{"rank.dp"}, rulesOf(result.Findings)); d != "" || len(result.Runs) != 2 {
		t.Errorf("%d runs, %s", len(result.Runs), d)
	}
}

// A rank file that an earlier run left behind is found, although its run_id is another.
func TestLeftRankFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	simulated(t, simulate.Options{Dir: root, Ranks: 3, Points: 2, Raw: 2, Seed: 1})
	simulated(t, simulate.Options{Dir: root, Ranks: 2, Points: 2, Raw: 2, Seed: 2})
	result := checked(t, Options{Paths: []string{root}})
	if len(result.Runs) != 1 || !slices.Contains(rulesOf(result.Findings), "run.id") {
		t.Errorf("%d runs, rules %v", len(result.Runs), rulesOf(result.Findings))
	}
}

// The order and the form of the arguments, and the number of processors, change nothing.
func TestSameReport(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := simulated(t, simulate.Options{Dir: root, Ranks: 4, Points: 3, Raw: 2, Break: finding.SampleEstimate})
	mergedOf(t, simulated(t, simulate.Options{Ranks: 2, Points: 2, Raw: 2, Seed: 3}), filepath.Join(root, "m.json"))
	paths := append(slices.Clone(files), filepath.Join(root, "m.json"))
	want := checked(t, Options{Paths: paths, Strict: true, MaxFindings: 7})
	random := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		for _, given := range [][]string{paths, {root}, {filepath.Join(root, "*")}, append(slices.Clone(paths), root)} {
			got := checked(t, Options{Paths: given, Strict: true, MaxFindings: 7})
			if d := cmp.Diff(want.Findings, got.Findings); d != "" || got.Errors != want.Errors {
				t.Fatalf("%d errors, want %d; %s", got.Errors, want.Errors, d)
			}
			if d := cmp.Diff(want.Files, got.Files); d != "" {
				t.Fatal(d)
			}
		}
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	empty, texts := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(texts, "notes.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]exitcode.Code{
		empty:                          exitcode.Usage,
		texts:                          exitcode.Usage,
		filepath.Join(empty, "*.json"): exitcode.Usage,
		filepath.Join(empty, "[.json"): exitcode.Usage,
		filepath.Join(empty, "no"):     exitcode.Failed,
		"-":                            exitcode.Usage,
		"":                             exitcode.Usage,
	} {
		result := checked(t, Options{Paths: []string{path}})
		if d := cmp.Diff([]exitcode.Code{want}, codes(result)); d != "" || len(result.Failures[0].Message) == 0 {
			t.Errorf("%q: %s", path, d)
		}
	}
}

// What is no artifact is a fault where it was named, or where there is nothing else.
func TestUnknownFiles(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	note := filepath.Join(root, "note.json")
	if err := os.WriteFile(note, []byte(`{"backend": "vllm", "request_throughput": 1, "mean_ttft_ms": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	alone := checked(t, Options{Paths: []string{root}})
	if d := cmp.Diff([]string{"input.kind"}, rulesOf(alone.Findings)); d != "" || !alone.Files[0].Rejected {
		t.Error(d)
	}
	if !strings.Contains(alone.Findings[0].Actual, "serving benchmark") {
		t.Errorf("it is not named: %+v", alone.Findings[0])
	}
	simulated(t, simulate.Options{Dir: root, Ranks: 1, Points: 2, Raw: 2})
	beside := checked(t, Options{Paths: []string{root}})
	if beside.Errors != 0 {
		t.Errorf("a file beside a run is a fault: %v", beside.Findings)
	}
	i := slices.IndexFunc(beside.Files, func(f File) bool { return f.Path == note })
	if i < 0 || beside.Files[i].Checked || beside.Files[i].Kind != detect.Foreign {
		t.Errorf("%+v", beside.Files)
	}
	if named := checked(t, Options{Paths: []string{root, note}}); named.Errors != 1 {
		t.Errorf("a file that was named is no fault: %v", named.Findings)
	}
}

func TestKindOverrides(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for kind, rule := range map[detect.Kind]string{detect.Rank: "rank.status", detect.Merged: "merged.schema"} {
		result := checked(t, Options{Paths: []string{file}, Kind: kind})
		if !slices.Contains(rulesOf(result.Findings), rule) {
			t.Errorf("as %s: %v", kind, rulesOf(result.Findings))
		}
	}
}

func TestMergedFrom(t *testing.T) {
	t.Parallel()
	files := simulated(t, simulate.Options{Ranks: 2, Points: 2, Raw: 2})
	merged := filepath.Join(t.TempDir(), "m.json")
	mergedOf(t, files, merged)
	sound := checked(t, Options{Paths: []string{merged}, MergedFrom: files})
	if sound.Errors != 0 || len(sound.Merged) != 1 || !sound.Merged[0].Compared {
		t.Fatalf("%v, %+v", sound.Findings, sound.Merged)
	}
	if alone := checked(t, Options{Paths: []string{merged}}); alone.Errors != 0 || alone.Merged[0].Compared {
		t.Errorf("%v, %+v", alone.Findings, alone.Merged)
	}
	if beside := checked(t, Options{Paths: append(slices.Clone(files), merged)}); beside.Errors != 0 || !beside.Merged[0].Compared {
		t.Errorf("%v, %+v", beside.Findings, beside.Merged)
	}
	text, err := os.ReadFile(merged)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), `"block_size": `, `"block_size": 1`, 1)
	if changed == string(text) {
		t.Fatal("nothing was changed")
	}
	if err := os.WriteFile(merged, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	differs := checked(t, Options{Paths: []string{merged}, MergedFrom: []string{filepath.Dir(files[0])}})
	if len(differs.Findings) != 1 || differs.Findings[0].Rule != finding.MergedDiffers || differs.Findings[0].Pointer != "/limits/block_size" {
		t.Errorf("%+v", differs.Findings)
	}
	for _, paths := range [][]string{files, {merged, merged + ".2"}} {
		if paths[0] == merged {
			mergedOf(t, files, paths[1])
		}
		if got := codes(checked(t, Options{Paths: paths, MergedFrom: files})); !slices.Equal(got, []exitcode.Code{exitcode.Usage}) {
			t.Errorf("%v: %v", paths, got)
		}
	}
}

// FuzzValidate changes bytes of a run or of its merged artifact. Nothing panics, and what
// the rules of a merge say is what a merge says.
func FuzzValidate(f *testing.F) {
	files := simulated(f, simulate.Options{Ranks: 2, Points: 2, Raw: 2})
	merged := filepath.Join(filepath.Dir(files[0]), "merged.json")
	mergedOf(f, files, merged)
	var texts []string
	for _, path := range append(files, merged) {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for i, place := range []string{`"artifact_type"`, `"dp"`, `"prompts"`, `"records"`, `"config"`, `"kvwarm"`, `"kv_seed_regime"`, `"sample_reasons"`,
		`"scheduled_requests"`, `"wall_time"`, `"requests"`, `"timing"`, `"coverage"`, `"skipped_points"`, `"rank_files"`, `"cudagraph"`} {
		for n, text := range texts {
			if at := strings.Index(text, place); at >= 0 {
				f.Add(byte(n), uint16(at), byte(0), []byte(`"x": 1, `))
				f.Add(byte(n), uint16(at), byte(i), []byte("null"))
				f.Add(byte(n), uint16(at+len(place)+2), byte(1), []byte("-1e99"))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which byte, at uint16, remove byte, insert []byte) {
		which %= byte(len(texts))
		text := texts[which]
		from := int(at) * (1 + len(text)/(1<<16)) % (len(text) + 1)
		changed := text[:from] + string(insert) + text[min(from+int(remove), len(text)):]
		dir := t.TempDir()
		var paths []string
		for i, text := range texts {
			if i == int(which) {
				text = changed
			}
			path := filepath.Join(dir, []string{"run.json", "run_dp1.json", "merged.json"}[i])
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		result := checked(t, Options{Paths: paths, Strict: true, Schema: at%8 == 0}) // compiling a schema takes longer than the rest
		if len(result.Failures) > 0 {
			t.Fatalf("a text cannot be read: %v", result.Failures)
		}
		for _, run := range result.Runs {
			if len(run.Files) != 2 {
				return // the change makes a file another kind or of another run
			}
			opt := merge.Options{Inputs: run.Files, Explicit: true, CheckOnly: true}
			if m, err := merge.Run(context.Background(), opt); err != nil || (m.Errors > 0) != (run.Merge == Rejected) {
				t.Fatalf("a merge says %v, %v; validate says %s", m.Findings, err, run.Merge)
			}
		}
	})
}

// Of files that nobody knows all are told of when there is nothing else, and those alone
// that were named when there is.
func TestEveryUnknownFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(root, name)
		if err := os.WriteFile(path, []byte(`{"a": 1}`), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	paths := []string{write("a.json"), write("b.json"), write("c.json")}
	files := func(result *Result) (files []string) {
		for _, f := range result.Findings {
			if f.Rule == finding.InputKind {
				files = append(files, f.File)
			}
		}
		return files
	}
	if d := cmp.Diff(paths, files(checked(t, Options{Paths: []string{root}}))); d != "" {
		t.Errorf("alone: %s", d)
	}
	simulated(t, simulate.Options{Dir: root, Ranks: 1, Points: 1, Raw: 1})
	if d := cmp.Diff([]string(nil), files(checked(t, Options{Paths: []string{root}}))); d != "" {
		t.Errorf("beside a run: %s", d)
	}
	if d := cmp.Diff(paths[1:2], files(checked(t, Options{Paths: []string{root, paths[1]}}))); d != "" {
		t.Errorf("beside a run, one of them named: %s", d)
	}
}

// Whatever the order of the arguments, and however the same file is spelled in them, the
// result is the same.
func TestOrderOfArguments(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := simulated(t, simulate.Options{Dir: root, Ranks: 2, Points: 1, Raw: 1, Break: finding.GroupWallTime})
	unknown := filepath.Join(root, "x.json")
	if err := os.WriteFile(unknown, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	odd := func(path string) string { return filepath.Dir(path) + "/./" + filepath.Base(path) }
	paths := append([]string{root, odd(files[1]), odd(unknown), filepath.Join(root, "b", "gone.json"), filepath.Join(root, "a", "gone.json"),
		filepath.Join(root, "none*"), "", "-"}, files...)
	want := checked(t, Options{Paths: paths})
	if len(want.Failures) != 5 || len(want.Files) != 3 || want.Errors != 2 {
		t.Fatalf("%d failures, %d files, %d errors", len(want.Failures), len(want.Files), want.Errors)
	}
	if got := codes(checked(t, Options{Paths: []string{""}})); !slices.Equal(got, []exitcode.Code{exitcode.Usage}) {
		t.Errorf("an empty path: %v", got)
	}
	text := func(r *Result) (lines []string) {
		for _, f := range r.Failures {
			lines = append(lines, f.Error())
		}
		return lines
	}
	for range 20 {
		rand.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		got := checked(t, Options{Paths: paths})
		if d := cmp.Diff(text(want), text(got)); d != "" {
			t.Fatal(d)
		}
		if d := cmp.Diff(want.Findings, got.Findings) + cmp.Diff(want.Files, got.Files); d != "" {
			t.Fatal(d)
		}
	}
}

// Of the faults of a list with very many broken entries all are counted, and next to none
// is put into words: an entry with up to eight of them costs a few allocations.
func TestManyBrokenEntries(t *testing.T) {
	const entries = 200_000
	file := simulated(t, simulate.Options{Ranks: 1, Points: 1, Raw: 2})[0]
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const fpm = "/iteration_groups/0/rank_results/0/fpms/0/benchmark_measurement"
	for _, test := range []struct {
		pointer, entry string
		each           int // errors of an entry
	}{
		{"/iteration_groups", `{}`, 6},
		{"/iteration_groups", `0`, 1},
		{"/iteration_groups/0/rank_results", `{}`, 2},
		{fpm + "/prompts/requests", `{}`, 3},
		{fpm + "/raw_fpms", `{"benchmark_sample": {}}`, 8},
		{"/results", `{}`, 2},
		{"/results", `{"point": {"benchmark_id": 1}}`, 2},
		{"/warmup_evidence/records", `{}`, 4},
	} {
		root := jsontest.Parse(t, string(sound))
		jsontest.Apply(t, root, jsontest.Set(test.pointer, `["entries"]`))
		text := strings.Replace(string(root.AppendCompact(nil)), `"entries"`, strings.Repeat(test.entry+",", entries-1)+test.entry, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		result := checked(t, Options{Paths: []string{file}, Strict: true, MaxFindings: 100})
		runtime.ReadMemStats(&after)
		const other = 20 // of the list, and of what is held against it
		if result.Errors < test.each*entries-other || result.Errors > test.each*entries+other || len(result.Findings) != 100 {
			t.Errorf("%s of %s: %d errors, %d findings", test.pointer, test.entry, result.Errors, len(result.Findings))
		}
		if n := after.Mallocs - before.Mallocs; n > 6*entries {
			t.Errorf("%s of %s: %d allocations", test.pointer, test.entry, n)
		}
	}
}
