package stream

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// scripted is a connection whose peer has said all it says.
type scripted struct {
	net.Conn
	in *bytes.Reader
}

func (s scripted) Read(p []byte) (int, error)      { return s.in.Read(p) }
func (s scripted) Write(p []byte) (int, error)     { return len(p), nil }
func (s scripted) SetDeadline(time.Time) error     { return nil }
func (s scripted) SetReadDeadline(time.Time) error { return nil }

// greetingOf returns the greeting and the READY command of a subscriber.
func greetingOf() []byte {
	greeting := make([]byte, greetingBytes)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL")
	return append(greeting, "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03SUB"...)
}

func TestHandshake(t *testing.T) {
	said := append(greetingOf(), "\x00\x01\x01\x04\x0a\x09SUBSCRIBE"...)
	g := guard(scripted{in: bytes.NewReader(said)})
	if err := g.handshake(); err != nil {
		t.Fatal(err)
	}
	var buffer [maxFrame]byte
	for _, want := range []string{"\x01", "\x09SUBSCRIBE"} {
		if _, body, err := g.frame(buffer[:]); err != nil || string(body) != want {
			t.Errorf("%q, %v; want %q", body, err, want)
		}
	}
	if _, _, err := g.frame(buffer[:]); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// FuzzPeer has a peer say anything: as much is read as there is, frame by frame, and no
// frame is longer than any subscriber's.
func FuzzPeer(f *testing.F) {
	whole := append(greetingOf(), "\x00\x01\x01\x04\x07\x04PING\x00\x00\x02\x00\x00\x00\x00\x00\x00\x10\x00"...)
	f.Add(whole, 0)
	f.Add(whole[greetingBytes:], greetingBytes)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), 0)
	f.Add([]byte("\x04\x0a\x05READY\xff\x00\x00\x00"), greetingBytes)
	f.Fuzz(func(t *testing.T, said []byte, greeted int) {
		if greeted == greetingBytes { // past what is hard to guess
			said = append(greetingOf()[:greetingBytes], said...)
		}
		g := guard(scripted{in: bytes.NewReader(said)})
		if g.handshake() != nil {
			return
		}
		var buffer [maxFrame]byte
		total := greetingBytes
		for {
			_, body, err := g.frame(buffer[:])
			if err != nil {
				break
			}
			total += 2 + len(body)
		}
		if total > len(said) {
			t.Fatalf("%d bytes of %d", total, len(said))
		}
	})
}
