package subscribe_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"
)

// What a hand-written peer says. Nothing of zmq4 is used, so that a shared misreading
// cannot hide.

// greeting is that of libzmq 4.3: ZMTP 3.1 and the NULL mechanism.
func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10], g[11] = 0xff, 0x7f, 3, 1
	copy(g[12:], "NULL")
	return g
}

// frame returns a frame with the given flags in its shortest form.
func frame(flags byte, body []byte) []byte {
	if len(body) > 255 {
		return append(header(flags, uint64(len(body))), body...)
	}
	return append([]byte{flags, byte(len(body))}, body...)
}

// header returns the header of a long frame.
func header(flags byte, size uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{flags | 2}, size)
}

func command(name string, body []byte) []byte {
	return frame(4, append(append([]byte{byte(len(name))}, name...), body...))
}

func property(name, value string) []byte {
	b := append([]byte{byte(len(name))}, name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

func ready(kind string) []byte {
	return command("READY", append(property("Socket-Type", kind), property("Identity", "")...))
}

// message returns the frames of a message as they go over the wire.
func message(frames ...[]byte) []byte {
	var b []byte
	for i, f := range frames {
		flags := byte(1)
		if i == len(frames)-1 {
			flags = 0
		}
		b = append(b, frame(flags, f)...)
	}
	return b
}

// pass is a message as publishers send it: topic, sequence, payload.
func pass(seq uint64, payload []byte) []byte {
	return message(nil, binary.BigEndian.AppendUint64(nil, seq), payload)
}

// publisher is a peer that completed the handshake and saw the subscription.
type publisher struct {
	net.Conn
	t testing.TB
}

// welcome completes the handshake of a publisher with a subscriber. It lets the subscriber
// speak first, since the pipes of some tests have no buffer.
func welcome(t testing.TB, c net.Conn) publisher {
	t.Helper()
	p := publisher{c, t}
	p.want(64, func(b []byte) bool {
		return b[0] == 0xff && b[9] == 0x7f && b[10] == 3 && string(b[12:17]) == "NULL\x00"
	})
	p.send(greeting())
	p.want(2, func(b []byte) bool { return b[0] == 4 })
	kind := property("Socket-Type", "SUB")
	p.want(6+len(kind)+len(property("Identity", "")), func(b []byte) bool {
		return string(b[:6]) == "\x05READY" && bytes.Contains(b, kind)
	})
	p.send(ready("PUB"))
	p.want(3, func(b []byte) bool { return bytes.Equal(b, []byte{0, 1, 1}) }) // subscribed to everything
	return p
}

func (p publisher) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Errorf("peer: %v", err)
	}
}

func (p publisher) read(n int) []byte {
	p.t.Helper()
	b := make([]byte, n)
	if err := p.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Errorf("peer: %v", err)
	}
	if _, err := io.ReadFull(p, b); err != nil {
		p.t.Errorf("peer: %v", err)
	}
	return b
}

func (p publisher) want(n int, ok func([]byte) bool) {
	p.t.Helper()
	if b := p.read(n); !ok(b) {
		p.t.Errorf("the subscriber sent % x", b)
	}
}

// patience is how long a test waits for something that must happen.
const patience = time.Minute
