package rpc

import "slices"

// form is what a text looks like from afar.
type form int

const (
	empty     form = iota
	jsonText       // begins like a JSON value, and every container in it ends
	cut            // begins like a JSON value, and stops within it
	otherText      // does not begin like one
)

// shape tells an answer that was cut off, or that is not meant as JSON, from one that is
// for the caller to judge. A server that speaks HTTP/1.0 ends its answer by closing the
// connection, so that a broken connection looks like the end.
//
// It is no parser. NaN and Infinity, which Python writes, are replies to be recorded.
func shape(text []byte) form {
	switch {
	case len(text) == 0:
		return empty
	case !begins(text):
		return otherText
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch b := text[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			depth++
		case b == '}' || b == ']':
			depth--
		}
	}
	if quoted || depth > 0 {
		return cut
	}
	return jsonText
}

// begins tells whether a text can be a JSON value, or one of the words that Python writes
// for numbers that JSON does not have.
func begins(text []byte) bool {
	switch b := text[0]; b {
	case '{', '[', '"', '-':
		return true
	default:
		return '0' <= b && b <= '9' || slices.Contains([]string{"null", "true", "false", "NaN", "Infinity"}, string(text))
	}
}
