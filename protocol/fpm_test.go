package protocol

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// The FPM of these tests is that of rank 1 for point 7, which stands in the group at
// position 3. The rank's last forward pass before it had index 9.
const (
	prefix   = "/iteration_groups/3/rank_results/1/fpms/0"
	grid     = "grid"
	pointKey = "762fa99e048ec61e998406a502cd972f33423a3292f65c3650f5c260b4269efe"
)

// rawFPM is a raw FPM with the given position and wall time.
func rawFPM(i int, wall string) string {
	return fmt.Sprintf(`{"worker_id": "w", "dp_rank": 1, "counter_id": 7, "wall_time": %[2]s, "scheduled_requests": {"num_decode_requests": 4}, "benchmark_sample": {
		"sample_index": %[1]d, "forward_index": 1%[1]d, "timing": {"basis": "inter_output", "start_monotonic": null, "end_monotonic": 5%[1]d.5},
		"cudagraph": {"status": "observed", "runtime_mode": "FULL", "num_unpadded_tokens": 3, "num_padded_tokens": 4, "num_paddings": 1}}}`, i, wall)
}

func soundFPM() string {
	return `{"version": 1, "worker_id": "w", "dp_rank": 1, "counter_id": 7, "wall_time": 0.25, "benchmark_measurement": {
		"schema_version": 1, "point_key": "` + pointKey + `", "dp_rank": 1, "prompts": {"status": "unavailable", "sha256": null, "requests": []},
		"preparation": {"grid_digest": "` + grid + `", "completed_points_before": 3, "warmup_records_before": 2},
		"expected_internal_samples": 4, "raw_fpms": [` + rawFPM(0, "0.5") + "," + rawFPM(1, "0.125") + "," + rawFPM(2, "0.25") + `],
		"estimate": {"method": "adjacent_upper_median", "raw_sample_indices": [1, 2]}}}`
}

func place(findings *finding.Collector, previous *int64) *Place {
	scope := finding.Scope{Out: findings, File: "r1.json", Rank: 1}
	return &Place{Scope: scope.Of(7), Group: 3, Index: 1, ID: 7, HasID: true, Rank: 1, HasRank: true, Key: pointKey, Previous: previous}
}

// readAs reads an FPM from its text.
func readAs(t testing.TB, contract Contract, text string, change func(*Place)) (fpm FPM, findings []finding.Finding, previous int64) {
	t.Helper()
	out := finding.NewCollector(0)
	previous = 9
	p := place(out, &previous)
	if change != nil {
		change(p)
	}
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{})
	got, err := NewReader(contract, grid).Read(s, p)
	if err == nil {
		err = s.End()
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return *got, out.Findings(), previous
}

const (
	bm    = "/benchmark_measurement"
	raws  = bm + "/raw_fpms"
	ratio = bm + "/estimate"
)

// sampleAt edits the benchmark_sample of a raw FPM.
func sampleAt(i int, edits ...jsontest.Edit) jsontest.Edit {
	return jsontest.Under(raws+"/"+strconv.Itoa(i)+"/benchmark_sample", edits...)
}

func timingOf(i int, basis, start, end, wall string) jsontest.Edit {
	return jsontest.Under(raws+"/"+strconv.Itoa(i),
		jsontest.Set("/benchmark_sample/timing", fmt.Sprintf(`{"basis": %s, "start_monotonic": %s, "end_monotonic": %s}`, basis, start, end)),
		jsontest.Set("/wall_time", wall))
}

func graphOf(i int, text string) jsontest.Edit { return sampleAt(i, jsontest.Set("/cudagraph", text)) }

// samples replaces the raw FPMs by ones of these wall times.
func samples(method, indices string, walls ...string) jsontest.Edit {
	var list []string
	for i, wall := range walls {
		list = append(list, rawFPM(i, wall))
	}
	return jsontest.Under(bm, jsontest.Set("/raw_fpms", "["+strings.Join(list, ",")+"]"),
		jsontest.Set("/estimate", `{"raw_sample_indices": `+indices+`, "method": `+method+`}`))
}

// vector is a change of the sound FPM, and what it must make the reader say.
type vector struct {
	name  string
	edits []jsontest.Edit
	want  []said // in the order of their rules and pointers
}

func edits(list ...jsontest.Edit) []jsontest.Edit { return list }

func measurementVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const missing, identity = finding.MeasurementMissing, finding.MeasurementIdentity
	none := func(actual string) []said {
		return []said{{missing, bm, "the FPM carries no measurement evidence", "an object", actual}}
	}
	version := func(actual string) []said {
		return []said{{missing, bm + "/schema_version", "the measurement's schema_version is not 1", "1", actual}}
	}
	rank := func(actual string) []said {
		return []said{{missing, bm + "/dp_rank", "the measurement belongs to another DP rank", "1", actual}}
	}
	key := func(actual string) []said {
		return []said{{identity, bm + "/point_key", "point_key is not the content key of the group's point", `"` + pointKey + `"`, actual}}
	}
	preparation := func(actual string) []said {
		return []said{{identity, bm + "/preparation", "the measurement has no preparation object", "an object", actual}}
	}
	digest := func(actual string) []said {
		return []said{{identity, bm + "/preparation/grid_digest", "the measurement was prepared for another grid", `"grid"`, actual}}
	}
	return []vector{
		{"sound", nil, nil},
		{"numbers are equal by value", edits(set(bm+"/schema_version", "1.0"), set(bm+"/dp_rank", "10e-1"), set("/dp_rank", "1.0")), nil},
		{"strings are equal by code unit", edits(set(bm+"/point_key", `"7\u00362`+pointKey[3:]+`"`), set(bm+"/preparation/grid_digest", `"g\u0072id"`)), nil},
		{"unknown keys", edits(set("/x", "[{}]"), set(bm+"/x", "{}"), set(bm+"/preparation/x", "1"), set(raws+"/0/x", "1")), nil},
		{"no measurement", edits(del(bm)), none("absent")},
		{"null measurement", edits(set(bm, "null")), none("")},
		{"list", edits(set(bm, "[1]")), none("")},
		{"version missing", edits(del(bm + "/schema_version")), version("absent")},
		{"version 2", edits(set(bm+"/schema_version", "2")), version("")},
		{"version true", edits(set(bm+"/schema_version", "true")), version("")},
		{"version text", edits(set(bm+"/schema_version", `"1"`)), version("")},
		{"rank missing", edits(del(bm + "/dp_rank")), rank("absent")},
		{"other rank", edits(set(bm+"/dp_rank", "0")), rank("")},
		{"rank true", edits(set(bm+"/dp_rank", "true")), rank("")},
		{"rank not whole", edits(set(bm+"/dp_rank", "1.0000000000000001")), rank("")},
		{"key missing", edits(del(bm + "/point_key")), key("absent")},
		{"key null", edits(set(bm+"/point_key", "null")), key("")},
		{"key empty", edits(set(bm+"/point_key", `""`)), key("")},
		{"key in upper case", edits(set(bm+"/point_key", `"`+strings.ToUpper(pointKey)+`"`)), key("")},
		{"preparation missing", edits(del(bm + "/preparation")), preparation("absent")},
		{"preparation null", edits(set(bm+"/preparation", "null")), preparation("")},
		{"preparation a list", edits(set(bm+"/preparation", "[]")), preparation("")},
		{"digest missing", edits(del(bm + "/preparation/grid_digest")), digest("absent")},
		{"digest differs", edits(set(bm+"/preparation/grid_digest", `"grid2"`)), digest("")},
		{"digest no string", edits(set(bm+"/preparation/grid_digest", `["grid"]`)), digest("")},
	}
}

func countVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const count = finding.SampleCount
	notList := func(actual string) []said {
		return []said{{count, raws, "raw_fpms is not a list", "a non-empty list", actual}}
	}
	expected := func(actual string) []said {
		return []said{{count, bm + "/expected_internal_samples", "expected_internal_samples is not an integer that covers the raw FPMs", "an integer of at least 3", actual}}
	}
	return []vector{
		{"as many as expected", edits(set(bm+"/expected_internal_samples", "3")), nil},
		{"no list", edits(del(raws)), notList("absent")},
		{"null list", edits(set(raws, "null")), notList("")},
		{"object for a list", edits(set(raws, "{}")), notList("")},
		{"empty list", edits(set(raws, "[]")), []said{{count, raws, "raw_fpms is empty", "a non-empty list", ""}}},
		{"expected missing", edits(del(bm + "/expected_internal_samples")), expected("absent")},
		{"too few expected", edits(set(bm+"/expected_internal_samples", "2")), expected("")},
		{"expected a float", edits(set(bm+"/expected_internal_samples", "4.0")), expected("")},
		{"expected true", edits(set(bm+"/expected_internal_samples", "true")), expected("")},
		{"sample in the retained FPM", edits(set("/benchmark_sample", "{}")), []said{{count, "/benchmark_sample", "the retained FPM itself carries a benchmark_sample", "none: a median can combine executions", ""}}},
		{"null sample in the retained FPM", edits(set("/benchmark_sample", "null")), []said{{count, "/benchmark_sample", "the retained FPM itself carries a benchmark_sample", "none: a median can combine executions", ""}}},
	}
}

func identityVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const identity = finding.SampleIdentity
	counter := func(i, actual string) said {
		return said{identity, raws + "/" + i + "/counter_id", "the raw FPM belongs to another point", "7", actual}
	}
	rank := func(actual string) []said {
		return []said{{identity, raws + "/2/dp_rank", "the raw FPM belongs to another DP rank", "1", actual}}
	}
	worker := func(actual string, at ...int) (list []said) {
		for _, i := range at {
			list = append(list, said{identity, fmt.Sprintf("%s/%d/worker_id", raws, i), "the raw FPM has another worker_id than the retained FPM", "the retained FPM's worker_id", actual})
		}
		return list
	}
	workers := func(retained string, raw ...string) []jsontest.Edit {
		list := edits(del("/worker_id"), del(raws+"/*/worker_id"))
		if retained != "" {
			list = append(list, set("/worker_id", retained))
		}
		for i, id := range raw {
			if id != "" {
				list = append(list, set(fmt.Sprintf("%s/%d/worker_id", raws, i), id))
			}
		}
		return list
	}
	return []vector{
		{"counter missing", edits(del(raws + "/0/counter_id")), []said{counter("0", "absent")}},
		{"counters of other points", edits(set(raws+"/1/counter_id", "8"), set(raws+"/2/counter_id", "7.0")), []said{counter("1", ""), counter("2", "")}},
		{"counter true", edits(set(raws+"/1/counter_id", "true")), []said{counter("1", "")}},
		{"rank missing", edits(del(raws + "/2/dp_rank")), rank("absent")},
		{"other rank", edits(set(raws+"/2/dp_rank", "0")), rank("")},
		{"rank a float", edits(set(raws+"/2/dp_rank", "1.0")), rank("")},
		{"not an object", edits(set(raws+"/0", "5")), []said{{identity, raws + "/0", "the raw FPM is not an object", "an object", ""}}},
		{"no worker", workers("", "", "", ""), nil},
		{"null is absent", workers("null", "", "null", ""), nil},
		{"absent is null", workers("", "null", "", "null"), nil},
		{"empty is not absent", workers(`""`, `""`, "", "null"), slices.Concat(worker("absent", 1), worker("", 2))},
		{"worker only in the raw FPMs", workers("", `"w"`, "", `"w"`), worker("", 0, 2)},
		{"escapes", workers(`"w\u00e9\ud83d\ude00/"`, `"wé😀/"`, `"\u0077\u00E9\uD83D\uDE00\/"`, `"w\u00e9😀\u002f"`), nil},
		{"lone surrogates", workers(`"w"`, `"w"`, `"w"`, `"W"`), worker("", 2)},
		{"numbers", workers(`12`, `12.0`, `120e-1`, `1.2E+1`), nil},
		{"number is not its text", workers(`12`, `"12"`, `12`, `13`), worker("", 0, 2)},
		{"fractions", workers(`0.5`, `5e-1`, `0.50`, `0.500001`), worker("", 2)},
		{"large numbers", workers(`100000000000000000000`, `1e20`, `10.0e19`, `100000000000000000001`), worker("", 2)},
		{"beyond a float's precision", workers(`9007199254740993`, `9007199254740993.0`, `9007199254740992`, `9007199254740994`), worker("", 1, 2)},
		{"huge exponents", workers(`1e1000000000000000000000`, `10e999999999999999999999`, `0.1E1000000000000000000001`, `1e1000000000000000000001`), worker("", 2)},
		{"zeros", workers(`0`, `-0`, `0.0e5`, `-0e-99999999999999999999`), nil},
		{"booleans", workers(`true`, `true`, `false`, `1`), worker("", 1, 2)},
	}
}

func indexVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const index = finding.SampleIndex
	position := func(i, actual string) said {
		return said{index, raws + "/" + i + "/benchmark_sample/sample_index", "sample_index is not the raw FPM's position", i, actual}
	}
	forward := func(i, previous, actual string) said {
		return said{index, raws + "/" + i + "/benchmark_sample/forward_index", "forward_index does not increase through the rank's run", "an integer greater than " + previous + " (below 2^63)", actual}
	}
	none := func(actual string) []said {
		return []said{{index, raws + "/1/benchmark_sample", "the raw FPM carries no benchmark_sample", "an object", actual}}
	}
	return []vector{
		{"no sample", edits(del(raws + "/1/benchmark_sample")), none("absent")},
		{"null sample", edits(set(raws+"/1/benchmark_sample", "null")), none("")},
		{"position missing", edits(sampleAt(0, del("/sample_index"))), []said{position("0", "absent")}},
		{"position off", edits(sampleAt(0, set("/sample_index", "1")), sampleAt(1, set("/sample_index", "0"))), []said{position("0", ""), position("1", "")}},
		{"position a float", edits(sampleAt(2, set("/sample_index", "2.0"))), []said{position("2", "")}},
		{"with gaps", edits(sampleAt(1, set("/forward_index", "500")), sampleAt(2, set("/forward_index", "9223372036854775807"))), nil},
		{"forward missing", edits(sampleAt(1, del("/forward_index"))), []said{forward("1", "10", "absent")}},
		{"forward null", edits(sampleAt(1, set("/forward_index", "null"))), []said{forward("1", "10", "")}},
		{"forward a float", edits(sampleAt(2, set("/forward_index", "12.0"))), []said{forward("2", "11", "")}},
		{"the same again", edits(sampleAt(1, set("/forward_index", "10"))), []said{forward("1", "10", "")}},
		{"as the point before", edits(sampleAt(0, set("/forward_index", "9"))), []said{forward("0", "9", "")}},
		{"negative", edits(sampleAt(0, set("/forward_index", "-1"))), []said{forward("0", "9", "")}},
		{"only the step back is wrong", edits(sampleAt(1, set("/forward_index", "3"))), []said{forward("1", "10", "")}},
		{"beyond 2^63", edits(sampleAt(2, set("/forward_index", "9223372036854775808"))), []said{forward("2", "11", "")}},
	}
}

func timingVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const timing = finding.SampleTiming
	at := func(tail string) string { return raws + "/0/benchmark_sample/timing" + tail }
	one := func(tail, message, expected, actual string) []said {
		return []said{{timing, at(tail), message, expected, actual}}
	}
	wall := func(actual string) []said {
		return []said{{timing, raws + "/0/wall_time", "the raw wall_time is not a finite number of at least 0", "seconds, at least 0", actual}}
	}
	end := func(actual string) []said {
		return one("/end_monotonic", "end_monotonic is not a finite number", "a process-local monotonic clock, in seconds", actual)
	}
	start := func() []said {
		return one("/start_monotonic", "start_monotonic is neither null nor a finite number", "null, or a process-local monotonic clock in seconds", "")
	}
	basis := func(actual string) []said {
		return one("/basis", "the timing basis is not known", "schedule_to_output or inter_output", actual)
	}
	off := func(expected, actual string) []said {
		return one("/end_monotonic", "end_monotonic - start_monotonic is not the raw wall_time", expected+" s", actual+" s")
	}
	const inter = `"inter_output"`
	return []vector{
		{"bases", edits(timingOf(0, `"schedule_to_output"`, "10", "10.5", "0.5"), timingOf(1, `"inter_\u006futput"`, "-1", "-0.875", "0.125")), nil},
		{"start missing", edits(sampleAt(0, del("/timing/start_monotonic"))), nil},
		{"within 1e-9 s", edits(timingOf(0, inter, "0", "0.000000001", "0")), nil},
		{"beyond 1e-9 s", edits(timingOf(0, inter, "0", "0.0000000011", "0")), off("0", "1.1e-09")},
		{"within 1e-9 relative", edits(timingOf(0, inter, "0", "1000.0000009", "1000")), nil},
		{"beyond 1e-9 relative", edits(timingOf(0, inter, "0", "1000.0000011", "1000")), off("1000", "1000.0000011")},
		{"wall of another sample", edits(timingOf(0, inter, "10", "10.5", "0.75")), off("0.75", "0.5")},
		{"an overflow is close to nothing", edits(timingOf(0, inter, "-1e308", "1e308", "1e308")), off("1e+308", "+Inf")},
		{"no timing", edits(sampleAt(0, del("/timing"))), one("", "the sample has no timing object", "an object", "absent")},
		{"timing null", edits(sampleAt(0, set("/timing", "null"))), one("", "the sample has no timing object", "an object", "")},
		{"basis missing", edits(sampleAt(0, del("/timing/basis"))), basis("absent")},
		{"basis unknown", edits(timingOf(0, `"cuda_events"`, "null", "1", "0.5")), basis("")},
		{"basis in upper case", edits(timingOf(0, `"INTER_OUTPUT"`, "null", "1", "0.5")), basis("")},
		{"basis no string", edits(timingOf(0, `["inter_output"]`, "null", "1", "0.5")), basis("")},
		{"end missing", edits(sampleAt(0, del("/timing/end_monotonic"))), end("absent")},
		{"end null", edits(timingOf(0, inter, "1", "null", "0.5")), end("")},
		{"end text", edits(timingOf(0, inter, "1", `"1.5"`, "0.5")), end("")},
		{"end not finite", edits(timingOf(0, inter, "1", "1e400", "0.5")), end("")},
		{"start text", edits(timingOf(0, inter, `"1"`, "1.5", "0.5")), start()},
		{"start false", edits(timingOf(0, inter, "false", "1.5", "0.5")), start()},
		{"start not finite", edits(timingOf(0, inter, "-1e400", "1.5", "0.5")), start()},
		{"start after the end", edits(timingOf(0, inter, "2", "1.5", "0.5")), one("/start_monotonic", "the sample starts after its end", "at most 1.5", "")},
		{"wall missing", edits(timingOf(0, inter, "1", "1.5", "0.5"), del(raws+"/0/wall_time")), wall("absent")},
		{"wall null", edits(timingOf(0, inter, "1", "1.5", "null")), wall("")},
		{"wall negative", edits(timingOf(0, inter, "1", "1.5", "-0.5")), wall("")},
		{"wall true", edits(timingOf(0, inter, "1", "1.5", "true")), wall("")},
		{"wall not finite", edits(timingOf(0, inter, "1", "1.5", "1e309")), wall("")},
	}
}

