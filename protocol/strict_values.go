package protocol

import (
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// A want is what a value of the protocol must be.
type want struct {
	name     string
	expected string // as a finding says it
	is       func(*jsonvalue.Value) bool
}

// exactly wants one string.
func exactly(name, text string) want {
	return want{name, strconv.Quote(text), func(v *jsonvalue.Value) bool {
		got, ok := v.Str()
		return ok && got == text
	}}
}

func anyText(name string) want {
	return want{name, "a string", func(v *jsonvalue.Value) bool { _, ok := v.Str(); return ok }}
}

// one wants the integer 1.
func one(name string) want {
	return want{name, "1", func(v *jsonvalue.Value) bool { n, ok := v.Int64(); return ok && n == 1 }}
}

func count(name string) want {
	return want{name, "an integer of at least 0", func(v *jsonvalue.Value) bool { return v.IsInt() && (v.Raw[0] != '-' || string(v.Raw) == "-0") }}
}

func boolean(name string) want {
	return want{name, "true or false", func(v *jsonvalue.Value) bool {
		return v != nil && (v.Kind == jsonvalue.True || v.Kind == jsonvalue.False)
	}}
}

func object(name string) want {
	return want{name, "an object", func(v *jsonvalue.Value) bool { return v != nil && v.Kind == jsonvalue.Object }}
}

func protocolValues() []want {
	return []want{
		exactly("content_identity", "coordinate_rank_slot_v1"),
		anyText("content_seed"),
		{"synthetic_content", "random, sharegpt, sharegpt_chain or zeros", isSyntheticContent},
		anyText("synthetic_pool_tag"),
		exactly("prompt_hash_encoding", "uint32_le"),
		one("independent_repetitions"),
		exactly("timing_metric", "scheduler_wall_time"),
		exactly("input_evidence_scope", "injected_prompt_token_ids"),
		object("preparation"),
	}
}

func preparationValues() []want {
	return []want{
		count("warmup_iterations"), boolean("prefill_real_seed"), boolean("decode_real_kv_warmup"),
		count("giant_kv_threshold"), count("giant_kv_repeats"),
	}
}

// contractValues are those beyond the three that the merge itself requires; it takes 1.0
// for the version 1.
func contractValues() []want {
	return []want{
		exactly("forward_index_scope", "rank_process"),
		exactly("timing_clock", "process_local_monotonic"),
		exactly("cudagraph_source", "ModelRunnerOutput.cudagraph_stats"),
		exactly("warmup_scope", "request_completion_and_existing_shape_validation"),
	}
}

func isSyntheticContent(v *jsonvalue.Value) bool {
	text, _ := v.Str()
	return text == "random" || text == "sharegpt" || text == "sharegpt_chain" || text == "zeros"
}

// CheckValues applies protocol.value to a measurement_protocol of the known version: each
// known field has one of its known values. Further fields are no fault. What [Check]
// reports is not reported again.
func CheckValues(protocol *jsonvalue.Value, scope finding.Scope) {
	const pointer = "/measurement_protocol"
	if n, ok := protocol.Get("schema_version").Int64(); !ok || n != 1 {
		return
	}
	checkAll(protocol, pointer, protocolValues(), scope)
	checkUnobserved(protocol, pointer+"/unobserved", scope)
	if p := protocol.Get("preparation"); p != nil && p.Kind == jsonvalue.Object {
		checkAll(p, pointer+"/preparation", preparationValues(), scope)
	}
	if p := protocol.Get("execution_evidence"); p != nil && p.Kind == jsonvalue.Object {
		at := pointer + "/execution_evidence"
		if v := p.Get("schema_version"); v != nil && v.Kind == jsonvalue.Number && !v.IsInt() && jsonvalue.EqualNumbers(v.Raw, []byte("1")) {
			checkAll(p, at, []want{one("schema_version")}, scope)
		}
		checkAll(p, at, contractValues(), scope)
	}
}

func checkAll(parent *jsonvalue.Value, pointer string, wants []want, scope finding.Scope) {
	for _, w := range wants {
		if v := parent.Get(w.name); !w.is(v) {
			either(scope, finding.ProtocolValue, pointer+"/"+w.name, v, parent, w.name+" is not what the known protocol has", w.expected)
		}
	}
}

func checkUnobserved(protocol *jsonvalue.Value, pointer string, scope finding.Scope) {
	list := protocol.Get("unobserved")
	if list == nil || list.Kind != jsonvalue.Array {
		either(scope, finding.ProtocolValue, pointer, list, protocol, "unobserved is not a list", "a list of non-empty strings")
		return
	}
	for i := range list.Elems {
		if text, _ := list.Elems[i].Str(); text == "" {
			scope.Broken(finding.ProtocolValue, pointer+"/"+strconv.Itoa(i), list.Elems[i].Offset, "an entry of unobserved is not a non-empty string", "a non-empty string")
		}
	}
}
