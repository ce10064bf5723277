// Package input reads rank files at random: plain ones and compressed ones alike.
//
// A rank file is text behind a path: plain, or compressed with gzip or Zstandard when
// the path ends in .gz or .zst. [Open] returns it as an [io.ReaderAt] over the text.
//
//   - A plain file is read with pread, straight into the caller's buffer.
//   - A compressed file is decompressed only as far as somebody reads, at most 1 MiB
//     further, into a [Spool]: a temporary file that has no name any more. Reading
//     again costs no decompression, memory stays small however large the text is, and a
//     file that expands without end costs nothing once its reader has stopped.
//
// A file may be longer than memory, damaged, or in the middle of being written. Damage
// surfaces where it lies: the text before it can be read, then comes a
// [*TruncatedError] or a [*CorruptError]. [File.Changed] tells whether the file is still
// the one that was opened. Only regular files are opened, and finding out never blocks.
//
// A run has up to 65,536 files. [File.Suspend] gives back a file's descriptor and keeps
// its identity: the next read opens the file again and refuses another one in its place.
package input

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// MaxText is the most text that a file may hold, in bytes (input.limit). A compressed
// file of S bytes may in addition hold no more than 250 × S, or 256 MiB where that is more.
const MaxText int64 = 64 << 30

// Options says how to open a file. The zero value is what a command uses for one file.
type Options struct {
	// MaxText is the most text that is read, in bytes; 0 stands for [MaxText].
	MaxText int64
	// Spool takes decompressed text. Many files can share one and need one descriptor
	// for it; with nil, a compressed file makes its own. It must outlive the file.
	Spool *Spool
}

// File is an open rank file: an [io.ReaderAt] over its text. All methods may be called
// concurrently.
type File struct {
	path     string
	opened   fs.FileInfo // what the path was when it was opened
	maxText  int64
	contents *contents // nil for a plain file

	handle atomic.Pointer[os.File] // nil while suspended
	mu     sync.Mutex              // held to open and to close handle
	closed bool                    // guarded by mu
}

// Open opens a regular file, directly or through links. The error is a
// [*NotRegularError] for anything else and a [*ReadError] when the file cannot be
// opened; that one wraps [fs.ErrNotExist] for a missing file.
func Open(path string, opt Options) (*File, error) {
	handle, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, opened: info, maxText: opt.MaxText}
	if f.maxText <= 0 {
		f.maxText = MaxText
	}
	f.handle.Store(handle)
	if format := formatOf(path); format != nil {
		f.maxText = min(f.maxText, max(info.Size()*maxExpansion, freeExpansion))
		f.contents = newContents(f, format, opt.Spool)
	}
	return f, nil
}

// A compressed file may expand by a factor, from a size on: rank artifacts compress to a
// twentieth at best, and what goes far beyond that was made to fill a disk.
const (
	maxExpansion  = 250
	freeExpansion = 256 << 20
)

// openRegular looks before it opens, because opening a device can act on it, and after,
// because the path may lead elsewhere by then. O_NONBLOCK keeps a FIFO that slips in
// between from holding up the open.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, readError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, &NotRegularError{Path: path, Mode: info.Mode()}
	}
	handle, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, readError(path, err)
	}
	info, err = handle.Stat()
	switch {
	case err != nil:
		err = readError(path, err)
	case !info.Mode().IsRegular():
		err = &NotRegularError{Path: path, Mode: info.Mode()}
	default:
		return handle, info, nil
	}
	return nil, nil, errors.Join(err, handle.Close())
}

// Path returns the path that the file was opened with.
func (f *File) Path() string { return f.path }

// RawSize returns the size of the file on disk when it was opened, in bytes.
func (f *File) RawSize() int64 { return f.opened.Size() }

// ReadAt reads text at byte offset off, as [io.ReaderAt] has it: less than len(p) bytes
// come with an error that says why. At the end of the text that is [io.EOF]. Other errors
// are a [*TruncatedError], a [*CorruptError] or a [*LimitError] for what the file holds,
// a [*ChangedError] when it is no longer the file that was opened, and a [*ReadError] or
// a [*SpoolError] from the operating system. The text before the place of an error
// remains readable.
func (f *File) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, &ReadError{Path: f.path, Err: errNegativeOffset}
	}
	if f.contents != nil {
		return f.contents.readAt(p, off)
	}
	if off > f.maxText-int64(len(p)) {
		return f.readToLimit(p, off)
	}
	return f.pread(p, off)
}

