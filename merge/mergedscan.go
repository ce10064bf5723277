package merge

import (
	"math"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/engine"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/internal/words"
)

// member reads a top-level key of a merged artifact.
func (c *mergedCheck) member(name []byte) (err error) {
	key := string(name)
	kind, start := jsonvalue.Kind(c.s.Peek()), c.s.NextOffset()
	switch key {
	case "schema_version", "artifact_type", "status", "valid", "usable", "stop_reason", "run_id", "grid_digest", "error":
		c.head[key], err = c.readScalar(kind)
	case "coverage", "dp", "timing", "measurement_protocol":
		c.head[key], err = c.s.Tree(maxBlock)
	case "skipped_points", "missing_phases":
		c.lists[key], err = c.countList()
	case "results":
		err = c.readFlat()
		c.lists[key] = &list{n: c.flat.len()}
	case "iteration_groups":
		err = c.readGroups(kind, start)
	default:
		_, err = c.s.Skip()
	}
	at := place{true, kind, jsonstream.Span{Off: start, Len: c.s.Offset() - start}}
	if l := c.lists[key]; l != nil {
		l.place = at
	}
	switch key {
	case "engine", "rank_warmup_evidence", "warmup_evidence", "rank_files", "merged_output_path", "worker_probe_path", "iteration_groups":
		c.places[key] = at
	}
	return err
}

// as makes findings of the file those of a rule of merged artifacts until the next call.
func (c *mergedCheck) as(rule finding.ID) { c.scope.As = rule }

// judge applies the rules. What the parts of a rank artifact are judged by is used where
// the requirement is the same.
func (c *mergedCheck) judge() error {
	c.as(finding.MergedSchema)
	if c.f.parsed = c.judgeKind(); !c.f.parsed {
		return nil
	}
	size := c.judgeRanks()
	c.as(finding.MergedIdentity)
	c.result.RunID = c.identity(finding.RunID, "run_id")
	c.identity(finding.RunGrid, "grid_digest")
	c.result.SourceRanks, c.result.GlobalSize = c.source, size
	for _, judge := range []func(size int) error{c.judgeOwnGroups, c.judgeOwnEnvelope, c.judgeFlat, c.judgeOwnTiming, c.judgeLedgers, c.judgeEngine, c.judgePaths} {
		if err := judge(size); err != nil {
			return err
		}
	}
	return nil
}

// judgeKind tells whether the document is a merged artifact (merged.schema). Nothing else
// that could be said of one that is not would help.
func (c *mergedCheck) judgeKind() bool {
	kind, _ := c.head["artifact_type"].Str()
	switch {
	case !c.f.parsed:
		c.scope.Broken(finding.MergedSchema, "", c.f.root, "the document is not an object", "a merged artifact")
		return false
	case kind != "merged":
		c.key(finding.MergedSchema, "artifact_type", "the document is not a merged artifact", `"merged"`)
		return false
	}
	if v := c.head["schema_version"]; v != nil && !isNumber(v, "2") {
		c.key(finding.MergedSchema, "schema_version", "the schema version is not known", "2")
	}
	return true
}

// judgeRanks applies merged.dp and returns the global size, 0 when it is unsound.
func (c *mergedCheck) judgeRanks() (size int) {
	c.as(finding.MergedDP)
	dp := c.head["dp"]
	if !isObject(dp) {
		c.key(finding.MergedDP, "dp", "dp is not an object", "an object with ranks, source_ranks, managed_size and global_size")
		return 0
	}
	switch n, ok := dp.Get("global_size").Int64(); {
	case !ok || n < 1:
		c.under(finding.MergedDP, "dp", "global_size", dp, "the global size is not an integer of at least 1", "an integer of at least 1")
	case n > MaxDPSize:
		c.as("")
		c.under(finding.InputLimit, "dp", "global_size", dp, "the global size is beyond what fpm takes", "at most "+strconv.Itoa(MaxDPSize))
		c.as(finding.MergedDP)
	default:
		size = int(n)
		if ranks := dp.Get("ranks"); !isRange(ranks, size) {
			c.under(finding.MergedDP, "dp", "ranks", dp, "dp.ranks are not the global ranks", globalRanks(size))
		}
	}
	c.source = c.judgeSources(dp, size)
	if n := dp.Get("managed_size"); c.source != nil && !isNumber(n, strconv.Itoa(len(c.source))) {
		c.under(finding.MergedDP, "dp", "managed_size", dp, "dp.managed_size is not the number of source ranks", strconv.Itoa(len(c.source)))
	}
	return size
}

