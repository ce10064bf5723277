package input

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A full disk under the spool is an error that names the directory and the reason.
func TestSpoolDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	spool := NewSpool(dir)
	defer spool.Close()
	f := compressed(t, 8<<20, spool)
	defer f.Close()
	_, err := f.ReadAt(make([]byte, 1), 4<<20)
	if _, ok := errors.AsType[*SpoolError](err); !ok || !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("%v, want a SpoolError for a full disk", err)
	}
	if !strings.Contains(err.Error(), dir+": no space left on device") {
		t.Errorf("%v does not say where and why", err)
	}
	if _, err := f.ReadAt(make([]byte, 100), 0); err != nil {
		t.Errorf("the text that is there cannot be read: %v", err)
	}
}
