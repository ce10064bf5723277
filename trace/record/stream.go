package record

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fpm-project/fpm/trace/wire"
)

// The bounds of what is remembered of streams.
const (
	maxStreams = 1 << 13

	// maxIDBytes is what the worker ids of all streams may have together. A fleet's have
	// some 20 bytes each; a peer may send some of a mebibyte.
	// Some ten times as much is taken by what goes with an id: names of files, heads of rows.
	maxIDBytes = 1 << 20

	// maxMiddle is how much of a row's head is kept for each stream. Longer ones, of worker
	// ids that nobody has but to do harm, are made anew for each row.
	maxMiddle = 512

	// aliveFor is how long after its last payload a stream is taken for alive.
	aliveFor = 10 * time.Second

	// quietBefore is how long a stream must have been silent to be forgotten for a new one.
	quietBefore = time.Minute
)

// Counts are what became of the payloads of one stream, or of several together. Once
// everything is written or lost,
//
//	Received = Written + Thinned + Surplus + QueueDrops + DiskDrops
type Counts struct {
	Received   uint64 `json:"received"`   // valid payloads
	Written    uint64 `json:"written"`    // rows in files, in complete gzip members
	Heartbeats uint64 `json:"heartbeats"` // of those received
	Busy       uint64 `json:"busy"`       // of those received: a forward pass that took time

	Gaps       uint64 `json:"gaps"`       // runs of counters that are missing
	Missing    uint64 `json:"missing"`    // counters in them: numbered by the publisher, never received
	Duplicates uint64 `json:"duplicates"` // a counter that came twice running
	Restarts   uint64 `json:"restarts"`   // a counter lower than the one before: numbered anew

	Thinned    uint64 `json:"thinned"`     // not written because sampling chose another, or it said nothing new
	Surplus    uint64 `json:"surplus"`     // not written because enough rows were
	QueueDrops uint64 `json:"queue_drops"` // lost here: overwritten before they could be written
	DiskDrops  uint64 `json:"disk_drops"`  // lost here: could not be written
}

// Lost is the number of payloads that were received and are lost all the same.
func (c Counts) Lost() uint64 { return c.QueueDrops + c.DiskDrops }

// add adds the counts of another stream.
func (c *Counts) add(o Counts) {
	c.Received += o.Received
	c.Written += o.Written
	c.Heartbeats += o.Heartbeats
	c.Busy += o.Busy
	c.Gaps += o.Gaps
	c.Missing += o.Missing
	c.Duplicates += o.Duplicates
	c.Restarts += o.Restarts
	c.Thinned += o.Thinned
	c.Surplus += o.Surplus
	c.QueueDrops += o.QueueDrops
	c.DiskDrops += o.DiskDrops
}

// streamKey is what numbers its payloads by itself, as far as can be seen from here.
type streamKey struct {
	endpoint int
	worker   string
	rank     int64
}

// stream is what is known of one DP rank of one worker at one endpoint.
type stream struct {
	key      streamKey
	endpoint *endpoint
	producer string // producer_id of its rows
	series   string // of files
	middle   []byte // of its rows, see appendHead; nil when it is too long to be kept
	alsoAt   string // an endpoint where the same worker and rank was alive when this began
	untold   bool   // of alsoAt; its endpoint's alone

	mu              sync.Mutex
	counts          Counts
	gone            *tally // when the stream is forgotten: where its counts go on
	numbered        bool   // there is a first counter
	first, last     int64
	firstMS, lastMS int64         // wall clock at their arrival, since 1970
	heard           time.Duration // when the last one came
	rejected        [reasons]uint64
}

// tally is counts that several goroutines add to.
type tally struct {
	mu     sync.Mutex
	counts Counts
}

func (t *tally) add(what func(*Counts)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what(&t.counts)
}

func (t *tally) get() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// sequence counts one more payload and judges its number. Rejected is the number of
// messages that the endpoint refused since the last valid one: each had a number, so they
// are no gap. It returns false when the stream was forgotten meanwhile.
func (s *stream) sequence(f *wire.FPM, now moment, rejected uint64) (event sequenceEvent, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone != nil {
		return sequenceEvent{}, false
	}
	c := &s.counts
	c.Received++
	if f.Heartbeat() {
		c.Heartbeats++
	}
	if f.WallTime > 0 {
		c.Busy++
	}
	switch {
	case !s.numbered:
		s.numbered, s.first, s.firstMS = true, f.CounterID, now.wallMS // a late join is no gap
	case f.CounterID < s.last:
		c.Restarts++
		event.restart = true
	case f.CounterID == s.last:
		c.Duplicates++
	default:
		if missing := uint64(f.CounterID - s.last - 1); missing > rejected {
			event.missing = missing - rejected
			c.Gaps++
			c.Missing += event.missing
		}
	}
	s.last, s.lastMS, s.heard = f.CounterID, now.wallMS, now.since
	return event, true
}

