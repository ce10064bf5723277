package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// startFleet starts a fleet of one rank at an IPC address.
func startFleet(t *testing.T, fpm, sockets string, args ...string) {
	t.Helper()
	fleet := exec.Command(fpm, append([]string{"simulate", "stream", "--ipc-base", sockets, "--load", "steady", "--worker-id", "w", "--quiet"}, args...)...)
	if err := fleet.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = fleet.Process.Kill()
		_ = fleet.Wait()
	})
}

// A disk that fills and is freed again costs nothing that fits into memory.
func TestRecordDiskFull(t *testing.T) {
	t.Parallel()
	fpm, small, sockets := program(t), mount(t, "256k"), filepath.Join(t.TempDir(), "s")
	r := startRecord(t, fpm, small, "--ipc-base", sockets, "--mode", "full")
	r.stderr.has(t, "nothing received", 1) // so the first manifest is there
	ballast := filepath.Join(small, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o666); err == nil {
		t.Fatal("the disk is not full")
	}
	startFleet(t, fpm, sockets, "--rate", "500")
	r.stderr.has(t, "writing failed", 1)
	if !strings.Contains(r.stderr.String(), "no space left on device") {
		t.Errorf("it does not say why:\n%s", r.stderr)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	r.stderr.has(t, "its files are written again", 1)
	if status := r.stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d\n%s%s", status, r.stdout.String(), r.stderr)
	}
	m := r.manifest()
	last := map[float64]float64{}
	if !rowsOf(t, filepath.Join(small, "t.w.000000.jsonl.gz"), last) || !m.Complete || m.Totals.Written != m.Totals.Received {
		t.Errorf("%+v", m)
	}
	if s := m.Producers[0].Streams[0]; s.Written != uint64(s.Last-s.First+1) || last[0] != float64(s.Last) {
		t.Errorf("%+v, last row %v", s, last)
	}
}

// A recording that ends while the disk is full leaves whole members, and no part of one.
func TestRecordEndsOnFullDisk(t *testing.T) {
	t.Parallel()
	fpm, small, sockets := program(t), mount(t, "256k"), filepath.Join(t.TempDir(), "s")
	r := startRecord(t, fpm, small, "--ipc-base", sockets, "--mode", "full")
	r.stderr.has(t, "nothing received", 1) // so the first manifest is there
	if err := os.WriteFile(filepath.Join(small, "ballast"), make([]byte, 160<<10), 0o666); err != nil {
		t.Fatal(err)
	}
	startFleet(t, fpm, sockets, "--rate", "2000")
	r.stderr.has(t, "writing failed", 1)
	segment := filepath.Join(small, "t.w.000000.jsonl.gz")
	whole := func() {
		t.Helper()
		if last := map[float64]float64{}; !rowsOf(t, segment, last) || len(last) == 0 {
			t.Errorf("the segment does not end with a whole member; last rows %v", last)
		}
	}
	whole()
	if status := r.stop(syscall.SIGTERM); status != 3 {
		t.Errorf("exit status %d\n%s%s", status, r.stdout.String(), r.stderr)
	}
	whole()
}

// A place that has become read-only ends the recording, and says so.
func TestRecordReadOnly(t *testing.T) {
	t.Parallel()
	fpm, dir, sockets := program(t), mount(t, "4m"), filepath.Join(t.TempDir(), "s")
	r := startRecord(t, fpm, dir, "--ipc-base", sockets, "--mode", "full")
	r.stderr.has(t, "nothing received", 1)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot make a file system read-only: ", err)
	}
	startFleet(t, fpm, sockets, "--rate", "100")
	if status := r.status(); status != 3 {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"nothing is written any more", "read-only file system", "no producer's files can be written any more", "t.manifest.json"} {
		if !strings.Contains(r.stderr.String(), want) {
			t.Errorf("no %q in\n%s", want, r.stderr)
		}
	}
	if m := r.manifest(); m.Complete || m.State != "recording" {
		t.Errorf("the manifest that could not be replaced: %+v", m)
	}
	refusedAtStart := startRecord(t, fpm, dir, "--ipc-base", sockets)
	if status := refusedAtStart.status(); status != 3 || !strings.Contains(refusedAtStart.stderr.String(), "read-only file system") {
		t.Errorf("at the start: exit status %d\n%s", status, refusedAtStart.stderr)
	}
	if left := names(t, dir); !slices.Equal(left, []string{"t.manifest.json", "t.manifest.lock"}) {
		t.Errorf("left behind: %v", left)
	}
}

// A pipe that nobody reads, standard error or standard output, stops neither the recording
// nor its end.
func TestRecordUnreadStreams(t *testing.T) {
	t.Parallel()
	fpm := program(t)
	for _, name := range []string{"stdout", "stderr"} {
		dir, sockets := t.TempDir(), filepath.Join(t.TempDir(), "s")
		unread, full, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer unread.Close()
		defer full.Close()
		fillPipe(t, full)
		cmd := exec.Command(fpm, "trace", "record", "-o", filepath.Join(dir, "t"), "--ipc-base", sockets, "--ranks", "0-1", "--mode", "full")
		if name == "stdout" {
			cmd.Stdout = full
		} else {
			cmd.Stderr = full
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		r := &recording{t: t, dir: dir, stderr: newLog(), cmd: cmd}
		fleet := exec.Command(fpm, "simulate", "stream", "--ipc-base", sockets, "--load", "steady", "--worker-id", "w", "--quiet", "--rate", "200", "--for", "5s")
		if err := fleet.Run(); err != nil {
			t.Fatal(err)
		}
		status, want := r.stop(syscall.SIGTERM), map[string]int{"stdout": 3, "stderr": 0}[name]
		if m := r.manifest(); status != want || !m.Complete || m.Totals.Received < 500 || m.Totals.Written != m.Totals.Received {
			t.Errorf("%s: exit status %d, %+v", name, status, m)
		}
	}
}

// fillPipe writes to a pipe until it takes no more.
func fillPipe(t *testing.T, full *os.File) {
	t.Helper()
	fd := int(full.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := unix.Write(fd, make([]byte, 1024)); errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
}
