package show

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/artifact"
)

const (
	maxLooked = 10_000 // entries below a directory that are looked at
	maxFound  = 4      // of what was found that a hint names
)

// runsBelow names what a directory without a run of its own has further down that could be
// shown: directories of runs, else files that may be rank artifacts. It looks at names
// only, and at so many of them.
func runsBelow(dir string) []string {
	var runs, files []string
	looked := 0
	walk := func(path string, e fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return nil // what cannot be looked at is not named
		}
		base, _, ranked := artifact.SplitRank(path)
		if !ranked {
			base = artifact.ParseBase(path)
		}
		switch {
		case base.Stem+base.Ext == artifact.DefaultName:
			runs = append(runs, strings.TrimSuffix(base.Dir, string(filepath.Separator)))
		case base.Ext == ".json":
			files = append(files, base.Rank(0))
		}
		return nil
	}
	if filepath.WalkDir(dir, walk) != nil {
		return nil // a hint is worth no failure of its own
	}
	found := slices.Compact(slices.Sorted(slices.Values(runs)))
	if len(found) == 0 {
		found = slices.Compact(slices.Sorted(slices.Values(files)))
	}
	if more := len(found) - maxFound; more > 0 {
		found = append(found[:maxFound:maxFound], fmt.Sprintf("and %d more", more))
	}
	return found
}
