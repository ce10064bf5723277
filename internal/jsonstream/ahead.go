package jsonstream

import "io"

// aheadSize is how much of a source is read at once.
const aheadSize = 64 << 10

// Ahead reads a source in larger pieces than it is asked for: scanners of small values that
// stand one behind the other then cost no system call each. It is for one goroutine.
type Ahead struct {
	src io.ReaderAt
	off int64
	buf []byte // made by the first small read
}

// NewAhead returns an Ahead of a source.
func NewAhead(src io.ReaderAt) *Ahead { return &Ahead{src: src} }

// ReadAt is that of [io.ReaderAt]. What is no small piece is read past the buffer.
func (a *Ahead) ReadAt(p []byte, off int64) (int, error) {
	if at := off - a.off; at >= 0 && at+int64(len(p)) <= int64(len(a.buf)) {
		return copy(p, a.buf[at:]), nil
	}
	if len(p) > aheadSize/4 {
		return a.src.ReadAt(p, off)
	}
	if a.buf == nil {
		a.buf = make([]byte, aheadSize)
	}
	n, err := a.src.ReadAt(a.buf[:aheadSize], off)
	a.off, a.buf = off, a.buf[:n]
	if n >= len(p) {
		err = nil
	}
	return copy(p, a.buf), err
}
