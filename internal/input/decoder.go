package input

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// rawBufferSize is how much of a compressed file is read at a time, in bytes.
	rawBufferSize = 64 << 10
	// maxWindow is the most memory that a Zstandard frame may ask for, in bytes: what
	// the zstd command allows itself without being told otherwise.
	maxWindow = 128 << 20
)

// format is a way of compressing a file.
type format struct {
	name   string
	magics []string // how compressed data begins: one of these, all of one length
	open   func(*bufio.Reader) (io.ReadCloser, error)
}

// formatOf goes by the name alone, like the tools that write such files. It returns nil
// for a plain file.
func formatOf(path string) *format {
	switch {
	case strings.HasSuffix(path, ".gz"):
		return &format{name: "gzip", magics: gzipMagics(), open: openGzip}
	case strings.HasSuffix(path, ".zst"):
		return &format{name: "zstd", magics: zstdMagics(), open: openZstd}
	}
	return nil
}

func gzipMagics() []string { return []string{"\x1f\x8b\x08"} }

// zstdMagics are those of a frame and of the sixteen kinds of skippable frames.
func zstdMagics() []string {
	magics := []string{"\x28\xb5\x2f\xfd"}
	for kind := byte(0x50); kind <= 0x5f; kind++ {
		magics = append(magics, string([]byte{kind, 0x2a, 0x4d, 0x18}))
	}
	return magics
}

// damage is a fault in compressed data, in words.
type damage string

func (d damage) Error() string { return string(d) }

const (
	notCompressed = damage("it does not begin as compressed data does")
	strayData     = damage("something else follows the compressed data")
)

// errWindow says that a Zstandard frame asks for more memory than maxWindow.
var errWindow = errors.New("window too large")

// decoder turns a compressed file into chunks of text.
type decoder struct {
	raw   rawReader
	text  io.ReadCloser
	chunk []byte
}

// openDecoder starts at the beginning of the file. Its errors are those of next.
func openDecoder(f *File, format *format) (*decoder, error) {
	d := &decoder{raw: rawReader{file: f}, chunk: make([]byte, chunkSize)}
	raw := bufio.NewReaderSize(&d.raw, rawBufferSize)
	err := expectMagic(raw, format.magics, notCompressed)
	if err == nil {
		d.text, err = format.open(raw)
	}
	if err != nil {
		return nil, d.fault(err)
	}
	return d, nil
}

// next returns the next chunk of text, which is valid until the following call. Text can
// come with an error: it is the text before it. The error is io.EOF at the end,
// io.ErrUnexpectedEOF when data is missing, a damage, errWindow, or what reading the
// file gave.
func (d *decoder) next() ([]byte, error) {
	n := 0
	var err error
	for n < len(d.chunk) && err == nil {
		var more int
		more, err = d.text.Read(d.chunk[n:])
		n += more
	}
	return d.chunk[:n], d.fault(err)
}

// skip passes over size bytes of text.
func (d *decoder) skip(size int64) error {
	_, err := io.CopyN(io.Discard, d.text, size)
	return d.fault(err)
}

// fault tells an error of reading the file, missing data and damage apart, and puts
// damage into words of its own.
func (d *decoder) fault(err error) error {
	if err == nil || err == io.EOF || err == errWindow {
		return err
	}
	if d.raw.err != nil {
		return d.raw.err
	}
	if _, ok := errors.AsType[damage](err); ok {
		return err
	}
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, zstd.ErrCRCMismatch):
		return damage("the checksum does not match")
	case errors.Is(err, gzip.ErrHeader):
		return damage("a gzip header is not valid")
	case errors.Is(err, zstd.ErrMagicMismatch):
		return strayData
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return damage("it was made with a dictionary, which is not at hand")
	}
	return damage("the compressed data is not valid")
}

// expectMagic checks how the data goes on, at the start of a frame or member. Nothing at
// all is cut-off data: the shortest has a header.
func expectMagic(raw *bufio.Reader, magics []string, otherwise damage) error {
	head, err := raw.Peek(len(magics[0]))
	if err != nil && err != io.EOF {
		return err
	}
	for _, magic := range magics {
		switch {
		case !strings.HasPrefix(magic, string(head)):
		case len(head) < len(magic):
			return io.ErrUnexpectedEOF
		default:
			return nil
		}
	}
	return otherwise
}

// rawReader reads a file from start to end, and remembers an error of reading it so that
// nobody takes it for a fault in what was read.
type rawReader struct {
	file *File
	off  int64
	err  error
}

func (r *rawReader) Read(p []byte) (int, error) {
	n, err := r.file.pread(p, r.off)
	r.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// gzipReader reads members one by one. The package's own way of reading them all takes
// a few stray bytes behind the last one for a header that is cut off.
type gzipReader struct {
	raw    *bufio.Reader
	member gzip.Reader
	inside bool // in a member
}

func openGzip(raw *bufio.Reader) (io.ReadCloser, error) {
	return &gzipReader{raw: raw}, nil
}

func (z *gzipReader) Read(p []byte) (int, error) {
	for {
		if !z.inside {
			if err := z.nextMember(); err != nil {
				return 0, err
			}
		}
		n, err := z.member.Read(p)
		if err != io.EOF {
			return n, err
		}
		z.inside = false
		if n > 0 {
			return n, nil
		}
	}
}

func (z *gzipReader) nextMember() error {
	if _, err := z.raw.Peek(1); err != nil {
		return err
	}
	if err := expectMagic(z.raw, gzipMagics(), strayData); err != nil {
		return err
	}
	if err := z.member.Reset(z.raw); err != nil {
		return err
	}
	z.member.Multistream(false)
	z.inside = true
	return nil
}

func (z *gzipReader) Close() error { return nil }

// openZstd looks at the window of the first frame itself: in the errors of the package,
// too large a window and a damaged block are one.
func openZstd(raw *bufio.Reader) (io.ReadCloser, error) {
	head, err := raw.Peek(zstd.HeaderMaxSize)
	if err != nil && err != io.EOF {
		return nil, err
	}
	var header zstd.Header
	if header.Decode(head) == nil && windowOf(header) > maxWindow {
		return nil, errWindow
	}
	z, err := zstd.NewReader(raw, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxWindow))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// windowOf returns the memory that a frame asks for: a frame in a single segment has its
// whole text as the window.
func windowOf(header zstd.Header) uint64 {
	if header.SingleSegment {
		return header.FrameContentSize
	}
	return header.WindowSize
}
