package record

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/fpm-project/fpm/trace/sample"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

const (
	flushEvery = time.Second
	flushAt    = 1 << 20 // bytes of a batch

	// batchBytes is what the buffers of all batches may take together. With a full queue,
	// what a few large messages take while they are received and decoded, thousands of
	// streams, and the garbage of all that, twice as much would come too near to the 128
	// MiB that the process is to stay below.
	batchBytes = 12 << 20

	// sampledBytes is what the sampler may hold; the batches have less by as much.
	sampledBytes = 4 << 20

	// pause is how long the writer lets entries gather, so that it does not wake for each.
	pause = 10 * time.Millisecond

	// takeAtOnce is the number of entries that are taken under one lock.
	takeAtOnce = 256

	// deniedFor is how long a directory may be gone, or closed to this user, before the files
	// of a producer are given up.
	deniedFor = time.Minute

	// idleFor is how long a producer's files stay open without a row. One that is alive
	// sends a heartbeat a second.
	idleFor = 15 * time.Minute
)

// writer moves entries from the queue into files. Its methods are those of one goroutine.
type writer struct {
	r         *Recorder
	encoder   *segment.Encoder
	directory *segment.Directory
	sampler   *sample.Sampler[entry] // nil in full mode

	taken []entry
	done  [][]byte // buffers of entries that are done with

	series   map[string]*series
	latest   *series       // of the row before, if it is open
	buffered int           // bytes of all batches
	memory   int           // of their buffers
	most     int           // of memory
	rows     uint64        // that were taken for writing
	now      time.Duration // when the last entries were taken
	maxOpen  int           // files, before those of silent producers are closed for new ones
	flushAt  time.Duration
	idleAt   time.Duration
	warning  limited // that the disk fails
}

func newWriter(r *Recorder) (*writer, error) {
	encoder, err := segment.NewEncoder(r.opt.Level)
	if err != nil {
		return nil, err
	}
	w := &writer{
		r: r, encoder: encoder, directory: segment.NewDirectory(r.fs, r.prefix), series: map[string]*series{},
		taken: make([]entry, 0, takeAtOnce), flushAt: flushEvery, idleAt: idleFor, maxOpen: maxOpen(), most: batchBytes,
	}
	if r.opt.Mode == wire.Sampled {
		w.most -= sampledBytes
		w.sampler = sample.New(sample.Options[entry]{
			Start: instant(r.clock.since()), Interval: r.opt.SampleInterval,
			MaxKeys: maxStreams, MaxBytes: sampledBytes, Size: func(e entry) int { return e.bytes() }, Write: w.write, Drop: w.thin,
		})
	}
	return w, nil
}

// instant is a time since the start as the sampler takes it.
func instant(since time.Duration) time.Time { return time.Time{}.Add(since) }

// run works until stop is closed, then writes everything there is and closes the files.
func (w *writer) run(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			w.finish()
			return
		default:
		}
		if w.step() {
			continue
		}
		timer := time.NewTimer(max(0, w.next()-w.r.clock.since()))
		select {
		case <-timer.C:
		case <-stop:
		case <-w.r.queue.wake:
			w.gather(stop)
		}
		timer.Stop()
	}
}

// gather lets entries come together, until there are many or time is up.
func (w *writer) gather(stop <-chan struct{}) {
	if entries, _ := w.r.queue.fill(); entries >= wakeAt {
		return
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	case <-w.r.queue.wake:
	}
}

// next returns when there is something to do even if nothing arrives.
func (w *writer) next() time.Duration {
	if w.sampler == nil {
		return w.flushAt
	}
	return min(w.flushAt, w.sampler.Next().Sub(time.Time{}))
}

// step does what is to be done now, and tells whether there is more.
func (w *writer) step() (more bool) {
	more = w.drain()
	now := w.r.clock.since()
	if w.sampler != nil {
		w.sampler.Tick(instant(now))
	}
	if now >= w.flushAt {
		w.flushAt = now + flushEvery
		w.flushAll()
		w.flushAt = w.r.clock.since() + flushEvery
	}
	if now >= w.idleAt {
		w.closeIdle(now - idleFor)
		w.idleAt = now + idleFor
	}
	return more
}

