// Package show reads artifacts for people.
//
// The paths are expanded to files, and each file is recognised by its content. The rank
// artifacts of one run are one [Document], and so are the files of traces; a merged artifact
// or a sidecar is a document of its own. A document is written as text that fits a width,
// or as data that carries the same without any cut.
//
// Showing judges nothing: whatever can be read is shown, sound or not. What is no JSON
// text, or nothing that is known, is a finding.
package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/cmd/internal/files"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/trace"
)

// Options says what to read.
type Options struct {
	Paths       []string
	Sort        Order // of the points; empty for that of execution
	Sample      int64 // also read the raw samples of the point of this benchmark id; 0 for none
	MaxFindings int   // bounds the findings that are kept; all are counted; 0 keeps all
	Progress    Progress
	// Warn, where set, takes warnings that are no findings.
	Warn func(message string)
}

// Progress takes note of work.
type Progress interface {
	Expect(bytes int64) // there is so much more to do
	Add(bytes int64)    // so much more is done
}

// Order is an order of points.
type Order string

// The orders of points. Points that have no such value come last, equal ones as executed.
const (
	ByExecution Order = "order"
	ByWall      Order = "wall" // the longest first
	BySkew      Order = "skew" // the largest first
)

// Orders returns every order, the default first.
func Orders() []Order { return []Order{ByExecution, ByWall, BySkew} }

// Result is what was read.
type Result struct {
	Documents        []*Document
	Findings         []finding.Finding // about files that cannot be shown
	Errors, Warnings int
	Failures         []*exitcode.Error // what could not be done
}

// Document is what is shown together: the rank artifacts of one run id, the files of traces,
// or one other file.
type Document struct {
	Kind    detect.Kind
	Files   []string
	Facts   []*inspect.Facts     // by rank; of a merged artifact the one
	Merged  *inspect.Merged      // of a merged artifact
	Sidecar *Sidecar             // of a sidecar
	Trace   *trace.Stats         // of the files of traces
	Samples *inspect.PointDetail // of the point that was asked for; nil when there is none
	Sort    Order                // of the points that are shown
}

// explanations explains a document.
func (d *Document) explanations() inspect.Explanations {
	if d.Merged != nil {
		return inspect.ExplainMerged(d.Merged)
	}
	return inspect.Explain(d.Facts)
}

// reading is the state of one reading.
type reading struct {
	ctx    context.Context
	opt    Options
	out    *finding.Collector
	result Result
	runs   map[string]*Document // of rank artifacts, by run id
	last   *Document            // of the last rank artifact that was read
	seen   map[string]bool      // files by their absolute path

	traces           []string // files of traces
	manifests, locks []string // what recorders keep beside them
}

func newReading(ctx context.Context, opt Options) *reading {
	return &reading{ctx: ctx, opt: opt, out: finding.NewCollector(opt.MaxFindings), runs: map[string]*Document{}, seen: map[string]bool{}}
}

// Read reads the files that the paths stand for. The error is that of ctx, when it was
// cancelled; everything else is in the result.
func Read(ctx context.Context, opt Options) (*Result, error) {
	r := newReading(ctx, opt)
	for _, path := range opt.Paths {
		r.path(path, len(opt.Paths) == 1)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	if err := r.summarise(); err != nil {
		return nil, err
	}
	r.conclude()
	for _, err := range files.Locate(ctx, r.result.Findings) {
		r.fail(err)
	}
	return &r.result, nil
}

// conclude puts what was read in order: that of the arguments changes nothing.
func (r *reading) conclude() {
	for _, d := range r.result.Documents {
		if d.Kind != detect.Rank {
			continue
		}
		slices.SortStableFunc(d.Facts, compareFacts)
		for _, f := range d.Facts {
			d.Files = append(d.Files, f.File)
		}
	}
	slices.SortStableFunc(r.result.Documents, compareDocuments)
	for _, d := range r.result.Documents {
		d.Sort = r.opt.Sort
	}
	r.missed()
	r.result.Findings, r.result.Errors, r.result.Warnings = r.out.Findings(), r.out.Errors(), r.out.Warnings()
}

// compareFacts orders artifacts by rank, those that name none last.
func compareFacts(a, b *inspect.Facts) int {
	return cmp.Or(cmp.Compare(uint(a.Rank), uint(b.Rank)), cmp.Compare(a.File, b.File))
}

// compareDocuments orders rank artifacts first, then merged ones, then the rest.
func compareDocuments(a, b *Document) int {
	order := []detect.Kind{detect.Rank, detect.Merged, detect.Sidecar, detect.Trace}
	return cmp.Or(
		cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)),
		slices.Compare(a.Files, b.Files),
	)
}

