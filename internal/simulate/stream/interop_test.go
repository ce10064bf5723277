package stream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/zmqtest"
)

// TestLibzmqSubscribes has a subscriber on libzmq, with heartbeats, receive two ranks over
// TCP and two over Unix domain sockets, and compares every number with the story.
func TestLibzmqSubscribes(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	opt := options()
	opt.Workers, opt.Ranks, opt.Count, opt.Rate, opt.WorkerID, opt.Seed = 1, 4, 300, 500, "7587890123456789", 5
	opt.Addresses = append(TCP("127.0.0.1", 0, 2), IPC(filepath.Join(t.TempDir(), "fpm"), 2)...)
	opt.Day, opt.Load, opt.Linger = DefaultDay, Diurnal, patience
	r := start(t, opt)
	args := []string{"testdata/subscriber.py", "300"}
	for _, rank := range r.ranks {
		args = append(args, rank.Address)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), zmqtest.Python, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	for rank := range 4 {
		for i, p := range passes(opt, 0, rank, 300) {
			if !lines.Scan() {
				t.Fatalf("rank %d: %d messages", rank, i)
			}
			checkLine(t, lines.Bytes(), rank, i, p)
		}
	}
	for i, got := range r.wait(t) {
		if got.Sent != 300 || got.Lost != 0 {
			t.Errorf("rank %d: %+v", i, got)
		}
	}
}

// checkLine compares a message as Python has decoded it with what was to be published.
func checkLine(t *testing.T, line []byte, rank, counter int, p pass) {
	t.Helper()
	s, q := p.scheduled, p.queued
	want := []any{float64(rank), float64(counter), map[string]any{
		"version": 1.0, "worker_id": "7587890123456789", "dp_rank": float64(rank), "counter_id": float64(counter), "wall_time": p.wall,
		"scheduled_requests": map[string]any{
			"num_prefill_requests": float64(s.prefills), "sum_prefill_tokens": float64(s.prefillTokens), "var_prefill_length": s.varPrefill,
			"sum_prefill_kv_tokens": float64(s.prefillKV), "num_decode_requests": float64(s.decodes), "sum_decode_kv_tokens": float64(s.decodeKV),
			"var_decode_kv_tokens": s.varDecode,
		},
		"queued_requests": map[string]any{
			"num_prefill_requests": float64(q.prefills), "sum_prefill_tokens": float64(q.prefillTokens), "var_prefill_length": q.varPrefill,
			"num_decode_requests": float64(q.decodes), "sum_decode_kv_tokens": float64(q.decodeKV), "var_decode_kv_tokens": q.varDecode,
		},
	}}
	var got []any
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("rank %d, message %d (-want +got):\n%s", rank, counter, diff)
	}
}
