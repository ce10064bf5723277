package top

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// Watch feeds a board from endpoints, whose addresses it was made with, until the context
// is done. The error is that of an endpoint that can be none; the network's are news on
// the board.
func Watch(ctx context.Context, board *Board, endpoints []subscribe.Endpoint) error {
	errs := make([]error, len(endpoints))
	var all sync.WaitGroup
	for i, e := range endpoints {
		all.Go(func() {
			w := &watch{board: board, endpoint: e}
			errs[i] = subscribe.Subscribe(ctx, e, subscribe.Options{OnMessage: w.message, OnEvent: w.event, SilentAfter: Quiet})
			if ctx.Err() != nil {
				errs[i] = nil
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// watch feeds a board from one endpoint.
type watch struct {
	board    *Board
	endpoint subscribe.Endpoint
	decoder  wire.Decoder
	buffer   []byte
}

func (w *watch) message(frames [][]byte, at time.Time) {
	f, buffer, err := w.decoder.Decode(w.buffer[:0], frames)
	w.buffer = buffer
	if err != nil {
		w.board.Refuse(w.endpoint.Address, err.Error())
		return
	}
	p := passOf(&f)
	p.Source, p.At = w.endpoint.Address, at
	w.board.Add(&p)
}

func passOf(f *wire.FPM) Pass {
	return Pass{
		Worker: f.WorkerID, Rank: f.DPRank, Counter: f.CounterID,
		WallTime: f.WallTime, Scheduled: f.Scheduled, Queued: f.Queued,
	}
}

func (w *watch) event(e subscribe.Event) {
	say := func(state State, detail string) { w.board.Note(w.endpoint.Address, state, detail) }
	switch e.Kind {
	case subscribe.Connected, subscribe.Recovered:
		say(Connected, "")
	case subscribe.Failed, subscribe.Disconnected:
		say(Waiting, subscribe.Reason(e.Err))
	case subscribe.Silent:
		if e.Err != nil { // there is no connection, and that has been said
			return
		}
		say(Silent, e.Cause)
	case subscribe.Refused:
		w.board.Refuse(w.endpoint.Address, subscribe.Reason(e.Err))
	}
}

// FollowLag is how long a row of a trace that is being written takes to arrive: writers
// flush once a second. A snapshot of a followed trace should look back by it.
const FollowLag = segment.PollInterval + 1200*time.Millisecond

// Follow feeds a board from the segments that arguments stand for as they grow, see
// [segment.Find], until the context is done. What they hold already is left out unless
// history is asked for. Rows that are damaged are skipped and holes passed over: whoever
// wants to know of them verifies the trace. The error is that of reading a file.
func Follow(ctx context.Context, board *Board, args []string, history bool) error {
	ticks := time.NewTicker(segment.PollInterval)
	defer ticks.Stop()
	follower := segment.NewFollower(args, segment.FollowOptions{OnlyNew: !history})
	rows := &rows{board: board}
	err := follower.Run(ctx, ticks.C, rows.add)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// rows feeds a board from the lines of a trace.
type rows struct {
	board  *Board
	parser trace.Parser
	row    trace.Row
}

func (r *rows) add(rec segment.Record) error {
	if rec.Hole != nil || r.parser.Parse(rec.Line, &r.row) != nil {
		return nil
	}
	p := passOf(&r.row.FPM)
	p.Source, p.At = r.row.ProducerID, time.UnixMilli(r.row.ObservedUnixMS)
	p.Sampled = r.row.Mode != wire.Full || !r.row.Numbered
	r.board.Add(&p)
	return nil
}
