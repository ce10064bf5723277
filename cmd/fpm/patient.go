package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/fpm-project/fpm/internal/words"
)

const (
	// patientBytes is what waits for a reader of standard error.
	patientBytes = 64 << 10

	// stderrWithin and stdoutWithin are how long a recorder that has ended waits for
	// whoever reads its streams. With what comes before they are within five seconds.
	stderrWithin = 150 * time.Millisecond
	stdoutWithin = 350 * time.Millisecond
)

// patient is a stream that a program does not wait for: a pipe that nobody reads, or a
// terminal that is held, must not stop what goes on beside it. What is written waits in
// memory; beyond a bound it is dropped, and how often that was is said once there is room.
type patient struct {
	w    io.Writer
	most int // bytes that may wait; 0 is no bound

	mu      sync.Mutex
	waiting []byte
	writing int           // bytes that are on their way
	settled chan struct{} // closed when nothing waits any more; nil while nothing does
	lost    int           // writes since the last one that was taken
	err     error         // the stream's first
}

// Write takes what there is room for, and never waits. It returns the stream's error once
// there has been one.
func (p *patient) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return 0, p.err
	case p.most > 0 && len(p.waiting)+p.writing+len(b) > p.most:
		p.lost++
		return len(b), nil
	}
	if p.lost > 0 {
		p.waiting = fmt.Appendf(p.waiting, "fpm: %s missing here: nobody read %s\n", words.Count(p.lost, "message is", "messages are"), words.Plural(p.lost, "it", "them"))
		p.lost = 0
	}
	p.waiting = append(p.waiting, b...)
	if p.settled == nil {
		p.settled = make(chan struct{})
		go p.run(p.settled)
	}
	return len(b), nil
}

// run writes what waits, until there is nothing.
func (p *patient) run(settled chan struct{}) {
	defer close(settled)
	for {
		p.mu.Lock()
		chunk := p.waiting
		p.waiting, p.writing = nil, len(chunk)
		if len(chunk) == 0 || p.err != nil {
			p.settled = nil
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		if _, err := p.w.Write(chunk); err != nil {
			p.mu.Lock()
			p.err = err
			p.mu.Unlock()
		}
	}
}

// flush waits until everything is written, or for so long after hurry is closed. It tells
// whether it is, and returns the stream's error.
func (p *patient) flush(hurry <-chan struct{}, within time.Duration) (done bool, err error) {
	p.mu.Lock()
	settled := p.settled
	p.mu.Unlock()
	if settled != nil {
		select {
		case <-settled:
		case <-hurry:
			timer := time.NewTimer(within)
			defer timer.Stop()
			select {
			case <-settled:
			case <-timer.C:
				return false, nil
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return true, p.err
}

// Fd is for those who ask whether the stream is a terminal.
func (p *patient) Fd() uintptr {
	if f, ok := p.w.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0) // none
}
