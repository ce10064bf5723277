package merge

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// said is what a finding of a run says. Its line and column are not in it: they must be
// those of what Pointer leads to, or of its parent where that is absent.
type said struct {
	Rule     finding.ID
	Rank     int
	ID       int64 // benchmark id; 0 none
	Pointer  string
	Expected string
	Actual   string
}

// vector is a change to a sound run, and what must be found then.
type vector struct {
	name    string
	shape   shape
	changes []change
	want    []said
}

func does(list ...change) []change { return list }

var (
	set, del = jsontest.Set, jsontest.Del
)

// broken reports one finding for each of several ranks.
func broken(rule finding.ID, id int64, pointer, expected, actual string, ranks ...int) (list []said) {
	for _, rank := range ranks {
		list = append(list, said{rule, rank, id, pointer, expected, actual})
	}
	return list
}

const finished = `"complete" or "partial"`

func statusVectors() []vector {
	const rule = finding.RankStatus
	return []vector{
		{"failed everywhere", two(), does(every(set("/status", `"failed"`))), broken(rule, 0, "/status", finished, `"failed"`, 0, 1)},
		{"failed on one rank", two(), does(only(1, set("/status", `"failed"`))),
			slices.Concat(broken(rule, 0, "/status", finished, `"failed"`, 1), broken(finding.RunStatus, 0, "/status", `"complete"`, `"failed"`, 1))},
		{"status null", two(), does(only(1, set("/status", "null"))), broken(rule, 0, "/status", finished, "null", 1)},
		{"no status, not valid", two(), does(every(del("/status"), set("/valid", "false"))), broken(rule, 0, "/status", finished, "absent", 0, 1)},
		{"no status, valid 1", two(), does(every(del("/status"), set("/valid", "1"))), broken(rule, 0, "/status", finished, "absent", 0, 1)},
		{"statuses differ", two(), does(partial(), only(1, set("/status", `"complete"`))), slices.Concat(
			partialRun0(), broken(finding.RunStatus, 0, "/status", `"partial"`, `"complete"`, 1), broken(finding.RankComplete, 0, "/valid", "true", "false", 1),
			broken(finding.RankComplete, 0, "/stop_reason", "null, or absent", `"timeout"`, 1), broken(finding.RankComplete, 0, "/coverage/completed_points", "9", "2", 1))},
	}
}

// partial makes a run one that stopped at the time-out.
func partial() change {
	return every(set("/status", `"partial"`), set("/valid", "false"), set("/stop_reason", `"timeout"`), set("/coverage/expected_points", "9"))
}

// partialRun0 is the warning about a run that stopped early.
func partialRun0() []said { return broken(finding.RankPartialRun, 0, "/status", "", "", 0) }

func coverageVectors() []vector {
	const rule = finding.RankCoverage
	const object = "an object with expected_points, completed_points and skipped_points"
	const count = "an integer of at least 0"
	const sum = "an integer of at least 2, completed_points + skipped_points"
	const listed = " (there are 2 in results, 2 in iteration_groups, 0 in skipped_points)"
	return []vector{
		{"no coverage", two(), does(every(del("/coverage"))), broken(rule, 0, "/coverage", object, "absent", 0, 1)},
		{"coverage a list", two(), does(only(1, set("/coverage", "[2, 2, 0]"))), broken(rule, 0, "/coverage", object, "[2,2,0]", 1)},
		{"count missing", two(), does(every(del("/coverage/completed_points"))), broken(rule, 0, "/coverage/completed_points", count+" (there are 2 in results, 2 in iteration_groups)", "absent", 0, 1)},
		{"count negative", two(), does(every(set("/coverage/expected_points", "-1"))), broken(rule, 0, "/coverage/expected_points", sum, "-1", 0, 1)},
		{"count a float", two(), does(every(set("/coverage/expected_points", "2.0"))), broken(rule, 0, "/coverage/expected_points", sum, "2.0", 0, 1)},
		{"count false", two(), does(every(set("/coverage/skipped_points", "false"))), broken(rule, 0, "/coverage/skipped_points", count+" (there are 0 in skipped_points)", "false", 0, 1)},
		{"more than expected", two(), does(every(set("/coverage/expected_points", "1"))), slices.Concat(
			broken(rule, 0, "/coverage", "completed_points + skipped_points at most 1"+listed, `{"expected_points": 1,"completed_points": 2,"skipped_points": 0}`, 0, 1),
			broken(finding.RankComplete, 0, "/coverage/completed_points", "1", "2", 0, 1))},
		{"largest counts", two(), does(every(set("/coverage/expected_points", "9223372036854775807"), set("/coverage/skipped_points", "9223372036854775807"), set("/skipped_points", "[]"))), slices.Concat(
			broken(rule, 0, "/coverage", "completed_points + skipped_points at most 9223372036854775807"+listed, `{"expected_points": 9223372036854775807,"completed_points": 2,"skipped_points": 9223372036854775807}`, 0, 1),
			broken(finding.RankCounts, 0, "/skipped_points", "9223372036854775807 entries", "0 entries", 0, 1),
			broken(finding.RankComplete, 0, "/coverage/completed_points", "9223372036854775807", "2", 0, 1),
			broken(finding.RankComplete, 0, "/coverage/skipped_points", "0", "9223372036854775807", 0, 1))},
	}
}

func countsVectors() []vector {
	const rule = finding.RankCounts
	return []vector{
		{"result lost", two(), does(only(1, del("/results/1"))), broken(rule, 0, "/results", "2 entries", "1 entry", 1)},
		{"results lost", two(), does(only(1, del("/results"))), broken(rule, 0, "/results", "a list", "absent", 1)},
		{"results null", two(), does(only(0, set("/results", "null"))), broken(rule, 0, "/results", "a list", "null", 0)},
		{"group lost", two(), does(every(del("/iteration_groups/1"))), broken(rule, 0, "/iteration_groups", "2 entries", "1 entry", 0, 1)},
		{"groups lost", two(), does(every(del("/iteration_groups"))), broken(rule, 0, "/iteration_groups", "a list", "absent", 0, 1)},
		{"groups an object", two(), does(every(set("/iteration_groups", "{}"))), broken(rule, 0, "/iteration_groups", "a list", "{}", 0, 1)},
		{"groups an object on one rank", two(), does(only(1, set("/iteration_groups", "{}"))), broken(rule, 0, "/iteration_groups", "a list", "{}", 1)},
		{"skipped but not counted", two(), does(every(set("/skipped_points/-", `{"reason": "x"}`))), broken(rule, 0, "/skipped_points", "0 entries", "1 entry", 0, 1)},
		{"skipped points null", two(), does(every(set("/skipped_points", "null"))), broken(rule, 0, "/skipped_points", "a list", "null", 0, 1)},
		{"missing phases null", two(), does(every(set("/missing_phases", "null"))), broken(rule, 0, "/missing_phases", "a list", "null", 0, 1)},
		{"counted but no list", two(), does(partial(), every(set("/coverage/skipped_points", "1"), del("/skipped_points"))), slices.Concat(
			partialRun0(), broken(rule, 0, "/skipped_points", "1 entry", "absent", 0, 1), broken(finding.RankPartial, 0, "/coverage/skipped_points", "0", "1", 0, 1))},
	}
}

