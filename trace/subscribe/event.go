package subscribe

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Kind is what an event tells of.
type Kind uint8

// The kinds of events.
const (
	// Connected: the handshake is complete and the subscription sent.
	Connected Kind = iota
	// Failed: no address of the endpoint could be connected to. Err says why, Attempt how
	// many times in a row, RetryIn when it is tried again.
	Failed
	// Disconnected: a connection ended after For. Err says why, RetryIn when it is tried
	// again. Messages that the publisher sent until then may be lost.
	Disconnected
	// Silent: nothing was received for some seconds; once for each episode. For is the time
	// since the last message, the connection or the start, and Cause says what it may be.
	Silent
	// Recovered: the first message after a Silent event.
	Recovered
	// Refused: a message was not handed on, since its size or the number of its frames is
	// beyond what is buffered. Err is a *[wire.RejectError] with the reason to count.
	Refused
	// Crowded: a large message was read over, since the buffers of the [Pool] were taken, or
	// wanted by others while it did not become complete. Nothing is known to be wrong with it.
	Crowded
)

var kindNames = [...]string{"connected", "failed", "disconnected", "silent", "recovered", "refused", "crowded"}

// String returns the kind's name in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Event tells of a change of an endpoint.
type Event struct {
	Kind     Kind
	Endpoint Endpoint
	At       time.Time
	Address  string        // the address that is or was connected
	Err      error         // of Failed, Disconnected, Refused and Crowded; of Silent without a connection
	Cause    string        // of Silent: likely causes, as a sentence for people
	For      time.Duration // of Silent and Disconnected
	RetryIn  time.Duration // of Failed and Disconnected
	Attempt  int           // of Failed, from 1
}

// silence finds episodes of silence. An episode begins when nothing was received for some
// time after the last message, after a connection was made, or after the start. It is
// reported once without a connection and once with one, and ends with a message.
type silence struct {
	after        time.Duration
	since        time.Time // the last message or connection, or the start
	online       bool
	everReceived bool
	toldOffline  bool
	toldOnline   bool
}

// connected begins to wait for a first message.
func (s *silence) connected(at time.Time) {
	s.online, s.since, s.everReceived = true, at, false
}

func (s *silence) disconnected() { s.online = false }

// broken notes a message and tells whether it ends an episode.
func (s *silence) broken(at time.Time) bool {
	ends := s.toldOnline || s.toldOffline
	s.since, s.everReceived = at, true
	s.toldOnline, s.toldOffline = false, false
	return ends
}

// told tells whether the present episode has been reported.
func (s *silence) told() bool {
	if s.online {
		return s.toldOnline
	}
	return s.toldOffline
}

// deadline returns when silence would have to be reported, zero for never, and whether
// that is now.
func (s *silence) deadline(now time.Time) (at time.Time, due bool) {
	if s.told() {
		return time.Time{}, false
	}
	at = s.since.Add(s.after)
	return at, !now.Before(at)
}

// report marks the episode as reported and returns the likely causes. Without a connection
// they are those of the error.
func (s *silence) report(network string, err error) string {
	if !s.online {
		s.toldOffline = true
		return offline(network, err)
	}
	s.toldOnline = true
	if s.everReceived {
		return "publishers send a heartbeat every second when idle: the engine may hang, be in a very long forward pass (SGLang sends no " +
			"heartbeats during one), or its host may be gone"
	}
	return "connected, but nothing was published: the engine may be in its start-up self-benchmark, which is silent for up to 15 minutes, " +
		"or forward-pass metrics may be off in this worker"
}

// offline returns the likely causes of an error for which there is no connection.
func offline(network string, err error) string {
	const worker = "the worker may not be up yet or may have stopped, "
	const others = "this rank may be on another host, or the engine publishes in-process only (TensorRT-LLM, mocker)"
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &name):
		return "the host's name may be wrong, or the name service out of reach"
	case errors.Is(err, syscall.ECONNREFUSED) && network == "tcp", errors.Is(err, errSelf):
		return worker + "its port base may be another one (DYN_FORWARDPASS_METRIC_PORT), " + others
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return worker + "its socket may have another base path, " + others
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return "this user may not connect to it: look at the permissions of the socket and its directory"
	case errors.Is(err, errMute):
		return "another program may have the port"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "the host may be down or another one, or a firewall is in between"
	default:
		return "the worker may have stopped, or another program has the address"
	}
}

// Reason says in a line why there is no connection, without the address: that stands
// beside it, and of two addresses that fail for one reason the reason is said once.
func Reason(err error) string {
	causes := []error{err}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		causes = several.Unwrap()
	}
	var texts []string
	for _, cause := range causes {
		var system syscall.Errno
		switch {
		case cause == nil:
			continue
		case errors.As(cause, &system):
			cause = system
		}
		if said := cause.Error(); !slices.Contains(texts, said) {
			texts = append(texts, said)
		}
	}
	return strings.Join(texts, "; ")
}
