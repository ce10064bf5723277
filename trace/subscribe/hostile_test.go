package subscribe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// changed returns b with one byte replaced.
func changed(b []byte, at int, c byte) []byte {
	b = bytes.Clone(b)
	b[at] = c
	return b
}

// Peers that are no publisher fail with an error that says what they are.
func TestHandshakesThatFail(t *testing.T) {
	random := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	random[0] = 'r'
	curve := greeting()
	copy(curve[12:], "CURVE")
	after := func(b []byte) []byte { return append(greeting(), b...) }
	readyOf := func(metadata []byte) []byte { return after(command("READY", metadata)) }
	cases := []struct {
		name, say string
		bytes     []byte
		open      bool // the peer does not close the connection
	}{
		{"nothing and closed", "during the handshake", nil, false},
		{"mute", "did not complete", nil, true},
		{"mute after the greeting", "did not complete", greeting(), true},
		{"closed in the greeting", "during the handshake", greeting()[:30], false},
		{"closed in READY", "during the handshake", after(ready("PUB")[:9]), false},
		{"random bytes", "does not speak ZMTP", random, true},
		{"signature only", "does not speak ZMTP", changed(greeting(), 9, 'x'), true},
		{"HTTP", `"HTTP/1.1 200`, []byte("HTTP/1.1 200 OK\r\n\r\n"), true},
		{"SSH", `"SSH-2.0`, []byte("SSH-2.0-x\r\n"), true},
		{"ZMTP 2", "ZMTP 2 or older", []byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1, 1}, true},
		{"CURVE", `"CURVE"`, curve, true},
		{"role that is no boolean", "bool", changed(greeting(), 32, 7), true},
		{"ROUTER", "self-benchmark", after(ready("ROUTER")), true},
		{"REP", `"REP"`, after(ready("REP")), true},
		{"SUB", `"SUB"`, after(ready("SUB")), true},
		{"no type", "of type", readyOf(property("Identity", "")), true},
		{"ERROR", `refused the connection: "go away"`, after(command("ERROR", append([]byte{7}, "go away"...))), true},
		{"ERROR cut", "malformed command", after(command("ERROR", []byte{200, 'x'})), true},
		{"HELLO", "READY belongs", after(command("HELLO", nil)), true},
		{"message instead of READY", "READY belongs", after(message([]byte("READY"))), true},
		{"command that goes on", "READY belongs", after(frame(5, []byte("\x05READY"))), true},
		{"empty command", "malformed command", after(frame(4, nil)), true},
		{"command name cut", "malformed command", after(frame(4, []byte{9, 'R'})), true},
		{"READY of 4 EiB", "READY belongs", after(header(4, 1<<62)), true},
		{"READY of 1 TiB", "READY belongs", after(header(4, 1<<40)), true},
		{"READY of 16 EiB", "READY belongs", after(header(4, 1<<64-1)), true},
		{"unknown flags", "unknown flags", after([]byte{0x80, 0}), true},
		{"metadata: name of nothing", "malformed metadata", readyOf([]byte{0}), true},
		{"metadata: name cut", "malformed metadata", readyOf([]byte{1}), true},
		{"metadata: name as long as the rest and one", "malformed metadata", readyOf([]byte{2, 'a'}), true},
		{"metadata: no value", "malformed metadata", readyOf([]byte{1, 'a'}), true},
		{"metadata: length cut", "malformed metadata", readyOf([]byte{1, 'a', 0, 0, 0}), true},
		{"metadata: value of 4 GiB", "malformed metadata", readyOf([]byte{1, 'a', 0xff, 0xff, 0xff, 0xff}), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := local(t)
			o := quick()
			o.ConnectTimeout = patience
			if strings.HasPrefix(c.name, "mute") {
				t.Parallel()
				o.ConnectTimeout = 2 * time.Second // enough for the next peer, on any machine
			}
			w := start(t, h.endpoint(), o)
			conn := h.accept()
			if _, err := conn.Write(c.bytes); err != nil {
				t.Fatal(err)
			}
			if !c.open {
				// The subscriber's bytes are read first: closing over unread ones would reset.
				if _, err := io.ReadFull(conn, make([]byte, 64)); err != nil {
					t.Fatal(err)
				}
				if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			e := w.event(subscribe.Failed)
			if !strings.Contains(e.Err.Error(), c.say) || !strings.Contains(e.Err.Error(), h.endpoint().Address) {
				t.Errorf("error %q; want %q and the address", e.Err, c.say)
			}
			if strings.Contains(e.Err.Error(), "zmq4") {
				t.Errorf("error %q tells of the library's steps", e.Err)
			}
			// The peer is left alone, and the next one is welcome.
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			}
			h.publisher().send(pass(1, nil))
			w.sequence(1)
		})
	}
}

