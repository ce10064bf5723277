// Package protocol reads the measurement evidence of a self-benchmark: what was declared
// about how points are measured, and what each forward-pass metric (FPM) carries to back
// it.
//
// A run that declares a measurement_protocol carries a benchmark_measurement in every FPM
// of its iteration groups: which point was measured (point_key), how it was prepared, the
// raw samples and how they were reduced to the retained one. Where the protocol also
// declares execution_evidence, every raw sample names its place in its rank's sequence of
// forward passes, its clock stamps and its CUDA graph dispatch.
//
// [Check] reads the declaration, [Reader.Read] one FPM. Both report what breaks a rule
// (protocol.*, measurement.*, sample.*) and go on. Beyond what a merge asks, [CheckValues]
// judges the declaration's values, and [EvidenceReader] reads a measurement in typed form
// and judges it as stricter consumers do (protocol.value, measurement.strict). Nothing is ever concluded from missing
// evidence: a legacy run without these blocks is sound, and has none.
package protocol

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// Field names that an execution contract declares.
const (
	SampleField = "benchmark_sample"
	WarmupField = "warmup_evidence"
)

// Standing is how far evidence of one kind may be judged.
type Standing int

// The standings.
const (
	Undeclared Standing = iota // it must not exist
	Declared                   // it must exist and keep its rules
	Unclear                    // its declaration is broken, so that nothing follows
)

// Contract is what a file's measurement_protocol declares.
type Contract struct {
	Measurement Standing // benchmark_measurement in every FPM
	Execution   Standing // benchmark_sample in every raw FPM, and a warmup ledger
}

// Check reads a measurement_protocol (nil when the file has none) and reports
// protocol.invalid and protocol.contract.
func Check(protocol *jsonvalue.Value, scope finding.Scope) Contract {
	const pointer = "/measurement_protocol"
	switch {
	case protocol == nil:
		return Contract{}
	case protocol.Kind != jsonvalue.Object:
		scope.Broken(finding.ProtocolInvalid, pointer, protocol.Offset, "measurement_protocol is not an object", "an object")
		return Contract{Unclear, Unclear}
	}
	version := protocol.Get("schema_version")
	if n, ok := version.Int64(); !ok || n != 1 {
		either(scope, finding.ProtocolInvalid, pointer+"/schema_version", version, protocol, "the protocol's schema_version is not the integer 1", "1")
		return Contract{Unclear, Unclear}
	}
	execution := protocol.Get("execution_evidence")
	if execution == nil {
		return Contract{Measurement: Declared}
	}
	if !checkContract(execution, pointer+"/execution_evidence", scope) {
		return Contract{Declared, Unclear}
	}
	return Contract{Declared, Declared}
}

func checkContract(execution *jsonvalue.Value, pointer string, scope finding.Scope) bool {
	if execution.Kind != jsonvalue.Object {
		scope.Broken(finding.ProtocolContract, pointer, execution.Offset, "execution_evidence is not an object", "an object")
		return false
	}
	sound := true
	// Unlike the protocol's own, this version need not be an integer by its spelling.
	if v := execution.Get("schema_version"); v == nil || v.Kind != jsonvalue.Number || !jsonvalue.EqualNumbers(v.Raw, []byte("1")) {
		sound = false
		either(scope, finding.ProtocolContract, pointer+"/schema_version", v, execution,
			"the execution contract's schema_version is not 1", "1")
	}
	for _, field := range []struct{ name, want string }{{"sample_field", SampleField}, {"warmup_field", WarmupField}} {
		v := execution.Get(field.name)
		if got, ok := v.Str(); !ok || got != field.want {
			sound = false
			either(scope, finding.ProtocolContract, pointer+"/"+field.name, v, execution,
				"the execution contract names another "+field.name, `"`+field.want+`"`)
		}
	}
	return sound
}

func either(scope finding.Scope, rule finding.ID, pointer string, v, parent *jsonvalue.Value, message, expected string) {
	if v != nil {
		scope.Broken(rule, pointer, v.Offset, message, expected)
	} else {
		scope.Absent(rule, pointer, parent.Offset, message, expected)
	}
}

// PointKey returns the content key of a point: the hash of its coordinates, independent
// of the grid digest and of the benchmark id (rule measurement.identity). A point without
// a type or a batch size has none.
func PointKey(point *jsonvalue.Value) (key string, ok bool) {
	if point.Get("point_type") == nil || point.Get("batch_size") == nil {
		return "", false
	}
	zero := &jsonvalue.Value{Kind: jsonvalue.Number, Raw: []byte("0")}
	null := &jsonvalue.Value{Kind: jsonvalue.Null, Raw: []byte("null")}
	content := &jsonvalue.Value{Kind: jsonvalue.Object}
	for _, field := range []struct {
		name      string
		otherwise *jsonvalue.Value
	}{
		{"point_type", nil},
		{"batch_size", nil},
		{"total_prefill_tokens", zero},
		{"total_kv_read_tokens", zero},
		{"partition", null},
		{"rows", null},
	} {
		v := point.Get(field.name)
		if v == nil {
			v = field.otherwise
		}
		content.Members = append(content.Members, jsonvalue.Member{Name: field.name, Value: *v})
	}
	sum := sha256.Sum256(pyjson.AppendCanonical(nil, content))
	return hex.EncodeToString(sum[:]), true
}
