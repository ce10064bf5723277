// Package merge proves that the rank artifacts of a self-benchmark are one run, and
// writes the merged artifact.
//
// Every data-parallel rank writes a file with its own results and, in iteration_groups,
// every rank's results once more. N files thus hold N copies of the same groups, and a
// run of many ranks is gigabytes of mostly equal text. A merge therefore reads one file
// in full, the reference rank's: its groups are parsed, judged and indexed by byte range.
// Of the other files the groups are compared with those, at first by bytes; only what
// remains of each file, its envelope and its own results, is parsed. Nothing is held but
// the index: some tens of bytes for each point and rank.
//
// [Run] reports every broken rule as a finding and writes only when there is none. What
// could not be done at all (a missing file, a full disk) is a failure beside them.
//
// [CheckMerged] is the way back: it judges a merged artifact by itself, with the same
// readers, and derives it from its rank files once more to compare.
package merge

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fpm-project/fpm/engine"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/protocol"
)

// MaxDPSize is the largest data-parallel size of a run (input.limit).
const MaxDPSize = artifact.MaxRank + 1

// Options says what to merge and where to.
type Options struct {
	// Inputs are the arguments: none, one base path or directory, or the rank files.
	Inputs []string
	// DefaultBase is the base path when there is no argument.
	DefaultBase string
	// Explicit says that the inputs are the rank files themselves, be it only one whose
	// name tells no rank.
	Explicit bool
	// Ranks names a node-local subset; nil asks for every rank, unless Subset says that
	// the files given are the subset.
	Ranks  artifact.RankSet
	Subset bool
	// Output is the path to write; empty derives it from the inputs.
	Output string
	// CheckOnly verifies and writes nothing. Force replaces a target that is not a merged
	// artifact of this run.
	CheckOnly, Force bool
	// Wait, where positive, is how long to wait for files to appear and to be complete,
	// and Grace how much longer after a warning.
	Wait, Grace time.Duration
	// MaxFindings bounds the findings that are kept; all are counted. 0 keeps all.
	MaxFindings int
	// Into, where set, takes the findings, which are not located then. The result has none.
	Into *finding.Collector
	// Progress, where set, is told of the bytes read and written.
	Progress Progress
	// Warn, where set, takes the warning that a wait goes into its grace.
	Warn func(message string)
}

// Progress takes note of work. Its methods are called from several goroutines.
type Progress interface {
	Expect(bytes int64) // there is so much more to do
	Add(bytes int64)    // so much more is done
}

// Result says what a merge found and did.
type Result struct {
	Findings         []finding.Finding // located, in report order, at most MaxFindings
	Errors, Warnings int               // all of them
	Failures         []*exitcode.Error // what could not be done
	Output           string            // the path written; empty when none was
	Bytes            int64             // size of the merged artifact
	RunID            string
	SourceRanks      []int
	GlobalSize       int
	Points           int
	Files            []File // those that were read, in rank order
}

// File is what a merge knows of a file that it read.
type File struct {
	Path   string
	Rank   int             // finding.NoRank when neither content nor name tells
	Sound  bool            // its text is sound JSON and an object
	Groups jsonstream.Span // where its iteration_groups stand; empty when there are none
}

// run is the state of one merge.
type run struct {
	ctx      context.Context
	opt      Options
	out      *finding.Collector
	spool    *input.Spool
	base     artifact.Base
	files    []*rankFile                 // in rank order
	ref      *rankFile                   // nil until a file was read that can be the reference
	groups   *groupIndex                 // the reference's
	layout   *layoutCheck                // of the reference's groups, nil when they are no list
	contract protocol.Contract           // the reference's
	head     map[string]*jsonvalue.Value // the reference's envelope
	status   status                      // the reference's
	engines  *engine.Checker
	failures []*exitcode.Error
	missing  artifact.RankSet // ranks whose file was looked for by name and is not there
	reported map[int]bool     // ranks whose file was looked for by name, and cannot be read
	result   Result
}

// Run merges. The error is that of ctx, when it was cancelled; everything else is in the
// result.
func Run(ctx context.Context, opt Options) (*Result, error) {
	r := newRun(ctx, opt)
	defer r.close()
	r.merge()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range r.files {
		r.result.Files = append(r.result.Files, File{Path: f.path, Rank: f.rank, Sound: f.parsed, Groups: f.groups})
	}
	if opt.Into == nil {
		r.locate(r.files)
		r.result.Errors, r.result.Warnings = r.out.Errors(), r.out.Warnings()
	}
	r.result.Failures = r.failures
	return &r.result, ctx.Err()
}

