package record

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// A disk that is full for a while loses nothing that fits into memory.
func TestDiskFullForAWhile(t *testing.T) {
	disk := newFault()
	b := newBench(t, 1, Options{FS: disk})
	b.send(0, "w", 0, 0)
	b.write()
	disk.set(nil, func(string) error { return syscall.ENOSPC })
	for i := range int64(1000) {
		b.send(0, "w", 0, 1+i)
		if i%100 == 0 {
			b.write()
		}
	}
	if c := b.Snapshot().Totals; c.Written != 1 || c.Pending != 1000 || c.DiskDrops != 0 {
		t.Errorf("while it is full: %+v", c)
	}
	_, text := ask(t, b.Handler(), "/metrics")
	if waiting := fmt.Sprintf("\nfpm_trace_pending_bytes %d\n", b.writer.buffered); b.writer.buffered == 0 || !strings.Contains(text, waiting) || !strings.Contains(text, "\nfpm_trace_write_errors_total 10\n") {
		t.Errorf("while it is full the metrics lack %q or the errors:\n%s", waiting, text)
	}
	if status, text := ask(t, b.Handler(), "/healthz"); status != 200 || !strings.HasPrefix(text, "alive, but the files of 1 producers cannot be written") {
		t.Errorf("/healthz: %d %s", status, text)
	}
	if n := strings.Count(b.warnings(), "writing failed"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, b.warnings())
	}
	disk.set(nil, nil)
	b.writer.finish()
	if c := b.Snapshot().Totals; c.Written != 1001 || c.Lost() != 0 {
		t.Errorf("when there is room again: %+v", c)
	}
	if status, text := ask(t, b.Handler(), "/healthz"); status != 200 || text != "ok\n" {
		t.Errorf("/healthz: %d %s", status, text)
	}
	if _, text := ask(t, b.Handler(), "/metrics"); !strings.Contains(text, "\nfpm_trace_pending_bytes 0\n") {
		t.Error("bytes wait when there is room again")
	}
	for i, r := range b.rows("w") {
		if r.Event.FPM.Counter != int64(i) {
			t.Fatalf("row %d has counter %d", i, r.Event.FPM.Counter)
		}
	}
}

// fill sends rows of several producers until so many bytes of them were sent.
func fill(b *bench, bytes, producers int, from int64) (sent int64) {
	for size := 0; size < bytes; sent++ {
		worker := fmt.Sprint("w", int(sent)%producers)
		b.send(0, worker, 0, from+sent/int64(producers))
		size += 500
		if sent%4000 == 3999 {
			for b.writer.drain() {
			}
		}
	}
	return sent
}

// A disk that stays full costs no more memory than the batches may have. What is given
// up is the oldest, and counted.
func TestDiskFullForGood(t *testing.T) {
	disk := newFault()
	disk.set(nil, func(string) error { return syscall.ENOSPC })
	b := newBench(t, 1, Options{FS: disk})
	for i := range 3 {
		fill(b, 14<<20, 10, int64(i)*10_000)
		b.write()
		if b.writer.buffered > batchBytes {
			t.Fatalf("%d bytes wait", b.writer.buffered)
		}
	}
	total := 0
	for _, s := range b.writer.series {
		total += s.w.Buffered()
	}
	c := b.Snapshot().Totals
	// What is given up is the whole of a batch, and buffers are larger than what is in them.
	if total != b.writer.buffered || total < batchBytes/3 || c.DiskDrops == 0 || c.Written != 0 || c.QueueDrops != 0 {
		t.Errorf("%d bytes wait, %d are told; %+v", total, b.writer.buffered, c)
	}
	disk.set(nil, nil)
	b.writer.finish()
	c = b.Snapshot().Totals
	accounted(t, c.Counts)
	for p := range 10 {
		rows := b.rows(fmt.Sprint("w", p))
		for i := 1; i < len(rows); i++ {
			if rows[i].Event.FPM.Counter <= rows[i-1].Event.FPM.Counter {
				t.Fatalf("producer %d: counter %d follows %d", p, rows[i].Event.FPM.Counter, rows[i-1].Event.FPM.Counter)
			}
		}
	}
}

