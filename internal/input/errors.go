package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

var errNegativeOffset = errors.New("the offset is negative")

// ReadError is a refusal of the operating system to open or read a file. It wraps the
// system's error, so that errors.Is finds fs.ErrNotExist, fs.ErrPermission and the like.
type ReadError struct {
	Path string
	Err  error
}

func (e *ReadError) Error() string { return fmt.Sprintf("cannot read %s: %s", e.Path, e.Err) }

// Unwrap returns the system's error.
func (e *ReadError) Unwrap() error { return e.Err }

// SpoolError is a failure to keep decompressed text in a temporary file.
type SpoolError struct {
	Dir string // the directory of the temporary file
	Err error
}

func (e *SpoolError) Error() string {
	return fmt.Sprintf("cannot keep decompressed text in a temporary file in %s: %s; "+
		"decompress the input yourself or set TMPDIR to a directory with room", e.Dir, e.Err)
}

// Unwrap returns the system's error.
func (e *SpoolError) Unwrap() error { return e.Err }

// NotRegularError says that a path leads to something other than a regular file.
type NotRegularError struct {
	Path string
	Mode fs.FileMode
}

func (e *NotRegularError) Error() string {
	return fmt.Sprintf("%s is a %s; artifacts are regular files", e.Path, kind(e.Mode))
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeNamedPipe != 0:
		return "named pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "special file"
}

// TruncatedError says that compressed data stops before its end. It wraps
// [io.ErrUnexpectedEOF]. A file that is still being written looks like this.
type TruncatedError struct {
	Path   string
	Format string // gzip or zstd
	Text   int64  // bytes of text before the cut
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: the %s data ends too early, after %d bytes of text", e.Path, e.Format, e.Text)
}

// Unwrap returns [io.ErrUnexpectedEOF].
func (e *TruncatedError) Unwrap() error { return io.ErrUnexpectedEOF }

// CorruptError says that compressed data is damaged, or not compressed data at all.
type CorruptError struct {
	Path   string
	Format string // gzip or zstd
	Text   int64  // bytes of text before the damage was noticed
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: the %s data is damaged after %d bytes of text: %s", e.Path, e.Format, e.Text, e.Reason)
}

// LimitError says that a file asks for more than is allowed (input.limit).
type LimitError struct {
	Path  string
	What  string // what is too large: the text, or the window of a zstd frame
	Limit int64  // the most that is allowed, in bytes
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("%s: the %s is larger than the limit of %d bytes", e.Path, e.What, e.Limit)
}

// ChangedError says that a file is not what it was when it was opened.
type ChangedError struct {
	Path   string
	Change string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s changed while it was being read: %s; wait until the run has finished",
		e.Path, e.Change)
}

// readError names path once: the errors of package os name it as well, with the system
// call, which is no help to a reader.
func readError(path string, err error) error {
	return &ReadError{Path: path, Err: bare(err)}
}

func bare(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}
