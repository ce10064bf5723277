package probe

import (
	"bytes"
	"maps"
	"slices"

	"github.com/fpm-project/fpm/engine"
)

// Resolutions of a view that nobody's failure text stands for.
const (
	resolvedWhole      = "worker_probe"
	resolvedPartial    = "worker_probe_partial"
	resolvedMixed      = "worker_probe_mixed"
	resolvedUnobserved = "worker_probe_unobserved"
)

// errNoValid is the failure of a probe to which nobody gave a valid reply.
const errNoValid = "probe_failed: no valid worker probe responses"

// probe is everything that views are computed from.
type probe struct {
	merged  *Merged
	replies *replies
	failure string // "" when the probe neither failed nor was skipped
	layout  engine.Layout
	sized   bool   // layout is known
	err     error  // of reading what stands in for a merged artifact
	sound   ranked // replies without issues of their own
	twice   ranked // replies whose one issue is that others name the same worker
}

// ranked are replies, in order, and the same by the DP rank that they name.
type ranked struct {
	all    []int
	byRank map[int64][]int
}

func (l *ranked) add(i int, r *reply) {
	l.all = append(l.all, i)
	if r.dp.small {
		if l.byRank == nil {
			l.byRank = map[int64][]int{}
		}
		l.byRank[r.dp.value] = append(l.byRank[r.dp.value], i)
	}
}

func newProbe(m *Merged, r *replies, failure string) *probe {
	p := &probe{merged: m, replies: r, failure: failure}
	if failure == "" && !r.valid() {
		p.failure = errNoValid
	}
	if p.layout, p.sized = engine.WorkerLayout(m.engine); m.standsIn != nil {
		p.layout, p.sized, p.err = m.standsIn.workers()
	}
	for i := range r.list {
		switch reply := &r.list[i]; {
		case len(reply.issues) == 0:
			p.sound.add(i, reply)
		case reply.issues[0] == issueIdentity:
			p.twice.add(i, reply)
		}
	}
	return p
}

// view is what the replies say of a set of DP ranks.
type view struct {
	probe    *probe
	expected []int64 // sorted; each once
	known    bool    // expected is known
	issues   map[int]string
	observed []int // replies, in order

	complete      bool
	disagreements []string
	resolution    string
}

// mergedView is the view of all ranks that the merged artifact expects.
func (p *probe) mergedView() *view {
	expected, known := p.merged.expectedRanks()
	return p.view("", expected, known)
}

// rankView is the view of one source rank. One whose label is no integer observes
// nothing.
func (p *probe) rankView(s source) *view {
	if s.rank < 0 {
		return p.view(s.label, nil, true)
	}
	return p.view(s.label, []int64{s.rank}, true)
}

// expectedRanks returns the ranks that the merged artifact expects, sorted. They are
// unknown unless dp.ranks lists different integers of at least 0.
func (m *Merged) expectedRanks() (ranks []int64, known bool) {
	if m.ranks == nil || m.ranks.Kind != '[' {
		return nil, false
	}
	seen := map[int64]bool{}
	for i := range m.ranks.Elems {
		n, ok := m.ranks.Elems[i].Int64()
		if !ok || n < 0 || seen[n] {
			return nil, false
		}
		seen[n] = true
	}
	return slices.Sorted(maps.Keys(seen)), true
}

// view makes the view of some ranks. Label is that of a source rank, empty for the view of
// all ranks.
func (p *probe) view(label string, expected []int64, known bool) *view {
	v := &view{probe: p, expected: expected, known: known, issues: map[int]string{}}
	scope := v.scope(&p.sound)
	switch from := p.merged.standsIn; {
	case !p.sized:
	case from != nil:
		told, err := from.told(label)
		if p.err == nil {
			p.err = err
		}
		scope = v.take(scope, told)
	default:
		scope = v.checkTopology(scope)
		scope = v.checkSlots(scope)
	}
	v.observed = scope
	v.complete = v.isComplete()
	v.disagreements = v.disagree()
	v.resolution = v.resolve()
	return v
}

// scope returns the replies of the expected ranks, in order; all of them when nobody
// knows which ranks to expect.
func (v *view) scope(of *ranked) []int {
	if !v.known {
		return of.all
	}
	var in []int
	for _, rank := range v.expected {
		in = append(in, of.byRank[rank]...)
	}
	slices.Sort(in)
	return in
}

func (v *view) reply(i int) *reply { return &v.probe.replies.list[i] }

// checkTopology gives the replies whose ranks contradict each other their issue and
// returns the others.
func (v *view) checkTopology(scope []int) (left []int) {
	for _, i := range scope {
		if v.fits(i) {
			left = append(left, i)
		} else {
			v.issues[i] = issueTopology
		}
	}
	return left
}

// fits tells whether the ranks that a reply names are those of its worker rank.
func (v *view) fits(i int) bool {
	l, r := v.probe.layout, v.reply(i)
	w := r.worker.mod(l.Workers())
	return r.tp.is(w%l.TP) && r.pcp.is(w/l.TP%l.PCP) && r.pp.is(w/(l.TP*l.PCP))
}