// A producer whose files cannot be written is given up alone.
func TestUnwritableProducer(t *testing.T) {
	disk := newFault()
	disk.set(func(path string) error {
		if strings.Contains(path, ".bad.") {
			return syscall.EROFS
		}
		return nil
	}, nil)
	r := newBench(t, 2, Options{FS: disk}).run()
	for i := range int64(10) {
		r.send(0, "bad", 0, i)
		r.send(1, "good", 1, i)
	}
	m, err := r.stop()
	if got := counters(r.rows("good")); strings.Count(got, "/") != 10 {
		t.Errorf("rows of the other producer: %s", got)
	}
	if bad := r.stream(0); bad.DiskDrops != 10 || m.Complete || exitcode.Of(err) != exitcode.Failed {
		t.Errorf("%+v, complete %v, %v", bad, m.Complete, err)
	}
	if w := r.warnings(); strings.Count(w, "nothing is written any more") != 1 || !strings.Contains(w, `"bad"`) {
		t.Errorf("warnings:\n%s", w)
	}
	if d := m.Producers[0].Disabled; !strings.Contains(d, "read-only file system") || m.Producers[1].Disabled != "" {
		t.Errorf("disabled: %q", d)
	}
}

// A directory that is gone, or closed, for less than a minute costs nothing; one that stays
// so is given up.
func TestDirectoryGoneForAWhile(t *testing.T) {
	for _, denial := range []syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.ENOENT} {
		disk := newFault()
		b := newBench(t, 1, Options{FS: disk})
		b.cancel = func(error) {}
		deny := func(string) error { return denial }
		counter := int64(0)
		step := func(seconds int) {
			for range seconds {
				b.send(0, "w", 0, counter)
				counter++
				b.write()
			}
		}
		disk.set(deny, deny)
		step(50)
		if c := b.Snapshot().Totals; c.Pending != 50 {
			t.Errorf("%v: %+v", denial, c)
		}
		disk.set(nil, nil)
		step(2)
		if c := b.Snapshot().Totals; c.Written != 52 || c.Lost() != 0 {
			t.Errorf("%v, when it is back: %+v", denial, c)
		}
		disk.set(deny, deny)
		step(59)
		if strings.Contains(b.warnings(), "nothing is written any more") {
			t.Errorf("%v is given up too early:\n%s", denial, b.warnings())
		}
		step(3)
		m := b.Snapshot()
		if c := m.Totals; c.Written != 52 || c.DiskDrops != 62 || m.Producers[0].Disabled == "" {
			t.Errorf("%v, for good: %+v, disabled %q", denial, c, m.Producers[0].Disabled)
		}
		if n := strings.Count(b.warnings(), "nothing is written any more"); n != 1 {
			t.Errorf("%v: warnings:\n%s", denial, b.warnings())
		}
	}
}

// When no producer is left the recorder does not go on as if it recorded.
func TestNothingWritable(t *testing.T) {
	disk := newFault()
	disk.set(func(string) error { return syscall.EROFS }, nil)
	r := newBench(t, 1, Options{FS: disk}).run()
	r.send(0, "w", 0, 0)
	r.send(0, "w", 0, 1)
	r.hand.move(flushEvery)
	r.queue.rouse()
	m, err := r.end() // by itself
	if exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), errDisabled.Error()) || m.Complete {
		t.Errorf("%v, complete %v", err, m.Complete)
	}
	accounted(t, m.Totals.Counts)
}

// A disk that takes nothing and tells no error: receiving goes on, memory is bounded, the
// end comes in time, and says what is lost.
func TestStalledDisk(t *testing.T) { synctest.Test(t, stalledDisk) }

func stalledDisk(t *testing.T) {
	disk := newFault()
	stuck, release := make(chan struct{}, 1), make(chan struct{})
	disk.set(nil, func(string) error {
		select {
		case stuck <- struct{}{}:
		default:
		}
		<-release
		return nil
	})
	r := newBench(t, 1, Options{FS: disk}).run()
	defer close(release) // before the recorder is waited for
	r.send(0, "w", 0, 0)
	r.hand.move(flushEvery)
	r.queue.rouse()
	select {
	case <-stuck:
	case <-time.After(20 * time.Second):
		t.Fatal("nothing is written")
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const sent = 200_000
	for i := range int64(sent) {
		r.send(0, "w", 0, 1+i)
	}
	debug.FreeOSMemory()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	begun := time.Now()
	m, err := r.stop()
	if took := time.Since(begun); took > stopWithin+sayWithin {
		t.Errorf("the end took %s", took)
	}
	if m.State != Abandoned || m.Complete || exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), "given up") {
		t.Errorf("%s, complete %v, %v", m.State, m.Complete, err)
	}
	c := m.Totals
	if c.Received != sent+1 || c.QueueDrops < sent-queueEntries-flushAt/400 || c.Received != c.Written+c.QueueDrops+c.DiskDrops+c.Pending {
		t.Errorf("%+v", c)
	}
	if file := readManifest(t, m.Path()); file["complete"] != false || file["state"] != "abandoned" {
		t.Errorf("manifest: complete %v, state %v", file["complete"], file["state"])
	}
}

