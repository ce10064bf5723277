package merge

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/warmup"
)

func TestSpans(t *testing.T) {
	list := []jsonstream.Span{
		{}, {Off: 5, Len: 1}, {Off: 1 << 40, Len: math.MaxUint32 - 1}, {Off: 7, Len: math.MaxUint32}, {Off: 8, Len: math.MaxUint32 + 1},
		{Off: math.MaxInt64 - 1<<36, Len: 1 << 36}, {Off: 9, Len: 2},
	}
	var s spans
	for range 2 {
		for _, span := range list {
			s.add(span)
		}
		for i, want := range list {
			if got := s.at(i); got != want {
				t.Errorf("span %d is %+v, want %+v", i, got, want)
			}
		}
		if len(s.long) != 3 {
			t.Errorf("%d spans stand aside", len(s.long))
		}
		s.reset()
	}
	for range list { // what was long must not shine through
		s.add(jsonstream.Span{Off: 1, Len: 3})
	}
	for i := range list {
		if got := s.at(i); got != (jsonstream.Span{Off: 1, Len: 3}) {
			t.Errorf("span %d is %+v after reset", i, got)
		}
	}
}

func TestCodes(t *testing.T) {
	values := []uint32{0, 1, 254, 255, 256, math.MaxUint32, 3}
	var c codes
	for range 2 {
		for i, v := range values {
			if c.add(v); c.wide.Len() > 0 != (i >= 4) {
				t.Errorf("of %v, %d are wide", values[:i+1], c.wide.Len())
			}
		}
		for i, want := range values {
			if c.at(i) != want {
				t.Errorf("code %d is %d, want %d", i, c.at(i), want)
			}
		}
		for i := range values {
			c.set(i, values[len(values)-1-i])
		}
		for i := range values {
			if want := values[len(values)-1-i]; c.at(i) != want {
				t.Errorf("code %d is %d, want %d", i, c.at(i), want)
			}
		}
		c.reset()
	}
	for range values {
		c.add(7)
	}
	c.set(3, 1000)
	if c.at(2) != 7 || c.at(3) != 1000 || c.at(4) != 7 {
		t.Errorf("codes %d, %d and %d around one that was set", c.at(2), c.at(3), c.at(4))
	}
}

// Places are found among many that are equal, and among many that are not.
func TestStarts(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	var s starts
	var want []int
	for v := 0; len(want) < 5000; {
		if random.IntN(1+len(want)%200) == 0 {
			v += random.IntN(1000)
		}
		s.add(v)
		want = append(want, v)
	}
	for i, v := range want {
		if got := s.at(i); got != v {
			t.Fatalf("place %d is %d, want %d", i, got, v)
		}
	}
}

// Cells are found in groups of any size, as in a list of lists.
func TestCells(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		size, irregular := random.IntN(4), random.IntN(8)
		g := &groupIndex{size: size, regular: -1}
		var want [][]int64
		for at := range 6 {
			g.begin()
			n := size
			if at >= irregular {
				n = random.IntN(5)
			}
			var cells []int64
			for range n {
				forward := random.Int64()
				span := jsonstream.Span{Off: forward >> 8, Len: 1}
				if random.IntN(4) == 0 {
					span, forward = jsonstream.Span{}, 0 // one without an FPM
				}
				g.addCell(span, warmup.Reference{Before: int32(at), Forward: forward})
				cells = append(cells, forward)
			}
			g.ids.Add(int32(at))
			want = append(want, cells)
		}
		for group, cells := range want {
			for rank := -1; rank < 6; rank++ {
				cell, ok := g.cell(group, rank)
				if ok != (rank >= 0 && rank < len(cells)) {
					t.Fatalf("size %d, %v: cell of rank %d in group %d exists: %t", size, want, rank, group, ok)
				}
				if !ok {
					continue
				}
				if cells[rank] == 0 {
					if g.fpms.at(cell).Len > 0 || g.reference(cell) != warmup.NoReference() {
						t.Fatalf("size %d, %v: cell of rank %d in group %d has %+v", size, want, rank, group, g.reference(cell))
					}
					continue
				}
				if ref := g.reference(cell); ref.Forward != cells[rank] || int(ref.Before) != group || g.fpms.at(cell).Off != cells[rank]>>8 {
					t.Fatalf("size %d, %v: cell of rank %d in group %d is %+v", size, want, rank, group, ref)
				}
			}
		}
	}
}

func TestFind(t *testing.T) {
	g := &groupIndex{}
	for _, at := range []int32{2, -1, 0} {
		g.position.Add(at)
	}
	for id, want := range map[int64]int{1: 2, 3: 0} {
		if group, ok := g.find(id); !ok || group != want {
			t.Errorf("id %d: %d, %t", id, group, ok)
		}
	}
	for _, id := range []int64{math.MinInt64, -1, 0, 2, 4, math.MaxInt64} {
		if group, ok := g.find(id); ok {
			t.Errorf("id %d is in group %d", id, group)
		}
	}
}

func TestFirst(t *testing.T) {
	var f first
	calls := 0
	for off := range int64(3) {
		f.add(off+7, func() string { calls++; return "/x" })
	}
	if f != (first{pointer: "/x", off: 7, n: 3}) || calls != 1 {
		t.Errorf("%+v after %d calls", f, calls)
	}
}

// The ids that no group has are named, the first of many.
func TestMissingIDs(t *testing.T) {
	index := func(positions ...int32) *groupIndex {
		x := &groupIndex{}
		for _, p := range positions {
			x.ids.Add(1)
			x.position.Add(p)
		}
		return x
	}
	for want, x := range map[string]*groupIndex{
		"":                     index(1, 0),
		": no group is 3":      index(0, 2, -1),
		": no group is 1 or 2": index(-1, -1, 0),
		": no group is 1, 2, 3, 4, 5, 6, 7, 8 (and 2 more)": index(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
	} {
		if got := x.unnumbered(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
