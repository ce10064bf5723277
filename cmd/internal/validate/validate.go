// Package validate checks files of every kind that fpm knows, and explains them.
//
// The paths are expanded to files, each file is recognised by its content, and the rank
// files that belong together become one run:
//
//	paths ──▶ files ──▶ kinds ──▶ runs of rank files ──▶ merge's rules ─┐
//	                         │                       └─▶ inspect: facts, strict rules ─┼─▶ findings
//	                         ├─▶ merged artifacts, sidecars, traces ────┘
//	                         └─▶ what nobody knows
//
// The rules of a run are those of a merge, applied by the merge itself, so that without
// the strict rules the verdict is the merger's. Beside it the reference's file is read a
// second time for what it says: two readings on two processors cost less time than one
// that does both.
package validate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/fpm-project/fpm/cmd/internal/files"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/merge"
	"github.com/fpm-project/fpm/probe"
)

// Options says what to check.
type Options struct {
	Paths []string
	// Strict adds the rules of strict consumers.
	Strict bool
	// Schema checks every document against its JSON Schema, too.
	Schema bool
	// Kind, where set, is what every file is taken for.
	Kind detect.Kind
	// Require is how much every sidecar must have established.
	Require probe.Requirement
	// Expected is what the traces must hold.
	Expected Expected
	// MergedFrom are the rank files, or their directories, that the merged artifact among
	// the paths is to be derived from again.
	MergedFrom []string
	// MaxFindings bounds the findings that are kept; all are counted. 0 keeps all.
	MaxFindings int
	// Progress, where set, is told of the bytes read.
	Progress merge.Progress
}

// Result says what was found.
type Result struct {
	Findings         []finding.Finding // located, in report order, at most MaxFindings
	Errors, Warnings int               // all of them
	Failures         []*exitcode.Error // what could not be done
	Files            []File            // every file that was looked at, by path
	Runs             []Run
	Merged           []Merged
	Sidecars         []Sidecar
	// Traces are what the files of traces came to: one, for they are verified together, or
	// none when there are no such files.
	Traces []Trace
}

// File is what became of one file.
type File struct {
	Path     string
	Kind     detect.Kind
	What     string // the kind in words
	RunID    string
	Checked  bool
	Rejected bool // a rule about it, or about the run that it belongs to, is broken
}

// Run is what became of the rank files that belong together.
type Run struct {
	Files  []string // by rank
	RunID  string
	Merge  Verdict // of the rules that a merge requires
	Strict Verdict // of those that strict consumers require beyond it; empty when not asked for
	Facts  []*inspect.Facts
	// Unread are the files that tell nothing: those among Files whose text is unsound, and
	// by their names those that belong to the run and could not be opened, which are not.
	Unread []inspect.Unread
}

// Verdict is the outcome of one level of rules.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Rejected Verdict = "rejected"
)

// validation is the state of one validation.
type validation struct {
	ctx        context.Context
	opt        Options
	out        *finding.Collector
	candidates []candidate
	locks      int // files that were passed over: a recorder's locks
	failures   []*exitcode.Error
	unopened   []string // paths whose files are artifacts by their names
	result     Result
	checked    map[string]bool // by path
	rejected   map[string]bool // by path
}

// Validate checks the files that the paths stand for. The error is that of ctx, when it was
// cancelled; everything else is in the result.
func Validate(ctx context.Context, opt Options) (*Result, error) {
	v := &validation{ctx: ctx, opt: opt, out: finding.NewCollector(opt.MaxFindings), checked: map[string]bool{}, rejected: map[string]bool{}}
	v.expand(opt.Paths)
	v.look()
	slices.Sort(v.unopened)
	v.unopened = slices.Compact(v.unopened)
	v.check()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v.result.Findings = v.out.Findings()
	for _, err := range files.Locate(ctx, v.result.Findings) {
		v.failures = append(v.failures, exitcode.From(err))
	}
	v.conclude()
	return &v.result, nil
}

func (v *validation) check() {
	accepted := map[string][]rankFile{} // by run_id, of the runs that a merge accepts
	for _, g := range groupRuns(v.of(detect.Rank)) {
		if v.ctx.Err() != nil {
			return
		}
		run := v.checkRun(g)
		if run.Merge == Accepted {
			for _, f := range run.Facts {
				accepted[run.RunID] = append(accepted[run.RunID], rankFile{f.File, f.Rank})
			}
		}
		v.result.Runs = append(v.result.Runs, run)
	}
	v.checkMerged(accepted)
	v.checkSidecars()
	v.checkTraces()
	v.checkSchemas()
	v.reportUnknown()
}

