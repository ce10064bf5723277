package protocol

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/column"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// maxSamples bounds the raw FPMs, and the sample indices, of one FPM (input.limit): a
// few numbers are held for each until the FPM is judged.
const maxSamples = 1_000_000

const measurementTail = "/benchmark_measurement"

// measurement is one benchmark_measurement while it is read.
type measurement struct {
	object   bool
	off      int64
	version  jsonstream.Field
	rank     jsonstream.Field
	key      text
	prepared bool // preparation is an object
	prep     jsonstream.Field
	grid     text
	expected jsonstream.Field

	raw      jsonstream.Field       // kind and place of raw_fpms
	walls    column.Column[float64] // NaN where the raw wall time is unsound
	workers  workers
	estimate jsonstream.Field
	method   string
	methodAt jsonstream.Field
	indices  []int64
	list     jsonstream.Field // kind and place of raw_sample_indices
	integers bool             // every index is an integer
}

// text is a string that was compared as it was read.
type text struct {
	kind  jsontext.Kind
	off   int64
	equal bool
}

// worker is the worker id of a raw FPM.
type worker struct {
	hash uint64
	off  int64 // of the id, or of the raw FPM when it has none
	has  bool
}

// workers are the worker ids of the raw FPMs. One that is no object has nothing to compare.
type workers struct {
	objects column.Marks
	hash    column.Column[uint64]
	off     column.Column[int64] // below 0: of a raw FPM that has none
}

func (w *workers) addNone() { w.objects.Add(false) }

func (w *workers) add(x worker) {
	if !x.has {
		x.off = ^x.off
	}
	w.objects.Add(true)
	w.hash.Add(x.hash)
	w.off.Add(x.off)
}

func (w *workers) len() int { return w.objects.Len() }

// at returns a worker id; ok is false where there is nothing to compare.
func (w *workers) at(i int) (x worker, ok bool) {
	at, ok := w.objects.Rank(i)
	if !ok {
		return x, false
	}
	if x = (worker{w.hash.At(at), w.off.At(at), true}); x.off < 0 {
		x.off, x.has = ^x.off, false
	}
	return x, true
}

func (w *workers) reset() {
	w.objects.Reset()
	w.hash.Reset()
	w.off.Reset()
}

func (m *measurement) reset() {
	m.walls.Reset()
	m.workers.reset()
	*m = measurement{walls: m.walls, workers: m.workers, indices: m.indices[:0], integers: true}
}

func (r *Reader) readMeasurement() (err error) {
	m := &r.m
	m.off, m.object, err = r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "schema_version":
			m.version, err = r.s.Field()
		case "dp_rank":
			m.rank, err = r.s.Field()
		case "point_key":
			m.key, err = r.readText(r.p.Key)
		case "preparation":
			err = r.readPreparation()
		case "expected_internal_samples":
			m.expected, err = r.s.Field()
		case "raw_fpms":
			err = r.readRaw()
		case "estimate":
			err = r.readEstimate()
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	r.fpm.Measurement = m.off
	return err
}

func (r *Reader) readText(want string) (text, error) {
	v, err := r.s.Scalar()
	return text{kind: v.Kind, off: v.Offset, equal: v.Equals(want)}, err
}

func (r *Reader) readPreparation() (err error) {
	m := &r.m
	m.prep.Kind = r.s.Peek()
	m.prep.Offset, m.prepared, err = r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "grid_digest":
			m.grid, err = r.readText(r.grid)
		case "warmup_records_before":
			r.fpm.WarmupBefore, err = r.s.Field()
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	return err
}

func (r *Reader) readEstimate() (err error) {
	m := &r.m
	m.estimate.Kind = r.s.Peek()
	m.estimate.Offset, _, err = r.s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "method":
			var v jsonstream.Scalar
			v, err = r.s.Scalar()
			m.methodAt = v.Field()
			m.method, _ = v.Text()
		case "raw_sample_indices":
			err = r.readIndices()
		default:
			_, err = r.s.Skip()
		}
		return err
	})
	return err
}

