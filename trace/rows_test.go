package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/schemas"
	"github.com/fpm-project/fpm/trace/wire"
)

const rowText = `{"timestamp":17,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"dynamo","component":"backend","producer_id":"w7"},"capture_mode":"full","observed_at_unix_ms":1790000000123,"fpm":{"version":1,"worker_id":"w7","dp_rank":3,"counter_id":9007199254740993,"wall_time":0.012345678901234567,"scheduled_requests":{"num_prefill_requests":1,"sum_prefill_tokens":512,"var_prefill_length":0.0,"sum_prefill_kv_tokens":64,"num_decode_requests":40,"sum_decode_kv_tokens":18446744073709551615,"var_decode_kv_tokens":1e-07},"queued_requests":{"num_prefill_requests":2,"sum_prefill_tokens":900,"var_prefill_length":2.5,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}}}`

func wantRow() Row {
	return Row{
		TimestampMS: 17, Namespace: "dynamo", Component: "backend", ProducerID: "w7", Mode: wire.Full, ObservedUnixMS: 1790000000123, Numbered: true,
		FPM: wire.FPM{
			WorkerID: "w7", DPRank: 3, CounterID: 9007199254740993, WallTime: 0.012345678901234567,
			Scheduled: wire.Load{NumPrefillRequests: 1, SumPrefillTokens: 512, SumPrefillKVTokens: 64, NumDecodeRequests: 40, SumDecodeKVTokens: math.MaxUint64, VarDecodeKVTokens: 1e-07},
			Queued:    wire.Load{NumPrefillRequests: 2, SumPrefillTokens: 900, VarPrefillLength: 2.5},
		},
	}
}

func TestParse(t *testing.T) {
	var p Parser
	var row Row
	if err := p.Parse([]byte(rowText), &row); err != nil {
		t.Fatal(err)
	}
	_, payload, _ := strings.Cut(strings.TrimSuffix(rowText, "}}"), `"fpm":`)
	if string(row.JSON) != payload {
		t.Errorf("the metric is %s", row.JSON)
	}
	row.JSON = nil
	if diff := cmp.Diff(wantRow(), row); diff != "" {
		t.Error(diff)
	}
}