// Whatever arrives and whatever the disk does, each payload is in one place, and the rows
// of a rank are in the order of their arrival.
func TestRandomFaults(t *testing.T) {
	rounds := uint64(12)
	if testing.Short() {
		rounds = 3
	}
	for seed := range rounds {
		randomFaults(t, seed)
	}
}

func randomFaults(t *testing.T, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 3))
	disk := newFault()
	chance := dice.IntN(3)
	disk.set(func(string) error {
		return [...]error{nil, syscall.ENOSPC, nil, nil, syscall.EIO}[dice.IntN(1+2*chance)]
	}, func(string) error {
		return [...]error{nil, nil, nil, syscall.ENOSPC, nil}[dice.IntN(1+2*chance)]
	})
	opt := Options{FS: disk, RollBytes: uint64(1000 + dice.IntN(20000)), MaxSegments: 1 << 20}
	if dice.IntN(3) == 0 {
		opt.Mode, opt.SampleInterval = wire.Sampled, 2*time.Second
	}
	b := newBench(t, 3, opt)
	b.queue = newQueue(1+dice.IntN(200), queueBytes)
	next := map[int]int64{}
	refused, arrived := uint64(0), map[int64]int64{}
	for range 3000 {
		endpoint := dice.IntN(3)
		if dice.IntN(50) == 0 {
			b.endpoints[endpoint].message([][]byte{{}}, time.Time{})
			refused++
			continue
		}
		b.send(endpoint, "w", int64(endpoint), next[endpoint])
		arrived[int64(endpoint)]++
		next[endpoint]++
		if dice.IntN(60) == 0 {
			b.write()
		}
	}
	disk.set(nil, nil)
	b.writer.finish()
	m := b.Snapshot()
	rows := map[int64]uint64{}
	last := map[int64]int64{}
	for _, r := range b.rows("w") {
		rank, counter := r.Event.FPM.Rank, r.Event.FPM.Counter
		if before, ok := last[rank]; ok && counter <= before {
			t.Fatalf("seed %d: rank %d: counter %d follows %d", seed, rank, counter, before)
		}
		last[rank] = counter
		rows[rank]++
	}
	for _, s := range m.Producers[0].Streams {
		accounted(t, s.Counts)
		if s.Received != uint64(arrived[s.Rank]) || s.Written != rows[s.Rank] || s.Gaps != 0 {
			t.Errorf("seed %d: rank %d: %d arrived, %d rows in files: %+v", seed, s.Rank, arrived[s.Rank], rows[s.Rank], s.Counts)
		}
	}
	if m.Totals.Rejected != refused {
		t.Errorf("seed %d: %d refused, %d counted", seed, refused, m.Totals.Rejected)
	}
}

