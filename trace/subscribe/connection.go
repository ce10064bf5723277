package subscribe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/go-zeromq/zmq4"

	"github.com/fpm-project/fpm/trace/wire"
)

// Sizes of the buffer and bounds of what a peer may send.
const (
	bufferSize  = 32 << 10                           // some 50 messages a system call
	maxBuffered = wire.FrameCount*wire.MaxFrame + 64 // the longest message that is handed on
	maxKept     = 16                                 // frames of a message that are handed on
	maxFrames   = 4096                               // frames of a message that are skipped
	maxCommand  = 8 << 10                            // a command's body: READY has some 50 bytes
)

// Flags of a frame.
const (
	flagMore     = 1
	flagLong     = 2
	flagCommand  = 4
	flagReserved = 0xff &^ (flagMore | flagLong | flagCommand)
)

// span is a frame as an offset from the message's first byte: the buffer may move while
// the rest of the message is read.
type span struct{ from, to int }

// connection reads ZMTP from a peer into one buffer.
type connection struct {
	net.Conn
	stop   func() bool // ends the watch over the context
	sender *zmq4.Conn  // writes commands; nil before the handshake

	buf        []byte
	start, end int           // what was read and not yet consumed
	at         time.Time     // when buf was last filled
	took       time.Duration // the time between the last two reads
	came       int           // bytes of the last read
	drained    bool          // the last read took all that there was
	fresh      int           // messages since the last read
	// idle is asked for the next read deadline when one has passed; nil while a deadline
	// is an error.
	idle func(now time.Time) time.Time

	spans  []span
	frames [][]byte
}

// newConnection owns c and closes it when the context is done.
func newConnection(ctx context.Context, c net.Conn) *connection {
	return &connection{
		Conn: c,
		// Close is the only way to wake a read; its error is that of the read.
		stop: context.AfterFunc(ctx, func() { _ = c.Close() }),
		buf:  make([]byte, bufferSize),
	}
}

func (c *connection) close() {
	c.stop()
	// The connection is done with; whether the peer learns of it properly changes nothing.
	_ = c.Conn.Close()
}

// need makes n bytes from start available.
func (c *connection) need(n int) error {
	for c.end-c.start < n {
		if err := c.fill(n); err != nil {
			return err
		}
	}
	return nil
}

// fill reads once, after it has made room for n bytes from start.
func (c *connection) fill(n int) error {
	switch {
	case c.start == c.end:
		c.start, c.end = 0, 0
		if len(c.buf) > bufferSize && n <= bufferSize {
			c.buf = make([]byte, bufferSize) // a rare giant need not stay
		}
	case c.start+n > len(c.buf):
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
	}
	if n > len(c.buf) {
		grown := make([]byte, max(n, min(2*len(c.buf), maxBuffered)))
		c.end = copy(grown, c.buf[c.start:c.end])
		c.start, c.buf = 0, grown
	}
	read, err := c.read(c.buf[c.end:])
	c.end += read
	return err
}

// gather is how long messages may gather in the kernel. At thousands a second, waking for
// each costs three times what is done with it; below one in this time nothing waits.
const gather = 10 * time.Millisecond

// gathered is how much may: what the kernel keeps for a connection is more, of a Unix
// domain socket, too, so that the peer's own queue does not begin to fill.
const gathered = 192 << 10

// wait lets messages gather when those of the last read came in quick succession, were all
// that there was, and are so slow that what gathers fits into the kernel's: a faster peer
// gathers enough by itself, and its own queue must not fill. Arrival times are late by no
// more than the wait.
func (c *connection) wait() {
	quick := c.took < gather*time.Duration(c.fresh)
	fits := time.Duration(c.came)*gather < gathered*c.took
	if c.drained && quick && fits {
		time.Sleep(gather)
	}
	c.fresh = 0
}

// read reads at least a byte. A deadline that passes is a question to idle, not an end.
func (c *connection) read(p []byte) (int, error) {
	c.wait()
	for {
		n, err := c.Conn.Read(p)
		now := time.Now()
		c.took, c.at, c.came, c.drained = now.Sub(c.at), now, n, n < len(p)
		switch {
		case n > 0:
			return n, nil // an error comes again
		case errors.Is(err, os.ErrDeadlineExceeded) && c.idle != nil:
			if err := c.SetReadDeadline(c.idle(c.at)); err != nil {
				return 0, err
			}
		case err != nil:
			return 0, err
		}
	}
}

// Errors of peers that leave the protocol.
var (
	errFlags   = errors.New("the peer sent a frame with unknown flags; this is not ZMTP")
	errCommand = errors.New("the peer sent a malformed command; this is not ZMTP")
	errCut     = fmt.Errorf("the connection ended within a message: %w", io.ErrUnexpectedEOF)
	errEndless = fmt.Errorf("the peer sent a message of more than %d frames", maxFrames)
	errHuge    = fmt.Errorf("the peer sent a message of more than %d bytes", maxSkipped)
)

