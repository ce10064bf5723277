package trace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

const metric = `{"version":1,"worker_id":"w7","dp_rank":0,"counter_id":%d,"wall_time":0.02,` +
	`"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"sum_prefill_kv_tokens":0,"num_decode_requests":8,"sum_decode_kv_tokens":900},` +
	`"queued_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"num_decode_requests":0,"sum_decode_kv_tokens":0}}`

// Rows are written to a file, and summarised. The message with the counter 3 is missing.
func Example() {
	dir, err := os.MkdirTemp("", "trace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	var text []byte
	for i, counter := range []int{1, 2, 4, 5} {
		text = wire.AppendRow(text, wire.Row{
			Namespace: "dynamo", Component: "backend", ProducerID: "w7", Mode: wire.Full,
			ObservedUnixMS: 1_790_000_000_000 + int64(i)*25, FPM: fmt.Appendf(nil, metric, counter),
		})
	}
	path := filepath.Join(dir, "rows.jsonl")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		fmt.Println(err)
		return
	}

	sources, err := segment.Find([]string{path})
	if err != nil {
		fmt.Println(err)
		return
	}
	stats, err := trace.Summarise(context.Background(), sources, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range stats.Streams {
		fmt.Printf("rank %d of %s: %d rows in %.3f s, half of the passes within %.3f s\n", s.ID.Rank, s.ID.Producer, s.Rows, s.Seconds(), s.Percentile(0.5))
		for _, g := range s.Gaps {
			fmt.Printf("missing: %d to %d, before line %d\n", g.First, g.Last, g.Line)
		}
	}
	// Output:
	// rank 0 of w7: 4 rows in 0.075 s, half of the passes within 0.020 s
	// missing: 3 to 3, before line 3
}
