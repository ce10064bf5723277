package merge

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsontest"
)

func compressed(t testing.TB, path, text string) {
	t.Helper()
	var out bytes.Buffer
	switch filepath.Ext(path) {
	case ".gz":
		w := gzip.NewWriter(&out)
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	case ".zst":
		w, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	default:
		out.WriteString(text)
	}
	writeFile(t, path, out.String())
}

// failure is what a failure says: its file is named below the test's directory, and its
// message is to contain Message.
type failure struct {
	Code    exitcode.Code
	File    string
	Message string
}

func checkFailures(t *testing.T, dir string, want []failure, got []*exitcode.Error) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("failures %v, want %v", got, want)
		return
	}
	for i, f := range got {
		file := strings.TrimPrefix(f.File, dir+"/")
		if f.Code != want[i].Code || file != want[i].File || !strings.Contains(f.Message, want[i].Message) || strings.Contains(f.Message, "\n") {
			t.Errorf("failure %d %s: %s; want %+v", f.Code, file, f.Message, want[i])
		}
	}
}

// The files of a run are found by a base path, a directory or one by one, and the outputs
// are named after them.
func TestInputs(t *testing.T) {
	r := build(t, shape{ranks: 3, points: 1, raw: 1})
	text := func(rank int) string { return r.text(rank) }
	all := map[string]string{"run.json": text(0), "run_dp1.json": text(1), "run_dp2.json": text(2)}
	for _, c := range []struct {
		name     string
		files    map[string]string
		inputs   []string
		base     string // default base path
		ranks    artifact.RankSet
		output   string
		want     string // file written
		sources  []int
		used     []string // files, in rank order, where they are not those of all
		failures []failure
		rules    []finding.ID
	}{
		{name: "base path", files: all, inputs: []string{"run.json"}, want: "run_merged.json"},
		{name: "default base path", files: all, base: "run.json", want: "run_merged.json"},
		{name: "default base path of a rank", files: all, base: "run_dp1.json", ranks: artifact.RankSet{1}, want: "run_dp1_merged.json", sources: []int{1}, used: []string{"run_dp1.json"}},
		{name: "no base path", files: all, failures: []failure{{exitcode.Usage, "", "the base path is empty"}}},
		{name: "directory", files: map[string]string{"d/benchmark_results.json": text(0), "d/benchmark_results_dp1.json": text(1), "d/benchmark_results_dp2.json": text(2)}, inputs: []string{"d"},
			want: "d/benchmark_results_merged.json", used: []string{"d/benchmark_results.json", "d/benchmark_results_dp1.json", "d/benchmark_results_dp2.json"}},
		{name: "directory with a slash", files: map[string]string{"d/benchmark_results.json": text(0), "d/benchmark_results_dp1.json": text(1), "d/benchmark_results_dp2.json": text(2)}, inputs: []string{"d/"},
			want: "d/benchmark_results_merged.json", used: []string{"d/benchmark_results.json", "d/benchmark_results_dp1.json", "d/benchmark_results_dp2.json"}},
		{name: "empty directory", files: map[string]string{"d/x": ""}, inputs: []string{"d"}, failures: []failure{{exitcode.Failed, "d/benchmark_results.json", "rank 0 is missing"}}},
		{name: "explicit", files: all, inputs: []string{"run_dp2.json", "run.json", "run_dp1.json"}, want: "run_merged.json"},
		{name: "explicit, rank 0 with its number", files: map[string]string{"run_dp0.json": text(0), "run_dp1.json": text(1), "run_dp2.json": text(2)}, inputs: []string{"run_dp2.json", "run_dp0.json", "run_dp1.json"},
			want: "run_merged.json", used: []string{"run_dp0.json", "run_dp1.json", "run_dp2.json"}},
		{name: "names that tell nothing", files: map[string]string{"c.json": text(0), "a": text(1), "b.x.json": text(2)}, inputs: []string{"a", "b.x.json", "c.json"},
			want: "c_merged.json", used: []string{"c.json", "a", "b.x.json"}},
		{name: "names that tell nothing, node-local", files: map[string]string{"a": text(1), "b.x.json": text(2)}, inputs: []string{"b.x.json", "a"}, ranks: artifact.RankSet{1, 2},
			want: "a_dp1_merged", sources: []int{1, 2}, used: []string{"a", "b.x.json"}},
		{name: "output", files: all, inputs: []string{"run.json"}, output: "out.txt", want: "out.txt"},
		{name: "node-local", files: all, inputs: []string{"run.json"}, ranks: artifact.RankSet{1, 2}, want: "run_dp1_merged.json", sources: []int{1, 2}, used: []string{"run_dp1.json", "run_dp2.json"}},
		{name: "node-local without rank 0's file", files: map[string]string{"run_dp2.json": text(2)}, inputs: []string{"run.json"}, ranks: artifact.RankSet{2}, want: "run_dp2_merged.json", sources: []int{2}, used: []string{"run_dp2.json"}},
		{name: "a subset with rank 0", files: all, inputs: []string{"run.json"}, ranks: artifact.RankSet{0, 2}, want: "run_merged.json", sources: []int{0, 2}, used: []string{"run.json", "run_dp2.json"}},
		{name: "gz", files: map[string]string{"run.json.gz": text(0), "run_dp1.json": text(1), "run_dp2.json.zst": text(2)}, inputs: []string{"run.json"},
			want: "run_merged.json", used: []string{"run.json.gz", "run_dp1.json", "run_dp2.json.zst"}},
		{name: "compressed base path", files: map[string]string{"run.json.zst": text(0), "run_dp1.json.gz": text(1), "run_dp2.json": text(2)}, inputs: []string{"run.json.zst"},
			want: "run_merged.json", used: []string{"run.json.zst", "run_dp1.json.gz", "run_dp2.json"}},
		{name: "explicit, compressed", files: map[string]string{"run.json.gz": text(0), "run_dp1.json.zst": text(1), "run_dp2.json": text(2)}, inputs: []string{"run_dp1.json.zst", "run_dp2.json", "run.json.gz"},
			want: "run_merged.json", used: []string{"run.json.gz", "run_dp1.json.zst", "run_dp2.json"}},
		{name: "two forms", files: map[string]string{"run.json": text(0), "run_dp1.json": text(1), "run_dp1.json.gz": text(1), "run_dp2.json": text(2)}, inputs: []string{"run.json"},
			failures: []failure{{exitcode.Usage, "", "rank 1 has more than one file"}}},
		{name: "not there", inputs: []string{"run.json"}, failures: []failure{{exitcode.Failed, "run.json", "rank 0 is missing"}}},
		{name: "a rank is missing", files: map[string]string{"run.json": text(0), "run_dp2.json": text(2)}, inputs: []string{"run.json"}, failures: []failure{{exitcode.Failed, "run_dp1.json", "rank 1 is missing"}}},
		{name: "rank 0 is missing", files: map[string]string{"run_dp2.json": text(2), "run_dp1.json": text(1)}, inputs: []string{"run.json"}, failures: []failure{{exitcode.Failed, "run.json", "rank 0 is missing"}}},
		{name: "what is there is checked all the same", files: map[string]string{"run_dp2.json": "{", "run_dp1.json.gz": "[]"}, inputs: []string{"run.json"},
			failures: []failure{{exitcode.Failed, "run.json", "rank 0 is missing"}}, rules: []finding.ID{finding.RankSchema, finding.JSONSyntax}},
		{name: "rank 0 does not tell the size", files: map[string]string{"run.json": "[]", "run_dp1.json": "{}}", "run_dp7.json": "", "run_dp07.json": "x", "run_dpx.json": "x", "other_dp1.json": "x"}, inputs: []string{"run.json"},
			rules: []finding.ID{finding.RankSchema, finding.JSONSyntax, finding.JSONSyntax}},
		{name: "asked for, not there", files: map[string]string{"run.json": text(0)}, inputs: []string{"run.json"}, ranks: artifact.RankSet{0, 2}, failures: []failure{{exitcode.Failed, "run_dp2.json", "rank 2 is missing"}}},
		{name: "asked for, beyond the run", files: all, inputs: []string{"run.json"}, ranks: artifact.RankSet{0, 1, 2, 3, 5}, failures: []failure{{exitcode.Usage, "", "--ranks names rank 3,5 of a run of 3"}}},
		{name: "explicit, not asked for", files: all, inputs: []string{"run_dp1.json", "run.json"}, ranks: artifact.RankSet{1}, failures: []failure{{exitcode.Usage, "run.json", "rank 0 is not among --ranks 1"}}},
		{name: "explicit, not all", files: all, inputs: []string{"run.json", "run_dp1.json"}, failures: []failure{{exitcode.Failed, "", "the run has 3 ranks, and no file was given for rank 2"}}},
		{name: "one explicit file", files: all, inputs: []string{"run_dp1.json"}, failures: []failure{{exitcode.Failed, "", "no file was given for rank 0,2"}}},
		{name: "explicit, not asked for enough", files: all, inputs: []string{"run.json", "run_dp1.json"}, ranks: artifact.RankSet{0, 1, 2}, failures: []failure{{exitcode.Failed, "", "no file was given for rank 2"}}},
		{name: "explicit, not there", files: map[string]string{"run.json": text(0), "run_dp2.json": text(2)}, inputs: []string{"run.json", "run_dp1.json", "run_dp2.json"}, failures: []failure{{exitcode.Failed, "", "run_dp1.json"}}},
		{name: "explicit, none there", inputs: []string{"x.json", "y.json"}, failures: []failure{{exitcode.Failed, "", "x.json"}, {exitcode.Failed, "", "y.json"}}},
		{name: "the same file twice", files: all, inputs: []string{"run.json", "run_dp1.json", "run_dp2.json", "run_dp1.json"}, rules: []finding.ID{finding.RankDP}},
		{name: "the same rank twice", files: map[string]string{"run.json": text(0), "x.json": text(1), "run_dp1.json": text(1), "run_dp2.json": text(2)}, inputs: []string{"run.json", "x.json", "run_dp1.json", "run_dp2.json"}, rules: []finding.ID{finding.RankDP}},
		{name: "a name of another rank", files: map[string]string{"run.json": text(0), "run_dp2.json": text(1), "run_dp1.json": text(2)}, inputs: []string{"run.json", "run_dp1.json", "run_dp2.json"},
			rules: []finding.ID{finding.RankDP, finding.RankDP}},
		{name: "a directory among the files", files: map[string]string{"run.json": text(0), "run_dp1.json/x": "", "run_dp2.json": text(2)}, inputs: []string{"run.json"}, failures: []failure{{exitcode.Failed, "", "run_dp1.json"}}},
		{name: "minus", files: all, inputs: []string{"-"}, failures: []failure{{exitcode.Usage, "", "- is not a path"}}},
		{name: "minus among files", files: all, inputs: []string{"run.json", "-"}, failures: []failure{{exitcode.Usage, "", "- is not a path"}}},
		{name: "minus for output", files: all, inputs: []string{"run.json"}, output: "-", failures: []failure{{exitcode.Usage, "", "- is not a path"}}},
		{name: "output on an input", files: all, inputs: []string{"run.json"}, output: "run_dp1.json", failures: []failure{{exitcode.Usage, "run_dp1.json", "the output would replace an input"}}},
		{name: "output by another name", files: all, inputs: []string{"run.json"}, output: "./d/../run.json", failures: []failure{{exitcode.Usage, "./d/../run.json", "the output would replace an input"}}},
		{name: "sidecar on an input", files: map[string]string{"run.json": text(0), "m_worker_probe.json": text(1), "run_dp2.json": text(2)}, inputs: []string{"run.json", "m_worker_probe.json", "run_dp2.json"}, output: "m.json",
			failures: []failure{{exitcode.Usage, "m_worker_probe.json", "the output would replace an input"}}},
		{name: "output is a directory", files: map[string]string{"run.json": text(0), "run_dp1.json": text(1), "run_dp2.json": text(2), "d/x": ""}, inputs: []string{"run.json"}, output: "d", failures: []failure{{exitcode.Failed, "", "d"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777); err != nil {
					t.Fatal(err)
				}
				compressed(t, filepath.Join(dir, name), text)
			}
			if err := os.MkdirAll(filepath.Join(dir, "d"), 0o777); err != nil {
				t.Fatal(err)
			}
			opt := Options{Ranks: c.ranks, DefaultBase: within(dir, c.base), Output: within(dir, c.output)}
			for _, name := range c.inputs {
				opt.Inputs = append(opt.Inputs, within(dir, name))
			}
			before := dirNames(t, dir)
			result, err := Run(t.Context(), opt)
			if err != nil {
				t.Fatal(err)
			}
			checkFailures(t, dir, c.failures, result.Failures)
			if diff := cmp.Diff(c.rules, rules(result)); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			if got := strings.TrimPrefix(result.Output, dir+"/"); got != c.want {
				t.Fatalf("wrote %q, want %q", got, c.want)
			}
			if c.want == "" {
				if after := dirNames(t, dir); !slices.Equal(before, after) {
					t.Errorf("the directory had %v, and now %v", before, after)
				}
				return
			}
			checkMerged(t, dir, result, c.sources, c.used)
		})
	}
}

