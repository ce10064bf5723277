package jsonspan_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/jsonspan"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// The steps of a comparison, from the cheapest on.
func ExampleComparer() {
	const a = `{"id": 1, "wall": 0.5}`
	c := jsonspan.New()
	for _, b := range []string{
		`{"id": 1, "wall": 0.5}`,
		`{"id":1,"wall":0.5}`,
		`{"wall": 5e-1, "id": 1}`,
		`{"id": 1, "wall": 0.25}`,
	} {
		spanA, spanB := jsonstream.Span{Len: int64(len(a))}, jsonstream.Span{Len: int64(len(b))}
		same, err := c.Bytes(strings.NewReader(a), spanA, strings.NewReader(b), 0)
		if err != nil {
			fmt.Println(err)
		}
		_, text, err := c.Text(strings.NewReader(a), spanA, strings.NewReader(b), spanB)
		if err != nil {
			fmt.Println(err)
		}
		d, err := c.Values(strings.NewReader(a), spanA, strings.NewReader(b), spanB)
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println("bytes:", same, "text:", text, "values:", d == nil)
		if d != nil {
			fmt.Println(d.Pointer, b[d.OffB:])
		}
	}
	// Output:
	// bytes: true text: true values: true
	// bytes: false text: true values: true
	// bytes: false text: false values: true
	// bytes: false text: false values: false
	// /wall 0.25}
}
