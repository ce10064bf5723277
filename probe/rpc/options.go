package rpc

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// OptionError says that a question cannot be put because of how it was asked for. It
// never quotes a header's value or a token.
type OptionError struct {
	Option  string // "url", "header", "bearer-file" or "timeout"
	Message string
	Hint    string // what to do; may be empty
}

func (e *OptionError) Error() string { return e.Message }

// endpoint returns the URL to call on a server.
func endpoint(base string) (*url.URL, error) {
	fail := func(message string) (*url.URL, error) {
		return nil, &OptionError{Option: "url", Message: message, Hint: "give the server's address, such as http://127.0.0.1:8000"}
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return fail("the URL cannot be understood") // the parser's words quote it, passwords and all
	case u.Scheme != "http" && u.Scheme != "https":
		return fail("the URL does not begin with http:// or https://")
	case u.Hostname() == "":
		return fail("the URL names no host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fail("the URL has a query or a fragment; only a base is wanted")
	case u.User != nil:
		return nil, &OptionError{Option: "url", Message: "the URL has credentials in it", Hint: "put a token into a file and name that with --bearer-file, or use --header"}
	}
	return u.JoinPath("collective_rpc"), nil
}

// addHeader adds a line "Name: value". Those that belong to the body or the connection
// are refused: another value would make the request a different one.
func (c *call) addHeader(i int, line string) error {
	fail := func(format string, args ...any) error {
		return &OptionError{Option: "header", Message: fmt.Sprintf(format, args...), Hint: `headers have the form "Name: value"`}
	}
	name, value, ok := strings.Cut(line, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !ok || !isHeaderName(name) {
		return fail("header %d does not begin with a name and a colon", i+1)
	}
	name = http.CanonicalHeaderKey(name)
	switch name {
	case "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Trailer", "Te", "Upgrade", "Expect", "Accept", "Accept-Encoding":
		return fail("the header %s is not for you to set", name)
	}
	if strings.ContainsFunc(value, isControl) {
		return fail("the value of the header %s has control characters", name)
	}
	c.secret.addHeader(name, value)
	if name == "Host" {
		c.host = value
		return nil
	}
	c.header.Add(name, value)
	return nil
}

// isHeaderName tells whether a text is a token as RFC 9110 has it.
func isHeaderName(s string) bool {
	return s != "" && isToken(s) && !strings.ContainsAny(s, `"(),/:;<=>?@[\]{}`)
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

const maxToken = 64 << 10 // bytes of a token's file

// addBearer adds the token in a file, without the white space around it.
func (c *call) addBearer(path string) error {
	if path == "" {
		return nil
	}
	fail := func(message string) error { return &OptionError{Option: "bearer-file", Message: message} }
	if c.header.Get("Authorization") != "" {
		return fail("there is an Authorization header, too: a request has one only")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return err
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return fail("the file of the token is empty")
	case len(text) > maxToken || !isToken(token):
		return fail("the file does not hold a token: one word of visible ASCII characters")
	}
	c.secret.add(token)
	c.header.Set("Authorization", "Bearer "+token)
	return nil
}

func isToken(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
