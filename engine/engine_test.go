package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// absent stands for an artifact without an engine key.
const absent = ""

// Every block of these tests is at this offset of its file, and the document around it
// at the one before.
const (
	documentOffset = 1000
	blockOffset    = 1001
)

func parse(t testing.TB, text string) *jsonvalue.Value {
	t.Helper()
	if text == absent {
		return nil
	}
	v, err := jsonvalue.Parse([]byte(text), blockOffset)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// check runs a checker over the blocks of ranks 0, 1, 2, …
func check(t testing.TB, blocks ...string) (*Checker, []finding.Finding) {
	t.Helper()
	findings := finding.NewCollector(0)
	c := NewChecker(findings)
	for rank, text := range blocks {
		c.Add(rank, fmt.Sprintf("r%d.json", rank), documentOffset, parse(t, text))
	}
	c.Finish()
	return c, findings.Findings()
}

// place is a finding without its words.
type place struct {
	Rule     finding.ID
	Rank     int
	File     string
	Pointer  string
	Offset   int64
	Expected string
	Actual   string
}

func places(findings []finding.Finding) (list []place) {
	for _, f := range findings {
		list = append(list, place{f.Rule, f.Rank, f.File, f.Pointer, f.Offset, f.Expected, f.Actual})
	}
	return list
}

func TestMismatch(t *testing.T) {
	const needed = "an engine object without capture_error"
	at := func(text, part string) int64 { return blockOffset + int64(strings.Index(text, part)) }
	differs := func(rank int, pointer string, offset int64, expected, actual string) place {
		return place{finding.EngineMismatch, rank, fmt.Sprintf("r%d.json", rank), pointer, offset, expected, actual}
	}
	changed := `{"attention": {"backend_requested": "B", "x": 1}, "graph": {}, "list": [1, 3, 4], "new": null}`
	for _, c := range []struct {
		name   string
		blocks []string
		want   []place
	}{
		{"one rank", []string{`{"model": {}}`}, nil},
		{"equal", []string{`{"model": {"a": 1, "b": "é"}}`, `{"model": {"b": "\u00e9", "a": 1.0}}`}, nil},
		{
			"every path",
			[]string{`{"attention": {"backend_requested": null, "y": 2, "x": 1}, "graph": {"resolution": "r"}, "list": [1, 2]}`, changed},
			[]place{
				differs(1, "/engine/attention/y", at(changed, `{"backend`), "2 (rank 0)", "absent (rank 1)"),
				differs(1, "/engine/attention/backend_requested", at(changed, `"B"`), "null (rank 0)", `"B" (rank 1)`),
				differs(1, "/engine/graph/resolution", at(changed, `{}`), `"r" (rank 0)`, "absent (rank 1)"),
				differs(1, "/engine/list/1", at(changed, `3`), "2 (rank 0)", "3 (rank 1)"),
				differs(1, "/engine/list/2", at(changed, `4`), "absent (rank 0)", "4 (rank 1)"),
				differs(1, "/engine/new", at(changed, `null`), "absent (rank 0)", "null (rank 1)"),
			},
		},
		{
			"absent is not null", []string{`{"extra": null}`, `{}`},
			[]place{differs(1, "/engine/extra", blockOffset, "null (rank 0)", "absent (rank 1)")},
		},
		{
			"every rank", []string{`{"a": 1}`, `{"a": 2}`, `{"a": 1}`, `{"a": true}`},
			[]place{differs(1, "/engine/a", blockOffset+6, "1 (rank 0)", "2 (rank 1)"), differs(3, "/engine/a", blockOffset+6, "1 (rank 0)", "true (rank 3)")},
		},
		{
			"the first clean rank is the measure", []string{absent, `{"a": 1, "capture_error": ""}`, `{"a": 2}`, `{"a": 3}`},
			[]place{
				{finding.EngineUnverified, 0, "r0.json", "/engine", documentOffset, needed, "absent"},
				{finding.EngineUnverified, 1, "r1.json", "/engine/capture_error", blockOffset + 26, needed, `""`},
				differs(3, "/engine/a", blockOffset+6, "2 (rank 2)", "3 (rank 3)"),
			},
		},
		{
			"object and not", []string{`{"parallel": {"data_parallel_rank": 0}}`, `{"parallel": null}`},
			[]place{differs(1, "/engine/parallel", blockOffset+13, "{} (rank 0)", "null (rank 1)")},
		},
	} {
		_, findings := check(t, c.blocks...)
		if diff := cmp.Diff(c.want, places(findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMessages(t *testing.T) {
	_, findings := check(t, `{"a": 1, "b": 2, "c": [3]}`, `{"a": 4, "c": [3, 5], "d": 6}`, `"text"`, absent, `{"capture_error": null}`)
	var got []string
	for _, f := range findings {
		got = append(got, string(f.Severity)+" "+f.Pointer+": "+f.Message)
	}
	want := []string{
		"error /engine/b: rank 1 is missing a key, which rank 0 has",
		"error /engine/a: rank 1 started differently from rank 0",
		"error /engine/c/1: rank 1 has an added element, which rank 0 does not have",
		"error /engine/d: rank 1 has an added key, which rank 0 does not have",
		"warning /engine: rank 2 is left out of the engine comparison: its engine is not an object",
		"warning /engine: rank 3 is left out of the engine comparison: it has no engine block",
		"warning /engine/capture_error: rank 4 is left out of the engine comparison: the capture of its engine block failed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each of these keys may differ between ranks, and only where it is listed.
func TestIdentityLeavesOut(t *testing.T) {
	for _, c := range []struct{ block, identity string }{
		{`{"resolved": 1, "resolved_scope": 2, "resolution": 3, "worker_probe": 4, "a": 5}`, `{"a": 5}`},
		{`{"attention": {"backend_resolved": 1, "mla_prefill_backend_resolved": 2, "resolution": 3, "a": 4}}`, `{"attention": {"a": 4}}`},
		{`{"attention": {"resolved": 1, "data_parallel_rank": 2}}`, `{"attention": {"resolved": 1, "data_parallel_rank": 2}}`},
		{`{"parallel": {"data_parallel_rank": 1, "data_parallel_size": 2}}`, `{"parallel": {"data_parallel_size": 2}}`},
		{`{"parallel": {"resolution": 1}}`, `{"parallel": {"resolution": 1}}`},
		{`{"parallel": [{"data_parallel_rank": 1}], "attention": "resolution"}`, `{"parallel": [{"data_parallel_rank": 1}], "attention": "resolution"}`},
		{`{"graph": {"resolution": "pre_resolution", "resolved": 1}}`, `{"graph": {"resolution": "pre_resolution", "resolved": 1}}`},
		{`{"data_parallel_rank": 1, "backend_resolved": 2}`, `{"data_parallel_rank": 1, "backend_resolved": 2}`},
		{`{"model": {"attention": {"resolution": 1}}}`, `{"model": {"attention": {"resolution": 1}}}`},
		{`{"capture_errors": {"1": "x"}, "unknown": null}`, `{"capture_errors": {"1": "x"}, "unknown": null}`},
		{`{}`, `{}`},
	} {
		block := parse(t, c.block)
		before := block.Clone()
		if got := Identity(block); !jsonvalue.Equal(got, parse(t, c.identity)) {
			t.Errorf("identity of %s is %s, want %s", c.block, got.AppendCompact(nil), c.identity)
		}
		if diff := cmp.Diff(before, block); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", c.block, diff)
		}
	}
}

func TestDegraded(t *testing.T) {
	for text, want := range map[string]bool{
		absent: true, "null": true, `"text"`: true, "[]": true, "1": true,
		`{"capture_error": null}`: true, `{"capture_error": false}`: true, `{"a": 1, "capture_error": "x"}`: true,
		`{}`: false, `{"capture_errors": {}}`: false, `{"model": {"capture_error": "x"}}`: false,
	} {
		if got := Degraded(parse(t, text)); got != want {
			t.Errorf("Degraded(%s) = %v", text, got)
		}
	}
}

func TestUnverified(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks []string
		want   []int // ranks warned about
	}{
		{"none has an engine", []string{absent, absent}, nil},
		{"none is an object", []string{`"text"`, absent, "null"}, nil},
		{"all clean", []string{"{}", "{}"}, nil},
		{"one has an engine", []string{absent, "{}", "null"}, []int{0, 2}},
		{"the only object is degraded", []string{absent, `{"capture_error": "x"}`}, []int{0, 1}},
	} {
		_, findings := check(t, c.blocks...)
		var got []int
		for _, f := range findings {
			if f.Rule != finding.EngineUnverified || f.Severity != finding.Warning {
				t.Errorf("%s: unexpected %+v", c.name, f)
			}
			got = append(got, f.Rank)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMerged(t *testing.T) {
	for _, c := range []struct {
		name   string
		blocks []string
		want   string // compact; "" when the key stays as it is
	}{
		{"no engine", []string{absent, absent}, ""},
		{"no object", []string{`"text"`, absent}, ""},
		{"clean", []string{`{"b": 1.50, "a": []}`, `{"a": [], "b": 1.5}`}, `{"b":1.50,"a":[]}`},
		{"rank", []string{`{"parallel": {"x": 1, "data_parallel_rank": 0, "y": 2}}`}, `{"parallel":{"x":1,"data_parallel_rank":null,"y":2}}`},
		{"no rank", []string{`{"parallel": {"x": 1}, "z": 0}`}, `{"parallel":{"x":1,"data_parallel_rank":null},"z":0}`},
		{"no parallel", []string{`{"parallel": null}`}, `{"parallel":null}`},
		{"parallel list", []string{`{"parallel": [{"data_parallel_rank": 0}]}`}, `{"parallel":[{"data_parallel_rank":0}]}`},
		{"absent on one", []string{`{"a": 1}`, absent}, `{"a":1,"capture_errors":{"1":"missing engine block"}}`},
		{"not an object on one", []string{`{"a": 1}`, "[]"}, `{"a":1,"capture_errors":{"1":"missing engine block"}}`},
		{"absent on the reference", []string{absent, `{"a": 1}`, `{"a": 1}`}, `{"a":1,"capture_errors":{"0":"missing engine block"}}`},
		{"text on the reference", []string{`"text"`, `{"a": 1}`}, `{"a":1,"capture_errors":{"0":"missing engine block"}}`},
		{"degraded reference", []string{`{"b": 1, "capture_error": "boom"}`, `{"a": 1}`}, `{"a":1,"capture_errors":{"0":"boom"}}`},
		{"all degraded", []string{`{"b": 1, "capture_error": "boom", "parallel": {}}`, `{"a": 1, "capture_error": "x"}`, absent}, `{"b":1,"capture_error":"boom","parallel":{"data_parallel_rank":null},"capture_errors":{"0":"boom","1":"x","2":"missing engine block"}}`},
		{"all degraded, reference without", []string{absent, `{"a": 1, "capture_error": "x"}`}, `{"capture_errors":{"0":"missing engine block","1":"x"}}`},
		{"all degraded, reference text", []string{`"t"`, `{"capture_error": "x"}`}, `{"capture_errors":{"0":"missing engine block","1":"x"}}`},
		{"capture_errors already there", []string{`{"capture_errors": {"9": "old"}, "a": 1}`, absent}, `{"capture_errors":{"1":"missing engine block"},"a":1}`},
		{"capture_errors kept", []string{`{"capture_errors": {"9": "old"}, "a": 1}`}, `{"capture_errors":{"9":"old"},"a":1}`},
		{"in spite of a mismatch", []string{`{"a": 1}`, `{"a": 2}`}, `{"a":1}`},
	} {
		checker, _ := check(t, c.blocks...)
		block, ok := checker.Merged()
		if ok != (c.want != "") {
			t.Errorf("%s: ok = %v", c.name, ok)
		}
		if ok && compact(t, block) != c.want {
			t.Errorf("%s: got  %s\nwant %s", c.name, compact(t, block), c.want)
		}
	}
}

func compact(t *testing.T, m Merged) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, m.Append(nil, 1)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCaptureErrorText(t *testing.T) {
	for value, want := range map[string]string{
		`"hf_config missing"`:  `"hf_config missing"`,
		`"\u00e9é\/\ud800"`:    `"\u00e9é\/\ud800"`,
		`null`:                 `"None"`,
		`true`:                 `"True"`,
		`false`:                `"False"`,
		`1.50`:                 `"1.50"`,
		`{ "a" : [ 1, "x" ] }`: `"{\"a\":[1,\"x\"]}"`,
		`[]`:                   `"[]"`,
		`["é"]`:                `"[\"\u00e9\"]"`,
		`["\u00e9"]`:           `"[\"\\u00e9\"]"`,
	} {
		checker, _ := check(t, `{}`, `{"capture_error": `+value+`}`)
		block, _ := checker.Merged()
		if got := compact(t, block); got != `{"capture_errors":{"1":`+want+`}}` {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func TestAppendLayout(t *testing.T) {
	checker, _ := check(t, `{"versions": {}, "parallel": {"data_parallel_rank": 0}, "sizes": [1, 2.50]}`, absent)
	block, _ := checker.Merged()
	want := `{
    "versions": {},
    "parallel": {
      "data_parallel_rank": null
    },
    "sizes": [
      1,
      2.50
    ],
    "capture_errors": {
      "1": "missing engine block"
    }
  }`
	if diff := cmp.Diff(want, string(block.Append(nil, 1))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, _ := checker.Merged(); string(again.Append(nil, 1)) != want {
		t.Error("asking twice gives another block")
	}
}

// What the checker keeps must not depend on the caller's buffer.
func TestBlocksAreCopied(t *testing.T) {
	texts := [][]byte{[]byte(`{"a": 12345, "capture_error": "first"}`), []byte(`{"a": 67890}`)}
	findings := finding.NewCollector(0)
	c := NewChecker(findings)
	for rank, text := range texts {
		v, err := jsonvalue.Parse(text, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.Add(rank, "f", 0, v)
		for i := range text {
			text[i] = '#'
		}
	}
	block, _ := c.Merged()
	if got := compact(t, block); got != `{"a":67890,"capture_errors":{"0":"first"}}` {
		t.Error(got)
	}
}

func TestMemoryOfManyRanks(t *testing.T) {
	const ranks = 65536
	noise := strings.Repeat("x", 4000)
	var before, after runtime.MemStats
	findings := finding.NewCollector(100)
	c := NewChecker(findings)
	runtime.GC()
	runtime.ReadMemStats(&before)
	for rank := range ranks {
		text := `{"a": "` + noise + `"}`
		if rank%2 == 1 {
			text = `{"a": 1, "capture_error": "` + noise + `"}`
		}
		c.Add(rank, "run.json", 0, parse(t, text))
	}
	c.Finish()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 32<<20 {
		t.Errorf("%d ranks with %d bytes each leave %d bytes", ranks, len(noise), kept)
	}
	if got := findings.Warnings(); got != ranks/2 {
		t.Errorf("%d warnings, want %d", got, ranks/2)
	}
	runtime.KeepAlive(c)
}

// The order of keys is no part of an identity: neither the verdict nor the set of
// differing places may depend on it.
func TestKeyOrderNeverChangesTheVerdict(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 500 {
		blocks := make([]any, 3)
		for i := range blocks {
			blocks[i] = randomBlock(r)
		}
		var first map[string]bool
		for try := range 4 {
			texts := make([]string, len(blocks))
			for i, b := range blocks {
				texts[i] = shuffled(r, b)
			}
			_, findings := check(t, texts...)
			got := map[string]bool{}
			for _, f := range findings {
				got[fmt.Sprint(f.Rule, f.Rank, f.Pointer)] = true
			}
			if try == 0 {
				first = got
			} else if diff := cmp.Diff(first, got); diff != "" {
				t.Fatalf("%s\n(-first +now):\n%s", strings.Join(texts, "\n"), diff)
			}
		}
	}
}

// randomBlock draws from few keys and values, so that blocks are often equal in part.
func randomBlock(r *rand.Rand) any {
	sub := func(keys ...string) any {
		object := map[string]any{}
		for _, k := range keys {
			if r.IntN(4) > 0 {
				object[k] = r.IntN(2)
			}
		}
		return object
	}
	block := map[string]any{
		"resolution": r.IntN(2),
		"attention":  sub("backend_requested", "resolution", "backend_resolved", "x"),
		"parallel":   sub("data_parallel_rank", "data_parallel_size"),
		"kv_cache":   map[string]any{"groups": []any{sub("type", "dtype"), r.IntN(2)}},
	}
	if r.IntN(5) == 0 {
		block["capture_error"] = "x"
	}
	return block
}

func shuffled(r *rand.Rand, v any) string {
	switch v := v.(type) {
	case map[string]any:
		var items []string
		for k, value := range v {
			items = append(items, fmt.Sprintf("%q: %s", k, shuffled(r, value)))
		}
		r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
		return "{" + strings.Join(items, ", ") + "}"
	case []any:
		var items []string
		for _, value := range v {
			items = append(items, shuffled(r, value))
		}
		return "[" + strings.Join(items, ",") + "]"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// A file that does not tell its rank is named by its path.
func TestMessagesWithoutRank(t *testing.T) {
	out := finding.NewCollector(0)
	c := NewChecker(out)
	for i, text := range []string{`{"a": 1}`, `{"a": 2}`, `{"capture_error": "x"}`} {
		c.Add(finding.NoRank, "f"+strconv.Itoa(i)+".json", 0, parse(t, text))
	}
	c.Finish()
	var got []string
	for _, f := range out.Findings() {
		got = append(got, strings.Join([]string{f.Message, f.Expected, f.Actual}, "; "))
	}
	slices.Sort(got)
	want := []string{
		"f1.json started differently from f0.json; 1 (f0.json); 2 (f1.json)",
		`f2.json is left out of the engine comparison: the capture of its engine block failed; an engine object without capture_error; "x"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