// slot is the place of a worker. In a reply that fits the layout all of its ranks fit 63
// bits but the DP rank.
type slot struct {
	dp          string
	tp, pcp, pp int64
}

func (v *view) slot(i int) slot {
	r := v.reply(i)
	return slot{r.dp.key(), r.tp.value, r.pcp.value, r.pp.value}
}

// checkSlots gives the replies that share a slot their issue, all of them, and returns
// the others. A worker that answered twice observes nothing, but its slot is taken: else
// a reply that is sent again could make room for another, and more would seem observed.
func (v *view) checkSlots(scope []int) (left []int) {
	taken := map[slot]int{}
	for _, i := range scope {
		taken[v.slot(i)]++
	}
	for _, i := range v.scope(&v.probe.twice) {
		if v.fits(i) {
			taken[v.slot(i)]++
		}
	}
	for _, i := range scope {
		if taken[v.slot(i)] > 1 {
			v.issues[i] = issueSlot
		} else {
			left = append(left, i)
		}
	}
	return left
}

// isComplete tells whether every worker of the view was observed, and nothing about any
// reply casts a doubt.
func (v *view) isComplete() bool {
	if !v.known || len(v.expected) == 0 || !v.probe.sized || v.probe.replies.issues || len(v.issues) > 0 {
		return false
	}
	workers := v.probe.layout.Workers()
	if n := int64(len(v.observed)); n%workers != 0 || n/workers != int64(len(v.expected)) {
		return false
	}
	return !slices.ContainsFunc(v.observed, func(i int) bool { return v.reply(i).captureFailed() })
}

// captureFailed tells whether the reply has capture errors: anything but null and an
// empty object.
func (r *reply) captureFailed() bool {
	text := r.captureErrors
	if len(text) == 0 || text[0] == 'n' {
		return false
	}
	return text[0] != '{' || len(bytes.Trim(text[1:len(text)-1], " \t\r\n")) > 0
}

// Names of what workers can disagree about, in the order of a result.
const (
	fieldBackends = "attention_backends"
	fieldPrefill  = "mla_prefill_backend"
	fieldMode     = "cudagraph_mode_resolved"
	fieldSizes    = "cudagraph_capture_sizes_resolved"
)

func (v *view) disagree() (fields []string) {
	if len(v.mixedLayers()) > 0 {
		fields = append(fields, fieldBackends)
	}
	for _, f := range scalarFields() {
		if len(v.values(f.of, false)) > 1 {
			fields = append(fields, f.name)
		}
	}
	return fields
}

// scalarField is a field of a reply that has one value.
type scalarField struct {
	name string
	of   func(*reply) int
}

func scalarFields() []scalarField {
	return []scalarField{
		{fieldPrefill, func(r *reply) int { return r.prefill }},
		{fieldMode, func(r *reply) int { return r.mode }},
		{fieldSizes, func(r *reply) int { return r.sizes }},
	}
}

// mixedLayers returns the layers that observed workers run with different backends, in
// the order in which they were seen. Stages of a pipeline own different layers, so a layer
// that one worker alone has cannot differ.
func (v *view) mixedLayers() (layers []int) {
	first, mixed := map[int]int{}, map[int]bool{}
	for _, i := range v.observed {
		for _, l := range v.reply(i).layers {
			backend, seen := first[l.name]
			switch {
			case !seen:
				first[l.name] = l.backend
			case backend != l.backend && !mixed[l.name]:
				mixed[l.name] = true
				layers = append(layers, l.name)
			}
		}
	}
	return layers
}

// values returns the different values of a field over the observed replies, at most two.
func (v *view) values(of func(*reply) int, withNull bool) (values []int) {
	for _, i := range v.observed {
		if n := of(v.reply(i)); (n != none || withNull) && !slices.Contains(values, n) {
			if values = append(values, n); len(values) > 1 {
				return values
			}
		}
	}
	return values
}

// backends returns the different backend names over all observed layers, at most two.
func (v *view) backends() (names []int) {
	for _, i := range v.observed {
		for _, l := range v.reply(i).layers {
			if !slices.Contains(names, l.backend) {
				names = append(names, l.backend)
			}
			if len(names) > 1 {
				return names
			}
		}
	}
	return names
}

func (v *view) resolve() string {
	switch {
	case v.probe.failure != "":
		return v.probe.failure
	case len(v.observed) == 0:
		return resolvedUnobserved
	case len(v.disagreements) > 0:
		return resolvedMixed
	case v.complete:
		return resolvedWhole
	}
	return resolvedPartial
}

// missing returns the expected ranks of which no worker was observed, sorted.
func (v *view) missing() (ranks []int64) {
	seen := map[int64]bool{}
	for _, i := range v.observed {
		if r := v.reply(i); r.dp.small {
			seen[r.dp.value] = true
		}
	}
	for _, rank := range v.expected {
		if !seen[rank] {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// issuesOf returns the issues of a reply in this view.
func (v *view) issuesOf(i int) []string {
	issues := slices.Clone(v.reply(i).issues)
	if own := v.issues[i]; own != "" {
		issues = append(issues, own)
	}
	return issues
}
