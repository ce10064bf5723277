package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/porttest"
	"github.com/fpm-project/fpm/internal/zmqtest"
	"github.com/fpm-project/fpm/trace/segment"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// lineLog is what a process writes, line by line, with a way to wait for a text.
type lineLog struct {
	mu   sync.Mutex
	cond *sync.Cond
	text bytes.Buffer
}

func newLog() *lineLog {
	l := &lineLog{}
	l.cond = sync.NewCond(&l.mu)
	return l
}

func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.cond.Broadcast()
	return l.text.Write(p)
}

func (l *lineLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// has waits until a text is there so many times.
func (l *lineLog) has(t *testing.T, text string, times int) {
	t.Helper()
	end := time.AfterFunc(patience, func() { l.cond.Broadcast() })
	defer end.Stop()
	begun := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for strings.Count(l.text.String(), text) < times {
		if time.Since(begun) >= patience {
			t.Fatalf("%q is not there %d times:\n%s", text, times, l.text.String())
		}
		l.cond.Wait()
	}
}

// recording is a recorder process.
type recording struct {
	t      *testing.T
	dir    string
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr *lineLog
}

// startRecord starts a recorder that writes to dir/t.
func startRecord(t *testing.T, fpm, dir string, args ...string) *recording {
	t.Helper()
	r := &recording{t: t, dir: dir, stderr: newLog()}
	r.cmd = exec.Command(fpm, append([]string{"trace", "record", "-o", filepath.Join(dir, "t")}, args...)...)
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, r.stderr
	r.cmd.Env = append(os.Environ(), "DYN_FPM_TRACE=1")
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	return r
}

// stop ends the recorder and returns its exit status.
func (r *recording) stop(signal os.Signal) int {
	r.t.Helper()
	begun := time.Now()
	if err := r.cmd.Process.Signal(signal); err != nil {
		r.t.Fatal(err)
	}
	status := r.status()
	if took := time.Since(begun); took > 5*time.Second {
		r.t.Errorf("the end took %s", took)
	}
	return status
}

func (r *recording) status() int {
	_ = r.cmd.Wait() // its error is the exit status
	return r.cmd.ProcessState.ExitCode()
}

// manifestOf is what the tests read of a manifest.
type manifestOf struct {
	Complete bool
	State    string
	Totals   struct {
		Received, Written, Missing, Rejected, Restarts uint64
		Queue                                          uint64 `json:"queue_drops"`
		Disk                                           uint64 `json:"disk_drops"`
	}
	Producers []struct {
		ID      string `json:"producer_id"`
		Streams []struct {
			Rank               int64 `json:"dp_rank"`
			Received, Written  uint64
			Missing            uint64
			Rejected           map[string]uint64
			First              int64  `json:"first_counter"`
			Last               int64  `json:"last_counter"`
			Queue              uint64 `json:"queue_drops"`
			Disk               uint64 `json:"disk_drops"`
			Busy, Heartbeats   uint64
			Gaps, Restarts     uint64
			FirstUnix, LastUni int64
		}
	}
}

func (r *recording) manifest() (m manifestOf) {
	r.t.Helper()
	if err := json.Unmarshal(read(r.t, filepath.Join(r.dir, "t.manifest.json")), &m); err != nil {
		r.t.Fatal(err)
	}
	return m
}

// counted is what an independent reader found: for each producer and rank the counters, in
// the order of the rows.
type counted map[string][]int64

// readBack reads segments with zcat and Python's json, and checks what a row promises.
func readBack(t *testing.T, dir string) counted {
	t.Helper()
	const script = `
import glob, json, subprocess, sys
found = {}
for name in sorted(glob.glob(sys.argv[1] + "/t.*.jsonl.gz")):
    for line in subprocess.run(["zcat", name], check=True, stdout=subprocess.PIPE).stdout.splitlines():
        row = json.loads(line)
        event, fpm = row["event"], row["event"]["fpm"]
        assert list(row) == ["timestamp", "event"] and row["timestamp"] >= 0, line
        assert list(event) == ["schema", "source", "capture_mode", "observed_at_unix_ms", "fpm"], line
        assert event["schema"] == "dynamo.fpm.trace.v1" and event["observed_at_unix_ms"] > 1.6e12, line
        assert event["source"] == {"namespace": "dynamo", "component": "backend", "producer_id": fpm["worker_id"]}, line
        assert fpm["version"] == 1 and type(fpm["wall_time"]) is float, line
        assert all(type(v) is (float if k.startswith("var_") else int) for k, v in fpm["queued_requests"].items()), line
        if "big" in fpm:
            assert fpm["big"] == 2**63 + 7 and fpm["timing_scope"] == "cuda_event", line
            assert fpm["scheduled_requests"]["per_request_tokens"] == [1, 2.5, None, "x"], line
        found.setdefault(f"{fpm['worker_id']}/{fpm['dp_rank']}", []).append(fpm["counter_id"])
json.dump(found, sys.stdout)
`
	cmd := exec.Command(zmqtest.Python, "-c", script, dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the independent reader: %v\n%s", err, &stderr)
	}
	found := counted{}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// accountFor checks that each row between the first and the last received is in the
// segments, in order, or in a counted loss.
func accountFor(t *testing.T, m manifestOf, found counted) {
	t.Helper()
	for _, p := range m.Producers {
		for _, s := range p.Streams {
			counters := found[fmt.Sprintf("%s/%d", p.ID, s.Rank)]
			if s.Restarts == 0 && (!slices.IsSorted(counters) || len(slices.Compact(slices.Clone(counters))) != len(counters)) {
				t.Errorf("producer %s, rank %d: not in order, or twice", p.ID, s.Rank)
			}
			refused := uint64(0)
			for _, n := range s.Rejected {
				refused += n
			}
			span := uint64(s.Last - s.First + 1)
			// What is refused behind the last valid message is beyond the span.
			if got := uint64(len(counters)) + s.Missing + s.Queue + s.Disk; s.Restarts == 0 && (got > span || got+refused < span) {
				t.Errorf("producer %s, rank %d: counters %d to %d: %d rows, %d missing, %d refused, %d and %d lost", p.ID, s.Rank, s.First, s.Last,
					len(counters), s.Missing, refused, s.Queue, s.Disk)
			}
			if s.Written != uint64(len(counters)) || s.Received != s.Written+s.Queue+s.Disk {
				t.Errorf("producer %s, rank %d: %d rows in the segments, %+v", p.ID, s.Rank, len(counters), s)
			}
		}
	}
}

// publishing is a publisher on libzmq.
type publishing struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.Writer
	stdout bytes.Buffer
}

func publish(t *testing.T, args ...string) *publishing {
	t.Helper()
	p := &publishing{t: t, cmd: exec.Command(zmqtest.Python, append([]string{"../../trace/testdata/fpm_pub.py"}, args...)...)}
	p.cmd.Stdout = &p.stdout
	stderr := newLog()
	p.cmd.Stderr = stderr
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	stderr.has(t, "ready", 1)
	return p
}

// kill ends the publisher as kill -9 does.
func (p *publishing) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// send lets a publisher begin that was started to wait for it.
func (p *publishing) send() {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, "go\n"); err != nil {
		p.t.Fatal(err)
	}
}

