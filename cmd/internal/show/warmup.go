package show

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/internal/words"
)

// timeline is the table of one rank's warmup records and points.
type timeline struct {
	title string
	table *table.Table
}

// timelines returns those of the ranks that have a ledger, or one that says that there is
// none. Forward indices of different ranks do not compare, so that each has its own; where
// several say the same, it is shown once. Ranks that asked for different shapes share one,
// too: the shape says so.
func (d *Document) timelines() (list []timeline) {
	shown := map[string]timeline{}
	for _, g := range inspect.GroupBy(d.ledgers(), func(f *inspect.Facts) string {
		events, unplaced := inspect.Timeline(f)
		title := fmt.Sprintf("%s, %s", cmp.Or(f.WarmupStatus, "no ledger"), words.Count(f.WarmupTotal, "record", "records"))
		if unplaced > 0 {
			title += fmt.Sprintf("; points that have no forward index, and no place here: %d", unplaced)
		}
		t := eventTable(events)
		shapes := takeShapes(t.Rows)
		key := title + fmt.Sprintf("%q", t.Rows)
		if _, ok := shown[key]; !ok {
			shown[key] = timeline{title, t}
			putShapes(t.Rows, shapes)
		} else {
			mixShapes(shown[key].table.Rows, shapes)
		}
		return key
	}) {
		t := shown[g.Text]
		t.title = "warmup of " + g.Who() + ": " + t.title
		list = append(list, t)
	}
	return list
}

// shapeColumn is where the shape stands in the row of a record; rows of points end before.
const shapeColumn = 7

// byRank stands before the shape of one rank where others have others.
const byRank = "e.g. "

// takeShapes takes the shapes out of rows.
func takeShapes(rows [][]string) []string {
	shapes := make([]string, len(rows))
	for i, row := range rows {
		if len(row) > shapeColumn {
			shapes[i], row[shapeColumn] = row[shapeColumn], ""
		}
	}
	return shapes
}

func putShapes(rows [][]string, shapes []string) {
	for i, row := range rows {
		if len(row) > shapeColumn {
			row[shapeColumn] = shapes[i]
		}
	}
}

// mixShapes notes in rows where another rank has other shapes.
func mixShapes(rows [][]string, shapes []string) {
	for i, row := range rows {
		if len(row) > shapeColumn && row[shapeColumn] != shapes[i] && !strings.HasPrefix(row[shapeColumn], byRank) {
			row[shapeColumn] = byRank + row[shapeColumn]
		}
	}
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
		{Title: "passes", Right: true, Priority: 3},
		{Title: "before", Right: true, Priority: 2},
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
	return []string{number(e.First), number(e.Last), "warmup " + cmp.Or(clip(r.Kind), "of no kind"), clip(r.Status), number(r.Count), number(r.CompletedBefore), validation, shapeText(r.Shape)}
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

// shapeText is a requested shape for people: "prompt_lengths 8x512, output 1". One that was
// cut, as it is long, is shown as it begins.
func shapeText(shape string) string {
	v, err := jsonvalue.Parse([]byte(shape), 0)
	if err != nil || v.Kind != jsonvalue.Object {
		return strings.NewReplacer("{", "", "}", "", `"`, "", ":", " ").Replace(shape)
	}
	var parts []string
	for i := range v.Members {
		parts = append(parts, clip(v.Members[i].Name)+" "+listText(&v.Members[i].Value))
	}
	return strings.Join(parts, ", ")
}

// listText shortens a list: equal values are counted, of others the first and the last are
// shown.
func listText(v *jsonvalue.Value) string {
	n := len(v.Elems)
	if v.Kind != jsonvalue.Array || n == 0 {
		return cmp.Or(literal(v), "null")
	}
	first, last := v.Elems[0].Excerpt(maxText), v.Elems[n-1].Excerpt(maxText)
	same := !slices.ContainsFunc(v.Elems, func(e jsonvalue.Value) bool { return !jsonvalue.Equal(&e, &v.Elems[0]) })
	switch {
	case n == 1:
		return first
	case same:
		return strconv.Itoa(n) + "x" + first
	}
	return fmt.Sprintf("%s…%s (%d)", first, last, n)
}

// stages are the tables of the decode KV warmup, which is no part of the ledger: one for
// each different list of stages. Ranks that differ only in how long a stage took share one.
func (d *Document) stages() (list []timeline) {
	rows, times := map[string][][]string{}, map[string][][]float64{}
	for _, g := range inspect.GroupBy(d.Facts, func(f *inspect.Facts) string {
		stages := f.Blocks["kvwarm"].Get("stages")
		if stages == nil {
			return ""
		}
		own := [][]string{}
		for i := range stages.Elems {
			own = append(own, stageRow(&stages.Elems[i]))
		}
		key := fmt.Sprintf("%q", own)
		rows[key] = own
		if times[key] == nil {
			times[key] = make([][]float64, len(own))
		}
		for i := range stages.Elems {
			if built, ok := stages.Elems[i].Get("build_seconds").Float64(); ok {
				times[key][i] = append(times[key][i], built)
			}
		}
		return key
	}) {
		who := " of " + g.Who()
		if d.Merged != nil {
			who = " of the reference rank"
		}
		t := &table.Table{Noun: "stages", Columns: []table.Column{
			{Title: "batch", Right: true}, {Title: "depth", Right: true}, {Title: "built in [s]", Right: true}, {Title: "failed"}, {Title: "more", Flex: true},
		}}
		for i, row := range rows[g.Text] {
			t.Rows = append(t.Rows, slices.Insert(slices.Clone(row), 2, secondsRange(times[g.Text][i])))
		}
		list = append(list, timeline{"decode KV warmup" + who + ": " + words.Count(len(t.Rows), "stage", "stages") + " in kvwarm, not in the ledger", t})
	}
	return list
}

// secondsRange is what several ranks took: "1.46", or "1.02 to 2.70".
func secondsRange(times []float64) string {
	if len(times) == 0 {
		return ""
	}
	short := func(v float64) string {
		if math.Abs(v) >= 0.01 && math.Abs(v) < 1e9 {
			return strconv.FormatFloat(v, 'f', 2, 64)
		}
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	least, most := short(slices.Min(times)), short(slices.Max(times))
	if least == most {
		return least
	}
	return least + " to " + most
}

// stageRow is a stage without the time that it took.
func stageRow(v *jsonvalue.Value) []string {
	row := []string{literal(v.Get("batch")), literal(v.Get("depth")), literal(v.Get("failed"))}
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
