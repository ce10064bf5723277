package trace

import "math"

// QuantileError is the relative error of the quantiles of a [Histogram], at most.
const QuantileError = 0.01

// gamma is the ratio of a bucket's bounds: the value in their middle is within the error
// of everything in between.
const gamma = (1 + QuantileError) / (1 - QuantileError)

// The values that a histogram tells apart. Smaller and larger ones count as these: a
// nanosecond and 30 years, in seconds.
const (
	minValue = 1e-9
	maxValue = 1e9
)

// Histogram counts positive values in buckets that grow with the value, so that quantiles
// have a bounded relative error in bounded memory: 2,072 buckets for eighteen orders of
// magnitude, of which only those between the smallest and the largest value are held. The
// zero value is empty.
type Histogram struct {
	first  int // number of the first bucket
	counts []uint32
	n      uint64
}

// Add counts a value above 0.
func (h *Histogram) Add(v float64) {
	i := bucket(v)
	switch {
	case len(h.counts) == 0:
		h.first, h.counts = i, make([]uint32, 1, 8)
	case i < h.first:
		grown := make([]uint32, len(h.counts)+h.first-i)
		copy(grown[h.first-i:], h.counts)
		h.first, h.counts = i, grown
	case i >= h.first+len(h.counts):
		h.counts = append(h.counts, make([]uint32, i-h.first-len(h.counts)+1)...)
	}
	h.counts[i-h.first]++
	h.n++
}

// Count returns how many values were added.
func (h *Histogram) Count() uint64 { return h.n }

func bucket(v float64) int {
	return int(math.Ceil(math.Log(min(max(v, minValue), maxValue)) / math.Log(gamma)))
}

// Quantile returns a value that is within [QuantileError] of the one below which the
// share q of the values lie, by the nearest rank; 0 when there is none.
func (h *Histogram) Quantile(q float64) float64 {
	rank := max(1, uint64(math.Ceil(q*float64(h.n))))
	for i, seen := 0, uint64(0); i < len(h.counts); i++ {
		if seen += uint64(h.counts[i]); seen >= rank {
			return 2 * math.Pow(gamma, float64(h.first+i)) / (gamma + 1)
		}
	}
	return 0
}
