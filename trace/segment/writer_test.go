package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	stdgzip "compress/gzip"

	"github.com/google/go-cmp/cmp"
)

func drain(r *Reader) (lines []string, holes []Hole, errs []error) {
	for {
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return lines, holes, errs
		case err != nil:
			errs = append(errs, err)
		case rec.Hole != nil:
			holes = append(holes, *rec.Hole)
		default:
			lines = append(lines, string(rec.Line))
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rows(from, to int) (list []string) {
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf(`{"row":%d}`, i))
	}
	return list
}

func appendRows(t testing.TB, w *Writer, lines []string) {
	t.Helper()
	for _, line := range lines {
		must(t, w.Append([]byte(line+"\n")))
	}
}

// Another implementation of gzip reads each member, which carries neither name nor time.
func TestMembersAreGzip(t *testing.T) {
	w, prefix := writer(t, Options{})
	for i := range 3 {
		appendRows(t, w, rows(10*i, 10*i+10))
		must(t, w.Flush())
	}
	must(t, w.Flush()) // nothing buffered: no member
	must(t, w.Close())
	data, err := os.ReadFile(prefix + ".w.000000.jsonl.gz")
	must(t, err)
	in := bytes.NewReader(data)
	for i := range 3 {
		z, err := stdgzip.NewReader(in)
		must(t, err)
		z.Multistream(false)
		text, err := io.ReadAll(z)
		must(t, err)
		if want := strings.Join(rows(10*i, 10*i+10), "\n") + "\n"; string(text) != want || z.Name != "" || !z.ModTime.IsZero() {
			t.Errorf("member %d: %q, name %q, time %v", i, text, z.Name, z.ModTime)
		}
	}
	if in.Len() != 0 {
		t.Errorf("%d bytes behind the third member", in.Len())
	}
	if diff := cmp.Diff(Stats{Rows: 30, Bytes: 320, Compressed: uint64(len(data)), Members: 3, Segments: 1}, w.Stats()); diff != "" {
		t.Error(diff)
	}
}

