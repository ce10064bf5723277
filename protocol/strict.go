package protocol

import (
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

func itoa(n int) string { return strconv.Itoa(n) }

func lastPart(mode string) string { return mode[strings.LastIndexByte(mode, '.')+1:] }

func (r *EvidenceReader) broken(tail string, off int64, message, expected string) {
	r.either(tail, true, off, off, message, expected)
}

func (r *EvidenceReader) field(tail string, f jsonstream.Field, parent int64, message, expected string) {
	r.either(tail, f.Present(), f.Offset, parent, message, expected)
}

// either reports a value of the measurement, or its absence.
func (r *EvidenceReader) either(tail string, present bool, off, parent int64, message, expected string) {
	r.at.Scope.EitherLate(finding.MeasurementStrict, tail, present, off, parent, message, func() (string, string) {
		return r.at.Pointer(measurementTail + tail), expected
	})
}

// judge applies measurement.strict to the measurement that was read. Requests and raw
// FPMs were judged one by one.
func (r *EvidenceReader) judge() {
	r.judgePrompts()
	r.judgeMethod()
}

func (r *EvidenceReader) judgePrompts() {
	e, p := &r.e, &r.e.Prompts
	switch {
	case p.Kind != '{':
		r.field("/prompts", p.Field, e.Offset, "the measurement has no prompts object", "an object")
	case p.Status.Text == "recorded":
		r.judgeRecorded()
	case p.Status.Text == "unavailable":
		if p.Hash.Kind != 'n' {
			r.field("/prompts/sha256", p.Hash.Field, p.Offset, "prompts that are unavailable have no null for a hash", "null")
		}
		if p.List.Kind != '[' || p.Requests > 0 {
			r.field("/prompts/requests", p.List, p.Offset, "prompts that are unavailable have no empty list of requests", "[]")
		}
	default:
		r.field("/prompts/status", p.Status.Field, p.Offset, "the status of the prompts is not known", "recorded or unavailable")
	}
}

func (r *EvidenceReader) judgeRecorded() {
	p := &r.e.Prompts
	if p.List.Kind != '[' || p.Requests == 0 {
		r.field("/prompts/requests", p.List, p.Offset, "recorded prompts have no requests", "a non-empty list")
		return
	}
	if !r.requests.unhashed && p.Hash.Text != r.requests.hex() {
		r.field("/prompts/sha256", p.Hash.Field, p.Offset, "the hash of the prompts is not that of their requests", strconv.Quote(r.requests.hex()))
	}
}

func (r *EvidenceReader) judgeRequest(x *request) {
	field := func(name string, f jsonstream.Field, message, expected string) {
		r.at.Scope.EitherLate(finding.MeasurementStrict, name, f.Present(), f.Offset, x.off, message, func() (string, string) {
			return r.at.Pointer(measurementTail + "/prompts/requests/" + itoa(x.at) + name), expected
		})
	}
	if !x.object {
		field("", jsonstream.Field{Kind: 'n', Offset: x.off}, "the request is not an object", "an object")
		return
	}
	if !x.slot.IsInteger(int64(x.at)) {
		field("/slot", x.slot, "slot is not the request's position", itoa(x.at))
	}
	if !x.tokens.NonNegative() {
		field("/num_tokens", x.tokens, "num_tokens is not a token count", "an integer of at least 0")
	}
	if !x.hex {
		field("/sha256", x.digest, "the request's hash is not a SHA-256", "64 lower-case hexadecimal digits")
	}
}

// judgeSample judges a raw FPM. Where the execution contract is declared, a wall time
// that is not even a finite number of at least 0 is reported as sample.timing.
func (r *EvidenceReader) judgeSample(x *RawSample) {
	if x.Wall.Finite && x.Wall.Value >= 0 || r.contract.Execution != Declared {
		if !x.Wall.Finite || x.Wall.Value <= 0 {
			r.field("/raw_fpms/"+itoa(x.At)+"/wall_time", jsonstream.Field{Kind: x.Wall.Kind, Offset: x.Wall.Offset}, x.Offset,
				"the raw wall_time is not above 0", "seconds, more than 0")
		}
	}
	if r.contract.Execution != Declared || x.Status.Text != "observed" || x.Mode.Text == "" {
		return
	}
	switch lastPart(x.Mode.Text) {
	case "NONE", "PIECEWISE", "FULL":
	default:
		r.broken("/raw_fpms/"+itoa(x.At)+"/"+SampleField+"/cudagraph/runtime_mode", x.Mode.Offset,
			"the observed runtime mode is not known", "NONE, PIECEWISE or FULL, an enum's name before it or not")
	}
}

// judgeMethod holds the method against the number of samples that were expected. One
// that does not cover those that are there is reported as sample.count.
func (r *EvidenceReader) judgeMethod() {
	e := &r.e
	if !e.Expected.Integer || e.Samples == 0 || (r.contract.Execution == Declared && e.Expected.Int < int64(e.Samples)) {
		return
	}
	expected := strconv.FormatInt(e.Expected.Int, 10)
	switch {
	case e.Method.Text == "last_step" && e.Expected.Int <= 1:
		r.broken("/estimate/method", e.Method.Offset, "last_step reduces more than one expected sample, not "+expected, "another method, or expected_internal_samples of at least 2")
	case e.Method.Text == "last_step" && int64(e.Samples) != e.Expected.Int:
		r.broken("/estimate/method", e.Method.Offset, "last_step needs every expected sample: "+itoa(e.Samples)+" of "+expected+" are there", "another method, or "+expected+" raw FPMs")
	case e.Method.Text == "adjacent_upper_median" && e.Expected.Int <= 2:
		r.broken("/estimate/method", e.Method.Offset, "adjacent_upper_median reduces more than two expected samples, not "+expected, "another method, or expected_internal_samples of at least 3")
	}
}

// JudgeResult applies what measurement.strict asks of the FPM of a rank's own result: its
// completed_points_before is the result's position, and its kv_seed_regime is the
// result's; where the result names none, the measurement does not either. Pointer is that of the measurement. It tells whether
// CompletedBefore is sound, so that the ledger can be asked for it.
//
// A measurement or a preparation that is no object is for the merge to report.
func (e *Evidence) JudgeResult(scope finding.Scope, pointer string, position int, regime Text) (sound bool) {
	if !e.Object || e.Preparation.Kind != '{' {
		return false
	}
	pointer += "/preparation/"
	sound = e.CompletedBefore.IsInteger(int64(position))
	if f := e.CompletedBefore; !sound {
		scope.Either(finding.MeasurementStrict, pointer+"completed_points_before", f.Present(), f.Offset, e.Preparation.Offset,
			"completed_points_before is not the result's position", strconv.Itoa(position))
	}
	switch f := e.Regime; {
	case !regime.Present() && !f.Null(): // a null is for strict.regime
		scope.Broken(finding.MeasurementStrict, pointer+"kv_seed_regime", f.Offset,
			"the measurement was prepared for a kv_seed_regime, and its result names none", "null or absent, or that kv_seed_regime in the result")
	case regime.Kind == '"' && (f.Kind != '"' || f.Text != regime.Text):
		scope.Either(finding.MeasurementStrict, pointer+"kv_seed_regime", f.Present(), f.Offset, e.Preparation.Offset,
			"the measurement was prepared for another kv_seed_regime than its result names", quote(regime.Text))
	}
	return sound
}

// quote quotes a text for a finding, cut to what one may say.
func quote(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strconv.Quote(text)
}
