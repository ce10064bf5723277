package protocol

import (
	"math"
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// sample is one raw FPM while it is read.
type sample struct {
	at       int
	object   bool
	off      int64
	counter  jsonstream.Field
	rank     jsonstream.Field
	worker   worker
	wall     jsonstream.Float
	evidence jsonstream.Field // kind and place of benchmark_sample

	index   jsonstream.Field
	forward jsonstream.Field

	timing  jsonstream.Field // kind and place
	basis   jsonstream.Field
	basisOK bool
	start   jsonstream.Float
	end     jsonstream.Float

	graph  jsonstream.Field // kind and place
	status jsonstream.Field
	state  string
	mode   jsonstream.Field
	named  bool                // runtime_mode is a non-empty string
	tokens [3]jsonstream.Field // in the order of tokenFields
}

// tokenFields are the token counts of a CUDA graph dispatch.
var tokenFields = [3]string{"num_unpadded_tokens", "num_padded_tokens", "num_paddings"}

func rawTail(i int, tail string) string {
	return measurementTail + "/raw_fpms/" + strconv.Itoa(i) + tail
}

func (r *Reader) readRaw() (err error) {
	m := &r.m
	m.raw.Kind = r.s.Peek()
	m.raw.Offset, _, err = r.s.Array(func(i int) error {
		if i >= maxSamples {
			return r.s.LimitExceeded("more than %d raw FPMs in one measurement", maxSamples)
		}
		return r.readSample(i)
	})
	return err
}

func (r *Reader) readSample(i int) (err error) {
	x := sample{at: i}
	x.off, x.object, err = r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "counter_id":
			x.counter, err = r.s.Field()
		case "dp_rank":
			x.rank, err = r.s.Field()
		case "worker_id":
			x.worker.has = true
			x.worker.hash, x.worker.off, err = r.readWorker()
		case "wall_time":
			x.wall, err = r.s.Float()
		case SampleField:
			err = r.readEvidence(&x)
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if x.evidence.Present() && r.fpm.Sample < 0 {
		r.fpm.Sample, r.fpm.sampleAt = x.evidence.Offset, i
	}
	if i == 0 {
		r.fpm.FirstForward = x.forward
	}
	wall := math.NaN()
	if r.contract.Execution == Declared {
		r.raw = i
		if r.judgeSample(&x) {
			wall = x.wall.Value
		}
		r.raw = -1
	}
	r.m.walls.Add(wall)
	return nil
}

func (r *Reader) readEvidence(x *sample) (err error) {
	x.evidence.Kind = r.s.Peek()
	x.evidence.Offset, _, err = r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "sample_index":
			x.index, err = r.s.Field()
		case "forward_index":
			x.forward, err = r.s.Field()
		case "timing":
			err = r.readTiming(x)
		case "cudagraph":
			err = r.readGraph(x)
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	return err
}

func (r *Reader) readTiming(x *sample) (err error) {
	x.timing.Kind = r.s.Peek()
	x.timing.Offset, _, err = r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "basis":
			var v jsonstream.Scalar
			v, err = r.s.Scalar()
			x.basis = v.Field()
			x.basisOK = v.Equals("schedule_to_output") || v.Equals("inter_output")
		case "start_monotonic":
			x.start, err = r.s.Float()
		case "end_monotonic":
			x.end, err = r.s.Float()
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	return err
}

func (r *Reader) readGraph(x *sample) (err error) {
	x.graph.Kind = r.s.Peek()
	x.graph.Offset, _, err = r.s.Object(func(name []byte) (err error) {
		var v jsonstream.Scalar
		switch string(name) {
		case "status":
			v, err = r.s.Scalar()
			x.status = v.Field()
			x.state, _ = v.Text()
		case "runtime_mode":
			v, err = r.s.Scalar()
			x.mode = v.Field()
			x.named = v.Kind == '"' && len(v.Raw) > len(`""`)
		case tokenFields[0]:
			x.tokens[0], err = r.s.Field()
		case tokenFields[1]:
			x.tokens[1], err = r.s.Field()
		case tokenFields[2]:
			x.tokens[2], err = r.s.Field()
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	return err
}

// judgeSample applies the rules of one raw FPM and tells whether its wall time is sound.
// Worker ids are held against the retained FPM's once that is known.
func (r *Reader) judgeSample(x *sample) (wallOK bool) {
	if !x.object {
		r.m.workers.addNone()
		r.broken(finding.SampleIdentity, "", x.off, "the raw FPM is not an object", "an object")
		return false
	}
	if !x.worker.has {
		x.worker.off = x.off
	}
	r.m.workers.add(x.worker)
	r.judgeSampleIdentity(x)
	wallOK = x.wall.Finite && x.wall.Value >= 0
	if !wallOK {
		r.either(finding.SampleTiming, "/wall_time", x.wall.Kind != 0, x.wall.Offset, x.off,
			"the raw wall_time is not a finite number of at least 0", "seconds, at least 0")
	}
	if x.evidence.Kind != '{' {
		r.field(finding.SampleIndex, "/"+SampleField, x.evidence, x.off, "the raw FPM carries no benchmark_sample", "an object")
		return wallOK
	}
	r.judgeIndex(x)
	r.judgeTiming(x, wallOK)
	r.judgeGraph(x)
	return wallOK
}

func (r *Reader) judgeSampleIdentity(x *sample) {
	if r.p.HasID && !x.counter.IsInteger(r.p.ID) {
		r.field(finding.SampleIdentity, "/counter_id", x.counter, x.off,
			"the raw FPM belongs to another point", strconv.FormatInt(r.p.ID, 10))
	}
	if r.p.HasRank && !x.rank.IsInteger(r.p.Rank) {
		r.field(finding.SampleIdentity, "/dp_rank", x.rank, x.off,
			"the raw FPM belongs to another DP rank", strconv.FormatInt(r.p.Rank, 10))
	}
}

func (r *Reader) judgeIndex(x *sample) {
	if !x.index.IsInteger(int64(x.at)) {
		r.field(finding.SampleIndex, "/"+SampleField+"/sample_index", x.index, x.evidence.Offset,
			"sample_index is not the raw FPM's position", strconv.Itoa(x.at))
	}
	previous := *r.p.Previous
	if !x.forward.Integer || x.forward.Int <= previous {
		r.field(finding.SampleIndex, "/"+SampleField+"/forward_index", x.forward, x.evidence.Offset,
			"forward_index does not increase through the rank's run", "an integer greater than "+strconv.FormatInt(previous, 10)+" (below 2^63)")
	}
	if x.forward.Integer {
		*r.p.Previous = x.forward.Int
	}
}

func (r *Reader) judgeTiming(x *sample, wallOK bool) {
	tail := func(name string) string { return "/" + SampleField + "/timing" + name }
	if x.timing.Kind != '{' {
		r.field(finding.SampleTiming, tail(""), x.timing, x.evidence.Offset, "the sample has no timing object", "an object")
		return
	}
	if !x.basisOK {
		r.field(finding.SampleTiming, tail("/basis"), x.basis, x.timing.Offset, "the timing basis is not known", "schedule_to_output or inter_output")
	}
	if !x.end.Finite {
		r.either(finding.SampleTiming, tail("/end_monotonic"), x.end.Kind != 0, x.end.Offset, x.timing.Offset,
			"end_monotonic is not a finite number", "a process-local monotonic clock, in seconds")
	}
	switch {
	case x.start.Null():
	case !x.start.Finite:
		r.broken(finding.SampleTiming, tail("/start_monotonic"), x.start.Offset, "start_monotonic is neither null nor a finite number",
			"null, or a process-local monotonic clock in seconds")
	case x.end.Finite && x.start.Value > x.end.Value:
		r.broken(finding.SampleTiming, tail("/start_monotonic"), x.start.Offset, "the sample starts after its end",
			"at most "+formatFloat(x.end.Value))
	case x.end.Finite && wallOK && !IsClose(x.end.Value-x.start.Value, x.wall.Value, 1e-9, 1e-9):
		r.p.Scope.Says(finding.SampleTiming, r.p.Pointer(rawTail(x.at, tail("/end_monotonic"))), x.end.Offset, "end_monotonic - start_monotonic is not the raw wall_time",
			formatFloat(x.wall.Value)+" s", formatFloat(x.end.Value-x.start.Value)+" s")
	}
}

func (r *Reader) judgeGraph(x *sample) {
	tail := func(name string) string { return "/" + SampleField + "/cudagraph" + name }
	switch {
	case x.graph.Kind != '{':
		r.field(finding.SampleCUDAGraph, tail(""), x.graph, x.evidence.Offset, "the sample has no cudagraph object", "an object")
	case x.state == "observed":
		r.judgeObserved(x, tail)
	case x.state == "unavailable":
		for i, f := range append([]jsonstream.Field{x.mode}, x.tokens[:]...) {
			name := append([]string{"runtime_mode"}, tokenFields[:]...)[i]
			if !f.Null() {
				r.broken(finding.SampleCUDAGraph, tail("/"+name), f.Offset, "a dispatch that was not observed has a value", "null")
			}
		}
	default:
		r.field(finding.SampleCUDAGraph, tail("/status"), x.status, x.graph.Offset, "the dispatch status is not known", "observed or unavailable")
	}
}

func (r *Reader) judgeObserved(x *sample, tail func(string) string) {
	unpadded, padded, paddings := x.tokens[0], x.tokens[1], x.tokens[2]
	if !x.named {
		r.field(finding.SampleCUDAGraph, tail("/runtime_mode"), x.mode, x.graph.Offset, "an observed dispatch names no runtime mode", "a non-empty string")
	}
	if !unpadded.NonNegative() {
		r.field(finding.SampleCUDAGraph, tail("/"+tokenFields[0]), unpadded, x.graph.Offset, "not a token count", "an integer of at least 0")
	}
	switch {
	case !padded.Integer:
		r.field(finding.SampleCUDAGraph, tail("/"+tokenFields[1]), padded, x.graph.Offset, "not a token count", "an integer")
	case unpadded.NonNegative() && padded.Int < unpadded.Int:
		r.broken(finding.SampleCUDAGraph, tail("/"+tokenFields[1]), padded.Offset, "fewer tokens with padding than without",
			"at least "+strconv.FormatInt(unpadded.Int, 10))
	}
	switch {
	case !paddings.Integer:
		r.field(finding.SampleCUDAGraph, tail("/"+tokenFields[2]), paddings, x.graph.Offset, "not a token count", "an integer")
	case unpadded.Integer && padded.Integer && paddings.Int != padded.Int-unpadded.Int:
		r.broken(finding.SampleCUDAGraph, tail("/"+tokenFields[2]), paddings.Offset, "not the padded tokens less the unpadded ones",
			strconv.FormatInt(padded.Int-unpadded.Int, 10))
	}
}

func formatFloat(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
