package input

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

// compressed writes size zero bytes as a gzip file and opens it.
func compressed(t *testing.T, size int, spool *Spool) *File {
	t.Helper()
	var raw bytes.Buffer
	w := gzip.NewWriter(&raw)
	if _, err := w.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.json.gz")
	if err := os.WriteFile(path, raw.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, Options{Spool: spool})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A file that expands a thousandfold costs what is read of it and at most 1 MiB more.
func TestDecompressesLazily(t *testing.T) {
	f := compressed(t, 16<<20, nil)
	defer f.Close()
	if f.contents.text.size != 0 {
		t.Error("opening decompresses")
	}
	for _, off := range []int64{0, 100, 5 << 20} {
		if _, err := f.ReadAt(make([]byte, 100), off); err != nil {
			t.Fatal(err)
		}
		if size := f.contents.text.size; size < off+100 || size > off+100+1<<20 {
			t.Errorf("reading up to %d decompresses %d bytes", off+100, size)
		}
	}
}

// What is not needed any more is given back: the decoder and the descriptor at the end
// of the text and in a suspension, the room in the spool with the file.
func TestGivesBack(t *testing.T) {
	spool := NewSpool(t.TempDir())
	defer spool.Close()
	f := compressed(t, 3<<20+1, spool)
	if _, err := f.ReadAt(make([]byte, 1), 0); err != nil {
		t.Fatal(err)
	}
	if f.contents.reader == nil || f.handle.Load() == nil {
		t.Fatal("nothing is held in the middle of the text: this test checks nothing")
	}
	if err := f.Suspend(); err != nil {
		t.Fatal(err)
	}
	if f.contents.reader != nil || f.handle.Load() != nil {
		t.Error("a suspended file holds a decoder or a descriptor")
	}
	if _, err := f.ReadAt(make([]byte, 2), 3<<20); err == nil {
		t.Fatal("reading past the end succeeds")
	}
	if f.contents.reader != nil || f.handle.Load() != nil {
		t.Error("a file at its end holds a decoder or a descriptor")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if len(spool.free) != 4 {
		t.Errorf("%d extents came back, want 4", len(spool.free))
	}
	g := compressed(t, 2<<20, spool)
	defer g.Close()
	if _, err := g.ReadAt(make([]byte, 2), 1<<20); err != nil {
		t.Fatal(err)
	}
	if spool.end != 4*extentSize {
		t.Errorf("the spool grew to %d bytes instead of using what came back", spool.end)
	}
}
