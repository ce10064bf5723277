package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonspan"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// recheck reports on the sidecar that is there.
func (r *run) recheck() {
	t, err := openText(r.ctx, r.sidecarPath(), r.opt.Progress)
	if errors.Is(err, fs.ErrNotExist) {
		if r.path != "" {
			r.noSidecar()
		} else {
			r.withoutSidecar()
		}
		return
	}
	if err != nil {
		r.failText(err)
		return
	}
	r.open = append(r.open, t.file)
	r.texts[t.path] = t.file
	s, err := readSidecar(t)
	switch {
	case err != nil:
	case r.merged == nil:
		err = r.alone(s)
	default:
		err = r.check(s)
	}
	if err != nil {
		r.failText(textError(t.path, t.file, err))
	}
}

// withoutSidecar reports on what an older build left in the merged artifact itself.
func (r *run) withoutSidecar() {
	s := &sidecar{text: r.merged.text, runID: r.merged.runID, older: true}
	found, err := s.tryResult([]string{"engine"})
	if err != nil {
		r.failText(textError(r.merged.Path(), r.merged.text.file, err))
		return
	}
	if !found {
		r.fail(&exitcode.Error{
			Code: exitcode.Failed, File: r.merged.SidecarPath(), Message: "there is no sidecar", Err: fs.ErrNotExist,
			Hint: "make one from replies (--replies), from a server (--url), or from what is known (--failed, --skipped)",
		})
		return
	}
	r.result.Sidecar = r.merged.Path()
	if err := r.check(s); err != nil {
		r.failText(textError(r.merged.Path(), r.merged.text.file, err))
	}
}

// check computes a sidecar again and compares.
func (r *run) check(s *sidecar) error {
	scope := finding.Scope{Out: r.out, File: s.text.path, Rank: finding.NoRank}
	if f := s.fault; f != nil {
		scope.Either(finding.ProbeSidecar, f.pointer, f.expected != "", f.offset, f.offset, f.message, f.expected)
		return nil
	}
	if !equalOrNull(s.runID, r.merged.runID) {
		span := get(s.text.fields, "run_id")
		scope.Says(finding.ProbeRunID, "/run_id", max(span.Off, s.text.root), "the sidecar is that of another run",
			r.merged.runID.Excerpt(maxExcerpt), s.runID.Excerpt(maxExcerpt))
		return nil
	}
	list, failure, err := s.load()
	if err != nil {
		return err
	}
	if f := s.fault; f != nil {
		scope.Says(finding.ProbeSidecar, f.pointer, f.offset, f.message, f.expected, "")
		return nil
	}
	p := newProbe(r.merged, list, failure)
	r.conclude(p, Input{Name: s.text.path})
	if s.older {
		r.note("the result of the probe was recorded by an older build inside an engine object; it was computed anew from the responses and not compared")
		return nil
	}
	if err := newComparison(s, p, scope).run(); err != nil {
		return err
	}
	return p.err
}

// equalOrNull compares two values that a sidecar writes as null when they are absent.
func equalOrNull(a, b *jsonvalue.Value) bool {
	isNull := func(v *jsonvalue.Value) bool { return v == nil || v.Kind == jsonvalue.Null }
	return isNull(a) && isNull(b) || jsonvalue.Equal(a, b)
}

// observed tells whether the merged result lists observed workers.
func (s *sidecar) observed() (bool, error) {
	span := get(s.worker, "coverage")
	coverage, ok, err := s.text.fieldsAt(span)
	if err != nil || !ok || span.Len == 0 {
		return false, err
	}
	workers := get(coverage, "observed_workers")
	if workers.Len == 0 {
		return false, nil
	}
	in := s.text.scanner(workers)
	if in.Peek() != '[' {
		return false, nil
	}
	if _, err := in.EnterArray(); err != nil {
		return false, err
	}
	return in.More()
}

// load reads the recorded responses as replies, and the failure that was recorded in
// their place.
func (s *sidecar) load() (list *replies, failure string, err error) {
	spans, _, err := s.text.elementsAt(s.responses, maxReplyCount)
	if err != nil {
		return nil, "", err
	}
	p := newReplyParser()
	total := 0
	for i, span := range spans {
		pointer := s.resultAt + "/worker_probe/responses/" + strconv.Itoa(i)
		r, masked, err := s.response(pointer, span, MaxReplies-total)
		if err != nil || s.fault != nil {
			return nil, "", err
		}
		total += len(masked)
		if err := p.add(r, masked); err != nil {
			return nil, "", err
		}
	}
	if len(spans) == 0 {
		failure, err = s.recordedFailure()
	}
	return p.finish(), failure, err
}

// recordedFailure returns the error of the merged result if it is the text of a failure.
func (s *sidecar) recordedFailure() (string, error) {
	v, err := s.text.tree(get(s.worker, "error"))
	text, _ := v.Str()
	if strings.HasPrefix(text, failedMark) || strings.HasPrefix(text, skippedMark) {
		return text, err
	}
	return "", err
}