// sent waits for the publisher's end and returns how many messages it sent in all, good
// and bad.
func (p *publishing) sent() (good, bad uint64) {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatal(err)
	}
	for d := json.NewDecoder(&p.stdout); d.More(); {
		var s struct{ Sent, Bad uint64 }
		if err := d.Decode(&s); err != nil {
			p.t.Fatal(err)
		}
		good, bad = good+s.Sent, bad+s.Bad
	}
	return good, bad
}

// TestRecordInterop records publishers on libzmq, whatever they send.
func TestRecordInterop(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	fpm := program(t)
	type want struct {
		reason string // of the bad messages
		status int
		gaps   bool
	}
	cases := map[string]struct {
		args []string
		want want
	}{
		"plain": {[]string{"--ranks", "2", "--rate", "500", "--count", "200"}, want{}},
		"burst": {[]string{"--ranks", "4", "--burst", "--count", "5000"}, want{gaps: true}},
		"idle":  {[]string{"--idle", "--count", "1"}, want{}},
		"extra": {[]string{"--extra", "--rate", "1000", "--count", "200"}, want{}},
		"skip":  {[]string{"--skip", "3", "--rate", "1000", "--count", "550"}, want{gaps: true}},
		"v0":    {[]string{"--v0", "--rate", "1000", "--count", "50"}, want{reason: "version", status: 1}},
	}
	for kind, reason := range map[string]string{
		"frames": "frames", "sequence": "sequence", "garbage": "msgpack", "array": "not-a-map", "version": "version", "negative": "field",
		"nan": "msgpack", "bool": "field", "truncated": "msgpack", "trailing": "msgpack", "binkey": "msgpack", "huge": "msgpack",
	} {
		c := cases["plain"]
		c.args = []string{"--bad", kind, "--rate", "1000", "--count", "101"}
		c.want.reason = reason
		cases["bad "+kind] = c
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ipc := len(name)%2 == 0 // half of them each way
			dir, ranks := t.TempDir(), "0-0"
			if i := slices.Index(c.args, "--ranks"); i >= 0 {
				n, _ := strconv.Atoi(c.args[i+1])
				ranks = fmt.Sprintf("0-%d", n-1)
			}
			count, _, _ := strings.Cut(strings.TrimPrefix(ranks, "0-"), " ")
			last, _ := strconv.Atoi(count)
			base, from := "ipc://"+filepath.Join(dir, "s"), []string{"--ipc-base", filepath.Join(dir, "s")}
			if !ipc {
				port := porttest.Row(t, last+1)
				base, from = fmt.Sprintf("tcp://127.0.0.1:%d", port), []string{"--base-port", strconv.Itoa(port)}
			}
			// The publisher is there first, sends when all its ranks have a subscriber, and ends when
			// that has everything.
			p := publish(t, append([]string{"--base", base, "--await", "--linger", "60000"}, c.args...)...)
			r := startRecord(t, fpm, dir, append(from, "--ranks", ranks, "--mode", "full")...)
			r.stderr.has(t, ": connected", last+1)
			p.send()
			good, bad := p.sent()
			r.stderr.has(t, "the connection ended", last+1)
			if status := r.stop(syscall.SIGTERM); status != c.want.status {
				t.Errorf("exit status %d, want %d\n%s%s", status, c.want.status, r.stdout.String(), r.stderr)
			}
			m, found := r.manifest(), readBack(t, dir)
			accountFor(t, m, found)
			if name == "v0" {
				bad, good = good, 0
			}
			if m.Totals.Rejected != bad || (!c.want.gaps && (m.Totals.Received != good || m.Totals.Missing != 0)) {
				t.Errorf("%d good and %d bad were sent: %+v\n%s", good, bad, m.Totals, r.stderr)
			}
			if c.want.gaps && (m.Totals.Received > good || m.Totals.Received == 0) || !m.Complete {
				t.Errorf("%d were sent, complete %v: %+v", good, m.Complete, m.Totals)
			}
			if name == "skip" && m.Totals.Missing != 15 {
				t.Errorf("%d are missing, 15 were left out", m.Totals.Missing)
			}
			for _, s := range slices.Concat(m.Producers)[:min(1, len(m.Producers))] {
				if diff := cmp.Diff(map[bool]map[string]uint64{true: {c.want.reason: bad}, false: {}}[bad > 0], s.Streams[0].Rejected); diff != "" {
					t.Errorf("refused (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// A stop that is asked for is clean although nothing came, and says that nothing came.
func TestRecordOfNothingIsStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := startRecord(t, program(t), dir, "--ipc-base", filepath.Join(dir, "nobody"))
	r.stderr.has(t, "nothing received", 1)
	if status := r.stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d\n%s", status, r.stderr)
	}
	r.stderr.has(t, "warning: nothing was received from 1 endpoint", 1)
	if m := r.manifest(); !m.Complete || m.Totals.Received != 0 {
		t.Errorf("%+v", m)
	}
}

// TestRecordThroughChange goes on through whatever becomes of the publisher's port.
func TestRecordThroughChange(t *testing.T) {
	t.Parallel()
	zmqtest.NeedLibzmq(t)
	fpm, dir, port := program(t), t.TempDir(), porttest.Row(t, 1)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	r := startRecord(t, fpm, dir, "--base-port", strconv.Itoa(port), "--mode", "full")
	r.stderr.has(t, "nothing received for 3s: connection refused; the worker may not be up yet", 1) // it was started first, and says so
	first := publish(t, "--base", "tcp://"+address, "--worker", "one", "--rate", "300", "--seconds", "60", "--warm", "0")
	r.stderr.has(t, "messages come again", 1)
	first.kill()
	r.stderr.has(t, "the connection ended", 1)

	stranger, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	go server.Serve(stranger)
	r.stderr.has(t, "nothing received", 2)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	second := publish(t, "--base", "tcp://"+address, "--worker", "two", "--rate", "300", "--seconds", "60", "--warm", "0")
	r.stderr.has(t, "messages come again", 2)
	second.kill()
	r.stderr.has(t, "nothing received", 3) // and with that everything of it is read
	if status := r.stop(os.Interrupt); status != 0 {
		t.Errorf("exit status %d\n%s", status, r.stderr)
	}
	m, found := r.manifest(), readBack(t, dir)
	accountFor(t, m, found)
	if len(found) != 2 || len(m.Producers) != 2 || m.Totals.Restarts != 0 || !m.Complete {
		t.Errorf("%d producers in the segments, %+v", len(found), m)
	}
}

// kills is how often a recorder is killed: a hundred times where time does not matter.
func kills() int {
	if os.Getenv("FPM_SOAK") == "1" {
		return 100
	}
	return 12
}

// A recorder that is killed at any moment leaves whole members, all but the last; the next
// one goes on with the next index.
func TestRecordKilled(t *testing.T) {
	t.Parallel()
	fpm, dir, sockets := program(t), t.TempDir(), filepath.Join(t.TempDir(), "s")
	fleet := exec.Command(fpm, "simulate", "stream", "--ipc-base", sockets, "--ranks", "2", "--rate", "2000", "--load", "steady", "--worker-id", "w", "--quiet")
	out := newLog()
	fleet.Stdout = out
	if err := fleet.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = fleet.Process.Kill()
		_ = fleet.Wait()
	}()
	out.has(t, "publishes at", 2)

	dice := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	next, torn, written := uint64(0), 0, 0
	for i := range kills() {
		// Small segments, so that there is a flush every few milliseconds.
		r := startRecord(t, fpm, dir, "--ipc-base", sockets, "--ranks", "0-1", "--mode", "full", "--roll-bytes", "20000", "--max-segments", "100000")
		r.stderr.has(t, ": connected", 2)
		kill := time.AfterFunc(time.Duration(dice.IntN(int(200*time.Millisecond))), func() { _ = r.cmd.Process.Kill() })
		r.status()
		kill.Stop()
		var files []string
		for _, name := range names(t, dir) {
			if n, ok := segment.Parse(name); ok && n.Index >= next {
				files = append(files, name)
			}
		}
		last := map[float64]float64{}
		for j, name := range files {
			if want := fmt.Sprintf("t.w.%06d.jsonl.gz", next); name != want {
				t.Fatalf("kill %d: the next segment is %s, want %s", i, name, want)
			}
			next++
			whole := rowsOf(t, filepath.Join(dir, name), last)
			if !whole {
				torn++
				if j < len(files)-1 {
					t.Errorf("kill %d: %s is torn, and is not the last", i, name)
				}
			}
		}
		written += len(files)
	}
	if written < kills() {
		t.Errorf("%d segments from %d recorders: nothing was tested", written, kills())
	}
	t.Logf("%d segments, %d torn", written, torn)
	// What is there is a recording still.
	r := startRecord(t, fpm, dir, "--ipc-base", sockets, "--ranks", "0-1", "--mode", "full", "--max-rows", "10")
	if status := r.status(); status != 0 {
		t.Errorf("exit status %d\n%s", status, r.stderr)
	}
	if left := names(t, dir); slices.ContainsFunc(left, func(n string) bool { return strings.HasSuffix(n, ".tmp") || strings.Contains(n, "probe") }) {
		t.Errorf("left behind: %v", left)
	}
}

// rowsOf reads a segment whose members should be whole, all but the last, and tells whether
// that one is. The counters of a rank ascend.
func rowsOf(t *testing.T, path string, last map[float64]float64) (whole bool) {
	t.Helper()
	text := read(t, path)
	if len(text) == 0 {
		return false // killed between the file's creation and its first member
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return false
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct{ Event struct{ FPM map[string]any } }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return false // the last, cut line of a torn member
		}
		rank, counter := row.Event.FPM["dp_rank"].(float64), row.Event.FPM["counter_id"].(float64)
		if before, ok := last[rank]; ok && counter <= before {
			t.Errorf("%s: rank %v: counter %v follows %v", path, rank, counter, before)
		}
		last[rank] = counter
	}
	if err := lines.Err(); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%s: %v", path, err)
	}
	return lines.Err() == nil
}

