package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/words"
)

const (
	phaseDecode  = "decode"
	phasePrefill = "prefill"
)

// Count is how often something came up.
type Count struct {
	Name string `json:"name"`
	N    int    `json:"count"`
}

// maxCounts is how many names a histogram has; those beyond are counted as "…".
const maxCounts = 64

// counts returns a histogram, the most frequent first.
func counts(m map[string]int) (list []Count) {
	rest := 0
	for i, name := range mostFirst(m, func(n int) int { return n }) {
		if i < maxCounts-1 {
			list = append(list, Count{name, m[name]})
		} else {
			rest += m[name]
		}
	}
	if rest > 0 {
		list = append(list, Count{cut, rest})
	}
	return notNil(list)
}

func countsText(list []Count) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, fmt.Sprintf("%s %d", cmp.Or(clip(c.Name, 80), "(none recorded)"), c.N))
	}
	return strings.Join(firstOf(parts, 12), ", ")
}

// isReal tells whether a decode point of this regime ran on KV content that the model
// itself had computed.
func isReal(regime string) bool {
	return regime == "real_kv" || strings.HasPrefix(regime, "real_attention_kv")
}

func isYes(v *jsonvalue.Value) bool { return v != nil && v.Kind == jsonvalue.True }

// withoutRealKV tells how many decode points there are when KV warmup was required, and
// none of them has it; 0 otherwise. Of a point without a kv_seed_regime, which is of an
// older producer, nothing is known: those are counted, too.
func withoutRealKV(f *Facts) (decode, unknown int) {
	if f.kvWarmup().state != warmDone || !isYes(f.Blocks["kvwarm"].Get("warm_eligible")) {
		return 0, 0
	}
	for _, r := range f.Results {
		switch {
		case r.Type != phaseDecode:
		case isReal(r.Regime):
			return 0, 0
		default:
			decode++
			if r.Regime == "" {
				unknown++
			}
		}
	}
	return decode, unknown
}

// noRealText says of how many decode points it is known that they did not run on real KV
// content; nothing where it is of none.
func noRealText(decode, unknown int) string {
	const required = "KV warmup was enabled and the run eligible for it, but "
	switch {
	case decode == unknown:
		return ""
	case unknown > 0:
		return fmt.Sprintf(required+"no decode point is known to have run on real KV content: %d of %d did not, and the others have no kv_seed_regime.", decode-unknown, decode)
	}
	return fmt.Sprintf(required+"no decode point ran on real KV content (of %d).", decode)
}

func (x *explainer) noRealKV() {
	list := GroupBy(x.facts, func(f *Facts) string {
		return noRealText(withoutRealKV(f))
	})
	if len(list) == 0 {
		return
	}
	var text []string
	var data []report.Object
	for _, s := range list {
		text = append(text, x.prefixed(list, s))
	}
	for _, f := range x.facts {
		if n, unknown := withoutRealKV(f); n > unknown {
			of := append(rankOf(f), report.Detail{Key: "decode_points", Value: n})
			if unknown > 0 {
				of = append(of, report.Detail{Key: "without_regime", Value: unknown})
			}
			data = append(data, of)
		}
	}
	text = append(firstOf(text, 4), "With a mixture-of-experts model made-up content biases which experts are used; look at kvwarm.stages and kvwarm.skip_reason.")
	x.add(KindNoRealKV, Attention, report.Object{{Key: "ranks", Value: data}}, text...)
}

// Regimes returns how often each kv_seed_regime stands in an artifact's own results of a
// phase; the name is empty where none is recorded.
func (f *Facts) Regimes(phase string) []Count {
	m := map[string]int{}
	for _, r := range f.Results {
		if r.Type == phase {
			m[r.Regime]++
		}
	}
	return counts(m)
}

func (x *explainer) regimes() {
	list := GroupBy(x.facts, func(f *Facts) string {
		var parts []string
		for _, phase := range []string{phasePrefill, phaseDecode} {
			if c := f.Regimes(phase); len(c) > 0 {
				parts = append(parts, phase+": "+countsText(c))
			}
		}
		return strings.Join(parts, "; ")
	})
	if len(list) == 0 {
		return
	}
	var text []string
	var data []report.Object
	for _, s := range list {
		text = append(text, "Seed regimes ("+x.whose(list, s)+"): "+s.Text+".")
	}
	for _, f := range x.facts {
		data = append(data, append(rankOf(f), report.Detail{Key: phasePrefill, Value: f.Regimes(phasePrefill)}, report.Detail{Key: phaseDecode, Value: f.Regimes(phaseDecode)}))
	}
	x.add(KindRegimes, Note, report.Object{{Key: "ranks", Value: data}}, firstOf(text, 8)...)
}

