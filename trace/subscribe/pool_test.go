package subscribe_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// fleet is subscriptions that share a pool, and their peers.
type fleet struct {
	pool    *subscribe.Pool
	watches []*watch
	peers   []publisher
}

// newFleet connects n subscriptions with a pool of so many buffers. It is for a bubble.
func newFleet(t *testing.T, n, buffers int) *fleet {
	f := &fleet{pool: subscribe.NewPool(buffers)}
	f.connect(t, n)
	return f
}

func (f *fleet) connect(t *testing.T, n int) {
	for range n {
		o, peers := pipes()
		o.Pool = f.pool
		f.watches = append(f.watches, start(t, somewhere, o))
		f.peers = append(f.peers, welcome(t, <-peers))
	}
}

func (f *fleet) end() {
	for _, w := range f.watches {
		w.end()
	}
	synctest.Wait()
}

// later writes without waiting: the pipes have no buffer, and a peer may be held back. What
// the end of the connection cuts off is not told.
func (p publisher) later(b []byte) {
	go func() { _, _ = p.Write(b) }()
}

// giant is a message of nearly the largest size.
func giant(seq uint64) []byte { return pass(seq, bytes.Repeat([]byte{'x'}, wire.MaxFrame-5)) }

// Whoever needs a buffer has it in turn; nobody is passed over, and small messages do not
// wait.
func TestPoolInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 20, 2)
		for _, p := range f.peers {
			p.later(bytes.Join([][]byte{giant(0), pass(1, nil), giant(2), giant(3)}, nil))
		}
		for _, w := range f.watches {
			for seq := range uint64(4) {
				w.sequence(seq)
			}
			w.expect("connected")
		}
		f.end()
	})
}

// A peer that stops within a large message has its buffer for as long as nobody else wants
// it, and no longer.
func TestPoolStalledHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, 1)
		whole := giant(0)
		f.peers[0].later(whole[:len(whole)-1])
		time.Sleep(time.Hour)
		f.peers[0].send(whole[len(whole)-1:]) // nobody was waiting
		f.watches[0].sequence(0)

		f.peers[0].later(whole[:len(whole)-1])
		synctest.Wait()
		begun := time.Now()
		f.peers[1].later(giant(1))
		f.peers[2].later(pass(0, nil))
		synctest.Wait()
		f.watches[2].sequence(0) // at once
		f.watches[1].sequence(1)
		if took := time.Since(begun); took > 600*time.Millisecond {
			t.Errorf("waited for %s", took)
		}
		// What was given up is read over, told once it is complete, and the connection stands.
		f.peers[0].send(whole[len(whole)-1:])
		f.watches[0].event(subscribe.Crowded)
		f.peers[0].send(pass(2, nil))
		f.watches[0].sequence(2)
		f.peers[0].later(giant(3))
		f.watches[0].sequence(3)
		f.end()
	})
}

// A trickle is no progress.
func TestPoolTrickle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, 1)
		whole := giant(0)
		stop := make(chan struct{})
		var trickling sync.WaitGroup
		trickling.Go(func() {
			f.peers[0].send(whole[:len(whole)/2])
			for i := len(whole) / 2; ; i++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					f.peers[0].send(whole[i : i+1])
				}
			}
		})
		time.Sleep(5 * time.Second)
		f.peers[1].later(giant(1))
		f.watches[1].sequence(1)
		close(stop)
		trickling.Wait()
		f.end()
	})
}

// When those who hold the buffers follow one another without end, a message does not wait
// for ever: it is read over and told.
func TestPoolWaitIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, 1)
		whole := giant(7)
		for _, p := range f.peers[:9] {
			p.later(whole[:len(whole)-1])
			synctest.Wait()
		}
		f.peers[9].later(append(giant(0), pass(1, nil)...))
		begun := time.Now()
		f.watches[9].event(subscribe.Crowded)
		if took := time.Since(begun); took > 1100*time.Millisecond {
			t.Errorf("waited for %s", took)
		}
		f.watches[9].sequence(1)
		f.end()
	})
}

