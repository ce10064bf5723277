package nearest

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	names := []string{"merge", "rules", "simulate", "version", "completion", "sample.count", "sample.index", "sample.timing", "sample.identity", "warmup.count"}
	for typed, want := range map[string][]string{
		"merg":          {"merge"},
		"mrege":         {"merge"}, // a swap is one edit
		"MERGE":         {"merge"},
		"rulez":         {"rules"},
		"sample.cuont":  {"sample.count"},
		"sample":        {"sample.count", "sample.identity", "sample.index"}, // three at most
		"count":         {"sample.count", "warmup.count"},
		"m":             nil,
		"":              nil,
		"frobnicate":    nil,
		"rank-artifact": nil,
	} {
		if diff := cmp.Diff(want, Names(typed, names)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", typed, diff)
		}
	}
	if got := Names(strings.Repeat("x", 1<<20), names); got != nil {
		t.Errorf("a very long name is near to %v", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0},
		{"abc", "abd", 1}, {"abc", "ab", 1}, {"abc", "xabc", 1}, {"abc", "acb", 1}, {"kitten", "sitting", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// The distance does not depend on the direction, is 0 for equal texts only, and is never
// more than the longer text.
func TestDistanceIsADistance(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		b := make([]byte, r.IntN(6))
		for i := range b {
			b[i] = "ab"[r.IntN(2)]
		}
		return string(b)
	}
	for range 2000 {
		a, b := text(), text()
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) {
			t.Fatalf("distance(%q, %q) = %d, back %d", a, b, d, distance(b, a))
		}
	}
}