// isRange tells whether a value is the list of the numbers from 0 to n - 1.
func isRange(v *jsonvalue.Value, n int) bool {
	if v == nil || v.Kind != jsonvalue.Array || len(v.Elems) != n {
		return false
	}
	for i := range v.Elems {
		if !isNumber(&v.Elems[i], strconv.Itoa(i)) {
			return false
		}
	}
	return true
}

// judgeSources returns the source ranks, nil when they are unsound.
func (c *mergedCheck) judgeSources(dp *jsonvalue.Value, size int) (ranks []int) {
	v := dp.Get("source_ranks")
	if v == nil || v.Kind != jsonvalue.Array || len(v.Elems) == 0 {
		c.under(finding.MergedDP, "dp", "source_ranks", dp, "the source ranks are not a list of at least one rank", "a list of ranks")
		return nil
	}
	last := -1
	for i := range v.Elems {
		n, ok := v.Elems[i].Int64()
		if !ok || n <= int64(last) || n >= MaxDPSize || (size > 0 && n >= int64(size)) {
			want := "an integer from " + strconv.Itoa(last+1)
			if size > 0 {
				want += " to " + strconv.Itoa(size-1)
			}
			c.scope.Broken(finding.MergedDP, "/dp/source_ranks/"+strconv.Itoa(i), v.Elems[i].Offset, "the source ranks are not global ranks, ascending and each once", want)
			return nil
		}
		last = int(n)
		ranks = append(ranks, last)
	}
	return ranks
}

// judgeOwnGroups applies the rules about the iteration groups and what they carry.
func (c *mergedCheck) judgeOwnGroups(int) error {
	c.as("")
	c.declare()
	groups := c.places["iteration_groups"]
	switch {
	case !groups.exists:
		c.scope.Absent(finding.MergedGroups, "/iteration_groups", c.f.root, "iteration_groups is missing", "a list")
	case groups.kind != jsonvalue.Array:
		c.scope.Broken(finding.MergedGroups, "/iteration_groups", groups.Off, "iteration_groups is not a list", "a list")
	default:
		c.result.Groups = groups.Span
		c.result.Points = c.lists["iteration_groups"].n
	}
	if err := c.judgeGroups(); err != nil {
		return err
	}
	if c.groups != nil {
		c.groups.checkDeclared(c.contract, c.scope)
	}
	return nil
}

// judgeOwnEnvelope applies merged.coverage and merged.status.
func (c *mergedCheck) judgeOwnEnvelope(size int) error {
	c.as(finding.MergedCoverage)
	sum := c.judgeCoverage()
	c.judgeMultiples(sum, size)
	c.judgeCount("skipped_points", false, perRank(sum.skipped, size))
	c.as(finding.MergedStatus)
	c.judgeCount("missing_phases", true, -1)
	c.judgeStatus()
	switch c.status.name {
	case "complete":
		c.judgeComplete(sum)
	case "partial":
		c.judgePartial(sum)
		if own := (counts{expected: perRank(sum.expected, size), completed: perRank(sum.completed, size)}); own.expected >= 0 && own.completed >= 0 {
			c.as("")
			c.scope.Says(finding.RankPartialRun, "/status", c.offset("status"), partialRun(own), "", "")
		}
	}
	return nil
}

// perRank is a count of the merged artifact as every rank has it, -1 when it is unsound.
func perRank(n int64, size int) int64 {
	if n < 0 || size == 0 || n%int64(size) != 0 {
		return -1
	}
	return n / int64(size)
}

// judgeMultiples holds the counts against the global size and the number of groups.
func (c *mergedCheck) judgeMultiples(sum counts, size int) {
	if size == 0 {
		return
	}
	coverage := c.head["coverage"]
	for _, count := range []struct {
		name string
		n    int64
	}{{"expected_points", sum.expected}, {"skipped_points", sum.skipped}} {
		if count.n >= 0 && count.n < math.MaxInt64 && count.n%int64(size) != 0 {
			c.under(finding.MergedCoverage, "coverage", count.name, coverage, count.name+" is not a rank's times the global size", "a multiple of "+strconv.Itoa(size))
		}
	}
	if groups := c.lists["iteration_groups"]; groups != nil && c.result.Groups.Len > 0 && sum.completed >= 0 && sum.completed != int64(groups.n)*int64(size) {
		c.under(finding.MergedCoverage, "coverage", "completed_points", coverage, "completed_points is not the number of iteration groups times the global size",
			strconv.Itoa(groups.n*size))
	}
}

