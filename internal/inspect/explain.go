package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
)

// Severity says how much an explanation matters. It is no verdict: those are findings.
type Severity string

// The severities of explanations.
const (
	Note      Severity = "note"      // for information
	Attention Severity = "attention" // somebody should look before the run is used
)

// The kinds of explanations. A kind never changes its meaning.
const (
	KindRuns       = "several-runs"       // the artifacts do not have one run id
	KindFailed     = "run-failed"         // the benchmark says that it failed
	KindPartial    = "run-partial"        // the benchmark says that it ended early
	KindNotValid   = "complete-not-valid" // the benchmark says complete, and yet not valid
	KindSkipped    = "skipped-points"     // points without a measurement, by reason
	KindMissing    = "missing-ranks"      // global ranks without an artifact among those given
	KindNoRealKV   = "no-real-kv"         // no decode point is known to have run on real KV content, though that was required
	KindRegimes    = "seed-regimes"       // how often each kv_seed_regime, by phase
	KindDispatch   = "graph-dispatch"     // expected against observed graph dispatch
	KindSlowRanks  = "slow-ranks"         // a rank that is the slowest nearly everywhere
	KindSlowFirst  = "slow-first-samples" // first raw samples far above their point's median
	KindOutliers   = "outliers"           // other raw samples far above their point's median
	KindPlanner    = "planner-view"       // what a planner would read, and what it drops
	KindLimits     = "not-concluded"      // what the evidence that is shown does not prove
	KindNotAllKept = "not-all-kept"       // parts that are too large to be looked at whole
)

// Explanation is one thing worth knowing about a run that is no broken rule, or that
// lies behind several of them.
type Explanation struct {
	Kind     string
	Severity Severity
	Text     []string      // one or more sentences; untrusted texts in them are not escaped
	Data     report.Object // the same for machines; in a stable order
}

// MarshalJSON writes kind, severity, text and data.
func (e Explanation) MarshalJSON() ([]byte, error) {
	return report.Object{
		{Key: "kind", Value: e.Kind}, {Key: "severity", Value: e.Severity},
		{Key: "text", Value: e.Text}, {Key: "data", Value: e.Data},
	}.MarshalJSON()
}

// Explanations are in a stable order: what is wrong with the run as a whole first, then
// its points, its samples, its readers.
type Explanations []Explanation

// Of returns those of a kind.
func (list Explanations) Of(kind string) Explanations {
	return list.filter(func(e Explanation) bool { return e.Kind == kind })
}

// OfSeverity returns those of a severity.
func (list Explanations) OfSeverity(severity Severity) Explanations {
	return list.filter(func(e Explanation) bool { return e.Severity == severity })
}

// Without returns those of other kinds.
func (list Explanations) Without(kind string) Explanations {
	return list.filter(func(e Explanation) bool { return e.Kind != kind })
}

