// Package progress shows on a terminal how far work has come: bytes done of all bytes,
// rate and time left, on one line that is drawn again and again and erased at the end.
//
// Nothing is shown during the first second: most work is over by then.
package progress

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	delay  = time.Second            // before the first line
	period = 200 * time.Millisecond // between two lines
	erase  = "\r\x1b[K"
)

// Meter counts bytes of work. A nil Meter counts nothing and shows nothing, so that work
// needs no second path for when nobody looks.
type Meter struct {
	w     io.Writer
	label string
	width func() int // columns of the terminal
	begun time.Time

	done, total atomic.Int64
	stop        func() // tells the drawing goroutine to end, once
	stopped     chan struct{}
	drawn       bool // only the drawing goroutine's until it has ended
}

// Start returns a running meter that draws on the terminal w, which is width() columns
// wide. Stop ends it. The label says what is being done. It is the caller's to know that
// w is a terminal.
func Start(w io.Writer, label string, total int64, width func() int) *Meter {
	ticker := time.NewTicker(period)
	m := start(w, label, total, width, time.Now(), ticker.C)
	stop := m.stop
	m.stop = func() { ticker.Stop(); stop() }
	return m
}

func start(w io.Writer, label string, total int64, width func() int, begun time.Time, tick <-chan time.Time) *Meter {
	quit := make(chan struct{})
	m := &Meter{
		w: w, label: label, width: width, begun: begun,
		stop: sync.OnceFunc(func() { close(quit) }), stopped: make(chan struct{}),
	}
	m.total.Store(total)
	go m.run(tick, quit)
	return m
}

// run draws at every tick until quit is closed, then erases what it drew.
func (m *Meter) run(tick <-chan time.Time, quit <-chan struct{}) {
	defer close(m.stopped)
	for {
		select {
		case now := <-tick:
			if elapsed := now.Sub(m.begun); elapsed >= delay {
				m.draw(elapsed)
			}
		case <-quit:
			if m.drawn {
				io.WriteString(m.w, erase) // nothing depends on a terminal that is gone
			}
			return
		}
	}
}

func (m *Meter) draw(elapsed time.Duration) {
	text := m.label + ": " + line(m.done.Load(), m.total.Load(), elapsed)
	if columns := m.width(); columns > 1 && len(text) >= columns {
		text = text[:columns-1] // a line that wraps could not be erased
	}
	io.WriteString(m.w, erase+text)
	m.drawn = true
}

// Add counts n more bytes as done. It may be called from any goroutine.
func (m *Meter) Add(n int64) {
	if m != nil {
		m.done.Add(n)
	}
}

// Expect adds n bytes to what there is to do.
func (m *Meter) Expect(n int64) {
	if m != nil {
		m.total.Add(n)
	}
}

// Stop erases the line. When it returns nothing more is written. It may be called again.
func (m *Meter) Stop() {
	if m != nil {
		m.stop()
		<-m.stopped
	}
}

// line says how far the work has come, in ASCII.
func line(done, total int64, elapsed time.Duration) string {
	text := Bytes(done)
	rate := float64(done) / elapsed.Seconds()
	if total > 0 {
		done = min(done, total)
		text += fmt.Sprintf(" of %s (%d%%)", Bytes(total), int(100*float64(done)/float64(total)))
	}
	text += fmt.Sprintf(", %s/s", Bytes(int64(rate)))
	if total > 0 && done > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		text += ", " + left.Round(time.Second).String() + " left"
	}
	return text
}

// Bytes returns a number of bytes for people, in binary units: "1.5 GiB".
func Bytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		f /= 1 << 10
		if f < 1023.95 { // what is printed as 1024.0 belongs to the next unit
			return fmt.Sprintf("%.1f %s", f, unit)
		}
	}
	return fmt.Sprintf("%.1f EiB", f/(1<<10))
}