// judgeOwnTiming applies merged.timing. A rank's measured time may differ from the sum by a
// tolerance, so that the sum may exceed what elapsed by as much.
func (c *mergedCheck) judgeOwnTiming(int) error {
	c.as(finding.MergedTiming)
	c.judgeTiming(2e-9, 3e-12)
	timing := c.head["timing"]
	if !isObject(timing) {
		return nil
	}
	const name = "rank_benchmark_elapsed_seconds"
	ranks := timing.Get(name)
	if !isObject(ranks) {
		c.under(finding.MergedTiming, "timing", name, timing, name+" is not an object", "an object with a duration for each source rank")
		return nil
	}
	largest, sound := c.judgeElapsed("/timing/"+name, ranks)
	elapsed, ok := timing.Get("benchmark_elapsed_seconds").Float64()
	if sound && ok && elapsed != largest {
		c.under(finding.MergedTiming, "timing", "benchmark_elapsed_seconds", timing, "benchmark_elapsed_seconds is not that of the slowest source rank",
			strconv.FormatFloat(largest, 'g', -1, 64))
	}
	return nil
}

// judgeElapsed judges the elapsed times of the source ranks and returns the largest.
func (c *mergedCheck) judgeElapsed(pointer string, ranks *jsonvalue.Value) (largest float64, sound bool) {
	sound = len(ranks.Members) > 0
	for i := range ranks.Members {
		m := &ranks.Members[i]
		seconds, ok := m.Value.Float64()
		at := string(jsonvalue.AppendToken([]byte(pointer), m.Name))
		switch {
		case c.source != nil && !c.isSource(m.Name):
			sound = false
			c.scope.Broken(finding.MergedTiming, at, m.Value.Offset, "this is not a source rank", "absent")
		case !ok || seconds < 0:
			sound = false
			c.scope.Broken(finding.MergedTiming, at, m.Value.Offset, "this is not a duration", "a finite number of seconds, at least 0")
		}
		largest = max(largest, seconds)
	}
	has := names(ranks)
	for _, rank := range c.source {
		if name := strconv.Itoa(rank); !has[name] {
			sound = false
			c.scope.Absent(finding.MergedTiming, pointer+"/"+name, ranks.Offset, "the elapsed time of a source rank is missing", "seconds")
		}
	}
	return largest, sound
}

// names are the keys of an object, of which there can be as many as there are ranks.
func names(object *jsonvalue.Value) map[string]bool {
	set := make(map[string]bool, len(object.Members))
	for i := range object.Members {
		set[object.Members[i].Name] = true
	}
	return set
}

// isSource tells whether a name is that of a source rank, as keys have it.
func (c *mergedCheck) isSource(name string) bool {
	rank, err := strconv.Atoi(name)
	_, found := slices.BinarySearch(c.source, rank)
	return err == nil && found && strconv.Itoa(rank) == name
}

// judgeEngine applies merged.engine.
func (c *mergedCheck) judgeEngine(int) error {
	at := c.places["engine"]
	block, err := at.tree(c.f)
	if err != nil || !isObject(block) {
		return err
	}
	c.hasEngine, c.older = true, engine.Probed(block)
	c.as(finding.MergedEngine)
	if parallel := block.Get("parallel"); isObject(parallel) {
		if rank := parallel.Get("data_parallel_rank"); rank == nil || rank.Kind != jsonvalue.Null {
			c.under(finding.MergedEngine, "engine/parallel", "data_parallel_rank", parallel, "the engine block is that of one rank", "null")
		}
	}
	c.judgeCaptures(block)
	return nil
}

