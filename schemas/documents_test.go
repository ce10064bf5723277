package schemas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/merge"
	"github.com/fpm-project/fpm/probe"
	"github.com/fpm-project/fpm/schemas"
)

// The documents that this program makes satisfy their schemas.

func mustFit(t *testing.T, what, name string, document []byte) {
	t.Helper()
	got, err := schemas.Validate(name, document)
	if err != nil || len(got) > 0 {
		t.Errorf("%s does not fit the schema %s: %+v, %v", what, name, got, err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// mergedFiles simulates a run and merges the ranks of a set, nil for all of them.
func mergedFiles(t testing.TB, opt simulate.Options, ranks artifact.RankSet) (path string, files []string) {
	t.Helper()
	opt.Dir, opt.Ranks, opt.Points, opt.Raw = t.TempDir(), 2, 6, 4
	run, err := simulate.Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	result, err := merge.Run(t.Context(), merge.Options{Inputs: []string{opt.Dir}, Ranks: ranks, Output: filepath.Join(opt.Dir, "m.json")})
	if err != nil || result.Errors > 0 || len(result.Failures) > 0 {
		t.Fatalf("%+v, %v", result, err)
	}
	return result.Output, run.Files
}

func TestRuns(t *testing.T) {
	for name, opt := range map[string]simulate.Options{
		"new":      {},
		"shuffled": {Shuffle: true, Seed: 7},
		"legacy":   {Legacy: true},
		"partial":  {Break: finding.RankPartialRun},
		"degraded": {Break: finding.EngineUnverified},
	} {
		t.Run(name, func(t *testing.T) {
			path, files := mergedFiles(t, opt, nil)
			for _, file := range files {
				mustFit(t, file, "rank-artifact", readFile(t, file))
			}
			text := readFile(t, path)
			mustFit(t, path, "merged-artifact", text)
			for _, other := range []string{"rank-artifact", "worker-probe", "report", "trace-row", "worker-probe-replies"} {
				if got, err := schemas.Validate(other, text); err != nil || len(got) == 0 {
					t.Errorf("a merged artifact fits the schema %s: %v", other, err)
				}
			}
			checkMembers(t, name, text)
		})
	}
}

// checkMembers requires that the run shows what its name promises, so that the schema has
// seen it.
func checkMembers(t *testing.T, run string, text []byte) {
	t.Helper()
	var doc struct {
		Status   string
		Engine   map[string]json.RawMessage
		Evidence map[string]json.RawMessage `json:"rank_warmup_evidence"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]bool{
		"legacy":   len(doc.Evidence) == 0,
		"partial":  doc.Status == "partial",
		"degraded": doc.Engine["capture_errors"] != nil,
	} {
		if got != (run == what) {
			t.Errorf("%s: %v in a run that is %s", what, got, run)
		}
	}
}

func TestNodeLocalMerge(t *testing.T) {
	ranks, err := artifact.ParseRanks("1")
	if err != nil {
		t.Fatal(err)
	}
	path, _ := mergedFiles(t, simulate.Options{}, ranks)
	text := readFile(t, path)
	if !bytes.Contains(text, []byte(`"rank_artifact_not_loaded"`)) {
		t.Error("all ledgers are there")
	}
	mustFit(t, path, "merged-artifact", text)
}

func TestMergedArtifactRejects(t *testing.T) {
	path, _ := mergedFiles(t, simulate.Options{}, nil)
	text := string(readFile(t, path))
	for _, c := range []struct{ old, new, want string }{
		{`"artifact_type": "merged"`, `"artifact_type": "rank"`, "/artifact_type const"},
		{`"merged_output_path"`, `"output"`, " required"},
		{`"managed_size": 2`, `"managed_size": 0`, "/dp/managed_size minimum"},
		{`"global_size": 2`, `"global_size": 2.0`, "/dp/global_size type"},
		{`"source_ranks": [`, `"source_ranks": [-1,`, "/dp/source_ranks/0 minimum"},
		{`"ranks": [`, `"ranks": [65536,`, "/dp/ranks/0 maximum"},
		{`"rank_files": [`, `"rank_files": [null,`, "/rank_files/0 type"},
		{`"rank_benchmark_elapsed_seconds": {`, `"rank_benchmark_elapsed_seconds": {"00": 1.0,`, "/timing/rank_benchmark_elapsed_seconds/00 pattern"},
		{`"rank_benchmark_elapsed_seconds": {`, `"rank_benchmark_elapsed_seconds": {"2": "1",`, "/timing/rank_benchmark_elapsed_seconds/2 type"},
		{`"rank_warmup_evidence": {`, `"rank_warmup_evidence": {"x": {"status": "unavailable", "records": []},`, "/rank_warmup_evidence/x pattern"},
		{`"rank_warmup_evidence": {`, `"rank_warmup_evidence": {"2": {"status": "lost", "records": []},`, "/rank_warmup_evidence/2/status enum"},
		{`"skipped_points": []`, `"skipped_points": [{}]`, "/skipped_points maxItems"},
		{`"error": null`, `"error": "out of memory"`, "/error type"},
		{`"stop_reason": null`, `"stop_reason": "cancelled"`, "/stop_reason enum"},
		{`"status": "complete"`, `"status": "failed"`, "/status enum"},
		{`"results": [`, `"results": [{"point": {"benchmark_id": 1}, "fpms": [{"dp_rank": 0, "counter_id": 1}]},`, "/results/0/point required"},
		{`"results": [`, `"results": [{"point": {"benchmark_id": 0, "dp_rank": 0}, "fpms": [{"dp_rank": 0, "counter_id": 1}]},`, "/results/0/point/benchmark_id minimum"},
		{`"results": [`, `"results": [{"point": {"benchmark_id": 1, "dp_rank": 0}, "fpms": []},`, "/results/0/fpms minItems"},
		{`"iteration_groups": [`, `"iteration_groups": [null,`, "/iteration_groups/0 type"},
		{`"engine": {`, `"engine": {"capture_errors": {"1": null},`, "/engine/capture_errors/1 type"},
		{`"engine": {`, `"engine": {"capture_errors": {"one": "x"},`, "/engine/capture_errors/one pattern"},
	} {
		at := strings.LastIndex(text, "\n  "+c.old) // a key of the document itself, or any other
		if at < 0 {
			at = strings.Index(text, c.old)
		}
		if at < 0 {
			t.Fatalf("the document has no %s", c.old)
		}
		broken := text[:at] + strings.Replace(text[at:], c.old, c.new, 1)
		got, err := schemas.Validate("merged-artifact", []byte(broken))
		if err != nil || !slices.Equal(places(got), []string{c.want}) {
			t.Errorf("%s: %q, %v, want %q", c.new, places(got), err, c.want)
		}
	}
}

func places(violations []schemas.Violation) (list []string) {
	for _, v := range violations {
		list = append(list, v.Pointer+" "+v.Keyword)
	}
	return list
}

func probed(input probe.Input) func(context.Context) (probe.Input, error) {
	return func(context.Context) (probe.Input, error) { return input, nil }
}

// sidecar makes the sidecar of a run.
func sidecar(t *testing.T, input probe.Input) []byte {
	t.Helper()
	path, _ := mergedFiles(t, simulate.Options{}, nil)
	result, err := probe.Run(t.Context(), probe.Options{
		Merged: path,
		Probe:  probed(input),
	})
	if err != nil || !result.Written {
		t.Fatalf("%+v, %v", result, err)
	}
	return readFile(t, result.Sidecar)
}

func TestSidecars(t *testing.T) {
	demo := readFile(t, filepath.Join("..", "testdata", "demo", "replies.json"))
	mustFit(t, "the shipped replies", "worker-probe-replies", demo)
	for name, input := range map[string]probe.Input{
		"replies":   {Name: "-", Replies: demo},
		"malformed": {Name: "-", Replies: []byte(`[null, 7, {"dp_rank": NaN}, {"dp_rank": -1, "worker_rank": true}]`)},
		"none":      {Name: "-", Replies: []byte(`[]`)},
		"failed":    {Failure: probe.Failed("TimeoutError: no answer\nafter 30s")},
		"skipped":   {Failure: probe.Skipped("")},
	} {
		t.Run(name, func(t *testing.T) { mustFit(t, "the sidecar", "worker-probe", sidecar(t, input)) })
	}
}

func TestSidecarRejects(t *testing.T) {
	text := string(sidecar(t, probe.Input{Name: "-", Replies: readFile(t, filepath.Join("..", "testdata", "demo", "replies.json"))}))
	for _, c := range []struct{ old, new, want string }{
		{`"schema": "dynamo.`, `"schema": "nemo.`, "/schema const"},
		{`"schema_version": 1`, `"schema_version": 1.0`, "/schema_version type"},
		{`"run_id": "`, `"run_id": 7, "x": "`, "/run_id type"},
		{`"merged": {`, `"unmerged": {`, " required"},
		{`"ranks": {`, `"ranks": {"9": 7,`, "/ranks/9 type"},
		{`"resolved_scope": "representative_worker"`, `"resolved_scope": "all"`, "/merged/resolved_scope enum"},
		{`"resolution": "worker_probe`, `"resolution": "probe_worker`, "/merged/resolution pattern"},
		{`"rpc_index": 0`, `"rpc_index": "0"`, "/merged/worker_probe/responses/0/rpc_index type"},
		{`"issues": []`, `"issues": [""]`, "/merged/worker_probe/responses/0/issues/0 minLength"},
		{`"response": {`, `"reply": {`, "/merged/worker_probe/responses/0 required"},
		{`"scope": "artifact_workers"`, `"scope": "workers"`, "/merged/worker_probe/coverage/scope const"},
		{`"expected_workers_per_dp": 1`, `"expected_workers_per_dp": 0`, "/merged/worker_probe/coverage/expected_workers_per_dp minimum"},
		{`"complete": false`, `"complete": null`, "/merged/worker_probe/coverage/complete type"},
		{`"disagreements": []`, `"disagreements": ["dp_rank"]`, "/merged/worker_probe/disagreements/0 enum"},
		{`"rank_file": "`, `"rank_path": "`, "/ranks/0 required"},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("the document has no %s", c.old)
		}
		got, err := schemas.Validate("worker-probe", []byte(strings.Replace(text, c.old, c.new, 1)))
		if err != nil || !slices.Equal(places(got), []string{c.want}) {
			t.Errorf("%s: %q, %v, want %q", c.new, places(got), err, c.want)
		}
	}
}

func printed(t testing.TB, r *report.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := report.Print(&b, report.JSON, r, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// fullReport has everything that a report can have.
func fullReport() *report.Report {
	findings := []finding.Finding{{
		Rule: finding.EngineMismatch, Severity: finding.Error, File: "a.json", Pointer: "/engine", Line: 3, Column: 5, Rank: 1,
		BenchmarkID: 2, Message: "m", Expected: "e", Actual: "a", Hint: "h",
	}, {Rule: finding.RankSchema, Severity: finding.Error, File: "b.json", Rank: finding.NoRank, Message: "no place"}}
	r := report.New("merge", findings, 2, 0)
	r.Details = report.Object{{Key: "run_id", Value: "r"}}
	r.Items = report.Items{Key: "rules", Values: []any{report.Object{{Key: "id", Value: "x"}}}}
	return r
}

func TestReports(t *testing.T) {
	mustFit(t, "a report", "report", printed(t, fullReport()))
	mustFit(t, "a success", "report", printed(t, report.New("", nil, 0, 0)))
	for _, code := range exitcode.Table() {
		r := fullReport()
		r.Fail(&exitcode.Error{Code: code.Code, Message: "m", File: "f", Hint: "h"})
		if code.Code == exitcode.OK {
			continue // no failure
		}
		mustFit(t, fmt.Sprintf("failure %d", code.Code), "report", printed(t, r))
	}
	for _, rule := range finding.Rules() {
		r := report.New("validate", []finding.Finding{{Rule: rule.ID, Severity: rule.Severity, Rank: finding.NoRank, Message: "m"}}, 1, 0)
		mustFit(t, string(rule.ID), "report", printed(t, r))
	}
}

func TestReportRejects(t *testing.T) {
	r := fullReport()
	r.Fail(&exitcode.Error{Code: exitcode.Failed, Message: "m", File: "f", Hint: "h"})
	text := string(printed(t, r))
	for _, c := range []struct{ old, new, want string }{
		{`"schema": "fpm.report"`, `"schema": "fpm"`, "/schema const"},
		{`"schema_version": 1`, `"schema_version": 2`, "/schema_version const"},
		{`"status": "failed"`, `"status": "bad"`, "/status enum"},
		{`"findings":`, `"found":`, " required"},
		{`"total": 2`, `"total": -2`, "/total minimum"},
		{`"rule": "engine.mismatch"`, `"rule": "engine"`, "/findings/0/rule pattern"},
		{`"severity": "error"`, `"severity": "note"`, "/findings/0/severity enum"},
		{`"pointer": "/engine"`, `"pointer": "engine"`, "/findings/0/pointer pattern"},
		{`"line": 3`, `"line": 0`, "/findings/0/line minimum"},
		{`"column": 5`, `"column": "5"`, "/findings/0/column type"},
		{`"rank": 1`, `"rank": -1`, "/findings/0/rank minimum"},
		{`"message": "m"`, `"text": "m"`, "/findings/0 required"},
		{`"exit_status": 3`, `"exit_status": 0`, "/fatal/0/exit_status minimum"},
	} {
		if !strings.Contains(text, c.old) {
			t.Fatalf("the document has no %s", c.old)
		}
		got, err := schemas.Validate("report", []byte(strings.Replace(text, c.old, c.new, 1)))
		if err != nil || !slices.Equal(places(got), []string{c.want}) {
			t.Errorf("%s: %q, %v, want %q", c.new, places(got), err, c.want)
		}
	}
}
