package inspect

import (
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
)

// An artifact that is there and cannot be read is not missing.
func TestUnreadIsNotMissing(t *testing.T) {
	for name, c := range map[string]struct {
		unread []Unread
		want   string
	}{
		"none":                {nil, "Ranks 1-2 of 3 have no artifact among those given."},
		"one of two":          {[]Unread{{"b.json", 1}}, "Rank 2 of 3 has no artifact among those given."},
		"both":                {[]Unread{{"b.json", 1}, {"c.json", 2}}, ""},
		"of no known rank":    {[]Unread{{"b.json", finding.NoRank}}, "Ranks 1-2 of 3 have no artifact among those that could be read."},
		"a second of its own": {[]Unread{{"again.json", 0}}, "Ranks 1-2 of 3 have no artifact among those given."},
	} {
		t.Run(name, func(t *testing.T) {
			a := sound(0)
			a.Size = 3
			got := ""
			for _, e := range ExplainWith([]*Facts{a}, c.unread).Of(KindMissing) {
				got = e.Text[0]
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
