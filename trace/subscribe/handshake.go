package subscribe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

// handshake makes a SUB connection with everything subscribed to. Until it is complete a
// peer must keep to the deadline.
func (c *connection) handshake(deadline time.Time) error {
	if err := c.SetDeadline(deadline); err != nil {
		return err
	}
	a := &admission{connection: c}
	z, err := zmq4.Open(a, null.Security(), zmq4.Sub, nil, false, nil)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errMute
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errShut // zmq4 wraps how it was closed in words about its own steps
	case a.err != nil:
		return a.err // likewise
	case err != nil:
		return err
	}
	if err := z.SendMsg(zmq4.NewMsg([]byte{1})); err != nil {
		return err
	}
	c.sender = z
	return c.SetDeadline(time.Time{})
}

// Errors of peers that are no publishers.
var (
	errMute     = errors.New("the peer accepted the connection but did not complete a ZMTP handshake: it hangs, or is no ZeroMQ publisher")
	errShut     = errors.New("the peer closed the connection during the handshake, as one that demands CURVE or PLAIN security does, or one that is no ZeroMQ publisher")
	errGreeting = errors.New("the peer does not speak ZMTP")
	errVersion  = errors.New("the peer speaks ZMTP 2 or older (libzmq before 4.0)")
	errRole     = errors.New("the peer's greeting has a role that is no boolean")
	errMetadata = errors.New("the peer's handshake has malformed metadata")
	errReady    = errors.New("the peer's handshake has something else where READY belongs")
)

// The greeting of ZMTP 3: signature, version, mechanism, role, filler.
const (
	greetingSize   = 64
	signatureSize  = 10
	signatureFirst = 0xff
	signatureLast  = 0x7f
	mechanismFrom  = 12
	mechanismTo    = 32 // where the role is
)

// admission is the connection that zmq4 sees during the handshake. zmq4 allocates as much
// as a frame's header claims, slices a peer's metadata unchecked and panics when it finds
// no socket type there, so nothing reaches it that was not checked before, and of READY
// only what was read in it.
type admission struct {
	*connection
	greeted, ready bool
	admitted       []byte // what zmq4 has not read yet
	err            error  // what is wrong with the peer
}

// Read gives zmq4 what was checked.
func (a *admission) Read(p []byte) (int, error) {
	if len(a.admitted) == 0 {
		if a.admitted, a.err = a.check(); a.err != nil {
			return 0, a.err
		}
	}
	n := copy(p, a.admitted)
	a.admitted = a.admitted[n:]
	return n, nil
}

// check admits the greeting, then the one command that follows it.
func (a *admission) check() ([]byte, error) {
	switch {
	case !a.greeted:
		a.greeted = true
		return a.greeting()
	case !a.ready:
		a.ready = true
		return a.command()
	}
	return nil, errReady
}

// greeting checks a peer's first bytes as they come, so that a peer of another protocol is
// named at once and not when the deadline passes. It is valid until the next read.
func (c *connection) greeting() (b []byte, err error) {
	for n := 1; n <= greetingSize; n++ {
		if err := c.need(n); err != nil {
			return nil, err
		}
		b = c.buf[c.start : c.start+n]
		switch last := b[n-1]; {
		case n == 1 && last != signatureFirst, n == signatureSize && last != signatureLast:
			return nil, fmt.Errorf("%w: it began with %.40q", errGreeting, c.buf[c.start:c.end])
		case n == signatureSize+1 && last < 3:
			return nil, errVersion
		}
	}
	mechanism := bytes.TrimRight(b[mechanismFrom:mechanismTo], "\x00")
	if string(mechanism) != string(zmq4.NullSecurity) {
		return nil, fmt.Errorf("the peer demands the security mechanism %.20q; publishers of forward-pass metrics use NULL", mechanism)
	}
	if b[mechanismTo] > 1 {
		return nil, errRole
	}
	c.start += greetingSize
	return b, nil
}

