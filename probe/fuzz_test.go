package probe

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// FuzzReplies: whatever the replies are, they make no sidecar or one that is sound JSON,
// that keeps every reply, and whose own responses give it again.
func FuzzReplies(f *testing.F) {
	for _, text := range []string{
		"[]", "null", answer(0), list(answer(0), answer(1)), `{"results": [NaN, -Infinity, {"a": Infinity}]}`,
		list(answer(0, `"worker_rank": 10000000000000000000`), answer(0)), `[{"dp_rank": -0, "\ud800": "\u00e9"}]`,
		`[[], {}, "NaN", 1e5, true]`, `[{"attention_backends": {"l": "A"}, "capture_errors": { }}]`, "[1NaN]", "[\n1 ,\t2]",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		merged := filepath.Join(t.TempDir(), "m.json")
		if err := os.WriteFile(merged, []byte(artifactText(2, 2, 1, 1)), 0o666); err != nil {
			t.Fatal(err)
		}
		made := do(t, Options{Merged: merged, Probe: given(string(text))})
		if made.Errors > 0 {
			if fileExists(SidecarPath(merged)) {
				t.Fatal("a sidecar of replies that are at fault")
			}
			return
		}
		if len(made.Failures) > 0 {
			t.Fatal(made.Failures)
		}
		sidecar := []byte(load(t, SidecarPath(merged)))
		if _, err := jsonstream.Check(bytes.NewReader(sidecar), jsonstream.Limits{}); err != nil {
			t.Fatalf("%v\n%s", err, sidecar)
		}
		checked := do(t, Options{Merged: merged})
		if checked.Errors > 0 || len(checked.Failures) > 0 {
			t.Fatalf("checked: %v %v\n%s", rules(checked), checked.Failures, sidecar)
		}
		if a, b := made.Summary, checked.Summary; a.Resolution != b.Resolution || a.Coverage.Replies != b.Coverage.Replies || a.Coverage.WithIssues != b.Coverage.WithIssues {
			t.Fatalf("made %+v, checked %+v", a, b)
		}
	})
}

// FuzzSidecar: whatever stands in the sidecar's place, it is judged without a crash, and
// what it makes of the merged document is sound JSON.
func FuzzSidecar(f *testing.F) {
	merged := place(f, artifactText(2, 1, 1, 1))
	for _, replies := range []string{"[]", list(answer(0), answer(1), `[NaN]`), list(answer(0), answer(0))} {
		sound(f, Options{Merged: merged, Probe: given(replies), Force: true})
		f.Add([]byte(load(f, SidecarPath(merged))))
	}
	for _, text := range []string{
		"", "{}", `{"run_id": "r\u00e9", "engine": {"worker_probe": {"responses": [{"response": 1}]}}}`,
		`{"merged": {"worker_probe": {"responses": [{"response": {"unserializable_type": "dict", "repr": "{'a': nan}"}, "issues": ["non-JSON response: ValueError"]}]}}}`,
		`{"schema": "dynamo.fpm.benchmark_worker_probe", "schema_version": 1, "run_id": "ré", "merged": {"worker_probe": {"responses": []}, "resolution": [ 1,2 ], "attention": 3}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		merged := filepath.Join(t.TempDir(), "m.json")
		for path, text := range map[string][]byte{merged: []byte(artifactText(2, 1, 1, 1)), SidecarPath(merged): text} {
			if err := os.WriteFile(path, text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		result := do(t, Options{Merged: merged})
		if result.Summary == nil && result.Errors == 0 && len(result.Failures) == 0 {
			t.Fatal("neither judged nor refused")
		}
		alone := checkSidecar(t, SidecarPath(merged), CheckOptions{})
		if alone.Summary == nil && alone.Errors == 0 && len(alone.Failures) == 0 {
			t.Fatal("without the merged artifact it is neither judged nor refused")
		}
		document := []byte(applied(t, merged))
		if _, err := jsonstream.Check(bytes.NewReader(document), jsonstream.Limits{}); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
	})
}
