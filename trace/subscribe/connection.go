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
	maxBuffered = wire.FrameCount*wire.MaxFrame + 64 // the longest message that is handed on
	maxKept     = 16                                 // frames of a message that are handed on
	maxFrames   = 4096                               // frames of a message that are skipped
	maxCommand  = 8 << 10                            // a command's body: READY has some 50 bytes
)

// MinBuffer is the smallest buffer of a connection, in bytes: a command has room in it.
const MinBuffer = 2 * maxCommand

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

// connection reads ZMTP from a peer into one buffer: its own, or for a message that is too
// large for it one of a pool.
type connection struct {
	net.Conn
	ctx    context.Context
	pool   *Pool
	stop   func() bool // ends the watch over the context
	sender *zmq4.Conn  // writes commands; nil before the handshake

	own        []byte
	buf        []byte        // own, or borrowed
	borrowed   time.Time     // since when; zero while buf is own
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
func newConnection(ctx context.Context, c net.Conn, o Options) *connection {
	own := make([]byte, o.BufferSize)
	return &connection{
		Conn: c, ctx: ctx, pool: o.Pool, own: own, buf: own,
		// Close is the only way to wake a read; its error is that of the read.
		stop: context.AfterFunc(ctx, func() { _ = c.Close() }),
	}
}

func (c *connection) close() {
	c.stop()
	c.start = c.end // what is left nobody wants
	c.giveBack()
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
	if c.start == c.end {
		c.start, c.end = 0, 0
	}
	if n <= len(c.own) {
		c.giveBack()
	}
	switch {
	case n > len(c.buf):
		if err := c.grow(n); err != nil {
			return err
		}
	case c.start+n > len(c.buf):
		c.end = copy(c.buf, c.buf[c.start:c.end])
		c.start = 0
	}
	room := c.buf[c.end:]
	if c.isBorrowed() {
		room = c.buf[c.end : c.start+n] // nothing of the next message, so that it can be given back
	}
	read, err := c.read(room)
	c.end += read
	return err
}

func (c *connection) isBorrowed() bool { return !c.borrowed.IsZero() }

// grow moves to a buffer of the pool in which there is room for n bytes.
func (c *connection) grow(n int) error {
	large := c.buf
	if !c.isBorrowed() {
		var err error
		if large, err = c.pool.borrow(c.ctx); err != nil {
			return err
		}
		c.borrowed = time.Now()
	}
	if len(large) < n {
		large = make([]byte, largeSize(n))
	}
	c.end = copy(large, c.buf[c.start:c.end])
	c.start, c.buf = 0, large
	return c.SetReadDeadline(c.deadline(c.borrowed))
}

// giveBack moves back to the connection's own buffer when what is left has room there.
func (c *connection) giveBack() {
	if !c.isBorrowed() || c.end-c.start > len(c.own) {
		return
	}
	large := c.buf
	c.end = copy(c.own, large[c.start:c.end])
	c.start, c.buf, c.borrowed = 0, c.own, time.Time{}
	c.pool.giveBack(large)
}

// deadline returns when read is to look at what it waits for.
func (c *connection) deadline(now time.Time) time.Time {
	at := c.idle(now)
	if hold := now.Add(holdFor); c.isBorrowed() && (at.IsZero() || hold.Before(at)) {
		return hold
	}
	return at
}

// overdue tells whether to give up the message that is being read, for those who wait for
// its buffer.
func (c *connection) overdue(now time.Time) bool {
	return c.isBorrowed() && now.Sub(c.borrowed) >= holdFor && c.pool.wanted()
}

// gather is how long messages may gather in the kernel when they come, on average, less
// than quick behind each other. At thousands a second, waking for each costs three times
// what is done with it; the passes of an engine are slower, and none of them waits.
const (
	gather = 20 * time.Millisecond
	quick  = time.Millisecond
)

// gathered is how much may: what the kernel keeps for a connection is more, of a Unix
// domain socket, too, so that the peer's own queue does not begin to fill.
const gathered = 192 << 10

// wait lets messages gather when those of the last read came in quick succession, were all
// that there was, and are so slow that what gathers fits into the kernel's: a faster peer
// gathers enough by itself, and its own queue must not fill. Arrival times are late by no
// more than the wait.
func (c *connection) wait() {
	often := c.took < quick*time.Duration(c.fresh)
	fits := time.Duration(c.came)*gather < gathered*c.took
	if c.drained && often && fits {
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
			if c.overdue(now) {
				return 0, errTaken
			}
			if err := c.SetReadDeadline(c.deadline(now)); err != nil {
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
// skipped, or with an error when it could not be skipped: a *[wire.RejectError], or errTaken.
func (c *connection) next() (frames [][]byte, refusal, err error) {
	m := message{c: c}
	c.spans = c.spans[:0]
	for more := true; more; {
		if more, err = m.frame(); err != nil {
			if m.spared && m.fits() && m.largest <= wire.MaxFrame {
				return nil, nil, m.ended(err) // it never came whole
			}
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
	spared  bool   // because there was no buffer for it, or it was not worth one
	largest uint64 // the largest frame
	second  uint64 // the size of the second frame
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
	if m.count == sequenceFrame {
		m.second = h.size
	}
	if !m.skipped && m.futile(h) {
		m.spare()
	}
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

// The sequence is the second frame, and has 8 bytes.
const sequenceFrame, sequenceSize = 2, 8

// futile tells whether a frame that needs a buffer of the pool is not worth one, since the
// message is refused whatever else is in it.
func (m *message) futile(h header) bool {
	if uint64(m.size+h.length)+h.size <= uint64(len(m.c.own)) {
		return false
	}
	last := h.flags&flagMore == 0
	return m.count > wire.FrameCount || last != (m.count == wire.FrameCount) || m.count == sequenceFrame && h.size != sequenceSize
}

// fits tells whether the message has the right number of frames, or may still come to it.
func (m *message) fits() bool {
	return m.count == wire.FrameCount || m.count < wire.FrameCount && !m.whole
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
	if err := m.need(2); err != nil {
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
		if err := m.need(9); err != nil {
			return h, err
		}
		h.size = binary.BigEndian.Uint64(c.buf[c.start+m.size+1:])
	}
	return h, nil
}

// need makes n bytes behind what is kept available. When there is no buffer for so many,
// what is kept is given up for them.
func (m *message) need(n int) error {
	err := m.c.need(m.size + n)
	if errors.Is(err, errTaken) {
		m.spare()
		err = m.c.need(n)
	}
	return err
}

// keep buffers a frame.
func (m *message) keep(h header) error {
	from := m.size + h.length
	to := from + int(h.size)
	if err := m.c.need(to); errors.Is(err, errTaken) {
		m.spare()
		return m.discard(h)
	} else if err != nil {
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
		m.c.giveBack()
	}
}

// spare gives the message up for want of a buffer, or since it is not worth one.
func (m *message) spare() {
	m.spared = true
	m.skip()
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
	if err := m.need(h.length + int(h.size)); err != nil {
		return err
	}
	from := m.size + h.length
	to := from + int(h.size)
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

// refusal says why the message was not kept. The order is that of [wire.Decoder.Decode], so
// the number of frames comes first; that of a message which was not read to its end may
// still be right.
func (m *message) refusal() error {
	switch {
	case !m.skipped:
		return nil
	case m.largest > wire.MaxFrame && m.fits():
		return &wire.RejectError{Reason: wire.TooLarge,
			Message: fmt.Sprintf("a frame has %d bytes; at most %d are read", m.largest, wire.MaxFrame)}
	case m.count == wire.FrameCount && m.second != sequenceSize:
		return &wire.RejectError{Reason: wire.Sequence,
			Message: fmt.Sprintf("the sequence frame has %d bytes instead of %d", m.second, sequenceSize)}
	case m.spared && m.fits():
		return errTaken
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