func within(dir, name string) string {
	if name == "" || name == "-" {
		return name
	}
	return dir + "/" + name
}

// rules lists the rules of the findings, in report order.
func rules(result *Result) (ids []finding.ID) {
	for _, f := range result.Findings {
		ids = append(ids, f.Rule)
	}
	return ids
}

// checkMerged checks what a merged artifact of a run of three ranks says of its sources.
func checkMerged(t *testing.T, dir string, result *Result, sources []int, used []string) {
	t.Helper()
	if sources == nil {
		sources = []int{0, 1, 2}
	}
	if used == nil {
		used = []string{"run.json", "run_dp1.json", "run_dp2.json"}
	}
	for i := range used {
		used[i] = dir + "/" + used[i]
	}
	type dp struct {
		Ranks       []int `json:"ranks"`
		SourceRanks []int `json:"source_ranks"`
		ManagedSize int   `json:"managed_size"`
		GlobalSize  int   `json:"global_size"`
	}
	type document struct {
		DP         dp       `json:"dp"`
		RankFiles  []string `json:"rank_files"`
		OutputPath string   `json:"merged_output_path"`
		ProbePath  string   `json:"worker_probe_path"`
	}
	var got document
	if err := json.Unmarshal([]byte(readFile(t, result.Output)), &got); err != nil {
		t.Fatal(err)
	}
	want := document{dp{[]int{0, 1, 2}, sources, len(sources), 3}, used, result.Output, artifact.Sidecar(result.Output)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if result.RunID != "run" || result.GlobalSize != 3 || result.Points != 1 || !slices.Equal(result.SourceRanks, sources) {
		t.Errorf("%+v", result)
	}
}

// A relative base path stays as it was typed.
func TestRelativePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	r := build(t, two())
	for _, base := range []string{"run.json", "./run.json", "../x/./run.json"} {
		if err := os.MkdirAll("../x", 0o777); err != nil {
			t.Fatal(err)
		}
		r.write(t, filepath.Dir(base))
		result, err := Run(t.Context(), Options{Inputs: []string{base}, Force: true})
		if err != nil || len(result.Failures) > 0 {
			t.Fatal(err, result.Failures)
		}
		stem := strings.TrimSuffix(base, ".json")
		merged := jsontest.Parse(t, readFile(t, stem+"_merged.json"))
		if got := string(merged.Get("rank_files").AppendCompact(nil)); got != fmt.Sprintf(`["%s.json","%s_dp1.json"]`, stem, stem) {
			t.Errorf("rank_files %s", got)
		}
		if got, _ := merged.Get("merged_output_path").Str(); got != stem+"_merged.json" {
			t.Errorf("merged_output_path %s", got)
		}
	}
}

