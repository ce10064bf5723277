package record

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

func TestFull(t *testing.T) {
	b := newBench(t, 2, Options{})
	b.hand.move(1500 * time.Millisecond)
	for i := range int64(3) {
		b.send(0, "w", 0, 10+i)
		b.send(1, "w", 1, 20+i)
	}
	b.hand.move(time.Second)
	b.writer.step() // the first flush is due
	if got, want := counters(b.rows("w")), "0/10 1/20 0/11 1/21 0/12 1/22"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	m := b.Snapshot()
	if m.Totals.Written != 6 || m.Totals.Pending != 0 || m.Totals.Segments != 1 || m.Totals.Bytes == 0 || m.Complete {
		t.Errorf("totals %+v, complete %v", m.Totals, m.Complete)
	}
}

// A row is what AppendRow makes of it, though it is put together in parts.
func TestRowText(t *testing.T) {
	for _, worker := range []string{"7587", "", `"quoted"\`, "tab\there", "naïve", strings.Repeat("x", 300)} {
		b := newBench(t, 1, Options{})
		b.hand.move(1234 * time.Millisecond)
		var d wire.Decoder
		for counter := range int64(3) { // the head of the first row is made otherwise
			body := payload(worker, 5, counter, true)
			f, _, err := d.Decode(nil, frames(counter, body))
			if err != nil {
				t.Fatal(err)
			}
			b.send(0, worker, 5, counter)
			producer := worker
			if producer == "" {
				producer = "tcp://h:20380"
			}
			want := string(wire.AppendRow(nil, wire.Row{
				TimestampMS: 1234, Namespace: "ns", Component: "c", ProducerID: producer,
				Mode: wire.Full, ObservedUnixMS: 1_700_000_001_234, FPM: f.JSON,
			}))
			if got := b.queue.take(make([]entry, 0, 1), nil)[0].row; string(got) != want {
				t.Errorf("worker %q, counter %d:\n got %s\nwant %s", worker, counter, got, want)
			}
		}
	}
}

// Each step is a message at one endpoint, and what the counts are then.
func TestSequence(t *testing.T) {
	b := newBench(t, 1, Options{})
	want := Counts{}
	step := func(what string, do func(), change func()) {
		t.Helper()
		do()
		change()
		got := b.stream(0).Counts
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", what, diff)
		}
	}
	counter := func(n int64) func() {
		return func() {
			want.Received++
			want.Busy++
			b.send(0, "w", 0, n)
		}
	}
	bad := func() { b.endpoints[0].message([][]byte{{}}, time.Time{}) }
	step("a late join is no gap", counter(1000), func() {})
	step("the next one", counter(1001), func() {})
	step("two are missing", counter(1004), func() { want.Gaps, want.Missing = 1, 2 })
	step("one came twice", counter(1004), func() { want.Duplicates++ })
	step("a refused message", bad, func() {})
	step("is not missing", counter(1006), func() {})
	step("two more", func() { bad(); bad() }, func() {})
	step("of three, one is missing", counter(1010), func() { want.Gaps++; want.Missing++ })
	step("a restart is no gap", counter(0), func() { want.Restarts++ })
	step("and goes on", counter(1), func() {})
	step("a heartbeat", func() {
		b.endpoints[0].message(frames(2, payload("w", 0, 2, false)), time.Time{})
	}, func() { want.Received++; want.Heartbeats++ })
	s := b.stream(0)
	if s.FirstCounter != 1000 || s.LastCounter != 2 {
		t.Errorf("first and last counter: %d, %d", s.FirstCounter, s.LastCounter)
	}
	if diff := cmp.Diff(map[string]uint64{"frames": 3}, s.Rejected); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if !strings.Contains(b.warnings(), `worker "w", rank 0, was restarted`) {
		t.Errorf("warnings: %s", b.warnings())
	}
}

// Another worker at the same endpoint is another stream, and another series of files.
func TestReplacedWorker(t *testing.T) {
	b := newBench(t, 1, Options{})
	b.send(0, "old", 0, 500)
	b.send(0, "new", 0, 0)
	b.send(0, "new", 0, 1)
	b.write()
	if got := counters(b.rows("old")) + " | " + counters(b.rows("new")); got != "0/500 | 0/0 0/1" {
		t.Errorf("rows %s", got)
	}
	if c := b.Snapshot().Totals.Counts; c.Restarts != 0 || c.Gaps != 0 {
		t.Errorf("%+v", c)
	}
}

func TestProducers(t *testing.T) {
	b := newBench(t, 3, Options{Endpoints: []subscribe.Endpoint{{Address: "ipc:///tmp/a b", Producer: "mine"}}})
	b.send(0, "w", 0, 1) // the option beats the worker
	b.send(1, "", 1, 1)  // a name made from the endpoint
	b.send(2, "a:b", 2, 1)
	b.send(3, "a_b", 3, 1) // the same name in files
	b.write()
	var got []string
	for _, p := range b.Snapshot().Producers {
		got = append(got, p.ProducerID+" "+strings.Join(p.Files, ","))
	}
	want := []string{
		"a:b t.a_b.000000.jsonl.gz", "a_b t.a_b.000000.jsonl.gz",
		"mine t.mine.000000.jsonl.gz", "tcp://h:20380 t.tcp___h_20380.000000.jsonl.gz",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("producers (-want +got):\n%s", diff)
	}
	if rows := b.rows("a_b"); len(rows) != 2 || rows[0].Event.Source.ProducerID != "a:b" || rows[1].Event.Source.ProducerID != "a_b" {
		t.Errorf("rows of the shared series: %+v", rows)
	}
}

func TestSampledMode(t *testing.T) {
	b := newBench(t, 2, Options{Mode: wire.Sampled, SampleInterval: 5 * time.Second})
	for i := range int64(4) {
		b.send(0, "w", 0, i)
		b.send(1, "w", 1, i+100)
	}
	b.hand.move(4 * time.Second)
	b.writer.step()
	if rows := b.rows("w"); len(rows) > 0 {
		t.Errorf("%d rows before the interval was over", len(rows))
	}
	b.hand.wall -= time.Hour.Milliseconds() // the clock is set back: no interval moves
	b.hand.move(time.Second)
	b.writer.step()
	b.send(1, "w", 1, 103) // unchanged
	b.hand.move(5 * time.Second)
	b.writer.step()
	b.send(0, "w", 0, 4)
	b.writer.finish()
	rows := b.rows("w")
	if got, want := counters(rows), "0/3 1/103 0/4"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
	if rows[2].Event.Observed >= rows[0].Event.Observed || rows[2].Timestamp <= rows[0].Timestamp || rows[0].Event.Mode != "sampled" {
		t.Errorf("times: %+v", rows)
	}
	c := b.Snapshot().Totals.Counts
	accounted(t, c)
	if c.Thinned != 7 || c.Written != 3 {
		t.Errorf("%+v", c)
	}
}

// The rows of an interval are in the order of worker ids, as bytes, and ranks, as numbers;
// an empty id, told apart by endpoint, comes first.
func TestSampledOrder(t *testing.T) {
	b := newBench(t, 2, Options{Mode: wire.Sampled, SampleInterval: 5 * time.Second})
	for _, e := range b.endpoints {
		e.producer = "one"
	}
	b.send(0, "b", 0, 3)
	b.send(0, "B", 10, 4)
	b.send(0, "B", 9, 5)
	b.send(1, "", 0, 1)
	b.send(0, "", 0, 2)
	b.hand.move(5 * time.Second)
	b.writer.step()
	b.writer.finish()
	if got, want := counters(b.rows("one")), "0/2 0/1 9/5 10/4 0/3"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

// A wall clock that is set back changes what is written down, and nothing else.
func TestClockSetBack(t *testing.T) {
	b := newBench(t, 1, Options{})
	b.send(0, "w", 0, 1)
	b.hand.wall -= 24 * time.Hour.Milliseconds()
	b.send(0, "w", 0, 2)
	b.write()
	b.send(0, "w", 0, 3)
	b.write()
	rows := b.rows("w")
	if got := counters(rows); got != "0/1 0/2 0/3" {
		t.Errorf("rows %s", got)
	}
	if rows[1].Event.Observed >= rows[0].Event.Observed || rows[2].Timestamp < rows[1].Timestamp {
		t.Errorf("times: %+v", rows)
	}
}

func TestRejects(t *testing.T) {
	b := newBench(t, 1, Options{})
	bad := func(f [][]byte) { b.endpoints[0].message(f, time.Time{}) }
	body := payload("w", 0, 1, true)
	bad([][]byte{body})
	bad(frames(2, body)) // the sequence differs
	bad(frames(2, body))
	bad([][]byte{{}, {1}, body})
	bad(frames(1, append(body, 0)))
	b.endpoints[0].event(subscribe.Event{Kind: subscribe.Refused, Err: &wire.RejectError{Reason: wire.TooLarge, Message: "x"}})
	want := map[string]uint64{"frames": 1, "field": 2, "sequence": 1, "msgpack": 1, "too-large": 1}
	if diff := cmp.Diff(want, b.Snapshot().Endpoints[0].Rejected); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if n := strings.Count(b.warnings(), "\n") + 1; n != 5 {
		t.Errorf("%d warnings, want one for each reason:\n%s", n, b.warnings())
	}
	b.hand.move(warnEvery)
	bad(frames(2, body))
	if !strings.HasSuffix(b.warnings(), "1 more since the last warning of it") {
		t.Errorf("warnings:\n%s", b.warnings())
	}
	if m := b.Snapshot(); m.Totals.Rejected != 7 || m.Totals.Received != 0 || len(m.Producers) != 0 {
		t.Errorf("totals %+v", m.Totals)
	}
}

func TestEvents(t *testing.T) {
	b := newBench(t, 1, Options{})
	e := b.endpoints[0]
	e.event(subscribe.Event{Kind: subscribe.Connected, Address: "a"})
	if s := b.Snapshot().Endpoints[0]; !s.Connected || s.Connects != 1 {
		t.Errorf("connected: %+v", s)
	}
	e.event(subscribe.Event{Kind: subscribe.Silent, For: 3 * time.Second, Cause: "it may be asleep", Err: syscall.ECONNREFUSED})
	if s := b.Snapshot().Endpoints[0].Silent; s != "nothing received for 3s: connection refused; it may be asleep" {
		t.Errorf("silent: %s", s)
	}
	e.event(subscribe.Event{Kind: subscribe.Recovered})
	for range 3 {
		e.event(subscribe.Event{Kind: subscribe.Disconnected, Address: "a", For: time.Second, Err: syscall.EPIPE})
	}
	if s := b.Snapshot().Endpoints[0]; s.Connected || s.Silent != "" {
		t.Errorf("disconnected: %+v", s)
	}
	if n := strings.Count(b.warnings(), "the connection ended"); n != 1 {
		t.Errorf("%d warnings of a connection that comes and goes:\n%s", n, b.warnings())
	}
}

func TestRunStops(t *testing.T) {
	t.Run("by its context", func(t *testing.T) {
		r := newBench(t, 1, Options{}).run()
		for i := range int64(100) {
			r.send(0, "w", 0, i)
		}
		m, err := r.stop()
		if err != nil || !m.Complete || m.State != Stopped || len(r.rows("w")) != 100 {
			t.Errorf("%v, %s, complete %v, %d rows", err, m.State, m.Complete, len(r.rows("w")))
		}
		file := readManifest(t, m.Path())
		if file["complete"] != true || file["state"] != "stopped" || file["schema"] != ManifestSchema || file["note"] != ManifestNote {
			t.Errorf("manifest %v", file)
		}
	})
	t.Run("when there are enough rows", func(t *testing.T) {
		b := newBench(t, 1, Options{MaxRows: 7})
		b.subscribe = func(ctx context.Context, _ subscribe.Endpoint, _ subscribe.Options) error {
			b.joined.Done()
			for i := range int64(20) {
				b.send(0, "w", 0, i) // some of them behind the end, but none behind this subscription
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}
		m, err := b.run().end()
		if err != nil || !m.Complete || len(b.rows("w")) != 7 {
			t.Errorf("%v, complete %v, %d rows", err, m.Complete, len(b.rows("w")))
		}
		accounted(t, m.Totals.Counts)
	})
}

// What depends on the time runs on a clock of its own, which stands while anything is to do.
func TestRunStopsInTime(t *testing.T) {
	timed := func(name string, run func(t *testing.T)) {
		t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
	}
	timed("when the time is up", func(t *testing.T) {
		m, err := newBench(t, 1, Options{For: time.Millisecond}).run().end()
		if err != nil || m.State != Stopped {
			t.Errorf("%v, %s", err, m.State)
		}
	})
	timed("when an endpoint does not deliver", func(t *testing.T) {
		b := newBench(t, 3, Options{RequireFirst: 100 * time.Millisecond})
		r := b.run()
		r.send(1, "w", 0, 0)
		m, err := r.end()
		if exitcode.Of(err) != exitcode.Failed || !strings.Contains(err.Error(), "2 of 3 endpoints delivered nothing within 100ms: tcp://h:20380, tcp://h:20382") {
			t.Errorf("%v", err)
		}
		if !m.Complete || m.Totals.Written != 1 {
			t.Errorf("what came is written all the same: %+v", m.Totals)
		}
	})
	timed("not when all do", func(t *testing.T) {
		r := newBench(t, 1, Options{RequireFirst: 50 * time.Millisecond, For: 100 * time.Millisecond}).run()
		r.send(0, "w", 0, 0)
		if _, err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	one := []subscribe.Endpoint{{Address: "tcp://h:1"}}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		opt  Options
		code exitcode.Code
		want string
	}{
		{Options{Output: "x", Mode: wire.Full}, exitcode.Usage, "no endpoint"},
		{Options{Endpoints: one, Output: "x", Mode: wire.Sampled}, exitcode.Usage, "interval"},
		{Options{Endpoints: one, Output: "dir/", Mode: wire.Full}, exitcode.Usage, "file name"},
		{Options{Endpoints: one, Output: file + "/x", Mode: wire.Full}, exitcode.Failed, "nothing can be recorded here"},
		{Options{Endpoints: one, Output: "x", Mode: wire.Full, Level: 11}, exitcode.Usage, "level"},
	} {
		_, err := New(c.opt)
		if exitcode.Of(err) != c.code || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want status %d and %q", c.opt, err, c.code, c.want)
		}
	}
}

// Nothing but what it should is left behind where a recorder looked whether it can write.
func TestProbe(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "too")
	if err := probe(filepath.Join(dir, "t")); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A thousand producers of eight ranks are recorded whole, within memory and descriptors
// that do not grow with what each of them sends.
func TestThousandProducers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	const producers, ranks, passes = 1000, 8, 3
	b := newBench(t, 8, Options{})
	for pass := range int64(passes) {
		for p := range producers {
			for rank := range int64(ranks) {
				b.send(int(rank), fmt.Sprint("w", p), rank, pass)
			}
			if p%500 == 499 {
				for b.writer.step() {
				}
			}
		}
		b.write()
	}
	b.writer.finish()
	m := b.Snapshot()
	accounted(t, m.Totals.Counts)
	if m.Totals.Written != producers*ranks*passes || len(m.Producers) != producers {
		t.Errorf("%d rows of %d producers", m.Totals.Written, len(m.Producers))
	}
	if got := counters(b.rows("w999")); strings.Count(got, "/") != ranks*passes {
		t.Errorf("rows of the last producer: %s", got)
	}
	if err := b.manifest.write(m); err != nil {
		t.Fatal(err)
	}
	if list := readManifest(t, m.Path())["producers"].([]any); len(list) != producers {
		t.Errorf("%d producers in the manifest", len(list))
	}
}
