package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// The kinds of failure.
const (
	TimeoutError    = "TimeoutError"    // no whole answer in time
	ResolveError    = "ResolveError"    // the host's name leads nowhere
	ConnectError    = "ConnectError"    // no connection: refused, unreachable
	ProxyError      = "ProxyError"      // no connection through the proxy
	TLSError        = "TLSError"        // the server is not who it says, or speaks no TLS
	DisconnectError = "DisconnectError" // the connection ended before the answer did
	ProtocolError   = "ProtocolError"   // what came is not HTTP
	RedirectError   = "RedirectError"   // the server names another place, which is not followed
	HTTPError       = "HTTPError"       // any status other than 200
	ContentError    = "ContentError"    // the answer is not JSON
	LimitError      = "LimitError"      // the answer is larger than MaxReply
)

// Failure is a call without an answer. Message may quote the server: it is short, and
// holds none of the caller's secrets, but control characters are in it as they came.
type Failure struct {
	Kind    string // one of the kinds above
	Message string
	Hint    string // what to do
	Err     error  // the cause; may be nil
}

// Error returns "kind: message", which is what is recorded: the kind stands there even
// when there is no message.
func (f *Failure) Error() string { return f.Kind + ": " + f.Message }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

const (
	hintReach     = "check the address, and that the server is up and reachable from here"
	hintServerLog = "the server's log has the reason"
	hintContent   = "check that the address is that of a vLLM server, and not of something in front of it"
	hintWorkers   = "the server's log has the worker's traceback; the workers need the extension that has " + Method
)

// connectFailure says why there is no answer at all.
func (c *call) connectFailure(ctx context.Context, err error) error {
	f := &Failure{Err: err, Hint: hintReach}
	var (
		dns *net.DNSError
		op  *net.OpError
	)
	switch {
	case timedOut(ctx, err):
		f.Kind, f.Message = TimeoutError, fmt.Sprintf("no answer within %s", c.opt.Timeout)
		f.Hint = "give it more time with --timeout, or look whether the workers hang"
	case errors.Is(err, errProxySetting):
		f.Kind, f.Message = ProxyError, errProxySetting.Error()
		f.Hint = "set HTTP_PROXY, HTTPS_PROXY and NO_PROXY right, or unset them"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		f.Kind, f.Message = ProxyError, c.shortAfter("the proxy cannot be reached: ", plain(op.Err))
		f.Hint = "check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
	case errors.As(err, &dns):
		f.Kind, f.Message = ResolveError, c.shortAfter("no address for "+dns.Name+": ", dns.Err)
	case isTLS(err):
		f.Kind, f.Message = TLSError, c.short(plain(err))
		f.Hint = "an unencrypted server has an http:// address; another authority's certificate has to be trusted by this system (SSL_CERT_FILE)"
	case errors.As(err, &op) && op.Op == "dial":
		f.Kind, f.Message = ConnectError, c.short(plain(err))
	case disconnected(err):
		f.Kind, f.Message, f.Hint = DisconnectError, "the server closed the connection without an answer", hintServerLog
	default:
		f.Kind, f.Message = ProtocolError, c.short(plain(err))
	}
	return f
}

// readFailure says why an answer is not whole; so many bytes of it came.
func (c *call) readFailure(ctx context.Context, resp *http.Response, err error, came int64) error {
	f := &Failure{Err: err, Hint: hintServerLog}
	var damage *damageError
	switch {
	case timedOut(ctx, err):
		f.Kind, f.Message = TimeoutError, fmt.Sprintf("no whole answer within %s: %d bytes came", c.opt.Timeout, came)
		f.Hint = "give it more time with --timeout"
	case errors.As(err, &damage) && !(damage.cut && endsByClosing(resp)):
		f.Kind, f.Message, f.Hint = ContentError, damage.Error(), hintContent
	case disconnected(err):
		f.Kind, f.Message = DisconnectError, fmt.Sprintf("the connection ended in the middle of the answer: %d bytes came", came)
	default:
		f.Kind, f.Message = ProtocolError, c.short(plain(err))
	}
	return f
}

func timedOut(ctx context.Context, err error) bool {
	return context.Cause(ctx) == errTimeout || errors.Is(err, os.ErrDeadlineExceeded)
}

