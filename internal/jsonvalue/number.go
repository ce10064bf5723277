package jsonvalue

import (
	"bytes"
	"cmp"
	"strconv"
)

// EqualNumbers tells whether two number literals have the same decimal value, exactly
// and for exponents of any size.
func EqualNumbers(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if isPlainInt(a) && isPlainInt(b) { // no leading zeros: only the spelling of zero varies
		return isZeroInt(a) && isZeroInt(b)
	}
	return CompareNumbers(a, b) == 0
}

// CompareNumbers orders two number literals by decimal value, exactly and for exponents
// of any size: -1 when a < b, 0 when they are equal, +1 when a > b.
func CompareNumbers(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	x, y := parseDecimal(a), parseDecimal(b)
	if c := cmp.Compare(x.sign, y.sign); c != 0 || x.sign == 0 {
		return c
	}
	return x.sign * cmp.Or(comparePoints(x, y), compareDigits(x.digits, y.digits))
}

// AppendDecimal appends a text that two number literals have in common exactly when their
// decimal values are equal.
func AppendDecimal(dst, literal []byte) []byte {
	d := parseDecimal(literal)
	if d.sign == 0 {
		return append(dst, '0')
	}
	if d.sign < 0 {
		dst = append(dst, '-')
	}
	for digits := skipPoint(d.digits); len(digits) > 0; digits = skipPoint(digits[1:]) {
		dst = append(dst, digits[0])
	}
	return append(append(dst, 'e'), d.longMagnitude()...)
}

func isPlainInt(literal []byte) bool {
	return !bytes.ContainsAny(literal, ".eE")
}

func isZeroInt(literal []byte) bool {
	return string(literal) == "0" || string(literal) == "-0"
}

// decimal is a number literal taken apart, nothing expanded: its value is
// sign · 0.digits · 10^(point + exponent).
type decimal struct {
	sign   int    // -1, 0, +1
	digits []byte // a part of the literal; may hold the decimal point; no zero at either end
	point  int64  // bounded by the length of the literal
	// The written exponent can have more digits than any integer type.
	exponentNegative bool
	exponent         []byte // decimal digits without leading zeros
}

func parseDecimal(literal []byte) decimal {
	d := decimal{sign: 1}
	mantissa := literal
	if len(mantissa) > 0 && mantissa[0] == '-' {
		d.sign, mantissa = -1, mantissa[1:]
	}
	if e := bytes.IndexAny(mantissa, "eE"); e >= 0 {
		d.parseExponent(mantissa[e+1:])
		mantissa = mantissa[:e]
	}
	d.parseMantissa(mantissa)
	return d
}

func (d *decimal) parseExponent(text []byte) {
	d.exponentNegative = len(text) > 0 && text[0] == '-'
	d.exponent = bytes.TrimLeft(bytes.TrimLeft(text, "+-"), "0")
}

func (d *decimal) parseMantissa(mantissa []byte) {
	whole := bytes.IndexByte(mantissa, '.')
	if whole < 0 {
		whole = len(mantissa)
	}
	digits := bytes.TrimLeft(mantissa, "0.")
	leading := len(mantissa) - len(digits)
	if leading > whole {
		leading-- // the decimal point is among what was cut
	}
	d.point = int64(whole - leading)
	d.digits = bytes.TrimRight(digits, "0.")
	if len(d.digits) == 0 {
		d.sign = 0
	}
}

// smallExponent is the number of decimal digits that fit an int64 with room for a point.
const smallExponent = 18

// magnitude returns point + exponent when the exponent is small enough.
func (d *decimal) magnitude() (m int64, ok bool) {
	if len(d.exponent) > smallExponent {
		return 0, false
	}
	for _, c := range d.exponent {
		m = m*10 + int64(c-'0')
	}
	if d.exponentNegative {
		m = -m
	}
	return d.point + m, true
}

// comparePoints orders two decimals by point + exponent.
func comparePoints(x, y decimal) int {
	mx, okX := x.magnitude()
	my, okY := y.magnitude()
	if okX && okY {
		return cmp.Compare(mx, my)
	}
	return compareIntegers(x.longMagnitude(), y.longMagnitude())
}

// longMagnitude returns point + exponent as decimal text without leading zeros.
func (d *decimal) longMagnitude() []byte {
	if m, ok := d.magnitude(); ok {
		return strconv.AppendInt(nil, m, 10)
	}
	point, text := d.point, make([]byte, 0, len(d.exponent)+2)
	if d.exponentNegative {
		point, text = -point, append(text, '-')
	}
	// |exponent| >= 10^18 > |point|, so the sum keeps the exponent's sign.
	return append(text, addToDigits(bytes.Clone(d.exponent), point)...)
}

// addToDigits adds n, smaller in magnitude, to a natural number in decimal digits, in
// place where the carry allows.
func addToDigits(digits []byte, n int64) []byte {
	for i := len(digits) - 1; i >= 0 && n != 0; i-- {
		n += int64(digits[i] - '0')
		digit := n % 10
		n /= 10
		if digit < 0 {
			digit, n = digit+10, n-1
		}
		digits[i] = '0' + byte(digit)
	}
	if n > 0 {
		return append(strconv.AppendInt(nil, n, 10), digits...)
	}
	return bytes.TrimLeft(digits, "0")
}

// compareIntegers orders two integers in decimal text without leading zeros.
func compareIntegers(a, b []byte) int {
	negativeA, negativeB := a[0] == '-', b[0] == '-'
	switch {
	case negativeA && negativeB:
		return -compareNaturals(a[1:], b[1:])
	case negativeA:
		return -1
	case negativeB:
		return 1
	}
	return compareNaturals(a, b)
}

func compareNaturals(a, b []byte) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

// compareDigits orders two fractions 0.a and 0.b, passing over decimal points.
func compareDigits(a, b []byte) int {
	for {
		a, b = skipPoint(a), skipPoint(b)
		if len(a) == 0 || len(b) == 0 {
			return cmp.Compare(len(a), len(b)) // no zero at the end: what remains counts
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
}

func skipPoint(digits []byte) []byte {
	if len(digits) > 0 && digits[0] == '.' {
		return digits[1:]
	}
	return digits
}

// floatExponentLimit is the exponent at which strconv.ParseFloat stops counting. Only in
// a literal about as long can a shifted decimal point make up for such an exponent.
const floatExponentLimit = 10000

// floatLiteral returns a literal that strconv.ParseFloat converts exactly: the literal
// itself, or for a very long one the same value with its decimal point moved to the
// front, so that no huge exponent has to be made up for by thousands of zeros.
func floatLiteral(literal []byte) []byte {
	if len(literal) < floatExponentLimit {
		return literal
	}
	d := parseDecimal(literal)
	if d.sign == 0 {
		return []byte("0")
	}
	text := make([]byte, 0, len(d.digits)+32)
	if d.sign < 0 {
		text = append(text, '-')
	}
	text = append(text, "0."...)
	for _, c := range d.digits {
		if c != '.' {
			text = append(text, c)
		}
	}
	text = append(text, 'e')
	if m, ok := d.magnitude(); ok {
		return strconv.AppendInt(text, m, 10)
	}
	return append(text, d.longMagnitude()...)
}
