package top

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	simulated "github.com/fpm-project/fpm/internal/simulate/stream"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

const patience = time.Minute

// until looks at a board until it shows what is expected.
func until(t *testing.T, b *Board, what string, ok func(Snapshot) bool) {
	t.Helper()
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-ticks.C {
		if ok(b.Snapshot(time.Now())) {
			return
		}
	}
	t.Fatalf("%s: %+v", what, b.Snapshot(time.Now()).Endpoints)
}

// TestWatch watches two ranks that publish, one that refuses connections, and messages of
// which some are wrong.
func TestWatch(t *testing.T) {
	base := filepath.Join(t.TempDir(), "fpm")
	opt := simulated.Options{
		Workers: 1, Ranks: 2, Addresses: simulated.IPC(base, 2), WorkerID: "w", Load: simulated.Steady, Rate: 1000, Count: 200,
		Bad: simulated.BadVersion, Await: true, HighWater: 1000, Linger: patience,
	}
	ctx, cancel := context.WithCancel(t.Context())
	published := make(chan []simulated.Result, 1)
	go func() {
		results, err := simulated.Run(ctx, opt)
		if err != nil {
			t.Error(err)
		}
		published <- results
	}()
	endpoints, err := subscribe.IPC(base, []int{0, 1, 2}, subscribe.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	b := NewBoard(endpoints[0].Address, endpoints[1].Address, endpoints[2].Address)
	watched := make(chan error, 1)
	go func() { watched <- Watch(ctx, b, endpoints) }()

	until(t, b, "all messages", func(s Snapshot) bool {
		return len(s.Lines) == 2 && s.Lines[0].Messages == 180 && s.Lines[1].Messages == 180
	})
	<-published
	until(t, b, "both publishers gone", func(s Snapshot) bool {
		return s.Endpoints[0].State == Lost && s.Endpoints[1].State == Lost && s.Endpoints[2].State == Waiting && s.Endpoints[2].Detail != ""
	})
	snap := b.Snapshot(time.Now())
	for i, l := range snap.Lines {
		if l.Worker != "w" || l.Rank != int64(i) || l.Source != endpoints[i].Address || l.Gaps < 19 || l.Sampled {
			t.Errorf("%+v", l)
		}
		if e := snap.Endpoints[i]; e.Refused != 20 || !strings.Contains(e.Refusal, "version") || e.Lines != 1 {
			t.Errorf("%+v", e)
		}
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

func TestText(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"":                        nil,
		"EOF":                     io.EOF,
		"connection refused":      refused,
		"connection refused; EOF": errors.Join(refused, refused, io.EOF),
	} {
		if got := subscribe.Reason(err); got != want {
			t.Errorf("%v is %q, want %q", err, got, want)
		}
	}
}

func TestWatchRefusesWhatIsNoEndpoint(t *testing.T) {
	if err := Watch(t.Context(), NewBoard("udp://h"), []subscribe.Endpoint{{Address: "udp://h"}}); err == nil {
		t.Error("an address that is none is watched")
	}
}

// TestFollow follows a trace that is written while it is watched.
func TestFollow(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "fpm")
	w, err := segment.NewWriter(segment.Options{Prefix: prefix, Producer: "p", RollBytes: 2000, MaxSegments: 100})
	if err != nil {
		t.Fatal(err)
	}
	line := func(rank string, mode wire.Mode, counter string) []byte {
		fpm := `{"version":1,"worker_id":"w","dp_rank":` + rank + `,"counter_id":` + counter + `,"wall_time":0.5,` +
			`"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"var_prefill_length":0.0,"sum_prefill_kv_tokens":0,"num_decode_requests":1,"sum_decode_kv_tokens":1,"var_decode_kv_tokens":0.0},` +
			`"queued_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"var_prefill_length":0.0,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}`
		return wire.AppendRow(nil, wire.Row{Namespace: "n", Component: "c", ProducerID: "p", Mode: mode, ObservedUnixMS: start.UnixMilli(), FPM: []byte(fpm)})
	}
	write := func(rows ...[]byte) {
		t.Helper()
		for _, row := range rows {
			if err := w.Append(row); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	write(line("0", wire.Full, "1"))
	b, all := NewBoard(), NewBoard()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- Follow(ctx, b, []string{prefix}, false) }()
	go func() { done <- Follow(ctx, all, []string{prefix}, true) }()
	until(t, all, "what was there", func(s Snapshot) bool { return len(s.Lines) == 1 })
	// Rows are written until the second follower, which skips what was there, has begun.
	until(t, b, "a new row", func(s Snapshot) bool {
		write(line("0", wire.Full, "2"), []byte("no row\n"))
		return len(s.Lines) == 1
	})
	write(line("0", wire.Full, "7"), line("1", wire.Sampled, "9"), line("1", wire.Sampled, "900"))
	for _, board := range []*Board{b, all} {
		until(t, board, "the last row", func(s Snapshot) bool { return len(s.Lines) == 2 && s.Lines[1].Messages == 2 })
		s := board.Snapshot(start)
		if l := s.Lines[0]; l.Worker != "w" || l.Source != "p" || l.Gaps != 4 || l.Sampled || l.Wall != 0.5 {
			t.Errorf("full: %+v", l)
		}
		if l := s.Lines[1]; l.Rank != 1 || l.Gaps != 0 || !l.Sampled {
			t.Errorf("sampled: %+v", l)
		}
	}
	cancel()
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestFollowWhatCannotBeRead(t *testing.T) {
	if err := Follow(t.Context(), NewBoard(), []string{"-"}, true); err == nil {
		t.Error("standard input is followed")
	}
	// A prefix without segments is waited for.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	prefix := filepath.Join(t.TempDir(), "later")
	b := NewBoard()
	go func() { done <- Follow(ctx, b, []string{prefix}, true) }()
	row := wire.AppendRow(nil, wire.Row{ProducerID: "p", Mode: wire.Full, FPM: []byte(`{"version":1,"worker_id":"w","dp_rank":0,"counter_id":0,"wall_time":0.0,"scheduled_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"sum_prefill_kv_tokens":0,"num_decode_requests":0,"sum_decode_kv_tokens":0},"queued_requests":{"num_prefill_requests":0,"sum_prefill_tokens":0,"num_decode_requests":0,"sum_decode_kv_tokens":0}}`)})
	if err := os.WriteFile(prefix+".jsonl", row, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(prefix+".jsonl", prefix); err != nil {
		t.Fatal(err)
	}
	until(t, b, "the row", func(s Snapshot) bool { return len(s.Lines) == 1 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
