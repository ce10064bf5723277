package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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

// A merge that is killed, at a hundred points from its start to its end, leaves the
// target old or new, whole; the next merge removes what is left of it.
func TestKill(t *testing.T) {
	fpm := program(t)
	run, dir := t.TempDir(), t.TempDir()
	base, target := filepath.Join(run, "benchmark_results.json"), filepath.Join(dir, "merged.json")
	must(t, fpm, "simulate", "run", "-o", run, "--ranks", "4", "--points", "150")
	must(t, fpm, "merge", "-o", target, "--ranks", "0", base)
	old := read(t, target)
	var took time.Duration
	for range 3 {
		begun := time.Now()
		must(t, fpm, "merge", "-o", target, base)
		took = max(took, time.Since(begun))
	}
	fresh := read(t, target)
	if bytes.Equal(old, fresh) {
		t.Fatal("the old merged artifact cannot be told from the new one")
	}

	const points = 100
	killed, torn := 0, 0
	for i := range points {
		if err := os.WriteFile(target, old, 0o666); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(fpm, "merge", "-o", target, base)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(took*time.Duration(i)/points, func() {
			_ = cmd.Process.Kill() // it may have ended by itself
		})
		if err := cmd.Wait(); err != nil {
			killed++
		}
		timer.Stop()
		if got := read(t, target); !bytes.Equal(got, old) && !bytes.Equal(got, fresh) {
			t.Fatalf("killed at point %d: the target is torn: %d bytes", i, len(got))
		}
		if len(names(t, dir)) > 1 {
			torn++
		}
	}
	if killed < points/4 || torn == 0 {
		t.Fatalf("%d of %d merges were killed, %d while they were writing: nothing was tested", killed, points, torn)
	}
	must(t, fpm, "merge", "-o", target, base)
	if got := names(t, dir); !slices.Equal(got, []string{"merged.json"}) {
		t.Errorf("left behind by killed merges: %v", got)
	}
}
