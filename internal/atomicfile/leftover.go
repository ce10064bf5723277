package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// errNoLocks says that a file system has no locks.
var errNoLocks = errors.New("the file system has no locks")

// dirBatch is how many names are read from a directory at a time.
const dirBatch = 1024

// removeLeftovers removes the temporary files for the target base that no live process
// holds, and returns what kept it from doing so.
func removeLeftovers(dir *os.File, base string) (failures []error) {
	var leftovers []string
	for {
		batch, err := dir.Readdirnames(dirBatch)
		for _, name := range batch {
			if isTempName(name, base) {
				leftovers = append(leftovers, filepath.Join(dir.Name(), name))
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			failures = append(failures, writeError("look for leftovers in", dir.Name(), err))
			break
		}
	}
	for _, path := range leftovers {
		if err := removeLeftover(path); err != nil {
			failures = append(failures, writeError("remove the leftover", path, err))
		}
	}
	return failures
}

// removeLeftover removes path if it is a regular file that no process has locked. Its
// writer may be alive and rename the file at any moment, so the name is checked again
// under the lock.
func removeLeftover(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return unlessGone(err)
	}
	// For writing, because a lock over NFS demands it.
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unlessGone(err)
	}
	locked, err := lock(file)
	if err == nil && locked {
		var same bool
		if same, err = names(path, file); same {
			err = unlessGone(os.Remove(path))
		}
	}
	return errors.Join(err, file.Close())
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// names reports whether path, not followed, is the open regular file.
func names(path string, file *os.File) (bool, error) {
	opened, err := file.Stat()
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return false, unlessGone(err)
	}
	return info.Mode().IsRegular() && os.SameFile(info, opened), nil
}

// lock takes the exclusive lock on a file and reports whether it did: not so while
// another process, or another descriptor of this one, has it.
func lock(file *os.File) (bool, error) {
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case lacksLocks(err):
			return false, errNoLocks
		default:
			return false, err
		}
	}
}

func lacksLocks(err error) bool {
	return errors.Is(err, unix.ENOLCK) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP)
}

// RemoveRegular removes path if it is itself a regular file; links, directories and
// special files stay. It reports whether it removed something. That nothing is there is
// not an error.
func RemoveRegular(path string) (removed bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, writeError("remove", path, err)
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	err = os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, writeError("remove", path, err)
	}
	return true, nil
}
