package finding

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func at(rank int, offset int64) Finding {
	return Finding{Rule: RunID, Rank: rank, Offset: offset, File: "run.json", Message: "differs"}
}

func TestReportOrder(t *testing.T) {
	want := []Finding{
		{Rule: EngineUnverified, Rank: NoRank, Message: "of no rank comes first"},
		{Rule: RunID, Rank: 0, Offset: -1, Message: "no place before a place"},
		{Rule: RunID, Rank: 0, Offset: 5, Pointer: "/a"},
		{Rule: GroupID, Rank: 0, Offset: 5, Pointer: "/b"},
		{Rule: RunGrid, Rank: 0, Offset: 5, Pointer: "/b"},
		{Rule: RunID, Rank: 0, Offset: 5, Pointer: "/b", File: "a.json"},
		{Rule: RunID, Rank: 0, Offset: 5, Pointer: "/b", File: "b.json", Message: "one"},
		{Rule: RunID, Rank: 0, Offset: 5, Pointer: "/b", File: "b.json", Message: "two"},
		{Rule: JSONSyntax, Rank: 0, Offset: 10},
		{Rule: JSONSyntax, Rank: 1, Offset: 2},
	}
	c := NewCollector(0)
	for _, i := range rand.Perm(len(want)) {
		c.Add(want[i])
	}
	got := c.Findings()
	for i := range want {
		rule, _ := Lookup(want[i].Rule)
		want[i].Severity, want[i].Hint = rule.Severity, rule.Hint
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestSeverityAndHintComeFromTheTable(t *testing.T) {
	c := NewCollector(0)
	c.Add(Finding{Rule: EngineUnverified, Severity: Error, Hint: "own"})
	c.Add(Finding{Rule: RunID})
	got := c.Findings()
	if got[0].Severity != Warning || got[0].Hint != "own" {
		t.Errorf("got %+v, want a warning with its own hint", got[0])
	}
	rule, _ := Lookup(RunID)
	if got[1].Severity != Error || got[1].Hint != rule.Hint {
		t.Errorf("got %+v, want an error with the table's hint", got[1])
	}
	if c.Errors() != 1 || c.Warnings() != 1 || !c.Has(RunID) || c.Has(RunGrid) {
		t.Errorf("errors %d, warnings %d, has run.id %t, has run.grid %t", c.Errors(), c.Warnings(), c.Has(RunID), c.Has(RunGrid))
	}
}

func TestUnknownRuleIsABug(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewCollector(0).Add(Finding{Rule: "no.such"})
}

// The first findings in report order are kept, whatever the order they come in, and a
// repeat of one that was cut long ago is still no new finding.
func TestMaximumKeepsTheFirstAndCountsAll(t *testing.T) {
	const n, max = 10_000, 7
	c := NewCollector(max)
	for range 3 {
		for _, i := range rand.Perm(n) {
			c.Add(at(0, int64(i)))
		}
	}
	if c.Errors() != n {
		t.Errorf("errors %d, want %d", c.Errors(), n)
	}
	var offsets []int64
	for _, f := range c.Findings() {
		offsets = append(offsets, f.Offset)
	}
	if diff := cmp.Diff([]int64{0, 1, 2, 3, 4, 5, 6}, offsets); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if len(c.kept) > 2*max+64 {
		t.Errorf("%d findings are held for a maximum of %d", len(c.kept), max)
	}
}

// Findings whose texts are made late come out as those that are added whole, repeats and
// merges included; no text is made of one that stands behind those that are kept.
func TestLateTexts(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 2))
		max := r.IntN(20)
		whole, late, part := NewCollector(max), NewCollector(max), NewCollector(max)
		for range r.IntN(2000) {
			name := string('a' + rune(r.IntN(3)))
			s := Scope{Rank: r.IntN(3), File: "run.json", BenchmarkID: 7}
			off, exists, rule := int64(r.IntN(200)), r.IntN(2) == 0, RunID
			if r.IntN(4) == 0 {
				rule = EngineUnverified
			}
			pointer := fmt.Sprintf("/%d/%s", off, name)
			s.Out = whole
			s.Either(rule, pointer, exists, off, off, "differs", "x"+name)
			if s.Out = late; r.IntN(2) == 0 {
				s.Out = part
			}
			s.EitherLate(rule, "/"+name, exists, off, off, "differs", func() (string, string) { return pointer, "x" + name })
		}
		late.Merge(part)
		ignore := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Actual" || p.Last().String() == ".Excerpt" }, cmp.Ignore())
		if diff := cmp.Diff(whole.Findings(), late.Findings(), ignore); diff != "" {
			t.Fatalf("seed %d (-whole +late):\n%s", seed, diff)
		}
		if whole.Errors() != late.Errors() || whole.Warnings() != late.Warnings() {
			t.Fatalf("seed %d: %d errors and %d warnings, late %d and %d", seed, whole.Errors(), whole.Warnings(), late.Errors(), late.Warnings())
		}
	}
	exact := NewCollector(1)
	s, asked := Scope{Out: exact}, 0
	for off := range int64(1000) {
		s.EitherLate(RunID, "/a", true, s.Exact(10*off, func() int64 { asked++; return 10*off + 3 }), 0, "differs", func() (string, string) { return "/a", "" })
	}
	if f := exact.Findings(); exact.Errors() != 1000 || asked > 2*1+64 || f[0].Offset != 3 {
		t.Errorf("%d errors, %d were looked for, %+v", exact.Errors(), asked, f)
	}
	c, made := NewCollector(10), 0
	for off := range int64(10_000) {
		Scope{Out: c}.EitherLate(RunID, "/a", true, off, 0, "differs", func() (string, string) { made++; return "/a", "" })
	}
	if c.Errors() != 10_000 || made > 2*10+64 {
		t.Errorf("%d errors, and the texts of %d", c.Errors(), made)
	}
}

