package stream

import (
	"math"
	"math/rand/v2"
	"time"
)

// Load is how a simulated rank is used.
type Load string

// The loads.
const (
	// Diurnal is a day of requests, with bursts by day and nothing but heartbeats by night.
	Diurnal Load = "diurnal"
	Steady  Load = "steady" // always busy: every pass is due, bursts included
	Idle    Load = "idle"   // heartbeats only
)

// Loads returns every load, the default first.
func Loads() []Load { return []Load{Diurnal, Steady, Idle} }

// What a simulated engine is like.
const (
	maxBatch    = 64    // requests that decode at a time
	maxPrefills = 4     // requests that are prefilled in one pass
	lifetime    = 120   // passes that a request decodes, on average
	meanBatch   = 24    // requests that decode by day, on average
	burstChance = 0.003 // of a burst of requests, in a pass by day
	heartbeat   = time.Second

	// nominalInterval is the time between two passes when they are published as fast as
	// can be, for what depends on it: the day, and the wall times.
	nominalInterval = 10 * time.Millisecond
)

// pass is what a rank publishes at one time: a forward pass, or a heartbeat when its wall
// time is 0.
type pass struct {
	at        time.Duration // since the start
	wall      float64       // seconds
	scheduled load
	queued    load
}

func (p *pass) heartbeat() bool { return p.wall == 0 }

// load is what is scheduled in a pass, or waits for one.
type load struct {
	prefills, prefillTokens, prefillKV, decodes, decodeKV uint64
	varPrefill, varDecode                                 float64
}

// source makes the passes of one rank, one after the other. They depend on the seed, the
// worker and the rank alone: a source knows no clock.
type source struct {
	dice     *rand.Rand
	shape    Load
	interval time.Duration // between two passes
	day      time.Duration
	shift    float64 // part of a day by which this worker is ahead

	at      time.Duration // of the next pass
	beat    time.Duration // of the next heartbeat, while idle
	idle    bool
	active  int     // requests that decode
	context float64 // tokens in the cache of one of them, on average
	waiting int     // requests that wait for their prefill
}

func newSource(opt *Options, worker, rank int) *source {
	interval := nominalInterval
	if opt.Rate > 0 {
		interval = max(time.Duration(float64(time.Second)/opt.Rate), 1)
	}
	return &source{
		dice:  rand.New(rand.NewPCG(opt.Seed, uint64(worker)<<32|uint64(rank))),
		shape: opt.Load, interval: interval, day: opt.Day,
		shift:   float64(worker) / 16,
		context: 512,
	}
}

// next returns the next pass.
func (s *source) next() pass {
	if s.shape == Idle {
		s.at += heartbeat
		return pass{at: s.at}
	}
	for {
		if s.idle && s.sleep() {
			return pass{at: s.beat}
		}
		s.arrive()
		if s.active+s.waiting > 0 {
			return s.forward()
		}
		s.idle, s.beat = true, s.at
	}
}

// sleep lets idle time go by, interval by interval. It returns true at the next
// heartbeat, which is at s.beat, and false when a request comes first.
func (s *source) sleep() bool {
	for {
		s.at += s.interval
		switch {
		case s.dice.Float64() < s.busy(s.at)*meanBatch/lifetime:
			s.idle = false
			s.waiting++
			return false
		case s.at >= s.beat+heartbeat:
			s.beat += heartbeat
			return true
		}
	}
}

// busy returns how many requests come at a time, 1 on an average day.
func (s *source) busy(at time.Duration) float64 {
	if s.shape == Steady {
		return 1
	}
	day := float64(at)/float64(s.day) + s.shift
	return max(0, 0.6+0.9*math.Sin(2*math.Pi*day))
}

// arrive lets the requests of one interval come.
func (s *source) arrive() {
	busy := s.busy(s.at)
	s.waiting += s.about(busy * meanBatch / lifetime)
	if s.dice.Float64() < burstChance*busy {
		s.waiting += 4 + s.dice.IntN(28)
	}
	if s.shape == Steady && s.active+s.waiting == 0 {
		s.waiting = 1
	}
}

// about returns one of the two whole numbers around x, which is x on average.
func (s *source) about(x float64) int { return int(x + s.dice.Float64()) }

// forward schedules a pass: requests that wait are prefilled while there is room, those
// that decode get a token each, and some of them end.
func (s *source) forward() pass {
	p := pass{at: s.at}
	s.at += s.interval
	prefills := min(s.waiting, maxPrefills, maxBatch-s.active)
	s.prefill(&p.scheduled, prefills)
	s.decode(&p.scheduled)
	s.waiting -= prefills
	s.active += prefills
	p.queued.prefills = uint64(s.waiting)
	p.queued.prefillTokens = uint64(s.waiting * (256 + s.dice.IntN(512)))
	p.queued.varPrefill = s.spread(s.waiting, 300)
	p.wall = s.wall(&p.scheduled)
	s.active = max(0, s.active-s.about(float64(s.active)/lifetime))
	s.context = min(8192, max(64, s.context*(0.98+0.04*s.dice.Float64())))
	return p
}

func (s *source) prefill(l *load, n int) {
	if n == 0 {
		return
	}
	l.prefills = uint64(n)
	l.prefillTokens = uint64(n * (64 + s.dice.IntN(1984)))
	l.prefillKV = uint64(64 * s.dice.IntN(16*n))
	l.varPrefill = s.spread(n, 400)
}

func (s *source) decode(l *load) {
	if s.active == 0 {
		return
	}
	l.decodes = uint64(s.active)
	l.decodeKV = uint64(float64(s.active) * s.context)
	l.varDecode = s.spread(s.active, s.context/2)
}

// spread returns a variance of n values that differ by about the given deviation.
func (s *source) spread(n int, deviation float64) float64 {
	if n < 2 {
		return 0
	}
	return deviation * deviation * (0.5 + s.dice.Float64())
}

// wall returns how long a pass takes, in seconds: most of the interval for a full batch
// with a long prefill.
func (s *source) wall(l *load) float64 {
	share := 0.3 + 0.4*float64(l.decodes)/maxBatch + 0.2*min(1, float64(l.prefillTokens)/4096)
	return s.interval.Seconds() * share * (0.9 + 0.2*s.dice.Float64())
}
