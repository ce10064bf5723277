package artifact_test

import (
	"fmt"

	"github.com/fpm-project/fpm/internal/artifact"
)

func Example() {
	base := artifact.ParseBase("/data/run.json.gz")
	fmt.Println(base.Rank(0))
	fmt.Println(base.Rank(3))
	fmt.Println(base.Merged(0))
	fmt.Println(base.Merged(8))
	fmt.Println(artifact.Sidecar(base.Merged(0)))
	// Output:
	// /data/run.json
	// /data/run_dp3.json
	// /data/run_merged.json
	// /data/run_dp8_merged.json
	// /data/run_merged_worker_probe.json
}

func ExampleSplitRank() {
	base, rank, ok := artifact.SplitRank("/data/run_dp3.json.zst")
	fmt.Println(base.Rank(0), rank, ok)
	// Output: /data/run.json 3 true
}

func ExampleParseRanks() {
	set, err := artifact.ParseRanks("7,0-3")
	fmt.Println(set, len(set), err)
	_, err = artifact.ParseRanks("3-0")
	fmt.Println(err)
	// Output:
	// 0-3,7 5 <nil>
	// rank set "3-0": the range 3-0 runs backwards; write ranks and ranges, such as 0-3,7
}