// whose names the artifacts of a saying in brackets.
func (x *explainer) whose(list []Group, s Group) string {
	switch {
	case x.merged != nil:
		return "rows, one for each point and rank"
	case len(x.facts) > 1 && x.isOne(list):
		return "points of each of " + s.Who()
	}
	return "points of " + s.Who()
}

// lastPart returns the name behind the last point: CUDAGraphMode.FULL is FULL.
func lastPart(mode string) string { return mode[strings.LastIndexByte(mode, '.')+1:] }

// NotObserved is the mode of samples whose dispatch was not observed.
const NotObserved = "unavailable"

const notRecorded = "not recorded" // of points without raw samples

// Observed names the graph dispatch that was observed at a point: one mode, or several
// with a + between them.
func (p *Point) Observed() string {
	if len(p.Dispatch) == 0 {
		return notRecorded
	}
	var modes []string
	for _, d := range p.Dispatch {
		modes = append(modes, lastPart(d.Mode))
	}
	slices.Sort(modes)
	return strings.Join(slices.Compact(modes), "+")
}

// Unexpected tells whether a dispatch was observed at a point that is not the expected
// one. What was not observed is neither.
func (p *Point) Unexpected() bool {
	want := lastPart(p.ExpectedMode)
	return want != "" && slices.ContainsFunc(p.Dispatch, func(d Dispatch) bool {
		return d.Mode != NotObserved && lastPart(d.Mode) != want
	})
}

func (x *explainer) dispatch() {
	f := reference(x.facts)
	if f == nil {
		return
	}
	matrix := map[string]map[string]int{}
	var wrong []int64
	recorded := false
	for i := range f.Points {
		p := &f.Points[i]
		want := cmp.Or(lastPart(p.ExpectedMode), "(none recorded)")
		if matrix[want] == nil {
			matrix[want] = map[string]int{}
		}
		matrix[want][p.Observed()]++
		recorded = recorded || len(p.Dispatch) > 0
		if p.Unexpected() {
			wrong = append(wrong, p.ID)
		}
	}
	var text []string
	var data []report.Object
	for _, want := range slices.Sorted(maps.Keys(matrix)) {
		c := counts(matrix[want])
		data = append(data, report.Object{{Key: "expected", Value: want}, {Key: "observed", Value: c}})
		text = append(text, fmt.Sprintf("expected %s: %s", clip(want, 80), observedText(c)))
	}
	object := report.Object{{Key: "modes", Value: data}, {Key: "unexpected", Value: notNil(wrong)}}
	dispatched := "Graph dispatch: " + strings.Join(firstOf(text, 8), "; ") + "."
	switch {
	case !recorded:
		x.add(KindDispatch, Note, object, "Which graph each forward pass was dispatched to is not recorded: an expected mode says what was planned, not what ran.")
	case len(wrong) == 0:
		x.add(KindDispatch, Note, object, dispatched)
	default:
		x.add(KindDispatch, Attention, object, dispatched,
			fmt.Sprintf("%s dispatched otherwise than expected: %s.", upper(words.Count(len(wrong), "point was", "points were")), idList(wrong)))
	}
}

// observedText says what was observed at how many points: "observed FULL at 3 points, FULL
// and unavailable at 2".
func observedText(list []Count) string {
	var parts []string
	for i, c := range list {
		at := strconv.Itoa(c.N)
		if i == 0 {
			at = words.Count(c.N, "point", "points")
		}
		parts = append(parts, strings.ReplaceAll(clip(c.Name, 80), "+", " and ")+" at "+at)
	}
	return strings.Replace("observed "+strings.Join(firstOf(parts, 12), ", "), "observed "+notRecorded, notRecorded, 1)
}

