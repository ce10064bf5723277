// Package words puts numbers of things into words, for messages.
package words

import "fmt"

// Integer is a type of numbers of things.
type Integer interface{ ~int | ~int64 | ~uint64 }

// Plural returns the word for n things: one for one of them, many for any other number.
func Plural[N Integer](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Count returns n and the word for n things: "1 file", "3 files".
func Count[N Integer](n N, one, many string) string {
	return fmt.Sprintf("%d %s", n, Plural(n, one, many))
}
