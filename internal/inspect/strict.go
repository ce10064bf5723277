package inspect

import (
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/protocol"
)

// scheduledFields are the counts of what was scheduled, in the order of counts5.
var scheduledFields = [5]string{
	"num_prefill_requests", "sum_prefill_tokens", "sum_prefill_kv_tokens", "num_decode_requests", "sum_decode_kv_tokens",
}

// counts5 is what a point asks an engine to schedule; nothing is known where the point's
// coordinates are unsound.
type counts5 struct {
	known  bool
	counts [5]int64
}

func (x *groupReader) scope() finding.Scope {
	if x.g.id.Integer {
		return x.r.scope.Of(x.g.id.Int)
	}
	return x.r.scope
}

func (x *groupReader) judgeWall() {
	if w := x.g.wall; w.Finite && w.Value <= 0 {
		x.scope().Broken(finding.StrictWall, x.pointer("/wall_time"), w.Offset, "the group's wall_time is not above 0", "seconds, more than 0")
	}
}

// judgePoint applies strict.scheduled to the coordinates, once for a group. A group
// without a point is reported as group.id.
func (x *groupReader) judgePoint() {
	g := &x.g
	if g.judged || g.point.at.Kind != '{' {
		return
	}
	g.judged = true
	p := &g.point
	sound := x.check("batch_size", p.batch, p.batch.Integer && p.batch.Int >= 1, "batch_size is no number of requests", "an integer of at least 1")
	least := int64(1)
	if sound {
		least = p.batch.Int
	}
	atLeast := "an integer of at least " + strconv.FormatInt(least, 10)
	switch p.Type {
	case "prefill":
		sound = x.check("total_prefill_tokens", p.prefill, p.prefill.Integer && p.prefill.Int >= least, "a prefill point has fewer new tokens than requests", atLeast) && sound
		sound = x.check("total_kv_read_tokens", p.kv, !p.kv.Present() || p.kv.NonNegative(), "total_kv_read_tokens is not a token count", "an integer of at least 0") && sound
		g.want.counts = [5]int64{p.batch.Int, p.prefill.Int, p.kv.Int}
	case "decode":
		sound = x.check("total_prefill_tokens", p.prefill, !p.prefill.Present() || p.prefill.IsInteger(0), "a decode point has new tokens", "0") && sound
		sound = x.check("total_kv_read_tokens", p.kv, p.kv.Integer && p.kv.Int >= least, "a decode point reads fewer KV tokens than it has requests", atLeast) && sound
		g.want.counts = [5]int64{3: p.batch.Int, p.kv.Int}
	default:
		sound = x.check("point_type", p.typ, false, "the point's type is not known", "prefill or decode")
	}
	g.want.known = sound
}

func (x *groupReader) check(name string, f jsonstream.Field, sound bool, message, expected string) bool {
	if !sound {
		x.scope().Either(finding.StrictScheduled, x.pointer("/point/"+name), f.Present(), f.Offset, x.g.point.at.Offset, message, expected)
	}
	return sound
}

func (x *groupReader) readScheduled() (err error) {
	s, u := x.s, &x.unit
	u.scheduled.Kind = s.Peek()
	u.scheduled.Offset, _, err = s.Object(func(name []byte) (err error) {
		for i := range scheduledFields {
			if string(name) == scheduledFields[i] {
				x.scheduled[i], err = s.Field()
				return err
			}
		}
		_, err = s.Skip()
		return err
	})
	return err
}

// judgeFPM applies strict.wall and strict.scheduled to an FPM of a group. A wall time that
// is no finite number is reported as group.wall-time.
func (x *groupReader) judgeFPM() {
	u := &x.unit
	scope := &x.place.Scope
	if w := u.wall; w.Kind == 0 || w.Finite && w.Value <= 0 {
		scope.Either(finding.StrictWall, x.place.Pointer("/wall_time"), w.Kind != 0, w.Offset, u.off, "the FPM's wall_time is not above 0", "seconds, more than 0")
	}
	const pointer = "/scheduled_requests"
	if u.scheduled.Kind != '{' {
		scope.Either(finding.StrictScheduled, x.place.Pointer(pointer), u.scheduled.Present(), u.scheduled.Offset, u.off, "the FPM has no scheduled_requests", "an object")
		return
	}
	if !x.g.want.known {
		return
	}
	for i, f := range x.scheduled {
		if want := x.g.want.counts[i]; !f.Is(want) {
			scope.Either(finding.StrictScheduled, x.place.Pointer(pointer+"/"+scheduledFields[i]), f.Present(), f.Offset, u.scheduled.Offset,
				"what was scheduled is not the point", strconv.FormatInt(want, 10))
		}
	}
}

// judge applies the strict rules to a file's own result.
func (x *resultReader) judge() {
	r, w := x.r, &x.x
	scope := r.scope
	if w.point.id.Integer {
		scope = scope.Of(w.point.id.Int)
	}
	if w.e != nil && r.contract.Measurement == protocol.Declared {
		at := x.pointer("/fpms/0/benchmark_measurement")
		sound := w.e.JudgeResult(scope, at, w.at, w.regime)
		if sound && r.contract.Execution == protocol.Declared && r.outline.Recorded() {
			r.history.CheckResult(scope, at+"/preparation", w.e.WarmupBefore, w.e.CompletedBefore)
		}
	}
	x.judgeRegime(scope)
}
