package inspect

import (
	"errors"
	"io"
	"math"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/protocol"
)

// ErrNoPoint tells that no iteration group has the benchmark id.
var ErrNoPoint = errors.New("no iteration group has this benchmark id")

const (
	maxDetailSamples = 1000    // raw samples of one rank that are kept
	maxDetailAll     = 100_000 // of all ranks
	maxDetailRanks   = 65_536
)

// PointDetail is everything that an artifact says about the samples of one point.
type PointDetail struct {
	Coordinates
	Position int          // in iteration_groups
	Wall     float64      // the group's wall_time (seconds); NaN when it is no finite number
	Ranks    []RankDetail // in the order of rank_results
}

// RankDetail is one rank's measurement of a point. Without evidence, all but Rank, Worker
// and Wall is empty.
type RankDetail struct {
	Rank     int     // finding.NoRank when it does not tell
	Worker   string  // worker_id
	Wall     float64 // retained wall_time (seconds); NaN when it is no finite number
	Measured bool    // there is a benchmark_measurement object

	Prompts         PromptsDetail
	Regime          string  // kv_seed_regime of the preparation
	CompletedBefore int64   // completed_points_before; -1 unknown
	WarmupBefore    int64   // warmup_records_before; -1 unknown
	Expected        int64   // expected_internal_samples; -1 unknown
	Method          string  // of the estimate
	Indices         []int64 // raw_sample_indices, at most 1,000

	Samples      []SampleDetail // at most 1,000, and 100,000 of all ranks
	SamplesTotal int
}

// PromptsDetail is what was injected.
type PromptsDetail struct {
	Status   string // recorded, unavailable
	Hash     string // sha256
	Requests int
	Tokens   int64 // of all requests
}

// SampleDetail is one raw sample.
type SampleDetail struct {
	Index, Forward             int64   // sample_index and forward_index; -1 unknown
	Basis                      string  // of the timing
	Start, End                 float64 // clock of the rank's process (seconds); NaN unknown
	Wall                       float64 // seconds; NaN when it is no finite number
	Status                     string  // of the dispatch: observed, unavailable
	Mode                       string  // runtime_mode, as it stands
	Unpadded, Padded, Paddings int64   // tokens; -1 unknown
}

// errRead ends a search.
var errRead = errors.New("read")

// ReadPoint reads what an artifact says about the samples of the point with a benchmark
// id: in a rank artifact, or a merged one, those of every rank. The error is [ErrNoPoint]
// when there is none, else one of reading src or of the document's text up to the point.
func ReadPoint(src io.ReaderAt, id int64) (*PointDetail, error) {
	at, position, err := findPoint(src, id)
	if err != nil {
		return nil, err
	}
	d := &detailReader{
		s:        jsonstream.New(src, at, 0, jsonstream.Trusted, jsonstream.Limits{}),
		r:        &reader{src: src, texts: texts{known: map[string]string{}}},
		evidence: protocol.NewEvidenceReader(src, protocol.Contract{}),
	}
	d.evidence.Detail, d.evidence.Sample = true, d.sample
	d.p.Position = position
	if err := d.read(); err != nil {
		return nil, err
	}
	return &d.p, nil
}

// findPoint returns the offset and the position of the first group with a benchmark id.
func findPoint(src io.ReaderAt, id int64) (at int64, position int, err error) {
	s := jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	group := func(i int) error {
		found := false
		off, _, err := s.Object(func(name []byte) error {
			if string(name) != "benchmark_id" {
				_, err := s.Skip()
				return err
			}
			f, err := s.Field()
			found = f.Is(id)
			return err
		})
		if err == nil && found {
			at, position, err = off, i, errRead
		}
		return err
	}
	_, _, err = s.Object(func(name []byte) (err error) {
		if string(name) == "iteration_groups" {
			_, _, err = s.Array(group)
		} else {
			_, err = s.Skip()
		}
		return err
	})
	switch {
	case errors.Is(err, errRead):
		return at, position, nil
	case err == nil:
		err = ErrNoPoint
	}
	return 0, 0, err
}

