package simulate_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/breaks.txt anew; then read it")

// unreadable are the breaks that leave no JSON value to compare, or none that Go reads.
func unreadable(id finding.ID) bool {
	return id == finding.JSONSyntax || id == finding.JSONNumber || id == finding.JSONDuplicateKey || id == finding.JSONDepth
}

// TestBreaksChangeNothingElse compares each broken run with the whole one. The golden file
// lists by rule what differs, as rank, pointer, whole and broken value.
func TestBreaksChangeNothingElse(t *testing.T) {
	const golden = "testdata/breaks.txt"
	var got strings.Builder
	for _, opt := range []simulate.Options{
		{Ranks: 1, Points: 1, Raw: 1, Legacy: true},
		{Ranks: 1, Points: 2, Raw: 1},
		{Ranks: 2, Points: 3, Raw: 4, Shuffle: true},
	} {
		fmt.Fprintf(&got, "== %d ranks, %d points, %d raw samples, legacy %t\n", opt.Ranks, opt.Points, opt.Raw, opt.Legacy)
		whole := makeRun(t, opt)
		for _, b := range simulate.Breakable() {
			if b.Excluded(opt) == nil && !unreadable(b.Rule) {
				opt.Break = b.Rule
				fmt.Fprintf(&got, "%s: %s\n", b.Rule, b.How)
				writeDifferences(t, &got, whole, makeRun(t, opt))
			}
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// writeDifferences lists the differences of two runs, the first few of each file.
func writeDifferences(t *testing.T, b *strings.Builder, whole, broken []string) {
	t.Helper()
	const most = 8
	changed := false
	for rank := range whole {
		n := 0
		jsonvalue.Diff(parse(t, whole[rank]), parse(t, broken[rank]), "", func(d jsonvalue.Difference) bool {
			if n++; n <= most {
				fmt.Fprintf(b, "  %d %s: %s -> %s\n", rank, d.Pointer, d.A.Excerpt(70), d.B.Excerpt(70))
			}
			return true
		})
		if n > most {
			fmt.Fprintf(b, "  %d and %d more\n", rank, n-most)
		}
		changed = changed || n > 0
	}
	if !changed {
		t.Errorf("nothing is broken:\n%s", b)
	}
}

func parse(t *testing.T, text string) *jsonvalue.Value {
	t.Helper()
	v, err := jsonvalue.Parse([]byte(text), 0)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// The breaks of the text touch the last file only, in one place.
func TestTextBreaks(t *testing.T) {
	for _, opt := range []simulate.Options{
		{Ranks: 1, Points: 1, Raw: 1, Legacy: true},
		{Ranks: 2, Points: 3, Raw: 2},
	} {
		whole := makeRun(t, opt)
		last := opt.Ranks - 1
		for id, undo := range map[finding.ID]func(string) string{
			finding.JSONSyntax:       func(s string) string { return s + "\n}" },
			finding.JSONNumber:       func(s string) string { return strings.Replace(s, "NaN", seconds(whole[last]), 1) },
			finding.JSONDuplicateKey: func(s string) string { return strings.Replace(s, ",\n  \"error\": null", "", 1) },
			finding.JSONDepth: func(s string) string {
				before, nest, _ := strings.Cut(s, ",\n  \"note\": ")
				if n := strings.Count(nest, "["); n != 513 {
					t.Errorf("nested %d deep", n)
				}
				return before + "\n}"
			},
		} {
			opt.Break = id
			got := makeRun(t, opt)
			if got[last] == whole[last] {
				t.Errorf("%s: nothing is broken", id)
			}
			got[last] = undo(got[last])
			if diff := cmp.Diff(whole, got); diff != "" {
				t.Errorf("%s changes more than it should (-want +got):\n%s", id, diff)
			}
		}
	}
}

// seconds is the literal that json.number replaces.
func seconds(text string) string {
	_, rest, _ := strings.Cut(text, `"build_seconds": `)
	literal, _, _ := strings.Cut(rest, "\n")
	return literal
}

func TestEntailedRulesAreRules(t *testing.T) {
	for _, b := range simulate.Breakable() {
		for _, id := range b.Entails {
			if _, ok := finding.Lookup(id); !ok || id == b.Rule {
				t.Errorf("%s entails %q", b.Rule, id)
			}
		}
		if b.How == "" {
			t.Errorf("%s does not say how", b.Rule)
		}
	}
}
