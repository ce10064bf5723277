package top

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/fpm-project/fpm/internal/goldentest"
	"github.com/fpm-project/fpm/trace/wire"
)

// fleet is the snapshot of a board that a little of everything has happened to.
func fleet() Snapshot {
	b := NewBoard("tcp://10.0.0.1:20380", "tcp://10.0.0.1:20381", "tcp://10.0.0.2:20380", "ipc:///tmp/sgl.0")
	for i := range int64(70) {
		for j := range int64(20) {
			at := time.Duration(i)*time.Second + time.Duration(j)*50*time.Millisecond
			p := busy("7587890123456701", 0, i*20+j, at)
			p.Source = "tcp://10.0.0.1:20380"
			p.Scheduled.NumDecodeRequests = uint64(i % 30)
			b.Add(p)
			if i < 62 {
				p = busy("7587890123456701", 1, (i*20+j)*2, at)
				p.Source = "tcp://10.0.0.1:20381"
				b.Add(p)
			}
		}
		if i >= 40 {
			b.Add(&Pass{Source: "ipc:///tmp/sgl.0", Worker: "sgl\x1b[31m-worker-with-a-long-name-日本語", Counter: i % 50, At: start.Add(time.Duration(i) * time.Second)})
		}
	}
	b.Note("tcp://10.0.0.1:20380", Connected, "")
	b.Note("tcp://10.0.0.1:20381", Silent, "the engine may hang")
	b.Note("ipc:///tmp/sgl.0", Connected, "")
	b.Note("tcp://10.0.0.2:20380", Waiting, "connection \x1b]0;refused\a")
	b.Refuse("ipc:///tmp/sgl.0", "version: not 1")
	return b.Snapshot(start.Add(70*time.Second + 200*time.Millisecond))
}

func TestPlain(t *testing.T) {
	snap := fleet()
	var b strings.Builder
	for _, v := range []View{{}, {Width: 80}, {Width: 120, Sort: ByWall, Down: true, Metric: RateMetric}, {Width: 40}, {Width: 150, Filter: "RANK 1"}, {Width: 100, Filter: "nobody"}} {
		fmt.Fprintf(&b, "== %+v\n%s", v, v.Plain(&snap))
	}
	goldentest.Check(t, "plain.txt", b.String())
}

func TestColors(t *testing.T) {
	snap := fleet()
	v := View{Width: 100, Color: true}
	got := v.Plain(&snap)
	goldentest.Check(t, "color.txt", strings.ReplaceAll(got, "\x1b", "ESC"))
	without := View{Width: 100}
	if ansi.Strip(got) != without.Plain(&snap) {
		t.Error("colour changes the text")
	}
}

// TestNothingOfAPeerReachesTheTerminal has worker ids and errors full of what a terminal
// obeys.
func TestNothingOfAPeerReachesTheTerminal(t *testing.T) {
	evil := "\x1b[2J\x1b]0;title\a\r\n\u202e\u009b31m\x00\xff"
	b := NewBoard("tcp://" + evil)
	b.Add(&Pass{Source: evil, Worker: evil, At: start})
	b.Add(&Pass{Source: evil, At: start})
	b.Note("tcp://"+evil, Waiting, evil)
	b.Refuse("tcp://"+evil, evil)
	snap := b.Snapshot(start.Add(time.Second))
	for _, v := range []View{{}, {Width: 60}, {Width: 200, Filter: evil}} {
		text := v.Plain(&snap)
		m := NewModel(func() Snapshot { return snap }, v)
		m.snap, m.view.Filter, m.typing = snap, evil, evil
		m.view.Width = 200
		text += strings.Join(m.screen(), "\n")
		m.input = true
		text += strings.Join(m.screen(), "\n")
		if i := strings.IndexFunc(text, func(r rune) bool {
			return r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e || r == 0xfffd)
		}); i >= 0 {
			t.Errorf("width %d: %q", v.Width, text[i:min(len(text), i+40)])
		}
	}
}

// TestEveryWidth checks that no line is wider than the terminal, whatever it shows.
func TestEveryWidth(t *testing.T) {
	snap := fleet()
	for width := 1; width <= 260; width++ {
		for _, color := range []bool{false, true} {
			v := View{Width: width, Color: color}
			lines := append(v.Table(v.Select(snap.Lines)), v.Troubles(&snap)...)
			for _, line := range lines {
				if got := ansi.StringWidth(line); got > width {
					t.Fatalf("width %d: %d in %q", width, got, line)
				}
			}
		}
	}
}

