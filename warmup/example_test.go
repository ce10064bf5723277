package warmup_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/warmup"
)

func Example() {
	text := `{"status": "recorded", "records": [
  {"kind": "global", "status": "completed", "validation": {"status": "not_performed"},
   "forward_index_start": 0, "forward_index_end": 5, "observed_forward_count": 4},
  {"kind": "eager_shape", "status": "completed", "validation": {"status": "passed"},
   "forward_index_start": 5, "forward_index_end": 12}]}`
	findings := finding.NewCollector(0)
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{})
	ledger, err := warmup.Read(s, finding.Scope{Out: findings, File: "benchmark_results.json"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range findings.Findings() {
		fmt.Printf("%s at %s: %s, expected %s\n", f.Rule, f.Pointer, f.Message, f.Expected)
	}

	// A point was measured after both records, from forward pass 11 on: the second had
	// not ended by then.
	count := func(n int64) jsonstream.Field { return jsonstream.Field{Kind: '0', Int: n, Integer: true} }
	point := warmup.NewReference(count(2), count(11))
	fmt.Println(ledger.Records(), ledger.Reference(point) == warmup.Breach{})
	fmt.Println(ledger.Overlap(point).Breach("of rank 0").Message)
	// Output:
	// warmup.count at /warmup_evidence/records/0/observed_forward_count: observed_forward_count is not the length of the record's range, expected 5
	// 2 true
	// a warmup record that this measurement counts as over reaches into it: record 1 of rank 0 ends at forward index 12, the measurement starts at 11
}
