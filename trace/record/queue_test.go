package record

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// Whatever is put and taken: the queue is within its bounds, entries come out in their
// order, and each that does not come out was told as lost.
func TestQueue(t *testing.T) {
	for seed := range uint64(100) {
		dice := rand.New(rand.NewPCG(seed, 2))
		q := newQueue(1+dice.IntN(20), 2000+dice.IntN(4000))
		lost := map[*stream]int{}
		streams := []*stream{{}, {}, {}}
		var put, taken [3][]int64
		take := func() {
			var done [][]byte
			for _, e := range q.take(make([]entry, 0, 1+dice.IntN(8)), nil) {
				i := slices.Index(streams, e.stream)
				taken[i] = append(taken[i], e.counter)
				done = append(done, e.row)
			}
			q.take(nil, done)
		}
		var buffer []byte
		for n := range int64(500) {
			if dice.IntN(4) == 0 {
				take()
			}
			i := dice.IntN(3)
			row := slices.Grow(buffer[:0], 1+dice.IntN(700))[:1]
			row[0] = byte(n)
			put[i] = append(put[i], n)
			buffer = q.put(entry{stream: streams[i], counter: n, row: row}, func(s *stream) { lost[s]++ })
			entries, bytes := q.fill()
			total := 0
			for k := range entries {
				total += q.ring[(q.head+k)%len(q.ring)].bytes()
			}
			if entries > len(q.ring) || (entries > 1 && bytes > q.maxBytes) || bytes != total || q.spareTotal > spareBytes {
				t.Fatalf("seed %d: %d entries, %d bytes (%d told), %d spare", seed, entries, total, bytes, q.spareTotal)
			}
		}
		for n, _ := q.fill(); n > 0; n, _ = q.fill() {
			take()
		}
		for i := range streams {
			if !slices.IsSorted(taken[i]) || len(put[i]) != len(taken[i])+lost[streams[i]] {
				t.Fatalf("seed %d: %d put, %d taken, %d lost", seed, len(put[i]), len(taken[i]), lost[streams[i]])
			}
		}
	}
}

// A row that is being written is in no buffer that is filled anew.
func TestQueueBuffers(t *testing.T) {
	q := newQueue(64, 1<<20)
	var receivers sync.WaitGroup
	const each = 5000
	for r := range 4 {
		receivers.Go(func() {
			var buffer []byte
			for range each {
				row := slices.Grow(buffer[:0], 64)[:64]
				for i := range row {
					row[i] = byte(r)
				}
				buffer = q.put(entry{stream: &stream{}, row: row}, func(*stream) {})
			}
		})
	}
	stop := make(chan struct{})
	go func() {
		receivers.Wait()
		close(stop)
	}()
	entries, done := make([]entry, 0, 16), [][]byte(nil)
	for running := true; running; {
		select {
		case <-stop:
			running = false
		case <-q.wake:
		}
		for {
			entries = q.take(entries, done)
			done = done[:0]
			for _, e := range entries {
				for _, c := range e.row {
					if c != e.row[0] {
						t.Fatalf("a row is mixed with another: %v", e.row)
					}
				}
				done = append(done, e.row)
			}
			if len(entries) == 0 {
				break
			}
		}
	}
}
