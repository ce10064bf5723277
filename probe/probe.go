// Package probe says what the workers of a run really resolved, and how much of the fleet
// has said so.
//
// After a run, one call asks every model worker which attention backend, prefill backend
// and graph mode it resolved. What comes back is a list of replies, and one reply is not
// all replies: some workers may not have been asked, some answer twice or nonsense. This
// package turns the replies into the sidecar of the merged artifact:
//
//	replies ──▶ issues of each reply ──▶ views ──▶ coverage, disagreements, resolution
//	                                     merged: the ranks that the artifact expects
//	                                     one per source rank: that rank alone
//
// A reply with an issue is kept, unchanged and in its place, and observes nothing; a reply
// of another rank is out of a view's scope. What is left of the replies is observed. A
// view is complete only when every worker of every expected rank was observed and no reply
// has an issue. Missing replies establish neither agreement nor disagreement.
//
// [Run] makes a sidecar from replies, from a failure or from a skip, or checks the one that
// is there by computing it again from the responses that it records. Rank artifacts are
// neither read nor needed, and the merged artifact is never written. [Document] is the
// merged artifact with the probe's result applied, as it is served.
package probe

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/fpm-project/fpm/internal/atomicfile"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Requirement is how much a probe must have established.
type Requirement int

// The requirements; each asks for what stands before it, too.
const (
	Nothing  Requirement = iota
	Observed             // probe.unobserved
	Agree                // probe.disagree
	Complete             // probe.incomplete
)

// String is the requirement as the command line names it.
func (r Requirement) String() string {
	return [...]string{"nothing", "observed", "agree", "complete"}[r]
}

// Input is what became of a probe: replies, or a failure in their place.
type Input struct {
	Name    string // where the replies come from, for messages
	Replies []byte // the result of the RPC as JSON
	// Failure, where it is not empty, is why there are no replies, as the sidecar records
	// it: see [Failed] and [Skipped].
	Failure string
	Hint    string // what to do about the failure; may be empty
	// Refused, where it is set, makes a failure of replies that cannot be taken: those of
	// a server, whose nonsense is an outcome of the probe. Without it they are an error of
	// the text, and no sidecar is made.
	Refused func(why *TextError) (failure, hint string)
}

const (
	failedMark  = "probe_failed: "
	skippedMark = "probe_skipped: "
)

// Failed returns the failure text of a probe that failed.
func Failed(text string) string { return failedMark + text }

// Skipped returns the failure text of a probe that was not made.
func Skipped(text string) string { return skippedMark + text }

// Options says what to make or to check.
type Options struct {
	Merged string // path of the merged artifact
	// Probe gets the replies, after the merged artifact was found to be one. With nil the
	// sidecar that is there is checked.
	Probe   func(context.Context) (Input, error)
	Require Requirement
	Force   bool // replace a file that is no sidecar, and after a failure one that observed something
	// MaxFindings bounds the findings that are kept; all are counted. 0 keeps all.
	MaxFindings int
	// Progress, where set, is told of the bytes read.
	Progress Progress
	// Warn, where set, takes warnings that are no findings.
	Warn func(message string)

	maxSidecar int64 // bytes of a sidecar, MaxSidecar when it is 0: for tests
}

// MaxSidecar bounds a sidecar that is written, in bytes. It holds the replies once for
// the merged view and once for each source rank, so that it can be much larger than they
// are.
const MaxSidecar = 512 << 20

func (o *Options) sidecarLimit() int64 {
	if o.maxSidecar > 0 {
		return o.maxSidecar
	}
	return MaxSidecar
}

// Progress takes note of work.
type Progress interface {
	Expect(bytes int64) // there is so much more to do
	Add(bytes int64)    // so much more is done
}

// Result says what was found and done.
type Result struct {
	Findings         []finding.Finding // located, in report order, at most MaxFindings
	Errors, Warnings int               // all of them
	Failures         []*exitcode.Error // what could not be done
	RunID            string
	Sidecar          string   // path of the sidecar that was written or checked
	Written          bool     // it was written
	Summary          *Summary // nil when nothing could be computed
	Notes            []string // what else people should know
	unreliable       bool     // the sidecar is not what it should be
}

// run is the state of one call of Run.
type run struct {
	ctx    context.Context
	opt    Options
	out    *finding.Collector
	merged *Merged
	path   string                 // of the sidecar, where it was named
	texts  map[string]io.ReaderAt // sources of files that findings name
	open   []io.Closer
	result Result
}

