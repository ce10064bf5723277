package table

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func points() *Table {
	return &Table{
		Noun: "points",
		Columns: []Column{
			{Title: "point", Right: true},
			{Title: "phase"},
			{Title: "wall [ms]", Right: true},
			{Title: "regime", Priority: 2},
			{Title: "empty", Priority: 1},
			{Title: "mode", Priority: 3},
		},
		Rows: [][]string{
			{"1", "prefill", "12.984", "not_applicable", "", "NONE"},
			{"22", "decode", "7.1", "real_kv", "", "FULL"},
			{"3", "decode", "100.25"},
		},
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name         string
		table        *Table
		width, limit int
		want         string
	}{
		{"whole", points(), 0, 0, `
point  phase    wall [ms]  regime          mode
    1  prefill     12.984  not_applicable  NONE
   22  decode         7.1  real_kv         FULL
    3  decode      100.25
`},
		{"the highest priority goes first", points(), 46, 0, `
point  phase    wall [ms]  regime
    1  prefill     12.984  not_applicable
   22  decode         7.1  real_kv
    3  decode      100.25
(left out for lack of room: mode)
`},
		{"rows and columns", points(), 25, 2, `
point  phase    wall [ms]
    1  prefill     12.984
   22  decode         7.1
(2 of 3 points shown)
(left out for lack of
room: regime, mode)
`},
		{"even what matters goes, from the end", points(), 21, 1, `
point  phase
    1  prefill
(1 of 3 points shown)
(left out for lack of
room: wall [ms],
regime, mode)
`},
		{"no rows", &Table{Columns: []Column{{Title: "a"}}, Noun: "points"}, 80, 0, ""},
		{"rows that were never made", &Table{Columns: []Column{{Title: "a"}}, Noun: "points", Rows: [][]string{{"x"}}, Total: 9}, 80, 0, `
a
x
(1 of 9 points shown)
`},
		{"columns that were never made", &Table{Columns: []Column{{Title: "a"}}, Rows: [][]string{{"x"}}, More: []string{"rank 32-63"}}, 80, 0, `
a
x
(left out for lack of room: rank 32-63)
`},
		{"columns that can be seen elsewhere", &Table{Columns: []Column{{Title: "a"}}, Rows: [][]string{{"x"}}, More: []string{"b"}, Elsewhere: "; see c"}, 80, 0, `
a
x
(left out for lack of room: b; see c)
`},
		{"columns of a kind", &Table{
			Columns: []Column{{Title: "a"}, {Title: "rank 0 [ms]", Priority: 2, Plural: "ranks"}, {Title: "rank 1 [ms]", Priority: 2, Plural: "ranks"}, {Title: "rank 2 [ms]", Priority: 2, Plural: "ranks"}},
			Rows:    [][]string{{"x", "1", "2", "3"}},
		}, 20, 0, `
a  rank 0 [ms]
x  1
(left out for lack
of room: 2 ranks)
`},
		{"one of a kind", &Table{
			Columns: []Column{{Title: "a"}, {Title: "rank 0 [ms]", Priority: 2, Plural: "ranks"}, {Title: "rank 1 [ms]", Priority: 2, Plural: "ranks"}},
			Rows:    [][]string{{"x", "1", "2"}},
		}, 20, 0, `
a  rank 0 [ms]
x  1
(left out for lack
of room: rank 1
[ms])
`},
		{"flexible columns shrink", &Table{
			Columns: []Column{{Title: "setting"}, {Title: "value", Flex: true}, {Title: "shape", Flex: true}},
			Rows:    [][]string{{"sizes", "[1,2,4,8,16,32,64,128,256]", "{\"batch\":256}"}, {"mode", "FULL", "x"}},
		}, 42, 0, `
setting  value               shape
sizes    [1,2,4,8,16,32,64…  {"batch":256}
mode     FULL                x
`},
		{"no titles", &Table{Columns: []Column{{}, {Right: true}}, Rows: [][]string{{"all", "9"}, {"", "10"}}}, 0, 0, `
all   9
     10
`},
		{"what a terminal could obey", &Table{
			Columns: []Column{{Title: "a\x1b[2J"}, {Title: "b", Right: true}},
			Rows:    [][]string{{"line\nend\u202e", "1"}, {"漢字", "2"}, {"e\u0301", "3"}},
		}, 0, 0, `
a\u001b[2J       b
line\nend\u202e  1
漢字             2
e` + "\u0301" + `                3
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := strings.Join(c.table.Lines(c.width, c.limit), "\n")
			if diff := cmp.Diff(strings.TrimSpace(c.want), strings.TrimSpace(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 3, "é": 1, "e\u0301": 1, "漢字": 4, "ｆ": 2, "😀": 2, "…": 1, "ﾊ": 1} {
		if got := Width(text); got != want {
			t.Errorf("Width(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"漢字", 3, "漢…"}, {"漢字", 2, "…"}, {"ab", 1, "…"}} {
		if got := Cut(c.text, c.width); got != c.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestFields(t *testing.T) {
	fields := []Field{{"run", "1f6f"}, {"nothing", ""}, {"model", "a very long name of\na model that wraps"}}
	want := []string{"run    1f6f", "model  a very long name", `       of\na model that`, "       wraps"}
	if diff := cmp.Diff(want, Fields(fields, 24)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := Fields(fields, 0); len(got) != 2 {
		t.Errorf("without a width: %q", got)
	}
}

func TestParagraph(t *testing.T) {
	want := []string{"- one two three four", "  five"}
	if diff := cmp.Diff(want, Paragraph("- ", "one two three four five", 20)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLongTextsAreCut(t *testing.T) {
	if got := Text(strings.Repeat("x", 1<<20)); len(got) > most+len("…") {
		t.Errorf("%d bytes", len(got))
	}
	if got := Text(strings.Repeat("漢", most)); strings.Contains(got, `\x`) {
		t.Errorf("cut inside of a character: …%s", got[len(got)-12:])
	}
}

// FuzzLines: whatever the cells hold, each line fits and can be shown.
func FuzzLines(f *testing.F) {
	f.Add("point", "1\x1b[2J", "漢字\u0301", "", 40, 2, true)
	f.Add("e\u0301", "\xff", strings.Repeat("x", 300), "a b c", 20, 0, false)
	f.Fuzz(func(t *testing.T, title, a, b, c string, width, limit int, flex bool) {
		tb := &Table{
			Columns: []Column{{Title: title, Right: true}, {Title: "t", Priority: 1, Flex: flex}, {Title: title + "2", Priority: 2}, {Title: c, Flex: true}},
			Rows:    [][]string{{a, b, c, title}, {b, c}, {c, a, b, a}, {}},
			Noun:    "rows", Total: 5,
		}
		if width > 1<<16 {
			width = 1 << 16
		}
		lines := tb.Lines(width, limit)
		lines = append(lines, Fields([]Field{{a, b}, {title, c}}, width)...)
		lines = append(lines, Paragraph("- ", b, width)...)
		for _, line := range lines {
			if err := fits(line, width); err != nil {
				t.Error(err)
			}
		}
		if !strings.Contains(strings.Join(lines, " "), "of 5 rows") {
			t.Error("it is not said that rows were left out")
		}
	})
}

func fits(line string, width int) error {
	// A combining character can join a line's first, and a wide one needs two columns.
	if limit := bounded(width); limit > 0 && Width(line) > limit {
		return fmt.Errorf("%d columns of %d: %q", Width(line), limit, line)
	}
	for _, r := range line {
		if !unicode.IsGraphic(r) {
			return fmt.Errorf("%U in %q", r, line)
		}
	}
	return nil
}
