package subscribe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// Messages arrive whole and in order, whatever the frames' sizes and wherever the
// transport cuts.
func TestMessages(t *testing.T) {
	h := local(t)
	w := start(t, h.endpoint(), quick())
	p := h.publisher()
	sizes := []int{0, 1, 255, 256, 600, 40_000, wire.MaxFrame, 600}
	var all []byte
	for seq, size := range sizes {
		all = append(all, pass(uint64(seq), bytes.Repeat([]byte{byte(seq)}, size))...)
	}
	for _, b := range all[:700] {
		p.send([]byte{b})
	}
	p.send(all[700:])
	for seq, size := range sizes {
		m := w.message()
		if len(m) != 3 || !bytes.Equal(m[2], bytes.Repeat([]byte{byte(seq)}, size)) {
			t.Fatalf("message %d of %d bytes did not arrive whole", seq, size)
		}
	}
}

// Many messages at once, so that the gathering of quick ones is used, too.
func TestManyMessages(t *testing.T) {
	h := local(t)
	w := start(t, h.endpoint(), quick())
	p := h.publisher()
	payload := bytes.Repeat([]byte{'p'}, 600)
	for seq := range uint64(20_000) {
		p.send(pass(seq, payload))
	}
	for seq := range uint64(20_000) {
		w.sequence(seq)
	}
}

func TestAddresses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ network, listen, address string }{
		{"tcp", "127.0.0.1:0", "tcp://127.0.0.1:PORT"},
		{"tcp", "127.0.0.1:0", "tcp://localhost:PORT"},
		{"tcp", "[::1]:0", "tcp://[::1]:PORT"},
		{"tcp", "[::1]:0", "tcp://::1:PORT"},
		{"unix", filepath.Join(dir, "socket"), "ipc://" + filepath.Join(dir, "socket")},
		{"unix", "@fpm-test-" + strconv.Itoa(os.Getpid()), "ipc://@fpm-test-" + strconv.Itoa(os.Getpid())},
	} {
		t.Run(c.address, func(t *testing.T) {
			h := listen(t, c.network, c.listen)
			if a, ok := h.Addr().(*net.TCPAddr); ok {
				c.address = strings.Replace(c.address, "PORT", strconv.Itoa(a.Port), 1)
			}
			e, err := subscribe.ParseEndpoint(c.address, subscribe.Endpoint{})
			if err != nil {
				t.Fatal(err)
			}
			w := start(t, e, quick())
			h.publisher().send(pass(1, []byte("x")))
			w.sequence(1)
		})
	}
}

func TestPublisherComesLate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "socket")
	w := start(t, subscribe.Endpoint{Address: "ipc://" + path}, quick())
	for attempt := 1; attempt <= 3; attempt++ {
		if e := w.event(subscribe.Failed); e.Attempt != attempt || e.RetryIn <= 0 || !errors.Is(e.Err, os.ErrNotExist) {
			t.Errorf("%+v", e)
		}
	}
	h := listen(t, "unix", path)
	h.publisher().send(pass(0, nil))
	w.event(subscribe.Connected)
	w.sequence(0)
}

// A publisher that dies is connected to again, as often as it takes; what was sent before
// is not lost.
func TestPublisherRestarts(t *testing.T) {
	h := local(t)
	w := start(t, h.endpoint(), quick())
	for seq := range uint64(5) {
		p := h.publisher()
		p.send(pass(seq, []byte("x")))
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		w.event(subscribe.Connected)
		if e := w.event(subscribe.Disconnected); !errors.Is(e.Err, io.EOF) || e.RetryIn <= 0 {
			t.Errorf("%+v", e)
		}
		w.sequence(seq)
	}
}

func TestReplacedByAnotherServer(t *testing.T) {
	h := local(t)
	w := start(t, h.endpoint(), quick())
	p := h.publisher()
	p.send(pass(0, nil))
	w.sequence(0)
	_ = p.Close()
	w.event(subscribe.Disconnected)
	c := h.accept()
	if _, err := io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if e := w.event(subscribe.Failed); !strings.Contains(e.Err.Error(), `HTTP/1.1 400`) {
		t.Errorf("error %v", e.Err)
	}
	h.publisher().send(pass(1, nil))
	w.sequence(1)
}

