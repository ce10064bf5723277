package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

var update = flag.Bool("update", false, "write the golden file anew; read it before it is kept")

// artifactText is a merged artifact of ranks DP ranks with so many workers each.
func artifactText(ranks, tp, pcp, pp int) string {
	var list, files []string
	for i := range ranks {
		list = append(list, fmt.Sprint(i))
		files = append(files, fmt.Sprintf("%q", fmt.Sprintf("/gone/r%d.json", i)))
	}
	return fmt.Sprintf(`{
  "schema_version": 2,
  "artifact_type": "merged",
  "run_id": "r\u00e9",
  "dp": {"ranks": [%[1]s], "source_ranks": [%[1]s]},
  "engine": {
    "attention": {
      "backend_requested": null,
      "backend_resolved": null,
      "mla_prefill_backend_resolved": null,
      "resolution": "pending_worker_probe"
    },
    "parallel": {
      "tensor_parallel_size": %[3]d,
      "prefill_context_parallel_size": %[4]d,
      "pipeline_parallel_size": %[5]d
    },
    "resolved": null,
    "resolution": "pending_worker_probe"
  },
  "rank_files": [%[2]s],
  "merged_output_path": "/etc/passwd",
  "worker_probe_path": "/etc/passwd"
}`, strings.Join(list, ", "), strings.Join(files, ", "), tp, pcp, pp)
}

