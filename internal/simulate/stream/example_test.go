package stream_test

import (
	"context"
	"fmt"
	"log"

	"github.com/fpm-project/fpm/internal/simulate/stream"
)

// A fleet of two workers with two ranks each, which nobody listens to. Every fiftieth
// message or so gets a number and is not sent.
func ExampleRun() {
	results, err := stream.Run(context.Background(), stream.Options{
		Workers: 2, Ranks: 2, Addresses: stream.TCP("127.0.0.1", 0, 4), WorkerID: "worker",
		Load: stream.Steady, Count: 1000, Drop: 0.02, HighWater: stream.DefaultHighWater,
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range results {
		fmt.Println(r.Worker, r.Rank, r.Sent+r.Dropped, r.Dropped > 0, r.Next)
	}
	// Output:
	// worker-0 0 1000 true 1000
	// worker-0 1 1000 true 1000
	// worker-1 0 1000 true 1000
	// worker-1 1 1000 true 1000
}