// drain empties the queue. What arrives meanwhile is left when the flush is due, so that a
// stream without a pause is flushed as well: then there is more.
func (w *writer) drain() (more bool) {
	for {
		w.taken = w.r.queue.take(w.taken, w.done)
		w.now = w.r.clock.since()
		clear(w.done)
		w.done = w.done[:0]
		if len(w.taken) == 0 {
			return false
		}
		for _, e := range w.taken {
			if w.sampler == nil {
				w.write(e)
			} else {
				w.sampler.Put(e.stream.sampleKey(), e.counter, e)
			}
		}
		clear(w.taken) // or large rows would stay
		if w.r.clock.since() >= w.flushAt {
			return true
		}
	}
}

// maxSampleID is how much of a worker's id orders it among the sampled.
const maxSampleID = 128

// sampleKey is the stream as the sampler knows it. Workers without an id are told apart
// by where they are, and come before all others, as no id does.
func (s *stream) sampleKey() sample.Key {
	worker := s.key.worker
	if worker == "" {
		worker = "\x00" + s.endpoint.address
	}
	if len(worker) > maxSampleID { // the sampler remembers streams that are forgotten here
		worker = fmt.Sprintf("%s%x", worker[:maxSampleID], sha256.Sum256([]byte(worker)))
	}
	return sample.Key{Namespace: s.endpoint.namespace, Component: s.endpoint.component, WorkerID: worker, Rank: s.key.rank}
}

// thin takes an entry that sampling leaves out.
func (w *writer) thin(e entry) {
	e.stream.count(func(c *Counts) { c.Thinned++ })
	w.release(e.row)
}

// release gives a row's buffer back, if it will be used again.
func (w *writer) release(row []byte) {
	if cap(row) <= spareSize {
		w.done = append(w.done, row)
	}
}

// write puts an entry's row into the batch of its producer.
func (w *writer) write(e entry) {
	if w.r.opt.MaxRows > 0 && w.rows >= w.r.opt.MaxRows {
		e.stream.count(func(c *Counts) { c.Surplus++ })
	} else if s := w.of(e.stream); s.off {
		e.stream.settle(1, false)
	} else {
		w.append(s, e)
	}
	w.release(e.row)
}

// append appends a row to a batch, within the bounds.
func (w *writer) append(s *series, e entry) {
	if s.w.Buffered()+len(e.row) > flushAt && !s.failing {
		w.flush(s)
	}
	w.makeRoom(len(e.row))
	if s.off {
		e.stream.settle(1, false)
		return
	}
	s.used = w.now
	before := s.held()
	err := s.append(e.row, e.stream)
	w.holds(s, before)
	if err != nil {
		w.failed(s, err)
	}
	w.rows++
	if w.rows == w.r.opt.MaxRows {
		w.r.stop()
	}
}

// holds notes what has changed in what a producer's batch holds.
func (w *writer) holds(s *series, before held) {
	now := s.held()
	w.buffered += now.text - before.text
	w.memory += now.memory - before.memory
	w.r.metrics.pending.Store(int64(w.buffered))
}

// makeRoom keeps what all batches hold together within bounds: the largest is flushed, and
// given up where that fails.
func (w *writer) makeRoom(bytes int) {
	if w.memory+bytes <= w.most {
		return
	}
	for _, s := range w.series {
		before := s.held()
		s.w.Trim()
		w.holds(s, before)
	}
	for w.buffered > 0 && w.memory+bytes > w.most {
		var largest *series
		for _, s := range w.series {
			if largest == nil || s.w.Buffered() > largest.w.Buffered() {
				largest = s
			}
		}
		if !largest.failing {
			w.flush(largest)
			continue
		}
		before := largest.held()
		largest.dropOldest()
		w.holds(largest, before)
	}
}

// of returns the files of a stream.
func (w *writer) of(of *stream) *series {
	if w.latest != nil && w.latest.name == of.series {
		return w.latest
	}
	s := w.series[of.series]
	if s == nil {
		if len(w.series) >= w.maxOpen {
			w.closeIdle(w.r.clock.since() - quietBefore)
		}
		s = w.open(of)
		w.series[of.series] = s
		w.r.publish(s)
	}
	w.latest = s
	return s
}