func completeVectors() []vector {
	const rule = finding.RankComplete
	return []vector{
		{"not valid", two(), does(every(set("/valid", "false"))), broken(rule, 0, "/valid", "true", "false", 0, 1)},
		{"validity unknown", two(), does(only(1, del("/valid"))), broken(rule, 0, "/valid", "true", "absent", 1)},
		{"not usable", two(), does(every(set("/usable", "false"))), broken(rule, 0, "/usable", "true, or absent", "false", 0, 1)},
		{"usable null", two(), does(every(set("/usable", "null"))), broken(rule, 0, "/usable", "true, or absent", "null", 0, 1)},
		{"stop reason", two(), does(every(set("/stop_reason", `""`))), broken(rule, 0, "/stop_reason", "null, or absent", `""`, 0, 1)},
		{"not all points", two(), does(every(set("/coverage/expected_points", "3"))), broken(rule, 0, "/coverage/completed_points", "3", "2", 0, 1)},
		{"phase missing", two(), does(every(set("/missing_phases", `["prefill"]`))), broken(rule, 0, "/missing_phases", "[]", `["prefill"]`, 0, 1)},
		{"error", two(), does(every(set("/error", `"out of memory"`))), broken(rule, 0, "/error", "null, or absent", `"out of memory"`, 0, 1)},
		{"points skipped", two(), does(every(set("/coverage/expected_points", "3"), set("/coverage/skipped_points", "1"), set("/skipped_points/-", "{}"))), slices.Concat(
			broken(rule, 0, "/coverage/completed_points", "3", "2", 0, 1), broken(rule, 0, "/coverage/skipped_points", "0", "1", 0, 1))},
	}
}

func partialVectors() []vector {
	const rule = finding.RankPartial
	also := func(list ...said) []said { return append(list, partialRun0()...) }
	return []vector{
		{"partial", two(), does(partial()), partialRun0()},
		{"valid", two(), does(partial(), every(set("/valid", "true"))), also(broken(rule, 0, "/valid", "false", "true", 0, 1)...)},
		{"partial, validity unknown", two(), does(partial(), every(del("/valid"))), also(broken(rule, 0, "/valid", "false", "absent", 0, 1)...)},
		{"partial, usable unknown", two(), does(partial(), every(del("/usable"))), also(broken(rule, 0, "/usable", "true", "absent", 0, 1)...)},
		{"no stop reason", two(), does(partial(), every(del("/stop_reason"))), also(broken(rule, 0, "/stop_reason", `"timeout"`, "absent", 0, 1)...)},
		{"other stop reason", two(), does(partial(), every(set("/stop_reason", `"signal"`))), also(broken(rule, 0, "/stop_reason", `"timeout"`, `"signal"`, 0, 1)...)},
		{"all points", two(), does(partial(), every(set("/coverage/expected_points", "2"))), also(broken(rule, 0, "/coverage/completed_points", "less than 2", "2", 0, 1)...)},
		{"partial, phase missing", two(), does(partial(), every(set("/missing_phases", `["decode"]`))), also(broken(rule, 0, "/missing_phases", "[]", `["decode"]`, 0, 1)...)},
		{"partial, error", two(), does(partial(), every(set("/error", `"x"`))), also(broken(rule, 0, "/error", "null, or absent", `"x"`, 0, 1)...)},
	}
}

func schemaVectors() []vector {
	const rule = finding.RankSchema
	return []vector{
		{"schema 3", two(), does(every(set("/schema_version", "3"))), broken(rule, 0, "/schema_version", "2", "3", 0, 1)},
		{"schema true", two(), does(every(set("/schema_version", "true"))), broken(rule, 0, "/schema_version", "2", "true", 0, 1)},
		{"schema null", two(), does(only(1, set("/schema_version", "null"))), broken(rule, 0, "/schema_version", "2", "null", 1)},
		{"sidecar", two(), does(only(1, set("/artifact_type", `"probe"`))), broken(rule, 0, "/artifact_type", `"rank"`, `"probe"`, 1)},
		{"type null", two(), does(only(1, set("/artifact_type", "null"))), broken(rule, 0, "/artifact_type", `"rank"`, "null", 1)},
		{"a merged artifact", two(), does(only(1, set("/artifact_type", `"merged"`), set("/dp", `{"ranks": [0, 1]}`), set("/status", `"x"`))), broken(rule, 0, "/artifact_type", `"rank"`, `"merged"`, 1)},
		{"called merged", two(), does(only(1, set("/artifact_type", `"merged"`))), broken(rule, 0, "/artifact_type", `"rank"`, `"merged"`, 1)},
		{"a list", two(), does(only(1, set("", "[{}]"))), broken(rule, 0, "", "a rank artifact", "[{}]", 1)},
		{"no object at all", two(), does(every(set("", "5"))), broken(rule, 0, "", "a rank artifact", "5", 0, 1)},
	}
}

func dpVectors() []vector {
	const rule = finding.RankDP
	const size = "an integer of at least 1"
	return []vector{
		{"no dp", two(), does(only(1, del("/dp"))), broken(rule, 0, "/dp", "an object with rank and size", "absent", 1)},
		{"dp null", two(), does(only(1, set("/dp", "null"))), broken(rule, 0, "/dp", "an object with rank and size", "null", 1)},
		{"another rank", two(), does(only(1, set("/dp/rank", "0"))), slices.Concat(
			broken(rule, 0, "/dp/rank", "1", "0", 1), broken(rule, 0, "/dp/rank", "a rank of its own", "0", 1))},
		{"rank beyond the size", two(), does(only(1, set("/dp/rank", "2"))), broken(rule, 0, "/dp/rank", "an integer from 0 to 1", "2", 1)},
		{"rank negative", two(), does(only(1, set("/dp/rank", "-1"))), broken(rule, 0, "/dp/rank", "an integer from 0 to 1", "-1", 1)},
		{"rank a float", two(), does(only(1, set("/dp/rank", "1.0"))), broken(rule, 0, "/dp/rank", "an integer from 0 to 1", "1.0", 1)},
		{"rank text", two(), does(only(1, set("/dp/rank", `"1"`))), broken(rule, 0, "/dp/rank", "an integer from 0 to 1", `"1"`, 1)},
		{"size 0 on one rank", two(), does(only(1, set("/dp/size", "0"))), slices.Concat(
			broken(rule, 0, "/dp/size", size, "0", 1), broken(rule, 0, "/dp/size", "2", "0", 1))},
		{"size true", two(), does(only(1, set("/dp/size", "true"))), broken(rule, 0, "/dp/size", size, "true", 1)},
		{"size missing", two(), does(only(1, del("/dp/size"))), broken(rule, 0, "/dp/size", size, "absent", 1)},
		{"sizes differ", two(), does(only(1, set("/dp/size", "3"))), broken(rule, 0, "/dp/size", "2", "3", 1)},
		{"size beyond the limit", two(), does(only(1, set("/dp/size", "65537"))), slices.Concat(
			broken(finding.InputLimit, 0, "/dp/size", "at most 65536", "65537", 1), broken(rule, 0, "/dp/size", "2", "65537", 1))},
	}
}

