package record

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// payload returns a forward pass as its publisher packs it; an idle one is a heartbeat.
func payload(worker string, rank, counter int64, busy bool) []byte {
	b := msgp.AppendMapHeader(nil, 7)
	b = msgp.AppendInt(msgp.AppendString(b, "version"), 1)
	b = msgp.AppendString(msgp.AppendString(b, "worker_id"), worker)
	b = msgp.AppendInt64(msgp.AppendString(b, "dp_rank"), rank)
	b = msgp.AppendInt64(msgp.AppendString(b, "counter_id"), counter)
	wall, decode := 0.0, 0
	if busy {
		wall, decode = 0.0125, 3
	}
	b = msgp.AppendFloat64(msgp.AppendString(b, "wall_time"), wall)
	for _, name := range []string{"scheduled_requests", "queued_requests"} {
		scheduled := name == "scheduled_requests"
		b = msgp.AppendString(b, name)
		size := uint32(6)
		if scheduled {
			size++
		}
		b = msgp.AppendMapHeader(b, size)
		b = msgp.AppendInt(msgp.AppendString(b, "num_prefill_requests"), 0)
		b = msgp.AppendInt(msgp.AppendString(b, "sum_prefill_tokens"), 0)
		b = msgp.AppendFloat64(msgp.AppendString(b, "var_prefill_length"), 0)
		if scheduled {
			b = msgp.AppendInt(msgp.AppendString(b, "sum_prefill_kv_tokens"), 0)
		}
		b = msgp.AppendInt(msgp.AppendString(b, "num_decode_requests"), decode)
		b = msgp.AppendInt(msgp.AppendString(b, "sum_decode_kv_tokens"), 100*decode)
		b = msgp.AppendFloat64(msgp.AppendString(b, "var_decode_kv_tokens"), 0)
	}
	return b
}

func frames(counter int64, body []byte) [][]byte {
	return [][]byte{{}, binary.BigEndian.AppendUint64(nil, uint64(counter)), body}
}

// hand is a clock that is moved by hand. Its wall clock can be set.
type hand struct {
	mu   sync.Mutex
	past time.Duration
	wall int64
}

func (h *hand) clock() clock {
	since := func() time.Duration {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.past
	}
	return clock{since: since, at: func(time.Time) moment {
		h.mu.Lock()
		defer h.mu.Unlock()
		return moment{h.past, h.wall}
	}}
}

func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.past += d
	h.wall += d.Milliseconds()
}

// bench is a recorder whose messages come from a test.
type bench struct {
	*Recorder
	t    *testing.T
	dir  string
	hand *hand

	mu     sync.Mutex
	warned []string
	joined sync.WaitGroup // endpoints that can be sent to
}

// newBench returns a recorder of so many endpoints, which is not running.
func newBench(t *testing.T, endpoints int, opt Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), hand: &hand{wall: 1_700_000_000_000}}
	for i := range endpoints {
		opt.Endpoints = append(opt.Endpoints, subscribe.Endpoint{Address: fmt.Sprintf("tcp://h:%d", 20380+i), Namespace: "ns", Component: "c"})
	}
	if opt.Output == "" {
		opt.Output = filepath.Join(b.dir, "t")
	}
	if opt.Mode == "" {
		opt.Mode = wire.Full
	}
	opt.Warn = func(text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.warned = append(b.warned, text)
	}
	var err error
	if b.Recorder, err = newRecorder(opt, b.hand.clock()); err != nil {
		t.Fatal(err)
	}
	b.joined.Add(endpoints)
	b.subscribe = func(ctx context.Context, _ subscribe.Endpoint, opt subscribe.Options) error {
		b.joined.Done()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return b
}

// send is a message at an endpoint.
func (b *bench) send(endpoint int, worker string, rank, counter int64) {
	b.endpoints[endpoint].message(frames(counter, payload(worker, rank, counter, true)), time.Time{})
}

// warnings returns what was warned of.
func (b *bench) warnings() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.warned, "\n")
}

// write does what the writer does until now, flushing included.
func (b *bench) write() {
	b.hand.move(flushEvery)
	for b.writer.step() {
	}
}