// Rows that say the same in other words: spaces, orders, escapes, unknown keys.
func TestParseOtherSpellings(t *testing.T) {
	for _, text := range []string{
		strings.NewReplacer(`,`, ` , `, `:`, "\t: ", `{`, `{ `).Replace(rowText) + "\r",
		strings.Replace(rowText, `"timestamp"`, `"t\u0069mestamp"`, 1),
		strings.Replace(rowText, `"w7"`, `"\u00777"`, 2),
		strings.Replace(rowText, `"version":1`, `"timing_scope":"a\"b","version":1`, 1),
		strings.Replace(rowText, `"version":1`, `"x":[{"a":[1,2.5e3,null,true]},"\\"],"y":{},"version":1`, 1),
		strings.Replace(rowText, `{"timestamp":17,`, `{"\"":1,"":2,"k\\":3,"é":4,"timestamp":17,`, 1),
		strings.Replace(rowText, `0.012345678901234567`, `1.2345678901234567E-2`, 1),
		strings.Replace(rowText, `2.5`, `25e-1`, 1),
		reordered(t, rowText),
	} {
		var p Parser
		var row Row
		if err := p.Parse([]byte(text), &row); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		row.JSON = nil
		if diff := cmp.Diff(wantRow(), row); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// reordered returns a document with the keys of each object in another order.
func reordered(t *testing.T, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

func TestParseReceived(t *testing.T) {
	_, payload, _ := strings.Cut(strings.TrimSuffix(rowText, "}}"), `"fpm":`)
	early := strings.NewReplacer(`"version":1,`, ``, `"counter_id":9007199254740993,`, ``).Replace(payload)
	for _, c := range []struct {
		text     string
		numbered bool
	}{
		{`{"received_at_ns":1790000000123456789,"metrics":` + payload + `}`, true},
		{`{"metrics":` + early + `,"received_at_ns":1790000000123456789}`, false},
	} {
		var p Parser
		var row Row
		if err := p.Parse([]byte(c.text), &row); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if row.Layout != Received || row.ObservedUnixMS != 1790000000123 || row.ProducerID != "w7" || row.DPRank != 3 || row.Numbered != c.numbered || row.Mode != "" {
			t.Errorf("%s: %+v", c.text, row)
		}
	}
}

// faults are edits of the row that break it, with where and what is said.
func faults() []struct{ old, new, pointer, message string } {
	return []struct{ old, new, pointer, message string }{
		{`"timestamp":17,`, ``, "", "timestamp is missing"},
		{`"timestamp":17`, `"timestamp":-1`, "/timestamp", "not an integer of 0 or more"},
		{`"timestamp":17`, `"timestamp":1.0`, "/timestamp", "a number with a fraction or an exponent where an integer is required"},
		{`"timestamp":17`, `"timestamp":1e1`, "/timestamp", "a number with a fraction or an exponent where an integer is required"},
		{`"timestamp":17`, `"timestamp":017`, "/timestamp", "not JSON: a number with a leading zero"},
		{`"timestamp":17`, `"timestamp":"17"`, "/timestamp", "not an integer"},
		{`"timestamp":17`, `"timestamp":17,"timestamp":17`, "/timestamp", "the key is there twice"},
		{`"timestamp":17`, `"timestamp":17,"t\u0069mestamp":17`, "/timestamp", "the key is there twice"},
		{`"timestamp":17`, `"timestamp":17,"x":1,"x":1`, "", "not JSON: duplicate object member name"},
		{`"timestamp":17`, `"timestamp":17,"x":{"a":1,"a":1}`, "", "not JSON: duplicate object member name"},
		{`"timestamp":17`, `"timestamp" 17`, "", "not JSON: expected a colon behind the key"},
		{`"timestamp":17,`, `"timestamp":17`, "", "not JSON: expected a comma or the end of the object"},
		{`"timestamp":17,`, `"timestamp":17,,`, "", "not JSON: expected a key in quotation marks"},
		{`"event":{`, `"event":[{`, "/event", "not a JSON object"},
		{`trace.v1`, `trace.v2`, "/event/schema", `"dynamo.fpm.trace.v2" is not the schema dynamo.fpm.trace.v1`},
		{`"namespace":"dynamo",`, ``, "/event/source", "missing: namespace"},
		{`"producer_id":"w7"`, `"producer_id":7`, "/event/source/producer_id", "not a string"},
		{`"full"`, `"half"`, "/event/capture_mode", `"half" is neither sampled nor full`},
		{`1790000000123`, `null`, "/event/observed_at_unix_ms", "not an integer"},
		{`"version":1`, `"version":2`, "/event/fpm/version", "not version 1"},
		{`"version":1`, `"version":1.0`, "/event/fpm/version", "a number with a fraction or an exponent where an integer is required"},
		{`"version":1,`, ``, "/event/fpm", "missing: version"},
		{`"worker_id":"w7"`, `"worker_id":null`, "/event/fpm/worker_id", "not a string"},
		{`"worker_id":"w7"`, "\"worker_id\":\"w\n7\"", "/event/fpm/worker_id", "not JSON: a string with a control character or a wrong escape"},
		{`"worker_id":"w7"`, "\"worker_id\":\"w\xff7\"", "/event/fpm/worker_id", "not JSON: a string with bytes that are not UTF-8"},
		{`"worker_id":"w7"`, `"worker_id":"w\x7"`, "/event/fpm/worker_id", "not JSON: a string with a control character or a wrong escape"},
		{`"dp_rank":3`, `"dp_rank":9223372036854775808`, "/event/fpm/dp_rank", "an integer beyond 9223372036854775807"},
		{`"counter_id":9007199254740993`, `"counter_id":18446744073709551616`, "/event/fpm/counter_id", "an integer of more than 64 bits"},
		{`0.012345678901234567`, `-0.5`, "/event/fpm/wall_time", "a number below 0"},
		{`0.012345678901234567`, `1e999`, "/event/fpm/wall_time", "a number that is not finite"},
		{`0.012345678901234567`, `NaN`, "/event/fpm/wall_time", "not a number"},
		{`0.012345678901234567`, `01.5`, "/event/fpm/wall_time", "not a number"},
		{`0.012345678901234567`, `1.`, "/event/fpm/wall_time", "not a number"},
		{`0.012345678901234567`, `1e`, "/event/fpm/wall_time", "not a number"},
		{`"sum_prefill_kv_tokens":64,`, ``, "/event/fpm/scheduled_requests", "missing: sum_prefill_kv_tokens"},
		{`"num_decode_requests":40,"sum_decode`, `"sum_decode`, "/event/fpm/scheduled_requests", "missing: num_decode_requests"},
		{`"sum_prefill_tokens":900`, `"sum_prefill_tokens":-900`, "/event/fpm/queued_requests/sum_prefill_tokens", "not an integer of 0 or more"},
		{`"var_prefill_length":2.5`, `"var_prefill_length":null`, "/event/fpm/queued_requests/var_prefill_length", "not a number"},
		{`"version":1`, `"x":[1,],"version":1`, "/event/fpm", "not JSON: expected a value"},
		{`"version":1`, `"x":[1 2],"version":1`, "/event/fpm", "not JSON: expected a comma or the end"},
		{`"version":1`, `"x":nul,"version":1`, "/event/fpm", "not JSON: an unknown word"},
		{`"version":1`, `"x":"a` + "\x01" + `","version":1`, "/event/fpm", "not JSON: a string with a control character or a wrong escape"},
		{`"version":1`, `"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,"version":1`, "/event/fpm", "nested more than 512 deep"},
		{`{"timestamp"`, `["timestamp"`, "", "not a JSON object"},
		{`0.0}}}}`, `0.0}}}`, "", "not JSON: expected a comma or the end of the object"},
		{`0.0}}}}`, `0.0}}}}x`, "", "not JSON: something follows the object"},
		{`"event":{`, `"metrics":{},"event":{`, "/metrics", "missing: worker_id, dp_rank, wall_time, scheduled_requests, queued_requests"},
	}
}

func TestParseFaults(t *testing.T) {
	for _, c := range faults() {
		text := strings.Replace(rowText, c.old, c.new, 1)
		if text == rowText {
			t.Fatalf("%q is not in the row", c.old)
		}
		var p Parser
		var row Row
		err := p.Parse([]byte(text), &row)
		var fault *RowError
		if !errors.As(err, &fault) || fault.Pointer != c.pointer || fault.Message != c.message || fault.Offset < 0 || fault.Offset > len(text) {
			t.Errorf("%s → %s: %+v, want %s at %s", c.old, c.new, err, c.message, c.pointer)
		}
	}
	for _, text := range []string{"", "null", "{}", `{"received_at_ns":1}`, `{"x"`, `{"x\"`, `"x"`, "\x00"} {
		var p Parser
		if err := p.Parse([]byte(text), &Row{}); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// What the recorder writes is read back, and without an allocation.
func TestParseWhatIsWritten(t *testing.T) {
	rows := benchRows(100)
	var p Parser
	var row Row
	for _, line := range rows {
		if err := p.Parse(line, &row); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := p.Parse(rows[3], &row); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a row", n)
	}
}

// agree holds the parser against the schema of rows, which is another implementation of
// the same rules.
func agree(t *testing.T, validator *schemas.Validator, line []byte) {
	t.Helper()
	var p Parser
	var row Row
	err := p.Parse(line, &row)
	var fault *RowError
	if err != nil && (!errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(line) || fault.Message == "") {
		t.Fatalf("%q: error %#v", line, err)
	}
	if err == nil && row.Layout == Received {
		return
	}
	violations, syntax := validator.Validate(line)
	valid := syntax == nil && len(violations) == 0
	switch {
	case err == nil && !valid:
		t.Errorf("%q is accepted, but %v %v", line, syntax, violations)
	case err != nil && valid && !stricter(fault):
		t.Errorf("%q is valid, but %v", line, err)
	}
}

// stricter tells whether a fault is one that the schema does not see.
func stricter(f *RowError) bool {
	return f.Message == "an integer of more than 64 bits" || // a schema has no such bound for counts
		strings.HasPrefix(f.Message, "an integer beyond") || f.Message == "not an integer of 0 or more" || // for a schema -0 is one
		strings.HasPrefix(f.Message, "nested more than") ||
		strings.HasPrefix(f.Pointer, "/metrics") || f.Pointer == "/received_at_ns" || strings.HasPrefix(f.Message, "neither a trace row")
}

func validator(t testing.TB) *schemas.Validator {
	t.Helper()
	v, err := schemas.Compile("trace-row")
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Random edits of rows are judged as by the schema.
func TestParseProperty(t *testing.T) {
	v := validator(t)
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{`"`, `{`, `}`, `[`, `]`, `,`, `:`, `0`, `-`, `.5`, `e9`, `null`, `"x":1,`, `\`, "\x80", "\n", ` `, `"version":1,`, `\u0061`, `é`}
	for range 5000 {
		line := []byte(rowText)
		for range 1 + r.IntN(2) {
			at := r.IntN(len(line))
			switch r.IntN(3) {
			case 0:
				line = slices.Delete(line, at, min(len(line), at+1+r.IntN(12)))
			case 1:
				line = slices.Insert(line, at, []byte(words[r.IntN(len(words))])...)
			default:
				line[at] = byte(r.IntN(256))
			}
			if len(line) == 0 {
				line = []byte("x")
			}
		}
		agree(t, v, line)
	}
}

func FuzzParse(f *testing.F) {
	v := validator(f)
	f.Add([]byte(rowText))
	for _, c := range faults() {
		f.Add([]byte(strings.Replace(rowText, c.old, c.new, 1)))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) < 1<<16 {
			agree(t, v, line)
		}
	})
}

func TestBlank(t *testing.T) {
	for text, want := range map[string]bool{"": true, " \r\t": true, "{}": false, " x": false} {
		if Blank([]byte(text)) != want {
			t.Errorf("Blank(%q) = %t", text, !want)
		}
	}
}

// benchRows returns rows as a busy fleet makes them.
func benchRows(n int) (rows [][]byte) {
	r := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		worker := fmt.Sprintf("worker-%d", i%2)
		fpm := fmt.Appendf(nil, `{"version":1,"worker_id":"%s","dp_rank":%d,"counter_id":%d,"wall_time":%v,"scheduled_requests":{"num_prefill_requests":%d,"sum_prefill_tokens":%d,"var_prefill_length":%v,"sum_prefill_kv_tokens":%d,"num_decode_requests":%d,"sum_decode_kv_tokens":%d,"var_decode_kv_tokens":%v},"queued_requests":{"num_prefill_requests":%d,"sum_prefill_tokens":%d,"var_prefill_length":0.0,"num_decode_requests":0,"sum_decode_kv_tokens":0,"var_decode_kv_tokens":0.0}}`,
			worker, i%8, i/8, 0.01+r.Float64()*0.02, r.IntN(4), r.IntN(8192), r.Float64()*1e5, r.IntN(100000), 40+r.IntN(30), 90000+r.IntN(20000), r.Float64()*1e6, r.IntN(3), r.IntN(4096))
		line := wire.AppendRow(nil, wire.Row{TimestampMS: int64(i), Namespace: "dynamo", Component: "backend", ProducerID: worker, Mode: wire.Full, ObservedUnixMS: 1790000000000 + int64(i), FPM: fpm})
		rows = append(rows, bytes.TrimSuffix(line, []byte("\n")))
	}
	return rows
}

func BenchmarkParse(b *testing.B) {
	rows := benchRows(1000)
	var p Parser
	var row Row
	b.SetBytes(int64(len(rows[0])))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := p.Parse(rows[i%len(rows)], &row); err != nil {
			b.Fatal(err)
		}
	}
}
