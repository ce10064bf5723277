package probe

import (
	"context"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/engine"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// CheckOptions says what to check a sidecar against.
type CheckOptions struct {
	// Merged is the path of the merged artifact that the sidecar belongs to. Without it the
	// sidecar is held against itself, and the result's notes say what that leaves open.
	Merged string
	// Require is how much the probe must have established.
	Require Requirement
	// MaxFindings bounds the findings that are kept; all are counted. 0 keeps all.
	MaxFindings int
	// Into, where set, takes the findings, which are not located then. The result has none.
	Into *finding.Collector
	// Progress, where set, is told of the bytes read.
	Progress Progress
}

// CheckSidecar checks a sidecar wherever it stands, as [Run] without a probe checks the one
// next to a merged artifact: everything in it is computed again from the responses that it
// records. The error is that of ctx, when it was cancelled; everything else is in the
// result.
func CheckSidecar(ctx context.Context, path string, opt CheckOptions) (*Result, error) {
	r := &run{
		ctx: ctx, opt: Options{Merged: opt.Merged, Require: opt.Require, MaxFindings: opt.MaxFindings, Progress: opt.Progress},
		out: opt.Into, path: path, texts: map[string]io.ReaderAt{},
	}
	if r.out == nil {
		r.out = finding.NewCollector(opt.MaxFindings)
	}
	defer r.close()
	if opt.Merged == "" || r.openMerged() {
		r.recheck()
	}
	r.result.Sidecar = path
	return r.conclusion(opt.Into == nil)
}

// conclusion ends a run. The error is that of its context.
func (r *run) conclusion(located bool) (*Result, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	if located {
		r.locate()
		r.result.Errors, r.result.Warnings = r.out.Errors(), r.out.Warnings()
	}
	for _, id := range []finding.ID{finding.ProbeSidecar, finding.ProbeSidecarStale, finding.ProbeRunID} {
		r.result.unreliable = r.result.unreliable || r.out.Has(id)
	}
	return &r.result, nil
}

// sidecarPath is the path of the sidecar that is made or checked.
func (r *run) sidecarPath() string {
	if r.path != "" {
		return r.path
	}
	return r.merged.SidecarPath()
}

// noSidecar reports that a sidecar which was named is not there.
func (r *run) noSidecar() {
	r.fail(&exitcode.Error{Code: exitcode.Failed, File: r.path, Message: "there is no such file", Err: fs.ErrNotExist, Hint: "check the path"})
}

// alone checks a sidecar without its merged artifact.
func (r *run) alone(s *sidecar) error {
	m, err := s.standIn()
	if err != nil {
		return err
	}
	r.merged = m
	r.result.RunID = m.RunID()
	r.note("without the merged artifact nothing tells whether the sidecar is that of its run, which ranks and workers there are, and which replies contradict its layout: what the sidecar says of that was taken for true")
	return r.check(s)
}

// standIn makes of a sidecar what the merged artifact would say of the same: ranks, files
// and the number of workers are as the sidecar has them.
func (s *sidecar) standIn() (*Merged, error) {
	m := &Merged{text: s.text, runID: s.runID, standsIn: s}
	if s.fault != nil {
		return m, nil
	}
	m.outputPath, m.rankFiles = get(s.text.fields, "merged_output_path"), get(s.text.fields, "rank_files")
	if get(s.result, "attention").Len > 0 {
		m.engine = &jsonvalue.Value{Kind: jsonvalue.Object}
		m.engine.Set("attention", jsonvalue.Value{Kind: jsonvalue.Object})
	}
	coverage, _, err := s.coverage()
	if err != nil {
		return nil, err
	}
	if m.ranks, err = s.text.tree(get(coverage, "expected_dp_ranks")); err != nil {
		return nil, err
	}
	return m, s.sources(m)
}

// coverage returns the members of the merged result's coverage.
func (s *sidecar) coverage() (fields []field, ok bool, err error) {
	span := get(s.worker, "coverage")
	if span.Len == 0 {
		return nil, false, nil
	}
	return s.text.fieldsAt(span)
}

// sources makes the ranks that a sidecar has results of the source ranks.
func (s *sidecar) sources(m *Merged) error {
	span := get(s.text.fields, "ranks")
	if span.Len == 0 {
		return nil
	}
	ranks, _, err := s.text.fieldsAt(span)
	if err != nil {
		return err
	}
	s.places = make(map[string]jsonstream.Span, len(ranks))
	for _, f := range ranks {
		s.places[f.name] = f.span
		rank, err := strconv.ParseInt(f.name, 10, 64)
		if err != nil || rank < 0 || strconv.FormatInt(rank, 10) != f.name {
			rank = -1
		}
		m.sources = append(m.sources, source{label: f.name, rank: rank})
	}
	slices.SortStableFunc(m.sources, func(a, b source) int { return int(max(-1, min(1, a.rank-b.rank))) })
	if first, err := s.text.bytes(jsonstream.Span{Off: m.rankFiles.Off, Len: min(1, m.rankFiles.Len)}); err != nil || len(first) == 0 || first[0] != '[' {
		return err
	}
	files, err := m.files(len(m.sources))
	for i := range files {
		m.sources[i].file = files[i]
	}
	return err
}

// workers is the number of workers of a DP rank as the sidecar has it.
func (s *sidecar) workers() (l engine.Layout, ok bool, err error) {
	coverage, _, err := s.coverage()
	if err != nil {
		return l, false, err
	}
	v, err := s.text.tree(get(coverage, "expected_workers_per_dp"))
	n, ok := v.Int64()
	return engine.Layout{TP: n, PCP: 1, PP: 1}, ok && n >= 1, err
}

// told returns the issues of replies that only a layout tells, as a view records them. An
// empty label is that of the merged view.
func (s *sidecar) told(label string) (issues map[int]string, err error) {
	responses := s.responses
	if label != "" {
		if responses, err = s.responsesAt(s.places[label]); err != nil || responses.Len == 0 {
			return nil, err
		}
	}
	spans, _, err := s.text.elementsAt(responses, maxReplyCount)
	if err != nil {
		return nil, err
	}
	issues = map[int]string{}
	for i, span := range spans {
		entry, _, err := s.text.fieldsAt(span)
		if err != nil {
			return nil, err
		}
		recorded, err := s.recordedIssues(get(entry, "issues"))
		if err != nil {
			return nil, err
		}
		for _, issue := range recorded {
			if issue == issueTopology || issue == issueSlot {
				issues[i] = issue
			}
		}
	}
	return issues, nil
}

// responsesAt returns where the responses of a rank's result stand.
func (s *sidecar) responsesAt(span jsonstream.Span) (jsonstream.Span, error) {
	for _, name := range []string{"worker_probe", "responses"} {
		if span.Len == 0 {
			return span, nil
		}
		fields, _, err := s.text.fieldsAt(span)
		if err != nil {
			return span, err
		}
		span = get(fields, name)
	}
	return span, nil
}

// take lets a view have the issues that it was told, and returns the replies without one.
func (v *view) take(scope []int, told map[int]string) (left []int) {
	for _, i := range scope {
		if issue := told[i]; issue != "" {
			v.issues[i] = issue
		} else {
			left = append(left, i)
		}
	}
	return left
}
