package validate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/finding"
)

// group is the rank files that should be one run.
type group struct {
	files []string // by the rank of their name, then by path
	ids   []string // run ids, sorted: more than one is a fault
	dirs  map[string]bool
	ranks map[int]bool
}

// groupRuns puts rank files that belong together into one group.
//
// Files whose names make them ranks of one run are one group, whatever they say: a file
// that an earlier run left beside the others must be compared with them to be found.
// Groups that say the same run_id are one, as the ranks of a run may have other names or
// stand in a folder for each node; unless both hold the same rank and are in different
// folders, which makes them copies of one run, each to be checked by itself.
func groupRuns(ranks []candidate) (groups []*group) {
	families := map[artifact.Base]*group{}
	var list []*group
	for _, c := range ranks { // sorted by path
		base := family(c.path)
		f := families[base]
		if f == nil {
			f = &group{dirs: map[string]bool{base.Dir: true}, ranks: map[int]bool{}}
			families[base] = f
			list = append(list, f)
		}
		f.add(c)
	}
	byID := map[string][]*group{}
	for _, f := range list {
		if g := f.relative(byID); g != nil {
			g.take(f)
			f = g
		} else {
			groups = append(groups, f)
		}
		for _, id := range f.ids {
			if !slices.Contains(byID[id], f) {
				byID[id] = append(byID[id], f)
			}
		}
	}
	for _, g := range groups {
		slices.SortStableFunc(g.files, func(a, b string) int { return cmp.Compare(nameRank(a), nameRank(b)) })
		slices.Sort(g.ids)
	}
	return groups
}

func (g *group) add(c candidate) {
	g.files = append(g.files, c.path)
	g.ranks[c.rank()] = true
	if c.RunID != "" && !slices.Contains(g.ids, c.RunID) {
		g.ids = append(g.ids, c.RunID)
	}
}

// relative returns a group of the same run that f belongs to.
func (g *group) relative(byID map[string][]*group) *group {
	for _, id := range g.ids {
		for _, other := range byID[id] {
			if shares(g.dirs, other.dirs) || !shares(g.ranks, other.ranks) {
				return other
			}
		}
	}
	return nil
}

func shares[K comparable](a, b map[K]bool) bool {
	for key := range a {
		if b[key] {
			return true
		}
	}
	return false
}

func (g *group) take(other *group) {
	g.files = append(g.files, other.files...)
	maps.Copy(g.dirs, other.dirs)
	maps.Copy(g.ranks, other.ranks)
	for _, id := range other.ids {
		if !slices.Contains(g.ids, id) {
			g.ids = append(g.ids, id)
		}
	}
}

// rank is the rank that a file says it is of, or else the one that its name stands for.
func (c candidate) rank() int {
	if c.DPRank != finding.NoRank {
		return c.DPRank
	}
	return nameRank(c.path)
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
