package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns s with everything that a terminal could obey, or that could make text
// look like other text, shown as an escape: control characters of both sets, characters
// without a graphic form (joiners, direction overrides, byte-order marks, line
// separators) as \u001b or \U000e0001, the usual ones as \n, \r and \t, and bytes that
// are not UTF-8 as \xff, a lone surrogate as \ud800.
//
// A backslash stays as it is, so JSON text keeps its own spelling. The result is for
// reading, not for parsing back.
func Escape(s string) string { return escapeCut(s, -1) }

// escapeCut is [Escape], cut before the escape or character that would make the result
// longer than max characters; max < 0 cuts nothing.
func escapeCut(s string, max int) string {
	if plain(s) && (max < 0 || len(s) <= max) {
		return s
	}
	var b strings.Builder
	for count := 0; s != ""; {
		shown, n := next(s)
		count += utf8.RuneCountInString(shown)
		if max >= 0 && count > max {
			return b.String() + "…"
		}
		b.WriteString(shown)
		s = s[n:]
	}
	return b.String()
}

// plain tells whether s is printable ASCII, as nearly all texts are.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// next returns how the first character of s is shown, and how many bytes it has.
func next(s string) (shown string, size int) {
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == utf8.RuneError && n <= 1:
		return invalid(s)
	case r == '\n':
		return `\n`, n
	case r == '\r':
		return `\r`, n
	case r == '\t':
		return `\t`, n
	case unicode.IsGraphic(r):
		return s[:n], n
	case r > 0xffff:
		return fmt.Sprintf(`\U%08x`, r), n
	default:
		return fmt.Sprintf(`\u%04x`, r), n
	}
}

// invalid shows the first byte of s, which starts no character of UTF-8, or the three
// bytes that spell a surrogate half.
func invalid(s string) (shown string, size int) {
	if len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf {
		return fmt.Sprintf(`\u%04x`, 0xd000|rune(s[1]&0x3f)<<6|rune(s[2]&0x3f)), 3
	}
	return fmt.Sprintf(`\x%02x`, s[0]), 1
}

// escapeLines is [Escape] for a text whose line ends are meant.
func escapeLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Escape(line)
	}
	return strings.Join(lines, "\n")
}

// valid returns s with bytes that are not UTF-8 shown as by [Escape] and everything else
// as it is: JSON has its own escapes for the rest, but none for those.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)
		shown := s[:n]
		if r == utf8.RuneError && n <= 1 {
			shown, n = invalid(s)
		}
		b.WriteString(shown)
		s = s[n:]
	}
	return b.String()
}

// Quote returns a path as a shell takes it for an argument that is no flag, for commands
// that people are to copy. It is to be escaped as any other text.
func Quote(path string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	if path != "" && path[0] != '-' && strings.IndexFunc(path, func(r rune) bool { return !safe(r) }) < 0 {
		return path
	}
	if path != "" && path[0] == '-' {
		path = "./" + path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
