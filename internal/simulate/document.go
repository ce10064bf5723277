package simulate

import (
	"time"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// document is a rank's whole artifact. Its long lists are made as they are written; the
// iteration groups are those that are given.
func (r *run) document(rank int, groups any) pyjson.Object {
	d := roll(r.opt.Seed, forEnvelope, 0, rank)
	doc := r.envelope(rank, d)
	doc = append(doc, r.conditions(rank, d)...)
	doc = append(doc, pyjson.Member{Key: "engine", Value: r.engine(rank)})
	if r.evidence > legacy {
		doc = append(doc, pyjson.Member{Key: "measurement_protocol", Value: r.protocol()})
	}
	if r.evidence == executed {
		doc = append(doc, pyjson.Member{Key: "warmup_evidence", Value: r.ledger(rank)})
	}
	doc = append(doc, pyjson.Object{
		{Key: "results", Value: r.results(rank)},
		{Key: "iteration_groups", Value: groups},
		{Key: "skipped_points", Value: pyjson.Array{}},
		{Key: "missing_phases", Value: pyjson.Array{}},
		{Key: "error", Value: nil},
	}...)
	if r.change.document != nil {
		doc = r.change.document(r, rank, doc)
	}
	return doc
}

// envelope is the outcome of the run, as one rank tells it.
func (r *run) envelope(rank int, d *dice) pyjson.Object {
	var port any
	if r.opt.Ranks > 1 {
		port = 20380 + r.opt.Ranks
	}
	return pyjson.Object{
		{Key: "schema_version", Value: 2},
		{Key: "artifact_type", Value: "rank"},
		{Key: "status", Value: "complete"},
		{Key: "valid", Value: true},
		{Key: "usable", Value: true},
		{Key: "stop_reason", Value: nil},
		{Key: "timing_valid", Value: true},
		{Key: "run_id", Value: r.id},
		{Key: "grid_digest", Value: r.digest},
		{Key: "timing", Value: r.timing(rank, d)},
		{Key: "dp", Value: pyjson.Object{
			{Key: "rank", Value: rank},
			{Key: "size", Value: r.opt.Ranks},
		}},
		{Key: "synchronization", Value: pyjson.Object{
			{Key: "enabled", Value: r.opt.Ranks > 1},
			{Key: "coordinator_rank", Value: 0},
			{Key: "port", Value: port},
		}},
		{Key: "coverage", Value: pyjson.Object{
			{Key: "expected_points", Value: len(r.grid)},
			{Key: "completed_points", Value: len(r.grid)},
			{Key: "skipped_points", Value: 0},
		}},
	}
}

// timing is when the rank ran and for how long.
func (r *run) timing(rank int, d *dice) pyjson.Object {
	const stamp = "2006-01-02T15:04:05.000000Z"
	elapsed := max(r.measured, r.spans[rank]) + d.between(5, 9)
	start := time.Date(2026, time.September, 19, 12, 0, 0, 1000*d.below(1_000_000), time.UTC)
	end := start.Add(time.Duration(elapsed * float64(time.Second)))
	return pyjson.Object{
		{Key: "started_at", Value: start.Format(stamp)},
		{Key: "completed_at", Value: end.Format(stamp)},
		{Key: "benchmark_elapsed_seconds", Value: elapsed},
		{Key: "measured_iteration_seconds", Value: r.measured},
	}
}

// conditions is what the rank was configured and able to run.
func (r *run) conditions(rank int, d *dice) pyjson.Object {
	return pyjson.Object{
		{Key: "config", Value: pyjson.Object{
			{Key: "mode", Value: "agg"},
			{Key: "warmup_iterations", Value: globalForwards},
			{Key: "output_path", Value: "/tmp/" + r.base.Rank(rank)},
			{Key: "timeout", Value: 900},
			{Key: "prefill_max_new_token_samples", Value: 64},
			{Key: "prefill_max_kv_read_token_samples", Value: 16},
			{Key: "decode_max_kv_read_token_samples", Value: 128},
			{Key: "decode_max_batch_size_samples", Value: 128},
			{Key: "prefix_max_batch_size_samples", Value: 3},
		}},
		{Key: "limits", Value: pyjson.Object{
			{Key: "max_num_scheduled_tokens", Value: 8192},
			{Key: "max_num_running_reqs", Value: 256},
			{Key: "max_model_len", Value: 131072},
			{Key: "block_size", Value: blockTokens},
			{Key: "num_gpu_blocks", Value: 40000 + d.below(blockTokens)},
			{Key: "configured_max_batch_size", Value: 256},
			{Key: "feasible_max_batch_size", Value: 256},
		}},
		{Key: "measurement_policy", Value: pyjson.Object{
			{Key: "decode", Value: "steady_state_second_step"},
			{Key: "prefill", Value: "single_step"},
		}},
		{Key: "capacity", Value: pyjson.Object{{Key: "common", Value: nil}}},
		{Key: "cudagraph", Value: cudagraph()},
		{Key: "kvwarm", Value: r.kvwarm(d)},
		{Key: "recurrent_state", Value: pyjson.Object{
			{Key: "initialization", Value: "unchanged"},
			{Key: "policy", Value: nil},
			{Key: "uniform_bound", Value: nil},
		}},
	}
}

func cudagraph() pyjson.Object {
	return pyjson.Object{
		{Key: "mode", Value: "FULL_AND_PIECEWISE"},
		{Key: "prefill_mode", Value: "PIECEWISE"},
		{Key: "decode_mode", Value: "FULL"},
		{Key: "max_capture_size", Value: captureSizes()[len(captureSizes())-1]},
		{Key: "capture_sizes", Value: captureList()},
		{Key: "prefill_capture_sizes", Value: captureList()},
		{Key: "decode_capture_sizes", Value: captureList()},
	}
}

func captureList() pyjson.Array {
	var list pyjson.Array
	for _, size := range captureSizes() {
		list = append(list, size)
	}
	return list
}

func (r *run) kvwarm(d *dice) pyjson.Object {
	realKV := 0
	for i := range r.grid {
		if r.grid[i].realKV {
			realKV++
		}
	}
	return pyjson.Object{
		{Key: "enabled", Value: true},
		{Key: "warm_eligible", Value: true},
		{Key: "skip_reason", Value: nil},
		{Key: "points_real_kv", Value: realKV},
		{Key: "points_fake_fallback", Value: len(r.grid) - realKV},
		{Key: "stages", Value: pyjson.Array{pyjson.Object{
			{Key: "batch", Value: 256},
			{Key: "depth", Value: 65536},
			{Key: "build_seconds", Value: d.between(1, 3)},
		}}},
	}
}

// protocol is the measurement protocol, which all ranks share.
func (r *run) protocol() pyjson.Object {
	protocol := pyjson.Object{
		{Key: "schema_version", Value: 1},
		{Key: "content_identity", Value: "coordinate_rank_slot_v1"},
		{Key: "content_seed", Value: "0"},
		{Key: "synthetic_content", Value: "random"},
		{Key: "synthetic_pool_tag", Value: ""},
		{Key: "prompt_hash_encoding", Value: "uint32_le"},
		{Key: "independent_repetitions", Value: 1},
		{Key: "timing_metric", Value: "scheduler_wall_time"},
	}
	if r.evidence == executed {
		protocol = append(protocol, pyjson.Member{Key: "execution_evidence", Value: contract()})
	}
	return append(protocol, pyjson.Object{
		{Key: "input_evidence_scope", Value: "injected_prompt_token_ids"},
		{Key: "unobserved", Value: pyjson.Array{
			"sampled_continuation_token_ids",
			"kv_cache_tensors",
			"recurrent_state_tensors",
			"decode_real_kv_warmup_history",
			"execution_history_equivalence",
			"graph_kernel_cache_warming_equivalence",
		}},
		{Key: "preparation", Value: pyjson.Object{
			{Key: "warmup_iterations", Value: globalForwards},
			{Key: "prefill_real_seed", Value: false},
			{Key: "decode_real_kv_warmup", Value: true},
			{Key: "giant_kv_threshold", Value: 1_000_000},
			{Key: "giant_kv_repeats", Value: 3},
		}},
	}...)
}

// contract declares the execution evidence.
func contract() pyjson.Object {
	return pyjson.Object{
		{Key: "schema_version", Value: 1},
		{Key: "sample_field", Value: "benchmark_sample"},
		{Key: "warmup_field", Value: "warmup_evidence"},
		{Key: "forward_index_scope", Value: "rank_process"},
		{Key: "timing_clock", Value: "process_local_monotonic"},
		{Key: "cudagraph_source", Value: "ModelRunnerOutput.cudagraph_stats"},
		{Key: "warmup_scope", Value: "request_completion_and_existing_shape_validation"},
	}
}
