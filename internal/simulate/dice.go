package simulate

import (
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
)

// purpose keeps the numbers drawn for different things apart.
type purpose uint64

const (
	forRun purpose = iota
	forPoint
	forOrder
	forProcess
	forEnvelope
	forSamples
	forPrompts
)

// dice draws the numbers of one purpose at one point on one rank. They depend on nothing
// drawn elsewhere, so that any part of a run can be made on its own.
type dice struct{ source rand.PCG }

func roll(seed uint64, why purpose, point, rank int) *dice {
	d := new(dice)
	d.source.Seed(seed, mix(mix(mix(uint64(why))^uint64(point))^uint64(rank)))
	return d
}

// mix spreads a small number over 64 bits (the finaliser of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below returns a number from 0 to n-1.
func (d *dice) below(n int) int {
	high, _ := bits.Mul64(d.source.Uint64(), uint64(n))
	return int(high)
}

// between returns a number from low to high. The conversion keeps the product apart from
// the sum: fused, it would have another last bit on some machines.
func (d *dice) between(low, high float64) float64 {
	unit := float64(d.source.Uint64()>>11) / (1 << 53)
	return low + float64((high-low)*unit)
}

func (d *dice) chance(p float64) bool { return d.between(0, 1) < p }

// hex returns n random bytes in lower-case hex.
func (d *dice) hex(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(d.source.Uint64() >> 56)
	}
	return hex.EncodeToString(text)
}

func pick[T any](d *dice, from ...T) T { return from[d.below(len(from))] }
