package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mountTmpfs mounts a file system of 1 MiB, or skips the test where that is not allowed.
func mountTmpfs(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := mountTmpfs(t)
	target := filepath.Join(dir, "out.json")
	put(t, target, "old")
	f := create(t, target)
	n, err := f.Write(make([]byte, 2<<20))
	if !errors.Is(err, unix.ENOSPC) || n >= 2<<20 {
		t.Fatalf("%d bytes, %v, want ENOSPC", n, err)
	}
	if want := "cannot write " + f.temp + ": no space left on device"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if again := f.Commit(); again != err {
		t.Errorf("Commit after it: %v", again)
	}
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "old"})
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir := mountTmpfs(t)
	leftover := filepath.Join(dir, ".out.json.fpm-0123456789abcdef.tmp")
	put(t, leftover, "leftover")
	f := create(t, filepath.Join(dir, "other.json"))
	if err := errors.Join(fill(f, "new"), f.Abort()); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot make a file system read-only: ", err)
	}
	_, err := Create(filepath.Join(dir, "out.json"))
	if !errors.Is(err, unix.EROFS) || !strings.HasPrefix(err.Error(), "cannot create "+dir+"/.out.json.fpm-") ||
		!strings.HasSuffix(err.Error(), ".tmp: read-only file system") {
		t.Errorf("%v, want EROFS", err)
	}
	requireDir(t, dir, map[string]string{filepath.Base(leftover): "leftover"})
	if _, err := RemoveRegular(leftover); !errors.Is(err, unix.EROFS) {
		t.Errorf("RemoveRegular: %v, want EROFS", err)
	}
	requireFailures(t, dir, leftover)
}

// requireFailures checks that a leftover that cannot be removed is reported.
func requireFailures(t *testing.T, dir, leftover string) {
	t.Helper()
	handle, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	failures := removeLeftovers(handle, "out.json")
	want := "cannot remove the leftover " + leftover + ": read-only file system"
	if len(failures) != 1 || failures[0].Error() != want {
		t.Errorf("%v, want %s", failures, want)
	}
}

// A target behind a link to another file system is written there, not renamed across.
func TestLinkToOtherFileSystem(t *testing.T) {
	mount, dir := mountTmpfs(t), t.TempDir()
	put(t, filepath.Join(mount, "out.json"), "old")
	link, linkDir := filepath.Join(dir, "link.json"), filepath.Join(dir, "linkdir")
	err := errors.Join(os.Symlink(filepath.Join(mount, "out.json"), link), os.Symlink(mount, linkDir))
	if err != nil {
		t.Fatal(err)
	}
	f := create(t, link)
	if got := filepath.Dir(f.temp); got != mount {
		t.Errorf("the temporary file is in %s, want %s", got, mount)
	}
	if err := errors.Join(fill(f, "new"), f.Commit()); err != nil {
		t.Fatal(err)
	}
	replaceWith(t, filepath.Join(linkDir, "second.json"), "new")
	requireDir(t, mount, map[string]string{"out.json": "new", "second.json": "new"})
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
}
