// Package finding holds what a check has to say: one type for every rule, gathered,
// sorted and counted in one place, printed elsewhere.
//
// A finding names the broken rule, the file and the place in it, what was expected and
// what stood there. It is a value: checks add findings to a [Collector] and go on, so
// that one run reports everything that is wrong.
package finding

import (
	"cmp"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"
)

// Severity tells whether a finding rejects its input.
type Severity string

// The severities. A warning never changes an exit status.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// NoRank marks a finding that belongs to no data-parallel rank.
const NoRank = -1

// RankName names the rank of a file in a message: "rank 3", or the file itself where it
// does not tell its rank.
func RankName(rank int, file string) string {
	if rank == NoRank {
		return file
	}
	return "rank " + strconv.Itoa(rank)
}

// RankFile names the rank of a file and the file: "rank 3 (results_dp3.json)", or the file
// alone where it does not tell its rank.
func RankFile(rank int, file string) string {
	if rank == NoRank {
		return file
	}
	return RankName(rank, file) + " (" + file + ")"
}

// Finding is one broken rule at one place.
type Finding struct {
	Rule     ID       // rule id, a key of the rule table
	Severity Severity // filled from the rule table by the collector
	File     string   // path as the user gave it; empty when no single file is meant
	Pointer  string   // JSON Pointer (RFC 6901); empty for the document itself
	Offset   int64    // byte offset of the value in the file's (decompressed) text; -1 unknown
	Line     int      // line of Offset, from 1; 0 until located
	Column   int      // column of Offset in bytes, from 1; 0 until located
	Rank     int      // DP rank of the file; NoRank when there is none
	// BenchmarkID is the point concerned, 0 when there is none.
	BenchmarkID int64
	Message     string // one sentence, without the rule id and without the place
	Expected    string // JSON text or words; empty when it does not apply
	Actual      string // JSON text or words; empty when it does not apply
	Excerpt     bool   // Actual is the value at Offset, read when the finding is located
	Hint        string // what to do; filled from the rule table when empty
}

// compare is the report order. Findings that compare as equal are the same finding.
func compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.Rank, b.Rank),
		cmp.Compare(a.Offset, b.Offset),
		cmp.Compare(a.Pointer, b.Pointer),
		cmp.Compare(a.Rule, b.Rule),
		cmp.Compare(a.File, b.File),
		cmp.Compare(a.Message, b.Message),
	)
}

// seed is that of every collector's hashes, so that one can be merged into another.
// It is random: an input cannot be made to hide one finding behind another.
var seed = maphash.MakeSeed()

// identity is what tells findings apart: what [compare] looks at. Of one whose pointer is
// made late, pointer is the tail: with the place, the rest of it follows.
type identity struct {
	rank          int
	offset        int64
	rule          ID
	pointer, file string
	message       string
}

func (f *Finding) identity() identity {
	return identity{f.Rank, f.Offset, f.Rule, f.Pointer, f.File, f.Message}
}

// maxText bounds the texts of one finding in bytes. An object key can be 16 MiB long and
// stands in every pointer below it: kept whole, a hundred findings would fill the memory.
const maxText = 4096

// clamp cuts the texts that come from an input to maxText bytes.
func (f *Finding) clamp() {
	for _, text := range []*string{&f.Pointer, &f.Message, &f.Expected, &f.Actual} {
		*text = clamp(*text)
	}
}

func clamp(text string) string {
	if len(text) <= maxText {
		return text
	}
	n := maxText
	for n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…" // a copy: the long text can be freed
}

// maxSeen bounds how many different findings a collector tells apart: about 8 MiB.
const maxSeen = 1 << 18

// Collector gathers findings from any number of goroutines. It keeps the first max in
// report order (rank, byte offset, pointer, rule), errors before warnings, and counts
// them all, so that an input with a million faults costs little more memory than one
// with a hundred.
//
// A finding that is added again is neither kept nor counted again, even when the first
// one was cut meanwhile: the collector remembers a hash of each. It does so for the
// first 262,144 different findings, to stay within its memory; a repeat of a later one
// counts again.
type Collector struct {
	max int

	mu sync.Mutex
	tally
}

// tally is what a collector knows.
type tally struct {
	kept   []Finding     // unsorted between calls of settle, and then more than max
	byRule map[ID]int    // how many were found, kept or not
	seen   map[uint64]ID // hash of a finding's identity → its rule
	// furthest is the last place among those of seen: a finding behind it is no repeat.
	furthest place
	// full tells that kept holds max errors, none of them behind last: no warning, and no
	// error that is, will be kept.
	full bool
	last place
}

// place is where findings stand, in report order.
type place struct {
	rank   int
	offset int64
}

func (p place) behind(q place) bool {
	return p.rank > q.rank || p.rank == q.rank && p.offset > q.offset
}

func newTally() tally {
	return tally{byRule: map[ID]int{}, seen: map[uint64]ID{}, furthest: place{math.MinInt, 0}}
}

