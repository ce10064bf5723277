package trace_test

import (
	"fmt"

	"github.com/fpm-project/fpm/trace"
)

// All that is wrong with an environment is told at once.
func ExampleParsePolicy() {
	environment := map[string]string{"DYN_FPM_MODE": "fast", "DYN_FPM_MAX_SEGMENTS": "0", "DYN_FPM_OUTPUT_PATH": "/data/fpm"}
	_, err := trace.ParsePolicy(trace.EnvSettings(func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	}))
	fmt.Println(err)
	// Output:
	// DYN_FPM_MODE is "fast": it takes sampled or full; DYN_FPM_MAX_SEGMENTS is "0": it takes a positive integer
}

func ExampleEphemeralOverlap() {
	block, err := trace.BlockPorts(32760, 8)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(block)
	fmt.Println(trace.EphemeralOverlap(block, trace.Ports{First: 32768, Last: 60999}) != "")
	// Output:
	// 32760-32768
	// true
}
