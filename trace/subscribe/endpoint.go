package subscribe

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Endpoint is where a publisher is, and under which names its rows are recorded.
type Endpoint struct {
	// Address is tcp://HOST:PORT or ipc://PATH; ipc://@NAME is a name of Linux's abstract
	// space. An IPv6 address stands with or without brackets.
	Address string
	// Fallback, when set, is another address of the same publisher, tried when there is
	// nothing at the first.
	Fallback  string
	Namespace string
	Component string
	Producer  string // the producer's id instead of the worker's, "" for the worker's
}

// String returns the address.
func (e Endpoint) String() string { return e.Address }

// endpointForm is the allowed form, for messages.
const endpointForm = "tcp://HOST:PORT or ipc://PATH, with optional ,namespace=NAME,component=NAME,producer=NAME"

// ParseEndpoint reads an endpoint: an address and options behind commas, each at most once
// and not empty. What is not said is taken from defaults. The address comes back in one
// spelling, IPv6 in brackets.
func ParseEndpoint(s string, defaults Endpoint) (Endpoint, error) {
	fail := func(format string, args ...any) (Endpoint, error) {
		return Endpoint{}, fmt.Errorf("endpoint %q: %s; expected %s", s, fmt.Sprintf(format, args...), endpointForm)
	}
	address, options, _ := strings.Cut(s, ",")
	t, err := parseAddress(address)
	if err != nil {
		return fail("%v", err)
	}
	e := defaults
	e.Address, e.Fallback = t.shown, ""
	fields := map[string]*string{"namespace": &e.Namespace, "component": &e.Component, "producer": &e.Producer}
	if options == "" && address == s {
		return e, nil
	}
	for option := range strings.SplitSeq(options, ",") {
		key, value, ok := strings.Cut(option, "=")
		field, known := fields[key]
		switch {
		case !ok:
			return fail("%q is not an option KEY=VALUE", option)
		case !known && slices.Contains([]string{"namespace", "component", "producer"}, key):
			return fail("option %s comes twice", key)
		case !known:
			return fail("unknown option %q", key)
		case value == "":
			return fail("option %s is empty", key)
		}
		*field = value
		delete(fields, key)
	}
	return e, nil
}

// Range returns the endpoints of an engine's ranks on one host: port base + rank for each
// of the ranks and no other. The port behind the last one is the engine's own, so nothing
// is ever added. A host may be an IPv6 address with or without brackets.
func Range(host string, base int, ranks []int, defaults Endpoint) ([]Endpoint, error) {
	if len(ranks) == 0 {
		return nil, errors.New("no ranks are given")
	}
	list := make([]Endpoint, 0, len(ranks))
	for _, rank := range ranks {
		port := base + rank
		if base < 1 || rank < 0 || port < base || port > 65535 {
			return nil, fmt.Errorf("rank %d has no port: base port %d + rank must lie within 1 and 65535", rank, base)
		}
		t, err := parseAddress("tcp://" + net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(port)))
		if err != nil {
			return nil, fmt.Errorf("host %q: %w", host, err)
		}
		e := defaults
		e.Address, e.Fallback = t.shown, ""
		list = append(list, e)
	}
	return list, nil
}

// IPC returns the endpoints of an engine's ranks below one base, BASE.RANK. Early builds
// bound the bare base, which has room for one publisher only: it is the first rank's
// fallback, for no rank's messages may be recorded twice. A leading ipc:// is accepted.
func IPC(base string, ranks []int, defaults Endpoint) ([]Endpoint, error) {
	if len(ranks) == 0 {
		return nil, errors.New("no ranks are given")
	}
	bare := "ipc://" + strings.TrimPrefix(base, "ipc://")
	list := make([]Endpoint, 0, len(ranks))
	for i, rank := range ranks {
		if rank < 0 {
			return nil, fmt.Errorf("rank %d is negative", rank)
		}
		e := defaults
		e.Address, e.Fallback = bare+"."+strconv.Itoa(rank), ""
		if i == 0 {
			e.Fallback = bare
		}
		if _, err := e.targets(); err != nil {
			return nil, fmt.Errorf("ipc base %q: %w", base, err)
		}
		list = append(list, e)
	}
	return list, nil
}

// target is an address as net understands it.
type target struct {
	network, address string
	shown            string // as an Endpoint's Address
}

// targets returns the endpoint's addresses in the order in which they are tried.
func (e Endpoint) targets() ([]target, error) {
	addresses := []string{e.Address}
	if e.Fallback != "" {
		addresses = append(addresses, e.Fallback)
	}
	var list []target
	for _, address := range addresses {
		t, err := parseAddress(address)
		if err != nil {
			return nil, fmt.Errorf("endpoint %q: %w; expected %s", address, err, endpointForm)
		}
		list = append(list, t)
	}
	return list, nil
}

func parseAddress(s string) (target, error) {
	scheme, rest, ok := strings.Cut(s, "://")
	switch {
	case ok && scheme == "tcp":
		return parseTCP(rest)
	case ok && scheme == "ipc":
		return parseIPC(rest)
	case ok:
		return target{}, fmt.Errorf("scheme %q is not supported", scheme)
	}
	return target{}, errors.New("the scheme is missing")
}

// parseTCP reads HOST:PORT. The port stands behind the last colon, so an IPv6 address
// needs no brackets, as with libzmq.
func parseTCP(s string) (target, error) {
	colon := strings.LastIndexByte(s, ':')
	if colon < 0 {
		return target{}, errors.New("the port is missing")
	}
	host, port := s[:colon], s[colon+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return target{}, fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		if host, ok = strings.CutSuffix(inner, "]"); !ok {
			return target{}, errors.New("the bracket is not closed")
		}
	}
	switch {
	case host == "":
		return target{}, errors.New("the host is missing")
	case host == "*":
		return target{}, errors.New("the host * means every interface to a publisher that binds it; say which host to connect to")
	case strings.ContainsAny(host, "[]/; \t\n"):
		return target{}, fmt.Errorf("host %q is not a name or an address", host)
	case strings.Contains(host, ":") && !isIPv6(host):
		return target{}, fmt.Errorf("host %q is not an IPv6 address", host)
	}
	address := net.JoinHostPort(host, port)
	return target{"tcp", address, "tcp://" + address}, nil
}

// isIPv6 accepts a zone.
func isIPv6(host string) bool {
	address, zone, cut := strings.Cut(host, "%")
	return net.ParseIP(address) != nil && (!cut || zone != "")
}

// maxSocketPath is what fits into Linux's sockaddr_un, with the byte behind it.
const maxSocketPath = 107

// parseIPC reads a path, or @NAME, which the kernel keeps apart from the file system.
func parseIPC(path string) (target, error) {
	switch {
	case path == "" || path == "@":
		return target{}, errors.New("the path is missing")
	case path == "*":
		return target{}, errors.New("the path * lets a publisher choose one; say which it chose")
	case strings.ContainsRune(path, 0):
		return target{}, errors.New("the path has a NUL byte")
	case len(path) > maxSocketPath:
		return target{}, fmt.Errorf("the path has %d bytes; a socket's may have %d", len(path), maxSocketPath)
	}
	return target{"unix", path, "ipc://" + path}, nil
}
