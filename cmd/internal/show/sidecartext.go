package show

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
)

func (s *Sidecar) text(l Layout) []string {
	fields := []table.Field{
		{Label: "  run", Value: s.RunID},
		{Label: "  merged", Value: s.Merged},
		{Label: "  resolution", Value: s.View.Resolution},
		{Label: "  error", Value: s.View.Error},
		{Label: "  coverage", Value: s.View.text()},
		{Label: "  attention", Value: s.View.Attention},
		{Label: "  replies", Value: strconv.Itoa(s.Total)},
	}
	lines := table.Fields(fields, l.Width)
	lines = append(lines, "", "source ranks")
	lines = append(lines, l.lines(s.ranks(), l.rows(manyRows))...)
	lines = append(lines, "", "replies")
	lines = append(lines, l.lines(s.replies(), l.rows(manyRows))...)
	return append(lines, paragraphs("", []string{"", "This is what the sidecar records; 'fpm probe-report' computes it again from the replies. Missing replies establish neither agreement nor disagreement."}, l.Width)...)
}

func (v *View) text() string {
	text := words.Count(v.Observed, "worker", "workers") + " observed"
	if v.PerDP >= 0 && len(v.Expected) > 0 {
		text = fmt.Sprintf("%d of %s observed", v.Observed, words.Count(v.PerDP*int64(len(v.Expected)), "worker", "workers"))
	}
	if len(v.Expected) > 0 {
		text += " of DP rank " + orNone(v.Expected)
	}
	if v.Complete {
		text += ", complete"
	} else {
		text += ", not complete"
	}
	if len(v.Missing) > 0 {
		text += "; no worker of DP rank " + orNone(v.Missing)
	}
	if v.Disagree > 0 {
		text += fmt.Sprintf("; %d disagreements", v.Disagree)
	}
	return text
}

func (s *Sidecar) ranks() *table.Table {
	t := &table.Table{Noun: "ranks", Columns: []table.Column{
		{Title: "rank", Right: true}, {Title: "observed", Right: true}, {Title: "of", Right: true}, {Title: "complete"},
		{Title: "resolution"}, {Title: "attention", Flex: true, Priority: 1}, {Title: "error", Flex: true, Priority: 1}, {Title: "file", Flex: true, Priority: 2},
	}}
	for _, r := range s.Ranks {
		t.Rows = append(t.Rows, []string{
			strconv.Itoa(r.Rank), strconv.Itoa(r.View.Observed), number(r.View.PerDP), yes(r.View.Complete),
			r.View.Resolution, r.View.Attention, r.View.Error, r.File,
		})
	}
	return t
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func (s *Sidecar) replies() *table.Table {
	t := &table.Table{Noun: "replies", Total: s.Total, Columns: []table.Column{
		{Title: "DP", Right: true}, {Title: "worker", Right: true}, {Title: "TP", Right: true, Priority: 3}, {Title: "PP", Right: true, Priority: 3}, {Title: "PCP", Right: true, Priority: 3},
		{Title: "attention", Flex: true}, {Title: "layers", Right: true, Priority: 2}, {Title: "MLA prefill", Priority: 2, Flex: true},
		{Title: "graph mode", Flex: true}, {Title: "sizes", Right: true, Priority: 4}, {Title: "capture errors", Right: true, Priority: 1}, {Title: "issues", Priority: 1, Flex: true},
	}}
	for _, r := range s.Replies {
		captures := ""
		if r.CaptureFails > 0 {
			captures = strconv.Itoa(r.CaptureFails)
		}
		t.Rows = append(t.Rows, []string{
			cmp.Or(r.DPRank, "-"), cmp.Or(r.WorkerRank, "-"), r.TPRank, r.PPRank, r.PCPRank,
			strings.Join(r.Backends, ", "), strconv.Itoa(r.Layers), r.MLAPrefill, r.Mode, strconv.Itoa(r.CaptureSizes), captures, strings.Join(r.Issues, "; "),
		})
	}
	return t
}
