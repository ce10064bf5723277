package simulate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

func Example() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	result, err := simulate.Run(context.Background(), simulate.Options{Dir: dir, Ranks: 2, Points: 8, Raw: 4})
	if err != nil {
		panic(err)
	}
	for _, file := range result.Files {
		fmt.Println(filepath.Base(file))
	}
	// Output:
	// benchmark_results.json
	// benchmark_results_dp1.json
}

// One rank alone has nobody to disagree with.
func ExampleExcludedError() {
	_, err := simulate.Run(context.Background(), simulate.Options{
		Dir: os.TempDir(), Ranks: 1, Points: 8, Raw: 4, Break: finding.EngineMismatch,
	})
	fmt.Println(err)
	// Output:
	// engine.mismatch cannot be broken by this run: it needs at least 2 ranks
}
