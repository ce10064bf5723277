package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mount mounts a small file system in memory, or skips the test where that is not
// allowed.
func mount(t *testing.T, size string) (dir string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// refused runs a merge that must end with status 3 and say why.
func refused(t *testing.T, reason, fpm string, args ...string) {
	t.Helper()
	out, err := exec.Command(fpm, args...).CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(string(out), reason) {
		t.Errorf("fpm %s: %v, want status 3 and %q:\n%s", strings.Join(args, " "), err, reason, out)
	}
}

func TestDiskFull(t *testing.T) {
	fpm, run, small := program(t), t.TempDir(), mount(t, "64k")
	target := filepath.Join(small, "merged.json")
	must(t, fpm, "simulate", "run", "-o", run, "--points", "20")
	if err := os.WriteFile(target, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, "no space left on device", fpm, "merge", "--force", "-o", target, run)
	if got := read(t, target); !bytes.Equal(got, []byte("old")) {
		t.Errorf("the target is now %q", got)
	}
	if got := names(t, small); !slices.Equal(got, []string{"merged.json"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestReadOnly(t *testing.T) {
	fpm, run, dir := program(t), t.TempDir(), mount(t, "4m")
	must(t, fpm, "simulate", "run", "-o", run)
	must(t, fpm, "merge", "-o", filepath.Join(dir, "merged.json"), run)
	before := read(t, filepath.Join(dir, "merged.json"))
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot make a file system read-only: ", err)
	}
	refused(t, "read-only file system", fpm, "merge", "-o", filepath.Join(dir, "merged.json"), run)
	refused(t, "read-only file system", fpm, "merge", "-o", filepath.Join(dir, "new.json"), run)
	if got := read(t, filepath.Join(dir, "merged.json")); !bytes.Equal(got, before) || len(names(t, dir)) != 1 {
		t.Errorf("the target changed, or something was left: %v", names(t, dir))
	}
}

// A link to another file system is resolved, so that the temporary file is beside what it
// becomes.
func TestTargetOnAnotherFileSystem(t *testing.T) {
	fpm, run, far := program(t), t.TempDir(), mount(t, "4m")
	must(t, fpm, "simulate", "run", "-o", run)
	link := filepath.Join(run, "far.json")
	if err := os.Symlink(filepath.Join(far, "merged.json"), link); err != nil {
		t.Fatal(err)
	}
	refused(t, "leads nowhere", fpm, "merge", "-o", link, run)
	if err := os.WriteFile(filepath.Join(far, "merged.json"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	must(t, fpm, "merge", "--force", "-o", link, run)
	if got := names(t, far); !slices.Equal(got, []string{"merged.json"}) || len(read(t, filepath.Join(far, "merged.json"))) == 0 {
		t.Errorf("on the other file system: %v", got)
	}
}
