package subscribe_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/trace/subscribe"
)

var defaults = subscribe.Endpoint{Namespace: "dynamo", Component: "backend"}

func TestParseEndpoint(t *testing.T) {
	with := func(address, namespace, component, producer string) subscribe.Endpoint {
		return subscribe.Endpoint{Address: address, Namespace: namespace, Component: component, Producer: producer}
	}
	for text, want := range map[string]subscribe.Endpoint{
		"tcp://127.0.0.1:20380":                               with("tcp://127.0.0.1:20380", "dynamo", "backend", ""),
		"tcp://worker-0.svc:1":                                with("tcp://worker-0.svc:1", "dynamo", "backend", ""),
		"tcp://h:65535,namespace=a":                           with("tcp://h:65535", "a", "backend", ""),
		"tcp://h:1,component=prefill":                         with("tcp://h:1", "dynamo", "prefill", ""),
		"ipc:///tmp/s.0,producer=p=q,component=c,namespace=n": with("ipc:///tmp/s.0", "n", "c", "p=q"),
		"tcp://[::1]:20380":                                   with("tcp://[::1]:20380", "dynamo", "backend", ""),
		"tcp://::1:20380":                                     with("tcp://[::1]:20380", "dynamo", "backend", ""),
		"tcp://fe80::1%eth0:20380":                            with("tcp://[fe80::1%eth0]:20380", "dynamo", "backend", ""),
		"ipc://@name":                                         with("ipc://@name", "dynamo", "backend", ""),
		"ipc://relative/s":                                    with("ipc://relative/s", "dynamo", "backend", ""),
	} {
		got, err := subscribe.ParseEndpoint(text, defaults)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", text, err, diff)
		}
		// What comes back is read back.
		if again, err := subscribe.ParseEndpoint(got.Address, got); err != nil || again != got {
			t.Errorf("%s: read back as %+v, %v", text, again, err)
		}
	}
}

func TestParseEndpointErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "scheme is missing",
		"127.0.0.1:20380":                 "scheme is missing",
		"http://h:1":                      `"http" is not supported`,
		"TCP://h:1":                       `"TCP" is not supported`,
		"tcp://":                          "port is missing",
		"tcp://h":                         "port is missing",
		"tcp://h:":                        `port ""`,
		"tcp://h:0":                       `port "0"`,
		"tcp://h:65536":                   `port "65536"`,
		"tcp://h:-1":                      `port "-1"`,
		"tcp://h:+1":                      `port "+1"`,
		"tcp://h:http":                    `port "http"`,
		"tcp://h:*":                       `port "*"`,
		"tcp://:1":                        "host is missing",
		"tcp://*:20380":                   "say which host",
		"tcp://[::1:1":                    "bracket",
		"tcp://a:b:1":                     "not an IPv6 address",
		"tcp://fe80::1%:1":                "not an IPv6 address",
		"tcp://eth0;h:1":                  "not a name",
		"tcp://h/path:1":                  "not a name",
		"tcp://[[::1]]:1":                 "not a name",
		"ipc://":                          "path is missing",
		"ipc://@":                         "path is missing",
		"ipc://*":                         "say which it chose",
		"ipc://a\x00b":                    "NUL",
		"ipc://" + long(108):              "108 bytes",
		"tcp://h:1,":                      `"" is not an option`,
		"tcp://h:1,namespace":             `"namespace" is not an option`,
		"tcp://h:1,namespace=":            "namespace is empty",
		"tcp://h:1,name=x":                `unknown option "name"`,
		"tcp://h:1,Namespace=x":           `unknown option "Namespace"`,
		"tcp://h:1,=x":                    `unknown option ""`,
		"tcp://h:1, namespace=x":          `unknown option " namespace"`,
		"tcp://h:1,producer=x,producer=x": "producer comes twice",
	} {
		_, err := subscribe.ParseEndpoint(text, defaults)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tcp://HOST:PORT or ipc://PATH") {
			t.Errorf("%q: %v; want %s and the allowed form", text, err, want)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func addresses(list []subscribe.Endpoint) (all []string) {
	for _, e := range list {
		all = append(all, e.String())
		if e.Fallback != "" {
			all = append(all, "or "+e.Fallback)
		}
	}
	return all
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		host  string
		base  int
		ranks []int
		want  []string
	}{
		{"127.0.0.1", 20380, []int{0, 1, 2}, []string{"tcp://127.0.0.1:20380", "tcp://127.0.0.1:20381", "tcp://127.0.0.1:20382"}},
		{"h", 20380, []int{4, 7}, []string{"tcp://h:20384", "tcp://h:20387"}},
		{"::1", 65535, []int{0}, []string{"tcp://[::1]:65535"}},
		{"[::1]", 1, []int{0}, []string{"tcp://[::1]:1"}},
	} {
		list, err := subscribe.Range(c.host, c.base, c.ranks, defaults)
		if diff := cmp.Diff(c.want, addresses(list)); err != nil || diff != "" {
			t.Errorf("%v: %v\n%s", c, err, diff)
		}
		if list[0].Namespace != "dynamo" {
			t.Errorf("%v: %+v", c, list[0])
		}
	}
	for _, c := range []struct {
		host  string
		base  int
		ranks []int
		want  string
	}{
		{"h", 20380, nil, "no ranks"},
		{"h", 65530, []int{0, 6}, "rank 6 has no port"},
		{"h", 0, []int{0}, "rank 0 has no port"},
		{"h", 20380, []int{-1}, "rank -1"},
		{"h", 1, []int{int(^uint(0) >> 1)}, "has no port"},
		{"*", 20380, []int{0}, "say which host"},
		{"", 20380, []int{0}, "host is missing"},
	} {
		if list, err := subscribe.Range(c.host, c.base, c.ranks, defaults); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, %v; want %s", c, list, err, c.want)
		}
	}
}

func TestIPC(t *testing.T) {
	for _, base := range []string{"/tmp/fpm", "ipc:///tmp/fpm"} {
		list, err := subscribe.IPC(base, []int{2, 3}, defaults)
		want := []string{"ipc:///tmp/fpm.2", "or ipc:///tmp/fpm", "ipc:///tmp/fpm.3"}
		if diff := cmp.Diff(want, addresses(list)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", base, err, diff)
		}
	}
	for _, c := range []struct {
		base  string
		ranks []int
		want  string
	}{
		{"/tmp/fpm", nil, "no ranks"}, {"/tmp/fpm", []int{-1}, "negative"},
		{"", []int{0}, "path is missing"}, {long(106), []int{0}, "108 bytes"},
	} {
		if _, err := subscribe.IPC(c.base, c.ranks, defaults); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %v: %v; want %s", c.base, c.ranks, err, c.want)
		}
	}
}

// FuzzParseEndpoint checks that what is accepted can be subscribed to and is spelled in
// one way.
func FuzzParseEndpoint(f *testing.F) {
	for _, text := range []string{"tcp://::1:1,namespace=a", "ipc://@a,producer=b", "tcp://[fe80::1%e]:2", "tcp://a:1,,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := subscribe.ParseEndpoint(text, defaults)
		if err != nil {
			return
		}
		if again, err := subscribe.ParseEndpoint(e.Address, e); err != nil || again != e {
			t.Errorf("%q became %+v and then %+v, %v", text, e, again, err)
		}
		if e.Namespace == "" || e.Component == "" {
			t.Errorf("%q lost what it did not say: %+v", text, e)
		}
	})
}
