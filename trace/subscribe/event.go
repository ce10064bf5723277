package subscribe

import (
	"fmt"
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
)

var kindNames = [...]string{"connected", "failed", "disconnected", "silent", "recovered", "refused"}

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
	Err      error         // of Failed, Disconnected and Refused; of Silent without a connection
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

// report marks the episode as reported and returns the likely causes.
func (s *silence) report() string {
	if !s.online {
		s.toldOffline = true
		return "there is no connection: the worker may not be up yet or may have stopped, its port base may be another one " +
			"(DYN_FORWARDPASS_METRIC_PORT), this rank may be on another host, or the engine publishes in-process only (TensorRT-LLM, mocker)"
	}
	s.toldOnline = true
	if s.everReceived {
		return "publishers send a heartbeat every second when idle: the engine may hang, be in a very long forward pass (SGLang sends no " +
			"heartbeats during one), or its host may be gone"
	}
	return "connected, but nothing was published: the engine may be in its start-up self-benchmark, which is silent for up to 15 minutes, " +
		"or forward-pass metrics may be off in this worker"
}
