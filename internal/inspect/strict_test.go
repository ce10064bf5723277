package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/simulate"
)

// simulated returns the documents of a synthetic run.
func simulated(t testing.TB, opt simulate.Options) (docs []string) {
	t.Helper()
	opt.Dir = t.TempDir()
	run, err := simulate.Run(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	return files(t, run.Files...)
}

func files(t testing.TB, paths ...string) (docs []string) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	return docs
}

func fileName(i int) string { return "r" + strconv.Itoa(i) + ".json" }

// judge reads documents strictly and compares them.
func judge(t testing.TB, docs []string) ([]*Facts, []finding.Finding) {
	t.Helper()
	out := finding.NewCollector(0)
	var facts []*Facts
	for i, text := range docs {
		scope := finding.Scope{Out: out, File: fileName(i), Rank: finding.NoRank}
		f, err := Read(strings.NewReader(text), Options{File: fileName(i), Strict: &scope})
		if err != nil {
			t.Fatal(err)
		}
		facts = append(facts, f)
	}
	Compare(facts, out)
	return facts, out.Findings()
}

func TestSoundRunsKeepEveryStrictRule(t *testing.T) {
	check := func(name string, docs []string) {
		t.Helper()
		if _, findings := judge(t, docs); len(findings) > 0 {
			t.Errorf("%s: %+v", name, findings)
		}
	}
	for _, opt := range []simulate.Options{
		{Ranks: 1, Points: 1, Raw: 1},
		{Ranks: 2, Points: 40, Raw: 4, Seed: 1},
		{Ranks: 3, Points: 30, Raw: 2, Shuffle: true, Seed: 2},
		{Ranks: 2, Points: 20, Raw: 3, Legacy: true, Seed: 3},
	} {
		for _, rule := range []finding.ID{"", finding.EngineUnverified, finding.RankPartialRun} {
			opt.Break = rule
			check(fmt.Sprintf("%+v", opt), simulated(t, opt))
		}
	}
	check("another writer's run", files(t, "testdata/sound/benchmark_results.json", "testdata/sound/benchmark_results_dp1.json"))
}

// Every strict rule that a run can be made to break is found, and nothing else.
func TestSimulatedBreaks(t *testing.T) {
	broken := 0
	for _, b := range simulate.Breakable() {
		rule, _ := finding.Lookup(b.Rule)
		opt := simulate.Options{Ranks: 2, Points: 4, Raw: 3, Seed: 1, Break: b.Rule}
		if rule.Level != finding.Strict || b.Rule == finding.SchemaViolation || b.Excluded(opt) != nil {
			continue
		}
		broken++
		_, findings := judge(t, simulated(t, opt))
		if len(findings) == 0 {
			t.Errorf("%s is not found", b.Rule)
		}
		for _, f := range findings {
			if f.Rule != b.Rule && !slices.Contains(b.Entails, f.Rule) {
				t.Errorf("%s: found %s at %s: %s", b.Rule, f.Rule, f.Pointer, f.Message)
			}
		}
	}
	if broken != 8 {
		t.Errorf("%d rules broken", broken)
	}
}

// said is what a finding says; its place in the text is held against the pointer.
type said struct {
	File     int
	Rule     finding.ID
	Pointer  string
	Message  string
	Expected string
	Actual   string // "absent", or words; empty where the value itself is quoted later
}

func sortSaid(list []said) []said {
	slices.SortFunc(list, func(a, b said) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Pointer, b.Pointer))
	})
	return list
}

// sayingsOf checks that every finding stands where its pointer leads to, at the parent of
// what is absent, and belongs to its point.
func sayingsOf(t *testing.T, docs []string, findings []finding.Finding) (list []said) {
	t.Helper()
	roots := map[int]*jsonvalue.Value{}
	for _, f := range findings {
		file := f.Rank
		if file < 0 || file >= len(docs) || f.File != fileName(file) {
			t.Fatalf("%+v: file and rank", f)
		}
		if roots[file] == nil {
			roots[file] = jsontest.Parse(t, docs[file])
		}
		root := roots[file]
		v, missing := jsontest.Find(root, f.Pointer)
		if f.Offset != v.Offset || missing > 1 || (missing == 1) != (f.Actual == "absent") {
			t.Errorf("%s at %s: offset %d, actual %q; the value is at %d, %d steps missing", f.Rule, f.Pointer, f.Offset, f.Actual, v.Offset, missing)
		}
		if id := pointOf(root, f.Pointer); f.BenchmarkID != id {
			t.Errorf("%s at %s: benchmark id %d, not %d", f.Rule, f.Pointer, f.BenchmarkID, id)
		}
		list = append(list, said{file, f.Rule, f.Pointer, f.Message, f.Expected, f.Actual})
	}
	return sortSaid(list)
}