func (list Explanations) filter(keep func(Explanation) bool) (kept Explanations) {
	for _, e := range list {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// Lines returns the explanations for people: a line of "note: " or "attention: " with the
// first sentence, the others behind two spaces.
func (list Explanations) Lines() (lines []string) {
	for _, e := range list {
		for i, text := range e.Text {
			if i == 0 {
				text = fmt.Sprintf("%s[%s]: %s", e.Severity, e.Kind, text)
			} else {
				text = "  " + text
			}
			lines = append(lines, report.Escape(text))
		}
	}
	return lines
}

// Explain explains what the rank artifacts of one run say. It needs neither all ranks nor
// sound artifacts: what the facts do not tell is left out. The order of the facts does not
// matter.
func Explain(facts []*Facts) Explanations { return ExplainWith(facts, nil) }

// Unread is an artifact of a run that was given and told nothing, because it could not be
// opened, read or parsed.
type Unread struct {
	File string
	Rank int // finding.NoRank when neither content nor name tells
}

// ExplainWith is [Explain] for a run of which some artifacts are there without being
// readable: what they would say is not known, but they are not missing.
func ExplainWith(facts []*Facts, unread []Unread) Explanations {
	x := &explainer{facts: ordered(facts), unread: unread}
	if len(x.facts) == 0 {
		return nil
	}
	x.runs()
	return x.explain()
}

// explain adds what there is to say of a run, in the order of the explanations.
func (x *explainer) explain() Explanations {
	x.outcomes()
	x.skipped()
	x.missing()
	x.noRealKV()
	x.regimes()
	x.dispatch()
	x.slowRanks()
	x.slowFirst()
	x.outliers()
	x.planner()
	x.limits()
	x.notKept()
	return x.list
}

// ordered returns facts by rank, those that name none last.
func ordered(facts []*Facts) []*Facts {
	facts = slices.DeleteFunc(slices.Clone(facts), func(f *Facts) bool { return f == nil })
	slices.SortStableFunc(facts, func(a, b *Facts) int {
		return cmp.Or(cmp.Compare(uint(a.Rank), uint(b.Rank)), cmp.Compare(a.File, b.File))
	})
	return facts
}

type explainer struct {
	facts  []*Facts
	unread []Unread
	merged *Merged // nil for rank artifacts
	list   Explanations
}

func (x *explainer) add(kind string, severity Severity, data report.Object, text ...string) {
	x.list = append(x.list, Explanation{Kind: kind, Severity: severity, Text: text, Data: data})
}

// Group is a text and the artifacts that say so.
type Group struct {
	Text  string
	Ranks []int
	Files []string // of artifacts that name no rank
}

// GroupBy gathers what artifacts say, in the order in which it first comes up. One that
// says nothing is in no group.
func GroupBy(facts []*Facts, text func(*Facts) string) (list []Group) {
	at := map[string]int{}
	for _, f := range facts {
		t := text(f)
		if t == "" {
			continue
		}
		i, seen := at[t]
		if !seen {
			i = len(list)
			at[t] = i
			list = append(list, Group{Text: t})
		}
		if f.Rank == finding.NoRank {
			list[i].Files = append(list[i].Files, f.File)
		} else {
			list[i].Ranks = append(list[i].Ranks, f.Rank)
		}
	}
	return list
}

// Who names the artifacts: "ranks 0-3".
func (s Group) Who() string { return rankNames(s.Ranks, s.Files) }

func rankNames(ranks []int, files []string) string {
	var parts []string
	if len(ranks) > 0 {
		parts = append(parts, words.Plural(len(ranks), "rank", "ranks")+" "+rankSet(ranks))
	}
	if len(files) > 0 {
		parts = append(parts, strings.Join(firstOf(files, 4), ", "))
	}
	return strings.Join(parts, ", ")
}

func rankSet(ranks []int) string {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	return artifact.RankSet(slices.Compact(ranks)).String()
}

// firstOf returns the first texts of a list, and how many more there are.
func firstOf(list []string, n int) []string {
	if len(list) <= n {
		return list
	}
	return append(slices.Clone(list[:n]), fmt.Sprintf("and %d more", len(list)-n))
}

// isOne tells whether one saying is that of every artifact.
func (x *explainer) isOne(list []Group) bool {
	return len(list) == 1 && len(list[0].Ranks)+len(list[0].Files) == len(x.facts)
}

// prefixed puts who says something before a text, where that is not everybody.
func (x *explainer) prefixed(list []Group, s Group) string {
	if x.merged != nil || x.isOne(list) {
		return s.Text
	}
	return s.Who() + ": " + s.Text
}

func (x *explainer) runs() {
	list := GroupBy(x.facts, func(f *Facts) string { return f.RunID })
	if len(list) < 2 {
		return
	}
	var parts []string
	var data []report.Object
	for _, s := range list {
		parts = append(parts, fmt.Sprintf("%s of run %s", s.Who(), s.Text))
		data = append(data, report.Object{{Key: "run_id", Value: s.Text}, {Key: "ranks", Value: notNil(s.Ranks)}})
	}
	x.add(KindRuns, Attention, report.Object{{Key: "runs", Value: data}},
		fmt.Sprintf("The artifacts are of %d runs: %s.", len(list), strings.Join(firstOf(parts, 4), "; ")),
		"What is said below takes them for one.")
}

// notNil returns a list that is never null in JSON.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// outcomes says how the run ended, where that was not well.
func (x *explainer) outcomes() {
	for _, o := range []struct {
		kind string
		text func(*Facts) string
	}{{KindFailed, failed}, {KindPartial, partial}, {KindNotValid, notValid}} {
		list := GroupBy(x.facts, o.text)
		if len(list) == 0 {
			continue
		}
		var text []string
		var data []report.Object
		for _, s := range list {
			text = append(text, x.prefixed(list, s))
			data = append(data, report.Object{{Key: "ranks", Value: notNil(s.Ranks)}, {Key: "reason", Value: s.Text}})
		}
		x.add(o.kind, Attention, report.Object{{Key: "said", Value: data}}, firstOf(text, 8)...)
	}
}

func failed(f *Facts) string {
	if f.Status != "failed" {
		return ""
	}
	if f.Error == "" {
		return "The benchmark failed and does not say why."
	}
	return "The benchmark failed: " + clip(f.Error, 300) + "."
}

// clip cuts a text of a file for a sentence.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func partial(f *Facts) string {
	if f.Status != "partial" {
		return ""
	}
	text := "The benchmark ended early"
	if f.StopReason != "" {
		text += " (" + clip(f.StopReason, 100) + ")"
	}
	if f.Completed >= 0 && f.Expected >= 0 {
		text += fmt.Sprintf(": %d of %d points were measured", f.Completed, f.Expected)
	}
	return text + ". Those are a beginning of the grid, not a sample of it."
}

// notValid says why an artifact that calls itself complete is not valid.
func notValid(f *Facts) string {
	if f.Status != "complete" || f.Valid != nil && *f.Valid {
		return ""
	}
	why := doubts(f)
	if len(why) == 0 {
		why = []string{"the artifact does not show why"}
	}
	says := "says that it is not valid"
	if f.Valid == nil {
		says = "does not say that it is valid"
	}
	return fmt.Sprintf("The status is complete, which only means that the benchmark came to its end; the artifact %s: %s.", says, strings.Join(why, "; "))
}

// doubts lists what in an artifact keeps it from being valid.
func doubts(f *Facts) (why []string) {
	add := func(holds bool, format string, args ...any) {
		if holds {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	skipped := max(f.SkippedCount, int64(f.SkippedTotal))
	add(f.Expected >= 0 && f.Completed >= 0 && f.Completed < f.Expected, "%d of %d points were measured", f.Completed, f.Expected)
	add(skipped > 0, "%d %s skipped", skipped, words.Plural(int(min(skipped, 2)), "point was", "points were"))
	add(len(f.Missing) > 0, "of %s there is no point at all", strings.Join(firstOf(f.Missing, 4), " and "))
	add(f.PointsTotal > 0 && f.Completed >= 0 && int64(f.PointsTotal) != f.Completed, "the measured groups are %d, the completed points %d", f.PointsTotal, f.Completed)
	add(f.Error != "", "it carries an error: %s", clip(f.Error, 300))
	add(f.TimingValid != nil && !*f.TimingValid, "its timing is not valid: the clock of the run is missing, or the iterations took longer than the whole")
	add(f.Usable != nil && !*f.Usable, "it calls itself not usable")
	return why
}

// maxNamed is how many points, files and the like a sentence names.
const maxNamed = 5

func (x *explainer) skipped() {
	list := GroupBy(x.facts, func(f *Facts) string {
		if max(f.SkippedCount, int64(f.SkippedTotal)) <= 0 {
			return ""
		}
		return skipText(f)
	})
	if len(list) == 0 {
		return
	}
	var text []string
	for _, s := range list {
		text = append(text, x.prefixed(list, s))
	}
	var data []report.Object
	for _, f := range x.facts {
		if f.SkippedTotal > 0 {
			data = append(data, append(rankOf(f), report.Detail{Key: "total", Value: f.SkippedTotal}, report.Detail{Key: "reasons", Value: skipData(f)}))
		}
	}
	text = append(firstOf(text, 4), "One skipped point makes the artifact neither valid nor usable: mend its reason, or take the point out of the grid, and run again.")
	x.add(KindSkipped, Attention, report.Object{{Key: "skipped", Value: notNil(data)}}, text...)
}

// rankOf names an artifact in data: its rank, or its file when it tells no rank.
func rankOf(f *Facts) report.Object {
	if f.Rank == finding.NoRank {
		return report.Object{{Key: "file", Value: f.File}}
	}
	return report.Object{{Key: "rank", Value: f.Rank}}
}

// skips groups skipped points by reason, the most frequent first.
func skips(f *Facts) (reasons []string, of map[string][]*Skipped) {
	of = map[string][]*Skipped{}
	for i := range f.Skipped {
		s := &f.Skipped[i]
		of[s.Reason] = append(of[s.Reason], s)
	}
	return mostFirst(of, func(list []*Skipped) int { return len(list) }), of
}

// mostFirst returns the keys of a map, those with the highest count first.
func mostFirst[V any](m map[string]V, n func(V) int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(n(m[b]), n(m[a])), cmp.Compare(a, b))
	})
}

