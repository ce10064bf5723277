package input_test

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fpm-project/fpm/internal/input"
)

// A compressed file is read at random like a plain one.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "benchmark_results.json.gz")
	if err := writeGzip(path, `{"status": "complete", "valid": true}`); err != nil {
		fmt.Println(err)
		return
	}

	f, err := input.Open(path, input.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	text := make([]byte, 10)
	if _, err := f.ReadAt(text, 11); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", text)
	fmt.Println(f.ReadAt(text, 30))
	fmt.Println(f.Changed())
	// Output:
	// "complete"
	// 7 EOF
	// <nil>
}

func writeGzip(path, text string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	w := gzip.NewWriter(file)
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return file.Close()
}
