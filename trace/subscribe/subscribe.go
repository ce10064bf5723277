// Package subscribe receives the messages of one forward-pass-metrics publisher for as
// long as it is asked to.
//
// A publisher is a ZeroMQ PUB socket, one for each data-parallel rank of an engine. It may
// not be up yet, die, come back as another worker, or have been something else all along:
// [Subscribe] connects again for ever, with a growing pause, and tells what happens as a
// series of [Event] values. It hands every message to the caller in the order in which the
// publisher sent it, or says as an event that it refused one unread.
//
// # Why not a zmq4 socket
//
// The handshake and the commands are those of github.com/go-zeromq/zmq4, over a connection
// of ours; the frames behind the handshake are read here. A zmq4 socket allocates as many
// bytes as a frame's header claims, collects frames for as long as a peer says that more
// follow, waits for ever for a handshake, leaves a PING unanswered, and needs five times
// the CPU for a message. It reads into a channel from a goroutine that the caller cannot
// stop. A registered transport under a socket mends most of this, but the copies and the
// channel remain, and it has to follow the framing anyway, in order to cap it.
//
// # What a peer can do
//
// It cannot make memory grow, keep a descriptor or a goroutine, end the subscription, or
// cause more than some connections a second. A connection has a buffer of its own of 32
// KiB, which is all that it has for the usual messages. A message that is larger is read
// into one that is borrowed from a [Pool], and its peers have no more than the pool,
// however many they are: a message that gets no buffer, or keeps one from others, is read
// over and told as [Crowded]. One that must be refused whatever comes, for a frame above
// [wire.MaxFrame] or since its frames are not the three that a message has, is skipped
// without being buffered, up to a bound; beyond it the connection is dropped.
package subscribe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fpm-project/fpm/trace/wire"
)

// Options say how to subscribe. The zero value of every field but OnMessage is a sensible
// choice.
type Options struct {
	// OnMessage gets the frames of each message and the time at which it was read from the
	// kernel. The frames are only valid during the call: the next message is read into the
	// same memory. It must not block, or the publisher drops messages.
	OnMessage func(frames [][]byte, at time.Time)
	// OnEvent, when set, gets what else happens. OnMessage and OnEvent are called from the
	// goroutine of Subscribe, never at the same time.
	OnEvent func(Event)
	// RetryMin and RetryMax bound the pause between two connections: 100 ms and 5 s.
	RetryMin, RetryMax time.Duration
	// ConnectTimeout bounds a connection's set-up and again its handshake: 3 s, so that a
	// peer which accepts and says nothing is reported as silent when it is.
	ConnectTimeout time.Duration
	// SilentAfter is the silence that is reported: 3 s, since publishers send once a second.
	SilentAfter time.Duration
	// BufferSize is what a connection keeps for messages, in bytes: 32 KiB, some 50 messages a
	// system call, and at least [MinBuffer].
	BufferSize int
	// Pool has the buffers for messages that are larger; nil makes one of one buffer.
	// Subscriptions that share a pool share its bound of memory.
	Pool *Pool
	// Dial replaces the network, for tests. The network is tcp or unix.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// withDefaults returns the options with every field set.
func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&o.RetryMin, 100*time.Millisecond)
	set(&o.RetryMax, 5*time.Second)
	set(&o.ConnectTimeout, 3*time.Second)
	set(&o.SilentAfter, 3*time.Second)
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	if o.BufferSize == 0 {
		o.BufferSize = 32 << 10
	}
	o.BufferSize = max(o.BufferSize, MinBuffer)
	if o.Pool == nil {
		o.Pool = NewPool(1)
	}
	return o
}

// Subscribe receives the messages of an endpoint until ctx is done, and returns its cause.
// No failure of the endpoint ends it. The only other error is that of an endpoint which
// [ParseEndpoint] would have refused.
func Subscribe(ctx context.Context, endpoint Endpoint, options Options) error {
	if options.OnMessage == nil {
		return errors.New("subscribe: OnMessage is not set")
	}
	targets, err := endpoint.targets()
	if err != nil {
		return err
	}
	s := newSubscription(endpoint, options.withDefaults(), targets)
	for ctx.Err() == nil {
		failed := s.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		s.pause(ctx, failed)
	}
	return context.Cause(ctx)
}

// subscription is the state of one endpoint across its connections.
type subscription struct {
	Options
	endpoint Endpoint
	targets  []target
	retry    backoff
	silence  silence
	attempts int   // connections that failed since the last one that stood
	last     error // why there is no connection
}

func newSubscription(endpoint Endpoint, o Options, targets []target) *subscription {
	s := &subscription{Options: o, endpoint: endpoint, targets: targets,
		retry: backoff{min: o.RetryMin, max: o.RetryMax}}
	s.silence = silence{after: o.SilentAfter, since: time.Now()}
	return s
}

// emit sends an event with what all of them have.
func (s *subscription) emit(e Event) {
	e.Endpoint = s.endpoint
	if e.At.IsZero() {
		e.At = time.Now()
	}
	s.OnEvent(e)
}