func (r *Reader) readIndices() (err error) {
	m := &r.m
	m.list.Kind = r.s.Peek()
	m.list.Offset, _, err = r.s.Array(func(i int) error {
		f, err := r.s.Field()
		m.integers = m.integers && f.Integer
		if i >= maxSamples {
			return r.s.LimitExceeded("more than %d sample indices in one estimate", maxSamples)
		}
		m.indices = append(m.indices, f.Int)
		return err
	})
	return err
}

// judge applies the rules to the FPM that was read.
func (r *Reader) judge() {
	m := &r.m
	if r.contract.Measurement != Declared {
		return
	}
	const pointer = measurementTail
	present := r.fpm.Measurement >= 0
	if !m.object {
		r.either(finding.MeasurementMissing, pointer, present, m.off, r.fpm.Offset, "the FPM carries no measurement evidence", "an object")
		return
	}
	if !m.version.Is(1) {
		r.field(finding.MeasurementMissing, pointer+"/schema_version", m.version, m.off, "the measurement's schema_version is not 1", "1")
	}
	if r.p.HasRank && !m.rank.Is(r.p.Rank) {
		r.field(finding.MeasurementMissing, pointer+"/dp_rank", m.rank, m.off, "the measurement belongs to another DP rank", strconv.FormatInt(r.p.Rank, 10))
	}
	r.judgeIdentity()
	if r.contract.Execution == Declared {
		r.judgeCount()
		r.judgeWorkers()
		r.judgeEstimate()
	}
}

func (r *Reader) judgeIdentity() {
	m := &r.m
	const pointer = measurementTail
	if !r.p.NoPoint && (!m.key.equal || r.p.Key == "") {
		want := `"` + r.p.Key + `"`
		if r.p.Key == "" {
			want = "the content key of a point, which this one lacks: it has no point_type or no batch_size"
		}
		r.either(finding.MeasurementIdentity, pointer+"/point_key", m.key.kind != 0, m.key.off, m.off,
			"point_key is not the content key of the group's point", want)
	}
	switch {
	case !m.prepared:
		r.field(finding.MeasurementIdentity, pointer+"/preparation", m.prep, m.off, "the measurement has no preparation object", "an object")
	case r.grid != "" && !m.grid.equal:
		r.either(finding.MeasurementIdentity, pointer+"/preparation/grid_digest", m.grid.kind != 0, m.grid.off, m.prep.Offset,
			"the measurement was prepared for another grid", `"`+r.grid+`"`)
	}
}

func (r *Reader) judgeCount() {
	m := &r.m
	if r.inner >= 0 {
		r.broken(finding.SampleCount, "/"+SampleField, r.inner, "the retained FPM itself carries a benchmark_sample", "none: a median can combine executions")
	}
	switch {
	case m.raw.Kind != '[':
		r.field(finding.SampleCount, measurementTail+"/raw_fpms", m.raw, m.off, "raw_fpms is not a list", "a non-empty list")
	case m.walls.Len() == 0:
		r.broken(finding.SampleCount, measurementTail+"/raw_fpms", m.raw.Offset, "raw_fpms is empty", "a non-empty list")
	case !m.expected.Integer || m.expected.Int < int64(m.walls.Len()):
		r.field(finding.SampleCount, measurementTail+"/expected_internal_samples", m.expected, m.off,
			"expected_internal_samples is not an integer that covers the raw FPMs", "an integer of at least "+strconv.Itoa(m.walls.Len()))
	}
}

func (r *Reader) judgeWorkers() {
	for i := range r.m.workers.len() {
		if w, ok := r.m.workers.at(i); ok && w.hash != r.worker {
			r.either(finding.SampleIdentity, rawTail(i, "/worker_id"), w.has, w.off, w.off,
				"the raw FPM has another worker_id than the retained FPM", "the retained FPM's worker_id")
		}
	}
}

