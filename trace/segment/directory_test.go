package segment

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Many writers with one directory list it once, and keep what they are to keep.
func TestSharedDirectory(t *testing.T) {
	for _, most := range []int{maxListing, 10} {
		prefix, disk := filepath.Join(t.TempDir(), "t.x"), &faulty{}
		const producers = 50
		name := func(p int, index uint64) string { return Name{prefix, fmt.Sprint("w", p), index}.Path() }
		for p := range producers {
			for index := range uint64(4) {
				must(t, os.WriteFile(name(p, index), nil, 0o600))
			}
		}
		must(t, os.WriteFile(prefix+".y.w0.000007.jsonl.gz", nil, 0o600)) // of the prefix t.x.y
		shared := NewDirectory(disk, prefix)
		shared.most = most
		for p := range producers {
			w, err := NewWriter(Options{Prefix: prefix, Producer: fmt.Sprint("w", p), FS: disk, Directory: shared, MaxSegments: 3, RollBytes: 1})
			must(t, err)
			appendRows(t, w, rows(0, 2))
			must(t, w.Close())
			if diff := cmp.Diff([]string{name(p, 4), name(p, 5)}, w.Segments()); diff != "" || w.Stats().Deleted != 3 {
				t.Errorf("%s%+v", diff, w.Stats())
			}
		}
		if got := names(t, filepath.Dir(prefix)); len(got) != 3*producers+1 {
			t.Errorf("%d files are left: %v", len(got), got)
		}
		if n := strings.Count(strings.Join(disk.calls, " "), "list"); most == maxListing && n != 1 {
			t.Errorf("the directory is listed %d times", n)
		}
	}
}

// What others do meanwhile is found when it is in the way, and after a while in any case.
func TestSharedDirectoryChanges(t *testing.T) {
	prefix, now := filepath.Join(t.TempDir(), "t"), time.Unix(0, 0)
	shared := NewDirectory(nil, prefix)
	shared.now = func() time.Time { return now }
	w, err := NewWriter(Options{Prefix: prefix, Producer: "w", Directory: shared, MaxSegments: 3, RollBytes: 1})
	must(t, err)
	flush := func(i int) {
		appendRows(t, w, rows(i, i+1))
		must(t, w.Flush())
	}
	put := func(index uint64) { must(t, os.WriteFile(Name{prefix, "w", index}.Path(), nil, 0o600)) }
	flush(0)
	put(1)
	put(7)
	flush(1) // collides with 1, and looks again
	put(9)
	now = now.Add(keepListing)
	flush(2)
	must(t, os.Remove(Name{prefix, "w", 9}.Path())) // is in the listing all the same
	flush(3)
	must(t, w.Close())
	want := []string{"t.w.000008.jsonl.gz", "t.w.000010.jsonl.gz", "t.w.000011.jsonl.gz"}
	if got := names(t, filepath.Dir(prefix)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
