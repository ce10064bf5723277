package segment

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// FS is what a [Writer] needs of a file system. The zero Options use that of the operating
// system; tests put one in its place that fails.
type FS interface {
	// Create creates a file that must not exist, in whatever form: a symlink, dangling or
	// not, is refused.
	Create(path string) (File, error)
	// List calls each for the entries of a directory, in any order.
	List(dir string, each func(fs.DirEntry)) error
	// Lstat describes a file without following a symlink.
	Lstat(path string) (fs.FileInfo, error)
	// Unlink removes a file, never a directory.
	Unlink(path string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(dir string) error
}

// File is an open segment.
type File interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
}

// System returns the file system of the operating system.
func System() FS { return system{} }

// system is the file system of the operating system.
type system struct{}

func (system) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// listChunk bounds how many entries of a directory are in memory at a time.
const listChunk = 1024

func (system) List(dir string, each func(fs.DirEntry)) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(listChunk)
		for _, e := range entries {
			each(e)
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (system) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

func (system) Unlink(path string) error {
	if err := syscall.Unlink(path); err != nil { // os.Remove would remove an empty directory
		return &fs.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

func (system) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