// Waiting ends with the subscription, and buffers come back from every end of a connection:
// of the peer, of the subscription, of a refused message.
func TestPoolLeaksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 8, 1)
		whole := giant(0)
		for _, p := range f.peers {
			p.later(whole[:len(whole)-1])
			synctest.Wait() // the first one has the buffer
		}
		for i, w := range f.watches[:6] {
			if i%2 == 0 {
				w.end()
				continue
			}
			_ = f.peers[i].Close()
			w.event(subscribe.Disconnected)
		}
		_ = f.peers[6].Close()
		f.watches[7].end()
		_ = f.watches[6].event(subscribe.Disconnected)
		f.end()
		// The pool is as new.
		again := &fleet{pool: f.pool}
		again.connect(t, 2)
		for i, p := range again.peers {
			p.later(whole)
			again.watches[i].sequence(0)
		}
		again.end()
	})
}

// Messages that are refused whatever else is in them need no buffer, and are refused for
// what comes first in the order of reasons.
func TestFutileMessages(t *testing.T) {
	large, eight := make([]byte, wire.MaxFrame), make([]byte, 8)
	for name, c := range map[string]struct {
		frames [][]byte
		want   wire.Reason
	}{
		"one frame":                {[][]byte{large}, wire.Frames},
		"two frames":               {[][]byte{large, eight}, wire.Frames},
		"two large frames":         {[][]byte{nil, large}, wire.Frames},
		"four frames":              {[][]byte{nil, eight, large, nil}, wire.Frames},
		"four, the last large":     {[][]byte{nil, eight, nil, large}, wire.Frames},
		"a large sequence":         {[][]byte{nil, large, nil}, wire.Sequence},
		"all large":                {[][]byte{large, large, large}, wire.Sequence},
		"a large sequence, 4":      {[][]byte{nil, large, nil, nil}, wire.Frames},
		"sequence, and one larger": {[][]byte{nil, large, append(large, 0)}, wire.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 2, 1)
				whole := giant(0)
				f.peers[0].later(whole[:len(whole)-1]) // has the buffer
				synctest.Wait()
				f.peers[1].later(append(message(c.frames...), pass(1, nil)...))
				if c.frames[0] == nil { // else a buffer is needed before it is clear
					synctest.Wait()
				}
				var rejected *wire.RejectError
				if e := f.watches[1].event(subscribe.Refused); !errors.As(e.Err, &rejected) || rejected.Reason != c.want {
					t.Errorf("refused with %v; want %v", e.Err, c.want)
				}
				f.watches[1].sequence(1)
				f.end()
			})
		})
	}
}

// What a peer sends comes out the same whatever buffer it went through.
func TestPoolKeepsContent(t *testing.T) {
	h := local(t)
	o := quick()
	o.BufferSize = subscribe.MinBuffer
	w := start(t, h.endpoint(), o)
	p := h.publisher()
	sizes := []int{0, 600, 16<<10 - 13, 16 << 10, 16<<10 + 1, 40_000, 600, wire.MaxFrame, 1, wire.MaxFrame, wire.MaxFrame - 1, 0}
	var said []byte
	for seq, size := range sizes {
		payload := make([]byte, size)
		for i := range payload {
			payload[i] = byte(i ^ i>>8 ^ seq)
		}
		topic := payload[:size/2]
		said = append(said, message(topic, []byte{0, 0, 0, 0, 0, 0, 0, byte(seq)}, payload)...)
		said = append(said, command("SUBSCRIBE", nil)...)
	}
	go func() {
		for len(said) > 0 {
			n := min(len(said), 77_777)
			p.send(said[:n])
			said = said[n:]
		}
	}()
	for seq, size := range sizes {
		m := w.message()
		if len(m) != 3 || len(m[0]) != size/2 || len(m[2]) != size || m[1][7] != byte(seq) {
			t.Fatalf("message %d has frames of %d, %d and %d bytes", seq, len(m[0]), len(m[1]), len(m[2]))
		}
		for i, b := range m[2] {
			if b != byte(i^i>>8^seq) || i < len(m[0]) && m[0][i] != b {
				t.Fatalf("message %d is wrong at %d", seq, i)
			}
		}
	}
}