// pointOf is the benchmark id of the group or result that a pointer leads into.
func pointOf(root *jsonvalue.Value, pointer string) (id int64) {
	tokens := strings.Split(pointer, "/")
	at := "/" + strings.Join(tokens[1:min(3, len(tokens))], "/")
	switch tokens[1] {
	case "iteration_groups":
		at += "/benchmark_id"
	case "results":
		at += "/point/benchmark_id"
	default:
		return 0
	}
	if v, missing := jsontest.Find(root, at); missing == 0 {
		id, _ = v.Int64()
	}
	return id
}

// change is an edit of one rank's document, or of every rank's.
type change struct {
	file  int // -1: every
	edits []jsontest.Edit
}

func in(file int, edits ...jsontest.Edit) change { return change{file, edits} }
func every(edits ...jsontest.Edit) change        { return change{-1, edits} }

// vector is a change of a sound run of two ranks, and what the strict rules must say of
// it. Its points are a prefill of one request and, after a warmed-up eager shape, three
// decodes: two of 128 requests on real content, one of 33 on fake.
type vector struct {
	name    string
	changes []change
	want    []said
}

const (
	g0, g1 = "/iteration_groups/0", "/iteration_groups/1"
	r0, r1 = "/results/0", "/results/1"
	inRank = "/rank_results/1/fpms/0"
	fact   = "/benchmark_measurement"
)

func scheduledVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const rule = finding.StrictScheduled
	point := func(name, group, field, value, message, expected string) vector {
		if value == "" {
			return vector{name, []change{in(1, del(group+"/point/"+field))}, []said{{1, rule, group + "/point/" + field, message, expected, "absent"}}}
		}
		return vector{name, []change{in(1, set(group+"/point/"+field, value))}, []said{{1, rule, group + "/point/" + field, message, expected, ""}}}
	}
	const batch, tokens, kv = "batch_size", "total_prefill_tokens", "total_kv_read_tokens"
	const noBatch, fewNew, noCount = "batch_size is no number of requests", "a prefill point has fewer new tokens than requests", "total_kv_read_tokens is not a token count"
	const new, fewKV, noType = "a decode point has new tokens", "a decode point reads fewer KV tokens than it has requests", "the point's type is not known"
	const one, zero, types = "an integer of at least 1", "an integer of at least 0", "prefill or decode"
	list := []vector{
		point("batch 0", g0, batch, "0", noBatch, one),
		point("batch negative", g1, batch, "-1", noBatch, one),
		point("batch a float", g0, batch, "1.0", noBatch, one),
		point("batch true", g0, batch, "true", noBatch, one),
		point("batch text", g0, batch, `"1"`, noBatch, one),
		point("no batch", g1, batch, "", noBatch, one),
		point("prefill without tokens", g0, tokens, "0", fewNew, one),
		point("prefill, tokens absent", g0, tokens, "", fewNew, one),
		point("prefill tokens a float", g0, tokens, "512.0", fewNew, one),
		point("prefill, KV negative", g0, kv, "-1", noCount, zero),
		point("prefill, KV null", g0, kv, "null", noCount, zero),
		point("decode with new tokens", g1, tokens, "1", new, "0"),
		point("decode, tokens a float", g1, tokens, "0.0", new, "0"),
		point("decode, KV below the batch", g1, kv, "127", fewKV, "an integer of at least 128"),
		point("decode, no KV", g1, kv, "", fewKV, "an integer of at least 128"),
		point("decode, KV a float", g1, kv, "2090.0", fewKV, "an integer of at least 128"),
		point("another type", g1, "point_type", `"mixed"`, noType, types),
		point("no type", g0, "point_type", "", noType, types),
		point("type null", g0, "point_type", "null", noType, types),
		{"absent is 0", []change{in(1, del(g0+"/point/"+kv), del(g1+"/point/"+tokens))}, nil},
		{"counts are equal by value", []change{in(1, set(g1+inRank+"/scheduled_requests/num_decode_requests", "128.0"))}, nil},
		{"no point", []change{in(1, set(g1+"/point", "null"))}, nil},
		{"not in the raw FPMs", []change{in(1, set(g1+inRank+fact+"/raw_fpms/0/scheduled_requests", "{}"))}, nil},
	}
	for i, field := range scheduledFields {
		for group, want := range map[string][5]string{g0: {"1", "512", "0", "0", "0"}, g1: {"0", "0", "0", "128", "2090"}} {
			at := group + inRank + "/scheduled_requests"
			list = append(list,
				vector{field + " differs", []change{in(1, set(at+"/"+field, "7"))}, []said{{1, rule, at + "/" + field, "what was scheduled is not the point", want[i], ""}}},
				vector{"no " + field, []change{in(1, del(at+"/"+field))}, []said{{1, rule, at + "/" + field, "what was scheduled is not the point", want[i], "absent"}}})
		}
	}
	at := g1 + inRank + "/scheduled_requests"
	return append(list,
		vector{"nothing scheduled", []change{in(1, del(at))}, []said{{1, rule, at, "the FPM has no scheduled_requests", "an object", "absent"}}},
		vector{"a list scheduled", []change{in(1, set(at, "[]"))}, []said{{1, rule, at, "the FPM has no scheduled_requests", "an object", ""}}})
}

func wallVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	group := []said{{1, finding.StrictWall, g1 + "/wall_time", "the group's wall_time is not above 0", "seconds, more than 0", ""}}
	fpm := func(actual string) []said {
		return []said{{1, finding.StrictWall, g1 + inRank + "/wall_time", "the FPM's wall_time is not above 0", "seconds, more than 0", actual}}
	}
	return []vector{
		{"group 0", []change{in(1, set(g1+"/wall_time", "0"))}, group},
		{"group minus zero", []change{in(1, set(g1+"/wall_time", "-0.0"))}, group},
		{"group negative", []change{in(1, set(g1+"/wall_time", "-1e-3"))}, group},
		{"group without a number", []change{in(1, set(g1+"/wall_time", "null"))}, nil},
		{"group too large for a number", []change{in(1, set(g1+"/wall_time", "1e999"))}, nil},
		{"no group time", []change{in(1, del(g1+"/wall_time"))}, nil},
		{"FPM 0", []change{in(1, set(g1+inRank+"/wall_time", "0.0"))}, fpm("")},
		{"FPM negative", []change{in(1, set(g1+inRank+"/wall_time", "-3"))}, fpm("")},
		{"FPM without a time", []change{in(1, del(g1+inRank+"/wall_time"))}, fpm("absent")},
		{"FPM null", []change{in(1, set(g1+inRank+"/wall_time", "null"))}, nil},
		{"FPM tiny", []change{in(1, set(g1+inRank+"/wall_time", "1e-300"))}, nil},
	}
}

func orderVectors() []vector {
	swap := func(i, k string) jsontest.Edit {
		return func(t testing.TB, root *jsonvalue.Value) {
			a, _ := jsontest.Find(root, "/results/"+i)
			b, _ := jsontest.Find(root, "/results/"+k)
			*a, *b = *b, *a
		}
	}
	renumber := func(i, position string) jsontest.Edit {
		return jsontest.Set("/results/"+i+"/fpms/0"+fact+"/preparation/completed_points_before", position)
	}
	return []vector{
		{"swapped", []change{in(1, swap("1", "2"), renumber("1", "1"), renumber("2", "2"))}, []said{{1, finding.StrictOrder, "/results/1/point/benchmark_id",
			"the results come in another order than the reference's, rank 0 (r0.json)", "2", ""}}},
		{"swapped on both ranks", []change{every(swap("1", "2"), renumber("1", "1"), renumber("2", "2"))}, nil},
		{"another point", []change{in(1, jsontest.Set("/results/3/point/benchmark_id", "9"))}, nil},
		{"one missing", []change{in(1, jsontest.Del("/results/3"))}, nil},
		{"no id", []change{in(1, jsontest.Del("/results/3/point/benchmark_id"))}, nil},
	}
}

func configVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	value := func(pointer, expected string) said {
		return said{1, finding.StrictConfig, pointer, "the value differs from the reference, rank 0 (r0.json)", expected, ""}
	}
	missing := func(pointer, expected string) said {
		return said{1, finding.StrictConfig, pointer, "a missing value differs from the reference, rank 0 (r0.json)", expected, "absent"}
	}
	tooLarge := func(pointer string) []said {
		return []said{{1, finding.StrictConfig, pointer, "the block is too large to be compared", "at most 1 MiB and 50,000 values on every rank", ""}}
	}
	return []vector{
		{"config differs", []change{in(1, set("/config/timeout", "901"))}, []said{value("/config/timeout", "900")}},
		{"config twice", []change{in(1, set("/config/timeout", "901"), del("/config/mode"))}, []said{value("/config/timeout", "900"), missing("/config/mode", `"agg"`)}},
		{"config equal by value", []change{in(1, set("/config/timeout", "9.0e2"))}, nil},
		{"only the output path", []change{in(1, set("/config/output_path", "7")), in(0, del("/config/output_path"))}, nil},
		{"added", []change{in(1, set("/config/x", "{}"))}, []said{value("/config/x", "absent")}},
		{"no config", []change{every(set("/config", `{"timeout": 900}`)), in(1, del("/config"))}, []said{missing("/config", `{"timeout":900}`)}},
		{"config null", []change{every(set("/config", `{"output_path": "x"}`)), in(1, set("/config", "null"))}, []said{value("/config", `{}`)}},
		{"too large", []change{in(1, set("/kvwarm/stages", "["+strings.Repeat("0,", 60_000)+"0]"))}, tooLarge("/kvwarm")},
		{"nobody's config", []change{every(del("/config"))}, nil},
		{"capture size", []change{in(1, set("/cudagraph/capture_sizes/2", "5"))}, []said{value("/cudagraph/capture_sizes/2", "4")}},
		{"mode", []change{in(0, set("/cudagraph/mode", `"NONE"`))}, []said{value("/cudagraph/mode", `"NONE"`)}},
		{"capacity", []change{in(0, set("/capacity/common", `{"max_model_len": 7}`)), in(1, set("/capacity/common", `{"max_model_len": 8}`))}, []said{value("/capacity/common/max_model_len", "7")}},
		{"capacity null on one", []change{in(0, set("/capacity/common", `{"max_model_len": 7}`))}, []said{value("/capacity/common", `{"max_model_len":7}`)}},
		{"capacity of its own", []change{in(1, set("/capacity/local", "1"))}, nil},
		{"no capacity", []change{in(1, del("/capacity/common"))}, []said{missing("/capacity/common", "null")}},
		{"skip reason", []change{in(1, set("/kvwarm/skip_reason", `""`))}, []said{value("/kvwarm/skip_reason", "null")}},
		{"eligible", []change{in(1, set("/kvwarm/warm_eligible", "null"))}, []said{value("/kvwarm/warm_eligible", "true")}},
		{"no eligible", []change{in(1, del("/kvwarm/warm_eligible"))}, []said{missing("/kvwarm/warm_eligible", "true")}},
		{"stages of its own", []change{in(1, set("/kvwarm/stages", "[]"))}, nil},
		{"recurrent state", []change{in(1, set("/recurrent_state/uniform_bound", "0.01"))}, []said{value("/recurrent_state/uniform_bound", "null")}},
		{"limits may differ", []change{in(1, set("/limits/num_gpu_blocks", "1"))}, nil},
	}
}

func regimeVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const message = "kv_seed_regime is not what the point's markers and the KV warmup say: "
	wrong := func(at, because, expected string) []said {
		return []said{{1, finding.StrictRegime, at + "/kv_seed_regime", message + because, expected, ""}}
	}
	const noPrefill, noDecode = "the point is marked neither prefill_real_seed nor prefill_fake_prefix", "the point is marked neither kvwarm_real_kv nor kvwarm_fake_fallback"
	const markedReal, markedFake = "the point is marked kvwarm_real_kv", "the point is marked kvwarm_fake_fallback"
	const warmed, untold = noDecode + ", and the KV warmup took place", noDecode + ", and whether the KV warmup took place is not told"
	conflict := func(at, message string) []said {
		return []said{{1, finding.StrictRegime, at + "/point/sample_reasons", message, "markers that agree with the warmup", ""}}
	}
	// row gives a result a regime, also in its evidence, and markers.
	row := func(at, regime, markers string, more ...jsontest.Edit) []change {
		return []change{in(1, append(more, set(at+"/kv_seed_regime", regime), set(at+"/point/sample_reasons", markers),
			func(t testing.TB, root *jsonvalue.Value) {
				if v, _ := jsontest.Find(jsontest.Parse(t, regime), ""); v.Kind == jsonvalue.String {
					set(at+"/fpms/0"+fact+"/preparation/kv_seed_regime", regime)(t, root)
				}
			})...)}
	}
	// off makes the other decode points fit a run without real content.
	off := func(kvwarm, regime string) []jsontest.Edit {
		list := []jsontest.Edit{func(t testing.TB, root *jsonvalue.Value) {
			for _, at := range []string{"/results/2", "/results/3"} {
				jsontest.Apply(t, root, set(at+"/kv_seed_regime", regime), set(at+"/point/sample_reasons", "[]"), set(at+"/fpms/0"+fact+"/preparation/kv_seed_regime", regime))
			}
		}}
		if kvwarm == "" {
			return append(list, del("/kvwarm"))
		}
		return append(list, set("/kvwarm", kvwarm))
	}
	both := func(changes []change) []change { // on every rank, so that only the regime is at fault
		return append(changes, in(0, func(t testing.TB, root *jsonvalue.Value) {
			for _, c := range changes {
				jsontest.Apply(t, root, c.edits...)
			}
		}))
	}
	on0 := func(list []said) []said {
		for _, s := range list {
			s.File = 0
			list = append(list, s)
		}
		return list
	}
	const skipped, why = `{"enabled": true, "warm_eligible": false, "skip_reason": "dataset_unavailable: no such file"}`, `"skip:dataset_unavailable: no such file"`
	const tp = `{"enabled": true, "warm_eligible": false, "skip_reason": "moe_tp_balanced_by_construction"}`
	const anon = `{"enabled": true, "warm_eligible": false, "skip_reason": null}`
	const disabled = `{"enabled": false, "warm_eligible": null, "skip_reason": "flag_off"}`
	const real, fake, fakes = `["kvwarm_real_kv"]`, `["kvwarm_fake_fallback"]`, ` or "fake_fallback" or "fake_attention_kv_random_kda"`
	return []vector{
		{"no field", []change{in(1, del(r1+"/kv_seed_regime"), del(r1+"/fpms/0"+fact+"/preparation/kv_seed_regime"))}, nil},
		{"prefill, real seed", row(r0, `"real_prefix"`, `["prefill_real_seed", "x"]`), nil},
		{"prefill, fake prefix", row(r0, `"fake_prefix"`, `["prefill_fake_prefix"]`), nil},
		{"prefill, escapes", row(r0, `"real_pr\u0065fix"`, `["prefill_real_s\u0065ed"]`), nil},
		{"prefill, real without a marker", row(r0, `"real_prefix"`, `[]`), wrong(r0, noPrefill, `"not_applicable"`)},
		{"prefill, marked real", row(r0, `"not_applicable"`, `["prefill_real_seed"]`), wrong(r0, "the point is marked prefill_real_seed", `"real_prefix"`)},
		{"prefill, marked fake", row(r0, `"real_prefix"`, `["prefill_fake_prefix"]`), wrong(r0, "the point is marked prefill_fake_prefix", `"fake_prefix"`)},
		{"prefill, marked twice", row(r0, `"real_prefix"`, `["prefill_fake_prefix", "prefill_real_seed"]`), conflict(r0, "the point is marked as real and as fake")},
		{"prefill, a decode's marker", row(r0, `"not_applicable"`, real), nil},
		{"prefill, a decode's regime", row(r0, `"real_kv"`, real), wrong(r0, noPrefill, `"not_applicable"`)},
		{"null", row(r1, `null`, real), wrong(r1, markedReal, `"real_kv" or "real_attention_kv_random_kda"`)},
		{"a number", row(r1, `1`, real), wrong(r1, markedReal, `"real_kv" or "real_attention_kv_random_kda"`)},
		{"unknown", row(r1, `"warm"`, real), wrong(r1, markedReal, `"real_kv" or "real_attention_kv_random_kda"`)},
		{"real, random KDA", row(r1, `"real_attention_kv_random_kda"`, real), nil},
		{"fake, random KDA", row(r1, `"fake_attention_kv_random_kda"`, fake), nil},
		{"marked fake", row(r1, `"real_kv"`, fake), wrong(r1, markedFake, `"fake_fallback" or "fake_attention_kv_random_kda"`)},
		{"marked real", row(r1, `"fake_fallback"`, real), wrong(r1, markedReal, `"real_kv" or "real_attention_kv_random_kda"`)},
		{"marked twice", row(r1, `"real_kv"`, `["kvwarm_real_kv", "kvwarm_fake_fallback"]`), conflict(r1, "the point is marked as real and as fake")},
		{"unstamped", row(r1, `"unstamped"`, "[]"), nil},
		{"no marker, real", row(r1, `"real_kv"`, "[]"), wrong(r1, warmed, `"unstamped" or "fake_attention_kv_random_kda"`)},
		{"no marker, legacy", row(r1, `"legacy"`, "[]"), wrong(r1, warmed, `"unstamped" or "fake_attention_kv_random_kda"`)},
		{"no warmup", both(row(r1, `"legacy"`, `[]`, off("", `"legacy"`)...)), nil},
		{"no warmup, real", both(row(r1, `"real_kv"`, `[]`, off("", `"legacy"`)...)), on0(wrong(r1, "the KV warmup was off", `"legacy" or "skip:flag_off" or "fake_attention_kv_random_kda"`))},
		{"switch off", both(row(r1, `"skip:flag_off"`, `[]`, off(disabled, `"legacy"`)...)), nil},
		{"switch off, marked real", both(row(r1, `"legacy"`, real, off(disabled, `"legacy"`)...)), on0(conflict(r1, "the point is marked as real, and the KV warmup was off"))},
		{"skipped", both(row(r1, why, `[]`, off(skipped, `"skip:dataset_unavailable"`)...)), nil},
		{"skipped, fallback", both(row(r1, `"fake_fallback"`, fake, off(skipped, why)...)), nil},
		{"skipped for another reason", both(row(r1, `"skip:dataset_empty"`, `[]`, off(skipped, why)...)),
			on0(wrong(r1, "the KV warmup was skipped, because dataset_unavailable: no such file", `"skip:dataset_unavailable: no such file" or "skip:dataset_unavailable"`+fakes))},
		{"skipped, marked real", both(row(r1, why, real, off(skipped, why)...)), on0(conflict(r1, "the point is marked as real, and the KV warmup was skipped"))},
		{"skipped without a reason", both(row(r1, `"skip:x"`, `[]`, off(anon, `"fake_fallback"`)...)), nil},
		{"skipped without a reason, real", both(row(r1, `"real_kv"`, `[]`, off(anon, `"fake_fallback"`)...)), on0(wrong(r1, "the KV warmup was skipped, because of a reason that is not told", `"skip:" and a reason`+fakes))},
		{"balanced overrides the markers", both(row(r1, `"skip:moe_tp_balanced_by_construction"`, real, off(tp, `"skip:moe_tp_balanced_by_construction"`)...)), nil},
		{"balanced, marked real", both(row(r1, `"real_kv"`, real, off(tp, `"fake_fallback"`)...)), nil},
		{"balanced, not marked", both(row(r1, `"real_kv"`, `[]`, off(tp, `"fake_fallback"`)...)), on0(wrong(r1, "the KV warmup was skipped, because moe_tp_balanced_by_construction", `"skip:moe_tp_balanced_by_construction"`+fakes))},
		{"the group is not eligible", both(row(r1, `"real_kv"`, real, append(off(anon, `"fake_fallback"`), set("/kvwarm", `{"enabled": true, "warm_eligible": true, "skip_reason": null}`), set("/capacity/common", `{"kvwarm_eligible": false}`))...)),
			on0(conflict(r1, "the point is marked as real, and the KV warmup was skipped"))},
		{"verdict unknown", both(row(r1, `"legacy"`, `[]`, off("[]", `"skip:x"`)...)), nil},
		{"verdict unknown, real without a marker", both(row(r1, `"real_kv"`, `[]`, off("{}", `"unstamped"`)...)), on0(wrong(r1, untold, `"unstamped" or "legacy" or "skip:" and a reason or "fake_attention_kv_random_kda"`))},
		{"unknown type", []change{in(1, set(r1+"/point/point_type", `"x"`), set(r1+"/kv_seed_regime", `"real_kv"`))}, nil},
	}
}

func measurementVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const rule = finding.MeasurementStrict
	const before, regime = r1 + "/fpms/0" + fact + "/preparation/completed_points_before", r1 + "/fpms/0" + fact + "/preparation/kv_seed_regime"
	position := func(actual string) []said {
		return []said{{1, rule, before, "completed_points_before is not the result's position", "1", actual}}
	}
	other := func(expected, actual string) []said {
		return []said{{1, rule, regime, "the measurement was prepared for another kv_seed_regime than its result names", expected, actual}}
	}
	unnamed := []said{{1, rule, regime, "the measurement was prepared for a kv_seed_regime, and its result names none", "null or absent, or that kv_seed_regime in the result", ""}}
	const requests = g1 + inRank + fact + "/prompts/requests"
	const request, hash = `[{"num_tokens": 3, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`, `"04c333eb6af881cde946782f64bd8cdbfe5c1b7bbd47716bab118a3f40de3020"`
	return []vector{
		{"position 2", []change{in(1, set(before, "2"))}, position("")},
		{"position a float", []change{in(1, set(before, "1.0"))}, position("")},
		{"no position", []change{in(1, del(before))}, position("absent")},
		{"another rank's position", []change{in(1, set("/results/*/fpms/0"+fact+"/dp_rank", "7"), set(g1+"/rank_results/0/fpms/0"+fact+"/preparation/completed_points_before", "9"))}, nil},
		{"other regime", []change{in(1, set(regime, `"fake_fallback"`))}, other(`"real_kv"`, "")},
		{"regime null", []change{in(1, set(regime, `null`))}, other(`"real_kv"`, "")},
		{"no regime", []change{in(1, del(regime))}, other(`"real_kv"`, "absent")},
		{"no regime in the row", []change{in(1, del(r1+"/kv_seed_regime"))}, unnamed},
		{"a regime of null in the measurement alone", []change{in(1, del(r1+"/kv_seed_regime"), set(regime, "null"))}, nil},
		{"no regime in the row, a number in the measurement", []change{in(1, del(r1+"/kv_seed_regime"), set(regime, "1"))}, unnamed},
		{"no regime in the row of an older producer", []change{in(1, del(r1+"/kv_seed_regime"), del(r1+"/fpms/0"+fact))}, nil},
		{"no preparation", []change{in(1, del(r1+"/fpms/0"+fact+"/preparation"))}, nil},
		{"no measurement", []change{in(1, set(r1+"/fpms/0"+fact, "[]"))}, nil},
		{"prompts in a group", []change{in(1, set(requests, request))}, []said{
			{1, rule, requests + "/0/slot", "slot is not the request's position", "0", "absent"},
			{1, rule, g1 + inRank + fact + "/prompts/sha256", "the hash of the prompts is not that of their requests", hash, ""}}},
		{"prompts in a result", []change{in(1, del(r1+"/fpms/0"+fact+"/prompts/requests"))}, nil},
		{"no protocol", []change{every(del("/measurement_protocol"), set(before, "2"), del(requests), set("/warmup_evidence/records/0/kind", "1"))}, nil},
		{"unknown protocol", []change{every(set("/measurement_protocol/schema_version", "2"), set(before, "2"), del(requests), set("/warmup_evidence/records/0/kind", "1"))}, nil},
	}
}

func warmupVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const rule = finding.WarmupStrict
	const before = r1 + "/fpms/0" + fact + "/preparation/warmup_records_before"
	const records = "/warmup_evidence/records"
	return []vector{
		{"too few records", []change{in(1, set(before, "1"))}, []said{{1, rule, before, "warmup_records_before is not the number of records up to completed_points_before", "2", ""}}},
		{"more than there are", []change{in(1, set(before, "3"))}, nil},
		{"null", []change{in(1, set(before, "null"))}, nil},
		{"absent", []change{in(1, del(before))}, nil},
		{"a later record", []change{in(1, set(records+"/1/completed_points_before", "2"), set("/results/*/fpms/0"+fact+"/preparation/warmup_records_before", "1"),
			set("/results/2/fpms/0"+fact+"/preparation/warmup_records_before", "2"))}, []said{
			{1, rule, "/results/3/fpms/0" + fact + "/preparation/warmup_records_before", "warmup_records_before is not the number of records up to completed_points_before", "2", ""}}},
		{"a record does not tell", []change{in(1, del(records+"/1/completed_points_before"), set(before, "1"))}, []said{
			{1, rule, records + "/1/completed_points_before", "completed_points_before is not a count", "an integer of at least 0", "absent"}}},
		{"as many as there are results", []change{in(1, set(records+"/1/completed_points_before", "4"), set("/results/*/fpms/0"+fact+"/preparation/warmup_records_before", "1"))}, nil},
		{"more than there are results", []change{in(1, set(records+"/1/completed_points_before", "5"), set("/results/*/fpms/0"+fact+"/preparation/warmup_records_before", "1"))}, []said{
			{1, rule, records + "/1/completed_points_before", "completed_points_before is more than there are results", "at most 4", ""}}},
		{"results are no list", []change{every(set("/results", "null"), set(records+"/1/completed_points_before", "5"))}, nil},
		{"unavailable", []change{in(1, set("/warmup_evidence/status", `"unavailable"`), set(records+"/0/kind", "1"), set(before, "1"))}, nil},
		{"no ledger", []change{in(1, del("/warmup_evidence"), set(before, "1"))}, nil},
		{"no contract", []change{every(del("/measurement_protocol/execution_evidence"), set(records+"/0/kind", "1"), set(before, "1"))}, nil},
		{"the position is wrong", []change{in(1, set(r1+"/fpms/0"+fact+"/preparation/completed_points_before", "0"), set(before, "1"))}, []said{
			{1, finding.MeasurementStrict, r1 + "/fpms/0" + fact + "/preparation/completed_points_before", "completed_points_before is not the result's position", "1", ""}}},
	}
}