// judgeCaptures judges the list of degraded ranks. The block itself is a degraded rank's
// only when all are.
func (c *mergedCheck) judgeCaptures(block *jsonvalue.Value) {
	errs, degraded := block.Get("capture_errors"), block.Get("capture_error") != nil
	switch {
	case errs == nil && !degraded:
		return
	case !isObject(errs) || len(errs.Members) == 0:
		c.under(finding.MergedEngine, "engine", "capture_errors", block, "the degraded ranks are not named", "an object with a text for each degraded rank")
		return
	}
	for i := range errs.Members {
		m := &errs.Members[i]
		at := string(jsonvalue.AppendToken([]byte("/engine/capture_errors"), m.Name))
		switch _, isText := m.Value.Str(); {
		case c.source != nil && !c.isSource(m.Name):
			c.scope.Broken(finding.MergedEngine, at, m.Value.Offset, "this is not a source rank", "absent")
		case !isText:
			c.scope.Broken(finding.MergedEngine, at, m.Value.Offset, "the reason is not a text", "a string")
		}
	}
	if !degraded && len(block.Members) > 1 {
		return
	}
	has := names(errs)
	for _, rank := range c.source {
		if name := strconv.Itoa(rank); !has[name] {
			c.scope.Absent(finding.MergedEngine, "/engine/capture_errors/"+name, errs.Offset, "the block is a degraded rank's, although this rank is not degraded", "a text")
		}
	}
}

// judgePaths applies merged.paths. A path is never followed: files get moved.
func (c *mergedCheck) judgePaths(int) error {
	c.as(finding.MergedPaths)
	if err := c.judgeRankFiles(); err != nil {
		return err
	}
	output, ok, err := c.text("merged_output_path")
	if err != nil {
		return err
	}
	if !ok || output == "" {
		c.place("merged_output_path", "merged_output_path is not a path", "a non-empty string")
	}
	switch at := c.places["worker_probe_path"]; {
	case at.exists && !c.hasEngine:
		c.place("worker_probe_path", "there is a sidecar's path, but no engine object that a probe could describe", "absent")
	case !at.exists && c.hasEngine && !c.older: // what older builds wrote has none
		c.place("worker_probe_path", "there is an engine object, but no path of a sidecar", "a path")
	case at.exists && ok && output != "":
		sidecar, _, err := c.text("worker_probe_path")
		if err != nil {
			return err
		}
		if want := artifact.Sidecar(output); sidecar != want {
			c.place("worker_probe_path", "worker_probe_path is not the sidecar's path of merged_output_path", string(pyjson.AppendString(nil, want)))
		}
	}
	return nil
}

// place reports a top-level key of a path.
func (c *mergedCheck) place(name, message, expected string) {
	at := c.places[name]
	c.scope.Either(finding.MergedPaths, "/"+name, at.exists, at.Off, c.f.root, message, expected)
}

// text reads a top-level string. Of another value, and of none, ok is false.
func (c *mergedCheck) text(name string) (text string, ok bool, err error) {
	at := c.places[name]
	if !at.exists || at.kind != jsonvalue.String {
		return "", false, nil
	}
	v, err := at.tree(c.f)
	text, ok = v.Str()
	return text, ok, err
}

// judgeRankFiles judges the list of paths on the stream: there may be many, and long ones.
func (c *mergedCheck) judgeRankFiles() error {
	at := c.places["rank_files"]
	if !at.exists || at.kind != jsonvalue.Array {
		c.place("rank_files", "rank_files is not a list", "a path for each source rank")
		return nil
	}
	n := 0
	c.inner.Reset(c.f.src, at.Off, 1, jsonstream.Trusted)
	_, _, err := c.inner.Array(func(i int) error {
		n++
		v, err := c.inner.Scalar()
		path, ok := v.Text()
		pointer := "/rank_files/" + strconv.Itoa(i)
		if !ok || path == "" {
			c.scope.Broken(finding.MergedPaths, pointer, v.Offset, "this is not a path", "a non-empty string")
		} else if _, rank, named := artifact.SplitRank(path); named && i < len(c.source) && rank != c.source[i] {
			c.scope.Broken(finding.MergedPaths, pointer, v.Offset, "the file's name stands for another rank", "the file of rank "+strconv.Itoa(c.source[i]))
		}
		return err
	})
	if err == nil && c.source != nil && n != len(c.source) {
		c.scope.Says(finding.MergedPaths, "/rank_files", at.Off, "rank_files has not one path for each source rank", words.Count(len(c.source), "path", "paths"), words.Count(n, "path", "paths"))
	}
	return err
}
