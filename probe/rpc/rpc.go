// Package rpc asks the workers of a live vLLM server what they resolved.
//
// A vLLM server in development mode answers POST /collective_rpc: it calls one method in
// every worker and returns what they said, without telling which worker said what. One
// [Call] is one such request. What comes of it is one of three:
//
//   - the answer's JSON text, as the server sent it. Whether each reply is sound is for
//     the caller to judge; an empty answer is one reply, which is null.
//   - a [*Failure]: the server was asked, or would have been, and there is no answer. That
//     is an outcome of the probe, to be recorded as "kind: message".
//   - any other error: the question could not be put. An [*OptionError] is wrong usage, a
//     file that cannot be read is the system's error, and a context that was cancelled by
//     the caller is its own error.
//
// # What is sent where
//
// Nothing is followed and nothing is tried again. A redirect is a failure that names the
// target, whatever the host: it would carry credentials to a place that nobody named, or
// turn the call into a GET. Certificates are verified. The environment is not read: a
// proxy is used when [Options] brings the function that finds one.
//
// What the caller gave as a secret does not come back in a failure. The token and the
// header values are cut out of every message, also out of what the server says of them. An
// answer is another matter: replies are evidence, and are returned as they came, whatever
// the server put into them.
package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Method is what is called in every worker.
const Method = "fpm_engine_probe"

// MaxReply is the largest answer that is taken, in bytes after decompression.
const MaxReply = 64 << 20

const maxHeader = 1 << 20 // bytes of the answer's header

// Options say whom to ask and how.
type Options struct {
	BaseURL    string        // of the server: http://host:port, with a path when it is behind one
	Headers    []string      // sent along, each "Name: value"
	BearerFile string        // file with a bearer token; "" sends none
	Timeout    time.Duration // for the whole call, the answer included; also told to the server

	Proxy   func(*http.Request) (*url.URL, error) // finds the proxy of a request; nil uses none
	RootCAs *x509.CertPool                        // whom to trust; nil is the system's own set
}

// Call puts the question and returns the answer's text: an array of replies, an object
// around one, or whatever else the server had to say in JSON.
func Call(ctx context.Context, opt Options) (replies []byte, err error) {
	c, err := newCall(opt)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opt.Timeout, errTimeout)
	defer cancel()
	replies, err = c.do(ctx)
	if err != nil && ctx.Err() != nil && context.Cause(ctx) != errTimeout {
		return nil, context.Cause(ctx) // the caller's own end of it
	}
	return replies, err
}

var errTimeout = errors.New("timed out")

// call is a question that can be put.
type call struct {
	opt    Options
	url    *url.URL
	header http.Header
	host   string // the Host header, when it was given
	secret secrets
}

func newCall(opt Options) (*call, error) {
	c := &call{opt: opt, header: http.Header{}}
	if opt.Timeout <= 0 {
		return nil, &OptionError{Option: "timeout", Message: "the time-out must be more than 0"}
	}
	var err error
	if c.url, err = endpoint(opt.BaseURL); err != nil {
		return nil, err
	}
	for i, line := range opt.Headers {
		if err := c.addHeader(i, line); err != nil {
			return nil, err
		}
	}
	if err := c.addBearer(opt.BearerFile); err != nil {
		return nil, err
	}
	c.header.Set("Content-Type", "application/json")
	c.header.Set("Accept", "application/json")
	c.header.Set("Accept-Encoding", "gzip") // see content
	return c, nil
}

// question is the body of the request.
type question struct {
	Method  string            `json:"method"`
	Args    []string          `json:"args"`
	Kwargs  map[string]string `json:"kwargs"`
	Timeout float64           `json:"timeout"` // seconds
}

func (c *call) request(ctx context.Context) (*http.Request, error) {
	body, err := json.Marshal(question{Method, []string{}, map[string]string{}, c.opt.Timeout.Seconds()})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header
	req.Host = c.host
	return req, nil
}

func (c *call) do(ctx context.Context) ([]byte, error) {
	req, err := c.request(ctx)
	if err != nil {
		return nil, err
	}
	transport := c.transport()
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req) // not a Client: it would follow redirects
	if err != nil {
		return nil, c.connectFailure(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, c.statusFailure(resp)
	}
	return c.answer(ctx, resp)
}

func (c *call) transport() *http.Transport {
	return &http.Transport{
		Proxy:                  c.proxy(),
		DialContext:            (&net.Dialer{}).DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: c.opt.RootCAs, MinVersion: tls.VersionTLS12},
		DisableKeepAlives:      true, // one call
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

var errProxySetting = errors.New("the proxy setting is not a URL")

// proxy wraps the function that finds the proxy: its errors quote the setting, which may
// hold a password.
func (c *call) proxy() func(*http.Request) (*url.URL, error) {
	if c.opt.Proxy == nil {
		return nil
	}
	return func(req *http.Request) (*url.URL, error) {
		u, err := c.opt.Proxy(req)
		if err != nil {
			return nil, errProxySetting
		}
		if u != nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				c.secret.add(password)
			}
		}
		return u, nil
	}
}

// answer reads the body of a success.
func (c *call) answer(ctx context.Context, resp *http.Response) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(content(resp), MaxReply+1))
	switch {
	case len(text) > MaxReply:
		return nil, &Failure{Kind: LimitError, Message: "the answer is larger than 64 MiB", Hint: "ask the server directly and look what it sends"}
	case err != nil:
		return nil, c.readFailure(ctx, resp, err, int64(len(text)))
	}
	text = bytes.Trim(text, " \t\r\n")
	switch shape(text) {
	case empty:
		return []byte("[null]"), nil
	case cut:
		return nil, &Failure{Kind: DisconnectError, Message: "the answer stops in the middle", Hint: hintServerLog}
	case otherText:
		return nil, c.contentFailure(resp, text)
	}
	return text, nil
}
