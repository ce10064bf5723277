package simulate

import (
	"fmt"
	"iter"
	"slices"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// Break is a rule that a run can be made to break.
type Break struct {
	Rule    finding.ID
	Entails []finding.ID // rules that are broken, or warned of, with it, whatever the options
	How     string       // what is wrong with the run
	// MinRanks and MinPoints are the fewest ranks and points that can break the rule.
	MinRanks, MinPoints int
	// Evidence tells that the rule is about the evidence blocks, which a legacy run lacks.
	Evidence bool
}

// Breakable returns every rule that Run can break, in the order of the rule table.
func Breakable() []Break {
	var all []Break
	for _, m := range mutations() {
		all = append(all, m.Break)
	}
	return all
}

// An ExcludedError says that the rule cannot be broken under the other options.
type ExcludedError struct {
	Rule finding.ID
	Need string // what the options must be
}

func (e *ExcludedError) Error() string {
	return fmt.Sprintf("%s cannot be broken by this run: it needs %s", e.Rule, e.Need)
}

// Excluded returns an *[ExcludedError] if the rule cannot be broken under the options.
func (b Break) Excluded(opt Options) error {
	switch {
	case opt.Ranks < b.MinRanks:
		return &ExcludedError{b.Rule, fmt.Sprintf("at least %d ranks", b.MinRanks)}
	case opt.Points < b.MinPoints:
		return &ExcludedError{b.Rule, fmt.Sprintf("at least %d points", b.MinPoints)}
	case opt.Legacy && b.Evidence:
		return &ExcludedError{b.Rule, "the evidence blocks that a legacy run leaves out"}
	}
	return nil
}

// mutation is how a break is done: hooks that change values as they are made. Each hook
// may be nil, edits what it gets in place and returns it. A change that the groups and a
// rank's own results share is made in both, so that they stay equal.
type mutation struct {
	Break
	prepare   func(*run)
	measured  func(position int, m *measurement)                            // by the victim, wherever it is told
	document  func(r *run, rank int, doc pyjson.Object) pyjson.Object       // every file
	group     func(r *run, position int, group pyjson.Object) pyjson.Object // in every file
	peerGroup func(r *run, position int, group pyjson.Object)               // in the victim's file only
	fpms      func(r *run, position, rank int, fpms pyjson.Array) pyjson.Array
	result    func(r *run, position int, result pyjson.Object) pyjson.Object // in the victim's own results
	order     func(results iter.Seq[any]) iter.Seq[any]                      // of the victim's own results
	record    func(i int, record pyjson.Object) pyjson.Object                // in the victim's ledger
	cut       int64                                                          // bytes off the end of the victim's file
}

func mutationFor(opt Options) (mutation, error) {
	if opt.Break == "" {
		return mutation{}, nil
	}
	for _, m := range mutations() {
		if m.Rule == opt.Break {
			return m, m.Excluded(opt)
		}
	}
	return mutation{}, &OptionError{"break", string(opt.Break), "no run is made to break this rule"}
}

func mutations() []mutation {
	return slices.Concat(
		textBreaks(), envelopeBreaks(), partialBreaks(), identityBreaks(), groupBreaks(), metricBreaks(),
		resultBreaks(), timingBreaks(), protocolBreaks(), measurementBreaks(), sampleBreaks(), warmupBreaks(),
		engineBreaks(), strictEvidenceBreaks(), strictBreaks(), probeBreaks(),
	)
}

// everywhere edits the document of every rank.
func everywhere(edit func(r *run, doc pyjson.Object) pyjson.Object) func(*run, int, pyjson.Object) pyjson.Object {
	return func(r *run, _ int, doc pyjson.Object) pyjson.Object { return edit(r, doc) }
}

// inVictim edits the document of the victim.
func inVictim(edit func(r *run, doc pyjson.Object) pyjson.Object) func(*run, int, pyjson.Object) pyjson.Object {
	return func(r *run, rank int, doc pyjson.Object) pyjson.Object {
		if rank != r.victim() {
			return doc
		}
		return edit(r, doc)
	}
}

// put returns an edit that replaces the value at a path.
func put(value any, path ...any) func(*run, pyjson.Object) pyjson.Object {
	return func(_ *run, doc pyjson.Object) pyjson.Object {
		set(doc, value, path...)
		return doc
	}
}

// inFirst edits the victim's metric of the first point, in the groups and in its results.
func inFirst(edit func(fpm pyjson.Object) pyjson.Object) func(*run, int, int, pyjson.Array) pyjson.Array {
	return func(r *run, position, rank int, fpms pyjson.Array) pyjson.Array {
		if position == 0 && rank == r.victim() {
			fpms[0] = edit(fpms[0].(pyjson.Object))
		}
		return fpms
	}
}

// putFirst replaces a value of that metric.
func putFirst(value any, path ...any) func(*run, int, int, pyjson.Array) pyjson.Array {
	return inFirst(func(fpm pyjson.Object) pyjson.Object {
		set(fpm, value, path...)
		return fpm
	})
}

// inFirstResult edits the victim's own result of the first point.
func inFirstResult(edit func(r *run, result pyjson.Object)) func(*run, int, pyjson.Object) pyjson.Object {
	return func(r *run, position int, result pyjson.Object) pyjson.Object {
		if position == 0 {
			edit(r, result)
		}
		return result
	}
}

// inFirstGroup edits the group of the first point.
func inFirstGroup(edit func(r *run, group pyjson.Object)) func(*run, int, pyjson.Object) pyjson.Object {
	return inFirstResult(edit)
}

// inFirstRecord edits the first entry of the victim's ledger, the warmup at start-up.
func inFirstRecord(value any, key string) func(int, pyjson.Object) pyjson.Object {
	return func(i int, record pyjson.Object) pyjson.Object {
		if i == 0 {
			set(record, value, key)
		}
		return record
	}
}
