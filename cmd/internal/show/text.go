package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
)

// Selection says which parts of a document are shown. With none chosen that is the run,
// its explanations and the first points.
type Selection struct {
	Points, Warmup, Engine, Samples bool
}

// timelineLegend explains the two columns of a timeline.
const timelineLegend = "(forward indices of the rank's process: a warmup record ends before the second; of points they are the first indices of the first and the last one; before: points that were complete before the record; e.g.: ranks differ in the shape)"

func (s Selection) none() bool { return s == Selection{} }

// Layout says how a text is to fit.
type Layout struct {
	Width int // columns of a terminal
	Limit int // rows of each table; 0 for what is usual, below 0 for all
}

const (
	fewRows  = 10  // of the points beside other parts
	manyRows = 100 // of a table that was asked for
)

// rows is the limit of a table.
func (l Layout) rows(usual int) int {
	switch {
	case l.Limit < 0:
		return 0
	case l.Limit > 0:
		return l.Limit
	}
	return usual
}

// lines lays out a table, of which so many rows are shown.
func (l Layout) lines(t *table.Table, rows int) []string {
	t.Elsewhere = "; a wider terminal, COLUMNS=200 or --format json shows them"
	return t.Lines(l.Width, rows)
}

// Text returns a document for people, in lines.
func (d *Document) Text(sel Selection, l Layout) (lines []string) {
	section := func(title string, body []string) {
		if len(lines) > 0 {
			lines = append(lines, "")
		}
		lines = append(append(lines, table.Paragraph("", title, l.Width)...), body...)
	}
	if d.Kind == detect.Sidecar {
		section(d.title(), d.Sidecar.text(l))
		return lines
	}
	if d.Kind == detect.Trace {
		section(d.traceTitle(), d.traceText(l))
		return lines
	}
	if sel.none() {
		section(d.title(), table.Fields(d.fields(), l.Width))
		section("explanations", d.explain(l.Width))
		section(d.pointsTitle(), d.pointLines(l, fewRows))
		return append(lines, table.Paragraph("", d.closing(), l.Width)...)
	}
	section(d.title(), nil)
	if sel.Points {
		section(d.pointsTitle(), d.pointLines(l, manyRows))
	}
	if sel.Warmup {
		for _, t := range d.timelines() {
			section(t.title, l.lines(t.table, l.rows(manyRows)))
		}
		lines = append(lines, table.Paragraph("", timelineLegend, l.Width)...)
		for _, t := range d.stages() {
			section(t.title, l.lines(t.table, l.rows(manyRows)))
		}
	}
	if sel.Engine {
		section("engine", l.lines(d.engine(), l.rows(manyRows)))
	}
	if sel.Samples {
		section(d.samplesTitle(), d.sampleLines(l))
	}
	if sel.Warmup || d.Samples != nil {
		section("what this does not prove", table.Paragraph("  ", inspect.NotConcludedShort, l.Width))
	}
	return lines
}

// closing says what showing is not.
func (d *Document) closing() string {
	if len(d.Files) > 1 {
		return "This is what the artifacts say; 'fpm validate' says whether it holds."
	}
	return "This is what the artifact says; 'fpm validate' says whether it holds."
}

func paragraphs(mark string, texts []string, width int) (lines []string) {
	for _, text := range texts {
		lines = append(lines, table.Paragraph(mark, text, width)...)
	}
	return lines
}

func (d *Document) title() string {
	switch d.Kind {
	case detect.Merged:
		return "merged artifact " + d.Files[0]
	case detect.Sidecar:
		return "worker-probe sidecar " + d.Files[0]
	}
	if len(d.Files) == 1 {
		return "rank artifact " + d.Files[0]
	}
	return fmt.Sprintf("%d rank artifacts, %s to %s", len(d.Files), d.Files[0], d.Files[len(d.Files)-1])
}

// explain lists the explanations, those that ask for attention first.
func (d *Document) explain(width int) (lines []string) {
	list := d.explanations()
	for _, severity := range []inspect.Severity{inspect.Attention, inspect.Note} {
		for _, e := range list {
			if e.Severity != severity {
				continue
			}
			for i, text := range e.Text {
				first := "    "
				if i == 0 {
					first, text = "  ", fmt.Sprintf("%s[%s]: %s", e.Severity, e.Kind, text)
				}
				lines = append(lines, table.Hanging(first, "    ", text, width)...)
			}
		}
	}
	return lines
}

