package merge

import (
	"math"

	"github.com/fpm-project/fpm/internal/column"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/warmup"
)

// spans is a column of spans, many of which may be empty. Nearly all are shorter than
// 4 GiB; the others stand aside.
type spans struct {
	there column.Marks // those that are not empty, which alone the rest is about
	off   column.Column[int64]
	size  column.Column[uint32]
	long  map[int]int64
}

func (s *spans) add(span jsonstream.Span) {
	if s.there.Add(span.Len > 0); span.Len == 0 {
		return
	}
	size := uint32(span.Len)
	if span.Len >= math.MaxUint32 {
		if s.long == nil {
			s.long = map[int]int64{}
		}
		s.long[s.off.Len()] = span.Len
		size = math.MaxUint32
	}
	s.off.Add(span.Off)
	s.size.Add(size)
}

func (s *spans) at(i int) jsonstream.Span {
	at, ok := s.there.Rank(i)
	if !ok {
		return jsonstream.Span{}
	}
	span := jsonstream.Span{Off: s.off.At(at), Len: int64(s.size.At(at))}
	if span.Len == math.MaxUint32 {
		span.Len = s.long[at]
	}
	return span
}

func (s *spans) len() int { return s.there.Len() }

func (s *spans) reset() {
	s.there.Reset()
	s.off.Reset()
	s.size.Reset()
	s.long = nil
}

// codes is a column of small numbers: of bytes, as long as all fit.
type codes struct {
	small column.Column[uint8]
	wide  column.Column[uint32] // instead, once one does not
}

func (c *codes) add(v uint32) {
	if v > math.MaxUint8 {
		c.widen()
	}
	if c.wide.Len() > 0 || v > math.MaxUint8 {
		c.wide.Add(v)
	} else {
		c.small.Add(uint8(v))
	}
}

func (c *codes) set(i int, v uint32) {
	if v > math.MaxUint8 {
		c.widen()
	}
	if c.wide.Len() > 0 {
		c.wide.Set(i, v)
	} else {
		c.small.Set(i, uint8(v))
	}
}

func (c *codes) widen() {
	for i := range c.small.Len() {
		c.wide.Add(uint32(c.small.At(i)))
	}
	c.small.Reset()
}

func (c *codes) at(i int) uint32 {
	if c.wide.Len() > 0 {
		return c.wide.At(i)
	}
	return uint32(c.small.At(i))
}

func (c *codes) reset() {
	c.small.Reset()
	c.wide.Reset()
}

// groupIndex is what is kept of the reference's iteration groups, in file order.
type groupIndex struct {
	span   jsonstream.Span      // of the whole list
	ids    column.Sparse[int32] // benchmark_id; 0 where it is unsound
	points spans
	// A cell is a group's rank result, in rank order. As a rule every group has size
	// cells; from the first one on that has not, starts tells where each group's begin.
	size    int
	regular int // the last group that begins where it would if all were regular, -1 when none does
	starts  starts
	fpms    spans
	before  column.Column[int32] // the two halves of a warmup.Reference, where there are FPMs
	forward column.Column[int64]

	position column.Column[int32] // group with id i+1, -1 when there is none; empty: nothing is looked for
	ranked   bool                 // a point has a dp_rank of its own
	numbered bool                 // the ids are sound: 1 to n, each once, for the points completed
	sum      pyjson.Summer        // of the wall times
	summed   bool                 // every group has a finite wall time

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

func (g *groupIndex) len() int { return g.ids.Len() }

// begin says that the cells added from now on are those of the next group.
func (g *groupIndex) begin() {
	if cells := g.fpms.len(); g.starts.n == 0 && g.size > 0 && cells == g.len()*g.size {
		g.regular = g.len()
	} else {
		g.starts.add(cells)
	}
}

func (g *groupIndex) addCell(fpms jsonstream.Span, ref warmup.Reference) {
	if g.fpms.add(fpms); fpms.Len > 0 {
		g.before.Add(ref.Before)
		g.forward.Add(ref.Forward)
	}
}

// reference is what the FPMs of a cell refer to; those of none refer to nothing.
func (g *groupIndex) reference(cell int) warmup.Reference {
	at, ok := g.fpms.there.Rank(cell)
	if !ok {
		return warmup.NoReference()
	}
	return warmup.Reference{Before: g.before.At(at), Forward: g.forward.At(at)}
}

// start is the number of a group's first cell, or of the cell behind the last group's.
func (g *groupIndex) start(group int) int {
	switch {
	case group >= g.len():
		return g.fpms.len()
	case group <= g.regular:
		return group * g.size
	}
	return g.starts.at(group - g.regular - 1)
}

// starts is a column of numbers of which none is less than the one before. Where many are
// equal they cost next to nothing: only every 64th is kept, and what is added to it.
type starts struct {
	base column.Column[int64]
	more column.Sparse[int32]
	last int
	n    int
}

const startsBase = 64

func (s *starts) add(v int) {
	if s.n%startsBase == 0 {
		s.base.Add(int64(v))
		s.last = v
	}
	s.more.Add(int32(v - s.last)) // no group has 2^31 cells
	s.last = v
	s.n++
}

func (s *starts) at(i int) int {
	v := s.base.At(i / startsBase)
	if i%startsBase == 0 {
		return int(v)
	}
	from, _ := s.more.Rank(i - i%startsBase + 1)
	to, last := s.more.Rank(i)
	if last {
		to++
	}
	for ; from < to; from++ {
		v += int64(s.more.Nth(from))
	}
	return int(v)
}

// cell is the number of a rank's cell in a group; ok is false when the group has no
// result for that rank.
func (g *groupIndex) cell(group, rank int) (cell int, ok bool) {
	cell = g.start(group) + rank
	return cell, rank >= 0 && cell < g.start(group+1)
}

// find returns the group with a benchmark id.
func (g *groupIndex) find(id int64) (group int, ok bool) {
	if id < 1 || id > int64(g.position.Len()) {
		return 0, false
	}
	group = int(g.position.At(int(id - 1)))
	return group, group >= 0
}

// bits is a set of small numbers.
type bits []uint64

func newBits(n int) bits { return make(bits, n/64+1) }

func (b bits) has(i int) bool { return b[i/64]&(1<<(i%64)) != 0 }

// take adds a number and tells whether it was there before.
func (b bits) take(i int) (before bool) {
	before = b.has(i)
	b[i/64] |= 1 << (i % 64)
	return before
}
