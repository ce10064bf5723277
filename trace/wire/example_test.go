package wire_test

import (
	"fmt"

	"github.com/fpm-project/fpm/trace/wire"
)

// A message becomes a row, or is refused for a reason that can be counted.
func ExampleDecoder_Decode() {
	var decoder wire.Decoder
	frames := message(41, idle(41).encode())
	pass, _, err := decoder.Decode(nil, frames)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("counter", pass.CounterID, "of rank", pass.DPRank, "heartbeat:", pass.Heartbeat())

	_, _, err = decoder.Decode(nil, message(42, pass42WithoutVersion()))
	fmt.Println(err)
	// Output:
	// counter 41 of rank 2 heartbeat: true
	// version: version is missing
}

func pass42WithoutVersion() []byte { return pass(42).without("version").encode() }