// same returns what all artifacts say, or who says what.
func same(facts []*inspect.Facts, text func(*inspect.Facts) string) string {
	groups := inspect.GroupBy(facts, text)
	if len(groups) == 0 {
		return ""
	}
	n := 0
	for _, g := range groups {
		n += len(g.Ranks) + len(g.Files)
	}
	if len(groups) == 1 && n == len(facts) {
		return groups[0].Text
	}
	var parts []string
	for i, g := range groups {
		if i == maxGroups {
			parts = append(parts, fmt.Sprintf("and %d more", len(groups)-i))
			break
		}
		parts = append(parts, g.Who()+": "+g.Text)
	}
	return strings.Join(parts, "; ")
}

// maxGroups is how many different sayings a line holds.
const maxGroups = 4

// fields describes the run.
func (d *Document) fields() []table.Field {
	of := func(text func(*inspect.Facts) string) string { return same(d.Facts, text) }
	engine := func(text func(*jsonvalue.Value) string) string {
		return of(func(f *inspect.Facts) string { return text(f.Blocks["engine"]) })
	}
	fields := []table.Field{
		{Label: "run", Value: of(func(f *inspect.Facts) string { return f.RunID })},
		{Label: "grid digest", Value: of(func(f *inspect.Facts) string { return f.GridDigest })},
		{Label: "ranks", Value: d.rankText()},
		{Label: "status", Value: of(status)},
		{Label: "coverage", Value: of(coverage)},
		{Label: "measured", Value: of(measured)},
		{Label: "elapsed", Value: d.elapsed()},
		{Label: "run from", Value: d.span()},
		{Label: "model", Value: engine(model)},
		{Label: "versions", Value: engine(versions)},
		{Label: "parallel", Value: engine(parallel)},
		{Label: "attention", Value: engine(attention)},
		{Label: "KV cache", Value: engine(kvCache)},
		{Label: "quantization", Value: engine(quantization)},
		{Label: "scheduler", Value: engine(scheduler)},
		{Label: "engine capture", Value: engine(func(e *jsonvalue.Value) string { return literal(e.Get("capture_error")) })},
		{Label: "CUDA graphs", Value: of(cudagraph)},
		{Label: "limits", Value: of(limits)},
		{Label: "GPU blocks", Value: of(func(f *inspect.Facts) string { return literal(f.Blocks["limits"].Get("num_gpu_blocks")) })},
		{Label: "config", Value: of(config)},
		{Label: "KV warmup", Value: of(kvwarm)},
		{Label: "warmup ledger", Value: of(ledger)},
		{Label: "outliers", Value: d.outliers()},
	}
	for _, g := range d.grids() {
		fields = append(fields, table.Field{Label: "grid, " + cmp.Or(clip(g.Phase), "no phase"), Value: gridText(g)})
	}
	for i := range fields {
		fields[i].Label = "  " + fields[i].Label
	}
	return fields
}

func (d *Document) grids() []inspect.Grid {
	if f := d.reference(); f != nil {
		return inspect.Grids(f.Points)
	}
	return nil
}

// reference returns the artifact whose points are shown.
func (d *Document) reference() *inspect.Facts {
	for _, f := range d.Facts {
		if len(f.Points) > 0 {
			return f
		}
	}
	return nil
}

func (d *Document) rankText() string {
	if m := d.Merged; m != nil {
		if len(m.GlobalRanks) == 0 {
			return ""
		}
		return fmt.Sprintf("%s merged of %d", orNone(m.SourceRanks), len(m.GlobalRanks))
	}
	size := 0
	var ranks []int
	for _, f := range d.Facts {
		size = max(size, f.Size)
		if f.Rank != finding.NoRank {
			ranks = append(ranks, f.Rank)
		}
	}
	text := orNone(ranks)
	if size > 0 {
		text += fmt.Sprintf(" of %d", size)
	}
	if n := len(d.Facts) - len(ranks); n > 0 {
		text += fmt.Sprintf("; %d without a rank", n)
	}
	return text
}

func orNone(ranks []int) string {
	if len(ranks) == 0 {
		return "none"
	}
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	return artifact.RankSet(slices.Compact(ranks)).String()
}

func status(f *inspect.Facts) string {
	parts := []string{cmp.Or(f.Status, "no status")}
	for _, flag := range []struct {
		value    *bool
		yes, not string
	}{{f.Valid, "valid", "not valid"}, {f.Usable, "usable", "not usable"}, {f.TimingValid, "", "timing not valid"}} {
		switch {
		case flag.value == nil:
		case *flag.value && flag.yes != "":
			parts = append(parts, flag.yes)
		case !*flag.value:
			parts = append(parts, flag.not)
		}
	}
	if f.StopReason != "" {
		parts = append(parts, "stopped by "+clip(f.StopReason))
	}
	return strings.Join(parts, ", ")
}

