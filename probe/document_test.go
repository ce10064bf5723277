package probe

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// applied returns the whole document of a merged artifact with its sidecar.
func applied(t testing.TB, merged string) string {
	t.Helper()
	d := open(t, merged)
	var b bytes.Buffer
	if n, err := d.WriteTo(&b); err != nil || n != d.Size() || n != int64(b.Len()) {
		t.Fatalf("%d bytes of %d: %v", n, d.Size(), err)
	}
	return b.String()
}

func open(t testing.TB, merged string) *Document {
	t.Helper()
	d, err := OpenDocument(merged)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

const placeholders = `{
  "a": 1.0,
  "run_id": "r",
  "dp": {
    "ranks": [
      0
    ]
  },
  "engine": {
    "resolved": null,
    "attention": {
      "mla_prefill_backend_resolved": null,
      "backend_requested": null
    },
    "resolution": "pending_worker_probe",
    "last": 1E5
  },
  "z": "\u00e9"
}`

// Existing keys stay in place, new ones come behind; everything else keeps its text.
func TestApply(t *testing.T) {
	merged := place(t, placeholders)
	sound(t, Options{Merged: merged, Probe: failing(Skipped("x"))})
	const want = `{
  "a": 1.0,
  "run_id": "r",
  "dp": {
    "ranks": [
      0
    ]
  },
  "engine": {
    "resolved": null,
    "attention": {
      "mla_prefill_backend_resolved": null,
      "backend_requested": null,
      "backend_resolved": null,
      "resolution": "probe_skipped: x"
    },
    "resolution": "probe_skipped: x",
    "last": 1E5,
    "worker_probe": {
      "schema_version": 1,
      "scope": "post_collection_collective_rpc",
      "responses": [],
      "coverage": {
        "scope": "artifact_workers",
        "expected_dp_ranks": [
          0
        ],
        "expected_workers_per_dp": null,
        "observed_workers": [],
        "missing_dp_ranks": [
          0
        ],
        "complete": false
      },
      "disagreements": [],
      "error": "probe_skipped: x"
    },
    "resolved_scope": null
  },
  "z": "\u00e9"
}`
	if diff := cmp.Diff(want, applied(t, merged)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A sidecar in another layout gives the same document.
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(load(t, SidecarPath(merged)))); err != nil {
		t.Fatal(err)
	}
	save(t, SidecarPath(merged), compact.String())
	if diff := cmp.Diff(want, applied(t, merged)); diff != "" {
		t.Errorf("from a compact sidecar (-want +got):\n%s", diff)
	}
}

// A sidecar of the same run is applied, whatever the run id is, if there is one.
func TestAppliedWithoutRunID(t *testing.T) {
	for _, id := range []string{"", `"run_id": null,`, `"run_id": 5,`, `"run_id": "",`, `"run_id": {"a": [1]},`} {
		merged := place(t, strings.Replace(placeholders, `"run_id": "r",`, id, 1))
		sound(t, Options{Merged: merged, Probe: failing(Skipped("x"))})
		if d := open(t, merged); !d.Applied() || d.Note() != "" {
			t.Errorf("%q: not applied: %s", id, d.Note())
		}
	}
}

// What is no merged artifact is no document.
func TestNoDocument(t *testing.T) {
	for _, text := range []string{`[1, 2]`, `null`, `{"artifact_type": "rank"}`, `{"dp": {"rank": 0}, "engine": {}}`} {
		d, err := OpenDocument(place(t, text))
		if err == nil {
			t.Errorf("%s is one: %v", text, d.Close())
		} else if !strings.Contains(err.Error(), "no merged artifact") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// In whatever layout the merged artifact is, the document is printed in that of merge.
func TestWriteLaid(t *testing.T) {
	merged := place(t, placeholders)
	sound(t, Options{Merged: merged, Probe: failing(Skipped("x"))})
	want := applied(t, merged)
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(placeholders)); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{placeholders, compact.String(), " " + placeholders + "\n", strings.ReplaceAll(placeholders, "  ", "\t")} {
		save(t, merged, text)
		var b bytes.Buffer
		if err := open(t, merged).WriteLaid(&b); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("%.20q (-want +got):\n%s", text, diff)
		}
	}
}

// Without a sidecar of this run the document is the merged artifact.
func TestNotApplied(t *testing.T) {
	merged := place(t, placeholders)
	sound(t, Options{Merged: merged, Probe: failing(Skipped("x"))})
	sidecar := load(t, SidecarPath(merged))
	for _, c := range []struct{ old, new, note string }{
		{`"run_id": "r"`, `"run_id": "q"`, "another run"},
		{Schema, "x", "is none"},
		{`"merged": {`, `"engine": {`, "older build"},
		{sidecar, "{", "damaged"},
		{`"complete": false`, `"complete": true`, "does not follow from the responses"},
	} {
		save(t, SidecarPath(merged), strings.Replace(sidecar, c.old, c.new, 1))
		d := open(t, merged)
		if d.Applied() || !strings.Contains(d.Note(), c.note) || applied(t, merged) != placeholders {
			t.Errorf("%s: applied %t, note %q", c.note, d.Applied(), d.Note())
		}
		if err := d.Changed(); err != nil {
			t.Errorf("%s: %v", c.note, err)
		}
		save(t, SidecarPath(merged), sidecar+"\n")
		if err := d.Changed(); err == nil {
			t.Errorf("%s: the new sidecar goes unnoticed", c.note)
		}
	}
	if err := os.Remove(SidecarPath(merged)); err != nil {
		t.Fatal(err)
	}
	d := open(t, merged)
	if d.Applied() || d.Note() != "there is no sidecar" || d.Changed() != nil || d.RunID() != "r" {
		t.Errorf("applied %t, note %q", d.Applied(), d.Note())
	}
	save(t, SidecarPath(merged), sidecar)
	if d.Changed() == nil {
		t.Error("a first sidecar goes unnoticed")
	}
	if d := open(t, place(t, `{"run_id": "r"}`)); d.Applied() || !strings.Contains(d.Note(), "no engine") {
		t.Errorf("without an engine: %q", d.Note())
	}
}

// An open document stays what it was when its files are replaced, and says so.
func TestDocumentOfReplacedFiles(t *testing.T) {
	for _, which := range []string{"merged", "sidecar"} {
		merged := place(t, artifactText(1, 1, 1, 1))
		sound(t, Options{Merged: merged, Probe: given(list(answer(0)))})
		want := applied(t, merged)
		d := open(t, merged)
		if err := d.Changed(); err != nil {
			t.Fatal(err)
		}
		path := merged
		if which == "sidecar" {
			path = SidecarPath(merged)
		}
		other := filepath.Join(filepath.Dir(merged), "new")
		save(t, other, "{}")
		if err := os.Rename(other, path); err != nil {
			t.Fatal(err)
		}
		if d.Changed() == nil {
			t.Errorf("%s: its replacement goes unnoticed", which)
		}
		var b bytes.Buffer
		if _, err := d.WriteTo(&b); err != nil || b.String() != want {
			t.Errorf("%s: the document changed: %v", which, err)
		}
	}
}

// A file that was cut off is an error, not a shorter document.
func TestDocumentOfTruncatedFile(t *testing.T) {
	merged := place(t, placeholders)
	d := open(t, merged)
	if err := os.Truncate(merged, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := d.WriteTo(io.Discard); err == nil {
		t.Error("no error")
	}
}

// Any part can be read, by many at once.
func TestDocumentReadAt(t *testing.T) {
	merged := place(t, artifactText(2, 1, 1, 1))
	sound(t, Options{Merged: merged, Probe: given(list(answer(0), `[NaN]`))})
	want := applied(t, merged)
	d := open(t, merged)
	var readers sync.WaitGroup
	for _, step := range []int{1, 7, 100, len(want), len(want) + 1} {
		readers.Go(func() {
			var got []byte
			for buf := make([]byte, step); ; {
				n, err := d.ReadAt(buf, int64(len(got)))
				got = append(got, buf[:n]...)
				if err == io.EOF {
					break
				}
				if err != nil || n != step {
					t.Errorf("step %d: %d, %v", step, n, err)
					return
				}
			}
			if string(got) != want {
				t.Errorf("step %d: another text", step)
			}
		})
	}
	readers.Wait()
	if _, err := d.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is read")
	}
	if n, err := d.ReadAt(make([]byte, 1), d.Size()+5); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
}
