package serve

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"
)

// busy is an encoder that passes on what it gets and counts how many are at work.
type busy struct {
	out     io.Writer
	working *atomic.Int32
	most    *atomic.Int32
}

func (b *busy) Reset(w io.Writer) { b.out = w }

func (b *busy) Write(p []byte) (int, error) {
	n := b.working.Add(1)
	for {
		most := b.most.Load()
		if n <= most || b.most.CompareAndSwap(most, n) {
			break
		}
	}
	for range 100 {
		_ = make([]byte, 1024) // something to be interrupted in
	}
	b.working.Add(-1)
	return b.out.Write(p)
}

func (b *busy) Close() error { return nil }

func newBusy(places int) (c *coders, most *atomic.Int32) {
	var working atomic.Int32
	most = &atomic.Int32{}
	c = newCoders()
	c.turns = make(turns, places)
	c.pools[gzipCoding] = &sync.Pool{New: func() any { return &busy{working: &working, most: most} }}
	return c, most
}

func TestFewCompressAtATime(t *testing.T) {
	c, most := newBusy(2)
	var group sync.WaitGroup
	for range 50 {
		group.Go(func() {
			body, done := c.encoder(gzipCoding, io.Discard)
			defer done()
			for range 100 {
				body.Write([]byte("x"))
			}
			body.Close()
		})
	}
	group.Wait()
	if n := most.Load(); n < 1 || n > 2 {
		t.Errorf("%d compress at a time", n)
	}
}

// meeting is a client that takes nothing before all the others have something to take.
type meeting struct{ all *sync.WaitGroup }

func (m meeting) Write(p []byte) (int, error) {
	m.all.Done()
	m.all.Wait()
	return len(p), nil
}

func TestSlowClientsKeepNobodyWaiting(t *testing.T) {
	const clients = 20
	c, _ := newBusy(1)
	var group, all sync.WaitGroup
	all.Add(clients)
	for range clients {
		group.Go(func() {
			body, done := c.encoder(gzipCoding, meeting{&all})
			defer done()
			body.Write([]byte("x"))
		})
	}
	group.Wait() // for ever, if a client that waits kept its turn
	if len(c.turns) != 0 {
		t.Error("a turn was not given back")
	}
}