// Under load, a signal ends it in time, with everything that was received on disk.
func TestRecordStopsInTime(t *testing.T) {
	t.Parallel()
	fpm, dir, sockets := program(t), t.TempDir(), filepath.Join(t.TempDir(), "s")
	fleet := exec.Command(fpm, "simulate", "stream", "--ipc-base", sockets, "--ranks", "4", "--rate", "1000", "--load", "steady", "--quiet")
	if err := fleet.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = fleet.Process.Kill()
		_ = fleet.Wait()
	}()
	r := startRecord(t, fpm, dir, "--ipc-base", sockets, "--ranks", "0-3", "--mode", "full", "--metrics-listen", "127.0.0.1:0", "--format", "json")
	r.stderr.has(t, "metrics at http://", 1)
	_, rest, _ := strings.Cut(r.stderr.String(), "metrics at ")
	url, _, _ := strings.Cut(rest, "/metrics")
	get(t, url+"/healthz", func(status int, _ string) bool { return status == 200 })
	get(t, url+"/readyz", func(status int, _ string) bool { return status == 200 })
	get(t, url+"/metrics", func(_ int, text string) bool {
		_, after, ok := strings.Cut(text, "\nfpm_trace_written_total ")
		return ok && !strings.HasPrefix(after, "0\n")
	})
	if status := r.stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d\n%s%s", status, r.stdout.String(), r.stderr)
	}
	m := r.manifest()
	if !m.Complete || m.State != "stopped" || m.Totals.Received == 0 || m.Totals.Received != m.Totals.Written {
		t.Errorf("%+v", m)
	}
	var report struct {
		Status   string
		Complete bool
		Totals   struct{ Written uint64 }
	}
	if err := json.Unmarshal(r.stdout.Bytes(), &report); err != nil || report.Status != "ok" || !report.Complete || report.Totals.Written != m.Totals.Written {
		t.Errorf("%v: %s", err, r.stdout.String())
	}
}

