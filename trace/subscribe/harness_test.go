package subscribe_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/fpm-project/fpm/trace/subscribe"
)

// watch is a running subscription and what it has told.
type watch struct {
	t        testing.TB
	messages chan [][]byte
	events   chan subscribe.Event
	cancel   context.CancelFunc
	done     chan error
}

// start subscribes until the test ends, and checks that the subscription ends then.
func start(t testing.TB, e subscribe.Endpoint, o subscribe.Options) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{t: t, cancel: cancel, done: make(chan error, 1),
		messages: make(chan [][]byte, 1<<16), events: make(chan subscribe.Event, 1<<16)}
	o.OnMessage = func(frames [][]byte, at time.Time) {
		var kept [][]byte
		for _, f := range frames {
			kept = append(kept, bytes.Clone(f))
		}
		w.messages <- kept
	}
	o.OnEvent = func(e subscribe.Event) { w.events <- e }
	go func() { w.done <- subscribe.Subscribe(ctx, e, o) }()
	t.Cleanup(w.end)
	return w
}

// quick is options for tests that reconnect often.
func quick() subscribe.Options {
	return subscribe.Options{RetryMin: time.Millisecond, RetryMax: 10 * time.Millisecond}
}

// end cancels the subscription and waits for its end.
func (w *watch) end() {
	w.t.Helper()
	w.cancel()
	select {
	case err := <-w.done:
		if !errors.Is(err, context.Canceled) {
			w.t.Errorf("Subscribe returned %v", err)
		}
		w.done <- err
	case <-time.After(patience):
		w.t.Error("Subscribe does not return")
	}
}

// event waits for the next event of a kind and passes over the others.
func (w *watch) event(kind subscribe.Kind) subscribe.Event {
	w.t.Helper()
	late := time.After(patience)
	for {
		select {
		case e := <-w.events:
			if e.Kind == kind {
				return e
			}
		case <-late:
			w.t.Fatalf("no event %v", kind)
		}
	}
}

// message waits for the next message.
func (w *watch) message() [][]byte {
	w.t.Helper()
	select {
	case m := <-w.messages:
		return m
	case <-time.After(patience):
		w.t.Fatal("no message")
		return nil
	}
}

// sequence waits for a message and checks its sequence and that it is whole.
func (w *watch) sequence(want uint64) {
	w.t.Helper()
	m := w.message()
	if len(m) != 3 || len(m[0]) != 0 || len(m[1]) != 8 || !bytes.Equal(message(m...), pass(want, m[2])) {
		w.t.Fatalf("message % .20x; want sequence %d", m, want)
	}
}

// host is a listener and the connections to it.
type host struct {
	t testing.TB
	net.Listener
}

func listen(t testing.TB, network, address string) host {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // some tests close it themselves
	return host{t, l}
}

// local is a listener on a free port of this host.
func local(t testing.TB) host { return listen(t, "tcp", "127.0.0.1:0") }

// endpoint is the listener's endpoint.
func (h host) endpoint() subscribe.Endpoint {
	if h.Addr().Network() == "unix" {
		return subscribe.Endpoint{Address: "ipc://" + h.Addr().String()}
	}
	return subscribe.Endpoint{Address: "tcp://" + h.Addr().String()}
}

// accept returns the next connection, closed at the test's end at the latest.
func (h host) accept() net.Conn {
	h.t.Helper()
	c, err := h.Accept()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	return c
}

// publisher accepts the next connection and completes the handshake.
func (h host) publisher() publisher {
	h.t.Helper()
	return welcome(h.t, h.accept())
}