// idList names points, the first of many.
func idList(ids []int64) string {
	var names []string
	for _, id := range ids {
		names = append(names, strconv.FormatInt(id, 10))
	}
	return strings.Join(firstOf(names, 2*maxNamed), ", ")
}

// reference returns the artifact whose points are shown: the first that has any. All
// artifacts of a run have the same.
func reference(facts []*Facts) *Facts {
	if i := slices.IndexFunc(facts, func(f *Facts) bool { return len(f.Points) > 0 }); i >= 0 {
		return facts[i]
	}
	return nil
}

// muchSlower is the median skew of a rank from which on somebody should look.
const muchSlower = 2

// slowRanks tells of a rank that is the slowest nearly everywhere. No two ranks can be.
func (x *explainer) slowRanks() {
	f := reference(x.facts)
	if f == nil {
		return
	}
	list := RankSkews(f.Points)
	i := slices.IndexFunc(list, RankSkew.Slow)
	if i < 0 {
		return
	}
	r, severity := list[i], Note
	if r.Median >= muchSlower {
		severity = Attention
	}
	x.add(KindSlowRanks, severity, report.Object{{Key: "ranks", Value: SkewData(list)}},
		fmt.Sprintf("Rank %d is the slowest at %d of %d points, with a median skew of %.3g (its wall time over the lower median of the ranks').", r.Rank, r.Slowest, r.Points, r.Median),
		"A point takes as long as its slowest rank: look at that rank's GPU, its clocks and its place before the times are used.")
}

// SkewData is a comparison of ranks for machines.
func SkewData(list []RankSkew) []report.Object {
	data := []report.Object{}
	for _, r := range list {
		data = append(data, report.Object{
			{Key: "rank", Value: r.Rank}, {Key: "points", Value: r.Points}, {Key: "slowest", Value: r.Slowest}, {Key: "median_skew", Value: Number(r.Median)},
		})
	}
	return data
}

func (x *explainer) slowFirst() {
	x.samples(KindSlowFirst, func(f *Facts) int { return f.Samples.SlowFirst }, true,
		"first raw sample", "first raw samples")
}

func (x *explainer) outliers() {
	x.samples(KindOutliers, func(f *Facts) int { return f.Samples.Outliers }, false,
		"later raw sample", "later raw samples")
}

// samples explains raw samples far above their point's median: first ones, or others.
func (x *explainer) samples(kind string, n func(*Facts) int, first bool, one, many string) {
	var text []string
	var data []report.Object
	total := 0
	for _, f := range x.facts {
		if n(f) == 0 {
			continue
		}
		total += n(f)
		worst := notNil(slices.DeleteFunc(slices.Clone(f.Samples.Worst), func(o Outlier) bool { return (o.Sample == 0) != first }))
		who := ""
		switch {
		case x.merged != nil:
		case f.Rank == finding.NoRank:
			who = f.File + ": "
		default:
			who = fmt.Sprintf("Rank %d: ", f.Rank)
		}
		line := fmt.Sprintf("%s%d of %s", who, n(f), words.Count(f.Samples.Raw, "raw sample", "raw samples"))
		var named []string
		for _, o := range worst {
			named = append(named, o.text())
		}
		if len(named) > 0 {
			line += ", the worst: " + strings.Join(named[:min(3, len(named))], "; ")
		}
		text = append(text, line+".")
		data = append(data, append(rankOf(f), report.Detail{Key: "count", Value: n(f)}, report.Detail{Key: "raw_samples", Value: f.Samples.Raw}, report.Detail{Key: "worst", Value: outlierData(worst)}))
	}
	if total == 0 {
		return
	}
	head := fmt.Sprintf("%s took more than 3 times the median of %s; nothing is removed because of it.", words.Count(total, one, many), words.Plural(total, "its point", "their points"))
	x.add(kind, Note, report.Object{{Key: "count", Value: total}, {Key: "ranks", Value: data}}, append([]string{head}, firstOf(text, 8)...)...)
}

func (o Outlier) text() string {
	return fmt.Sprintf("point %d sample %d with %s ms against %s ms", o.ID, o.Sample, millis(o.Wall), millis(o.Median))
}

