// Package sample thins a stream of forward-pass metrics to one row per key and interval.
//
// A key is what numbers its payloads by itself: a DP rank of a worker, in its namespace
// and component. Of each key the newest payload is pending; at the end of an interval the
// pending payloads are written, in the order of their keys, and the rest of the interval
// is gone:
//
//	arrivals  a1 a2   b7 | a3       | a3        | a0 (a restart) b8
//	written           a2 b7         a3          –               a0 b8
//
// An unchanged counter is never repeated, so a publisher that stands still adds nothing,
// while one that idles shows itself by its heartbeats, which have counters of their own. A
// lower counter is a restart and is written.
//
// The sampler has no clock and no goroutine. Its caller tells it the time, which should
// have a monotonic reading: a wall clock that is set back then moves no interval.
//
// What it holds is bounded, whatever arrives. Beyond so many keys the one that was silent
// for longest is forgotten; what it had pending is written first, and when it comes back
// it is as a key that is new. Beyond so many bytes what is pending is written before its
// time. Nothing is lost in either case: there are more rows than there had to be.
package sample

import (
	"cmp"
	"slices"
	"time"
)

// The bounds of what a sampler holds, when its options name none.
const (
	DefaultMaxKeys  = 1 << 14
	DefaultMaxBytes = 16 << 20
)

// Key is what has a sequence of counters of its own.
type Key struct {
	Namespace, Component, WorkerID string
	Rank                           int64 // of data parallelism
}

// Compare orders keys by namespace, component, worker and rank.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Namespace, other.Namespace),
		cmp.Compare(k.Component, other.Component),
		cmp.Compare(k.WorkerID, other.WorkerID),
		cmp.Compare(k.Rank, other.Rank),
	)
}

// Options say how a sampler works. T is a payload as its caller holds it.
type Options[T any] struct {
	Start    time.Time     // of the first interval
	Interval time.Duration // above 0
	MaxKeys  int           // 0 stands for DefaultMaxKeys
	MaxBytes int           // of pending payloads; 0 stands for DefaultMaxBytes

	Size  func(T) int // bytes that a payload takes in memory; nil counts none
	Write func(T)     // takes a payload that is to be written
	Drop  func(T)     // takes one that is not: replaced or unchanged; may be nil
}

// Sampler holds the newest payload of each key. It is not safe for concurrent use.
type Sampler[T any] struct {
	opt   Options[T]
	next  time.Time
	keys  map[Key]*state[T]
	heard state[T] // a ring: heard.newer is the key that was silent for longest
	bytes int
	due   []*state[T] // scratch of flush
}

// state is what is known of one key.
type state[T any] struct {
	key          Key
	written      bool // there is a last counter
	last         int64
	waiting      bool // there is a pending payload
	counter      int64
	pending      T
	older, newer *state[T]
}

// New returns a sampler whose first interval begins at opt.Start.
func New[T any](opt Options[T]) *Sampler[T] {
	opt.MaxKeys = cmp.Or(opt.MaxKeys, DefaultMaxKeys)
	opt.MaxBytes = cmp.Or(opt.MaxBytes, DefaultMaxBytes)
	if opt.Drop == nil {
		opt.Drop = func(T) {}
	}
	if opt.Size == nil {
		opt.Size = func(T) int { return 0 }
	}
	s := &Sampler[T]{opt: opt, next: opt.Start.Add(opt.Interval), keys: map[Key]*state[T]{}}
	s.heard.older, s.heard.newer = &s.heard, &s.heard
	return s
}

// Put takes a payload that has just arrived. One whose counter is that of the key's last
// written row is dropped; any other replaces what is pending.
func (s *Sampler[T]) Put(key Key, counter int64, payload T) {
	k := s.lookup(key)
	if k.written && k.last == counter {
		s.opt.Drop(payload)
		return
	}
	if k.waiting {
		s.bytes -= s.opt.Size(k.pending)
		s.opt.Drop(k.pending)
	}
	k.waiting, k.counter, k.pending = true, counter, payload
	s.bytes += s.opt.Size(payload)
	if s.bytes > s.opt.MaxBytes {
		s.Flush()
	}
}

// lookup returns what is known of a key, as the one that was heard of last.
func (s *Sampler[T]) lookup(key Key) *state[T] {
	k := s.keys[key]
	if k == nil {
		if len(s.keys) >= s.opt.MaxKeys {
			s.forget(s.heard.newer)
		}
		k = &state[T]{key: key}
		s.keys[key] = k
	} else {
		k.unlink()
	}
	k.older, k.newer = s.heard.older, &s.heard
	k.older.newer, k.newer.older = k, k
	return k
}

func (k *state[T]) unlink() { k.older.newer, k.newer.older = k.newer, k.older }

// forget writes what is pending of a key, and drops the key.
func (s *Sampler[T]) forget(k *state[T]) {
	s.write(k)
	k.unlink()
	delete(s.keys, k.key)
}

// Next returns the end of the running interval.
func (s *Sampler[T]) Next() time.Time { return s.next }

// Tick writes what is pending when the interval is over, and tells whether it is. The
// next interval begins now: ticks that come late are not made up for by several at once.
func (s *Sampler[T]) Tick(now time.Time) bool {
	if now.Before(s.next) {
		return false
	}
	s.next = now.Add(s.opt.Interval)
	s.Flush()
	return true
}

// Flush writes what is pending, in the order of the keys, without regard to the interval:
// the last thing before the end.
func (s *Sampler[T]) Flush() {
	s.due = s.due[:0]
	for _, k := range s.keys {
		if k.waiting {
			s.due = append(s.due, k)
		}
	}
	slices.SortFunc(s.due, func(a, b *state[T]) int { return a.key.Compare(b.key) })
	for _, k := range s.due {
		s.write(k)
	}
	clear(s.due) // keys that are forgotten later should not stay
}

func (s *Sampler[T]) write(k *state[T]) {
	if !k.waiting {
		return
	}
	payload := k.pending
	var none T
	k.pending, k.waiting = none, false
	k.last, k.written = k.counter, true
	s.bytes -= s.opt.Size(payload)
	s.opt.Write(payload)
}
