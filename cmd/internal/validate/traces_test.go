package validate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/cmd/internal/synthesis"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

// recorded writes a recording, sound or broken, and returns its directory.
func recorded(t *testing.T, rule finding.ID) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := synthesis.Run(t.Context(), simulate.Options{Dir: dir, Ranks: 2, Points: 1, Raw: 1, Break: rule}, synthesis.Recording); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// manifestText is a manifest that names one file.
func manifestText(state, file string) string {
	const counts = `"received":1,"written":1,"heartbeats":0,"busy":1,"gaps":0,"missing":0,"duplicates":0,"restarts":0,"thinned":0,"surplus":0,"queue_drops":0,"disk_drops":0`
	return fmt.Sprintf(`{"schema":"fpm.trace.manifest","schema_version":1,"program":"fpm","state":%q,"complete":true,"note":"n","started_unix_ms":1,"updated_unix_ms":2,"recorded_ms":1,`+
		`"prefix":"recording","capture_mode":"full","roll_bytes":1,"max_segments":4,"totals":{%s,"pending":0,"crowded_out":0,"rejected":0,"bytes":1,"compressed_bytes":1,"segments":1,"deleted_segments":0},`+
		`"endpoints":[],"producers":[{"producer_id":"worker-0","files":[%q],"files_total":1,"streams":[]}]}`, state, counts, file)
}

// All files of traces are one capture, whatever names it; each is checked.
func TestTraces(t *testing.T) {
	t.Parallel()
	dir := recorded(t, "")
	prefix := filepath.Join(dir, "recording")
	put(t, dir, "recording.manifest.lock", "")
	files, err := filepath.Glob(prefix + ".*")
	if err != nil || len(files) != 7 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, paths := range [][]string{{dir}, {prefix}, {prefix + ".*"}, files} {
		var p told
		result := checked(t, Options{Paths: paths, Strict: true, Schema: true, Progress: &p, Expected: Expected{ProducerCount: 2, Ranks: artifact.RankSet{0, 1}}})
		if len(result.Findings)+len(result.Failures) > 0 || len(result.Files) != 6 || len(result.Traces) != 1 || p.expected == 0 || p.done != p.expected {
			t.Errorf("%q: %+v, progress %+v", paths, result, p)
			continue
		}
		if tr := result.Traces[0]; len(tr.Files) != 6 || tr.Rejected || tr.Stats.Rows != 24 {
			t.Errorf("%q: %+v", paths, tr)
		}
		if slices.ContainsFunc(result.Files, func(f File) bool { return !f.Checked || f.Rejected || f.Kind != detect.Trace }) {
			t.Errorf("%q: %+v", paths, result.Files)
		}
	}
}

type told struct{ expected, done int64 }

func (p *told) Expect(n int64) { p.expected += n }
func (p *told) Add(n int64)    { p.done += n }

// Findings about rows say where the row is in the text of the segment, and nothing looks
// for that again.
func TestTracePlaces(t *testing.T) {
	t.Parallel()
	dir := recorded(t, finding.TraceRow)
	put(t, dir, "late.jsonl", "hello\n\n{\"received_at_ns\":7}\n")
	var got []string
	result := checked(t, Options{Paths: []string{dir}})
	for _, f := range result.Findings {
		got = append(got, fmt.Sprintf("%s:%d:%d %s %s %s", filepath.Base(f.File), f.Line, f.Column, f.Rule, f.Pointer, f.Actual))
	}
	slices.Sort(got)
	want := []string{
		"late.jsonl:1:1 trace.row  ",
		"late.jsonl:3:1 trace.row  ",
		"recording.worker-1.000002.jsonl.gz:4:277 trace.row /event/fpm/wall_time ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(result.Failures) > 0 || result.Errors != 3 || !result.Traces[0].Rejected {
		t.Errorf("%+v", result)
	}
}

