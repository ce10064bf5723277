package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"github.com/fpm-project/fpm/trace/wire"
)

func TestReasonsAreInOrder(t *testing.T) {
	var names []string
	for _, r := range wire.Reasons() {
		names = append(names, r.String())
	}
	want := []string{"frames", "too-large", "sequence", "msgpack", "not-a-map", "version", "field"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeBusyPass(t *testing.T) {
	var d wire.Decoder
	f, buf, err := d.Decode([]byte("before "), message(7, pass(7).encode()))
	if err != nil {
		t.Fatal(err)
	}
	want := wire.FPM{WorkerID: "7587890123456789", DPRank: 2, CounterID: 7, WallTime: 0.012345678901234567,
		Scheduled: wire.Load{NumPrefillRequests: 3, SumPrefillTokens: 4096, VarPrefillLength: 12.5, SumPrefillKVTokens: 192,
			NumDecodeRequests: 40, SumDecodeKVTokens: 81920, VarDecodeKVTokens: 123456.78901234567},
		Queued: wire.Load{NumPrefillRequests: 3, SumPrefillTokens: 4096, VarPrefillLength: 12.5,
			NumDecodeRequests: 40, SumDecodeKVTokens: 81920, VarDecodeKVTokens: 123456.78901234567},
		JSON: []byte(`{"version":1,"worker_id":"7587890123456789","dp_rank":2,"counter_id":7,"wall_time":0.012345678901234567,` +
			`"scheduled_requests":{"num_prefill_requests":3,"sum_prefill_tokens":4096,"var_prefill_length":12.5,"sum_prefill_kv_tokens":192,` +
			`"num_decode_requests":40,"sum_decode_kv_tokens":81920,"var_decode_kv_tokens":123456.78901234567},` +
			`"queued_requests":{"num_prefill_requests":3,"sum_prefill_tokens":4096,"var_prefill_length":12.5,` +
			`"num_decode_requests":40,"sum_decode_kv_tokens":81920,"var_decode_kv_tokens":123456.78901234567}}`)}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Error(diff)
	}
	if got, want := string(buf), "before "+string(want.JSON); got != want {
		t.Errorf("the buffer is %s", got)
	}
	if f.Heartbeat() {
		t.Error("a busy pass counts as a heartbeat")
	}
}

func TestDecodeHeartbeat(t *testing.T) {
	var d wire.Decoder
	f, _, err := d.Decode(nil, message(0, idle(0).encode()))
	if err != nil || !f.Heartbeat() {
		t.Fatalf("heartbeat %v, error %v", f.Heartbeat(), err)
	}
	if !bytes.Contains(f.JSON, []byte(`"wall_time":0.0,`)) {
		t.Errorf("floats that are 0 are not floats: %s", f.JSON)
	}
	for _, busy := range []pairs{
		idle(0).with("wall_time", f64(1e-9)),
		idle(0).with("queued_requests", load().encode()),
	} {
		if f, _, err := d.Decode(nil, message(0, busy.encode())); err != nil || f.Heartbeat() {
			t.Errorf("%s: heartbeat %v, error %v", f.JSON, f.Heartbeat(), err)
		}
	}
}

// scheduledWith is a pass with one field of its scheduled load replaced.
func scheduledWith(key string, value []byte) pairs {
	return pass(7).with("scheduled_requests", load().with(key, value).encode())
}

// nested returns a payload with an unknown key whose value lies within so many arrays; the
// payload's own map is a level too.
func nested(levels int) []byte {
	deep := append(bytes.Repeat([]byte{0x91}, levels), 0xc0)
	return pass(7).with("deep", deep).encode()
}

func TestRejections(t *testing.T) {
	good := pass(7).encode()
	seven := binary.BigEndian.AppendUint64(nil, 7)
	cases := []struct {
		name   string
		frames [][]byte
		want   wire.Reason
		say    string
	}{
		{"no frames", nil, wire.Frames, "0 instead of 3 frames"},
		{"one frame", [][]byte{good}, wire.Frames, "1 instead of 3 frames"},
		{"two frames", [][]byte{{}, good}, wire.Frames, "2 instead of 3 frames"},
		{"four frames", [][]byte{{}, seven, good, {}}, wire.Frames, "4 instead of 3 frames"},
		{"four frames, one too large", [][]byte{{}, seven, make([]byte, wire.MaxFrame+1), {}}, wire.Frames, "4 instead of 3 frames"},
		{"large payload", [][]byte{{}, seven, make([]byte, wire.MaxFrame+1)}, wire.TooLarge, "1048577 bytes"},
		{"large topic", [][]byte{make([]byte, wire.MaxFrame+1), seven, good}, wire.TooLarge, "frame 1"},
		{"large payload, short sequence", [][]byte{{}, {1}, make([]byte, wire.MaxFrame+1)}, wire.TooLarge, ""},
		{"short sequence", [][]byte{{}, seven[1:], good}, wire.Sequence, "7 bytes"},
		{"long sequence", [][]byte{{}, append([]byte{0}, seven...), good}, wire.Sequence, "9 bytes"},
		{"short sequence, bad payload", [][]byte{{}, nil, {0xc1}}, wire.Sequence, ""},
		{"empty payload", message(7, nil), wire.MessagePack, "empty"},
		{"cut payload", message(7, good[:len(good)/2]), wire.MessagePack, "ends within"},
		{"cut by one byte", message(7, good[:len(good)-1]), wire.MessagePack, "ends within"},
		{"trailing byte", message(7, append(good[:len(good):len(good)], 0xc0)), wire.MessagePack, "1 bytes follow"},
		{"no such type", message(7, []byte{0xc1}), wire.MessagePack, "0xc1"},
		{"array of 4 G elements", message(7, append([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, good...)), wire.MessagePack, "ends within"},
		{"map of 4 G pairs", message(7, append([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, good...)), wire.MessagePack, "ends within"},
		{"string of 4 GB", message(7, append([]byte{0xdb, 0xff, 0xff, 0xff, 0xff}, good...)), wire.MessagePack, "ends within"},
		{"binary value", message(7, pass(7).with("x", []byte{0xc4, 1, 'a'}).encode()), wire.MessagePack, "binary"},
		{"extension", message(7, pass(7).with("x", []byte{0xd4, 9, 1}).encode()), wire.MessagePack, "extension"},
		{"timestamp", message(7, pass(7).with("x", []byte{0xd6, 0xff, 0, 0, 0, 1}).encode()), wire.MessagePack, "timestamp"},
		{"integer key", message(7, pass(7).with("x", []byte{0x81, 1, 1}).encode()), wire.MessagePack, "not a string"},
		{"binary key", message(7, append(append([]byte{0x88}, good[1:]...), 0xc4, 1, 'k', 1)), wire.MessagePack, "not a string"},
		{"known key twice", message(7, append(pass(7), pair{"wall_time", f64(1)}).encode()), wire.MessagePack, "wall_time comes twice"},
		{"unknown key twice", message(7, append(pass(7), pair{"x", u(1)}, pair{"y", u(1)}, pair{"x", u(1)}).encode()), wire.MessagePack, `"x" comes twice`},
		{"key twice in a load", message(7, pass(7).with("queued_requests", append(load(), pair{"num_decode_requests", u(1)}).encode()).encode()), wire.MessagePack, "comes twice"},
		{"invalid UTF-8 value", message(7, pass(7).with("x", str("a\xff")).encode()), wire.MessagePack, "UTF-8"},
		{"invalid UTF-8 key", message(7, pass(7).with("a\xff", u(1)).encode()), wire.MessagePack, "UTF-8"},
		{"surrogate in UTF-8", message(7, pass(7).with("x", str("\xed\xa0\x80")).encode()), wire.MessagePack, "UTF-8"},
		{"invalid UTF-8 worker", message(7, pass(7).with("worker_id", str("a\xff")).encode()), wire.MessagePack, "UTF-8"},
		{"wall time NaN", message(7, pass(7).with("wall_time", f64(math.NaN())).encode()), wire.MessagePack, "NaN"},
		{"unknown infinity", message(7, pass(7).with("x", f64(math.Inf(-1))).encode()), wire.MessagePack, "infinite"},
		{"float32 NaN", message(7, pass(7).with("x", msgp.AppendFloat32(nil, float32(math.NaN()))).encode()), wire.MessagePack, "NaN"},
		{"too deep", message(7, nested(wire.MaxDepth)), wire.MessagePack, "deeper"},
		{"far too deep", message(7, nested(900_000)), wire.MessagePack, "deeper"},
		{"maps too deep", message(7, bytes.Repeat([]byte{0x81, 0xa1, 'k'}, 300_000)), wire.MessagePack, "deeper"},
		{"version 2 and not decodable", message(7, append(pass(7).with("version", u(2)).encode(), 1)), wire.MessagePack, ""},
		{"array", message(7, append([]byte{0x92, 1}, good...)), wire.NotMap, "an array"},
		{"nil", message(7, []byte{0xc0}), wire.NotMap, "nil"},
		{"number", message(7, []byte{7}), wire.NotMap, "an integer"},
		{"string", message(7, str("x")), wire.NotMap, "a string"},
		{"version 2", message(7, pass(7).with("version", u(2)).encode()), wire.Version, "version is 2"},
		{"version 1.0", message(7, pass(7).with("version", f64(1)).encode()), wire.Version, "version is 1.0"},
		{"version true", message(7, pass(7).with("version", []byte{0xc3}).encode()), wire.Version, "version is true"},
		{"version -1", message(7, pass(7).with("version", i(-1)).encode()), wire.Version, "version is -1"},
		{"version as text", message(7, pass(7).with("version", str("1")).encode()), wire.Version, "a string"},
		{"version missing", message(7, pass(7).without("version").encode()), wire.Version, "missing"},
		{"neither version nor counter", message(7, pass(7).without("version").without("counter_id").encode()), wire.Version, "missing"},
		{"version 2 and a bad field before it", message(7, append(pairs{{"dp_rank", i(-1)}}, pass(7).with("version", u(2)).without("dp_rank")...).encode()), wire.Version, ""},
		{"empty map", message(7, []byte{0x80}), wire.Version, "missing"},
		{"worker a number", message(7, pass(7).with("worker_id", u(7)).encode()), wire.Field, "worker_id is 7"},
		{"worker missing", message(7, pass(7).without("worker_id").encode()), wire.Field, "worker_id is missing"},
		{"rank negative", message(7, pass(7).with("dp_rank", i(-1)).encode()), wire.Field, "dp_rank is -1"},
		{"rank a boolean", message(7, pass(7).with("dp_rank", []byte{0xc3}).encode()), wire.Field, "dp_rank is true"},
		{"rank a float", message(7, pass(7).with("dp_rank", f64(1)).encode()), wire.Field, "dp_rank is 1.0"},
		{"rank beyond int64", message(7, pass(7).with("dp_rank", u(1<<63)).encode()), wire.Field, "9223372036854775808"},
		{"counter negative", message(7, pass(7).with("counter_id", i(-1)).encode()), wire.Field, "counter_id is -1"},
		{"counter beyond int64", message(1<<63, pass(1<<63).encode()), wire.Field, "counter_id is 9223372036854775808"},
		{"counter missing", message(0, pass(0).without("counter_id").encode()), wire.Field, "counter_id is missing"},
		{"counter differs", message(8, pass(7).encode()), wire.Field, "sequence frame says 8"},
		{"wall time negative", message(7, pass(7).with("wall_time", f64(-1e-9)).encode()), wire.Field, "wall_time is -1e-09"},
		{"wall time a negative integer", message(7, pass(7).with("wall_time", i(-5)).encode()), wire.Field, "wall_time is -5"},
		{"wall time nil", message(7, pass(7).with("wall_time", []byte{0xc0}).encode()), wire.Field, "wall_time is null"},
		{"scheduled an array", message(7, pass(7).with("scheduled_requests", []byte{0x90}).encode()), wire.Field, "scheduled_requests is an array"},
		{"scheduled empty", message(7, pass(7).with("scheduled_requests", []byte{0x80}).encode()), wire.Field, "num_prefill_requests is missing"},
		{"queued missing", message(7, pass(7).without("queued_requests").encode()), wire.Field, "queued_requests is missing"},
		{"count negative", message(7, scheduledWith("num_decode_requests", i(-1)).encode()), wire.Field, "num_decode_requests is -1"},
		{"count a float", message(7, scheduledWith("sum_decode_kv_tokens", f64(3)).encode()), wire.Field, "sum_decode_kv_tokens is 3.0"},
		{"variance negative", message(7, scheduledWith("var_decode_kv_tokens", f64(-0.5)).encode()), wire.Field, "var_decode_kv_tokens is -0.5"},
		{"variance text", message(7, scheduledWith("var_prefill_length", str("0")).encode()), wire.Field, "a string"},
		{"KV tokens missing", message(7, pass(7).with("scheduled_requests", load().without("sum_prefill_kv_tokens").encode()).encode()), wire.Field, "sum_prefill_kv_tokens is missing"},
	}
	var d wire.Decoder // one for all: what a refused message leaves behind must not matter
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, out, err := d.Decode([]byte("kept"), c.frames)
			var rejected *wire.RejectError
			if !errors.As(err, &rejected) {
				t.Fatalf("error %v", err)
			}
			if rejected.Reason != c.want || !strings.Contains(rejected.Message, c.say) {
				t.Errorf("%v; want %v with %q", err, c.want, c.say)
			}
			if string(out) != "kept" {
				t.Errorf("the buffer is %q", out)
			}
			if _, _, err := d.Decode(nil, message(7, good)); err != nil {
				t.Errorf("a good message behind it: %v", err)
			}
		})
	}
}