// stream returns the counts of a rank.
func (b *bench) stream(rank int64) (found Stream) {
	b.t.Helper()
	n := 0
	for _, p := range b.Snapshot().Producers {
		for _, s := range p.Streams {
			if s.Rank == rank {
				found = s
				n++
			}
		}
	}
	if n != 1 {
		b.t.Fatalf("rank %d is there %d times", rank, n)
	}
	return found
}

// line is a row as the tests read it.
type line struct {
	Timestamp int64
	Event     struct {
		Schema string
		Source struct {
			Namespace, Component string
			ProducerID           string `json:"producer_id"`
		}
		Mode     string `json:"capture_mode"`
		Observed int64  `json:"observed_at_unix_ms"`
		FPM      struct {
			WorkerID string `json:"worker_id"`
			Rank     int64  `json:"dp_rank"`
			Counter  int64  `json:"counter_id"`
		}
	}
}

// rows returns the rows of a producer's segments, read by nothing of ours.
func (b *bench) rows(producer string) (rows []line) {
	b.t.Helper()
	paths, err := filepath.Glob(filepath.Join(b.dir, "t."+producer+".*.jsonl.gz"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			b.t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			b.t.Fatalf("%s: %v", path, err)
		}
		for scanner := bufio.NewScanner(z); ; {
			if !scanner.Scan() {
				if err := scanner.Err(); err != nil {
					b.t.Fatalf("%s: %v", path, err)
				}
				break
			}
			var l line
			if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
				b.t.Fatalf("%s: %v: %s", path, err, scanner.Bytes())
			}
			rows = append(rows, l)
		}
		f.Close()
	}
	return rows
}

// counters writes rows as "rank/counter".
func counters(rows []line) string {
	var list []string
	for _, r := range rows {
		list = append(list, fmt.Sprintf("%d/%d", r.Event.FPM.Rank, r.Event.FPM.Counter))
	}
	return strings.Join(list, " ")
}

// fault is a file system on which what a test says goes wrong.
type fault struct {
	segment.FS
	mu     sync.Mutex
	create func(path string) error
	write  func(path string) error // may block
}

func newFault() *fault { return &fault{FS: segment.System()} }

func (f *fault) set(create, write func(string) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.create, f.write = create, write
}

func (f *fault) ask(create bool, path string) error {
	f.mu.Lock()
	check := f.write
	if create {
		check = f.create
	}
	f.mu.Unlock()
	if check == nil {
		return nil
	}
	return check(path)
}

func (f *fault) Create(path string) (segment.File, error) {
	if err := f.ask(true, path); err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	file, err := f.FS.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f, path}, nil
}

type faultFile struct {
	segment.File
	f    *fault
	path string
}

// WriteAt writes half of it when it fails, as a full disk does, and says 0, as os.File does.
func (f *faultFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.f.ask(false, f.path); err != nil {
		if _, err := f.File.WriteAt(p[:len(p)/2], at); err != nil {
			return 0, err
		}
		return 0, &fs.PathError{Op: "write", Path: f.path, Err: err}
	}
	return f.File.WriteAt(p, at)
}

// running is a recorder that runs.
type running struct {
	*bench
	cancel context.CancelFunc
	done   chan struct{}
	m      *Manifest
	err    error
}

// run runs the recorder until it is stopped or stops by itself.
func (b *bench) run() *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{bench: b, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.m, r.err = b.Run(ctx)
	}()
	b.joined.Wait()
	b.t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r
}

// end waits for the end.
func (r *running) end() (*Manifest, error) {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(20 * time.Second):
		r.t.Fatal("the recorder does not end")
	}
	return r.m, r.err
}

// stop ends the recording.
func (r *running) stop() (*Manifest, error) {
	r.t.Helper()
	r.cancel()
	return r.end()
}

// readManifest reads the manifest as a program would that is not ours.
func readManifest(t *testing.T, path string) (m map[string]any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	return m
}

// accounted checks that each payload is in one place.
func accounted(t *testing.T, c Counts) {
	t.Helper()
	if got := c.Written + c.Thinned + c.Surplus + c.QueueDrops + c.DiskDrops; got != c.Received {
		t.Errorf("%d payloads received, %d accounted for: %+v", c.Received, got, c)
	}
}
