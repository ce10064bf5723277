package inspect

import (
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// maxExcerpt bounds what a finding quotes of another file, in bytes.
const maxExcerpt = 200

// Compare applies the strict rules across the rank artifacts of one run, in rank order:
// strict.config and strict.order. The first is what the others are held against.
func Compare(facts []*Facts, out *finding.Collector) {
	if len(facts) == 0 {
		return
	}
	first := facts[0]
	for _, f := range facts[1:] {
		scope := finding.Scope{Out: out, File: f.File, Rank: f.Rank}
		for _, c := range conditions() {
			c.compare(first, f, scope)
		}
		compareOrder(first, f, scope)
	}
}

// condition is a part of the blocks that every rank of a run should share.
type condition struct {
	block string
	inner string // a member of the block; empty when it is the whole
	but   string // a member that may differ
}

func conditions() []condition {
	return []condition{
		{block: "config", but: "output_path"},
		{block: "cudagraph"},
		{block: "capacity", inner: "common"},
		{block: "kvwarm", inner: "enabled"},
		{block: "kvwarm", inner: "warm_eligible"},
		{block: "kvwarm", inner: "skip_reason"},
		{block: "recurrent_state"},
	}
}

// of returns the part in a file, nil where it is absent, and where it would stand.
func (c condition) of(f *Facts) (v *jsonvalue.Value, pointer string, parent int64) {
	v, pointer, parent = f.Blocks[c.block], "/"+c.block, f.Offset
	if c.inner == "" {
		return c.without(v), pointer, parent
	}
	if v != nil {
		parent = v.Offset
	}
	return v.Get(c.inner), pointer + "/" + c.inner, parent
}

// without returns the block less the member that may differ.
func (c condition) without(v *jsonvalue.Value) *jsonvalue.Value {
	if c.but == "" || v.Get(c.but) == nil {
		return v
	}
	rest := *v
	rest.Members = slices.DeleteFunc(slices.Clone(v.Members), func(m jsonvalue.Member) bool { return m.Name == c.but })
	return &rest
}

func (c condition) compare(first, f *Facts, scope finding.Scope) {
	if slices.Contains(first.TooLarge, c.block) || slices.Contains(f.TooLarge, c.block) {
		at, ok := f.BlockAt[c.block]
		if !ok {
			at = f.Offset
		}
		scope.Says(finding.StrictConfig, "/"+c.block, at, "the block is too large to be compared", "at most 1 MiB and 50,000 values on every rank", "")
		return
	}
	a, _, _ := c.of(first)
	b, pointer, parent := c.of(f)
	if a == nil && b == nil {
		return
	}
	than := " differs from the reference, " + finding.RankFile(first.Rank, first.File)
	jsonvalue.Diff(a, b, pointer, func(d jsonvalue.Difference) bool {
		if d.B == nil {
			if d.Parent != nil {
				parent = d.Parent.Offset
			}
			scope.Absent(finding.StrictConfig, d.Pointer, parent, "a missing value"+than, d.A.Excerpt(maxExcerpt))
		} else {
			scope.Broken(finding.StrictConfig, d.Pointer, d.B.Offset, "the value"+than, d.A.Excerpt(maxExcerpt))
		}
		return true
	})
}

// compareOrder holds the order of a file's results against the reference's. Results of
// other points, or of none, are for the merge to report.
func compareOrder(first, f *Facts, scope finding.Scope) {
	if len(first.Results) != len(f.Results) {
		return
	}
	at := -1
	inBoth := map[int64]int{}
	for i := range f.Results {
		a, b := first.Results[i].ID, f.Results[i].ID
		if a < 1 || b < 1 {
			return
		}
		inBoth[a]++
		inBoth[b]--
		if a != b && at < 0 {
			at = i
		}
	}
	for _, n := range inBoth {
		if n != 0 {
			return
		}
	}
	if at >= 0 {
		r := f.Results[at]
		scope.Of(r.ID).Broken(finding.StrictOrder, "/results/"+strconv.Itoa(at)+"/point/benchmark_id", r.Offset,
			"the results come in another order than the reference's, "+finding.RankFile(first.Rank, first.File),
			strconv.FormatInt(first.Results[at].ID, 10))
	}
}
