package warmup

import (
	stdcmp "cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// soundLedger has a record of each status: one that ended at 5, one that failed and ended
// at 9, one that is running since 12.
const soundLedger = `{"status": "recorded", "records": [
	{"kind": "global", "status": "completed", "validation": {"status": "not_performed", "reason": null},
	 "forward_index_start": 0, "forward_index_end": 5, "observed_forward_count": 5, "first_scheduled_requests": {"status": "x"}},
	{"kind": "eager_shape", "status": "failed", "validation": {"status": "failed", "reason": "shape", "failed_dp_rank": 1},
	 "forward_index_start": 5, "forward_index_end": 9, "observed_forward_count": 4},
	{"kind": "real_prefix_seed", "status": "running", "validation": {"status": "not_performed"},
	 "forward_index_start": 12, "forward_index_end": null, "observed_forward_count": null}]}`

// said is what a finding says; its place in the text is held against the pointer.
type said struct {
	Rule     finding.ID
	Pointer  string
	Message  string
	Expected string
	Actual   string // "absent", or words; empty where the value itself is quoted later
}

func sorted(list []said) []said {
	slices.SortFunc(list, func(a, b said) int {
		return stdcmp.Or(stdcmp.Compare(a.Rule, b.Rule), stdcmp.Compare(a.Pointer, b.Pointer))
	})
	return list
}

// facts checks that every finding stands where its pointer leads to, at the parent of
// what is absent, and returns what they say.
func facts(t *testing.T, root *jsonvalue.Value, findings []finding.Finding) (list []said) {
	t.Helper()
	for _, f := range findings {
		tail, below := strings.CutPrefix(f.Pointer, pointer)
		v, missing := jsontest.Find(root, tail)
		if !below || f.Offset != v.Offset || missing > 1 || (missing == 1) != (f.Actual == "absent") || f.Excerpt != (f.Actual == "") {
			t.Errorf("%s at %s: offset %d, actual %q; the value is at %d, %d steps missing", f.Rule, f.Pointer, f.Offset, f.Actual, v.Offset, missing)
		}
		if f.Rank != 1 || f.File != "r1.json" || f.BenchmarkID != 0 {
			t.Errorf("%+v", f)
		}
		list = append(list, said{f.Rule, tail, f.Message, f.Expected, f.Actual})
	}
	return sorted(list)
}

func read(t testing.TB, text string) (*Ledger, []finding.Finding) {
	t.Helper()
	out := finding.NewCollector(0)
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{})
	ledger, err := Read(s, finding.Scope{Out: out, File: "r1.json", Rank: 1})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return ledger, out.Findings()
}

// vector is a change of the sound ledger, and what it must make the reader say.
type vector struct {
	name  string
	edits []jsontest.Edit
	want  []said
}

func edits(list ...jsontest.Edit) []jsontest.Edit { return list }

func ledgerVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const ledger = finding.WarmupLedger
	status := func(actual string) []said {
		return []said{{ledger, "/status", "the ledger's status is not known", "recorded or unavailable", actual}}
	}
	records := func(actual string) []said {
		return []said{{ledger, "/records", "the ledger's records are not a list", "a list", actual}}
	}
	object := []said{{ledger, "", "the warmup ledger is not an object", "an object", ""}}
	return []vector{
		{"sound", nil, nil},
		{"unknown keys", edits(set("/reason", `"x"`), set("/records/0/x", "{}"), set("/records/0/validation/x", "[]")), nil},
		{"no records", edits(set("/records", "[]")), nil},
		{"unavailable", edits(set("", `{"records": [], "status": "un\u0061vailable", "reason": "restored"}`)), nil},
		{"null", edits(set("", "null")), object},
		{"list", edits(set("", "[]")), object},
		{"status missing", edits(del("/status")), status("absent")},
		{"status unknown", edits(set("/status", `"Recorded"`)), status("")},
		{"status null", edits(set("/status", "null")), status("")},
		{"records missing", edits(del("/records")), records("absent")},
		{"records null", edits(set("/records", "null")), records("")},
		{"records an object", edits(set("/records", "{}")), records("")},
		{"empty", edits(set("", "{}")), append(records("absent"), status("absent")...)},
		{"unavailable without records", edits(set("", `{"status": "unavailable"}`)), records("absent")},
		{"unavailable with records", edits(set("/status", `"unavailable"`)), []said{{ledger, "/records", "an unavailable ledger has records", "[]", "3 records"}}},
	}
}

func recordVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const record = finding.WarmupRecord
	status := func(actual string) []said {
		return []said{{record, "/records/0/status", "the record's status is not known", "running, completed or failed", actual}}
	}
	validation := func(actual string) []said {
		return []said{{record, "/records/0/validation", "the record has no validation object", "an object", actual}}
	}
	verdict := func(actual string) []said {
		return []said{{record, "/records/0/validation/status", "the validation's status is not known", "passed, failed or not_performed", actual}}
	}
	contradiction := func(verdict, state, want string) []said {
		return []said{{record, "/records/0/validation/status", "a validation that " + verdict + ` does not go with a record that is "` + state + `"`, "a record that is " + want, ""}}
	}
	states := func(status, verdict string) []jsontest.Edit {
		return edits(set("/records/0/status", `"`+status+`"`), set("/records/0/validation/status", `"`+verdict+`"`))
	}
	return []vector{
		{"completed and passed", states("completed", "passed"), nil},
		{"failed and failed", states("failed", "failed"), nil},
		{"running, not performed", states("running", "not_performed"), nil},
		{"failed, not performed", states("failed", "not_performed"), nil},
		{"completed but failed", states("completed", "failed"), contradiction("failed", "completed", "failed")},
		{"running and passed", states("running", "passed"), contradiction("passed", "running", "completed")},
		{"failed but passed", states("failed", "passed"), contradiction("passed", "failed", "completed")},
		{"running and failed", states("running", "failed"), contradiction("failed", "running", "failed")},
		{"not an object", edits(set("/records/0", "5")), []said{{record, "/records/0", "the record is not an object", "an object", ""}}},
		{"status missing", edits(del("/records/0/status")), status("absent")},
		{"status unknown", edits(set("/records/0/status", `"done"`)), status("")},
		{"status unknown, and passed", edits(set("/records/0/status", `"done"`), set("/records/0/validation/status", `"passed"`)), status("")},
		{"status no string", edits(set("/records/0/status", `1`), set("/records/0/validation/status", `"passed"`)), status("")},
		{"validation missing", edits(del("/records/0/validation")), validation("absent")},
		{"validation null", edits(set("/records/0/validation", "null")), validation("")},
		{"validation text", edits(set("/records/0/validation", `"passed"`)), validation("")},
		{"verdict missing", edits(del("/records/0/validation/status")), verdict("absent")},
		{"verdict unknown", edits(set("/records/0/validation/status", `"ok"`)), verdict("")},
		{"verdict true", edits(set("/records/0/validation/status", `true`)), verdict("")},
	}
}

func rangeVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const rule, count = finding.WarmupRange, finding.WarmupCount
	index := func(name, actual string) said {
		return said{rule, "/records/0/" + name, name + " is neither null nor a forward index", "null or an integer of at least 0 (below 2^63)", actual}
	}
	backwards := func(from, actual string) []said {
		return []said{{rule, "/records/0/forward_index_end", "the record ends before it starts", "at least " + from, actual}}
	}
	endless := func(actual string) []said {
		return []said{{rule, "/records/0/forward_index_end", "a completed record has no end", "an integer of at least 0", actual}}
	}
	no := func(message, expected string) []said {
		return []said{{count, "/records/0/observed_forward_count", message, expected, ""}}
	}
	between := func(start, end, n string) []jsontest.Edit {
		return edits(set("/records/0/forward_index_start", start), set("/records/0/forward_index_end", end), set("/records/0/observed_forward_count", n))
	}
	const length = "observed_forward_count is not the length of the record's range"
	const neither = "observed_forward_count is neither null nor a count"
	return []vector{
		{"empty range", between("5", "5", "0"), nil},
		{"minus zero", between("-0", "0", "-0"), nil},
		{"largest", between("0", "9223372036854775807", "9223372036854775807"), nil},
		{"start unknown", between("null", "5", "99"), nil},
		{"start missing", edits(del("/records/0/forward_index_start"), set("/records/0/observed_forward_count", "99")), nil},
		{"count unknown", between("0", "5", "null"), nil},
		{"count missing", edits(del("/records/0/observed_forward_count")), nil},
		{"nothing known of a failure", edits(set("/records/1", `{"status": "failed", "validation": {"status": "not_performed"}}`)), nil},
		{"count of an open range", edits(set("/records/2/observed_forward_count", "7")), nil},
		{"backwards", between("3", "0", "null"), backwards("3", "")},
		{"backwards, and a count", between("3", "0", "3"), backwards("3", "")},
		{"start negative", between("-1", "5", "5"), []said{index("forward_index_start", "")}},
		{"start false", between("false", "5", "5"), []said{index("forward_index_start", "")}},
		{"start a float", between("0.0", "5", "4"), []said{index("forward_index_start", "")}},
		{"both text", between(`"0"`, `"5"`, "5"), []said{index("forward_index_end", ""), index("forward_index_start", "")}},
		{"end beyond 2^63", between("0", "9223372036854775808", "null"), []said{index("forward_index_end", "")}},
		{"completed without an end", between("0", "null", "null"), endless("")},
		{"completed, end missing", edits(del("/records/0/forward_index_end")), endless("absent")},
		{"count too small", between("0", "5", "4"), no(length, "5")},
		{"count too large", between("2", "5", "4"), no(length, "3")},
		{"count negative", between("0", "5", "-5"), no(neither, "null or an integer of at least 0")},
		{"count a float", between("0", "5", "5.0"), no(neither, "null or an integer of at least 0")},
		{"count text", between("null", "5", `"5"`), no(neither, "null or an integer of at least 0")},
	}
}

func vectors() []vector {
	return slices.Concat(ledgerVectors(), recordVectors(), rangeVectors())
}

func TestRules(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	failed := map[finding.ID]bool{}
	for _, c := range vectors() {
		root := jsontest.Parse(t, soundLedger)
		jsontest.Apply(t, root, c.edits...)
		for range 4 {
			text := jsontest.Indent(root)
			_, findings := read(t, text)
			if diff := cmp.Diff(sorted(c.want), facts(t, jsontest.Parse(t, text), findings)); diff != "" {
				t.Fatalf("%s (-want +got):\n%s\n%s", c.name, diff, text)
			}
			for _, f := range findings {
				failed[f.Rule] = true
			}
			jsontest.Shuffle(random, root) // the order of keys says nothing
		}
	}
	for _, id := range []finding.ID{finding.WarmupLedger, finding.WarmupRecord, finding.WarmupRange, finding.WarmupCount} {
		if !failed[id] {
			t.Errorf("no vector breaks %s", id)
		}
	}
}

func TestWhatALedgerTells(t *testing.T) {
	for text, want := range map[string]struct {
		sound, recorded bool
		records         int
	}{
		soundLedger:                                  {true, true, 3},
		`{"status": "recorded", "records": []}`:      {true, true, 0},
		`{"status": "unavailable", "records": []}`:   {true, false, 0},
		`{"status": "unavailable", "records": [{}]}`: {false, false, 1},
		`{"status": "unavailable"}`:                  {false, false, 0},
		`{"status": "recorded", "records": {}}`:      {false, true, 0},
		`{"status": 1, "records": []}`:               {false, false, 0},
		`{"status": "recorded", "records": [1]}`:     {true, true, 1}, // the record is broken, the list is not
		`[]`:                                         {false, false, 0},
	} {
		l, _ := read(t, text)
		if l.Sound != want.sound || l.Recorded != want.recorded || l.Records() != want.records {
			t.Errorf("%s: sound %t, recorded %t, %d records", text, l.Sound, l.Recorded, l.Records())
		}
	}
}

