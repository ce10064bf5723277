package protocol

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// said is what a finding says; its place in the text is held against the pointer.
type said struct {
	Rule     finding.ID
	Pointer  string
	Message  string
	Expected string
	Actual   string // "absent", or words; empty where the value itself is quoted later
}

// facts checks that every finding stands where its pointer leads to, at the parent of
// what is absent, and returns what they say.
func facts(t *testing.T, root *jsonvalue.Value, prefix string, findings []finding.Finding) (list []said) {
	t.Helper()
	for _, f := range findings {
		if len(f.Pointer) < len(prefix) || f.Pointer[:len(prefix)] != prefix {
			t.Errorf("%s is not below %s", f.Pointer, prefix)
			continue
		}
		tail := f.Pointer[len(prefix):]
		v, missing := jsontest.Find(root, tail)
		if f.Offset != v.Offset || missing > 1 || (missing == 1) != (f.Actual == "absent") || f.Excerpt != (f.Actual == "") {
			t.Errorf("%s at %s: offset %d, actual %q; the value is at %d, %d steps missing", f.Rule, f.Pointer, f.Offset, f.Actual, v.Offset, missing)
		}
		list = append(list, said{f.Rule, tail, f.Message, f.Expected, f.Actual})
	}
	return list
}

func TestCheck(t *testing.T) {
	const pointer = "/measurement_protocol"
	const contract = pointer + "/execution_evidence"
	const sound = `{"schema_version": 1, "execution_evidence": {"schema_version": 1, "sample_field": "benchmark_sample", "warmup_field": "warmup_evidence"}}`
	invalid := func(tail, actual string) said {
		return said{finding.ProtocolInvalid, pointer + tail, "the protocol's schema_version is not the integer 1", "1", actual}
	}
	version := func(actual string) said {
		return said{finding.ProtocolContract, contract + "/schema_version", "the execution contract's schema_version is not 1", "1", actual}
	}
	names := func(field, want, actual string) said {
		return said{finding.ProtocolContract, contract + "/" + field, "the execution contract names another " + field, `"` + want + `"`, actual}
	}
	for _, c := range []struct {
		text string
		want Contract
		said []said
	}{
		{sound, Contract{Declared, Declared}, nil},
		{`{"unknown": {}, "execution_evidence": {"warmup_field": "w\u0061rmup_evidence", "x": 1, "sample_field": "benchmark_sample", "schema_version": 1}, "schema_version": 1}`, Contract{Declared, Declared}, nil},
		{`{"schema_version": 1}`, Contract{Declared, Undeclared}, nil},
		{`{"schema_version": 1, "execution_evidence": {"schema_version": 10e-1, "sample_field": "benchmark_sample", "warmup_field": "warmup_evidence"}}`, Contract{Declared, Declared}, nil},
		{`null`, Contract{Unclear, Unclear}, []said{{finding.ProtocolInvalid, pointer, "measurement_protocol is not an object", "an object", ""}}},
		{`[]`, Contract{Unclear, Unclear}, []said{{finding.ProtocolInvalid, pointer, "measurement_protocol is not an object", "an object", ""}}},
		{`{}`, Contract{Unclear, Unclear}, []said{invalid("/schema_version", "absent")}},
		{`{"schema_version": 2, "execution_evidence": 5}`, Contract{Unclear, Unclear}, []said{invalid("/schema_version", "")}},
		{`{"schema_version": 1.0}`, Contract{Unclear, Unclear}, []said{invalid("/schema_version", "")}},
		{`{"schema_version": true}`, Contract{Unclear, Unclear}, []said{invalid("/schema_version", "")}},
		{`{"schema_version": "1"}`, Contract{Unclear, Unclear}, []said{invalid("/schema_version", "")}},
		{`{"schema_version": null}`, Contract{Unclear, Unclear}, []said{invalid("/schema_version", "")}},
		{`{"schema_version": 1, "execution_evidence": null}`, Contract{Declared, Unclear}, []said{{finding.ProtocolContract, contract, "execution_evidence is not an object", "an object", ""}}},
		{`{"schema_version": 1, "execution_evidence": {}}`, Contract{Declared, Unclear}, []said{
			names("sample_field", SampleField, "absent"), version("absent"), names("warmup_field", WarmupField, "absent"),
		}},
		{`{"schema_version": 1, "execution_evidence": {"schema_version": 2, "sample_field": "sample", "warmup_field": ["warmup_evidence"]}}`, Contract{Declared, Unclear}, []said{
			version(""), names("sample_field", SampleField, ""), names("warmup_field", WarmupField, ""),
		}},
	} {
		document := jsontest.Parse(t, `{"measurement_protocol": `+c.text+`}`)
		findings := finding.NewCollector(0)
		if got := Check(document.Get("measurement_protocol"), finding.Scope{Out: findings, Rank: 1}); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.text, got, c.want)
		}
		if diff := cmp.Diff(c.said, facts(t, document, "", findings.Findings())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
	findings := finding.NewCollector(0)
	if got := Check(nil, finding.Scope{Out: findings}); got != (Contract{}) || findings.Errors() != 0 {
		t.Errorf("without a protocol: %+v, %v", got, findings.Findings())
	}
}

