package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/wire"
)

// Messages that are missing are told apart as far as the manifest can, and what is full is
// judged beside what is not.
func TestVerifiedText(t *testing.T) {
	account := func(refused string) *trace.Account {
		a := &trace.Account{}
		text := `{"producers": [{"producer_id": "w", "streams": [{"dp_rank": 1, "worker_id": "w", "rejected": {"field": ` + refused + `}}]}]}`
		if err := json.Unmarshal([]byte(text), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	stats := func(missing uint64, accounts ...*trace.Account) *trace.Stats {
		full := &trace.Stream{ID: trace.StreamID{Producer: "w", Worker: "w", Rank: 1, Mode: wire.Full}, Rows: 5, Full: 5, Missing: missing, GapRuns: 1}
		sampled := &trace.Stream{ID: trace.StreamID{Producer: "v", Rank: 1, Mode: wire.Sampled}, Rows: 2, Sampled: 2}
		return &trace.Stats{Files: 1, Rows: 7, Streams: []*trace.Stream{sampled, full}, Accounts: accounts}
	}
	const elsewhere = "dropped by the publisher or lost on the way"
	for _, c := range []struct {
		stats *trace.Stats
		want  []string
	}{
		{stats(0), nil},
		{stats(957, account("906")), []string{"957 messages absent: 906 were refused, see the manifest; the others " + elsewhere}},
		{stats(5, account("906")), []string{"5 messages absent: all were refused, see the manifest"}},
		{stats(5, account("0")), []string{"5 messages absent: " + elsewhere + ", or by the recorder if its manifest says so"}},
		{stats(1), []string{"1 message absent: " + elsewhere + ", or by the recorder, whose manifest is not here"}},
	} {
		if got := absent(c.stats); !slices.Equal(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	whole := stats(0)
	all := whole.Total()
	if got := verified(whole, &all); !strings.Contains(got, "no counter missing of 1 full stream") || !strings.Contains(got, "of the others") {
		t.Errorf("full and sampled rows: %s", got)
	}
	lines := verifiedTable(stats(957, account("906")))
	if len(lines) != 3 || !slices.Equal(strings.Fields(lines[2]), []string{"w", "1", "full", "5", "957", "(1)", "906", "0", "0"}) {
		t.Errorf("%q", lines)
	}
}
