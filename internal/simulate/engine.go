package simulate

import "github.com/fpm-project/fpm/internal/pyjson"

// engine is what the rank's engine believed at start-up.
func (r *run) engine(rank int) pyjson.Object {
	return pyjson.Object{
		{Key: "attention", Value: attention()},
		{Key: "kv_cache", Value: kvCache()},
		{Key: "quantization", Value: pyjson.Object{
			{Key: "method", Value: "fp8"},
			{Key: "checkpoint_config", Value: pyjson.Object{
				{Key: "quant_method", Value: "fp8"},
				{Key: "activation_scheme", Value: "dynamic"},
			}},
			{Key: "quant_config_class", Value: "Fp8Config"},
		}},
		{Key: "scheduler", Value: pyjson.Object{
			{Key: "max_num_batched_tokens", Value: 8192},
			{Key: "max_num_seqs", Value: 256},
			{Key: "async_scheduling", Value: true},
			{Key: "enable_chunked_prefill", Value: true},
			{Key: "long_prefill_token_threshold", Value: 0},
		}},
		{Key: "model", Value: pyjson.Object{
			{Key: "dtype", Value: "bfloat16"},
			{Key: "model_type", Value: "synthetic_moe"},
			{Key: "architectures", Value: pyjson.Array{"SyntheticMoeForCausalLM"}},
			{Key: "model", Value: "synthetic/sparse-moe"},
		}},
		{Key: "parallel", Value: parallel(rank, r.opt.Ranks)},
		{Key: "speculative", Value: nil},
		{Key: "graph", Value: pyjson.Object{
			{Key: "cudagraph_mode", Value: "FULL_AND_PIECEWISE"},
			{Key: "cudagraph_capture_sizes", Value: captureList()},
			{Key: "resolution", Value: "pre_resolution"},
		}},
		{Key: "versions", Value: pyjson.Object{
			{Key: "vllm", Value: "0.29.0"},
			{Key: "vllm_build_commit", Value: "0000000"},
			{Key: "dynamo", Value: "0.9.0"},
			{Key: "python", Value: "3.12.3"},
		}},
		{Key: "resolved", Value: nil},
		{Key: "resolution", Value: "pending_worker_probe"},
	}
}

func attention() pyjson.Object {
	return pyjson.Object{
		{Key: "backend_requested", Value: nil},
		{Key: "backend_per_kind", Value: pyjson.Object{}},
		{Key: "mla_prefill_backend_requested", Value: nil},
		{Key: "flash_attn_version", Value: 3},
		{Key: "use_trtllm_attention", Value: false},
		{Key: "indexer_kv_dtype", Value: "fp8"},
		{Key: "indexer_kv_dtype_configured", Value: "auto"},
		{Key: "backend_resolved", Value: nil},
		{Key: "mla_prefill_backend_resolved", Value: nil},
		{Key: "resolution", Value: "pending_worker_probe"},
		{Key: "indexer", Value: pyjson.Object{
			{Key: "index_topk", Value: 2048},
			{Key: "index_n_heads", Value: 1},
			{Key: "index_head_dim", Value: 128},
		}},
	}
}

func kvCache() pyjson.Object {
	return pyjson.Object{
		{Key: "cache_dtype", Value: "auto"},
		{Key: "block_size", Value: blockTokens},
		{Key: "enable_prefix_caching", Value: true},
		{Key: "groups", Value: pyjson.Array{
			append(cacheSpec("FullAttentionSpec", "bfloat16", 128, 8), pyjson.Member{Key: "kv_quant_mode", Value: "NONE"}),
			append(cacheSpec("UniformTypeKVCacheSpecs", nil, nil, nil), pyjson.Member{Key: "specs", Value: pyjson.Array{
				cacheSpec("MLAAttentionSpec", "uint8", 132, 1),
			}}),
		}},
		{Key: "kv_cache_layout", Value: "LBHNC"},
	}
}

func cacheSpec(kind string, dtype, headSize, heads any) pyjson.Object {
	return pyjson.Object{
		{Key: "type", Value: kind},
		{Key: "dtype", Value: dtype},
		{Key: "head_size", Value: headSize},
		{Key: "num_kv_heads", Value: heads},
		{Key: "block_size", Value: blockTokens},
	}
}

func parallel(rank, size int) pyjson.Object {
	return pyjson.Object{
		{Key: "data_parallel_size", Value: size},
		{Key: "data_parallel_rank", Value: rank},
		{Key: "tensor_parallel_size", Value: 1},
		{Key: "pipeline_parallel_size", Value: 1},
		{Key: "prefill_context_parallel_size", Value: 1},
		{Key: "enable_expert_parallel", Value: true},
		{Key: "enable_eplb", Value: false},
		{Key: "all2all_backend", Value: "deepep_high_throughput"},
		{Key: "eplb_config", Value: pyjson.Object{
			{Key: "window_size", Value: 1000},
			{Key: "step_interval", Value: 3000},
			{Key: "num_redundant_experts", Value: 0},
			{Key: "log_balancedness", Value: false},
			{Key: "log_balancedness_interval", Value: 1},
			{Key: "use_async", Value: true},
			{Key: "policy", Value: "default"},
			{Key: "communicator", Value: nil},
		}},
	}
}
