package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/cmd/internal/validate"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
)

const validateHelp = `Check rank artifacts, merged artifacts, worker-probe sidecars and segments of traces.

Each file is recognised by its content, whatever its name. A directory stands for the
.json and .jsonl files in and below it (compressed ones, too), a pattern for the files
that it matches, the prefix of a recording for its segments. Rank files that belong
together, by their run_id or by their names, are checked together as one run, by the rules
of a merge and without merging: a rank that is not there is said and is no fault, as each
node of a run may hold its own ranks only.

Without --strict the verdict is the merger's, exactly. --strict adds what stricter
consumers require of rows, groups and evidence. Each finding says where it is, what was
expected and what stood there, what to do, and which level its rule is of.

The segments of traces are verified together, as 'fpm trace verify' does, and a
recorder's manifest beside them is held against its schema and the segments. Only full
captures can be shown to be whole: of a sampled one gaps are not judged, and a warning
says so.

Beside the verdicts the report explains a run: what was skipped and why, which ranks are
not there, regimes, graph dispatch, slow samples, and what a planner would read of it.`

const validateExample = `  # a run: rank files, merged artifact and sidecar
  fpm validate results/

  # what a strict consumer would say, as annotations of a GitHub workflow
  fpm validate --strict --format github results/

  # a recording of four workers with eight ranks each
  fpm validate /tmp/dynamo-fpm --expect-producers 4 --expect-ranks 0-7

  # is the merged artifact what its rank files make?
  fpm validate merged.json --merged-from results.json --merged-from results_dp1.json`

// validateFlags are the flags of validate.
type validateFlags struct {
	strict, schema  bool
	kind, require   string
	mergedFrom      []string
	expectProducers string
	expectRanks     rankSet
}

