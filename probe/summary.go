package probe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/engine"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/words"
)

// Summary is what the merged view of a probe established, for people and machines. Its
// texts may be those of a file.
type Summary struct {
	Resolution    string         `json:"resolution"`
	Error         string         `json:"error,omitempty"` // why nothing was observed
	Coverage      Coverage       `json:"coverage"`
	Settings      []Setting      `json:"settings"`
	Disagreements []Disagreement `json:"disagreements"`
	CaptureErrors []CaptureError `json:"capture_errors"` // at most maxListed
	Captures      int            `json:"workers_with_capture_errors"`
	Silent        int            `json:"workers_without_attention_backends"` // observed, but of no attention layer
	Conclusion    string         `json:"conclusion"`                         // what this does and does not establish
}

// maxListed bounds each list of layers, workers and errors in a summary; the counts
// beside them are those of all.
const maxListed = 1000

// Coverage says who was observed.
type Coverage struct {
	Complete     bool           `json:"complete"`
	Doubts       []string       `json:"doubts"`                  // why it is not complete
	Expected     *int64         `json:"expected_workers"`        // nil when it is not known
	PerDP        *int64         `json:"expected_workers_per_dp"` // nil when it is not known
	Observed     int            `json:"observed_workers"`
	Ranks        []RankCoverage `json:"dp_ranks"` // the expected ranks; those seen, when nobody knows them
	Replies      int            `json:"replies"`
	WithIssues   int            `json:"replies_with_issues"`
	Unattributed int            `json:"replies_without_dp_rank"`
	OutOfScope   int            `json:"replies_of_other_ranks"`
}

// RankCoverage says who of a DP rank was observed.
type RankCoverage struct {
	DPRank    int64  `json:"dp_rank"`
	Observed  int    `json:"observed_workers"`
	Expected  *int64 `json:"expected_workers"` // nil when it is not known
	Missing   *int64 `json:"missing_workers"`  // nil when it is not known
	Malformed int    `json:"malformed_replies"`
	Duplicate int    `json:"duplicate_replies"`
}

// Setting is what was asked for at start-up against what workers resolved.
type Setting struct {
	Name      string `json:"setting"`
	Requested string `json:"requested"` // JSON text; "" when it is not recorded
	Resolved  []Said `json:"resolved"`  // each different value; null is none
	automatic bool   // null stands for automatic selection
}

// Said is a value and the workers that said so.
type Said struct {
	Value   *string  `json:"value"`   // nil for null; a list of sizes as JSON text
	Workers []Worker `json:"workers"` // at most maxListed
	Count   int      `json:"worker_count"`
}

// Worker is one worker of the fleet.
type Worker struct {
	DPRank     json.Number `json:"dp_rank"`
	WorkerRank json.Number `json:"worker_rank"`
}

// Disagreement is something about which observed workers differ.
type Disagreement struct {
	Field  string   `json:"field"`
	Layers []string `json:"layers,omitempty"` // that differ in the same way, at most maxListed
	Count  int      `json:"layer_count,omitempty"`
	Sides  []Said   `json:"sides"`
}

// CaptureError is what a worker could not find out about itself.
type CaptureError struct {
	Worker Worker `json:"worker"`
	Errors string `json:"errors"` // JSON text, cut
}

func newSummary(v *view) *Summary {
	s := &Summary{Resolution: v.resolution, Error: v.probe.failure, CaptureErrors: []CaptureError{}}
	for _, i := range v.observed {
		if len(v.reply(i).layers) == 0 {
			s.Silent++
		}
		if r := v.reply(i); r.captureFailed() {
			if s.Captures++; s.Captures <= maxListed {
				s.CaptureErrors = append(s.CaptureErrors, CaptureError{r.name(), jsonstream.Excerpt(bytes.NewReader(r.captureErrors), 0, maxQuoted)})
			}
		}
	}
	s.Coverage = v.coverage(s.Captures)
	s.Settings = v.settings()
	s.Disagreements = v.sides()
	s.Conclusion = s.conclude()
	if s.Silent > 0 {
		s.Conclusion += " Of the attention backend, " + words.Count(s.Silent, "observed worker", "observed workers") + " said nothing."
	}
	return s
}

// name is the worker that a sound reply names.
func (r *reply) name() Worker {
	return Worker{DPRank: json.Number(r.dp.key()), WorkerRank: json.Number(r.worker.key())}
}

