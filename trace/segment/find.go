package segment

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/fpm-project/fpm/internal/exitcode"
)

// Source is a file to read.
type Source struct {
	Path string
	// Name is what the path says when it is that of a segment; the zero Name otherwise.
	Name Name
}

// Segment tells whether the file has the name of a segment.
func (s *Source) Segment() bool { return s.Name.Producer != "" }

// compare is the order of reading.
func (s *Source) compare(other *Source) int {
	return cmp.Or(cmp.Compare(s.series(), other.series()), cmp.Compare(s.Name.Index, other.Name.Index), cmp.Compare(s.Path, other.Path))
}

func (s *Source) series() string {
	if s.Segment() {
		return s.Name.Series()
	}
	return s.Path
}

func newSource(path string) *Source {
	s := &Source{Path: path}
	if n, ok := Parse(path); ok {
		s.Name = n
	}
	return s
}

// Find returns the files that arguments stand for: by series, and within a series by
// index. An argument is a file; a directory, for the files in it that end in .jsonl.gz or
// .jsonl; a pattern as of [filepath.Match]; or a prefix, with or without a producer behind
// it, for the segments that have it. A name that is there counts before a pattern. A file
// that two arguments stand for is read once; the locks and manifests beside segments are
// passed over, and so are links that lead to no file, unless they are named.
//
// No argument, an empty directory and a pattern that matches nothing are errors of usage;
// a path for which there is no file is one of input ([exitcode.Failed]).
func Find(args []string) ([]*Source, error) {
	if len(args) == 0 {
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: "no input: name files, directories, patterns or prefixes of segments"}
	}
	found := map[string]*Source{}
	var errs []error
	for _, arg := range args {
		paths, err := expand(arg)
		if err != nil {
			errs = append(errs, err)
		}
		for _, path := range paths {
			found[filepath.Clean(path)] = newSource(path)
		}
	}
	sources := make([]*Source, 0, len(found))
	for _, s := range found {
		sources = append(sources, s)
	}
	slices.SortFunc(sources, (*Source).compare)
	if len(sources) == 0 && len(errs) == 0 {
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: "no input: locks and manifests hold no rows"}
	}
	return sources, errors.Join(errs...)
}

// wild are the characters that make an argument a pattern.
const wild = `*?[`

