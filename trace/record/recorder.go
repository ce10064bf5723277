package record

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

const (
	// stopWithin is how long the writer may take to write everything when it is stopped.
	// With what comes before and behind it a process ends within five seconds.
	stopWithin = 3700 * time.Millisecond

	// sayWithin is how long the last manifest may take when writing took all of its time.
	// What writing left of that is the manifest's, too: on a disk that others keep busy,
	// making a small file durable can take a second.
	sayWithin = 500 * time.Millisecond

	manifestEvery = 10 * time.Second

	// largeAtOnce is how many endpoints may receive a large message at a time. The others
	// wait, but not for long. Each takes up to 3 MiB.
	largeAtOnce = 4

	// receiveBytes is what the buffers of all connections take together, up to 256 of them
	// with the usual buffer. Beyond twice as many it is 16 KiB for each.
	receiveBytes = 8 << 20
)

// Options say what is recorded, and where to.
type Options struct {
	Endpoints []subscribe.Endpoint // one at least

	Output         string // prefix of all paths, see [segment.Prefix]
	Mode           wire.Mode
	SampleInterval time.Duration // of sampled mode
	RollBytes      uint64        // of text in a segment; 0 is [segment.DefaultRollBytes]
	MaxSegments    int           // kept for each producer; 0 is [segment.DefaultMaxSegments]
	Fsync          bool          // make each flush durable
	Level          int           // of compression; 0 is [segment.DefaultLevel]

	For          time.Duration // stop after so long; 0 is when the context ends
	MaxRows      uint64        // stop when so many rows are written; 0 is never
	RequireFirst time.Duration // fail unless every endpoint delivered by then; 0 requires nothing

	Version string            // of the program, for the manifest
	Warn    func(text string) // told of what an operator should know; may be nil
	Say     func(text string) // told of what an operator may want to know; may be nil
	FS      segment.FS        // of the segments; nil is the operating system's
}

// Recorder records the streams of its endpoints.
type Recorder struct {
	opt      Options
	prefix   string
	clock    clock
	started  int64 // wall clock, milliseconds since 1970
	manifest *manifestFile

	endpoints []*endpoint
	registry  *registry
	queue     *queue
	pool      *subscribe.Pool // of endpoints with large messages
	shared    shared          // likewise
	writer    *writer
	metrics   *metrics
	finisher  *finisher
	fs        segment.FS // of the segments
	cancel    context.CancelCauseFunc

	subscribe func(context.Context, subscribe.Endpoint, subscribe.Options) error

	mu     sync.Mutex
	series map[string]*series
	past   segment.Stats // of those that are not among the series any more
	state  State
	failed []error
}

// The reasons to stop, beside that the context ended.
var (
	errEnough   = errors.New("enough rows are written")
	errTimeUp   = errors.New("the time is up")
	errDisabled = errors.New("no producer's files can be written any more")
)

// New returns a recorder. It makes sure that files can be written where they are to be,
// and claims its manifest; the caller runs it, once.
func New(opt Options) (*Recorder, error) { return newRecorder(opt, newClock()) }

func newRecorder(opt Options, clock clock) (*Recorder, error) {
	if len(opt.Endpoints) == 0 {
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: "no endpoint to record from"}
	}
	if opt.Mode == wire.Sampled && opt.SampleInterval <= 0 {
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: "the interval of sampled mode must be above 0"}
	}
	r := &Recorder{
		opt: opt, prefix: segment.Prefix(opt.Output), clock: clock, subscribe: subscribe.Subscribe,
		registry: newRegistry(maxStreams), queue: newQueue(queueEntries, queueBytes),
		pool: subscribe.NewPool(largeAtOnce), series: map[string]*series{}, state: Recording,
	}
	if _, err := segment.NewWriter(segment.Options{Prefix: opt.Output, MaxSegments: opt.MaxSegments}); err != nil {
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: err.Error(), Err: err}
	}
	for i, e := range opt.Endpoints {
		r.endpoints = append(r.endpoints, &endpoint{
			r: r, index: i, address: e.Address, namespace: e.Namespace, component: e.Component, producer: e.Producer,
		})
	}
	if opt.FS == nil {
		r.opt.FS = segment.System()
	}
	r.finisher = newFinisher(r.opt.FS, r.warn)
	if r.fs = r.finisher; opt.Fsync {
		r.fs = r.opt.FS
	}
	r.started = r.clock.now().wallMS
	r.metrics = newMetrics(r)
	var err error
	if r.writer, err = newWriter(r); err != nil {
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: err.Error(), Err: err}
	}
	if err := probe(r.prefix); err != nil {
		return nil, err
	}
	r.manifest, err = claimManifest(r.prefix)
	return r, err
}