// millis returns seconds as milliseconds for people.
func millis(seconds float64) string {
	ms := seconds * 1e3
	if math.Abs(ms) >= 1e9 {
		return strconv.FormatFloat(ms, 'g', 4, 64)
	}
	return strconv.FormatFloat(ms, 'f', 3, 64)
}

func outlierData(list []Outlier) []report.Object {
	data := []report.Object{}
	for _, o := range list {
		data = append(data, report.Object{
			{Key: "benchmark_id", Value: o.ID}, {Key: "sample_index", Value: o.Sample},
			{Key: "wall_time", Value: Number(o.Wall)}, {Key: "median", Value: Number(o.Median)},
		})
	}
	return data
}

// Number returns a number for JSON: null for one that is not finite, which JSON has none
// of.
func Number(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// PlannerPhase is what a planner that plans one phase would make of an artifact's own
// results: each FPM of the phase with a wall time above 0 is a sample to it, whatever the
// status, the coverage or the regime; what it drops it drops in silence.
type PlannerPhase struct {
	Phase      string  `json:"phase"`
	Read       int     `json:"read"`
	Zero       int     `json:"dropped_zero"`       // wall time 0
	Negative   int     `json:"dropped_negative"`   // wall time below 0
	Unreadable int     `json:"dropped_unreadable"` // no finite wall time
	Other      int     `json:"other_phase"`        // FPMs of the other phase, or of none
	Regimes    []Count `json:"read_by_regime"`     // the name is empty where none is recorded
}

// Dropped is how many FPMs of the phase are dropped.
func (p PlannerPhase) Dropped() int { return p.Zero + p.Negative + p.Unreadable }

// PlannerView returns what planners of either phase would read of an artifact. A phase
// without results is left out.
func PlannerView(f *Facts) (view []PlannerPhase) {
	for _, phase := range []string{phasePrefill, phaseDecode} {
		p := PlannerPhase{Phase: phase}
		regimes := map[string]int{}
		for _, r := range f.Results {
			switch {
			case r.Type != phase:
				p.Other++
			case math.IsNaN(r.Wall) || math.IsInf(r.Wall, 0):
				p.Unreadable++
			case r.Wall == 0:
				p.Zero++
			case r.Wall < 0:
				p.Negative++
			default:
				p.Read++
				regimes[r.Regime]++
			}
		}
		p.Regimes = counts(regimes)
		if p.Read+p.Dropped() > 0 {
			view = append(view, p)
		}
	}
	return view
}

func (p PlannerPhase) text() string {
	text := fmt.Sprintf("for %s %d of %s", p.Phase, p.Read, words.Count(p.Read+p.Dropped()+p.Other, "FPM", "FPMs"))
	if p.Read > 0 {
		text += " (" + countsText(p.Regimes) + ")"
	}
	var drops []string
	for _, d := range []Count{{"with wall time 0", p.Zero}, {"with one below 0", p.Negative}, {"without a finite one", p.Unreadable}} {
		if d.N > 0 {
			drops = append(drops, fmt.Sprintf("%d %s", d.N, d.Name))
		}
	}
	if len(drops) > 0 {
		text += ", dropping " + strings.Join(drops, ", ")
	}
	return text
}

func (x *explainer) planner() {
	severity := Note
	list := GroupBy(x.facts, func(f *Facts) string {
		var parts []string
		for _, p := range PlannerView(f) {
			parts = append(parts, p.text())
			if p.Dropped() > 0 || p.Read == 0 {
				severity = Attention
			}
		}
		return strings.Join(parts, "; ")
	})
	var data []report.Object
	for _, f := range x.facts {
		data = append(data, append(rankOf(f), report.Detail{Key: "phases", Value: notNil(PlannerView(f))}))
	}
	if len(list) == 0 {
		x.add(KindPlanner, Attention, report.Object{{Key: "ranks", Value: data}}, "A planner would find nothing to read.")
		return
	}
	text := []string{"A planner counts every FPM of its phase with wall time > 0 as one sample, whatever status, coverage and regime say."}
	for _, s := range list {
		line := fmt.Sprintf("Of %s%s: %s.", eachOf(len(s.Ranks)+len(s.Files)), s.Who(), s.Text)
		if x.merged != nil {
			line = upper(s.Text) + "."
		}
		text = append(text, line)
	}
	x.add(KindPlanner, severity, report.Object{{Key: "ranks", Value: data}}, firstOf(text, 9)...)
}

func eachOf(n int) string {
	if n > 1 {
		return "each of "
	}
	return ""
}

// limits says what the evidence does not prove, wherever it is shown.
func (x *explainer) limits() {
	var unobserved []string
	shown := false
	for _, f := range x.facts {
		protocol := f.Blocks["measurement_protocol"]
		shown = shown || protocol != nil || f.WarmupStatus != "" || f.WarmupTotal > 0
		if list := protocol.Get("unobserved"); list != nil {
			for i := range list.Elems {
				if text, ok := list.Elems[i].Str(); ok && len(unobserved) < 100 && !slices.Contains(unobserved, text) {
					unobserved = append(unobserved, text)
				}
			}
		}
	}
	if !shown {
		return
	}
	text := []string{NotConcludedShort}
	if len(unobserved) > 0 {
		text = append(text, fmt.Sprintf("The producer lists %s as unobserved: %s.", words.Count(len(unobserved), "thing", "things"), namesWithin(unobserved, 100)))
	}
	x.add(KindLimits, Note, report.Object{{Key: "statements", Value: NotConcluded()}, {Key: "unobserved", Value: notNil(unobserved)}}, text...)
}

// namesWithin lists the first names that fit into so many bytes, one at least, and how many
// more there are.
func namesWithin(names []string, most int) string {
	text := clip(names[0], most)
	for i, name := range names[1:] {
		if len(text)+len(", ")+len(name) > most {
			return fmt.Sprintf("%s, and %d more", text, len(names)-1-i)
		}
		text += ", " + name
	}
	return text
}

// NotConcludedShort is [NotConcluded] in one sentence. It stands below nearly every report,
// where the whole would be longer than what it is about.
const NotConcludedShort = "Not proven: by equal prompt hashes, equal sampled tokens, cache tensors, memory layout, graph preparation or execution history; " +
	"by a completed warmup or a passed shape check, that a graph or kernel was warmed; by adjacent decode steps, independent repetitions (docs/evidence.md)."

// NotConcluded returns what is never concluded from prompt hashes, warmup ledgers and raw
// samples. Every report that shows them says so, people's in short ([NotConcludedShort]).
func NotConcluded() []string {
	return []string{
		"Equal prompt hashes show that the same prompt tokens went in. They do not prove that the tokens sampled afterwards, the tensors in the cache, the layout of memory, the preparation of graphs or the history of execution were the same.",
		"A warmup that completed, or a check of its shape that passed, does not prove that a graph or a kernel was warmed.",
		"Neighbouring decode steps of a point are not independent repetitions of it.",
	}
}

// notKept says what was too much to be looked at.
func (x *explainer) notKept() {
	var data []report.Object
	list := GroupBy(x.facts, func(f *Facts) string {
		var parts []string
		for _, c := range []struct {
			what        string
			total, kept int
		}{
			{"groups", f.PointsTotal, len(f.Points)},
			{"warmup records", f.WarmupTotal, len(f.Warmup)},
			{"skipped points", f.SkippedTotal, len(f.Skipped)},
		} {
			if c.total > c.kept && c.kept > 0 { // none at all were not asked for
				parts = append(parts, fmt.Sprintf("the first %d of %d %s", c.kept, c.total, c.what))
				data = append(data, append(rankOf(f), report.Detail{Key: "what", Value: c.what}, report.Detail{Key: "kept", Value: c.kept}, report.Detail{Key: "total", Value: c.total}))
			}
		}
		text := ""
		if len(parts) > 0 {
			text = "Only " + strings.Join(parts, ", ") + " were looked at."
		}
		if len(f.TooLarge) > 0 {
			text += " " + fmt.Sprintf("Too large to be looked at: %s.", strings.Join(firstOf(f.TooLarge, 12), ", "))
			data = append(data, append(rankOf(f), report.Detail{Key: "too_large", Value: f.TooLarge}))
		}
		return strings.TrimSpace(text)
	})
	var text []string
	for _, s := range list {
		text = append(text, x.prefixed(list, s))
	}
	if len(text) > 0 {
		x.add(KindNotAllKept, Attention, report.Object{{Key: "left_out", Value: data}}, firstOf(text, 8)...)
	}
}