// expand returns the paths that one argument stands for.
func expand(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	switch {
	case arg == "" || arg == "-":
		return nil, &exitcode.Error{Code: exitcode.Usage, Message: "a trace is read from files: name them, or a prefix"}
	case err == nil && !info.IsDir() && beside(arg):
		return nil, nil // of a pattern that the shell has expanded
	case err == nil && !info.IsDir():
		return []string{arg}, nil
	case err == nil:
		return inDirectory(arg)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	// A name that has the characters of a pattern is a name first: it can be recorded to.
	paths, err := withPrefix(arg)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 && strings.ContainsAny(arg, wild) {
		return matching(arg)
	}
	if len(paths) == 0 {
		return nil, &exitcode.Error{
			Code: exitcode.Failed, File: arg, Err: fs.ErrNotExist,
			Message: "no such file, and no segments with that prefix",
			Hint:    "check the path; the segments of a prefix P are P.PRODUCER.000000.jsonl.gz and so on",
		}
	}
	return paths, nil
}

// readable tells whether a file in a directory is taken for one of a trace. The locks and
// manifests beside segments are not.
func readable(name string) bool {
	return strings.HasSuffix(name, extension) || strings.HasSuffix(name, ".jsonl")
}

// beside tells whether a file is one that recorders keep beside segments: a lock, or a
// manifest.
func beside(path string) bool {
	stem, isJSON := strings.CutSuffix(path, ".json")
	manifest := strings.LastIndex(stem, ".manifest")
	return strings.HasSuffix(path, ".lock") || isJSON && manifest >= 0 && !strings.ContainsAny(stem[manifest+1:], "./")
}

// inDirectory returns the files of a trace in a directory, and the segments that have its
// path for their prefix.
func inDirectory(dir string) (paths []string, err error) {
	err = system{}.List(dir, func(e fs.DirEntry) {
		if path := filepath.Join(dir, e.Name()); readable(e.Name()) && isFile(e, path) {
			paths = append(paths, path)
		}
	})
	if err != nil {
		return nil, err
	}
	if !os.IsPathSeparator(dir[len(dir)-1]) {
		beside, err := withPrefix(dir)
		if err != nil {
			return nil, err
		}
		paths = append(paths, beside...)
	}
	if len(paths) == 0 {
		return nil, &exitcode.Error{Code: exitcode.Usage, File: dir, Err: fs.ErrNotExist, Message: "no input: the directory holds no .jsonl.gz or .jsonl file"}
	}
	return paths, nil
}

func matching(pattern string) (paths []string, err error) {
	all, err := glob(pattern)
	if err != nil {
		return nil, &exitcode.Error{Code: exitcode.Usage, File: pattern, Message: "not a pattern: " + err.Error(), Err: err}
	}
	for _, path := range all {
		if info, err := os.Lstat(path); err == nil && isFile(fs.FileInfoToDirEntry(info), path) && !beside(path) {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil, &exitcode.Error{Code: exitcode.Usage, File: pattern, Err: fs.ErrNotExist, Message: "no input: the pattern matches no file"}
	}
	return paths, nil
}

// glob is [filepath.Glob], but that a directory with the very name in the pattern is taken
// for it.
func glob(pattern string) (paths []string, err error) {
	dir, base := filepath.Split(pattern)
	if info, err := os.Stat(orHere(dir)); err != nil || !info.IsDir() || !strings.ContainsAny(dir, wild) {
		return filepath.Glob(pattern)
	}
	if _, err := filepath.Match(base, ""); err != nil {
		return nil, err
	}
	err = system{}.List(dir, func(e fs.DirEntry) {
		if ok, _ := filepath.Match(base, e.Name()); ok { // a pattern it is
			paths = append(paths, dir+e.Name())
		}
	})
	return paths, err
}

// withPrefix returns the segments of a prefix, of all producers or of the one behind it.
// A directory that does not exist holds none.
func withPrefix(arg string) (paths []string, err error) {
	dir, base := filepath.Split(Prefix(arg))
	err = system{}.List(orHere(dir), func(e fs.DirEntry) {
		if n, ok := Parse(e.Name()); ok && (n.Prefix == base || n.Series() == base) && isFile(e, dir+e.Name()) {
			paths = append(paths, dir+e.Name())
		}
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return paths, err
}

// isFile tells whether an entry of a directory is a file or a link to one. A directory, or a
// link to anything else, has the name of a segment without being one, and nobody asked for
// it by name.
func isFile(e fs.DirEntry, path string) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return !e.IsDir() // what else it is the reader says
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// Shelf is what lies in a directory of one prefix.
type Shelf struct {
	// Indices are those of the regular files, in order, by series. Links and directories
	// that have the name of a segment are none: retention does not touch them.
	Indices map[string][]uint64
	// Manifests are the paths of the recorders' manifests, in order: there is one for each
	// recorder that ran at the same time.
	Manifests []string
}

// Look returns what lies there of a prefix. A directory that does not exist holds nothing.
func Look(prefix string) (Shelf, error) {
	s := Shelf{Indices: map[string][]uint64{}}
	dir, base := filepath.Split(prefix)
	err := system{}.List(orHere(dir), func(e fs.DirEntry) {
		name, ok := strings.CutPrefix(e.Name(), base+".")
		if !ok || !e.Type().IsRegular() {
			return
		}
		if n, ok := Parse(e.Name()); ok && n.Prefix == base {
			series := dir + n.Series()
			s.Indices[series] = append(s.Indices[series], n.Index)
		} else if isManifest(name) {
			s.Manifests = append(s.Manifests, dir+e.Name())
		}
	})
	for _, indices := range s.Indices {
		slices.Sort(indices)
	}
	slices.Sort(s.Manifests)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return s, err
}

// isManifest tells whether what stands behind a prefix and a dot makes the name of a
// manifest: manifest.json, and manifest-2.json and so on.
func isManifest(name string) bool {
	number, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "manifest")
	if !ok || !strings.HasSuffix(name, ".json") {
		return false
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(number, "-"), 10, 32)
	return number == "" || err == nil && n > 1 && number == fmt.Sprintf("-%d", n)
}

// ManifestPrefix returns the prefix that a manifest is of.
func ManifestPrefix(path string) (prefix string, ok bool) {
	at := strings.LastIndex(path, ".manifest")
	if at < 0 || !isManifest(path[at+1:]) {
		return "", false
	}
	return path[:at], true
}

// Size returns how many bytes files have, as far as they can be asked.
func Size(sources []*Source) (total int64) {
	for _, s := range sources {
		if info, err := os.Stat(s.Path); err == nil {
			total += info.Size()
		}
	}
	return total
}
