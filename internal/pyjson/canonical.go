package pyjson

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// AppendCanonical appends the canonical JSON of a parsed value, of which content keys
// and digests are taken: keys in code point order, no white space, ASCII escapes, and
// numbers as Python prints what it read. That is, an integer literal keeps its digits (-0
// is 0) and any other literal is the repr of its float64, so that 1 and 1.0 stay apart
// while 1.0 and 10e-1 do not; a literal beyond the range of a float is Infinity.
func AppendCanonical(dst []byte, v *jsonvalue.Value) []byte {
	switch v.Kind {
	case jsonvalue.Object:
		return appendCanonicalObject(dst, v.Members)
	case jsonvalue.Array:
		dst = append(dst, '[')
		for i := range v.Elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendCanonical(dst, &v.Elems[i])
		}
		return append(dst, ']')
	case jsonvalue.String:
		return AppendString(dst, string(jsonvalue.Unquote(nil, v.Raw)))
	case jsonvalue.Number:
		return appendCanonicalNumber(dst, v.Raw)
	}
	return append(dst, v.Raw...)
}

func appendCanonicalObject(dst []byte, members []jsonvalue.Member) []byte {
	sorted := make([]*jsonvalue.Member, len(members))
	for i := range members {
		sorted[i] = &members[i]
	}
	// WTF-8 sorts by code point, lone surrogates included.
	slices.SortStableFunc(sorted, func(a, b *jsonvalue.Member) int { return strings.Compare(a.Name, b.Name) })
	dst = append(dst, '{')
	for i, m := range sorted {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, m.Name), ':')
		dst = AppendCanonical(dst, &m.Value)
	}
	return append(dst, '}')
}

func appendCanonicalNumber(dst, raw []byte) []byte {
	switch {
	case bytes.ContainsAny(raw, ".eE"):
		f, _ := strconv.ParseFloat(string(raw), 64) // out of range: an infinity, as in Python
		return AppendFloat(dst, f)
	case string(raw) == "-0":
		return append(dst, '0')
	}
	return append(dst, raw...)
}
