package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Text is a string of the evidence and where it stands. The text is unescaped, and empty
// where the value is no string.
type Text struct {
	jsonstream.Field
	Text string
}

// Evidence is what a benchmark_measurement holds, in typed form: for those who ask what
// was measured, and for the rules beyond a merge. A value that is absent has kind 0.
type Evidence struct {
	Object          bool
	Offset          int64
	Prompts         Prompts
	Preparation     jsonstream.Field // kind and place
	CompletedBefore jsonstream.Field // completed_points_before
	WarmupBefore    jsonstream.Field // warmup_records_before
	Regime          Text             // kv_seed_regime
	Expected        jsonstream.Field // expected_internal_samples
	Raw             jsonstream.Field // kind and place of raw_fpms
	Samples         int              // raw FPMs
	Forward         jsonstream.Field // forward_index of the first
	Estimate        jsonstream.Field // kind and place
	Method          Text             // of the estimate
	Indices         []int64          // raw_sample_indices, the first 1,000; only with Detail
}

// Prompts is what was injected. It is read only for the strict rules and with Detail.
type Prompts struct {
	jsonstream.Field                  // kind and place
	Status           Text             // recorded, unavailable
	Hash             Text             // sha256
	List             jsonstream.Field // kind and place of requests
	Requests         int              // their number
	Tokens           int64            // sum of their num_tokens, as far as these are counts
}

// RawSample is one raw FPM of a measurement.
type RawSample struct {
	At       int // position in raw_fpms
	Object   bool
	Offset   int64
	Wall     jsonstream.Float // wall_time in seconds
	Evidence jsonstream.Field // kind and place of benchmark_sample
	Index    jsonstream.Field // sample_index
	Forward  jsonstream.Field // forward_index
	Graph    jsonstream.Field // kind and place of cudagraph
	Status   Text             // of the graph dispatch: observed, unavailable
	Mode     Text             // runtime_mode

	// Only with Detail:
	Basis      Text             // timing basis
	Start, End jsonstream.Float // start_monotonic, end_monotonic
	Unpadded   jsonstream.Field // num_unpadded_tokens
	Padded     jsonstream.Field // num_padded_tokens
	Paddings   jsonstream.Field // num_paddings
}

// Dispatch is the last part of an observed runtime_mode: FULL of CUDAGraphMode.FULL. It is
// empty when none was observed.
func (x *RawSample) Dispatch() string {
	if x.Status.Text != "observed" {
		return ""
	}
	return lastPart(x.Mode.Text)
}

// EvidenceReader reads measurements. It serves one goroutine.
type EvidenceReader struct {
	// Sample, where set, is told of each raw FPM. What it gets is valid for the call.
	Sample func(*RawSample) error
	// Detail asks for the prompts, the indices, the clocks and the token counts too.
	Detail bool

	src      io.ReaderAt
	contract Contract
	s        *jsonstream.Scanner
	later    *jsonstream.Scanner // of requests that stand before their status
	at       *Place              // nil when no rule is asked for
	e        Evidence
	x        RawSample
	texts    map[string]string
	requests requests
}

// NewEvidenceReader returns a reader of measurements in the document src, whose protocol
// declares contract.
func NewEvidenceReader(src io.ReaderAt, contract Contract) *EvidenceReader {
	return &EvidenceReader{src: src, contract: contract, texts: map[string]string{}, requests: requests{hash: sha256.New(), src: jsonstream.NewAhead(src)}}
}

// Read reads the benchmark_measurement that comes next and returns what it holds, valid
// until the next one. With a place it also reports what breaks measurement.strict in the
// FPM of a group; the FPM's position in its own rank's results is judged by
// [Evidence.JudgeResult]. An error is one of the document's text, or of Sample.
func (r *EvidenceReader) Read(s *jsonstream.Scanner, at *Place) (*Evidence, error) {
	r.s, r.at = s, at
	if r.contract.Measurement != Declared {
		r.at = nil
	}
	e := &r.e
	*e = Evidence{Indices: e.Indices[:0]}
	var err error
	if e.Offset, e.Object, err = s.Object(r.member); err != nil {
		return nil, err
	}
	if e.Object && r.at != nil {
		r.judge()
	}
	return e, nil
}

func (r *EvidenceReader) member(name []byte) (err error) {
	e, s := &r.e, r.s
	switch string(name) {
	case "prompts":
		if r.at == nil && !r.Detail {
			_, err = s.Skip()
		} else {
			err = r.readPrompts()
		}
	case "preparation":
		err = r.readPreparation()
	case "expected_internal_samples":
		e.Expected, err = s.Field()
	case "raw_fpms":
		e.Raw.Kind = s.Peek()
		e.Raw.Offset, _, err = s.Array(r.readSample)
	case "estimate":
		err = r.readEstimate()
	default:
		_, err = s.Skip()
	}
	return err
}

