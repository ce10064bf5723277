package rpc

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// plain returns what an error says, in words for people: without the request around it,
// and without the chain of packages and calls that it came through.
func plain(err error) string {
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	text := withoutChain(err.Error())
	for _, usual := range usualErrors() {
		if rest, ok := strings.CutPrefix(text, usual.begins); ok {
			if usual.keep {
				return usual.plain + rest
			}
			return usual.plain
		}
	}
	return text
}

// withoutChain cuts off what an error's text begins with before it comes to the point.
func withoutChain(text string) string {
	link := regexp.MustCompile(`^(?:net/http|http2?|tls|x509|net|connect|read|write|remote error|failed to verify certificate|` +
		`HTTP/[0-9.x]+ transport connection broken|lookup \S+(?: on \S+)?|` +
		`(?:proxyconnect|dial|read|write) (?:tcp|udp|unix)[46]?(?: \S+)?): `)
	for {
		prefix := link.FindString(text)
		if prefix == "" {
			return text
		}
		text = text[len(prefix):]
	}
}

// usual is an error that is met often enough to have words of its own.
type usual struct {
	begins string // as the library says it
	plain  string
	keep   bool // what comes behind the beginning
}

func usualErrors() []usual {
	return []usual{
		{"server response headers exceeded", "the header of the answer is too long", false},
		{"message cannot contain multiple Content-Length headers", "the answer has several lengths that differ", false},
		{"invalid Content-Length", "the length of the answer is not a number", false},
		{"bad Content-Length", "the length of the answer is not a number", false},
		{"malformed HTTP response", "what came is not HTTP:", true},
		{"malformed HTTP version", "what came is not HTTP: version", true},
		{"malformed HTTP status code", "what came is not HTTP: status", true},
		{"malformed MIME header", "the header of the answer is damaged", false},
		{"malformed chunked encoding", "the chunks of the answer are damaged", false},
		{"invalid byte in chunk length", "the chunks of the answer are damaged", false},
		{"http chunk length too large", "the chunks of the answer are damaged", false},
		{"unsupported transfer encoding", "the transfer encoding of the answer is not known", false},
		{"too many transfer encodings", "the answer has several transfer encodings", false},
		{"server gave HTTP response to HTTPS client", "the server speaks HTTP without TLS", false},
		{"first record does not look like a TLS handshake", "the server speaks no TLS", false},
	}
}
