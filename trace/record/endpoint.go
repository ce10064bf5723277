package record

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

const (
	reasons = 7 // of refusing a message

	// warnEvery is how often the refusals of one endpoint and reason are warned of.
	warnEvery = 10 * time.Second
)

// endpoint receives from one publisher. Its methods are those of one goroutine, but for
// the counts, which anybody may read.
type endpoint struct {
	index                int
	address              string
	namespace, component string
	producer             string // of its rows, whatever the worker; may be empty

	r         *Recorder
	decoder   wire.Decoder
	buffer    []byte // for the next row
	size      int    // of a new buffer
	latest    *stream
	head      []byte // of the row before
	headOf    *stream
	headAt    moment
	refused   uint64 // messages since the last valid one
	warnings  [reasons]limited
	crowding  limited
	overlarge limited
	flapping  limited
	restarted limited
	doubled   limited

	received  atomic.Uint64
	rejected  [reasons]atomic.Uint64
	crowded   atomic.Uint64 // valid, but of a stream too many; or large, and there was no memory for it
	gaps      atomic.Uint64
	missing   atomic.Uint64
	restarts  atomic.Uint64
	firstAt   atomic.Int64 // since the start, in nanoseconds, plus 1; 0 is never
	heardAt   atomic.Int64 // likewise
	connected atomic.Bool
	connects  atomic.Uint64

	mu     sync.Mutex
	silent string // why nothing is received, as far as it can be told
	failed string // why there is no connection; empty while there is one
}

// delivered tells whether a valid payload was received.
func (e *endpoint) delivered() bool { return e.firstAt.Load() != 0 }

// message judges a message and puts its row into the queue. It waits for nothing but locks
// that are held for moments. The frames are only read.
//
// The payload of nearly every message is decoded into its place in the row. JSON takes up
// to six times what a payload does, so the few that are large are decoded one at a time,
// in memory that all endpoints share, and get a row of the size that they need.
func (e *endpoint) message(frames [][]byte, at time.Time) {
	now := e.r.clock.at(at)
	if len(frames) == wire.FrameCount && len(frames[2]) > largePayload {
		e.large(frames, now)
		return
	}
	row := e.buffer[:0]
	if cap(row) == 0 {
		row = slices.Grow(row, e.size) // to the size that is allocated anyway, so that it is counted
	}
	s, counter, row := e.decode(row, frames, now)
	if s == nil {
		if e.buffer = row; cap(row) > spareSize {
			e.buffer = nil // a thousand endpoints would keep as many
		}
		return
	}
	e.size = len(row) + len(row)/8 // the next row has the same length, nearly
	e.buffer = e.r.queue.put(entry{stream: s, counter: counter, row: row}, overwritten)
}

// largePayload is the size in bytes from which a payload is decoded in shared memory. It is
// the size up to which buffers are used again.
const largePayload = spareSize

// shared is memory that endpoints use in turn.
type shared struct {
	mu     sync.Mutex
	buffer []byte
}

// large is message for a payload that is large.
func (e *endpoint) large(frames [][]byte, now moment) {
	m := &e.r.shared
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.buffer == nil {
		m.buffer = make([]byte, 0, 7*wire.MaxFrame) // what is not used of it takes no memory
	}
	s, counter, row := e.decode(m.buffer[:0], frames, now)
	m.buffer = row[:0]
	if s != nil {
		// What comes back for the next row is dropped: there is one already.
		e.r.queue.put(entry{stream: s, counter: counter, row: bytes.Clone(row)}, overwritten)
	}
}

// decode judges a message and appends its row to one that is empty. There is no stream
// when the message is none to be written. The head is nearly always that of the message
// before: a copy less for each.
func (e *endpoint) decode(row []byte, frames [][]byte, now moment) (s *stream, counter int64, out []byte) {
	if e.latest != nil {
		row = e.appendHead(row, e.latest, now)
	}
	head := len(row)
	f, row, err := e.decoder.Decode(row, frames)
	if err != nil {
		e.reject(err, now)
		return nil, 0, row
	}
	before := e.latest
	if s = e.stream(&f, now); s == nil {
		e.crowd(now)
		return nil, 0, row
	}
	if s != before {
		row = slices.Replace(row, 0, head, e.appendHead(nil, s, now)...)
	}
	e.received.Add(1)
	e.heardAt.Store(int64(now.since) + 1)
	if !e.delivered() {
		e.firstAt.Store(int64(now.since) + 1)
	}
	return s, f.CounterID, append(row, rowEnd...)
}

