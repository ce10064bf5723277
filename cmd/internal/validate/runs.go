package validate

import (
	"cmp"
	"slices"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
)

// group is the rank files that should be one run.
type group struct {
	files []string // by the rank of their name, then by path
	ids   []string // run ids, sorted: more than one is a fault
}

// groupRuns puts rank files that belong together into one group: those that say the same
// run_id, and those whose names make them ranks of one run. The second matters when they
// are not of one run: a file that an earlier run left beside the others must be compared
// with them to be found.
func groupRuns(ranks []candidate) []*group {
	parent := make([]int, len(ranks))
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	first := map[any]int{}
	join := func(i int, key any) {
		if j, ok := first[key]; ok {
			parent[find(i)] = find(j)
		} else {
			first[key] = i
		}
	}
	type runID string
	for i, c := range ranks {
		join(i, family(c.path))
		if c.RunID != "" {
			join(i, runID(c.RunID))
		}
	}
	groups := map[int]*group{}
	var list []*group
	for i, c := range ranks { // sorted by path
		g := groups[find(i)]
		if g == nil {
			g = &group{}
			groups[find(i)] = g
			list = append(list, g)
		}
		g.files = append(g.files, c.path)
		if c.RunID != "" && !slices.Contains(g.ids, c.RunID) {
			g.ids = append(g.ids, c.RunID)
		}
	}
	for _, g := range list {
		slices.SortStableFunc(g.files, func(a, b string) int { return cmp.Compare(nameRank(a), nameRank(b)) })
		slices.Sort(g.ids)
	}
	return list
}

// family is the base path that a rank file's name stands for.
func family(path string) artifact.Base {
	if base, _, named := artifact.SplitRank(path); named {
		return base
	}
	return artifact.ParseBase(path)
}

// nameRank is the rank that a name stands for: 0 for a base path.
func nameRank(path string) int {
	_, rank, _ := artifact.SplitRank(path)
	return rank
}

// of returns the candidates of a kind. What is damaged before it tells what it is, is
// checked as a rank artifact, so that the damage is found and placed.
func (v *validation) of(kind detect.Kind) (found []candidate) {
	for _, c := range v.candidates {
		if c.Kind == kind || (kind == detect.Rank && c.Kind == detect.Damaged) {
			found = append(found, c)
		}
	}
	return found
}
