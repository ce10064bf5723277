package jsonstream

import (
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// windowSize is how much is read from the source at once. The decoder itself asks for
// 4 KiB a time.
const windowSize = 256 << 10

// feed hands a source to a decoder and stops when the decoder holds too much: a decoder
// keeps a whole token, and the white space before it, in memory. It never hands over more
// than the limit, so that where it stops does not depend on how the source is read.
type feed struct {
	dec    *jsontext.Decoder
	src    io.ReaderAt
	off    int64 // of the next byte to read into the window
	prefix []byte
	window []byte
	buf    []byte // unread part of the window
	fed    int64  // bytes handed over
	limit  int64
}

func (f *feed) reset(dec *jsontext.Decoder, src io.ReaderAt, off int64, prefix []byte, limits Limits) {
	if f.window == nil {
		f.window = make([]byte, limits.Window)
	}
	*f = feed{dec: dec, src: src, off: off, prefix: prefix, window: f.window, limit: int64(limits.Literal) + slack}
}

// readFull fills p from offset off, also from a source that reads in small pieces. The
// error of a text that ends before is io.EOF.
func readFull(src io.ReaderAt, p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = src.ReadAt(p[n:], off+int64(n))
		n += more
	}
	if n == len(p) {
		return n, nil
	}
	return n, err
}

func (f *feed) Read(p []byte) (int, error) {
	if len(f.prefix) > 0 {
		n := copy(p, f.prefix)
		f.prefix = f.prefix[n:]
		f.fed += int64(n)
		return n, nil
	}
	room := f.limit - (f.fed - f.dec.InputOffset())
	if room <= 0 {
		return 0, errLiteral
	}
	if len(f.buf) == 0 {
		n, err := f.src.ReadAt(f.window, f.off)
		if n == 0 {
			if err == io.EOF {
				return 0, io.EOF
			}
			return 0, &ReadError{Offset: f.off, Err: err}
		}
		f.buf = f.window[:n]
		f.off += int64(n)
	}
	n := copy(p[:min(int64(len(p)), room)], f.buf)
	f.buf = f.buf[n:]
	f.fed += int64(n)
	return n, nil
}
