package subscribe

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/fpm-project/fpm/trace/wire"
)

// Pool lends buffers to connections for the messages that their own buffers cannot hold.
// Subscriptions that share a pool share a bound of memory: the messages of publishers have
// some 600 bytes, and need none of it, but a peer may send some of mebibytes, and a
// thousand peers may do so at once, or stop in the midst of it.
//
// Buffers are lent in the order in which they were asked for. Whoever waits does not read
// meanwhile, so that the peer is held back by TCP. Neither side has it for ever: while
// somebody waits, a message that is not complete after half a second gives its buffer up,
// and after a second of waiting a message is read over. Both are told as [Crowded].
//
// A budget of bytes was the alternative. It needs an account, an order among those who
// wait for different amounts, and fresh memory for each message; of these buffers each is
// made once, when it is needed first.
type Pool struct {
	free    chan []byte
	waiting atomic.Int32
}

// NewPool returns a pool of so many buffers, at least one. Each comes to 1 MiB, or 3 when
// a peer sends several large frames in one message.
func NewPool(buffers int) *Pool {
	p := &Pool{free: make(chan []byte, max(1, buffers))}
	for range cap(p.free) {
		p.free <- nil // made by its first user
	}
	return p
}

const (
	// holdFor is how long a message may have a buffer that somebody waits for: time enough
	// for a mebibyte at 17 Mbit/s.
	holdFor = 500 * time.Millisecond

	// waitFor is how long a message waits for a buffer: until whoever has them must have
	// given them up, but not so long that silence would be reported of a publisher that
	// speaks.
	waitFor = 2 * holdFor
)

// errTaken is the fate of a message for which there was no buffer, or that gave it up.
var errTaken = errors.New("the buffers for large messages were taken")

// borrow waits for a buffer, which may be nil: it is the caller's to make it large enough.
func (p *Pool) borrow(ctx context.Context) ([]byte, error) {
	select {
	case b := <-p.free:
		return b, nil
	default:
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	timer := time.NewTimer(waitFor)
	defer timer.Stop()
	select {
	case b := <-p.free:
		return b, nil
	case <-timer.C:
		return nil, errTaken
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// giveBack takes a buffer back.
func (p *Pool) giveBack(b []byte) { p.free <- b }

// wanted tells whether somebody waits for a buffer.
func (p *Pool) wanted() bool { return p.waiting.Load() > 0 }

// largeSize returns the size of a buffer for a message of n bytes. There are two, so that a
// buffer is not made anew for each message that is larger than the one before.
func largeSize(n int) int {
	const beside = 32 << 10 // the frames beside the payload
	if n <= wire.MaxFrame+beside {
		return wire.MaxFrame + beside
	}
	return max(n, maxBuffered+beside)
}
