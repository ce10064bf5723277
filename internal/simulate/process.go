package simulate

import (
	"cmp"
	"iter"
	"slices"
	"strconv"
)

// globalForwards is the number of forward passes of the warmup at start-up.
const globalForwards = 5

// process is what one rank's engine carries from point to point.
type process struct {
	rank     int
	worker   string  // worker id
	clock    float64 // monotonic seconds, this process's own
	forwards int     // forward passes so far, the index of the next
	records  int     // entries of the warmup ledger so far
}

// newProcess returns a rank's process as it is when the first point is reached.
func newProcess(seed uint64, rank int) process {
	d := roll(seed, forProcess, 0, rank)
	return process{
		rank:     rank,
		worker:   strconv.Itoa(1e15 + d.below(9e15)),
		clock:    d.between(20_000, 900_000),
		forwards: globalForwards,
		records:  1,
	}
}

// warm runs what precedes the point's measurement.
func (ps *process) warm(p *point) {
	if p.eager {
		ps.forwards++
		ps.records++
	}
}

// sample is one raw forward pass; times are seconds of the process's clock.
type sample struct {
	forward    int
	start, end float64
	wall       float64
	observed   bool // its graph dispatch was
}

// measurement is what one rank measured at one point.
type measurement struct {
	rank    int
	worker  string
	warmups int // ledger entries before it
	samples []sample
	method  string  // of the estimate
	first   int     // the samples from here to the last are selected
	wall    float64 // the estimate in seconds: the upper median of the selected
}

// end is when the last sample ended, in seconds of the process's clock.
func (m *measurement) end() float64 { return m.samples[len(m.samples)-1].end }

// measure runs the point of a position in the execution order. The samples go into
// space, which is grown as needed.
func (ps *process) measure(seed uint64, p *point, position, raw int, space []sample) measurement {
	d := roll(seed, forSamples, position, ps.rank)
	base := p.seconds() * d.between(0.97, 1.03)
	ps.clock += d.between(0.001, 0.05)
	samples := space[:0]
	for i := range p.samples(raw) {
		factor := d.between(0.99, 1.02)
		if i == 0 && !p.prefill { // admission comes with it
			factor = d.between(1.2, 2.0)
		}
		wall := float64(base * factor) // rounded, as in [dice.between], before it is added
		s := sample{forward: ps.forwards, start: ps.clock, wall: wall, observed: !d.chance(0.03)}
		ps.clock += wall
		s.end = ps.clock
		ps.forwards++
		samples = append(samples, s)
	}
	m := measurement{rank: ps.rank, worker: ps.worker, warmups: ps.records, samples: samples}
	m.reduce()
	return m
}

// seconds is about what the point takes.
func (p *point) seconds() float64 {
	if p.prefill {
		return 0.004 + float64(float64(p.tokens)*1.7e-5) + float64(float64(p.kv)*2e-8)
	}
	return 0.003 + float64(float64(p.batch)*4.1e-5) + float64(float64(p.kv)*3e-9)
}

// reduce selects the steady samples and estimates by their upper median.
func (m *measurement) reduce() {
	switch len(m.samples) {
	case 1:
		m.method, m.first = "single_step", 0
	case 2:
		m.method, m.first = "last_step", 1
	default:
		m.method, m.first = "adjacent_upper_median", 1
	}
	order := make([]int, 0, len(m.samples))
	for i := m.first; i < len(m.samples); i++ {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.samples[a].wall, m.samples[b].wall) })
	m.wall = m.samples[order[len(order)/2]].wall
}

// walk goes through the run with some of its ranks and yields each position in the
// execution order and what the ranks measured there. The measurements are valid until the
// next position.
func (r *run) walk(ranks ...int) iter.Seq2[int, []measurement] {
	return func(yield func(int, []measurement) bool) {
		processes := make([]process, len(ranks))
		for i, rank := range ranks {
			processes[i] = newProcess(r.opt.Seed, rank)
		}
		measured := make([]measurement, len(ranks))
		for position := range r.grid {
			p := &r.grid[position]
			for i := range processes {
				processes[i].warm(p)
				measured[i] = processes[i].measure(r.opt.Seed, p, position, r.opt.Raw, measured[i].samples)
				if r.change.measured != nil && ranks[i] == r.victim() {
					r.change.measured(position, &measured[i])
				}
			}
			if !yield(position, measured) {
				return
			}
		}
	}
}
