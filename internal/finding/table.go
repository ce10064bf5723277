package finding

import (
	"slices"
	"sync"
)

// Rules returns every rule, in the order of the documentation.
func Rules() []Rule { return slices.Clone(table[:]) }

// Lookup returns the rule with an id.
func Lookup(id ID) (Rule, bool) {
	i, ok := index()[id]
	if !ok {
		return Rule{}, false
	}
	return table[i], true
}

// index maps a rule's id to its place in the table. It is made at the first look-up:
// programs that never judge anything do not pay for it.
var index = sync.OnceValue(func() map[ID]int {
	m := make(map[ID]int, len(table))
	for i, r := range table {
		m[r.ID] = i
	}
	return m
})

// table is the one place where a rule is described. The rule list, the documentation and
// the hints beside findings are made from it.
var table = [...]Rule{
	// JSON input.
	{
		ID: JSONSyntax, Severity: Error, Level: Merge,
		Purpose: "A file is one strict JSON document (RFC 8259) in UTF-8 without a byte-order mark, whole and with nothing behind it.",
		Hint:    "copy the file again if it is cut off, or let the run that writes it finish; a file edited by hand must stay plain JSON",
		Example: `{"status": "complete",}  (a comma before the closing brace)`,
	},
	{
		ID: JSONNumber, Severity: Error, Level: Merge,
		Purpose: "Numbers are JSON numbers: NaN, Infinity and -Infinity, which Python writers can emit, are refused by name.",
		Hint:    "find out why the producer computed a value that is not finite and run the benchmark again; do not replace it by a made-up number",
		Example: `"wall_time": NaN`,
	},
	{
		ID: JSONDuplicateKey, Severity: Error, Level: Merge,
		Purpose: "No object has the same key twice, however the key is spelled with escapes.",
		Hint:    "readers disagree about which of the two values counts: write the file again with the producer instead of editing it",
		Example: `{"valid": true, "v\u0061lid": false}`,
	},
	{
		ID: JSONDepth, Severity: Error, Level: Merge,
		Purpose: "Arrays and objects are nested at most 512 deep.",
		Hint:    "no benchmark writes such a document: check that the file is the one you meant",
		Example: `[[[[ … ]]]]  (513 brackets deep)`,
	},
	{
		ID: InputLimit, Severity: Error, Level: Merge,
		Purpose: "A file stays within the limits: 16 MiB for one string or number, 1,000,000 keys in one object, 64 GiB of decompressed text, and a dp.size of 65,536.",
		Hint:    "check that the file is a rank artifact; no real run comes near these limits",
		Example: `"dp": {"rank": 0, "size": 65537}`,
	},
	{
		ID: InputKind, Severity: Error, Level: Merge,
		Purpose: "A file that is to be validated is a rank artifact, a merged artifact, a worker-probe sidecar or a segment of a trace, told by its content.",
		Hint:    "name the files that the self-benchmark, fpm or the recorder wrote; --kind says what a file is to be taken for",
		Example: `{"backend": "vllm", "request_throughput": 12.5, …}  (a result of a serving benchmark)`,
	},

	// Rank envelope.
	{
		ID: RankStatus, Severity: Error, Level: Merge,
		Purpose: "The status is \"complete\" or \"partial\"; without one, valid true means complete and anything else means failed.",
		Hint:    "the run on this rank failed: read its error key and its log, then run the benchmark again",
		Example: `"status": "failed"`,
	},
	{
		ID: RankCoverage, Severity: Error, Level: Merge,
		Purpose: "coverage is an object whose expected_points, completed_points and skipped_points are integers of 0 or more, with completed + skipped not above expected.",
		Hint:    "the counts contradict each other or are not whole numbers: take the file as the producer wrote it, or run the benchmark again",
		Example: `"coverage": {"expected_points": 3, "completed_points": 4, "skipped_points": 0}`,
	},
	{
		ID: RankCounts, Severity: Error, Level: Merge,
		Purpose: "results and iteration_groups are lists of exactly coverage.completed_points entries, skipped_points (absent means empty) is a list of exactly coverage.skipped_points, and missing_phases (absent means empty) is a list.",
		Hint:    "entries were lost or added after the run: take the file as the producer wrote it, or run the benchmark again",
		Example: `"coverage": {"completed_points": 3, …}, "results": [ … two entries … ]`,
	},
	{
		ID: RankComplete, Severity: Error, Level: Merge,
		Purpose: "A complete file has valid true, usable true or absent, stop_reason and error null or absent, every expected point completed, nothing skipped and no phase missing.",
		Hint:    "look at skipped_points, missing_phases and error for what went wrong, then run the benchmark again: a producer may call such a run complete, but not valid",
		Example: `"status": "complete", "valid": false`,
	},
	{
		ID: RankPartial, Severity: Error, Level: Merge,
		Purpose: "A partial file has valid false, usable true, stop_reason \"timeout\", fewer points completed than expected, nothing skipped, no phase missing and error null or absent.",
		Hint:    "only a run that its time limit stopped can be merged in part: run the benchmark again, with a longer time limit if that was the cause",
		Example: `"status": "partial", "stop_reason": "cancelled"`,
	},
	{
		ID: RankPartialRun, Severity: Warning, Level: Merge,
		Purpose: "Tells that the run is partial: its time limit stopped it, and the merged artifact covers only the points that were completed.",
		Hint:    "run the benchmark again with a longer time limit if you need every point",
		Example: `"status": "partial", "coverage": {"expected_points": 9, "completed_points": 3, "skipped_points": 0}`,
	},
	{
		ID: RankSchema, Severity: Error, Level: Merge,
		Purpose: "The document is an object; its schema_version, where present, is 2 and its artifact_type, where present, is \"rank\".",
		Hint:    "pass the rank artifacts themselves, not a merged file or a probe sidecar; another schema version needs a version of fpm that knows it",
		Example: `"artifact_type": "merged"`,
	},
	{
		ID: RankDP, Severity: Error, Level: Merge,
		Purpose: "dp.rank is an integer from 0 to dp.size - 1, unique among the files and the rank that the file's name stands for; dp.size is an integer of 1 or more, the same in every file.",
		Hint:    "check that no file was renamed, copied over another or taken from a run of another size; a copy in the same directory is a second file of its rank: move it elsewhere",
		Example: `results_dp3.json with "dp": {"rank": 2, "size": 4}`,
	},

	// Run identity.
	{
		ID: RunID, Severity: Error, Level: Merge,
		Purpose: "run_id is a non-empty string, the same in every file.",
		Hint:    "collect the rank files of one run, and clear old ones before a run starts; a file without a run id was not finished",
		Example: `"run_id": "a1b2" in one file, "c3d4" in another`,
	},
	{
		ID: RunGrid, Severity: Error, Level: Merge,
		Purpose: "grid_digest is a non-empty string, the same in every file.",
		Hint:    "the ranks planned different grids of points: start every rank with the same benchmark configuration and run again",
		Example: `"grid_digest": ""`,
	},
	{
		ID: RunStatus, Severity: Error, Level: Merge,
		Purpose: "Every file has the same status, an absent one counted as its default.",
		Hint:    "one rank ended otherwise than the others: look at the log of the rank that differs, then run the benchmark again",
		Example: `"status": "complete" in one file, "partial" in another`,
	},
	{
		ID: RunCoverage, Severity: Error, Level: Merge,
		Purpose: "coverage is equal in every file.",
		Hint:    "the ranks did not measure the same points: make sure that the files are of one run, then run the benchmark again",
		Example: `"completed_points": 3 in one file, 2 in another`,
	},
	{
		ID: RunStopReason, Severity: Error, Level: Merge,
		Purpose: "stop_reason is equal in every file, an absent one counted as null.",
		Hint:    "one rank stopped for another reason than the others: look at the log of the rank that differs",
		Example: `"stop_reason": "timeout" in one file, null in another`,
	},
	{
		ID: GroupDiffers, Severity: Error, Level: Merge,
		Purpose: "Every file's iteration_groups equals that of the reference: the lowest given rank whose file can be read.",
		Hint:    "every rank's file holds a copy of all groups, so a difference means a file of another run or one that was changed: collect the files again; a mend belongs in every file",
		Example: `"wall_time": 0.021 in the reference's group, 0.022 in the same group of another file`,
	},

	// Iteration groups of the reference.
	{
		ID: GroupEmpty, Severity: Error, Level: Merge,
		Purpose: "iteration_groups has at least one group.",
		Hint:    "the run measured nothing, so there is nothing to merge: look at the log of the run",
		Example: `"iteration_groups": []`,
	},
	{
		ID: GroupID, Severity: Error, Level: Merge,
		Purpose: "Each group is an object with an integer benchmark_id of 1 or more, equal to its point's; in any order the ids are 1 to n without a gap or a repeat, and n is completed_points.",
		Hint:    "groups were lost, repeated or numbered anew: take the files as the producer wrote them; a mend belongs in every rank's file, as each holds a copy of all groups",
		Example: `benchmark_id 1, 2 and 4 in a run of three points`,
	},
	{
		ID: GroupIncomplete, Severity: Error, Level: Merge,
		Purpose: "A group's expected_dp_ranks lists every rank of the run and its complete is true.",
		Hint:    "not every rank reported this point, which stands alike in every rank's file: look at the logs of the ranks that are missing, then run the benchmark again",
		Example: `"complete": false`,
	},
	{
		ID: GroupRanks, Severity: Error, Level: Merge,
		Purpose: "A group's rank_results are those of every rank of the run, in rank order.",
		Hint:    "a rank's result is missing, repeated or out of order, alike in every rank's copy of the groups: take the files as the producer wrote them, or run the benchmark again",
		Example: `"rank_results": [{"dp_rank": 1, …}, {"dp_rank": 0, …}]`,
	},
	{
		ID: GroupFPMCount, Severity: Error, Level: Merge,
		Purpose: "Each rank result of a group has exactly one forward-pass metric.",
		Hint:    "the producer keeps one metric a point and rank: take the file as it wrote it, or run the benchmark again",
		Example: `"fpms": []`,
	},
	{
		ID: GroupCounter, Severity: Error, Level: Merge,
		Purpose: "The counter_id of a group's forward-pass metric is the group's benchmark_id.",
		Hint:    "the metric belongs to another point: take the file as the producer wrote it, or run the benchmark again; a mend belongs in every file's copy of the groups",
		Example: `"benchmark_id": 2, … "fpms": [{"counter_id": 3, …}]`,
	},
	{
		ID: GroupFPMRank, Severity: Error, Level: Merge,
		Purpose: "The dp_rank of a group's forward-pass metric is that of the rank result which holds it.",
		Hint:    "the metric belongs to another rank: take the file as the producer wrote it, or run the benchmark again; a mend belongs in every file's copy of the groups",
		Example: `{"dp_rank": 1, "fpms": [{"dp_rank": 0, …}]}`,
	},
	{
		ID: GroupWallTime, Severity: Error, Level: Merge,
		Purpose: "A group's wall_time equals exactly the largest wall_time, in seconds, of its metrics; an absent one counts as 0 and anything but a finite number is an error.",
		Hint:    "the time of the point is that of its slowest rank: another value was changed or rounded after the run; a mend belongs in every rank's file, as each holds a copy of all groups",
		Example: `"wall_time": 0.020 beside metrics of 0.020 and 0.021`,
	},

	// Each rank's own results.
	{
		ID: ResultID, Severity: Error, Level: Merge,
		Purpose: "The benchmark ids of a file's results are exactly those of the groups, each once.",
		Hint:    "results were lost or repeated: take the file as the producer wrote it, or run the benchmark again",
		Example: `two results with "point": {"benchmark_id": 2, …}`,
	},
	{
		ID: ResultPoint, Severity: Error, Level: Merge,
		Purpose: "A result's point equals the point of its group.",
		Hint:    "this rank measured something else under the same number: make sure that the files are of one run; a mend belongs in the rank's results and in the groups of every file",
		Example: `"batch_size": 8 in the result, 16 in the group`,
	},
	{
		ID: ResultFPMCount, Severity: Error, Level: Merge,
		Purpose: "Each result has exactly one forward-pass metric.",
		Hint:    "the producer keeps one metric a point: take the file as it wrote it, or run the benchmark again",
		Example: `"fpms": [ … two entries … ]`,
	},
	{
		ID: ResultCounter, Severity: Error, Level: Merge,
		Purpose: "The counter_id of a result's forward-pass metric is the point's benchmark_id.",
		Hint:    "the metric belongs to another point: take the file as the producer wrote it, or run the benchmark again",
		Example: `"point": {"benchmark_id": 2, …}, "fpms": [{"counter_id": 1, …}]`,
	},
	{
		ID: ResultFPMRank, Severity: Error, Level: Merge,
		Purpose: "The dp_rank of a result's forward-pass metric is the rank of the file.",
		Hint:    "the metric belongs to another rank: check that the files were not mixed up",
		Example: `"dp_rank": 0 in a metric of rank 1's file`,
	},
	{
		ID: ResultDiffers, Severity: Error, Level: Merge,
		Purpose: "A result's fpms equal those recorded for this rank in the point's group.",
		Hint:    "the rank's own numbers contradict what it reported to the others: a file was changed, or is another run's; a mend belongs in the rank's results and in the groups of every file",
		Example: `"wall_time": 0.021 in the result, 0.020 in the group`,
	},

	// Timing.
	{
		ID: TimingShape, Severity: Error, Level: Merge,
		Purpose: "timing is an object with the strings started_at and completed_at and the finite numbers benchmark_elapsed_seconds (0 or more) and measured_iteration_seconds.",
		Hint:    "take the file as the producer wrote it, or run the benchmark again",
		Example: `"benchmark_elapsed_seconds": null`,
	},
	{
		ID: TimingMeasured, Severity: Error, Level: Merge,
		Purpose: "measured_iteration_seconds is the sum of the groups' wall_time, within 1e-9 relative or 1e-12 s absolute.",
		Hint:    "groups or times were changed after the run: take the file as the producer wrote it",
		Example: `"measured_iteration_seconds": 1.5 beside groups that add up to 1.2`,
	},
	{
		ID: TimingExceeds, Severity: Error, Level: Merge,
		Purpose: "measured_iteration_seconds is not above benchmark_elapsed_seconds (by more than 1e-12 s).",
		Hint:    "no run measures for longer than it lasts: one of the two times was changed, or the producer's clock is at fault",
		Example: `"benchmark_elapsed_seconds": 1.0, "measured_iteration_seconds": 2.0`,
	},

	// Shared measurement protocol.
	{
		ID: ProtocolMismatch, Severity: Error, Level: Merge,
		Purpose: "Either every file has a measurement_protocol and all are equal, or none has one.",
		Hint:    "the ranks ran different versions or settings of the benchmark: start every rank alike and run again",
		Example: `"content_seed": "0" in one file, "1" in another`,
	},
	{
		ID: ProtocolInvalid, Severity: Error, Level: Merge,
		Purpose: "measurement_protocol is an object with the integer schema_version 1.",
		Hint:    "the protocol is of a version that this program does not know, or was changed: use a newer fpm, or run the benchmark again",
		Example: `"measurement_protocol": {"schema_version": 2, …}`,
	},
	{
		ID: ProtocolUndeclared, Severity: Error, Level: Merge,
		Purpose: "Without a measurement_protocol no forward-pass metric carries benchmark_measurement.",
		Hint:    "evidence without the protocol that explains it proves nothing: take the files as the producer wrote them",
		Example: `"benchmark_measurement": {…} in a file without "measurement_protocol"`,
	},
	{
		ID: ProtocolContract, Severity: Error, Level: Merge,
		Purpose: "execution_evidence, where present, is an object with schema_version 1, sample_field \"benchmark_sample\" and warmup_field \"warmup_evidence\".",
		Hint:    "the execution contract is of a version that this program does not know, or was changed: use a newer fpm, or run the benchmark again",
		Example: `"execution_evidence": {"schema_version": 1, "sample_field": "sample", …}`,
	},
	{
		ID: ProtocolContractUndeclared, Severity: Error, Level: Merge,
		Purpose: "Without execution_evidence no file has warmup_evidence and no raw forward-pass metric has benchmark_sample.",
		Hint:    "samples and ledgers without the contract that explains them prove nothing: take the files as the producer wrote them",
		Example: `"warmup_evidence": {…} beside a protocol without "execution_evidence"`,
	},

	// Evidence of each forward-pass metric.
	{
		ID: MeasurementMissing, Severity: Error, Level: Merge,
		Purpose: "With a protocol, the metric of every rank in every group has a benchmark_measurement object with schema_version 1 and the rank result's dp_rank, whether that rank's file was given or not.",
		Hint:    "a rank recorded no evidence or another rank's: start every rank with the same version and run again",
		Example: `a group's metric without "benchmark_measurement"`,
	},
	{
		ID: MeasurementIdentity, Severity: Error, Level: Merge,
		Purpose: "point_key is the content key of the group's point (SHA-256 of its canonical coordinates) and preparation is an object with the run's grid_digest.",
		Hint:    "the evidence was made for another point or another grid: a file was changed, or the producer kept stale evidence",
		Example: `"point_key": "0000…" for a point whose key is "3fa1…"`,
	},

	// Raw samples.
	{
		ID: SampleCount, Severity: Error, Level: Merge,
		Purpose: "raw_fpms is a non-empty list, expected_internal_samples an integer not below its length, and the retained metric itself has no benchmark_sample.",
		Hint:    "samples were lost or invented: take the file as the producer wrote it, or run the benchmark again",
		Example: `"raw_fpms": []`,
	},
	{
		ID: SampleIdentity, Severity: Error, Level: Merge,
		Purpose: "Each raw metric is an object with the point's benchmark id as integer counter_id, the rank as integer dp_rank and the retained metric's worker_id (absent counts as null).",
		Hint:    "the sample belongs to another point, rank or worker: take the file as the producer wrote it, or run the benchmark again",
		Example: `"counter_id": 3 in a raw metric of point 2`,
	},
	{
		ID: SampleIndex, Severity: Error, Level: Merge,
		Purpose: "sample_index is the sample's position, and forward_index is an integer that rises from sample to sample through the whole run of a rank.",
		Hint:    "samples are out of order or repeated: the order of execution cannot be established, so run the benchmark again",
		Example: `"forward_index": 11 directly after "forward_index": 12 of the same rank`,
	},
	{
		ID: SampleTiming, Severity: Error, Level: Merge,
		Purpose: "A sample's timing has basis schedule_to_output or inter_output, finite end_monotonic and wall_time (0 or more), and a start_monotonic that is null or absent, or not after the end and as far from it as wall_time says, within 1e-9 relative or 1e-9 s absolute.",
		Hint:    "the clock readings contradict the wall time or are not readings at all: run the benchmark again",
		Example: `"start_monotonic": 10.0, "end_monotonic": 9.0`,
	},
	{
		ID: SampleCUDAGraph, Severity: Error, Level: Merge,
		Purpose: "A sample's cudagraph is observed, with a runtime_mode and integers where padded is not below unpadded and num_paddings is their difference, or unavailable with all four null or absent.",
		Hint:    "what the producer could not observe must stay null, and what it observed must add up: take the file as it wrote it",
		Example: `"cudagraph": {"status": "unavailable", "runtime_mode": "FULL", …}`,
	},
	{
		ID: SampleReduction, Severity: Error, Level: Merge,
		Purpose: "estimate names its method, and raw_sample_indices is what that method selects: [0] of one sample for single_step, the last of n for last_step, all but the first for adjacent_upper_median.",
		Hint:    "how the retained time was made from the samples cannot be established: take the file as the producer wrote it, or use a newer fpm if the method is new",
		Example: `"estimate": {"method": "mean", "raw_sample_indices": [1, 2, 3]}`,
	},
	{
		ID: SampleEstimate, Severity: Error, Level: Merge,
		Purpose: "The retained wall_time is the upper median of the selected samples' wall times, within 1e-9 relative or 1e-12 s absolute.",
		Hint:    "the retained and the raw times contradict each other, and nothing tells which was changed, if any: take the file as the producer wrote it, or run the benchmark again",
		Example: `"wall_time": 0.001 from samples of 0.020, 0.021 and 0.022`,
	},

	// Warmup ledger.
	{
		ID: WarmupLedger, Severity: Error, Level: Merge,
		Purpose: "With an execution contract every file has a warmup_evidence object whose status is recorded or unavailable and whose records are a list, empty when unavailable.",
		Hint:    "the rank's warmup ledger is missing or broken: start every rank with the same version and run again",
		Example: `"warmup_evidence": null`,
	},
	{
		ID: WarmupRecord, Severity: Error, Level: Merge,
		Purpose: "A warmup record has status running, completed or failed and a validation whose status is passed (only with completed), failed (only with failed) or not_performed.",
		Hint:    "the record says two things at once: take the file as the producer wrote it, or run the benchmark again",
		Example: `"status": "completed", "validation": {"status": "failed"}`,
	},
	{
		ID: WarmupRange, Severity: Error, Level: Merge,
		Purpose: "A record's forward_index_start and forward_index_end are each null, absent or an integer of 0 or more, the end not before the start, and a completed record has an end.",
		Hint:    "the record's forward passes run backwards or never end: take the file as the producer wrote it, or run the benchmark again",
		Example: `"forward_index_start": 3, "forward_index_end": 0`,
	},
	{
		ID: WarmupCount, Severity: Error, Level: Merge,
		Purpose: "A record's observed_forward_count is null, absent or an integer of 0 or more that equals end - start when both are known.",
		Hint:    "forward passes were lost or counted twice: take the file as the producer wrote it, or run the benchmark again",
		Example: `"forward_index_start": 0, "forward_index_end": 5, "observed_forward_count": 4`,
	},
	{
		ID: WarmupReference, Severity: Error, Level: Merge,
		Purpose: "A metric's preparation.warmup_records_before is an integer from 0 to the number of records when its rank's ledger is recorded, null or absent when it is unavailable, and any of these (any integer of 0 or more) when that rank's file was not given.",
		Hint:    "the metric points into a ledger that is not this one: make sure that the files are of one run",
		Example: `"warmup_records_before": 50 beside a ledger of four records`,
	},
	{
		ID: WarmupOverlap, Severity: Error, Level: Merge,
		Purpose: "The warmup records that a metric names as earlier are over: none is running, and none ends beyond the metric's first raw forward_index.",
		Hint:    "the warmup reached into the measurement, so the time is not a warmed one: run the benchmark again",
		Example: `"forward_index_end": 12 in a record before a metric whose first "forward_index" is 11`,
	},

	// Engine provenance.
	{
		ID: EngineMismatch, Severity: Error, Level: Merge,
		Purpose: "Every rank with sound engine provenance started with the same engine identity as the first such rank; every path that differs is reported.",
		Hint:    "start every rank with the same image, model and engine arguments, then run the benchmark again",
		Example: `"attention": {"backend_requested": "FLASHINFER"} on rank 1, null on rank 0`,
	},
	{
		ID: EngineUnverified, Severity: Warning, Level: Merge,
		Purpose: "Tells that a rank has no engine object or one with a capture_error: its engine could not be compared with the others'.",
		Hint:    "read the capture error; the merge goes on without this rank's provenance, and says so in capture_errors",
		Example: `"engine": {"capture_error": "no model configuration"}`,
	},

	// Merged artifacts.
	{
		ID: MergedSchema, Severity: Error, Level: Merge,
		Purpose: "A merged artifact is an object whose artifact_type is \"merged\" and whose schema_version, where present, is 2.",
		Hint:    "pass the merged artifact that fpm merge wrote; another schema version needs a version of fpm that knows it",
		Example: `"artifact_type": "merged", "schema_version": 3`,
	},
	{
		ID: MergedDP, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's dp.global_size is an integer of 1 or more, dp.ranks are the ranks 0 to global_size - 1 in order, dp.source_ranks are some of them, ascending and each once, and dp.managed_size is their number.",
		Hint:    "the merged file was changed after the merge: merge the rank files again",
		Example: `"dp": {"ranks": [0, 1], "source_ranks": [1, 0], "managed_size": 2, "global_size": 2}`,
	},
	{
		ID: MergedIdentity, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's run_id and grid_digest are non-empty strings.",
		Hint:    "without them nothing tells which run this is: merge the rank files again",
		Example: `"run_id": ""`,
	},
	{
		ID: MergedStatus, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's status is \"complete\" or \"partial\", and its valid, usable, stop_reason, error, coverage and missing_phases go with it as they do in a rank artifact.",
		Hint:    "no merge writes such a document: merge the rank files again, and use what that says about them",
		Example: `"artifact_type": "merged", "status": "complete", "valid": false`,
	},
	{
		ID: MergedCoverage, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's three coverage counts are those of one rank times the global size: completed_points is the number of iteration groups times dp.global_size, and skipped_points is a list.",
		Hint:    "points were lost or added after the merge: merge the rank files again",
		Example: `"dp": {"global_size": 2, …}, "coverage": {"completed_points": 3, …}`,
	},
	{
		ID: MergedGroups, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's iteration_groups keep the requirements of the group.* rules: ids 1 to n, every global rank in order with exactly one FPM of that id and rank, and a wall_time that is the largest of the group's FPMs.",
		Hint:    "the merged file was changed after the merge: merge the rank files again",
		Example: `"artifact_type": "merged", "iteration_groups": [{"benchmark_id": 1, "complete": false, …}]`,
	},
	{
		ID: MergedResults, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's results are, for each benchmark id ascending and each global rank in order, the group's point with dp_rank, the group's FPM of that rank and, for a source rank only, its kv_seed_regime.",
		Hint:    "results and iteration_groups tell two stories: merge the rank files again",
		Example: `"results": [{"point": {"benchmark_id": 1, "dp_rank": 1, …}, …}, {"point": {"benchmark_id": 1, "dp_rank": 0, …}, …}]`,
	},
	{
		ID: MergedTiming, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's rank_benchmark_elapsed_seconds has one duration for each source rank, benchmark_elapsed_seconds is the largest of them, measured_iteration_seconds is the sum of the groups' wall times within 1e-9 and not more than elapsed, and both time stamps are strings.",
		Hint:    "the merged file was changed after the merge: merge the rank files again",
		Example: `"benchmark_elapsed_seconds": 90.5, "rank_benchmark_elapsed_seconds": {"0": 90.5, "1": 91.0}`,
	},
	{
		ID: MergedLedger, Severity: Error, Level: Merge,
		Purpose: "With an execution contract, and only then, a merged artifact has rank_warmup_evidence with one ledger for every global rank, that of a rank whose file was not merged being the placeholder for it; no warmup_evidence is left.",
		Hint:    "the ledgers are not those of the merge: merge the rank files again",
		Example: `"dp": {"source_ranks": [0], …}, "rank_warmup_evidence": {"0": {…}, "1": {"status": "recorded", …}}`,
	},
	{
		ID: MergedEngine, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's engine object, where it has one, describes every rank: parallel.data_parallel_rank is null, and capture_errors, where present, names source ranks with texts, all of them if the block is a degraded rank's.",
		Hint:    "the engine block is that of a rank or was changed: merge the rank files again",
		Example: `"artifact_type": "merged", "engine": {"parallel": {"data_parallel_rank": 0}}`,
	},
	{
		ID: MergedPaths, Severity: Error, Level: Merge,
		Purpose: "A merged artifact's rank_files name one file for each source rank in order, merged_output_path is a non-empty string, and worker_probe_path, which goes with an engine object, is the sidecar's name for it.",
		Hint:    "move or rename files as you like, but leave the paths in them: they tell where the run was merged",
		Example: `"merged_output_path": "run_merged.json", "worker_probe_path": "other_worker_probe.json"`,
	},
	{
		ID: MergedDiffers, Severity: Error, Level: Merge,
		Purpose: "A merged artifact equals what its rank files give when they are merged again; of the paths in it only the names of the rank files count: it may have been renamed, and all of them moved.",
		Hint:    "check that these are the rank files it was made of; if they are, it was changed afterwards: merge them again",
		Example: `"config": {"timeout": 900} in the rank files, "config": {"timeout": 901} in the merged artifact`,
	},

	// What strict consumers require beyond a merge.
	{
		ID: ProtocolValue, Severity: Error, Level: Strict,
		Purpose: "The fields of the measurement protocol and of its execution_evidence have values that are known to compare.",
		Hint:    "runs of a producer that measures otherwise cannot be compared with others: use the producer that the rest of the data came from",
		Example: `"timing_metric": "gpu_time"`,
	},
	{
		ID: MeasurementStrict, Severity: Error, Level: Strict,
		Purpose: "A metric's evidence is whole: prompts with their digests, the position among the results, the regime of the result, raw wall times above 0, known runtime modes and an estimate that fits the number of samples.",
		Hint:    "the measurement cannot be shown to be what it says: run the benchmark again, and do not edit the evidence",
		Example: `"prompts": {"status": "recorded", "sha256": "00…", "requests": […]}  (another digest than that of the requests)`,
	},
	{
		ID: WarmupStrict, Severity: Error, Level: Strict,
		Purpose: "The warmup ledger tells one history: known kinds, completed_points_before and forward indices that never decrease, running records without an end, and metrics that name exactly the records before them.",
		Hint:    "the order of warmups and measurements cannot be established: run the benchmark again",
		Example: `"kind": "global", "completed_points_before": 3`,
	},
	{
		ID: StrictConfig, Severity: Error, Level: Strict,
		Purpose: "The config without its output_path, cudagraph, capacity.common, the verdict of the KV warmup and recurrent_state are equal on every rank.",
		Hint:    "the ranks did not run one benchmark: start every rank with the same settings, then run it again",
		Example: `"config": {"timeout": 900} on rank 0, {"timeout": 1800} on rank 1`,
	},
	{
		ID: StrictScheduled, Severity: Error, Level: Strict,
		Purpose: "Every metric's scheduled counts are those of its point, with zeros for the other phase, and the point's coordinates are possible ones.",
		Hint:    "the wall time is that of another batch than the point says: leave the point out, or run the benchmark again",
		Example: `"num_decode_requests": 31 at a decode point with "batch_size": 32`,
	},
	{
		ID: StrictWall, Severity: Error, Level: Strict,
		Purpose: "Every metric's and every group's wall time is a finite number above 0.",
		Hint:    "a pass without duration was not measured: find out why the rank reported it, then run the benchmark again",
		Example: `"wall_time": 0.0`,
	},
	{
		ID: StrictOrder, Severity: Error, Level: Strict,
		Purpose: "Every rank's results are in the same order.",
		Hint:    "ranks that ran their points in different orders have different histories: run the benchmark again, and do not sort its results",
		Example: `the results of points 1, 2, 3 on rank 0 and of 2, 1, 3 on rank 1`,
	},
	{
		ID: StrictRegime, Severity: Error, Level: Strict,
		Purpose: "A result's kv_seed_regime is what its point's markers and the verdict of the KV warmup say.",
		Hint:    "it is not known whether the cache held real content: do not mix this point with others until the producer explains it",
		Example: `"kv_seed_regime": "real_kv" at a point with the reason "kvwarm_fake_fallback"`,
	},
	{
		ID: SchemaViolation, Severity: Error, Level: Strict,
		Purpose: "Where --schema asks for it, and of a recorder's manifest always, the document keeps its JSON Schema, in fields that no other rule reads too.",
		Hint:    "see fpm schema for what the field is; a producer that changed it needs another version of the schema",
		Example: `"synchronization": {"enabled": "yes"}`,
	},

	// Worker probe.
	{
		ID: ProbeNoEngine, Severity: Error, Level: Probe,
		Purpose: "The merged artifact has an engine object, without which there is nothing that a probe could describe.",
		Hint:    "name the merged artifact of a run whose ranks recorded their engine; rank artifacts are merged by fpm merge",
		Example: `{"artifact_type": "merged", "run_id": "…", "engine": null}`,
	},
	{
		ID: ProbeSidecar, Severity: Error, Level: Probe,
		Purpose: "A sidecar is an object with schema \"dynamo.fpm.benchmark_worker_probe\", schema_version 1 and a merged result whose worker_probe lists the responses, each an object with a response.",
		Hint:    "make the sidecar anew from the replies (--replies) or from the server (--url)",
		Example: `{"schema": "dynamo.fpm.benchmark_worker_probe", "schema_version": 1, "merged": {}}`,
	},
	{
		ID: ProbeSidecarStale, Severity: Error, Level: Probe,
		Purpose: "What a sidecar says of issues, coverage, disagreements and resolutions is what its recorded responses give when it is computed again.",
		Hint:    "somebody edited the sidecar, or the merged artifact changed under it: make it anew from the replies, and do not rely on it until then",
		Example: `"complete": true beside responses of one of two ranks`,
	},
	{
		ID: ProbeRunID, Severity: Error, Level: Probe,
		Purpose: "The run_id of a sidecar is that of the merged artifact that it stands next to.",
		Hint:    "the sidecar is evidence about another run: make one for this run, or restore the merged artifact that it belongs to",
		Example: `"run_id": "a" in the sidecar of a merged artifact with "run_id": "b"`,
	},
	{
		ID: ProbeUnobserved, Severity: Error, Level: Probe,
		Purpose: "Where --require asks for an observation, at least one worker of an expected rank was observed.",
		Hint:    "read the failure or the issues of the replies, then probe again while the server still runs",
		Example: `fpm probe-report MERGED --failed 'TimeoutError: ' --require observed`,
	},
	{
		ID: ProbeDisagree, Severity: Error, Level: Probe,
		Purpose: "Where --require asks for agreement, no two observed workers resolved a setting, or the backend of one layer, differently.",
		Hint:    "workers that run different kernels do not measure one configuration: find out why, then run the benchmark again",
		Example: `"attention_backends": {"l0": "FLASHINFER"} on DP rank 0, {"l0": "FLASH_ATTN"} on DP rank 1`,
	},
	{
		ID: ProbeIncomplete, Severity: Error, Level: Probe,
		Purpose: "Where --require asks for completeness, every expected worker of every expected rank was observed, no reply has an issue, and no observed worker has capture errors.",
		Hint:    "probe every DP engine and put the replies of all of them into one list; replies that are missing establish nothing",
		Example: `the reply of one worker for a run of two DP ranks`,
	},
	{
		ID: ProbeFailed, Severity: Warning, Level: Probe,
		Purpose: "Tells that the probe failed, so that nothing was observed.",
		Hint:    "the sidecar records the failure; nothing is known of what the workers resolved",
		Example: `fpm probe-report MERGED --failed 'TimeoutError: '`,
	},
	{
		ID: ProbeSkipped, Severity: Warning, Level: Probe,
		Purpose: "Tells that the probe was skipped, so that nothing was observed.",
		Hint:    "the sidecar records why; nothing is known of what the workers resolved",
		Example: `fpm probe-report MERGED --skipped my.Extension`,
	},
	{
		ID: ProbeMalformedReply, Severity: Warning, Level: Probe,
		Purpose: "Tells that a reply has issues: it is kept, counts as no observation, and keeps the coverage from being complete.",
		Hint:    "a reply is one worker's own: look for a worker extension of another version, or for replies that were collected twice",
		Example: `{"dp_rank": 0, "worker_rank": 0.0}`,
	},
	// Live traces.
	{
		ID: TraceRow, Severity: Error, Level: Trace,
		Purpose: "Every line of a trace is a row: strict JSON of at most 16 MiB in the layout dynamo.fpm.trace.v1, or received metrics, whose metric has version 1, a worker id, whole numbers of 0 or more for rank, counter and counts, and finite times and variances of 0 or more.",
		Hint:    "look at the line with fpm trace cat: a writer of another version or a hand may have made it; statistics leave it out",
		Example: `"wall_time": -0.5 in the metric of a row`,
	},
	{
		ID: TraceGap, Severity: Error, Level: Trace,
		Purpose: "In a full capture the counters of a rank follow each other without a gap from its first row to its last, or to a restart of its publisher or recorder.",
		Hint:    "they were dropped by the publisher or lost on the way, unless the recorder's manifest says that it refused or lost them itself",
		Example: `"counter_id": 7 in the row behind "counter_id": 4`,
	},
	{
		ID: TraceTorn, Severity: Error, Level: Trace,
		Purpose: "Every gzip member of a segment is whole: it can be inflated to its end, and its checksum holds.",
		Hint:    "a killed writer leaves the last member of its last segment cut off; elsewhere the disk was full or the file was damaged when copied",
		Example: `the last 100 bytes of a segment cut off`,
	},
	{
		ID: TraceSegment, Severity: Error, Level: Trace,
		Purpose: "The indices of a series have no hole, and the segments that the manifest names are there unless newer ones have displaced them.",
		Hint:    "somebody moved or deleted a segment, or not all were copied; retention deletes the oldest ones only",
		Example: `run.w7.000001.jsonl.gz and run.w7.000003.jsonl.gz without 000002`,
	},
	{
		ID: TraceProducer, Severity: Error, Level: Trace,
		Purpose: "Where --expect-producers asks for producers, each has a row.",
		Hint:    "see whether the worker ran and published while the recorder did, and whether the files of all recorders were named",
		Example: `fpm trace verify --expect-producers 8 run, with rows of 7 producers`,
	},
	{
		ID: TraceRank, Severity: Error, Level: Trace,
		Purpose: "Where --expect-ranks asks for ranks, each has a row of some producer.",
		Hint:    "see whether the recorder subscribed to the rank's port, and whether that rank published",
		Example: `fpm trace verify --expect-ranks 0-7 run, without a row of rank 7`,
	},
	{
		ID: TraceEmpty, Severity: Error, Level: Trace,
		Purpose: "A trace has rows, and so has each of its files.",
		Hint:    "nothing was recorded there: see whether the publishers ran, and what the recorder said",
		Example: `a segment of 0 bytes`,
	},
	{
		ID: TraceRestart, Severity: Warning, Level: Trace,
		Purpose: "Tells that a rank's counter went back, because its publisher was restarted, and what it sent last before may be missing unseen; or that the recorder was restarted, and what was published while none ran was not recorded.",
		Hint:    "see why it was restarted; what lies between the two lives is in no file and is not judged",
		Example: `"counter_id": 0 in the row behind "counter_id": 4711`,
	},
	{
		ID: TraceSampled, Severity: Warning, Level: Trace,
		Purpose: "Tells that rows are not of a full capture, so that counters that are not there mean nothing and are not judged.",
		Hint:    "record with --mode full to be able to show that a capture is whole",
		Example: `"capture_mode": "sampled"`,
	},
	{
		ID: TraceWallTime, Severity: Warning, Level: Trace,
		Purpose: "Tells of wall times above 0 that no forward pass has: more than 600 seconds, or less than a microsecond.",
		Hint:    "find out what the engine measures; a clock that was set, or another unit, gives such values",
		Example: `"wall_time": 12345.6`,
	},
	{
		ID: TraceMixed, Severity: Warning, Level: Trace,
		Purpose: "Tells that a series of segments, or a file, has rows of several capture modes or layouts.",
		Hint:    "recordings of different settings were written to one prefix: give each its own",
		Example: `a sampled row behind full ones in one series`,
	},
	{
		ID: TracePorts, Severity: Error, Level: Trace,
		Purpose: "The ports that publishers bind lie outside of the range from which the host takes the local ports of outbound connections.",
		Hint:    "choose a base port below the range, for the engines with DYN_FORWARDPASS_METRIC_PORT and for the recorder with --base-port",
		Example: `fpm trace ports --base-port 40000 on a host with the usual range 32768-60999`,
	},
}
