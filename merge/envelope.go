package merge

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/protocol"
)

// status is a file's status after its default (rank.status).
type status struct {
	name  string // complete, partial or failed; empty when it is no string
	sound bool   // complete or partial
}

// key reports a top-level key.
func (sc *scanner) key(rule finding.ID, name, message, expected string) {
	v := sc.head[name]
	off := int64(0)
	if v != nil {
		off = v.Offset
	}
	sc.scope.Either(rule, "/"+name, v != nil, off, sc.f.root, message, expected)
}

// under reports a member of a block.
func (sc *scanner) under(rule finding.ID, block, name string, parent *jsonvalue.Value, message, expected string) {
	v := parent.Get(name)
	off := int64(0)
	if v != nil {
		off = v.Offset
	}
	sc.scope.Either(rule, "/"+block+"/"+name, v != nil, off, parent.Offset, message, expected)
}

// isMerged reports a merged artifact among the rank files: nothing else that could be
// said of it would help.
func (sc *scanner) isMerged() bool {
	kind, _ := sc.head["artifact_type"].Str()
	merged := kind == "merged" && sc.head["dp"].Get("rank") == nil
	if merged {
		sc.key(finding.RankSchema, "artifact_type", "this is a merged artifact, not a rank's", `"rank"`)
	}
	return merged
}

func (sc *scanner) judgeSchema() {
	if v := sc.head["schema_version"]; v != nil && !isNumber(v, "2") {
		sc.key(finding.RankSchema, "schema_version", "the schema version is not known", "2")
	}
	if v := sc.head["artifact_type"]; v != nil {
		if kind, ok := v.Str(); !ok || kind != "rank" {
			sc.key(finding.RankSchema, "artifact_type", "the document is not a rank artifact", `"rank"`)
		}
	}
}

func isNumber(v *jsonvalue.Value, n string) bool {
	return v != nil && v.Kind == jsonvalue.Number && jsonvalue.EqualNumbers(v.Raw, []byte(n))
}

// judgeDP applies rank.dp as far as the file itself goes.
func (sc *scanner) judgeDP() {
	f, dp := sc.f, sc.head["dp"]
	f.size, f.dpRank, f.dpSize, f.misnamed = 0, jsonstream.Field{}, jsonstream.Field{}, false
	if dp == nil || dp.Kind != jsonvalue.Object {
		sc.key(finding.RankDP, "dp", "dp is not an object", "an object with rank and size")
		return
	}
	size, ok := dp.Get("size").Int64()
	switch {
	case !ok || size < 1:
		sc.under(finding.RankDP, "dp", "size", dp, "the data-parallel size is not an integer of at least 1", "an integer of at least 1")
	case size > MaxDPSize:
		sc.under(finding.InputLimit, "dp", "size", dp, "the data-parallel size is beyond what fpm takes", "at most "+strconv.Itoa(MaxDPSize))
	default:
		f.size = int(size)
	}
	rank, ok := dp.Get("rank").Int64()
	switch {
	case !ok || rank < 0 || (f.size > 0 && rank >= size):
		want := "an integer from 0 to size - 1"
		if f.size > 0 {
			want = "an integer from 0 to " + strconv.Itoa(f.size-1)
		}
		sc.under(finding.RankDP, "dp", "rank", dp, "dp.rank is no rank of the run", want)
	case f.nameRank != finding.NoRank && rank != int64(f.nameRank):
		f.misnamed = rank != int64(f.rank)
		sc.under(finding.RankDP, "dp", "rank", dp, "dp.rank contradicts the file's name", strconv.Itoa(f.nameRank))
	case f.rank == finding.NoRank:
		f.rank = int(rank)
	}
	f.dpRank = field(dp.Get("rank"))
	f.dpSize = field(dp.Get("size"))
}

func field(v *jsonvalue.Value) jsonstream.Field {
	if v == nil {
		return jsonstream.Field{}
	}
	n, ok := v.Int64()
	return jsonstream.Field{Offset: v.Offset, Int: n, Integer: ok, Whole: ok, Kind: '0'}
}

// counts are a file's coverage counts; -1 where one is unsound.
type counts struct{ expected, completed, skipped int64 }

func (sc *scanner) judgeEnvelope() {
	c := sc.judgeCoverage()
	sc.judgeCounts(c)
	sc.judgeStatus()
	switch sc.status.name {
	case "complete":
		sc.judgeComplete(c)
	case "partial":
		sc.judgePartial(c)
		if sc.isReference() && c.expected >= 0 && c.completed >= 0 {
			sc.scope.Says(finding.RankPartialRun, "/status", sc.offset("status"), partialRun(c), "", "")
		}
	}
}

