package show

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/cmd/internal/synthesis"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

// recorded writes a recording, with what a recorder keeps beside it, and returns its
// directory.
func recorded(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := synthesis.Run(t.Context(), simulate.Options{Dir: dir, Ranks: 2, Points: 1, Raw: 1}, synthesis.Recording); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"recording.manifest.lock": "", "recording.manifest.json": `{"schema": "fpm.trace.manifest", "schema_version": 1}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A recording is the same whether its directory, its prefix, a pattern or its files are
// named; what lies beside it changes nothing.
func TestRecordingByAnyName(t *testing.T) {
	dir := recorded(t)
	files, err := filepath.Glob(filepath.Join(dir, "recording.*"))
	if err != nil || len(files) != 8 {
		t.Fatalf("%q, %v", files, err)
	}
	backwards := slices.Clone(files)
	slices.Reverse(backwards)
	prefix := filepath.Join(dir, "recording")
	for _, paths := range [][]string{{dir}, {dir + "/"}, {prefix}, {prefix + ".jsonl.gz"}, {prefix + ".w*"}, {prefix + "*"}, files, backwards, {prefix + ".worker-1", prefix + ".worker-0"}} {
		var p told
		r, err := Read(context.Background(), Options{Paths: paths, Progress: &p})
		if err != nil || len(r.Findings)+len(r.Failures) > 0 || len(r.Documents) != 1 {
			t.Errorf("%q: %+v, %v", paths, r, err)
			continue
		}
		d := r.Documents[0]
		if d.Kind != detect.Trace || len(d.Files) != 6 || d.Trace.Rows != 24 || p.expected == 0 || p.done != p.expected {
			t.Errorf("%q: %+v, progress %+v", paths, d, p)
		}
		if text := strings.Join(d.Text(Selection{}, Layout{Width: 100, Limit: 1}), "\n"); !strings.Contains(text, "worker-0     0") || !strings.Contains(text, "and 3 more streams; --all prints all") {
			t.Errorf("%q: %s", paths, text)
		}
	}
}

func TestRefusedTraces(t *testing.T) {
	dir := recorded(t)
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"none.jsonl": "", "packed.jsonl.zst": "no matter", "one.jsonl": traceText} {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		paths []string
		rule  finding.ID
		code  exitcode.Code
	}{
		{[]string{path("recording.manifest.json")}, finding.InputKind, 0},
		{[]string{path("recording.manifest.lock")}, "", exitcode.Usage},
		{[]string{path("none.jsonl")}, finding.TraceEmpty, 0},
		{[]string{path("packed.jsonl.zst")}, "", exitcode.Failed},
		{[]string{path("other")}, "", exitcode.Failed},
		{[]string{path("other"), path("one.jsonl")}, "", exitcode.Failed},
	} {
		r, err := Read(context.Background(), Options{Paths: c.paths})
		switch {
		case err != nil:
			t.Errorf("%q: %v", c.paths, err)
		case c.rule != "" && (len(r.Findings) != 1 || r.Findings[0].Rule != c.rule || len(r.Failures) > 0):
			t.Errorf("%q: %+v", c.paths, r)
		case c.rule == "" && (len(r.Failures) != 1 || r.Failures[0].Code != c.code || len(r.Findings) > 0):
			t.Errorf("%q: %+v", c.paths, r)
		}
	}
}