func coverage(f *inspect.Facts) string {
	if f.Expected < 0 || f.Completed < 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d points", f.Completed, f.Expected)
	if f.SkippedCount > 0 {
		text += fmt.Sprintf(", %d skipped", f.SkippedCount)
	}
	if len(f.Missing) > 0 {
		text += ", nothing of " + strings.Join(f.Missing[:min(4, len(f.Missing))], " and ")
	}
	return text
}

// measured says how long the measured iterations took.
func measured(f *inspect.Facts) string {
	if math.IsNaN(f.Measured) {
		return ""
	}
	return seconds(f.Measured) + ", the sum of the points' wall times"
}

// span says when the run took place: from the first rank's start to the last one's end.
// The stamps are text of one format and zone, which sorts by time.
func (d *Document) span() string {
	var started, completed []string
	for _, f := range d.Facts {
		if f.StartedAt != "" && f.CompletedAt != "" {
			started, completed = append(started, f.StartedAt), append(completed, f.CompletedAt)
		}
	}
	if len(started) == 0 {
		return ""
	}
	return clip(slices.Min(started)) + " to " + clip(slices.Max(completed))
}

// elapsed says how long the ranks' benchmarks took as a whole.
func (d *Document) elapsed() string {
	var times []inspect.RankSeconds
	for _, f := range d.Facts {
		if !math.IsNaN(f.Elapsed) {
			times = append(times, inspect.RankSeconds{Rank: f.Rank, Seconds: f.Elapsed})
		}
	}
	if d.Merged != nil && len(d.Merged.Elapsed) > 0 {
		times = d.Merged.Elapsed
	}
	if len(times) == 0 {
		return ""
	}
	const whole = "the whole benchmark took "
	on := func(t inspect.RankSeconds) string {
		if t.Rank == finding.NoRank {
			return seconds(t.Seconds)
		}
		return fmt.Sprintf("%s on rank %d", seconds(t.Seconds), t.Rank)
	}
	compare := func(a, b inspect.RankSeconds) int { return cmp.Compare(a.Seconds, b.Seconds) }
	slow, fast := slices.MaxFunc(times, compare), slices.MinFunc(times, compare)
	if len(times) == 1 {
		return whole + seconds(slow.Seconds)
	}
	return whole + on(slow) + " (longest), " + on(fast) + " (shortest)"
}

func seconds(v float64) string {
	if v == 0 || math.Abs(v) >= 0.001 && math.Abs(v) < 1e9 {
		return strconv.FormatFloat(v, 'f', 3, 64) + " s"
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + " s"
}

func millis(v float64) string {
	ms := v * 1e3
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "-"
	case ms == 0 || math.Abs(ms) >= 0.001 && math.Abs(ms) < 1e9:
		return strconv.FormatFloat(ms, 'f', 3, 64)
	}
	return strconv.FormatFloat(ms, 'g', 4, 64)
}

// literal is a value for people: the text of a string, the JSON of anything else, nothing
// for null.
func literal(v *jsonvalue.Value) string {
	if text, ok := v.Str(); ok {
		return clip(text)
	}
	if v == nil || v.Kind == jsonvalue.Null {
		return ""
	}
	return v.Excerpt(maxText)
}

// named lists values with their names, those that are there.
func named(v *jsonvalue.Value, names ...string) string {
	var parts []string
	for i := 0; i+1 < len(names); i += 2 {
		if text := literal(v.Get(names[i])); text != "" {
			parts = append(parts, strings.TrimSpace(names[i+1]+" "+text))
		}
	}
	return strings.Join(parts, ", ")
}

func model(e *jsonvalue.Value) string {
	return named(e.Get("model"), "model", "", "model_type", "type", "architectures", "architectures", "dtype", "dtype")
}

func versions(e *jsonvalue.Value) string {
	v := e.Get("versions")
	if v == nil {
		return ""
	}
	var names []string
	for i := range v.Members[:min(len(v.Members), 16)] {
		name := v.Members[i].Name
		names = append(names, name, strings.ReplaceAll(clip(name), "_", " "))
	}
	return named(v, names...)
}