func graphVectors() []vector {
	del := jsontest.Del
	const graph = finding.SampleCUDAGraph
	at := func(tail string) string { return raws + "/1/benchmark_sample/cudagraph" + tail }
	one := func(tail, message, expected, actual string) said {
		return said{graph, at(tail), message, expected, actual}
	}
	observed := func(mode, unpadded, padded, paddings string) []jsontest.Edit {
		return edits(graphOf(1, fmt.Sprintf(`{"num_paddings": %s, "num_padded_tokens": %s, "num_unpadded_tokens": %s, "runtime_mode": %s, "status": "observed"}`, paddings, padded, unpadded, mode)))
	}
	const full = `"FULL"`
	mode := func(actual string) []said {
		return []said{one("/runtime_mode", "an observed dispatch names no runtime mode", "a non-empty string", actual)}
	}
	status := func(actual string) []said {
		return []said{one("/status", "the dispatch status is not known", "observed or unavailable", actual)}
	}
	unpadded := func(actual string) said {
		return one("/num_unpadded_tokens", "not a token count", "an integer of at least 0", actual)
	}
	padded := func(actual string) said {
		return one("/num_padded_tokens", "not a token count", "an integer", actual)
	}
	paddings := func(actual string) said { return one("/num_paddings", "not a token count", "an integer", actual) }
	value := func(field string) said {
		return one("/"+field, "a dispatch that was not observed has a value", "null", "")
	}
	return []vector{
		{"none padded", observed(`"CUDAGraphMode.FULL"`, "0", "0", "0"), nil},
		{"any mode", observed(`"\u0020"`, "5", "5", "-0"), nil},
		{"unavailable", edits(graphOf(1, `{"status": "unavailable", "runtime_mode": null, "num_paddings": null}`)), nil},
		{"no graph", edits(sampleAt(1, del("/cudagraph"))), []said{one("", "the sample has no cudagraph object", "an object", "absent")}},
		{"graph text", edits(graphOf(1, `"observed"`)), []said{one("", "the sample has no cudagraph object", "an object", "")}},
		{"status missing", edits(graphOf(1, `{}`)), status("absent")},
		{"status unknown", edits(graphOf(1, `{"status": "OBSERVED"}`)), status("")},
		{"status null", edits(graphOf(1, `{"status": null}`)), status("")},
		{"mode empty", observed(`""`, "3", "4", "1"), mode("")},
		{"mode null", observed(`null`, "3", "4", "1"), mode("")},
		{"mode missing", edits(sampleAt(1, del("/cudagraph/runtime_mode"))), mode("absent")},
		{"unpadded negative", observed(full, "-1", "4", "5"), []said{unpadded("")}},
		{"unpadded a float", observed(full, "3.0", "4", "1"), []said{unpadded("")}},
		{"padded a float", observed(full, "3", "4.0", "1"), []said{padded("")}},
		{"fewer with padding", observed(full, "4", "3", "-1"), []said{one("/num_padded_tokens", "fewer tokens with padding than without", "at least 4", "")}},
		{"paddings true", observed(full, "3", "4", "true"), []said{paddings("")}},
		{"paddings do not add up", observed(full, "3", "8", "1"), []said{one("/num_paddings", "not the padded tokens less the unpadded ones", "5", "")}},
		{"observed without numbers", edits(graphOf(1, `{"status": "observed", "runtime_mode": "NONE"}`)), []said{padded("absent"), paddings("absent"), unpadded("absent")}},
		{"unavailable with values", edits(graphOf(1, `{"status": "unavailable", "runtime_mode": "NONE", "num_unpadded_tokens": 0, "num_padded_tokens": false, "num_paddings": ""}`)), []said{
			value("num_padded_tokens"), value("num_paddings"), value("num_unpadded_tokens"), value("runtime_mode"),
		}},
	}
}

func estimateVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const reduction, estimate = finding.SampleReduction, finding.SampleEstimate
	const list = ratio + "/raw_sample_indices"
	none := func(actual string) []said {
		return []said{{reduction, ratio, "the measurement has no estimate object", "an object", actual}}
	}
	empty := func(actual string) []said {
		return []said{{reduction, list, "raw_sample_indices is not a non-empty list", "a non-empty list", actual}}
	}
	range3 := []said{{reduction, list, "raw_sample_indices are not strictly increasing positions of raw FPMs", "integers from 0 to 2, strictly increasing", ""}}
	method := func(actual string) []said {
		return []said{{reduction, ratio + "/method", "the reduction method is not known", "single_step, last_step or adjacent_upper_median", actual}}
	}
	selected := func(want string) []said {
		return []said{{reduction, list, "the selected samples are not those of the method", want, ""}}
	}
	median := func(at, want, actual string) []said {
		return []said{{estimate, "/wall_time", "the retained wall_time and the raw samples contradict each other: the upper median of those selected is " +
			raws[1:] + "/" + at + "/wall_time of the same FPM, " + want + "; which of the two was changed cannot be told", want, actual}}
	}
	const single, last, adjacent = `"single_step"`, `"last_step"`, `"adjacent_upper_median"`
	return []vector{
		{"single step", edits(samples(single, "[0]", "0.25")), nil},
		{"last step", edits(samples(last, "[2]", "1", "2", "0.25")), nil},
		{"last of one", edits(samples(`"last\u005fstep"`, "[0]", "0.25")), nil},
		{"median of one", edits(samples(adjacent, "[1]", "9", "0.25")), nil},
		{"upper median of two", edits(samples(adjacent, "[1, 2]", "9", "0.25", "0.125")), nil},
		{"upper median of three", edits(samples(adjacent, "[1, 2, 3]", "9", "1", "0.125", "0.25")), nil},
		{"upper median of four", edits(samples(adjacent, "[1, 2, 3, 4]", "9", "0.25", "0.125", "0.1", "1"), set(bm+"/expected_internal_samples", "5")), nil},
		{"within 1e-9 relative", edits(samples(single, "[0]", "1000"), set("/wall_time", "1000.0000009")), nil},
		{"beyond 1e-9 relative", edits(samples(single, "[0]", "1000"), set("/wall_time", "1000.0000011")), median("0", "1000", "")},
		{"within 1e-12 s", edits(samples(single, "[0]", "1e-12"), set("/wall_time", "0")), nil},
		{"beyond 1e-12 s", edits(samples(single, "[0]", "1.1e-12"), set("/wall_time", "0")), median("0", "1.1e-12", "")},
		{"an absent retained time is 0", edits(samples(single, "[0]", "0"), del("/wall_time")), nil},
		{"retained time missing", edits(samples(single, "[0]", "0.5"), del("/wall_time")), median("0", "0.5", "absent")},
		{"lower median", edits(set("/wall_time", "0.125")), median("2", "0.25", "")},
		{"retained time no number", edits(set("/wall_time", "null")), nil}, // that is group.wall-time
		{"selected sample without a time", edits(set(raws+"/2/wall_time", `"0.25"`)), []said{{finding.SampleTiming, raws + "/2/wall_time", "the raw wall_time is not a finite number of at least 0", "seconds, at least 0", ""}}},
		{"other sample without a time", edits(set(raws+"/0/wall_time", "-1"), set("/wall_time", "0.5")), append(median("2", "0.25", ""), said{finding.SampleTiming, raws + "/0/wall_time", "the raw wall_time is not a finite number of at least 0", "seconds, at least 0", ""})},
		{"no estimate", edits(del(ratio)), none("absent")},
		{"estimate null", edits(set(ratio, "null")), none("")},
		{"indices missing", edits(del(list)), empty("absent")},
		{"indices null", edits(set(list, "null")), empty("")},
		{"indices empty", edits(set(list, "[]")), empty("")},
		{"index repeated", edits(set(list, "[1, 1]")), range3},
		{"indices descend", edits(set(list, "[2, 1]")), range3},
		{"index negative", edits(set(list, "[-1, 1]")), range3},
		{"index beyond", edits(set(list, "[1, 3]")), range3},
		{"index a float", edits(set(list, "[1.0, 2]")), range3},
		{"index true", edits(set(list, "[true, 2]")), range3},
		{"method missing", edits(del(ratio + "/method")), method("absent")},
		{"method unknown", edits(set(ratio+"/method", `"mean"`)), method("")},
		{"method no string", edits(set(ratio+"/method", `{}`)), method("")},
		{"single step of several", edits(samples(single, "[0]", "0.25", "1")), selected("exactly one raw FPM for single_step")},
		{"last step is another", edits(samples(last, "[0]", "0.25", "1")), selected("[1] for last_step")},
		{"last step and more", edits(samples(last, "[0, 1]", "0.25", "0.25")), selected("[1] for last_step")},
		{"median with the first", edits(set(list, "[0, 1, 2]")), selected("every index from 1 to 2 for adjacent_upper_median")},
		{"median without the last", edits(set(list, "[1]")), selected("every index from 1 to 2 for adjacent_upper_median")},
		{"median of the first", edits(samples(adjacent, "[0]", "0.25")), selected("every index from 1 to 0 for adjacent_upper_median")},
	}
}

