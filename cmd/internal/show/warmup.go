package show

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/table"
)

// timeline is the table of one rank's warmup records and points.
type timeline struct {
	title string
	table *table.Table
}

// timelines returns those of the ranks that have a ledger, or one that says that there is
// none. Forward indices of different ranks do not compare, so that each has its own.
func (d *Document) timelines() (list []timeline) {
	for _, f := range d.ledgers() {
		who := "rank " + strconv.Itoa(f.Rank)
		if f.Rank == finding.NoRank {
			who = f.File
		}
		events, unplaced := inspect.Timeline(f)
		title := fmt.Sprintf("warmup of %s: %s, %s", who, cmp.Or(f.WarmupStatus, "no ledger"), count(f.WarmupTotal, "record", "records"))
		if unplaced > 0 {
			title += fmt.Sprintf("; points that have no forward index, and no place here: %d", unplaced)
		}
		list = append(list, timeline{title, eventTable(events)})
	}
	return list
}

// ledgers returns facts with one ledger each.
func (d *Document) ledgers() []*inspect.Facts {
	if d.Merged == nil {
		return d.Facts
	}
	var list []*inspect.Facts
	for _, l := range d.Merged.Ledgers {
		f := d.Merged.RankFacts(l)
		if l.Reason != "" {
			f.WarmupStatus += " (" + l.Reason + ")"
		}
		list = append(list, f)
	}
	return list
}

func eventTable(events []inspect.Event) *table.Table {
	t := &table.Table{Noun: "rows", Columns: []table.Column{
		{Title: "forward", Right: true},
		{Title: "to", Right: true},
		{Title: "what", Flex: true},
		{Title: "status", Priority: 1},
		{Title: "forwards", Right: true, Priority: 3},
		{Title: "points before", Right: true, Priority: 2},
		{Title: "validation", Priority: 4, Flex: true},
		{Title: "shape", Priority: 5, Flex: true},
	}}
	for _, e := range events {
		t.Rows = append(t.Rows, eventRow(e))
	}
	return t
}

func eventRow(e inspect.Event) []string {
	r := e.Record
	if r == nil {
		return []string{number(e.First), number(e.Last), pointsText(e.Points)}
	}
	validation := r.Validation
	if r.Reason != "" {
		validation += ": " + r.Reason
	}
	return []string{number(e.First), number(e.Last), "warmup " + cmp.Or(clip(r.Kind), "of no kind"), clip(r.Status), number(r.Count), number(r.CompletedBefore), validation, r.Shape}
}

// pointsText names points in a row.
func pointsText(ids []int64) string {
	if len(ids) == 1 {
		return "point " + number(ids[0])
	}
	var names []string
	for i, id := range ids {
		if i == 6 {
			names = append(names, "…", number(ids[len(ids)-1]))
			break
		}
		names = append(names, number(id))
	}
	return fmt.Sprintf("%d points: %s", len(ids), strings.Join(names, " "))
}

// stages are the tables of the decode KV warmup, which is no part of the ledger: one for
// each different list of stages.
func (d *Document) stages() (list []timeline) {
	lists := map[string]*jsonvalue.Value{}
	for _, g := range inspect.GroupBy(d.Facts, func(f *inspect.Facts) string {
		v := f.Blocks["kvwarm"].Get("stages")
		text := string(v.AppendCompact(nil))
		lists[text] = v
		return text
	}) {
		who := " of " + g.Who()
		if d.Merged != nil {
			who = " of the reference rank"
		}
		t := &table.Table{Noun: "stages", Columns: []table.Column{
			{Title: "batch", Right: true}, {Title: "depth", Right: true}, {Title: "built in [s]", Right: true}, {Title: "failed"}, {Title: "more", Flex: true},
		}}
		for i := range lists[g.Text].Elems {
			t.Rows = append(t.Rows, stageRow(&lists[g.Text].Elems[i]))
		}
		list = append(list, timeline{"decode KV warmup" + who + ": " + count(len(t.Rows), "stage", "stages") + " in kvwarm, not in the ledger", t})
	}
	return list
}

func stageRow(v *jsonvalue.Value) []string {
	row := []string{literal(v.Get("batch")), literal(v.Get("depth")), literal(v.Get("build_seconds")), literal(v.Get("failed"))}
	var more []string
	for i := range v.Members[:min(len(v.Members), maxFew)] {
		switch m := &v.Members[i]; m.Name {
		case "batch", "depth", "build_seconds", "failed":
		default:
			more = append(more, clip(m.Name)+" "+m.Value.Excerpt(maxText))
		}
	}
	return append(row, strings.Join(more, ", "))
}