func (r *reading) failf(code exitcode.Code, file, hint, format string, args ...any) {
	r.result.Failures = append(r.result.Failures, &exitcode.Error{Code: code, File: file, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

func (r *reading) fail(err error) {
	if err != nil && r.ctx.Err() == nil {
		r.result.Failures = append(r.result.Failures, exitcode.From(err))
	}
}

// path reads what an argument stands for. The only one may be a base path.
func (r *reading) path(path string, only bool) {
	if err := files.CheckPath(path); err != nil {
		r.fail(err)
		return
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		r.directory(path)
	case errors.Is(err, fs.ErrNotExist) && files.IsPattern(path):
		r.pattern(path)
	default:
		if _, _, named := artifact.SplitRank(path); only && !named {
			r.byName(artifact.ParseBase(path), path, path)
			return
		}
		if !errors.Is(err, fs.ErrNotExist) || !r.recording(path) {
			r.file(path)
		}
	}
}

func (r *reading) directory(path string) {
	if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
		r.failf(exitcode.Usage, path, "name the directory of the run, or a file", "the directory is empty: there is no input")
		return
	}
	const slash = string(filepath.Separator)
	first := strings.TrimSuffix(path, slash) + slash + artifact.DefaultName
	if noRun(artifact.ParseBase(first), first) && r.recording(path) {
		return
	}
	r.byName(artifact.ParseBase(first), first, path)
}

func (r *reading) pattern(path string) {
	matches, err := files.Match(path)
	r.fail(err)
	for _, match := range matches {
		r.file(match)
	}
}

// byName reads rank 0's file, or whatever file it is that has its name, and the other
// ranks' files that are beside it. Given is the argument as it was typed.
func (r *reading) byName(base artifact.Base, first, given string) {
	siblings := siblings(base)
	path := first
	if _, err := os.Lstat(first); errors.Is(err, fs.ErrNotExist) {
		path, err = artifact.Locate(base, 0)
		switch {
		case errors.Is(err, artifact.ErrTwoForms):
			r.failf(exitcode.Usage, "", "", "%s", err)
			return
		case err != nil && len(siblings) == 0 && given != first:
			r.failf(exitcode.Failed, first, missingHint(given, first), "no such file, and no segments of a trace in the directory")
			return
		case err != nil && len(siblings) == 0 && r.recording(given):
			return
		case err != nil && len(siblings) == 0:
			r.failf(exitcode.Failed, first, missingHint(given, first), "no such file")
			return
		case err != nil:
			path = "" // a node that has other ranks
		}
	}
	size := artifact.MaxRank + 1
	if path != "" {
		f := r.file(path)
		if f == nil || f.Rank > 0 {
			return // no rank artifact, or one that was renamed
		}
		if f.Size > 0 {
			size = f.Size
		}
	}
	for _, rank := range siblings {
		r.sibling(base, rank, size)
	}
}

func (r *reading) sibling(base artifact.Base, rank, size int) {
	path, err := artifact.Locate(base, rank)
	switch {
	case rank >= size:
		if r.opt.Warn != nil {
			r.opt.Warn(fmt.Sprintf("%s is left out: the run has %d ranks, so the file is another run's", base.Rank(rank), size))
		}
	case errors.Is(err, artifact.ErrTwoForms):
		r.failf(exitcode.Usage, "", "", "%s", err)
	case err != nil:
		r.fail(err)
	default:
		r.file(path)
	}
}

func missingHint(given, first string) string {
	if given != first {
		if found := runsBelow(given); len(found) > 0 {
			return "a directory stands for " + artifact.DefaultName + " in it; further down there is " + strings.Join(found, ", ")
		}
		return "a directory stands for " + artifact.DefaultName + " in it, and the other ranks beside it; name any other file itself"
	}
	return "check the path; a directory, or the rank 0 file, finds the other ranks by name"
}

// siblings lists the ranks above 0 that have a file beside a base path.
func siblings(base artifact.Base) (ranks []int) {
	entries, err := os.ReadDir(cmp.Or(base.Dir, "."))
	if err != nil {
		return nil // the first file cannot be opened there either, and that is said
	}
	for _, e := range entries {
		b, rank, ok := artifact.SplitRank(base.Dir + e.Name())
		if ok && b == base && rank > 0 && rank <= artifact.MaxRank {
			ranks = append(ranks, rank)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// file reads one file into its document and returns the facts of a rank artifact.
func (r *reading) file(path string) (facts *inspect.Facts) {
	if r.ctx.Err() != nil || r.again(path) {
		return nil
	}
	if files.IsLock(path) {
		r.locks = append(r.locks, path)
		return nil
	}
	in, err := input.Open(path, input.Options{})
	if err != nil {
		e := &exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Err: err}
		if errors.Is(err, fs.ErrNotExist) {
			e.Hint = "check the path"
		}
		r.result.Failures = append(r.result.Failures, e)
		return nil
	}
	src := newCounted(r, in)
	facts, err = r.content(path, src)
	src.done()
	r.fault(path, err)
	r.fail(in.Close())
	return facts
}

// again tells whether a file was named before.
func (r *reading) again(path string) bool {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	seen := r.seen[path]
	r.seen[path] = true
	return seen
}

// content reads what a file holds. Errors about its text become findings.
func (r *reading) content(path string, src io.ReaderAt) (*inspect.Facts, error) {
	file, err := detect.Look(src, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	switch file.Kind {
	case detect.Rank, detect.Merged, detect.Sidecar, detect.Damaged:
		if _, err := jsonstream.Check(src, jsonstream.Limits{}); err != nil {
			return nil, err
		}
	}
	switch file.Kind {
	case detect.Rank:
		return r.rank(path, src)
	case detect.Merged:
		return nil, r.merged(path, src)
	case detect.Sidecar:
		return nil, r.sidecar(path, src)
	case detect.Trace:
		r.traces = append(r.traces, path)
		return nil, nil
	case detect.Manifest:
		r.manifests = append(r.manifests, path)
		return nil, nil
	}
	r.unknown(path, file.What)
	return nil, nil
}

// unknown reports a file that is nothing to be shown.
func (r *reading) unknown(path, what string) {
	r.out.Add(finding.Finding{
		Rule: finding.InputKind, File: path, Rank: finding.NoRank, Message: "this is nothing that fpm show can show",
		Expected: "a rank artifact, a merged artifact, a worker-probe sidecar or a trace", Actual: cmp.Or(what, "an unknown file"),
		Hint: "name the files that the self-benchmark, fpm or a recorder wrote",
	})
}

// rank reads a rank artifact. The groups are read of one artifact of a run only: those of
// the others are the same, and every rank's points are every rank's. As long as nothing
// else is known, a file is taken for one of the run of the file before.
func (r *reading) rank(path string, src io.ReaderAt) (*inspect.Facts, error) {
	opt := inspect.Options{File: path, Rank: finding.NoRank, SkipGroups: r.last != nil && r.last.reference() != nil}
	f, err := inspect.Read(src, opt)
	if err != nil {
		return nil, err
	}
	d := r.runs[f.RunID] // those that name no run are together
	if opt.SkipGroups && (d == nil || d.reference() == nil) {
		opt.SkipGroups = false
		if f, err = inspect.Read(src, opt); err != nil {
			return nil, err
		}
	}
	if d == nil {
		d = &Document{Kind: detect.Rank}
		r.runs[f.RunID] = d
		r.result.Documents = append(r.result.Documents, d)
	}
	r.last = d
	d.Facts = append(d.Facts, f)
	return f, r.point(d, src)
}

func (r *reading) merged(path string, src io.ReaderAt) error {
	m, err := inspect.ReadMerged(src, inspect.Options{File: path})
	if err != nil {
		return err
	}
	d := &Document{Kind: detect.Merged, Files: []string{path}, Facts: []*inspect.Facts{m.Facts}, Merged: m}
	r.result.Documents = append(r.result.Documents, d)
	return r.point(d, src)
}

// point reads the samples of the point that was asked for. Of a run one artifact does: it
// holds those of every rank.
func (r *reading) point(d *Document, src io.ReaderAt) (err error) {
	if r.opt.Sample == 0 || d.Samples != nil {
		return nil
	}
	d.Samples, err = inspect.ReadPoint(src, r.opt.Sample)
	if errors.Is(err, inspect.ErrNoPoint) {
		err = nil
	}
	return err
}

// missed reports that no document has the point that was asked for.
func (r *reading) missed() {
	sound := len(r.result.Failures) == 0 && r.out.Errors() == 0
	if r.opt.Sample == 0 || !sound || slices.ContainsFunc(r.result.Documents, func(d *Document) bool { return d.Samples != nil }) {
		return
	}
	if !slices.ContainsFunc(r.result.Documents, func(d *Document) bool { return d.Sidecar == nil }) {
		r.failf(exitcode.Usage, "", "name the merged artifact that it belongs to, or the rank files", "a worker-probe sidecar has no points, and so no samples")
		return
	}
	r.failf(exitcode.Usage, "", "'fpm show PATH --points --all' lists the points", "no point has the benchmark id %d", r.opt.Sample)
}

func (r *reading) sidecar(path string, src io.ReaderAt) error {
	s, err := readSidecar(src)
	if err == nil {
		r.result.Documents = append(r.result.Documents, &Document{Kind: detect.Sidecar, Files: []string{path}, Sidecar: s})
	}
	return err
}

// fault reports an error of reading a file: a finding when it is about the text, a failure
// otherwise.
func (r *reading) fault(path string, err error) {
	if err == nil {
		return
	}
	var fault *jsonstream.Fault
	var corrupt *input.CorruptError
	var limit *input.LimitError
	var read *jsonstream.ReadError
	at := int64(-1)
	if errors.As(err, &read) {
		at = read.Offset
	}
	scope := finding.Scope{Out: r.out, File: path, Rank: finding.NoRank}
	about := strings.TrimPrefix(err.Error(), path+": ")
	switch {
	case errors.As(err, &fault):
		scope.Says(fault.Rule, fault.Pointer, fault.Offset, about, "", "")
	case errors.As(err, &corrupt), errors.Is(err, io.ErrUnexpectedEOF):
		scope.Says(finding.JSONSyntax, "", at, about, "", "")
	case errors.As(err, &limit):
		scope.Says(finding.InputLimit, "", at, about, "", "")
	default:
		r.fail(err)
	}
}

// counted is a source that tells how much was read of it, and ends when nobody wants it
// any more. A file is read about twice: once to check its text, once for what it says.
type counted struct {
	r     *reading
	in    io.ReaderAt
	total int64
	told  int64
}

func newCounted(r *reading, in *input.File) *counted {
	c := &counted{r: r, in: in, total: 2 * in.RawSize()}
	if r.opt.Progress != nil {
		r.opt.Progress.Expect(c.total)
	}
	return c
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	if err := c.r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.in.ReadAt(p, off)
	c.tell(int64(n))
	return n, err
}

// tell counts bytes, no more than were announced: text that was compressed is longer.
func (c *counted) tell(n int64) {
	if n = min(n, c.total-c.told); n > 0 && c.r.opt.Progress != nil {
		c.told += n
		c.r.opt.Progress.Add(n)
	}
}

func (c *counted) done() { c.tell(c.total) }