// Two recorders with one prefix have their own segments and manifests; a third one that
// comes later takes the place of the first.
func TestTwoRecorders(t *testing.T) {
	dir := t.TempDir()
	opt := Options{Output: filepath.Join(dir, "t"), Endpoints: []subscribe.Endpoint{{Address: "tcp://h:1"}}, Mode: wire.Full}
	start := func() *bench {
		b := newBench(t, 0, opt)
		b.dir = dir
		return b
	}
	one, two := start(), start()
	for i := range int64(3) {
		one.send(0, "w", 0, i)
		two.send(0, "w", 1, i)
		one.write()
		two.write()
	}
	one.writer.finish()
	two.writer.finish()
	for _, b := range []*bench{one, two} {
		if err := b.manifest.write(b.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	if got := counters(one.rows("w")); got != "0/0 0/1 0/2 1/0 1/1 1/2" {
		t.Errorf("rows %s", got)
	}
	if a, b := filepath.Base(one.manifest.path), filepath.Base(two.manifest.path); a != "t.manifest.json" || b != "t.manifest-2.json" {
		t.Errorf("manifests %s and %s", a, b)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	three := start()
	if one.manifest.shared || !two.manifest.shared {
		t.Error("who is not alone does not know")
	}
	if got := filepath.Base(three.manifest.path); got != "t.manifest.json" {
		t.Errorf("the third has %s", got)
	}
	if p := three.Snapshot().Previous; p == nil || p.State != Recording || p.Complete || p.StartedUnixMS != 1_700_000_000_000 {
		t.Errorf("previous: %+v", p)
	}
}

// What is in the place of the manifest and is none is not replaced.
func TestForeignManifest(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"a file":      func(path string) error { return os.WriteFile(path, []byte(`{"schema":"mine"}`), 0o666) },
		"empty":       func(path string) error { return os.WriteFile(path, nil, 0o666) },
		"a directory": func(path string) error { return os.Mkdir(path, 0o777) },
		"a link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"a loose end": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		prefix := filepath.Join(t.TempDir(), "t")
		if err := put(prefix + ".manifest.json"); err != nil {
			t.Fatal(err)
		}
		_, err := New(Options{Output: prefix, Endpoints: []subscribe.Endpoint{{Address: "tcp://h:1"}}, Mode: wire.Full})
		if exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), "manifest") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzPreviousManifest(f *testing.F) {
	f.Add([]byte(`{"schema":"fpm.trace.manifest","state":"stopped","complete":true,"endpoints":[]}`))
	f.Add([]byte(`{"schema":"fpm.trace.manifest","started_unix_ms":"x","endpoints":`))
	f.Add([]byte(``))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "m.json")
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		m := &manifestFile{path: path}
		if err := m.inspect(); (err == nil) != (m.previous != nil) {
			t.Errorf("%v, %+v", err, m.previous)
		}
	})
}

// Where the manifest cannot be written, nobody is told to read it.
func TestLossErrorWithoutAManifest(t *testing.T) {
	m := &Manifest{}
	m.Totals.DiskDrops = 3
	var e *exitcode.Error
	if !errors.As(lossError(m, 3, true), &e) || !strings.Contains(e.Hint, "the manifest says which are lost") {
		t.Errorf("%+v", e)
	}
	crowded := &Manifest{}
	crowded.Totals.Crowded = 3
	if !errors.As(lossError(crowded, 3, true), &e) || !strings.Contains(e.Message, "of new workers when there were too many") {
		t.Errorf("%+v", e)
	}
	m.unsaved = true
	if !errors.As(lossError(m, 3, true), &e) || !strings.Contains(e.Hint, "this list is the only record") || m.Saved() {
		t.Errorf("%+v", e)
	}
}

// The second recorder of a prefix says what that means.
func TestSecondRecorderWarns(t *testing.T) {
	opt := Options{Output: filepath.Join(t.TempDir(), "t")}
	one, two := newBench(t, 1, opt), newBench(t, 1, opt)
	if _, err := two.run().stop(); err != nil {
		t.Fatal(err)
	}
	if text := two.warnings(); !strings.Contains(text, "another recorder writes to the prefix") || !strings.Contains(text, "manifest-2.json") {
		t.Errorf("warnings: %s", text)
	}
	if _, err := one.run().stop(); err != nil || strings.Contains(one.warnings(), "another recorder") {
		t.Errorf("%v, warnings: %s", err, one.warnings())
	}
}

// Where the rest of the stop took no time, a manifest that is slow to become durable has
// it: a second on a disk that others keep busy is no failure.
func TestSlowManifest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newBench(t, 1, Options{})
		m, err := r.conclude(true, func() { <-time.After(stopWithin) }, time.Now().Add(stopWithin+sayWithin))
		if err != nil || !m.Saved() {
			t.Errorf("saved %v, %v", m.Saved(), err)
		}
		never := make(chan struct{})
		begun := time.Now()
		m, err = r.conclude(true, func() { <-never }, begun.Add(-time.Second))
		if took := time.Since(begun); took != sayWithin || exitcode.Of(err) != exitcode.Failed || m.Saved() {
			t.Errorf("after %s: saved %v, %v", took, m.Saved(), err)
		}
		close(never)
		synctest.Wait() // for the manifest that came too late, or it would outlive its directory
	})
}
