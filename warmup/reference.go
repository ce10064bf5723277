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
	Actual            string // empty where it is what stands at the reference
}

// Remote judges the reference of a rank whose ledger was not loaded (warmup.reference).
func (r Reference) Remote() Breach {
	if r.Before == beforeUnsound {
		return Breach{Message: "warmup_records_before is neither null nor a count", Expected: "null or an integer of at least 0"}
	}
	return Breach{}
}

// Reference judges a reference to the ledger (warmup.reference).
func (l *Ledger) Reference(r Reference) Breach {
	switch {
	case r.Before == beforeNothing:
		return Breach{}
	case !l.Recorded && r.Before != beforeNull:
		return Breach{Message: "a measurement refers to records of an unavailable ledger", Expected: "null"}
	case l.Recorded && (r.Before < 0 || int(r.Before) > l.Records()):
		return Breach{Message: "warmup_records_before is not a number of records of the rank's ledger", Expected: "an integer from 0 to " + strconv.Itoa(l.Records())}
	}
	return Breach{}
}

// Overlapping is the first record that reaches into a measurement which counts it as over.
// The zero Overlapping says that none does.
type Overlapping struct {
	Found   bool
	Record  int   // position in the ledger
	Running bool  // it has not ended; else it ended too late
	End     int64 // its forward_index_end, where it is not running
	Forward int64 // the measurement's first forward_index, where the record is not running
}

// Overlap judges whether the records before a measurement had ended when its first
// sample ran (warmup.overlap). The reference itself must be sound.
func (l *Ledger) Overlap(r Reference) Overlapping {
	n := int(r.Before)
	if !l.Recorded || n <= 0 || n > l.Records() {
		return Overlapping{}
	}
	if l.running < n {
		return Overlapping{Found: true, Record: l.running, Running: true}
	}
	if r.Forward == noForward {
		return Overlapping{}
	}
	record, end, found := l.ends.beyond(n, r.Forward)
	if !found {
		return Overlapping{}
	}
	return Overlapping{Found: true, Record: record, End: end, Forward: r.Forward}
}

// Breach says how a record overlaps a measurement. Where names the ledger's place: what
// stands in the message between "record 3" and what is wrong with it.
func (o Overlapping) Breach(where string) Breach {
	record := "record " + strconv.Itoa(o.Record) + " " + where
	end, first := strconv.FormatInt(o.End, 10), strconv.FormatInt(o.Forward, 10)
	switch {
	case !o.Found:
		return Breach{}
	case o.Running:
		return Breach{"a warmup record that this measurement counts as over is not: " + record + " is running", "completed or failed", "running"}
	}
	return Breach{"a warmup record that this measurement counts as over reaches into it: " + record + " ends at forward index " + end + ", the measurement starts at " + first,
		"a forward_index_end of at most " + first, end}
}