func TestErrorsAreKeptBeforeWarnings(t *testing.T) {
	const max = 3
	c := NewCollector(max)
	for rank := range 500 {
		c.Add(Finding{Rule: EngineUnverified, Rank: rank})
	}
	c.Add(at(400, 1))
	c.Add(at(450, 1))
	var got []string
	for _, f := range c.Findings() {
		got = append(got, fmt.Sprintf("%d %s", f.Rank, f.Severity))
	}
	if diff := cmp.Diff([]string{"0 warning", "400 error", "450 error"}, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}

// However findings are spread over collectors that are merged, the outcome is that of
// one collector.
func TestMergeIsAsOneCollector(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		max := r.IntN(20)
		one, all := NewCollector(max), NewCollector(max)
		parts := []*Collector{NewCollector(max), NewCollector(max), NewCollector(max)}
		for range r.IntN(1000) {
			f := at(r.IntN(3), int64(r.IntN(100)))
			if r.IntN(4) == 0 {
				f.Rule = EngineUnverified
			}
			one.Add(f)
			parts[r.IntN(len(parts))].Add(f)
		}
		for _, p := range parts {
			all.Merge(p)
			if p.Errors()+p.Warnings()+len(p.Findings()) != 0 {
				t.Fatal("a merged collector is not empty")
			}
		}
		if diff := cmp.Diff(one.Findings(), all.Findings()); diff != "" {
			t.Fatalf("seed %d (-one +merged):\n%s", seed, diff)
		}
		if one.Errors() != all.Errors() || one.Warnings() != all.Warnings() {
			t.Fatalf("seed %d: %d errors and %d warnings, merged %d and %d", seed, one.Errors(), one.Warnings(), all.Errors(), all.Warnings())
		}
	}
}

// Past the number of findings it can tell apart, a collector counts on and its memory
// stays as it is.
func TestCountsBeyondWhatItRemembers(t *testing.T) {
	const n = maxSeen + 100
	c := NewCollector(3)
	for i := range int64(n) {
		c.Add(at(0, i))
	}
	if c.Errors() != n || len(c.seen) != maxSeen {
		t.Errorf("errors %d of %d, remembered %d of %d", c.Errors(), n, len(c.seen), maxSeen)
	}
	for _, i := range []int64{0, 1, maxSeen - 1} {
		c.Add(at(0, i))
	}
	if c.Errors() != n {
		t.Error("a repeat of a remembered finding was counted")
	}
	other := NewCollector(3)
	other.Merge(c)
	for _, i := range []int64{0, 1, maxSeen - 1} {
		other.Add(at(0, i))
	}
	if other.Errors() != n {
		t.Error("a repeat of a finding that was merged in was counted")
	}
}

func TestConcurrentAdd(t *testing.T) {
	const workers, each = 8, 500
	c := NewCollector(10)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range int64(each) {
				c.Add(at(w, i))
				c.Add(at(NoRank, i)) // the same from every worker
				_ = c.Has(RunID)
			}
		})
	}
	wg.Wait()
	if want := workers*each + each; c.Errors() != want {
		t.Errorf("errors %d, want %d", c.Errors(), want)
	}
	for i, f := range c.Findings() {
		if f.Rank != NoRank || f.Offset != int64(i) {
			t.Errorf("finding %d is of rank %d at %d", i, f.Rank, f.Offset)
		}
	}
}

func TestLongTextsAreCut(t *testing.T) {
	for _, filler := range []string{"x", "é", "😀", "\xff"} {
		long := strings.Repeat(filler, 1<<20)
		c := NewCollector(0)
		c.Add(Finding{Rule: RunID, Pointer: long, Message: long, Expected: long, Actual: long})
		f := c.Findings()[0]
		for _, text := range []string{f.Pointer, f.Message, f.Expected, f.Actual} {
			if len(text) > maxText+len("…") || len(text) < maxText-utf8.UTFMax || !strings.HasSuffix(text, "…") {
				t.Errorf("%q was cut to %d bytes", filler, len(text))
			}
			if utf8.ValidString(long) && !utf8.ValidString(text) {
				t.Errorf("%q was cut inside a character", filler)
			}
		}
	}
}

func ExampleCollector() {
	c := NewCollector(100)
	c.Add(Finding{
		Rule: RunID, File: "results_dp1.json", Rank: 1, Offset: 120, Pointer: "/run_id",
		Message:  "run_id is not that of rank 0",
		Expected: `"a1b2"`, Actual: `"c3d4"`,
	})
	for _, f := range c.Findings() {
		fmt.Printf("%s %s at %s: %s\n", f.Severity, f.Rule, f.Pointer, f.Message)
	}
	fmt.Println(c.Errors(), "error")
	// Output:
	// error run.id at /run_id: run_id is not that of rank 0
	// 1 error
}
