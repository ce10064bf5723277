package rpc

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// content returns the body of an answer without its compression. The transport would
// decompress as well, but then nobody can tell a connection that broke from compression
// that is damaged.
func content(resp *http.Response) io.Reader {
	if !strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		return resp.Body
	}
	return &inflated{wire: &wire{r: resp.Body}}
}

// endsByClosing tells whether a body ends where the connection does, so that one that is
// cut off looks whole.
func endsByClosing(resp *http.Response) bool {
	return resp.ProtoMajor < 2 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
}

// wire is a body as it is sent. It remembers how it ended.
type wire struct {
	r    io.Reader
	came int64
	err  error
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.came += int64(n)
	w.err = err
	return n, err
}

// inflated is a compressed body.
type inflated struct {
	wire *wire
	z    *gzip.Reader // nil before the first read
}

func (r *inflated) Read(p []byte) (n int, err error) {
	if r.z == nil {
		r.z, err = gzip.NewReader(r.wire)
	}
	if err == nil {
		n, err = r.z.Read(p)
	} else if err == io.EOF && r.wire.came > 0 {
		err = io.ErrUnexpectedEOF
	}
	switch {
	case err == nil || err == io.EOF:
		return n, err
	case r.wire.err != nil && r.wire.err != io.EOF:
		return n, r.wire.err
	}
	return n, &damageError{cut: errors.Is(err, io.ErrUnexpectedEOF), err: err}
}

// damageError says that a body that came as it was sent cannot be decompressed.
type damageError struct {
	cut bool // the compressed data stops within it
	err error
}

func (e *damageError) Error() string {
	if e.cut {
		return "the gzip compression of the answer stops in the middle"
	}
	return "the gzip compression of the answer is damaged"
}

func (e *damageError) Unwrap() error { return e.err }
