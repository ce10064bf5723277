// Package column holds long lists of numbers in little memory: the index of a run has
// entries for each point and rank, and a crafted file as many as it has bytes.
//
// A [Column] grows without copying what it holds. [Marks] is a list of bits that knows how
// many before a place are set, so that what exists for some entries only is kept for those
// alone: a [Sparse] column costs a fifth of a byte for an entry that is zero. What an entry
// costs is thus paid by the text that made it, and a list of millions of empty elements,
// two bytes each, takes less room than its text.
package column

import "math/bits"

const chunkSize = 1 << 10

// Column is a long list. Until it is one, it takes no more room than a slice: there can be
// one for each rank.
type Column[T any] struct {
	chunks [][]T
	n      int
}

// Add adds an entry.
func (c *Column[T]) Add(v T) {
	if c.n < chunkSize {
		if c.chunks == nil {
			c.chunks = make([][]T, 1)
		}
		c.chunks[0] = append(c.chunks[0][:c.n], v)
		c.n++
		return
	}
	if c.n%chunkSize == 0 && c.n/chunkSize == len(c.chunks) {
		c.chunks = append(c.chunks, make([]T, chunkSize))
	}
	c.chunks[c.n/chunkSize][c.n%chunkSize] = v
	c.n++
}

// At returns an entry.
func (c *Column[T]) At(i int) T { return c.chunks[i/chunkSize][i%chunkSize] }

// Set replaces an entry.
func (c *Column[T]) Set(i int, v T) { c.chunks[i/chunkSize][i%chunkSize] = v }

// Len is the number of entries.
func (c *Column[T]) Len() int { return c.n }

// Reset makes the column empty, and keeps its memory.
func (c *Column[T]) Reset() { c.n = 0 }

// Marks is a long list of bits.
type Marks struct {
	words  Column[uint64]
	before Column[int] // set bits before each word
	n, set int
}

const wordBits = 64

// Add adds a bit.
func (m *Marks) Add(set bool) {
	if m.n%wordBits == 0 {
		m.words.Add(0)
		m.before.Add(m.set)
	}
	if set {
		last := m.words.Len() - 1
		m.words.Set(last, m.words.At(last)|1<<(m.n%wordBits))
		m.set++
	}
	m.n++
}

// Rank tells whether a bit is set, and how many before it are.
func (m *Marks) Rank(i int) (before int, set bool) {
	word, bit := m.words.At(i/wordBits), uint64(1)<<(i%wordBits)
	return m.before.At(i/wordBits) + bits.OnesCount64(word&(bit-1)), word&bit != 0
}

// Len is the number of bits.
func (m *Marks) Len() int { return m.n }

// Count is the number of bits that are set.
func (m *Marks) Count() int { return m.set }

// Reset makes the list empty, and keeps its memory.
func (m *Marks) Reset() {
	m.words.Reset()
	m.before.Reset()
	m.n, m.set = 0, 0
}

// Sparse is a long list that may have many zeros.
type Sparse[T comparable] struct {
	marks  Marks
	values Column[T]
}

// Add adds an entry.
func (s *Sparse[T]) Add(v T) {
	var zero T
	s.marks.Add(v != zero)
	if v != zero {
		s.values.Add(v)
	}
}

// At returns an entry.
func (s *Sparse[T]) At(i int) (v T) {
	if at, ok := s.marks.Rank(i); ok {
		v = s.values.At(at)
	}
	return v
}

// Rank tells whether an entry is other than zero, and how many before it are.
func (s *Sparse[T]) Rank(i int) (before int, set bool) { return s.marks.Rank(i) }

// Nth returns the entry other than zero that has n of them before it.
func (s *Sparse[T]) Nth(n int) T { return s.values.At(n) }

// Len is the number of entries.
func (s *Sparse[T]) Len() int { return s.marks.Len() }

// Count is the number of entries other than zero.
func (s *Sparse[T]) Count() int { return s.marks.Count() }

// Reset makes the list empty, and keeps its memory.
func (s *Sparse[T]) Reset() {
	s.marks.Reset()
	s.values.Reset()
}
