package simulate

import (
	"iter"
	"math"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/pyjson"
)

func groupBreaks() []mutation {
	return []mutation{{
		Break: Break{Rule: finding.GroupDiffers, How: "the last rank's file has a group with another queue", MinRanks: 2},
		peerGroup: func(_ *run, position int, group pyjson.Object) {
			if position == 0 {
				set(group, editFirst(group, func(entry pyjson.Object) {
					set(entry, 1, "fpms", 0, "queued_requests", "num_decode_requests")
				}), "rank_results")
			}
		},
	}, {
		Break:   Break{Rule: finding.GroupEmpty, How: "the run has no points"},
		prepare: func(r *run) { r.grid = nil },
	}, {
		Break: Break{Rule: finding.GroupID, How: "the highest benchmark id is one too high"},
		prepare: func(r *run) {
			for i := range r.grid {
				if r.grid[i].id == len(r.grid) {
					r.grid[i].id++
				}
			}
		},
	}, {
		Break: Break{Rule: finding.GroupIncomplete, How: "a group is not complete"},
		group: inFirstGroup(func(_ *run, group pyjson.Object) { set(group, false, "complete") }),
	}, {
		Break: Break{Rule: finding.GroupRanks, How: "a group has results of a rank that the run has not"},
		group: inFirstGroup(func(r *run, group pyjson.Object) {
			set(group, withStranger(group, r.opt.Ranks), "rank_results")
		}),
	}}
}

func rankResults(group pyjson.Object) iter.Seq[any] {
	return (*at(group, "rank_results")).(iter.Seq[any])
}

// editFirst returns a group's rank results with the first one edited.
func editFirst(group pyjson.Object, edit func(pyjson.Object)) iter.Seq[any] {
	entries := rankResults(group)
	return func(yield func(any) bool) {
		first := true
		for entry := range entries {
			if first {
				edit(entry.(pyjson.Object))
				first = false
			}
			if !yield(entry) {
				return
			}
		}
	}
}

// withStranger returns a group's rank results with those of one more rank behind them, a
// copy of the last that fits the new rank in everything.
func withStranger(group pyjson.Object, rank int) iter.Seq[any] {
	entries := rankResults(group)
	return func(yield func(any) bool) {
		var last any
		for entry := range entries {
			last = clone(entry)
			if !yield(entry) {
				return
			}
		}
		renumber(last, rank)
		yield(last)
	}
}

// renumber replaces every dp_rank in a value.
func renumber(v any, rank int) {
	switch v := v.(type) {
	case pyjson.Object:
		for i := range v {
			if v[i].Key == "dp_rank" {
				v[i].Value = rank
			}
			renumber(v[i].Value, rank)
		}
	case pyjson.Array:
		for i := range v {
			renumber(v[i], rank)
		}
	}
}

func metricBreaks() []mutation {
	return []mutation{{
		Break: Break{
			Rule:    finding.GroupFPMCount,
			Entails: []finding.ID{finding.ResultFPMCount},
			How:     "the last point was measured twice by the last rank, in its results and in the groups",
		},
		fpms: func(r *run, position, rank int, fpms pyjson.Array) pyjson.Array {
			if position == r.last() && rank == r.victim() {
				fpms = append(fpms, later(clone(fpms[0]).(pyjson.Object)))
			}
			return fpms
		},
	}, {
		Break: Break{
			Rule:    finding.GroupCounter,
			Entails: []finding.ID{finding.ResultCounter},
			How:     "a metric has counter 0, in the last rank's results and in the groups",
		},
		fpms: putFirst(0, "counter_id"),
	}, {
		Break: Break{
			Rule:    finding.GroupFPMRank,
			Entails: []finding.ID{finding.ResultFPMRank},
			How:     "a metric of the last rank names a rank that the run has not, in its results and in the groups",
		},
		fpms: func(r *run, position, rank int, fpms pyjson.Array) pyjson.Array {
			return putFirst(r.opt.Ranks, "dp_rank")(r, position, rank, fpms)
		},
	}, {
		Break: Break{Rule: finding.GroupWallTime, How: "a group's wall time is above the largest by its last bit"},
		group: inFirstGroup(func(_ *run, group pyjson.Object) {
			wall := at(group, "wall_time")
			*wall = math.Nextafter((*wall).(float64), math.Inf(1))
		}),
	}}
}

// later moves the raw samples of a metric, if it has any, behind themselves.
func later(fpm pyjson.Object) pyjson.Object {
	measurement := child(fpm, "benchmark_measurement")
	if measurement == nil {
		return fpm
	}
	raws := (*at(*measurement, "raw_fpms")).(pyjson.Array)
	for _, raw := range raws {
		index := at(raw, "benchmark_sample", "forward_index")
		*index = (*index).(int) + len(raws)
	}
	return fpm
}

func resultBreaks() []mutation {
	return []mutation{{
		Break: Break{Rule: finding.ResultID, How: "a result of the last rank is of a point that no group has"},
		result: inFirstResult(func(r *run, result pyjson.Object) {
			renameResult(result, len(r.grid)+1)
		}),
	}, {
		Break: Break{Rule: finding.ResultPoint, How: "a point of the last rank's results has another reason than its group's"},
		result: inFirstResult(func(_ *run, result pyjson.Object) {
			set(result, "explicit", "point", "sample_reasons", 0)
		}),
	}, {
		Break: Break{Rule: finding.ResultFPMCount, How: "a result of the last rank has no list of metrics"},
		result: func(_ *run, position int, result pyjson.Object) pyjson.Object {
			if position > 0 {
				return result
			}
			return without(result, "fpms")
		},
	}, {
		Break: Break{
			Rule:    finding.ResultCounter,
			Entails: []finding.ID{finding.ResultDiffers},
			How:     "a metric of the last rank's results has counter 0",
		},
		result: inFirstResult(func(_ *run, result pyjson.Object) { set(result, 0, "fpms", 0, "counter_id") }),
	}, {
		Break: Break{
			Rule:    finding.ResultFPMRank,
			Entails: []finding.ID{finding.ResultDiffers},
			How:     "a metric of the last rank's results names a rank that the run has not",
		},
		result: inFirstResult(func(r *run, result pyjson.Object) { set(result, r.opt.Ranks, "fpms", 0, "dp_rank") }),
	}, {
		Break: Break{Rule: finding.ResultDiffers, How: "a metric of the last rank's results has another queue than in its group"},
		result: inFirstResult(func(_ *run, result pyjson.Object) {
			set(result, 1, "fpms", 0, "queued_requests", "num_decode_requests")
		}),
	}}
}

// renameResult makes a result one of another benchmark id, in all that it holds.
func renameResult(result pyjson.Object, id int) {
	set(result, id, "point", "benchmark_id")
	set(result, id, "fpms", 0, "counter_id")
	measurement := child(*at(result, "fpms", 0), "benchmark_measurement")
	if measurement == nil {
		return
	}
	for _, raw := range (*at(*measurement, "raw_fpms")).(pyjson.Array) {
		set(raw, id, "counter_id")
	}
}

// peerGroups yields the iteration groups as only the victim's file has them.
func (r *run) peerGroups() iter.Seq[any] {
	groups := r.groups()
	return func(yield func(any) bool) {
		position := 0
		for group := range groups {
			r.change.peerGroup(r, position, group.(pyjson.Object))
			position++
			if !yield(group) {
				return
			}
		}
	}
}