// The keys are those of Python: hashlib.sha256(json.dumps(content, sort_keys=True,
// separators=(",", ":")).encode()).
func TestPointKey(t *testing.T) {
	for _, c := range []struct{ point, want string }{
		{`{"point_type": "decode", "batch_size": 4}`, "762fa99e048ec61e998406a502cd972f33423a3292f65c3650f5c260b4269efe"},
		{`{"rows": null, "partition": null, "total_kv_read_tokens": 0, "total_prefill_tokens": 0, "batch_size": 4, "point_type": "decode", "benchmark_id": 9}`, "762fa99e048ec61e998406a502cd972f33423a3292f65c3650f5c260b4269efe"},
		{`{"point_type": "decode", "batch_size": 4, "total_kv_read_tokens": 4096}`, "460f1fbc4df173d394a7beba91b642992c815a2d353f01486e7642aa08f0e6ea"},
		{`{"point_type": "d\u0065code", "batch_size": 4, "total_kv_read_tokens": 4096, "expected_cudagraph_mode": "FULL"}`, "460f1fbc4df173d394a7beba91b642992c815a2d353f01486e7642aa08f0e6ea"},
		{`{"point_type": "decode", "batch_size": 4.0, "total_kv_read_tokens": 4096}`, "ecd31e45c9c2b24e6fd85ee4478a6fc633abce578f6ae0b3bc16c9df026deed0"},
		{`{"point_type": "decode", "batch_size": 40e-1, "total_kv_read_tokens": 4.096E3}`, "bb868e35657880a87892f7e9d46605c1c3c8969282bd4fd05ab8c997dd437758"},
		{`{"point_type": "prefill", "batch_size": 1, "total_prefill_tokens": 512, "partition": {"style": "hälfte 😀", "high_count": 1, "fraction": 0.5, "A": {"z": [], "a": {}}}}`, "4a3ed1d658717b85c31beb6d95be5843c936977d083095392a211c31e999b042"},
		{`{"point_type": "prefill", "batch_size": 1, "total_prefill_tokens": 512, "partition": {"fraction": 5e-1, "A": {"a": {}, "z": []}, "style": "h\u00e4lfte \ud83d\ude00", "high_count": 1}}`, "4a3ed1d658717b85c31beb6d95be5843c936977d083095392a211c31e999b042"},
		{`{"point_type": "prefill", "batch_size": 2, "total_prefill_tokens": 48, "rows": [[16, 0], [32, 64]]}`, "a20e3ed962df4fe99b261ab58698f76f0f984d06e4e5f6715f6d5c95e3af79b1"},
		{`{"point_type": "prefill", "batch_size": 2, "total_prefill_tokens": 48, "rows": [[16, 0.0], [32, 64]]}`, "931021f87323f55ea490e02226bd046e6494df2c7e856bef4c8a3c2ca8265d04"},
		{`{"point_type": "\ud800", "batch_size": null, "total_kv_read_tokens": null}`, "8ffc1f79552ff3c0f32cab3e69789943cea9612b40d4ec0e502afed2d93aef4d"},
		{`{"point_type": "decode", "batch_size": -0, "total_kv_read_tokens": 1e400}`, "2689766d27daeb27cb7ff3e33ca837f637a84488648aa95dceb5eefb7de09d06"},
		{`{"point_type": true, "batch_size": 123456789012345678901234567890, "total_kv_read_tokens": 1e16, "total_prefill_tokens": 0.00001}`, "4497202dd48cbd094f485e514aa7fe2959b44257ab64f58ffe9fae4b69aa3565"},
		{`{"point_type": "decode"}`, ""},
		{`{"batch_size": 4}`, ""},
		{`{}`, ""},
		{`"decode"`, ""},
	} {
		key, ok := PointKey(jsontest.Parse(t, c.point))
		if key != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %t, want %q", c.point, key, ok, c.want)
		}
	}
	if key, ok := PointKey(nil); key != "" || ok {
		t.Errorf("no point: %q, %t", key, ok)
	}
}

// The answers are those of Python's math.isclose.
func TestIsClose(t *testing.T) {
	inf, largest := math.Inf(1), math.MaxFloat64
	for _, c := range []struct {
		a, b, rel, abs float64
		want           bool
	}{
		{1, 1, 0, 0, true},
		{1, 1.000000001, 1e-9, 0, false}, // 1e-9 and a bit, once both are rounded
		{1, 1.0000000009, 1e-9, 0, true},
		{0, 1e-12, 1e-9, 1e-12, true},
		{0, 1.0000000000000002e-12, 1e-9, 1e-12, false},
		{0, -2e-12, 1e-9, 1e-12, false},
		{-1, 1, 1e-9, 1e-12, false},
		{1e300, 1.0000000010000002e300, 1e-9, 0, false},
		{1e300, 1.0000000009e300, 1e-9, 0, true},
		{1e-300, 2e-300, 1e-9, 1e-12, true},
		{5e-324, 0, 1e-9, 0, false},
		{1000, 1000.000001, 1e-9, 0, true},
		{1000, 1000.0000010001, 1e-9, 0, false},
		{100, 100.0000001, 1e-9, 1e-9, true},
		{100, 100.00000011, 1e-9, 1e-9, false},
		{0.5, 0.500000001, 1e-9, 1e-9, true},
		{0.5, 0.5000000011, 1e-9, 1e-9, false},
		{largest, -largest, 1e-9, 0, false},
		{inf, inf, 1e-9, 0, true},
		{inf, 1, 1e-9, 0, false},
		{inf, -inf, 1e-9, 0, false},
		{math.NaN(), math.NaN(), 1e-9, 1, false},
		{math.NaN(), inf, 1e-9, 1, false},
	} {
		for range 2 {
			if got := IsClose(c.a, c.b, c.rel, c.abs); got != c.want {
				t.Errorf("IsClose(%g, %g, %g, %g) = %t", c.a, c.b, c.rel, c.abs, got)
			}
			c.a, c.b = c.b, c.a
		}
	}
}