// answer is a sound reply of a worker of a rank with one worker, with changes: "key":
// value replaces a field, "-key" takes it away.
func answer(dp int, changes ...string) string {
	fields := []string{
		`"tp_rank": 0`, `"pp_rank": 0`, `"pcp_rank": 0`, `"worker_rank": 0`, fmt.Sprintf(`"dp_rank": %d`, dp),
		`"attention_backends": {"l0": "A"}`, `"mla_prefill_backend": "M"`, `"cudagraph_mode_resolved": "FULL"`,
		`"cudagraph_capture_sizes_resolved": [1, 2]`, `"capture_errors": {}`,
	}
	for _, change := range changes {
		key, _, found := strings.Cut(change, ":")
		key = strings.TrimPrefix(key, "-")
		at := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, strings.Trim(key, " ")+":") })
		switch {
		case !found:
			fields = slices.Delete(fields, at, at+1)
		case at < 0:
			fields = append(fields, change)
		default:
			fields[at] = change
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

func list(replies ...string) string { return "[" + strings.Join(replies, ", ") + "]" }

// place writes a merged artifact into a directory of its own.
func place(t testing.TB, text string) (merged string) {
	t.Helper()
	merged = filepath.Join(t.TempDir(), "m.json")
	save(t, merged, text)
	return merged
}

func save(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// given makes a probe of replies.
func given(text string) func(context.Context) (Input, error) {
	return func(context.Context) (Input, error) { return Input{Name: "replies.json", Replies: []byte(text)}, nil }
}

func failing(text string) func(context.Context) (Input, error) {
	return func(context.Context) (Input, error) { return Input{Failure: text}, nil }
}

func do(t testing.TB, opt Options) *Result {
	t.Helper()
	result, err := Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// sound runs a probe that must have no errors.
func sound(t testing.TB, opt Options) *Result {
	t.Helper()
	result := do(t, opt)
	if result.Errors > 0 || len(result.Failures) > 0 {
		t.Fatalf("%+v\n%v", result.Findings, result.Failures)
	}
	return result
}

// rules lists the rules of findings, with their pointers and places.
func rules(result *Result) (list []string) {
	for _, f := range result.Findings {
		list = append(list, fmt.Sprintf("%s %s %d:%d", f.Rule, f.Pointer, f.Line, f.Column))
	}
	return list
}

// outcome is the part of a sidecar's result that tests look at.
type outcome struct {
	Resolved    json.RawMessage
	Scope       *string `json:"resolved_scope"`
	Resolution  string
	WorkerProbe struct {
		Responses []struct {
			Index    int `json:"rpc_index"`
			Response json.RawMessage
			Issues   []string
		}
		Coverage struct {
			Expected []int  `json:"expected_dp_ranks"`
			PerDP    *int64 `json:"expected_workers_per_dp"`
			Observed []struct {
				DP     int `json:"dp_rank"`
				Worker int `json:"worker_rank"`
			} `json:"observed_workers"`
			Missing  []int `json:"missing_dp_ranks"`
			Complete bool
		}
		Disagreements []string
		Error         *string
	} `json:"worker_probe"`
	Attention map[string]*string
	RankFile  *string `json:"rank_file"`
}

type document struct {
	Schema  string
	Version int     `json:"schema_version"`
	RunID   *string `json:"run_id"`
	Path    *string `json:"merged_output_path"`
	Files   []string
	Merged  outcome
	Ranks   map[string]outcome
}

func decode(t testing.TB, text string) (d document) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// String is a result in one line: its resolution, who was observed (DP/worker), what
// disagrees, which ranks are missing, and the issues of each reply.
func (o outcome) String() string {
	b := []string{o.Resolution, "observed"}
	for _, w := range o.WorkerProbe.Coverage.Observed {
		b = append(b, fmt.Sprintf("%d/%d", w.DP, w.Worker))
	}
	b = append(b, fmt.Sprintf("missing %v", o.WorkerProbe.Coverage.Missing))
	if o.WorkerProbe.Coverage.Complete {
		b = append(b, "complete")
	}
	if d := o.WorkerProbe.Disagreements; len(d) > 0 {
		b = append(b, "disagree "+strings.Join(d, ","))
	}
	for i, r := range o.WorkerProbe.Responses {
		if len(r.Issues) > 0 {
			b = append(b, fmt.Sprintf("#%d %s", i, strings.Join(r.Issues, ", ")))
		}
	}
	return strings.Join(b, "; ")
}

func TestReplies(t *testing.T) {
	const noValid = "probe_failed: no valid worker probe responses; observed; missing [0]; "
	one, two, slots := artifactText(1, 1, 1, 1), artifactText(2, 1, 1, 1), artifactText(1, 1, 2, 2)
	worker := func(w, pcp, pp int, changes ...string) string {
		return answer(0, append([]string{fmt.Sprintf(`"worker_rank": %d`, w), fmt.Sprintf(`"pcp_rank": %d`, pcp), fmt.Sprintf(`"pp_rank": %d`, pp)}, changes...)...)
	}
	for _, c := range []struct{ name, merged, replies, want string }{
		{"complete", two, list(answer(1), answer(0)), "worker_probe; observed; 1/0; 0/0; missing []; complete"},
		{"one of two", two, list(answer(1)), "worker_probe_partial; observed; 1/0; missing [0]"},
		{"none", one, "[]", strings.TrimSuffix(noValid, "; ")},
		{"other ranks only", one, list(answer(5)), "worker_probe_unobserved; observed; missing [0]"},
		{"null", one, "null", noValid + "#0 response is not an object"},
		{"no list", one, answer(0), "worker_probe; observed; 0/0; missing []; complete"},
		{"results", one, `{"results": ` + list(answer(0)) + "}", "worker_probe; observed; 0/0; missing []; complete"},
		{"results and more", one, `{"results": [], "x": 1}`, noValid + "#0 missing or invalid dp_rank, missing or invalid worker_rank, missing or invalid tp_rank, invalid attention_backends, invalid cudagraph_capture_sizes_resolved"},
		{"results without a list", one, `{"results": null}`, noValid + "#0 missing or invalid dp_rank, missing or invalid worker_rank, missing or invalid tp_rank, invalid attention_backends, invalid cudagraph_capture_sizes_resolved"},
		{"true is no rank", one, list(answer(0, `"dp_rank": true`)), noValid + "#0 missing or invalid dp_rank"},
		{"1.0 is no rank", one, list(answer(0, `"worker_rank": 0.0`)), noValid + "#0 missing or invalid worker_rank"},
		{"below 0", one, list(answer(0, `"tp_rank": -1`)), noValid + "#0 missing or invalid tp_rank"},
		{"-0 is 0", one, list(answer(0, `"tp_rank": -0`)), "worker_probe; observed; 0/0; missing []; complete"},
		{"every field", one, list(answer(0, `"dp_rank": null`, "-\"worker_rank\"", `"tp_rank": "0"`, `"pp_rank": false`, `"pcp_rank": 1e0`,
			`"attention_backends": ["A"]`, `"mla_prefill_backend": 1`, `"cudagraph_mode_resolved": []`, `"cudagraph_capture_sizes_resolved": {}`)),
			noValid + "#0 missing or invalid dp_rank, missing or invalid worker_rank, missing or invalid tp_rank, invalid pp_rank, invalid pcp_rank, invalid attention_backends, invalid mla_prefill_backend, invalid cudagraph_mode_resolved, invalid cudagraph_capture_sizes_resolved"},
		{"empty backend", one, list(answer(0, `"attention_backends": {"a": "A", "b": ""}`)), noValid + "#0 invalid attention_backends"},
		{"no backends at all", one, list(answer(0, "-\"attention_backends\"")), noValid + "#0 invalid attention_backends"},
		{"empty object of backends", one, list(answer(0, `"attention_backends": {}`)), "worker_probe; observed; 0/0; missing []; complete"},
		{"size 0", one, list(answer(0, `"cudagraph_capture_sizes_resolved": [1, 0]`)), noValid + "#0 invalid cudagraph_capture_sizes_resolved"},
		{"sizes null", one, list(answer(0, `"cudagraph_capture_sizes_resolved": null`)), noValid + "#0 invalid cudagraph_capture_sizes_resolved"},
		{"mode and prefill absent", one, list(answer(0, "-\"mla_prefill_backend\"", "-\"cudagraph_mode_resolved\"")), "worker_probe; observed; 0/0; missing []; complete"},
		{"NaN", one, list(answer(0, `"x": [NaN, "NaN"]`)), noValid + "#0 non-JSON response: ValueError"},
		{"NaN as a rank", one, list(answer(0, `"dp_rank": NaN`), "-Infinity", answer(0)), "worker_probe_partial; observed; 0/0; missing []; #0 non-JSON response: ValueError, missing or invalid dp_rank; #1 non-JSON response: ValueError, response is not an object"},
		{"the same worker twice", two, list(answer(0), answer(0), answer(1)), "worker_probe_partial; observed; 1/0; missing [0]; #0 duplicate (dp_rank, worker_rank); #1 duplicate (dp_rank, worker_rank)"},
		{"the same worker once sound", one, list(answer(0), answer(0, `"pp_rank": true`)), "worker_probe_partial; observed; 0/0; missing []; #1 invalid pp_rank"},
		{"topology", one, list(answer(0, `"pp_rank": 1`)), "worker_probe_unobserved; observed; missing [0]; #0 worker ranks disagree with TP/PCP/PP topology"},
		{"topology with null", one, list(answer(0, `"pcp_rank": null`)), "worker_probe_unobserved; observed; missing [0]; #0 worker ranks disagree with TP/PCP/PP topology"},
		{"stages", slots, list(worker(3, 1, 1), worker(0, 0, 0), worker(2, 0, 1), worker(1, 1, 0)), "worker_probe; observed; 0/3; 0/0; 0/2; 0/1; missing []; complete"},
		{"a stage missing", slots, list(worker(3, 1, 1), worker(0, 0, 0), worker(2, 0, 1)), "worker_probe_partial; observed; 0/3; 0/0; 0/2; missing []"},
		{"shared slot", slots, list(worker(0, 0, 0), worker(4, 0, 0), worker(1, 1, 0)), "worker_probe_partial; observed; 0/1; missing []; #0 duplicate (dp_rank, tp_rank, pcp_rank, pp_rank); #1 duplicate (dp_rank, tp_rank, pcp_rank, pp_rank)"},
		{"worker rank of 30 digits", slots, list(worker(0, 1, 1, `"worker_rank": 100000000000000000000000000007`), `0`), "worker_probe_partial; observed; 0/0; missing []; #1 response is not an object"},
		{"other layers do not disagree", slots, list(worker(0, 0, 0), worker(2, 0, 1, `"attention_backends": {"l1": "B"}`)), "worker_probe_partial; observed; 0/0; 0/2; missing []"},
		{"everything disagrees", two, list(answer(0), answer(1, `"attention_backends": {"l0": "B"}`, `"mla_prefill_backend": "N"`, `"cudagraph_mode_resolved": "NONE"`, `"cudagraph_capture_sizes_resolved": [2, 1]`)),
			"worker_probe_mixed; observed; 0/0; 1/0; missing []; complete; disagree attention_backends,mla_prefill_backend,cudagraph_mode_resolved,cudagraph_capture_sizes_resolved"},
		{"null does not disagree", two, list(answer(0), answer(1, `"mla_prefill_backend": null`, `"cudagraph_mode_resolved": null`)), "worker_probe; observed; 0/0; 1/0; missing []; complete"},
		{"spellings do not disagree", two, list(answer(0), answer(1, `"attention_backends": {"\u006c0": "\u0041"}`, `"cudagraph_capture_sizes_resolved": [ 1,2 ]`)), "worker_probe; observed; 0/0; 1/0; missing []; complete"},
		{"capture errors", one, list(answer(0, `"capture_errors": {"a": "b"}`)), "worker_probe_partial; observed; 0/0; missing []"},
		{"capture errors of another type", one, list(answer(0, `"capture_errors": []`)), "worker_probe_partial; observed; 0/0; missing []"},
		{"capture errors null", one, list(answer(0, `"capture_errors": null`)), "worker_probe; observed; 0/0; missing []; complete"},
		{"capture errors empty", one, list(answer(0, `"capture_errors": { }`)), "worker_probe; observed; 0/0; missing []; complete"},
	} {
		if strings.Contains(c.name, "30 digits") {
			c.want = strings.Replace(c.want, "0/0", "0/", 1) // it does not fit what this test reads
		}
		t.Run(c.name, func(t *testing.T) {
			merged := place(t, c.merged)
			sound(t, Options{Merged: merged, Probe: given(c.replies)})
			text := load(t, SidecarPath(merged))
			if strings.Contains(c.name, "30 digits") {
				if !strings.Contains(text, `"worker_rank": 100000000000000000000000000007,`) || !strings.Contains(text, `"worker_probe_partial"`) {
					t.Errorf("not observed:\n%s", text)
				}
				return
			}
			if diff := cmp.Diff(c.want, decode(t, text).Merged.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			// What was written is what its own responses give.
			again := sound(t, Options{Merged: merged})
			if again.Summary.Resolution != decode(t, text).Merged.Resolution {
				t.Errorf("checked: %s", again.Summary.Resolution)
			}
		})
	}
}

// Views of source ranks observe their own rank only, and everybody's issues count.
func TestRankViews(t *testing.T) {
	merged := place(t, strings.Replace(artifactText(2, 1, 1, 1), `"source_ranks": [0, 1]`, `"source_ranks": [0, 1, "x", 7]`, 1))
	sound(t, Options{Merged: merged, Probe: given(list(answer(1), answer(0, `"pp_rank": 1`), answer(7)))})
	d := decode(t, load(t, SidecarPath(merged)))
	got := map[string]string{"merged": d.Merged.String()}
	for label, o := range d.Ranks {
		got[label] = o.String()
	}
	want := map[string]string{
		"merged": "worker_probe_partial; observed; 1/0; missing [0]; #1 worker ranks disagree with TP/PCP/PP topology",
		"0":      "worker_probe_unobserved; observed; missing [0]; #1 worker ranks disagree with TP/PCP/PP topology",
		"1":      "worker_probe; observed; 1/0; missing []; complete",
		"7":      "worker_probe; observed; 7/0; missing []; complete",
		"x":      "worker_probe_unobserved; observed; missing []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if file := d.Ranks["1"].RankFile; file == nil || *file != "/gone/r1.json" || d.Ranks["7"].RankFile != nil {
		t.Errorf("files of the ranks: %v, %v", file, d.Ranks["7"].RankFile)
	}
}

// What the merged artifact does not say is unknown, not assumed.
func TestUnknown(t *testing.T) {
	text := artifactText(2, 1, 1, 1)
	for name, c := range map[string]struct{ old, new, want string }{
		"ranks":      {`"ranks": [0, 1],`, "", "worker_probe_partial; observed; 0/0; 1/0; missing []"},
		"ranks odd":  {`"ranks": [0, 1],`, `"ranks": [0, 0],`, "worker_probe_partial; observed; 0/0; 1/0; missing []"},
		"ranks none": {`"ranks": [0, 1],`, `"ranks": [],`, "worker_probe_unobserved; observed; missing []"},
		"sizes":      {`"tensor_parallel_size": 1`, `"tensor_parallel_size": true`, "worker_probe_partial; observed; 0/0; 1/0; missing []"},
		"size 0":     {`"tensor_parallel_size": 1`, `"tensor_parallel_size": 0`, "worker_probe_partial; observed; 0/0; 1/0; missing []"},
		"too many":   {`"tensor_parallel_size": 1`, `"tensor_parallel_size": 9223372036854775808`, "worker_probe_partial; observed; 0/0; 1/0; missing []"},
		"parallel":   {`"parallel": {`, `"other": {`, "worker_probe_partial; observed; 0/0; 1/0; missing []"},
	} {
		merged := place(t, strings.Replace(text, c.old, c.new, 1))
		result := sound(t, Options{Merged: merged, Probe: given(list(answer(0), answer(1)))})
		if got := decode(t, load(t, SidecarPath(merged))).Merged.String(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if len(result.Summary.Coverage.Doubts) == 0 {
			t.Errorf("%s: no doubt", name)
		}
	}
}

// The whole file, once: keys, their order, literals as they came, layout.
func TestSidecarBytes(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	reply := strings.Replace(answer(0, `"x": {"z": [1.50, 1E5, "\u00E9\/é\ud800", {}, [ ]]}`), `"M"`, `"\u004d"`, 1)
	sound(t, Options{Merged: merged, Probe: given(list(reply, `{"b":-Infinity , "a": "NaN"}`))})
	got := load(t, SidecarPath(merged))
	golden := filepath.Join("testdata", "sidecar.json")
	if *update {
		save(t, golden, got)
	}
	if diff := cmp.Diff(load(t, golden), got); diff != "" {
		t.Errorf("(-golden +got):\n%s", diff)
	}
}

func TestFailures(t *testing.T) {
	for text, rule := range map[string]finding.ID{
		Failed("TimeoutError: "): finding.ProbeFailed, Skipped("my.Extension"): finding.ProbeSkipped,
	} {
		merged := place(t, artifactText(2, 1, 1, 1))
		result := sound(t, Options{Merged: merged, Probe: failing(text)})
		if len(result.Findings) != 1 || result.Findings[0].Rule != rule {
			t.Errorf("%q: findings %v", text, rules(result))
		}
		d := decode(t, load(t, SidecarPath(merged)))
		if d.Merged.Resolution != text || *d.Merged.WorkerProbe.Error != text || d.Ranks["1"].Resolution != text || len(d.Merged.WorkerProbe.Responses) != 0 {
			t.Errorf("%q: %s", text, d.Merged)
		}
		if got := do(t, Options{Merged: merged}); got.Summary.Resolution != text || got.Errors > 0 {
			t.Errorf("%q checked: %v, %v", text, got.Summary, rules(got))
		}
	}
}

func TestRequire(t *testing.T) {
	mixed := list(answer(0), answer(1, `"mla_prefill_backend": "N"`))
	ids := func(list ...finding.ID) []finding.ID { return list }
	for _, c := range []struct {
		replies string
		require Requirement
		want    []finding.ID
	}{
		{"[]", Nothing, nil},
		{"[]", Observed, ids(finding.ProbeUnobserved)},
		{"[]", Complete, ids(finding.ProbeUnobserved, finding.ProbeIncomplete)},
		{list(answer(0)), Agree, nil},
		{list(answer(0)), Complete, ids(finding.ProbeIncomplete)},
		{mixed, Observed, nil},
		{mixed, Agree, ids(finding.ProbeDisagree)},
		{mixed, Complete, ids(finding.ProbeDisagree)},
		{list(answer(0), answer(1)), Complete, nil},
	} {
		merged := place(t, artifactText(2, 1, 1, 1))
		for range 2 { // made, then checked
			result := do(t, Options{Merged: merged, Probe: given(c.replies), Require: c.require})
			var got []finding.ID
			for _, f := range result.Findings {
				if f.Severity == finding.Error {
					got = append(got, f.Rule)
				}
			}
			slices.Sort(got)
			if slices.Sort(c.want); !slices.Equal(got, c.want) {
				t.Errorf("%s %s: %v, want %v", c.replies, c.require, got, c.want)
			}
			if !fileExists(SidecarPath(merged)) {
				t.Errorf("%s %s: no sidecar", c.replies, c.require)
			}
		}
	}
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Text that is no JSON makes no sidecar, and every fault has its rule and place.
func TestBrokenReplies(t *testing.T) {
	long := strings.Repeat("x", 17<<20)
	for name, c := range map[string]struct{ replies, want string }{
		"nothing":       {"", "json.syntax  1:1"},
		"cut":           {`[{"a": 1}`, "json.syntax  1:10"},
		"tail":          {"[]]", "json.syntax  1:3"},
		"NaN as a key":  {`[{NaN: 1}]`, "json.syntax"},
		"NaN beside":    {`[1NaN]`, "json.syntax"},
		"NaN in a word": {`[NaNs]`, "json.syntax"},
		"two keys":      {"[\n{\"a\": 1, \"\\u0061\": 2}]", "json.duplicate-key /0/a 2:10"},
		"deep":          {strings.Repeat("[", 600) + strings.Repeat("]", 600), "json.depth"},
		"many":          {"[" + strings.Repeat("0,", 1<<17) + "0]", "input.limit"},
		"long":          {`["` + long + `"]`, "input.limit"},
		"long NaN":      {`[["` + long[:9<<20] + `","` + long[:9<<20] + `",NaN]]`, "input.limit /0 1:2"},
	} {
		merged := place(t, artifactText(1, 1, 1, 1))
		result := do(t, Options{Merged: merged, Probe: given(c.replies)})
		got := strings.Join(rules(result), "; ")
		if result.Errors != 1 || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if fileExists(SidecarPath(merged)) {
			t.Errorf("%s: a sidecar", name)
		}
	}
	if text, err := ReadReplies(strings.NewReader(strings.Repeat(" ", MaxReplies+100))); err != nil || len(text) != MaxReplies+1 {
		t.Errorf("read %d bytes: %v", len(text), err)
	} else if _, err := parseReplies(text); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("too long a text: %v", err)
	}
}

func TestMergedArtifact(t *testing.T) {
	long := strings.Repeat("n", 12<<20)
	called := false
	ask := func(context.Context) (Input, error) { called = true; return Input{Replies: []byte("[]")}, nil }
	for name, c := range map[string]struct {
		text string
		want string
		code exitcode.Code
	}{
		"no engine":     {`{"artifact_type": "merged"}`, "probe.no-engine /engine 1:1", 0},
		"null engine":   {"{\n\"engine\": null}", "probe.no-engine /engine 2:11", 0},
		"no object":     {`[]`, "probe.no-engine /engine 1:1", 0},
		"broken":        {`{"engine": {}`, "json.syntax", 0},
		"NaN":           {`{"engine": {"a": NaN}}`, "json.number", 0},
		"rank artifact": {`{"artifact_type": "rank", "engine": {}}`, "", exitcode.Rejected},
		"rank's dp":     {`{"engine": {}, "dp": {"rank": 0, "size": 1}}`, "", exitcode.Rejected},
		"many values":   {`{"engine": {"a": [` + strings.Repeat("0,", 1<<20) + `0]}}`, "input.limit", 0},
		"long names":    {`{"a` + long + `": 1, "b` + long + `": 2, "c` + long + `": {}}`, "input.limit", 0},
		"many ranks":    {`{"engine": {}, "dp": {"source_ranks": [` + strings.Repeat("0,", 1<<16) + `0]}}`, "input.limit /dp/source_ranks", 0},
	} {
		merged := place(t, c.text)
		result := do(t, Options{Merged: merged, Probe: ask})
		if len(result.Failures) == 0 && c.code != 0 {
			t.Errorf("%s: taken", name)
			continue
		}
		if got := strings.Join(rules(result), "; "); c.code == 0 && !strings.HasPrefix(got, c.want) || c.code != 0 && result.Failures[0].Code != c.code {
			t.Errorf("%s: %s %v, want %s", name, got, result.Failures, c.want)
		}
		if called || fileExists(SidecarPath(merged)) {
			t.Errorf("%s: somebody was asked, or something written", name)
		}
	}
	if result := do(t, Options{Merged: filepath.Join(t.TempDir(), "none.json"), Probe: ask}); len(result.Failures) != 1 || result.Failures[0].Code != exitcode.Failed {
		t.Errorf("no file: %+v", result.Failures)
	}
}

// Nothing but the sidecar is ever written, whatever paths the artifact has.
func TestNothingElseIsTouched(t *testing.T) {
	dir := t.TempDir()
	merged, elsewhere := filepath.Join(dir, "m.json"), filepath.Join(dir, "else", "x.json")
	if err := os.Mkdir(filepath.Dir(elsewhere), 0o777); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(artifactText(1, 1, 1, 1), "/etc/passwd", elsewhere)
	text = strings.Replace(text, "/gone/r0.json", elsewhere, 1)
	save(t, merged, text)
	for range 2 {
		sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
		sound(t, Options{Merged: merged})
		d, err := OpenDocument(merged)
		if err != nil || !d.Applied() {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if load(t, merged) != text || fileExists(elsewhere) {
		t.Error("the merged artifact changed, or a path from it was used")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("there is now %v", entries)
	}
}

// A sidecar's path may lead elsewhere; it must not make the program replace an artifact.
func TestSidecarTarget(t *testing.T) {
	text := artifactText(1, 1, 1, 1)
	for name, prepare := range map[string]func(merged, sidecar string) error{
		"the merged artifact": func(merged, sidecar string) error { return os.Symlink(merged, sidecar) },
		"a rank artifact": func(_, sidecar string) error {
			return os.WriteFile(sidecar, []byte(`{"artifact_type": "rank"}`), 0o666)
		},
		"an older rank artifact": func(_, sidecar string) error {
			return os.WriteFile(sidecar, []byte(`{"iteration_groups": []}`), 0o666)
		},
		"a directory": func(_, sidecar string) error { return os.Mkdir(sidecar, 0o777) },
		"nowhere":     func(_, sidecar string) error { return os.Symlink("nowhere", sidecar) },
	} {
		merged := place(t, text)
		if err := prepare(merged, SidecarPath(merged)); err != nil {
			t.Fatal(err)
		}
		result := do(t, Options{Merged: merged, Probe: given(list(answer(0))), Force: true})
		if len(result.Failures) != 1 || result.Failures[0].Code != exitcode.Failed || result.Written {
			t.Errorf("%s: %+v", name, result.Failures)
		}
		if load(t, merged) != text {
			t.Errorf("%s: the merged artifact changed", name)
		}
	}
}

// A file that is no sidecar is replaced only when that is asked for, and never through a
// link; a sidecar is replaced through one.
func TestForeignTarget(t *testing.T) {
	text := artifactText(1, 1, 1, 1)
	for name, old := range map[string]string{"text": "no JSON", "other JSON": `{"run_id": "x"}`, "nothing": "", "other schema": `{"schema": "x", "merged": {"worker_probe": {"responses": []}}}`} {
		for _, link := range []bool{false, true} {
			for _, force := range []bool{false, true} {
				merged := place(t, text)
				file := SidecarPath(merged)
				if link {
					file += ".foreign"
					if err := os.Symlink(file, SidecarPath(merged)); err != nil {
						t.Fatal(err)
					}
				}
				save(t, file, old)
				result := do(t, Options{Merged: merged, Probe: given(list(answer(0))), Force: force})
				if want := force && !link; result.Written != want || !want && (load(t, file) != old || result.Failures[0].Code != exitcode.Failed) {
					t.Errorf("%s, link %t, force %t: written %t, %v", name, link, force, result.Written, result.Failures)
				}
			}
		}
	}
	merged := place(t, text)
	sound(t, Options{Merged: merged, Probe: given("[]")})
	if err := os.Rename(SidecarPath(merged), SidecarPath(merged)+".real"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(SidecarPath(merged)+".real", SidecarPath(merged)); err != nil {
		t.Fatal(err)
	}
	if result := sound(t, Options{Merged: merged, Probe: given(list(answer(0)))}); !result.Written || !strings.Contains(load(t, SidecarPath(merged)+".real"), `"representative_worker"`) {
		t.Error("a sidecar that a link leads to is not replaced")
	}
}

// A probe that failed replaces nothing that observed something, unless forced.
func TestKeepsObservations(t *testing.T) {
	merged := place(t, artifactText(2, 1, 1, 1))
	observed := list(answer(0))
	sound(t, Options{Merged: merged, Probe: given(observed)})
	before := load(t, SidecarPath(merged))
	for _, probe := range []func(context.Context) (Input, error){failing(Failed("x")), failing(Skipped("x")), given("[]"), given("[null]")} {
		result := do(t, Options{Merged: merged, Probe: probe})
		if len(result.Failures) != 1 || result.Failures[0].Code != exitcode.Failed || load(t, SidecarPath(merged)) != before {
			t.Errorf("replaced, or not said: %+v", result.Failures)
		}
	}
	if result := sound(t, Options{Merged: merged, Probe: given(list(answer(1)))}); !result.Written {
		t.Error("another observation does not replace it")
	}
	if result := sound(t, Options{Merged: merged, Probe: failing(Failed("x")), Force: true}); !result.Written {
		t.Error("not forced")
	}
	if result := sound(t, Options{Merged: merged, Probe: failing(Skipped("x"))}); !result.Written {
		t.Error("a failure does not replace a failure")
	}
}

// What is copied from the merged artifact is not held, and may be larger than what is; it
// is laid out as everything else.
func TestCopiedParts(t *testing.T) {
	for _, size := range []int{10, 6 << 20} {
		long := strings.Repeat("p", size)
		files := `["` + long + `",{"a":[ ]}, "` + long + `", "` + long + `"]`
		merged := place(t, strings.Replace(artifactText(2, 1, 1, 1), `["/gone/r0.json", "/gone/r1.json"]`, files, 1))
		sound(t, Options{Merged: merged, Probe: failing(Skipped("x"))})
		text := load(t, SidecarPath(merged))
		for _, want := range []string{"\"rank_files\": [\n    \"" + long + "\",\n    {\n      \"a\": []\n    },\n", "\"1\": {\n      \"rank_file\": {\n        \"a\": []\n      },\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("no %.30q…", want)
			}
		}
		if size > 10 {
			continue // reading all of that again shows nothing more
		}
		sound(t, Options{Merged: merged})
		save(t, SidecarPath(merged), strings.Replace(text, `p"`, `q"`, 1))
		if got := rules(do(t, Options{Merged: merged})); !slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "probe.sidecar-stale /rank_files/0") }) {
			t.Errorf("%q", got)
		}
	}
}

// Whether anybody was observed is seen without reading who.
func TestObservedIsSeen(t *testing.T) {
	for list, want := range map[string]bool{"[]": false, "[ \n]": false, "null": false, "{}": false, "[0]": true, "[ {}]": true, "[[]]": true} {
		path := filepath.Join(t.TempDir(), "s.json")
		save(t, path, `{"merged": {"worker_probe": {"responses": [], "coverage": {"observed_workers": `+list+`}}}}`)
		text, err := openText(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := readSidecar(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.observed(); got != want || err != nil {
			t.Errorf("%q: %t, %v", list, got, err)
		}
		if err := text.file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An artifact without a run id keeps what its workers said, too.
func TestKeepsObservationsWithoutRunID(t *testing.T) {
	for _, id := range []string{"", `"run_id": null,`} {
		merged := place(t, strings.Replace(artifactText(1, 1, 1, 1), `"run_id": "r\u00e9",`, id, 1))
		sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
		if result := do(t, Options{Merged: merged, Probe: failing(Failed("x"))}); len(result.Failures) != 1 || result.Written {
			t.Errorf("%q: replaced", id)
		}
	}
}

// What another process wrote since the sidecar's path was looked at first is not replaced
// by a probe that failed: such a process has the lock and gives it back.
func TestKeepsObservationsOfAnotherProcess(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	unlock, err := lockFile(t.Context(), merged)
	if err != nil {
		t.Fatal(err)
	}
	late := make(chan *Result, 1)
	go func() {
		result, err := Run(t.Context(), Options{Merged: merged, Probe: failing(Failed("x"))})
		if err != nil {
			t.Error(err)
		}
		late <- result
	}()
	// Once it has a temporary file it has looked at the path, and found nothing.
	for begun := false; !begun; {
		temps, err := filepath.Glob(filepath.Join(filepath.Dir(merged), ".m_worker_probe.json.fpm-*.tmp"))
		begun = len(temps) > 0
		if err != nil || len(late) > 0 {
			t.Fatalf("it does not wait for the lock, or %v", err)
		}
	}
	other := place(t, load(t, merged))
	sound(t, Options{Merged: other, Probe: given(list(answer(0)))})
	want := load(t, SidecarPath(other))
	if err := os.Rename(SidecarPath(other), SidecarPath(merged)); err != nil {
		t.Fatal(err)
	}
	unlock()
	if result := <-late; result == nil || result.Written || len(result.Failures) != 1 || load(t, SidecarPath(merged)) != want {
		t.Errorf("%+v", result)
	}
}

// Waiting for the lock ends when nobody wants it any more.
func TestLockCancelled(t *testing.T) {
	merged := place(t, "{}")
	unlock, err := lockFile(t.Context(), merged)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lockFile(ctx, merged); err != context.Canceled {
		t.Errorf("%v", err)
	}
	unlock()
	if again, err := lockFile(t.Context(), merged); err != nil {
		t.Error(err)
	} else {
		again()
	}
}

// Too large a sidecar is not written.
func TestSidecarLimit(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
	before := load(t, SidecarPath(merged))
	size := int64(len(before))
	sound(t, Options{Merged: merged, Probe: given(list(answer(0))), maxSidecar: size})
	result := do(t, Options{Merged: merged, Probe: given(list(answer(0))), maxSidecar: size - 1})
	if len(result.Failures) != 1 || result.Failures[0].Code != exitcode.Failed || !strings.Contains(result.Failures[0].Message, "larger than") || load(t, SidecarPath(merged)) != before {
		t.Errorf("%v", result.Failures)
	}
	if entries, err := os.ReadDir(filepath.Dir(merged)); err != nil || len(entries) != 2 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

// What cannot be taken is a failure of the probe where the input says how to record it.
func TestRefusedReplies(t *testing.T) {
	for _, text := range []string{"[1,]", "[] []", "404 page not found", `["\xff"]`, `[{"a": 1, "a": 2}]`, strings.Repeat("[", 600) + strings.Repeat("]", 600)} {
		merged := place(t, artifactText(1, 1, 1, 1))
		ask := func(context.Context) (Input, error) {
			return Input{Name: "http://x", Replies: []byte(text), Refused: func(why *TextError) (failure, hint string) { return Failed("K: " + string(why.Rule)), "h" }}, nil
		}
		result := sound(t, Options{Merged: merged, Probe: ask})
		if got := decode(t, load(t, SidecarPath(merged))).Merged.Resolution; !strings.HasPrefix(got, "probe_failed: K: json.") || result.Warnings != 1 || result.Findings[0].Hint != "h" {
			t.Errorf("%.20q: %q, %+v", text, got, result.Findings)
		}
	}
}

// Whatever somebody changes in a sidecar is found when it is checked.
func TestStale(t *testing.T) {
	merged := place(t, artifactText(2, 2, 1, 1))
	replies := list(
		strings.NewReplacer(`"tp_rank": 0`, `"tp_rank": 1`, `"worker_rank": 0`, `"worker_rank": 1`).Replace(answer(1)),
		answer(0), answer(1, `"pp_rank": 3`), `[NaN]`,
	)
	sound(t, Options{Merged: merged, Probe: given(replies)})
	sidecar := SidecarPath(merged)
	text := load(t, sidecar)
	for _, c := range []struct{ old, new, want string }{
		{`"complete": false`, `"complete": true`, "probe.sidecar-stale /merged/worker_probe/coverage/complete"},
		{`"disagreements": []`, `"disagreements": ["attention_backends"]`, "probe.sidecar-stale /merged/worker_probe/disagreements/0"},
		{`"resolution": "worker_probe_partial"`, `"resolution": "worker_probe"`, "probe.sidecar-stale /merged/resolution"},
		{`"resolved_scope": "representative_worker"`, `"resolved_scope": null`, "probe.sidecar-stale /merged/resolved_scope"},
		{`"backend_resolved": "A"`, `"backend_resolved": "B"`, "probe.sidecar-stale /merged/attention/backend_resolved"},
		{`"missing_dp_ranks": []`, `"missing_dp_ranks": [1]`, "probe.sidecar-stale /merged/worker_probe/coverage/missing_dp_ranks/0"},
		{`"expected_workers_per_dp": 2`, `"expected_workers_per_dp": 1`, "probe.sidecar-stale /merged/worker_probe/coverage/expected_workers_per_dp"},
		{`"rpc_index": 1`, `"rpc_index": 7`, "probe.sidecar-stale /merged/worker_probe/responses/1/rpc_index"},
		{`"worker ranks disagree with TP/PCP/PP topology"`, ``, "probe.sidecar-stale /merged/worker_probe/responses/2/issues/0"},
		{`"error": null`, `"error": "probe_failed: x"`, "probe.sidecar-stale /merged/worker_probe/error"},
		{`"rank_file": "/gone/r0.json"`, `"rank_file": "/gone/r1.json"`, "probe.sidecar-stale /ranks/0/rank_file"},
		{`"ranks": {`, `"ranks": {"9": {},`, "probe.sidecar-stale /ranks/9"},
		{`"1": {`, `"2": {`, "probe.sidecar-stale /ranks/1"},
		{`"merged_output_path": "/etc/passwd"`, `"merged_output_path": "/tmp/x"`, "probe.sidecar-stale /merged_output_path"},
		{`"/gone/r0.json",`, `"/gone/rx.json",`, "probe.sidecar-stale /rank_files/0"},
		{`"run_id": "r\u00e9"`, `"run_id": "other"`, "probe.run-id /run_id 4:13"},
		{`"run_id"`, `"run_ID"`, "probe.run-id /run_id 1:1"},
		{`"merged": {`, `"Merged": {`, "probe.sidecar /merged 1:1"},
		{`"responses": [`, `"Responses": [`, "probe.sidecar /merged/worker_probe"},
		{`"response": {`, `"Response": {`, "probe.sidecar /merged/worker_probe/responses/0"},
		{Schema, "x", "probe.sidecar /schema 2:13"},
		{`"schema_version": 1`, `"schema_version": 1.0`, "probe.sidecar /schema_version 3:21"},
		{text, "[]", "probe.sidecar  1:1"},
		{text, text[:100], "json.syntax"},
	} {
		changed := strings.Replace(text, c.old, c.new, 1)
		if changed == text {
			t.Fatalf("%s does not occur", c.old)
		}
		save(t, sidecar, changed)
		result := do(t, Options{Merged: merged})
		if !slices.ContainsFunc(rules(result), func(r string) bool { return strings.HasPrefix(r, c.want) }) {
			t.Errorf("%.40q -> %.40q: %v %v, want %s", c.old, c.new, rules(result), result.Failures, c.want)
		}
		if d, err := result.Apply(merged); d != nil || err != nil {
			t.Errorf("%.40q -> %.40q: it would be applied, or %v", c.old, c.new, err)
		}
	}
	// Another layout or spelling is no difference.
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		t.Fatal(err)
	}
	save(t, sidecar, strings.Replace(compact.String(), `"A"`, `"\u0041"`, 1))
	sound(t, Options{Merged: merged})
}

// Python's own representation cannot be read again: the recorded issues stand.
func TestOpaqueRepresentation(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	sound(t, Options{Merged: merged, Probe: given(list(`{"a": NaN}`))})
	text := load(t, SidecarPath(merged))
	save(t, SidecarPath(merged), strings.ReplaceAll(text, `"{\"a\": NaN}"`, `"{'a': nan}"`))
	result := sound(t, Options{Merged: merged})
	if result.Summary.Coverage.WithIssues != 1 {
		t.Errorf("%+v", result.Summary)
	}
}

// Recorded issues are never taken on trust: a reply is malformed because of what it is.
func TestTamperedIssues(t *testing.T) {
	merged := place(t, artifactText(2, 1, 1, 1))
	sidecar := SidecarPath(merged)
	sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
	whole := load(t, sidecar)
	hidden := strings.NewReplacer(`"issues": []`, `"issues": ["non-JSON response: ValueError"]`).Replace(whole)
	sound(t, Options{Merged: merged, Probe: given(list(answer(0, `"x": NaN`, `"layers": "`+strings.Repeat("a,", 20)+`"`))), Force: true})
	long := load(t, sidecar)
	opaque := strings.ReplaceAll(long, `NaN`, `nan`)
	for name, c := range map[string]struct {
		text  string
		sound bool
	}{
		"a sound reply":                     {hidden, false},
		"a third member":                    {strings.Replace(long, `"unserializable_type": "dict"`, `"unserializable_type": "dict", "x": 1`, 1), false},
		"another type":                      {strings.Replace(long, `"dict"`, `"list"`, 1), false},
		"as it was":                         {long, true},
		"as Python says it":                 {opaque, true},
		"an unknown issue":                  {strings.ReplaceAll(opaque, `"non-JSON response: ValueError"`, `"non-JSON response: ValueError", "made up"`), false},
		"issues of a text that can be read": {strings.ReplaceAll(long, `"non-JSON response: ValueError"`, `"non-JSON response: ValueError", "invalid pp_rank"`), false},
	} {
		save(t, sidecar, c.text)
		result := do(t, Options{Merged: merged})
		if (result.Errors == 0) != c.sound || !c.sound && !strings.Contains(strings.Join(rules(result), " "), string(finding.ProbeSidecarStale)) {
			t.Errorf("%s: %v", name, rules(result))
		}
	}
}

// Builds before the sidecar kept the result in the engine object.
func TestOlder(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	if result := do(t, Options{Merged: merged}); len(result.Failures) != 1 || result.Failures[0].Code != exitcode.Failed || len(result.Notes) != 0 {
		t.Errorf("without a sidecar: %v, %v", result.Failures, result.Notes)
	}
	sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
	document := applied(t, merged)
	sidecar := load(t, SidecarPath(merged))

	// The merged artifact carries it, and there is no sidecar.
	older := place(t, document)
	result := sound(t, Options{Merged: older, Require: Complete})
	if result.Summary.Resolution != "worker_probe" || len(result.Notes) != 2 {
		t.Errorf("%+v, notes %q", result.Summary, result.Notes)
	}
	// It is replaced by what is new.
	sound(t, Options{Merged: older, Probe: given("[]")})
	if got := applied(t, older); !strings.Contains(got, errNoValid) || strings.Contains(got, "worker_probe_partial") {
		t.Errorf("applied:\n%s", got)
	}
	// The sidecar carries it in an engine object.
	save(t, SidecarPath(merged), strings.Replace(sidecar, `"merged": {`, `"engine": {`, 1))
	result = sound(t, Options{Merged: merged})
	if result.Summary.Resolution != "worker_probe" || len(result.Notes) != 1 {
		t.Errorf("%+v, notes %q", result.Summary, result.Notes)
	}
}

func TestCancelled(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	probe := func(context.Context) (Input, error) {
		cancel()
		return Input{Replies: []byte("[]")}, nil
	}
	if _, err := Run(ctx, Options{Merged: merged, Probe: probe}); err != context.Canceled || fileExists(SidecarPath(merged)) {
		t.Errorf("%v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Options{Merged: merged, Probe: given("[]")}); err != context.Canceled {
		t.Errorf("while reading: %v", err)
	}
	result := do(t, Options{Merged: merged, Probe: func(context.Context) (Input, error) { return Input{}, fs.ErrPermission }})
	if len(result.Failures) != 1 || fileExists(SidecarPath(merged)) {
		t.Errorf("%v", result.Failures)
	}
}

// meter adds up what it is told.
type meter struct{ expected, done int64 }

func (m *meter) Expect(bytes int64) { m.expected += bytes }
func (m *meter) Add(bytes int64)    { m.done += bytes }

func TestProgress(t *testing.T) {
	merged := place(t, artifactText(1, 1, 1, 1))
	sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
	var m meter
	sound(t, Options{Merged: merged, Progress: &m})
	if want := int64(len(load(t, merged)) + len(load(t, SidecarPath(merged)))); m.expected != want || m.done != want {
		t.Errorf("%+v, want %d", m, want)
	}
}

// randomReplies are replies of a small fleet, some of them odd.
func randomReplies(r *rand.Rand) []string {
	odd := []string{`null`, `{}`, `[NaN]`, answer(0, `"pp_rank": 1`), answer(0, `"dp_rank": true`), answer(9)}
	var replies []string
	for range r.IntN(8) {
		if r.IntN(4) == 0 {
			replies = append(replies, odd[r.IntN(len(odd))])
			continue
		}
		w := r.IntN(5)
		replies = append(replies, answer(r.IntN(3),
			fmt.Sprintf(`"worker_rank": %d`, w), fmt.Sprintf(`"tp_rank": %d`, w%2),
			fmt.Sprintf(`"attention_backends": {"l%d": "%c"}`, r.IntN(2), 'A'+rune(r.IntN(2)))))
	}
	return replies
}

// facts are what must not depend on the order of replies.
func (o outcome) facts() string {
	var workers []string
	for _, w := range o.WorkerProbe.Coverage.Observed {
		workers = append(workers, fmt.Sprint(w.DP, "/", w.Worker))
	}
	slices.Sort(workers)
	return fmt.Sprint(workers, o.WorkerProbe.Coverage.Missing, o.WorkerProbe.Coverage.Complete, o.WorkerProbe.Disagreements, o.Resolution, *o.Attention["resolution"])
}

func results(t *testing.T, merged string, replies []string) map[string]outcome {
	t.Helper()
	sound(t, Options{Merged: merged, Probe: given(list(replies...)), Force: true})
	d := decode(t, load(t, SidecarPath(merged)))
	all := maps.Clone(d.Ranks)
	all["merged"] = d.Merged
	return all
}

func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	merged := place(t, artifactText(3, 2, 1, 1))
	for range 60 {
		replies := randomReplies(r)
		before := results(t, merged, replies)

		shuffled := slices.Clone(replies)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		for view, o := range results(t, merged, shuffled) {
			if o.facts() != before[view].facts() {
				t.Fatalf("%s of %s: %s, shuffled %s", view, replies, before[view].facts(), o.facts())
			}
		}
		for view, o := range before {
			checkScope(t, view, o)
		}
		if len(replies) == 0 {
			continue
		}
		again := append(slices.Clone(replies), replies[r.IntN(len(replies))])
		for view, o := range results(t, merged, again) {
			if now, was := o.WorkerProbe.Coverage, before[view].WorkerProbe.Coverage; len(now.Observed) > len(was.Observed) || now.Complete && !was.Complete {
				t.Fatalf("%s of %s: a duplicate raised the coverage", view, again)
			}
		}
	}
}

// checkScope checks that a rank's view observes nobody else's reply, and that it is not
// complete beside a reply with issues.
func checkScope(t *testing.T, view string, o outcome) {
	t.Helper()
	for _, w := range o.WorkerProbe.Coverage.Observed {
		if view != "merged" && fmt.Sprint(w.DP) != view {
			t.Fatalf("the view of rank %s observes rank %d", view, w.DP)
		}
	}
	for _, reply := range o.WorkerProbe.Responses {
		if len(reply.Issues) > 0 && o.WorkerProbe.Coverage.Complete {
			t.Fatalf("complete, although a reply has issues: %s", o)
		}
	}
}

// Complete coverage claims nothing about a backend that a worker did not name.
func TestSilentWorkers(t *testing.T) {
	merged := place(t, artifactText(2, 1, 1, 1))
	silent := `"attention_backends": {}`
	for n, replies := range []string{list(answer(0), answer(1)), list(answer(0), answer(1, silent)), list(answer(0, silent), answer(1, silent))} {
		s := sound(t, Options{Merged: merged, Probe: given(replies)}).Summary
		said := strings.Contains(s.Conclusion, "said nothing")
		if !s.Coverage.Complete || s.Silent != n || said != (n > 0) {
			t.Errorf("%d silent: %d, conclusion %q", n, s.Silent, s.Conclusion)
		}
	}
}