func runVectors() []vector {
	const text = "a non-empty string"
	return []vector{
		{"no run id", two(), does(every(del("/run_id"))), broken(finding.RunID, 0, "/run_id", text, "absent", 0, 1)},
		{"run id empty", two(), does(only(0, set("/run_id", `""`))), broken(finding.RunID, 0, "/run_id", text, `""`, 0)},
		{"run id a number", two(), does(only(1, set("/run_id", "5"))), broken(finding.RunID, 0, "/run_id", text, "5", 1)},
		{"run ids differ", two(), does(only(1, set("/run_id", `"Run"`))), broken(finding.RunID, 0, "/run_id", `"run"`, `"Run"`, 1)},
		{"no grid", two(), does(every(del("/grid_digest"))), broken(finding.RunGrid, 0, "/grid_digest", text, "absent", 0, 1)},
		{"grids differ", two(), does(only(1, set("/grid_digest", `"grid "`))), broken(finding.RunGrid, 0, "/grid_digest", `"grid"`, `"grid "`, 1)},
		{"coverages differ", two(), does(only(1, set("/coverage/extra", "null"))), broken(finding.RunCoverage, 0, "/coverage/extra", "absent", "null", 1)},
		{"coverage lacks a key", two(), does(only(0, set("/coverage/extra", "1.50"))), broken(finding.RunCoverage, 0, "/coverage/extra", "1.50", "absent", 1)},
		{"stop reasons differ", two(), does(partial(), only(1, set("/stop_reason", `"timeout "`))), slices.Concat(partialRun0(),
			broken(finding.RunStopReason, 0, "/stop_reason", `"timeout"`, `"timeout "`, 1), broken(finding.RankPartial, 0, "/stop_reason", `"timeout"`, `"timeout "`, 1))},
		{"stop reason on one rank", two(), does(only(0, del("/stop_reason")), only(1, set("/stop_reason", `"timeout"`))), slices.Concat(
			broken(finding.RunStopReason, 0, "/stop_reason", "null", `"timeout"`, 1), broken(finding.RankComplete, 0, "/stop_reason", "null, or absent", `"timeout"`, 1))},
		{"stop reason lost", two(), does(partial(), only(1, del("/stop_reason"))), slices.Concat(partialRun0(),
			broken(finding.RunStopReason, 0, "/stop_reason", `"timeout"`, "absent", 1), broken(finding.RankPartial, 0, "/stop_reason", `"timeout"`, "absent", 1))},
	}
}

func differsVectors() []vector {
	const rule = finding.GroupDiffers
	const queued = "/iteration_groups/1/rank_results/0/fpms/0/queued_requests"
	return []vector{
		{"one value", two(), does(only(1, set(queued+"/num_decode_requests", "7"))), broken(rule, 2, queued+"/num_decode_requests", "0", "7", 1)},
		{"value added", two(), does(only(1, set(queued+"/x~1y~0", "null"))), broken(rule, 2, queued+"/x~1y~0", "absent", "null", 1)},
		{"value missing", two(), does(only(1, del(queued))), broken(rule, 2, queued, `{"num_decode_requests": 0}`, "absent", 1)},
		{"false is not 0", two(), does(only(1, set(queued+"/num_decode_requests", "false"))), broken(rule, 2, queued+"/num_decode_requests", "0", "false", 1)},
		{"a last digit", two(), does(every(set("/iteration_groups/0/x", "9007199254740993")), only(1, set("/iteration_groups/0/x", "9007199254740992"))),
			broken(rule, 1, "/iteration_groups/0/x", "9007199254740993", "9007199254740992", 1)},
		{"element order", two(), does(every(set("/iteration_groups/0/x", `["a", "b"]`)), only(1, set("/iteration_groups/0/x", `["b", "a"]`))),
			broken(rule, 1, "/iteration_groups/0/x/0", `"a"`, `"b"`, 1)},
		{"element more", two(), does(every(set("/iteration_groups/0/x", `["a"]`)), only(1, set("/iteration_groups/0/x/-", `"b"`))),
			broken(rule, 1, "/iteration_groups/0/x/1", "absent", `"b"`, 1)},
		{"two groups", two(), does(only(1, set("/iteration_groups/*/complete", "1"))), slices.Concat(
			broken(rule, 1, "/iteration_groups/0/complete", "true", "1", 1), broken(rule, 2, "/iteration_groups/1/complete", "true", "1", 1))},
		{"group is null", two(), does(every(set("/iteration_groups/0", "[ 1, {} ]")), only(1, set("/iteration_groups/0", "null"))), slices.Concat(
			broken(rule, 0, "/iteration_groups/0", "[1,{}]", "null", 1), broken(finding.GroupID, 0, "/iteration_groups/0", "an object", "[1,{}]", 0))},
		{"group more", two(), does(only(1, set("/iteration_groups/-", "5"))), slices.Concat(
			broken(rule, 0, "/iteration_groups", "2", "3", 1), broken(finding.RankCounts, 0, "/iteration_groups", "2 entries", "3 entries", 1))},
		{"group less", two(), does(only(1, del("/iteration_groups/1"))), slices.Concat(
			broken(rule, 0, "/iteration_groups", "2", "1", 1), broken(finding.RankCounts, 0, "/iteration_groups", "2 entries", "1 entry", 1))},
	}
}

