package validate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/cmd/internal/files"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/input"
)

// candidate is a file to be looked at.
type candidate struct {
	path  string
	named bool // by an argument, not only as part of a directory or a pattern
	detect.File
}

// expand finds the files that the arguments stand for, each once, sorted by path: the order
// of the arguments changes nothing. Of several spellings of a path it is the first in that
// order. What cannot be read, and an argument that stands for no file at all, is a failure.
func (v *validation) expand(paths []string) {
	var all []candidate
	for _, path := range paths {
		all = append(all, v.expandOne(path)...)
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.path, b.path) })
	at := map[string]int{}
	for _, c := range all {
		key := c.path
		if abs, err := filepath.Abs(c.path); err == nil {
			key = abs
		}
		if i, again := at[key]; again {
			v.candidates[i].named = v.candidates[i].named || c.named
			continue
		}
		at[key] = len(v.candidates)
		v.candidates = append(v.candidates, c)
	}
	if v.locks > 0 && len(v.candidates)+len(v.failures) == 0 {
		v.failf(exitcode.Usage, "", "name the segments beside them", "locks hold nothing: there is no input")
	}
}

func (v *validation) expandOne(path string) []candidate {
	if err := files.CheckPath(path); err != nil {
		v.failures = append(v.failures, exitcode.From(err))
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return v.walk(path)
	case err == nil && files.IsLock(path):
		v.locks++
		return nil
	case err == nil:
		return []candidate{{path: path, named: true}}
	case errors.Is(err, fs.ErrNotExist) && files.IsPattern(path):
		return v.glob(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if segments := files.Recording(path); len(segments) > 0 {
			return unnamed(segments)
		}
		err = &exitcode.Error{Code: exitcode.Failed, File: path, Message: "no such file", Hint: "check the path; a directory stands for the files in it", Err: err}
	}
	v.cannotOpen(path, err)
	return nil
}

func unnamed(paths []string) (found []candidate) {
	for _, path := range paths {
		found = append(found, candidate{path: path})
	}
	return found
}

func (v *validation) glob(pattern string) []candidate {
	matches, err := files.Match(pattern)
	if err != nil {
		v.failures = append(v.failures, exitcode.From(err))
	}
	var found []candidate
	for _, path := range matches {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			found = append(found, v.walk(path)...)
		} else if files.IsLock(path) {
			v.locks++
		} else {
			found = append(found, candidate{path: path})
		}
	}
	return found
}

// cannotOpen notes what keeps a file from being looked at.
func (v *validation) cannotOpen(path string, err error) {
	v.failures = append(v.failures, exitcode.From(err))
	v.unopened = append(v.unopened, path)
}

// walk lists the files below a directory that can be artifacts. It follows no symbolic
// link to a directory below it and leaves out what is hidden. What has the name of an
// artifact and cannot be one is a failure: a rank file that is passed over in silence
// would be taken for one that was checked.
func (v *validation) walk(root string) (found []candidate) {
	others, failed := 0, len(v.failures)
	if info, err := os.Lstat(root); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		root += string(filepath.Separator) // the link that was named is followed
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			v.failures = append(v.failures, exitcode.From(err))
			if entry != nil && entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case path != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case !mayBeArtifact(entry.Name()):
			others++
		default:
			switch file, err := isFile(path, entry); {
			case err != nil:
				v.cannotOpen(path, err)
			case file:
				found = append(found, candidate{path: path})
			default:
				others++
			}
		}
		return v.ctx.Err()
	})
	if err != nil && v.ctx.Err() == nil {
		v.failures = append(v.failures, exitcode.From(err))
	}
	switch {
	case len(found) > 0 || err != nil || len(v.failures) > failed:
	case others == 0:
		v.failf(exitcode.Usage, root, "name the directory of a run, or its files", "the directory is empty: there is no input")
	default:
		v.failf(exitcode.Usage, root, "name the directory of a run, or its files; a single file is taken whatever its name",
			"the directory holds no .json or .jsonl file: there is no input")
	}
	return found
}

// isFile tells whether an entry is a regular file, or a link to one; a link to a directory
// is none. The error says why an entry is nothing that can be looked at.
func isFile(path string, entry fs.DirEntry) (bool, error) {
	if entry.Type().IsRegular() {
		return true, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, &exitcode.Error{
			Code: exitcode.Failed, File: path, Message: "the symbolic link leads nowhere",
			Hint: "bring back the file that it leads to, or remove the link", Err: err,
		}
	case err != nil:
		return false, err
	case info.IsDir():
		return false, nil
	case !info.Mode().IsRegular():
		return false, &exitcode.Error{
			Code: exitcode.Failed, File: path, Message: "this is no regular file, but has the name of one",
			Hint: "artifacts are files; remove it, or name the files to be checked",
		}
	}
	return true, nil
}

// mayBeArtifact tells whether a file is looked at when only its directory was named.
func mayBeArtifact(name string) bool {
	name = strings.TrimSuffix(name, ".tmp")
	for _, suffix := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl")
}

// look finds out what each candidate is.
func (v *validation) look() {
	for i := range v.candidates {
		c := &v.candidates[i]
		if err := v.lookAt(c); err != nil {
			v.cannotOpen(c.path, err)
			c.Kind = "" // it cannot be checked, which is said
		}
		if v.ctx.Err() != nil {
			return
		}
	}
}

func (v *validation) lookAt(c *candidate) error {
	in, err := input.Open(c.path, input.Options{})
	if err != nil {
		return &exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Err: err}
	}
	c.File, err = detect.Look(in, c.path)
	if v.opt.Kind != "" {
		c.Kind = v.opt.Kind
	}
	return errors.Join(err, in.Close())
}

func (v *validation) failf(code exitcode.Code, file, hint, format string, args ...any) {
	v.failures = append(v.failures, &exitcode.Error{Code: code, File: file, Hint: hint, Message: fmt.Sprintf(format, args...)})
}
