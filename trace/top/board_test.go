package top

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fpm-project/fpm/trace/wire"
)

// start is a whole second.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// busy returns a pass of a rank, so long after the start.
func busy(worker string, rank, counter int64, after time.Duration) *Pass {
	return &Pass{
		Source: "tcp://h:1", Worker: worker, Rank: rank, Counter: counter, At: start.Add(after), WallTime: 0.010,
		Scheduled: wire.Load{SumPrefillTokens: 100, NumPrefillRequests: 1, NumDecodeRequests: 8, SumDecodeKVTokens: 4000},
		Queued:    wire.Load{NumPrefillRequests: 2, NumDecodeRequests: 1},
	}
}

func TestFiguresOfALine(t *testing.T) {
	b := NewBoard()
	// 30 s of 20 passes a second; in the last 10 s with twice the load and wall time.
	for i := range int64(600) {
		p := busy("w", 3, 100+i, time.Duration(i)*50*time.Millisecond)
		if i >= 400 {
			p.WallTime, p.Scheduled.NumDecodeRequests, p.Scheduled.SumPrefillTokens = 0.020, 16, 200
		}
		b.Add(p)
	}
	l := b.Snapshot(start.Add(30 * time.Second)).Lines[0]
	if l.Worker != "w" || l.Rank != 3 || l.Rate != 20 || l.Wall != 0.020 || l.Prefill != 4000 || l.Decode != 16 || l.KV != 4000 || l.Queue != 3 ||
		l.Gaps != 0 || l.Messages != 600 || l.Silence != 50*time.Millisecond {
		t.Errorf("%+v", l)
	}
	for i, s := range l.Seconds {
		want := Second{}
		if i >= 50 {
			want = Second{Passes: 20, Wall: 0.020, Prefill: 4000, Decode: 16, Queue: 3}
		} else if i >= 30 {
			want = Second{Passes: 20, Wall: 0.010, Prefill: 2000, Decode: 8, Queue: 3}
		}
		if d := s.Wall - want.Wall; s.Passes != want.Passes || d > 1e-9 || d < -1e-9 || s.Prefill != want.Prefill || s.Decode != want.Decode || s.Queue != want.Queue {
			t.Errorf("second %d: %+v, want %+v", i, s, want)
		}
	}
}

// TestASecondThatIsGoingOn checks that figures do not sink because a second is not over.
func TestASecondThatIsGoingOn(t *testing.T) {
	b := NewBoard()
	for i := range int64(400) {
		b.Add(busy("w", 0, i, time.Duration(i)*50*time.Millisecond))
	}
	for _, after := range []time.Duration{20000, 20001, 20500, 20999} {
		if l := b.Snapshot(start.Add(after * time.Millisecond)).Lines[0]; l.Rate != 20 {
			t.Errorf("after %d ms: rate %v", after, l.Rate)
		}
	}
}

func TestYoungLine(t *testing.T) {
	b := NewBoard()
	for i := range int64(20) {
		b.Add(busy("w", 0, i, time.Duration(i)*50*time.Millisecond))
	}
	if l := b.Snapshot(start.Add(time.Second)).Lines[0]; l.Rate != 20 || l.Decode != 8 {
		t.Errorf("after one second: %+v", l)
	}
	if l := b.Snapshot(start).Lines[0]; l.Rate != 0 || l.Silence != 0 {
		t.Errorf("before the second is over: rate %v, silence %v", l.Rate, l.Silence)
	}
}

func TestHeartbeats(t *testing.T) {
	b := NewBoard()
	for i := range int64(20) {
		b.Add(&Pass{Worker: "w", Counter: i, At: start.Add(time.Duration(i) * time.Second)})
	}
	l := b.Snapshot(start.Add(20 * time.Second)).Lines[0]
	if l.Rate != 0 || l.Wall != 0 || l.Decode != 0 || l.Messages != 20 || l.Seconds[Minute-1].Heartbeats != 1 || l.Seconds[Minute-1].Passes != 0 {
		t.Errorf("%+v", l)
	}
}

func TestGapsAndRestarts(t *testing.T) {
	for _, c := range []struct {
		name           string
		counters       []int64
		gaps, restarts uint64
	}{
		{"a late join is no gap", []int64{5000, 5001}, 0, 0},
		{"missing ones", []int64{0, 1, 4, 5, 9}, 5, 0},
		{"a repetition", []int64{3, 3, 4}, 0, 0},
		{"a restart is no gap", []int64{100, 101, 0, 1, 2}, 0, 1},
		{"a restart and a gap", []int64{100, 5, 8}, 2, 1},
		{"the largest", []int64{0, 1<<63 - 1, 0}, 1<<63 - 2, 1},
	} {
		full, sampled := NewBoard(), NewBoard()
		for i, n := range c.counters {
			p := busy("w", 0, n, time.Duration(i)*time.Second)
			full.Add(p)
			p.Sampled = true
			sampled.Add(p)
		}
		if l := full.Snapshot(start).Lines[0]; l.Gaps != c.gaps || l.Restarts != c.restarts {
			t.Errorf("%s: %d missing, %d restarts", c.name, l.Gaps, l.Restarts)
		}
		if l := sampled.Snapshot(start).Lines[0]; l.Gaps != 0 || l.Restarts != c.restarts || !l.Sampled {
			t.Errorf("%s, sampled: %+v", c.name, l)
		}
	}
}