// The names of READY's properties have no case, and what else stands there is the peer's.
func TestSpellingsOfReady(t *testing.T) {
	for _, metadata := range [][]byte{
		property("socket-type", "PUB"),
		property("SOCKET-TYPE", "XPUB"),
		property("SoCket-TYpe", "PUB"),
		bytes.Join([][]byte{property("Socket-Type", "SUB"), property("socket-type", "PUB")}, nil),
		bytes.Join([][]byte{property("socket-type", "PUB"), property("\xff", "\x00"), property("Identity", "x")}, nil),
	} {
		t.Run(fmt.Sprintf("%q", metadata), func(t *testing.T) {
			h := local(t)
			w := start(t, h.endpoint(), quick())
			said := bytes.Join([][]byte{greeting(), command("READY", metadata), pass(1, nil)}, nil)
			if _, err := h.accept().Write(said); err != nil {
				t.Fatal(err)
			}
			w.sequence(1)
		})
	}
}

// What a peer sends behind the handshake: how much of it is refused and whether the
// connection stands.
func TestHostileMessages(t *testing.T) {
	large := make([]byte, wire.MaxFrame+1)
	frames := func(n int) []byte { return message(make([][]byte, n)...) }
	cases := []struct {
		name   string
		bytes  []byte
		refuse []wire.Reason
		end    string // why the connection ends; "" when it stands
	}{
		{"frame of 4 EiB", header(0, 1<<62), []wire.Reason{wire.TooLarge}, "more than"},
		{"frame of 16 EiB", header(0, 1<<64-1), []wire.Reason{wire.TooLarge}, "more than"},
		{"frame of 1 TiB", header(1, 1<<40), []wire.Reason{wire.TooLarge}, "more than"},
		{"third frame of 2 GiB", append(message(nil, nil, nil)[:4], header(0, 1<<31)...), nil, ""},
		{"payload one byte too large", message(nil, make([]byte, 8), large), []wire.Reason{wire.TooLarge}, ""},
		{"topic too large", message(large, make([]byte, 8), nil), []wire.Reason{wire.TooLarge}, ""},
		{"two frames, one too large", message(nil, large), []wire.Reason{wire.Frames}, ""},
		{"one frame, too large", message(large), []wire.Reason{wire.Frames}, ""},
		{"four frames, one too large", message(nil, make([]byte, 8), large, nil), []wire.Reason{wire.Frames}, ""},
		{"four frames, one too large", message(nil, nil, nil, large), []wire.Reason{wire.Frames}, ""},
		{"five frames of 1 MiB", message(large[1:], large[1:], large[1:], large[1:], large[1:]), []wire.Reason{wire.Frames}, ""},
		{"17 frames", frames(17), []wire.Reason{wire.Frames}, ""},
		{"4096 frames", frames(4096), []wire.Reason{wire.Frames}, ""},
		{"4097 frames", frames(4097), []wire.Reason{wire.Frames}, "more than 4096 frames"},
		{"message without end", bytes.Repeat([]byte{1, 0}, 100_000), []wire.Reason{wire.Frames}, "more than 4096 frames"},
		{"large message without end", bytes.Repeat(frame(1, large), 66), []wire.Reason{wire.Frames}, "bytes"},
		{"commands within a message", append(append([]byte{1, 0}, bytes.Repeat(command("NOTHING", make([]byte, 8000)), 2000)...), 0, 0), []wire.Reason{wire.Frames}, ""},
		{"unknown commands", append(command("SUBSCRIBE", nil), command("", nil)...), nil, ""},
		{"command that goes on", frame(5, []byte("\x01a")), nil, "malformed command"},
		{"command of 9 KB", header(4, 9000), nil, "malformed command"},
		{"empty command", frame(4, nil), nil, "malformed command"},
		{"PING without a time to live", command("PING", []byte{1}), nil, "malformed command"},
		{"PING with 17 bytes", command("PING", make([]byte, 2+17)), nil, "malformed command"},
		{"ERROR", command("ERROR", []byte{1, 'x'}), nil, `"x"`},
		{"unknown flags", []byte{8, 0}, nil, "unknown flags"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "third frame of 2 GiB" {
				c.bytes = append([]byte{1, 0, 1, 0}, header(0, 1<<31)...)
				c.refuse, c.end = []wire.Reason{wire.TooLarge}, "more than"
			}
			h := local(t)
			w := start(t, h.endpoint(), quick())
			p := h.publisher()
			p.send(pass(0, nil))
			w.sequence(0)
			before := allocated()
			// The connection may end before everything is written.
			_, _ = p.Write(c.bytes)
			for _, reason := range c.refuse {
				var rejected *wire.RejectError
				if e := w.event(subscribe.Refused); !errors.As(e.Err, &rejected) || rejected.Reason != reason {
					t.Errorf("refused with %v; want %v", e.Err, reason)
				}
			}
			if c.end != "" {
				if e := w.event(subscribe.Disconnected); !strings.Contains(e.Err.Error(), c.end) {
					t.Errorf("ended with %v; want %q", e.Err, c.end)
				}
				p = h.publisher()
			}
			p.send(pass(1, nil))
			w.sequence(1)
			if used := allocated() - before; used > 24<<20 {
				t.Errorf("%d MiB were allocated", used>>20)
			}
		})
	}
}

