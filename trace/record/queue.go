package record

import (
	"runtime"
	"sync"
)

// The bounds of the queue between receiving and writing.
const (
	queueEntries = 8192
	queueBytes   = 32 << 20

	// entryOverhead is what an entry takes beside its row.
	entryOverhead = 96

	// wakeAt is the number of waiting entries at which the writer is woken at once, and
	// not at the end of its pause.
	wakeAt = queueEntries / 8

	// takeBytes bounds what is taken under one lock: what is taken is in the queue's bounds
	// no more.
	takeBytes = 1 << 20

	// Buffers up to spareSize are used again, spareBytes of them at most. Larger ones are
	// rare, and would make the spare ones as large as the largest payload.
	spareSize  = 4 << 10
	spareBytes = 8 << 20
)

// entry is a row on its way from an endpoint to the files of its producer.
type entry struct {
	stream  *stream
	counter int64
	row     []byte
}

// bytes is what the entry takes in memory.
func (e *entry) bytes() int { return cap(e.row) + entryOverhead }

// queue holds entries in their order of arrival, within bounds: putting never waits, the
// oldest entries give way. It also keeps the buffers of entries that are done with, so
// that one lock does for putting an entry and getting the buffer of the next.
type queue struct {
	wake chan struct{} // has a token when there is something to do; capacity 1

	mu         sync.Mutex
	ring       []entry
	head, size int
	bytes      int // of the entries in the ring
	maxBytes   int
	spare      [][]byte
	spareTotal int
}

func newQueue(entries, maxBytes int) *queue {
	return &queue{wake: make(chan struct{}, 1), ring: make([]entry, entries), maxBytes: maxBytes}
}

// put appends an entry and returns a buffer for the row of the next, which may be nil.
// When there is no room the oldest entries are overwritten: lost gets the streams that
// they were of, and is called when no lock is held.
//
// A caller that finds half of the room taken lets others run, the writer if it can: where
// there is one processor for all, it else gets its turn only after every endpoint had one.
// This is no wait: when the writer cannot run, for the disk say, the caller goes on at once.
func (q *queue) put(e entry, lost func(*stream)) (buffer []byte) {
	var gone [4]*stream // nearly always one or none
	overwritten := gone[:0]
	q.mu.Lock()
	for q.size == len(q.ring) || (q.size > 0 && q.bytes+e.bytes() > q.maxBytes) {
		old := q.pop()
		overwritten = append(overwritten, old.stream)
		q.keep(old.row)
	}
	at := q.head + q.size
	if at >= len(q.ring) {
		at -= len(q.ring)
	}
	q.ring[at] = e
	q.size++
	q.bytes += e.bytes()
	for n := len(q.spare) - 1; n >= 0 && q.bytes+q.spareTotal > q.maxBytes; n-- {
		q.spareTotal -= cap(q.spare[n]) // the bound is one of memory
		q.spare[n] = nil
		q.spare = q.spare[:n]
	}
	size := q.size
	if n := len(q.spare); n > 0 {
		buffer = q.spare[n-1]
		q.spare[n-1] = nil
		q.spare = q.spare[:n-1]
		q.spareTotal -= cap(buffer)
	}
	q.mu.Unlock()
	if size == 1 || size == wakeAt {
		q.rouse()
	}
	for _, s := range overwritten {
		lost(s)
	}
	if size > len(q.ring)/2 {
		runtime.Gosched()
	}
	return buffer[:0]
}

// pop takes the oldest entry out.
func (q *queue) pop() entry {
	e := q.ring[q.head]
	q.ring[q.head] = entry{}
	if q.head++; q.head == len(q.ring) {
		q.head = 0
	}
	q.size--
	q.bytes -= e.bytes()
	return e
}

// keep keeps a buffer for use again, if it is worth it.
func (q *queue) keep(buffer []byte) {
	if c := cap(buffer); c > 0 && c <= spareSize && q.spareTotal+c <= min(spareBytes, q.maxBytes-q.bytes) {
		q.spare = append(q.spare, buffer)
		q.spareTotal += c
	}
}

// rouse lets the writer look at the queue.
func (q *queue) rouse() {
	select {
	case q.wake <- struct{}{}:
	default: // it is going to, anyway
	}
}

// take moves the oldest entries to dst, as many as it has capacity for and takeBytes of
// them or a little more, and takes back the buffers of those before. It takes none only
// when there is none.
func (q *queue) take(dst []entry, done [][]byte) []entry {
	dst = dst[:0]
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, buffer := range done {
		q.keep(buffer)
	}
	for bytes := 0; q.size > 0 && len(dst) < cap(dst) && bytes < takeBytes; bytes += dst[len(dst)-1].bytes() {
		dst = append(dst, q.pop())
	}
	return dst
}

// fill returns how many entries and bytes are waiting.
func (q *queue) fill() (entries, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.size, q.bytes
}
