package engine_test

import (
	"fmt"

	"github.com/fpm-project/fpm/engine"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func Example() {
	ranks := []string{
		`{"attention": {"backend_requested": "FLASHINFER"}, "parallel": {"data_parallel_rank": 0}}`,
		`{"attention": {"backend_requested": null}, "parallel": {"data_parallel_rank": 1}}`,
		`{"capture_error": "out of memory"}`,
	}
	findings := finding.NewCollector(0)
	checker := engine.NewChecker(findings)
	for rank, text := range ranks {
		block, err := jsonvalue.Parse([]byte(text), 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		checker.Add(rank, fmt.Sprintf("rank%d.json", rank), 0, block)
	}
	checker.Finish()
	for _, f := range findings.Findings() {
		fmt.Printf("%s[%s] %s: %s\n", f.Severity, f.Rule, f.Pointer, f.Message)
		fmt.Println("  expected", f.Expected, "got", f.Actual)
	}
	if block, ok := checker.Merged(); ok {
		fmt.Println(string(block.Append(nil, 0)))
	}
	// Output:
	// error[engine.mismatch] /engine/attention/backend_requested: rank 1 started differently from rank 0
	//   expected "FLASHINFER" (rank 0) got null (rank 1)
	// warning[engine.unverified] /engine/capture_error: rank 2 is left out of the engine comparison: the capture of its engine block failed
	//   expected an engine object without capture_error got "out of memory"
	// {
	//   "attention": {
	//     "backend_requested": "FLASHINFER"
	//   },
	//   "parallel": {
	//     "data_parallel_rank": null
	//   },
	//   "capture_errors": {
	//     "2": "out of memory"
	//   }
	// }
}
