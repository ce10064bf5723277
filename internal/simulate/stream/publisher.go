package stream

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxPeers    = 256                   // connections of one publisher
	acceptPause = 50 * time.Millisecond // after a connection that could not be accepted
)

// publisher is a PUB socket. Every subscriber has a queue of its own, so that one that
// does not read costs the others nothing; what finds the queue full is lost to it, or is
// waited for.
//
// The library's own PUB socket drops what is queued when it is closed, has a queue
// without bounds, and lets a peer that never greets keep all others out. So only its
// handshake is used.
type publisher struct {
	highWater int
	lossless  atomic.Bool // wait for a queue that is full

	listener net.Listener
	done     sync.WaitGroup

	mu     sync.Mutex
	peers  map[*peer]bool // whether they subscribe
	closed bool

	subscribers atomic.Pointer[[]*peer] // those of peers that do; replaced, never changed
	joined      chan struct{}           // closed when the first subscriber is there
	ending      chan struct{}           // closed by close
}

func newPublisher(listener net.Listener, highWater int, lossless bool) *publisher {
	p := &publisher{
		highWater: highWater, listener: listener,
		peers: map[*peer]bool{}, joined: make(chan struct{}), ending: make(chan struct{}),
	}
	p.lossless.Store(lossless)
	p.subscribers.Store(new([]*peer))
	p.done.Go(p.accept)
	return p
}

func (p *publisher) accept() {
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // a peer that left at once, or a shortage of descriptors
			select {
			case <-p.ending:
			case <-time.After(acceptPause):
			}
			continue
		}
		r := newPeer(conn)
		if !p.add(r) {
			conn.Close()
			continue
		}
		p.done.Go(func() { p.serve(r) })
	}
}

func (p *publisher) add(r *peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.peers) >= maxPeers {
		return false
	}
	p.peers[r] = false
	return true
}

// serve does what a peer's connection asks for, until it ends.
func (p *publisher) serve(r *peer) {
	defer p.drop(r)
	defer r.close()
	if r.conn.handshake() != nil {
		return
	}
	p.done.Go(r.write)
	var buffer [maxFrame]byte
	for {
		flags, body, err := r.conn.frame(buffer[:])
		if err != nil {
			return
		}
		if flags&flagCommand != 0 {
			p.obey(r, body)
		} else if len(body) == 1 { // 1 or 0 and a prefix of topics; ours is empty
			p.subscribe(r, body[0] == 1)
		}
	}
}

// obey does what a command asks for: those of ZMTP 3.1 subscribe, too.
func (p *publisher) obey(r *peer, body []byte) {
	if ping, ok := bytes.CutPrefix(body, []byte("\x04PING")); ok && len(ping) >= 2 {
		r.reply(append([]byte("\x04PONG"), ping[2:]...)) // the context behind the time to live
	}
	switch string(body) {
	case "\x09SUBSCRIBE":
		p.subscribe(r, true)
	case "\x06CANCEL":
		p.subscribe(r, false)
	}
}

func (p *publisher) subscribe(r *peer, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, there := p.peers[r]; !there {
		return
	}
	p.peers[r] = on
	p.list()
	select {
	case <-p.joined:
	default:
		if on {
			close(p.joined)
		}
	}
}

func (p *publisher) drop(r *peer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.peers, r)
	p.list()
}

// list replaces the list of subscribers. The sender goes through it without the lock,
// because it may wait there and others must be able to join and to leave meanwhile.
func (p *publisher) list() {
	var on []*peer
	for r, subscribes := range p.peers {
		if subscribes {
			on = append(on, r)
		}
	}
	p.subscribers.Store(&on)
}

// send queues the bytes of one message for every subscriber and returns for how many there
// was no room. They leave with the next flush at the latest.
func (p *publisher) send(message []byte) (lost int) {
	for _, r := range *p.subscribers.Load() {
		if !r.queue(message, p.highWater, &p.lossless) {
			lost++
		}
	}
	return lost
}

