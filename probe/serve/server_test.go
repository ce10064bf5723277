package serve

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// live is a site behind a real listener.
type live struct {
	*site
	url   string
	stop  context.CancelFunc
	ended chan error
	done  chan struct{} // one for each answer that has ended
}

func newLive(t *testing.T, grace time.Duration, text string, change ...func(*site)) *live {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &live{site: newSite(t, text, change...), url: "http://" + l.Addr().String(), ended: make(chan error, 1), done: make(chan struct{}, 10_000)}
	server := v.Server()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { v.done <- struct{}{} }()
		v.ServeHTTP(w, r)
	})
	ctx, stop := context.WithCancel(context.Background())
	v.stop = stop
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		v.ended <- Run(ctx, server, l, grace)
	}()
	t.Cleanup(func() { stop(); <-finished })
	return v
}

// fetch asks for the document in a coding. The transport does not decompress.
func (v *live) fetch(c coding) (*http.Response, []byte, error) {
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequest("GET", v.url+"/get_perf_metrics", nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept-Encoding", string(c))
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := decoded(resp)
	return resp, text, err
}

// gates let reads through: closed ones stop every read behind the first chunk.
type gates struct {
	reached chan struct{} // a read has come to the gate
	opened  chan struct{}
}

func newGates() *gates { return &gates{make(chan struct{}, 1000), make(chan struct{})} }

func (g *gates) wait(off int64) {
	if off >= chunkSize {
		g.reached <- struct{}{}
		<-g.opened
	}
}

// hold makes the current document stop its readers behind the first chunk.
func (v *live) hold() *gates {
	g := newGates()
	v.store.mu.Lock()
	defer v.store.mu.Unlock()
	v.store.current.doc.(*fileDocument).gate = g.wait
	return g
}

type result struct {
	text []byte
	err  error
}

// begin fetches the document in the background.
func (v *live) begin(c coding) <-chan result {
	ch := make(chan result, 1)
	go func() {
		_, text, err := v.fetch(c)
		ch <- result{text, err}
	}()
	return ch
}

func TestAnswersOnTheirWayStayOld(t *testing.T) {
	old, new := document(1, 5*chunkSize), document(2, 5*chunkSize)
	for _, c := range preferred() {
		var closed atomic.Int32
		v := newLive(t, time.Minute, old, func(s *site) { s.gone = func() { closed.Add(1) } })
		g := v.hold()
		answer := v.begin(c)
		<-g.reached
		v.replace(new)
		if _, text, err := v.fetch(c); err != nil || string(text) != new {
			t.Errorf("%s: a new answer is not the new document: %v", c, err)
		}
		if closed.Load() != 0 {
			t.Errorf("%s: the old document was closed", c)
		}
		close(g.opened)
		if r := <-answer; r.err != nil || string(r.text) != old {
			t.Errorf("%s: the old answer is not the old document: %v", c, r.err)
		}
		v.stop()
		if err := <-v.ended; err != nil {
			t.Error(err)
		}
		if closed.Load() != 1 {
			t.Errorf("%s: %d documents closed", c, closed.Load())
		}
	}
}

func TestAnswersFromOverwrittenFilesAreCutOff(t *testing.T) {
	text := document(1, 5*chunkSize)
	for _, c := range preferred() {
		v := newLive(t, time.Minute, text)
		g := v.hold()
		answer := v.begin(c)
		<-g.reached
		v.overwrite(document(2, 5*chunkSize))
		close(g.opened)
		if r := <-answer; r.err == nil {
			t.Errorf("%s: a whole answer of %d bytes", c, len(r.text))
		}
		<-v.done
		if !strings.Contains(v.logged(), "overwritten") {
			t.Errorf("%s: the log says %s", c, v.logged())
		}
	}
}

// Clients ask while the document is replaced all the time: each answer is one of the
// documents, whole, and the one that its tag names.
func TestNoTornAnswers(t *testing.T) {
	const versions, clients = 40, 6
	texts := map[string]string{}
	for i := range uint64(versions) {
		text := document(i, 2*chunkSize)
		sum := sha256.Sum256([]byte(text))
		texts[hex.EncodeToString(sum[:16])] = text
	}
	v := newLive(t, time.Minute, document(0, 2*chunkSize))
	stop := make(chan struct{})
	var seen sync.Map
	var group sync.WaitGroup
	for i := range clients {
		c := preferred()[i%3]
		group.Go(func() {
			for {
				resp, text, err := v.fetch(c)
				if err != nil {
					t.Error(err)
					return
				}
				digest, _, _ := strings.Cut(strings.Trim(resp.Header.Get("ETag"), `"`), "-")
				if want, ok := texts[digest]; !ok || string(text) != want {
					t.Errorf("%s: %d bytes that are not those of %s", c, len(text), digest)
					return
				}
				seen.Store(digest, true)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i := range uint64(versions) {
		v.replace(document(i, 2*chunkSize))
		if _, text, err := v.fetch(identity); err != nil || string(text) != document(i, 2*chunkSize) {
			t.Errorf("version %d is not served after it was written: %v", i, err)
		}
	}
	close(stop)
	group.Wait()
	count := 0
	seen.Range(func(any, any) bool { count++; return true })
	t.Logf("%d of %d versions were seen by the clients", count, versions)
	if count < 2 {
		t.Error("nothing was replaced while clients asked")
	}
}

func TestTooManyAnswers(t *testing.T) {
	text := document(1, 3*chunkSize)
	v := newLive(t, time.Minute, text, func(s *site) { s.opt.MaxAnswers = 1 })
	g := v.hold()
	first := v.begin(identity)
	<-g.reached
	resp, body, err := v.fetch(gzipCoding)
	if err != nil || resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("ETag") != "" || !strings.Contains(string(body), "too many clients") {
		t.Errorf("got %+v %s %v", resp, body, err)
	}
	if got := v.metric("fpm_serve_in_flight"); got != "1" {
		t.Errorf("%s on their way", got)
	}
	for _, path := range []string{"/healthz", "/metrics"} {
		if resp := v.ask("GET", path); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if resp := v.ask("HEAD", "/get_perf_metrics"); resp.StatusCode != 200 {
		t.Errorf("HEAD: %d", resp.StatusCode)
	}
	close(g.opened)
	if r := <-first; r.err != nil || string(r.text) != text {
		t.Errorf("the first answer: %v", r.err)
	}
	<-v.done
	<-v.done
	if resp, _, err := v.fetch(identity); err != nil || resp.StatusCode != 200 {
		t.Errorf("after it: %v %v", resp, err)
	}
}

// A client that does not read loses its answer, and its place.
func TestStandingStill(t *testing.T) {
	v := newLive(t, time.Minute, document(1, 16<<20), func(s *site) { s.opt.Stall = 50 * time.Millisecond; s.opt.MaxAnswers = 1 })
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /get_perf_metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	<-v.done
	if got := v.metric("fpm_serve_aborted_total"); got != "1" {
		t.Errorf("%s answers cut off", got)
	}
	if got := v.metric("fpm_serve_in_flight"); got != "0" {
		t.Errorf("%s on their way", got)
	}
}

// A client that goes away frees its place.
func TestGoingAway(t *testing.T) {
	v := newLive(t, time.Minute, document(1, 16<<20), func(s *site) { s.opt.Stall = time.Minute })
	conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /get_perf_metrics HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	<-v.done
}

func TestGracefulStop(t *testing.T) {
	text := document(1, 3*chunkSize)
	v := newLive(t, time.Minute, text)
	g := v.hold()
	answer := v.begin(zstdCoding)
	<-g.reached
	v.stop()
	for { // until the listener is closed, which is the first thing that happens
		conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
		if err != nil {
			break
		}
		conn.Close()
	}
	close(g.opened)
	if r := <-answer; r.err != nil || string(r.text) != text {
		t.Errorf("the answer on its way: %v", r.err)
	}
	if err := <-v.ended; err != nil {
		t.Errorf("the end: %v", err)
	}
}

func TestStopThatTakesTooLong(t *testing.T) {
	v := newLive(t, time.Millisecond, document(1, 3*chunkSize))
	g := v.hold()
	answer := v.begin(identity)
	<-g.reached
	v.stop()
	if err := <-v.ended; !errors.Is(err, ErrCutOff) {
		t.Errorf("the end: %v", err)
	}
	close(g.opened)
	if r := <-answer; r.err == nil {
		t.Error("the answer is whole")
	}
}

func TestListenerThatBreaks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := Run(t.Context(), newSite(t, "{}").Server(), l, 0); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit(inner, 1)
	for range 2 {
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	first, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	type accepted struct {
		conn net.Conn
		err  error
	}
	next := make(chan accepted)
	accept := func() {
		conn, err := l.Accept()
		next <- accepted{conn, err}
	}
	go accept()
	select {
	case <-next:
		t.Fatal("two connections at a time")
	case <-time.After(20 * time.Millisecond):
	}
	first.Close()
	first.Close() // gives back one place, not two
	second := <-next
	if second.err != nil {
		t.Fatal(second.err)
	}
	defer second.conn.Close()
	go accept()
	l.Close()
	if end := <-next; !errors.Is(end.err, net.ErrClosed) {
		t.Errorf("after Close: %v", end.err)
	}
}

// What comes over the connection is limited, too.
func TestRequests(t *testing.T) {
	v := newLive(t, time.Minute, "{}")
	for _, c := range []struct {
		name, request string
		status        int
		close         bool
	}{
		{"body", "GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n", 200, true},
		{"chunked body", "POST /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", 405, true},
		{"header", "GET / HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431, true},
		{"no HTTP", "hello\r\n\r\n", 400, true},
		{"HTTP/1.0", "GET /get_perf_metrics HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n", 200, true},
		{"good", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 200, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go io.WriteString(conn, c.request)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != c.status || resp.Close != c.close {
				t.Errorf("%d, close %v", resp.StatusCode, resp.Close)
			}
		})
	}
}
