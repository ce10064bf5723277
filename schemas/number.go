package schemas

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A number beyond 10^±maxMagnitude, or with more than maxDigits digits, stands in no
// schema. Such a number of a document is replaced by one within the bounds that compares
// the same way with all that do: the library expands exponents, takes seconds for long
// numbers, and panics for an exponent above a million.
const (
	maxMagnitude = 400
	maxDigits    = 800
)

// bounded returns a decoded document with its numbers bounded. Containers are changed in
// place.
func bounded(v any) any {
	switch v := v.(type) {
	case json.Number:
		return boundedNumber(string(v))
	case []any:
		for i := range v {
			v[i] = bounded(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = bounded(v[key])
		}
	}
	return v
}

// boundedNumber bounds a literal. An integer stays one, and anything else keeps a
// fraction or an exponent.
func boundedNumber(literal string) json.Number {
	if len(literal) <= maxMagnitude && !strings.ContainsAny(literal, "eE") {
		return json.Number(literal)
	}
	unsigned, negative := strings.CutPrefix(literal, "-")
	sign := ""
	if negative {
		sign = "-"
	}
	if !strings.ContainsAny(literal, ".eE") {
		return json.Number(sign + "1" + strings.Repeat("0", maxMagnitude))
	}
	digits, magnitude := scientific(unsigned)
	switch {
	case digits == "":
		return json.Number(sign + "0.0")
	case magnitude > maxMagnitude:
		digits, magnitude = "1", maxMagnitude
	case magnitude < -maxMagnitude:
		digits, magnitude = "1", -maxMagnitude
	case len(digits) > maxDigits:
		digits = digits[:maxDigits] + "1" // what is cut off is not zero
	}
	return json.Number(sign + digits[:1] + "." + digits[1:] + "0e" + strconv.Itoa(magnitude))
}

// scientific splits a literal without a sign into its digits, the first and the last not
// zero, and the power of ten of the first. There are no digits in a zero.
func scientific(literal string) (digits string, magnitude int) {
	mantissa, exponent := literal, ""
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		mantissa, exponent = literal[:i], literal[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	digits = strings.TrimLeft(all, "0")
	magnitude = len(whole) - (len(all) - len(digits)) - 1
	return strings.TrimRight(digits, "0"), magnitude + boundedExponent(exponent)
}

// boundedExponent returns the value of an exponent, or one that no number of zeros in a
// document makes up for.
func boundedExponent(s string) int {
	const enough = 1 << 30 // more than a document has digits
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case s == "":
		return 0
	case err == nil && -enough < n && n < enough:
		return int(n)
	case strings.HasPrefix(s, "-"):
		return -enough
	default:
		return enough
	}
}
