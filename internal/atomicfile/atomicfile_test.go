package atomicfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// childEnv makes the test binary a writer that is to be killed: see TestKilledWriter.
const childEnv = "ATOMICFILE_TEST_WRITE"

func TestMain(m *testing.M) {
	if target := os.Getenv(childEnv); target != "" {
		writeAndWait(target)
	}
	os.Exit(m.Run())
}

// writeAndWait is in the middle of replacing target until it is killed.
func writeAndWait(target string) {
	f, err := Create(target)
	if err == nil {
		_, err = f.Write([]byte("half of the new con"))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(f.temp)
	io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func create(t testing.TB, target string) *File {
	t.Helper()
	f, err := Create(target)
	if err != nil {
		t.Fatal(err)
	}
	for _, leftover := range f.Leftovers() {
		t.Error(leftover)
	}
	t.Cleanup(func() {
		if err := f.Abort(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// fill writes and syncs content.
func fill(f *File, content string) error {
	if _, err := f.Write([]byte(content)); err != nil {
		return err
	}
	return f.Sync()
}

func replaceWith(t testing.TB, target, content string) {
	t.Helper()
	f := create(t, target)
	if err := fill(f, content); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
}

// requireDir fails unless dir holds exactly the given files: name to content, with
// "directory" and "link" for what is no file.
func requireDir(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, entry := range entries {
		switch {
		case entry.IsDir():
			got[entry.Name()] = "directory"
		case entry.Type()&fs.ModeSymlink != 0:
			got[entry.Name()] = "link"
		default:
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			got[entry.Name()] = string(content)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out.json")
	for _, content := range []string{"first", "second", ""} {
		replaceWith(t, target, content)
		requireDir(t, dir, map[string]string{"out.json": content})
	}
}

// Until Commit the target is the old one, and the content has another name.
func TestOldUntilCommit(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out.json")
	put(t, target, "old")
	f := create(t, target)
	temp := filepath.Base(f.temp)
	requireDir(t, dir, map[string]string{"out.json": "old", temp: ""})
	if err := fill(f, "new"); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "old", temp: "new"})
	if err := f.Commit(); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "new"})
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "new"})
}

// A target that appears while it is looked for is no link that leads nowhere.
func TestTargetAppears(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out.json")
	put(t, target, "of another process")
	if got, err := resolveNew(target, dir, "out.json"); err != nil || filepath.Base(got) != "out.json" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAbort(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out.json")
	put(t, target, "old")
	f := create(t, target)
	if err := errors.Join(fill(f, "new"), f.Abort(), f.Abort()); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "old"})
	_, err := f.Write([]byte("x"))
	for _, err := range []error{err, f.Sync(), f.Commit()} {
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after Abort: %v", err)
		}
	}
}

func TestCommitWantsSync(t *testing.T) {
	dir := t.TempDir()
	f := create(t, filepath.Join(dir, "out.json"))
	if err := f.Commit(); !errors.Is(err, errNotSynced) {
		t.Errorf("nothing synced: %v", err)
	}
	if err := fill(f, "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	if err := f.Commit(); !errors.Is(err, errNotSynced) {
		t.Errorf("written after Sync: %v", err)
	}
	if err := errors.Join(f.Sync(), f.Commit()); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "newmore"})
}

func TestModeFollowsUmask(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	target := filepath.Join(t.TempDir(), "out.json")
	replaceWith(t, target, "new")
	info, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o640 {
		t.Errorf("mode %o, want 640", got)
	}
}

// A failed write or sync is final: nothing later may put the file in place.
func TestFailureIsFinal(t *testing.T) {
	for _, op := range []string{"write", "sync"} {
		dir := t.TempDir()
		f := create(t, filepath.Join(dir, "out.json"))
		if err := fill(f, "new"); err != nil {
			t.Fatal(err)
		}
		if err := f.file.Close(); err != nil { // makes the next operation fail
			t.Fatal(err)
		}
		first := f.Sync()
		if op == "write" {
			f.failed = nil
			_, first = f.Write([]byte("x"))
		}
		if want := "cannot " + op + " " + f.temp + ": "; first == nil || !strings.HasPrefix(first.Error(), want) {
			t.Errorf("%v, want %s…", first, want)
		}
		_, err := f.Write(nil)
		for _, err := range []error{err, f.Sync(), f.Commit()} {
			if err != first {
				t.Errorf("after %v: %v", first, err)
			}
		}
		if err := f.Abort(); err != nil {
			t.Fatal(err)
		}
		requireDir(t, dir, map[string]string{})
	}
}