// Run makes or checks a sidecar. The error is that of ctx, when it was cancelled;
// everything else is in the result.
func Run(ctx context.Context, opt Options) (*Result, error) {
	r := &run{ctx: ctx, opt: opt, out: finding.NewCollector(opt.MaxFindings), texts: map[string]io.ReaderAt{}}
	defer r.close()
	if r.openMerged() {
		if opt.Probe == nil {
			r.recheck()
		} else {
			r.make()
		}
	}
	return r.conclusion(true)
}

func (r *run) close() {
	for _, file := range r.open {
		_ = file.Close() // nothing was written to it
	}
}

func (r *run) openMerged() bool {
	m, err := openMerged(r.ctx, r.opt.Merged, r.opt.Progress)
	if err != nil {
		r.failText(err)
		return false
	}
	r.merged = m
	r.open = append(r.open, m)
	r.texts[m.Path()] = m.text.file
	r.result.RunID, r.result.Sidecar = m.RunID(), m.SidecarPath()
	if err := m.notMerged(); err != nil && m.text.object { // no object has no engine, which is said below
		r.fail(err)
		return false
	}
	if !m.HasEngine() {
		r.noEngine()
		return false
	}
	if m.Older() {
		r.note("the merged artifact was written by an older build, which kept the probe's result inside its engine object")
	}
	return true
}

func (r *run) noEngine() {
	s := finding.Scope{Out: r.out, File: r.merged.Path(), Rank: finding.NoRank}
	exists := r.merged.engine != nil
	s.Either(finding.ProbeNoEngine, "/engine", exists, r.merged.engineSpan.Off, r.merged.text.root,
		"the merged artifact has no engine object", "an object")
}

// make makes a sidecar.
func (r *run) make() {
	in, err := r.opt.Probe(r.ctx)
	if err != nil {
		r.fail(err)
		return
	}
	list, err := r.take(&in)
	if err != nil {
		r.failText(err)
		return
	}
	p := newProbe(r.merged, list, in.Failure)
	r.conclude(p, in)
	if r.ctx.Err() == nil && r.mayReplace(p) {
		r.write(p)
	}
}

// take parses the replies of an input. Where they cannot be taken that becomes its
// failure, if the input says how.
func (r *run) take(in *Input) (*replies, error) {
	if in.Failure != "" {
		return &replies{}, nil
	}
	src := bytes.NewReader(in.Replies)
	r.texts[in.Name] = src
	list, err := parseReplies(in.Replies)
	if err == nil {
		return list, nil
	}
	err = textError(in.Name, src, err)
	var broken *TextError
	if in.Refused == nil || !errors.As(err, &broken) {
		return nil, err
	}
	in.Failure, in.Hint = in.Refused(broken)
	return &replies{}, nil
}

// conclude reports what the replies establish and what they do not.
func (r *run) conclude(p *probe, in Input) {
	v := p.mergedView()
	r.result.Summary = newSummary(v)
	r.warnFailure(p, in.Hint)
	s := finding.Scope{Out: r.out, File: in.Name, Rank: finding.NoRank}
	for i := range p.replies.list {
		if issues := v.issuesOf(i); len(issues) > 0 {
			reply := v.reply(i)
			s.Says(finding.ProbeMalformedReply, reply.pointer, reply.offset, strings.Join(issues, "; "), "", "")
		}
	}
	r.require(v)
}

func (r *run) warnFailure(p *probe, hint string) {
	if p.failure == "" {
		return
	}
	f := finding.Finding{
		Rule: finding.ProbeFailed, File: r.result.Sidecar, Pointer: "/merged/worker_probe/error", Offset: -1,
		Rank: finding.NoRank, Message: "the probe failed: " + strings.TrimPrefix(p.failure, failedMark), Hint: hint,
	}
	if text, skipped := strings.CutPrefix(p.failure, skippedMark); skipped {
		f.Rule, f.Message = finding.ProbeSkipped, "the probe was skipped: "+text
	}
	r.out.Add(f)
}

