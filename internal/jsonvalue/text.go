package jsonvalue

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// EqualStrings tells whether two quoted literals stand for the same code units, however
// they are escaped.
func EqualStrings(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if bytes.IndexByte(a, '\\') < 0 && bytes.IndexByte(b, '\\') < 0 {
		return false
	}
	var bufA, bufB [128]byte
	return bytes.Equal(Unquote(bufA[:0], a), Unquote(bufB[:0], b))
}

// Unquote appends the text of a quoted literal. Escaped surrogate pairs become one
// character; a lone surrogate becomes its three bytes of WTF-8 (U+D800 is ED A0 80),
// so that different code units stay different. The literal must be a valid one.
func Unquote(dst, raw []byte) []byte {
	text := raw[1 : len(raw)-1]
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(dst, text[:i]...)
		dst, text = unescape(dst, text[i+1:])
	}
}

func unquoteString(raw []byte) string {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	return string(Unquote(make([]byte, 0, len(raw)), raw))
}

// unescape appends what the escape sequence at the start of text, after its backslash,
// stands for, and returns the text behind it.
func unescape(dst, text []byte) (appended, rest []byte) {
	switch c := text[0]; c {
	case 'u':
		return unescapeUnit(dst, text)
	case 'b':
		dst = append(dst, '\b')
	case 'f':
		dst = append(dst, '\f')
	case 'n':
		dst = append(dst, '\n')
	case 'r':
		dst = append(dst, '\r')
	case 't':
		dst = append(dst, '\t')
	default: // a quote, a slash or a backslash stands for itself
		dst = append(dst, c)
	}
	return dst, text[1:]
}

const unitLength = len("u0000")

// unescapeUnit is unescape for text that starts with uXXXX.
func unescapeUnit(dst, text []byte) (appended, rest []byte) {
	unit := hexUnit(text)
	rest = text[unitLength:]
	if !utf16.IsSurrogate(unit) {
		return utf8.AppendRune(dst, unit), rest
	}
	if len(rest) > unitLength && rest[0] == '\\' && rest[1] == 'u' {
		if pair := utf16.DecodeRune(unit, hexUnit(rest[1:])); pair != utf8.RuneError {
			return utf8.AppendRune(dst, pair), rest[1+unitLength:]
		}
	}
	return append(dst, 0xE0|byte(unit>>12), 0x80|byte(unit>>6)&0x3F, 0x80|byte(unit)&0x3F), rest
}

func hexUnit(text []byte) (unit rune) {
	for _, c := range text[1:unitLength] {
		unit = unit<<4 | rune(hexDigit(c))
	}
	return unit
}

func hexDigit(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// AppendToken appends "/" and a JSON Pointer reference token (RFC 6901).
func AppendToken(dst []byte, name string) []byte {
	dst = append(dst, '/')
	for i := range len(name) {
		switch name[i] {
		case '~':
			dst = append(dst, "~0"...)
		case '/':
			dst = append(dst, "~1"...)
		default:
			dst = append(dst, name[i])
		}
	}
	return dst
}
