package pyjson

import (
	"bytes"
	"math"
	"strconv"
)

// AppendFloat appends f as Python's repr prints it: the shortest digits that read back
// as f, with an exponent below 1e-04 and from 1e+16 on, and ".0" behind an integral
// value. Infinities and NaN come out as Infinity, -Infinity and NaN, as the json module
// writes them.
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
	if bytes.IndexByte(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}
