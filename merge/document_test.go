package merge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/protocol"
)

// The merged file in testdata/golden was made of the rank files beside it by CPython's json
// module, from the contract and without this program; "@DIR@" stands for the directory.
func TestGolden(t *testing.T) {
	const golden = "testdata/golden/"
	dir := t.TempDir()
	for _, name := range []string{"run.json", "run_dp1.json"} {
		writeFile(t, filepath.Join(dir, name), readFile(t, golden+name))
	}
	result := runMerge(t, Options{Inputs: []string{filepath.Join(dir, "run.json")}})
	if len(result.Failures) > 0 || result.Output == "" {
		t.Fatal(result.Findings, result.Failures)
	}
	got := strings.ReplaceAll(readFile(t, result.Output), dir, "@DIR@")
	if diff := cmp.Diff(strings.Split(readFile(t, golden+"run_merged.json"), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}

// speller writes a value in another spelling.
type speller struct {
	random  *rand.Rand
	spaces  bool                   // white space between tokens
	strings bool                   // escapes
	numbers bool                   // fractions and exponents
	keep    func(name string) bool // members whose values stay as they are, apart from white space
}

func (s speller) space(dst []byte) []byte {
	for s.spaces && s.random.IntN(3) == 0 {
		dst = append(dst, " \n\t\r"[s.random.IntN(4)])
	}
	return dst
}

func (s speller) value(dst []byte, v *jsonvalue.Value) []byte {
	dst = s.space(dst)
	switch v.Kind {
	case jsonvalue.Object:
		dst = append(dst, '{')
		for i := range v.Members {
			m := &v.Members[i]
			if i > 0 {
				dst = append(dst, ',')
			}
			inner := s
			if s.keep != nil && s.keep(m.Name) {
				inner.strings, inner.numbers = false, false
			}
			dst = append(s.space(inner.text(s.space(dst), m.RawName)), ':')
			dst = inner.value(dst, &m.Value)
		}
		dst = append(s.space(dst), '}')
	case jsonvalue.Array:
		dst = append(dst, '[')
		for i := range v.Elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s.value(dst, &v.Elems[i])
		}
		dst = append(s.space(dst), ']')
	case jsonvalue.String:
		dst = s.text(dst, v.Raw)
	case jsonvalue.Number:
		dst = s.number(dst, v.Raw)
	default:
		dst = append(dst, v.Raw...)
	}
	return s.space(dst)
}

func (s speller) number(dst, raw []byte) []byte {
	dst = append(dst, raw...)
	if !s.numbers || bytes.ContainsAny(raw, "eE") || s.random.IntN(2) == 0 {
		return dst
	}
	if bytes.ContainsRune(raw, '.') {
		return append(dst, []string{"0", "e0", "E-00", "000e+0"}[s.random.IntN(4)]...)
	}
	if jsonvalue.EqualNumbers(raw, []byte("0")) {
		return append(dst, ".0"...)
	}
	return append(dst, []string{".0", "e0", "0e-1", ".000E+00"}[s.random.IntN(4)]...)
}

// text spells a string with any of its characters escaped, or as they are.
func (s speller) text(dst, raw []byte) []byte {
	if !s.strings {
		return append(dst, raw...)
	}
	dst = append(dst, '"')
	for text := string(jsonvalue.Unquote(nil, raw)); text != ""; {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 { // a lone surrogate, of three bytes
			dst = fmt.Appendf(dst, `\u%04x`, rune(text[0]&0xf)<<12|rune(text[1]&0x3f)<<6|rune(text[2]&0x3f))
			text = text[3:]
			continue
		}
		text = text[size:]
		switch {
		case r >= ' ' && r != '"' && r != '\\' && s.random.IntN(2) == 0:
			dst = utf8.AppendRune(dst, r)
		case r == '/' && s.random.IntN(2) == 0:
			dst = append(dst, `\/`...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04X\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
	}
	return append(dst, '"')
}

// slowFirst makes rank 0 the slowest, so that no other rank's timing is copied.
func slowFirst() change { return only(0, set("/timing/benchmark_elapsed_seconds", "1000.5")) }

// A file other than the reference may spell and order everything as it likes, but for what
// is copied of it and for integers that a rule wants as such: the merged artifact is the
// same, byte by byte.
func TestSpellingOfPeersDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	r := build(t, shape{ranks: 3, points: 2, raw: 2, reversed: true}).apply(t, slowFirst(),
		every(set("/iteration_groups/0/x", `{"\u00e9\ud83d\ude00": ["\ud800", "/\\\"\u0000\n", -0.0, 1e22, 12345678901234567890, 1E-7, {}, [], true, null]}`)))
	want := r.merged(t)
	copied := func(name string) bool {
		switch name {
		case "warmup_evidence", "kv_seed_regime", "dp", "coverage", "measurement_protocol":
			return true
		}
		return false
	}
	for i := range 60 {
		s := speller{random: random, spaces: i%2 == 0, strings: i%3 != 0, numbers: i%5 != 0, keep: copied}
		for rank := 1; rank < r.ranks; rank++ {
			peer := r.docs[rank].Clone()
			if i%4 != 0 {
				jsontest.Shuffle(random, peer, "warmup_evidence", "kv_seed_regime")
			}
			text := string(s.value(nil, peer))
			r.texts[rank] = func(string) string { return text }
		}
		if got := r.merged(t); got != want {
			t.Fatalf("%+v: merged (-want +got):\n%s\nof\n%s", s, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")), r.text(1))
		}
	}
}

// The white space of any file says nothing, the reference's included.
func TestLayoutDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	r := build(t, shape{ranks: 2, points: 3, raw: 2}).apply(t, every(set("/iteration_groups/1/x", `{"\n  ]": ["\n  ]", " ", ",", {"a": [[], {}, [[]]]}], "": "]"}`), set("/results/1/x", "[[]]")))
	want := r.merged(t)
	layouts := []func(v *jsonvalue.Value) string{
		func(v *jsonvalue.Value) string { return string(v.AppendCompact(nil)) },
		func(v *jsonvalue.Value) string { return strings.ReplaceAll(jsontest.Indent(v), "\n", "\r\n") + "\r\n" },
		func(v *jsonvalue.Value) string { return indentBy(v, "\t") },
		func(v *jsonvalue.Value) string { return indentBy(v, "    ") },
		func(v *jsonvalue.Value) string { return indentBy(v, "") },
		func(v *jsonvalue.Value) string { // one blank within otherwise well laid groups
			text := jsontest.Indent(v)
			at := strings.LastIndex(text, `"rank_results"`)
			return text[:at] + " " + text[at:]
		},
		func(v *jsonvalue.Value) string { return string(speller{random: random, spaces: true}.value(nil, v)) },
		func(v *jsonvalue.Value) string { return jsontest.Indent(v) },
	}
	for i, first := range layouts {
		for j, second := range layouts {
			r.texts[0] = func(string) string { return first(r.docs[0]) }
			r.texts[1] = func(string) string { return second(r.docs[1]) }
			if got := r.merged(t); got != want {
				t.Fatalf("layouts %d and %d: merged (-want +got):\n%s", i, j, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
			}
		}
	}
}

// indentBy is the text of a document with another indentation.
func indentBy(v *jsonvalue.Value, unit string) string {
	lines := strings.Split(jsontest.Indent(v), "\n")
	for i, line := range lines {
		text := strings.TrimLeft(line, " ")
		lines[i] = strings.Repeat(unit, (len(line)-len(text))/2) + text
	}
	return strings.Join(lines, "\n")
}

// section returns a part of a merged artifact, compact.
func section(t testing.TB, merged, pointer string) string {
	t.Helper()
	v, missing := jsontest.Find(jsontest.Parse(t, merged), pointer)
	if missing > 0 {
		return "absent"
	}
	return string(v.AppendCompact(nil))
}

func TestSubsetOfRanks(t *testing.T) {
	r := build(t, shape{ranks: 3, points: 2, raw: 1}).apply(t, only(0, set("/warmup_evidence/x", `"zero"`)), only(2, set("/warmup_evidence/x", `"two"`), del("/results/1/kv_seed_regime")))
	dir := t.TempDir()
	r.write(t, dir, 0, 2)
	result := runMerge(t, Options{Inputs: []string{filepath.Join(dir, "run.json")}, Ranks: artifact.RankSet{0, 2}})
	if result.Output == "" {
		t.Fatal(result.Findings, result.Failures)
	}
	merged := readFile(t, result.Output)
	for pointer, want := range map[string]string{
		"/dp":                                    `{"ranks":[0,1,2],"source_ranks":[0,2],"managed_size":2,"global_size":3}`,
		"/rank_warmup_evidence/0/x":              `"zero"`,
		"/rank_warmup_evidence/1":                `{"status":"unavailable","records":[],"reason":"rank_artifact_not_loaded"}`,
		"/rank_warmup_evidence/2/x":              `"two"`,
		"/results/0/kv_seed_regime":              `"real_kv"`,
		"/results/1/kv_seed_regime":              "absent", // rank 1 was not loaded
		"/results/2/kv_seed_regime":              `"real_kv"`,
		"/results/5/kv_seed_regime":              "absent", // rank 2 has none
		"/results/1/fpms/0/worker_id":            `"w1"`,
		"/results/4/point/dp_rank":               "1",
		"/results/4/point/benchmark_id":          "2",
		"/results/6":                             "absent",
		"/coverage":                              `{"expected_points":6,"completed_points":6,"skipped_points":0}`,
		"/timing/started_at":                     `"2026-01-01T00:00:00Z"`,
		"/timing/benchmark_elapsed_seconds":      "90.5",
		"/timing/rank_benchmark_elapsed_seconds": `{"0":90.5,"2":90.3}`,
	} {
		if got := section(t, merged, pointer); got != want {
			t.Errorf("%s is %s, want %s", pointer, got, want)
		}
	}
}

func TestLegacyRun(t *testing.T) {
	r := build(t, shape{ranks: 2, points: 2, raw: 1, legacy: true, bare: true})
	merged := r.merged(t)
	for _, pointer := range []string{"/engine", "/measurement_protocol", "/warmup_evidence", "/rank_warmup_evidence", "/worker_probe_path"} {
		if got := section(t, merged, pointer); got != "absent" {
			t.Errorf("%s is %s", pointer, got)
		}
	}
	var keys []string
	for _, m := range jsontest.Parse(t, merged).Members {
		keys = append(keys, m.Name)
	}
	want := "schema_version artifact_type status valid usable stop_reason run_id grid_digest timing dp coverage config results iteration_groups skipped_points missing_phases error rank_files merged_output_path"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
}

// What the reference lacks is appended in a fixed order; what it has stays in its place.
func TestPlaceOfKeys(t *testing.T) {
	r := build(t, two()).apply(t,
		every(del("/artifact_type"), del("/skipped_points")),
		only(0, del("/engine"), set("/rank_files", "5"), set("/rank_warmup_evidence", "{}"), set("/last", "1")))
	var keys []string
	for _, m := range jsontest.Parse(t, r.merged(t)).Members {
		keys = append(keys, m.Name)
	}
	want := "schema_version status valid usable stop_reason run_id grid_digest timing dp coverage config measurement_protocol results iteration_groups missing_phases error rank_files rank_warmup_evidence last " +
		"engine artifact_type merged_output_path worker_probe_path skipped_points"
	if got := strings.Join(keys, " "); got != want {
		t.Errorf("keys %s,\nwant %s", got, want)
	}
}

func TestMergedEngine(t *testing.T) {
	const plain = `{"attention":{"backend_requested":null,"resolution":"pending"},"parallel":{"data_parallel_rank":null,"tensor_parallel_size":1},"versions":{"vllm":"0.29.0"}}`
	errors := func(text string) string { return strings.TrimSuffix(plain, "}") + `,"capture_errors":` + text + "}" }
	for _, c := range []struct {
		name     string
		changes  []change
		engine   string
		warnings int
	}{
		{"clean", nil, plain, 0},
		{"rank 1 degraded", does(only(1, set("/engine", `{"capture_error": "b\u00f6\ud800"}`))), errors(`{"1":"b\u00f6\ud800"}`), 1},
		{"rank 1 without", does(only(1, del("/engine"))), errors(`{"1":"missing engine block"}`), 1},
		{"rank 1 text", does(only(1, set("/engine", `"x"`))), errors(`{"1":"missing engine block"}`), 1},
		{"reference without", does(only(0, del("/engine"))), errors(`{"0":"missing engine block"}`), 1},
		{"reference degraded", does(only(0, set("/engine", `{"model": 1, "capture_error": null}`))), errors(`{"0":"None"}`), 1},
		{"all degraded", does(only(0, set("/engine", `{"model": 1, "capture_error": true}`)), only(1, set("/engine", `{"capture_error": [1.0, {"a": null}]}`))),
			`{"model":1,"capture_error":true,"capture_errors":{"0":"True","1":"[1.0,{\"a\":null}]"}}`, 2},
		{"none of the reference, the other degraded", does(only(0, del("/engine")), only(1, set("/engine", `{"capture_error": false}`))), `{"capture_errors":{"0":"missing engine block","1":"False"}}`, 2},
		{"none", does(every(del("/engine"))), "absent", 0},
		{"no object anywhere", does(only(0, set("/engine", `"none"`)), only(1, del("/engine"))), `"none"`, 0},
		{"parallel is no object", does(every(set("/engine", `{"parallel": null}`))), `{"parallel":null}`, 0},
	} {
		dir := t.TempDir()
		result := runMerge(t, Options{Inputs: build(t, two()).apply(t, c.changes...).write(t, dir)[:1]})
		if result.Output == "" || result.Warnings != c.warnings {
			t.Errorf("%s: %v, %v", c.name, result.Findings, result.Failures)
			continue
		}
		merged := readFile(t, result.Output)
		if got := section(t, merged, "/engine"); got != c.engine {
			t.Errorf("%s: engine %s, want %s", c.name, got, c.engine)
		}
		if probe := section(t, merged, "/worker_probe_path"); (probe != "absent") != strings.HasPrefix(c.engine, "{") {
			t.Errorf("%s: worker_probe_path %s", c.name, probe)
		}
	}
}

// A run that stopped early is merged, with a warning that says how far it came.
func TestPartialRun(t *testing.T) {
	r := build(t, two()).apply(t, partial())
	dir := t.TempDir()
	result := runMerge(t, Options{Inputs: r.write(t, dir)[:1]})
	if len(result.Findings) != 1 || result.Warnings != 1 || result.Findings[0].Rule != finding.RankPartialRun || !strings.Contains(result.Findings[0].Message, "2 of 9 points") || result.Output == "" {
		t.Fatalf("%+v", result)
	}
	merged := readFile(t, result.Output)
	if got := section(t, merged, "/coverage"); got != `{"expected_points":18,"completed_points":4,"skipped_points":0}` {
		t.Errorf("coverage %s", got)
	}
	if got := section(t, merged, "/stop_reason"); got != `"timeout"` {
		t.Errorf("stop_reason %s", got)
	}
}

func TestMergedTiming(t *testing.T) {
	tenths := shape{ranks: 2, points: 10, raw: 1, legacy: true}
	const wall = "/iteration_groups/*/wall_time"
	walls := func(seconds string) change {
		return every(set(wall, seconds), set("/iteration_groups/*/rank_results/*/fpms/0/wall_time", seconds), set("/results/*/fpms/0/wall_time", seconds))
	}
	const elapsed, measured = "/timing/benchmark_elapsed_seconds", "/timing/measured_iteration_seconds"
	for _, c := range []struct {
		name    string
		changes []change
		want    string
	}{
		{"compensated sum", does(walls("0.1"), every(set(elapsed, "2"), set(measured, "0.9999999999999999"), set("/timing/x", "{}"))),
			`{"started_at":"2026-01-01T00:00:00Z","completed_at":"2026-01-01T00:09:00Z","benchmark_elapsed_seconds":2.0,"measured_iteration_seconds":1.0,"x":{},"rank_benchmark_elapsed_seconds":{"0":2.0,"1":2.0}}`},
		{"the slowest", does(walls("1"), every(set(measured, "10"), set(elapsed, "10")), only(1, set(elapsed, "1e16"))),
			`{"started_at":"2026-01-01T00:00:01Z","completed_at":"2026-01-01T00:09:01Z","benchmark_elapsed_seconds":1e+16,"measured_iteration_seconds":10.0,"rank_benchmark_elapsed_seconds":{"0":10.0,"1":1e+16}}`},
		{"zeros", does(walls("-0"), every(set(measured, "0"), set(elapsed, "-0")), only(1, set(elapsed, "-0.0"))),
			`{"started_at":"2026-01-01T00:00:00Z","completed_at":"2026-01-01T00:09:00Z","benchmark_elapsed_seconds":0.0,"measured_iteration_seconds":0.0,"rank_benchmark_elapsed_seconds":{"0":0.0,"1":-0.0}}`},
	} {
		if got := section(t, build(t, tenths).apply(t, c.changes...).merged(t), "/timing"); got != c.want {
			t.Errorf("%s: timing %s,\nwant %s", c.name, got, c.want)
		}
	}
	overflow := build(t, tenths).apply(t, walls("1e308"), every(set(measured, "1e308"), set(elapsed, "1.7e308")))
	result := runMerge(t, Options{Inputs: overflow.write(t, t.TempDir())[:1]})
	if result.Output != "" || !rejects(sayings(t, result)) {
		t.Errorf("a sum that overflows was accepted: %+v", result)
	}
}

// The flattened results carry each rank's seed regime as it was spelled.
func TestRegimesAreCopied(t *testing.T) {
	regimes := []string{`"real_kv"`, `null`, `"r\u0065al_kv"`, `{"a":[1.50,{}]}`, `1E2`, `"` + strings.Repeat("long ", 20000) + `"`, `[]`, `""`}
	s := shape{ranks: 2, points: len(regimes), raw: 1, legacy: true, reversed: true}
	r := build(t, s)
	for g, regime := range regimes {
		r.apply(t, only(1, set(fmt.Sprintf("/results/%d/kv_seed_regime", g), regime)))
	}
	r.apply(t, only(0, del("/results/*/kv_seed_regime")))
	merged := r.merged(t)
	for g, want := range regimes {
		row := 2 * (s.id(g) - 1)
		if got := section(t, merged, fmt.Sprintf("/results/%d/kv_seed_regime", row)); got != "absent" {
			t.Errorf("rank 0, group %d: %s", g, got)
		}
		if got := section(t, merged, fmt.Sprintf("/results/%d/kv_seed_regime", row+1)); got != want {
			t.Errorf("rank 1, group %d: %.80s, want %.80s", g, got, want)
		}
	}
}

// A point may have a dp_rank of its own, which the rank's replaces in its place.
func TestPointWithRank(t *testing.T) {
	for _, compact := range []bool{false, true} {
		r := build(t, two()).apply(t, every(set("/iteration_groups/*/point", `{"dp_rank": "x", "point_type": "decode", "batch_size": 1}`)),
			every(set("/iteration_groups/0/point/benchmark_id", "1"), set("/iteration_groups/1/point/benchmark_id", "2"), set("/results/0/point", `{"dp_rank": "x", "point_type": "decode", "batch_size": 1, "benchmark_id": 1}`),
				set("/results/1/point", `{"dp_rank": "x", "point_type": "decode", "batch_size": 1, "benchmark_id": 2}`)))
		key, ok := protocol.PointKey(r.docs[0].Get("iteration_groups").Elems[0].Get("point"))
		if !ok {
			t.Fatal("no point key")
		}
		for g := range r.points {
			for rank := range r.ranks {
				r.apply(t, fpm(g, rank, set("/benchmark_measurement/point_key", `"`+key+`"`)))
			}
		}
		if compact {
			r.texts[0] = func(string) string { return string(r.docs[0].AppendCompact(nil)) }
		}
		merged := r.merged(t)
		for row, want := range []string{`{"dp_rank":0,"point_type":"decode","batch_size":1,"benchmark_id":1}`, `{"dp_rank":1,"point_type":"decode","batch_size":1,"benchmark_id":1}`} {
			if got := section(t, merged, fmt.Sprintf("/results/%d/point", row)); got != want {
				t.Errorf("point %s, want %s", got, want)
			}
		}
		if got := section(t, merged, "/iteration_groups/0/point/dp_rank"); got != `"x"` {
			t.Errorf("the group's own point has dp_rank %s", got)
		}
	}
}

// Lone surrogates pass through, in whichever file and wherever they stand.
func TestLoneSurrogates(t *testing.T) {
	const lone = `{"\ud800": ["\udc00\ud800", "\uD83D"], "\ud83d\ude00": "\ud83d\ude00"}`
	for name, changes := range map[string][]change{
		"everywhere":        does(every(set("/note", lone), set("/iteration_groups/0/x", lone), set("/results/1/x", lone))),
		"in the reference":  does(only(0, set("/note", lone))),
		"in a peer":         does(only(1, set("/note", lone), set("/results/0/kv_seed_regime", `"\udfff"`))),
		"in the run's name": does(every(set("/run_id", `"\ud800"`))),
		"in the groups":     does(every(set("/iteration_groups/1/x", lone)), only(1, reversedResults())),
		"in a ledger":       does(only(1, set("/warmup_evidence/x", lone))),
	} {
		r := build(t, two()).apply(t, changes...)
		merged := r.merged(t)
		if !json.Valid([]byte(merged)) {
			t.Errorf("%s: not JSON", name)
		}
		if name == "everywhere" && (section(t, merged, "/note") != strings.ReplaceAll(strings.ReplaceAll(lone, ": ", ":"), ", ", ",") || strings.Count(merged, `"\udc00\ud800"`) != 2) {
			t.Errorf("%s: %s", name, section(t, merged, "/note"))
		}
		if name == "in a peer" && section(t, merged, "/results/1/kv_seed_regime") != `"\udfff"` {
			t.Errorf("%s: %s", name, section(t, merged, "/results/1/kv_seed_regime"))
		}
	}
	differ := build(t, two()).apply(t, every(set("/iteration_groups/0/x", `"\ud800"`)), only(1, set("/iteration_groups/0/x", `"\ufffd"`)))
	result := runMerge(t, Options{Inputs: differ.write(t, t.TempDir())[:1]})
	want := broken(finding.GroupDiffers, 1, "/iteration_groups/0/x", `"\ud800"`, `"\ufffd"`, 1)
	if diff := cmp.Diff(want, sayings(t, result)); diff != "" {
		t.Errorf("a lone surrogate is no replacement character (-want +got):\n%s", diff)
	}
	twice := build(t, two()).apply(t, inText(1, `"valid"`, `"\ud800": 1, "\uD800": 2, "valid"`))
	if result := runMerge(t, Options{Inputs: twice.write(t, t.TempDir())[:1]}); len(result.Findings) != 1 || result.Findings[0].Rule != finding.JSONDuplicateKey {
		t.Errorf("a surrogate key twice: %v", result.Findings)
	}
}

// What a merge would say is not taken from an input that says it already.
func TestForgedKeys(t *testing.T) {
	s := two()
	s.legacy, s.bare = true, true
	forged := does(every(set("/worker_probe_path", `"/etc/passwd"`)), every(set("/rank_warmup_evidence", `{"0": "forged"}`)), every(set("/rank_files", `["forged"]`)))
	r := build(t, s).apply(t, forged...)
	result := runMerge(t, Options{Inputs: r.write(t, t.TempDir())[:1]})
	if result.Output == "" {
		t.Fatal(result.Findings, result.Failures)
	}
	text := readFile(t, result.Output)
	for _, word := range []string{"passwd", "forged", "worker_probe_path", "rank_warmup_evidence"} {
		if strings.Contains(text, word) {
			t.Errorf("the merged artifact has %q:\n%s", word, text)
		}
	}
}

// A block of many small values is refused rather than held.
func TestLargeBlock(t *testing.T) {
	many := "[" + strings.Repeat("0,", 600_000) + "0]"
	for _, pointer := range []string{"/coverage/x", "/timing/x", "/dp/x", "/iteration_groups/0/point/x"} {
		r := build(t, two()).apply(t, every(set(pointer, many)))
		result := runMerge(t, Options{Inputs: r.write(t, t.TempDir())[:1]})
		if !slices.Contains(rules(result), finding.InputLimit) || result.Output != "" {
			t.Errorf("%s: %v, %v", pointer, rules(result), result.Failures)
		}
	}
}
