package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Target checks that path can be the target of a replacement, and writes nothing. It
// returns the path with links resolved and, if there is a file, what it is. The error is
// a [*TargetError] for a directory, a special file or a link that leads nowhere, and a
// [*WriteError] when the directory is missing or cannot be searched.
func Target(path string) (resolved string, info fs.FileInfo, err error) {
	dir, base := filepath.Split(path)
	if base == "" {
		return "", nil, &TargetError{Path: path, Reason: "names no file"}
	}
	info, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		resolved, err = resolveNew(path, dir, base)
		return resolved, nil, err
	case errors.Is(err, syscall.ELOOP):
		return "", nil, &TargetError{Path: path, Reason: "leads through a loop of symbolic links"}
	case err != nil:
		return "", nil, writeError("write", path, err)
	case info.IsDir():
		return "", nil, &TargetError{Path: path, Reason: "is a directory"}
	case !info.Mode().IsRegular():
		return "", nil, &TargetError{Path: path, Reason: "is not a regular file"}
	}
	if resolved, err = filepath.EvalSymlinks(path); err != nil {
		return "", nil, writeError("write", path, err)
	}
	return resolved, info, nil
}

// resolveNew resolves the directory of a target that did not exist. One that another
// process has put there since is no obstacle.
func resolveNew(path, dir, base string) (string, error) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return "", &TargetError{Path: path, Reason: "is a symbolic link that leads nowhere"}
	}
	if dir == "" {
		return base, nil
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", writeError("open directory", filepath.Clean(dir), err)
	}
	return filepath.Join(resolved, base), nil
}
