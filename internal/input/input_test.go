package input_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/fpm-project/fpm/internal/input"
)

// sample returns text that compresses about as well as an artifact does.
func sample(seed uint64, size int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	var text []byte
	for len(text) < size {
		text = fmt.Appendf(text, "  {\"counter_id\": %d, \"wall_time\": %v},\n", random.IntN(1000), random.Float64())
	}
	return text[:size]
}

func gzipped(t testing.TB, members ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, text := range members {
		w := gzip.NewWriter(&out)
		write(t, w, text)
	}
	return out.Bytes()
}

func zstandard(t testing.TB, frames ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, text := range frames {
		w, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, text)
	}
	return out.Bytes()
}

func write(t testing.TB, w io.WriteCloser, text []byte) {
	t.Helper()
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// file writes a file into a directory of its own and returns its path.
func file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string, opt input.Options) *input.File {
	t.Helper()
	f, err := input.Open(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// readAll reads the text from its start to the error that ends it.
func readAll(f *input.File) ([]byte, error) {
	var text []byte
	buf := make([]byte, 10_000)
	for {
		n, err := f.ReadAt(buf, int64(len(text)))
		text = append(text, buf[:n]...)
		if err != nil {
			return text, err
		}
	}
}

// forms returns one text in each form that a rank file can have.
func forms(t testing.TB, text []byte) map[string][]byte {
	half := len(text) / 2
	return map[string][]byte{
		"r.json":            text,
		"r.json.gz":         gzipped(t, text),
		"r.json.zst":        zstandard(t, text),
		"members.json.gz":   gzipped(t, text[:half], nil, text[half:]),
		"frames.json.zst":   zstandard(t, text[:half], text[half:]),
		"skippable.zst":     append([]byte("\x53\x2a\x4d\x18\x03\x00\x00\x00abc"), zstandard(t, text)...),
		"emptymember.gz":    append(gzipped(t, nil), gzipped(t, text)...),
		"not-compressed.GZ": text,
	}
}

// Every form reads as a bytes.Reader over the text reads, errors included.
func TestReadAtLikeBytes(t *testing.T) {
	text := sample(1, 3_000_000)
	want := bytes.NewReader(text)
	for name, raw := range forms(t, text) {
		t.Run(name, func(t *testing.T) {
			f := open(t, file(t, name, raw), input.Options{})
			if f.RawSize() != int64(len(raw)) {
				t.Errorf("RawSize = %d, want %d", f.RawSize(), len(raw))
			}
			random := rand.New(rand.NewPCG(2, 0))
			for range 300 {
				off := random.Int64N(int64(len(text)) + 1000)
				p, q := make([]byte, random.IntN(70_000)), make([]byte, 70_000)
				q = q[:len(p)]
				n, err := f.ReadAt(p, off)
				m, wantErr := want.ReadAt(q, off)
				if len(p) == 0 {
					wantErr, err = nil, nil // both may say io.EOF or not
				}
				if n != m || err != wantErr || !bytes.Equal(p[:n], q[:m]) {
					t.Fatalf("ReadAt(%d bytes, %d) = %d, %v, want %d, %v", len(p), off, n, err, m, wantErr)
				}
			}
			if _, err := f.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
				t.Errorf("a negative offset gives %v", err)
			}
			if n, err := f.ReadAt(make([]byte, 1), 1<<63-1); n != 0 || err == nil {
				t.Errorf("the highest offset gives %d, %v", n, err)
			}
			if err := f.Changed(); err != nil {
				t.Errorf("Changed = %v", err)
			}
		})
	}
}

func TestEmptyFile(t *testing.T) {
	if _, err := readAll(open(t, file(t, "r.json", nil), input.Options{})); err != io.EOF {
		t.Errorf("plain: %v, want EOF", err)
	}
	for _, name := range []string{"r.json.gz", "r.json.zst"} {
		_, err := readAll(open(t, file(t, name, nil), input.Options{}))
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: %v, want an unexpected EOF", name, err)
		}
	}
	emptyFrame := []byte("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00")
	for name, raw := range map[string][]byte{"r.gz": gzipped(t, nil), "r.zst": emptyFrame} {
		if text, err := readAll(open(t, file(t, name, raw), input.Options{})); err != io.EOF || len(text) > 0 {
			t.Errorf("%s of nothing: %q, %v", name, text, err)
		}
	}
}