func groupVectors() []vector {
	const id, incomplete = finding.GroupID, finding.GroupIncomplete
	const atLeast1, ids, ranks = "an integer of at least 1", "the ids 1 to 2, each once", "the ranks 0 to 1 in order"
	renumbered := func(group int, to string) change {
		return func(t testing.TB, r *testRun) {
			t.Helper()
			every(set(fmt.Sprintf("/iteration_groups/%d/benchmark_id", group), to))(t, r)
			pointOf(group, set("/benchmark_id", to))(t, r)
			for rank := range r.ranks {
				fpm(group, rank, set("/counter_id", to), set("/benchmark_measurement/raw_fpms/*/counter_id", to))(t, r)
			}
		}
	}
	return []vector{
		{"no groups", two(), does(every(set("/results", "[]"), set("/iteration_groups", "[]"), set("/coverage/expected_points", "0"), set("/coverage/completed_points", "0"))),
			broken(finding.GroupEmpty, 0, "/iteration_groups", "at least one", "[]", 0)},
		{"id 0", two(), does(every(set("/iteration_groups/0/benchmark_id", "0"))), broken(id, 0, "/iteration_groups/0/benchmark_id", atLeast1, "0", 0)},
		{"id missing", two(), does(every(del("/iteration_groups/0/benchmark_id"))), broken(id, 0, "/iteration_groups/0/benchmark_id", atLeast1, "absent", 0)},
		{"id a float", two(), does(every(set("/iteration_groups/0/benchmark_id", "1.0"))), broken(id, 0, "/iteration_groups/0/benchmark_id", atLeast1, "1.0", 0)},
		{"id taken", two(), does(renumbered(1, "1")), slices.Concat(broken(id, 1, "/iteration_groups/1/benchmark_id", ids, "1", 0),
			broken(finding.ResultID, 1, "/results/1/point/benchmark_id", "the ids of the iteration groups, each once", "1", 0, 1))},
		{"gap", two(), does(renumbered(1, "7")), broken(id, 7, "/iteration_groups/1/benchmark_id", ids, "7", 0)},
		{"point of another id", two(), does(every(set("/iteration_groups/0/point/benchmark_id", "2"))), slices.Concat(
			broken(id, 1, "/iteration_groups/0/point/benchmark_id", "1", "2", 0), broken(finding.ResultPoint, 1, "/results/0/point/benchmark_id", "2", "1", 0, 1))},
		{"group a number", two(), does(every(set("/iteration_groups/0", "5"))), broken(id, 0, "/iteration_groups/0", "an object", "5", 0)},
		{"point missing", two(), does(every(del("/iteration_groups/0/point"))), broken(id, 1, "/iteration_groups/0/point", "an object", "absent", 0)},
		{"point a number", two(), does(every(set("/iteration_groups/0/point", "5"))), broken(id, 1, "/iteration_groups/0/point", "an object", "5", 0)},
		{"not complete", two(), does(every(set("/iteration_groups/1/complete", "false"))), broken(incomplete, 2, "/iteration_groups/1/complete", "true", "false", 0)},
		{"complete is 1", two(), does(every(set("/iteration_groups/1/complete", "1"))), broken(incomplete, 2, "/iteration_groups/1/complete", "true", "1", 0)},
		{"completeness unknown", two(), does(every(del("/iteration_groups/1/complete"))), broken(incomplete, 2, "/iteration_groups/1/complete", "true", "absent", 0)},
		{"one rank expected", two(), does(every(set("/iteration_groups/1/expected_dp_ranks", "[0]"))), broken(incomplete, 2, "/iteration_groups/1/expected_dp_ranks", ranks, "[0]", 0)},
		{"ranks out of order", two(), does(every(set("/iteration_groups/1/expected_dp_ranks", "[1, 0]"))), broken(incomplete, 2, "/iteration_groups/1/expected_dp_ranks", ranks, "[1,0]", 0)},
		{"three ranks expected", two(), does(every(set("/iteration_groups/1/expected_dp_ranks", "[0, 1, 2]"))), broken(incomplete, 2, "/iteration_groups/1/expected_dp_ranks", ranks, "[0,1,2]", 0)},
		{"no ranks expected", two(), does(every(del("/iteration_groups/1/expected_dp_ranks"))), broken(incomplete, 2, "/iteration_groups/1/expected_dp_ranks", ranks, "absent", 0)},
	}
}

func rankResultVectors() []vector {
	const ranks = finding.GroupRanks
	const at = "/iteration_groups/0/rank_results"
	legacy := two()
	legacy.legacy = true
	return []vector{
		{"ranks swapped", legacy, does(every(set(at+"/0/dp_rank", "1"), set(at+"/1/dp_rank", "0"))), slices.Concat(
			broken(ranks, 1, at+"/0/dp_rank", "0", "1", 0), broken(ranks, 1, at+"/1/dp_rank", "1", "0", 0),
			broken(finding.GroupFPMRank, 1, at+"/0/fpms/0/dp_rank", "1", "0", 0), broken(finding.GroupFPMRank, 1, at+"/1/fpms/0/dp_rank", "0", "1", 0))},
		{"rank unknown", two(), does(every(del(at + "/1/dp_rank"))), broken(ranks, 1, at+"/1/dp_rank", "1", "absent", 0)},
		{"rank text", two(), does(every(set(at+"/1/dp_rank", `"1"`))), broken(ranks, 1, at+"/1/dp_rank", "1", `"1"`, 0)},
		{"rank result a list", two(), does(every(set(at+"/1", "[]"))), broken(ranks, 1, at+"/1", "an object", "[]", 0)},
		{"rank result missing", two(), does(every(del(at + "/1"))), broken(ranks, 1, at, "the ranks 0 to 1 in order", "1 rank result", 0)},
		{"no rank results", two(), does(every(del(at))), broken(ranks, 1, at, "a list", "absent", 0)},
		{"rank results null", two(), does(every(set(at, "null"))), broken(ranks, 1, at, "a list", "null", 0)},
		{"a rank too many", legacy, does(every(set(at+"/-", `{"dp_rank": 2, "fpms": [{"dp_rank": 2, "counter_id": 1, "wall_time": 0.0001}]}`))),
			broken(ranks, 1, at+"/2/dp_rank", "no rank result beyond rank 1", "2", 0)},
	}
}

