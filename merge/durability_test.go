package merge

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/simulate"
)

// hook is a Progress that calls a function each time work was done, once all files of a
// run are open.
type hook struct {
	files int
	do    func()
	open  *atomic.Int64
}

func whenOpen(files int, do func()) hook { return hook{files, do, new(atomic.Int64)} }

func (h hook) Expect(int64) { h.open.Add(1) }

func (h hook) Add(int64) {
	if h.open.Load() >= int64(h.files) {
		h.do()
	}
}

// simulated writes a synthetic run and returns the paths of its files.
func simulated(t *testing.T, ranks, points int) []string {
	t.Helper()
	run, err := simulate.Run(context.Background(), simulate.Options{Dir: t.TempDir(), Ranks: ranks, Points: points, Raw: 4})
	if err != nil {
		t.Fatal(err)
	}
	return run.Files
}

// entries lists a directory.
func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// mustMerge merges and returns what was written.
func mustMerge(t *testing.T, opt Options) []byte {
	t.Helper()
	result, err := Run(context.Background(), opt)
	if err != nil || result.Errors > 0 || len(result.Failures) > 0 {
		t.Fatalf("%v %+v", err, result)
	}
	text, err := os.ReadFile(result.Output)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A file that changes while it is read, at any moment from the first byte to the last one
// written, is noticed.
func TestChangedInput(t *testing.T) {
	change := map[string]func(path string) error{
		"appended": func(path string) error {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString(" ")
			return errors.Join(err, f.Close())
		},
		"replaced": func(path string) error {
			text, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+".new", text, 0o666), os.Rename(path+".new", path))
		},
		"removed":   os.Remove,
		"truncated": func(path string) error { return os.Truncate(path, 5000) },
	}
	for name, do := range change {
		for _, rank := range []int{0, 1} {
			for _, writing := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					files := simulated(t, 2, 40)
					target := filepath.Join(t.TempDir(), "merged.json")
					var done atomic.Bool
					opt := Options{Inputs: files[:1], Output: target}
					opt.Progress = whenOpen(len(files), func() {
						if writing && len(entries(t, filepath.Dir(target))) == 0 {
							return // the temporary file is not there yet
						}
						if done.CompareAndSwap(false, true) {
							if err := do(files[rank]); err != nil {
								t.Error(err)
							}
						}
					})
					result, err := Run(context.Background(), opt)
					if err != nil {
						t.Fatal(err)
					}
					if len(result.Failures) == 0 || result.Failures[0].Code != exitcode.Failed || !strings.Contains(result.Failures[0].Error(), files[rank]) {
						t.Errorf("failures %v, want one that names %s", result.Failures, files[rank])
					}
					if left := entries(t, filepath.Dir(target)); len(left) > 0 {
						t.Errorf("left behind: %v", left)
					}
				})
			}
		}
	}
}

// A cancelled merge leaves nothing behind, whenever that happens.
func TestCancel(t *testing.T) {
	files := simulated(t, 3, 40)
	var steps atomic.Int64
	mustMerge(t, Options{Inputs: files[:1], Output: filepath.Join(t.TempDir(), "m.json"), Progress: whenOpen(len(files), func() { steps.Add(1) })})
	for at := range steps.Load() {
		target := filepath.Join(t.TempDir(), "merged.json")
		ctx, cancel := context.WithCancel(context.Background())
		var n atomic.Int64
		result, err := Run(ctx, Options{Inputs: files[:1], Output: target, Progress: whenOpen(len(files), func() {
			if n.Add(1) > at {
				cancel()
			}
		})})
		cancel()
		left := entries(t, filepath.Dir(target))
		switch {
		case errors.Is(err, context.Canceled) && len(left) == 0:
		case err == nil && result.Output != "" && len(left) == 1: // the signal came too late
		default:
			t.Errorf("cancelled at step %d: %v, left %v", at, err, left)
		}
	}
}

func TestStaleSidecar(t *testing.T) {
	files := simulated(t, 2, 2)
	dir := t.TempDir()
	target, sidecar := filepath.Join(dir, "m.json"), filepath.Join(dir, "m_worker_probe.json")
	elsewhere := filepath.Join(t.TempDir(), "kept.json")
	for _, path := range []string{sidecar, elsewhere} {
		if err := os.WriteFile(path, []byte("{}"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mustMerge(t, Options{Inputs: files[:1], Output: target})
	if got := entries(t, dir); len(got) != 1 {
		t.Errorf("the sidecar of an earlier run is still there: %v", got)
	}
	if err := os.Symlink(elsewhere, sidecar); err != nil {
		t.Fatal(err)
	}
	mustMerge(t, Options{Inputs: files[:1], Output: target})
	if _, err := os.Lstat(sidecar); err != nil {
		t.Error("a link at the sidecar's name was removed:", err)
	}
	if _, err := os.Stat(elsewhere); err != nil {
		t.Error("what the link leads to was removed:", err)
	}
}

// A sidecar that belongs to the old merged file stays when the merge fails.
func TestSidecarOfFailedMerge(t *testing.T) {
	files := simulated(t, 2, 2)
	dir := t.TempDir()
	sidecar := filepath.Join(dir, "m_worker_probe.json")
	if err := os.WriteFile(sidecar, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(files[1], 100); err != nil {
		t.Fatal(err)
	}
	if result, err := Run(context.Background(), Options{Inputs: files[:1], Output: filepath.Join(dir, "m.json")}); err != nil || result.Errors == 0 {
		t.Fatal(err, result)
	}
	if _, err := os.Stat(sidecar); err != nil {
		t.Error(err)
	}
}

func TestTarget(t *testing.T) {
	files := simulated(t, 2, 2)
	other, err := simulate.Run(context.Background(), simulate.Options{Dir: t.TempDir(), Ranks: 1, Points: 2, Raw: 2, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	want := mustMerge(t, Options{Inputs: files[:1]})
	foreign := mustMerge(t, Options{Inputs: other.Files})
	for _, tc := range []struct {
		name    string
		content []byte
		force   bool
		replace bool
	}{
		{"absent", nil, false, true},
		{"merged artifact of this run", want[:len(want)-40], false, true},
		{"merged artifact of another run", foreign, false, false},
		{"merged artifact of another run", foreign, true, true},
		{"rank artifact", []byte(`{"artifact_type": "rank", "run_id": "x"}`), false, false},
		{"something else", []byte("notes"), false, false},
		{"something else", []byte("notes"), true, true},
		{"empty file", []byte{}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			link, target := filepath.Join(dir, "link.json"), filepath.Join(dir, "m.json")
			if err := os.Symlink("m.json", link); err != nil {
				t.Fatal(err)
			}
			path := target
			if tc.content != nil {
				path = link // is resolved, and stays a link
				if err := os.WriteFile(target, tc.content, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			result, err := Run(context.Background(), Options{Inputs: files[:1], Output: path, Force: tc.force})
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(target)
			if err != nil {
				t.Fatal(err)
			}
			if tc.replace != (len(result.Failures) == 0) {
				t.Fatalf("failures %v", result.Failures)
			}
			if !tc.replace && !bytes.Equal(got, tc.content) {
				t.Error("the target was changed")
			}
			if tc.replace && !bytes.Contains(got, []byte(`"artifact_type": "merged"`)) {
				t.Error("the target was not replaced")
			}
			if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Error("the link was replaced", err)
			}
		})
	}
}
