package segment

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// faulty is the file system of the operating system with faults that a test asks for. A
// fault is asked before each operation; what it returns is the operation's error.
type faulty struct {
	system
	fault func(op string) error
	short func(n int) int // how much of a write is done before it fails
	calls []string
}

func (f *faulty) ask(op string) error {
	f.calls = append(f.calls, op)
	if f.fault == nil {
		return nil
	}
	return f.fault(op)
}

func (f *faulty) Create(path string) (File, error) {
	if err := f.ask("create"); err != nil {
		return nil, err
	}
	file, err := f.system.Create(path)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file.(*os.File), f}, nil
}

func (f *faulty) List(dir string, each func(fs.DirEntry)) error {
	if err := f.ask("list"); err != nil {
		return err
	}
	return f.system.List(dir, each)
}

func (f *faulty) Unlink(path string) error {
	if err := f.ask("unlink"); err != nil {
		return err
	}
	return f.system.Unlink(path)
}

func (f *faulty) SyncDir(string) error {
	return f.ask("syncdir") // and no sync, which would take most of the tests' time
}

type faultyFile struct {
	*os.File
	fs *faulty
}

// WriteAt fails as os.File does: with a part written, and 0 for what it says it wrote.
func (f *faultyFile) WriteAt(p []byte, at int64) (int, error) {
	if err := f.fs.ask("write"); err != nil {
		n := 0
		if f.fs.short != nil {
			n = f.fs.short(len(p))
		}
		if _, werr := f.File.WriteAt(p[:n], at); werr != nil {
			return 0, werr
		}
		return 0, err
	}
	return f.File.WriteAt(p, at)
}

func (f *faultyFile) Truncate(size int64) error {
	if err := f.fs.ask("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *faultyFile) Sync() error {
	return f.fs.ask("sync")
}

// failing returns a fault that fails the named operations with ENOSPC as long as on is
// true.
func failing(on *bool, ops ...string) func(string) error {
	return func(op string) error {
		for _, o := range ops {
			if *on && o == op {
				return syscall.ENOSPC
			}
		}
		return nil
	}
}

// read returns the lines and holes of what arguments stand for.
func read(t testing.TB, args ...string) (lines []string, holes []Hole) {
	t.Helper()
	sources, err := Find(args)
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(sources, ReaderOptions{})
	defer r.Close()
	lines, holes, errs := drain(r)
	for _, err := range errs {
		t.Fatal(err)
	}
	return lines, holes
}

// names returns the names in a directory.
func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// writer returns a writer into a new directory, and the prefix there.
func writer(t testing.TB, opt Options) (w *Writer, prefix string) {
	t.Helper()
	if opt.Prefix == "" {
		opt.Prefix = filepath.Join(t.TempDir(), "t")
	}
	if opt.Producer == "" {
		opt.Producer = "w"
	}
	w, err := NewWriter(opt)
	if err != nil {
		t.Fatal(err)
	}
	return w, opt.Prefix
}
