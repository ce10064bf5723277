package merge

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
)

const warmupBefore = "/benchmark_measurement/preparation/warmup_records_before"

// The evidence of ranks whose files are not given is judged as far as it goes.
func TestRemoteRanks(t *testing.T) {
	const remote = "/iteration_groups/0/rank_results/1/fpms/0"
	for _, c := range []struct {
		name    string
		changes []change
		want    []said
	}{
		{"any number of records", does(fpm(0, 1, set(warmupBefore, "500"))), nil},
		{"no number of records", does(fpm(0, 1, del(warmupBefore))), nil},
		{"records that overlap nothing known", does(only(1, set("/warmup_evidence/records/0/forward_index_end", "99"))), nil},
		{"a negative number of records", does(fpm(0, 1, set(warmupBefore, "-2"))), broken(finding.WarmupReference, 1, remote+warmupBefore, "null or an integer of at least 0", "-2", 0)},
		{"no measurement", does(fpm(0, 1, del("/benchmark_measurement"))), broken(finding.MeasurementMissing, 1, remote+"/benchmark_measurement", "an object", "absent", 0)},
		{"no FPM", does(fpmsOf(0, 1, set("", "[]"))), broken(finding.GroupFPMCount, 1, remote[:len(remote)-2], "1 FPM", "0 FPMs", 0)},
		{"a sample of another rank", does(fpm(0, 1, set("/benchmark_measurement/raw_fpms/0/dp_rank", "0"))), broken(finding.SampleIdentity, 1, remote+"/benchmark_measurement/raw_fpms/0/dp_rank", "1", "0", 0)},
	} {
		paths := build(t, two()).apply(t, c.changes...).write(t, t.TempDir(), 0)
		result := runMerge(t, Options{Inputs: paths, Ranks: artifact.RankSet{0}})
		if diff := cmp.Diff(c.want, sayings(t, result)); diff != "" || len(result.Failures) > 0 {
			t.Errorf("%s: failures %v, findings (-want +got):\n%s", c.name, result.Failures, diff)
		}
	}
}

// Where a ledger is broken or its file cannot be read, nothing follows for what refers to it.
func TestReferencesToABrokenLedger(t *testing.T) {
	for name, c := range map[string]struct {
		changes []change
		want    []finding.ID
	}{
		"broken ledger":  {does(fpm(0, 1, set(warmupBefore, "500")), only(1, del("/warmup_evidence/records"))), []finding.ID{finding.WarmupLedger}},
		"no ledger":      {does(fpm(0, 1, set(warmupBefore, "-1")), only(1, del("/warmup_evidence"))), []finding.ID{finding.WarmupLedger}},
		"broken file":    {does(fpm(0, 1, set(warmupBefore, "-1")), inText(1, "{", "[")), []finding.ID{finding.JSONSyntax}},
		"broken record":  {does(fpm(0, 1, set(warmupBefore, "500")), only(1, set("/warmup_evidence/records/0", "5"))), []finding.ID{finding.WarmupReference, finding.WarmupRecord}},
		"no preparation": {does(fpm(0, 1, del("/benchmark_measurement/preparation"))), []finding.ID{finding.MeasurementIdentity}},
	} {
		paths := build(t, two()).apply(t, c.changes...).write(t, t.TempDir())
		result := runMerge(t, Options{Inputs: paths[:1]})
		if diff := cmp.Diff(c.want, rules(result)); diff != "" || len(result.Failures) > 0 {
			t.Errorf("%s: failures %v, rules (-want +got):\n%s", name, result.Failures, diff)
		}
	}
}

// The lowest rank whose file can be read is the reference, whatever is wrong with others.
func TestReferenceFallsBack(t *testing.T) {
	r := build(t, shape{ranks: 3, points: 1, raw: 1}).apply(t, inText(0, "{", "{,"), only(2, set("/run_id", `"other"`)))
	paths := r.write(t, t.TempDir())
	result := runMerge(t, Options{Inputs: []string{paths[2], paths[1], paths[0]}})
	var got []said
	for _, f := range result.Findings {
		got = append(got, said{f.Rule, f.Rank, 0, f.Pointer, f.Expected, f.Actual})
	}
	// Nothing tells the rank of run.json.
	want := []said{{finding.JSONSyntax, finding.NoRank, 0, "", "", ""}, {finding.RunID, 2, 0, "/run_id", `"run"`, `"other"`}}
	if diff := cmp.Diff(want, got); diff != "" || len(result.Failures) > 0 {
		t.Errorf("failures %v, findings (-want +got):\n%s", result.Failures, diff)
	}
}

