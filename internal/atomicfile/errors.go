package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

var (
	errNotSynced = errors.New("the new content has not been synced")
	errNoName    = errors.New("no name is free")
)

// TargetError says that a path is nothing that may be replaced by a file.
type TargetError struct {
	Path   string
	Reason string // completes a sentence that begins with the path
}

func (e *TargetError) Error() string {
	path := e.Path
	if path == "" {
		path = "an empty path"
	}
	return fmt.Sprintf("%s %s; name a regular file or a new one", path, e.Reason)
}

// WriteError is a refusal of the operating system. It wraps the system's error, so that
// errors.Is finds ENOSPC, fs.ErrPermission and the like.
type WriteError struct {
	Op   string // what failed, as it follows "cannot"
	Path string // what it failed on: the target, its directory or its temporary file
	Err  error
}

func (e *WriteError) Error() string { return fmt.Sprintf("cannot %s %s: %s", e.Op, e.Path, e.Err) }

// Unwrap returns the system's error.
func (e *WriteError) Unwrap() error { return e.Err }

// DurabilityError says that the new file is in place, whole, but that the directory could
// not be synced: a power cut may still bring the old file back.
type DurabilityError struct {
	Path string // the target
	Err  error
}

func (e *DurabilityError) Error() string {
	return fmt.Sprintf("%s is written, but may not outlast a power cut: cannot sync its directory: %s; run sync",
		e.Path, e.Err)
}

// Unwrap returns the system's error.
func (e *DurabilityError) Unwrap() error { return e.Err }

// writeError names path once: the errors of package os name it as well, with the system
// call, which is no help to a reader.
func writeError(op, path string, err error) error {
	return &WriteError{Op: op, Path: path, Err: bare(err)}
}

func bare(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	if linkErr, ok := errors.AsType[*os.LinkError](err); ok {
		return linkErr.Err
	}
	return err
}