// allocated is what was ever allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Messages of other than three frames are for the decoder to count, as long as there are
// few.
func TestOtherNumbersOfFrames(t *testing.T) {
	h := local(t)
	w := start(t, h.endpoint(), quick())
	p := h.publisher()
	for n := 1; n <= 16; n++ {
		p.send(message(make([][]byte, n)...))
		if m := w.message(); len(m) != n {
			t.Errorf("%d frames arrived as %d", n, len(m))
		}
	}
}

func TestClosedWithinMessage(t *testing.T) {
	whole := pass(1, []byte("payload"))
	for cut := 1; cut < len(whole); cut++ {
		h := local(t)
		w := start(t, h.endpoint(), quick())
		p := h.publisher()
		p.send(append(pass(0, nil), whole[:cut]...))
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		w.sequence(0)
		if e := w.event(subscribe.Disconnected); !errors.Is(e.Err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", cut, e.Err)
		}
		h.publisher().send(pass(2, nil))
		w.sequence(2)
		w.end()
	}
}

// A PING is answered with its context, also between the frames of a message.
func TestPing(t *testing.T) {
	h := local(t)
	w := start(t, h.endpoint(), quick())
	p := h.publisher()
	pong := func(context string) {
		t.Helper()
		want := command("PONG", []byte(context))
		p.want(len(want), func(b []byte) bool { return bytes.Equal(b, want) })
	}
	p.send(command("PING", []byte("\x00\x64")))
	pong("")
	p.send(command("PING", []byte("\x00\x64sixteen bytes...")))
	pong("sixteen bytes...")
	whole := pass(5, bytes.Repeat([]byte{'x'}, 300))
	p.send(append(whole[:2:2], command("PING", []byte("\x00\x64mid"))...))
	pong("mid")
	p.send(whole[2:])
	w.sequence(5)
	for range 1000 {
		p.send(command("PING", []byte("\x00\x64")))
		pong("")
	}
}

// No descriptor stays behind a handshake that failed or a connection that ended, without
// help of the garbage collector.
func TestDescriptors(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	h := local(t)
	w := start(t, h.endpoint(), subscribe.Options{RetryMin: time.Microsecond, RetryMax: time.Microsecond})
	round := func() {
		c := h.accept()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		w.event(subscribe.Failed)
		_ = c.Close()
		p := h.publisher()
		w.event(subscribe.Connected)
		_ = p.Close()
		w.event(subscribe.Disconnected)
	}
	round()
	before := descriptors(t)
	for range 200 {
		round()
	}
	if after := descriptors(t); after > before+2 {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("descriptors can only be counted in /proc:", err)
	}
	return len(list)
}

// FuzzPeer lets a peer say anything, behind a good handshake or in its place.
func FuzzPeer(f *testing.F) {
	hello := append(greeting(), ready("PUB")...)
	f.Add(true, pass(1, []byte("x")))
	f.Add(false, append(hello, pass(1, []byte("x"))...))
	f.Add(true, append(command("PING", []byte("\x00\x01ab")), header(1, 1<<40)...))
	f.Add(true, bytes.Repeat([]byte{1, 0}, 5000))
	f.Add(false, append(greeting(), command("READY", property("SoCket-TYpe", "PUB"))...))
	f.Fuzz(func(t *testing.T, handshake bool, said []byte) {
		if handshake {
			said = append(bytes.Clone(hello), said...)
		}
		hear(t, said)
	})
}

// hear subscribes to a peer that says something and closes.
func hear(t *testing.T, said []byte) {
	one, other := net.Pipe()
	defer func() { _, _ = one.Close(), other.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	size := 0
	err := subscribe.Subscribe(ctx, subscribe.Endpoint{Address: "ipc://x"}, subscribe.Options{
		Dial: dialTo(&reciting{Conn: one, rest: said}),
		OnMessage: func(frames [][]byte, _ time.Time) {
			for _, frame := range frames {
				size += len(frame) + 2
				if len(frame) > wire.MaxFrame {
					t.Errorf("a frame of %d bytes", len(frame))
				}
			}
		},
		OnEvent: func(e subscribe.Event) {
			if e.Kind == subscribe.Failed || e.Kind == subscribe.Disconnected {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || size > len(said) {
		t.Errorf("%v; %d bytes became %d", err, len(said), size)
	}
}

// reciting is a peer that says its piece and closes; it takes everything.
type reciting struct {
	net.Conn
	rest []byte
}

func (r *reciting) Write(p []byte) (int, error) { return len(p), nil }

func (r *reciting) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