func newRun(ctx context.Context, opt Options) *run {
	out := opt.Into
	if out == nil {
		out = finding.NewCollector(opt.MaxFindings)
	}
	return &run{ctx: ctx, opt: opt, out: out, spool: input.NewSpool(""), reported: map[int]bool{}}
}

func (r *run) merge() {
	defer r.reportMissing()
	if !r.resolve() {
		return
	}
	r.read()
	r.compareRun()
	if r.ctx.Err() != nil || len(r.failures)+len(r.missing) > 0 {
		return
	}
	if r.out.Errors() > 0 {
		r.checkUnchanged() // what was found in a file that changes says nothing about the run
		return
	}
	r.result.RunID, r.result.GlobalSize, r.result.Points = r.ref.runID, r.size(), r.groups.len()
	for _, f := range r.files {
		r.result.SourceRanks = append(r.result.SourceRanks, f.rank)
	}
	if r.opt.CheckOnly {
		r.checkUnchanged()
		return
	}
	r.write()
}

// fail takes note of something that could not be done.
func (r *run) fail(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		r.failures = append(r.failures, exitcode.From(err))
	}
}

func (r *run) failf(code exitcode.Code, file, hint, format string, args ...any) {
	r.fail(&exitcode.Error{Code: code, File: file, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (r *run) close() {
	if r.layout != nil {
		r.layout.cancel()
	}
	for _, f := range r.files {
		f.in.Close()
	}
	r.spool.Close()
}

// size is the run's data-parallel size, 0 when it is not known.
func (r *run) size() int {
	if r.ref == nil {
		return 0
	}
	return r.ref.size
}

// read reads every file: one after the other until there is a reference, then as many at
// once as there are processors.
func (r *run) read() {
	next := 0
	for ; next < len(r.files) && r.ref == nil; next++ {
		newScanner(r).scan(r.files[next])
	}
	if r.ref == nil || r.ctx.Err() != nil {
		return
	}
	rest := make(chan *rankFile)
	var readers sync.WaitGroup
	var bug atomic.Value // a panic of a reader: it ends the merge where it can be recovered
	for range min(runtime.GOMAXPROCS(0), len(r.files)-next) {
		readers.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					bug.Store(fmt.Sprintf("%v\n%s", v, debug.Stack()))
					for range rest { // let the others end
					}
				}
			}()
			s := newScanner(r)
			for f := range rest {
				s.scan(f)
			}
		})
	}
	for _, f := range r.files[next:] {
		rest <- f
	}
	close(rest)
	readers.Wait()
	if v := bug.Load(); v != nil {
		panic(v)
	}
}

// compareRun applies the rules across files.
func (r *run) compareRun() {
	if r.ctx.Err() != nil {
		return
	}
	for _, f := range r.files {
		r.fail(f.err)
	}
	if r.ref == nil {
		return
	}
	r.compareSizes()
	r.checkMissing()
	r.checkDeclarations()
	r.checkReferences()
	r.compareEngines()
}

func (r *run) compareEngines() {
	r.engines = engine.NewChecker(r.out)
	for _, f := range r.files {
		if !f.parsed {
			continue
		}
		block, err := f.engine.tree(f)
		if err != nil {
			r.failText(f, err)
			continue
		}
		r.engines.Add(f.rank, f.path, f.root, block)
	}
	r.engines.Finish()
}

// source is a rank file's text as the scanners read it: it counts what was read, and
// ends when the merge is cancelled.
type source struct {
	run  *run
	in   *input.File
	high atomic.Int64
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if err := s.run.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.in.ReadAt(p, off)
	if report := s.run.opt.Progress; report != nil && n > 0 {
		if high := s.high.Load(); off+int64(n) > high && s.high.CompareAndSwap(high, off+int64(n)) {
			report.Add(off + int64(n) - high)
		}
	}
	return n, err
}

// checkUnchanged fails the merge when a file is no longer the one that was read.
func (r *run) checkUnchanged() bool {
	ok := true
	for _, f := range r.files {
		if err := f.in.Changed(); err != nil {
			ok = false
			r.fail(&exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Err: err, Hint: "merge again when nothing writes the file any more"})
		}
	}
	return ok
}

// locate gives the findings line and column, and the text that stood there.
func (r *run) locate(files []*rankFile) {
	r.result.Findings = r.out.Findings()
	byFile := map[string][]*finding.Finding{}
	for i := range r.result.Findings {
		if f := &r.result.Findings[i]; f.Offset >= 0 {
			byFile[f.File] = append(byFile[f.File], f)
		}
	}
	for _, f := range files {
		if at := byFile[f.path]; len(at) > 0 {
			r.fail(jsonstream.Locate(f.src, at, maxExcerpt))
		}
	}
}

// maxExcerpt bounds the text of a value that a finding quotes.
const maxExcerpt = 1000
