package table

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"github.com/fpm-project/fpm/internal/report"
)

// Text returns an untrusted text as it is shown: escaped, and cut where no terminal would
// show it whole.
func Text(s string) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return report.Escape(s)
}

// Width returns how many columns of a terminal an escaped text takes: East Asian wide
// characters take two, combining ones none.
func Width(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns an escaped text in at most so many columns of a terminal, 1 or more; one
// that was cut ends in "…".
func Cut(s string, columns int) string {
	if Width(s) <= columns {
		return s
	}
	n := 0
	for i, r := range s {
		if n += runeWidth(r); n > columns-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// Wrap breaks an escaped text into lines of at most so many columns of a terminal, at
// spaces where it can. A width of 0 or less has no bounds.
func Wrap(s string, columns int) (lines []string) {
	if columns <= 0 {
		return []string{s}
	}
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && Width(line)+1+Width(word) > columns {
			lines, line = append(lines, line), ""
		}
		for line == "" && Width(word) > columns {
			var head string
			head, word = split(word, columns)
			lines = append(lines, head)
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// split takes as much of a word as fits, at least one character.
func split(word string, columns int) (head, rest string) {
	n := 0
	for i, r := range word {
		if n += runeWidth(r); n > columns && i > 0 {
			return word[:i], word[i:]
		}
	}
	return word, ""
}

// Field is a label with its value.
type Field struct{ Label, Value string }

// Fields returns a list of labels and values, aligned, in lines of at most width columns
// of a terminal; values that are longer go on below themselves. Fields without a value
// are left out. A width of 0 or less has no bounds.
func Fields(fields []Field, width int) (lines []string) {
	width = bounded(width)
	indent := 0
	for _, f := range fields {
		if f.Value != "" {
			indent = max(indent, Width(Text(f.Label))+len(gap))
		}
	}
	room := width
	if width > 0 {
		indent = min(indent, width/2)
		room = width - indent
	}
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		label := Text(f.Label)
		if indent > len(gap) {
			label = Cut(label, indent-len(gap))
		}
		for i, line := range Wrap(Text(f.Value), room) {
			if i > 0 {
				label = ""
			}
			lines = append(lines, label+strings.Repeat(" ", max(0, indent-Width(label)))+line)
		}
	}
	return lines
}

// Paragraph returns a text wrapped, its first line behind a mark and the others indented
// as far.
func Paragraph(mark, text string, width int) []string {
	return Hanging(mark, strings.Repeat(" ", Width(mark)), text, width)
}

// Hanging returns a text wrapped, its first line behind one mark and the others behind
// another.
func Hanging(first, rest, text string, width int) (lines []string) {
	width = bounded(width)
	room := width
	if width > 0 {
		room = max(width-max(Width(first), Width(rest)), 1)
	}
	for i, line := range Wrap(Text(text), room) {
		if i == 0 {
			line = first + line
		} else {
			line = rest + line
		}
		lines = append(lines, line)
	}
	return lines
}
