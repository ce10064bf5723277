package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// traceLine returns a row of a trace.
func traceLine(counter int) []byte {
	fpm := fmt.Appendf(nil, `{"version":1,"worker_id":"w","dp_rank":0,"counter_id":%d,"wall_time":0.5,"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"sum_prefill_kv_tokens":0,"num_decode_requests":1,"sum_decode_kv_tokens":9},"queued_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"num_decode_requests":0,"sum_decode_kv_tokens":0}}`, counter)
	return wire.AppendRow(nil, wire.Row{Namespace: "n", Component: "c", ProducerID: "w", Mode: wire.Full, ObservedUnixMS: 1, FPM: fpm})
}

// each hands over what is written, write by write.
type each chan string

func (e each) Write(p []byte) (int, error) {
	e <- string(p)
	return len(p), nil
}

// Following goes on across rolls, and the signal that ends it is no failure.
func TestTraceCatFollow(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "run")
	w, err := segment.NewWriter(segment.Options{Prefix: prefix, Producer: "w", RollBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stderr bytes.Buffer
	out, code := make(each), make(chan int)
	go func() {
		code <- run(ctx, []string{"trace", "cat", "--follow", prefix}, strings.NewReader(""), out, &stderr, noEnv)
	}()
	for i := range 3 {
		if err := w.Append(traceLine(i)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := <-out; got != string(traceLine(i)) {
			t.Errorf("row %d: %s", i, got)
		}
	}
	cancel()
	if got := <-code; got != 0 || stderr.Len() > 0 {
		t.Errorf("exit status %d: %s", got, stderr.String())
	}
}

// A reader of the rows that goes away is no failure.
func TestTraceCatClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, bytes.Repeat(traceLine(1), 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	r, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"trace", "cat", path}, strings.NewReader(""), stdout, &stderr, noEnv); code != 0 || stderr.Len() > 0 {
		t.Errorf("exit status %d: %s", code, stderr.String())
	}
}
