package simulate

import (
	"context"
	"iter"
	"slices"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// evidence is how much a run's documents say about how it was measured.
type evidence int

const (
	legacy   evidence = iota // nothing
	measured                 // the protocol and each measurement
	executed                 // raw samples and the warmup ledger too
)

// run is a run that is planned and not written yet.
type run struct {
	opt      Options
	change   mutation
	base     artifact.Base
	ranks    []int
	grid     []point // in execution order
	decode   int     // position of the first decode point; every grid has one
	evidence evidence
	id       string
	digest   string    // of the grid
	measured float64   // seconds, the sum of the groups' wall times
	spans    []float64 // seconds from start to end by rank, warmups aside
}

// plan makes all of a run that its first bytes depend on.
func plan(ctx context.Context, opt Options, change mutation) (*run, error) {
	grid, err := makeGrid(ctx, opt)
	if err != nil {
		return nil, err
	}
	r := &run{
		opt:      opt,
		change:   change,
		base:     artifact.ParseBase(opt.Base),
		ranks:    make([]int, opt.Ranks),
		grid:     grid,
		decode:   slices.IndexFunc(grid, func(p point) bool { return !p.prefill }),
		evidence: executed,
		id:       roll(opt.Seed, forRun, 0, 0).hex(16),
		digest:   gridDigest(grid),
		spans:    make([]float64, opt.Ranks),
	}
	for i := range r.ranks {
		r.ranks[i] = i
	}
	if opt.Legacy {
		r.evidence = legacy
	}
	if change.prepare != nil {
		change.prepare(r)
	}
	return r, r.time(ctx)
}

// time goes through the whole run once for the times that its documents begin with.
func (r *run) time(ctx context.Context) error {
	var sum pyjson.Summer
	for _, measured := range r.walk(r.ranks...) {
		if err := ctx.Err(); err != nil {
			return err
		}
		sum.Add(slowest(measured))
		for i := range measured {
			r.spans[i] = measured[i].end()
		}
	}
	for i := range r.spans {
		r.spans[i] = max(0, r.spans[i]-newProcess(r.opt.Seed, i).clock)
	}
	r.measured = sum.Sum()
	return nil
}

// slowest is the wall time of a group in seconds.
func slowest(measured []measurement) float64 {
	wall := 0.0
	for i := range measured {
		wall = max(wall, measured[i].wall)
	}
	return wall
}

// victim is the rank whose file a broken rule is broken in, if one file is enough. It is
// the last, so that the reference stays whole where there are several.
func (r *run) victim() int { return r.opt.Ranks - 1 }

// last is the last position in the execution order.
func (r *run) last() int { return len(r.grid) - 1 }

// groups yields the iteration groups.
func (r *run) groups() iter.Seq[any] {
	expected := make(pyjson.Array, len(r.ranks))
	for i, rank := range r.ranks {
		expected[i] = rank
	}
	return func(yield func(any) bool) {
		for position, measured := range r.walk(r.ranks...) {
			p := &r.grid[position]
			group := pyjson.Object{
				{Key: "benchmark_id", Value: p.id},
				{Key: "point", Value: p.object()},
				{Key: "expected_dp_ranks", Value: expected},
				{Key: "complete", Value: true},
				{Key: "wall_time", Value: slowest(measured)},
				{Key: "rank_results", Value: r.rankResults(position, measured)},
			}
			if r.change.group != nil {
				group = r.change.group(r, position, group)
			}
			if !yield(group) {
				return
			}
		}
	}
}

// rankResults yields the entries of a group's rank_results.
func (r *run) rankResults(position int, measured []measurement) iter.Seq[any] {
	return func(yield func(any) bool) {
		key := r.grid[position].contentKey()
		for i := range measured {
			entry := pyjson.Object{
				{Key: "dp_rank", Value: measured[i].rank},
				{Key: "fpms", Value: r.fpms(position, key, &measured[i])},
			}
			if !yield(entry) {
				return
			}
		}
	}
}

// results yields the entries of a rank's own results.
func (r *run) results(rank int) iter.Seq[any] {
	if r.change.order != nil && rank == r.victim() {
		return r.change.order(r.ownResults(rank))
	}
	return r.ownResults(rank)
}

func (r *run) ownResults(rank int) iter.Seq[any] {
	return func(yield func(any) bool) {
		for position, measured := range r.walk(rank) {
			p := &r.grid[position]
			result := pyjson.Object{
				{Key: "point", Value: p.object()},
				{Key: "kv_seed_regime", Value: p.regime()},
				{Key: "fpms", Value: r.fpms(position, p.contentKey(), &measured[0])},
			}
			if r.change.result != nil && rank == r.victim() {
				result = r.change.result(r, position, result)
			}
			if !yield(result) {
				return
			}
		}
	}
}