func overwritten(s *stream) { s.count(func(c *Counts) { c.QueueDrops++ }) }

// stream returns the stream of a payload, and counts the payload there. It returns nil
// when there are too many streams.
func (e *endpoint) stream(f *wire.FPM, now moment) *stream {
	for {
		s := e.latest
		if s == nil || s.key.rank != f.DPRank || s.key.worker != f.WorkerID {
			key := streamKey{e.index, f.WorkerID, f.DPRank}
			if s = e.r.registry.get(key, now, func() *stream { return e.newStream(key, now) }); s == nil {
				return nil
			}
			e.latest, e.refused = s, 0
			e.double(s, now)
		}
		event, ok := s.sequence(f, now, e.refused)
		if !ok {
			e.latest = nil
			continue
		}
		e.refused = 0
		e.note(event, f, now)
		return s
	}
}

// double tells that a worker and rank publish at two endpoints, once.
func (e *endpoint) double(s *stream, now moment) {
	if !s.untold {
		return
	}
	s.untold = false
	if more, due := e.doubled.due(now.since); due {
		e.r.warn(fmt.Sprintf("two endpoints publish as worker %s rank %d: %s and %s; their rows have one series of files, and cannot be told apart there%s",
			quote(s.key.worker), s.key.rank, s.alsoAt, e.address, more))
	}
}

// newStream makes a stream; the registry's lock is held.
func (e *endpoint) newStream(key streamKey, now moment) *stream {
	producer := e.producer
	if producer == "" {
		producer = key.worker
	}
	if producer == "" {
		producer = e.address
	}
	s := &stream{endpoint: e, producer: producer, series: segment.InFileName(e.r.prefix, producer)}
	s.alsoAt = e.r.registry.elsewhere(key, e, now)
	s.untold = s.alsoAt != ""
	if text := s.makeMiddle(); len(text) <= maxMiddle {
		s.middle = text
	}
	return s
}

// rowEnd is what a row has behind the payload.
const rowEnd = "}}\n"

// rowStart is what a row has before its first number.
const rowStart = `{"timestamp":`

// makeMiddle returns what a row has between its two numbers, which is the same for all of
// a stream.
func (s *stream) makeMiddle() []byte {
	e := s.endpoint
	text := wire.AppendRow(nil, wire.Row{Namespace: e.namespace, Component: e.component, ProducerID: s.producer, Mode: e.r.opt.Mode})
	text = bytes.TrimPrefix(text, []byte(rowStart+"0"))
	return bytes.TrimSuffix(text, []byte(`0,"fpm":`+rowEnd))
}

// appendHead appends what a row of a stream has before the payload. Messages that were read
// together have it in common.
func (e *endpoint) appendHead(dst []byte, s *stream, now moment) []byte {
	at := moment{now.since.Truncate(time.Millisecond), now.wallMS}
	if s.middle == nil {
		return appendHead(dst, at, s.makeMiddle())
	}
	if e.headOf != s || e.headAt != at {
		e.headOf, e.headAt, e.head = s, at, appendHead(e.head[:0], at, s.middle)
	}
	return append(dst, e.head...)
}

func appendHead(dst []byte, at moment, middle []byte) []byte {
	dst = append(dst, rowStart...)
	dst = strconv.AppendInt(dst, at.since.Milliseconds(), 10)
	dst = append(dst, middle...)
	dst = strconv.AppendInt(dst, at.wallMS, 10)
	return append(dst, `,"fpm":`...)
}

// note tells of what a payload's number says.
func (e *endpoint) note(event sequenceEvent, f *wire.FPM, now moment) {
	if event.missing > 0 {
		e.gaps.Add(1)
		e.missing.Add(event.missing)
	}
	if event.restart {
		e.restarts.Add(1)
		if more, due := e.restarted.due(now.since); due {
			e.r.warn(fmt.Sprintf("%s: worker %s, rank %d, was restarted: its counter is %d again%s", e.address, quote(f.WorkerID), f.DPRank, f.CounterID, more))
		}
	}
}