// A row goes to the next segment when the segment has one and would exceed the threshold
// with it; equality fits, and a row that is too large stands alone.
func TestRoll(t *testing.T) {
	w, prefix := writer(t, Options{RollBytes: 24, MaxSegments: 100})
	for _, row := range []string{"12345678901", "12345678901", "2", strings.Repeat("x", 100), "3", "4"} {
		must(t, w.Append([]byte(row+"\n")))
	}
	must(t, w.Close())
	var got []string
	for i := range 4 {
		lines, _ := read(t, Name{prefix, "w", uint64(i)}.Path())
		got = append(got, strings.Join(lines, " "))
	}
	if diff := cmp.Diff([]string{"12345678901 12345678901", "2", strings.Repeat("x", 100), "3 4"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsCreatedBeforeTheFirstFlush(t *testing.T) {
	w, prefix := writer(t, Options{})
	appendRows(t, w, rows(0, 3))
	if got := names(t, filepath.Dir(prefix)); got != nil || w.Path() != "" {
		t.Errorf("created %v, %q", got, w.Path())
	}
	must(t, w.Flush())
	if w.Path() != prefix+".w.000000.jsonl.gz" || w.Buffered() != 0 {
		t.Errorf("%q, %d bytes buffered", w.Path(), w.Buffered())
	}
	must(t, w.Close())
	w, _ = writer(t, Options{Prefix: prefix})
	must(t, w.Close())
	if got := names(t, filepath.Dir(prefix)); len(got) != 1 {
		t.Errorf("a writer without rows left %v", got)
	}
}

func TestFlushAtOneMebibyte(t *testing.T) {
	w, _ := writer(t, Options{})
	row := bytes.Repeat([]byte("x"), 1<<16)
	row[len(row)-1] = '\n'
	for i := range 15 {
		must(t, w.Append(row))
		if w.Stats().Members != 0 {
			t.Fatalf("flushed after %d rows", i+1)
		}
	}
	must(t, w.Append(row))
	if w.Stats().Members != 1 || w.Buffered() != 0 {
		t.Errorf("%+v, %d bytes buffered", w.Stats(), w.Buffered())
	}
	must(t, w.Close())
}

// The next index is one above the highest that anything occupies, and what is not exactly
// a segment of this producer is neither counted nor deleted.
func TestRetention(t *testing.T) {
	dir := t.TempDir()
	prefix := filepath.Join(dir, "t")
	outside := filepath.Join(t.TempDir(), "kept")
	foreign := []string{
		"t.w.000001.jsonl.gz.bak", "t.w.0000001.jsonl.gz", "t.v.000000.jsonl.gz", "t.w.x.000001.jsonl.gz", "t.w.000000.jsonl.lock",
		"u.w.000000.jsonl.gz", "t.w.00001.jsonl.gz", "t.w.000001.jsonl", "t.manifest.json",
	}
	for _, name := range append(slices.Clone(foreign), "t.w.000002.jsonl.gz", "t.w.000004.jsonl.gz") {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	must(t, os.WriteFile(outside, []byte("x"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "t.w.000000.jsonl.gz")))
	must(t, os.Mkdir(filepath.Join(dir, "t.w.000009.jsonl.gz"), 0o700))
	w, _ := writer(t, Options{Prefix: prefix, MaxSegments: 2, RollBytes: 1, Warn: func(err error) { t.Error(err) }})
	appendRows(t, w, rows(0, 4))
	must(t, w.Close())
	want := append(slices.Clone(foreign), "t.w.000000.jsonl.gz", "t.w.000009.jsonl.gz", "t.w.000012.jsonl.gz", "t.w.000013.jsonl.gz")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Error(diff)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "x" {
		t.Errorf("what the symlink led to: %q, %v", text, err)
	}
	if got := w.Stats(); got.Deleted != 4 || got.Segments != 4 {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff([]string{Name{prefix, "w", 12}.Path(), Name{prefix, "w", 13}.Path()}, w.Segments()); diff != "" {
		t.Error(diff)
	}
}

func TestRetentionEndsAtTheFirstFailure(t *testing.T) {
	on := true
	var warned []error
	disk := &faulty{fault: failing(&on, "unlink")}
	w, prefix := writer(t, Options{MaxSegments: 1, RollBytes: 1, FS: disk, Warn: func(err error) { warned = append(warned, err) }})
	appendRows(t, w, rows(0, 3))
	must(t, w.Flush())
	if len(warned) != 2 || !errors.Is(warned[0], syscall.ENOSPC) || strings.Count(strings.Join(disk.calls, " "), "unlink") != 2 {
		t.Errorf("warned of %v", warned)
	}
	on = false
	appendRows(t, w, rows(3, 4))
	must(t, w.Close())
	if got := names(t, filepath.Dir(prefix)); len(got) != 1 || w.Stats().Deleted != 3 {
		t.Errorf("%v, %+v", got, w.Stats())
	}
}

// Two writers of one producer never write one file.
func TestTwoWriters(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "t")
	opt := Options{Prefix: prefix, RollBytes: 50, MaxSegments: 1000}
	a, _ := writer(t, opt)
	b, _ := writer(t, opt)
	for i := range 40 {
		w := a
		if i%3 == 1 {
			w = b
		}
		appendRows(t, w, rows(i, i+1))
		must(t, w.Flush())
	}
	must(t, a.Close())
	must(t, b.Close())
	lines, holes := read(t, prefix)
	slices.SortFunc(lines, func(a, b string) int { return len(a) - len(b) })
	slices.SortStableFunc(lines, func(x, y string) int {
		if len(x) != len(y) {
			return len(x) - len(y)
		}
		return strings.Compare(x, y)
	})
	if diff := cmp.Diff(rows(0, 40), lines); diff != "" || len(holes) > 0 {
		t.Error(diff, holes)
	}
	if shared := intersect(a.Segments(), b.Segments()); len(shared) > 0 {
		t.Errorf("both wrote %v", shared)
	}
}

func intersect(a, b []string) (both []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}

// A segment that another process takes between the listing and the creation.
func TestCollisionAtCreation(t *testing.T) {
	var prefix string
	disk := &faulty{}
	disk.fault = func(op string) error {
		if n := strings.Count(strings.Join(disk.calls, " "), "create"); op == "create" && n <= 3 {
			must(t, os.Symlink("nowhere", Name{prefix, "w", uint64(n - 1)}.Path()))
		}
		return nil
	}
	w, p := writer(t, Options{FS: disk})
	prefix = p
	appendRows(t, w, rows(0, 1))
	must(t, w.Flush())
	if want := prefix + ".w.000003.jsonl.gz"; w.Path() != want {
		t.Errorf("wrote %s, want %s", w.Path(), want)
	}
	must(t, w.Close())
}

func TestNoIndexLeft(t *testing.T) {
	prefix := filepath.Join(t.TempDir(), "t")
	must(t, os.WriteFile(Name{prefix, "w", 1<<64 - 1}.Path(), nil, 0o600))
	w, _ := writer(t, Options{Prefix: prefix})
	appendRows(t, w, rows(0, 1))
	if err := w.Flush(); err == nil || !strings.Contains(err.Error(), "no index is left") {
		t.Errorf("error %v", err)
	}
}

// What is written into a segment that somebody deleted nobody would find.
func TestDeletedSegmentIsNotWrittenTo(t *testing.T) {
	w, prefix := writer(t, Options{})
	appendRows(t, w, rows(0, 2))
	must(t, w.Flush())
	must(t, os.Remove(w.Path()))
	appendRows(t, w, rows(2, 4))
	must(t, w.Close())
	if got := names(t, filepath.Dir(prefix)); !slices.Equal(got, []string{"t.w.000001.jsonl.gz"}) {
		t.Errorf("files %v", got)
	}
	lines, _ := read(t, prefix)
	if diff := cmp.Diff(rows(2, 4), lines); diff != "" {
		t.Error(diff)
	}
}

func TestFailedFlushLeavesWholeMembers(t *testing.T) {
	on := false
	disk := &faulty{fault: failing(&on, "write"), short: func(n int) int { return n / 2 }}
	w, prefix := writer(t, Options{FS: disk})
	appendRows(t, w, rows(0, 10))
	must(t, w.Flush())
	on = true
	appendRows(t, w, rows(10, 20))
	for range 3 {
		if err := w.Flush(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("error %v", err)
		}
		lines, holes := read(t, prefix)
		if diff := cmp.Diff(rows(0, 10), lines); diff != "" || len(holes) > 0 {
			t.Fatal(diff, holes)
		}
	}
	on = false
	appendRows(t, w, rows(20, 30))
	must(t, w.Close())
	lines, holes := read(t, prefix)
	if diff := cmp.Diff(rows(0, 30), lines); diff != "" || len(holes) > 0 {
		t.Error(diff, holes)
	}
	if got := w.Stats(); got.FailedFlushes != 3 || got.LostRows != 0 || got.Rows != 30 {
		t.Errorf("%+v", got)
	}
}

func TestFsync(t *testing.T) {
	on := false
	var warned []error
	disk := &faulty{fault: failing(&on, "sync")}
	w, prefix := writer(t, Options{FS: disk, RollBytes: 30, Warn: func(err error) { warned = append(warned, err) }})
	appendRows(t, w, rows(0, 4))
	must(t, w.Flush())
	count := func(op string) int { return strings.Count(" "+strings.Join(disk.calls, " ")+" ", " "+op+" ") }
	if count("sync") != 1 || count("syncdir") != 1 { // at the roll
		t.Errorf("calls %v", disk.calls)
	}
	on = true
	must(t, w.Close())
	if count("sync") != 2 || len(warned) != 1 || !errors.Is(warned[0], syscall.ENOSPC) {
		t.Errorf("calls %v, warned %v", disk.calls, warned)
	}
	on = false
	w, _ = writer(t, Options{Prefix: prefix, FS: disk, Fsync: true})
	appendRows(t, w, rows(4, 6))
	on = true
	if err := w.Flush(); err == nil || w.Buffered() == 0 {
		t.Errorf("a flush that is not durable: %v, %d bytes buffered", err, w.Buffered())
	}
	on = false
	must(t, w.Close())
	if lines, _ := read(t, prefix); !slices.Equal(lines, rows(0, 6)) {
		t.Errorf("lines %v", lines)
	}
}

func TestClosed(t *testing.T) {
	w, _ := writer(t, Options{})
	must(t, w.Close())
	must(t, w.Close())
	if err := w.Append([]byte("x\n")); !errors.Is(err, ErrClosed) {
		t.Errorf("Append: %v", err)
	}
	if err := w.Flush(); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush: %v", err)
	}
}

// A prefix is stripped by whoever was given it, once; to do it again would make it another.
func TestPrefixIsTakenAsItIs(t *testing.T) {
	w, prefix := writer(t, Options{Prefix: filepath.Join(t.TempDir(), Prefix("a.jsonl.gz.jsonl"))})
	appendRows(t, w, rows(0, 1))
	must(t, w.Close())
	if got, _ := read(t, prefix+".jsonl"); len(got) != 1 || filepath.Base(prefix) != "a.jsonl.gz" {
		t.Errorf("%v of %s", got, prefix)
	}
}

func TestOptions(t *testing.T) {
	for _, opt := range []Options{{}, {Prefix: "/tmp/"}, {Prefix: "t", MaxSegments: -1}, {Prefix: "t", MaxBuffered: -1}} {
		if _, err := NewWriter(opt); err == nil {
			t.Errorf("%+v is accepted", opt)
		}
	}
	for _, level := range []int{-1, 10} {
		if _, err := NewEncoder(level); err == nil {
			t.Errorf("level %d is accepted", level)
		}
	}
}

// Whatever fails: the rows that a reader sees are those that were appended, in order, each
// once, and the others are counted as lost.
func TestFaultsProperty(t *testing.T) {
	seeds := 150
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		faultsRun(t, uint64(seed))
	}
}

// faultsRun is a random life of a writer on a disk with faults that come and go.
func faultsRun(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	rate := 0.0
	disk := &faulty{short: func(n int) int { return r.IntN(n + 1) }}
	disk.fault = func(string) error {
		if r.Float64() < rate {
			return []error{syscall.ENOSPC, syscall.EIO, syscall.EROFS}[r.IntN(3)]
		}
		return nil
	}
	w, prefix := writer(t, Options{
		FS: disk, RollBytes: uint64(1 + r.IntN(2000)), MaxSegments: 1 << 20, MaxBuffered: 200 + r.IntN(4000), Fsync: r.IntN(4) == 0,
	})
	var appended []string
	for range 200 {
		if r.IntN(10) == 0 {
			rate = []float64{0, 0, 0.2, 0.9, 1}[r.IntN(5)]
		}
		switch r.IntN(12) {
		case 0:
			_ = w.Flush() // fails as the disk does
		case 1:
			if r.IntN(20) == 0 {
				w.DropOldest()
			}
		default:
			line := fmt.Sprintf(`{"row":%d,"pad":"%s"}`, len(appended), strings.Repeat("x", r.IntN(300)))
			_ = w.Append([]byte(line + "\n")) // likewise; the row is kept
			appended = append(appended, line)
		}
	}
	rate = 0
	if r.IntN(2) == 0 {
		must(t, w.Flush())
	}
	must(t, w.Close())
	var lines []string
	var holes []Hole
	if w.Stats().Rows > 0 {
		lines, holes = read(t, prefix)
	}
	s := w.Stats()
	if len(holes) > 0 || s.Rows != uint64(len(lines)) || s.Rows+s.LostRows != uint64(len(appended)) || !subsequence(lines, appended) {
		t.Errorf("seed %d: %d rows appended, %d read, holes %v, in order %t, %+v", seed, len(appended), len(lines), holes, subsequence(lines, appended), s)
	}
}

// subsequence tells whether all of part are in whole, in that order.
func subsequence(part, whole []string) bool {
	for _, s := range whole {
		if len(part) > 0 && part[0] == s {
			part = part[1:]
		}
	}
	return len(part) == 0
}

// A disk that fails for good costs bounded memory, and every row is counted.
func TestBoundedBuffer(t *testing.T) {
	on := true
	w, _ := writer(t, Options{FS: &faulty{fault: failing(&on, "create")}, MaxBuffered: 3 << 20})
	row := bytes.Repeat([]byte("x"), 1000)
	var failed int
	for range 20000 {
		if err := w.Append(row); err != nil {
			failed++
		}
		if w.Buffered() > 3<<20 {
			t.Fatalf("%d bytes buffered", w.Buffered())
		}
	}
	if failed != 1 {
		t.Errorf("tried %d times without being asked", failed)
	}
	if err := w.Close(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Close: %v", err)
	}
	if s := w.Stats(); s.LostRows != 20000 || s.LostBytes != 20000*1000 || s.Rows != 0 {
		t.Errorf("%+v", s)
	}
}
