package inspect

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// balanced is the reason to skip the KV warmup that leaves a point's markers as they are:
// with tensor parallelism every worker sees every token, whatever its content.
const balanced = "moe_tp_balanced_by_construction"

// verdict is what became of the KV warmup of decode points.
type verdict struct {
	state  warmState
	reason string // why it was skipped; empty when that is not told
}

type warmState int

const (
	warmUnknown warmState = iota // the file does not tell
	warmOff                      // the switch was off
	warmSkipped
	warmDone
)

// kvWarmup reads the verdict from kvwarm and, as the group follows its least able rank,
// from capacity.common.
func (f *Facts) kvWarmup() verdict {
	block := f.Blocks["kvwarm"]
	enabled := block.Get("enabled")
	reason, _ := block.Get("skip_reason").Str()
	switch {
	case block == nil && !slices.Contains(f.TooLarge, "kvwarm"):
		return verdict{state: warmOff}
	case enabled == nil || (enabled.Kind != jsonvalue.True && enabled.Kind != jsonvalue.False):
		return verdict{}
	case enabled.Kind == jsonvalue.False || reason == "flag_off":
		return verdict{state: warmOff}
	case reason != "":
		return verdict{warmSkipped, reason}
	case isNo(block.Get("warm_eligible")) || isNo(f.Blocks["capacity"].Get("common").Get("kvwarm_eligible")):
		return verdict{state: warmSkipped}
	}
	return verdict{state: warmDone}
}

func isNo(v *jsonvalue.Value) bool { return v != nil && v.Kind == jsonvalue.False }

// judgeRegime applies strict.regime. A result without the field is of an older producer.
func (x *resultReader) judgeRegime(scope finding.Scope) {
	w := &x.x
	if !w.regime.Present() || w.point.at.Kind != '{' {
		return
	}
	var allowed []string
	var because, conflict string
	switch w.point.Type {
	case "prefill":
		allowed, because, conflict = prefillRegimes(w.point.markers)
	case "decode":
		allowed, because, conflict = x.r.warm.decodeRegimes(w.point.markers)
	default:
		return // strict.scheduled
	}
	if conflict != "" {
		scope.Broken(finding.StrictRegime, x.pointer("/point/sample_reasons"), w.point.reasons.Offset, conflict, "markers that agree with the warmup")
		return
	}
	for _, regime := range allowed {
		family, any := strings.CutSuffix(regime, "*")
		if w.regime.Text == regime || any && strings.HasPrefix(w.regime.Text, family) {
			return
		}
	}
	scope.Broken(finding.StrictRegime, x.pointer("/kv_seed_regime"), w.regime.Offset,
		"kv_seed_regime is not what the point's markers and the KV warmup say: "+because, alternatives(allowed))
}

// alternatives quotes the regimes that a point may have.
func alternatives(allowed []string) string {
	quoted := make([]string, len(allowed))
	for i, regime := range allowed {
		family, any := strings.CutSuffix(regime, "*")
		quoted[i] = strconv.Quote(family)
		if any {
			quoted[i] += " and a reason"
		}
	}
	return strings.Join(quoted, " or ")
}

// prefillRegimes returns the regimes that a prefill point may have and what says so, or why
// its markers contradict each other.
func prefillRegimes(m markers) (allowed []string, because, conflict string) {
	switch {
	case m.realPrefix && m.fakePrefix:
		return nil, "", "the point is marked as real and as fake"
	case m.realPrefix:
		return []string{"real_prefix"}, "the point is marked prefill_real_seed", ""
	case m.fakePrefix:
		return []string{"fake_prefix"}, "the point is marked prefill_fake_prefix", ""
	}
	return []string{"not_applicable"}, "the point is marked neither prefill_real_seed nor prefill_fake_prefix", ""
}

// decodeRegimes returns the regimes that a decode point may have and what says so, or what
// its markers contradict. Where recurrent state is random, the attention's KV cache is told of beside
// it, whatever the warmup.
func (v verdict) decodeRegimes(m markers) (allowed []string, because, conflict string) {
	const realKDA, fakeKDA = "real_attention_kv_random_kda", "fake_attention_kv_random_kda"
	switch {
	case m.realKV && m.fakeKV:
		return nil, "", "the point is marked as real and as fake"
	case m.realKV && v.state == warmOff:
		return nil, "", "the point is marked as real, and the KV warmup was off"
	case m.realKV && v.state == warmSkipped && v.reason != balanced:
		return nil, "", "the point is marked as real, and the KV warmup was skipped"
	}
	switch v.state {
	case warmOff:
		return []string{"legacy", "skip:flag_off", fakeKDA}, "the KV warmup was off", ""
	case warmSkipped:
		because = "the KV warmup was skipped, because " + cmp.Or(clip(v.reason, 200), "of a reason that is not told")
		if m.realKV {
			because += ", and the point is marked kvwarm_real_kv"
		}
		return append(v.skips(m), "fake_fallback", fakeKDA), because, ""
	}
	switch {
	case m.realKV:
		return []string{"real_kv", realKDA}, "the point is marked kvwarm_real_kv", ""
	case m.fakeKV:
		return []string{"fake_fallback", fakeKDA}, "the point is marked kvwarm_fake_fallback", ""
	}
	const unmarked = "the point is marked neither kvwarm_real_kv nor kvwarm_fake_fallback"
	if v.state == warmUnknown {
		return []string{"unstamped", "legacy", "skip:*", fakeKDA}, unmarked + ", and whether the KV warmup took place is not told", ""
	}
	return []string{"unstamped", fakeKDA}, unmarked + ", and the KV warmup took place", ""
}

// skips are the regimes that name why the warmup was skipped. A producer may leave out
// the particulars behind the reason's colon.
func (v verdict) skips(m markers) (list []string) {
	switch kind, _, more := strings.Cut(v.reason, ":"); {
	case v.reason == "":
		list = []string{"skip:*"}
	case more:
		list = []string{"skip:" + v.reason, "skip:" + kind}
	default:
		list = []string{"skip:" + v.reason}
	}
	if m.realKV {
		list = append(list, "real_kv", "real_attention_kv_random_kda")
	}
	return list
}
