package merge

import (
	"context"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// MergedOptions says what to check a merged artifact against.
type MergedOptions struct {
	// RankFiles, where there are any, are the rank artifacts that the file was merged of.
	// The merged document is then derived from them again and compared (merged.differs).
	RankFiles []string
	// MaxFindings bounds the findings that are kept; all are counted. 0 keeps all.
	MaxFindings int
	// Into, where set, takes the findings, which are not located then. The result has none.
	Into *finding.Collector
	// Progress, where set, is told of the bytes read and written.
	Progress Progress
}

// MergedResult says what a check of a merged artifact found.
type MergedResult struct {
	Findings         []finding.Finding // located, in report order, at most MaxFindings
	Errors, Warnings int               // all of them
	Failures         []*exitcode.Error // what could not be done
	// Sound tells that the text is sound JSON and that of a merged artifact. What follows
	// is only known then.
	Sound       bool
	RunID       string          // empty when unsound
	SourceRanks []int           // nil when unsound
	GlobalSize  int             // 0 when unsound
	Points      int             // iteration groups
	Groups      jsonstream.Span // where iteration_groups stand; empty when they are no list
	// Compared tells that the file was compared with what the rank files give. If it was
	// not although there are some, NotCompared says why.
	Compared    bool
	NotCompared string
}

// CheckMerged checks a merged artifact: that it is what a merge of some run could have
// written (merged.*, and protocol.*, measurement.*, sample.* and warmup.* for the evidence,
// which a merge copies unchanged), and, given the rank files, that it is what they give
// (merged.differs).
//
// The file is read on the stream; some tens of bytes are held for each point and rank. The
// error is that of ctx, when it was cancelled; everything else is in the result.
func CheckMerged(ctx context.Context, path string, opt MergedOptions) (*MergedResult, error) {
	r := newRun(ctx, Options{CheckOnly: true, MaxFindings: opt.MaxFindings, Into: opt.Into, Progress: opt.Progress})
	defer r.close()
	c := &mergedCheck{scanner: newScanner(r), opt: opt}
	c.merged = true
	if f := r.add(path, finding.NoRank); f != nil {
		c.scanAs(f, c)
		r.fail(f.err)
		c.result.Sound = f.parsed
		if f.parsed && len(opt.RankFiles) > 0 && ctx.Err() == nil {
			c.compareAgain()
		}
		r.checkUnchanged()
	}
	if err := ctx.Err(); err != nil {
		c.close()
		return nil, err
	}
	return c.conclude(), nil
}

// mergedCheck reads one merged artifact.
type mergedCheck struct {
	*scanner
	opt    MergedOptions
	places map[string]place // of the keys that are read when all are known
	flat   flatIndex
	source []int // dp.source_ranks, nil when they are unsound
	again  *run  // the rank files
	// The document has an engine object, and what a probe resolved is in it.
	hasEngine, older bool
	result           MergedResult
}

func (c *mergedCheck) close() {
	if c.again != nil {
		c.again.close()
	}
}

func (c *mergedCheck) conclude() *MergedResult {
	defer c.close()
	files := c.r.files
	if c.again != nil {
		files = append(files[:len(files):len(files)], c.again.files...)
		c.r.failures = append(c.r.failures, c.again.failures...)
	}
	if c.opt.Into == nil {
		c.r.locate(files)
		c.result.Findings = c.r.result.Findings
		c.result.Errors, c.result.Warnings = c.r.out.Errors(), c.r.out.Warnings()
	}
	c.result.Failures = c.r.failures
	return &c.result
}

func (c *mergedCheck) begin() {
	c.places = map[string]place{}
	c.flat.reset()
	c.source, c.hasEngine, c.older = nil, false, false
	c.result = MergedResult{}
}