// next returns the next message. A refusal comes instead of frames when the message was
// skipped, or with an error when it could not be skipped.
func (c *connection) next() (frames [][]byte, refusal *wire.RejectError, err error) {
	m := message{c: c}
	c.spans = c.spans[:0]
	for more := true; more; {
		if more, err = m.frame(); err != nil {
			return nil, m.refusal(), m.ended(err)
		}
	}
	m.whole = true
	if refusal = m.refusal(); refusal != nil {
		return nil, refusal, nil
	}
	c.frames = c.frames[:0]
	for _, s := range c.spans {
		c.frames = append(c.frames, c.buf[c.start+s.from:c.start+s.to:c.start+s.to])
	}
	c.start += m.size
	c.fresh++
	return c.frames, nil, nil
}

// message is a message that is being read.
type message struct {
	c       *connection
	size    int    // bytes from start on that belong to it, when it is kept
	count   int    // frames
	total   uint64 // bytes of frames, headers included, kept or skipped
	skipped bool   // nothing is kept
	largest uint64 // the largest frame
	begun   bool   // some byte of it has come
	whole   bool   // all of its frames have
}

// frame reads a frame and tells whether more follow.
func (m *message) frame() (more bool, err error) {
	h, err := m.header()
	if err != nil {
		return false, err
	}
	if h.flags&flagCommand != 0 {
		return true, m.command(h)
	}
	m.count++
	m.total += uint64(h.length) + min(h.size, 1<<62)
	m.largest = max(m.largest, h.size)
	if h.size > wire.MaxFrame || m.count > maxKept || m.total > maxBuffered {
		m.skip()
	}
	if m.skipped {
		err = m.discard(h)
	} else {
		err = m.keep(h)
	}
	return h.flags&flagMore != 0, err
}

// header is a frame's first bytes.
type header struct {
	flags  byte
	length int // of the header itself
	size   uint64
}

// header reads the next frame's header without consuming it.
func (m *message) header() (h header, err error) {
	c := m.c
	if err := c.need(m.size + 2); err != nil {
		m.begun = m.count > 0 || c.end > c.start
		return h, err
	}
	m.begun = true
	b := c.buf[c.start+m.size:]
	h = header{flags: b[0], length: 2, size: uint64(b[1])}
	if h.flags&flagReserved != 0 {
		return h, errFlags
	}
	if h.flags&flagLong != 0 {
		h.length = 9
		if err := c.need(m.size + 9); err != nil {
			return h, err
		}
		h.size = binary.BigEndian.Uint64(c.buf[c.start+m.size+1:])
	}
	return h, nil
}

// keep buffers a frame.
func (m *message) keep(h header) error {
	from := m.size + h.length
	to := from + int(h.size)
	if err := m.c.need(to); err != nil {
		return err
	}
	m.c.spans = append(m.c.spans, span{from, to})
	m.size = to
	return nil
}

// skip gives up what was kept: from now on frames are only counted.
func (m *message) skip() {
	if !m.skipped {
		m.skipped = true
		m.c.start += m.size
		m.size = 0
	}
}

// discard reads over a frame.
func (m *message) discard(h header) error {
	switch {
	case m.total > maxSkipped:
		return errHuge
	case m.count > maxFrames:
		return errEndless
	}
	c := m.c
	c.start += h.length
	for left := int(h.size); left > 0; {
		if c.start == c.end {
			if err := c.fill(1); err != nil {
				return err
			}
		}
		n := min(left, c.end-c.start)
		c.start += n
		left -= n
	}
	return nil
}

// command reads a command, which may stand between the frames of a message, and answers
// it.
func (m *message) command(h header) error {
	if h.flags&flagMore != 0 || h.size == 0 || h.size > maxCommand {
		return errCommand
	}
	c := m.c
	from := m.size + h.length
	to := from + int(h.size)
	if err := c.need(to); err != nil {
		return err
	}
	m.total += uint64(to - m.size)
	if m.total > maxBuffered {
		m.skip() // or a message full of commands would grow for ever
		from, to = h.length, h.length+int(h.size)
	}
	err := c.answer(c.buf[c.start+from : c.start+to])
	if m.count == 0 || m.skipped {
		c.start += to
		m.begun = false
	} else {
		m.size = to
	}
	return err
}

// refusal says why the message was not kept. The number of frames comes first, as in
// [wire.Decoder.Decode]; of a message that was not read to its end it may still be right.
func (m *message) refusal() *wire.RejectError {
	fits := m.count == wire.FrameCount || m.count < wire.FrameCount && !m.whole
	switch {
	case !m.skipped:
		return nil
	case m.largest > wire.MaxFrame && fits:
		return &wire.RejectError{Reason: wire.TooLarge,
			Message: fmt.Sprintf("a frame has %d bytes; at most %d are read", m.largest, wire.MaxFrame)}
	}
	more := " or more"
	if m.whole {
		more = ""
	}
	return &wire.RejectError{Reason: wire.Frames,
		Message: fmt.Sprintf("%d%s instead of %d frames (topic, sequence, payload)", m.count, more, wire.FrameCount)}
}

// ended tells an end between two messages from one within.
func (m *message) ended(err error) error {
	if errors.Is(err, io.EOF) && m.begun {
		return errCut
	}
	return err
}