func metricVectors() []vector {
	const count, wallTime = finding.GroupFPMCount, finding.GroupWallTime
	const at, own = "/iteration_groups/0/rank_results/1/fpms", "/results/0/fpms"
	const exactly = "a list of exactly one FPM"
	slowest := literal(two().retained(1, 0))
	legacy := two()
	legacy.legacy = true
	return []vector{
		{"no FPM", two(), does(fpmsOf(0, 1, set("", "[]"))), slices.Concat(
			broken(count, 1, at, "1 FPM", "0 FPMs", 0), broken(finding.ResultFPMCount, 1, own, "1 FPM", "0 FPMs", 1))},
		{"two FPMs", two(), does(fpmsOf(0, 1, set("/-", "{}"))), slices.Concat(
			broken(count, 1, at, "1 FPM", "2 FPMs", 0), broken(finding.ResultFPMCount, 1, own, "1 FPM", "2 FPMs", 1))},
		{"FPMs no list", two(), does(fpmsOf(0, 1, set("", "{}"))), slices.Concat(
			broken(count, 1, at, exactly, "{}", 0), broken(finding.ResultFPMCount, 1, own, exactly, "{}", 1))},
		{"FPMs missing", two(), does(every(del(at)), only(1, del(own))), slices.Concat(
			broken(count, 1, at, exactly, "absent", 0), broken(finding.ResultFPMCount, 1, own, exactly, "absent", 1))},
		{"FPM no object", two(), does(fpm(0, 1, set("", "5"))), slices.Concat(
			broken(count, 1, at+"/0", "an object", "5", 0), broken(finding.ResultFPMCount, 1, own+"/0", "an object", "5", 1))},
		{"counter", two(), does(fpm(0, 1, set("/counter_id", "3"))), slices.Concat(
			broken(finding.GroupCounter, 1, at+"/0/counter_id", "1", "3", 0), broken(finding.ResultCounter, 1, own+"/0/counter_id", "1", "3", 1))},
		{"counter missing", two(), does(fpm(0, 1, del("/counter_id"))), slices.Concat(
			broken(finding.GroupCounter, 1, at+"/0/counter_id", "1", "absent", 0), broken(finding.ResultCounter, 1, own+"/0/counter_id", "1", "absent", 1))},
		{"counter true", two(), does(fpm(0, 1, set("/counter_id", "true"))), slices.Concat(
			broken(finding.GroupCounter, 1, at+"/0/counter_id", "1", "true", 0), broken(finding.ResultCounter, 1, own+"/0/counter_id", "1", "true", 1))},
		{"FPM of another rank", two(), does(fpm(0, 1, set("/dp_rank", "0"))), slices.Concat(
			broken(finding.GroupFPMRank, 1, at+"/0/dp_rank", "1", "0", 0), broken(finding.ResultFPMRank, 1, own+"/0/dp_rank", "1", "0", 1))},
		{"FPM rank missing", two(), does(fpm(0, 1, del("/dp_rank"))), slices.Concat(
			broken(finding.GroupFPMRank, 1, at+"/0/dp_rank", "1", "absent", 0), broken(finding.ResultFPMRank, 1, own+"/0/dp_rank", "1", "absent", 1))},
		{"not the largest", two(), does(every(set("/iteration_groups/0/wall_time", literal(two().retained(0, 0))))), slices.Concat(
			broken(wallTime, 1, "/iteration_groups/0/wall_time", slowest, literal(two().retained(0, 0)), 0), broken(finding.TimingMeasured, 0, "/timing/measured_iteration_seconds", "0.0323", "0.0324", 0, 1))},
		{"not exactly the largest", two(), does(every(set("/iteration_groups/0/wall_time", slowest+"0000000001"))),
			broken(wallTime, 1, "/iteration_groups/0/wall_time", slowest, slowest+"0000000001", 0)},
		{"wall time missing", two(), does(every(del("/iteration_groups/0/wall_time"))), broken(wallTime, 1, "/iteration_groups/0/wall_time", "seconds", "absent", 0)},
		{"wall time not finite", two(), does(every(set("/iteration_groups/0/wall_time", "1e400"))), broken(wallTime, 1, "/iteration_groups/0/wall_time", "seconds", "1e400", 0)},
		{"FPM wall time text", legacy, does(fpm(0, 1, set("/wall_time", `"0.01"`))), broken(wallTime, 1, at+"/0/wall_time", "seconds", `"0.01"`, 0)},
		{"FPM wall time null", legacy, does(fpm(0, 1, set("/wall_time", "null"))), broken(wallTime, 1, at+"/0/wall_time", "seconds", "null", 0)},
		{"FPM wall time not finite", legacy, does(fpm(0, 1, set("/wall_time", "1e400"))), broken(wallTime, 1, at+"/0/wall_time", "seconds", "1e400", 0)},
	}
}

func resultVectors() []vector {
	const ids, atLeast1 = "the ids of the iteration groups, each once", "an integer of at least 1"
	const at = "/results/0"
	return []vector{
		{"result taken twice", two(), does(only(1, set("/results/1/point/benchmark_id", "1"))), slices.Concat(
			broken(finding.ResultID, 1, "/results/1/point/benchmark_id", ids, "1", 1), broken(finding.ResultCounter, 1, "/results/1/fpms/0/counter_id", "1", "2", 1))},
		{"result of no group", two(), does(only(1, set("/results/1/point/benchmark_id", "3"))), slices.Concat(
			broken(finding.ResultID, 3, "/results/1/point/benchmark_id", ids, "3", 1), broken(finding.ResultCounter, 3, "/results/1/fpms/0/counter_id", "3", "2", 1))},
		{"result without an id", two(), does(only(1, del("/results/1/point/benchmark_id"))), broken(finding.ResultID, 0, "/results/1/point/benchmark_id", atLeast1, "absent", 1)},
		{"result without a point", two(), does(only(1, del("/results/1/point"))), broken(finding.ResultID, 0, "/results/1/point", "an object", "absent", 1)},
		{"result a number", two(), does(only(1, set("/results/1", "1"))), broken(finding.ResultID, 0, "/results/1", "an object", "1", 1)},
		{"another point", two(), does(only(1, set(at+"/point/batch_size", "4096"))), broken(finding.ResultPoint, 1, at+"/point/batch_size", "1", "4096", 1)},
		{"point without a key", two(), does(only(0, del(at+"/point/rows"))), broken(finding.ResultPoint, 1, at+"/point/rows", "null", "absent", 0)},
		{"point with a key", two(), does(only(0, set(at+"/point/x", `"\u0041"`))), broken(finding.ResultPoint, 1, at+"/point/x", "absent", `"\u0041"`, 0)},
		{"result with two FPMs", two(), does(only(0, set(at+"/fpms/-", "{}"))), broken(finding.ResultFPMCount, 1, at+"/fpms", "1 FPM", "2 FPMs", 0)},
		{"counter of a result", two(), does(only(0, set(at+"/fpms/0/counter_id", "2"))), slices.Concat(
			broken(finding.ResultCounter, 1, at+"/fpms/0/counter_id", "1", "2", 0), broken(finding.ResultDiffers, 1, at+"/fpms/0/counter_id", "1", "2", 0))},
		{"rank of a result", two(), does(only(0, set(at+"/fpms/0/dp_rank", "1"))), slices.Concat(
			broken(finding.ResultFPMRank, 1, at+"/fpms/0/dp_rank", "0", "1", 0), broken(finding.ResultDiffers, 1, at+"/fpms/0/dp_rank", "0", "1", 0))},
		{"no rank in a result", two(), does(only(0, del(at+"/fpms/0/dp_rank"))), slices.Concat(
			broken(finding.ResultFPMRank, 1, at+"/fpms/0/dp_rank", "0", "absent", 0), broken(finding.ResultDiffers, 1, at+"/fpms/0/dp_rank", "0", "absent", 0))},
		{"another time", two(), does(only(1, set(at+"/fpms/0/wall_time", "0.5"))), broken(finding.ResultDiffers, 1, at+"/fpms/0/wall_time", literal(two().retained(1, 0)), "0.5", 1)},
		{"another raw time", two(), does(only(1, set("/results/1/fpms/0/benchmark_measurement/raw_fpms/0/wall_time", "0.5"))),
			broken(finding.ResultDiffers, 2, "/results/1/fpms/0/benchmark_measurement/raw_fpms/0/wall_time", literal(wall(1, 1, 0)), "0.5", 1)},
	}
}

