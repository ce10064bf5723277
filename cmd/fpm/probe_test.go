package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/probe"
)

// fleet writes a merged artifact of so many ranks, and the replies of their workers, each
// with so many layers.
func fleet(t testing.TB, dir string, ranks, layers int) (merged, replies string) {
	t.Helper()
	var list []int
	var answers []map[string]any
	backends := map[string]string{}
	for i := range layers {
		backends[fmt.Sprintf("model.layers.%d.self_attn.attn", i)] = "FLASHINFER"
	}
	for i := range ranks {
		list = append(list, i)
		answers = append(answers, map[string]any{
			"dp_rank": i, "worker_rank": 0, "tp_rank": 0, "pp_rank": 0, "pcp_rank": 0,
			"attention_backends": backends, "cudagraph_capture_sizes_resolved": []int{1, 2, 4},
		})
	}
	document := map[string]any{
		"artifact_type": "merged", "run_id": "r", "dp": map[string]any{"ranks": list, "source_ranks": list},
		"engine": map[string]any{"attention": map[string]any{}, "parallel": map[string]any{
			"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "prefill_context_parallel_size": 1,
		}},
	}
	merged, replies = filepath.Join(dir, "m.json"), filepath.Join(dir, "replies.json")
	for path, v := range map[string]any{merged: document, replies: answers} {
		text, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return merged, replies
}

// A probe that is killed, at points of its write, leaves the sidecar old, new or none, and
// whole; the merged artifact keeps its bytes.
func TestKillProbe(t *testing.T) {
	fpm, dir := program(t), t.TempDir()
	merged, replies := fleet(t, dir, 24, 100)
	sidecar := probe.SidecarPath(merged)
	before := read(t, merged)
	must(t, fpm, "probe-report", merged, "--replies", replies)
	fresh := read(t, sidecar)
	must(t, fpm, "probe-report", merged, "--failed", "x", "--force")
	old := read(t, sidecar)

	const points = 30
	for i := range points {
		none := i%2 == 1
		if err := os.WriteFile(sidecar, old, 0o666); err != nil {
			t.Fatal(err)
		}
		if none {
			if err := os.Remove(sidecar); err != nil {
				t.Fatal(err)
			}
		}
		ended := killedAt(t, sidecar, len(fresh)*i/points, fpm, "probe-report", merged, "--replies", replies)
		got, err := os.ReadFile(sidecar)
		switch {
		case err == nil && bytes.Equal(got, fresh):
		case ended == nil:
			t.Fatalf("point %d: the probe came to its end, and the sidecar is not the new one: %d bytes, %v", i, len(got), err)
		case none && os.IsNotExist(err), !none && bytes.Equal(got, old):
		default:
			t.Fatalf("killed at point %d: the sidecar is torn: %d bytes, %v", i, len(got), err)
		}
	}
	must(t, fpm, "probe-report", merged, "--replies", replies)
	if diff := cmp.Diff([]string{"m.json", "m_worker_probe.json", "replies.json"}, names(t, dir)); diff != "" {
		t.Errorf("left behind by killed probes (-want +got):\n%s", diff)
	}
	if !bytes.Equal(read(t, merged), before) {
		t.Error("the merged artifact changed")
	}
}

// server answers as a vLLM server in development mode does.
func server(t *testing.T, status int, body string) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/collective_rpc" || !strings.Contains(string(question), `"fpm_engine_probe"`) {
			t.Errorf("asked %s: %q, %v", r.URL.Path, question, err)
		}
		if r.Header.Get("Authorization") != "Bearer s3cr3t-t0ken" {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s
}

