// Package top is the live view of a fleet's forward passes: a line for every worker and
// rank with what it has done of late.
//
// A [Board] keeps the last minute of every rank, second by second, in a fixed amount of
// memory, and what it has counted since it began: gaps, restarts, refusals. It is fed with
// passes as they arrive and with the news of endpoints. A [Snapshot] of it is a value,
// from which a [View] makes the lines of a table, and with which a [Model] makes a program
// for a terminal. Times are the caller's: a board knows no clock.
package top

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fpm-project/fpm/trace/wire"
)

const (
	// Window is the time over which a line's figures are taken.
	Window = 10 * time.Second
	// Minute is the length of a sparkline in seconds.
	Minute = 60
	// Quiet is the silence from which on a line is marked. Publishers send once a second.
	Quiet = 3 * time.Second
	// MaxLines bounds the workers and ranks of a board. Beyond it the one that has been
	// silent longest makes room: peers can make up as many names as they like.
	MaxLines = 4096
)

// Pass is a forward pass, or a heartbeat, as it arrived.
type Pass struct {
	Source  string // the endpoint, or the producer of a recorded row
	Worker  string // as its publisher calls it; may be empty
	Rank    int64
	Counter int64
	At      time.Time
	Sampled bool // from a sampled trace, in which missing counters are no gaps

	WallTime          float64 // seconds
	Scheduled, Queued wire.Load
}

// heartbeat tells whether nothing was done and nothing waits.
func (p *Pass) heartbeat() bool {
	return p.WallTime == 0 && p.Scheduled == wire.Load{} && p.Queued == wire.Load{}
}

// State is what is known of an endpoint.
type State string

// The states of an endpoint.
const (
	Waiting   State = "waiting" // there was no connection so far
	Connected State = "connected"
	Silent    State = "silent" // connected, and nothing comes
	Lost      State = "lost"   // there is no connection any more
)

// Endpoint is an address that is subscribed to.
type Endpoint struct {
	Address string `json:"address"`
	State   State  `json:"state"`
	Detail  string `json:"detail,omitempty"`  // why, for people
	Refused uint64 `json:"refused"`           // messages that were no forward passes
	Refusal string `json:"refusal,omitempty"` // why the last one was refused
	Lines   int    `json:"lines"`             // workers and ranks that it has brought
}

// Line is what a snapshot knows of one worker and rank. The figures are means over
// [Window], or over the time since the first message if that is shorter.
type Line struct {
	Source   string  `json:"source"`
	Worker   string  `json:"worker_id"`
	Rank     int64   `json:"dp_rank"`
	Rate     float64 `json:"passes_per_s"`         // forward passes a second; heartbeats are none
	Wall     float64 `json:"-"`                    // median of the wall times in seconds; 0 without passes
	Prefill  float64 `json:"prefill_tokens_per_s"` // scheduled tokens a second
	Decode   float64 `json:"decode_requests"`      // scheduled requests of a pass
	KV       float64 `json:"decode_kv_tokens"`     // their tokens of a pass
	Queue    uint64  `json:"queue"`                // requests that waited at the last message
	Sampled  bool    `json:"sampled"`              // gaps are not judged
	Gaps     uint64  `json:"missing"`              // missing messages
	Restarts uint64  `json:"restarts"`
	Messages uint64  `json:"messages"` // heartbeats included

	Silence time.Duration `json:"-"` // since the last message

	// Seconds has the last minute, the newest second last.
	Seconds [Minute]Second `json:"-"`
}

// Second is what came in one second. The loads are means over its passes.
type Second struct {
	Passes, Heartbeats int
	Wall               float64
	Prefill            float64 // tokens of all passes
	Decode             float64
	Queue              float64
}

// Snapshot is a board at one time.
type Snapshot struct {
	At        time.Time
	Lines     []Line // by worker, rank and source
	Endpoints []Endpoint
	Forgotten int // lines that are gone: silent for long, or another worker's now
}

// Board gathers passes. It may be used concurrently.
type Board struct {
	mu        sync.Mutex
	streams   map[key]*stream
	endpoints map[string]*Endpoint
	order     []string // the endpoints' addresses as they were given
	forgotten int
}

type key struct {
	source, worker string
	rank           int64
}

// NewBoard returns a board that waits for endpoints.
func NewBoard(addresses ...string) *Board {
	b := &Board{streams: map[key]*stream{}, endpoints: map[string]*Endpoint{}, order: addresses}
	for _, a := range addresses {
		b.endpoints[a] = &Endpoint{Address: a, State: Waiting}
	}
	return b
}

// Note takes news of an endpoint that the board waits for.
func (b *Board) Note(address string, state State, detail string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.endpoints[address]; e != nil {
		if state == Waiting && e.State != Waiting {
			state = Lost
		}
		e.State, e.Detail = state, detail
	}
}

// Refuse counts a message of an endpoint that was no forward pass.
func (b *Board) Refuse(address, why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.endpoints[address]; e != nil {
		e.Refused++
		e.Refusal = why
	}
}

// Add takes a pass.
func (b *Board) Add(p *Pass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := key{p.Source, p.Worker, p.Rank}
	s := b.streams[k]
	if s == nil {
		if len(b.streams) >= MaxLines {
			b.forget()
		}
		s = &stream{first: p.At, last: p.At, counter: p.Counter - 1}
		b.replace(k)
		b.streams[k] = s
		if e := b.endpoints[p.Source]; e != nil {
			e.Lines++
		}
	}
	s.replaced = false
	s.add(p)
}

// replace marks the lines in whose place a new one is: another worker has come up at their
// endpoint.
func (b *Board) replace(by key) {
	for k, s := range b.streams {
		if k.source == by.source && k.rank == by.rank {
			s.replaced = true
		}
	}
}

