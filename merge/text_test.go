package merge

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
)

// textFault is a change of a file's text, what is wrong then, and where: at the given
// number of bytes behind the beginning of the new text.
type textFault struct {
	name     string
	old, new string
	rule     finding.ID
	at       int
	pointer  string
}

func textFaults() []textFault {
	const syntax, number, twice = finding.JSONSyntax, finding.JSONNumber, finding.JSONDuplicateKey
	const valid = `"valid": true`
	group := func(tail string) string { return "/iteration_groups/0" + tail }
	return []textFault{
		{"NaN", valid, `"valid": NaN`, number, 9, "/valid"},
		{"Infinity", valid, `"valid": Infinity`, number, 9, "/valid"},
		{"-Infinity", valid, `"valid": -Infinity`, number, 9, "/valid"},
		{"NaN in a group", `"complete": true`, `"complete": [0, NaN]`, number, 16, group("/complete/1")},
		{"single quotes", valid, `'valid': true`, syntax, 0, ""},
		{"word", valid, `"valid": yes`, syntax, 9, "/valid"},
		{"leading zero", `"schema_version": 2`, `"schema_version": 02`, syntax, 19, ""},
		{"trailing comma", `"rows": null`, `"rows": null,`, syntax, 12, "/results/0/point"},
		{"control character", `"run"`, "\"r\nun\"", syntax, 2, "/run_id"},
		{"bad escape", `"run"`, `"r\xun"`, syntax, 2, "/run_id"},
		{"invalid UTF-8", `"run"`, "\"r\xffun\"", syntax, 2, "/run_id"},
		{"overlong UTF-8", `"run"`, "\"r\xc0\xafun\"", syntax, 2, "/run_id"},
		{"surrogate in UTF-8", `"run"`, "\"r\xed\xa0\x80un\"", syntax, 2, "/run_id"},
		{"comment", valid, `"valid": true /* yes */`, syntax, 14, ""},
		{"byte-order mark", "{\n  \"schema", "\xef\xbb\xbf{\n  \"schema", syntax, 0, ""},
		{"key twice", valid, valid + ",\n  " + valid, twice, 17, "/valid"},
		{"key twice, escaped", valid, valid + `, "v\u0061lid": false`, twice, 15, "/valid"},
		{"key twice, deep", `"queued_requests": {`, `"queued_requests": {"x": 1, "x": 1, `, twice, 28, "/results/0/fpms/0/queued_requests/x"},
		{"513 levels", valid, valid + `, "deep": ` + strings.Repeat("[", 512) + strings.Repeat("]", 512), finding.JSONDepth, 534, "/deep" + strings.Repeat("/0", 511)},
		{"long string", valid, valid + `, "long": "` + strings.Repeat("x", 16<<20) + `"`, finding.InputLimit, 23, "/long"},
	}
}

func TestTextFaults(t *testing.T) {
	for _, c := range textFaults() {
		for _, rank := range []int{0, 1} {
			r := build(t, two()).apply(t, inText(rank, c.old, c.new))
			paths := r.write(t, t.TempDir())
			result := runMerge(t, Options{Inputs: paths[:1]})
			text := readFile(t, paths[rank])
			line, column := jsontest.LineColumn([]byte(text), int64(strings.Index(text, c.new)+c.at))
			type place struct {
				Rule                     finding.ID
				File, Pointer            string
				Rank, Line, Column, More int
			}
			want := place{c.rule, paths[rank], c.pointer, rank, line, column, 0}
			if len(result.Findings) == 0 {
				t.Errorf("%s: nothing found", c.name)
				continue
			}
			f := result.Findings[0]
			got := place{f.Rule, f.File, f.Pointer, f.Rank, f.Line, f.Column, len(result.Findings) - 1}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s in rank %d: %s (-want +got):\n%s", c.name, rank, f.Message, diff)
			}
			if len(result.Failures) > 0 {
				t.Errorf("%s: %v", c.name, result.Failures)
			}
		}
	}
}

// A file that ends too early is at fault at its end, wherever that is.
func TestTruncated(t *testing.T) {
	r := build(t, shape{ranks: 2, points: 1, raw: 1})
	dir := t.TempDir()
	paths := r.write(t, dir)
	for rank, path := range paths {
		text := r.text(rank)
		for _, end := range []int{0, 1, 2, 10, len(text) / 4, len(text) / 2, strings.Index(text, "iteration_groups") + 40, len(text) - 2, len(text) - 1} {
			writeFile(t, path, text[:end])
			result := runMerge(t, Options{Inputs: paths})
			line, column := jsontest.LineColumn([]byte(text), int64(end))
			if len(result.Findings) != 1 || result.Findings[0].Rule != finding.JSONSyntax || result.Findings[0].Rank != rank && end > 1000 {
				t.Fatalf("rank %d cut at %d: %v, %v", rank, end, result.Findings, result.Failures)
			}
			if f := result.Findings[0]; f.Line != line || f.Column != column {
				t.Errorf("rank %d cut at %d: %s at %d:%d, want %d:%d", rank, end, f.Message, f.Line, f.Column, line, column)
			}
		}
		writeFile(t, path, text)
	}
}

func TestTrailingText(t *testing.T) {
	for tail, ok := range map[string]bool{"\n": true, " \r\n\t ": true, "x": false, "{}": false, "\x00": false, "\n\ufeff": false} {
		for rank := range 2 {
			r := build(t, two())
			dir := t.TempDir()
			paths := r.write(t, dir)
			writeFile(t, paths[rank], r.text(rank)+tail)
			result := runMerge(t, Options{Inputs: paths[:1]})
			if got := result.Output != ""; got != ok || (!ok && (len(result.Findings) != 1 || result.Findings[0].Rule != finding.JSONSyntax || result.Findings[0].Rank != rank)) {
				t.Errorf("%q behind rank %d: %v", tail, rank, result.Findings)
			}
		}
	}
}

// A truncated archive is a truncated text; junk is no text at all.
func TestDamagedArchives(t *testing.T) {
	r := build(t, two())
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, r.text(1)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(packed.Bytes())
	flipped[len(flipped)/2] ^= 0x55
	for name, content := range map[string][]byte{
		"truncated": packed.Bytes()[:packed.Len()/2], "without its checksum": packed.Bytes()[:packed.Len()-8], "empty": {}, "junk": []byte("junk"),
		"with junk behind it": append(bytes.Clone(packed.Bytes()), "junk"...), "with a byte changed": flipped,
	} {
		dir := t.TempDir()
		paths := r.write(t, dir, 0)
		if err := os.WriteFile(filepath.Join(dir, "run_dp1.json.gz"), content, 0o666); err != nil {
			t.Fatal(err)
		}
		result := runMerge(t, Options{Inputs: paths})
		if len(result.Findings) != 1 || result.Findings[0].Rule != finding.JSONSyntax || result.Findings[0].Rank != 1 || len(result.Failures) > 0 {
			t.Errorf("%s: %v, %v", name, result.Findings, result.Failures)
		}
	}
}