// TestClocksThatJump feeds times that go back and far ahead.
func TestClocksThatJump(t *testing.T) {
	b := NewBoard()
	for i, after := range []time.Duration{0, time.Hour, -time.Hour, -1e6 * time.Hour, time.Second} {
		b.Add(busy("w", 0, int64(i), after))
	}
	l := b.Snapshot(start.Add(2 * time.Second)).Lines[0]
	if l.Messages != 5 || l.Silence != 0 || l.Gaps != 0 {
		t.Errorf("%+v", l)
	}
}

func TestLinesAreBounded(t *testing.T) {
	b := NewBoard("tcp://h:1")
	for i := range int64(MaxLines + 10) {
		b.Add(busy(fmt.Sprint("w", i), 0, 0, time.Duration(i)*time.Millisecond))
	}
	snap := b.Snapshot(start)
	if len(snap.Lines) != MaxLines || snap.Forgotten != 10 || snap.Endpoints[0].Lines != MaxLines {
		t.Fatalf("%d lines, %d forgotten, %d of the endpoint", len(snap.Lines), snap.Forgotten, snap.Endpoints[0].Lines)
	}
	for _, l := range snap.Lines {
		for i := range 10 {
			if l.Worker == fmt.Sprint("w", i) {
				t.Errorf("%s, silent for longest, is there", l.Worker)
			}
		}
	}
}

// TestAWorkerIsReplaced has another worker come up at an endpoint.
func TestAWorkerIsReplaced(t *testing.T) {
	b := NewBoard("tcp://h:1")
	b.Add(busy("old", 0, 1, 0))
	b.Add(busy("old", 1, 1, 0)) // another rank
	b.Add(busy("new", 0, 0, 10*time.Second))
	workers := func(after time.Duration) (names []string) {
		for _, l := range b.Snapshot(start.Add(after)).Lines {
			names = append(names, fmt.Sprint(l.Worker, l.Rank))
		}
		return names
	}
	if got := workers(time.Minute); !slices.Equal(got, []string{"new0", "old0", "old1"}) {
		t.Errorf("within a minute: %v", got)
	}
	if got := workers(61 * time.Second); !slices.Equal(got, []string{"new0", "old1"}) {
		t.Errorf("after a minute: %v", got)
	}
	if snap := b.Snapshot(start.Add(time.Hour)); snap.Forgotten != 1 || snap.Endpoints[0].Lines != 2 || len(snap.Lines) != 2 {
		t.Errorf("%d forgotten, %+v", snap.Forgotten, snap.Endpoints)
	}
	// Two that take turns are both there.
	b.Add(busy("other", 0, 0, 20*time.Second))
	b.Add(busy("new", 0, 1, 2*time.Minute))
	if got := workers(150 * time.Second); !slices.Equal(got, []string{"new0", "old1", "other0"}) {
		t.Errorf("the one that has come back: %v", got)
	}
}

func TestNewsOfEndpoints(t *testing.T) {
	b := NewBoard("a", "b", "c")
	b.Note("a", Connected, "")
	b.Note("a", Waiting, "reset") // what was connected is lost
	b.Note("b", Waiting, "refused")
	b.Refuse("c", "version: 2")
	b.Note("nobody", Connected, "")
	b.Refuse("nobody", "")
	got := b.Snapshot(start).Endpoints
	want := []Endpoint{{Address: "a", State: Lost, Detail: "reset"}, {Address: "b", State: Waiting, Detail: "refused"}, {Address: "c", State: Waiting, Refused: 1, Refusal: "version: 2"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestBoardIsSafeForConcurrentUse(t *testing.T) {
	b := NewBoard("tcp://h:1")
	var all sync.WaitGroup
	for rank := range int64(4) {
		all.Go(func() {
			for i := range int64(1000) {
				b.Add(busy("w", rank, i, time.Duration(i)*time.Millisecond))
			}
		})
	}
	all.Go(func() {
		for range 100 {
			b.Snapshot(start)
			b.Note("tcp://h:1", Connected, "")
		}
	})
	all.Wait()
	for _, l := range b.Snapshot(start).Lines {
		if l.Messages != 1000 || l.Gaps != 0 {
			t.Errorf("rank %d: %d messages, %d missing", l.Rank, l.Messages, l.Gaps)
		}
	}
}
