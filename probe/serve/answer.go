package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const chunkSize = 64 << 10 // bytes that are read and sent at a time

// response is the writer of one answer. It counts what is sent, and gives each part of it
// its own time: a time for the whole would be too short for a large document on a slow
// line, or long enough to be held up by a client that does not read.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration

	head  bool             // the body is not wanted
	begun func(status int) // called once, before anything is sent

	status  int
	bytes   int64
	coding  coding
	aborted bool
}

func (h *Handler) newResponse(w http.ResponseWriter, head bool) *response {
	r := &response{ResponseWriter: w, control: http.NewResponseController(w), stall: h.opt.Stall, head: head, coding: identity}
	_ = r.extend() // for answers without a body; an error comes again with the first write
	return r
}

// Unwrap is for http.ResponseController.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// begin notes the status. A client that has its answer is counted already.
func (w *response) begin(status int) {
	if w.status == 0 {
		w.status = status
		w.begun(status)
	}
}

// WriteHeader sends the header.
func (w *response) WriteHeader(status int) {
	w.begin(status)
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *response) Write(p []byte) (n int, err error) {
	w.begin(http.StatusOK)
	if w.head {
		return len(p), nil
	}
	for first := true; first || len(p) > 0; first = false {
		if err := w.extend(); err != nil {
			return n, err
		}
		sent, err := w.ResponseWriter.Write(p[:min(len(p), chunkSize)])
		n, p = n+sent, p[sent:]
		w.bytes += int64(sent)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// extend begins the time of the next part.
func (w *response) extend() error {
	err := w.control.SetWriteDeadline(time.Now().Add(w.stall))
	if errors.Is(err, http.ErrNotSupported) {
		return nil // no connection behind it
	}
	return err
}

// refuseBody makes an end of the connection after a request with a body, which nothing
// here reads: the server would else wait for it, for as long as it takes.
func (w *response) refuseBody() {
	w.Header().Set("Connection", "close")
	// Without a connection behind it there is no need.
	_ = w.control.SetReadDeadline(time.Now().Add(headerTimeout))
}

// abort ends an answer so that the client sees that it is not whole.
func (w *response) abort() {
	w.aborted = true
	panic(http.ErrAbortHandler) // the way of net/http to close the connection
}

// stream sends the document as the body.
func (h *Handler) stream(w *response, s *snapshot, coding coding) {
	buf := h.coders.buffer()
	defer h.coders.keep(buf)
	first, err := s.chunk(*buf, 0)
	if err != nil {
		h.opt.Log("cannot read the document: " + err.Error())
		w.fail(http.StatusInternalServerError, "the document cannot be read")
		return
	}
	w.WriteHeader(http.StatusOK)
	body, done := h.coders.encoder(coding, w)
	defer done()
	var broken *readError
	if err := s.copyTo(body, *buf, first); errors.As(err, &broken) {
		h.opt.Log("an answer was cut off: " + err.Error())
		w.abort()
	} else if err != nil {
		w.abort() // the client has gone, or stood still
	}
	if err := body.Close(); err != nil {
		w.abort()
	}
}

// readError is a document that cannot be read to its end.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

var errOverwritten = errors.New("a file of the document was overwritten; replace it by renaming another one over it")

// chunk reads the part of the document at an offset. Before it gives out the last part it
// makes sure that no file was overwritten so far, so that nobody gets an end to what is
// neither the old document nor the new one.
func (s *snapshot) chunk(buf []byte, off int64) (n int, err error) {
	buf = buf[:min(int64(len(buf)), s.size-off)]
	n, err = s.doc.ReadAt(buf, off)
	switch {
	case n < len(buf) && (err == nil || err == io.EOF):
		return 0, &readError{fmt.Errorf("the document ends at byte %d of %d", off+int64(n), s.size)}
	case n < len(buf):
		return 0, &readError{err}
	case off+int64(n) == s.size && s.overwritten():
		return 0, &readError{errOverwritten}
	}
	return n, nil
}

// copyTo writes the document, of which the first n bytes are in the buffer. Errors of
// reading are of type readError.
func (s *snapshot) copyTo(w io.Writer, buf []byte, n int) (err error) {
	for off := int64(0); ; {
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		if off += int64(n); off >= s.size {
			return nil
		}
		if n, err = s.chunk(buf, off); err != nil {
			return err
		}
	}
}