// timeout(1) and supervisors signal a process and then its group: the recorder gets the same
// signal twice at once, and ends as cleanly as by one.
func TestRecordSignalledTwice(t *testing.T) {
	t.Parallel()
	r := startRecord(t, program(t), t.TempDir(), "--ipc-base", "nobody", "--metrics-listen", "127.0.0.1:0")
	r.stderr.has(t, "metrics at http://", 1)
	_, rest, _ := strings.Cut(r.stderr.String(), "metrics at ")
	url, _, _ := strings.Cut(rest, "/metrics")
	get(t, url+"/healthz", func(status int, _ string) bool { return status == 200 })
	// Three, since the kernel makes one of those that are not delivered so far.
	for range 3 {
		if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	if status := r.status(); status != 0 || r.manifest().State != "stopped" {
		t.Errorf("exit status %d, manifest %+v\n%s", status, r.manifest(), r.stderr)
	}
}

// get asks again and again until the answer is the one that is waited for.
func get(t *testing.T, url string, enough func(status int, body string) bool) {
	t.Helper()
	var status int
	var body []byte
	for begun := time.Now(); time.Since(begun) < patience; {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		status = resp.StatusCode
		body, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if enough(status, string(body)) {
			return
		}
	}
	t.Fatalf("%s: %d %s", url, status, body)
}
