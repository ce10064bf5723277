// Package wire judges what a forward-pass-metrics publisher puts on its ZeroMQ stream
// and turns it into the row that a trace keeps.
//
// A publisher, one for each data-parallel rank of an engine, sends a message after every
// forward pass: an empty topic, an 8-byte big-endian sequence number, and a MessagePack
// map that describes the pass. The map names the worker and the rank, carries the
// sequence number once more as counter_id, says how long the pass took (wall_time) and
// what was scheduled and queued. A publisher with nothing to say sends a heartbeat of
// zeros once a second.
//
// A [Decoder] reads such a message in one go: it checks everything that a row of a trace
// promises, gives the fields that a recorder needs as an [FPM], and renders the payload
// as JSON with its keys in their order and its integers and floats as what they are. Keys
// that nobody knows pass through. A message that is not fit for a trace is refused with
// a [RejectError] that names one [Reason], the first that fits in a fixed order, so that
// refusals can be counted. [AppendRow] makes the line of the trace.
//
// Payloads come from other machines and may be anything. Decoding never panics, never
// allocates by a size that the payload merely claims, and is linear in its length but for
// the sorting of its unknown keys.
package wire

import "fmt"

// Limits of a message. More is refused.
const (
	// FrameCount is the number of frames of a message: topic, sequence, payload.
	FrameCount = 3
	// MaxFrame is the largest frame in bytes. A busy publisher sends some 600.
	MaxFrame = 1 << 20
	// MaxDepth is the deepest nesting of maps and arrays in a payload. A pass needs two;
	// common JSON readers stop at 128, and the row adds two levels.
	MaxDepth = 100
)

// Reason is why a message is not written to a trace. The order is the precedence: a
// message is counted under the first reason that fits.
type Reason uint8

// The reasons, by precedence.
const (
	Frames      Reason = iota // not exactly three frames
	TooLarge                  // a frame above MaxFrame
	Sequence                  // the second frame has not 8 bytes
	MessagePack               // not decodable wholly into what JSON can hold
	NotMap                    // decodable, but not a map
	Version                   // version is not the integer 1
	Field                     // a field is missing or breaks its rule
	reasonCount
)

// reasonNames are the names under which refusals are counted.
var reasonNames = [reasonCount]string{"frames", "too-large", "sequence", "msgpack", "not-a-map", "version", "field"}

// String returns the name under which refusals are counted: frames, too-large, sequence,
// msgpack, not-a-map, version or field.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// Reasons returns all reasons by precedence.
func Reasons() []Reason {
	all := make([]Reason, reasonCount)
	for i := range all {
		all[i] = Reason(i)
	}
	return all
}

// RejectError says why a message is refused.
type RejectError struct {
	Reason Reason
	// Message says what was found and what was expected. It may quote the peer: escape it
	// before it goes to a terminal.
	Message string
}

// Error returns the reason's name and the message.
func (e *RejectError) Error() string { return e.Reason.String() + ": " + e.Message }

func reject(reason Reason, format string, args ...any) *RejectError {
	return &RejectError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Load is what a pass had scheduled, or what waited in the queue behind it. Counts keep
// their full 64 bits.
type Load struct {
	NumPrefillRequests uint64
	SumPrefillTokens   uint64  // without cached and earlier chunks
	VarPrefillLength   float64 // population variance of the prompts' lengths, tokens²
	SumPrefillKVTokens uint64  // of scheduled requests only; 0 for queued ones
	NumDecodeRequests  uint64
	SumDecodeKVTokens  uint64
	VarDecodeKVTokens  float64 // population variance, tokens²
}

// FPM is one forward pass as its publisher describes it.
type FPM struct {
	WorkerID  string // may be empty
	DPRank    int64  // global data-parallel rank, at least 0
	CounterID int64  // number of the message since the publisher started; equals the sequence frame
	// WallTime is the time the pass took in seconds. Publishers measure different things
	// (between outputs, on the device); it is comparable within one producer only.
	WallTime          float64
	Scheduled, Queued Load
	// JSON is the whole payload as one JSON object without newlines. It lies in the buffer
	// that was given to Decode.
	JSON []byte
}

// Heartbeat tells whether the message only says that its publisher is alive: nothing
// scheduled, nothing queued, no time spent.
func (f *FPM) Heartbeat() bool {
	return f.WallTime == 0 && f.Scheduled == Load{} && f.Queued == Load{}
}