// What the server says becomes what the sidecar records; a failure fails nothing.
func TestProbeURL(t *testing.T) {
	dir := t.TempDir()
	merged, replies := fleet(t, dir, 1, 1)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("s3cr3t-t0ken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := string(read(t, replies))
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string
	}{
		{"answer", 200, `{"results": ` + answer + `}`, `"resolution": "worker_probe"`},
		{"null", 200, "", `"response is not an object"`},
		{"no list", 200, strings.Trim(answer, "[] \n"), `"resolution": "worker_probe"`},
		{"NaN", 200, `{"results": [{"a": NaN}]}`, `"repr": "{\"a\": NaN}"`},
		{"a comma too many", 200, `[1,]`, `"probe_failed: ContentError: `},
		{"no word", 200, `{"a": tru}`, `"probe_failed: `},
		{"two texts", 200, `[] []`, `"probe_failed: ContentError: `},
		{"no UTF-8", 200, "[\"\xff\"]", `"probe_failed: ContentError: `},
		{"no JSON", 200, "404 page not found", `"probe_failed: ContentError: `},
		{"a key twice", 200, `{"a": 1, "a": 2}`, `"probe_failed: ContentError: `},
		{"deep", 200, strings.Repeat("[", 600) + strings.Repeat("]", 600), `"probe_failed: ContentError: `},
		{"many", 200, "[" + strings.Repeat("0,", 1<<17) + "0]", `"probe_failed: LimitError: `},
		{"a long number", 200, strings.Repeat("1", 17<<20), `"probe_failed: LimitError: `},
		{"a long string", 200, `["` + strings.Repeat("x", 17<<20) + `"]`, `"probe_failed: LimitError: `},
		{"no development mode", 404, `{"detail":"Not Found"}`, `"probe_failed: HTTPError: `},
		{"a worker raised", 500, "s3cr3t-t0ken", `"probe_failed: HTTPError: `},
	} {
		var stdout, stderr bytes.Buffer
		args := []string{"probe-report", merged, "--url", server(t, c.status, c.body).URL, "--bearer-file", token, "--force"}
		code := run(t.Context(), args, nil, &stdout, &stderr, noEnv)
		sidecar := string(read(t, probe.SidecarPath(merged)))
		if code != 0 || !strings.Contains(sidecar, c.want) {
			t.Errorf("%s: exit %d\n%s%s\n%s", c.name, code, &stdout, &stderr, sidecar)
		}
		if strings.Contains(c.want, "probe_failed") && (!strings.Contains(stdout.String(), "[probe.failed]") || strings.Contains(stdout.String(), "the file")) {
			t.Errorf("%s: it says\n%s", c.name, &stdout)
		}
		if strings.Contains(stdout.String()+stderr.String()+sidecar, "s3cr3t") {
			t.Errorf("%s: the token is told", c.name)
		}
	}
}

// What is printed without the probe's result says so beside it, and in whose layout it is
// does not matter.
func TestApplyOfOlder(t *testing.T) {
	merged, replies := fleet(t, t.TempDir(), 1, 1)
	invoke := func(args ...string) (stdout, stderr string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(t.Context(), append([]string{"probe-report", merged}, args...), nil, &out, &errs, noEnv); code != 0 {
			t.Fatalf("%q: exit %d\n%s", args, code, &errs)
		}
		return out.String(), errs.String()
	}
	invoke("--replies", replies)
	text := read(t, merged)
	applied, said := invoke("--apply")
	if !strings.Contains(applied, `"representative_worker"`) || strings.Contains(said, "warning") {
		t.Errorf("not applied, or a warning: %s", said)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		t.Fatal(err)
	}
	save := func(path string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	save(merged, compact.Bytes())
	if got, _ := invoke("--apply"); got != applied {
		t.Errorf("from another layout:\n%s", cmp.Diff(applied, got))
	}
	sidecar := probe.SidecarPath(merged)
	save(sidecar, bytes.Replace(read(t, sidecar), []byte(`"merged": {`), []byte(`"engine": {`), 1))
	if got, said := invoke("--apply"); got != string(text) || !strings.Contains(said, "older build") || !strings.Contains(said, "printed as it is") {
		t.Errorf("an older sidecar: %s\n%s", said, cmp.Diff(string(text), got))
	}
	save(merged, []byte(applied))
	if err := os.Remove(sidecar); err != nil {
		t.Fatal(err)
	}
	if got, said := invoke("--apply"); got != applied || !strings.Contains(said, "older build put there") {
		t.Errorf("an older merged artifact: %s\n%s", said, cmp.Diff(applied, got))
	}
}
