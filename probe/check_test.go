package probe

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
)

func checkSidecar(t testing.TB, path string, opt CheckOptions) *Result {
	t.Helper()
	result, err := CheckSidecar(t.Context(), path, opt)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// A sidecar is held against its merged artifact wherever it stands, and against itself
// without one: then some faults cannot be seen.
func TestCheckSidecar(t *testing.T) {
	merged := place(t, artifactText(2, 2, 1, 1))
	second := strings.NewReplacer(`"tp_rank": 0`, `"tp_rank": 1`, `"worker_rank": 0`, `"worker_rank": 1`)
	replies := list(second.Replace(answer(1)), answer(0), answer(1, `"pp_rank": 3`), second.Replace(answer(0)), second.Replace(answer(0)))
	sound(t, Options{Merged: merged, Probe: given(replies)})
	text := load(t, SidecarPath(merged))
	elsewhere := filepath.Join(t.TempDir(), "moved.json")
	const stale = "probe.sidecar-stale "
	for _, c := range []struct{ old, new, with, alone string }{
		{"", "", "", ""},
		{`"complete": false`, `"complete": true`, stale + "/merged/worker_probe/coverage/complete", "same"},
		{`"disagreements": []`, `"disagreements": ["attention_backends"]`, stale + "/merged/worker_probe/disagreements/0", "same"},
		{`"resolution": "worker_probe_partial"`, `"resolution": "worker_probe"`, stale + "/merged/resolution", "same"},
		{`"resolved_scope": "representative_worker"`, `"resolved_scope": null`, stale + "/merged/resolved_scope", "same"},
		{`"backend_resolved": "A"`, `"backend_resolved": "B"`, stale + "/merged/attention/backend_resolved", "same"},
		{`"missing_dp_ranks": []`, `"missing_dp_ranks": [1]`, stale + "/merged/worker_probe/coverage/missing_dp_ranks/0", "same"},
		{`"rpc_index": 1`, `"rpc_index": 7`, stale + "/merged/worker_probe/responses/1/rpc_index", "same"},
		{`"worker ranks disagree with TP/PCP/PP topology"`, ``, stale + "/merged/worker_probe/responses/2/issues/0", stale + "/merged/worker_probe/coverage/observed_workers/2"},
		{`"duplicate (dp_rank, worker_rank)"`, ``, stale + "/merged/worker_probe/responses/3/issues/0", "same"},
		{`"error": null`, `"error": "probe_failed: x"`, stale + "/merged/worker_probe/error", "same"},
		{`"rank_file": "/gone/r0.json"`, `"rank_file": "/gone/r1.json"`, stale + "/ranks/0/rank_file", "same"},
		{`"/gone/r0.json",`, `"/gone/rx.json",`, stale + "/rank_files/0", stale + "/ranks/0/rank_file"},
		{`"1": {`, `"2": {`, stale + "/ranks/1", stale + "/ranks/2/worker_probe/coverage/expected_dp_ranks/0"},
		{`"expected_workers_per_dp": 2`, `"expected_workers_per_dp": "x"`, stale + "/merged/worker_probe/coverage/expected_workers_per_dp", "same"},
		{`"expected_workers_per_dp": 2`, `"expected_workers_per_dp": 1`, stale + "/merged/worker_probe/coverage/expected_workers_per_dp", stale + "/ranks/0/worker_probe/coverage/expected_workers_per_dp"},
		{`"merged_output_path": "/etc/passwd"`, `"merged_output_path": "/tmp/x"`, stale + "/merged_output_path", ""},
		{`"run_id": "r\u00e9"`, `"run_id": "other"`, "probe.run-id /run_id", ""},
		{`"merged": {`, `"Merged": {`, "probe.sidecar /merged", "same"},
		{`"responses": [`, `"Responses": [`, "probe.sidecar /merged/worker_probe", "same"},
		{`"response": {`, `"Response": {`, "probe.sidecar /merged/worker_probe/responses/0", "same"},
		{`"ranks": {`, `"Ranks": {`, stale + "/ranks", "same"},
		{Schema, "x", "probe.sidecar /schema", "same"},
		{text, "[]", "probe.sidecar  ", "same"},
		{text, text[:100], "json.syntax", "same"},
	} {
		changed := strings.Replace(text, c.old, c.new, 1)
		if changed == text && c.old != "" {
			t.Fatalf("%s does not occur", c.old)
		}
		if c.alone == "same" {
			c.alone = c.with
		}
		save(t, elsewhere, changed)
		for _, opt := range []CheckOptions{{Merged: merged}, {}} {
			want := c.with
			if opt.Merged == "" {
				want = c.alone
			}
			result := checkSidecar(t, elsewhere, opt)
			missed := want != "" && !slices.ContainsFunc(rules(result), func(r string) bool { return strings.HasPrefix(r, want) })
			if missed || (want == "") != (result.Errors == 0) || len(result.Failures) > 0 || result.Sidecar != elsewhere || result.Summary != nil && (opt.Merged == "") != (len(result.Notes) == 1) {
				t.Errorf("%.40q -> %.40q with %q: %v %v %v, want %s", c.old, c.new, opt.Merged, rules(result), result.Failures, result.Notes, want)
			}
			for _, f := range result.Findings {
				if f.File != elsewhere {
					t.Errorf("%+v is not about the sidecar", f)
				}
			}
		}
	}
}

// What a probe writes is sound, with its merged artifact and without.
func TestCheckSidecarOfRandomReplies(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, text := range []string{artifactText(3, 2, 1, 1), artifactText(1, 1, 1, 1), strings.Replace(artifactText(3, 2, 1, 1), `"tensor_parallel_size"`, `"x"`, 1), strings.Replace(artifactText(3, 2, 1, 1), `"attention"`, `"x"`, 1)} {
		merged := place(t, text)
		for range 40 {
			sound(t, Options{Merged: merged, Probe: given(list(randomReplies(r)...)), Force: true})
			for _, opt := range []CheckOptions{{Merged: merged}, {}} {
				result := checkSidecar(t, SidecarPath(merged), opt)
				if result.Errors > 0 || len(result.Failures) > 0 || result.Summary == nil {
					t.Fatalf("with %q: %v %v\n%s", opt.Merged, rules(result), result.Failures, load(t, SidecarPath(merged)))
				}
			}
		}
	}
}

func TestCheckSidecarFiles(t *testing.T) {
	merged := place(t, artifactText(2, 1, 1, 1))
	missing := filepath.Join(t.TempDir(), "x.json")
	for _, opt := range []CheckOptions{{Merged: merged}, {}} {
		result := checkSidecar(t, missing, opt)
		if len(result.Failures) != 1 || !errors.Is(result.Failures[0], fs.ErrNotExist) || result.Failures[0].File != missing {
			t.Errorf("%+v", result.Failures)
		}
	}
	sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
	if result := checkSidecar(t, SidecarPath(merged), CheckOptions{Merged: missing}); len(result.Failures) != 1 || result.Summary != nil {
		t.Errorf("%+v", result)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if result, err := CheckSidecar(ctx, SidecarPath(merged), CheckOptions{}); !errors.Is(err, context.Canceled) || result != nil {
		t.Errorf("%v, %v", result, err)
	}

	// Findings go where they are wanted.
	save(t, SidecarPath(merged), "{}")
	into := finding.NewCollector(0)
	result := checkSidecar(t, SidecarPath(merged), CheckOptions{Merged: merged, Into: into})
	var got []finding.ID
	for _, f := range into.Findings() {
		got = append(got, f.Rule)
	}
	if diff := cmp.Diff([]finding.ID{finding.ProbeSidecar}, got); diff != "" || len(result.Findings) > 0 || result.Errors > 0 {
		t.Errorf("%+v, findings (-want +got):\n%s", result, diff)
	}
}