// judgeEstimate applies sample.reduction and, where the reduction is sound,
// sample.estimate.
func (r *Reader) judgeEstimate() {
	m := &r.m
	if m.walls.Len() == 0 || !r.judgeReduction() {
		return
	}
	retained, ok := r.fpm.WallTime()
	for _, at := range m.indices {
		ok = ok && !math.IsNaN(m.walls.At(int(at)))
	}
	if !ok {
		return
	}
	selected := slices.Clone(m.indices)
	slices.SortStableFunc(selected, func(a, b int64) int { return cmp.Compare(m.walls.At(int(a)), m.walls.At(int(b))) })
	at := selected[len(selected)/2]
	if median := m.walls.At(int(at)); !IsClose(retained, median, 1e-9, 1e-12) {
		r.either(finding.SampleEstimate, "/wall_time", r.fpm.Wall.Kind != 0, r.fpm.Wall.Offset, r.fpm.Offset,
			"the retained wall_time and the raw samples contradict each other: the upper median of those selected is "+
				rawTail(int(at), "/wall_time")[1:]+" of the same FPM, "+formatFloat(median)+"; which of the two was changed cannot be told", formatFloat(median))
	}
}

func (r *Reader) judgeReduction() bool {
	m := &r.m
	const pointer = measurementTail + "/estimate"
	n := int64(m.walls.Len())
	const indices = pointer + "/raw_sample_indices"
	switch {
	case m.estimate.Kind != '{':
		r.field(finding.SampleReduction, pointer, m.estimate, m.off, "the measurement has no estimate object", "an object")
	case m.list.Kind != '[' || len(m.indices) == 0:
		r.field(finding.SampleReduction, indices, m.list, m.estimate.Offset, "raw_sample_indices is not a non-empty list", "a non-empty list")
	case !m.integers || !increasing(m.indices) || m.indices[0] < 0 || m.indices[len(m.indices)-1] >= n:
		r.broken(finding.SampleReduction, indices, m.list.Offset, "raw_sample_indices are not strictly increasing positions of raw FPMs",
			"integers from 0 to "+strconv.FormatInt(n-1, 10)+", strictly increasing")
	default:
		return r.judgeMethod(n)
	}
	return false
}

// judgeMethod holds the selected samples against the method. The indices are increasing
// and in range.
func (r *Reader) judgeMethod(n int64) bool {
	m := &r.m
	first, count := m.indices[0], int64(len(m.indices))
	want := ""
	switch m.method {
	case "single_step":
		if n != 1 {
			want = "exactly one raw FPM for single_step"
		}
	case "last_step":
		if count != 1 || first != n-1 {
			want = "[" + strconv.FormatInt(n-1, 10) + "] for last_step"
		}
	case "adjacent_upper_median":
		if first != 1 || count != n-1 {
			want = "every index from 1 to " + strconv.FormatInt(n-1, 10) + " for adjacent_upper_median"
		}
	default:
		r.field(finding.SampleReduction, measurementTail+"/estimate/method", m.methodAt, m.estimate.Offset,
			"the reduction method is not known", "single_step, last_step or adjacent_upper_median")
		return false
	}
	if want != "" {
		r.broken(finding.SampleReduction, measurementTail+"/estimate/raw_sample_indices", m.list.Offset,
			"the selected samples are not those of the method", want)
	}
	return want == ""
}

func increasing(values []int64) bool {
	for i := 1; i < len(values); i++ {
		if values[i] <= values[i-1] {
			return false
		}
	}
	return true
}

// IsClose tells whether |a-b| <= max(rel·max(|a|,|b|), abs), as Python's math.isclose: an
// infinity, such as a sum that overflows, is close to nothing but itself.
func IsClose(a, b, rel, abs float64) bool {
	if math.IsInf(a, 0) || math.IsInf(b, 0) {
		return a == b
	}
	return math.Abs(a-b) <= max(rel*max(math.Abs(a), math.Abs(b)), abs)
}
