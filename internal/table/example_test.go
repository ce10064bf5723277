package table_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/table"
)

// A table that does not fit says what it left out.
func ExampleTable_Lines() {
	t := table.Table{
		Noun: "points",
		Columns: []table.Column{
			{Title: "point", Right: true},
			{Title: "phase"},
			{Title: "wall [ms]", Right: true},
			{Title: "expected graph mode", Priority: 1},
		},
		Rows: [][]string{
			{"1", "prefill", "12.984", "NONE"},
			{"2", "decode", "7.100", "FULL"},
			{"3", "decode", "8.250", "FULL"},
		},
	}
	fmt.Println(strings.Join(t.Lines(40, 2), "\n"))
	// Output:
	// point  phase    wall [ms]
	//     1  prefill     12.984
	//     2  decode       7.100
	// (2 of 3 points shown)
	// (left out for lack of room: expected
	// graph mode)
}
