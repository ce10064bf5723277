package pyjson

import "math"

// Summer adds floats as the built-in sum of CPython 3.12 does: with the compensation of
// Neumaier, applied once at the end and only if it is a finite number, so that the sum
// of huge values is an infinity and not NaN. The zero Summer is an empty sum.
type Summer struct {
	sum          float64
	compensation float64
}

// Add adds one value. The order of the values matters for the last bit of the sum.
func (s *Summer) Add(x float64) {
	total := s.sum + x
	if math.Abs(s.sum) >= math.Abs(x) {
		s.compensation += (s.sum - total) + x
	} else {
		s.compensation += (x - total) + s.sum
	}
	s.sum = total
}

// Sum returns the sum of the values added so far; 0 if there are none.
func (s *Summer) Sum() float64 {
	if c := s.compensation; c != 0 && !math.IsInf(c, 0) && !math.IsNaN(c) {
		return s.sum + c
	}
	return s.sum
}