// flush lets what is queued go.
func (p *publisher) flush() {
	for _, r := range *p.subscribers.Load() {
		r.wake()
	}
}

// release ends the waiting for subscribers: from now on what finds no room is lost.
func (p *publisher) release() {
	p.lossless.Store(false)
	for _, r := range *p.subscribers.Load() {
		r.mu.Lock()
		r.change.Broadcast()
		r.mu.Unlock()
	}
}

// close ends the socket. Subscribers have until the deadline to take what is queued for
// them.
func (p *publisher) close(deadline time.Time) {
	p.mu.Lock()
	p.closed = true
	close(p.ending)
	for r, on := range p.peers {
		r.finish(deadline, on)
	}
	p.mu.Unlock()
	p.listener.Close() // an error would be that it is closed
	p.done.Wait()
}

// peer is a connection with the queue of what is to be sent over it.
type peer struct {
	conn *guarded

	mu      sync.Mutex
	change  *sync.Cond // work for the writer, or room for the sender
	pending []byte
	count   int // messages in pending
	ready   bool
	ending  bool // no more to come; what is pending is sent
	gone    bool
}

func newPeer(conn net.Conn) *peer {
	r := &peer{conn: guard(conn)}
	r.change = sync.NewCond(&r.mu)
	return r
}

// queue appends a message. It returns false when there is no room and it is not to wait
// for some.
func (r *peer) queue(message []byte, highWater int, wait *atomic.Bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.count >= highWater && wait.Load() && !r.gone && !r.ending {
		r.ready = true
		r.change.Broadcast()
		r.change.Wait()
	}
	if r.gone || r.ending {
		return true // nobody there to lose it
	}
	if r.count >= highWater {
		return false
	}
	r.pending = append(r.pending, message...)
	r.count++
	if r.count == (highWater+1)/2 {
		r.ready = true
		r.change.Broadcast()
	}
	return true
}

// reply queues a command. A peer that asks faster than it reads gets no answer.
func (r *peer) reply(body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) < 1<<20 {
		r.pending = appendFrame(r.pending, flagCommand, body)
		r.ready = true
		r.change.Broadcast()
	}
}

func (r *peer) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) > 0 {
		r.ready = true
		r.change.Broadcast()
	}
}

// write sends what is queued, all there is at a time, until the end. Then it closes its
// half only: a connection that is closed with something unread in it is reset, and what
// was sent last is lost. The reader ends with the peer's half.
func (r *peer) write() {
	var batch []byte
	for {
		more := false
		if batch, more = r.take(batch[:0]); !more {
			break
		}
		if _, err := r.conn.Write(batch); err != nil {
			r.close()
			return
		}
	}
	if half, ok := r.conn.Conn.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		r.close()
	}
}

// take waits for something to send and exchanges it for an empty buffer. It returns false
// at the end.
func (r *peer) take(empty []byte) (batch []byte, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.ready && !r.ending && !r.gone {
		r.change.Wait()
	}
	if r.gone || len(r.pending) == 0 && r.ending {
		return nil, false
	}
	batch, r.pending, r.count, r.ready = r.pending, empty, 0, false
	r.change.Broadcast()
	return batch, true
}

// finish lets the writer end when it has sent what is queued, or at the deadline. A peer
// that is no subscriber has nothing to wait for.
func (r *peer) finish(deadline time.Time, subscribed bool) {
	r.mu.Lock()
	r.ending = true
	r.change.Broadcast()
	r.mu.Unlock()
	if !subscribed {
		r.close()
	} else if r.conn.SetDeadline(deadline) != nil {
		r.close()
	}
}

// close ends the connection, its reader and its writer.
func (r *peer) close() {
	r.mu.Lock()
	r.gone = true
	r.change.Broadcast()
	r.mu.Unlock()
	r.conn.Close() // once more does no harm
}
