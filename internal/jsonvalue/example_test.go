package jsonvalue_test

import (
	"fmt"

	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func Example() {
	parse := func(text string) *jsonvalue.Value {
		v, err := jsonvalue.Parse([]byte(text), 0)
		if err != nil {
			panic(err)
		}
		return v
	}
	a := parse(`{"batch_size": 4, "wall_time": 0.50, "rows": null}`)
	b := parse(`{"wall_time": 5e-1, "batch_size": 8}`)
	jsonvalue.Diff(a, b, "/point", func(d jsonvalue.Difference) bool {
		fmt.Println(d.Pointer, d.A.Excerpt(20), "against", d.B.Excerpt(20))
		return true
	})
	// Output:
	// /point/batch_size 4 against 8
	// /point/rows null against absent
}
