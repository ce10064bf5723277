package subscribe_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"github.com/go-zeromq/zmq4/transport"

	"github.com/fpm-project/fpm/trace/subscribe"
)

// canned is a publisher in memory that repeats its messages for ever, so that a benchmark
// sees the subscriber's cost and not the kernel's.
type canned struct {
	net.Conn // a real one for addresses and deadlines; no byte goes over it
	head     []byte
	loop     []byte
	at       int
	closed   atomic.Bool
}

func (c *canned) Close() error {
	c.closed.Store(true)
	return c.Conn.Close()
}

func newCanned(payload int) *canned {
	one, _ := net.Pipe() // no descriptor: nothing to close
	return &canned{Conn: one, head: append(greeting(), ready("PUB")...),
		loop: bytes.Repeat(pass(1, bytes.Repeat([]byte{'x'}, payload)), 100)}
}

func (c *canned) Write(p []byte) (int, error) { return len(p), nil }

func (c *canned) Read(p []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(p, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	if c.closed.Load() {
		return 0, net.ErrClosed
	}
	n := copy(p, c.loop[c.at:])
	c.at = (c.at + n) % len(c.loop)
	return n, nil
}

// BenchmarkReceive compares the ways to receive a message of 600 bytes: this package, the
// frames of zmq4's connection, and a socket of zmq4 over a registered transport. The
// kernel's part is left out; the others would need a buffered connection to keep up in it.
func BenchmarkReceive(b *testing.B) {
	var own float64 // nanoseconds
	ratio := func(b *testing.B) {
		if own > 0 { // not when this one runs alone
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/own, "x-subscribe")
		}
	}
	b.Run("subscribe", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		n := 0
		b.ReportAllocs()
		options := subscribe.Options{
			OnMessage: func([][]byte, time.Time) {
				if n++; n >= b.N {
					cancel()
				}
			},
			Dial: func(context.Context, string, string) (net.Conn, error) { return newCanned(600), nil },
		}
		if err := subscribe.Subscribe(ctx, subscribe.Endpoint{Address: "ipc://x"}, options); !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
		own = float64(b.Elapsed()) / float64(b.N)
	})
	b.Run("zmq4.Conn", func(b *testing.B) {
		c, err := zmq4.Open(newCanned(600), null.Security(), zmq4.Sub, nil, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.RecvMsg(); err != nil {
				b.Fatal(err)
			}
		}
		ratio(b)
	})
	b.Run("zmq4.Socket", func(b *testing.B) {
		if !slices.Contains(zmq4.Transports(), "canned") {
			if err := zmq4.RegisterTransport("canned", cannedTransport{}); err != nil {
				b.Fatal(err)
			}
		}
		s := zmq4.NewSub(b.Context())
		if err := errors.Join(s.SetOption(zmq4.OptionSubscribe, ""), s.Dial("canned://x")); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Recv(); err != nil {
				b.Fatal(err)
			}
		}
		ratio(b)
	})
}

type cannedTransport struct{}

func (cannedTransport) Dial(context.Context, transport.Dialer, string) (net.Conn, error) {
	return newCanned(600), nil
}
func (cannedTransport) Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.ErrUnsupported
}
func (cannedTransport) Addr(ep string) (string, error) { return ep, nil }
