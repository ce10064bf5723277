package pyjson_test

import (
	"fmt"

	"github.com/fpm-project/fpm/internal/pyjson"
)

func Example() {
	doc := pyjson.Object{
		{Key: "wall_time", Value: 0.00001},
		{Key: "worker", Value: "é"},
		{Key: "ranks", Value: pyjson.Array{0, 1}},
		{Key: "skipped_points", Value: pyjson.Array{}},
	}
	fmt.Println(string(pyjson.Append(nil, doc, 0)))
	// Output:
	// {
	//   "wall_time": 1e-05,
	//   "worker": "\u00e9",
	//   "ranks": [
	//     0,
	//     1
	//   ],
	//   "skipped_points": []
	// }
}

// A value that moves to another depth of a document keeps its literals.
func ExampleReindenter() {
	r := pyjson.NewReindenter(1)
	out := r.Append(nil, []byte(`{"a": 1.50, "b`))
	out = r.Append(out, []byte(`": [ ]}`))
	fmt.Println(string(out))
	// Output:
	// {
	//     "a": 1.50,
	//     "b": []
	//   }
}
