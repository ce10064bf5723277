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
	// Plural, where set, is what several columns of a kind are called together in the line
	// about columns: "rank columns".
	Plural string
}

// Table is a table. A row may have fewer cells than there are columns; a column without
// any text is not shown, nor is the line of titles where no column has one.
type Table struct {
	Columns []Column
	Rows    [][]string
	Total   int    // rows there are, where that is more than len(Rows)
	Noun    string // what the rows are, in the plural: "points"
	// More names what else was left out before the table was made, in the line about
	// columns: "rank 32-63".
	More []string
	// Elsewhere says where columns that were left out can be seen; it ends the line about
	// them.
	Elsewhere string
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
		notes = append(notes, "(left out for lack of room: "+strings.Join(columns, ", ")+t.Elsewhere+")")
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
	var gone []Column
	order := slices.Clone(g.columns)
	for width > 0 && g.least() > width && len(g.columns) > 1 {
		i := g.first()
		gone = append(gone, g.columns[i])
		g.columns, g.cells, g.widths = slices.Delete(g.columns, i, i+1), slices.Delete(g.cells, i, i+1), slices.Delete(g.widths, i, i+1)
	}
	if width > 0 {
		g.squeeze(width)
	}
	slices.SortStableFunc(gone, func(a, b Column) int { return position(order, a) - position(order, b) })
	return names(gone)
}

func position(columns []Column, c Column) int {
	return slices.IndexFunc(columns, func(o Column) bool { return o == c })
}

// names returns the titles of columns; several of a kind have one name.
func names(columns []Column) (list []string) {
	kinds := map[string]int{}
	for _, c := range columns {
		kinds[c.Plural]++
	}
	for _, c := range columns {
		n := kinds[c.Plural]
		switch {
		case c.Plural == "" || n == 1:
			list = append(list, c.Title)
		case n > 1:
			list = append(list, fmt.Sprintf("%d %s", n, c.Plural))
			kinds[c.Plural] = 0
		}
	}
	return list
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

// squeeze cuts flexible columns until a line fits: first those that would be left out
// first, each down to what it keeps; then all, the widest first. The last column that is
// left is cut, whatever it is.
func (g *grid) squeeze(width int) {
	over := len(gap)*(len(g.columns)-1) - width
	for _, w := range g.widths {
		over += w
	}
	for _, least := range []int{shortest, 1} {
		for over > 0 {
			at := g.widest(least)
			if at < 0 {
				break
			}
			g.widths[at]--
			over--
		}
	}
}

// widest returns the flexible column to be cut next, of those that are wider than least;
// -1 when there is none.
func (g *grid) widest(least int) int {
	at := -1
	for i, c := range g.columns {
		floor := least
		if least > 1 {
			floor = max(least, Width(c.Title))
		}
		if g.widths[i] <= floor || !c.Flex && len(g.columns) > 1 {
			continue
		}
		if at < 0 || c.Priority > g.columns[at].Priority || c.Priority == g.columns[at].Priority && g.widths[i] > g.widths[at] {
			at = i
		}
	}
	return at
}

func (g *grid) lines() []string {
	titles := make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i] = c.Title
	}
	var lines []string
	if slices.ContainsFunc(titles, func(title string) bool { return title != "" }) {
		lines = append(lines, g.line(titles))
	}
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
		cell = Cut(cell, g.widths[i])
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