func partialRun(c counts) string {
	return fmt.Sprintf("the run stopped early: %d of %d points were measured", c.completed, c.expected)
}

func (sc *scanner) offset(name string) int64 {
	if v := sc.head[name]; v != nil {
		return v.Offset
	}
	return sc.f.root
}

func (sc *scanner) judgeCoverage() counts {
	c := counts{-1, -1, -1}
	coverage := sc.head["coverage"]
	if coverage == nil || coverage.Kind != jsonvalue.Object {
		sc.key(finding.RankCoverage, "coverage", "coverage is not an object", "an object with expected_points, completed_points and skipped_points")
		return c
	}
	for _, count := range []struct {
		name string
		to   *int64
	}{{"completed_points", &c.completed}, {"skipped_points", &c.skipped}, {"expected_points", &c.expected}} {
		n, ok := sc.count(coverage.Get(count.name))
		if !ok {
			sc.under(finding.RankCoverage, "coverage", count.name, coverage, count.name+" is not a count", sc.wantedCount(count.name, c))
			continue
		}
		*count.to = n
	}
	if c.expected >= 0 && c.completed >= 0 && c.skipped >= 0 && c.skipped > c.expected-c.completed {
		sc.scope.Broken(finding.RankCoverage, "/coverage", coverage.Offset, "more points were completed and skipped than expected",
			"completed_points + skipped_points at most "+strconv.FormatInt(c.expected, 10)+sc.listed("results", "iteration_groups", "skipped_points"))
	}
	return c
}

// wantedCount says what a count would have to be, as far as what is beside it tells.
func (sc *scanner) wantedCount(name string, c counts) string {
	switch {
	case name == "completed_points":
		return "an integer of at least 0" + sc.listed("results", "iteration_groups")
	case name == "skipped_points":
		return "an integer of at least 0" + sc.listed("skipped_points")
	case c.completed >= 0 && c.skipped >= 0 && c.skipped <= math.MaxInt64-c.completed:
		return "an integer of at least " + strconv.FormatInt(c.completed+c.skipped, 10) + ", completed_points + skipped_points"
	}
	return "an integer of at least 0"
}

