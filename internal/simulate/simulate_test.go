package simulate_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/google/go-cmp/cmp"
)

// makeRun writes a run into a directory of its own and returns the texts of its files.
func makeRun(t testing.TB, opt simulate.Options) []string {
	t.Helper()
	opt.Dir = t.TempDir()
	result, err := simulate.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	var size int64
	for _, path := range result.Files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
		size += int64(len(text))
	}
	if size != result.Bytes {
		t.Errorf("the files have %d bytes, said to be %d", size, result.Bytes)
	}
	return texts
}

// shapes are runs of every kind.
func shapes() []simulate.Options {
	return []simulate.Options{
		{Ranks: 1, Points: 1, Raw: 1},
		{Ranks: 1, Points: 2, Raw: 2, Seed: 1},
		{Ranks: 2, Points: 8, Raw: 4, Seed: 2, Shuffle: true},
		{Ranks: 3, Points: 60, Raw: 3, Seed: 3},
		{Ranks: 2, Points: 5, Raw: 4, Seed: 4, Legacy: true},
		{Ranks: 2, Points: 9, Raw: 2, Seed: 5, Legacy: true, Shuffle: true},
	}
}

func TestFilesHaveTheLayoutOfPython(t *testing.T) {
	for _, opt := range shapes() {
		for _, text := range makeRun(t, opt) {
			var want bytes.Buffer
			if err := json.Indent(&want, []byte(text), "", "  "); err != nil {
				t.Fatal(err)
			}
			if text != want.String() {
				t.Errorf("%+v: the layout is not that of json.dump(indent=2)", opt)
			}
		}
	}
}

