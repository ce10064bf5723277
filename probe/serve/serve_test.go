package serve

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// fileDocument is a document made of one file, and of a note in another if there is one.
// Its text has to begin with "{" and end with "}".
type fileDocument struct {
	*os.File
	size int64
	note string
	gate func(off int64) // called before each read; may be nil
	gone func()          // called when it is closed; may be nil
}

func (d *fileDocument) Size() int64   { return d.size }
func (d *fileDocument) RunID() string { return "run-1" }
func (d *fileDocument) Note() string  { return d.note }

func (d *fileDocument) ReadAt(p []byte, off int64) (int, error) {
	if d.gate != nil {
		d.gate(off)
	}
	return d.File.ReadAt(p, off)
}

func (d *fileDocument) Close() error {
	if d.gone != nil {
		d.gone()
	}
	return d.File.Close()
}

// site is a handler with its files.
type site struct {
	*Handler
	t    *testing.T
	path string
	opt  Options
	gate func(off int64) // of documents that are opened from now on
	gone func()

	mu  sync.Mutex
	log []string
}

func newSite(t *testing.T, text string, change ...func(*site)) *site {
	t.Helper()
	s := &site{t: t, path: filepath.Join(t.TempDir(), "merged.json")}
	s.replace(text)
	s.opt = Options{Open: s.open, Paths: []string{s.path, s.path + ".probe"}, Version: "v1.2.3", Log: s.note}
	for _, f := range change {
		f(s)
	}
	var err error
	if s.Handler, err = New(s.opt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *site) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, line)
}

func (s *site) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "\n")
}

func (s *site) open() (Document, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d := &fileDocument{File: f, size: info.Size(), gate: s.gate, gone: s.gone}
	ends := make([]byte, 2)
	f.ReadAt(ends[:1], 0)
	f.ReadAt(ends[1:], d.size-1)
	if string(ends) != "{}" {
		return nil, errors.Join(errors.New("no document"), f.Close())
	}
	if note, err := os.ReadFile(s.path + ".probe"); err == nil {
		d.note = string(note)
	}
	return d, nil
}

// replace puts a new file in the place of the document's.
func (s *site) replace(text string) {
	s.t.Helper()
	temp := s.path + ".tmp"
	if err := errors.Join(os.WriteFile(temp, []byte(text), 0o666), os.Rename(temp, s.path)); err != nil {
		s.t.Fatal(err)
	}
}

// overwrite writes a text into the document's file.
func (s *site) overwrite(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path, []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
	// The clock of a file system may be coarse.
	if err := os.Chtimes(s.path, time.Time{}, time.Now().Add(time.Second)); err != nil {
		s.t.Fatal(err)
	}
}

// ask sends a request, with headers as "Name: value", and returns the answer.
func (s *site) ask(method, path string, headers ...string) *http.Response {
	s.t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

func (s *site) body(resp *http.Response) string {
	s.t.Helper()
	text, err := decoded(resp)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// get returns the document as it is served.
func (s *site) get() string {
	s.t.Helper()
	return s.body(s.ask("GET", "/get_perf_metrics"))
}

func (s *site) metric(name string) string {
	s.t.Helper()
	for line := range strings.Lines(s.body(s.ask("GET", "/metrics"))) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// decoded returns the body of an answer without its compression.
func decoded(resp *http.Response) ([]byte, error) {
	var r io.Reader = resp.Body
	switch resp.Header.Get("Content-Encoding") {
	case "gzip":
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, err
		}
		r = z
	case "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		r = z
	}
	return io.ReadAll(r)
}

// document returns a text of about so many bytes that can be served, and compressed.
func document(seed uint64, size int) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var b strings.Builder
	fmt.Fprintf(&b, `{"seed": %d`, seed)
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, ",\n  \"wall_time_%d\": %g", i, r.Float64())
	}
	return b.String() + "}"
}