// command checks the READY command and returns one that says the same to zmq4.
func (c *connection) command() ([]byte, error) {
	m := message{c: c}
	h, err := m.header()
	if err != nil {
		return nil, err
	}
	if h.flags&flagCommand == 0 || h.flags&flagMore != 0 || h.size > maxCommand {
		return nil, errReady
	}
	size := h.length + int(h.size)
	if err := c.need(size); err != nil {
		return nil, err
	}
	name, body, err := splitCommand(c.buf[c.start+h.length : c.start+size])
	switch {
	case err != nil:
		return nil, err
	case name == zmq4.CmdError:
		return nil, peerError(body)
	case name != zmq4.CmdReady:
		return nil, errReady
	}
	kind, err := publisherType(body)
	if err != nil {
		return nil, err
	}
	c.start += size
	return ready(kind), nil
}

// ready is a READY command of a socket of the given type, spelled as zmq4 looks for it:
// the names of properties are case-insensitive, but only those of one spelling are found.
func ready(kind zmq4.SocketType) []byte {
	const property = "Socket-Type"
	b := append([]byte{byte(len(zmq4.CmdReady))}, zmq4.CmdReady...)
	b = append(append(b, byte(len(property))), property...)
	b = append(binary.BigEndian.AppendUint32(b, uint32(len(kind))), kind...)
	return append([]byte{flagCommand, byte(len(b))}, b...)
}

// splitCommand returns a command's name and body.
func splitCommand(b []byte) (name string, body []byte, err error) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", nil, errCommand
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], nil
}

// peerError makes an error of the body of an ERROR command: a length and a reason.
func peerError(body []byte) error {
	if len(body) == 0 || len(body) < 1+int(body[0]) {
		return errCommand
	}
	return fmt.Errorf("the peer refused the connection: %q", body[1:1+int(body[0])])
}

// publisherType checks READY's properties, and that the socket type among them is one of
// a publisher.
func publisherType(b []byte) (kind zmq4.SocketType, err error) {
	for len(b) > 0 {
		name, rest, ok := cut(b[1:], uint64(b[0]))
		if !ok || len(name) == 0 || len(rest) < 4 {
			return "", errMetadata
		}
		value, rest, ok := cut(rest[4:], uint64(binary.BigEndian.Uint32(rest)))
		if !ok {
			return "", errMetadata
		}
		if bytes.EqualFold(name, []byte("Socket-Type")) {
			kind = zmq4.SocketType(value)
		}
		b = rest
	}
	switch kind {
	case zmq4.Pub, zmq4.XPub:
		return kind, nil
	case zmq4.Router:
		return "", errors.New("the peer is a ROUTER socket, not a publisher: the port behind the ranks' belongs to the engine's self-benchmark")
	}
	return "", fmt.Errorf("the peer is a socket of type %.20q, not a publisher (PUB)", kind)
}

// cut splits b after n bytes.
func cut(b []byte, n uint64) (head, rest []byte, ok bool) {
	if n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}

// pongTimeout bounds an answer to a peer that does not read.
const pongTimeout = 5 * time.Second

// answer acts on a command behind the handshake: it answers a PING, whose sender would
// otherwise drop the connection, and ends on an ERROR. Others have no meaning for a
// subscriber.
func (c *connection) answer(command []byte) error {
	name, body, err := splitCommand(command)
	switch {
	case err != nil:
		return err
	case name == zmq4.CmdError:
		return peerError(body)
	case name != zmq4.CmdPing:
		return nil
	}
	// Behind a time to live of two bytes comes a context of at most 16, to be sent back.
	const ttl, maxContext = 2, 16
	if len(body) < ttl || len(body) > ttl+maxContext {
		return errCommand
	}
	if err := c.SetWriteDeadline(time.Now().Add(pongTimeout)); err != nil {
		return err
	}
	return c.sender.SendCmd(zmq4.CmdPong, body[ttl:])
}
