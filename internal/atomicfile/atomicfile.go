// Package atomicfile replaces a file as a whole: after a failure, a kill or a power cut
// at any moment the target is either the old file or the new one.
//
// The new content goes to a temporary file in the target's directory. That file is
// synced, renamed over the target, and the directory is synced:
//
//	Create   .out.json.fpm-0f3a8c5d11e2b794.tmp appears, locked
//	Write    …
//	Sync     the content is on the disk
//	Commit   it is called out.json, and the name is on the disk as well
//	Abort    instead of Commit: the temporary file is gone
//
// A killed process leaves its temporary file behind. [Create] removes such leftovers of
// the same target. It tells them from the temporary file of a live process by the lock
// (flock) that every writer holds on its own and that the system drops when the writer
// dies; a file whose lock cannot be had is left alone.
//
// Links on the way to the target are resolved first, so a link stays a link and the file
// it leads to is replaced, in its own directory and on its own file system.
package atomicfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	mode = 0o666 // less the umask, as for any new file

	tempMark    = ".fpm-"
	tempSuffix  = ".tmp"
	randomBytes = 8

	// attempts bounds how often Create tries another name. A name is given up when it
	// is taken, or when another process removes the file before its lock is held.
	attempts = 100
)

// File is the new content of a target on its way. It is not safe for concurrent use.
type File struct {
	target    string // free of links
	temp      string
	file      *os.File
	dir       *os.File
	leftovers []error
	failed    error // the first failure of Write or Sync; it bars Commit
	synced    bool
	done      bool // committed or aborted
}

// Create starts the replacement of target, which need not exist. Its directory must. The
// error is a [*TargetError] when target is something that must not be replaced and a
// [*WriteError] otherwise.
//
// The caller ends with Commit or Abort.
func Create(target string) (*File, error) {
	resolved, _, err := Target(target)
	if err != nil {
		return nil, err
	}
	dirPath := filepath.Dir(resolved)
	dir, err := os.OpenFile(dirPath, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, writeError("open directory", dirPath, err)
	}
	f := &File{target: resolved, dir: dir}
	f.leftovers = removeLeftovers(dir, filepath.Base(resolved))
	if f.file, err = createTemp(resolved); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	f.temp = f.file.Name()
	return f, nil
}

// Path returns the path that Commit replaces: the target with links resolved.
func (f *File) Path() string { return f.target }

// Leftovers returns why temporary files that earlier writers left behind could not be
// removed: a warning each, and no obstacle.
func (f *File) Leftovers() []error { return f.leftovers }

// Write appends p to the new content. Each call is a system call; callers buffer. After
// an error only Abort is left, and every other call returns that error.
func (f *File) Write(p []byte) (int, error) {
	if err := f.usable(); err != nil {
		return 0, err
	}
	f.synced = false
	n, err := f.file.Write(p)
	return n, f.note("write", err)
}

// Sync makes the content durable, still under the temporary name.
func (f *File) Sync() error {
	if err := f.usable(); err != nil {
		return err
	}
	if err := f.note("sync", f.file.Sync()); err != nil {
		return err
	}
	f.synced = true
	return nil
}

// note keeps a failure. A second fsync may succeed although the first one lost data, so
// nothing is tried again.
func (f *File) note(op string, err error) error {
	if err == nil {
		return nil
	}
	f.failed = writeError(op, f.temp, err)
	return f.failed
}

func (f *File) usable() error {
	if f.done {
		return &WriteError{Op: "write", Path: f.target, Err: fs.ErrClosed}
	}
	return f.failed
}

// Commit puts the content in place of the target. Everything written must have been
// synced. An error other than a [*DurabilityError] means that the target is as it was
// and that Abort is still to be called.
func (f *File) Commit() error {
	if err := f.usable(); err != nil {
		return err
	}
	if !f.synced {
		return &WriteError{Op: "replace", Path: f.target, Err: errNotSynced}
	}
	if err := os.Rename(f.temp, f.target); err != nil {
		return writeError("replace", f.target, err)
	}
	f.done = true
	err := errors.Join(syncDir(f.dir), f.dir.Close(), f.file.Close())
	if err != nil {
		return &DurabilityError{Path: f.target, Err: bare(err)}
	}
	return nil
}

// syncDir makes a rename durable. A file system that has no such operation says EINVAL
// or ENOTSUP; there is nothing more to be had from it.
func syncDir(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}

// Abort removes the temporary file. After Commit, and when called again, it does nothing.
func (f *File) Abort() error {
	if f.done {
		return nil
	}
	f.done = true
	err := os.Remove(f.temp) // before the lock goes with the descriptor
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		err = writeError("remove the temporary file", f.temp, err)
	}
	// What the closes say concerns content that nobody wants any more.
	_, _ = f.file.Close(), f.dir.Close()
	return err
}

// createTemp makes and locks the temporary file for target. Between the two steps the
// file looks like a leftover, so another process may remove it: then it starts over.
func createTemp(target string) (*os.File, error) {
	dir, base := filepath.Split(target)
	for range attempts {
		path := dir + tempName(base)
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, writeError("create", path, err)
		}
		if mine, err := claim(file); err != nil {
			return nil, errors.Join(writeError("lock", path, err), os.Remove(path), file.Close())
		} else if mine {
			return file, nil
		}
		if err := file.Close(); err != nil {
			return nil, writeError("create", path, err)
		}
	}
	return nil, &WriteError{Op: "create a temporary file for", Path: target, Err: errNoName}
}

// claim locks a new temporary file and reports whether it is still there. A file system
// without locks gives none, to nobody: then no process removes leftovers there either.
func claim(file *os.File) (bool, error) {
	locked, err := lock(file)
	if errors.Is(err, errNoLocks) {
		return true, nil
	}
	if err != nil || !locked {
		return false, err
	}
	return names(file.Name(), file)
}

// tempName returns a new name for a temporary file of a target called base.
func tempName(base string) string {
	var random [randomBytes]byte
	_, _ = rand.Read(random[:]) // never fails, as documented
	return "." + base + tempMark + hex.EncodeToString(random[:]) + tempSuffix
}

// isTempName reports whether name is one that tempName gives to the target base. The
// random part has a fixed form, so no temporary file of another target qualifies.
func isTempName(name, base string) bool {
	random, ok := strings.CutPrefix(name, "."+base+tempMark)
	if !ok {
		return false
	}
	random, ok = strings.CutSuffix(random, tempSuffix)
	return ok && len(random) == 2*randomBytes && strings.Trim(random, "0123456789abcdef") == ""
}