// reject counts a message that is refused, and warns of it.
func (e *endpoint) reject(err error, now moment) {
	var reject *wire.RejectError
	if !errors.As(err, &reject) {
		panic(err) // the decoder has no other errors
	}
	e.refused++
	e.rejected[reject.Reason].Add(1)
	if e.latest != nil {
		e.latest.reject(reject.Reason)
	}
	if more, due := e.warnings[reject.Reason].due(now.since); due {
		e.r.warn(fmt.Sprintf("%s: a message is refused (%s)%s", e.address, reject.Error(), more))
	}
}

// event takes what the subscription tells beside messages.
func (e *endpoint) event(ev subscribe.Event) {
	now := e.r.clock.at(ev.At)
	switch ev.Kind {
	case subscribe.Connected:
		e.connected.Store(true)
		e.connects.Add(1)
		e.setFailed("")
		e.refused = 0
		e.r.say(fmt.Sprintf("%s: connected", ev.Address))
	case subscribe.Failed:
		e.setFailed(subscribe.Reason(ev.Err))
	case subscribe.Disconnected:
		e.setFailed(subscribe.Reason(ev.Err))
		e.connected.Store(false)
		if more, due := e.flapping.due(now.since); due {
			e.r.warn(fmt.Sprintf("%s: the connection ended after %s: %s; trying again%s", ev.Address, ev.For.Round(time.Millisecond), why(ev.Err), more))
		}
	case subscribe.Silent:
		text := fmt.Sprintf("nothing received for %s: ", ev.For.Round(100*time.Millisecond))
		if ev.Err != nil {
			text += subscribe.Reason(ev.Err) + "; "
		}
		text += ev.Cause
		e.setSilent(text)
		e.r.warn(e.address + ": " + text)
	case subscribe.Recovered:
		e.setSilent("")
		e.r.say(e.address + ": messages come again")
	case subscribe.Refused:
		e.reject(ev.Err, now)
	case subscribe.Crowded:
		e.overrun(ev.Err, now)
	}
}

// quote quotes an id, its beginning when it is long.
func quote(id string) string {
	const most = 100
	if len(id) <= most {
		return strconv.Quote(id)
	}
	return fmt.Sprintf("%q… (%d bytes)", strings.ToValidUTF8(id[:most], ""), len(id))
}

// identify returns an id as a manifest has it: of one that is very long the beginning, and
// what tells it from others.
func identify(id string) string {
	const most = 1024
	if len(id) <= most {
		return id
	}
	return fmt.Sprintf("%s… (%d bytes, SHA-256 %.8x)", strings.ToValidUTF8(id[:100], ""), len(id), sha256.Sum256([]byte(id)))
}

// why says an error in one line.
func why(err error) string {
	if err == nil {
		return "for no reason that is known"
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func (e *endpoint) setSilent(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.silent = text
}

func (e *endpoint) setFailed(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = text
}

// failure returns why there is no connection, empty while there is one or none was tried.
func (e *endpoint) failure() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failed
}

// silence returns why nothing is received, empty while something is.
func (e *endpoint) silence() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.silent
}

// crowd counts a payload of a stream that there is no room for.
func (e *endpoint) crowd(now moment) {
	e.crowded.Add(1)
	if more, due := e.crowding.due(now.since); due {
		e.r.warn(fmt.Sprintf("%s: a payload is lost: it is of a new worker or rank, and those that are known are alive and are as many, or have ids as long, as can be remembered (%d, %d bytes)%s",
			e.address, e.r.registry.max, maxIDBytes, more))
	}
}

// overrun counts a message that was too large for the memory that was left. It had a number,
// so it is no gap.
func (e *endpoint) overrun(err error, now moment) {
	e.refused++
	e.crowded.Add(1)
	if more, due := e.overlarge.due(now.since); due {
		e.r.warn(fmt.Sprintf("%s: a large message is lost: %s by those of other endpoints; look at what sends messages of more than 32 KiB%s", e.address, why(err), more))
	}
}

// limited keeps a warning from being given too often.
type limited struct {
	next time.Duration
	held int
}

// due tells whether it is time for the warning, and what to say of those that were held
// back.
func (l *limited) due(now time.Duration) (more string, due bool) {
	if now < l.next {
		l.held++
		return "", false
	}
	if l.held > 0 {
		more = fmt.Sprintf("; %d more since the last warning of it", l.held)
	}
	l.next, l.held = now+warnEvery, 0
	return more, true
}