func timingVectors() []vector {
	const shape, exceeds = finding.TimingShape, finding.TimingExceeds
	const elapsed, measured = "/timing/benchmark_elapsed_seconds", "/timing/measured_iteration_seconds"
	const duration = "a finite number of seconds, at least 0"
	sum := literal(wall(1, 0, 1) + wall(1, 1, 1))
	return []vector{
		{"no timing", two(), does(only(1, del("/timing"))), broken(shape, 0, "/timing", "an object", "absent", 1)},
		{"timing null", two(), does(every(set("/timing", "null"))), broken(shape, 0, "/timing", "an object", "null", 0, 1)},
		{"start a number", two(), does(only(0, set("/timing/started_at", "5"))), broken(shape, 0, "/timing/started_at", "a time stamp", "5", 0)},
		{"no end", two(), does(only(0, del("/timing/completed_at"))), broken(shape, 0, "/timing/completed_at", "a time stamp", "absent", 0)},
		{"elapsed negative", two(), does(only(0, set(elapsed, "-1.0"))), broken(shape, 0, elapsed, duration, "-1.0", 0)},
		{"elapsed true", two(), does(only(0, set(elapsed, "true"))), broken(shape, 0, elapsed, duration, "true", 0)},
		{"elapsed not finite", two(), does(only(0, set(elapsed, "1e400"))), broken(shape, 0, elapsed, duration, "1e400", 0)},
		{"measured missing", two(), does(only(0, del(measured))), broken(shape, 0, measured, "a finite number of seconds", "absent", 0)},
		{"measured text", two(), does(only(0, set(measured, `"1"`))), broken(shape, 0, measured, "a finite number of seconds", `"1"`, 0)},
		{"measured another sum", two(), does(only(1, set(measured, "0.001"))), broken(finding.TimingMeasured, 0, measured, sum, "0.001", 1)},
		{"measured beyond the tolerance", two(), does(only(1, set(measured, literal((wall(1, 0, 1)+wall(1, 1, 1))*(1+2e-9))))),
			broken(finding.TimingMeasured, 0, measured, sum, literal((wall(1, 0, 1)+wall(1, 1, 1))*(1+2e-9)), 1)},
		{"elapsed 0", two(), does(only(1, set(elapsed, "0"))), broken(exceeds, 0, measured, "at most 0", sum, 1)},
		{"elapsed a little less", two(), does(every(set(elapsed, literal(wall(1, 0, 1)+wall(1, 1, 1)-2e-12)))),
			broken(exceeds, 0, measured, "at most "+literal(wall(1, 0, 1)+wall(1, 1, 1)-2e-12), sum, 0, 1)},
	}
}

func protocolVectors() []vector {
	const at = "/measurement_protocol"
	const execution = at + "/execution_evidence"
	const contract = finding.ProtocolContract
	const text = `{"schema_version":1,"content_seed":"0","execution_evidence":{"schema_version":1,"sample_field":"benchmark_sample","warmup_field":"warmup_evidence"}}`
	const first = "/iteration_groups/0/rank_results/0/fpms/0/benchmark_measurement"
	return []vector{
		{"protocol lost", two(), does(only(1, del(at))), broken(finding.ProtocolMismatch, 0, at, text, "absent", 1)},
		{"protocol on one rank", two(), does(only(0, del(at)), only(1, set(at, `{"schema_version": 1}`))), broken(finding.ProtocolMismatch, 0, at, "absent", `{"schema_version": 1}`, 1)},
		{"protocols differ", two(), does(only(1, set(at+"/content_seed", `"1"`))), broken(finding.ProtocolMismatch, 0, at+"/content_seed", `"0"`, `"1"`, 1)},
		{"protocols differ twice", two(), does(only(1, del(at+"/content_seed"), set(execution+"/x", "1"))), slices.Concat(
			broken(finding.ProtocolMismatch, 0, at+"/content_seed", `"0"`, "absent", 1), broken(finding.ProtocolMismatch, 0, execution+"/x", "absent", "1", 1))},
		{"protocol null", two(), does(every(set(at, "null"))), broken(finding.ProtocolInvalid, 0, at, "an object", "null", 0, 1)},
		{"protocol version", two(), does(every(set(at+"/schema_version", "1.0"))), broken(finding.ProtocolInvalid, 0, at+"/schema_version", "1", "1.0", 0, 1)},
		{"protocol removed, evidence left", two(), does(every(del(at))), slices.Concat(
			broken(finding.ProtocolUndeclared, 0, first, "no benchmark_measurement", "4 FPMs", 0),
			broken(finding.ProtocolContractUndeclared, 0, first+"/raw_fpms/0/benchmark_sample", "no benchmark_sample", "4 FPMs with samples", 0),
			broken(finding.ProtocolContractUndeclared, 0, "/warmup_evidence", "no warmup_evidence", "a ledger", 0, 1))},
		{"one measurement of a legacy run", shape{ranks: 2, points: 2, raw: 2, legacy: true}, does(fpm(1, 0, set("/benchmark_measurement", "null"))),
			broken(finding.ProtocolUndeclared, 0, "/iteration_groups/1/rank_results/0/fpms/0/benchmark_measurement", "no benchmark_measurement", "1 FPM", 0)},
		{"contract null", two(), does(every(set(execution, "null"))), broken(contract, 0, execution, "an object", "null", 0, 1)},
		{"contract renamed", two(), does(every(set(execution+"/sample_field", `"sample"`))), broken(contract, 0, execution+"/sample_field", `"benchmark_sample"`, `"sample"`, 0, 1)},
		{"contract of another version", two(), does(every(set(execution+"/schema_version", `2`))), broken(contract, 0, execution+"/schema_version", "1", "2", 0, 1)},
		{"contract removed, samples left", two(), does(every(del(execution), del("/warmup_evidence"))),
			broken(finding.ProtocolContractUndeclared, 0, first+"/raw_fpms/0/benchmark_sample", "no benchmark_sample", "4 FPMs with samples", 0)},
		{"ledger of a legacy run", shape{ranks: 2, points: 1, raw: 1, legacy: true}, does(only(1, set("/warmup_evidence", "null"))),
			broken(finding.ProtocolContractUndeclared, 0, "/warmup_evidence", "no warmup_evidence", "a ledger", 1)},
	}
}