// checkRun applies the rules of a merge to the files of a run, and the strict ones when
// they are asked for.
func (v *validation) checkRun(g *group) Run {
	run := Run{Files: g.files}
	if len(g.ids) > 0 {
		run.RunID = g.ids[0]
	}
	first := v.inspectAside(g.files[0], inspect.Options{Rank: nameRank(g.files[0])})
	required := finding.NewCollector(v.opt.MaxFindings)
	result, err := merge.Run(v.ctx, merge.Options{
		Inputs: g.files, Explicit: true, Subset: true, CheckOnly: true,
		MaxFindings: v.opt.MaxFindings, Into: required, Progress: v.opt.Progress,
	})
	inspected := <-first
	inspected.rethrow()
	if err != nil {
		return run
	}
	v.failures = append(v.failures, result.Failures...)
	run.Merge = verdict(required)
	strict := finding.NewCollector(v.opt.MaxFindings)
	run.Facts = v.inspectRun(result.Files, inspected, strict)
	run.Unread = v.unread(result.Files)
	if v.opt.Strict {
		inspect.Compare(run.Facts, strict)
		run.Strict = verdict(strict)
	}
	rejected := required.Errors()+strict.Errors() > 0
	for _, path := range g.files {
		v.checked[path], v.rejected[path] = true, rejected
	}
	v.out.Merge(required)
	v.out.Merge(strict)
	return run
}

// unread returns what belongs to a run and tells nothing.
func (v *validation) unread(files []merge.File) (list []inspect.Unread) {
	families := map[artifact.Base]bool{}
	for _, f := range files {
		families[family(f.Path)] = true
		if !f.Sound {
			list = append(list, inspect.Unread{File: f.Path, Rank: f.Rank})
		}
	}
	for _, path := range v.unopened {
		if families[family(path)] {
			list = append(list, inspect.Unread{File: path, Rank: nameRank(path)})
		}
	}
	return list
}

func verdict(c *finding.Collector) Verdict {
	if c.Errors() > 0 {
		return Rejected
	}
	return Accepted
}

// inspection is what reading one file for its content came to.
type inspection struct {
	path  string
	facts *inspect.Facts
	out   *finding.Collector
	err   error
	bug   string // a panic, to be thrown where it can be recovered
}

func (i inspection) rethrow() {
	if i.bug != "" {
		panic(i.bug)
	}
}

// inspectAside reads a file for its content on another processor.
func (v *validation) inspectAside(path string, opt inspect.Options) <-chan inspection {
	done := make(chan inspection, 1)
	go func() {
		i := inspection{path: path}
		defer func() {
			if p := recover(); p != nil {
				i.bug = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
			done <- i
		}()
		i.out = finding.NewCollector(v.opt.MaxFindings)
		i.facts, i.err = v.inspect(path, opt, i.out)
	}()
	return done
}

func (v *validation) inspect(path string, opt inspect.Options, out *finding.Collector) (*inspect.Facts, error) {
	in, err := input.Open(path, input.Options{})
	if err != nil {
		return nil, err
	}
	opt.File = path
	if v.opt.Strict {
		opt.Strict = &finding.Scope{Out: out, File: path, Rank: finding.NoRank}
	}
	facts, err := inspect.Read(files.WithContext(v.ctx, in), opt)
	return facts, errors.Join(err, in.Close())
}

// inspectRun returns what the sound files of a run say, in rank order. The groups are read
// in the reference's file only: the others' are equal, or the merge's rules say so. Read is
// what was read already.
func (v *validation) inspectRun(files []merge.File, read inspection, strict *finding.Collector) (facts []*inspect.Facts) {
	files = slices.DeleteFunc(slices.Clone(files), func(f merge.File) bool { return !f.Sound })
	keep := func(i inspection) {
		i.rethrow()
		if i.err != nil {
			if v.ctx.Err() == nil {
				v.failures = append(v.failures, exitcode.From(i.err))
			}
			return
		}
		strict.Merge(i.out)
		facts = append(facts, i.facts)
	}
	const ahead = 2 // one for each of two processors
	pending := make([]<-chan inspection, len(files))
	start := func(n int) {
		if n >= len(files) || (n == 0 && files[0].Path == read.path) {
			return
		}
		pending[n] = v.inspectAside(files[n].Path, inspect.Options{Rank: files[n].Rank, SkipGroups: n > 0, GroupsAt: files[n].Groups})
	}
	for n := range min(ahead, len(files)) {
		start(n)
	}
	for n := range files {
		if pending[n] == nil {
			keep(read)
		} else {
			keep(<-pending[n])
		}
		start(n + ahead)
	}
	return facts
}

func (v *validation) conclude() {
	r := &v.result
	r.Errors, r.Warnings, r.Failures = v.out.Errors(), v.out.Warnings(), v.failures
	slices.SortStableFunc(r.Failures, func(a, b *exitcode.Error) int { // whatever the order of the arguments
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Error(), b.Error()))
	})
	for _, c := range v.candidates {
		r.Files = append(r.Files, File{
			Path: c.path, Kind: c.Kind, What: c.What, RunID: c.RunID, Checked: v.checked[c.path], Rejected: v.rejected[c.path],
		})
	}
}

// reportUnknown applies input.kind: to every file that was named itself, and to all when
// nothing else is there to check.
func (v *validation) reportUnknown() {
	nothing := len(v.checked) == 0
	for _, c := range v.candidates {
		if c.Kind == "" || v.checked[c.path] || !(c.named || nothing) {
			continue
		}
		v.checked[c.path], v.rejected[c.path] = true, true
		scope := finding.Scope{Out: v.out, File: c.path, Rank: finding.NoRank}
		scope.Says(finding.InputKind, "", 0, "this is no artifact that fpm validates", "a rank artifact, a merged artifact, a worker-probe sidecar or a trace", c.What)
	}
}