func TestFileNames(t *testing.T) {
	dir := t.TempDir()
	result, err := simulate.Run(t.Context(), simulate.Options{Dir: dir, Base: "a.b.json", Ranks: 3, Points: 1, Raw: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(dir, "a.b.json"), filepath.Join(dir, "a.b_dp1.json"), filepath.Join(dir, "a.b_dp2.json")}
	if diff := cmp.Diff(want, result.Files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.b.json", "a.b_dp1.json", "a.b_dp2.json"}, list(t, dir)); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Runs are fixtures elsewhere: their bytes change for no machine and for no release but
// one that says so.
func TestBytesArePinned(t *testing.T) {
	for _, pin := range []struct {
		opt  simulate.Options
		want string
	}{
		{simulate.Options{Ranks: 2, Points: 40, Raw: 4, Seed: 7, Shuffle: true}, "8a2e264ffe8c359246d7d512ae57a0e74e3ea5c86b260a65b65491f092fbce1c"},
		{simulate.Options{Ranks: 2, Points: 40, Raw: 4, Seed: 7, Legacy: true}, "229a976289d48355701581921836897b1c73ce250dcc77c170c2e982e4a107c2"},
	} {
		sum := sha256.Sum256([]byte(strings.Join(makeRun(t, pin.opt), "\n")))
		if got := hex.EncodeToString(sum[:]); got != pin.want {
			t.Errorf("%+v has digest %s, want %s", pin.opt, got, pin.want)
		}
	}
}

func TestOptionsChangeTheRun(t *testing.T) {
	opt := simulate.Options{Ranks: 2, Points: 6, Raw: 3, Seed: 1}
	plain := makeRun(t, opt)
	if diff := cmp.Diff(plain, makeRun(t, opt)); diff != "" {
		t.Errorf("equal options, other bytes:\n%s", diff)
	}
	for name, change := range map[string]func(*simulate.Options){
		"seed":    func(o *simulate.Options) { o.Seed++ },
		"raw":     func(o *simulate.Options) { o.Raw++ },
		"shuffle": func(o *simulate.Options) { o.Shuffle = true },
		"legacy":  func(o *simulate.Options) { o.Legacy = true },
	} {
		other := opt
		change(&other)
		if slices.Equal(makeRun(t, other), plain) {
			t.Errorf("the option %s changes nothing", name)
		}
	}
}

func TestOptionErrors(t *testing.T) {
	good := simulate.Options{Dir: t.TempDir(), Ranks: 1, Points: 1, Raw: 1}
	for _, c := range []struct {
		name   string
		change func(*simulate.Options)
		want   string
	}{
		{"no ranks", func(o *simulate.Options) { o.Ranks = 0 }, "ranks 0: must be from 1 to 65536"},
		{"too many ranks", func(o *simulate.Options) { o.Ranks = 65537 }, "ranks 65537: must be from 1 to 65536"},
		{"no points", func(o *simulate.Options) { o.Points = -1 }, "points -1: must be from 1 to 16777216"},
		{"no samples", func(o *simulate.Options) { o.Raw = 0 }, "raw 0: must be from 1 to 65536"},
		{"no directory", func(o *simulate.Options) { o.Dir = "" }, `directory "": must name where the files go`},
		{"path", func(o *simulate.Options) { o.Base = "a/b.json" }, `base "a/b.json": must be a file name, without a directory`},
		{"parent", func(o *simulate.Options) { o.Base = ".." }, `base "..": must be a file name, without a directory`},
		{"rank", func(o *simulate.Options) { o.Base = "a_dp1.json" }, `base "a_dp1.json": must not itself end in a rank, such as _dp1`},
		{"gzip", func(o *simulate.Options) { o.Base = "a.json.gz" }, `base "a.json.gz": must not end in .gz or .zst: the files are written uncompressed`},
		{"rule", func(o *simulate.Options) { o.Break = "no.rule" }, "break no.rule: no run is made to break this rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opt := good
			c.change(&opt)
			_, err := simulate.Run(t.Context(), opt)
			var problem *simulate.OptionError
			if !errors.As(err, &problem) || problem.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			if names := list(t, good.Dir); len(names) > 0 {
				t.Errorf("left behind %v", names)
			}
		})
	}
}

func TestExcluded(t *testing.T) {
	for _, b := range simulate.Breakable() {
		one := simulate.Options{Dir: t.TempDir(), Ranks: 1, Points: 1, Raw: 1, Break: b.Rule}
		old := one
		old.Legacy, old.Ranks, old.Points = true, 2, 2
		checkExcluded(t, one, b.MinRanks > 1 || b.MinPoints > 1)
		checkExcluded(t, old, b.Evidence)
	}
}

// checkExcluded runs with the options and expects that they exclude the break, or not.
func checkExcluded(t *testing.T, opt simulate.Options, excluded bool) {
	t.Helper()
	_, err := simulate.Run(t.Context(), opt)
	if !excluded {
		if err != nil {
			t.Errorf("%+v: %v", opt, err)
		}
		return
	}
	var e *simulate.ExcludedError
	if !errors.As(err, &e) {
		t.Fatalf("%+v: error %v, want an ExcludedError", opt, err)
	}
	if e.Rule != opt.Break || !strings.Contains(e.Error(), e.Need) || e.Need == "" {
		t.Errorf("%+v: the error says %q", opt, e)
	}
}

// ofRankArtifacts tells whether a rule is one that rank artifacts alone can break.
func ofRankArtifacts(rule finding.Rule) bool {
	merged := strings.HasPrefix(string(rule.ID), "merged.")
	return rule.Level == finding.Strict || rule.Level == finding.Merge && !merged || rule.ID == finding.ProbeNoEngine
}

func TestEveryRuleOfRankArtifactsIsBreakable(t *testing.T) {
	var want, got []finding.ID
	for _, rule := range finding.Rules() {
		if ofRankArtifacts(rule) {
			want = append(want, rule.ID)
		}
	}
	for _, b := range simulate.Breakable() {
		got = append(got, b.Rule)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("breakable rules (-rule table +breakable):\n%s", diff)
	}
}

func TestOlderFilesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	opt := simulate.Options{Dir: dir, Ranks: 2, Points: 2, Raw: 1}
	outside := filepath.Join(t.TempDir(), "outside")
	write(t, outside, "kept")
	write(t, filepath.Join(dir, "benchmark_results.json"), "old")
	write(t, filepath.Join(dir, "benchmark_results.json.tmp"), "left by a killed run")
	if err := os.Symlink(outside, filepath.Join(dir, "benchmark_results_dp1.json.tmp")); err != nil {
		t.Fatal(err)
	}
	result, err := simulate.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	want := makeRun(t, opt)
	for rank, path := range result.Files {
		if got := read(t, path); got != want[rank] {
			t.Errorf("%s has other bytes than in an empty directory", path)
		}
	}
	if got := read(t, outside); got != "kept" {
		t.Errorf("a link was followed, its target is now %q", got)
	}
	if names := list(t, dir); len(names) != 2 {
		t.Errorf("left behind: %v", names)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// stopping is a context that ends after it was asked a number of times, so that a run is
// stopped at any of the places where it looks.
type stopping struct {
	context.Context
	left int
}

func (s *stopping) Err() error {
	s.left--
	if s.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancelledRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "benchmark_results.json")
	write(t, old, "old")
	opt := simulate.Options{Dir: dir, Ranks: 3, Points: 4, Raw: 2}
	looks := 0
	for ; ; looks++ {
		_, err := simulate.Run(&stopping{t.Context(), looks}, opt)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if names := list(t, dir); len(names) != 1 || read(t, old) != "old" {
			t.Fatalf("stopped at look %d, the directory has %v", looks, names)
		}
	}
	if looks < opt.Points+opt.Ranks {
		t.Errorf("the run looked only %d times whether it should stop", looks)
	}
}

func TestFailedRunLeavesNoTemporaryFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "benchmark_results_dp1.json"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := simulate.Run(t.Context(), simulate.Options{Dir: dir, Ranks: 3, Points: 1, Raw: 1})
	if err == nil {
		t.Fatal("a directory was replaced by a file")
	}
	for _, name := range list(t, dir) {
		if strings.HasSuffix(name, ".tmp") {
			t.Errorf("left behind: %s", name)
		}
	}
}

func TestDirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := simulate.Run(t.Context(), simulate.Options{Dir: file, Ranks: 1, Points: 1, Raw: 1}); err == nil {
		t.Error("a run was written into a file")
	}
}

// A run is written as it is made.
func TestMemoryStaysSmall(t *testing.T) {
	opt := simulate.Options{Dir: t.TempDir(), Ranks: 4, Points: 800, Raw: 4}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, err := simulate.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > result.Bytes/4 {
		t.Errorf("the heap grew by %d bytes for files of %d", grown, result.Bytes)
	}
}

func BenchmarkRun(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		result, err := simulate.Run(b.Context(), simulate.Options{Dir: dir, Ranks: 4, Points: 100, Raw: 4})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(result.Bytes)
	}
}