func TestSiblings(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"run.json", "run_dp0.json", "run_dp2.json", "run_dp2.json.gz", "run_dp10.json.zst", "run_dp1.txt", "run_dp3.json.bak", "run_dp65535.json", "run_dp65536.json", "run_dp-1.json", "run_merged.json", "run_dp4_merged.json"} {
		writeFile(t, filepath.Join(dir, name), "")
	}
	r := &run{base: artifact.ParseBase(filepath.Join(dir, "run.json"))}
	if got := r.siblings(); !slices.Equal(got, []int{2, 10, 65535}) {
		t.Errorf("siblings %v", got)
	}
	t.Chdir(dir)
	r.base = artifact.ParseBase("run.json")
	if got := r.siblings(); !slices.Equal(got, []int{2, 10, 65535}) {
		t.Errorf("siblings in the working directory %v", got)
	}
	r.base = artifact.ParseBase("nowhere/run.json")
	if got := r.siblings(); got != nil {
		t.Errorf("siblings in no directory %v", got)
	}
}

func TestPeekDP(t *testing.T) {
	type dp struct{ rank, size int }
	for text, want := range map[string]dp{
		`{"dp": {"rank": 3, "size": 8}}`:                               {3, 8},
		`{"a": [{"dp": {"rank": 1}}], "dp": {"size": 8, "rank": 0}, ?`: {0, 8}, // what follows is not looked at
		`{"d\u0070": {"r\u0061nk": 3, "size": 65536}}`:                 {3, 65536},
		`{"dp": {"rank": 65535}}`:                                      {65535, 0},
		`{"dp": {"rank": 65536, "size": 65537}}`:                       {-1, 0},
		`{"dp": {"rank": -1, "size": 1.0}}`:                            {-1, 0},
		`{"dp": {"rank": "1", "size": true}}`:                          {-1, 0},
		`{"dp": {"rank": 2, "size": 3`:                                 {2, 3},
		`{"dp": {"rank": 2, "size": `:                                  {2, 0},
		`{"dp": 5}`:                                                    {-1, 0},
		`{"dp": null}`:                                                 {-1, 0},
		`{}`:                                                           {-1, 0},
		`[]`:                                                           {-1, 0},
		``:                                                             {-1, 0},
		`nonsense`:                                                     {-1, 0},
	} {
		path := filepath.Join(t.TempDir(), "x")
		writeFile(t, path, text)
		in, err := input.Open(path, input.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rank, size := peekDP(&source{run: newRun(t.Context(), Options{}), in: in})
		if got := (dp{rank, size}); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A file with no rank in its name or text comes last, and is not missed besides.
func TestRankUnknown(t *testing.T) {
	r := build(t, two()).apply(t, only(1, del("/dp")))
	dir := t.TempDir()
	for name, text := range map[string]string{"a.json": r.text(1), "b.json": r.text(0)} {
		writeFile(t, filepath.Join(dir, name), text)
	}
	result := runMerge(t, Options{Inputs: []string{filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")}})
	want := []said{{finding.RankDP, finding.NoRank, 0, "/dp", "an object with rank and size", "absent"}}
	if diff := cmp.Diff(want, sayings(t, result)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if len(result.Failures) > 0 { // a.json may well be the file of the rank that is missing
		t.Error(result.Failures)
	}
}
