package record

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/fpm-project/fpm/internal/exitcode"
)

// maxRecorders is how many recorders of one prefix have a manifest each.
const maxRecorders = 1000

// claim locks a file, which it creates if need be. It returns nil when somebody else has
// the lock, which is busy, or the file cannot be opened: in a common directory it may be
// another user's.
// A file system without locks has no owners; there the file itself is enough.
func claim(path string) (lock *os.File, busy bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o644)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ELOOP) || errors.Is(err, syscall.EISDIR) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil, errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EINVAL):
		return f, false, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, true, f.Close()
	default:
		return nil, false, errors.Join(&fs.PathError{Op: "lock", Path: path, Err: err}, f.Close())
	}
}

// probe makes sure that files can be written where they are to be: the directory is made
// if need be, and a file with a name of its own is created there, written and removed.
func probe(prefix string) (err error) {
	dir, base := filepath.Split(prefix)
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return unwritable(err)
		}
	}
	path := dir + "." + base + ".write-probe-" + rand.Text()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return unwritable(err)
	}
	_, err = f.WriteString("probe\n")
	err = errors.Join(err, f.Close(), os.Remove(path))
	if err != nil {
		return unwritable(err)
	}
	return nil
}

func unwritable(err error) error {
	e := exitcode.From(err)
	hint := e.Hint
	if hint == "" {
		hint = "choose another place with --output"
	}
	return &exitcode.Error{Code: exitcode.Failed, File: e.File, Message: "nothing can be recorded here: " + e.Message, Hint: hint, Err: err}
}

// maxOpen is how many files of producers may be open: half of what the process may have,
// for each may have an endpoint with a connection.
func maxOpen() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxStreams
	}
	return int(min(limit.Cur/2, maxStreams))
}
