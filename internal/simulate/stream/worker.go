package stream

import (
	"context"
	"sync"
	"time"
)

const (
	tick     = 2 * time.Millisecond   // passes that are due within it leave together
	downTime = 500 * time.Millisecond // of a worker that is restarted
	batch    = 64                     // messages of a rank between two looks at the clock, as fast as can be
)

// worker is a process with its ranks. They share a clock, and a fate when it restarts.
type worker struct {
	opt    *Options
	number int
	ranks  []*rank
}

func newWorker(opt *Options, number int) *worker {
	w := &worker{opt: opt, number: number}
	for i := range opt.Ranks {
		w.ranks = append(w.ranks, newRank(opt, number, i))
	}
	return w
}

// bind opens the sockets of all ranks. After an error some of them are open.
func (w *worker) bind() error {
	for _, r := range w.ranks {
		if err := r.bind(w.opt); err != nil {
			return err
		}
	}
	return nil
}

// close closes the sockets that are open, all at the same time.
func (w *worker) close(deadline time.Time) {
	var all sync.WaitGroup
	for _, r := range w.ranks {
		if socket := r.socket; socket != nil {
			r.socket = nil
			all.Go(func() { socket.close(deadline) })
		}
	}
	all.Wait()
}

// run publishes what is due until there is nothing more to publish.
func (w *worker) run(ctx context.Context) error {
	defer func() { w.close(time.Now().Add(w.opt.Linger)) }()
	begin := time.Now()
	next := begin.Add(w.opt.RestartEvery + w.opt.RestartEvery*time.Duration(w.number)/time.Duration(w.opt.Workers)) // not all at once
	for {
		stop := context.AfterFunc(ctx, w.release())
		again := w.publish(ctx, begin, next)
		stop()
		if !again {
			return nil
		}
		down := time.Now()
		if up, err := w.restart(ctx); !up {
			return err
		}
		begin = begin.Add(time.Since(down)) // nothing was due meanwhile
		next = time.Now().Add(w.opt.RestartEvery)
	}
}

// release returns a function that lets no socket wait for a subscriber any more, whatever
// becomes of the worker meanwhile.
func (w *worker) release() func() {
	var sockets []*publisher
	for _, r := range w.ranks {
		sockets = append(sockets, r.socket)
	}
	return func() {
		for _, s := range sockets {
			s.release()
		}
	}
}

// publish publishes what is due, until it is time for a restart. It returns false when
// there is to be none.
func (w *worker) publish(ctx context.Context, begin, restart time.Time) (again bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if ctx.Err() != nil || w.done() {
			return false
		}
		now := time.Now()
		if w.opt.RestartEvery > 0 && !now.Before(restart) {
			return true
		}
		if w.opt.Rate == 0 && w.opt.Load != Idle {
			w.publishBatch()
			continue
		}
		timer.Reset(max(tick, w.publishDue(now.Sub(begin))))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}

// publishBatch publishes some passes of every rank, due or not.
func (w *worker) publishBatch() {
	for _, r := range w.ranks {
		for range batch {
			if !r.done(w.opt) {
				r.publish(w.opt)
			}
		}
		r.socket.flush()
	}
}

// publishDue publishes what is due at a time since the start, and returns how long there
// is nothing more.
func (w *worker) publishDue(now time.Duration) (idle time.Duration) {
	idle = heartbeat
	for _, r := range w.ranks {
		sent := false
		for !r.done(w.opt) && r.due.at <= now {
			r.publish(w.opt)
			sent = true
		}
		if sent {
			r.socket.flush()
		}
		idle = min(idle, r.due.at-now)
	}
	return idle
}

// done tells whether every rank has published its count.
func (w *worker) done() bool {
	for _, r := range w.ranks {
		if !r.done(w.opt) {
			return false
		}
	}
	return true
}

// restart stops the worker and starts it again after a while, with counters from 0. It
// returns false when the context is done first, or with an error.
func (w *worker) restart(ctx context.Context) (up bool, err error) {
	w.close(time.Now().Add(w.opt.Linger))
	select {
	case <-time.After(downTime):
	case <-ctx.Done():
		return false, nil
	}
	if err := w.bind(); err != nil {
		return false, err
	}
	for _, r := range w.ranks {
		r.Restarts++
		r.Next = 0
	}
	return true, nil
}