// When only the directory cannot be synced, the file is in place and that is said.
func TestDurability(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out.json")
	put(t, target, "old")
	f := create(t, target)
	if err := errors.Join(fill(f, "new"), f.dir.Close()); err != nil {
		t.Fatal(err)
	}
	err := f.Commit()
	durability, ok := errors.AsType[*DurabilityError](err)
	if !ok || durability.Path != f.Path() || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v, want a DurabilityError", err)
	}
	want := f.Path() + " is written, but may not outlast a power cut: cannot sync its directory: "
	if !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s…", err, want)
	}
	if err := f.Abort(); err != nil {
		t.Error(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "new"})
}

// A rename that fails leaves the target and, after Abort, nothing else.
func TestRenameFails(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "out.json")
	f := create(t, target)
	if err := errors.Join(fill(f, "new"), os.Mkdir(target, 0o755)); err != nil {
		t.Fatal(err)
	}
	err := f.Commit()
	if err == nil || !strings.HasPrefix(err.Error(), "cannot replace "+f.Path()+": ") {
		t.Errorf("%v", err)
	}
	if _, ok := errors.AsType[syscall.Errno](err); !ok {
		t.Errorf("%v wraps no error of the system", err)
	}
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"out.json": "directory"})
}

// setUpTargets makes a directory with everything that a target can be.
func setUpTargets(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	put(t, at("file"), "old")
	err = errors.Join(
		os.MkdirAll(at("sub/deep"), 0o755),
		os.Symlink("file", at("link")),
		os.Symlink("link", at("link2")),
		os.Symlink("none", at("dangling")),
		os.Symlink("dangling", at("dangling2")),
		os.Symlink("loop", at("loop")),
		os.Symlink("sub", at("linkdir")),
		os.Symlink("sub/deep", at("deep")),
		syscall.Mkfifo(at("fifo"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTarget(t *testing.T) {
	dir := setUpTargets(t)
	t.Chdir(dir)
	tests := []struct {
		path, want string // relative to dir
		exists     bool
		err        string
	}{
		{path: "file", want: "file", exists: true},
		{path: "link", want: "file", exists: true},
		{path: "link2", want: "file", exists: true},
		{path: "new", want: "new"},
		{path: "./new", want: "new"},
		{path: "linkdir/new", want: "sub/new"},
		{path: "linkdir/../file", want: "file", exists: true},
		{path: "deep/../new", want: "sub/new"},
		{path: "sub", err: "sub is a directory; name a regular file or a new one"},
		{path: "linkdir", err: "linkdir is a directory; name a regular file or a new one"},
		{path: ".", err: ". is a directory; name a regular file or a new one"},
		{path: "sub/", err: "sub/ names no file; name a regular file or a new one"},
		{path: "new/", err: "new/ names no file; name a regular file or a new one"},
		{path: "", err: "an empty path names no file; name a regular file or a new one"},
		{path: "dangling", err: "dangling is a symbolic link that leads nowhere; name a regular file or a new one"},
		{path: "dangling2", err: "dangling2 is a symbolic link that leads nowhere; name a regular file or a new one"},
		{path: "loop", err: "loop leads through a loop of symbolic links; name a regular file or a new one"},
		{path: "fifo", err: "fifo is not a regular file; name a regular file or a new one"},
		{path: "/dev/null", err: "/dev/null is not a regular file; name a regular file or a new one"},
		{path: "none/new", err: "cannot open directory none: no such file or directory"},
		{path: "none/..", err: "cannot open directory none: no such file or directory"},
		{path: "dangling/new", err: "cannot open directory dangling: no such file or directory"},
		{path: "file/new", err: "cannot write file/new: not a directory"},
	}
	for _, tt := range tests {
		resolved, info, err := Target(tt.path)
		if tt.err != "" {
			if err == nil || err.Error() != tt.err {
				t.Errorf("Target(%q) = %v, want %s", tt.path, err, tt.err)
			}
			if _, err := Create(tt.path); err == nil || err.Error() != tt.err {
				t.Errorf("Create(%q) = %v, want %s", tt.path, err, tt.err)
			}
			_, isTarget := errors.AsType[*TargetError](err)
			_, isWrite := errors.AsType[syscall.Errno](err)
			if isTarget == isWrite {
				t.Errorf("Target(%q) = %T, want a TargetError or an error of the system", tt.path, err)
			}
			continue
		}
		if err != nil || resolved != tt.want || (info != nil) != tt.exists {
			t.Errorf("Target(%q) = %q, %v, %v, want %q", tt.path, resolved, info, err, tt.want)
		}
	}
	for _, name := range []string{"file", "new", "linkdir/new"} {
		resolved, _, err := Target(filepath.Join(dir, name))
		if err != nil || !filepath.IsAbs(resolved) {
			t.Errorf("an absolute path resolves to %q, %v", resolved, err)
		}
	}
}

// A link stays a link; the file that it leads to is replaced, where that file is.
func TestReplaceThroughLinks(t *testing.T) {
	dir := setUpTargets(t)
	replaceWith(t, filepath.Join(dir, "link2"), "new")
	replaceWith(t, filepath.Join(dir, "linkdir", "out"), "new")
	requireDir(t, filepath.Join(dir, "sub"), map[string]string{"out": "new", "deep": "directory"})
	content, err := os.ReadFile(filepath.Join(dir, "file"))
	if err != nil || string(content) != "new" {
		t.Errorf("file: %q, %v", content, err)
	}
	for _, name := range []string{"link", "link2", "linkdir"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("%s is not a link any more: %v", name, err)
		}
	}
}

func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	const random = "0123456789abcdef"
	keep := map[string]string{
		"x.json":                                                "old",
		".y.json.fpm-" + random + ".tmp":                        "another target",
		".xx.json.fpm-" + random + ".tmp":                       "another target",
		".x.json.fpm-a.b.tmp":                                   "another form",
		".x.json.fpm-.tmp":                                      "another form",
		".x.json.fpm-" + random + "0.tmp":                       "another form",
		".x.json.fpm-0123456789ABCDEF.tmp":                      "another form",
		".x.json.fpm-" + random + ".tmp2":                       "another form",
		".x.json.fpm-" + random:                                 "another form",
		"x.json.fpm-" + random + ".tmp":                         "another form",
		".x.json.fpm-" + random + ".tmp.fpm-" + random + ".tmp": "temporary file of an odd target",
		"kept": "what the link leads to",
	}
	for name, content := range keep {
		put(t, filepath.Join(dir, name), content)
	}
	link, sub := ".x.json.fpm-aaaaaaaaaaaaaaaa.tmp", ".x.json.fpm-bbbbbbbbbbbbbbbb.tmp"
	err := errors.Join(os.Symlink("kept", filepath.Join(dir, link)), os.Mkdir(filepath.Join(dir, sub), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	keep[link], keep[sub] = "link", "directory"
	put(t, filepath.Join(dir, ".x.json.fpm-"+random+".tmp"), "leftover")
	put(t, filepath.Join(dir, ".x.json.fpm-ffffffffffffffff.tmp"), "leftover")

	f := create(t, filepath.Join(dir, "x.json"))
	if err := f.Abort(); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, keep)
}

// A new temporary file that another process has taken for a leftover is given up.
func TestClaim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "temp")
	tests := []struct {
		name    string
		disturb func(file *os.File) error
		want    bool
	}{
		{"undisturbed", func(*os.File) error { return nil }, true},
		{"removed", func(*os.File) error { return os.Remove(path) }, false},
		{"replaced", func(*os.File) error {
			return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600))
		}, false},
		{"locked", func(*os.File) error {
			other, err := os.Open(path)
			if err != nil {
				return err
			}
			t.Cleanup(func() { other.Close() })
			return unix.Flock(int(other.Fd()), unix.LOCK_EX)
		}, false},
	}
	for _, tt := range tests {
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := tt.disturb(file); err != nil {
			t.Fatal(err)
		}
		if got, err := claim(file); err != nil || got != tt.want {
			t.Errorf("%s: claim = %v, %v, want %v", tt.name, got, err, tt.want)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLockedLeftoverStays(t *testing.T) {
	dir := t.TempDir()
	target, name := filepath.Join(dir, "x.json"), ".x.json.fpm-0123456789abcdef.tmp"
	put(t, filepath.Join(dir, name), "in use")
	owner, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := unix.Flock(int(owner.Fd()), unix.LOCK_EX); err != nil {
		t.Skip("no locks on this file system: ", err)
	}
	replaceWith(t, target, "new")
	requireDir(t, dir, map[string]string{"x.json": "new", name: "in use"})
	if err := unix.Flock(int(owner.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	replaceWith(t, target, "newer")
	requireDir(t, dir, map[string]string{"x.json": "newer"})
}

// What a killed process leaves is kept while it lives and removed when it is dead.
func TestKilledWriter(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "x.json")
	put(t, target, "old")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childEnv+"="+target)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	temp := filepath.Base(strings.TrimSpace(line))

	if err := create(t, target).Abort(); err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"x.json": "old", temp: "half of the new con"})
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err == nil {
		t.Fatal("the killed process reports success")
	}
	requireDir(t, dir, map[string]string{"x.json": "old", temp: "half of the new con"})
	replaceWith(t, target, "new")
	requireDir(t, dir, map[string]string{"x.json": "new"})
}