func TestAnswers(t *testing.T) {
	const text = `{"a": 1}`
	s := newSite(t, text)
	tag := strings.Trim(s.ask("HEAD", "/get_perf_metrics").Header.Get("ETag"), `"`)
	if len(tag) != 32 {
		t.Fatalf("entity tag %q", tag)
	}
	plain := map[string]string{
		"Content-Type": "application/json", "Content-Length": "8", "ETag": `"` + tag + `"`, "Vary": "Accept-Encoding",
		"Accept-Ranges": "none", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
	}
	failed := map[string]string{"Content-Type": "application/json", "ETag": "", "X-Content-Type-Options": "nosniff"}
	for _, c := range []struct {
		name    string
		method  string
		path    string
		headers []string
		status  int
		want    map[string]string // headers; "" is absence
		body    string
	}{
		{"document", "GET", "/get_perf_metrics", nil, 200, plain, text},
		{"document with a query", "GET", "/get_perf_metrics?x=1", nil, 200, plain, text},
		{"no part of it", "GET", "/get_perf_metrics", []string{"Range: bytes=0-1"}, 200, plain, text},
		{"head", "HEAD", "/get_perf_metrics", nil, 200, plain, ""},
		{"gzip", "GET", "/get_perf_metrics", []string{"Accept-Encoding: gzip"}, 200, map[string]string{
			"Content-Encoding": "gzip", "Content-Length": "", "ETag": `"` + tag + `-gzip"`, "Vary": "Accept-Encoding"}, text},
		{"zstd", "GET", "/get_perf_metrics", []string{"Accept-Encoding: gzip, zstd"}, 200, map[string]string{
			"Content-Encoding": "zstd", "Content-Length": "", "ETag": `"` + tag + `-zstd"`, "Vary": "Accept-Encoding"}, text},
		{"head of zstd", "HEAD", "/get_perf_metrics", []string{"Accept-Encoding: zstd"}, 200, map[string]string{
			"Content-Encoding": "zstd", "Content-Length": "", "ETag": `"` + tag + `-zstd"`}, ""},
		{"known", "GET", "/get_perf_metrics", []string{`If-None-Match: "x", W/"` + tag + `"`}, 304, map[string]string{
			"ETag": `"` + tag + `"`, "Vary": "Accept-Encoding", "Cache-Control": "no-cache", "Content-Type": "", "Content-Length": ""}, ""},
		{"known as gzip", "HEAD", "/get_perf_metrics", []string{`If-None-Match: "` + tag + `-gzip"`, "Accept-Encoding: gzip"}, 304, map[string]string{
			"ETag": `"` + tag + `-gzip"`, "Content-Encoding": ""}, ""},
		{"known in another coding", "GET", "/get_perf_metrics", []string{`If-None-Match: "` + tag + `-gzip"`}, 200, plain, text},
		{"any", "GET", "/get_perf_metrics", []string{"If-None-Match: *"}, 304, nil, ""},
		{"unknown", "GET", "/get_perf_metrics", []string{`If-None-Match: "` + strings.Repeat("0", 32) + `"`}, 200, plain, text},
		{"health", "GET", "/healthz", nil, 200, map[string]string{"Content-Type": "application/json"}, `{"status":"ok","run_id":"run-1","size":8}` + "\n"},
		{"health's head", "HEAD", "/healthz", nil, 200, map[string]string{"Content-Length": "42"}, ""},
		{"nowhere", "GET", "/", nil, 404, failed, `{"status":"error","message":"nothing is here; there are /get_perf_metrics, /healthz and /metrics"}` + "\n"},
		{"slash", "GET", "/get_perf_metrics/", nil, 404, failed, ""},
		{"post", "POST", "/get_perf_metrics", nil, 405, map[string]string{"Allow": "GET, HEAD", "ETag": ""}, `{"status":"error","message":"only GET and HEAD are answered"}` + "\n"},
		{"options", "OPTIONS", "/metrics", nil, 405, map[string]string{"Allow": "GET, HEAD"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := s.ask(c.method, c.path, c.headers...)
			if resp.StatusCode != c.status {
				t.Errorf("status %d, want %d", resp.StatusCode, c.status)
			}
			for name, want := range c.want {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if body := s.body(resp); body != c.body && (c.body != "" || c.status < 400) {
				t.Errorf("body %q, want %q", body, c.body)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	s := newSite(t, document(1, 1000))
	s.ask("GET", "/get_perf_metrics")
	s.ask("HEAD", "/get_perf_metrics")
	s.ask("GET", "/get_perf_metrics", "Accept-Encoding: zstd")
	s.ask("GET", "/get_perf_metrics", "If-None-Match: *")
	s.ask("DELETE", "/secret/%7f")
	size := fmt.Sprint(len(s.get()))
	for name, want := range map[string]string{
		`fpm_serve_requests_total{code="200",encoding="identity",path="/get_perf_metrics"}`: "3",
		`fpm_serve_requests_total{code="200",encoding="zstd",path="/get_perf_metrics"}`:     "1",
		`fpm_serve_requests_total{code="304",encoding="identity",path="/get_perf_metrics"}`: "1",
		`fpm_serve_requests_total{code="404",encoding="identity",path="other"}`:             "1",
		"fpm_serve_document_size_bytes":   size,
		"fpm_serve_in_flight":             "0",
		"fpm_serve_reloads_total":         "0",
		"fpm_serve_reload_failures_total": "0",
		"fpm_serve_document_stale":        "0",
		"fpm_serve_document_probed":       "1",
		"fpm_serve_aborted_total":         "0",
	} {
		if got := s.metric(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if text := s.body(s.ask("GET", "/metrics")); !strings.Contains(text, `version="v1.2.3"`) || !strings.Contains(text, "fpm_serve_document_age_seconds ") {
		t.Error("the build or the age is missing")
	}
}

// A representation is the document, whatever the coding; it is the same each time; and
// the entity tag tells two documents apart, but not one from itself.
func TestRepresentations(t *testing.T) {
	tags := map[string]string{} // by tag, the text and coding
	for _, size := range []int{10, 1000, chunkSize - 9, chunkSize, 3*chunkSize + 5, 700_000} {
		for seed := range uint64(2) {
			text := document(seed, size)
			if size == chunkSize {
				text = text[:size-1] + "}" // a whole chunk to the byte
			}
			s := newSite(t, text)
			for _, c := range preferred() {
				one, two := s.ask("GET", "/get_perf_metrics", "Accept-Encoding: "+string(c)), s.ask("GET", "/get_perf_metrics", "Accept-Encoding: "+string(c))
				first, _ := io.ReadAll(one.Body)
				second, _ := io.ReadAll(two.Body)
				if !bytes.Equal(first, second) || one.Header.Get("ETag") != two.Header.Get("ETag") {
					t.Errorf("%s of %d bytes: two answers differ", c, size)
				}
				one.Body = io.NopCloser(bytes.NewReader(first))
				if body := s.body(one); body != text {
					t.Errorf("%s of %d bytes: %d other ones", c, size, len(body))
				}
				key := string(c) + text
				if known, ok := tags[one.Header.Get("ETag")]; ok && known != key {
					t.Errorf("%s of %d bytes: the tag is another's, too", c, size)
				}
				tags[one.Header.Get("ETag")] = key
			}
		}
	}
	if len(tags) != 6*2*3 {
		t.Errorf("%d tags", len(tags))
	}
}

func TestReplacement(t *testing.T) {
	const first, second = `{"a": 1}`, `{"a": 2}`
	closed := 0
	s := newSite(t, first, func(s *site) { s.gone = func() { closed++ } })
	tag := s.ask("HEAD", "/get_perf_metrics").Header.Get("ETag")

	s.replace(second)
	if got := s.get(); got != second || closed != 1 {
		t.Fatalf("got %s, %d closed", got, closed)
	}
	if s.ask("HEAD", "/get_perf_metrics").Header.Get("ETag") == tag {
		t.Error("the tag is the old one")
	}
	s.replace(first)
	if got := s.ask("HEAD", "/get_perf_metrics").Header.Get("ETag"); got != tag {
		t.Error("the same text has another tag")
	}
	if err := os.WriteFile(s.path+".probe", []byte("no probe"), 0o666); err != nil { // the other file counts, too
		t.Fatal(err)
	}
	if got := s.body(s.ask("GET", "/healthz")); !strings.Contains(got, `"note":"no probe"`) {
		t.Errorf("healthz says %s", got)
	}
	if got := s.metric("fpm_serve_reloads_total"); got != "3" || closed != 3 {
		t.Errorf("%s reloads, %d closed", got, closed)
	}
	if want := "the document was replaced: 8 bytes of run \"run-1\""; !strings.Contains(s.logged(), want) {
		t.Errorf("the log says %s", s.logged())
	}
	s.Close()
	if closed != 4 {
		t.Errorf("%d closed", closed)
	}
	if resp := s.ask("GET", "/get_perf_metrics"); resp.StatusCode != 503 {
		t.Errorf("after the end: %d", resp.StatusCode)
	}
}

func TestBadReplacement(t *testing.T) {
	const first, second = `{"a": 1}`, `{"a": 2}`
	s := newSite(t, first)
	original := s.path + ".kept"
	if err := os.Link(s.path, original); err != nil {
		t.Fatal(err)
	}
	stale := func(want string) {
		t.Helper()
		if got := s.get(); got != first {
			t.Errorf("served: %s", got)
		}
		var health struct{ Status, Stale string }
		if err := json.Unmarshal([]byte(s.body(s.ask("GET", "/healthz"))), &health); err != nil {
			t.Fatal(err)
		}
		flag := "0"
		if want != "" {
			flag = "1"
		}
		if health.Status != "ok" || !strings.Contains(health.Stale, want) || (want == "") != (health.Stale == "") || s.metric("fpm_serve_document_stale") != flag {
			t.Errorf("healthz: %+v, stale %s", health, s.metric("fpm_serve_document_stale"))
		}
	}
	s.replace("[")
	stale("no document")
	stale("no document")
	if got := s.metric("fpm_serve_reload_failures_total"); got != "1" {
		t.Errorf("%s attempts at one file", got)
	}
	if got := strings.Count(s.logged(), "cannot be served"); got != 1 {
		t.Errorf("%d lines in the log: %s", got, s.logged())
	}
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	stale("no such file")
	if err := os.Rename(original, s.path); err != nil {
		t.Fatal(err)
	}
	stale("") // the file that is open came back
	s.replace("[[")
	stale("no document")
	s.replace(second)
	if got := s.get(); got != second || s.metric("fpm_serve_document_stale") != "0" {
		t.Errorf("served: %s", got)
	}
}

// What could not be served for a reason outside of the files is tried again.
func TestRetry(t *testing.T) {
	s := newSite(t, `{"a": 1}`)
	broken := true
	s.store.open = func() (Document, error) {
		if broken {
			return nil, errors.New("too many open files")
		}
		return s.open()
	}
	s.replace(`{"a": 2}`)
	s.get()
	broken = false
	if got := s.get(); got != `{"a": 1}` {
		t.Errorf("tried again at once: %s", got)
	}
	s.store.failed.until = time.Now()
	if got := s.get(); got != `{"a": 2}` {
		t.Errorf("not tried again: %s", got)
	}
}

func TestFilesThatKeepChanging(t *testing.T) {
	s := newSite(t, `{"a": 1}`)
	n := 0
	s.store.open = func() (Document, error) {
		d, err := s.open()
		n++
		s.replace(fmt.Sprintf(`{"n": %d}`, n))
		return d, err
	}
	s.replace(`{"a": 2}`)
	if got := s.get(); got != `{"a": 1}` || n != tries {
		t.Errorf("served %s after %d tries", got, n)
	}
	s.store.open = s.open
	if got := s.get(); got != fmt.Sprintf(`{"n": %d}`, tries) {
		t.Errorf("served %s", got)
	}
}

// A file that is overwritten takes the open document with it.
func TestOverwritten(t *testing.T) {
	s := newSite(t, `{"a": 1}`)
	s.overwrite(`{"b": 12}`)
	if got := s.get(); got != `{"b": 12}` {
		t.Errorf("served %s", got)
	}
	s.overwrite(`{"c":`)
	for _, path := range []string{"/get_perf_metrics", "/healthz"} {
		resp := s.ask("GET", path)
		want := `{"status":"error","message":"nothing can be served: no document"}` + "\n"
		if body := s.body(resp); resp.StatusCode != 503 || body != want || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	s.replace(`{"d": 1}`)
	if got := s.get(); got != `{"d": 1}` {
		t.Errorf("served %s", got)
	}
}

// A file that was written to is of no use any more, wherever it was moved.
func TestOverwrittenAndMovedAway(t *testing.T) {
	for name, text := range map[string]string{"as long": `{"b": 2}`, "shorter": `{}`, "longer": `{"b": 12}`} {
		for _, first := range []bool{true, false} { // moved before anybody asks
			s := newSite(t, `{"a": 1}`)
			s.overwrite(text)
			if !first && s.get() != text {
				t.Errorf("%s: not served", name)
			}
			if !first {
				s.overwrite(`{"c": 3`)
			}
			away := s.path + ".away"
			if err := os.Rename(s.path, away); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/get_perf_metrics", "/healthz"} {
				if resp := s.ask("GET", path); resp.StatusCode != 503 || resp.Header.Get("ETag") != "" {
					t.Errorf("%s, moved first %v: %s: %d %s", name, first, path, resp.StatusCode, s.body(resp))
				}
			}
			if !strings.Contains(s.logged(), "nothing is served") {
				t.Errorf("the log says %s", s.logged())
			}
			s.replace(`{"d": 1}`)
			if got := s.get(); got != `{"d": 1}` {
				t.Errorf("%s: served %s", name, got)
			}
		}
	}
}

// One that was moved or removed as it was is served on, and so is one whose mode changed.
func TestMovedAway(t *testing.T) {
	s := newSite(t, `{"a": 1}`)
	if err := errors.Join(os.Rename(s.path, s.path+".away"), os.Chmod(s.path+".away", 0o600), os.Remove(s.path+".away")); err != nil {
		t.Fatal(err)
	}
	if got := s.get(); got != `{"a": 1}` {
		t.Errorf("served %s", got)
	}
}

func TestNothingToBeginWith(t *testing.T) {
	_, err := New(Options{Open: func() (Document, error) { return nil, os.ErrNotExist }})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	short := func() (Document, error) {
		f, err := os.Open(os.DevNull)
		return &fileDocument{File: f, size: 5}, err
	}
	if _, err := New(Options{Open: short}); err == nil || !strings.Contains(err.Error(), "ends at byte 0 of 5") {
		t.Errorf("got %v", err)
	}
}

func TestUnreadable(t *testing.T) {
	s := newSite(t, document(1, 3*chunkSize))
	current := s.store.current
	real := current.doc
	current.doc = &failing{Document: real, at: 0}
	resp := s.ask("GET", "/get_perf_metrics", "Accept-Encoding: gzip")
	if body := s.body(resp); resp.StatusCode != 500 || resp.Header.Get("Content-Encoding") != "" || body != `{"status":"error","message":"the document cannot be read"}`+"\n" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	current.doc = &failing{Document: real, at: chunkSize}
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler {
				t.Errorf("panic %v", v)
			}
		}()
		s.ask("GET", "/get_perf_metrics")
	}()
	current.doc = real
	if got := s.metric("fpm_serve_aborted_total"); got != "1" {
		t.Errorf("%s answers cut off", got)
	}
	if !strings.Contains(s.logged(), "cut off: bad sector") {
		t.Errorf("the log says %s", s.logged())
	}
}

// failing cannot be read from some place on.
type failing struct {
	Document
	at int64
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if off >= f.at {
		return 0, errors.New("bad sector")
	}
	return f.Document.ReadAt(p, off)
}

func TestNegotiate(t *testing.T) {
	for _, c := range []struct {
		header string
		want   coding
	}{
		{"", identity}, {"gzip", gzipCoding}, {"zstd", zstdCoding}, {"gzip, deflate, br, zstd", zstdCoding},
		{"deflate, br", identity}, {"GZIP", gzipCoding}, {"x-gzip", gzipCoding}, {"identity", identity},
		{"gzip;q=0.9, zstd;q=0.5", gzipCoding}, {"gzip; Q=0.5 , zstd ;q= 0.6", zstdCoding},
		{"gzip;q=0", identity}, {"gzip;q=0.001", gzipCoding}, {"*", zstdCoding}, {"*;q=0", identity},
		{"zstd;q=0, *", gzipCoding}, {"gzip;q=0.5, identity", identity}, {"identity;q=0", identity},
		{"identity;q=0, gzip;q=0.1", gzipCoding}, {"gzip, identity", gzipCoding},
		{"gzip;q=2", identity}, {"gzip;q=-1", identity}, {"gzip;q=NaN", identity}, {"gzip;q=x", identity}, {"gzip;level=9", identity},
		{",,gzip,", gzipCoding}, {strings.Repeat("br,", maxElements) + "gzip", identity},
	} {
		if got := negotiate([]string{c.header}); got != c.want {
			t.Errorf("%q gives %s, want %s", c.header, got, c.want)
		}
	}
	if got := negotiate([]string{"br", "gzip"}); got != gzipCoding {
		t.Errorf("two headers give %s", got)
	}
	if got := negotiate(nil); got != identity {
		t.Errorf("no header gives %s", got)
	}
}

func TestMatches(t *testing.T) {
	const tag = `"abc"`
	for header, want := range map[string]bool{
		"": false, `"abc"`: true, `W/"abc"`: true, `"x" , "abc"`: true, `"x","y,\"z", W/"abc"`: false, `"x, y", "abc"`: true,
		"*": true, "abc": false, `"abc`: false, `w/"abc"`: false, `"abcd"`: false, `"ABC"`: false, `,, "abc"`: true, `"x" *`: true, // malformed, and harmless
	} {
		if got := matches([]string{header}, tag); got != want {
			t.Errorf("%s: %v, want %v", header, got, want)
		}
	}
	if !matches([]string{`"x"`, tag}, tag) || matches(nil, tag) {
		t.Error("several headers, or none")
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add(`gzip;q=0.5, *;q=0`, `W/"x", "y"`)
	f.Fuzz(func(t *testing.T, accept, tags string) {
		if c := negotiate([]string{accept}); c != identity {
			q, named := weightsOf([]string{accept})[string(c)]
			star, starred := weightsOf([]string{accept})["*"]
			if named && q == 0 || !named && (!starred || star == 0) {
				t.Errorf("%q gives %s", accept, c)
			}
		}
		if matches([]string{tags}, `"tag"`) && !strings.Contains(tags, `"tag"`) && !strings.Contains(tags, "*") {
			t.Errorf("%q has the tag", tags)
		}
		if !matches([]string{`"tag", ` + tags}, `"tag"`) {
			t.Errorf("the first of %q is not seen", tags)
		}
	})
}

// deadlines is a writer that notes what it is given.
type deadlines struct {
	*httptest.ResponseRecorder
	since []time.Duration
	sizes []int
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.since = append(d.since, time.Until(at))
	return nil
}

func (d *deadlines) Write(p []byte) (int, error) {
	d.sizes = append(d.sizes, len(p))
	return d.ResponseRecorder.Write(p)
}

// Each part has its own time, so that the whole may take long.
func TestTimeOfEachPart(t *testing.T) {
	text := document(1, 5*chunkSize)
	s := newSite(t, text, func(s *site) { s.opt.Stall = time.Hour })
	for _, c := range preferred() {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest("GET", "/get_perf_metrics", nil)
		r.Header.Set("Accept-Encoding", string(c))
		s.ServeHTTP(d, r)
		if len(d.since) != len(d.sizes)+1 {
			t.Errorf("%s: %d times for %d parts", c, len(d.since), len(d.sizes))
		}
		for i, size := range d.sizes {
			if size > chunkSize || d.since[i+1] < 59*time.Minute {
				t.Errorf("%s: %d bytes in %v", c, size, d.since[i+1])
			}
		}
		if diff := cmp.Diff(text, s.body(d.Result())); diff != "" {
			t.Errorf("%s: the body differs", c)
		}
	}
}