// A file cut at any byte gives text up to there and then says that it is cut.
func TestTruncated(t *testing.T) {
	text := sample(3, 400)
	for name, raw := range map[string][]byte{"r.gz": gzipped(t, text), "r.zst": zstandard(t, text)} {
		path := file(t, name, raw)
		for size := len(raw) - 1; size >= 0; size-- {
			if err := os.Truncate(path, int64(size)); err != nil {
				t.Fatal(err)
			}
			got, err := readAll(open(t, path, input.Options{}))
			cut, ok := errors.AsType[*input.TruncatedError](err)
			if !ok || !errors.Is(err, io.ErrUnexpectedEOF) || cut.Text != int64(len(got)) {
				t.Fatalf("%s cut to %d of %d bytes: %v", name, size, len(raw), err)
			}
			if !bytes.HasPrefix(text, got) {
				t.Fatalf("%s cut to %d bytes gives other text: %q", name, size, got)
			}
		}
	}
}

// Most of the text before a cut is there.
func TestTruncatedKeepsText(t *testing.T) {
	text := sample(4, 2_000_000)
	for name, raw := range map[string][]byte{"r.gz": gzipped(t, text), "r.zst": zstandard(t, text)} {
		got, err := readAll(open(t, file(t, name, raw[:len(raw)-100]), input.Options{}))
		if !errors.Is(err, io.ErrUnexpectedEOF) || !bytes.HasPrefix(text, got) {
			t.Fatalf("%s: %d bytes, %v", name, len(got), err)
		}
		if len(got) < len(text)-200_000 {
			t.Errorf("%s: %d of %d bytes are left", name, len(got), len(text))
		}
	}
}

// One wrong bit anywhere either does not matter or is noticed.
func TestBitFlips(t *testing.T) {
	text := sample(5, 300)
	for name, raw := range map[string][]byte{"r.gz": gzipped(t, text), "r.zst": zstandard(t, text)} {
		noticed := 0
		path := file(t, name, raw)
		for bit := range len(raw) * 8 {
			raw[bit/8] ^= 1 << (bit % 8)
			if err := os.WriteFile(path, raw, 0o644); err != nil {
				t.Fatal(err)
			}
			raw[bit/8] ^= 1 << (bit % 8)
			got, err := readAll(open(t, path, input.Options{}))
			if err != io.EOF {
				noticed++
				requireContentError(t, err)
			} else if !bytes.Equal(got, text) {
				t.Fatalf("%s: bit %d changes the text and is not noticed", name, bit)
			}
		}
		if noticed < len(raw)*4 {
			t.Errorf("%s: only %d of %d flips are noticed", name, noticed, len(raw)*8)
		}
	}
}

// requireContentError fails unless err is about what the file holds.
func requireContentError(t testing.TB, err error) {
	t.Helper()
	if _, ok := errors.AsType[*input.CorruptError](err); ok {
		return
	}
	if _, ok := errors.AsType[*input.TruncatedError](err); ok {
		return
	}
	if _, ok := errors.AsType[*input.LimitError](err); ok {
		return
	}
	t.Fatalf("%v (%T) is no error about contents", err, err)
}