// Writers of one target at once, with a reader: every state of the target is whole, no
// writer removes the file of another, and nothing is left.
func TestWritersAtOnce(t *testing.T) {
	const writers, rounds, size = 4, 20, 50_000
	dir := t.TempDir()
	target := filepath.Join(dir, "x.json")
	put(t, target, strings.Repeat("0", size))
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			content := strings.Repeat(string(rune('1'+w)), size)
			for range rounds {
				f, err := Create(target)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(append(f.Leftovers(), fill(f, content), f.Commit(), f.Abort())...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	for running := true; running; {
		select {
		case <-finished:
			running = false
		default:
		}
		content, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) != size || bytes.Count(content, content[:1]) != size {
			t.Fatalf("the target is not whole: %d bytes", len(content))
		}
	}
	content, err := os.ReadFile(target)
	if err != nil {
		t.Fatal(err)
	}
	requireDir(t, dir, map[string]string{"x.json": string(content)})
}

func TestRemoveRegular(t *testing.T) {
	dir := setUpTargets(t)
	tests := []struct {
		name    string
		removed bool
	}{
		{"link", false}, {"dangling", false}, {"sub", false}, {"fifo", false},
		{"none", false}, {"none/none", false}, {"linkdir", false},
		{"file", true}, {"file", false},
	}
	for _, tt := range tests {
		path := filepath.Join(dir, tt.name)
		_, before := os.Lstat(path)
		removed, err := RemoveRegular(path)
		if err != nil || removed != tt.removed {
			t.Errorf("RemoveRegular(%s) = %v, %v", tt.name, removed, err)
		}
		if _, after := os.Lstat(path); !removed && (after == nil) != (before == nil) {
			t.Errorf("%s is gone", tt.name)
		}
	}
	put(t, filepath.Join(dir, "file"), "")
	_, err := RemoveRegular(filepath.Join(dir, "file/x"))
	if want := "cannot remove " + dir + "/file/x: not a directory"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A temporary name is recognised for its own target and for no other.
func FuzzTempName(f *testing.F) {
	f.Add("x.json", "y.json")
	f.Add("x", "x.fpm-0123456789abcdef.tmp")
	f.Add("", ".")
	f.Fuzz(func(t *testing.T, base, other string) {
		name := tempName(base)
		if !isTempName(name, base) {
			t.Errorf("%q is not recognised for %q", name, base)
		}
		if base != other && isTempName(name, other) {
			t.Errorf("%q is taken for one of %q", name, other)
		}
	})
}
