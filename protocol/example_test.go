package protocol_test

import (
	"fmt"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/protocol"
)

func Example() {
	declared, err := jsonvalue.Parse([]byte(`{"schema_version": 1}`), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	point, err := jsonvalue.Parse([]byte(`{"point_type": "decode", "benchmark_id": 1, "batch_size": 4}`), 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	findings := finding.NewCollector(0)
	scope := finding.Scope{Out: findings, File: "benchmark_results.json", Rank: 0}
	contract := protocol.Check(declared, scope)
	key, _ := protocol.PointKey(point)
	fmt.Println(contract.Measurement == protocol.Declared, contract.Execution == protocol.Declared, key[:8])

	fpm := `{"dp_rank": 0, "counter_id": 1, "wall_time": 0.025, "benchmark_measurement": {
		"schema_version": 1, "dp_rank": 0, "point_key": "` + key + `",
		"preparation": {"grid_digest": "of another run"}}}`
	previous := int64(-1)
	place := protocol.Place{Scope: scope.Of(1), ID: 1, HasID: true, HasRank: true, Key: key, Previous: &previous}
	reader := protocol.NewReader(contract, "of this run")
	read, err := reader.Read(jsonstream.New(strings.NewReader(fpm), 0, 0, jsonstream.Strict, jsonstream.Limits{}), &place)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(read.WallTime())
	for _, f := range findings.Findings() {
		fmt.Printf("%s at %s:\n  %s, expected %s\n", f.Rule, f.Pointer, f.Message, f.Expected)
	}
	// Output:
	// true false 762fa99e
	// 0.025 true
	// measurement.identity at /iteration_groups/0/rank_results/0/fpms/0/benchmark_measurement/preparation/grid_digest:
	//   the measurement was prepared for another grid, expected "of this run"
}
