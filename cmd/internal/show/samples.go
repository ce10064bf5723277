package show

import "github.com/fpm-project/fpm/internal/report"

// Samples are the raw samples of one point on one rank.
type Samples struct {
	Rank int
}

func (s Samples) title() string                  { return "" }
func (s Samples) lines(l Layout) []string        { return nil }
func (d *Document) samplesData() []report.Object { return nil }
