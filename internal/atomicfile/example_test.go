package atomicfile_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fpm-project/fpm/internal/atomicfile"
)

// The usual way: whatever fails, Abort cleans up, and after Commit it does nothing.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	target := filepath.Join(dir, "out.json")
	if err := replace(target, `{"artifact_type": "merged"}`); err != nil {
		fmt.Println(err)
		return
	}
	content, err := os.ReadFile(target)
	fmt.Println(string(content), err)
	// Output: {"artifact_type": "merged"} <nil>
}

func replace(target, content string) (err error) {
	f, err := atomicfile.Create(target)
	if err != nil {
		return err
	}
	defer func() {
		if aborted := f.Abort(); err == nil {
			err = aborted
		}
	}()
	w := bufio.NewWriter(f)
	if _, err := w.WriteString(content); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return f.Commit()
}
