// Package table lays out tables and lists of facts for people, in plain text.
//
// A [Table] fits a width. What does not fit is left out, and a line below the table says
// what that was: columns by their priority, rows beyond a limit. Nothing disappears in
// silence, and nothing is broken over two lines, where a reader could take one row for
// two. [Fields] is a list of labels and values; those are wrapped.
//
// Texts come from files and are untrusted: every cell is escaped (see report.Escape), so
// that a cell is one line and moves no cursor. Columns are aligned by the width that a
// terminal gives to a text, not by its characters: see [Width].
package table

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/report"
)

// Column is a column of a table.
type Column struct {
	Title string // with the unit, where there is one: "wall [ms]"
	Right bool   // aligned to the right, as numbers are
	// Priority says what goes first when there is no room: the highest, and among equal
	// ones the last. The first of those with priority 0 is never left out.
	Priority int
	// Flex lets the cells be cut, so that the column takes what room is left.
	Flex bool
}

// Table is a table. A row may have fewer cells than there are columns; a column without
// any text is not shown.
type Table struct {
	Columns []Column
	Rows    [][]string
	Total   int    // rows there are, where that is more than len(Rows)
	Noun    string // what the rows are, in the plural: "points"
	// More names what else was left out before the table was made, in the line about
	// columns: "rank 32-63".
	More []string
}

const (
	gap      = "  "
	narrow   = 20   // the narrowest width; less is taken for it
	shortest = 12   // what a flexible column keeps before another one is left out
	most     = 4096 // bytes of a text that are looked at; no terminal shows more
)

// Lines returns the table, at most so many rows of it, in lines of at most width columns
// of a terminal. A width of 0 or less has no bounds, nor has a limit of 0 or less.
func (t *Table) Lines(width, limit int) []string {
	width = bounded(width)
	rows := t.Rows
	if limit > 0 && len(rows) > limit {
		rows = rows[:limit]
	}
	g := t.grid(rows)
	left := g.fit(width)
	var lines []string
	if len(g.columns) > 0 && len(rows) > 0 {
		lines = g.lines()
	}
	for _, note := range t.notes(len(rows), append(left, t.More...)) {
		lines = append(lines, Wrap(note, width)...)
	}
	return lines
}

// bounded returns the width to work with; 0 for none.
func bounded(width int) int {
	if width <= 0 {
		return 0
	}
	return max(width, narrow)
}

// notes says what is not shown.
func (t *Table) notes(shown int, columns []string) (notes []string) {
	if total := max(t.Total, len(t.Rows)); shown < total {
		notes = append(notes, fmt.Sprintf("(%d of %d %s shown)", shown, total, t.Noun))
	}
	if len(columns) > 0 && shown > 0 {
		for i, c := range columns {
			columns[i] = report.Escape(c)
		}
		notes = append(notes, "(left out for lack of room: "+strings.Join(columns, ", ")+")")
	}
	return notes
}

// grid is a table on its way: only columns that have a text, cells escaped.
type grid struct {
	columns []Column
	cells   [][]string // by column
	widths  []int
}

func (t *Table) grid(rows [][]string) *grid {
	g := &grid{}
	for i, c := range t.Columns {
		c.Title = Text(c.Title)
		cells, any := make([]string, len(rows)), false
		widest := Width(c.Title)
		for j, row := range rows {
			if i < len(row) && row[i] != "" {
				cells[j], any = Text(row[i]), true
				widest = max(widest, Width(cells[j]))
			}
		}
		if any {
			g.columns, g.cells, g.widths = append(g.columns, c), append(g.cells, cells), append(g.widths, widest)
		}
	}
	return g
}

// fit makes the table fit and returns the titles of the columns that were left out, in
// their order.
func (g *grid) fit(width int) []string {
	var gone []string
	order := slices.Clone(g.columns)
	for width > 0 && g.least() > width && len(g.columns) > 1 {
		i := g.first()
		gone = append(gone, g.columns[i].Title)
		g.columns, g.cells, g.widths = slices.Delete(g.columns, i, i+1), slices.Delete(g.cells, i, i+1), slices.Delete(g.widths, i, i+1)
	}
	if width > 0 {
		g.squeeze(width)
	}
	slices.SortStableFunc(gone, func(a, b string) int { return position(order, a) - position(order, b) })
	return gone
}

func position(columns []Column, title string) int {
	return slices.IndexFunc(columns, func(c Column) bool { return c.Title == title })
}

// first returns the column that is the first to go.
func (g *grid) first() int {
	at := 0
	for i, c := range g.columns {
		if i > 0 && (at == 0 || c.Priority >= g.columns[at].Priority) {
			at = i
		}
	}
	if g.columns[0].Priority > g.columns[at].Priority {
		return 0
	}
	return at
}

// least is the width of a line when the flexible columns are as short as can be.
func (g *grid) least() int {
	total := len(gap) * (len(g.columns) - 1)
	for i, c := range g.columns {
		if c.Flex {
			total += min(g.widths[i], max(shortest, Width(c.Title)))
		} else {
			total += g.widths[i]
		}
	}
	return total
}

// squeeze cuts flexible columns, the widest first, until a line fits; the last column
// that is left is cut, whatever it is.
func (g *grid) squeeze(width int) {
	for {
		over := len(gap)*(len(g.columns)-1) - width
		at := -1
		for i, w := range g.widths {
			over += w
			if (g.columns[i].Flex || len(g.columns) == 1) && (at < 0 || w > g.widths[at]) {
				at = i
			}
		}
		if over <= 0 || at < 0 {
			return
		}
		to := max(g.widths[at]-over, g.second(at))
		if to == g.widths[at] {
			to = g.widths[at] - 1
		}
		g.cut(at, to)
	}
}

// second is the width of the widest other flexible column, to which the widest is cut
// before that one is.
func (g *grid) second(at int) int {
	w := 1
	for i := range g.columns {
		if i != at && g.columns[i].Flex {
			w = max(w, g.widths[i])
		}
	}
	return min(w, g.widths[at])
}

func (g *grid) cut(at, width int) {
	g.widths[at] = width
	g.columns[at].Title = Cut(g.columns[at].Title, width)
	for j, cell := range g.cells[at] {
		g.cells[at][j] = Cut(cell, width)
	}
}

func (g *grid) lines() []string {
	titles := make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i] = c.Title
	}
	lines := []string{g.line(titles)}
	for j := range g.cells[0] {
		row := make([]string, len(g.columns))
		for i := range g.columns {
			row[i] = g.cells[i][j]
		}
		lines = append(lines, g.line(row))
	}
	return lines
}

func (g *grid) line(row []string) string {
	var b strings.Builder
	for i, cell := range row {
		if i > 0 {
			b.WriteString(gap)
		}
		pad := strings.Repeat(" ", max(0, g.widths[i]-Width(cell)))
		if g.columns[i].Right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}
