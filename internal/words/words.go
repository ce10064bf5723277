// Package words puts numbers of things into words, for messages.
package words

import "strconv"

// Plural returns the word for n things: one for one of them, many for any other number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count returns n and the word for n things: "1 file", "3 files".
func Count(n int, one, many string) string { return strconv.Itoa(n) + " " + Plural(n, one, many) }