// maxQuoted bounds a text of a reply in a summary, in bytes.
const maxQuoted = 500

func cut(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

func (v *view) coverage(captures int) Coverage {
	c := Coverage{Complete: v.complete, Observed: len(v.observed), Replies: len(v.probe.replies.list)}
	if v.probe.sized {
		per := v.probe.layout.Workers()
		c.PerDP = &per
		if total := per * int64(len(v.expected)); v.known && (per == 0 || total/per == int64(len(v.expected))) {
			c.Expected = &total
		}
	}
	ranks := v.countRanks(&c)
	for i := range ranks {
		if c.PerDP != nil {
			missing := max(0, *c.PerDP-int64(ranks[i].Observed))
			ranks[i].Expected, ranks[i].Missing = c.PerDP, &missing
		}
	}
	c.Ranks = ranks
	c.Doubts = v.doubts(&c, captures)
	return c
}

// countRanks counts the replies, for each rank and in all.
func (v *view) countRanks(c *Coverage) []RankCoverage {
	ranks := make([]RankCoverage, 0, len(v.expected))
	at := map[int64]int{}
	add := func(rank int64) *RankCoverage {
		i, ok := at[rank]
		if !ok {
			i = len(ranks)
			at[rank] = i
			ranks = append(ranks, RankCoverage{DPRank: rank})
		}
		return &ranks[i]
	}
	for _, rank := range v.expected {
		add(rank)
	}
	observed := map[int]bool{}
	for _, i := range v.observed {
		observed[i] = true
	}
	for i := range v.probe.replies.list {
		v.count(c, i, observed[i], func(rank int64) *RankCoverage {
			if _, expected := at[rank]; v.known && !expected {
				return nil
			}
			return add(rank)
		})
	}
	slices.SortFunc(ranks, func(a, b RankCoverage) int { return int(min(1, max(-1, a.DPRank-b.DPRank))) })
	return ranks
}

func (v *view) count(c *Coverage, i int, observed bool, of func(rank int64) *RankCoverage) {
	issues := v.issuesOf(i)
	if len(issues) > 0 {
		c.WithIssues++
	}
	r := v.reply(i)
	if !r.dp.valid {
		c.Unattributed++
		return
	}
	var rank *RankCoverage
	if r.dp.small {
		rank = of(r.dp.value)
	}
	switch {
	case rank == nil:
		c.OutOfScope++
	case observed:
		rank.Observed++
	case slices.Contains(issues, issueIdentity) || slices.Contains(issues, issueSlot):
		rank.Duplicate++
	default:
		rank.Malformed++
	}
}

// doubts says why the coverage is not complete.
func (v *view) doubts(c *Coverage, captures int) []string {
	doubts := []string{}
	add := func(holds bool, format string, args ...any) {
		if holds {
			doubts = append(doubts, fmt.Sprintf(format, args...))
		}
	}
	add(!v.known || len(v.expected) == 0, "the merged artifact does not say which DP ranks to expect")
	add(!v.probe.sized, "the engine block does not say how many workers a rank has")
	if c.Expected != nil {
		missing := *c.Expected - int64(c.Observed)
		add(missing > 0, "%d of %d workers not observed", missing, *c.Expected)
	}
	add(c.WithIssues > 0, "%s with issues", words.Count(c.WithIssues, "reply", "replies"))
	add(captures > 0, "%s with capture errors", words.Count(captures, "worker", "workers"))
	return doubts
}

// Doubt says why the coverage is not complete, in one phrase.
func (s *Summary) Doubt() string { return strings.Join(s.Coverage.Doubts, ", ") }

// conclude says what this does and does not establish.
func (s *Summary) conclude() string {
	switch {
	case s.Error != "":
		return "This establishes nothing about what the workers resolved."
	case s.Coverage.Observed == 0:
		return "No worker was observed: this establishes neither what the workers resolved nor whether they agree."
	case s.Coverage.Complete && len(s.Disagreements) == 0:
		return "Every expected worker was observed and none disagrees: this establishes what each had resolved when it was asked, after the run; it does not show what ran at each point."
	case s.Coverage.Complete:
		return "Every expected worker was observed, and they disagree: the run did not measure one configuration."
	case len(s.Disagreements) > 0:
		return fmt.Sprintf("The observed workers disagree, which missing replies cannot undo; who else disagrees is not established (%s).", s.Doubt())
	}
	return fmt.Sprintf("This holds for the observed workers only (%s): missing replies establish neither agreement nor disagreement.", s.Doubt())
}

// said gathers values and who said so, in the order in which they came up.
type said struct {
	values []int
	who    map[int][]int // replies
}

func (s *said) add(value, reply int) {
	if s.who == nil {
		s.who = map[int][]int{}
	}
	list := s.who[value]
	if list == nil {
		s.values = append(s.values, value)
	}
	if n := len(list); n == 0 || list[n-1] != reply {
		s.who[value] = append(list, reply)
	}
}

// list returns the values with their workers.
func (s *said) list(v *view) []Said {
	out := []Said{}
	for _, value := range s.values {
		who := s.who[value]
		x := Said{Count: len(who), Workers: []Worker{}}
		if value != none {
			text := cut(v.probe.replies.names.texts[value])
			x.Value = &text
		}
		for _, i := range who[:min(len(who), maxListed)] {
			x.Workers = append(x.Workers, v.reply(i).name())
		}
		if out = append(out, x); len(out) == maxListed {
			break
		}
	}
	return out
}

// settings returns what was resolved, and what had been asked for.
func (v *view) settings() []Setting {
	var list []Setting
	for _, s := range engine.Settings() {
		x := Setting{Name: s.String(), automatic: s == engine.AttentionBackend || s == engine.MLAPrefillBackend}
		if asked := engine.Requested(v.probe.merged.engine, s); asked != nil {
			x.Requested = asked.Excerpt(maxQuoted)
		}
		x.Resolved = v.resolved(s).list(v)
		list = append(list, x)
	}
	return list
}

func (v *view) resolved(s engine.Setting) *said {
	out := &said{}
	for _, i := range v.observed {
		r := v.reply(i)
		switch s {
		case engine.AttentionBackend:
			for _, l := range r.layers {
				out.add(l.backend, i)
			}
		case engine.MLAPrefillBackend:
			out.add(r.prefill, i)
		case engine.CUDAGraphMode:
			out.add(r.mode, i)
		case engine.CUDAGraphCaptureSizes:
			out.add(r.sizes, i)
		}
	}
	return out
}

// sides returns what the observed workers disagree about, and who is on which side.
func (v *view) sides() []Disagreement {
	list := v.layerSides()
	for _, f := range scalarFields() {
		if !slices.Contains(v.disagreements, f.name) {
			continue
		}
		sides := &said{}
		for _, i := range v.observed {
			if n := f.of(v.reply(i)); n != none {
				sides.add(n, i)
			}
		}
		list = append(list, Disagreement{Field: f.name, Sides: sides.list(v)})
	}
	return list
}

// layerSides returns the layers whose backends differ. Those that differ in the same way
// are one disagreement.
func (v *view) layerSides() []Disagreement {
	mixed := v.mixedLayers()
	mixed = mixed[:min(len(mixed), maxListed)]
	of := map[int]*said{}
	for _, layer := range mixed {
		of[layer] = &said{}
	}
	for _, i := range v.observed {
		for _, l := range v.reply(i).layers {
			if sides := of[l.name]; sides != nil {
				sides.add(l.backend, i)
			}
		}
	}
	list := []Disagreement{}
	same := map[string]int{}
	for _, layer := range mixed {
		signature := fmt.Sprint(of[layer].values, of[layer].who)
		i, seen := same[signature]
		if !seen {
			i = len(list)
			same[signature] = i
			list = append(list, Disagreement{Field: fieldBackends, Sides: of[layer].list(v)})
		}
		list[i].Layers = append(list[i].Layers, cut(v.probe.replies.names.texts[layer]))
		list[i].Count++
	}
	return list
}

// Text is the value for people.
func (s Said) Text() string {
	if s.Value == nil {
		return "null"
	}
	return *s.Value
}

// Who names the workers of a value in one phrase, those of like ranks together: "DP rank 0-1
// worker 0".
func (s Said) Who() string {
	byRank := map[int][]int{}
	var odd []string
	for _, w := range s.Workers {
		dp, err := strconv.Atoi(string(w.DPRank))
		worker, err2 := strconv.Atoi(string(w.WorkerRank))
		if err != nil || err2 != nil {
			odd = append(odd, fmt.Sprintf("DP rank %s worker %s", w.DPRank, w.WorkerRank))
			continue
		}
		byRank[dp] = append(byRank[dp], worker)
	}
	ranks := map[string][]int{} // by their workers
	for dp, workers := range byRank {
		slices.Sort(workers)
		set := artifact.RankSet(workers).String()
		ranks[set] = append(ranks[set], dp)
	}
	var parts []string
	for workers, dps := range ranks {
		slices.Sort(dps)
		parts = append(parts, fmt.Sprintf("DP rank %s worker %s", artifact.RankSet(dps), workers))
	}
	slices.Sort(parts)
	text := strings.Join(append(parts, odd...), "; ")
	if more := s.Count - len(s.Workers); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

// Text is the summary for people, a line each.
func (s *Summary) Text() []string {
	lines := []string{"resolution: " + s.Resolution}
	lines = append(lines, s.Coverage.text()...)
	if s.Coverage.Observed > 0 {
		lines = append(lines, "asked for at start-up, and resolved by the observed workers:")
	}
	for _, x := range s.Settings {
		lines = append(lines, x.text()...)
	}
	for _, d := range s.Disagreements {
		lines = append(lines, d.text()...)
	}
	for _, e := range s.CaptureErrors[:min(len(s.CaptureErrors), maxShown)] {
		lines = append(lines, fmt.Sprintf("capture errors of DP rank %s worker %s: %s", e.Worker.DPRank, e.Worker.WorkerRank, e.Errors))
	}
	if more := s.Captures - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %s more with capture errors", words.Count(more, "worker", "workers")))
	}
	return append(lines, s.Conclusion)
}

// maxShown bounds each list in the text for people.
const maxShown = 64

func (c *Coverage) text() (lines []string) {
	of := ""
	if c.Expected != nil {
		of = fmt.Sprintf(" of %d", *c.Expected)
	}
	complete := "complete"
	if !c.Complete {
		complete = "not complete: " + strings.Join(c.Doubts, ", ")
	}
	lines = append(lines, fmt.Sprintf("coverage: %d%s workers observed, %s", c.Observed, of, complete))
	for _, r := range c.Ranks[:min(len(c.Ranks), maxShown)] {
		lines = append(lines, r.text())
	}
	if more := len(c.Ranks) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %s more", words.Count(more, "DP rank", "DP ranks")))
	}
	if c.Unattributed > 0 {
		lines = append(lines, fmt.Sprintf("  no DP rank: %s", words.Count(c.Unattributed, "reply", "replies")))
	}
	if c.OutOfScope > 0 {
		lines = append(lines, fmt.Sprintf("  other DP ranks: %s", words.Count(c.OutOfScope, "reply", "replies")))
	}
	return lines
}