// NewCollector returns a collector that keeps max findings; max <= 0 keeps all.
func NewCollector(max int) *Collector {
	return &Collector{max: max, tally: newTally()}
}

// Add takes a finding. Severity and, when empty, Hint come from the rule table.
func (c *Collector) Add(f Finding) {
	rule := lookup(f.Rule)
	f.clamp()
	if c.count(f.identity(), rule.Severity) {
		c.keep(f, rule)
	}
}

// AddLate is Add for findings that an input can have millions of: the texts that cost more
// than all the rest are made only for one that is kept. Tail is the part of the pointer
// that does not follow from rule, offset and message; a part of the checks that adds a
// finding so always adds it so, or else a repeat is not seen to be one.
func (c *Collector) AddLate(f Finding, tail string, texts func() (pointer, expected string)) {
	rule := lookup(f.Rule)
	f.Pointer = tail
	if c.count(f.identity(), rule.Severity) {
		f.Pointer, f.Expected = texts()
		f.clamp()
		c.keep(f, rule)
	}
}

func lookup(id ID) *Rule {
	i, ok := index()[id]
	if !ok {
		panic("finding: no rule " + string(id)) // a bug in fpm, never an input's doing
	}
	return &table[i]
}

// count counts a finding if it is new, and tells whether it may be one of those to keep.
func (c *Collector) count(id identity, severity Severity) bool {
	at := place{id.rank, id.offset}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A file with a million faults is read from its start to its end: then nothing is
	// looked up any more, which costs more than all the rest.
	if len(c.seen) < maxSeen || !at.behind(c.furthest) {
		if !c.first(maphash.Comparable(seed, id), id.rule, at) {
			return false
		}
	}
	c.byRule[id.rule]++
	return !c.full || severity == Error && !at.behind(c.last)
}

// wants tells whether an error at a place may be kept.
func (c *Collector) wants(at place) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.full || !at.behind(c.last)
}

func (c *Collector) keep(f Finding, rule *Rule) {
	f.Severity = rule.Severity
	if f.Hint == "" {
		f.Hint = rule.Hint
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = append(c.kept, f)
	if c.max > 0 && len(c.kept) >= 2*c.max+64 {
		c.settle()
	}
}

// first notes a finding's hash and tells whether it is new.
func (t *tally) first(hash uint64, rule ID, at place) bool {
	if _, again := t.seen[hash]; again {
		return false
	}
	if len(t.seen) < maxSeen {
		t.seen[hash] = rule
		if at.behind(t.furthest) {
			t.furthest = at
		}
	}
	return true
}

// settle sorts what is kept, drops repeats and cuts to the maximum.
func (c *Collector) settle() {
	slices.SortStableFunc(c.kept, compare)
	c.kept = slices.CompactFunc(c.kept, func(a, b Finding) bool { return compare(a, b) == 0 })
	if c.max > 0 && len(c.kept) > c.max {
		c.cut()
	}
	if n := len(c.kept); c.max > 0 && n == c.max && !slices.ContainsFunc(c.kept, func(f Finding) bool { return f.Severity != Error }) {
		c.full, c.last = true, place{c.kept[n-1].Rank, c.kept[n-1].Offset}
	}
}

// cut drops what is beyond the maximum, warnings before errors: a hundred warnings of
// the first ranks must not hide why the last one is rejected.
func (c *Collector) cut() {
	room := map[Severity]int{Error: c.max, Warning: c.max}
	for _, f := range c.kept {
		if f.Severity == Error && room[Warning] > 0 {
			room[Warning]--
		}
	}
	c.kept = slices.DeleteFunc(c.kept, func(f Finding) bool {
		room[f.Severity]--
		return room[f.Severity] < 0
	})
}

// Merge moves the findings of other into c, its counts included. Other is empty then.
func (c *Collector) Merge(other *Collector) {
	moved := other.take()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, n := range moved.byRule {
		c.byRule[id] += n
	}
	for hash, id := range moved.seen {
		if !c.first(hash, id, moved.furthest) { // at most there
			c.byRule[id]--
		}
	}
	c.kept = append(c.kept, moved.kept...)
	c.settle()
}

func (c *Collector) take() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tally
	c.tally = newTally()
	return t
}

// Findings returns the kept findings in report order: by rank, byte offset, pointer and
// rule, each once.
func (c *Collector) Findings() []Finding {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	return slices.Clone(c.kept)
}

// Errors returns how many findings of severity [Error] were added, kept or not.
func (c *Collector) Errors() int { return c.total(Error) }

// Warnings returns how many findings of severity [Warning] were added, kept or not.
func (c *Collector) Warnings() int { return c.total(Warning) }

func (c *Collector) total(s Severity) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, k := range c.byRule {
		if rule, _ := Lookup(id); rule.Severity == s {
			n += k
		}
	}
	return n
}

// Has tells whether a finding of the rule was added.
func (c *Collector) Has(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byRule[id] > 0
}
