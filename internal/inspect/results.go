package inspect

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/protocol"
)

const (
	maxPointSamples = 1 << 16 // raw samples of one point that its median is taken of
	maxWorst        = 20
	slow            = 3 // times the median
)

// resultReader reads a file's own results.
type resultReader struct {
	r      *reader
	s      *jsonstream.Scanner
	list   bool // results are a list
	n      int  // its length
	walls  []float64
	sorted []float64
	x      result
}

// result is one entry while it is read.
type result struct {
	at     int
	off    int64
	point  point
	regime protocol.Text // of the row
	text   string        // the same, as it is kept
	unit   fpm
	e      *protocol.Evidence
}

func (x *resultReader) read(s *jsonstream.Scanner) (err error) {
	f := x.r.f
	f.Results, f.Samples, x.n, x.s = nil, Samples{}, 0, s
	x.r.evidence.Sample = x.sample
	_, x.list, err = s.Array(x.readResult)
	return err
}

func (x *resultReader) readResult(i int) (err error) {
	x.n++
	x.x = result{at: i, unit: fpm{forward: -1}}
	x.walls = x.walls[:0]
	x.x.off, _, err = x.s.Object(x.member)
	if err != nil {
		return err
	}
	if x.r.strict() {
		x.judge()
	}
	x.keep()
	return nil
}

func (x *resultReader) member(name []byte) (err error) {
	s, w := x.s, &x.x
	switch string(name) {
	case "point":
		w.point, err = x.r.readPoint(s)
	case "kv_seed_regime":
		var v jsonstream.Scalar
		v, err = s.Scalar()
		w.regime.Field, w.text = v.Field(), x.r.texts.of(v)
		w.regime.Text, _ = v.Text()
	case "fpms":
		_, _, err = s.Array(func(i int) (err error) {
			if i > 0 {
				_, err = s.Skip()
			} else {
				w.unit.off, w.unit.object, err = s.Object(x.fpmMember)
			}
			return err
		})
	default:
		_, err = s.Skip()
	}
	return err
}

func (x *resultReader) fpmMember(name []byte) (err error) {
	s, w := x.s, &x.x
	switch string(name) {
	case "wall_time":
		w.unit.wall, err = s.Float()
	case "benchmark_measurement":
		if w.e, err = x.r.evidence.Read(s, nil); err == nil {
			w.unit.forward = index(w.e.Forward)
		}
	default:
		_, err = s.Skip()
	}
	return err
}

// sample takes the wall time of a raw sample.
func (x *resultReader) sample(raw *protocol.RawSample) error {
	if raw.Object {
		x.r.f.Samples.Raw++
	}
	if raw.At < maxPointSamples {
		x.walls = append(x.walls, seconds(raw.Wall))
	}
	return nil
}

// keep adds the result to the facts.
func (x *resultReader) keep() {
	f, w := x.r.f, &x.x
	x.findOutliers()
	if n := len(f.Results); n == MaxPoints || !inProportion(n, w.off, leastResult) {
		return
	}
	at := w.point.id.Offset
	switch {
	case !w.point.at.Present():
		at = w.off
	case !w.point.id.Present():
		at = w.point.at.Offset
	}
	f.Results = append(f.Results, Result{
		ID: w.point.ID, Regime: w.text, Wall: seconds(w.unit.wall), Type: w.point.Type, Forward: w.unit.forward, Offset: at,
	})
}

// findOutliers compares the point's raw samples with their median.
func (x *resultReader) findOutliers() {
	sorted := x.sorted[:0]
	for _, wall := range x.walls {
		if !math.IsNaN(wall) {
			sorted = append(sorted, wall)
		}
	}
	x.sorted = sorted
	if len(sorted) < 2 {
		return
	}
	x.r.f.Samples.Later += len(sorted)
	if !math.IsNaN(x.walls[0]) {
		x.r.f.Samples.Later--
	}
	slices.Sort(sorted)
	median := sorted[(len(sorted)-1)/2]
	for i, wall := range x.walls {
		if !(wall > slow*median) {
			continue
		}
		found := &x.r.f.Samples
		if i == 0 {
			found.SlowFirst++
		} else {
			found.Outliers++
		}
		found.add(Outlier{ID: x.x.point.ID, Sample: i, Wall: wall, Median: median})
	}
}

// add keeps an outlier if it is one of the worst.
func (s *Samples) add(o Outlier) {
	at, _ := slices.BinarySearchFunc(s.Worst, o, func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(b.Wall/b.Median, a.Wall/a.Median), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Sample, b.Sample))
	})
	if at < maxWorst {
		s.Worst = slices.Insert(s.Worst, at, o)
		s.Worst = s.Worst[:min(len(s.Worst), maxWorst)]
	}
}

func (x *resultReader) pointer(tail string) string {
	return "/results/" + strconv.Itoa(x.x.at) + tail
}
