package segment

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/exitcode"
)

// member returns lines as a gzip member of the standard library.
func member(t testing.TB, lines ...string) []byte {
	t.Helper()
	return zip(t, strings.Join(lines, "\n")+"\n")
}

func zip(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := stdgzip.NewWriter(&b)
	_, err := z.Write([]byte(text))
	must(t, err)
	must(t, z.Close())
	return b.Bytes()
}

// file writes a file of parts and returns its path.
func file(t testing.TB, name string, parts ...[]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, bytes.Join(parts, nil), 0o600))
	return path
}

// noise returns lines that do not compress, so that cuts fall among them.
func noise(r *rand.Rand, n int) (lines []string) {
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"row":%d,"noise":"%x"}`, i, r.Uint64()))
	}
	return lines
}

func TestOtherWriters(t *testing.T) {
	named := func() []byte {
		var b bytes.Buffer
		z := stdgzip.NewWriter(&b)
		z.Name, z.Comment, z.Extra, z.ModTime = "trace.jsonl", "by hand", []byte{1, 2, 3}, time.Unix(1700000000, 0)
		_, err := z.Write([]byte("c\nd\n"))
		must(t, err)
		must(t, z.Close())
		return b.Bytes()
	}()
	flushed := func(end bool) []byte {
		var b bytes.Buffer
		z := stdgzip.NewWriter(&b)
		for i := range 100 {
			_, err := fmt.Fprintf(z, "%d\n", i)
			must(t, err)
			must(t, z.Flush())
		}
		if end {
			must(t, z.Close())
		}
		return b.Bytes()
	}
	var hundred []string
	for i := range 100 {
		hundred = append(hundred, fmt.Sprint(i))
	}
	long := strings.Repeat("y", 300<<10)
	for name, c := range map[string]struct {
		parts []byte
		want  []string
		holes []Hole
	}{
		"several members":          {slices.Concat(member(t, "a"), member(t, "b", "c"), named), []string{"a", "b", "c", "c", "d"}, nil},
		"many flushes":             {flushed(true), hundred, nil},
		"many flushes, no end":     {flushed(false), hundred, []Hole{{Fault: Cut, End: int64(len(flushed(false))), Last: true, Rows: 100}}},
		"line across members":      {slices.Concat(zip(t, "a\nb"), zip(t, "c\n"), zip(t, "d")), []string{"a", "bc", "d"}, nil},
		"empty member":             {slices.Concat(zip(t, ""), member(t, "a"), zip(t, "")), []string{"a"}, nil},
		"blank lines, CRLF":        {zip(t, "\na\r\n\n \t\r\n\r\n  b\n "), []string{"a\r", "  b", " "}, nil},
		"no file content":          {nil, nil, nil},
		"plain":                    {[]byte("{\"a\":1}\n{\"b\":2}"), []string{`{"a":1}`, `{"b":2}`}, nil},
		"line of several chunks":   {member(t, "a", strings.Repeat("x", 1<<20), long, "b"), []string{"a", strings.Repeat("x", 1<<20), long, "b"}, nil},
		"plain, several chunks":    {[]byte("{" + long + "\n{" + long + "\n{b"), []string{"{" + long, "{" + long, "{b"}, nil},
		"zeros at the end":         {append(member(t, "a"), make([]byte, 10)...), []string{"a"}, []Hole{{Fault: NotGzip, Offset: 26, End: 36, Last: true}}},
		"garbage at the end":       {append(member(t, "a"), "garbage"...), []string{"a"}, []Hole{{Fault: NotGzip, Offset: 26, End: 33, Last: true}}},
		"header cut off":           {append(member(t, "a"), 0x1f, 0x8b, 8), []string{"a"}, []Hole{{Fault: Cut, Offset: 26, End: 29, Last: true}}},
		"garbage at the beginning": {slices.Concat([]byte("garbage"), member(t, "a")), []string{"a"}, []Hole{{Fault: NotGzip, End: 7}}},
	} {
		lines, holes := read(t, file(t, "x.jsonl.gz", c.parts))
		if diff := cmp.Diff(c.want, lines); diff != "" {
			t.Errorf("%s: lines\n%s", name, diff)
		}
		if diff := cmp.Diff(c.holes, holes); diff != "" {
			t.Errorf("%s: holes\n%s", name, diff)
		}
	}
}

// A member that was cut off, wherever, gives its lines before the cut and no other, and
// the members behind it all theirs.
func TestCutMember(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	first, cut, last := noise(r, 20), noise(r, 50), noise(r, 30)
	whole := member(t, cut...)
	for n := 1; n < len(whole); n += 1 + r.IntN(20) {
		for _, tail := range [][]byte{nil, member(t, last...)} {
			for _, zeros := range []int{0, 5000} {
				head := member(t, first...)
				path := file(t, "x.jsonl.gz", head, whole[:n], make([]byte, zeros), tail)
				lines, holes := read(t, path)
				if len(holes) != 1 || holes[0].Offset != int64(len(head)) || holes[0].Last != (tail == nil) {
					t.Fatalf("cut at %d: holes %+v", n, holes)
				}
				got := int(holes[0].Rows)
				want := slices.Concat(first, cut[:got])
				if tail != nil {
					want = append(want, last...)
				}
				if diff := cmp.Diff(want, lines); diff != "" {
					t.Fatalf("cut at %d, %d zeros: %s", n, zeros, diff)
				}
				if n > len(whole)-20 && zeros == 0 && got < 40 {
					t.Errorf("cut at %d of %d: only %d rows", n, len(whole), got)
				}
			}
		}
	}
}

// Whatever is done to the bytes of some members: all lines of the others are found, in
// order, and no line that was never written.
func TestDamageProperty(t *testing.T) {
	for seed := range 200 {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		var data []byte
		var must, may []string // lines of sound members, and of all
		for m := range 1 + r.IntN(8) {
			var lines []string
			for i := range r.IntN(60) {
				lines = append(lines, fmt.Sprintf(`{"member":%d,"row":%d,"noise":"%x"}`, m, i, r.Uint64()))
			}
			part := zip(t, strings.Join(append(slices.Clone(lines), ""), "\n"))
			may = append(may, lines...)
			switch r.IntN(6) {
			case 0:
				part = part[:r.IntN(len(part))]
			case 1:
				part[r.IntN(len(part))] ^= 1 << r.IntN(8)
			case 2:
				at := r.IntN(len(part))
				copy(part[at:], make([]byte, r.IntN(100)))
			default:
				must = append(must, lines...)
			}
			data = append(data, part...)
		}
		path := file(t, "x.jsonl.gz", data)
		if lines, _ := read(t, path); !subsequence(must, lines) {
			t.Errorf("seed %d: lines of sound members are lost", seed)
		}
		if lines := proven(t, path); !subsequence(lines, may) {
			t.Errorf("seed %d: lines are invented", seed)
		}
	}
}

// proven returns the lines of members whose checksum holds.
func proven(t *testing.T, path string) (lines []string) {
	r := NewReader([]*Source{newSource(path)}, ReaderOptions{})
	defer r.Close()
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		must(t, err)
		if rec.Hole == nil && !rec.Cut {
			lines = append(lines, string(rec.Line))
		}
	}
}

// A member of more than what is held back is handed out before its end is known to be
// right; what precedes the damage by more than that is there.
func TestLargeDamagedMember(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	lines := noise(r, 200_000) // 9 MB
	data := member(t, lines...)
	data[len(data)*3/4] ^= 0x10
	got, holes := read(t, file(t, "x.jsonl.gz", data, member(t, "after")))
	if len(holes) != 1 || holes[0].Offset != 0 || holes[0].Rows != int64(len(got)-1) || got[len(got)-1] != "after" {
		t.Fatalf("%d lines, holes %+v", len(got), holes)
	}
	if n := min(len(got)-1, 149_000); n < 40_000 || !slices.Equal(got[:n], lines[:n]) {
		t.Errorf("%d lines before the damage", n)
	}
}

func TestLongLine(t *testing.T) {
	long := strings.Repeat("x", MaxLine+1)
	for name, path := range map[string]string{
		"gzip": file(t, "x.jsonl.gz", zip(t, "{a\n"+long+"\n{b\n"+long[:MaxLine]+"\n"+long)), "plain": file(t, "x.jsonl", []byte("{a\n"+long+"\n{b\n"+long[:MaxLine]+"\n"+long)),
	} {
		lines, holes := read(t, path)
		if !slices.Equal(lines, []string{"{a", "{b", long[:MaxLine]}) || len(holes) != 2 || holes[0].Fault != LongLine || holes[0].Offset != 3 {
			t.Errorf("%s: %d lines, holes %v", name, len(lines), holes)
		}
	}
}

func TestNumbersAndOffsets(t *testing.T) {
	text := "{a\n\n{bcd\n" + strings.Repeat("z", 300<<10) + "\n{e\n"
	sources, err := Find([]string{file(t, "x.jsonl.gz", zip(t, text[:5]), zip(t, text[5:]))})
	must(t, err)
	r := NewReader(sources, ReaderOptions{})
	defer r.Close()
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if line == "" {
			continue // counted, and passed over
		}
		rec, err := r.Next()
		must(t, err)
		if rec.Number != int64(i+1) || string(rec.Line) != line || !strings.HasPrefix(text[rec.Offset:], line) || rec.Source != sources[0] {
			t.Errorf("line %d: %d at %d", i+1, rec.Number, rec.Offset)
		}
	}
}

// A gigabyte of headers is no reason to read a file a hundred thousand times.
func TestManyFalseHeaders(t *testing.T) {
	// Each begins a stored block that reaches over all that follow.
	fake := []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0x00, 0xff, 0xff, 0x00, 0x00}
	path := file(t, "x.jsonl.gz", bytes.Repeat(fake, 40_000), member(t, "a"))
	begun := time.Now()
	_, holes := read(t, path)
	if took := time.Since(begun); len(holes) == 0 || took > 20*time.Second {
		t.Errorf("%d holes after %v", len(holes), took)
	}
}

func TestReaderGoesOnAfterAnError(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "b.jsonl")
	must(t, syscall.Mkfifo(fifo, 0o600))
	a, c, gone := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "c.jsonl"), filepath.Join(dir, "d.jsonl")
	for _, path := range []string{a, c, gone} {
		must(t, os.WriteFile(path, []byte("{}\n"), 0o600))
	}
	sources, err := Find([]string{dir})
	must(t, err)
	must(t, os.Remove(gone))
	r := NewReader(sources, ReaderOptions{})
	defer r.Close()
	lines, _, errs := drain(r)
	if len(lines) != 2 || len(errs) != 2 || !errors.Is(errs[1], fs.ErrNotExist) || !strings.Contains(errs[0].Error(), "not a regular file") {
		t.Errorf("lines %v, errors %v", lines, errs)
	}
}

// Hundreds of millions of blank lines in a small file cost next to nothing.
func TestBlankLines(t *testing.T) {
	blank := zip(t, strings.Repeat("\n", 16<<20))
	path := file(t, "x.jsonl.gz", bytes.Repeat(blank, 16), member(t, "a"))
	r := NewReader([]*Source{newSource(path)}, ReaderOptions{})
	defer r.Close()
	if rec, err := r.Next(); err != nil || string(rec.Line) != "a" || rec.Number != 16<<24+1 || rec.Offset != 16<<24 {
		t.Errorf("%+v, %v", rec, err)
	}
}

// A member with its end whose checksum is wrong is damaged: none of its lines is used, for
// any can be another than was written.
func TestWrongChecksum(t *testing.T) {
	for name, at := range map[string]int{"checksum": 8, "length": 4, "last byte": 1} {
		for _, zeros := range []int{0, 5000} {
			for _, behind := range [][]byte{nil, member(t, "after")} {
				data := member(t, "a", "b", "c")
				data[len(data)-at] ^= 0x10
				lines, holes := read(t, file(t, "x.jsonl.gz", member(t, "before"), data, make([]byte, zeros), behind))
				want := []string{"before"}
				if behind != nil {
					want = append(want, "after")
				}
				if diff := cmp.Diff(want, lines); diff != "" || len(holes) != 1 || holes[0].Fault != Damaged || holes[0].Rows != 0 {
					t.Errorf("%s, %d zeros: %+v\n%s", name, zeros, holes, diff)
				}
			}
		}
	}
}

// Close ends a reader wherever it is.
func TestReaderClose(t *testing.T) {
	path := file(t, "x.jsonl.gz", bytes.Repeat(member(t, noise(rand.New(rand.NewPCG(1, 1)), 20_000)...), 20))
	sources, err := Find([]string{path})
	must(t, err)
	var told int64
	for n := range 3 {
		r := NewReader(sources, ReaderOptions{Read: func(n int64) { told += n }})
		for range n {
			_, err := r.Next()
			must(t, err)
		}
		r.Close()
		r.Close()
	}
	told = 0 // which would be a race if a reader were not at its end
	r := NewReader(sources, ReaderOptions{Read: func(n int64) { told += n }})
	drain(r)
	r.Close()
	if info, err := os.Stat(path); err != nil || told != info.Size() {
		t.Errorf("told of %d bytes, %v", told, err)
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{
		"p.a.000000.jsonl.gz", "p.a.999999.jsonl.gz", "p.a.1000000.jsonl.gz", "p.b.000003.jsonl.gz", "p.x.b.000003.jsonl.gz",
		"p.a.000000.jsonl.lock", "p.manifest.json", "plain.jsonl", "q.jsonl.gz", "note.txt", "sub/p.c.000001.jsonl.gz",
	} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, nil, 0o600))
	}
	must(t, os.MkdirAll("empty", 0o700))
	must(t, os.MkdirAll("p.a.000007.jsonl.gz", 0o700))
	a := []string{"p.a.000000.jsonl.gz", "p.a.999999.jsonl.gz", "p.a.1000000.jsonl.gz"}
	for _, c := range []struct {
		args []string
		want []string
		code exitcode.Code
	}{
		{[]string{"p"}, append(slices.Clone(a), "p.b.000003.jsonl.gz"), 0},
		{[]string{"p.jsonl.gz"}, append(slices.Clone(a), "p.b.000003.jsonl.gz"), 0},
		{[]string{"p.a"}, a, 0},
		{[]string{"./p.b"}, []string{"./p.b.000003.jsonl.gz"}, 0},
		{[]string{dir + "/p.b"}, []string{dir + "/p.b.000003.jsonl.gz"}, 0},
		{[]string{"p.x"}, []string{"p.x.b.000003.jsonl.gz"}, 0},
		{[]string{"note.txt", "note.txt", "./note.txt"}, []string{"./note.txt"}, 0},
		{[]string{"sub"}, []string{"sub/p.c.000001.jsonl.gz"}, 0},
		{[]string{"p.a.0*"}, a[:1], 0},
		{[]string{"*.gz", "p.b"}, append(append(slices.Clone(a), "p.b.000003.jsonl.gz"), "p.x.b.000003.jsonl.gz", "q.jsonl.gz"), 0},
		{[]string{"."}, []string{"p.a.000000.jsonl.gz", "p.a.999999.jsonl.gz", "p.a.1000000.jsonl.gz", "p.b.000003.jsonl.gz", "p.x.b.000003.jsonl.gz", "plain.jsonl", "q.jsonl.gz"}, 0},
		{[]string{"p.b.000003.jsonl.gz", "p.manifest.json", "p.a.000000.jsonl.lock"}, []string{"p.b.000003.jsonl.gz"}, 0},
		{[]string{"p.b*", "p.m*"}, []string{"p.b.000003.jsonl.gz"}, exitcode.Usage},
		{[]string{"p.manifest.json"}, nil, exitcode.Usage},
		{nil, nil, exitcode.Usage},
		{[]string{""}, nil, exitcode.Usage},
		{[]string{"-"}, nil, exitcode.Usage},
		{[]string{"empty"}, nil, exitcode.Usage},
		{[]string{"no*"}, []string{"note.txt"}, 0},
		{[]string{"nox*"}, nil, exitcode.Usage},
		{[]string{"[x"}, nil, exitcode.Usage},
		{[]string{"gone"}, nil, exitcode.Failed},
		{[]string{"gone/p"}, nil, exitcode.Failed},
		{[]string{"p.b", "gone"}, []string{"p.b.000003.jsonl.gz"}, exitcode.Failed},
	} {
		sources, err := Find(c.args)
		var got []string
		for _, s := range sources {
			got = append(got, s.Path)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || exitcode.Of(err) != c.code {
			t.Errorf("Find(%q): %v\n%s", c.args, err, diff)
		}
	}
}

// What can be recorded to can be read, whatever characters its name has.
func TestFindNamesLikePatterns(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"r[1]*.a.000000.jsonl.gz", "d[0]/p.a.000000.jsonl.gz", "d[0]/q?.a.000002.jsonl.gz", "d0/p.a.000000.jsonl.gz", "r1.a.000000.jsonl.gz"} {
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, nil, 0o600))
	}
	must(t, os.Symlink("nowhere", "d0/p.a.000001.jsonl.gz"))
	must(t, os.Symlink(".", "d0/p.a.000002.jsonl.gz"))
	must(t, os.Symlink("p.a.000000.jsonl.gz", "d0/p.a.000003.jsonl.gz"))
	for arg, want := range map[string][]string{
		"r[1]*":                   {"r[1]*.a.000000.jsonl.gz"},
		"r[1]*.a":                 {"r[1]*.a.000000.jsonl.gz"},
		"r[1]*.a.000000.jsonl.gz": {"r[1]*.a.000000.jsonl.gz"},
		"r[1].a*":                 {"r1.a.000000.jsonl.gz"},
		"d[0]":                    {"d[0]/p.a.000000.jsonl.gz", "d[0]/q?.a.000002.jsonl.gz"},
		"d[0]/p":                  {"d[0]/p.a.000000.jsonl.gz"},
		"d[0]/q?":                 {"d[0]/q?.a.000002.jsonl.gz"},
		"d[0]/*.gz":               {"d[0]/p.a.000000.jsonl.gz", "d[0]/q?.a.000002.jsonl.gz"},
		"d?/p*":                   {"d0/p.a.000000.jsonl.gz", "d0/p.a.000003.jsonl.gz"},
		"d0/p":                    {"d0/p.a.000000.jsonl.gz", "d0/p.a.000003.jsonl.gz"},
		"d0":                      {"d0/p.a.000000.jsonl.gz", "d0/p.a.000003.jsonl.gz"},
	} {
		sources, err := Find([]string{arg})
		var got []string
		for _, s := range sources {
			got = append(got, s.Path)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Find(%q): %v\n%s", arg, err, diff)
		}
	}
}

func TestLook(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"p.a.000012.jsonl.gz", "p.a.000003.jsonl.gz", "p.b.000001.jsonl.gz", "p.x.b.000003.jsonl.gz", "q.a.000000.jsonl.gz",
		"p.manifest.json", "p.manifest-2.json", "p.manifest-12.json", "p.manifest-1.json", "p.manifest-02.json", "p.manifest-2.lock", "p.x.manifest.json",
	} {
		must(t, os.WriteFile(name, nil, 0o600))
	}
	must(t, os.Mkdir("p.a.000001.jsonl.gz", 0o700))
	must(t, os.Symlink("p.a.000003.jsonl.gz", "p.a.000002.jsonl.gz"))
	got, err := Look("./p")
	must(t, err)
	want := Shelf{
		Indices:   map[string][]uint64{"./p.a": {3, 12}, "./p.b": {1}},
		Manifests: []string{"./p.manifest-12.json", "./p.manifest-2.json", "./p.manifest.json"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s, err := Look("gone/p"); err != nil || len(s.Indices)+len(s.Manifests) > 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if prefix, ok := ManifestPrefix("d/p.x.manifest-2.json"); !ok || prefix != "d/p.x" {
		t.Errorf("%q, %v", prefix, ok)
	}
	if _, ok := ManifestPrefix("d/p.manifest-x.json"); ok {
		t.Error("manifest-x is none")
	}
}

// FuzzReader: whatever the bytes, reading ends without a panic, and the lines of a whole
// member behind them are found.
func FuzzReader(f *testing.F) {
	sound := zip(f, "{\"a\":1}\n{\"b\":2}\n")
	f.Add([]byte{}, uint16(0))
	f.Add(sound, uint16(3))
	f.Add(sound[:20], uint16(20))
	f.Add([]byte("{\"plain\":1}\n"), uint16(0))
	f.Add(append([]byte{0x1f, 0x8b, 8, 31}, make([]byte, 40)...), uint16(1))
	f.Fuzz(func(t *testing.T, data []byte, flip uint16) {
		last := zip(t, "{\"last\":true}\n{\"last\":2}\n")
		data = slices.Concat(sound, data, last)
		if n := int(flip); n < len(data)-len(last) {
			data[n] ^= 0x55
		}
		path := file(t, "x.gz", data)
		lines, holes := read(t, path)
		if zipped, err := isGzip(bytes.NewReader(data), path); err != nil || !zipped {
			return // it has become another kind of file
		}
		if n := len(lines); n < 2 || !strings.HasSuffix(lines[n-2], `{"last":true}`) || lines[n-1] != `{"last":2}` {
			t.Errorf("lines %q, holes %+v", lines, holes)
		}
	})
}
