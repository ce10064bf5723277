// Package nearest finds the names that somebody may have meant who typed another one.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns up to three of the names, the nearest to typed first: those a few edits
// away, and those that begin with it or hold it. Case does not matter.
func Names(typed string, names []string) []string {
	const most, longest = 3, 64
	typed = strings.ToLower(typed)
	if typed == "" || len(typed) > longest {
		return nil
	}
	type near struct {
		name string
		far  int
	}
	var found []near
	for _, name := range names {
		lower := strings.ToLower(name)
		far := distance(typed, lower)
		if len(typed) > 1 && strings.Contains(lower, typed) {
			far = min(far, 1)
		}
		if far <= max(1, len(typed)/3) {
			found = append(found, near{name, far})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(a.name, b.name))
	})
	var list []string
	for _, n := range found[:min(most, len(found))] {
		list = append(list, n.name)
	}
	return list
}

// distance returns how many bytes must be inserted, deleted, changed or swapped with
// their neighbour to make a into b (optimal string alignment).
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