func TestSortByEveryColumn(t *testing.T) {
	snap := fleet()
	for _, c := range Columns() {
		up, down := View{Sort: c}, View{Sort: c, Down: true}
		a, b := up.Select(snap.Lines), down.Select(snap.Lines)
		for _, col := range columns() {
			if col.by != c || col.value == nil {
				continue
			}
			for i := 1; i < len(a); i++ {
				if col.value(a[i-1]) > col.value(a[i]) || col.value(b[i-1]) < col.value(b[i]) {
					t.Errorf("not sorted by %s", c)
				}
			}
		}
	}
	if len(columns()) != len(Columns()) {
		t.Error("there are columns that cannot be sorted by")
	}
}

func TestFilter(t *testing.T) {
	snap := fleet()
	for filter, want := range map[string]int{"": 3, "7587": 2, "rank 1": 1, "RANK 0": 2, "IPC://": 1, "20381": 1, "nothing": 0} {
		v := View{Filter: filter}
		if got := len(v.Select(snap.Lines)); got != want {
			t.Errorf("%q leaves %d lines, want %d", filter, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.04: "0.0", 1: "1.0", 12.34: "12.3", 99.94: "99.9", 99.96: "100", 12345: "12345", 99999.4: "99999", 99999.6: "100k",
		123456: "123.5k", 999949: "999.9k", 999951: "1M", 2.5e9: "2.5G", 1e18: "1E", 1e30: "many", math.Inf(1): "many", math.NaN(): "-",
	} {
		if got := mean(x); got != want {
			t.Errorf("%v is %s, want %s", x, got, want)
		}
	}
	for x, want := range map[float64]string{
		0: "-", math.NaN(): "-", 12e-6: "12µs", 0.000999: "999µs", 0.0009996: "1.0ms", 0.0123: "12.3ms", 0.0996: "100ms", 0.25: "250ms", 0.9996: "1.0s", 12.3: "12.3s", 150: "150s", 1e9: "1Gs",
	} {
		if got := seconds(x); got != want {
			t.Errorf("%v s is %s, want %s", x, got, want)
		}
	}
	for d, want := range map[time.Duration]string{0: "0.0s", 3400 * time.Millisecond: "3.4s", 42 * time.Second: "42s", 5 * time.Minute: "5m", 48 * time.Hour: "48h"} {
		if got := span(d); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
}

func TestSparkline(t *testing.T) {
	var s [Minute]Second
	if got := sparkline(&s, RateMetric, 10); got != strings.Repeat(" ", 10) {
		t.Errorf("of nothing: %q", got)
	}
	for i := range s {
		s[i] = Second{Passes: i, Heartbeats: 1}
	}
	if got := sparkline(&s, RateMetric, 60); !strings.HasPrefix(got, "▁▁▁▁▁▂") || !strings.HasSuffix(got, "▇█████") || len([]rune(got)) != 60 {
		t.Errorf("rising: %q", got)
	}
	if got := sparkline(&s, WallMetric, 7); got != "▁▁▁▁▁▁▁" {
		t.Errorf("of zeros: %q", got)
	}
	s[59] = Second{}
	if got := sparkline(&s, RateMetric, 60); !strings.HasSuffix(got, " ") {
		t.Errorf("a silent second: %q", got)
	}
	for width := 1; width <= Minute; width++ {
		if got := sparkline(&s, DecodeMetric, width); len([]rune(got)) != width {
			t.Errorf("width %d: %q", width, got)
		}
	}
}

// ExampleView prints a board where there is no terminal.
func ExampleView() {
	board := NewBoard("tcp://127.0.0.1:20380")
	board.Note("tcp://127.0.0.1:20380", Connected, "")
	for i := range int64(40) {
		board.Add(&Pass{
			Source: "tcp://127.0.0.1:20380", Worker: "7587890123456789", Counter: i, At: start.Add(time.Duration(i) * 50 * time.Millisecond),
			WallTime: 0.0125, Scheduled: wire.Load{NumDecodeRequests: 16, SumDecodeKVTokens: 20000},
		})
	}
	snap := board.Snapshot(start.Add(2 * time.Second))
	view := View{Width: 90, Metric: RateMetric}
	fmt.Print(view.Plain(&snap))
	// Output:
	// 12:00:02  1 worker, 1 rank, 20.0 passes/s, 1 of 1 endpoint connected
	// WORKER           RANK RATE/s   WALL PREF/s DEC/pass     KV QUEUE  GAPS SILENT RATE 60s
	// 7587890123456789    0   20.0 12.5ms      0     16.0  20000     0     0   0.1s            █
}
