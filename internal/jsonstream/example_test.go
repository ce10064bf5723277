package jsonstream_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// A document is walked for what matters; everything else is skipped, and checked.
func ExampleScanner() {
	text := `{"run_id": "r1", "results": [{"wall_time": 0.5}, {"wall_time": 0.25}], "note": {"by": "hand"}}`
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{})
	_, _, err := s.Object(func(name []byte) error {
		switch string(name) {
		case "run_id":
			v, err := s.Scalar()
			fmt.Printf("run_id is %s\n", v.Raw)
			return err
		case "results":
			_, _, err := s.Array(func(i int) error {
				span, err := s.Skip()
				fmt.Printf("result %d: %s\n", i, text[span.Off:span.End()])
				return err
			})
			return err
		}
		_, err := s.Skip()
		return err
	})
	if err == nil {
		err = s.End()
	}
	fmt.Println("error:", err)
	// Output:
	// run_id is "r1"
	// result 0: {"wall_time": 0.5}
	// result 1: {"wall_time": 0.25}
	// error: <nil>
}

func ExampleCheck() {
	_, err := jsonstream.Check(strings.NewReader(`{"timing": {"elapsed": NaN}}`), jsonstream.Limits{})
	fault := err.(*jsonstream.Fault)
	fmt.Println(fault.Rule, fault.Pointer, fault.Offset, fault.Message)
	// Output: json.number /timing/elapsed 23 NaN is no JSON number
}
