package stream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// What a subscriber may send.
const (
	greetingBytes = 64
	maxFrame      = 1 << 12 // a READY command or a subscription is far smaller
	handshakeTime = 5 * time.Second
)

var errFrame = errors.New("a frame that no subscriber sends")

// guarded is a connection of which no more is read than there is of the greeting or of the
// frame at hand, and no frame longer than maxFrame. The library's handshake makes a buffer
// of whatever length a peer claims.
type guarded struct {
	net.Conn
	in   *bufio.Reader
	rest int // bytes of the greeting, then of the frame, that are still to come
}

func guard(conn net.Conn) *guarded {
	return &guarded{Conn: conn, in: bufio.NewReaderSize(conn, maxFrame), rest: greetingBytes}
}

func (g *guarded) Read(p []byte) (int, error) {
	if g.rest == 0 {
		flags, size, header, err := g.peek()
		if err != nil {
			return 0, err
		}
		if flags&flagMore != 0 {
			return 0, errFrame
		}
		g.rest = header + size
	}
	n, err := g.in.Read(p[:min(len(p), g.rest)])
	g.rest -= n
	return n, err
}

// peek returns what the header of the next frame says, and how long it is itself.
func (g *guarded) peek() (flags byte, size, header int, err error) {
	b, err := g.in.Peek(2)
	if err != nil {
		return 0, 0, 0, err
	}
	flags, length, header := b[0], uint64(b[1]), 2
	if flags&flagLong != 0 {
		if b, err = g.in.Peek(9); err != nil {
			return 0, 0, 0, err
		}
		length, header = binary.BigEndian.Uint64(b[1:]), 9
	}
	if flags&^(flagMore|flagLong|flagCommand) != 0 || length > maxFrame {
		return 0, 0, 0, errFrame
	}
	return flags, int(length), header, nil
}

// frame reads the next frame. Its body is valid until the next call.
func (g *guarded) frame(into []byte) (flags byte, body []byte, err error) {
	flags, size, header, err := g.peek()
	if err != nil {
		return 0, nil, err
	}
	if _, err := g.in.Discard(header); err != nil {
		return 0, nil, err
	}
	body = into[:size]
	for read := 0; read < size; {
		n, err := g.in.Read(body[read:])
		if err != nil {
			return 0, nil, err
		}
		read += n
	}
	return flags, body, nil
}

// handshake makes the connection of a publisher of it, which a subscriber must do its part
// for in time.
func (g *guarded) handshake() (err error) {
	defer func() {
		if v := recover(); v != nil { // the library's parser of metadata trusts their lengths
			err = fmt.Errorf("metadata of a peer: %v", v)
		}
	}()
	if err := g.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return err
	}
	if _, err := zmq4.Open(g, null.Security(), zmq4.Pub, nil, false, nil); err != nil {
		return err
	}
	return g.SetDeadline(time.Time{})
}
