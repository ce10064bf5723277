package rpc

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const soon = 10 * time.Second // for what must not time out

// answering returns the base URL of a server that answers so.
func answering(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// text returns a handler that answers with a status, a content type and a body.
func text(status int, kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

func TestTheQuestion(t *testing.T) {
	token := write(t, " \n s3cr3t-t0ken\n")
	var got *http.Request
	var body []byte
	url := answering(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Clone(context.Background())
		body, _ = io.ReadAll(r.Body)
	})
	opt := Options{BaseURL: url + "/behind/", Timeout: 90 * time.Second, BearerFile: token, Headers: []string{"X-Team: perf", "x-team:  lab ", "Host: llm.test"}}
	if _, err := Call(t.Context(), opt); err != nil {
		t.Fatal(err)
	}
	line := fmt.Sprint(got.Method, " ", got.URL.Path, " ", got.Host)
	if want := "POST /behind/collective_rpc llm.test"; line != want {
		t.Errorf("asked %s, want %s", line, want)
	}
	if want := `{"method":"fpm_engine_probe","args":[],"kwargs":{},"timeout":90}`; string(body) != want {
		t.Errorf("body %s, want %s", body, want)
	}
	header := map[string][]string{"Authorization": {"Bearer s3cr3t-t0ken"}, "X-Team": {"perf", "lab"}, "Content-Type": {"application/json"}}
	for name, want := range header {
		if diff := cmp.Diff(want, got.Header.Values(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAnswers(t *testing.T) {
	const replies = `{"results": [{"dp_rank": 0}, null, "x"]}`
	flush := func(w http.ResponseWriter, s string) {
		io.WriteString(w, s)
		w.(http.Flusher).Flush()
	}
	for _, c := range []struct {
		name, want string
		handler    http.HandlerFunc
	}{
		{"as it is", replies, text(200, "application/json", replies)},
		{"without a type", replies, text(200, "", replies)},
		{"another value", `"x"`, text(200, "application/json", ` "x" `)},
		{"numbers that only Python has", `[NaN, -Infinity]`, text(200, "application/json", "[NaN, -Infinity]\n")},
		{"brackets in strings", `["]", "\"{"]`, text(200, "application/json", `["]", "\"{"]`)},
		{"nothing", `[null]`, text(200, "application/json", "")},
		{"nothing but space", `[null]`, text(200, "application/json", " \n")},
		{"null", `null`, text(200, "application/json", "null")},
		{"not sound, for the caller to judge", `{"results": [1,,]}`, text(200, "application/json", `{"results": [1,,]}`)},
		{"in pieces", replies, func(w http.ResponseWriter, _ *http.Request) {
			for _, piece := range strings.SplitAfter(replies, " ") {
				flush(w, piece)
			}
		}},
		{"compressed", replies, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "gzip" {
				t.Error("gzip is not accepted")
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			io.WriteString(z, replies)
			z.Close()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Call(t.Context(), Options{BaseURL: answering(t, c.handler), Timeout: soon})
			if err != nil || string(got) != c.want {
				t.Errorf("got %s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// failure calls and returns the failure that must come of it.
func failure(t *testing.T, opt Options) *Failure {
	t.Helper()
	if opt.Timeout == 0 {
		opt.Timeout = soon
	}
	replies, err := Call(t.Context(), opt)
	var f *Failure
	if !errors.As(err, &f) {
		t.Fatalf("got %.100s, %v; want a failure", replies, err)
	}
	if f.Hint == "" {
		t.Errorf("%v: no hint", f)
	}
	return f
}

func TestStatuses(t *testing.T) {
	const html = "text/html; charset=utf-8"
	for _, c := range []struct {
		name          string
		status        int
		kind, body    string
		message, hint string
	}{
		{"bad request", 400, "application/json", `{"detail":"Missing 'method' in request body"}`, "400 Bad Request: Missing 'method' in request body", "vLLM"},
		{"no token", 401, "application/json", `{"error":"Unauthorized"}`, "401 Unauthorized: Unauthorized", "--bearer-file"},
		{"not allowed", 403, "text/plain", "nope\n", "403 Forbidden: nope", "--bearer-file"},
		{"no development mode", 404, "application/json", `{"detail":"Not Found"}`, "404 Not Found: Not Found", "VLLM_SERVER_DEV_MODE=1"},
		{"another server", 405, "application/json", `{"detail":"Method Not Allowed"}`, "405 Method Not Allowed: Method Not Allowed", "vLLM"},
		{"validation", 422, "application/json", `{"detail":[{"msg":"field required"}]}`, `422 Unprocessable Entity: [{"msg":"field required"}]`, "vLLM"},
		{"proxy", 407, "text/html", "<html>", "407 Proxy Authentication Required", "HTTP_PROXY"},
		{"a worker raised", 500, "application/json", `{"error":{"message":"AttributeError: no 'fpm_engine_probe'","type":"InternalServerError","code":500}}`, "500 Internal Server Error: AttributeError: no 'fpm_engine_probe'", "traceback"},
		{"older form", 500, "application/json", `{"object":"error","message":"boom"}`, "500 Internal Server Error: boom", "traceback"},
		{"plain", 500, "text/plain", "Internal Server Error", "500 Internal Server Error: Internal Server Error", "traceback"},
		{"silent", 500, "text/plain", "", "500 Internal Server Error", "traceback"},
		{"empty error", 500, "application/json", `{"error":null,"detail":""}`, `500 Internal Server Error: {"error":null,"detail":""}`, "traceback"},
		{"gateway", 502, html, "<html><h1>502</h1>", "502 Bad Gateway", "not ready"},
		{"starting", 503, "application/json", `{"detail":"Engine is starting"}`, "503 Service Unavailable: Engine is starting", "not ready"},
		{"gateway's time-out", 504, "", "", "504 Gateway Timeout", "not ready"},
		{"no content", 204, "", "", "204 No Content", "address"},
		{"no target", 302, "", "", "302 Found", "address"},
		{"control characters are the printer's", 500, "text/plain", "a\x1b[31mb", "500 Internal Server Error: a\x1b[31mb", "traceback"},
		{"invalid text", 500, "text/plain", "a\xffb", "500 Internal Server Error: a\uFFFDb", "traceback"},
		{"unknown", 599, "text/plain", "x", "599: x", "traceback"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure(t, Options{BaseURL: answering(t, text(c.status, c.kind, c.body))})
			if want := "HTTPError: " + c.message; f.Error() != want {
				t.Errorf("got  %s\nwant %s", f, want)
			}
			if !strings.Contains(f.Hint, c.hint) {
				t.Errorf("hint %q has no %q", f.Hint, c.hint)
			}
		})
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	f := failure(t, Options{BaseURL: answering(t, text(500, "text/plain", strings.Repeat("é", 1<<20)))})
	said := strings.TrimPrefix(f.Message, "500 Internal Server Error: ")
	if want := strings.Repeat("é", maxMessage/2) + "…"; said != want {
		t.Errorf("%d bytes: %.40q", len(said), said)
	}
}

func TestNotFoundNamesAnUnusualPath(t *testing.T) {
	f := failure(t, Options{BaseURL: answering(t, http.NotFound) + "/v1"})
	if !strings.Contains(f.Hint, "/v1/collective_rpc") {
		t.Errorf("hint %q", f.Hint)
	}
}

func TestContent(t *testing.T) {
	for _, c := range []struct{ name, kind, body, want string }{
		{"page", "text/html", "<!DOCTYPE html><p>hello", "the answer is a page for a browser, not JSON"},
		{"page without a type", "", "  <html>", "the answer is a page for a browser, not JSON"},
		{"text", "text/plain", "no such thing", "the answer is not JSON: no such thing"},
		{"long text", "text/plain", strings.Repeat("x", 1<<20), "the answer is not JSON: " + strings.Repeat("x", maxMessage-24) + "…"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure(t, Options{BaseURL: answering(t, text(200, c.kind, c.body))})
			if f.Kind != ContentError || f.Message != c.want {
				t.Errorf("got  %s\nwant %s", f, c.want)
			}
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		called := false
		other := answering(t, func(http.ResponseWriter, *http.Request) { called = true })
		target := strings.Replace(other, "http://", "http://user:pass@", 1) + "/login?state=secret#f"
		f := failure(t, Options{BaseURL: answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", target)
			w.WriteHeader(status)
		})})
		if want := fmt.Sprintf("RedirectError: %s to %s/login", statusText(status), other); f.Error() != want {
			t.Errorf("got  %s\nwant %s", f, want)
		}
		if called {
			t.Errorf("%d was followed", status)
		}
	}
}

func TestTooLarge(t *testing.T) {
	for _, compressed := range []bool{false, true} {
		f := failure(t, Options{Timeout: time.Minute, BaseURL: answering(t, func(w http.ResponseWriter, _ *http.Request) {
			var out io.Writer = w
			if compressed {
				w.Header().Set("Content-Encoding", "gzip")
				z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
				defer z.Close()
				out = z
			}
			piece := []byte(strings.Repeat("[", 1<<20))
			for range MaxReply>>20 + 2 {
				if _, err := out.Write(piece); err != nil {
					return // the client has had enough
				}
			}
		})})
		if f.Kind != LimitError {
			t.Errorf("compressed %v: %v", compressed, f)
		}
	}
}

// Compression that is damaged is not a connection that broke, unless it may be one.
func TestDamagedCompression(t *testing.T) {
	var whole strings.Builder
	z := gzip.NewWriter(&whole)
	io.WriteString(z, `["a reply", "and another one"]`)
	z.Close()
	half := whole.String()[:whole.Len()/2]
	wrong := strings.Replace(whole.String(), whole.String()[whole.Len()-8:], "12345678", 1)
	const head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n"
	for _, c := range []struct{ name, sent, want string }{
		{"not gzip", "Content-Length: 16\r\n\r\nthis is not gzip", "ContentError: the gzip compression of the answer is damaged"},
		{"another checksum", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(wrong), wrong), "ContentError: the gzip compression of the answer is damaged"},
		{"half of it", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(half), half), "ContentError: the gzip compression of the answer stops in the middle"},
		{"half of it in chunks", fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(half), half), "ContentError: the gzip compression of the answer stops in the middle"},
		{"its first bytes", "Content-Length: 2\r\n\r\n\x1f\x8b", "ContentError: the gzip compression of the answer stops in the middle"},
		{"cut off", fmt.Sprintf("Content-Length: %d\r\n\r\n%s", whole.Len(), half), "DisconnectError: the connection ended in the middle of the answer: "},
		{"cut off without a length", "\r\n" + half, "DisconnectError: the connection ended in the middle of the answer: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure(t, Options{BaseURL: raw(t, said(head+c.sent))})
			if !strings.HasPrefix(f.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", f, c.want)
			}
		})
	}
	f := failure(t, Options{BaseURL: raw(t, said(strings.Replace(head, "200 OK", "500 No", 1)+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", whole.Len(), whole.String())))})
	if want := `HTTPError: 500 Internal Server Error: ["a reply", "and another one"]`; f.Error() != want {
		t.Errorf("got  %v\nwant %s", f, want)
	}
}

func TestSlowness(t *testing.T) {
	const patience = 50 * time.Millisecond
	until := make(chan struct{})
	defer close(until)
	for _, c := range []struct {
		name, want string
		handler    http.HandlerFunc
	}{
		{"headers", "no answer within 50ms", func(http.ResponseWriter, *http.Request) { <-until }},
		{"body", "no whole answer within 50ms: 8 bytes came", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "[{\"a\": 1")
			w.(http.Flusher).Flush()
			<-until
		}},
		{"body of an error", "500 Internal Server Error: half", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(500)
			io.WriteString(w, "half")
			w.(http.Flusher).Flush()
			<-until
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.handler)
			t.Cleanup(s.CloseClientConnections)
			f := failure(t, Options{BaseURL: s.URL, Timeout: patience})
			kind := TimeoutError
			if strings.HasPrefix(c.want, "500") {
				kind = HTTPError
			}
			if f.Kind != kind || f.Message != c.want {
				t.Errorf("got %v, want %s", f, c.want)
			}
		})
	}
}

// raw returns the base URL of a server that does with a connection whatever it likes,
// once the request has come.
func raw(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					io.Copy(io.Discard, req.Body)
					serve(conn.(*net.TCPConn))
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// said closes the sending half after a text and waits for the client to go.
func said(text string) func(*net.TCPConn) {
	return func(c *net.TCPConn) {
		io.WriteString(c, text)
		c.CloseWrite()
		io.Copy(io.Discard, c)
	}
}

func TestBrokenConnections(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name  string
		serve func(*net.TCPConn)
		kind  string
	}{
		{"closed at once", func(*net.TCPConn) {}, DisconnectError},
		{"reset", func(c *net.TCPConn) { c.SetLinger(0) }, DisconnectError},
		{"half-closed without an answer", said(""), DisconnectError},
		{"half-closed in the header", said(head), DisconnectError},
		{"half-closed in a body with a length", said(head + "Content-Length: 100\r\n\r\n[1"), DisconnectError},
		{"half-closed in a chunk", said(head + "Transfer-Encoding: chunked\r\n\r\n100\r\n[1"), DisconnectError},
		{"half-closed before the last chunk", said(head + "Transfer-Encoding: chunked\r\n\r\n3\r\n[1]\r\n"), DisconnectError},
		{"half-closed in a body without a length", said("HTTP/1.0 200 OK\r\n\r\n{\"results\": [1"), DisconnectError},
		{"half-closed in a string", said("HTTP/1.0 200 OK\r\n\r\n\"abc"), DisconnectError},
		{"not HTTP", said("220 mail.test ESMTP\r\n"), ProtocolError},
		{"header without end", said(head + "X: " + strings.Repeat("x", 2*maxHeader)), ProtocolError},
		{"bad chunk", said(head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), ProtocolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			if f := failure(t, Options{BaseURL: raw(t, c.serve)}); f.Kind != c.kind || f.Message == "" {
				t.Errorf("got %v, want a %s", f, c.kind)
			}
		})
	}
	t.Run("half-closed after a body without a length", func(t *testing.T) {
		got, err := Call(t.Context(), Options{BaseURL: raw(t, said("HTTP/1.0 200 OK\r\n\r\n[1]")), Timeout: soon})
		if err != nil || string(got) != "[1]" {
			t.Errorf("got %s, %v", got, err)
		}
	})
}

func TestNoConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	l.Close()
	if f := failure(t, Options{BaseURL: "http://" + closed}); f.Error() != "ConnectError: connection refused" {
		t.Errorf("got %v", f)
	}
	// The name is one that RFC 6761 reserves: no resolver has it. One that answers nothing
	// in time is a time-out.
	f := failure(t, Options{BaseURL: "http://fpm.invalid"})
	if f.Kind != ResolveError && f.Kind != TimeoutError || f.Kind == ResolveError && !strings.Contains(f.Message, "fpm.invalid") {
		t.Errorf("got %v", f)
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(text(200, "application/json", "[1]"))
	s.Config.ErrorLog = nil
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(s.Certificate())

	if got, err := Call(t.Context(), Options{BaseURL: s.URL, RootCAs: trusted, Timeout: soon}); err != nil || string(got) != "[1]" {
		t.Errorf("trusted: got %s, %v", got, err)
	}
	for name, opt := range map[string]Options{
		"unknown authority": {BaseURL: s.URL, RootCAs: x509.NewCertPool()},
		"another name":      {BaseURL: strings.Replace(s.URL, "127.0.0.1", "localhost", 1), RootCAs: trusted},
		"no TLS there":      {BaseURL: strings.Replace(answering(t, text(200, "", "[1]")), "http://", "https://", 1)},
	} {
		if f := failure(t, opt); f.Kind != TLSError || f.Message == "" {
			t.Errorf("%s: got %v", name, f)
		}
	}
}

func TestProxy(t *testing.T) {
	through := ""
	proxy := answering(t, func(w http.ResponseWriter, r *http.Request) {
		through = r.URL.String()
		io.WriteString(w, "[1]")
	})
	use := func(address string) func(*http.Request) (*url.URL, error) {
		return func(*http.Request) (*url.URL, error) { return url.Parse(address) }
	}
	if _, err := Call(t.Context(), Options{BaseURL: "http://llm.invalid:8000", Proxy: use(proxy), Timeout: soon}); err != nil {
		t.Fatal(err)
	}
	if through != "http://llm.invalid:8000/collective_rpc" {
		t.Errorf("the proxy was asked for %q", through)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for name, p := range map[string]func(*http.Request) (*url.URL, error){
		"down":  use("http://user:hunter2hunter2@" + l.Addr().String()),
		"wrong": func(*http.Request) (*url.URL, error) { return nil, errors.New(`invalid "http://user:hunter2hunter2@"`) },
	} {
		f := failure(t, Options{BaseURL: "http://llm.invalid", Proxy: p})
		want := map[string]string{"down": "ProxyError: the proxy cannot be reached: connection refused", "wrong": "ProxyError: the proxy setting is not a URL"}[name]
		if f.Error() != want {
			t.Errorf("%s: got %v", name, f)
		}
	}
}

func TestOptions(t *testing.T) {
	const base = "http://127.0.0.1:1"
	for _, c := range []struct {
		name string
		opt  Options
		want string
	}{
		{"no URL", Options{}, "url: the URL does not begin with http:// or https://"},
		{"no scheme", Options{BaseURL: "localhost:8000"}, "url: the URL does not begin with http:// or https://"},
		{"another scheme", Options{BaseURL: "ftp://x"}, "url: the URL does not begin with http:// or https://"},
		{"no host", Options{BaseURL: "http://:80"}, "url: the URL names no host"},
		{"not a URL", Options{BaseURL: "http://user:s3cr3t@[::1"}, "url: the URL cannot be understood"},
		{"credentials", Options{BaseURL: "http://user:s3cr3t@x"}, "url: the URL has credentials in it"},
		{"query", Options{BaseURL: "http://x/?key=s3cr3t"}, "url: the URL has a query or a fragment; only a base is wanted"},
		{"no colon", Options{BaseURL: base, Headers: []string{"s3cr3t"}}, "header: header 1 does not begin with a name and a colon"},
		{"no name", Options{BaseURL: base, Headers: []string{"A: b", ": s3cr3t"}}, "header: header 2 does not begin with a name and a colon"},
		{"two words", Options{BaseURL: base, Headers: []string{"s3cr3t x: y"}}, "header: header 1 does not begin with a name and a colon"},
		{"injection", Options{BaseURL: base, Headers: []string{"X: s3cr3t\r\nY: z"}}, "header: the value of the header X has control characters"},
		{"the body's", Options{BaseURL: base, Headers: []string{"content-length: 7"}}, "header: the header Content-Length is not for you to set"},
		{"empty token", Options{BaseURL: base, BearerFile: write(t, "\n")}, "bearer-file: the file of the token is empty"},
		{"two tokens", Options{BaseURL: base, BearerFile: write(t, "s3cr3t s3cr3t")}, "bearer-file: the file does not hold a token: one word of visible ASCII characters"},
		{"long token", Options{BaseURL: base, BearerFile: write(t, strings.Repeat("x", maxToken+1))}, "bearer-file: the file does not hold a token: one word of visible ASCII characters"},
		{"two Authorization headers", Options{BaseURL: base, BearerFile: write(t, "s3cr3t"), Headers: []string{"authorization: Basic s3cr3t"}}, "bearer-file: there is an Authorization header, too: a request has one only"},
		{"no time", Options{BaseURL: base, Timeout: -1}, "timeout: the time-out must be more than 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.opt.Timeout == 0 {
				c.opt.Timeout = soon
			}
			_, err := Call(t.Context(), c.opt)
			var e *OptionError
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if got := e.Option + ": " + e.Error(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if strings.Contains(e.Message+e.Hint, "s3cr3t") {
				t.Errorf("%+v tells the secret", e)
			}
		})
	}
	_, err := Call(t.Context(), Options{BaseURL: base, Timeout: soon, BearerFile: filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

// What the server says of the caller's secrets is not repeated.
func TestSecretsStaySecret(t *testing.T) {
	const token, key, cookie = "s3cr3t-t0ken", "k3y-0123456789", "abcdefghij"
	headers := []string{"X-Api-Key: " + key, "Cookie: session=" + cookie, "X-Short: no"}
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			said, _ := json.Marshal(r.Header)
			w.Header().Set("Location", "/"+token)
			w.WriteHeader(status)
			fmt.Fprintf(w, "no: %s", said)
		}
	}
	for _, status := range []int{200, 307, 401, 500} {
		f := failure(t, Options{BaseURL: answering(t, echo(status)), Headers: headers, BearerFile: write(t, token)})
		for _, secret := range []string{token, key, cookie} {
			if strings.Contains(f.Error()+f.Hint+fmt.Sprint(f.Err), secret) {
				t.Errorf("%d: %v tells %q", status, f, secret)
			}
		}
		if !strings.Contains(f.Message, "[redacted]") {
			t.Errorf("%d: %v says nothing of it", status, f)
		}
		if status == 500 && !strings.Contains(f.Message, `"X-Short":["no"]`) {
			t.Errorf("%v lacks what is no secret", f)
		}
	}
}

// They do not come back in another form either, nor in part, nor when they are short.
func TestSecretsInOtherForms(t *testing.T) {
	const token = "tok/en-t0p=s3cr3t+x"
	bearer := write(t, token)
	short := []string{"X-Api-Key: k3y", "Cookie: sid=\"a1;b2\"; theme=9", "X-Team: perf"}
	for _, c := range []struct {
		name    string
		status  int
		body    string
		headers []string
		want    string // of the message
	}{
		{"long text before it", 200, strings.Repeat("x", maxMessage-40) + token, nil, "x[redacted]"},
		{"broken off", 401, "denied: " + token[:9], nil, "denied: [redacted]"},
		{"broken off behind many", 200, "x " + strings.Repeat(token, maxSaid/len(token)+1), nil, "x [redacted]"},
		{"JSON's slash", 401, `denied: tok\/en-t0p=s3cr3t+x`, nil, withheld},
		{"JSON's code points", 200, `denied: \u0074ok\u002fen-t0p=s3cr3t+x`, nil, withheld},
		{"JSON in JSON", 401, `{"detail": "{\"seen\": \"tok\\/en-t0p=s3cr3t+x\"}"}`, nil, withheld},
		{"Python's", 401, `b'tok\x2fen-t0p=s3cr3t+x'`, nil, withheld},
		{"percent", 401, "denied: tok%2Fen-t0p%3Ds3cr3t%2bx", nil, withheld},
		{"percent twice", 401, "denied: tok%252Fen-t0p%253Ds3cr3t%252bx", nil, withheld},
		{"percent, broken off", 401, "denied: tok%2Fen-t0p", nil, withheld},
		{"HTML", 401, "denied: tok&#x2f;en-t0p=s3cr3t+x", nil, withheld},
		{"short key", 401, "no key k3y here", short, "no key [redacted] here"},
		{"short cookies", 401, `no a1 and b2, no 9 and 19`, short, "no [redacted] and [redacted], no [redacted] and 19"},
		{"four letters", 401, "hello perf", short, "hello [redacted]"},
		{"nothing of it", 401, `a 100% \ text &amp; %zz \u12`, nil, `a 100% \ text &amp; %zz \u12`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := failure(t, Options{BaseURL: answering(t, text(c.status, "text/plain", c.body)), Headers: c.headers, BearerFile: bearer})
			if !strings.Contains(f.Message, c.want) {
				t.Errorf("%s\nlacks %s", f.Message, c.want)
			}
			if strings.Contains(f.Message, "t0p") {
				t.Errorf("%s tells the token", f.Message)
			}
		})
	}
}

// A long answer is cut where the message ends, not in a token before it is looked for.
func TestSecretsAreCutOutFirst(t *testing.T) {
	token := strings.Repeat("t0p-s3cr3t.", 30)
	for _, status := range []int{200, 401} {
		f := failure(t, Options{BaseURL: answering(t, text(status, "text/plain", "x "+strings.Repeat(token, 1000))), BearerFile: write(t, token)})
		if strings.Contains(f.Message, "t0p") || !strings.Contains(f.Message, "x [redacted]") {
			t.Errorf("%d: %v", status, f)
		}
	}
}

// An answer is evidence, whatever is in it.
func TestAnAnswerIsNotRedacted(t *testing.T) {
	const reply = `[{"seen": "s3cr3t-t0ken"}]`
	got, err := Call(t.Context(), Options{BaseURL: answering(t, text(200, "application/json", reply)), BearerFile: write(t, "s3cr3t-t0ken"), Timeout: soon})
	if err != nil || string(got) != reply {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestHeaderSecrets(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"Authorization", "Bearer abc", []string{"Bearer abc", "abc"}},
		{"Authorization", "Basic dTpw==", []string{"Basic dTpw==", "dTpw=="}},
		{"Cookie", "a=bc; d=ef", []string{"a=bc; d=ef", "bc", "ef"}},
		{"X-Api-Key", "k", []string{"k"}},
		{"X-Team", "lab", nil},
		{"X-Team", "the lab", []string{"the lab"}},
		{"X-Team", "perf", []string{"perf"}},
	} {
		var s secrets
		s.addHeader(c.name, c.value)
		if diff := cmp.Diff(c.want, []string(s)); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", c.name, c.value, diff)
		}
	}
}

// Nobody should have to know Go to read a recorded message.
func TestPlainWords(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for _, c := range []struct{ sent, want string }{
		{head + "X: " + strings.Repeat("x", 2*maxHeader), "ProtocolError: the header of the answer is too long"},
		{head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n[]", "ProtocolError: the answer has several lengths that differ"},
		{head + "Content-Length: x\r\n\r\n[]", "ProtocolError: the length of the answer is not a number"},
		{head + "no colon\r\n\r\n[]", "ProtocolError: the header of the answer is damaged"},
		{"220 mail: ready\r\n", `ProtocolError: what came is not HTTP: status "mail:"`},
		{"hello\r\n", `ProtocolError: what came is not HTTP: "hello"`},
		{"HTTP/1.1 2x0 OK\r\n\r\n", `ProtocolError: what came is not HTTP: status "2x0"`},
		{head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "ProtocolError: the chunks of the answer are damaged"},
		{head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "ProtocolError: the chunks of the answer are damaged"},
		{head + "Transfer-Encoding: rot13\r\n\r\n[]", "ProtocolError: the transfer encoding of the answer is not known"},
	} {
		if f := failure(t, Options{BaseURL: raw(t, said(c.sent))}); f.Error() != c.want {
			t.Errorf("got  %v\nwant %s", f, c.want)
		}
	}
	for text, want := range map[string]string{
		"proxyconnect tcp: dial tcp 127.0.0.1:9: connect: connection refused":                            "connection refused",
		"dial tcp [::1]:80: connect: no route to host":                                                   "no route to host",
		"dial tcp: lookup x.test on 10.0.0.1:53: no such host":                                           "no such host",
		"read tcp 127.0.0.1:1->127.0.0.1:2: read: connection timed out":                                  "connection timed out",
		"tls: failed to verify certificate: x509: certificate signed by unknown authority":               "certificate signed by unknown authority",
		"remote error: tls: handshake failure":                                                           "handshake failure",
		"tls: first record does not look like a TLS handshake":                                           "the server speaks no TLS",
		"http: server gave HTTP response to HTTPS client":                                                "the server speaks HTTP without TLS",
		`a text of its own: http: "x"`:                                                                   `a text of its own: http: "x"`,
		"net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 1 b": "the header of the answer is too long",
	} {
		if got := plain(errors.New(text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// The caller's own end of it is no outcome of the probe.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	if _, err := Call(ctx, Options{BaseURL: s.URL, Timeout: soon}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAFailureIsNamedWithoutAMessage(t *testing.T) {
	if got := (&Failure{Kind: TimeoutError}).Error(); got != "TimeoutError: " {
		t.Errorf("got %q", got)
	}
}

// Whatever JSON there is passes, and none of its beginnings does that is cut in a
// container or a string.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{`{"a": ["]", "\"{"]}`, `[]`, `"\\"`, `null`, `-1`, `[NaN]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		text = []byte(strings.Trim(string(text), " \t\r\n"))
		if !json.Valid(text) {
			shape(text)
			return
		}
		if got := shape(text); got != jsonText {
			t.Errorf("%q is taken for %d", text, got)
		}
		if strings.ContainsAny(string(text[:1]), `[{"`) {
			for end := 1; end < min(len(text), 100); end++ {
				if got := shape(text[:end]); got != cut {
					t.Errorf("%q is taken for %d", text[:end], got)
				}
			}
		}
	})
}

// write puts a text into a file of its own and returns the path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
