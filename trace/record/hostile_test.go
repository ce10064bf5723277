package record

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/fpm-project/fpm/trace/subscribe"
)

// padded is a payload with a text beside what it has anyway.
func padded(worker string, rank, counter int64, text string) []byte {
	b := payload(worker, rank, counter, true)
	b[0]++ // a map of one more
	return msgp.AppendString(msgp.AppendString(b, "x"), text)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A peer that calls itself by thousands of long names costs little memory, few warnings and
// a small manifest. The others are recorded as ever, and so are rows with a long name.
func TestLongWorkerIDs(t *testing.T) {
	b := newBench(t, 2, Options{})
	b.send(1, "good", 0, 0)
	before := heap()
	id := func(i int) string { return fmt.Sprintf("%05d", i) + strings.Repeat("\x01", 900_000) }
	for i := range 20 {
		b.send(0, id(i), 0, 5)
		b.send(0, id(i), 0, 4) // a restart
		b.write()
	}
	b.send(1, "good", 0, 1)
	b.send(1, "new", 0, 0)
	if grown := heap() - before; grown > 24<<20 {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	b.writer.finish()
	m := b.Snapshot()
	if m.Totals.Received != 5 || m.Totals.Written != 5 || m.Totals.Crowded != 38 {
		t.Errorf("%+v", m.Totals)
	}
	if text := b.warnings(); len(text) > 4000 || !strings.Contains(text, "was restarted") || !strings.Contains(text, "a payload is lost") {
		t.Errorf("%d bytes of warnings: %.4000s", len(text), text)
	}
	var text bytes.Buffer
	if _, err := m.WriteTo(&text); err != nil || text.Len() > 16<<10 || !json.Valid(text.Bytes()) {
		t.Errorf("a manifest of %d bytes, %v", text.Len(), err)
	}
	for _, p := range m.Producers {
		if len(p.Files) != 1 || len(p.Files[0]) > 255 {
			t.Errorf("producer %s has the files %q", p.ProducerID, p.Files)
		}
	}
	if got := counters(b.rows("good")); got != "0/0 0/1" {
		t.Errorf("rows %s", got)
	}
}

// What a stream is remembered by is bounded in bytes, and is free again when it is
// forgotten.
func TestIDsAreForgotten(t *testing.T) {
	b := newBench(t, 1, Options{})
	long := strings.Repeat("x", 300_000)
	for i := range 6 {
		b.send(0, fmt.Sprint(long, i), 0, 0)
	}
	if n := b.registry.size(); n != 3 {
		t.Errorf("%d streams", n)
	}
	b.hand.move(2 * quietBefore)
	b.send(0, long+"new", 0, 0)
	if n := b.registry.size(); n != 1 || b.registry.ids != 300_003 {
		t.Errorf("%d streams, %d bytes", n, b.registry.ids)
	}
}

// Payloads of nearly a mebibyte whose JSON has six times as much are within the bounds of
// memory as well, when the disk is full.
func TestLargePayloadsOnFullDisk(t *testing.T) {
	disk := newFault()
	disk.set(nil, func(string) error { return syscall.ENOSPC })
	b := newBench(t, 8, Options{FS: disk})
	before := heap()
	text := strings.Repeat("\x01", 900_000)
	for i := range int64(12) {
		for e := range 8 {
			b.endpoints[e].message(frames(i, padded("w", int64(e), i, text)), time.Time{})
		}
		if i%4 == 0 {
			b.write()
		}
		if b.writer.memory > batchBytes {
			t.Fatalf("batches have %d bytes", b.writer.memory)
		}
	}
	if grown := heap() - before; grown > (queueBytes + batchBytes + 16<<20) {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	}
	disk.set(nil, nil)
	b.writer.finish()
	c := b.Snapshot().Totals
	accounted(t, c.Counts)
	if c.Received != 96 || c.QueueDrops == 0 || c.DiskDrops == 0 || c.Written == 0 {
		t.Errorf("%+v", c)
	}
}

// A worker and rank that publish at two endpoints are told of once.
func TestWorkerAtTwoEndpoints(t *testing.T) {
	b := newBench(t, 2, Options{})
	for i := range int64(3) {
		b.send(0, "w", 0, i)
		b.send(1, "w", 0, i)
		b.send(1, "w", 1, i)
	}
	const want = `two endpoints publish as worker "w" rank 0: tcp://h:20380 and tcp://h:20381`
	if text := b.warnings(); strings.Count(text, "two endpoints") != 1 || !strings.Contains(text, want) {
		t.Errorf("warnings:\n%s", text)
	}
	var also []string
	for _, s := range b.Snapshot().Producers[0].Streams {
		also = append(also, fmt.Sprint(s.Rank, s.AlsoAt))
	}
	if got := strings.Join(also, " "); got != "0 0tcp://h:20380 1" {
		t.Errorf("in the manifest: %s", got)
	}
	b.hand.move(2 * aliveFor)
	b.send(0, "w", 1, 0) // it has moved
	if text := b.warnings(); strings.Count(text, "two endpoints") != 1 {
		t.Errorf("warnings:\n%s", text)
	}
}

// A large message that there was no memory for is counted as lost here, and is no gap.
func TestLargeMessageWithoutMemory(t *testing.T) {
	b := newBench(t, 1, Options{})
	b.send(0, "w", 0, 0)
	for range 2 {
		b.endpoints[0].event(subscribe.Event{Kind: subscribe.Crowded, Err: errors.New("the buffers were taken")})
	}
	b.send(0, "w", 0, 3)
	b.writer.finish()
	m := b.Snapshot()
	if m.Totals.Received != 2 || m.Totals.Crowded != 2 || m.Totals.Lost() != 2 || m.Totals.Missing != 0 || m.Totals.Rejected != 0 || m.Endpoints[0].Crowded != 2 {
		t.Errorf("%+v", m.Totals)
	}
	if text := b.warnings(); strings.Count(text, "a large message is lost: the buffers were taken") != 1 {
		t.Errorf("warnings:\n%s", text)
	}
}

// What endpoints keep between messages is little, whatever they received.
func TestEndpointsKeepLittle(t *testing.T) {
	const endpoints, most = 200, 12 << 10
	b := newBench(t, endpoints, Options{})
	text := strings.Repeat("\x01", largePayload-1000)
	many := append(payload("w", 0, 1, true), strings.Repeat("\xa0\xc0", 1800)...) // keys that are the same, found at the end
	many = append(binary.BigEndian.AppendUint32([]byte{0xdf}, uint32(many[0]&0xf)+1800), many[1:]...)
	for e := range endpoints {
		b.send(e, "w", int64(e), 0)
	}
	b.write()
	before := heap()
	for e := range endpoints {
		b.endpoints[e].message(frames(1, padded("w", int64(e), 1, text)), time.Time{})
		b.endpoints[e].message(frames(2, many), time.Time{})
	}
	for b.writer.drain() {
	}
	b.writer.flushAll()
	if b.Totals().Received != 2*endpoints || b.Totals().Rejected != endpoints {
		t.Errorf("%+v", b.Totals())
	}
	if kept := (heap() - before) / endpoints; kept > most {
		t.Errorf("%d bytes are kept for each endpoint", kept)
	}
	runtime.KeepAlive(b)
}