// sequenceEvent is what a payload's number says, beside that it is the next one.
type sequenceEvent struct {
	missing uint64
	restart bool
}

// count adds to the counts, wherever they are kept by now.
func (s *stream) count(what func(*Counts)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	what(&s.counts)
	if s.gone != nil {
		s.gone.add(what)
	}
}

// reject counts a message that was refused at the stream's endpoint while this was the
// stream heard of last: there is nothing else to tell by whose it was.
func (s *stream) reject(reason wire.Reason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected[reason]++
}

// settle counts rows that have left their batch.
func (s *stream) settle(rows uint64, written bool) {
	s.count(func(c *Counts) {
		if written {
			c.Written += rows
		} else {
			c.DiskDrops += rows
		}
	})
}

// registry holds the streams of a recorder.
type registry struct {
	max  int
	rest tally // of the streams that were forgotten

	mu        sync.RWMutex
	streams   map[streamKey]*stream
	ids       int           // bytes of the streams' worker ids
	crowded   time.Duration // before this there is nobody to forget
	forgotten int
}

func newRegistry(max int) *registry { return &registry{max: max, streams: map[streamKey]*stream{}} }

// fits tells whether there is room for a new stream. The lock is held.
func (r *registry) fits(key streamKey) bool {
	return len(r.streams) < r.max && r.ids+len(key.worker) <= maxIDBytes
}

// elsewhere returns the address of another endpoint of the same namespace and component at
// which the same worker and rank is alive, "" when there is none. The lock is held.
func (r *registry) elsewhere(key streamKey, of *endpoint, now moment) string {
	if key.worker == "" {
		return "" // told apart by where they are
	}
	for i, other := range of.r.endpoints {
		if i == of.index || other.namespace != of.namespace || other.component != of.component {
			continue
		}
		if s := r.streams[streamKey{i, key.worker, key.rank}]; s != nil && s.alive(now) {
			return other.address
		}
	}
	return ""
}

func (s *stream) alive(now moment) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.since-s.heard < aliveFor
}

// get returns the stream of a key, a new one from create when there is none. It returns
// nil when there are too many that are still alive, or their ids are too long.
func (r *registry) get(key streamKey, now moment, create func() *stream) *stream {
	r.mu.RLock()
	s := r.streams[key]
	r.mu.RUnlock()
	if s != nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.streams[key]; s != nil {
		return s
	}
	if !r.fits(key) && (!r.forget(now.since) || !r.fits(key)) {
		return nil
	}
	s = create()
	s.key, s.heard = key, now.since
	r.streams[key] = s
	r.ids += len(key.worker)
	return s
}

// forget drops the streams that have been silent for long, and tells whether there were
// any. An engine that restarts under another worker id for months must not fill the
// registry; nor must a peer that makes up ids push out those that are alive.
func (r *registry) forget(now time.Duration) bool {
	if now < r.crowded {
		return false
	}
	oldest, before := now, len(r.streams)
	for key, s := range r.streams {
		s.mu.Lock()
		if now-s.heard >= quietBefore {
			r.rest.add(func(c *Counts) { c.add(s.counts) })
			s.gone = &r.rest
			delete(r.streams, key)
			r.ids -= len(key.worker)
		} else {
			oldest = min(oldest, s.heard)
		}
		s.mu.Unlock()
	}
	r.forgotten += before - len(r.streams)
	r.crowded = oldest + quietBefore
	return len(r.streams) < before
}

// list returns the streams by producer, rank and endpoint.
func (r *registry) list() []*stream {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make([]*stream, 0, len(r.streams))
	for _, s := range r.streams {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *stream) int {
		return cmp.Or(strings.Compare(a.producer, b.producer), cmp.Compare(a.key.rank, b.key.rank),
			cmp.Compare(a.key.endpoint, b.key.endpoint), strings.Compare(a.key.worker, b.key.worker))
	})
	return all
}

func (r *registry) size() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.streams)
}