// forget drops the line that has been silent longest.
func (b *Board) forget() {
	b.drop(slices.MinFunc(slices.Collect(maps.Keys(b.streams)), func(x, y key) int {
		return b.streams[x].last.Compare(b.streams[y].last)
	}))
}

func (b *Board) drop(k key) {
	delete(b.streams, k)
	b.forgotten++
	if e := b.endpoints[k.source]; e != nil {
		e.Lines--
	}
}

// Snapshot returns what the board knows at a time. A line in whose place there is another
// is dropped with the last minute of it.
func (b *Board) Snapshot(now time.Time) Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, s := range b.streams {
		if s.replaced && now.Sub(s.last) > Minute*time.Second {
			b.drop(k)
		}
	}
	snap := Snapshot{At: now, Forgotten: b.forgotten, Lines: make([]Line, 0, len(b.streams))}
	for k, s := range b.streams {
		l := s.line(now)
		l.Source, l.Worker, l.Rank = k.source, k.worker, k.rank
		snap.Lines = append(snap.Lines, l)
	}
	slices.SortFunc(snap.Lines, func(x, y Line) int { return x.compare(&y) })
	for _, a := range b.order {
		snap.Endpoints = append(snap.Endpoints, *b.endpoints[a])
	}
	return snap
}

// compare is the order of lines in which nothing moves.
func (l *Line) compare(m *Line) int {
	return cmp.Or(cmp.Compare(l.Worker, m.Worker), cmp.Compare(l.Rank, m.Rank), cmp.Compare(l.Source, m.Source))
}

const (
	ring  = 64  // seconds that are kept, the one that is going on included
	walls = 256 // wall times that are kept
)

// stream is one worker and rank.
type stream struct {
	first, last time.Time
	counter     int64 // the last one
	queue       uint64
	sampled     bool
	replaced    bool // by another worker at its endpoint
	gaps        uint64
	restarts    uint64
	messages    uint64
	seconds     [ring]second
	walls       [walls]struct {
		at   int64 // nanoseconds since 1970
		wall float64
	}
	passes uint64 // of which the last ones are in walls
}

// second sums up what came in one second.
type second struct {
	at                 int64 // seconds since 1970; another one when the slot is old
	passes, heartbeats int
	wall, prefill      float64
	decode, kv, queue  float64
}

func (s *stream) add(p *Pass) {
	switch {
	case p.Counter-1 > s.counter && s.messages > 0:
		s.gaps += uint64(p.Counter - 1 - s.counter)
	case p.Counter < s.counter:
		s.restarts++
	}
	s.counter = p.Counter
	s.messages++
	s.sampled = p.Sampled
	s.queue = p.Queued.NumPrefillRequests + p.Queued.NumDecodeRequests
	if p.At.After(s.last) {
		s.last = p.At
	}
	at := p.At.Unix()
	slot := &s.seconds[uint64(at)%ring]
	if slot.at > at {
		return // older than all that is kept
	}
	if slot.at != at {
		*slot = second{at: at}
	}
	slot.add(p, s.queue)
	if !p.heartbeat() {
		w := &s.walls[s.passes%walls]
		w.at, w.wall = p.At.UnixNano(), p.WallTime
		s.passes++
	}
}

func (c *second) add(p *Pass, queue uint64) {
	if p.heartbeat() {
		c.heartbeats++
		return
	}
	c.passes++
	c.wall += p.WallTime
	c.prefill += float64(p.Scheduled.SumPrefillTokens)
	c.decode += float64(p.Scheduled.NumDecodeRequests)
	c.kv += float64(p.Scheduled.SumDecodeKVTokens)
	c.queue += float64(queue)
}

// at returns what came in a second, zeros when it is not kept.
func (s *stream) at(unix int64) second {
	if slot := s.seconds[uint64(unix)%ring]; slot.at == unix {
		return slot
	}
	return second{}
}

// line returns the figures at a time. The second that is going on counts for nothing but
// the silence: a part of one would look like a slump.
func (s *stream) line(now time.Time) Line {
	l := Line{
		Queue: s.queue, Sampled: s.sampled, Gaps: s.gaps, Restarts: s.restarts, Messages: s.messages,
		Silence: max(0, now.Sub(s.last)), Wall: s.median(now),
	}
	if s.sampled {
		l.Gaps = 0
	}
	whole := now.Unix() // seconds before this one are over
	for i := range l.Seconds {
		l.Seconds[i] = s.at(whole - Minute + int64(i)).mean()
	}
	span := min(int64(Window/time.Second), max(1, whole-s.first.Unix()))
	var sum second
	for i := range span {
		c := s.at(whole - 1 - i)
		sum.passes += c.passes
		sum.prefill += c.prefill
		sum.decode += c.decode
		sum.kv += c.kv
	}
	l.Rate = float64(sum.passes) / float64(span)
	l.Prefill = sum.prefill / float64(span)
	if sum.passes > 0 {
		l.Decode, l.KV = sum.decode/float64(sum.passes), sum.kv/float64(sum.passes)
	}
	return l
}

func (c second) mean() Second {
	m := Second{Passes: c.passes, Heartbeats: c.heartbeats, Prefill: c.prefill}
	if n := float64(c.passes); n > 0 {
		m.Wall, m.Decode, m.Queue = c.wall/n, c.decode/n, c.queue/n
	}
	return m
}

// median returns that of the wall times in the window, the last of them if there are many.
func (s *stream) median(now time.Time) float64 {
	since := now.Add(-Window).UnixNano()
	list := make([]float64, 0, walls)
	for i := range min(s.passes, walls) {
		if w := s.walls[i]; w.at >= since {
			list = append(list, w.wall)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}
