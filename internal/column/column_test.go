package column

import (
	"math/rand/v2"
	"runtime"
	"testing"
)

func TestColumn(t *testing.T) {
	var c Column[int]
	for round := range 2 { // a column is used again for the next file
		n := 3*chunkSize + 5 - round*chunkSize
		for i := range n {
			c.Add(i * i)
		}
		if c.Len() != n || len(c.chunks) != 4 {
			t.Errorf("%d entries in %d chunks", c.Len(), len(c.chunks))
		}
		c.Set(chunkSize, -1)
		for i := range n {
			want := i * i
			if i == chunkSize {
				want = -1
			}
			if c.At(i) != want {
				t.Fatalf("entry %d is %d", i, c.At(i))
			}
		}
		c.Reset()
		if c.Len() != 0 {
			t.Errorf("%d entries after reset", c.Len())
		}
	}
}

// A sparse column is the list that was added, however many zeros there are.
func TestSparse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var s Sparse[int32]
	for _, share := range []int{1, 2, 64, 1000, 1 << 30} {
		s.Reset() // what was there before must not shine through
		var want []int32
		set := 0
		for range 200_000 + random.IntN(100) {
			v := int32(0)
			if random.IntN(share) == 0 {
				v = random.Int32N(1<<30) + 1
				set++
			}
			s.Add(v)
			want = append(want, v)
		}
		if s.Len() != len(want) || s.Count() != set {
			t.Errorf("1 of %d: %d entries and %d values, want %d and %d", share, s.Len(), s.Count(), len(want), set)
		}
		for i, v := range want {
			if got := s.At(i); got != v {
				t.Fatalf("1 of %d: entry %d is %d, want %d", share, i, got, v)
			}
		}
	}
}

func TestMarks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var m Marks
	var want []bool
	for range 10_000 {
		set := random.IntN(3) == 0
		m.Add(set)
		want = append(want, set)
	}
	before := 0
	for i, set := range want {
		if n, got := m.Rank(i); got != set || n != before {
			t.Fatalf("bit %d is %t with %d before it, want %t with %d", i, got, n, set, before)
		}
		if set {
			before++
		}
	}
	if m.Len() != len(want) || m.Count() != before {
		t.Errorf("%d bits, %d set, want %d and %d", m.Len(), m.Count(), len(want), before)
	}
}

// Ten million zeros take no more than their share of the text that made them.
func TestSparseMemory(t *testing.T) {
	const n = 10_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var s Sparse[int64]
	for range n {
		s.Add(0)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if held := float64(after.HeapAlloc) - float64(before.HeapAlloc); held > n/2 {
		t.Errorf("%d zeros hold %.1f bytes each", n, held/n)
	}
	runtime.KeepAlive(&s)
}
