package files

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	matching := func(pattern string) error { _, err := Match(filepath.Join(dir, pattern)); return err }
	for _, c := range []struct {
		err  error
		code exitcode.Code
		want string
	}{
		{CheckPath(""), exitcode.Usage, "the path is empty"},
		{CheckPath("-"), exitcode.Usage, "not a path"},
		{matching("[a"), exitcode.Usage, "is no pattern"},
		{matching("a*"), exitcode.Usage, "the pattern matches nothing"},
		{CheckTrace("run.w.000000.jsonl.zst"), exitcode.Failed, "gzip only"},
	} {
		var e *exitcode.Error
		if !errors.As(c.err, &e) || e.Code != c.code || !strings.Contains(e.Message, c.want) || e.Hint == "" {
			t.Errorf("%v, want %q", c.err, c.want)
		}
	}
	for _, err := range []error{CheckPath("a-"), CheckTrace("run.w.000000.jsonl.gz")} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFound(t *testing.T) {
	dir := t.TempDir()
	first, second := write(t, dir, "run.w.000000.jsonl.gz", ""), write(t, dir, "run.w.000001.jsonl.gz", "")
	lock := write(t, dir, "run.w.lock", "")
	if got, err := Match(filepath.Join(dir, "run.*")); err != nil || cmp.Diff([]string{first, second, lock}, got) != "" {
		t.Errorf("%q, %v", got, err)
	}
	for path, want := range map[string][]string{"run": {first, second}, "run.w": {first, second}, "": {first, second}, "ru": nil} {
		if diff := cmp.Diff(want, Recording(filepath.Join(dir, path))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", path, diff)
		}
	}
	if !IsLock(lock) || IsLock(first) || IsPattern(first) || !IsPattern("run.?") {
		t.Error("names are mistaken")
	}
}

func TestLocate(t *testing.T) {
	path := write(t, t.TempDir(), "a.json", "{\n \"a\": [1]}")
	none := filepath.Join(t.TempDir(), "none.json")
	findings := []finding.Finding{
		{File: path, Offset: 8, Excerpt: true},
		{File: path, Offset: 8, Line: 7, Excerpt: true},
		{File: none, Offset: -1},
		{File: none, Offset: 0},
	}
	if failures := Locate(t.Context(), findings); len(failures) != 1 || !strings.Contains(failures[0].Error(), none) {
		t.Error(failures)
	}
	if f := findings[0]; f.Line != 2 || f.Column != 7 || f.Actual != "[1]" {
		t.Errorf("%+v", f)
	}
	if f := findings[1]; f.Line != 7 || f.Actual != "" {
		t.Errorf("located again: %+v", f)
	}
}

func TestReadingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	src := WithContext(ctx, strings.NewReader("abc"))
	b := make([]byte, 3)
	if n, err := src.ReadAt(b, 0); n != 3 || err != nil && err != io.EOF {
		t.Errorf("%d bytes, %v", n, err)
	}
	cancel()
	if n, err := src.ReadAt(b, 0); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d bytes, %v", n, err)
	}
}
