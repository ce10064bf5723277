package merge

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

// Every rule can be broken, and is then found: it and what follows from it, nothing else.
func TestEveryRuleBroken(t *testing.T) {
	breaks := map[finding.ID]simulate.Break{}
	for _, b := range simulate.Breakable() {
		breaks[b.Rule] = b
	}
	shapes := []simulate.Options{
		{Ranks: 2, Points: 3, Raw: 4},
		{Ranks: 1, Points: 1, Raw: 1},
		{Ranks: 3, Points: 5, Raw: 2, Shuffle: true, Seed: 3},
		{Ranks: 2, Points: 2, Raw: 3, Legacy: true},
	}
	for _, rule := range finding.Rules() {
		if !aboutRankFiles(rule) {
			continue
		}
		b, ok := breaks[rule.ID]
		if !ok {
			t.Errorf("no run breaks %s", rule.ID)
			continue
		}
		t.Run(string(rule.ID), func(t *testing.T) {
			found := 0
			for _, opt := range shapes {
				opt.Break = rule.ID
				found += testBreak(t, b, opt)
			}
			if found == 0 {
				t.Error("broken by no shape of run")
			}
		})
	}
}

// aboutRankFiles tells whether a rule is one that a merge applies to its inputs.
func aboutRankFiles(rule finding.Rule) bool {
	return rule.Level == finding.Merge && rule.ID != finding.InputKind && !strings.HasPrefix(string(rule.ID), "merged.")
}

func testBreak(t *testing.T, b simulate.Break, opt simulate.Options) int {
	opt.Dir = t.TempDir()
	run, err := simulate.Run(context.Background(), opt)
	var excluded *simulate.ExcludedError
	if errors.As(err, &excluded) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "merged.json")
	result, err := Run(context.Background(), Options{Inputs: run.Files, Output: target})
	if err != nil || len(result.Failures) > 0 {
		t.Fatal(err, result.Failures)
	}
	var got []string
	for _, f := range result.Findings {
		got = append(got, string(f.Rule))
		if f.File == "" || f.Line < 1 || f.Column < 1 || f.Message == "" || f.Hint == "" {
			t.Errorf("%+v: incomplete finding: %+v", opt, f)
		}
	}
	want := []string{string(b.Rule)}
	for _, id := range b.Entails {
		want = append(want, string(id))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("%+v: findings (-want +got):\n%s", opt, diff)
	}
	rejected := slices.ContainsFunc(result.Findings, func(f finding.Finding) bool { return f.Severity == finding.Error })
	if written := result.Output != ""; written == rejected || written != (len(entries(t, filepath.Dir(target))) == 1) {
		t.Errorf("%+v: rejected %t, written %t", opt, rejected, written)
	}
	return 1
}