func TestCorrupt(t *testing.T) {
	text := sample(6, 1000)
	checksum := gzipped(t, text)
	checksum[len(checksum)-8] ^= 1
	tests := []struct {
		name, file string
		raw        []byte
		text       []byte
		reason     string // empty: truncated
	}{
		{"plain text", "r.gz", text, nil, "it does not begin as compressed data does"},
		{"plain text", "r.zst", text, nil, "it does not begin as compressed data does"},
		{"gzip in zst", "r.zst", gzipped(t, text), nil, "it does not begin as compressed data does"},
		{"one wrong byte", "r.gz", []byte("x"), nil, "it does not begin as compressed data does"},
		{"one wrong byte", "r.zst", []byte("x"), nil, "it does not begin as compressed data does"},
		{"checksum", "r.gz", checksum, text, "the checksum does not match"},
		{"stray byte", "r.gz", append(gzipped(t, text), 'x'), text, "something else follows the compressed data"},
		{"stray zeros", "r.gz", append(gzipped(t, text), make([]byte, 512)...), text, "something else follows the compressed data"},
		{"stray line", "r.zst", append(zstandard(t, text), "stray"...), text, "something else follows the compressed data"},
		{"wrong method", "r.gz", append(gzipped(t, text), "\x1f\x8b\x07"...), text, "something else follows the compressed data"},
		{"half a header", "r.gz", append(gzipped(t, text), "\x1f\x8b"...), text, ""},
		{"half a header", "r.zst", append(zstandard(t, text), "\x28\xb5"...), text, ""},
		{"bad header flags", "r.gz", []byte("\x1f\x8b\x08\xe0\x00\x00\x00\x00\x00\x00"), nil, "a gzip header is not valid"},
		{"bad block", "r.gz", []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x00\xff\xff"), nil, "the compressed data is not valid"},
	}
	for _, tt := range tests {
		t.Run(tt.name+" "+tt.file, func(t *testing.T) {
			path := file(t, tt.file, tt.raw)
			got, err := readAll(open(t, path, input.Options{}))
			if diff := cmp.Diff(string(tt.text), string(got)); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if tt.reason == "" {
				if _, ok := errors.AsType[*input.TruncatedError](err); !ok {
					t.Errorf("%v, want a TruncatedError", err)
				}
				return
			}
			corrupt, ok := errors.AsType[*input.CorruptError](err)
			if !ok || corrupt.Reason != tt.reason || corrupt.Path != path || corrupt.Text != int64(len(tt.text)) {
				t.Errorf("%v, want a CorruptError: %s", err, tt.reason)
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error("damage looks like a file that is still being written")
			}
		})
	}
}

// The error that ends a text comes again and again, and the text before it stays.
func TestEndStays(t *testing.T) {
	text := sample(7, 1000)
	f := open(t, file(t, "r.gz", append(gzipped(t, text), 'x')), input.Options{})
	_, first := readAll(f)
	got, second := readAll(f)
	if first != second || !bytes.Equal(got, text) {
		t.Errorf("first %v, then %v", first, second)
	}
}

func TestZstdWindow(t *testing.T) {
	// Frame headers: magic, descriptor, then a window of 256 MiB or a content size.
	windowed := []byte("\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00")
	single := []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x01\x00\x00\x01\x00\x00")
	for _, raw := range [][]byte{windowed, single} {
		_, err := readAll(open(t, file(t, "r.zst", raw), input.Options{}))
		limit, ok := errors.AsType[*input.LimitError](err)
		if !ok || limit.What != "zstd window" || limit.Limit != 128<<20 {
			t.Errorf("%x: %v, want a LimitError", raw, err)
		}
		text := sample(8, 10)
		got, err := readAll(open(t, file(t, "r.zst", append(zstandard(t, text), raw...)), input.Options{}))
		if _, ok := errors.AsType[*input.CorruptError](err); !ok || !bytes.Equal(got, text) {
			t.Errorf("as a second frame: %q, %v, want a CorruptError", got, err)
		}
	}
}

func TestLimit(t *testing.T) {
	text := sample(9, 1_000_000)
	for name, raw := range forms(t, text) {
		exact := open(t, file(t, name, raw), input.Options{MaxText: int64(len(text))})
		if got, err := readAll(exact); err != io.EOF || !bytes.Equal(got, text) {
			t.Errorf("%s, as much as is allowed: %d bytes, %v", name, len(got), err)
		}
		for _, max := range []int{1, 256 << 10, 300_000, len(text) - 1} {
			f := open(t, file(t, name, raw), input.Options{MaxText: int64(max)})
			got, err := readAll(f)
			limit, ok := errors.AsType[*input.LimitError](err)
			if !ok || limit.Limit != int64(max) || limit.What != "text" || !bytes.Equal(got, text[:max]) {
				t.Errorf("%s, limit %d: %d bytes, %v", name, max, len(got), err)
			}
			if _, err := f.ReadAt(make([]byte, 1), 1<<40); err == nil || err == io.EOF {
				t.Errorf("%s, limit %d: far beyond it: %v", name, max, err)
			}
		}
	}
}

func TestNotRegular(t *testing.T) {
	dir := t.TempDir()
	fifo, socket := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{dir, "is a directory; artifacts are regular files"},
		{fifo, "is a named pipe; artifacts are regular files"},
		{link, "is a named pipe; artifacts are regular files"},
		{socket, "is a socket; artifacts are regular files"},
		{os.DevNull, "is a device; artifacts are regular files"},
	}
	for _, tt := range tests {
		_, err := input.Open(tt.path, input.Options{})
		if _, ok := errors.AsType[*input.NotRegularError](err); !ok || err.Error() != tt.path+" "+tt.want {
			t.Errorf("Open(%s) = %v, want %s", tt.path, err, tt.want)
		}
	}
}

func TestOpenMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none.json")
	_, err := input.Open(path, input.Options{})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v does not wrap fs.ErrNotExist", err)
	}
	if want := "cannot read " + path + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestOpenLink(t *testing.T) {
	text := sample(10, 100)
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(file(t, "r.json", text), link); err != nil {
		t.Fatal(err)
	}
	f := open(t, link, input.Options{})
	if got, err := readAll(f); err != io.EOF || !bytes.Equal(got, text) {
		t.Errorf("%q, %v", got, err)
	}
	if f.Path() != link {
		t.Errorf("Path = %s", f.Path())
	}
}