func skipText(f *Facts) string {
	total := max(f.SkippedCount, int64(f.SkippedTotal))
	head := fmt.Sprintf("%d of %d points were skipped", total, f.Expected)
	if f.Expected < 0 {
		head = fmt.Sprintf("%d %s skipped", total, words.Plural(int(min(total, 2)), "point was", "points were"))
	}
	reasons, of := skips(f)
	var parts []string
	for _, r := range reasons {
		name := clip(r, 200)
		if name == "" {
			name = "without a reason"
		}
		var named []string
		for _, s := range of[r] {
			named = append(named, s.Coordinates.Text())
		}
		parts = append(parts, fmt.Sprintf("%d %s (%s)", len(of[r]), name, strings.Join(firstOf(named, maxNamed), ", ")))
	}
	if f.SkippedTotal > len(f.Skipped) {
		parts = append(parts, fmt.Sprintf("%d more were not looked at", f.SkippedTotal-len(f.Skipped)))
	}
	if len(parts) == 0 {
		return head + "; the artifact does not name them."
	}
	return head + ": " + strings.Join(firstOf(parts, 8), "; ") + "."
}

// Text names a point by its coordinates: "point 3 (decode, batch 8, KV 4096)".
func (c Coordinates) Text() string {
	parts := []string{cmp.Or(clip(c.Type, 40), "phase unknown"), fmt.Sprintf("batch %d", c.BatchSize)}
	if c.PrefillTokens != 0 {
		parts = append(parts, fmt.Sprintf("prefill %d", c.PrefillTokens))
	}
	parts = append(parts, fmt.Sprintf("KV %d", c.KVReadTokens))
	return fmt.Sprintf("point %d (%s)", c.ID, strings.Join(parts, ", "))
}