func (r RankCoverage) text() string {
	if r.Expected == nil {
		return fmt.Sprintf("  DP rank %d: %d observed, number of workers unknown, %d malformed, %d duplicate", r.DPRank, r.Observed, r.Malformed, r.Duplicate)
	}
	return fmt.Sprintf("  DP rank %d: %d of %d observed, %d missing, %d malformed, %d duplicate", r.DPRank, r.Observed, *r.Expected, *r.Missing, r.Malformed, r.Duplicate)
}

func (x Setting) text() (lines []string) {
	asked := "asked for " + x.Requested
	switch {
	case x.Requested == "":
		asked = "request not recorded"
	case x.Requested == "null" && x.automatic:
		asked = "asked for automatic"
	}
	for _, said := range x.Resolved[:min(len(x.Resolved), maxShown)] {
		lines = append(lines, fmt.Sprintf("  %s: %s, resolved %s (%s)", x.Name, asked, said.Text(), said.Who()))
	}
	return lines
}

func (d Disagreement) text() (lines []string) {
	about := d.Field
	if d.Count > 0 {
		about += " of layer " + d.Layers[0]
	}
	if d.Count > 1 {
		about += fmt.Sprintf(" and %d more", d.Count-1)
	}
	lines = append(lines, "the workers disagree about "+about+":")
	for _, side := range d.Sides[:min(len(d.Sides), maxShown)] {
		lines = append(lines, fmt.Sprintf("  %s (%s)", side.Text(), side.Who()))
	}
	return lines
}
