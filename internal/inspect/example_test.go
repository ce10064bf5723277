package inspect_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/inspect"
)

func ExampleRead() {
	const artifact = `{"dp": {"rank": 0, "size": 1}, "iteration_groups": [{
		"benchmark_id": 1,
		"point": {"point_type": "decode", "benchmark_id": 1, "batch_size": 4, "total_kv_read_tokens": 64},
		"wall_time": 0.025,
		"rank_results": [{"dp_rank": 0, "fpms": [{"wall_time": 0.025, "scheduled_requests": {
			"num_prefill_requests": 0, "sum_prefill_tokens": 0, "sum_prefill_kv_tokens": 0,
			"num_decode_requests": 3, "sum_decode_kv_tokens": 64}}]}]}]}`
	out := finding.NewCollector(0)
	scope := finding.Scope{Out: out, File: "benchmark_results.json", Rank: finding.NoRank}
	facts, err := inspect.Read(strings.NewReader(artifact), inspect.Options{File: scope.File, Strict: &scope})
	if err != nil {
		fmt.Println(err)
		return
	}
	p := facts.Points[0]
	fmt.Println(p.Type, p.BatchSize, p.KVReadTokens, p.Walls)
	for _, f := range out.Findings() {
		fmt.Printf("%s at %s:\n  %s, expected %s\n", f.Rule, f.Pointer, f.Message, f.Expected)
	}
	// Output:
	// decode 4 64 [0.025]
	// strict.scheduled at /iteration_groups/0/rank_results/0/fpms/0/scheduled_requests/num_decode_requests:
	//   what was scheduled is not the point, expected 4
}
