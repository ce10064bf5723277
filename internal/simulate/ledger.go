package simulate

import (
	"iter"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// ledger is a rank's warmup evidence.
func (r *run) ledger(rank int) pyjson.Object {
	return pyjson.Object{
		{Key: "status", Value: "recorded"},
		{Key: "records", Value: r.records(rank)},
	}
}

// records yields the entries of a rank's ledger: the warmup at start-up, and one for each
// eager shape that ran once before it was measured.
func (r *run) records(rank int) iter.Seq[any] {
	return func(yield func(any) bool) {
		change := func(i int, record pyjson.Object) pyjson.Object {
			if r.change.record != nil && rank == r.victim() {
				return r.change.record(i, record)
			}
			return record
		}
		if !yield(change(0, globalRecord(rank))) {
			return
		}
		forward, n := globalForwards, 1
		for position := range r.grid {
			p := &r.grid[position]
			if p.eager {
				if !yield(change(n, eagerRecord(p, position, forward))) {
					return
				}
				forward++
				n++
			}
			forward += p.samples(r.opt.Raw)
		}
	}
}

// globalRecord is the warmup at start-up: one short prompt, run several times.
func globalRecord(rank int) pyjson.Object {
	length := 32 + rank
	return record(warmup{
		kind:       "global",
		shape:      pyjson.Object{{Key: "prompt_lengths", Value: pyjson.Array{length}}},
		validation: pyjson.Object{{Key: "status", Value: "not_performed"}, {Key: "reason", Value: nil}},
		count:      globalForwards,
		schedule:   func() pyjson.Object { return scheduled(1, length, 0, 0, 0, 0, 0) },
	})
}

// eagerRecord is the discarded replica of a point that no captured graph fits.
func eagerRecord(p *point, position, forward int) pyjson.Object {
	return record(warmup{
		kind:  "eager_shape",
		shape: p.object(),
		validation: pyjson.Object{
			{Key: "status", Value: "passed"},
			{Key: "reason", Value: nil},
			{Key: "scope", Value: "attention_dp_group"},
			{Key: "failed_dp_rank", Value: nil},
		},
		start:    forward,
		count:    1,
		before:   position,
		schedule: func() pyjson.Object { return p.scheduledAt(0, 1) },
	})
}

// warmup is what sets one completed record apart from another.
type warmup struct {
	kind       string
	shape      pyjson.Object
	validation pyjson.Object
	start      int // forward index
	count      int // forward passes
	before     int // points completed before it
	schedule   func() pyjson.Object
}

func record(w warmup) pyjson.Object {
	return pyjson.Object{
		{Key: "kind", Value: w.kind},
		{Key: "requested_shape", Value: w.shape},
		{Key: "status", Value: "completed"},
		{Key: "validation", Value: w.validation},
		{Key: "forward_index_start", Value: w.start},
		{Key: "forward_index_end", Value: w.start + w.count},
		{Key: "completed_points_before", Value: w.before},
		{Key: "observed_forward_count", Value: w.count},
		{Key: "first_scheduled_requests", Value: w.schedule()},
		{Key: "last_scheduled_requests", Value: w.schedule()},
	}
}