// require reports what of the requirement is not met.
func (r *run) require(v *view) {
	s := finding.Scope{Out: r.out, File: r.result.Sidecar, Rank: finding.NoRank}
	const at = "/merged/worker_probe/"
	if r.opt.Require >= Observed && len(v.observed) == 0 {
		s.Says(finding.ProbeUnobserved, at+"coverage/observed_workers", -1, "no worker was observed", "at least one worker", "[]")
	}
	if r.opt.Require >= Agree && len(v.disagreements) > 0 {
		s.Says(finding.ProbeDisagree, at+"disagreements", -1, "the observed workers disagree about "+strings.Join(v.disagreements, ", "), "no disagreement", "")
	}
	if r.opt.Require >= Complete && !v.complete {
		s.Says(finding.ProbeIncomplete, at+"coverage/complete", -1, "the coverage is not complete: "+r.result.Summary.Doubt(), "true", "false")
	}
}

// write writes the sidecar.
func (r *run) write(p *probe) {
	path := r.merged.SidecarPath()
	file, err := atomicfile.Create(path)
	if err != nil {
		r.fail(err)
		return
	}
	defer func() { r.fail(file.Abort()) }()
	for _, left := range file.Leftovers() {
		if r.opt.Warn != nil {
			r.opt.Warn(left.Error())
		}
	}
	e := newEmitter(&bounded{w: cancellable{r.ctx, file}, left: r.opt.sidecarLimit()}, false)
	e.document(p)
	if err := e.flush(); err != nil {
		r.fail(err)
		return
	}
	if err := file.Sync(); err != nil {
		r.fail(err)
		return
	}
	r.replace(p, file)
}

// replace puts a sidecar that is on the disk in place of what is there now. Another
// process may have written one since that was looked at first: what is there is looked at
// again, and until the new one has its name nobody else replaces it.
func (r *run) replace(p *probe, file *atomicfile.File) {
	unlock, err := lockFile(r.ctx, r.merged.Path())
	if err != nil {
		r.fail(err)
		return
	}
	defer unlock()
	if err := r.merged.Changed(); err != nil {
		r.fail(&exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Err: err})
		return
	}
	if r.mayReplace(p) && r.ctx.Err() == nil {
		err := file.Commit()
		r.result.Written = err == nil
		r.fail(err)
	}
}

// cancellable is a writer that fails when its context is cancelled.
type cancellable struct {
	ctx context.Context
	w   io.Writer
}

func (c cancellable) Write(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.w.Write(p)
}

// bounded is a writer that fails when more than so many bytes are written.
type bounded struct {
	w    io.Writer
	left int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, &exitcode.Error{
			Code: exitcode.Failed, Message: "the sidecar would be larger than 512 MiB: it holds the replies once for the merged view and once for each source rank",
			Hint: "leave out of the replies what the report does not need, or probe parts of the fleet",
		}
	}
	return b.w.Write(p)
}

// fail takes note of what could not be done. It returns false.
func (r *run) fail(err error) bool {
	if err != nil && !errors.Is(err, context.Canceled) {
		r.result.Failures = append(r.result.Failures, exitcode.From(err))
	}
	return false
}

// failText reports an error of reading: a finding when it is about a text, a failure
// otherwise.
func (r *run) failText(err error) {
	var broken *TextError
	if !errors.As(err, &broken) {
		r.fail(err)
		return
	}
	if r.texts[broken.Path] == nil {
		r.texts[broken.Path] = broken.src
	}
	s := finding.Scope{Out: r.out, File: broken.Path, Rank: finding.NoRank}
	s.Says(broken.Rule, broken.Pointer, broken.Offset, broken.Message, "", "")
}

func (r *run) note(text string) { r.result.Notes = append(r.result.Notes, text) }

// maxExcerpt bounds the text of a value that a finding quotes, in bytes.
const maxExcerpt = 1000

// locate gives the findings line and column, and the text that stood there.
func (r *run) locate() {
	r.result.Findings = r.out.Findings()
	byFile := map[string][]*finding.Finding{}
	for i := range r.result.Findings {
		if f := &r.result.Findings[i]; f.Offset >= 0 && r.texts[f.File] != nil {
			byFile[f.File] = append(byFile[f.File], f)
		}
	}
	for file, at := range byFile {
		r.fail(jsonstream.Locate(r.texts[file], at, maxExcerpt))
	}
}

// Apply opens the document that the result stands for. It is nil when there is none: when
// something could not be done, or the sidecar cannot be relied on.
func (r *Result) Apply(merged string) (*Document, error) {
	if len(r.Failures) > 0 || r.Summary == nil || r.unreliable {
		return nil, nil
	}
	return OpenDocument(merged)
}