// field reads a scalar as it stands in an FPM.
func field(t testing.TB, text string) jsonstream.Field {
	t.Helper()
	if text == "" {
		return jsonstream.Field{}
	}
	f, err := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{}).Field()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestReference(t *testing.T) {
	recorded, _ := read(t, soundLedger)
	empty, _ := read(t, `{"status": "recorded", "records": []}`)
	unavailable, _ := read(t, `{"status": "unavailable", "records": []}`)
	notACount := func(n int) Breach {
		return Breach{Message: "warmup_records_before is not a number of records of the rank's ledger", Expected: fmt.Sprintf("an integer from 0 to %d", n)}
	}
	refers := Breach{Message: "a measurement refers to records of an unavailable ledger", Expected: "null"}
	unsound := Breach{Message: "warmup_records_before is neither null nor a count", Expected: "null or an integer of at least 0"}
	ok := Breach{}
	for _, c := range []struct {
		before                                string
		recorded, empty, unavailable, unknown Breach
	}{
		{"", notACount(3), notACount(0), ok, ok},
		{"null", notACount(3), notACount(0), ok, ok},
		{"0", ok, ok, refers, ok},
		{"-0", ok, ok, refers, ok},
		{"3", ok, notACount(0), refers, ok},
		{"4", notACount(3), notACount(0), refers, ok},
		{"2147483648", notACount(3), notACount(0), refers, ok},
		{"9223372036854775807", notACount(3), notACount(0), refers, ok},
		{"9223372036854775808", notACount(3), notACount(0), refers, unsound},
		{"-1", notACount(3), notACount(0), refers, unsound},
		{"1.0", notACount(3), notACount(0), refers, unsound},
		{"true", notACount(3), notACount(0), refers, unsound},
		{`"1"`, notACount(3), notACount(0), refers, unsound},
		{"[]", notACount(3), notACount(0), refers, unsound},
	} {
		r := NewReference(field(t, c.before), field(t, "100"))
		got := []Breach{recorded.Reference(r), empty.Reference(r), unavailable.Reference(r), r.Remote()}
		if diff := cmp.Diff([]Breach{c.recorded, c.empty, c.unavailable, c.unknown}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.before, diff)
		}
	}
	none := NoReference()
	for _, l := range []*Ledger{recorded, empty, unavailable} {
		if l.Reference(none) != ok || l.Overlap(none).Found {
			t.Error("a missing measurement refers to something")
		}
	}
	if none.Remote() != ok {
		t.Error("a missing measurement refers to something remote")
	}
}