func vectors() []vector {
	return slices.Concat(measurementVectors(), countVectors(), identityVectors(), indexVectors(), timingVectors(), graphVectors(), estimateVectors())
}

func sorted(list []said) []said {
	slices.SortFunc(list, func(a, b said) int { return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Pointer, b.Pointer)) })
	return list
}

func TestRules(t *testing.T) {
	failed := map[finding.ID]bool{}
	for _, c := range vectors() {
		root := jsontest.Parse(t, soundFPM())
		jsontest.Apply(t, root, c.edits...)
		text := jsontest.Indent(root)
		_, findings, _ := readAs(t, Contract{Declared, Declared}, text, nil)
		got := sorted(facts(t, jsontest.Parse(t, text), prefix, findings))
		if diff := gocmp.Diff(sorted(c.want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		for _, f := range findings {
			failed[f.Rule] = true
			if f.File != "r1.json" || f.Rank != 1 || f.BenchmarkID != 7 || f.Severity != finding.Error {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
	}
	for _, id := range []finding.ID{finding.MeasurementMissing, finding.MeasurementIdentity, finding.SampleCount, finding.SampleIdentity,
		finding.SampleIndex, finding.SampleTiming, finding.SampleCUDAGraph, finding.SampleReduction, finding.SampleEstimate} {
		if !failed[id] {
			t.Errorf("no vector breaks %s", id)
		}
	}
}

// The order of keys says nothing, at any level.
func TestKeyOrderDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range vectors() {
		root := jsontest.Parse(t, soundFPM())
		jsontest.Apply(t, root, c.edits...)
		for range 4 {
			jsontest.Shuffle(random, root)
			text := jsontest.Indent(root)
			fpm, findings, previous := readAs(t, Contract{Declared, Declared}, text, nil)
			if diff := gocmp.Diff(sorted(c.want), sorted(facts(t, jsontest.Parse(t, text), prefix, findings))); diff != "" {
				t.Fatalf("%s (-want +got):\n%s\n%s", c.name, diff, text)
			}
			if c.want == nil && (!fpm.FirstForward.IsInteger(10) || previous < 10 || fpm.Sample < 0 || fpm.Measurement < 0) {
				t.Fatalf("%s: %+v, previous %d", c.name, fpm, previous)
			}
		}
	}
}

func TestNothingIsJudgedThatIsNotDeclared(t *testing.T) {
	broken := jsontest.Parse(t, soundFPM())
	jsontest.Apply(t, broken, jsontest.Set("/benchmark_sample", "{}"), jsontest.Set(raws+"/0", "5"), jsontest.Set(ratio, "null"),
		jsontest.Set("/wall_time", "9"), sampleAt(1, jsontest.Set("/forward_index", "-5")), jsontest.Del(raws+"/2/wall_time"))
	text := jsontest.Indent(broken)
	for _, contract := range []Contract{{}, {Declared, Undeclared}, {Declared, Unclear}, {Unclear, Unclear}} {
		fpm, findings, previous := readAs(t, contract, text, nil)
		if len(findings) > 0 || previous != 9 {
			t.Errorf("%+v: previous %d, %v", contract, previous, findings)
		}
		if fpm.Measurement < 0 || fpm.Sample < 0 { // to be told of where nothing declares them
			t.Errorf("%+v: %+v", contract, fpm)
		}
	}
	_, findings, _ := readAs(t, Contract{Declared, Undeclared}, `{}`, nil)
	if got := facts(t, jsontest.Parse(t, `{}`), prefix, findings); len(got) != 1 || got[0].Rule != finding.MeasurementMissing {
		t.Errorf("a protocol without a contract: %v", got)
	}
	for _, contract := range []Contract{{}, {Unclear, Unclear}} {
		if _, findings, _ := readAs(t, contract, `{}`, nil); len(findings) > 0 {
			t.Errorf("%+v: %v", contract, findings)
		}
	}
}

// What an FPM is held against can itself be unknown, and is then reported elsewhere.
func TestUnknownPlace(t *testing.T) {
	root := jsontest.Parse(t, soundFPM())
	jsontest.Apply(t, root, jsontest.Set(bm+"/dp_rank", "5"), jsontest.Set(raws+"/*/dp_rank", "6"), jsontest.Set(raws+"/*/counter_id", "8"), jsontest.Set(bm+"/point_key", `"k"`))
	text := jsontest.Indent(root)
	_, findings, _ := readAs(t, Contract{Declared, Declared}, text, func(p *Place) { p.HasRank, p.HasID, p.NoPoint, p.Key = false, false, true, "" })
	if len(findings) > 0 {
		t.Errorf("%v", findings)
	}
	_, findings, _ = readAs(t, Contract{Declared, Declared}, text, func(p *Place) { p.HasRank, p.HasID, p.Key = false, false, "" })
	want := []said{{finding.MeasurementIdentity, bm + "/point_key", "point_key is not the content key of the group's point", "the content key of a point, which this one lacks: it has no point_type or no batch_size", ""}}
	if diff := gocmp.Diff(want, facts(t, jsontest.Parse(t, text), prefix, findings)); diff != "" {
		t.Errorf("a point without coordinates (-want +got):\n%s", diff)
	}
}

func TestWhatIsKept(t *testing.T) {
	text := soundFPM()
	at := func(s string) int64 { return int64(strings.Index(text, s)) }
	fpm, _, previous := readAs(t, Contract{Declared, Declared}, text, nil)
	if !fpm.Object || fpm.Offset != 0 || fpm.Measurement != at(`{
		"schema_version"`) || fpm.Sample != at(`{
		"sample_index": 0`) {
		t.Errorf("places: %+v", fpm)
	}
	if !fpm.Counter.Is(7) || !fpm.DPRank.Is(1) || !fpm.Prepared || !fpm.WarmupBefore.Is(2) || !fpm.FirstForward.Is(10) || previous != 12 {
		t.Errorf("facts: %+v, previous %d", fpm, previous)
	}
	if seconds, ok := fpm.WallTime(); seconds != 0.25 || !ok || string(fpm.WallRaw) != "0.25" {
		t.Errorf("wall time %g, %t, %q", seconds, ok, fpm.WallRaw)
	}
	for text, want := range map[string]struct {
		seconds float64
		ok      bool
	}{
		`{}`: {0, true}, `{"wall_time": 1e-3}`: {0.001, true}, `{"wall_time": -2}`: {-2, true}, `{"wall_time": null}`: {0, false},
		`{"wall_time": "1"}`: {0, false}, `{"wall_time": true}`: {0, false}, `{"wall_time": [1]}`: {0, false},
	} {
		fpm, _, _ := readAs(t, Contract{}, text, nil)
		if seconds, ok := fpm.WallTime(); seconds != want.seconds || ok != want.ok {
			t.Errorf("%s: wall time %g, %t", text, seconds, ok)
		}
	}
	if fpm, _, _ := readAs(t, Contract{}, `{"wall_time": 1e999}`, nil); fpm.Wall.Finite {
		t.Error("1e999 is finite")
	}
	for _, text := range []string{`[1]`, `5`, `null`} {
		fpm, findings, _ := readAs(t, Contract{Declared, Declared}, text, nil)
		if fpm.Object || len(findings) > 0 {
			t.Errorf("%s: %+v, %v", text, fpm, findings)
		}
	}
}

// A reader is used for one FPM after another; nothing of one may be left in the next.
func TestReaderForgets(t *testing.T) {
	out := finding.NewCollector(0)
	previous := int64(9)
	r := NewReader(Contract{Declared, Declared}, grid)
	for i, text := range []string{soundFPM(), `{}`, `5`, `{"benchmark_measurement": {}}`} {
		s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{})
		fpm, err := r.Read(s, place(out, &previous))
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && (fpm.Sample >= 0 || fpm.Prepared || fpm.Counter.Present() || fpm.FirstForward.Present() || r.m.walls.Len() > 0) {
			t.Errorf("%s: %+v", text, fpm)
		}
	}
	want := map[finding.ID]int{finding.MeasurementMissing: 3, finding.MeasurementIdentity: 2, finding.SampleCount: 1}
	got := map[finding.ID]int{}
	for _, f := range out.Findings() {
		got[f.Rule]++
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestManySamples(t *testing.T) {
	const n = 100_000
	var text strings.Builder
	text.WriteString(`{"worker_id": "w", "dp_rank": 1, "counter_id": 7, "wall_time": 0.5, "benchmark_measurement": {"schema_version": 1, "point_key": "` + pointKey +
		`", "dp_rank": 1, "preparation": {"grid_digest": "grid"}, "expected_internal_samples": 100000, "raw_fpms": [`)
	indices := make([]byte, 0, 8*n)
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
			indices = append(strconv.AppendInt(indices, int64(i), 10), ',')
		}
		fmt.Fprintf(&text, `{"worker_id": "w", "dp_rank": 1, "counter_id": 7, "wall_time": 0.5, "benchmark_sample": {"sample_index": %d, "forward_index": %d, "timing": {"basis": "inter_output", "end_monotonic": 1}, "cudagraph": {"status": "unavailable"}}}`, i, i+10)
	}
	fmt.Fprintf(&text, `], "estimate": {"method": "adjacent_upper_median", "raw_sample_indices": [%s]}}}`, bytes.TrimSuffix(indices, []byte(",")))
	source := text.String()
	out := finding.NewCollector(0)
	previous := int64(9)
	s := jsonstream.New(strings.NewReader(source), 0, 0, jsonstream.Strict, jsonstream.Limits{})
	r := NewReader(Contract{Declared, Declared}, grid)
	before := liveHeap()
	if _, err := r.Read(s, place(out, &previous)); err != nil {
		t.Fatal(err)
	}
	grown := liveHeap() - before
	if found := out.Findings(); len(found) > 0 || previous != n+9 {
		t.Errorf("previous %d, %v", previous, found)
	}
	if grown > 64*n {
		t.Errorf("%d bytes are held for %d samples", grown, n)
	}
	runtime.KeepAlive(r)
}

func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTooManySamples(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat("0,", n-1) + "0]" }
	for _, c := range []struct {
		text, message string
	}{
		{`{"benchmark_measurement": {"raw_fpms": ` + list(maxSamples) + `, "estimate": {"raw_sample_indices": ` + list(maxSamples) + `}}}`, ""},
		{`{"benchmark_measurement": {"raw_fpms": ` + list(maxSamples+1) + `}}`, "more than 1000000 raw FPMs in one measurement"},
		{`{"benchmark_measurement": {"estimate": {"raw_sample_indices": ` + list(maxSamples+1) + `}}}`, "more than 1000000 sample indices in one estimate"},
	} {
		previous := int64(-1)
		s := jsonstream.New(strings.NewReader(c.text), 0, 0, jsonstream.Strict, jsonstream.Limits{})
		_, err := NewReader(Contract{}, grid).Read(s, place(finding.NewCollector(0), &previous))
		var fault *jsonstream.Fault
		switch {
		case c.message == "" && err != nil:
			t.Errorf("%d samples: %v", maxSamples, err)
		case c.message != "" && (!errors.As(err, &fault) || fault.Rule != finding.InputLimit || fault.Message != c.message):
			t.Errorf("%v, want %s", err, c.message)
		}
	}
}

// An error of the text is passed on wherever it stands.
func TestBrokenText(t *testing.T) {
	text := soundFPM()
	for end := range len(text) {
		previous := int64(9)
		out := finding.NewCollector(0)
		s := jsonstream.New(strings.NewReader(text[:end]), 0, 0, jsonstream.Strict, jsonstream.Limits{})
		_, err := NewReader(Contract{Declared, Declared}, grid).Read(s, place(out, &previous))
		var fault *jsonstream.Fault
		if !errors.As(err, &fault) || fault.Rule != finding.JSONSyntax || !fault.Truncated {
			t.Fatalf("cut at %d: %v", end, err)
		}
	}
}

// A lone surrogate escape, which is read leniently, is text like any other.
func TestLoneSurrogateWorker(t *testing.T) {
	for raw, want := range map[string]int{`"\ud800"`: 0, `"\uD800"`: 0, `"\ud801"`: 1, `"\ufffd"`: 1} {
		root := jsontest.Parse(t, soundFPM())
		jsontest.Apply(t, root, jsontest.Set("/worker_id", `"\ud800"`), jsontest.Set(raws+"/*/worker_id", `"\ud800"`), jsontest.Set(raws+"/2/worker_id", raw))
		previous := int64(9)
		out := finding.NewCollector(0)
		s := jsonstream.New(strings.NewReader(jsontest.Indent(root)), 0, 0, jsonstream.Lenient, jsonstream.Limits{})
		if _, err := NewReader(Contract{Declared, Declared}, grid).Read(s, place(out, &previous)); err != nil {
			t.Fatal(err)
		}
		if out.Errors() != want {
			t.Errorf("%s: %v", raw, out.Findings())
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(soundFPM())
	random := rand.New(rand.NewPCG(3, 4))
	for _, c := range vectors() {
		root := jsontest.Parse(f, soundFPM())
		jsontest.Apply(f, root, c.edits...)
		jsontest.Shuffle(random, root)
		f.Add(string(root.AppendCompact(nil)))
	}
	f.Fuzz(func(t *testing.T, text string) {
		lenient, err := jsonstream.Check(strings.NewReader(text), jsonstream.Limits{})
		if err != nil {
			return
		}
		mode := jsonstream.Strict
		if lenient {
			mode = jsonstream.Lenient
		}
		out := finding.NewCollector(0)
		previous := int64(9)
		s := jsonstream.New(strings.NewReader(text), 0, 0, mode, jsonstream.Limits{})
		fpm, err := NewReader(Contract{Declared, Declared}, grid).Read(s, place(out, &previous))
		if err != nil {
			t.Fatalf("%v in valid text", err)
		}
		root := jsontest.Parse(t, text)
		if fpm.Object != (root.Kind == jsonvalue.Object) || fpm.Offset != root.Offset {
			t.Errorf("%+v", fpm)
		}
		facts(t, root, prefix, out.Findings())
	})
}
