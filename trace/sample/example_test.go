package sample_test

import (
	"fmt"
	"time"

	"github.com/fpm-project/fpm/trace/sample"
)

func Example() {
	start := time.Now()
	s := sample.New(sample.Options[string]{
		Start: start, Interval: 5 * time.Second,
		Write: func(payload string) { fmt.Println("write", payload) },
	})
	key := sample.Key{Namespace: "dynamo", Component: "backend", WorkerID: "w0", Rank: 0}
	s.Put(key, 1, "forward pass 1")
	s.Put(key, 2, "forward pass 2")
	s.Tick(start.Add(time.Second)) // too early
	s.Tick(start.Add(5 * time.Second))
	s.Put(key, 2, "forward pass 2")
	s.Tick(start.Add(10 * time.Second)) // nothing new
	// Output:
	// write forward pass 2
}
