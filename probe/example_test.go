package probe_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fpm-project/fpm/probe"
)

// A run of two DP ranks, one worker each, of which one has answered.
func Example() {
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	merged := filepath.Join(dir, "results_merged.json")
	const artifact = `{"artifact_type": "merged", "run_id": "r", "dp": {"ranks": [0, 1], "source_ranks": [0, 1]},
  "engine": {"parallel": {"tensor_parallel_size": 1, "prefill_context_parallel_size": 1, "pipeline_parallel_size": 1}}}`
	if err := os.WriteFile(merged, []byte(artifact), 0o666); err != nil {
		fmt.Println(err)
		return
	}
	const replies = `[{"dp_rank": 1, "worker_rank": 0, "tp_rank": 0, "pcp_rank": 0, "pp_rank": 0,
  "attention_backends": {"layers.0.attn": "FLASHINFER"}, "cudagraph_capture_sizes_resolved": [1, 2]}]`

	result, err := probe.Run(context.Background(), probe.Options{
		Merged:  merged,
		Require: probe.Complete,
		Probe: func(context.Context) (probe.Input, error) {
			return probe.Input{Name: "replies.json", Replies: []byte(replies)}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filepath.Base(result.Sidecar), result.Written)
	for _, f := range result.Findings {
		fmt.Printf("%s[%s] %s\n", f.Severity, f.Rule, f.Message)
	}
	fmt.Println(strings.Join(result.Summary.Text(), "\n"))
	// Output:
	// results_merged_worker_probe.json true
	// error[probe.incomplete] the coverage is not complete: 1 of 2 workers not observed
	// resolution: worker_probe_partial
	// coverage: 1 of 2 workers observed, not complete: 1 of 2 workers not observed
	//   DP rank 0: 0 of 1 observed, 1 missing, 0 malformed, 0 duplicate
	//   DP rank 1: 1 of 1 observed, 0 missing, 0 malformed, 0 duplicate
	// asked for at start-up, and resolved by the observed workers:
	//   attention backend: request not recorded, resolved FLASHINFER (DP rank 1 worker 0)
	//   MLA prefill backend: request not recorded, resolved null (DP rank 1 worker 0)
	//   CUDA graph mode: request not recorded, resolved null (DP rank 1 worker 0)
	//   CUDA graph capture sizes: request not recorded, resolved [1,2] (DP rank 1 worker 0)
	// This holds for the observed workers only (1 of 2 workers not observed): missing replies establish neither agreement nor disagreement.
}
