package validate

import (
	"slices"

	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/merge"
)

// Merged is what became of a merged artifact.
type Merged struct {
	Path        string
	Sound       bool
	RunID       string
	SourceRanks []int
	GlobalSize  int
	Points      int
	// Compared tells that the document was derived again from its rank files and compared;
	// NotCompared says why it was not although there are some.
	Compared    bool
	NotCompared string
}

// checkMerged applies the rules of merged artifacts. The rank files that one is compared
// with are those that were asked for, or else those of its run among the inputs, if a
// merge accepts them and no source rank is missing.
func (v *validation) checkMerged(accepted map[string][]rankFile) {
	merged := v.of(detect.Merged)
	from := v.mergedFrom(len(merged))
	for _, c := range merged {
		if v.ctx.Err() != nil {
			return
		}
		files := from
		if len(files) == 0 {
			files = sourcesOf(c, accepted[c.RunID])
		}
		out := finding.NewCollector(v.opt.MaxFindings)
		result, err := merge.CheckMerged(v.ctx, c.path, merge.MergedOptions{
			RankFiles: files, MaxFindings: v.opt.MaxFindings, Into: out, Progress: v.opt.Progress,
		})
		if err != nil {
			return
		}
		v.failures = append(v.failures, result.Failures...)
		v.checked[c.path], v.rejected[c.path] = true, out.Errors() > 0
		v.out.Merge(out)
		v.result.Merged = append(v.result.Merged, Merged{
			Path: c.path, Sound: result.Sound, RunID: result.RunID, SourceRanks: result.SourceRanks, GlobalSize: result.GlobalSize,
			Points: result.Points, Compared: result.Compared, NotCompared: result.NotCompared,
		})
	}
}

// mergedFrom returns the rank files that a merged artifact is to be derived from again.
func (v *validation) mergedFrom(merged int) (files []string) {
	if len(v.opt.MergedFrom) == 0 {
		return nil
	}
	if merged != 1 {
		v.failf(exitcode.Usage, "", "name the merged artifact whose rank files follow", "--merged-from goes with exactly one merged artifact, and there are %d", merged)
		return nil
	}
	from := validation{ctx: v.ctx, opt: Options{}}
	from.expand(v.opt.MergedFrom)
	from.look()
	v.failures = append(v.failures, from.failures...)
	for _, c := range from.candidates {
		if c.named || c.Kind == detect.Rank || c.Kind == detect.Damaged {
			files = append(files, c.path)
		}
	}
	if len(files) == 0 && len(from.failures) == 0 {
		v.failf(exitcode.Usage, "", "name the rank files", "--merged-from stands for no rank file")
	}
	return files
}

// rankFile is a file of a run that a merge accepts.
type rankFile struct {
	path string
	rank int
}

// sourcesOf returns the files of a merged artifact's source ranks: nil when one is not
// there.
func sourcesOf(c candidate, run []rankFile) (files []string) {
	for _, rank := range c.SourceRanks {
		i := slices.IndexFunc(run, func(f rankFile) bool { return f.rank == rank })
		if i < 0 {
			return nil
		}
		files = append(files, run[i].path)
	}
	return files
}
