package inspect_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/inspect"
)

// A run that calls itself complete can be unusable all the same.
func ExampleExplain() {
	artifact := `{
	  "status": "complete", "valid": false, "usable": false, "run_id": "r",
	  "dp": {"rank": 0, "size": 1},
	  "coverage": {"expected_points": 2, "completed_points": 1, "skipped_points": 1},
	  "skipped_points": [{"point": {"benchmark_id": 2, "point_type": "decode", "batch_size": 4, "total_kv_read_tokens": 512},
	    "reason": "measured_kv_read_mismatch"}],
	  "results": [{"point": {"benchmark_id": 1, "point_type": "decode"}, "fpms": [{"wall_time": 0.004}]}],
	  "iteration_groups": [{"benchmark_id": 1}]
	}`
	facts, err := inspect.Read(strings.NewReader(artifact), inspect.Options{File: "results.json"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range inspect.Explain([]*inspect.Facts{facts}) {
		if e.Severity == inspect.Attention {
			fmt.Println(e.Kind)
		}
	}
	fmt.Println(inspect.PlannerView(facts)[0].Read, "FPM for a planner")
	// Output:
	// complete-not-valid
	// skipped-points
	// 1 FPM for a planner
}