// listed tells how many entries lists have, in brackets. Counts of a merged artifact are
// of all ranks and say nothing about its lists.
func (sc *scanner) listed(names ...string) string {
	var parts []string
	for _, name := range names {
		if l := sc.lists[name]; l != nil && l.kind == jsonvalue.Array && !sc.merged {
			parts = append(parts, strconv.Itoa(l.n)+" in "+name)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (there are " + strings.Join(parts, ", ") + ")"
}

// count reads a number of points. One of a merged artifact can be beyond 64 bits; it stands
// for the largest then, which no list has.
func (sc *scanner) count(v *jsonvalue.Value) (n int64, ok bool) {
	n, ok = v.Int64()
	if !ok && sc.merged && v.IsInt() && v.Raw[0] != '-' {
		return math.MaxInt64, true
	}
	return n, ok && n >= 0
}

func (sc *scanner) judgeCounts(c counts) {
	for _, l := range []struct {
		name     string
		optional bool
		want     int64
	}{
		{"skipped_points", true, c.skipped},
		{"missing_phases", true, -1},
		{"results", false, c.completed},
		{"iteration_groups", false, c.completed},
	} {
		sc.judgeCount(l.name, l.optional, l.want)
	}
}

// judgeCount judges a list that is to have as many entries as coverage says, or any number
// of them when that is -1.
func (sc *scanner) judgeCount(name string, optional bool, want int64) {
	found := sc.lists[name]
	switch {
	case found == nil && optional:
		if want > 0 {
			sc.scope.Absent(finding.RankCounts, "/"+name, sc.f.root, name+" has not as many entries as coverage says", words.Count(int(want), "entry", "entries"))
		}
	case found == nil:
		sc.scope.Absent(finding.RankCounts, "/"+name, sc.f.root, name+" is missing", "a list")
	case found.kind != jsonvalue.Array:
		sc.scope.Broken(finding.RankCounts, "/"+name, found.Off, name+" is not a list", "a list")
	case want >= 0 && int64(found.n) != want:
		sc.scope.Says(finding.RankCounts, "/"+name, found.Off, name+" has not as many entries as coverage says",
			words.Count(int(want), "entry", "entries"), words.Count(found.n, "entry", "entries"))
	}
}

func (sc *scanner) judgeStatus() {
	v := sc.head["status"]
	sc.status = status{}
	if v == nil {
		sc.status.name = "failed"
		if valid := sc.head["valid"]; valid != nil && valid.Kind == jsonvalue.True {
			sc.status.name = "complete"
		}
	} else {
		sc.status.name, _ = v.Str()
	}
	sc.status.sound = slices.Contains([]string{"complete", "partial"}, sc.status.name)
	if !sc.status.sound {
		sc.key(finding.RankStatus, "status", "the self-benchmark did not finish", `"complete" or "partial"`)
	}
}

func (sc *scanner) judgeComplete(c counts) {
	const rule = finding.RankComplete
	if v := sc.head["valid"]; v == nil || v.Kind != jsonvalue.True {
		sc.key(rule, "valid", "a complete file is not valid", "true")
	}
	if v := sc.head["usable"]; v != nil && v.Kind != jsonvalue.True {
		sc.key(rule, "usable", "a complete file is not usable", "true, or absent")
	}
	if v := sc.head["stop_reason"]; v != nil && v.Kind != jsonvalue.Null {
		sc.key(rule, "stop_reason", "a complete file has a stop reason", "null, or absent")
	}
	if c.completed >= 0 && c.expected >= 0 && c.completed != c.expected {
		sc.under(rule, "coverage", "completed_points", sc.head["coverage"], "a complete file lacks points", strconv.FormatInt(c.expected, 10))
	}
	sc.judgeNothingLost(rule, c)
}

func (sc *scanner) judgePartial(c counts) {
	const rule = finding.RankPartial
	if v := sc.head["valid"]; v == nil || v.Kind != jsonvalue.False {
		sc.key(rule, "valid", "a partial file is not marked as not valid", "false")
	}
	if v := sc.head["usable"]; v == nil || v.Kind != jsonvalue.True {
		sc.key(rule, "usable", "a partial file is not usable", "true")
	}
	if reason, ok := sc.head["stop_reason"].Str(); !ok || reason != "timeout" {
		sc.key(rule, "stop_reason", "a partial file did not stop at the time-out", `"timeout"`)
	}
	if c.completed >= 0 && c.expected >= 0 && c.completed >= c.expected {
		sc.under(rule, "coverage", "completed_points", sc.head["coverage"], "a partial file lacks no point", "less than "+strconv.FormatInt(c.expected, 10))
	}
	sc.judgeNothingLost(rule, c)
}

// judgeNothingLost is the part that complete and partial files have in common.
func (sc *scanner) judgeNothingLost(rule finding.ID, c counts) {
	if c.skipped > 0 {
		sc.under(rule, "coverage", "skipped_points", sc.head["coverage"], "points were skipped", "0")
	}
	if l := sc.lists["missing_phases"]; l != nil && l.n > 0 {
		sc.scope.Broken(rule, "/missing_phases", l.Off, "phases are missing", "[]")
	}
	if v := sc.head["error"]; v != nil && v.Kind != jsonvalue.Null {
		sc.key(rule, "error", "the self-benchmark reported an error", "null, or absent")
	}
}

// judgeIdentity applies the rules about what makes the files one run.
func (sc *scanner) judgeIdentity() {
	f := sc.f
	f.runID = sc.identity(finding.RunID, "run_id")
	sc.identity(finding.RunGrid, "grid_digest")
	if sc.isReference() {
		return
	}
	ref := sc.r.head
	if sc.status.name != "" && sc.r.status.name != "" && sc.status.name != sc.r.status.name {
		sc.key(finding.RunStatus, "status", sc.than("the status differs"), strconv.Quote(sc.r.status.name))
	}
	if a, b := ref["coverage"], sc.head["coverage"]; isObject(a) && isObject(b) {
		sc.diff(finding.RunCoverage, "/coverage", a, b)
	}
	if a, b := orNull(ref["stop_reason"]), orNull(sc.head["stop_reason"]); isScalar(a) && isScalar(b) {
		sc.diff(finding.RunStopReason, "/stop_reason", a, b)
	}
	sc.judgeProtocol(ref["measurement_protocol"], sc.head["measurement_protocol"])
}

func isObject(v *jsonvalue.Value) bool { return v != nil && v.Kind == jsonvalue.Object }

func isScalar(v *jsonvalue.Value) bool {
	return v.Kind != jsonvalue.Object && v.Kind != jsonvalue.Array
}

func orNull(v *jsonvalue.Value) *jsonvalue.Value {
	if v == nil {
		return &jsonvalue.Value{Kind: jsonvalue.Null, Raw: []byte("null"), Offset: -1}
	}
	return v
}

// identity applies run.id or run.grid and returns the value.
func (sc *scanner) identity(rule finding.ID, name string) string {
	text, ok := sc.head[name].Str()
	if !ok || text == "" {
		sc.key(rule, name, name+" is not a non-empty string", "a non-empty string")
		return ""
	}
	if !sc.isReference() {
		if want, ok := sc.r.head[name].Str(); ok && want != "" && want != text {
			sc.key(rule, name, sc.than(name+" differs"), strconv.Quote(want))
		}
	}
	return text
}

// judgeProtocol applies protocol.mismatch.
func (sc *scanner) judgeProtocol(ref, own *jsonvalue.Value) {
	const pointer = "/measurement_protocol"
	switch {
	case ref == nil && own == nil:
	case own == nil:
		sc.f.protocolMixed = true
		sc.scope.Absent(finding.ProtocolMismatch, pointer, sc.f.root, sc.than("a missing measurement protocol makes this file differ"), ref.Excerpt(maxExcerpt))
	case ref == nil:
		sc.f.protocolMixed = true
		sc.scope.Broken(finding.ProtocolMismatch, pointer, own.Offset, sc.than("an added measurement protocol makes this file differ"), "absent")
	default:
		sc.diff(finding.ProtocolMismatch, pointer, ref, own)
	}
}

// diff reports every difference between a block of the reference and the file's.
func (sc *scanner) diff(rule finding.ID, pointer string, ref, own *jsonvalue.Value) {
	jsonvalue.Diff(ref, own, pointer, func(d jsonvalue.Difference) bool {
		expected := "absent"
		if d.A != nil {
			expected = d.A.Excerpt(maxExcerpt)
		}
		switch {
		case d.B != nil && d.B.Offset >= 0:
			sc.scope.Broken(rule, d.Pointer, d.B.Offset, sc.than("the value differs"), expected)
		case d.Parent != nil:
			sc.scope.Absent(rule, d.Pointer, d.Parent.Offset, sc.than("the value differs"), expected)
		default:
			sc.scope.Absent(rule, d.Pointer, sc.f.root, sc.than("the value differs"), expected)
		}
		return true
	})
}

// judgeTiming applies the timing rules. Measured may exceed elapsed by no more than a part
// of it and a constant.
func (sc *scanner) judgeTiming(part, constant float64) {
	timing := sc.head["timing"]
	if !isObject(timing) {
		sc.key(finding.TimingShape, "timing", "timing is not an object", "an object")
		return
	}
	for _, name := range []string{"started_at", "completed_at"} {
		if _, ok := timing.Get(name).Str(); !ok {
			sc.under(finding.TimingShape, "timing", name, timing, name+" is not a string", "a time stamp")
		}
	}
	elapsed, elapsedOK := timing.Get("benchmark_elapsed_seconds").Float64()
	if n, ok := timing.Get("benchmark_elapsed_seconds").Int64(); ok && n == 0 {
		elapsed = 0 // the integer -0 has no sign
	}
	if elapsedOK = elapsedOK && elapsed >= 0; !elapsedOK {
		sc.under(finding.TimingShape, "timing", "benchmark_elapsed_seconds", timing, "benchmark_elapsed_seconds is not a duration", "a finite number of seconds, at least 0")
	}
	measured, measuredOK := timing.Get("measured_iteration_seconds").Float64()
	if !measuredOK {
		sc.under(finding.TimingShape, "timing", "measured_iteration_seconds", timing, "measured_iteration_seconds is not a finite number", "a finite number of seconds")
		return
	}
	if groups := sc.referenceGroups(); groups != nil && groups.summed {
		if sum := groups.sum.Sum(); !protocol.IsClose(measured, sum, 1e-9, 1e-12) {
			sc.under(finding.TimingMeasured, "timing", "measured_iteration_seconds", timing, "measured_iteration_seconds is not the sum of the groups' wall times",
				strconv.FormatFloat(sum, 'g', -1, 64))
		}
	}
	if elapsedOK && measured > elapsed+constant+part*math.Abs(measured) {
		sc.under(finding.TimingExceeds, "timing", "measured_iteration_seconds", timing, "more time was measured than elapsed",
			"at most "+strconv.FormatFloat(elapsed, 'g', -1, 64))
	}
	sc.f.elapsed = elapsed
}

// referenceGroups is the index of the reference's groups, of this file when it is to be
// the reference.
func (sc *scanner) referenceGroups() *groupIndex {
	if sc.isReference() {
		return sc.groups
	}
	return sc.r.groups
}
