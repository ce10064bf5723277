package schemas

import (
	"encoding/json"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const row = `{
	"timestamp": 5014,
	"event": {
		"schema": "dynamo.fpm.trace.v1",
		"source": {"namespace": "dynamo", "component": "backend", "producer_id": "7587894"},
		"capture_mode": "full",
		"observed_at_unix_ms": 1767225600123,
		"fpm": {
			"version": 1, "worker_id": "7587894", "dp_rank": 0, "counter_id": 17, "wall_time": 0.0125,
			"scheduled_requests": {
				"num_prefill_requests": 0, "sum_prefill_tokens": 0, "var_prefill_length": 0.0, "sum_prefill_kv_tokens": 0,
				"num_decode_requests": 2, "sum_decode_kv_tokens": 4096, "var_decode_kv_tokens": 1e2
			},
			"queued_requests": {
				"num_prefill_requests": 1, "sum_prefill_tokens": 512, "var_prefill_length": 0.0,
				"num_decode_requests": 0, "sum_decode_kv_tokens": 0, "var_decode_kv_tokens": 0.0
			}
		}
	}
}`

const reply = `{
	"dp_rank": 0, "worker_rank": 1, "tp_rank": 1, "pp_rank": 0, "pcp_rank": null,
	"attention_backends": {"model.layers.0.self_attn.attn": "FLASHINFER_MLA"},
	"mla_prefill_backend": null, "cudagraph_mode_resolved": "FULL", "cudagraph_capture_sizes_resolved": [1, 2, 4],
	"capture_errors": {}
}`

const (
	event   = "/event"
	payload = "/event/fpm"
)

// judgement is a change of a document and the violation that it makes, "" for none.
type judgement struct {
	edit
	want string
}

func judge(t *testing.T, name, document string, list []judgement) {
	t.Helper()
	v := compile(t, name)
	if got := faults(t, v, decodeText(t, []byte(document))); got != nil {
		t.Fatalf("%s: the sound document: %q", name, got)
	}
	if got := undescribed(t, name, decodeText(t, []byte(document))); got != nil {
		t.Errorf("%s: not described: %q", name, got)
	}
	for _, j := range list {
		doc := decodeText(t, []byte(document))
		j.apply(t, doc)
		var want []string
		if j.want != "" {
			want = []string{j.want}
		}
		if diff := cmp.Diff(want, faults(t, v, doc)); diff != "" {
			t.Errorf("%s: %s = %s (-want +got):\n%s", name, j.pointer, j.value, diff)
		}
	}
	for _, text := range []string{"null", "[7]", `"text"`, "1", "{}"} {
		if got, err := v.Validate([]byte(text)); err != nil || len(got) == 0 {
			t.Errorf("%s: %s: %v, %v", name, text, got, err)
		}
	}
}

func TestTraceRow(t *testing.T) {
	judge(t, "trace-row", row, []judgement{
		{edit{payload + "/worker_id", `""`}, ""},
		{edit{payload + "/timing_scope", `"cuda_event"`}, ""},
		{edit{payload + "/scheduled_requests/lengths", "[1, 2]"}, ""},
		{edit{payload + "/scheduled_requests/var_prefill_length", ""}, ""},
		{edit{payload + "/queued_requests/var_decode_kv_tokens", ""}, ""},
		{edit{payload + "/wall_time", "0"}, ""},
		{edit{payload + "/dp_rank", "9223372036854774784"}, ""},
		{edit{event + "/capture_mode", `"sampled"`}, ""},
		{edit{"/timestamp", ""}, " required"},
		{edit{"/timestamp", "0.5"}, "/timestamp type"},
		{edit{"/timestamp", "-1"}, "/timestamp minimum"},
		{edit{"/event", "null"}, "/event type"},
		{edit{event + "/schema", `"dynamo.fpm.trace.v2"`}, "/event/schema const"},
		{edit{event + "/source/namespace", ""}, "/event/source required"},
		{edit{event + "/source/producer_id", "7587894"}, "/event/source/producer_id type"},
		{edit{event + "/capture_mode", `"all"`}, "/event/capture_mode enum"},
		{edit{event + "/observed_at_unix_ms", `"now"`}, "/event/observed_at_unix_ms type"},
		{edit{payload, "[1]"}, payload + " type"},
		{edit{payload + "/version", "2"}, payload + "/version const"},
		{edit{payload + "/version", ""}, payload + " required"},
		{edit{payload + "/worker_id", "null"}, payload + "/worker_id type"},
		{edit{payload + "/dp_rank", "true"}, payload + "/dp_rank type"},
		{edit{payload + "/dp_rank", "-1"}, payload + "/dp_rank minimum"},
		{edit{payload + "/counter_id", "9223372036854777856"}, payload + "/counter_id maximum"},
		{edit{payload + "/wall_time", "-0.1"}, payload + "/wall_time minimum"},
		{edit{payload + "/wall_time", "null"}, payload + "/wall_time type"},
		{edit{payload + "/scheduled_requests/sum_prefill_kv_tokens", ""}, payload + "/scheduled_requests required"},
		{edit{payload + "/scheduled_requests/num_decode_requests", "1.5"}, payload + "/scheduled_requests/num_decode_requests type"},
		{edit{payload + "/scheduled_requests/sum_decode_kv_tokens", "-4"}, payload + "/scheduled_requests/sum_decode_kv_tokens minimum"},
		{edit{payload + "/scheduled_requests/var_decode_kv_tokens", "-1"}, payload + "/scheduled_requests/var_decode_kv_tokens minimum"},
		{edit{payload + "/queued_requests", ""}, payload + " required"},
		{edit{payload + "/queued_requests/num_prefill_requests", ""}, payload + "/queued_requests required"},
		{edit{payload + "/queued_requests/var_prefill_length", "null"}, payload + "/queued_requests/var_prefill_length type"},
	})
}

func TestReplies(t *testing.T) {
	const name = "worker-probe-replies"
	judge(t, name, "["+reply+"]", []judgement{
		{edit{"/0/pp_rank", ""}, ""},
		{edit{"/0/capture_errors", `"of any kind"`}, ""},
		{edit{"/0/attention_backends", "{}"}, ""},
		{edit{"/0", "null"}, "/0 type"},
		{edit{"/0/dp_rank", ""}, "/0 required"},
		{edit{"/0/dp_rank", "true"}, "/0/dp_rank type"},
		{edit{"/0/worker_rank", "-1"}, "/0/worker_rank minimum"},
		{edit{"/0/pp_rank", `"0"`}, "/0/pp_rank type"},
		{edit{"/0/attention_backends", ""}, "/0 required"},
		{edit{"/0/attention_backends/a~1b", `""`}, "/0/attention_backends/a~01b minLength"},
		{edit{"/0/mla_prefill_backend", "7"}, "/0/mla_prefill_backend type"},
		{edit{"/0/cudagraph_capture_sizes_resolved", "[0]"}, "/0/cudagraph_capture_sizes_resolved/0 minimum"},
		{edit{"/0/cudagraph_capture_sizes_resolved", "null"}, "/0/cudagraph_capture_sizes_resolved type"},
	})
	v := compile(t, name)
	for text, want := range map[string]string{
		"[]":                                   "",
		reply:                                  "",
		`{"results": [` + reply + `]}`:         "",
		`{"results": [{}]}`:                    "/results/0 required",
		`{"results": [` + reply + `], "x": 1}`: " required", // one reply, and not a good one
		`{"results": 7}`:                       " required",
	} {
		got := faults(t, v, decodeText(t, []byte(text)))
		if strings.Join(got, "") != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// An integer has neither fraction nor exponent, and no number of any size or length does
// more than break its bounds.
func TestNumbers(t *testing.T) {
	zeros := strings.Repeat("0", 1<<20)
	v := compile(t, "trace-row")
	for _, c := range []struct{ key, literal, want string }{
		{"dp_rank", "0", ""},
		{"dp_rank", "-0", ""},
		{"dp_rank", "9223372036854775807", ""},
		{"dp_rank", "9223372036854775808", "maximum must be at most 9223372036854775807"},
		{"dp_rank", "1.0", "type expected integer, but got a number with a fraction or an exponent"},
		{"dp_rank", "1e0", "type expected integer, but got a number with a fraction or an exponent"},
		{"dp_rank", "1E1000001", "maximum must be at most 9223372036854775807; type expected integer, but got a number with a fraction or an exponent"},
		{"dp_rank", "1" + zeros, "maximum must be at most 9223372036854775807"},
		{"dp_rank", "-1" + zeros, "minimum must be at least 0"},
		{"version", "1.0", "type expected integer, but got a number with a fraction or an exponent"},
		{"version", "10e-1", "type expected integer, but got a number with a fraction or an exponent"},
		{"version", "2", "const must be 1"},
		{"wall_time", "1e-1000000001", ""},
		{"wall_time", "-0.0e1000000001", ""},
		{"wall_time", "0." + zeros + "1", ""},
		{"wall_time", "-0." + zeros + "1", "minimum must be at least 0"},
		{"wall_time", "1" + zeros + "e-" + "1048576", ""},
		{"wall_time", "1e308", ""},
		{"wall_time", "1e309", "maximum must be at most 1.7976931348623158e308"},
		{"wall_time", "1e99999999999999999999", "maximum must be at most 1.7976931348623158e308"},
		{"wall_time", "-1e99999999999999999999", "minimum must be at least 0"},
	} {
		var doc map[string]any
		if err := json.Unmarshal([]byte(row), &doc); err != nil {
			t.Fatal(err)
		}
		doc["event"].(map[string]any)["fpm"].(map[string]any)[c.key] = json.RawMessage(c.literal)
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		violations, err := v.Validate(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range violations {
			if one.Pointer != payload+"/"+c.key {
				t.Errorf("%s: at %s", c.key, one.Pointer)
			}
			got = append(got, one.Keyword+" "+one.Message)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s = %.40s (-want +got):\n%s", c.key, c.literal, diff)
		}
	}
}

// A bounded number compares with what stands in schemas like the number itself.
func TestBoundedNumber(t *testing.T) {
	long := strings.Repeat("123456789", 200)
	bounds := []string{"0", "1", "-1", "0.5", "9223372036854775807", "65536", "1.7976931348623158e308", "-1e308", "1e-300"}
	for _, literal := range []string{
		"0", "-0", "0.0", "0e5", "-0.0e-7", "1", "1.0", "10e-1", "0.1e1", "100e-2", "0.5", "0.05e1", "-1.0", "65536", "65536.0",
		"6.5536e4", "9223372036854775807", "9.223372036854775807e18", "1e400", "1e401", "1e-401", "-1e500", "12.5e2", "0.00125e-3",
		long, "-" + long, "0." + long, "1." + long, "1." + strings.Repeat("0", 900) + "1", "0.5" + strings.Repeat("0", 900) + "1",
		"1" + strings.Repeat("0", 500) + "e-500", "1.7976931348623158e308", "1.79769313486231580e+308", "1" + strings.Repeat("0", 500) + ".5e-500",
	} {
		got := string(boundedNumber(literal))
		if len(got) > maxDigits+20 || !json.Valid([]byte(got)) {
			t.Errorf("%.40s: %.60s", literal, got)
		}
		if strings.ContainsAny(got, ".eE") != strings.ContainsAny(literal, ".eE") {
			t.Errorf("%.40s became %.60s", literal, got)
		}
		for _, bound := range bounds {
			if compare(t, got, bound) != compare(t, literal, bound) {
				t.Errorf("%.40s became %.60s, which compares otherwise with %s", literal, got, bound)
			}
		}
	}
}

func compare(t *testing.T, a, b string) int {
	t.Helper()
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	if !ok || !ok2 {
		t.Fatalf("%q or %q is no number", a, b)
	}
	return x.Cmp(y)
}

func TestText(t *testing.T) {
	v := compile(t, "worker-probe-replies")
	for _, text := range []string{`["\ud800"]`, " [ ] ", "[{}]"} {
		if _, err := v.Validate([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, at := range map[string]int64{
		"":                         0,
		"  ":                       2,
		"[1":                       2,
		"[] []":                    3,
		"[] x":                     3,
		"[NaN]":                    1,
		"[01]":                     2,
		"[\"\xff\"]":               2,
		"\xef\xbb\xbf[]":           0,
		`[{"a": 1, "a": 2}]`:       10,
		"[" + "\"a\xc3\"" + "]":    3,
		strings.Repeat("[", 20000): 10000,
	} {
		_, err := v.Validate([]byte(text))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != at || syntax.Err == nil {
			t.Errorf("%.20q: %v, want byte %d", text, err, at)
		}
	}
	var size *SizeError
	if _, err := v.Validate(make([]byte, MaxDocument+1)); !errors.As(err, &size) || size.Size != MaxDocument+1 {
		t.Errorf("too large: %v", err)
	}
}

func TestUnknownName(t *testing.T) {
	for _, name := range []string{"", "none", "../schemas/report", "urn:fpm:schema:report:1", "file:///etc/passwd"} {
		var unknown *UnknownError
		if _, err := Validate(name, []byte("{}")); !errors.As(err, &unknown) || unknown.Name != name {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The loader opens nothing but what is embedded, by exactly its $id.
func TestLoader(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	v := &Validator{texts: map[string]any{}}
	for _, id := range []string{
		"file://" + secret, secret, "http://localhost/x", "https://localhost/x", "report", "report.schema.json",
		"urn:fpm:schema:report", "urn:fpm:schema:report:2", "urn:fpm:schema:report:1:x", "urn:other:schema:report:1", "urn:fpm:schema::1",
	} {
		if r, err := v.load(id); err == nil {
			r.Close()
			t.Errorf("%s was loaded", id)
		}
	}
	if _, err := v.load("urn:fpm:schema:report:1"); err != nil {
		t.Error(err)
	}
}

// The order of violations is that of their places, each is there once, and it is the same
// every time and for every goroutine.
func TestOrder(t *testing.T) {
	const broken = `{"dp": {"rank": "x\u001b[2J", "size": 1.0}, "valid": 1, "usable": 1, "engine": {"kv_cache": 5, "model": 5, "parallel": 5},
		"coverage": {}, "timing": {}, "results": [{"point": 1, "fpms": [1, 2]}], "iteration_groups": [{}, 1], "schema_version": "2", "status": "\u001b[2J"}`
	v := compile(t, rankArtifact)
	first, err := v.Validate([]byte(broken))
	if err != nil || len(first) < 15 {
		t.Fatalf("%d violations, %v", len(first), err)
	}
	for i, one := range first[1:] {
		if !slices.IsSorted([]string{first[i].Pointer, one.Pointer}) || one == first[i] {
			t.Errorf("%+v before %+v", first[i], one)
		}
	}
	for _, one := range first {
		if strings.Contains(one.Message, "\x1b") || one.Message == "" || one.Keyword == "" {
			t.Errorf("%+v", one)
		}
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				if got, err := v.Validate([]byte(broken)); err != nil || !slices.Equal(got, first) {
					t.Errorf("another time: %v, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ name, pointer, value, keyword, message string }{
		{"trace-row", event + "/schema", `"x"`, "const", `must be "dynamo.fpm.trace.v1"`},
		{"trace-row", event + "/capture_mode", `"x"`, "enum", `must be one of ["sampled","full"]`},
		{"trace-row", "/timestamp", `-1`, "minimum", `must be at least 0`},
		{"trace-row", "/timestamp", ``, "required", `missing properties: 'timestamp'`},
		{"trace-row", payload + "/scheduled_requests/sum_prefill_tokens", `-1`, "minimum", `must be at least 0`},
		{"trace-row", payload, `null`, "type", `expected object, but got null`},
	} {
		doc := decodeText(t, []byte(row))
		edit{c.pointer, c.value}.apply(t, doc)
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Validate(c.name, text)
		if err != nil || len(got) != 1 || got[0].Keyword != c.keyword || got[0].Message != c.message {
			t.Errorf("%s = %s: %+v, %v", c.pointer, c.value, got, err)
		}
	}
}

// FuzzValidate: whatever the document, there is no panic, and the answer is sorted,
// without repetition and the same again.
func FuzzValidate(f *testing.F) {
	names := Names()
	var validators []*Validator
	for _, name := range names {
		validators = append(validators, compile(f, name))
	}
	for i := range names {
		for _, text := range []string{row, reply, "[" + reply + "]", minimal, "{}", "null", `{"dp":{"rank":1e1000001}}`, `["\ud800"]`, `{"ranks":{"a%2f/~":1}}`} {
			f.Add(uint8(i), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, document []byte) {
		v := validators[int(which)%len(validators)]
		first, err := v.Validate(document)
		again, errAgain := v.Validate(document)
		if !slices.Equal(first, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("%v, %v and then %v, %v", first, err, again, errAgain)
		}
		var syntax *SyntaxError
		if err != nil && (!errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > int64(len(document))) {
			t.Fatalf("%v", err)
		}
		for i, one := range first {
			if one.Keyword == "" || one.Message == "" || one.Pointer != "" && one.Pointer[0] != '/' {
				t.Errorf("%+v", one)
			}
			if i > 0 && first[i-1] == one {
				t.Errorf("twice: %+v", one)
			}
		}
	})
}