// A recorder's manifest is held against its schema and against the segments, those that
// were not named too.
func TestManifests(t *testing.T) {
	t.Parallel()
	const there, gone = "recording.worker-0.000000.jsonl.gz", "recording.worker-0.000009.jsonl.gz"
	for _, c := range []struct {
		name, text string
		alone      bool // without the segments among the inputs
		want       []string
	}{
		{"sound", manifestText("stopped", there), false, nil},
		{"sound, alone", manifestText("stopped", there), true, nil},
		{"a segment is gone", manifestText("stopped", gone), false, []string{"trace.segment"}},
		{"a segment is gone, alone", manifestText("stopped", gone), true, []string{"trace.segment"}},
		{"against the schema", manifestText("done", there), false, []string{"schema.violation"}},
		{"cut off", manifestText("stopped", there)[:200], false, []string{"json.syntax"}},
		{"of wrong types", `{"schema":"fpm.trace.manifest","max_segments":"4"}`, true, []string{"schema.violation"}},
	} {
		dir := recorded(t, "")
		path := put(t, dir, "recording.manifest.json", c.text)
		paths := []string{dir}
		if c.alone {
			paths = []string{path}
		}
		result := checked(t, Options{Paths: paths})
		if diff := cmp.Diff(c.want, rulesOf(result.Findings)); diff != "" || len(result.Failures) > 0 {
			t.Errorf("%s: %s, %v", c.name, diff, result.Failures)
		}
		i := slices.IndexFunc(result.Files, func(f File) bool { return f.Path == path })
		if f := result.Files[i]; f.Kind != detect.Manifest || !f.Checked || f.Rejected != (c.want != nil) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// Row by row, a schema finds what no other rule reads; text that is no JSON is left to
// them.
func TestSchemaOfRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := put(t, dir, "t.jsonl", `{"timestamp":1,"event":{"schema":"dynamo.fpm.trace.v1"}}`+"\n\nhello\n"+`{"received_at_ns":1,"metrics":{}}`+"\n")
	result := checked(t, Options{Paths: []string{path}, Schema: true})
	if diff := cmp.Diff([]string{"schema.violation", "trace.row"}, rulesOf(result.Findings)); diff != "" || len(result.Failures) > 0 {
		t.Errorf("%s, %v", diff, result.Failures)
	}
	for _, f := range result.Findings {
		if f.Rule == finding.SchemaViolation && f.Line != 1 {
			t.Errorf("%+v", f)
		}
	}
}

func TestTracesThatCannotBe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock := put(t, dir, "recording.manifest.lock", "")
	zst := put(t, dir, "t.jsonl.zst", "no matter")
	empty := put(t, dir, "empty.jsonl.gz", "")
	for _, c := range []struct {
		opt  Options
		code exitcode.Code
		rule []string
	}{
		{Options{Paths: []string{lock}}, exitcode.Usage, nil},
		{Options{Paths: []string{filepath.Join(dir, "*.lock")}}, exitcode.Usage, nil},
		{Options{Paths: []string{zst}}, exitcode.Failed, nil},
		{Options{Paths: []string{filepath.Join(dir, "other")}}, exitcode.Failed, nil},
		{Options{Paths: []string{empty}}, 0, []string{"trace.empty"}},
		{Options{Paths: []string{empty}, Expected: Expected{Producers: []string{"w"}}}, 0, []string{"trace.empty", "trace.producer"}},
		{Options{Paths: []string{put(t, dir, "x.json", `{"a": 1}`)}, Expected: Expected{ProducerCount: 1}}, exitcode.Usage, []string{"input.kind"}},
		{Options{Paths: []string{filepath.Join(dir, "x.json")}, Kind: detect.Trace}, 0, []string{"trace.row"}},
	} {
		result := checked(t, c.opt)
		if c.code != 0 && !slices.Contains(codes(result), c.code) || c.code == 0 && len(result.Failures) > 0 {
			t.Errorf("%+v: %v", c.opt, result.Failures)
		}
		if diff := cmp.Diff(c.rule, rulesOf(result.Findings)); diff != "" {
			t.Errorf("%+v: %s", c.opt, diff)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Validate(ctx, Options{Paths: []string{recorded(t, "")}}); err == nil {
		t.Error("a cancelled validation is none")
	}
}

// FuzzTraces: whatever stands in a segment, there is a verdict on it, and nothing that it
// holds is a failure to read it.
func FuzzTraces(f *testing.F) {
	f.Add([]byte(`{"timestamp":1,"event":{"schema":"dynamo.fpm.trace.v1"}}`), true)
	f.Add([]byte("{\"received_at_ns\":1,\"metrics\":{}}\nhello\n"), false)
	f.Add([]byte("\x1f\x8b\x08"), true)
	f.Fuzz(func(t *testing.T, text []byte, packed bool) {
		path := filepath.Join(t.TempDir(), "t.w.000000.jsonl")
		if packed {
			path += ".gz"
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		result := checked(t, Options{Paths: []string{path}, Strict: true})
		if len(result.Failures) > 0 || !result.Files[0].Checked {
			t.Errorf("%v, %+v", result.Failures, result.Files)
		}
	})
}