// open makes the writer of a producer's files. Nothing is created before the first flush.
func (w *writer) open(of *stream) *series {
	s := &series{name: of.series, keep: cmp.Or(w.r.opt.MaxSegments, segment.DefaultMaxSegments)}
	if old := w.r.file(of.series); old != nil {
		s.before, s.beforeFiles, _ = old.published()
		s.public, s.files = s.before, s.beforeFiles
	}
	var err error
	s.w, err = segment.NewWriter(segment.Options{
		Prefix: w.r.prefix, Producer: of.producer,
		RollBytes: w.r.opt.RollBytes, MaxSegments: w.r.opt.MaxSegments, Fsync: w.r.opt.Fsync,
		MaxBuffered: 2 * batchBytes, // the bound for all together is kept here
		Encoder:     w.encoder, FS: w.r.fs, Directory: w.directory,
		Warn: func(err error) { w.r.warn(fmt.Sprintf("producer %s: %s", quote(of.producer), why(err))) },
	})
	if err != nil {
		panic(err) // the options were judged when the recorder was made
	}
	return s
}

// flush writes one batch and notes how long it took.
func (w *writer) flush(s *series) {
	before, begun := s.held(), w.r.clock.since()
	if before.text == 0 {
		return
	}
	err := s.flush()
	w.holds(s, before)
	w.r.metrics.flushed(w.r.clock.since() - begun)
	w.failed(s, err)
}

// hopeless tells whether to give a producer's files up for an error, or for none.
func (w *writer) hopeless(s *series, err error) bool {
	now := w.r.clock.since()
	switch {
	case err == nil || !hopeless(err):
		s.denied = 0
		return false
	case !passing(err):
		return true
	case s.denied == 0:
		s.denied = now + 1
	}
	return now+1-s.denied >= deniedFor
}

// failed deals with an attempt to write that failed, or did not.
func (w *writer) failed(s *series, err error) {
	if err != nil {
		w.r.metrics.writeErrors.Add(1)
	}
	hopeless := w.hopeless(s, err)
	switch {
	case err == nil && !s.told:
	case err == nil:
		w.tell(s, false)
		w.r.say(fmt.Sprintf("producer %q: its files are written again", s.name))
	case !hopeless:
		w.stuck(s, err)
	default:
		before := s.held()
		s.disable(err)
		w.tell(s, true) // it stays so
		w.holds(s, before)
		w.r.warn(fmt.Sprintf("producer %q: nothing is written any more: %s; the other producers go on", s.name, why(err)))
		w.r.disabled(w.series)
	}
}

// tell notes whether a producer's files can be written.
func (w *writer) tell(s *series, failing bool) {
	switch {
	case failing && !s.told:
		w.r.metrics.failing.Add(1)
	case !failing && s.told:
		w.r.metrics.failing.Add(-1)
	}
	s.told = failing
}

// stuck warns that a batch waits.
func (w *writer) stuck(s *series, err error) {
	if s.told {
		return
	}
	w.tell(s, true)
	if more, due := w.warning.due(w.r.clock.since()); due {
		w.r.warn(fmt.Sprintf("producer %q: writing failed: %s; it is tried again every second, and up to %d MiB of rows wait for it%s", s.name, why(err), w.most>>20, more))
	}
}

// flushAll writes every batch. A thousand files take their time; what arrives meanwhile is
// taken before the queue is full.
func (w *writer) flushAll() {
	for _, s := range w.series {
		w.flush(s)
		if entries, _ := w.r.queue.fill(); entries > queueEntries/2 {
			w.drain()
		}
	}
}

// closeIdle closes the files of producers of which nothing came since then.
func (w *writer) closeIdle(then time.Duration) {
	for name, s := range w.series {
		if s.used < then && s.w.Buffered() == 0 && !s.off {
			before := s.held()
			if err := s.close(); err != nil {
				w.r.metrics.writeErrors.Add(1)
				w.stuck(s, err)
			}
			w.holds(s, before)
			w.tell(s, false) // nothing of it waits
			delete(w.series, name)
			w.latest = nil
		}
	}
}

// finish writes everything there is, and closes the files.
func (w *writer) finish() {
	for w.drain() {
	}
	if w.sampler != nil {
		w.sampler.Flush()
	}
	w.flushAll()
	w.closeAll()
}

// closeAll closes the files.
func (w *writer) closeAll() {
	for _, s := range w.series {
		if err := s.close(); err != nil {
			w.r.warn(fmt.Sprintf("producer %q: the last rows are not written: %s", s.name, why(err)))
		}
	}
}