// response reads one recorded response, of at most so many bytes, as the reply that it
// was but for the white space in it.
func (s *sidecar) response(pointer string, span jsonstream.Span, most int) (r reply, masked []byte, err error) {
	entry, ok, err := s.text.fieldsAt(span)
	if err != nil {
		return r, nil, err
	}
	at := get(entry, "response")
	if !ok || at.Len == 0 {
		s.fault = &structureFault{pointer, span.Off, "the entry has no response", "an object with a response"}
		return r, nil, nil
	}
	text, err := s.text.compact(at, most)
	if err != nil {
		return r, nil, err
	}
	r = reply{text: text, offset: at.Off, pointer: pointer + "/response"}
	recorded, err := s.recordedIssues(get(entry, "issues"))
	if err != nil || len(recorded) == 0 || recorded[0] != issueNonJSON {
		return r, text, err
	}
	original, err := representation(text)
	if err != nil {
		return r, nil, err
	}
	if original != nil {
		masked, words := mask(original)
		if _, err := jsonstream.Check(bytes.NewReader(masked), jsonstream.Limits{}); err == nil && len(words) > 0 {
			r.text, r.nonJSON = original, true
			return r, masked, nil
		}
	}
	if original != nil {
		r.nonJSON, r.opaque, r.issues = true, true, knownIssues(recorded)
	}
	return r, text, nil
}

// recordedIssues returns the issues of an entry that are texts.
func (s *sidecar) recordedIssues(span jsonstream.Span) (issues []string, err error) {
	v, err := s.text.tree(span)
	if err != nil || v == nil {
		return nil, err
	}
	for i := range v.Elems {
		if text, ok := v.Elems[i].Str(); ok {
			issues = append(issues, text)
		}
	}
	return issues, nil
}

// knownIssues returns those of the recorded issues that a reply which cannot be read again
// can have had, in the order in which they are found.
func knownIssues(recorded []string) (issues []string) {
	known := []string{issueNonJSON, issueNoObject}
	if !slices.Contains(recorded, issueNoObject) {
		for _, key := range requiredRanks() {
			known = append(known, issueRequired+key)
		}
		for _, key := range otherFields() {
			known = append(known, issueInvalid+key)
		}
	}
	for _, issue := range known {
		if slices.Contains(recorded, issue) {
			issues = append(issues, issue)
		}
	}
	return issues
}

// representation returns the text that an unserializable response stands for; nil when
// it is none: an object of nothing but two strings, the type and the text.
func representation(text []byte) (repr []byte, err error) {
	in := jsonstream.New(bytes.NewReader(text), 0, 0, jsonstream.Trusted, jsonstream.Limits{Window: 16 << 10})
	if in.Peek() != '{' {
		return nil, nil
	}
	strange, typed := false, false
	_, _, err = in.Object(func(name []byte) error {
		key := string(name)
		v, err := in.Scalar()
		said, isText := v.Text()
		switch {
		case isText && key == "repr":
			repr = []byte(said)
		case isText && key == "unserializable_type":
			typed = true
		default:
			strange = true
		}
		return err
	})
	if strange || !typed {
		repr = nil
	}
	return repr, err
}

// comparison compares a sidecar with what it should be.
type comparison struct {
	s      *sidecar
	p      *probe
	scope  finding.Scope
	values *jsonspan.Comparer
	text   bytes.Buffer // what is expected, compact
	out    *emitter     // to text
	err    error
}

func newComparison(s *sidecar, p *probe, scope finding.Scope) *comparison {
	c := &comparison{s: s, p: p, scope: scope, values: jsonspan.New()}
	c.out = newEmitter(&c.text, true)
	return c
}

func (c *comparison) run() error {
	m := c.p.merged
	c.value("/merged_output_path", func(e *emitter) { e.span(m.text, m.outputPath) }, get(c.s.text.fields, "merged_output_path"), c.s.text.root)
	c.value("/rank_files", func(e *emitter) { e.span(m.text, m.rankFiles) }, get(c.s.text.fields, "rank_files"), c.s.text.root)
	c.result(c.s.resultAt, c.p.mergedView(), c.s.result, c.s.resultSpan.Off)
	c.ranks()
	return c.err
}

// ranks compares the results of the source ranks.
func (c *comparison) ranks() {
	span := get(c.s.text.fields, "ranks")
	if c.err != nil {
		return
	}
	if span.Len == 0 {
		c.scope.Absent(finding.ProbeSidecarStale, "/ranks", c.s.text.root, "the sidecar has no results of source ranks", "an object")
		return
	}
	ranks, ok, err := c.s.text.fieldsAt(span)
	if err != nil || !ok {
		c.err = err
		c.scope.Broken(finding.ProbeSidecarStale, "/ranks", span.Off, "the results of the source ranks are no object", "an object")
		return
	}
	places := map[string]jsonstream.Span{}
	for _, f := range ranks {
		places[f.name] = f.span
	}
	for _, s := range c.p.merged.sources {
		pointer := string(jsonvalue.AppendToken([]byte("/ranks"), s.label))
		place := places[s.label]
		delete(places, s.label)
		c.rank(pointer, s, place, span.Off)
	}
	for _, f := range ranks {
		if _, extra := places[f.name]; extra {
			c.scope.Broken(finding.ProbeSidecarStale, string(jsonvalue.AppendToken([]byte("/ranks"), f.name)), f.span.Off,
				"the sidecar has a result of a rank that is no source rank of the merged artifact", "absent")
		}
	}
}