// Close gives up a recorder that is not run.
func (r *Recorder) Close() error { return r.manifest.release() }

// Run records until the context ends or an option says so. Then it writes what was
// received, and returns what became of everything. The error says what could not be done,
// and is joined of several; what was recorded stands in any case.
func (r *Recorder) Run(ctx context.Context) (m *Manifest, err error) {
	defer func() { err = errors.Join(err, r.manifest.release()) }()
	if err := r.manifest.write(r.Snapshot()); err != nil {
		m := r.Snapshot()
		m.unsaved = true
		return m, err
	}
	if r.manifest.shared {
		r.warn(fmt.Sprintf("another recorder writes to the prefix %s: what both receive of a publisher is doubled in its files; "+
			"this one's manifest is %s", r.prefix, r.manifest.path))
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	receiving := r.receive(ctx)
	stopWriting, written := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(written)
		r.writer.run(stopWriting)
	}()
	var keeping sync.WaitGroup
	keeping.Go(func() { r.keepManifest(ctx) })
	r.attend(ctx)

	end := time.Now().Add(stopWithin + sayWithin)
	deadline := time.NewTimer(stopWithin)
	defer deadline.Stop()
	wait(receiving, deadline.C)
	close(stopWriting)
	clean := wait(written, deadline.C)
	if clean && !r.finisher.wait(deadline.C) {
		r.warn("the last segments are written, but were not made durable in time")
	}
	return r.conclude(clean, keeping.Wait, end)
}

// wait waits for done, but not beyond the deadline, and tells which came first.
func wait(done <-chan struct{}, deadline <-chan time.Time) bool {
	select {
	case <-done:
		return true
	case <-deadline:
		return false
	}
}

// receive subscribes to every endpoint. The channel is closed when all have ended.
func (r *Recorder) receive(ctx context.Context) <-chan struct{} {
	var group sync.WaitGroup
	buffer := min(receiveBytes/len(r.endpoints), 32<<10)
	for i, e := range r.endpoints {
		group.Go(func() {
			err := r.subscribe(ctx, r.opt.Endpoints[i], subscribe.Options{OnMessage: e.message, OnEvent: e.event, BufferSize: buffer, Pool: r.pool})
			if ctx.Err() == nil {
				r.fail(fmt.Errorf("%s: %w", e.address, err))
			}
		})
	}
	done := make(chan struct{})
	go func() {
		group.Wait()
		close(done)
	}()
	return done
}

// attend waits for the end, and sees to it that there is one.
func (r *Recorder) attend(ctx context.Context) {
	end, first := timer(r.opt.For), timer(r.opt.RequireFirst)
	for {
		select {
		case <-ctx.Done():
			return
		case <-end:
			r.cancel(errTimeUp)
		case <-first:
			r.requireFirst()
		}
	}
}

// timer returns a channel on which the time comes after d, never when d is 0.
func timer(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return time.After(d)
}

// requireFirst fails when there is an endpoint that has not delivered.
func (r *Recorder) requireFirst() {
	waiting := r.waiting()
	if len(waiting) == 0 {
		return
	}
	r.fail(&exitcode.Error{
		Code:    exitcode.Failed,
		Message: fmt.Sprintf("%d of %d endpoints delivered nothing within %s: %s", len(waiting), len(r.endpoints), r.opt.RequireFirst, some(waiting, 8)),
		Hint:    "check the addresses, and that the workers publish forward-pass metrics",
	})
}

// ready tells whether every endpoint has delivered, or which have not.
func (r *Recorder) ready() (bool, string) {
	waiting := r.waiting()
	if len(waiting) == 0 {
		return true, ""
	}
	return false, fmt.Sprintf("%d of %d endpoints have delivered nothing so far: %s", len(waiting), len(r.endpoints), some(waiting, 8))
}

// health says that the recorder is alive, and whether its files can be written: a full disk
// is no reason to restart it, which would lose what waits.
func (r *Recorder) health() string {
	if failing := r.metrics.failing.Load(); failing > 0 {
		return fmt.Sprintf("alive, but the files of %d producers cannot be written: %d bytes of rows wait for the disk, and beyond %d MiB the oldest are lost",
			failing, r.metrics.pending.Load(), r.writer.most>>20)
	}
	return "ok"
}

// waiting returns the addresses of the endpoints that have delivered nothing so far.
func (r *Recorder) waiting() (addresses []string) {
	for _, e := range r.endpoints {
		if !e.delivered() {
			addresses = append(addresses, e.address)
		}
	}
	return addresses
}

// stop ends the recording: there are enough rows.
func (r *Recorder) stop() { r.cancel(errEnough) }

