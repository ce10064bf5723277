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

// groupIndex is what is kept of the reference's iteration groups, in file order.
type groupIndex struct {
	span   jsonstream.Span // of the whole list
	ids    column[int64]   // benchmark_id; 0 where it is unsound
	idAt   column[int64]   // its offset
	points spans
	first  column[int64] // number of the group's first cell
	// A cell is a group's rank result, in rank order.
	fpms spans
	refs column[warmup.Reference]

	position column[int32] // group with id i+1, -1 when there is none
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

// cell is the number of a rank's cell in a group; ok is false when the group has no
// result for that rank.
func (g *groupIndex) cell(group, rank int) (cell int, ok bool) {
	from, to := g.first.at(group), int64(g.refs.len())
	if group+1 < g.first.len() {
		to = g.first.at(group + 1)
	}
	return int(from) + rank, rank >= 0 && from+int64(rank) < to
}

// find returns the group with a benchmark id.
func (g *groupIndex) find(id int64) (group int, ok bool) {
	if id < 1 || id > int64(g.position.len()) {
		return 0, false
	}
	group = int(g.position.at(int(id - 1)))
	return group, group >= 0
}
