package tracestats

import "fmt"

// si returns a number with three digits and a decimal prefix: 12.3k, 4.5M.
func si(v float64) string {
	for _, unit := range []string{"", "k", "M", "G", "T"} {
		if v < 999.5 || unit == "T" {
			return Digits(v) + unit
		}
		v /= 1000
	}
	return "" // not reached: the last unit takes every number
}

// Digits returns a number with three significant digits, or all of a whole number below
// a thousand.
func Digits(v float64) string {
	switch {
	case v == float64(int64(v)) && v < 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case v >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.01:
		return fmt.Sprintf("%.2f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

// Seconds returns a time in a unit that suits it: 12.3ms, 4.5s, 3.2h.
func Seconds(v float64) string {
	switch {
	case v == 0:
		return "0s"
	case v < 0.9995e-3:
		return Digits(v*1e6) + "us"
	case v < 0.9995:
		return Digits(v*1e3) + "ms"
	case v < 120:
		return Digits(v) + "s"
	case v < 7200:
		return Digits(v/60) + "min"
	case v < 172800:
		return Digits(v/3600) + "h"
	default:
		return Digits(v/86400) + "d"
	}
}
