package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tinylib/msgp/msgp"
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
		fleet := exec.Command(fpm, "simulate", "stream", "--ipc-base", sockets, "--load", "steady", "--worker-id", "w", "--quiet",
			"--rate", "200", "--count", "1000", "--ranks", "2", "--await", "--linger", "1m")
		if err := fleet.Run(); err != nil {
			t.Fatal(err)
		}
		status, want := r.stop(syscall.SIGTERM), map[string]int{"stdout": 3, "stderr": 0}[name]
		if m := r.manifest(); status != want || !m.Complete || m.Totals.Received != 2000 || m.Totals.Written != m.Totals.Received {
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

// zmtpFrame is a frame of ZMTP, in its long form.
func zmtpFrame(flags byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{flags | 2}, uint64(len(body))), body...)
}

// zmtpHello is the greeting of a publisher and its READY.
func zmtpHello() []byte {
	hello := make([]byte, 64)
	hello[0], hello[9], hello[10], hello[11] = 0xff, 0x7f, 3, 1
	copy(hello[12:], "NULL")
	return append(hello, "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"...)
}

// largePass is a valid message with a text in its payload that takes six bytes for one as
// JSON, and where its two counters are.
func largePass(worker string, text int) (message []byte, counters [2]int) {
	load := func(b []byte, keys ...string) []byte {
		b = msgp.AppendMapHeader(b, uint32(len(keys)))
		for _, key := range keys {
			b = msgp.AppendUint8(msgp.AppendString(b, key), 1)
		}
		return b
	}
	p := msgp.AppendMapHeader(nil, 8)
	p = msgp.AppendInt(msgp.AppendString(p, "version"), 1)
	p = msgp.AppendString(msgp.AppendString(p, "worker_id"), worker)
	p = msgp.AppendInt(msgp.AppendString(p, "dp_rank"), 0)
	p = append(msgp.AppendString(p, "counter_id"), "\xcf........"...)
	counter := len(p) - 8
	p = msgp.AppendFloat64(msgp.AppendString(p, "wall_time"), 0.01)
	p = load(msgp.AppendString(p, "scheduled_requests"), "num_prefill_requests", "sum_prefill_tokens", "var_prefill_length",
		"sum_prefill_kv_tokens", "num_decode_requests", "sum_decode_kv_tokens", "var_decode_kv_tokens")
	p = load(msgp.AppendString(p, "queued_requests"), "num_prefill_requests", "sum_prefill_tokens", "var_prefill_length",
		"num_decode_requests", "sum_decode_kv_tokens", "var_decode_kv_tokens")
	p = msgp.AppendString(msgp.AppendString(p, "x"), strings.Repeat("\x01", text))
	head := append(zmtpFrame(1, nil), zmtpFrame(1, make([]byte, 8))...)
	message = append(head, zmtpFrame(0, p)...)
	return message, [2]int{len(head) - 8, len(head) + 9 + counter}
}

// hostileHost listens at an IPC address and sends to whoever connects: messages with a
// large text without a pause, or one that stops before its end.
func hostileHost(t *testing.T, path string, rank, text int, stall bool) {
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			go hostile(c, rank, text, stall)
		}
	}()
}

// hostile speaks to one subscriber until it is gone.
func hostile(c net.Conn, rank, text int, stall bool) {
	if _, err := c.Write(zmtpHello()); err != nil {
		return
	}
	go func() { _, _ = io.Copy(io.Discard, c) }()
	m, at := largePass(fmt.Sprint("w", rank), text)
	if stall {
		m = m[:len(m)-1]
	}
	for n := uint64(0); ; n++ {
		binary.BigEndian.PutUint64(m[at[0]:], n)
		binary.BigEndian.PutUint64(m[at[1]:], n)
		if _, err := c.Write(m); err != nil || stall {
			return
		}
	}
}

// peak returns the largest resident size of a process so far, in MiB.
func peak(t *testing.T, pid int) (mib int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	if _, err := fmt.Fscanf(bytes.NewReader(rest), "%d kB", &mib); err != nil {
		t.Fatal(err)
	}
	return mib >> 10
}

// Two hundred publishers that send payloads of most of a mebibyte as fast as they can, or
// stop within one, or send small ones, onto a disk that is full, take less than 128 MiB.
func TestRecordMemory(t *testing.T) {
	const ranks, most = 200, 128 * memoryFactor
	fpm, small, sockets := program(t), mount(t, "256k"), filepath.Join(t.TempDir(), "s")
	for i := range ranks {
		size := []int{900_000, 900_000, 200, 15_000, 3_000}[i%5]
		hostileHost(t, fmt.Sprintf("%s.%d", sockets, i), i, size, i%5 == 1)
	}
	r := startRecord(t, fpm, small, "--ipc-base", sockets, "--ranks", fmt.Sprintf("0-%d", ranks-1), "--mode", "full",
		"--metrics-listen", "127.0.0.1:0")
	r.stderr.has(t, ": connected", ranks)
	r.stderr.has(t, "writing failed", 1)
	_, rest, _ := strings.Cut(r.stderr.String(), "metrics at ")
	url, _, _ := strings.Cut(rest, "\n")
	get(t, url, func(_ int, text string) bool {
		_, rest, _ := strings.Cut(text, `fpm_trace_dropped_total{place="disk"} `)
		line, _, _ := strings.Cut(rest, "\n")
		dropped, err := strconv.ParseFloat(line, 64)
		return err == nil && dropped > 20_000 // everything is full, and has been for some seconds
	})
	got := peak(t, r.cmd.Process.Pid)
	if status := r.stop(syscall.SIGTERM); status != 3 {
		t.Errorf("exit status %d\n%s", status, r.stdout.String())
	}
	if got >= most {
		t.Errorf("the recorder has taken %d MiB, %d are the bound", got, most)
	}
	if !strings.Contains(r.stdout.String(), "lost here") {
		t.Errorf("nothing was lost, so this was no load:\n%s", r.stdout.String())
	}
	t.Logf("%d MiB", got)
}
