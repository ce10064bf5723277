package warmup

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
)

// strictLedger keeps the strict rules in a file of three results: it has a record of each
// kind and of each status.
const strictLedger = `{"status": "recorded", "records": [
	{"kind": "global", "status": "completed", "validation": {"status": "not_performed"}, "completed_points_before": 0,
	 "forward_index_start": 0, "forward_index_end": 5, "observed_forward_count": 5, "requested_shape": {"prompt_lengths": [32]}},
	{"kind": "real_prefix_seed", "status": "completed", "validation": {"status": "passed", "reason": "fine"}, "completed_points_before": 0,
	 "forward_index_start": 5, "forward_index_end": 5},
	{"kind": "eager_shape", "status": "failed", "validation": {"status": "failed"}, "completed_points_before": 1,
	 "forward_index_start": null, "forward_index_end": 5, "observed_forward_count": 0},
	{"kind": "real_prefix_shape", "status": "running", "validation": {"status": "not_performed"}, "completed_points_before": 3,
	 "forward_index_start": 9, "forward_index_end": null}]}`

func checkStrict(t testing.TB, text string, results int) []finding.Finding {
	t.Helper()
	out := finding.NewCollector(0)
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	if err := CheckStrict(s, finding.Scope{Out: out, File: "r1.json", Rank: 1}, results); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out.Findings()
}

func strictVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	says := func(tail, message, expected, actual string) []said {
		return []said{{finding.WarmupStrict, "/records/" + tail, message, expected, actual}}
	}
	kind := func(actual string) []said {
		return says("0/kind", "the record's kind is not known", "global, eager_shape, real_prefix_seed or real_prefix_shape", actual)
	}
	count := func(actual string) []said {
		return says("1/completed_points_before", "completed_points_before is not a count", "an integer of at least 0", actual)
	}
	noStart := func(i, actual string) []said {
		return says(i+"/forward_index_start", "only a failed eager_shape of no forward pass has no start", "an integer of at least 0", actual)
	}
	at := func(i, name string) string { return "/records/" + i + "/" + name }
	const before, start, end, forwards = "completed_points_before", "forward_index_start", "forward_index_end", "observed_forward_count"
	return []vector{
		{"sound", nil, nil},
		{"no records", edits(set("/records", "[]")), nil},
		{"unknown keys", edits(set("/x", "1"), set("/records/0/x", "[]")), nil},
		{"a record that is none", edits(set("/records/1", "7")), nil}, // warmup.record
		{"unknown kind", edits(set(at("0", "kind"), `"decode"`)), kind("")},
		{"kind null", edits(set(at("0", "kind"), `null`)), kind("")},
		{"no kind", edits(del(at("0", "kind"))), kind("absent")},
		{"kind with escapes", edits(set(at("0", "kind"), `"gl\u006fbal"`)), nil},
		{"completed negative", edits(set(at("1", before), "-1")), count("")},
		{"completed a float", edits(set(at("1", before), "0.0")), count("")},
		{"completed null", edits(set(at("1", before), "null")), count("")},
		{"no completed", edits(del(at("1", before))), count("absent")},
		{"global after a point", edits(set(at("0", before), "1")), says("0/"+before, "a global warmup comes after a point", "0", "")},
		{"decreasing", edits(set(at("1", before), "2")), says("2/"+before, "completed_points_before decreases", "at least 2", "")},
		{"decreasing, then as before", edits(set(at("1", before), "3"), set(at("2", before), "1"), set(at("3", before), "2")), says("2/"+before, "completed_points_before decreases", "at least 3", "")},
		{"more than there are results", edits(set(at("3", before), "4")), says("3/"+before, "completed_points_before is more than there are results", "at most 3", "")},
		{"too many does not count for the next", edits(set(at("1", before), "4")), says("1/"+before, "completed_points_before is more than there are results", "at most 3", "")},
		{"running with an end", edits(set(at("3", end), "12")), says("3/"+end, "a running record has an end", "null", "")},
		{"running, end absent", edits(del(at("3", end))), nil},
		{"running, end unsound", edits(set(at("3", end), "-1")), nil}, // warmup.range
		{"failed without an end", edits(set(at("2", end), "null")), says("2/"+end, "a failed record has no end", "an integer of at least 0", "")},
		{"failed, end absent", edits(del(at("2", end))), says("2/"+end, "a failed record has no end", "an integer of at least 0", "absent")},
		{"completed without an end", edits(set(at("1", end), "null")), nil}, // warmup.range
		{"unknown status with an end", edits(set(at("3", "status"), `"done"`), set(at("3", end), "12")), nil},
		{"no start", edits(set(at("0", start), "null")), noStart("0", "")},
		{"start absent", edits(del(at("1", start))), noStart("1", "absent")},
		{"start absent where it may be", edits(del(at("2", start))), nil},
		{"failed after a pass, no start", edits(set(at("2", forwards), "1")), noStart("2", "")},
		{"failed, count unknown, no start", edits(set(at("2", forwards), "null")), noStart("2", "")},
		{"failed, count unsound, no start", edits(set(at("2", forwards), "0.0")), nil}, // warmup.count
		{"completed eager shape, no start", edits(set(at("2", "status"), `"completed"`)), noStart("2", "")},
		{"failed prefix, no start", edits(set(at("2", "kind"), `"real_prefix_seed"`)), noStart("2", "")},
		{"unknown kind, no start", edits(set(at("0", "kind"), `"x"`), del(at("0", start))), kind("")},
		{"start unsound", edits(set(at("0", start), `"0"`)), nil}, // warmup.range
		{"starts decrease", edits(set(at("3", start), "4")), says("3/"+start, "the record starts before the one before it", "at least 5", "")},
		{"starts are equal", edits(set(at("3", start), "5")), nil},
	}
}