// connect tries the endpoint's addresses and receives from the first that answers until
// the connection ends. It returns the event that tells of the end, for pause to complete.
// All addresses are tried at once so that a second form of a name costs no delay.
func (s *subscription) connect(ctx context.Context) Event {
	var failed error
	for i, t := range s.targets {
		c, err := s.open(ctx, t)
		if err != nil {
			failed = both(failed, err)
			continue
		}
		// The form that answered is tried first from now on.
		s.targets[0], s.targets[i] = s.targets[i], s.targets[0]
		return s.receive(c, t)
	}
	s.attempts++
	return Event{Kind: Failed, Err: failed, Attempt: s.attempts}
}

// both joins the errors of two addresses on one line.
func both(a, b error) error {
	if a == nil {
		return b
	}
	return fmt.Errorf("%w; %w", a, b)
}

// open connects to a target and completes the handshake.
func (s *subscription) open(ctx context.Context, t target) (*connection, error) {
	within, cancel := context.WithTimeout(ctx, s.ConnectTimeout)
	defer cancel()
	raw, err := s.Dial(within, t.network, t.address)
	if err != nil {
		return nil, err
	}
	if reachedItself(raw) {
		_ = raw.Close() // nobody is at its other end
		return nil, fmt.Errorf("%s: %w", t.shown, errSelf)
	}
	c := newConnection(ctx, raw, s.Options)
	if err := c.handshake(time.Now().Add(s.ConnectTimeout)); err != nil {
		c.close()
		return nil, fmt.Errorf("%s: %w", t.shown, err)
	}
	return c, nil
}

// errSelf tells of a connection to a free port of this host that the kernel chose as the
// local port too: TCP then connects a socket to itself, and the port is lost to the
// publisher that should bind it.
var errSelf = errors.New("nobody listens: the connection reached its own end, as happens on ports of the ephemeral range")

func reachedItself(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return false
	}
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && local.Port == remote.Port && local.IP.Equal(remote.IP)
}

// receive hands on what a connection brings until it ends.
func (s *subscription) receive(c *connection, t target) Event {
	defer c.close()
	begin := time.Now()
	s.attempts, s.last = 0, nil
	s.silence.connected(begin)
	s.emit(Event{Kind: Connected, Address: t.shown, At: begin})
	messages, err := s.messages(c)
	lasted := time.Since(begin)
	if messages > 0 && lasted >= healthyAfter {
		s.retry.reset()
	}
	return Event{Kind: Disconnected, Address: t.shown, Err: err, For: lasted}
}

// healthyAfter is how long a connection that brought messages must have stood before the
// next pause is short again. Without it a peer that sends one message and closes would be
// connected to ten times a second.
const healthyAfter = time.Second

// messages hands on the messages of a connection and returns their number and what ended
// it.
func (s *subscription) messages(c *connection) (n int, err error) {
	c.idle = s.idle
	if err := s.listen(c); err != nil {
		return 0, err
	}
	for {
		frames, refusal, err := c.next()
		if refusal != nil {
			s.refuse(refusal, c.at)
		}
		if err != nil {
			return n, err
		}
		n++
		if s.silence.broken(c.at) {
			s.emit(Event{Kind: Recovered, At: c.at})
			if err := s.listen(c); err != nil {
				return n, err
			}
		}
		if refusal == nil {
			s.OnMessage(frames, c.at)
		}
	}
}

// refuse tells of a message that is not handed on.
func (s *subscription) refuse(why error, at time.Time) {
	kind := Refused
	if errors.Is(why, errTaken) {
		kind = Crowded
	}
	s.emit(Event{Kind: kind, Err: why, At: at})
}

// listen sets the deadline after which a connection counts as silent. It is not moved by
// each message, which would cost more than the message's own parsing: when it passes, idle
// tells whether there was a message meanwhile.
func (s *subscription) listen(c *connection) error {
	at, _ := s.silence.deadline(c.at)
	return c.SetReadDeadline(at)
}

// idle is called when nothing came before the deadline that it returned last. It returns
// the next one, zero for none.
func (s *subscription) idle(now time.Time) time.Time {
	if at, due := s.silence.deadline(now); !due {
		return at
	}
	s.reportSilence(now)
	return time.Time{}
}

// reportSilence says once that an episode of silence has begun.
func (s *subscription) reportSilence(now time.Time) {
	s.emit(Event{Kind: Silent, At: now, For: now.Sub(s.silence.since), Err: s.last, Cause: s.silence.report(s.targets[0].network, s.last)})
}

// pause tells of the end of a connection or of an attempt, and waits for the next one.
func (s *subscription) pause(ctx context.Context, e Event) {
	delay := s.retry.next()
	e.RetryIn = delay
	s.last = e.Err
	s.silence.disconnected()
	s.emit(e)
	end := time.NewTimer(delay)
	defer end.Stop()
	silent := time.NewTimer(s.untilSilent())
	defer silent.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			return
		case now := <-silent.C:
			s.reportSilence(now)
		}
	}
}

// untilSilent returns the time until silence is to be reported while there is no
// connection; long when it has been.
func (s *subscription) untilSilent() time.Duration {
	now := time.Now()
	at, due := s.silence.deadline(now)
	switch {
	case due:
		return 0
	case at.IsZero():
		return time.Hour
	}
	return at.Sub(now)
}

// maxSkipped is how many bytes of refused frames are skipped in one message before the
// connection is dropped: reading costs CPU, connecting again costs messages.
const maxSkipped = 64 * wire.MaxFrame
