package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// program returns a path at which this test program is fpm.
func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fpm")
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// must runs a command that has to succeed.
func must(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A merge whose disk takes no more, at ten points of its write, leaves the target as
// it was and nothing beside it. A limit on the size of files stands in for the disk.
func TestNoMoreRoom(t *testing.T) {
	w := newWriting(t)
	const points = 10
	for i := range points {
		hasNoRoom(t, len(w.fresh)*i/points, w.fpm, "merge", "-o", w.target, w.base)
		if got := read(t, w.target); !bytes.Equal(got, w.old) {
			t.Fatalf("stopped at point %d: the target is torn: %d bytes", i, len(got))
		}
		if got := names(t, w.dir); len(got) != 1 {
			t.Fatalf("stopped at point %d: left behind: %v", i, got)
		}
	}
}

// hasNoRoom runs a program that must fail when a file that it writes gets longer than a
// size, rounded down to a block.
func hasNoRoom(t *testing.T, size int, name string, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs sh to limit the size of files")
	}
	const block = 512 // what ulimit counts
	limit := []string{"-c", `ulimit -f "$1" && shift && exec "$@"`, "sh", strconv.Itoa(size / block), name}
	out, err := exec.Command("sh", append(limit, args...)...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || strings.Count(string(out), "file too large") != 1 {
		t.Fatalf("%s with at most %d bytes: %v, want status 3 and the reason once:\n%.300s", name, size, err, out)
	}
}

// A merge that is killed, at thirty points of its write, leaves the target old or new,
// whole; the next merge removes what is left of it. The kill waits for the temporary file
// to have a size: no time, which a loaded machine stretches, has to be guessed. What
// happens between the two is up to the merge, and each end is one that must hold.
func TestKill(t *testing.T) {
	w := newWriting(t)
	const points = 30
	torn := 0
	for i := range points {
		if err := os.WriteFile(w.target, w.old, 0o666); err != nil {
			t.Fatal(err)
		}
		ended := killedAt(t, w.target, len(w.fresh)*i/points, w.fpm, "merge", "-o", w.target, w.base)
		got, left := read(t, w.target), names(t, w.dir)
		switch {
		case ended == nil && !bytes.Equal(got, w.fresh):
			t.Fatalf("point %d: the merge came to its end, and the target is not the new one: %d bytes", i, len(got))
		case len(left) > 1 && !bytes.Equal(got, w.old): // the temporary file is still one
			t.Fatalf("killed at point %d: the target is torn: %d bytes beside %v", i, len(got), left)
		case !bytes.Equal(got, w.old) && !bytes.Equal(got, w.fresh):
			t.Fatalf("killed at point %d: the target is torn: %d bytes", i, len(got))
		}
		torn += len(left) - 1
	}
	t.Logf("%d of %d merges were killed while they were writing", torn, points)
	must(t, w.fpm, "merge", "-o", w.target, w.base)
	if got := read(t, w.target); !bytes.Equal(got, w.fresh) {
		t.Errorf("a merge after them wrote %d bytes, want %d", len(got), len(w.fresh))
	}
	if got := names(t, w.dir); !slices.Equal(got, []string{"merged.json"}) {
		t.Errorf("left behind by killed merges: %v", got)
	}
}

// killedAt runs a program and kills it when its temporary file for a target has a size. It
// returns how the program ended, nil when that was before the kill. What earlier programs
// left behind is not there any more when the new file is: it is made after they are gone.
func killedAt(t *testing.T, target string, size int, name string, args ...string) error {
	t.Helper()
	before := map[string]bool{}
	for _, name := range names(t, filepath.Dir(target)) {
		before[name] = true
	}
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			return err
		default:
		}
		for _, name := range names(t, filepath.Dir(target)) {
			info, err := os.Stat(filepath.Join(filepath.Dir(target), name))
			if !before[name] && err == nil && info.Size() >= int64(size) {
				_ = cmd.Process.Kill() // it may have ended by itself
				return <-ended
			}
		}
	}
}

// writing is a merge over an older merged artifact.
type writing struct {
	fpm, base, dir, target string
	old, fresh             []byte // what the target holds before and after
}

func newWriting(t *testing.T) *writing {
	t.Helper()
	run, dir := t.TempDir(), t.TempDir()
	w := &writing{fpm: program(t), base: filepath.Join(run, "benchmark_results.json"), dir: dir, target: filepath.Join(dir, "merged.json")}
	must(t, w.fpm, "simulate", "run", "-o", run, "--ranks", "4", "--points", "100")
	must(t, w.fpm, "merge", "-o", w.target, w.base)
	w.fresh = read(t, w.target)
	must(t, w.fpm, "merge", "-o", w.target, "--ranks", "0", w.base)
	w.old = read(t, w.target)
	if bytes.Equal(w.old, w.fresh) {
		t.Fatal("the old merged artifact cannot be told from the new one")
	}
	return w
}
