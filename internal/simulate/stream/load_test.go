package stream

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fpm-project/fpm/trace/wire"
)

// passes returns the first n passes of a rank.
func passes(opt Options, worker, rank, n int) []pass {
	s := newSource(&opt, worker, rank)
	list := make([]pass, n)
	for i := range list {
		list[i] = s.next()
	}
	return list
}

func TestStoryFollowsFromTheSeed(t *testing.T) {
	opt := Options{Load: Diurnal, Rate: 100, Day: time.Minute}
	equal := func(a, b []pass) bool {
		return cmp.Equal(a, b, cmp.AllowUnexported(pass{}, load{}))
	}
	first := passes(opt, 0, 0, 1000)
	if !equal(first, passes(opt, 0, 0, 1000)) {
		t.Error("the same rank of the same seed tells another story")
	}
	if equal(first, passes(opt, 0, 1, 1000)) || equal(first, passes(opt, 1, 0, 1000)) {
		t.Error("two ranks tell the same story")
	}
	opt.Seed = 1
	if equal(first, passes(opt, 0, 0, 1000)) {
		t.Error("two seeds tell the same story")
	}
}

// TestPassesAreThoseOfAnEngine checks what holds for every pass of a load: that times
// rise, that a batch has its bounds, and that what is not there has no tokens.
func TestPassesAreThoseOfAnEngine(t *testing.T) {
	for _, opt := range []Options{
		{Load: Diurnal, Rate: 50, Day: time.Minute},
		{Load: Diurnal, Rate: 2500, Day: 10 * time.Second},
		{Load: Diurnal, Rate: 0, Day: time.Minute},
		{Load: Steady, Rate: 100},
		{Load: Idle, Rate: 100},
	} {
		last := time.Duration(-1)
		for i, p := range passes(opt, 1, 3, 20000) {
			if p.at <= last {
				t.Fatalf("%+v: pass %d at %v, after one at %v", opt, i, p.at, last)
			}
			last = p.at
			checkPass(t, i, p)
		}
	}
}

func checkPass(t *testing.T, i int, p pass) {
	t.Helper()
	s, q := p.scheduled, p.queued
	if p.heartbeat() {
		if s != (load{}) || q != (load{}) {
			t.Fatalf("heartbeat %d has a load: %+v", i, p)
		}
		return
	}
	if !(p.wall > 0 && p.wall < 1) || s.prefills+s.decodes == 0 || s.prefills+s.decodes > maxBatch || s.prefills > maxPrefills {
		t.Fatalf("pass %d: %+v", i, p)
	}
	for _, l := range []load{s, q} {
		if (l.prefills == 0) != (l.prefillTokens == 0) || (l.decodes == 0) != (l.decodeKV == 0) ||
			l.prefills < 2 && l.varPrefill != 0 || l.decodes < 2 && l.varDecode != 0 || l.varPrefill < 0 || l.varDecode < 0 {
			t.Fatalf("pass %d: %+v", i, p)
		}
	}
}

// TestADay checks that a day has what real ones have: full batches, prefills among the
// decodes, a queue at times, and a night of heartbeats.
func TestADay(t *testing.T) {
	day := 5 * time.Minute
	var busy, beats, prefill, both, queued, full int
	last := pass{at: -heartbeat}
	for _, p := range passes(Options{Load: Diurnal, Rate: 50, Day: day}, 0, 0, 15000) {
		if p.at > day {
			break
		}
		if p.heartbeat() {
			beats++
			if last.heartbeat() && p.at-last.at != heartbeat {
				t.Fatalf("heartbeats at %v and %v", last.at, p.at)
			}
		} else {
			busy++
		}
		if p.scheduled.prefills > 0 {
			prefill++
			if p.scheduled.decodes > 0 {
				both++
			}
		}
		if p.queued.prefills > 0 {
			queued++
		}
		if p.scheduled.decodes+p.scheduled.prefills == maxBatch {
			full++
		}
		last = p
	}
	t.Logf("%d busy passes, %d heartbeats, %d with prefills, %d of them among decodes, %d with a queue, %d full", busy, beats, prefill, both, queued, full)
	if busy < 5000 || beats < 30 || prefill < 500 || both < 500 || queued < 50 || full < 10 || prefill > busy/2 {
		t.Errorf("not a day as it should be")
	}
}

func TestSteadyIsNeverIdle(t *testing.T) {
	for i, p := range passes(Options{Load: Steady, Rate: 2500}, 0, 0, 50000) {
		if want := time.Duration(i) * 400 * time.Microsecond; p.heartbeat() || p.at != want {
			t.Fatalf("pass %d at %v, heartbeat %t; want one at %v", i, p.at, p.heartbeat(), want)
		}
	}
}

