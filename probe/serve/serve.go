// Package serve answers HTTP requests for the merged document of a run, as the
// get_perf_metrics endpoint of a worker would.
//
// # A document that is replaced
//
// The document is made of files that others replace: the merged artifact and the sidecar
// of its worker probe. Every request looks whether they are still the ones that were
// opened, which costs two calls of stat, and opens the new ones when they are not. The
// answers that are on their way then go on from the files they began with, which stay
// open until the last of them has ended: an answer is wholly old or wholly new.
//
// New files that cannot be served leave the old document where it is; the log, /healthz
// and /metrics say so. There is one case in which nothing can be served (503): a file was
// overwritten where it stood, instead of being replaced, and what is at its path now is no
// document. That holds when the file was moved away since: it is the open file that is
// looked at. An answer that is on its way when that happens is cut off, so that the client
// sees that it is not whole.
//
// # Answers
//
// A [Handler] answers GET and HEAD:
//
//   - /get_perf_metrics: the document, compressed with zstd or gzip when the client
//     accepts that. Each of the three representations has its own strong entity tag, made
//     of the digest of the document's text: it changes exactly when the text does.
//   - /healthz: whether there is a document, and whether it is the newest.
//   - /metrics: the same in numbers, for Prometheus.
//
// What goes wrong is told as {"status": "error", "message": "…"}, the form in which the
// consumers of the endpoint expect it.
//
// # Limits
//
// The document streams from disk through one small buffer an answer, so that memory
// depends on the number of answers and not on the document. The number of answers at a
// time is limited (503 with Retry-After beyond it), that of connections, and the size of a
// request's header. A client may be slow, but not stand still: each part of an answer, of
// 64 KiB at most, has [Options.Stall] to leave.
package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Document is what is served. A document never changes while it is open, unless one of
// its files is overwritten.
type Document interface {
	io.ReaderAt // concurrent use is safe
	io.Closer
	Size() int64   // bytes
	RunID() string // "" when the document names none
	Note() string  // why the worker probe is not applied; "" when it is
}

// Options say what is served and within which limits.
type Options struct {
	Open  func() (Document, error) // opens the document as it is now
	Paths []string                 // the files it is made of, there or not

	MaxAnswers int           // documents that are sent at a time; default 128
	Stall      time.Duration // for 64 KiB of an answer; default 30 s

	Version string       // of the program, for /metrics
	Log     func(string) // what operators should know, a line at a time; nil drops it
}

// The defaults.
const (
	DefaultMaxAnswers = 128
	DefaultStall      = 30 * time.Second
)

// Handler answers requests.
type Handler struct {
	opt     Options
	store   *store
	coders  *coders
	metrics *metrics
	slots   chan struct{} // one is taken for each document that is being sent
	routes  map[string]func(*response, *http.Request)
}

// New opens the document and returns a handler for it. Its error is that of
// [Options.Open], or of reading the document.
func New(opt Options) (*Handler, error) {
	if opt.MaxAnswers == 0 {
		opt.MaxAnswers = DefaultMaxAnswers
	}
	if opt.Stall == 0 {
		opt.Stall = DefaultStall
	}
	if opt.Log == nil {
		opt.Log = func(string) {}
	}
	h := &Handler{opt: opt, coders: newCoders(), slots: make(chan struct{}, opt.MaxAnswers)}
	var err error
	if h.store, err = newStore(opt); err != nil {
		return nil, err
	}
	h.metrics = newMetrics(opt.Version, h.store)
	metrics := h.metrics.handler()
	h.routes = map[string]func(*response, *http.Request){
		"/get_perf_metrics": h.document,
		"/healthz":          h.health,
		"/metrics":          func(w *response, r *http.Request) { metrics.ServeHTTP(w, r) },
	}
	return h, nil
}

// Close closes the document as soon as the last answer has ended.
func (h *Handler) Close() { h.store.close() }

// Describe says which document is served.
func (h *Handler) Describe() string { return h.store.describe() }

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := h.newResponse(w, r.Method == http.MethodHead)
	route, known := h.routes[r.URL.Path]
	path := "other"
	if known {
		path = r.URL.Path
	}
	answer.begun = func(status int) { h.metrics.begun(path, status, answer.coding) }
	defer func() { h.metrics.ended(answer) }() // also an answer that is cut off
	answer.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 {
		answer.refuseBody()
	}
	switch {
	case !known:
		answer.fail(http.StatusNotFound, "nothing is here; there are /get_perf_metrics, /healthz and /metrics")
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		answer.Header().Set("Allow", "GET, HEAD")
		answer.fail(http.StatusMethodNotAllowed, "only GET and HEAD are answered")
	default:
		route(answer, r)
	}
}

// document answers with the document.
func (h *Handler) document(w *response, r *http.Request) {
	s, err := h.store.acquire()
	if err != nil {
		w.unavailable("nothing can be served: " + err.Error())
		return
	}
	defer h.store.release(s)
	coding := negotiate(r.Header.Values("Accept-Encoding"))
	header := w.Header()
	header.Set("ETag", s.tag(coding))
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache") // a cache may keep it, but asks each time
	header.Set("Accept-Ranges", "none")
	w.coding = coding
	if matches(r.Header.Values("If-None-Match"), s.tag(coding)) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", "application/json")
	if coding == identity {
		header.Set("Content-Length", strconv.FormatInt(s.size, 10))
	} else {
		header.Set("Content-Encoding", string(coding))
	}
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return
	}
	h.send(w, s, coding)
}

// send sends a document when there is room for one more.
func (h *Handler) send(w *response, s *snapshot, coding coding) {
	select {
	case h.slots <- struct{}{}:
	default:
		w.unavailable("too many clients are being answered; ask again")
		return
	}
	h.metrics.inFlight.Inc()
	defer func() { h.metrics.inFlight.Dec(); <-h.slots }()
	h.stream(w, s, coding)
}

// health answers whether there is something to serve.
func (h *Handler) health(w *response, _ *http.Request) {
	state := h.store.state()
	if state.lost {
		w.unavailable("nothing can be served: " + state.fault)
		return
	}
	body := struct {
		Status string `json:"status"`
		RunID  string `json:"run_id,omitempty"`
		Size   int64  `json:"size"`
		Note   string `json:"note,omitempty"`
		Stale  string `json:"stale,omitempty"` // why the newest files are not served
	}{"ok", state.runID, state.size, state.note, state.fault}
	w.Header().Set("Cache-Control", "no-store")
	w.json(http.StatusOK, body)
}

// json answers with a JSON value and a line feed.
func (w *response) json(status int, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // values of this package only
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // an error is the client's: it has gone
}

// fail answers that it cannot be done.
func (w *response) fail(status int, message string) {
	for _, name := range []string{"ETag", "Vary", "Cache-Control", "Content-Encoding", "Content-Length"} {
		w.Header().Del(name)
	}
	w.coding = identity
	w.json(status, struct {
		Status  string `json:"status"`
		Message string `json:"message"`
	}{"error", message})
}

// unavailable answers that it cannot be done now.
func (w *response) unavailable(message string) {
	w.Header().Set("Retry-After", "1")
	w.fail(http.StatusServiceUnavailable, message)
}
