package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/subscribe"
)

func TestSameHost(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"localhost", "127.0.0.1", true}, {"[::1]", "127.0.0.1", true}, {"::1", "localhost", true}, {"Node-1", "node-1", true},
		{"2001:db8::1", "[2001:db8:0::1]", true}, {"10.0.0.1", "10.0.0.1", true},
		{"10.0.0.1", "10.0.0.2", false}, {"node-1", "node-2", false}, {"node-1", "localhost", false}, {"10.0.0.1", "127.0.0.1", false},
	} {
		if got := sameHost(c.a, c.b); got != c.want || sameHost(c.b, c.a) != c.want {
			t.Errorf("sameHost(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

// Explicit endpoints on this host are warned of once, those on others not.
func TestWarnOfEphemeral(t *testing.T) {
	list := func(addresses ...string) (endpoints []subscribe.Endpoint) {
		for _, address := range addresses {
			endpoints = append(endpoints, subscribe.Endpoint{Address: address})
		}
		return endpoints
	}
	for _, c := range []struct {
		endpoints []subscribe.Endpoint
		want      string
	}{
		{list("tcp://127.0.0.1:20380", "tcp://node-1:40000", "ipc:///tmp/40000"), ""},
		{list("tcp://127.0.0.1:40000", "tcp://[::1]:32768", "tcp://10.0.0.1:40000"), "tcp://127.0.0.1:40000, tcp://[::1]:32768: in this host's ephemeral port range 32768-60999;"},
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr}
		a.warnOfEphemeral(c.endpoints, trace.Ports{First: 32768, Last: 60999})
		if got := stderr.String(); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: %s", c.endpoints, got)
		}
	}
}