// detailReader reads one iteration group for its samples.
type detailReader struct {
	s        *jsonstream.Scanner
	r        *reader // of points and texts
	evidence *protocol.EvidenceReader
	p        PointDetail
	rank     RankDetail
	samples  int
}

func (d *detailReader) read() error {
	s := d.s
	d.p.Wall = math.NaN()
	_, _, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "point":
			var p point
			p, err = d.r.readPoint(s)
			d.p.Coordinates = p.Coordinates
		case "wall_time":
			var f jsonstream.Float
			f, err = s.Float()
			d.p.Wall = seconds(f)
		case "rank_results":
			d.p.Ranks, d.samples = nil, 0
			_, _, err = s.Array(func(int) error { return d.readRank() })
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (d *detailReader) readRank() error {
	s := d.s
	d.rank = RankDetail{Rank: -1, Wall: math.NaN(), CompletedBefore: -1, WarmupBefore: -1, Expected: -1}
	_, _, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "dp_rank":
			var f jsonstream.Field
			if f, err = s.Field(); f.NonNegative() && f.Int <= artifact.MaxRank {
				d.rank.Rank = int(f.Int)
			}
		case "fpms":
			_, _, err = s.Array(func(i int) (err error) {
				if i > 0 {
					_, err = s.Skip()
				} else {
					_, _, err = s.Object(d.fpmMember)
				}
				return err
			})
		default:
			_, err = s.Skip()
		}
		return err
	})
	if len(d.p.Ranks) < maxDetailRanks {
		d.p.Ranks = append(d.p.Ranks, d.rank)
	}
	return err
}

func (d *detailReader) fpmMember(name []byte) (err error) {
	s, x := d.s, &d.rank
	switch string(name) {
	case "worker_id":
		var v jsonstream.Scalar
		v, err = s.Scalar()
		x.Worker = d.r.texts.of(v)
	case "wall_time":
		var f jsonstream.Float
		f, err = s.Float()
		x.Wall = seconds(f)
	case "benchmark_measurement":
		x.Samples, x.SamplesTotal = nil, 0
		var e *protocol.Evidence
		if e, err = d.evidence.Read(s, nil); err == nil {
			x.take(e, &d.r.texts)
		}
	default:
		_, err = s.Skip()
	}
	return err
}

func (x *RankDetail) take(e *protocol.Evidence, t *texts) {
	x.Measured = e.Object
	x.Prompts = PromptsDetail{
		Status: t.keep(e.Prompts.Status.Text), Hash: t.keep(e.Prompts.Hash.Text),
		Requests: e.Prompts.Requests, Tokens: e.Prompts.Tokens,
	}
	x.Regime, x.Method = t.keep(e.Regime.Text), t.keep(e.Method.Text)
	x.CompletedBefore, x.WarmupBefore, x.Expected = index(e.CompletedBefore), index(e.WarmupBefore), index(e.Expected)
	x.Indices = append([]int64(nil), e.Indices...)
	x.SamplesTotal = e.Samples
}

func (d *detailReader) sample(raw *protocol.RawSample) error {
	if len(d.rank.Samples) >= maxDetailSamples || d.samples >= maxDetailAll {
		return nil
	}
	d.samples++
	t := &d.r.texts
	d.rank.Samples = append(d.rank.Samples, SampleDetail{
		Index: index(raw.Index), Forward: index(raw.Forward), Basis: t.keep(raw.Basis.Text),
		Start: seconds(raw.Start), End: seconds(raw.End), Wall: seconds(raw.Wall),
		Status: t.keep(raw.Status.Text), Mode: t.keep(raw.Mode.Text),
		Unpadded: index(raw.Unpadded), Padded: index(raw.Padded), Paddings: index(raw.Paddings),
	})
	return nil
}
