package merge

import (
	"math"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/warmup"
)

// column is a long list that grows without copying what it holds: the index of a run
// has an entry for each point and rank.
type column[T any] struct {
	chunks [][]T
	n      int
}

const chunkSize = 1 << 10

func (c *column[T]) add(v T) {
	if c.n%chunkSize == 0 && c.n/chunkSize == len(c.chunks) {
		c.chunks = append(c.chunks, make([]T, chunkSize))
	}
	c.chunks[c.n/chunkSize][c.n%chunkSize] = v
	c.n++
}

func (c *column[T]) at(i int) T     { return c.chunks[i/chunkSize][i%chunkSize] }
func (c *column[T]) set(i int, v T) { c.chunks[i/chunkSize][i%chunkSize] = v }
func (c *column[T]) len() int       { return c.n }
func (c *column[T]) reset()         { c.n = 0 }

// spans is a column of spans. Nearly all are shorter than 4 GiB; the others stand aside.
type spans struct {
	off  column[int64]
	size column[uint32]
	long map[int]int64
}

func (s *spans) add(span jsonstream.Span) {
	size := uint32(span.Len)
	if span.Len >= math.MaxUint32 {
		if s.long == nil {
			s.long = map[int]int64{}
		}
		s.long[s.off.len()] = span.Len
		size = math.MaxUint32
	}
	s.off.add(span.Off)
	s.size.add(size)
}

func (s *spans) at(i int) jsonstream.Span {
	span := jsonstream.Span{Off: s.off.at(i), Len: int64(s.size.at(i))}
	if span.Len == math.MaxUint32 {
		span.Len = s.long[i]
	}
	return span
}

func (s *spans) reset() {
	s.off.reset()
	s.size.reset()
	s.long = nil
}

// codes is a column of small numbers. The few that do not fit a byte stand aside.
type codes struct {
	small column[uint8]
	large map[int]uint32
}

func (c *codes) add(v uint32) {
	c.small.add(0)
	c.set(c.small.len()-1, v)
}

func (c *codes) set(i int, v uint32) {
	c.small.set(i, uint8(min(v, math.MaxUint8)))
	if v >= math.MaxUint8 {
		if c.large == nil {
			c.large = map[int]uint32{}
		}
		c.large[i] = v
	}
}

func (c *codes) at(i int) uint32 {
	if v := c.small.at(i); v < math.MaxUint8 {
		return uint32(v)
	}
	return c.large[i]
}

func (c *codes) reset() {
	c.small.reset()
	c.large = nil
}

// groupIndex is what is kept of the reference's iteration groups, in file order.
type groupIndex struct {
	span   jsonstream.Span // of the whole list
	ids    column[int32]   // benchmark_id; 0 where it is unsound
	points spans
	// A cell is a group's rank result, in rank order. As a rule every group has size
	// cells; from the first one on that has not, first tells where each group's begin.
	size    int
	regular int // the last group that begins where it would if all were regular, -1 when none does
	first   column[int64]
	fpms    spans
	before  column[int32] // the two halves of a warmup.Reference
	forward column[int64]

	position column[int32] // group with id i+1, -1 when there is none
	ranked   bool          // a point has a dp_rank of its own
	numbered bool          // the ids are sound: 1 to n, each once, for the points completed
	sum      pyjson.Summer // of the wall times
	summed   bool          // every group has a finite wall time

	measured first // an FPM with benchmark_measurement
	sampled  first // a raw FPM with benchmark_sample
}

// first is the first of many places, and their number.
type first struct {
	pointer string
	off     int64
	n       int
}

func (f *first) add(off int64, pointer func() string) {
	if f.n == 0 {
		f.off, f.pointer = off, pointer()
	}
	f.n++
}

func (g *groupIndex) len() int { return g.ids.len() }

// begin says that the cells added from now on are those of the next group.
func (g *groupIndex) begin() {
	if cells := g.forward.len(); g.first.len() == 0 && g.size > 0 && cells == g.len()*g.size {
		g.regular = g.len()
	} else {
		g.first.add(int64(cells))
	}
}

func (g *groupIndex) addCell(fpms jsonstream.Span, ref warmup.Reference) {
	g.fpms.add(fpms)
	g.before.add(ref.Before)
	g.forward.add(ref.Forward)
}

func (g *groupIndex) reference(cell int) warmup.Reference {
	return warmup.Reference{Before: g.before.at(cell), Forward: g.forward.at(cell)}
}

// start is the number of a group's first cell, or of the cell behind the last group's.
func (g *groupIndex) start(group int) int {
	switch {
	case group >= g.len():
		return g.forward.len()
	case group <= g.regular:
		return group * g.size
	}
	return int(g.first.at(group - g.regular - 1))
}

// cell is the number of a rank's cell in a group; ok is false when the group has no
// result for that rank.
func (g *groupIndex) cell(group, rank int) (cell int, ok bool) {
	cell = g.start(group) + rank
	return cell, rank >= 0 && cell < g.start(group+1)
}

// find returns the group with a benchmark id.
func (g *groupIndex) find(id int64) (group int, ok bool) {
	if id < 1 || id > int64(g.position.len()) {
		return 0, false
	}
	group = int(g.position.at(int(id - 1)))
	return group, group >= 0
}
