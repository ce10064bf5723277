package subscribe

import (
	"math/rand/v2"
	"time"
)

// backoff is the growing pause between connections. It only gets shorter by reset, so a
// peer that accepts and closes at once is met once in max and no more.
type backoff struct {
	min, max time.Duration
	current  time.Duration
}

// next returns the next pause: doubled each time up to max, less up to a fifth, so that
// the ranks of a host that came back are not connected to in step.
func (b *backoff) next() time.Duration {
	switch {
	case b.current == 0:
		b.current = b.min
	default:
		b.current = min(2*b.current, b.max)
	}
	return b.current - rand.N(b.current/5+1)
}

func (b *backoff) reset() { b.current = 0 }
