package pyjson

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends s as a quoted JSON string in ASCII: everything outside the
// printable range is escaped, with lower-case hex and surrogate pairs. s may be WTF-8: a
// surrogate encoded on its own comes out as its own escape. A byte that is no UTF-8 at
// all comes out as \udc80 to \udcff, which is how Python carries such bytes of a file
// name.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	plain := 0 // s[plain:i] needs no escape
	for i := 0; i < len(s); {
		if c := s[i]; c >= ' ' && c <= '~' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[plain:i]...)
		var size int
		dst, size = appendEscape(dst, s[i:])
		i += size
		plain = i
	}
	dst = append(dst, s[plain:]...)
	return append(dst, '"')
}

// appendEscape escapes the first character of s and returns its length in bytes.
func appendEscape(dst []byte, s string) ([]byte, int) {
	switch s[0] {
	case '"', '\\':
		return append(dst, '\\', s[0]), 1
	case '\n':
		return append(dst, `\n`...), 1
	case '\r':
		return append(dst, `\r`...), 1
	case '\t':
		return append(dst, `\t`...), 1
	case '\b':
		return append(dst, `\b`...), 1
	case '\f':
		return append(dst, `\f`...), 1
	}
	r, size := decode(s)
	if r >= 0x10000 {
		r -= 0x10000
		dst = appendUnit(dst, 0xd800+r>>10)
		return appendUnit(dst, 0xdc00+r&0x3ff), size
	}
	return appendUnit(dst, r), size
}

// decode reads one code point of WTF-8, or one stray byte as the low surrogate that
// Python's surrogateescape makes of it.
func decode(s string) (rune, int) {
	r, size := utf8.DecodeRuneInString(s)
	if r != utf8.RuneError || size != 1 {
		return r, size
	}
	if len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf {
		return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), 3
	}
	return 0xdc00 + rune(s[0]), 1
}

func appendUnit(dst []byte, u rune) []byte {
	return append(dst, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