func disconnected(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTLS(err error) bool {
	var (
		record  tls.RecordHeaderError
		alert   tls.AlertError
		verify  *tls.CertificateVerificationError
		host    x509.HostnameError
		unknown x509.UnknownAuthorityError
	)
	return errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &verify) ||
		errors.As(err, &host) || errors.As(err, &unknown) ||
		strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") // a bare text of net/http
}

const (
	maxMessage = 500      // bytes that are kept of a message
	maxSaid    = 64 << 10 // bytes of an answer that are looked at for one; nobody says why beyond them
)

// short makes a message of a text that came from elsewhere.
func (c *call) short(text string) string { return c.shortAfter("", text) }

// shortAfter makes a message of own words and of a text that came from elsewhere. The
// secrets are cut out first: of one that was cut off too early nobody would know.
func (c *call) shortAfter(words, text string) string {
	text = words + c.secret.redact(strings.ToValidUTF8(text, "\uFFFD"))
	text = strings.TrimSpace(text)
	if len(text) <= maxMessage {
		return text
	}
	end := maxMessage
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// statusFailure makes a failure of an answer that is not a success.
func (c *call) statusFailure(resp *http.Response) error {
	if location := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && location != "" {
		return c.redirectFailure(resp.StatusCode, location)
	}
	f := &Failure{Kind: HTTPError, Message: c.short(statusText(resp.StatusCode)), Hint: statusHint(resp.StatusCode)}
	// What was sent before the connection broke is worth telling, and the status alone is, too.
	body, err := io.ReadAll(io.LimitReader(content(resp), maxSaid))
	f.Err = err
	if said := c.short(serverMessage(resp, body)); said != "" {
		f.Message += ": " + said
	}
	if resp.StatusCode == http.StatusNotFound && c.url.Path != "/collective_rpc" {
		f.Hint += "; the path that was asked for is " + c.short(c.url.Path)
	}
	return f
}

func (c *call) redirectFailure(status int, location string) error {
	target := "another place"
	if u, err := url.Parse(location); err == nil {
		u.User = nil
		u.RawQuery, u.Fragment = "", "" // log-in pages are handed state there
		target = u.String()
	}
	return &Failure{
		Kind: RedirectError, Message: c.shortAfter(statusText(status)+" to ", target),
		Hint: "redirects are not followed, so that credentials go only where you said: give the server's own address",
	}
}

// statusText returns a status as it is usually written. The server's own reason phrase is
// free text, and says no more.
func statusText(status int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", status, http.StatusText(status)))
}

func statusHint(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return "name a file with a valid token (--bearer-file), or give the header the server wants (--header)"
	case status == http.StatusNotFound:
		return "start the server in development mode (VLLM_SERVER_DEV_MODE=1): only then it has /collective_rpc"
	case status == http.StatusProxyAuthRequired:
		return "the proxy wants credentials: check HTTP_PROXY and HTTPS_PROXY"
	case status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout:
		return "the server behind this address is not ready: wait until it is up"
	case status/100 == 5:
		return hintWorkers
	case status/100 == 4:
		return "the server does not take this request: check that it is a vLLM server, and its version"
	default:
		return "check that the address is that of a vLLM server"
	}
}

// serverMessage returns what an answer says for itself: the message in the JSON object,
// in the forms that servers use, else a text that is no page.
func serverMessage(resp *http.Response, body []byte) string {
	var object struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &object) == nil {
		for _, part := range []json.RawMessage{object.Error, object.Detail} {
			if text := messageIn(part); text != "" {
				return text
			}
		}
		if object.Message != "" {
			return object.Message
		}
	}
	if isPage(resp, body) {
		return ""
	}
	return string(body)
}

// messageIn returns a string, or the message of an object, or any other value's text.
func messageIn(raw json.RawMessage) string {
	var text string
	var object struct {
		Message string `json:"message"`
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	case json.Unmarshal(raw, &object) == nil && object.Message != "":
		return object.Message
	}
	return string(raw)
}

// isPage tells whether an answer is for a browser.
func isPage(resp *http.Response, body []byte) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (kind == "text/html" || kind == "application/xhtml+xml") || strings.HasPrefix(strings.TrimSpace(string(body)), "<")
}

func (c *call) contentFailure(resp *http.Response, text []byte) error {
	f := &Failure{Kind: ContentError, Hint: hintContent}
	if isPage(resp, text) {
		f.Message = "the answer is a page for a browser, not JSON"
	} else {
		f.Message = c.shortAfter("the answer is not JSON: ", string(text[:min(len(text), maxSaid)]))
	}
	return f
}