func TestCheckStrict(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range strictVectors() {
		root := jsontest.Parse(t, strictLedger)
		jsontest.Apply(t, root, c.edits...)
		for range 4 {
			text := jsontest.Indent(root)
			if diff := cmp.Diff(sorted(c.want), facts(t, jsontest.Parse(t, text), checkStrict(t, text, 3))); diff != "" {
				t.Fatalf("%s (-want +got):\n%s\n%s", c.name, diff, text)
			}
			jsontest.Shuffle(random, root)
		}
	}
}

func TestWalk(t *testing.T) {
	text := strictLedger
	var records []Record
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	o, err := Walk(s, func(x *Record) error {
		records = append(records, *x)
		return nil
	})
	if err != nil || !o.Recorded() || o.Records != 4 || len(records) != 4 {
		t.Fatalf("%+v, %v", o, err)
	}
	x := records[1]
	if x.At != 1 || x.Kind.Text != "real_prefix_seed" || x.Status.Text != "completed" || x.Verdict.Text != "passed" || x.Reason.Text != "fine" ||
		!x.Start.IsInteger(5) || !x.End.IsInteger(5) || x.Count.Present() || !x.CompletedBefore.IsInteger(0) || x.Shape.Len != 0 {
		t.Errorf("%+v", x)
	}
	if span := records[0].Shape; text[span.Off:span.End()] != `{"prompt_lengths": [32]}` {
		t.Errorf("shape at %+v", span)
	}
	stop := errors.New("stop")
	s.Reset(strings.NewReader(text), 0, 0, jsonstream.Trusted)
	if _, err := Walk(s, func(*Record) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	for text, want := range map[string]bool{
		`{"records": [], "status": "recorded"}`: true, `{"status": "recorded"}`: false, `{"status": "unavailable", "records": []}`: false, `[]`: false, `null`: false,
	} {
		s.Reset(strings.NewReader(text), 0, 0, jsonstream.Trusted)
		if o, err := Walk(s, func(*Record) error { return nil }); err != nil || o.Recorded() != want {
			t.Errorf("%s: %+v, %v", text, o, err)
		}
	}
}

func TestHistory(t *testing.T) {
	history := func(before ...string) *History {
		h := &History{}
		for _, text := range before {
			h.Add(&Record{Object: true, CompletedBefore: field(t, text)})
		}
		return h
	}
	for _, c := range []struct {
		h                 *History
		records, measured string
		want              string // the number there should be; empty when all is well
	}{
		{history("0", "0", "2", "5"), "2", "1", ""},
		{history("0", "0", "2", "5"), "3", "2", ""},
		{history("5", "0", "2", "0"), "3", "4", ""}, // in any order
		{history("0", "0", "2", "5"), "3", "1", "2"},
		{history("0", "0", "2", "5"), "0", "0", "2"},
		{history("0", "0", "2", "5"), "4", "4", "3"},
		{history("0", "0", "2", "5"), "5", "1", ""}, // warmup.reference
		{history("0", "0", "2", "5"), "null", "1", ""},
		{history("0", "0", "2", "5"), "1.0", "1", ""},
		{history("0", "0", "2", "5"), "0", "-1", ""},
		{history("0", "0", "2", "5"), "0", "", ""},
		{history("0", "", "2"), "0", "1", ""}, // a record does not tell
		{history("0", "-1", "2"), "0", "1", ""},
		{history(), "0", "7", ""},
	} {
		out := finding.NewCollector(0)
		c.h.CheckResult(finding.Scope{Out: out}, "/p", field(t, c.records), field(t, c.measured))
		var want []finding.Finding
		if c.want != "" {
			want = []finding.Finding{{Rule: finding.WarmupStrict, Severity: finding.Error, Pointer: "/p/warmup_records_before", Expected: c.want, Excerpt: true,
				Message: "warmup_records_before is not the number of records up to completed_points_before"}}
		}
		got := out.Findings()
		for i := range got {
			got[i].Hint = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s records before %s points (-want +got):\n%s", c.records, c.measured, diff)
		}
	}
	h := history("0", "3")
	h.Add(&Record{})
	if _, _, known := h.Before(1); known {
		t.Error("a record that is no object tells its place")
	}
	h.Reset()
	if n, all, known := h.Before(1); n != 0 || all != 0 || !known {
		t.Errorf("after a reset: %d of %d, %t", n, all, known)
	}
}

func FuzzCheckStrict(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for i, c := range strictVectors() {
		root := jsontest.Parse(f, strictLedger)
		jsontest.Apply(f, root, c.edits...)
		jsontest.Shuffle(random, root)
		f.Add(string(root.AppendCompact(nil)), i)
	}
	f.Fuzz(func(t *testing.T, text string, results int) {
		if _, err := jsonstream.Check(strings.NewReader(text), jsonstream.Limits{}); err != nil {
			return
		}
		facts(t, jsontest.Parse(t, text), checkStrict(t, text, results))
	})
}