func TestOverlap(t *testing.T) {
	record := func(status, end string) string {
		return fmt.Sprintf(`{"status": "%s", "validation": {"status": "not_performed"}, "forward_index_end": %s}`, status, end)
	}
	ledger := func(records ...string) *Ledger {
		l, _ := read(t, `{"status": "recorded", "records": [`+strings.Join(records, ",")+`]}`)
		return l
	}
	running := func(i int) Overlapping { return Overlapping{Found: true, Record: i, Running: true} }
	late := func(i int, forward, end int64) Overlapping {
		return Overlapping{Found: true, Record: i, End: end, Forward: forward}
	}
	long := ledger(record("completed", "5"), record("completed", "30"), record("failed", "9"), record("running", "null"), record("completed", "40"))
	unended := ledger(record("failed", "null"), record("failed", `"x"`), record("completed", "7"))
	unavailable, _ := read(t, `{"status": "unavailable", "records": []}`)
	for _, c := range []struct {
		ledger          *Ledger
		before, forward string
		want            Overlapping
	}{
		{long, "0", "0", Overlapping{}},
		{long, "1", "5", Overlapping{}}, // an end is exclusive
		{long, "1", "4", late(0, 4, 5)},
		{long, "2", "30", Overlapping{}},
		{long, "2", "29", late(1, 29, 30)},
		{long, "3", "29", late(1, 29, 30)}, // the largest end counts, not the last
		{long, "3", "1", late(0, 1, 5)},    // of several records it is the first
		{long, "3", "30", Overlapping{}},
		{long, "4", "30", running(3)},
		{long, "5", "1", running(3)},
		{long, "6", "1", Overlapping{}}, // no sound reference: warmup.reference
		{long, "null", "1", Overlapping{}},
		{long, "-1", "1", Overlapping{}},
		{long, "2", "null", Overlapping{}}, // the first sample is reported by itself
		{long, "2", "-3", Overlapping{}},
		{long, "2", "", Overlapping{}},
		{unended, "2", "0", Overlapping{}},
		{unended, "3", "6", late(2, 6, 7)},
		{unavailable, "3", "0", Overlapping{}},
	} {
		if got := c.ledger.Overlap(NewReference(field(t, c.before), field(t, c.forward))); got != c.want {
			t.Errorf("%s records before forward pass %s: %+v, want %+v", c.before, c.forward, got, c.want)
		}
	}
	for _, c := range []struct {
		o    Overlapping
		want Breach
	}{
		{Overlapping{}, Breach{}},
		{running(3), Breach{"a warmup record that this measurement counts as over is not: record 3 of x is running", "completed or failed", "running"}},
		{late(1, 29, 30), Breach{"a warmup record that this measurement counts as over reaches into it: record 1 of x ends at forward index 30, the measurement starts at 29", "a forward_index_end of at most 29", "30"}},
	} {
		if got := c.o.Breach("of x"); got != c.want {
			t.Errorf("%+v, want %+v", got, c.want)
		}
	}
}

func TestBrokenText(t *testing.T) {
	for end := range len(soundLedger) {
		s := jsonstream.New(strings.NewReader(soundLedger[:end]), 0, 0, jsonstream.Strict, jsonstream.Limits{})
		_, err := Read(s, finding.Scope{Out: finding.NewCollector(0)})
		var fault *jsonstream.Fault
		if !errors.As(err, &fault) || fault.Rule != finding.JSONSyntax || !fault.Truncated {
			t.Fatalf("cut at %d: %v", end, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for i, c := range vectors() {
		root := jsontest.Parse(f, soundLedger)
		jsontest.Apply(f, root, c.edits...)
		jsontest.Shuffle(random, root)
		f.Add(string(root.AppendCompact(nil)), []byte{byte(i), 5})
	}
	f.Fuzz(func(t *testing.T, text string, numbers []byte) {
		lenient, err := jsonstream.Check(strings.NewReader(text), jsonstream.Limits{})
		if err != nil {
			return
		}
		mode := jsonstream.Strict
		if lenient {
			mode = jsonstream.Lenient
		}
		out := finding.NewCollector(0)
		s := jsonstream.New(strings.NewReader(text), 0, 0, mode, jsonstream.Limits{})
		l, err := Read(s, finding.Scope{Out: out, File: "r1.json", Rank: 1})
		if err != nil {
			t.Fatalf("%v in valid text", err)
		}
		facts(t, jsontest.Parse(t, text), out.Findings())
		if !l.Sound && !out.Has(finding.WarmupLedger) {
			t.Error("an unsound ledger without a finding")
		}
		for i := range len(numbers) - 1 {
			before := jsonstream.Field{Kind: '0', Int: int64(numbers[i]), Integer: true, Whole: true}
			forward := jsonstream.Field{Kind: '0', Int: int64(numbers[i+1]), Integer: true, Whole: true}
			r := NewReference(before, forward)
			within := l.Recorded && int(numbers[i]) <= l.Records()
			if sound := l.Reference(r) == (Breach{}); sound != within {
				t.Errorf("%d of %d records: reference sound %t", numbers[i], l.Records(), sound)
			}
			if l.Overlap(r).Found && !within {
				t.Error("an overlap with records that do not exist")
			}
		}
	})
}