// frames takes the bytes of one message apart.
func frames(t *testing.T, b []byte) (list [][]byte) {
	t.Helper()
	for more := true; more; {
		flags, size, header := b[0], uint64(b[1]), 2
		if flags&flagLong != 0 {
			size, header = binary.BigEndian.Uint64(b[1:]), 9
		}
		more = flags&flagMore != 0
		list = append(list, b[header:header+int(size)])
		b = b[header+int(size):]
	}
	if len(b) > 0 {
		t.Fatalf("%d bytes behind the message", len(b))
	}
	return list
}

// TestMessagesAreThoseOfAnEngine decodes what is published the way a recorder does.
func TestMessagesAreThoseOfAnEngine(t *testing.T) {
	m := newMessage("worker \"0\"", 4095)
	var d wire.Decoder
	for i, p := range passes(Options{Load: Diurnal, Rate: 50, Day: 10 * time.Second}, 0, 0, 5000) {
		counter := uint64(i) * 0x1_0000_0001
		got, _, err := d.Decode(nil, frames(t, m.set(counter, &p)))
		if err != nil {
			t.Fatalf("pass %d: %v", i, err)
		}
		want := wire.FPM{
			WorkerID: "worker \"0\"", DPRank: 4095, CounterID: int64(counter), WallTime: p.wall,
			Scheduled: wireLoad(p.scheduled), Queued: wireLoad(p.queued),
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(wire.FPM{}, "JSON")); diff != "" {
			t.Fatalf("pass %d (-want +got):\n%s", i, diff)
		}
		if got.Heartbeat() != p.heartbeat() {
			t.Fatalf("pass %d: heartbeat %t", i, got.Heartbeat())
		}
	}
}

func wireLoad(l load) wire.Load {
	return wire.Load{
		NumPrefillRequests: l.prefills, SumPrefillTokens: l.prefillTokens, VarPrefillLength: l.varPrefill, SumPrefillKVTokens: l.prefillKV,
		NumDecodeRequests: l.decodes, SumDecodeKVTokens: l.decodeKV, VarDecodeKVTokens: l.varDecode,
	}
}

// TestBadMessages checks that each way of being wrong is what it is called, and that the
// message behind it is good again.
func TestBadMessages(t *testing.T) {
	reasons := map[Bad]wire.Reason{
		BadFrames: wire.Frames, BadSequence: wire.Sequence, BadGarbage: wire.MessagePack, BadArray: wire.NotMap,
		BadVersion: wire.Version, BadNegative: wire.Field, BadNaN: wire.MessagePack, BadBool: wire.Field,
		BadTruncated: wire.MessagePack, BadTrailing: wire.MessagePack, BadBinKey: wire.MessagePack, BadHuge: wire.MessagePack,
	}
	if len(reasons) != len(BadKinds()) {
		t.Errorf("%d kinds have a reason, of %d", len(reasons), len(BadKinds()))
	}
	s := newSource(&Options{Load: Steady, Rate: 100}, 0, 0)
	m := newMessage("w", 1)
	var d wire.Decoder
	for _, kind := range BadKinds() {
		for counter := range uint64(50) {
			p := s.next()
			m.set(counter, &p)
			bad := appendMessage(nil, m.spoil(kind, counter, s.dice)...)
			_, _, err := d.Decode(nil, frames(t, bad))
			refused, ok := err.(*wire.RejectError)
			if !ok || refused.Reason != reasons[kind] {
				t.Fatalf("%s %d: %v; want reason %v", kind, counter, err, reasons[kind])
			}
			if _, _, err := d.Decode(nil, frames(t, m.set(counter, &p))); err != nil {
				t.Fatalf("the message behind %s: %v", kind, err)
			}
		}
	}
}

func TestPutLoadWritesWhatIsThere(t *testing.T) {
	p := newPayload("w", 0)
	before := len(p.body)
	all := load{1, 2, 3, 4, 5, 6.5, math.MaxFloat64}
	p.set(math.MaxInt64, &pass{wall: 0.25, scheduled: all, queued: all})
	if len(p.body) != before {
		t.Fatalf("the payload has %d bytes, and had %d", len(p.body), before)
	}
	var d wire.Decoder
	got, _, err := d.Decode(nil, [][]byte{nil, binary.BigEndian.AppendUint64(nil, math.MaxInt64), p.body})
	if err != nil {
		t.Fatal(err)
	}
	queued := all
	queued.prefillKV = 0
	if got.Scheduled != wireLoad(all) || got.Queued != wireLoad(queued) || got.CounterID != math.MaxInt64 {
		t.Errorf("%+v", got)
	}
}
