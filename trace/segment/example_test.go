package segment_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fpm-project/fpm/trace/segment"
)

// A writer rolls to a new segment when one is full; a reader goes through them in order.
func Example() {
	dir, err := os.MkdirTemp("", "segments")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	prefix := filepath.Join(dir, "run")

	w, err := segment.NewWriter(segment.Options{Prefix: prefix, Producer: "worker/7", RollBytes: 24})
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 5 {
		if err := w.Append(fmt.Appendf(nil, `{"row":%d}`+"\n", i)); err != nil {
			fmt.Println(err) // the row is kept for the next flush
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	sources, err := segment.Find([]string{prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := segment.NewReader(sources, segment.ReaderOptions{})
	defer r.Close()
	for {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			fmt.Println(err)
		case rec.Hole != nil:
			fmt.Println(rec.Hole.Fault)
		default:
			fmt.Println(filepath.Base(rec.Source.Path), string(rec.Line))
		}
	}
	// Output:
	// run.worker_7.000000.jsonl.gz {"row":0}
	// run.worker_7.000000.jsonl.gz {"row":1}
	// run.worker_7.000001.jsonl.gz {"row":2}
	// run.worker_7.000001.jsonl.gz {"row":3}
	// run.worker_7.000002.jsonl.gz {"row":4}
}