// changes are ways for a file to stop being the file that was opened.
func changes(t *testing.T) map[string]func(path string) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return map[string]func(path string){
		"appended": func(path string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			must(err)
			_, err = f.WriteString(" ")
			must(err)
			must(f.Close())
		},
		"truncated": func(path string) { must(os.Truncate(path, 1)) },
		"touched":   func(path string) { must(os.Chtimes(path, time.Time{}, time.Unix(1, 1))) },
		"replaced": func(path string) {
			content, err := os.ReadFile(path)
			must(err)
			info, err := os.Stat(path)
			must(err)
			must(os.WriteFile(path+".new", content, 0o644))
			must(os.Chtimes(path+".new", time.Time{}, info.ModTime()))
			must(os.Rename(path+".new", path))
		},
		"removed": func(path string) { must(os.Remove(path)) },
		"directory": func(path string) {
			must(os.Remove(path))
			must(os.Mkdir(path, 0o755))
		},
	}
}

func TestChanged(t *testing.T) {
	text := sample(11, 200_000)
	for change, apply := range changes(t) {
		for name, raw := range forms(t, text) {
			path := file(t, name, raw)
			f := open(t, path, input.Options{})
			if _, err := f.ReadAt(make([]byte, 10), 0); err != nil {
				t.Fatal(err)
			}
			if err := f.Changed(); err != nil {
				t.Errorf("%s: before anything has changed: %v", name, err)
			}
			apply(path)
			changed, ok := errors.AsType[*input.ChangedError](f.Changed())
			if !ok || changed.Path != path {
				t.Errorf("%s %s: Changed = %v", name, change, changed)
			}
			if err := f.Suspend(); err != nil {
				t.Fatal(err)
			}
			_, err := f.ReadAt(make([]byte, 10), 190_000)
			if _, ok := errors.AsType[*input.ChangedError](err); !ok {
				t.Errorf("%s %s: reading after a suspension gives %v", name, change, err)
			}
		}
	}
}

func TestSuspend(t *testing.T) {
	text := sample(12, 1_000_000)
	for name, raw := range forms(t, text) {
		f := open(t, file(t, name, raw), input.Options{})
		for off := 0; off < len(text); off += 90_001 {
			if err := f.Suspend(); err != nil {
				t.Fatal(err)
			}
			if err := f.Changed(); err != nil {
				t.Fatal(err)
			}
			p := make([]byte, min(1000, len(text)-off))
			if _, err := f.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, text[off:off+len(p)]) {
				t.Fatalf("%s at %d: %v", name, off, err)
			}
		}
	}
}

func TestIs(t *testing.T) {
	path := file(t, "r.json", nil)
	f := open(t, path, input.Options{})
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{path: true, link: true, file(t, "r.json", nil): false} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if f.Is(info) != want {
			t.Errorf("Is(%s) = %v", path, !want)
		}
	}
}

// What users read: the path once, what is wrong and what to do.
func TestErrorTexts(t *testing.T) {
	tests := []struct {
		err  error
		want string
	}{
		{&input.TruncatedError{Path: "r.gz", Format: "gzip", Text: 12}, "r.gz: the gzip data ends too early, after 12 bytes of text"},
		{&input.CorruptError{Path: "r.gz", Format: "gzip", Text: 12, Reason: "the checksum does not match"},
			"r.gz: the gzip data is damaged after 12 bytes of text: the checksum does not match"},
		{&input.LimitError{Path: "r.json", What: "text", Limit: 5}, "r.json: the text is larger than the limit of 5 bytes"},
		{&input.ChangedError{Path: "r.json", Change: "it has been written to"},
			"r.json changed while it was being read: it has been written to; wait until the run has finished"},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.err.Error()); diff != "" {
			t.Errorf("%T (-want +got):\n%s", tt.err, diff)
		}
	}
}

func TestClosed(t *testing.T) {
	for name, raw := range forms(t, sample(13, 1000)) {
		f, err := input.Open(file(t, name, raw), input.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Close(), f.Close(), f.Suspend()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := f.ReadAt(make([]byte, 1), 0); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: reading a closed file gives %v", name, err)
		}
	}
}

