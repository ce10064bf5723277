package progress

import (
	"bytes"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		elapsed     time.Duration
		want        string
	}{
		{0, 1 << 30, time.Second, "0 B of 1.0 GiB (0%), 0 B/s"},
		{256 << 20, 1 << 30, 2 * time.Second, "256.0 MiB of 1.0 GiB (25%), 128.0 MiB/s, 6s left"},
		{1 << 30, 1 << 30, 4 * time.Second, "1.0 GiB of 1.0 GiB (100%), 256.0 MiB/s, 0s left"},
		{2 << 30, 1 << 30, 4 * time.Second, "2.0 GiB of 1.0 GiB (100%), 512.0 MiB/s, 0s left"}, // a file that grew
		{512, 0, time.Second, "512 B, 512 B/s"},
		{1 << 20, 1 << 40, time.Second, "1.0 MiB of 1.0 TiB (0%), 1.0 MiB/s, 291h16m15s left"},
	} {
		if got := line(c.done, c.total, c.elapsed); got != c.want {
			t.Errorf("line(%d, %d, %s) = %q, want %q", c.done, c.total, c.elapsed, got, c.want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB",
		1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB", math.MaxInt64: "8.0 EiB",
	} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %q, want %q", n, got, want)
		}
	}
}

// meter is a meter on a clock of the test's own. What a tick draws is drawn when the next
// tick is taken, or when the meter has stopped.
func meter(width int) (*Meter, *bytes.Buffer, func(seconds float64)) {
	var out bytes.Buffer
	begun := time.Unix(1000, 0)
	ticks := make(chan time.Time)
	m := start(&out, "merge", 1000, func() int { return width }, begun, ticks)
	return m, &out, func(seconds float64) {
		ticks <- begun.Add(time.Duration(seconds * float64(time.Second)))
	}
}

func TestNothingInTheFirstSecond(t *testing.T) {
	m, out, tick := meter(80)
	m.Add(500)
	tick(0.2)
	tick(0.9)
	m.Stop()
	if out.Len() > 0 {
		t.Errorf("wrote %q", out)
	}
}

func TestDrawsAndErases(t *testing.T) {
	m, out, tick := meter(80)
	m.Add(100)
	tick(1)
	tick(0) // draws nothing; when it is taken, the first one is drawn
	m.Expect(1000)
	m.Add(900)
	tick(2)
	m.Stop()
	m.Stop()
	first := erase + "merge: 100 B of 1000 B (10%), 100 B/s, 9s left"
	want := first + erase + "merge: 1000 B of 2.0 KiB (50%), 500 B/s, 2s left" + erase
	if got := out.String(); got != want {
		t.Errorf("wrote %q\nwant  %q", got, want)
	}
}

func TestNarrowTerminal(t *testing.T) {
	m, out, tick := meter(20)
	tick(3)
	m.Stop()
	if got := strings.Split(out.String(), erase)[1]; len(got) != 19 {
		t.Errorf("%q has %d columns of 20", got, len(got))
	}
}

func TestNilMeter(t *testing.T) {
	var m *Meter
	m.Add(1)
	m.Expect(1)
	m.Stop()
}

func TestConcurrentAdd(t *testing.T) {
	m, _, _ := meter(80)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.Add(1)
			}
		})
	}
	wg.Wait()
	m.Stop()
	if got := m.done.Load(); got != 8000 {
		t.Errorf("counted %d", got)
	}
}

func TestStartStops(t *testing.T) {
	var out bytes.Buffer
	m := Start(&out, "merge", 10, func() int { return 80 })
	m.Add(10)
	m.Stop()
	if out.Len() > 0 {
		t.Errorf("wrote %q at once", &out)
	}
}