// fail ends the recording with an error.
func (r *Recorder) fail(err error) {
	r.mu.Lock()
	r.failed = append(r.failed, err)
	r.mu.Unlock()
	r.cancel(err)
}

// publish makes the files of a producer known to those who ask. When there are too many,
// those of producers that were silent for long are summed up.
func (r *Recorder) publish(s *series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.series) >= maxStreams {
		for name, old := range r.series {
			if stats, ok := old.past(); ok && name != s.name {
				r.past = sum(r.past, stats)
				delete(r.series, name)
			}
		}
	}
	r.series[s.name] = s
}

// file returns the files of a producer, as far as they are known.
func (r *Recorder) file(name string) *series {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.series[name]
}

// disabled ends the recording when no producer is left whose files can be written: a
// recorder that goes on and records nothing is one that nobody looks at.
func (r *Recorder) disabled(all map[string]*series) {
	for _, s := range all {
		if !s.off {
			return
		}
	}
	r.fail(&exitcode.Error{Code: exitcode.Failed, Message: errDisabled.Error(), Hint: "the warnings say why", Err: errDisabled})
}

func (r *Recorder) warn(text string) {
	if r.opt.Warn != nil {
		r.opt.Warn(text)
	}
}

func (r *Recorder) say(text string) {
	if r.opt.Say != nil {
		r.opt.Say(text)
	}
}

// keepManifest writes the manifest now and then.
func (r *Recorder) keepManifest(ctx context.Context) {
	ticker := time.NewTicker(manifestEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := r.manifest.write(r.Snapshot()); err != nil {
				r.warn(fmt.Sprintf("the manifest is not up to date: %v", err))
			}
		}
	}
}

// conclude says what became of everything, once the writer has ended or is given up.
func (r *Recorder) conclude(clean bool, settled func(), end time.Time) (*Manifest, error) {
	r.mu.Lock()
	r.state = Stopped
	if !clean {
		r.state = Abandoned
	}
	errs := r.failed
	r.mu.Unlock()
	m := r.Snapshot()
	failed := r.saveLast(m, settled, end)
	m.unsaved = failed != nil
	if lost := m.Totals.Lost() + m.Totals.Pending; lost > 0 || !clean {
		errs = append(errs, lossError(m, lost, clean))
	}
	return m, errors.Join(append(errs, failed)...)
}

// saveLast writes the last manifest, by the end.
func (r *Recorder) saveLast(m *Manifest, settled func(), end time.Time) error {
	said := make(chan error, 1)
	go func() {
		settled() // a manifest that is on its way must not come behind the last one
		said <- r.manifest.write(m)
	}()
	deadline := time.NewTimer(max(sayWithin, time.Until(end)))
	defer deadline.Stop()
	select {
	case err := <-said:
		return err
	case <-deadline.C:
		return &exitcode.Error{Code: exitcode.Failed, File: r.manifest.path, Message: "the last manifest could not be written in time"}
	}
}

// lossError says what was received and is lost.
func lossError(m *Manifest, lost uint64, clean bool) error {
	e := &exitcode.Error{Code: exitcode.Failed}
	record := "the manifest says which are lost"
	if m.unsaved {
		record = "the manifest could not be written, so this list is the only record of what is lost"
	}
	switch t := m.Totals; {
	case !clean:
		e.Message = fmt.Sprintf("writing did not end within %s and was given up: of %d payloads received %d are lost or were not seen to be written", stopWithin, t.Received, lost)
		e.Hint = "the disk does not take what is written, or is far too slow"
	case t.DiskDrops > 0:
		e.Message = fmt.Sprintf("%d payloads are lost: %d could not be written, %d were overwritten while they waited", lost, t.DiskDrops, t.QueueDrops+t.Crowded)
		e.Hint = "free some space, or choose another place; " + record
	case t.QueueDrops == 0 && t.Crowded > 0:
		e.Message = fmt.Sprintf("%d payloads are lost: they were of new workers when there were too many, or their ids too long, to be remembered, or too large for the memory that was left", lost)
		e.Hint = "the warnings say of which endpoint; look at the worker ids, somebody may make them up; " + record
	default:
		e.Message = fmt.Sprintf("%d payloads are lost: they came faster than they could be written", lost)
		e.Hint = "a faster disk, more CPU or sampled mode help; " + record
	}
	return e
}

// some joins up to n texts.
func some(texts []string, n int) string {
	list := ""
	for i, text := range texts {
		if i == n {
			return list + fmt.Sprintf(" and %d more", len(texts)-n)
		}
		if i > 0 {
			list += ", "
		}
		list += text
	}
	return list
}

// Handler returns what is served over HTTP: the metrics, and whether the recorder is
// alive and ready.
func (r *Recorder) Handler() http.Handler { return r.metrics.handler(r.ready, r.health) }
