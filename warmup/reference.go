package warmup

import (
	"math"
	"strconv"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Reference is how a measurement refers to the ledger of its rank, packed: a run has one
// for each point and rank, and ledgers are known only after all of them were read.
type Reference struct {
	Before  int32 // packed warmup_records_before
	Forward int64 // packed first raw forward_index
}

// Values of Before that are no count, and of Forward that is no index.
const (
	beforeNull    = -1 // null or absent
	beforeUnsound = -2 // anything else but an integer of at least 0
	beforeNothing = -3 // there is no measurement that could refer
	noForward     = math.MinInt64
)

// NoReference stands for a measurement that is missing: nothing is said about it here.
func NoReference() Reference { return Reference{Before: beforeNothing, Forward: noForward} }

// NewReference packs warmup_records_before and the first raw forward_index.
func NewReference(before, forward jsonstream.Field) Reference {
	r := Reference{Forward: noForward}
	if forward.NonNegative() {
		r.Forward = forward.Int
	}
	switch {
	case before.Null():
		r.Before = beforeNull
	case !before.NonNegative():
		r.Before = beforeUnsound
	default:
		r.Before = int32(min(before.Int, math.MaxInt32)) // no ledger is as long as that
	}
	return r
}

// Breach says how a reference breaks a rule; the zero Breach says that it does not.
type Breach struct {
	Message, Expected string
}

// Remote judges the reference of a rank whose ledger was not loaded (warmup.reference).
func (r Reference) Remote() Breach {
	if r.Before == beforeUnsound {
		return Breach{"warmup_records_before is neither null nor a count", "null or an integer of at least 0"}
	}
	return Breach{}
}

// Reference judges a reference to the ledger (warmup.reference).
func (l *Ledger) Reference(r Reference) Breach {
	switch {
	case r.Before == beforeNothing:
		return Breach{}
	case !l.Recorded && r.Before != beforeNull:
		return Breach{"a measurement refers to records of an unavailable ledger", "null"}
	case l.Recorded && (r.Before < 0 || int(r.Before) > l.Records()):
		return Breach{"warmup_records_before is not a number of records of the rank's ledger", "an integer from 0 to " + strconv.Itoa(l.Records())}
	}
	return Breach{}
}

// Overlap judges whether the records before a measurement had ended when its first
// sample ran (warmup.overlap). The reference itself must be sound.
func (l *Ledger) Overlap(r Reference) Breach {
	n := int(r.Before)
	if !l.Recorded || n <= 0 || n > l.Records() {
		return Breach{}
	}
	if l.running < n {
		return Breach{"a warmup record before this measurement is still running", "record " + strconv.Itoa(l.running) + " completed or failed"}
	}
	if end := l.ends[n-1]; r.Forward != noForward && end > r.Forward {
		return Breach{"a warmup record before this measurement ends after its first forward pass", "every end at most " + strconv.FormatInt(r.Forward, 10) + ", not " + strconv.FormatInt(end, 10)}
	}
	return Breach{}
}