// readToLimit is ReadAt for a read that reaches beyond the most text allowed.
func (f *File) readToLimit(p []byte, off int64) (int, error) {
	n := 0
	if room := f.maxText - off; room > 0 {
		var err error
		if n, err = f.pread(p[:room], off); err != nil {
			return n, err
		}
	}
	if n == len(p) {
		return n, nil
	}
	if _, err := f.pread(make([]byte, 1), f.maxText); err != nil {
		return n, err
	}
	return n, f.tooMuchText()
}

func (f *File) tooMuchText() error {
	return &LimitError{Path: f.path, What: "text", Limit: f.maxText}
}

// pread reads the file as it is on disk. It opens a suspended file, and tries again when
// another goroutine suspends the file in the middle.
func (f *File) pread(p []byte, off int64) (int, error) {
	for {
		handle, err := f.resume()
		if err != nil {
			return 0, err
		}
		n, err := handle.ReadAt(p, off)
		if err == nil || err == io.EOF {
			return n, err
		}
		if !errors.Is(err, fs.ErrClosed) {
			return n, readError(f.path, err)
		}
	}
}

// resume returns the open file, after opening it again if need be.
func (f *File) resume() (*os.File, error) {
	if handle := f.handle.Load(); handle != nil {
		return handle, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, f.errClosed()
	}
	if handle := f.handle.Load(); handle != nil {
		return handle, nil
	}
	handle, info, err := openRegular(f.path)
	if err != nil {
		return nil, f.asChange(err)
	}
	if err := f.compare(info); err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	f.handle.Store(handle)
	return handle, nil
}

func (f *File) errClosed() error { return &ReadError{Path: f.path, Err: fs.ErrClosed} }

// Changed returns nil while the path and the open file are what was opened: the same
// file, of the same size, modified at the same time. Otherwise it returns a
// [*ChangedError], or a [*ReadError] when that cannot be told.
func (f *File) Changed() error {
	if handle := f.handle.Load(); handle != nil {
		info, err := handle.Stat()
		switch {
		case err == nil:
			if err := f.compare(info); err != nil {
				return err
			}
		case !errors.Is(err, fs.ErrClosed): // else suspended just now: the path decides
			return readError(f.path, err)
		}
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return f.asChange(readError(f.path, err))
	}
	return f.compare(info)
}

func (f *File) compare(now fs.FileInfo) error {
	switch {
	case !os.SameFile(f.opened, now):
		return &ChangedError{Path: f.path, Change: "another file has taken its place"}
	case f.opened.Size() != now.Size():
		return &ChangedError{Path: f.path, Change: "its size is not the same any more"}
	case !f.opened.ModTime().Equal(now.ModTime()):
		return &ChangedError{Path: f.path, Change: "it has been written to"}
	}
	return nil
}

// asChange turns the errors that a path gives when its file is gone into a ChangedError.
func (f *File) asChange(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &ChangedError{Path: f.path, Change: "it is not there any more"}
	}
	if _, ok := errors.AsType[*NotRegularError](err); ok {
		return &ChangedError{Path: f.path, Change: "another file has taken its place"}
	}
	return err
}

// Suspend gives back the file's descriptor and, of a compressed file, the state of its
// decompression; the text in the spool stays. The next read that needs the file opens it
// again, and fails with a [*ChangedError] if it is not the same file. Decompression that
// was not finished then starts over.
func (f *File) Suspend() error {
	if f.contents != nil {
		f.contents.suspend()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.release()
}

// release closes the descriptor if there is one. f.mu is held.
func (f *File) release() error {
	handle := f.handle.Swap(nil)
	if handle == nil {
		return nil
	}
	if err := handle.Close(); err != nil {
		return readError(f.path, err)
	}
	return nil
}

// Close gives back everything that the file holds. Closing again does nothing; reading
// fails with an error that wraps [fs.ErrClosed].
func (f *File) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	err := f.release()
	f.mu.Unlock()
	if f.contents != nil {
		err = errors.Join(err, f.contents.close())
	}
	return err
}

// readEnd returns where a read of n bytes at off ends, at most the highest offset.
func readEnd(off int64, n int) int64 {
	if off > math.MaxInt64-int64(n) {
		return math.MaxInt64
	}
	return off + int64(n)
}

// Is tells whether info describes the file that was opened.
func (f *File) Is(info fs.FileInfo) bool { return os.SameFile(f.opened, info) }
