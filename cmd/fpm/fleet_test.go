package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	simulated "github.com/fpm-project/fpm/internal/simulate/stream"
)

// TestFleetIsRecorded has a simulated fleet recorded, leaves messages out and makes others
// wrong, and compares what each rank says it has sent with what the recorder says has come.
func TestFleetIsRecorded(t *testing.T) {
	fpm, dir := program(t), t.TempDir()
	base := filepath.Join(dir, "s")
	r := startRecord(t, fpm, dir, "--ipc-base", base, "--ranks", "0-3", "--mode", "full")
	var stdout, stderr bytes.Buffer
	fleet := exec.CommandContext(t.Context(), fpm, "simulate", "stream", "--ipc-base", base, "--workers", "2", "--ranks", "2", "--worker-id", "w",
		"--load", "steady", "--rate", "2000", "--count", "1996", "--await", "--seed", "7", "--drop", "0.02", "--bad", "version", "--high-water", "4000", "--linger", "1m", "--format", "json")
	fleet.Stdout, fleet.Stderr = &stdout, &stderr
	if err := fleet.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if status := r.stop(os.Interrupt); status != 0 {
		t.Errorf("exit status %d\n%s", status, r.stderr)
	}
	var sent struct{ Ranks []simulated.Result }
	if err := json.Unmarshal(stdout.Bytes(), &sent); err != nil {
		t.Fatal(err)
	}
	m := r.manifest()
	if len(sent.Ranks) != 4 || len(m.Producers) != 2 || !m.Complete {
		t.Fatalf("%d ranks, %d producers, complete %t", len(sent.Ranks), len(m.Producers), m.Complete)
	}
	var all simulated.Result
	for i, s := range sent.Ranks {
		p := m.Producers[i/2]
		got := p.Streams[i%2]
		name := fmt.Sprintf("%s rank %d", s.Worker, s.Rank)
		if p.ID != s.Worker || got.Rank != int64(s.Rank) || s.Next != 1996 || s.Sent+s.Bad+s.Dropped != 1996 || s.Bad == 0 || s.Dropped == 0 {
			t.Fatalf("%s is recorded as %s rank %d: %+v", name, p.ID, got.Rank, s)
		}
		if s.Lost != 0 || got.Received != s.Sent || got.Written != s.Sent {
			t.Errorf("%s: sent %d, received %d, written %d, %d lost", name, s.Sent, got.Received, got.Written, s.Lost)
		}
		all.Sent += s.Sent
		all.Bad += s.Bad
		all.Dropped += s.Dropped
	}
	// With this seed no rank's first or last message is one of those left out: then each of
	// them is missing, and each wrong one is refused and not missing as well.
	if m.Totals.Received != all.Sent || m.Totals.Rejected != all.Bad || m.Totals.Missing != all.Dropped {
		t.Errorf("sent %d, bad %d, left out %d; received %d, refused %d, missing %d", all.Sent, all.Bad, all.Dropped, m.Totals.Received, m.Totals.Rejected, m.Totals.Missing)
	}
}