func TestAcceptedValues(t *testing.T) {
	cases := []struct {
		name    string
		payload pairs
		want    string // within the JSON
	}{
		{"empty worker", pass(7).with("worker_id", str("")), `"worker_id":""`},
		{"unknown keys", pass(7).with("timing_scope", str("cuda_event")), `"timing_scope":"cuda_event"`},
		{"signed form of the version", pass(7).with("version", []byte{0xd3, 0, 0, 0, 0, 0, 0, 0, 1}), `"version":1,`},
		{"wide form of the version", pass(7).with("version", []byte{0xcf, 0, 0, 0, 0, 0, 0, 0, 1}), `"version":1,`},
		{"largest count", scheduledWith("sum_prefill_tokens", u(math.MaxUint64)), `"sum_prefill_tokens":18446744073709551615`},
		{"largest rank", pass(7).with("dp_rank", u(math.MaxInt64)), `"dp_rank":9223372036854775807`},
		{"whole wall time", pass(7).with("wall_time", u(3)), `"wall_time":3,`},
		{"whole variance", scheduledWith("var_prefill_length", u(0)), `"var_prefill_length":0,`},
		{"negative zero", pass(7).with("wall_time", f64(math.Copysign(0, -1))), `"wall_time":-0.0`},
		{"whole float", pass(7).with("x", f64(100)), `"x":100.0`},
		{"small float", pass(7).with("x", f64(1e-7)), `"x":1e-07`},
		{"large float", pass(7).with("x", f64(1e22)), `"x":1e+22`},
		{"smallest float", pass(7).with("x", f64(5e-324)), `"x":5e-324`},
		{"float32", pass(7).with("x", msgp.AppendFloat32(nil, 0.1)), `"x":0.10000000149011612`},
		{"smallest integer", pass(7).with("x", i(math.MinInt64)), `"x":-9223372036854775808`},
		{"list within a load", scheduledWith("per_request_tokens", []byte{0x94, 1, 0xc0, 0xc2, 0xa1, 'x'}), `"per_request_tokens":[1,null,false,"x"]`},
		{"an unknown key of queued ones", pass(7).with("queued_requests", load().with("sum_prefill_kv_tokens", str("any")).encode()), `"sum_prefill_kv_tokens":"any"`},
		{"HTML", pass(7).with("x", str("<&>\u2028é😀")), "\"x\":\"<&>\u2028é😀\""},
		{"escapes", pass(7).with("a\"b", str("\\\n\r\t\b\x00\x1f\x7f")), `"a\"b":"\\\n\r\t\u0008\u0000\u001f` + "\x7f" + `"`},
		{"empty containers", pass(7).with("x", []byte{0x92, 0x80, 0x90}), `"x":[{},[]]`},
		{"equal keys of different maps", pass(7).with("x", pairs{{"version", u(9)}, {"x", u(1)}}.encode()), `"x":{"version":9,"x":1}`},
		{"the empty key", pass(7).with("", u(1)), `"":1`},
		{"deepest", pass(7).with("x", append(bytes.Repeat([]byte{0x91}, wire.MaxDepth-1), 0xc0)), `"x":[[[`},
	}
	var d wire.Decoder
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, _, err := d.Decode(nil, message(7, c.payload.encode()))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(f.JSON, []byte(c.want)) || !json.Valid(f.JSON) {
				t.Errorf("%s has not %s", f.JSON, c.want)
			}
		})
	}
}