func evidenceVectors() []vector {
	const bm = "/benchmark_measurement"
	const group0, group1 = "/iteration_groups/0/rank_results/1/fpms/0", "/iteration_groups/1/rank_results/1/fpms/0"
	const sample1 = bm + "/raw_fpms/1/benchmark_sample"
	key1 := two().pointKey(1)
	return []vector{
		{"measurement missing", two(), does(fpm(0, 1, del(bm))), broken(finding.MeasurementMissing, 1, group0+bm, "an object", "absent", 0)},
		{"measurement of another rank", two(), does(fpm(0, 1, set(bm+"/dp_rank", "0"))), broken(finding.MeasurementMissing, 1, group0+bm+"/dp_rank", "1", "0", 0)},
		{"measurement of another point", two(), does(fpm(1, 1, set(bm+"/point_key", `"00"`))), broken(finding.MeasurementIdentity, 2, group1+bm+"/point_key", `"`+key1+`"`, `"00"`, 0)},
		{"measurement of another grid", two(), does(fpm(1, 1, set(bm+"/preparation/grid_digest", `"x"`))), broken(finding.MeasurementIdentity, 2, group1+bm+"/preparation/grid_digest", `"grid"`, `"x"`, 0)},
		{"no preparation", two(), does(fpm(1, 1, del(bm+"/preparation"))), broken(finding.MeasurementIdentity, 2, group1+bm+"/preparation", "an object", "absent", 0)},
		{"no samples", two(), does(fpm(1, 1, set(bm+"/raw_fpms", "[]"))), broken(finding.SampleCount, 2, group1+bm+"/raw_fpms", "a non-empty list", "[]", 0)},
		{"sample of the retained FPM", two(), does(fpm(1, 1, set("/benchmark_sample", "{}"))), broken(finding.SampleCount, 2, group1+"/benchmark_sample", "none: a median can combine executions", "{}", 0)},
		{"sample of another point", two(), does(fpm(1, 1, set(bm+"/raw_fpms/1/counter_id", "99"))), broken(finding.SampleIdentity, 2, group1+bm+"/raw_fpms/1/counter_id", "2", "99", 0)},
		{"sample of another worker", two(), does(fpm(1, 1, set(bm+"/raw_fpms/1/worker_id", `"w0"`))), broken(finding.SampleIdentity, 2, group1+bm+"/raw_fpms/1/worker_id", "the retained FPM's worker_id", `"w0"`, 0)},
		{"sample position", two(), does(fpm(1, 1, set(sample1+"/sample_index", "0"))), broken(finding.SampleIndex, 2, group1+sample1+"/sample_index", "1", "0", 0)},
		{"forward index across points", two(), does(fpm(1, 1, set(bm+"/raw_fpms/0/benchmark_sample/forward_index", "6"))),
			broken(finding.SampleIndex, 2, group1+bm+"/raw_fpms/0/benchmark_sample/forward_index", "an integer greater than 6 (below 2^63)", "6", 0)},
		{"timing basis", two(), does(fpm(1, 1, set(sample1+"/timing/basis", `"cuda_events"`))), broken(finding.SampleTiming, 2, group1+sample1+"/timing/basis", "schedule_to_output or inter_output", `"cuda_events"`, 0)},
		{"graph", two(), does(fpm(1, 1, set(sample1+"/cudagraph/num_paddings", "2"))), broken(finding.SampleCUDAGraph, 2, group1+sample1+"/cudagraph/num_paddings", "1", "2", 0)},
		{"reduction", two(), does(fpm(1, 1, set(bm+"/estimate/raw_sample_indices", "[0]"))), broken(finding.SampleReduction, 2, group1+bm+"/estimate/raw_sample_indices", "[1] for last_step", "[0]", 0)},
		{"estimate", two(), does(fpm(1, 0, set("/wall_time", "1e-6"))), broken(finding.SampleEstimate, 2, "/iteration_groups/1/rank_results/0/fpms/0/wall_time", literal(wall(0, 1, 1)), "1e-6", 0)},
	}
}

func warmupVectors() []vector {
	const at, record = "/warmup_evidence", "/warmup_evidence/records/0"
	const before = "/benchmark_measurement/preparation/warmup_records_before"
	const group0 = "/iteration_groups/0/rank_results/"
	return []vector{
		{"no ledger", two(), does(only(1, del(at))), broken(finding.WarmupLedger, 0, at, "an object", "absent", 1)},
		{"ledger null", two(), does(only(0, set(at, "null"))), broken(finding.WarmupLedger, 0, at, "an object", "null", 0)},
		{"ledger status", two(), does(only(1, set(at+"/status", `"x"`))), broken(finding.WarmupLedger, 0, at+"/status", "recorded or unavailable", `"x"`, 1)},
		{"record status", two(), does(only(1, set(record+"/status", `"done"`))), broken(finding.WarmupRecord, 0, record+"/status", "running, completed or failed", `"done"`, 1)},
		{"record backwards", two(), does(only(1, set(record+"/forward_index_start", "6"))), broken(finding.WarmupRange, 0, record+"/forward_index_end", "at least 6", "5", 1)},
		{"record count", two(), does(only(1, set(record+"/observed_forward_count", "4"))), broken(finding.WarmupCount, 0, record+"/observed_forward_count", "5", "4", 1)},
		{"reference beyond", two(), does(fpm(0, 1, set(before, "2"))), broken(finding.WarmupReference, 1, group0+"1/fpms/0"+before, "an integer from 0 to 1", "2", 0)},
		{"reference missing", two(), does(fpm(0, 0, del(before))), broken(finding.WarmupReference, 1, group0+"0/fpms/0"+before, "an integer from 0 to 1", "absent", 0)},
		{"reference to an unavailable ledger", two(), does(only(1, set(at, `{"status": "unavailable", "records": []}`))), slices.Concat(
			broken(finding.WarmupReference, 1, group0+"1/fpms/0"+before, "null", "1", 0), broken(finding.WarmupReference, 2, "/iteration_groups/1/rank_results/1/fpms/0"+before, "null", "1", 0))},
		{"warmup after the measurement", two(), does(only(1, set(record+"/forward_index_end", "6"), set(record+"/observed_forward_count", "6"))),
			broken(finding.WarmupOverlap, 1, group0+"1/fpms/0"+before, "a forward_index_end of at most 5", "6", 0)},
		{"warmup running", two(), does(only(0, set(record, `{"status": "running", "validation": {"status": "not_performed"}}`))), slices.Concat(
			broken(finding.WarmupOverlap, 1, group0+"0/fpms/0"+before, "completed or failed", "running", 0),
			broken(finding.WarmupOverlap, 2, "/iteration_groups/1/rank_results/0/fpms/0"+before, "completed or failed", "running", 0))},
	}
}