func (r *EvidenceReader) readPreparation() (err error) {
	e, s := &r.e, r.s
	e.Preparation.Kind = s.Peek()
	e.Preparation.Offset, _, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "completed_points_before":
			e.CompletedBefore, err = s.Field()
		case "warmup_records_before":
			e.WarmupBefore, err = s.Field()
		case "kv_seed_regime":
			e.Regime, err = r.text()
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (r *EvidenceReader) readEstimate() (err error) {
	e, s := &r.e, r.s
	e.Estimate.Kind = s.Peek()
	e.Estimate.Offset, _, err = s.Object(func(name []byte) (err error) {
		switch {
		case string(name) == "method":
			e.Method, err = r.text()
		case string(name) == "raw_sample_indices" && r.Detail:
			_, _, err = s.Array(func(i int) error {
				f, err := s.Field()
				if f.Integer && i < maxIndices {
					e.Indices = append(e.Indices, f.Int)
				}
				return err
			})
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

// maxIndices bounds the indices that are kept for showing.
const maxIndices = 1000

func (r *EvidenceReader) readSample(i int) (err error) {
	s, x := r.s, &r.x
	*x = RawSample{At: i}
	x.Offset, x.Object, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "wall_time":
			x.Wall, err = s.Float()
		case SampleField:
			err = r.readEvidence()
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	r.e.Samples++
	if i == 0 {
		r.e.Forward = x.Forward
	}
	if r.at != nil && x.Object {
		r.judgeSample(x)
	}
	if r.Sample != nil {
		return r.Sample(x)
	}
	return nil
}

func (r *EvidenceReader) readEvidence() (err error) {
	s, x := r.s, &r.x
	x.Evidence.Kind = s.Peek()
	x.Evidence.Offset, _, err = s.Object(func(name []byte) (err error) {
		switch {
		case string(name) == "sample_index":
			x.Index, err = s.Field()
		case string(name) == "forward_index":
			x.Forward, err = s.Field()
		case string(name) == "timing" && r.Detail:
			err = r.readTiming()
		case string(name) == "cudagraph":
			err = r.readGraph()
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (r *EvidenceReader) readTiming() error {
	s, x := r.s, &r.x
	_, _, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "basis":
			x.Basis, err = r.text()
		case "start_monotonic":
			x.Start, err = s.Float()
		case "end_monotonic":
			x.End, err = s.Float()
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (r *EvidenceReader) readGraph() (err error) {
	s, x := r.s, &r.x
	x.Graph.Kind = s.Peek()
	x.Graph.Offset, _, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "status":
			x.Status, err = r.text()
		case "runtime_mode":
			x.Mode, err = r.text()
		case tokenFields[0]:
			x.Unpadded, err = s.Field()
		case tokenFields[1]:
			x.Padded, err = s.Field()
		case tokenFields[2]:
			x.Paddings, err = s.Field()
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

// text reads a string of which a run has few different ones.
func (r *EvidenceReader) text() (Text, error) {
	v, err := r.s.Scalar()
	t := Text{Field: v.Field()}
	if err != nil || v.Kind != '"' {
		return t, err
	}
	known, ok := r.texts[string(v.Raw)]
	if !ok {
		known, _ = v.Text()
		if len(r.texts) < 256 && len(v.Raw) < 128 {
			r.texts[string(v.Raw)] = known
		}
	}
	t.Text = known
	return t, nil
}

// requests hashes the requests of a measurement as they are read.
type requests struct {
	hash hash.Hash
	text []byte // canonical text that is not hashed yet
	sum  [sha256.Size]byte
	// Of the request at hand, the literals of its known members:
	slot, tokens, digest []byte
	members              int
	scalar               jsonvalue.Value   // of a request that is one
	src                  *jsonstream.Ahead // of the requests that are read again
	unhashed             bool              // a request could not be hashed, which is reported
}

func (q *requests) begin() {
	q.hash.Reset()
	q.unhashed = false
	q.text = append(q.text[:0], '[')
}

// separate begins the text of a request.
func (q *requests) separate(x *request) {
	if x.at > 0 {
		q.text = append(q.text, ',')
	}
	q.flush(4 << 10)
}

// flush hashes what has gathered.
func (q *requests) flush(most int) {
	if len(q.text) > most {
		q.hash.Write(q.text)
		q.text = q.text[:0]
	}
}

func (q *requests) end() {
	q.text = append(q.text, ']')
	q.flush(0)
	q.hash.Sum(q.sum[:0])
}

// hex is the hash in hexadecimal digits.
func (q *requests) hex() string { return hex.EncodeToString(q.sum[:]) }
