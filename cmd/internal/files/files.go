// Package files is what the commands that take files of any kind have in common: which
// arguments are none, what a pattern and a prefix stand for, what is passed over, and where
// in the files findings are.
//
// What a directory stands for is each command's own, since they look for different things.
// All that is below it is checked; of what is in it the run that begins with rank 0's file
// is shown; and the readers of traces read the rows that lie in it ([segment.Find]). To these
// a prefix counts before a pattern, because a recording can have any name, and artifacts
// cannot.
package files

import (
	"context"
	"errors"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/trace/segment"
)

// CheckPath refuses arguments that are no paths: an empty one, and "-". The error is one of
// usage.
func CheckPath(path string) error {
	switch path {
	case "":
		return usage("", "name a file or a directory; . is the one that you are in", "the path is empty")
	case "-":
		return usage("", "give a path", "- is not a path: artifacts are files")
	}
	return nil
}

// IsPattern tells whether an argument for which there is no file can be a pattern.
func IsPattern(path string) bool { return strings.ContainsAny(path, `*?[`) }

// Match returns what a pattern matches, as of [filepath.Glob]. One that is malformed, or
// matches nothing, is an error of usage.
func Match(pattern string) ([]string, error) {
	matches, err := filepath.Glob(pattern)
	switch {
	case err != nil:
		return nil, usage("", "close the bracket, or escape it", strconv.Quote(pattern)+" is no pattern: "+err.Error())
	case len(matches) == 0:
		return nil, usage(pattern, "check the pattern, or name the files", "the pattern matches nothing: there is no input")
	}
	return matches, nil
}

func usage(file, hint, message string) error {
	return &exitcode.Error{Code: exitcode.Usage, File: file, Hint: hint, Message: message}
}

// Recording returns the files of the trace that a path stands for: in a directory, or the
// segments that have it for their prefix. Where there is none it returns none, and what else
// the path may be is for the caller to find.
func Recording(path string) (paths []string) {
	sources, err := segment.Find([]string{path})
	if err != nil {
		return nil
	}
	for _, s := range sources {
		paths = append(paths, s.Path)
	}
	return paths
}

// IsLock tells whether a file is one that a recorder locks. It holds nothing; a pattern
// that the shell expands names it beside the segments.
func IsLock(path string) bool { return strings.HasSuffix(path, ".lock") }

// CheckTrace refuses a file of a trace that is compressed in a way that the readers of
// traces do not know.
func CheckTrace(path string) error {
	if !strings.HasSuffix(path, ".zst") {
		return nil
	}
	return &exitcode.Error{
		Code: exitcode.Failed, File: path, Hint: "decompress it, or compress it with gzip",
		Message: "traces are read plain or compressed with gzip only",
	}
}

// WithContext returns a source that cannot be read any more when ctx is cancelled.
func WithContext(ctx context.Context, src io.ReaderAt) io.ReaderAt { return cancellable{ctx, src} }

type cancellable struct {
	ctx context.Context
	src io.ReaderAt
}

func (c cancellable) ReadAt(p []byte, off int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.src.ReadAt(p, off)
}

// maxExcerpt bounds the text of a value that a finding quotes.
const maxExcerpt = 1000

// Locate gives findings line and column, and the text that stood there, but for those that
// have them. The errors are those of reading the files.
func Locate(ctx context.Context, findings []finding.Finding) (failures []error) {
	byFile := map[string][]*finding.Finding{}
	for i := range findings {
		if f := &findings[i]; f.Offset >= 0 && f.Line == 0 {
			byFile[f.File] = append(byFile[f.File], f)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(byFile)) {
		if err := locateIn(ctx, path, byFile[path]); err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}

func locateIn(ctx context.Context, path string, findings []*finding.Finding) error {
	in, err := input.Open(path, input.Options{})
	if err != nil {
		return err
	}
	return errors.Join(jsonstream.Locate(WithContext(ctx, in), findings, maxExcerpt), in.Close())
}