func parallel(e *jsonvalue.Value) string {
	p := e.Get("parallel")
	text := named(p, "data_parallel_size", "DP", "tensor_parallel_size", "TP", "pipeline_parallel_size", "PP",
		"prefill_context_parallel_size", "PCP", "all2all_backend", "all2all")
	if literal(p.Get("enable_expert_parallel")) == "true" {
		text += ", expert parallel"
	}
	if literal(p.Get("enable_eplb")) == "true" {
		text += ", EPLB"
	}
	return strings.TrimPrefix(text, ", ")
}

func attention(e *jsonvalue.Value) string {
	return named(e.Get("attention"), "backend_requested", "requested", "backend_resolved", "resolved", "flash_attn_version", "FlashAttention", "resolution", "resolution")
}

func kvCache(e *jsonvalue.Value) string {
	return named(e.Get("kv_cache"), "cache_dtype", "dtype", "block_size", "block size", "enable_prefix_caching", "prefix caching", "kv_cache_layout", "layout")
}

func quantization(e *jsonvalue.Value) string {
	return named(e.Get("quantization"), "method", "", "quant_config_class", "")
}

func scheduler(e *jsonvalue.Value) string {
	return named(e.Get("scheduler"), "max_num_batched_tokens", "max batched tokens", "max_num_seqs", "max sequences", "async_scheduling", "async", "enable_chunked_prefill", "chunked prefill")
}

func cudagraph(f *inspect.Facts) string {
	c := f.Blocks["cudagraph"]
	text := named(c, "mode", "", "prefill_mode", "prefill", "decode_mode", "decode", "max_capture_size", "captured up to")
	if sizes := c.Get("capture_sizes"); sizes != nil && text != "" {
		text += fmt.Sprintf(" (%d sizes)", len(sizes.Elems))
	}
	return text
}

func limits(f *inspect.Facts) string {
	return named(f.Blocks["limits"], "max_num_scheduled_tokens", "scheduled tokens", "max_num_running_reqs", "requests", "max_model_len", "model length", "feasible_max_batch_size", "feasible batch")
}

func config(f *inspect.Facts) string {
	return named(f.Blocks["config"], "mode", "mode", "warmup_iterations", "warmup iterations", "timeout", "timeout [s]")
}

func kvwarm(f *inspect.Facts) string {
	k := f.Blocks["kvwarm"]
	text := named(k, "enabled", "enabled", "warm_eligible", "eligible", "skip_reason", "skipped because")
	if stages := k.Get("stages"); stages != nil && text != "" {
		failed := 0
		for i := range stages.Elems {
			if literal(stages.Elems[i].Get("failed")) == "true" {
				failed++
			}
		}
		text += fmt.Sprintf(", %s, %d failed", words.Count(len(stages.Elems), "stage", "stages"), failed)
	}
	// Which points a producer counts is its own affair: the seed regimes of the results say
	// what each point ran on.
	if counts := named(k, "points_real_kv", "real KV", "points_fake_fallback", "fallback"); counts != "" {
		text += "; producer's own counts: " + counts
	}
	return strings.TrimPrefix(text, "; ")
}

func ledger(f *inspect.Facts) string {
	if f.WarmupStatus == "" && f.WarmupTotal == 0 {
		return ""
	}
	states := map[string]int{}
	for _, r := range f.Warmup {
		states[r.Status]++
	}
	var parts []string
	for _, name := range []string{"completed", "running", "failed"} {
		if states[name] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[name], name))
		}
	}
	text := fmt.Sprintf("%s, %s", cmp.Or(f.WarmupStatus, "no status"), words.Count(f.WarmupTotal, "record", "records"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// outliers says that there are none; of any there is an explanation.
func (d *Document) outliers() string {
	later := 0
	for _, f := range d.Facts {
		if f.Samples.Outliers > 0 {
			return ""
		}
		later += f.Samples.Later
	}
	if later == 0 {
		return ""
	}
	return fmt.Sprintf("none of %s above 3x their point's median", words.Count(later, "later sample", "later samples"))
}

func gridText(g inspect.Grid) string {
	text := fmt.Sprintf("%s: batch %s", words.Count(g.Points, "point", "points"), rangeText(g.BatchSize))
	if g.PrefillTokens.Max != 0 || g.PrefillTokens.Min != 0 {
		text += ", prefill tokens " + rangeText(g.PrefillTokens)
	}
	return text + ", KV tokens " + rangeText(g.KVReadTokens)
}

func rangeText(r inspect.Range) string {
	if r.Distinct == 1 {
		return strconv.FormatInt(r.Min, 10)
	}
	return fmt.Sprintf("%d to %d (%d values)", r.Min, r.Max, r.Distinct)
}