// Cancelling ends a subscription at once, whatever it waits for.
func TestCancel(t *testing.T) {
	forever := subscribe.Options{RetryMin: time.Hour, RetryMax: time.Hour, ConnectTimeout: time.Hour, SilentAfter: time.Hour}
	t.Run("while it receives", func(t *testing.T) {
		h := local(t)
		w := start(t, h.endpoint(), forever)
		h.publisher()
		w.event(subscribe.Connected)
		w.end()
	})
	t.Run("during the handshake", func(t *testing.T) {
		h := local(t)
		w := start(t, h.endpoint(), forever)
		h.accept()
		w.end()
	})
	t.Run("between connections", func(t *testing.T) {
		w := start(t, subscribe.Endpoint{Address: "ipc://" + filepath.Join(t.TempDir(), "none")}, forever)
		w.event(subscribe.Failed)
		w.end()
	})
	t.Run("while it connects", func(t *testing.T) {
		o := forever
		begun := make(chan bool)
		o.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(begun)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		w := start(t, subscribe.Endpoint{Address: "tcp://a:1"}, o)
		<-begun
		w.end()
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("stopped")
		cancel(cause)
		o := subscribe.Options{OnMessage: func([][]byte, time.Time) {}}
		if err := subscribe.Subscribe(ctx, subscribe.Endpoint{Address: "tcp://a:1"}, o); err != cause {
			t.Errorf("error %v", err)
		}
	})
}

func TestBadCalls(t *testing.T) {
	o := subscribe.Options{OnMessage: func([][]byte, time.Time) {}}
	if err := subscribe.Subscribe(t.Context(), subscribe.Endpoint{Address: "tcp://*:1"}, o); err == nil || !strings.Contains(err.Error(), "tcp://*:1") {
		t.Errorf("error %v", err)
	}
	if err := subscribe.Subscribe(t.Context(), subscribe.Endpoint{Address: "tcp://a:1"}, subscribe.Options{}); err == nil {
		t.Error("no error without OnMessage")
	}
}

// The two forms of an IPC name: whichever is there is used, and kept to.
func TestFallback(t *testing.T) {
	base := filepath.Join(t.TempDir(), "fpm")
	// Plain SGLang leaves a file under the bare name; it is no socket.
	if err := os.WriteFile(base, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := subscribe.IPC(base, []int{0}, subscribe.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, list[0], quick())
	if e := w.event(subscribe.Failed); !strings.Contains(e.Err.Error(), base+".0") || strings.Count(e.Err.Error(), base) < 2 || strings.Contains(e.Err.Error(), "\n") {
		t.Errorf("the error does not name both forms: %v", e.Err)
	}
	suffixed := listen(t, "unix", base+".0")
	p := suffixed.publisher()
	if e := w.event(subscribe.Connected); e.Address != "ipc://"+base+".0" {
		t.Errorf("connected to %s", e.Address)
	}
	_, _ = suffixed.Close(), p.Close()
	if err := os.Remove(base); err != nil {
		t.Fatal(err)
	}
	bare := listen(t, "unix", base)
	p = bare.publisher()
	p.send(pass(3, nil))
	if e := w.event(subscribe.Connected); e.Address != "ipc://"+base {
		t.Errorf("connected to %s", e.Address)
	}
	w.sequence(3)
}

// A connection that the kernel made with itself is given up, so that the publisher can
// have its port.
func TestReachedItself(t *testing.T) {
	h := local(t)
	address := h.Addr().(*net.TCPAddr)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	var made net.Conn
	o := subscribe.Options{RetryMin: time.Hour, RetryMax: time.Hour, Dial: func(ctx context.Context, network, remote string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: address}
		c, err := d.DialContext(ctx, network, remote)
		made = c
		return c, err
	}}
	w := start(t, h.endpoint(), o)
	if e := w.event(subscribe.Failed); !strings.Contains(e.Err.Error(), "its own end") {
		t.Fatalf("error %v", e.Err)
	}
	if _, err := made.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is still open: %v", err)
	}
}
