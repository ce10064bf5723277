package protocol

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Place is where an FPM stands in its run.
type Place struct {
	Scope   finding.Scope
	Group   int // position in iteration_groups
	Index   int // position in rank_results
	ID      int64
	HasID   bool   // ID is the group's benchmark id
	Rank    int64  // DP rank of the rank result
	HasRank bool   // Rank is known
	Key     string // content key of the group's point, empty when it has none
	NoPoint bool   // the group has no point object, which is reported as that
	// Previous is the rank's last forward index so far in the run, -1 at its start. Read
	// moves it on.
	Previous *int64
}

// Pointer returns the JSON Pointer of the FPM followed by tail.
func (p *Place) Pointer(tail string) string {
	return "/iteration_groups/" + strconv.Itoa(p.Group) + "/rank_results/" + strconv.Itoa(p.Index) + "/fpms/0" + tail
}

// FPM is what is kept of a forward-pass metric after it was read.
type FPM struct {
	Object  bool
	Offset  int64
	Counter jsonstream.Field // counter_id
	DPRank  jsonstream.Field
	Wall    jsonstream.Float // wall_time in seconds
	WallRaw []byte           // its literal text, valid until the next Read
	// Measurement is the offset of benchmark_measurement, -1 when there is none.
	Measurement int64
	// Sample is the offset of the first raw benchmark_sample, -1 when there is none.
	Sample       int64
	sampleAt     int              // position of its raw FPM
	Prepared     bool             // the measurement has a preparation object
	WarmupBefore jsonstream.Field // preparation.warmup_records_before
	FirstForward jsonstream.Field // forward_index of the first raw FPM
}

// WallTime is the wall time in seconds; an absent one is 0. It is false when the value
// is anything but a finite number.
func (f *FPM) WallTime() (seconds float64, ok bool) {
	return f.Wall.Value, f.Wall.Kind == 0 || f.Wall.Finite
}

// SamplePointer is the tail of the JSON Pointer of what stands at Sample.
func (f *FPM) SamplePointer() string { return rawTail(f.sampleAt, "/"+SampleField) }

// Reader reads FPMs of a run. It serves one goroutine.
type Reader struct {
	contract Contract
	grid     string // the run's grid digest, empty when it is not known
	seed     maphash.Seed

	s       *jsonstream.Scanner
	p       *Place
	fpm     FPM
	worker  uint64
	inner   int64 // offset of a benchmark_sample in the retained FPM, -1 when there is none
	wallRaw []byte
	m       measurement
	raw     int // position of the raw FPM whose rules are applied, from which tails of pointers begin; -1 for none
}

// NewReader returns a reader for FPMs of a run with this contract and grid digest.
func NewReader(contract Contract, gridDigest string) *Reader {
	return &Reader{contract: contract, grid: gridDigest, seed: maphash.MakeSeed(), raw: -1}
}

// Read reads the FPM that comes next, reports what breaks a measurement or sample rule,
// and returns what other rules need of it. An error is one of the document's text.
func (r *Reader) Read(s *jsonstream.Scanner, p *Place) (*FPM, error) {
	r.s, r.p = s, p
	r.fpm = FPM{Measurement: -1, Sample: -1}
	r.worker, r.inner = 0, -1
	r.m.reset()
	var err error
	r.fpm.Offset, r.fpm.Object, err = s.Object(r.member)
	if err != nil {
		return nil, err
	}
	r.fpm.Prepared = r.m.prepared
	if r.fpm.Object {
		r.judge()
	}
	return &r.fpm, nil
}

func (r *Reader) member(name []byte) (err error) {
	switch string(name) {
	case "counter_id":
		r.fpm.Counter, err = r.s.Field()
	case "dp_rank":
		r.fpm.DPRank, err = r.s.Field()
	case "worker_id":
		r.worker, _, err = r.readWorker()
	case "wall_time":
		var v jsonstream.Scalar
		v, err = r.s.Scalar()
		r.wallRaw = append(r.wallRaw[:0], v.Raw...)
		r.fpm.Wall, r.fpm.WallRaw = v.Float(), r.wallRaw
	case SampleField:
		var span jsonstream.Span
		span, err = r.s.Skip()
		r.inner = span.Off
	case "benchmark_measurement":
		err = r.readMeasurement()
	default:
		_, err = r.s.Skip()
	}
	return err
}

// readWorker reads a worker id and returns a hash that is equal for equal ids: 0 for null,
// which counts as absent. Ids are compared by hash, as a point can have many samples; the
// hash is keyed anew in every process.
func (r *Reader) readWorker() (hash uint64, off int64, err error) {
	v, err := r.s.Scalar()
	if err != nil || v.Kind == 'n' {
		return 0, v.Offset, err
	}
	var h maphash.Hash
	h.SetSeed(r.seed)
	h.WriteByte(byte(v.Kind))
	switch {
	case v.Kind == '"':
		text, _ := v.Text()
		h.WriteString(text)
	case v.Kind == '0':
		h.Write(jsonvalue.AppendDecimal(nil, v.Raw))
	case v.Raw != nil:
		h.Write(v.Raw)
	default: // a container is no worker id, and equal to none
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(v.Offset)))
	}
	return h.Sum64() | 1, v.Offset, nil
}

func (r *Reader) broken(rule finding.ID, tail string, off int64, message, expected string) {
	r.either(rule, tail, true, off, off, message, expected)
}

// either reports a value, or its absence when kind is 0.
func (r *Reader) either(rule finding.ID, tail string, present bool, off, parent int64, message, expected string) {
	r.p.Scope.EitherLate(rule, tail, present, off, parent, message, func() (string, string) {
		if r.raw >= 0 {
			return r.p.Pointer(rawTail(r.raw, tail)), expected
		}
		return r.p.Pointer(tail), expected
	})
}

func (r *Reader) field(rule finding.ID, tail string, f jsonstream.Field, parent int64, message, expected string) {
	r.either(rule, tail, f.Present(), f.Offset, parent, message, expected)
}