func (c *comparison) rank(pointer string, s source, place jsonstream.Span, parent int64) {
	if place.Len == 0 {
		c.scope.Absent(finding.ProbeSidecarStale, pointer, parent, "the sidecar has no result of this source rank", "an object")
		return
	}
	fields, _, err := c.s.text.fieldsAt(place)
	if err != nil {
		c.err = err
		return
	}
	c.value(pointer+"/rank_file", func(e *emitter) { e.span(c.p.merged.text, s.file) }, get(fields, "rank_file"), place.Off)
	c.result(pointer, c.p.rankView(s), fields, place.Off)
}

// result compares the members of a result.
func (c *comparison) result(pointer string, v *view, fields []field, parent int64) {
	expected := resultMembers(v)
	for _, m := range expected {
		if m.key != "worker_probe" {
			c.value(pointer+"/"+m.key, m.write, get(fields, m.key), parent)
			continue
		}
		c.workerProbe(pointer+"/worker_probe", v, get(fields, m.key), parent)
	}
	if extra := get(fields, "attention"); len(expected) < 5 && extra.Len > 0 {
		c.scope.Broken(finding.ProbeSidecarStale, pointer+"/attention", extra.Off, "the engine block has no attention that this could describe", "absent")
	}
}

func (c *comparison) workerProbe(pointer string, v *view, span jsonstream.Span, parent int64) {
	fields, ok, err := c.fields(span)
	if err != nil || !ok {
		c.value(pointer, v.writeWorkerProbe, span, parent)
		return
	}
	for _, m := range v.workerProbeMembers() {
		at := get(fields, m.key)
		switch m.key {
		case "responses":
			c.responses(pointer+"/responses", v, at, span.Off)
		case "coverage":
			c.coverage(pointer+"/coverage", v, at, span.Off)
		default:
			c.value(pointer+"/"+m.key, m.write, at, span.Off)
		}
	}
}

func (c *comparison) coverage(pointer string, v *view, span jsonstream.Span, parent int64) {
	fields, ok, err := c.fields(span)
	if err != nil || !ok {
		c.value(pointer, v.writeCoverage, span, parent)
		return
	}
	for _, m := range v.coverageMembers() {
		c.value(pointer+"/"+m.key, m.write, get(fields, m.key), span.Off)
	}
}

// fields returns the members of the object at a span, which may be absent.
func (c *comparison) fields(span jsonstream.Span) (fields []field, ok bool, err error) {
	if span.Len == 0 {
		return nil, false, nil
	}
	if fields, ok, err = c.s.text.fieldsAt(span); err != nil {
		c.err = err
	}
	return fields, ok, err
}

// responses compares the entries one by one: together they may be large.
func (c *comparison) responses(pointer string, v *view, span jsonstream.Span, parent int64) {
	n := len(v.probe.replies.list)
	var spans []jsonstream.Span
	ok := false
	if span.Len > 0 {
		var err error
		if spans, ok, err = c.s.text.elementsAt(span, maxReplyCount); err != nil {
			c.err = err
			return
		}
	}
	if !ok || len(spans) != n {
		c.scope.Either(finding.ProbeSidecarStale, pointer, span.Len > 0, span.Off, parent,
			"these are not the responses of the merged result", fmt.Sprintf("a list of %d responses", n))
		return
	}
	for i := range spans {
		c.value(pointer+"/"+strconv.Itoa(i), func(e *emitter) { v.writeResponse(e, i) }, spans[i], span.Off)
	}
}

// value compares what write writes with the value at a span, absent when its length is 0.
func (c *comparison) value(pointer string, write func(*emitter), span jsonstream.Span, parent int64) {
	if c.err != nil {
		return
	}
	c.text.Reset()
	write(c.out)
	if c.err = c.out.flush(); c.err != nil {
		return
	}
	expected := bytes.NewReader(c.text.Bytes())
	whole := jsonstream.Span{Len: expected.Size()}
	if span.Len == 0 {
		c.scope.Absent(finding.ProbeSidecarStale, pointer, parent, "the sidecar lacks what its responses give", excerpt(expected, 0))
		return
	}
	d, err := c.values.Values(expected, whole, c.s.text.file, span)
	if err != nil || d == nil {
		c.err = err
		return
	}
	const message = "the sidecar does not say what its responses give"
	switch {
	case d.AbsentA:
		c.scope.Broken(finding.ProbeSidecarStale, pointer+d.Pointer, d.OffB, message, "absent")
	case d.AbsentB:
		c.scope.Absent(finding.ProbeSidecarStale, pointer+d.Pointer, d.OffB, message, excerpt(expected, d.OffA))
	default:
		c.scope.Broken(finding.ProbeSidecarStale, pointer+d.Pointer, d.OffB, message, excerpt(expected, d.OffA))
	}
}

func excerpt(src io.ReaderAt, off int64) string { return jsonstream.Excerpt(src, off, maxExcerpt) }