// Any order of keys is accepted and kept, and gives the same fields.
func TestOrderOfKeys(t *testing.T) {
	reversed := func(p pairs) pairs {
		out := pairs{}
		for n := range p {
			out = append(out, p[len(p)-1-n])
		}
		return out
	}
	var d wire.Decoder
	straight, _, err := d.Decode(nil, message(7, pass(7).encode()))
	if err != nil {
		t.Fatal(err)
	}
	p := pass(7).with("scheduled_requests", reversed(load()).encode()).
		with("queued_requests", reversed(load().without("sum_prefill_kv_tokens")).encode())
	turned, _, err := d.Decode(nil, message(7, reversed(p).encode()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(turned.JSON, []byte(`{"queued_requests":{"var_decode_kv_tokens":`)) {
		t.Errorf("the order is lost: %s", turned.JSON)
	}
	straight.JSON, turned.JSON = nil, nil
	if diff := cmp.Diff(straight, turned); diff != "" {
		t.Error(diff)
	}
}

// The fields do not refer to the frames, which the next message overwrites.
func TestResultsOutliveTheFrames(t *testing.T) {
	var d wire.Decoder
	frames := message(7, pass(7).encode())
	f, _, err := d.Decode(nil, frames)
	if err != nil {
		t.Fatal(err)
	}
	before := string(f.JSON)
	clear(frames[2])
	if f.WorkerID != "7587890123456789" || string(f.JSON) != before {
		t.Errorf("worker %q, JSON %s", f.WorkerID, f.JSON)
	}
}

func TestDecodingAllocatesNothing(t *testing.T) {
	all := busy(64)
	var d wire.Decoder
	buf := make([]byte, 0, 4096)
	decode := func() {
		for _, m := range all {
			if _, _, err := d.Decode(buf, m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := testing.AllocsPerRun(10, decode); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// Workers come and go; what is kept of their ids is bounded, and each comes out right.
func TestWorkerIDs(t *testing.T) {
	var d wire.Decoder
	for round := range 2 {
		for n := range 5000 {
			id := fmt.Sprint("worker-", n)
			if n%1000 == 0 {
				id += strings.Repeat("x", 1000)
			}
			f, _, err := d.Decode(nil, message(7, pass(7).with("worker_id", str(id)).encode()))
			if err != nil || f.WorkerID != id {
				t.Fatalf("round %d: %q, %v; want %q", round, f.WorkerID, err, id)
			}
		}
	}
}

// A payload full of different keys is judged in time.
func TestManyKeys(t *testing.T) {
	p := pass(7)
	for n := range 30_000 {
		p = append(p, pair{fmt.Sprintf("k%05d", n*7919%30_000), []byte{0}})
	}
	var d wire.Decoder
	if _, _, err := d.Decode(nil, message(7, p.encode())); err != nil {
		t.Fatal(err)
	}
	p = append(p, pair{"k00000", []byte{0}})
	if _, _, err := d.Decode(nil, message(7, p.encode())); err == nil || !strings.Contains(err.Error(), "k00000") {
		t.Errorf("error %v", err)
	}
}

func TestAppendRow(t *testing.T) {
	row := wire.Row{TimestampMS: 1234, Namespace: "dyna<mo>", Component: "back\"end\n\x01", ProducerID: "é\xff✓",
		Mode: wire.Sampled, ObservedUnixMS: 1764480000123, FPM: []byte(`{"version":1}`)}
	want := `kept{"timestamp":1234,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"dyna<mo>","component":"back\"end\n\u0001",` +
		`"producer_id":"é` + "\ufffd" + `✓"},"capture_mode":"sampled","observed_at_unix_ms":1764480000123,"fpm":{"version":1}}}` + "\n"
	got := wire.AppendRow([]byte("kept"), row)
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if !json.Valid(got[4:]) {
		t.Error("not valid JSON")
	}
}