func engineVectors() []vector {
	const mismatch, unverified = finding.EngineMismatch, finding.EngineUnverified
	const clean = "an engine object without capture_error"
	return []vector{
		{"backend differs", two(), does(only(1, set("/engine/attention/backend_requested", `"FLASHINFER"`))),
			broken(mismatch, 0, "/engine/attention/backend_requested", "null (rank 0)", `"FLASHINFER" (rank 1)`, 1)},
		{"null is not absent", two(), does(only(0, set("/engine/x", "null"))), broken(mismatch, 0, "/engine/x", "null (rank 0)", "absent (rank 1)", 1)},
		{"degraded rank", two(), does(only(1, set("/engine", `{"capture_error": "boom"}`))), broken(unverified, 0, "/engine/capture_error", clean, `"boom"`, 1)},
		{"engine missing", two(), does(only(0, del("/engine"))), broken(unverified, 0, "/engine", clean, "absent", 0)},
	}
}

func vectors() []vector {
	all := slices.Concat(statusVectors(), coverageVectors(), countsVectors(), completeVectors(), partialVectors(), schemaVectors(), dpVectors(), runVectors(),
		differsVectors(), groupVectors(), rankResultVectors(), metricVectors(), resultVectors(), timingVectors(), protocolVectors(), evidenceVectors(), warmupVectors(), engineVectors())
	return all
}

// sayings returns what a result's findings say, and checks that each stands at the line
// and column of what its pointer leads to in its file.
func sayings(t *testing.T, result *Result) (list []said) {
	t.Helper()
	texts := map[string]string{}
	for _, f := range result.Findings {
		if texts[f.File] == "" {
			texts[f.File] = readFile(t, f.File)
		}
		text := texts[f.File]
		v, missing := jsontest.Find(jsontest.Parse(t, text), f.Pointer)
		line, column := jsontest.LineColumn([]byte(text), v.Offset)
		if f.Line != line || f.Column != column || missing > 1 || (missing == 1) != (f.Actual == "absent" || strings.HasPrefix(f.Actual, "absent (")) {
			t.Errorf("%s at %s stands at %d:%d, actual %q; the value is at %d:%d, %d steps missing", f.Rule, f.Pointer, f.Line, f.Column, f.Actual, line, column, missing)
		}
		if rule, _ := finding.Lookup(f.Rule); f.Severity != rule.Severity || f.Hint == "" || f.Message == "" || strings.Contains(f.Message, "\n") {
			t.Errorf("%+v", f)
		}
		list = append(list, said{f.Rule, f.Rank, f.BenchmarkID, f.Pointer, f.Expected, f.Actual})
	}
	return list
}

func sortSaid(list []said) []said {
	slices.SortFunc(list, func(a, b said) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return list
}

func TestRules(t *testing.T) {
	for _, c := range vectors() {
		dir := t.TempDir()
		paths := build(t, c.shape).apply(t, c.changes...).write(t, dir)
		result := runMerge(t, Options{Inputs: paths[:1], CheckOnly: true})
		if diff := cmp.Diff(sortSaid(c.want), sortSaid(sayings(t, result))); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", c.name, diff)
		}
		if len(result.Failures) > 0 {
			t.Errorf("%s: %v", c.name, result.Failures)
		}
	}
}

// rejects tells whether one of the findings does.
func rejects(list []said) bool {
	return slices.ContainsFunc(list, func(s said) bool { rule, _ := finding.Lookup(s.Rule); return rule.Severity == finding.Error })
}

// What is found does not depend on the order of the arguments or on how many files are
// read at once. A run that is rejected leaves nothing behind.
func TestFindingsAreDeterministic(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, c := range vectors() {
		if !rejects(c.want) {
			continue
		}
		dir := t.TempDir()
		paths := build(t, c.shape).apply(t, c.changes...).write(t, dir)
		var first *Result
		for i, order := range [][]int{{0, 1}, {1, 0}, {1, 0}} {
			runtime.GOMAXPROCS(1 + i%2)
			var inputs []string
			for _, rank := range order {
				inputs = append(inputs, paths[rank])
			}
			result := runMerge(t, Options{Inputs: inputs})
			if result.Errors == 0 && len(result.Failures) == 0 {
				t.Fatalf("%s: not rejected", c.name)
			}
			if first == nil {
				first = result
			}
			if diff := cmp.Diff(first, result); diff != "" {
				t.Fatalf("%s: files in order %v (-in order +now):\n%s", c.name, order, diff)
			}
		}
	}
}

// The order of keys says nothing, at any level of any file: the same rules are broken at
// the same places.
func TestKeyOrderDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range vectors() {
		checkOrder(t, c, func(doc *jsonvalue.Value) { jsontest.Shuffle(random, doc) })
	}
	// What it takes to judge the groups can stand behind them.
	for _, c := range slices.Concat(coverageVectors(), countsVectors(), groupVectors(), protocolVectors()) {
		for _, key := range []string{"coverage", "dp", "measurement_protocol", "iteration_groups"} {
			checkOrder(t, c, func(doc *jsonvalue.Value) { moveLast(doc, key) })
		}
	}
}

func checkOrder(t *testing.T, c vector, reorder func(doc *jsonvalue.Value)) {
	t.Helper()
	places := func(list []said) (places []string) {
		for _, s := range list {
			places = append(places, fmt.Sprintf("%s of rank %d, point %d, at %s", s.Rule, s.Rank, s.ID, s.Pointer))
		}
		slices.Sort(places)
		return places
	}
	r := build(t, c.shape).apply(t, c.changes...)
	for _, doc := range r.docs {
		reorder(doc)
	}
	paths := r.write(t, t.TempDir())
	result := runMerge(t, Options{Inputs: paths[:1], CheckOnly: true})
	if diff := cmp.Diff(places(c.want), places(sayings(t, result))); diff != "" {
		t.Errorf("%s: findings (-want +got):\n%s\n%s", c.name, diff, r.text(0))
	}
}

// moveLast moves a key of an object behind the others.
func moveLast(doc *jsonvalue.Value, key string) {
	slices.SortStableFunc(doc.Members, func(a, b jsonvalue.Member) int {
		switch key {
		case a.Name:
			return +1
		case b.Name:
			return -1
		}
		return 0
	})
}
