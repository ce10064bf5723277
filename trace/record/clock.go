package record

import "time"

// clock tells the time in its two kinds. Intervals go by the time since the start, which
// no correction of the wall clock moves; what is written down is the wall clock.
type clock struct {
	since func() time.Duration // since the recorder started, monotonic
	at    func(time.Time) moment
}

// moment is a time in its two kinds.
type moment struct {
	since  time.Duration
	wallMS int64 // since 1970
}

func newClock() clock {
	start := time.Now()
	return clock{
		since: func() time.Duration { return time.Since(start) },
		at:    func(t time.Time) moment { return moment{t.Sub(start), t.UnixMilli()} },
	}
}

func (c clock) now() moment { return c.at(time.Now()) }