func newValidate(a *app) *cobra.Command {
	var f validateFlags
	cmd := &cobra.Command{
		Use:     "validate PATH...",
		Short:   "Check artifacts, each recognised by its content, and explain them",
		Long:    validateHelp,
		Example: validateExample,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("validate takes files, directories or patterns: there is no input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd, args, f) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.strict, "strict", false, "add the rules of strict consumers")
	flags.BoolVar(&f.schema, "schema", false, "check every document against its JSON Schema, too")
	flags.StringVar(&f.kind, "kind", "", "take every file for a `KIND` instead of looking: "+kindNames())
	flags.StringVar(&f.require, "require", "", "reject unless the workers of every sidecar are `observed, agree or complete`")
	flags.StringArrayVar(&f.mergedFrom, "merged-from", nil, "derive the merged artifact again from this rank `FILE` and compare; may be repeated")
	addExpected(flags, &f.expectProducers, &f.expectRanks)
	for name, values := range map[string][]string{"kind": strings.Split(kindNames(), ", "), "require": {"observed", "agree", "complete"}} {
		if err := cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flags are defined above
		}
	}
	return cmd
}

func kindNames() string {
	var names []string
	for _, k := range detect.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

func (a *app) validate(cmd *cobra.Command, args []string, f validateFlags) error {
	opt := validate.Options{
		Paths: args, Strict: f.strict, Schema: f.schema, Kind: detect.Kind(f.kind), MergedFrom: f.mergedFrom,
		MaxFindings: int(a.opts.maxFindings),
	}
	if cmd.Flags().Changed("kind") && !slices.Contains(detect.Kinds(), opt.Kind) {
		return usage(fmt.Sprintf("--kind: %q is none of %s", f.kind, kindNames()))
	}
	var err error
	if opt.Require, err = parseRequirement(f.require, cmd.Flags().Changed("require")); err != nil {
		return err
	}
	if opt.Expected, err = expected(cmd, f.expectProducers, f.expectRanks); err != nil {
		return err
	}
	meter := a.meter("validating", 0)
	if meter != nil {
		opt.Progress = meter
	}
	result, err := validate.Validate(cmd.Context(), opt)
	meter.Stop()
	if err != nil {
		return err
	}
	return a.finish(validateReport(result, f.strict, a.opts.quiet))
}

func validateReport(result *validate.Result, strict, quiet bool) *report.Report {
	r := report.New("validate", result.Findings, result.Errors, result.Warnings)
	for _, failure := range result.Failures {
		r.Fail(failure)
	}
	var body, limits []string
	runs := make([]any, 0, len(result.Runs))
	for _, run := range result.Runs {
		explanations := inspect.ExplainWith(run.Facts, run.Unread)
		runs = append(runs, runObject(run, explanations))
		if quiet {
			explanations = explanations.OfSeverity(inspect.Attention)
		}
		limits = append(limits, explanations.Of(inspect.KindLimits).Lines()...)
		body = append(append(body, report.Escape(runLine(run, result.Files))), indented(explanations.Without(inspect.KindLimits).Lines())...)
	}
	files := make([]any, 0, len(result.Files))
	for _, f := range result.Files {
		files = append(files, fileObject(f))
	}
	checked, text := extent(result)
	body = slices.Concat(body, unrepeated(limits), escapedAll(otherFiles(result)))
	if checked && r.Status != report.OK { // else the summary says it
		body = append(body, text)
	}
	r.Body = strings.Join(body, "\n")
	merged := make([]any, 0, len(result.Merged))
	for _, m := range result.Merged {
		merged = append(merged, mergedObject(m))
	}
	r.Details = report.Object{
		{Key: "level", Value: level(strict)}, {Key: "runs", Value: runs}, {Key: "merged", Value: merged},
		{Key: "sidecars", Value: sidecarObjects(result)}, {Key: "traces", Value: traceObjects(result)}, {Key: "files", Value: files},
	}
	r.Summary = text + ": the evidence holds"
	if strict {
		r.Summary += ", strict rules included"
	}
	return r
}

// unrepeated returns lines without those that stood there before.
func unrepeated(lines []string) (left []string) {
	for _, line := range lines {
		if !slices.Contains(left, line) {
			left = append(left, line)
		}
	}
	return left
}

func level(strict bool) finding.Level {
	if strict {
		return finding.Strict
	}
	return finding.Merge
}

// runLine says in a line which files are a run, which of them tell nothing, and what the
// verdicts on it are.
func runLine(run validate.Run, files []validate.File) string {
	what := words.Count(len(run.Files), "rank file", "rank files")
	switch {
	case run.RunID != "":
		what = "run " + run.RunID + ", " + what
	case len(run.Files) == 1: // by its name alone
		what = run.Files[0] + ": " + kindIn(files, run.Files[0])
	default:
		what = run.Files[0] + " and others, " + what
	}
	if ranks, size := ranksOf(run); len(ranks) > 0 {
		what += fmt.Sprintf(" (%s %s of %d)", words.Plural(len(ranks), "rank", "ranks"), ranks, size)
	}
	unopened := unopened(run)
	if n := len(run.Files) + unopened; n > 1 && len(run.Unread) > 0 {
		what += fmt.Sprintf("; %d of %d files could not be read: %s", len(run.Unread), n, unreadNames(run))
	}
	verdict := map[validate.Verdict]string{validate.Accepted: "a merge accepts it", validate.Rejected: "a merge rejects it"}[run.Merge]
	if run.Merge == validate.Accepted && unopened > 0 {
		verdict = "a merge accepts the others"
	}
	switch {
	case run.Strict == validate.Accepted && run.Merge == validate.Accepted:
		verdict += ", strict consumers accept it"
	case run.Strict == validate.Accepted:
		verdict += ", no strict rule is broken beside that"
	case run.Strict == validate.Rejected:
		verdict += ", strict consumers reject it"
	}
	return what + ": " + verdict
}

// kindIn returns in words what a file is.
func kindIn(files []validate.File, path string) string {
	for _, f := range files {
		if f.Path == path {
			return f.What
		}
	}
	return "a rank file"
}

// unopened counts the files of a run that could not even be opened.
func unopened(run validate.Run) (n int) {
	for _, u := range run.Unread {
		if !slices.Contains(run.Files, u.File) {
			n++
		}
	}
	return n
}

// unreadNames lists the files of a run that tell nothing; a run has many only when its
// directory is gone.
func unreadNames(run validate.Run) string {
	const most = 4
	var names []string
	for _, u := range run.Unread[:min(most, len(run.Unread))] {
		names = append(names, u.File)
	}
	if more := len(run.Unread) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

func ranksOf(run validate.Run) (ranks artifact.RankSet, size int) {
	for _, f := range run.Facts {
		if f.Rank != finding.NoRank && !ranks.Contains(f.Rank) {
			ranks = append(ranks, f.Rank)
		}
		size = max(size, f.Size)
	}
	slices.Sort(ranks)
	return ranks, size
}

func indented(lines []string) []string {
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

func runObject(run validate.Run, explanations inspect.Explanations) report.Object {
	ranks, size := ranksOf(run)
	o := report.Object{
		{Key: "run_id", Value: run.RunID},
		{Key: "files", Value: run.Files},
		{Key: "ranks", Value: append([]int{}, ranks...)},
		{Key: "global_size", Value: size},
		{Key: "merge", Value: run.Merge},
	}
	if run.Strict != "" {
		o = append(o, report.Detail{Key: "strict", Value: run.Strict})
	}
	unread := make([]report.Object, 0, len(run.Unread))
	for _, u := range run.Unread {
		entry := report.Object{{Key: "file", Value: u.File}}
		if u.Rank != finding.NoRank {
			entry = append(entry, report.Detail{Key: "rank", Value: u.Rank})
		}
		unread = append(unread, entry)
	}
	o = append(o, report.Detail{Key: "unread", Value: unread})
	return append(o, report.Detail{Key: "explanations", Value: append(inspect.Explanations{}, explanations...)})
}

func mergedObject(m validate.Merged) report.Object {
	o := report.Object{
		{Key: "file", Value: m.Path}, {Key: "run_id", Value: m.RunID}, {Key: "source_ranks", Value: append([]int{}, m.SourceRanks...)},
		{Key: "global_size", Value: m.GlobalSize}, {Key: "points", Value: m.Points}, {Key: "compared", Value: m.Compared},
	}
	if m.NotCompared != "" {
		o = append(o, report.Detail{Key: "not_compared", Value: m.NotCompared})
	}
	return o
}

func sidecarObjects(result *validate.Result) []any {
	list := make([]any, 0, len(result.Sidecars))
	for _, s := range result.Sidecars {
		o := report.Object{{Key: "file", Value: s.Path}}
		if s.Merged != "" {
			o = append(o, report.Detail{Key: "merged", Value: s.Merged})
		}
		if s.Summary != nil {
			o = append(o, report.Detail{Key: "probe", Value: s.Summary})
		}
		list = append(list, append(o, report.Detail{Key: "notes", Value: append([]string{}, s.Notes...)}))
	}
	return list
}

func fileObject(f validate.File) report.Object {
	o := report.Object{{Key: "file", Value: f.Path}, {Key: "kind", Value: f.Kind}, {Key: "what", Value: f.What}}
	if f.RunID != "" {
		o = append(o, report.Detail{Key: "run_id", Value: f.RunID})
	}
	return append(o, report.Detail{Key: "checked", Value: f.Checked})
}

// otherFiles says what became of the files that are no rank artifacts.
func otherFiles(result *validate.Result) (lines []string) {
	var left []string
	for _, f := range result.Files {
		switch {
		case f.Kind == "":
		case !f.Checked:
			left = append(left, fmt.Sprintf("not checked: %s (%s)", f.Path, f.What))
		case f.Kind == detect.Merged:
			lines = append(lines, mergedLine(f, result))
		case f.Kind == detect.Sidecar:
			lines = append(lines, sidecarLines(f, result)...)
		case f.Kind != detect.Rank && f.Kind != detect.Damaged && f.Kind != detect.Trace:
			lines = append(lines, fileLine(f))
		}
	}
	for _, t := range result.Traces {
		lines = append(lines, validatedTrace(t)...)
	}
	const most = 10
	if len(left) > most {
		left = append(left[:most], fmt.Sprintf("not checked: %s more", words.Count(len(left)-most, "file", "files")))
	}
	return append(lines, left...)
}

// fileLine says what the verdict on a file is.
func fileLine(f validate.File) string {
	verdict := validate.Accepted
	if f.Rejected {
		verdict = validate.Rejected
	}
	return fmt.Sprintf("%s: %s: %s", f.Path, f.What, verdict)
}

// sidecarLines says what the verdict on a sidecar is, and how much of the fleet it holds.
func sidecarLines(f validate.File, result *validate.Result) []string {
	lines := []string{fileLine(f)}
	for _, s := range result.Sidecars {
		if s.Path != f.Path {
			continue
		}
		if s.Summary != nil {
			lines = append(lines, indented(s.Summary.Text())...)
		}
		lines = append(lines, indented(slices.Clone(s.Notes))...)
	}
	return lines
}

// mergedLine says what the verdict on a merged artifact is, and what it rests on.
func mergedLine(f validate.File, result *validate.Result) string {
	text := fileLine(f)
	for _, m := range result.Merged {
		switch {
		case m.Path != f.Path:
		case m.Compared && !f.Rejected:
			text += "; its rank files give the same document again"
		case m.Compared:
			text += "; it was compared with what its rank files give"
		case m.NotCompared != "":
			text += "; not compared with its rank files: " + m.NotCompared
		default:
			text += "; its rank files were not given"
		}
	}
	return text
}

// extent says how much was checked, and whether anything was.
func extent(result *validate.Result) (any bool, text string) {
	checked := 0
	for _, f := range result.Files {
		if f.Checked {
			checked++
		}
	}
	text = "checked " + words.Count(checked, "file", "files")
	runs := 0
	for _, run := range result.Runs {
		if run.RunID != "" || len(run.Facts) > 0 { // else no text of it could be parsed
			runs++
		}
	}
	if runs > 0 {
		text += " of " + words.Count(runs, "run", "runs")
	}
	return checked > 0, text
}
