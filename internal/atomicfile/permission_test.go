package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// nobody is a user without rights of its own.
const nobody = 65534

const asNobodyEnv = "ATOMICFILE_TEST_DIR"

// Permissions do not bind root, so root runs the check as another user.
func TestReadOnlyDirectory(t *testing.T) {
	if dir := os.Getenv(asNobodyEnv); dir != "" {
		checkReadOnlyDirectory(t, dir)
		return
	}
	if os.Getuid() != 0 {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "out.json"), "old")
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		checkReadOnlyDirectory(t, dir)
		if err := os.Chmod(dir, 0o755); err != nil { // or it could not be cleaned up
			t.Fatal(err)
		}
		return
	}
	dir := reachableDir(t)
	put(t, filepath.Join(dir, "out.json"), "old")
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(reachableDir(t), "atomicfile.test")
	if err := os.WriteFile(run, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(run, "-test.run=^TestReadOnlyDirectory$", "-test.v")
	child.Dir = dir
	child.Env = []string{asNobodyEnv + "=" + dir}
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := child.CombinedOutput()
	if err != nil {
		t.Fatalf("as user %d: %v\n%s", nobody, err, output)
	}
	if !strings.Contains(string(output), "--- PASS: TestReadOnlyDirectory") {
		t.Errorf("as user %d the check did not run:\n%s", nobody, output)
	}
}

// reachableDir makes a directory that every user can enter and none but its owner can
// write to; the parents of t.TempDir are closed to others.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "atomicfile")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func checkReadOnlyDirectory(t *testing.T, dir string) {
	t.Helper()
	_, err := Create(filepath.Join(dir, "out.json"))
	if !errors.Is(err, fs.ErrPermission) || !strings.HasPrefix(err.Error(), "cannot create ") ||
		!strings.HasSuffix(err.Error(), ".tmp: permission denied") {
		t.Errorf("%v, want a refusal to create the temporary file", err)
	}
	requireDir(t, dir, map[string]string{"out.json": "old"})
}
