package warmup

import (
	"slices"
	"sort"
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// maxHistory bounds the records whose place among the points is kept: 8 bytes each.
const maxHistory = 1 << 20

// History tells how many records of a ledger come before a point.
type History struct {
	before  []int64 // completed_points_before of each record, in any order
	sorted  bool
	unknown bool // that of a record is unsound, or the records are too many
}

// Add takes note of a record.
func (h *History) Add(x *Record) {
	if !x.Object || !x.CompletedBefore.NonNegative() || len(h.before) == maxHistory {
		h.unknown = true
		return
	}
	h.before, h.sorted = append(h.before, x.CompletedBefore.Int), false
}

// Reset makes the history one of no record.
func (h *History) Reset() { h.before, h.unknown = h.before[:0], false }

// Before returns the number of records whose completed_points_before is at most
// completed, and the number of all. It is not known where a record does not tell.
func (h *History) Before(completed int64) (n, all int, known bool) {
	if !h.sorted {
		slices.Sort(h.before)
		h.sorted = true
	}
	n = sort.Search(len(h.before), func(i int) bool { return h.before[i] > completed })
	return n, len(h.before), !h.unknown
}

// CheckResult applies what warmup.strict asks of the FPM of a rank's own result: with a
// recorded ledger, warmup_records_before is the number of records whose
// completed_points_before is at most the FPM's. Pointer is that of the preparation. What
// is no number of records of the ledger is warmup.reference.
func (h *History) CheckResult(scope finding.Scope, pointer string, before, completed jsonstream.Field) {
	if !before.NonNegative() || !completed.NonNegative() {
		return
	}
	n, all, known := h.Before(completed.Int)
	if known && before.Int <= int64(all) && before.Int != int64(n) {
		scope.Broken(finding.WarmupStrict, pointer+"/warmup_records_before", before.Offset,
			"warmup_records_before is not the number of records up to completed_points_before", strconv.Itoa(n))
	}
}

// strict applies warmup.strict to one record after the other.
type strict struct {
	scope     finding.Scope
	results   int   // number of the file's own results
	completed int64 // of the last record that tells, -1 when none does
	start     int64 // likewise
}

// CheckStrict reads the ledger that comes next, of which [Walk] has told that it is
// recorded, and applies warmup.strict to its records. Results is the number of results in the file. What [Read]
// reports is not reported again. An error is one of the document's text.
func CheckStrict(s *jsonstream.Scanner, scope finding.Scope, results int) error {
	r := strict{scope: scope, results: results, completed: -1, start: -1}
	_, err := Walk(s, func(x *Record) error {
		if x.Object {
			r.judge(x)
		}
		return nil
	})
	return err
}

func (r *strict) judge(x *Record) {
	kind := r.judgeKind(x)
	r.judgeCompleted(x)
	status := x.Status.Text == "running" || x.Status.Text == "completed" || x.Status.Text == "failed"
	if status {
		r.judgeEnd(x)
	}
	r.judgeStart(x, kind && status)
}

func (r *strict) field(x *Record, name string, f jsonstream.Field, message, expected string) {
	r.scope.EitherLate(finding.WarmupStrict, name, f.Present(), f.Offset, x.Offset, message, func() (string, string) {
		return pointer + "/records/" + strconv.Itoa(x.At) + "/" + name, expected
	})
}

func (r *strict) judgeKind(x *Record) (known bool) {
	switch x.Kind.Text {
	case "global", "eager_shape", "real_prefix_seed", "real_prefix_shape":
		return true
	}
	r.field(x, "kind", x.Kind.Field, "the record's kind is not known", "global, eager_shape, real_prefix_seed or real_prefix_shape")
	return false
}

// judgeCompleted judges completed_points_before. One that is at fault by itself is not
// what a later one is held against.
func (r *strict) judgeCompleted(x *Record) {
	const name = "completed_points_before"
	switch f := x.CompletedBefore; {
	case !f.NonNegative():
		r.field(x, name, f, "completed_points_before is not a count", "an integer of at least 0")
	case x.Kind.Text == "global" && f.Int != 0:
		r.field(x, name, f, "a global warmup comes after a point", "0")
	case f.Int > int64(r.results):
		r.field(x, name, f, "completed_points_before is more than there are results", "at most "+strconv.Itoa(r.results))
	case f.Int < r.completed:
		r.field(x, name, f, "completed_points_before decreases", "at least "+strconv.FormatInt(r.completed, 10))
		r.completed = f.Int
	default:
		r.completed = f.Int
	}
}

// judgeEnd judges that a record is running exactly when its end is unknown. A completed
// one without an end, and an end that is no index, are reported as warmup.range.
func (r *strict) judgeEnd(x *Record) {
	const name = "forward_index_end"
	switch {
	case x.Status.Text == "running" && x.End.NonNegative():
		r.field(x, name, x.End, "a running record has an end", "null")
	case x.Status.Text == "failed" && x.End.Null():
		r.field(x, name, x.End, "a failed record has no end", "an integer of at least 0")
	}
}

// judgeStart judges forward_index_start, a null one only if kind and status are known.
func (r *strict) judgeStart(x *Record, known bool) {
	const name = "forward_index_start"
	switch f := x.Start; {
	case f.Null() && known && (x.Count.Null() || x.Count.NonNegative()):
		if x.Status.Text != "failed" || x.Kind.Text != "eager_shape" || !x.Count.IsInteger(0) {
			r.field(x, name, f, "only a failed eager_shape of no forward pass has no start", "an integer of at least 0")
		}
	case f.NonNegative():
		if f.Int < r.start {
			r.field(x, name, f, "the record starts before the one before it", "at least "+strconv.FormatInt(r.start, 10))
		}
		r.start = f.Int
	}
}