// A rank whose file cannot be had by name is reported once, for the reason that it has.
func TestReportedOnce(t *testing.T) {
	dir := t.TempDir()
	paths := build(t, shape{ranks: 12, points: 1, raw: 1, legacy: true, bare: true}).write(t, dir)
	writeFile(t, paths[10]+".gz", "")
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	result := runMerge(t, Options{Inputs: paths[:1]})
	var got []string
	for _, f := range result.Failures {
		got = append(got, strings.ReplaceAll(f.Error(), dir, "d"))
	}
	want := []string{
		"rank 10 has more than one file: d/run_dp10.json and d/run_dp10.json.gz; remove or rename all but one",
		"d/run_dp1.json: rank 1 is missing",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures (-want +got):\n%s", diff)
	}
}

// More files than are kept open at once make a run like any other.
func TestManyFiles(t *testing.T) {
	s := shape{ranks: manyFiles + 6, points: 1, raw: 1, legacy: true, bare: true}
	r := build(t, s)
	dir := t.TempDir()
	paths := r.write(t, dir)
	byName := runMerge(t, Options{Inputs: paths[:1]})
	if byName.Output == "" || len(byName.SourceRanks) != s.ranks {
		t.Fatalf("%v, %v", byName.Findings, byName.Failures)
	}
	want := readFile(t, byName.Output)
	slices.Reverse(paths)
	if result := runMerge(t, Options{Inputs: paths}); result.Output == "" || readFile(t, result.Output) != want {
		t.Errorf("explicit files: %v, %v", result.Findings, result.Failures)
	}
	last := filepath.Join(dir, "run_dp69.json")
	r.apply(t, only(69, set("/run_id", `"x"`), set("/results/0/fpms/0/wall_time", "5")))
	writeFile(t, last, r.text(69))
	result := runMerge(t, Options{Inputs: paths, CheckOnly: true})
	if diff := cmp.Diff([]finding.ID{finding.RunID, finding.ResultDiffers}, rules(result)); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	sayings(t, result)
}

// A limit on findings keeps the first and counts all.
func TestMaxFindings(t *testing.T) {
	r := build(t, shape{ranks: 3, points: 4, raw: 1}).apply(t, partial(), every(set("/results/*/point/batch_size", "77"), set("/iteration_groups/*/complete", "false")))
	paths := r.write(t, t.TempDir())
	all := runMerge(t, Options{Inputs: paths})
	if all.Errors != 3*4+4 || all.Warnings != 1 || len(all.Findings) != 17 {
		t.Fatalf("%d errors, %d warnings, %d findings", all.Errors, all.Warnings, len(all.Findings))
	}
	errors := slices.DeleteFunc(slices.Clone(all.Findings), func(f finding.Finding) bool { return f.Severity == finding.Warning })
	for _, most := range []int{1, 2, 5, 16, 17, 100} {
		limited := runMerge(t, Options{Inputs: paths, MaxFindings: most})
		if limited.Errors != all.Errors || limited.Warnings != all.Warnings {
			t.Errorf("at most %d: %d errors, %d warnings", most, limited.Errors, limited.Warnings)
		}
		want := all.Findings
		if most < len(want) { // errors come before warnings when not all are kept
			want = errors[:most]
		}
		places := func(list []finding.Finding) (places []string) {
			for _, f := range list {
				places = append(places, f.File+f.Pointer)
			}
			return places
		}
		if diff := cmp.Diff(places(want), places(limited.Findings)); diff != "" {
			t.Errorf("at most %d (-want +got):\n%s", most, diff)
		}
	}
}

// A check reads and judges as a merge does, and writes nothing.
func TestCheckOnly(t *testing.T) {
	paths := build(t, two()).write(t, t.TempDir())
	result := runMerge(t, Options{Inputs: paths[:1], CheckOnly: true, Output: "/nowhere/x.json"})
	if result.Output != "" || result.RunID != "run" || result.GlobalSize != 2 || result.Points != 2 || len(result.Failures) > 0 || len(result.Findings) > 0 {
		t.Errorf("%+v", result)
	}
}

// An id beyond any number of groups is not taken for one that it equals in fewer bits.
func TestHugeIDs(t *testing.T) {
	const huge = "4294967297" // 1 in 32 bits
	for name, c := range map[string]struct {
		changes []change
		want    []finding.ID
	}{
		"of a result": {does(only(1, set("/results/0/point/benchmark_id", huge))), []finding.ID{finding.ResultID, finding.ResultCounter}},
		"of a group": {does(every(set("/iteration_groups/0/benchmark_id", huge)), pointOf(0, set("/benchmark_id", huge)),
			fpm(0, 0, set("/counter_id", huge)), fpm(0, 1, set("/counter_id", huge))), []finding.ID{finding.GroupID}},
	} {
		r := build(t, shape{ranks: 2, points: 1, raw: 1, legacy: true}).apply(t, c.changes...)
		if result := runMerge(t, Options{Inputs: r.write(t, t.TempDir())[:1]}); !slices.Equal(rules(result), c.want) {
			t.Errorf("%s: %v, want %v", name, result.Findings, c.want)
		}
	}
}