// Readers, suspensions and checks at once, on files that share a spool.
func TestConcurrent(t *testing.T) {
	spool := input.NewSpool(t.TempDir())
	text := sample(14, 1_500_000)
	var all sync.WaitGroup
	for name, raw := range forms(t, text) {
		f := open(t, file(t, name, raw), input.Options{Spool: spool})
		for reader := range 3 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(reader), 0))
				p := make([]byte, 1000)
				for range 100 {
					off := random.IntN(len(text) - len(p))
					if _, err := f.ReadAt(p, int64(off)); err != nil || !bytes.Equal(p, text[off:off+len(p)]) {
						t.Errorf("%s at %d: %v", name, off, err)
						return
					}
				}
			})
		}
		all.Go(func() {
			for range 20 {
				if err := errors.Join(f.Changed(), f.Suspend()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// descriptors counts the open descriptors of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("no /dev/fd to count descriptors: ", err)
	}
	return len(entries)
}

// A run of many files needs few descriptors and leaves no files behind.
func TestManyFiles(t *testing.T) {
	const files = 300
	text := sample(15, 5000)
	dir, spoolDir := t.TempDir(), t.TempDir()
	spool := input.NewSpool(spoolDir)
	before := descriptors(t)
	var opened []*input.File
	for i := range files {
		name, raw := fmt.Sprintf("r_dp%d.json", i), text
		if i%2 == 0 {
			name, raw = name+".gz", gzipped(t, text)
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, raw, 0o644); err != nil {
			t.Fatal(err)
		}
		f := open(t, path, input.Options{Spool: spool})
		if _, err := readAll(f); err != io.EOF {
			t.Fatal(err)
		}
		if err := f.Suspend(); err != nil {
			t.Fatal(err)
		}
		opened = append(opened, f)
	}
	if more := descriptors(t) - before; more > 1 {
		t.Errorf("%d files hold %d descriptors, want that of the spool", files, more)
	}
	for _, f := range opened {
		if got, err := readAll(f); err != io.EOF || !bytes.Equal(got, text) {
			t.Fatalf("%s: %v", f.Path(), err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := spool.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(spoolDir); err != nil || len(entries) > 0 {
		t.Errorf("the spool leaves %v, %v", entries, err)
	}
	if more := descriptors(t) - before; more > 0 {
		t.Errorf("%d descriptors are left open", more)
	}
}

func TestSpoolWithoutDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	f := open(t, file(t, "r.gz", gzipped(t, sample(16, 10))), input.Options{Spool: input.NewSpool(dir)})
	_, err := readAll(f)
	spoolErr, ok := errors.AsType[*input.SpoolError](err)
	if !ok || spoolErr.Dir != dir || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v, want a SpoolError that names %s", err, dir)
	}
}

func FuzzCompressed(f *testing.F) {
	text := sample(17, 500)
	for _, raw := range [][]byte{gzipped(f, text), gzipped(f, text, text)} {
		f.Add(raw, true)
		f.Add(raw[:len(raw)/2], true)
	}
	for _, raw := range [][]byte{zstandard(f, text), zstandard(f, text, text)} {
		f.Add(raw, false)
		f.Add(raw[:len(raw)/2], false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, asGzip bool) {
		name := "r.zst"
		if asGzip {
			name = "r.gz"
		}
		const limit = 1 << 20
		got, err := readAll(open(t, file(t, name, raw), input.Options{MaxText: limit}))
		if len(got) > limit {
			t.Fatalf("%d bytes of text in spite of the limit", len(got))
		}
		if err != io.EOF {
			requireContentError(t, err)
		}
	})
}

func BenchmarkReadAt(b *testing.B) {
	path := file(b, "r.json", sample(18, 1<<20))
	plain, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer plain.Close()
	readers := map[string]io.ReaderAt{"os": plain, "input": open(b, path, input.Options{})}
	for name, r := range readers {
		b.Run(name, func(b *testing.B) {
			p := make([]byte, 4096)
			for b.Loop() {
				if _, err := r.ReadAt(p, 4096); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A file that expands beyond all reason is stopped long before the limit for any text.
func TestExpansion(t *testing.T) {
	const most = 256 << 20
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	spaces := bytes.Repeat([]byte{' '}, 1<<20)
	for range most>>20 + 2 {
		if _, err := z.Write(spaces); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bomb.json.gz")
	if err := os.WriteFile(path, packed.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := input.Open(path, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := make([]byte, 1)
	if _, err := f.ReadAt(one, most-1); err != nil {
		t.Error(err)
	}
	_, err = f.ReadAt(one, most)
	if limit, ok := errors.AsType[*input.LimitError](err); !ok || limit.Limit != most {
		t.Errorf("%v, want a limit of %d bytes", err, most)
	}
}