func protocolVectors() []vector {
	at := "/measurement_protocol/timing_metric"
	return []vector{
		{"another metric", []change{in(1, jsontest.Set(at, `"gpu_time"`))}, []said{
			{1, finding.ProtocolValue, at, "timing_metric is not what the known protocol has", `"scheduler_wall_time"`, ""}}},
		{"too large", []change{in(1, jsontest.Set("/measurement_protocol/x", "["+strings.Repeat("0,", 60_000)+"0]"))}, []said{
			{1, finding.ProtocolValue, "/measurement_protocol", "the protocol is too large to be judged", "at most 1 MiB and 50,000 values", ""}}},
	}
}

func vectors() []vector {
	return slices.Concat(scheduledVectors(), wallVectors(), orderVectors(), configVectors(), regimeVectors(),
		measurementVectors(), warmupVectors(), protocolVectors())
}

func soundDocs(t testing.TB) []string {
	return simulated(t, simulate.Options{Ranks: 2, Points: 4, Raw: 1, Seed: 1})
}

func TestStrictRules(t *testing.T) {
	var sound []*jsonvalue.Value
	for _, text := range soundDocs(t) {
		sound = append(sound, jsontest.Parse(t, text))
	}
	random := rand.New(rand.NewPCG(1, 2))
	failed := map[finding.ID]bool{}
	for _, c := range vectors() {
		t.Run(c.name, func(t *testing.T) {
			roots := make([]*jsonvalue.Value, len(sound))
			for i, root := range sound {
				roots[i] = root.Clone()
				for _, change := range c.changes {
					if change.file == i || change.file < 0 {
						jsontest.Apply(t, roots[i], change.edits...)
					}
				}
			}
			for range 2 {
				var texts []string
				for _, root := range roots {
					texts = append(texts, jsontest.Indent(root))
				}
				_, findings := judge(t, texts)
				if diff := gocmp.Diff(sortSaid(c.want), sayingsOf(t, texts, findings)); diff != "" {
					t.Fatalf("(-want +got):\n%s", diff)
				}
				for _, f := range findings {
					failed[f.Rule] = true
				}
				if len(texts[0])+len(texts[1]) > 1<<18 {
					return // a large block; once is enough
				}
				for _, root := range roots {
					jsontest.Shuffle(random, root) // the order of keys says nothing
				}
			}
		})
	}
	for _, rule := range finding.Rules() {
		if rule.Level == finding.Strict && rule.ID != finding.SchemaViolation && !failed[rule.ID] {
			t.Errorf("no vector breaks %s", rule.ID)
		}
	}
}