func skipData(f *Facts) (data []report.Object) {
	reasons, of := skips(f)
	for _, r := range reasons {
		ids := []int64{}
		for _, s := range of[r] {
			ids = append(ids, s.ID)
		}
		data = append(data, report.Object{{Key: "reason", Value: r}, {Key: "points", Value: len(ids)}, {Key: "benchmark_ids", Value: ids}})
	}
	return notNil(data)
}

func (x *explainer) missing() {
	size := 0
	have := map[int]bool{}
	for _, f := range x.facts {
		size = max(size, f.Size)
		have[f.Rank] = true
	}
	if x.merged != nil {
		size, have = x.merged.globalSize(), x.merged.sources()
	}
	unread, anonymous := x.unreadRanks()
	var absent, present []int
	for rank := range min(size, artifact.MaxRank+1) {
		switch {
		case have[rank]:
			present = append(present, rank)
		case !unread[rank]:
			absent = append(absent, rank)
		}
	}
	if len(absent) == 0 {
		return
	}
	data := report.Object{{Key: "size", Value: size}, {Key: "missing", Value: absent}, {Key: "present", Value: notNil(present)}}
	if x.merged != nil {
		x.add(KindMissing, Note, data, fmt.Sprintf("This is a merge of %d of %d ranks: %s took part; of the others it has the measurements, but neither their ledger nor their kv_seed_regime.",
			len(present), size, rankNames(present, nil)))
		return
	}
	among := "given"
	switch {
	case anonymous:
		among = "that could be read"
	case have[finding.NoRank]:
		among = "that tell their rank"
	}
	text := []string{fmt.Sprintf("%s of %d %s no artifact among those %s.", upper(rankNames(absent, nil)), size, words.Plural(len(absent), "has", "have"), among)}
	if command := x.mergeCommand(present); command != "" {
		data = append(data, report.Detail{Key: "command", Value: command})
		text = append(text, "Look for the others where their node wrote them, or merge what is here as the ranks of one node: "+command)
	}
	x.add(KindMissing, Attention, data, text...)
}

// unreadRanks returns the ranks whose artifact is there and could not be read, and whether
// there is one that does not tell its rank.
func (x *explainer) unreadRanks() (ranks map[int]bool, anonymous bool) {
	ranks = map[int]bool{}
	for _, u := range x.unread {
		ranks[u.Rank] = true
	}
	return ranks, ranks[finding.NoRank]
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// mergeCommand is how to merge the ranks that are there: by their base path where they
// have one, else file by file; empty where their names do not allow it.
func (x *explainer) mergeCommand(present []int) string {
	var base artifact.Base
	byBase := true
	var files []string
	for i, f := range x.facts {
		b, rank, named := artifact.SplitRank(f.File)
		switch {
		case f.Rank == finding.NoRank || named && rank != f.Rank:
			return "" // no file can be taken for another rank's
		case !named:
			b = artifact.ParseBase(f.File)
		}
		if i == 0 {
			base = b
		}
		byBase = byBase && b == base && (named || f.Rank == 0)
		files = append(files, report.Quote(f.File))
	}
	switch {
	case len(present) == 0 || !byBase && len(files) == 1:
		return "" // a file alone, whose name stands for rank 0
	case byBase:
		files = []string{report.Quote(base.Rank(0))}
	}
	return "fpm merge --ranks " + rankSet(present) + " " + strings.Join(files, " ")
}
