package jsonstream

import (
	"bytes"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Field is what rules ask of a scalar, kept after its text is gone. The zero Field
// stands for an absent value.
type Field struct {
	Kind   jsontext.Kind // 0 when absent
	Offset int64
	Int    int64 // the value, where Whole
	// Integer tells that the value is a number without fraction or exponent that fits
	// 64 bits. Whole tells that its decimal value is an integer that does, however
	// spelled; with a fraction or exponent only one of at most 2^53 counts.
	Integer, Whole bool
}

// Present tells whether the value exists.
func (f Field) Present() bool { return f.Kind != 0 }

// Null tells whether the value is null or absent.
func (f Field) Null() bool { return f.Kind == 0 || f.Kind == 'n' }

// Is tells whether the value is a number equal to n.
func (f Field) Is(n int64) bool { return f.Whole && f.Int == n }

// IsInteger tells whether the value is an integer equal to n.
func (f Field) IsInteger(n int64) bool { return f.Integer && f.Int == n }

// NonNegative tells whether the value is an integer of at least 0.
func (f Field) NonNegative() bool { return f.Integer && f.Int >= 0 }

// Field reads a value.
func (s *Scanner) Field() (Field, error) {
	v, err := s.Scalar()
	if err != nil {
		return Field{}, err
	}
	return v.Field(), nil
}

// Field returns the facts of the value.
func (v Scalar) Field() Field {
	f := Field{Kind: v.Kind, Offset: v.Offset}
	if v.Kind == '0' {
		f.Int, f.Integer, f.Whole = integer(v.Raw)
	}
	return f
}

func integer(raw []byte) (n int64, literal, whole bool) {
	if len(raw) < 19 { // a plain literal of so few digits cannot overflow
		if n, ok := digits(raw); ok {
			return n, true, true
		}
	}
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true, true
	}
	if !bytes.ContainsAny(raw, ".eE") {
		return 0, false, false
	}
	const exact = 1 << 53
	number := jsonvalue.Value{Kind: jsonvalue.Number, Raw: raw}
	f, finite := number.Float64()
	if !finite || f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false, false
	}
	n = int64(f)
	if !jsonvalue.EqualNumbers(raw, strconv.AppendInt(nil, n, 10)) {
		return 0, false, false
	}
	return n, false, true
}

func digits(raw []byte) (n int64, ok bool) {
	negative := raw[0] == '-'
	if negative {
		raw = raw[1:]
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// Float is a number as rules about time ask for it.
type Float struct {
	Kind   jsontext.Kind // 0 when absent
	Offset int64
	Value  float64
	Finite bool // the value is a number that converts to a finite float64
}

// Null tells whether the value is null or absent.
func (f Float) Null() bool { return f.Kind == 0 || f.Kind == 'n' }

// Float reads a value.
func (s *Scanner) Float() (Float, error) {
	v, err := s.Scalar()
	if err != nil {
		return Float{}, err
	}
	return v.Float(), nil
}

// Float returns the facts of the value.
func (v Scalar) Float() Float {
	f := Float{Kind: v.Kind, Offset: v.Offset}
	if v.Kind == '0' {
		number := jsonvalue.Value{Kind: jsonvalue.Number, Raw: v.Raw}
		f.Value, f.Finite = number.Float64()
	}
	return f
}

// Text returns the unescaped string; ok is false when the value is none. A lone
// surrogate comes as its three bytes of generalised UTF-8.
func (v Scalar) Text() (text string, ok bool) {
	if v.Kind != '"' {
		return "", false
	}
	if bytes.IndexByte(v.Raw, '\\') < 0 {
		return string(v.Raw[1 : len(v.Raw)-1]), true
	}
	return string(jsonvalue.Unquote(nil, v.Raw)), true
}

// Equals tells whether the value is the string text.
func (v Scalar) Equals(text string) bool {
	if v.Kind != '"' {
		return false
	}
	if bytes.IndexByte(v.Raw, '\\') < 0 {
		return string(v.Raw[1:len(v.Raw)-1]) == text
	}
	got, _ := v.Text()
	return got == text
}
