// Package warmup reads a rank's warmup ledger and its place among the measured samples.
//
// Before and between measurements a worker runs forward passes that are not measured:
// general warmup, eager shapes, real prefixes. The ledger (warmup_evidence) records each
// as a range of forward indices of the rank's process. A measurement names how many
// records came before it; those must have ended before its first raw sample.
//
// [Read] checks a ledger by itself (warmup.ledger, .record, .range, .count) and keeps a
// few numbers a record; [Ledger.Reference] and [Ledger.Overlap] hold a measurement against
// it (warmup.reference, warmup.overlap). [Walk] reads a ledger in typed form, record by
// record; [CheckStrict] and [History.CheckResult] judge it as stricter consumers do
// (warmup.strict). A completed warmup does not prove that a graph or a
// kernel was warmed, and nothing here concludes so. Decode real-KV warmup is not in the
// ledger at all.
package warmup

import (
	"math"
	"sort"
	"strconv"

	"github.com/fpm-project/fpm/internal/column"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// pointer is where a rank artifact has its ledger.
const pointer = "/warmup_evidence"

// Ledger is what is kept of a rank's ledger.
type Ledger struct {
	// Sound is false when the ledger's structure is broken, so that no reference to it
	// can be judged.
	Sound bool
	// Recorded tells a recorded history from an unavailable one.
	Recorded bool
	records  int
	// ends are the records that end beyond all before them, and where; most of a ledger's
	// do, and of one that is nothing but brackets none does. Running is the first record
	// that is running.
	ends    ends
	running int
}

// ends are ascending records with their ascending forward_index_end.
type ends struct {
	record column.Column[int]
	end    column.Column[int64]
}

// last is the largest end of all, -1 when there is none.
func (e *ends) last() int64 {
	if n := e.end.Len(); n > 0 {
		return e.end.At(n - 1)
	}
	return -1
}

// beyond returns the first of the records before a position that ends beyond a forward
// index.
func (e *ends) beyond(before int, forward int64) (record int, end int64, found bool) {
	i := sort.Search(e.end.Len(), func(i int) bool { return e.end.At(i) > forward })
	if i == e.end.Len() || e.record.At(i) >= before {
		return 0, 0, false
	}
	return e.record.At(i), e.end.At(i), true
}

// Records is the number of records.
func (l *Ledger) Records() int { return l.records }

type reader struct {
	s      *jsonstream.Scanner
	at     string // JSON Pointer of the ledger
	scope  finding.Scope
	ledger *Ledger
	status jsonstream.Field
	state  string
	list   jsonstream.Field
}

// Read reads the ledger of a rank artifact, which comes next. An error is one of the
// document's text.
func Read(s *jsonstream.Scanner, scope finding.Scope) (*Ledger, error) {
	return ReadAt(s, scope, pointer)
}

// ReadAt reads a ledger that stands elsewhere: at a JSON Pointer.
func ReadAt(s *jsonstream.Scanner, scope finding.Scope, pointer string) (*Ledger, error) {
	r := reader{s: s, at: pointer, scope: scope, ledger: &Ledger{running: math.MaxInt}}
	off, ok, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			var v jsonstream.Scalar
			v, err = s.Scalar()
			r.status = v.Field()
			r.state, _ = v.Text()
		case "records":
			r.list.Kind = s.Peek()
			r.list.Offset, _, err = s.Array(r.record)
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if !ok {
		scope.Broken(finding.WarmupLedger, pointer, off, "the warmup ledger is not an object", "an object")
		return r.ledger, nil
	}
	r.judge(off)
	return r.ledger, nil
}

func (r *reader) judge(off int64) {
	l := r.ledger
	l.Recorded = r.state == "recorded"
	l.Sound = true
	if !l.Recorded && r.state != "unavailable" {
		l.Sound = false
		r.field(finding.WarmupLedger, "/status", r.status, off, "the ledger's status is not known", "recorded or unavailable")
	}
	switch {
	case r.list.Kind != '[':
		l.Sound = false
		r.field(finding.WarmupLedger, "/records", r.list, off, "the ledger's records are not a list", "a list")
	case r.state == "unavailable" && l.Records() > 0:
		l.Sound = false
		r.scope.Says(finding.WarmupLedger, r.at+"/records", r.list.Offset, "an unavailable ledger has records", "[]", strconv.Itoa(l.Records())+" records")
	}
}

func (r *reader) field(rule finding.ID, tail string, f jsonstream.Field, parent int64, message, expected string) {
	r.scope.Either(rule, r.at+tail, f.Present(), f.Offset, parent, message, expected)
}

// of reports a value of a record. Its pointer is made only if it is wanted: a ledger can
// have a million records.
func (r *reader) of(x *record, rule finding.ID, tail string, f jsonstream.Field, parent int64, message, expected string) {
	r.scope.EitherLate(rule, tail, f.Present(), f.Offset, parent, message, func() (string, string) {
		return r.at + "/records/" + strconv.Itoa(x.at) + tail, expected
	})
}

// record is one ledger record while it is read.
type record struct {
	at         int // position in records
	off        int64
	status     jsonstream.Field
	state      string
	validation jsonstream.Field // kind and place
	verdictAt  jsonstream.Field
	verdict    string
	start, end jsonstream.Field
	count      jsonstream.Field
}

func (r *reader) record(i int) error {
	x := record{at: i}
	off, ok, err := r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			x.state, x.status, err = r.text()
		case "validation":
			x.validation.Kind = r.s.Peek()
			x.validation.Offset, _, err = r.s.Object(func(name []byte) (err error) {
				if string(name) == "status" {
					x.verdict, x.verdictAt, err = r.text()
				} else {
					_, err = r.s.Skip()
				}
				return err
			})
		case "forward_index_start":
			x.start, err = r.s.Field()
		case "forward_index_end":
			x.end, err = r.s.Field()
		case "observed_forward_count":
			x.count, err = r.s.Field()
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	x.off = off
	if !ok {
		r.of(&x, finding.WarmupRecord, "", jsonstream.Field{Kind: 'n', Offset: off}, off, "the record is not an object", "an object")
	} else {
		r.judgeState(&x)
		r.judgeRange(&x)
	}
	r.keep(&x)
	return nil
}

func (r *reader) text() (string, jsonstream.Field, error) {
	v, err := r.s.Scalar()
	text, _ := v.Text()
	return text, v.Field(), err
}

func (r *reader) keep(x *record) {
	l := r.ledger
	if x.end.Integer && x.end.Int > l.ends.last() {
		l.ends.record.Add(l.records)
		l.ends.end.Add(x.end.Int)
	}
	if x.state == "running" && l.running == math.MaxInt {
		l.running = l.records
	}
	l.records++
}

func (r *reader) judgeState(x *record) {
	known := true
	switch x.state {
	case "running", "completed", "failed":
	default:
		known = false
		r.of(x, finding.WarmupRecord, "/status", x.status, x.off, "the record's status is not known", "running, completed or failed")
	}
	if x.validation.Kind != '{' {
		r.of(x, finding.WarmupRecord, "/validation", x.validation, x.off, "the record has no validation object", "an object")
		return
	}
	want := ""
	switch x.verdict {
	case "passed":
		want = "completed"
	case "failed":
		want = "failed"
	case "not_performed":
		return
	default:
		r.of(x, finding.WarmupRecord, "/validation/status", x.verdictAt, x.validation.Offset,
			"the validation's status is not known", "passed, failed or not_performed")
		return
	}
	if known && x.state != want {
		r.of(x, finding.WarmupRecord, "/validation/status", x.verdictAt, x.off,
			"a validation that "+x.verdict+" does not go with a record that is "+strconv.Quote(x.state), "a record that is "+want)
	}
}

// judgeRange applies warmup.range and warmup.count.
func (r *reader) judgeRange(x *record) {
	sound := true
	for _, f := range []struct {
		name  string
		value jsonstream.Field
	}{{"forward_index_start", x.start}, {"forward_index_end", x.end}} {
		if !f.value.Null() && !f.value.NonNegative() {
			sound = false
			r.of(x, finding.WarmupRange, "/"+f.name, f.value, x.off, f.name+" is neither null nor a forward index", "null or an integer of at least 0 (below 2^63)")
		}
	}
	known := sound && x.start.Integer && x.end.Integer
	switch {
	case known && x.end.Int < x.start.Int:
		known = false
		r.of(x, finding.WarmupRange, "/forward_index_end", x.end, x.off, "the record ends before it starts", "at least "+strconv.FormatInt(x.start.Int, 10))
	case x.state == "completed" && x.end.Null():
		r.of(x, finding.WarmupRange, "/forward_index_end", x.end, x.off, "a completed record has no end", "an integer of at least 0")
	}
	switch {
	case x.count.Null():
	case !x.count.NonNegative():
		r.of(x, finding.WarmupCount, "/observed_forward_count", x.count, x.off, "observed_forward_count is neither null nor a count", "null or an integer of at least 0")
	case known && x.count.Int != x.end.Int-x.start.Int:
		r.of(x, finding.WarmupCount, "/observed_forward_count", x.count, x.off, "observed_forward_count is not the length of the record's range",
			strconv.FormatInt(x.end.Int-x.start.Int, 10))
	}
}
