package protocol

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
)

// Two digests of prompts.
const (
	digest0 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	digest1 = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
)

// hashed are lists of requests that keep the strict rules, with the hash that CPython's
// json and hashlib give for them.
func hashed() []struct{ name, requests, hash string } {
	return []struct{ name, requests, hash string }{
		{"two", `[{"slot": 0, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}, {"slot": 1, "num_tokens": 0, "sha256": "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"}]`, `6824b5dfff0f532ec5ea1e1fa1770425dbfb75070fbd851111fad1c01cf673d7`},
		{"keys in another order", `[{"sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "num_tokens": 7, "slot": 0}, {"num_tokens": 0, "slot": 1, "sha256": "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"}]`, `6824b5dfff0f532ec5ea1e1fa1770425dbfb75070fbd851111fad1c01cf673d7`},
		{"a further key", `[{"slot": 0, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "text": "\u00e9\ud83d\ude00\"", "a": [1.50, null, {}]}]`, `79e131d2cca2def50587bc5154e249e4857a27e38ef1cccba096d50496be3a2a`},
		{"escapes", `[{"sl\u006ft": 0, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`, `15827ad019628a3321656a42e53d6dd9f627c922705ac4a71ca828fd11fa8707`},
		{"minus zero", `[{"slot": -0, "num_tokens": -0, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`, `cb4efc60e209b346dad11669af8c27f993d63a7da8a5582550c0ea7628ac768f`},
		{"large", `[{"slot": 0, "num_tokens": 9223372036854775807, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`, `7134e59aa28353fda263bf612bf185483e9445277abf22b7935ff7fcf07c5901`},
	}
}

// soundMeasurement is a measurement with two requests and three samples of four.
func soundMeasurement(t testing.TB) string {
	root := jsontest.Parse(t, soundFPM())
	h := hashed()[0]
	jsontest.Apply(t, root, jsontest.Set(bm+"/prompts", `{"status": "recorded", "sha256": "`+h.hash+`", "requests": `+h.requests+`}`))
	return jsontest.Indent(root.Get("benchmark_measurement"))
}

// readEvidence reads a measurement as that of the FPM of [place].
func readEvidence(t testing.TB, contract Contract, text string, detail bool) (e Evidence, samples []RawSample, findings []finding.Finding) {
	t.Helper()
	out := finding.NewCollector(0)
	r := NewEvidenceReader(strings.NewReader(text), contract)
	r.Detail = detail
	r.Sample = func(x *RawSample) error {
		samples = append(samples, *x)
		return nil
	}
	s := jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	got, err := r.Read(s, place(out, nil))
	if err == nil {
		err = s.End()
	}
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return *got, samples, out.Findings()
}

const requestsAt, hashAt = "/prompts/requests", "/prompts/sha256"

func strictSays(tail, message, expected, actual string) []said {
	return []said{{finding.MeasurementStrict, tail, message, expected, actual}}
}

func wrongHash(want, actual string) []said {
	return strictSays(hashAt, "the hash of the prompts is not that of their requests", `"`+want+`"`, actual)
}

func promptVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	object := func(actual string) []said {
		return strictSays("/prompts", "the measurement has no prompts object", "an object", actual)
	}
	status := func(actual string) []said {
		return strictSays("/prompts/status", "the status of the prompts is not known", "recorded or unavailable", actual)
	}
	list := func(actual string) []said {
		return strictSays(requestsAt, "recorded prompts have no requests", "a non-empty list", actual)
	}
	notNull := func(actual string) []said {
		return strictSays(hashAt, "prompts that are unavailable have no null for a hash", "null", actual)
	}
	notEmpty := func(actual string) []said {
		return strictSays(requestsAt, "prompts that are unavailable have no empty list of requests", "[]", actual)
	}
	slot := func(i string) said {
		return strictSays(requestsAt+"/"+i+"/slot", "slot is not the request's position", i, "")[0]
	}
	const none = `{"status": "unavailable", "sha256": null, "requests": []}`
	const swapped = `[{"slot":1,"num_tokens":0,"sha256":"fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"},{"slot":0,"num_tokens":7,"sha256":"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]`
	sound := hashed()[0].hash
	vectors := []vector{
		{"sound", nil, nil},
		{"unavailable", edits(set("/prompts", none)), nil},
		{"unknown keys", edits(set("/prompts/x", "[{}]"), set("/x", "{}")), nil},
		{"no prompts", edits(del("/prompts")), object("absent")},
		{"prompts null", edits(set("/prompts", "null")), object("")},
		{"prompts a list", edits(set("/prompts", "[]")), object("")},
		{"no status", edits(del("/prompts/status")), status("absent")},
		{"unknown status", edits(set("/prompts/status", `"Recorded"`), set(requestsAt, "null")), status("")},
		{"status null", edits(set("/prompts/status", "null")), status("")},
		{"no requests", edits(del(requestsAt)), list("absent")},
		{"requests null", edits(set(requestsAt, "null")), list("")},
		{"requests empty", edits(set(requestsAt, "[]"), set(hashAt, `"4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945"`)), list("")},
		{"requests an object", edits(set(requestsAt, "{}")), list("")},
		{"no hash", edits(del(hashAt)), wrongHash(sound, "absent")},
		{"hash null", edits(set(hashAt, "null")), wrongHash(sound, "")},
		{"hash in upper case", edits(set(hashAt, strconv.Quote(strings.ToUpper(sound)))), wrongHash(sound, "")},
		{"hash of others", edits(set(hashAt, `"`+digest0+`"`)), wrongHash(sound, "")},
		{"hash with escapes", edits(set(hashAt, `"\u00`+strconv.FormatInt(int64(sound[0]), 16)+sound[1:]+`"`)), nil},
		{"requests swapped", edits(set(requestsAt, swapped)), append(wrongHash("bb6071f13ea86735466959fc564f676183f19d85a197e6ddf832bb605fb466df", ""), slot("0"), slot("1"))},
		{"unavailable with a hash", edits(set("/prompts", none), set(hashAt, `"`+digest0+`"`)), notNull("")},
		{"unavailable without a hash", edits(set("/prompts", none), del(hashAt)), notNull("absent")},
		{"unavailable with requests", edits(set("/prompts", none), set(requestsAt, "[{}]")), notEmpty("")},
		{"unavailable without requests", edits(set("/prompts", none), del(requestsAt)), notEmpty("absent")},
		{"unavailable, requests null", edits(set("/prompts", none), set(requestsAt, "null")), notEmpty("")},
		{"too large to hash", edits(set(requestsAt, `[{"slot": 0, "num_tokens": 7, "sha256": "`+digest0+`", "x": "`+strings.Repeat("x", maxRequest)+`"}]`)),
			strictSays(requestsAt+"/0", "the request is too large to be hashed", "at most 512 KiB", "")},
	}
	for _, h := range hashed() {
		vectors = append(vectors, vector{h.name, edits(set(requestsAt, h.requests), set(hashAt, `"`+h.hash+`"`)), nil})
	}
	return vectors
}

// requestVectors have one request, whose hash is that of CPython.
func requestVectors() []vector {
	only := func(request, hash string) []jsontest.Edit {
		return edits(jsontest.Set(requestsAt, "["+request+"]"), jsontest.Set(hashAt, `"`+hash+`"`))
	}
	object := strictSays(requestsAt+"/0", "the request is not an object", "an object", "")
	slot := func(actual string) []said {
		return strictSays(requestsAt+"/0/slot", "slot is not the request's position", "0", actual)
	}
	tokens := func(actual string) []said {
		return strictSays(requestsAt+"/0/num_tokens", "num_tokens is not a token count", "an integer of at least 0", actual)
	}
	digest := func(actual string) []said {
		return strictSays(requestsAt+"/0/sha256", "the request's hash is not a SHA-256", "64 lower-case hexadecimal digits", actual)
	}
	return []vector{
		{"request null", only(`null`, `1d8fc6ceb1f94c6326d6d5483d258fcb2e179e9869325b245d105c2219bf69fd`), object},
		{"request a list", only(`[1.0]`, `5552cc5aa701b59dc0fdb521a81f3a8f639a70b198590c4b39475019021e5a93`), object},
		{"slot 1", only(`{"slot": 1, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `9c7476046175297ac7b35033b05c074601a9bbacfd30c1e2e349ce970ae97fd9`), slot("")},
		{"slot a float", only(`{"slot": 0.0, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `7c41f37e1cea9f80b3c3be79c23b48ea02035dec1ec5e13cd990ef23138ebbdc`), slot("")},
		{"slot text", only(`{"slot": "0", "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `dddd944b030ebb21c93d7a504a8db3e34ddeeb77546a52fe0379d6b4b7b90825`), slot("")},
		{"slot false", only(`{"slot": false, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `e179f99868b44cbcbcc86c0fc52686d4c4a4add25f21275410a69e8e8935416a`), slot("")},
		{"no slot", only(`{"num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `a72974dca7fcaa1528b4aa602416c6d1e6cc62535a46a506192486c1e2fc210c`), slot("absent")},
		{"tokens negative", only(`{"slot": 0, "num_tokens": -1, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `5b49d5a755e88cae2b3d25fe3fc6c2d29c90a75373834625e4058cec5bf3a9e6`), tokens("")},
		{"tokens a float", only(`{"slot": 0, "num_tokens": 1e3, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `82e5f80756a88d3c25275887c36e32c789496cd2ab1ba8f9db3451d7cff9216a`), tokens("")},
		{"tokens null", only(`{"slot": 0, "num_tokens": null, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `6f3460b61df0f4fd5fb8229e28f1ffb0b7a2b31df90a5a82c36ee1acd8da3787`), tokens("")},
		{"tokens too many", only(`{"slot": 0, "num_tokens": 9223372036854775808, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `76a80a79b2a5faa969e8474b4e49ffb0f875a0b0419be0d053d0944397e59cc4`), tokens("")},
		{"no tokens", only(`{"slot": 0, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `6277d4014cea58756e689fd5797cc17fb1c85ac8bd2eefce2bba057e078cdd0e`), tokens("absent")},
		{"digest in upper case", only(`{"slot": 0, "num_tokens": 7, "sha256": "0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF"}`, `c88706fc55e64fced9db1feac40d8dd9e49e09ae811bc2d5812f564e28860abc`), digest("")},
		{"digest short", only(`{"slot": 0, "num_tokens": 7, "sha256": "123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `14b734cf7b05ac441e3aca8dc65c8a83f7fd7e4684431d50b8207b76887e8e00`), digest("")},
		{"digest long", only(`{"slot": 0, "num_tokens": 7, "sha256": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0"}`, `d7059cba412b639632b77965d5e99f748b37164256d3092b0e92e37e0dc2e4fb`), digest("")},
		{"digest no hex", only(`{"slot": 0, "num_tokens": 7, "sha256": "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}`, `03c68cd42defd6e20f959e02da0e7ee06de2590842ff98eeb9099f37885b61a1`), digest("")},
		{"digest null", only(`{"slot": 0, "num_tokens": 7, "sha256": null}`, `71e6bbb5e730ffc3e18c361a94d03d04fe77f20c6ff86e1b157888619f1ededd`), digest("")},
		{"no digest", only(`{"slot": 0, "num_tokens": 7}`, `e40c0a26af40021b548c549db03eea1b13098ce8c76704a7975457b57373fba6`), digest("absent")},
	}
}

func reductionVectors() []vector {
	set, del := jsontest.Set, jsontest.Del
	const mode = "/raw_fpms/1/benchmark_sample/cudagraph/runtime_mode"
	expects := func(n, method string) []jsontest.Edit {
		return edits(set("/expected_internal_samples", n), set("/estimate/method", `"`+method+`"`))
	}
	method := func(message, expected string) []said { return strictSays("/estimate/method", message, expected, "") }
	wall := strictSays("/raw_fpms/0/wall_time", "the raw wall_time is not above 0", "seconds, more than 0", "")
	unknown := strictSays(mode, "the observed runtime mode is not known", "NONE, PIECEWISE or FULL, an enum's name before it or not", "")
	two := del("/raw_fpms/2")
	return []vector{
		{"raw 0", edits(set("/raw_fpms/0/wall_time", "0")), wall},
		{"raw minus zero", edits(set("/raw_fpms/0/wall_time", "-0.0")), wall},
		{"raw tiny", edits(set("/raw_fpms/0/wall_time", "1e-320")), nil},
		{"raw negative", edits(set("/raw_fpms/0/wall_time", "-1")), nil}, // sample.timing
		{"raw absent", edits(del("/raw_fpms/0/wall_time")), nil},
		{"raw no object", edits(set("/raw_fpms/0", "null")), nil},
		{"mode NONE", edits(set(mode, `"NONE"`)), nil},
		{"mode PIECEWISE", edits(set(mode, `"CUDAGraphMode.PIECEWISE"`)), nil},
		{"mode with a path", edits(set(mode, `"vllm.CUDAGraphMode.F\u0055LL"`)), nil},
		{"mode in lower case", edits(set(mode, `"full"`)), unknown},
		{"mode of two", edits(set(mode, `"FULL_AND_PIECEWISE"`)), unknown},
		{"mode without a last part", edits(set(mode, `"FULL."`)), unknown},
		{"mode empty", edits(set(mode, `""`)), nil},           // sample.cudagraph
		{"mode no string", edits(set(mode, `["NONE"]`)), nil}, // likewise
		{"mode of nothing observed", edits(set("/raw_fpms/1/benchmark_sample/cudagraph/status", `"unavailable"`), set(mode, `"X"`)), nil},
		{"last step of all", expects("3", "last_step"), nil},
		{"last step, one is missing", expects("4", "last_step"), method("last_step needs every expected sample: 3 of 4 are there", "another method, or 4 raw FPMs")},
		{"last step of one", append(expects("1", "last_step"), two, del("/raw_fpms/1")), method("last_step reduces more than one expected sample, not 1", "another method, or expected_internal_samples of at least 2")},
		{"median of two", append(expects("2", "adjacent_upper_median"), two), method("adjacent_upper_median reduces more than two expected samples, not 2", "another method, or expected_internal_samples of at least 3")},
		{"median of three, one is missing", append(expects("3", "adjacent_upper_median"), two), nil},
		{"single step of several", expects("3", "single_step"), nil},                  // sample.reduction
		{"fewer expected than there are", expects("2", "adjacent_upper_median"), nil}, // sample.count
		{"expected a float", expects("1.0", "last_step"), nil},
		{"expected absent", append(expects("1", "last_step"), del("/expected_internal_samples")), nil},
		{"no samples", append(expects("1", "last_step"), set("/raw_fpms", "[]")), nil},
		{"no estimate", edits(del("/estimate")), nil},
	}
}

func strictVectors() []vector {
	return slices.Concat(promptVectors(), requestVectors(), reductionVectors())
}

func TestMeasurementStrict(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, c := range strictVectors() {
		root := jsontest.Parse(t, soundMeasurement(t))
		jsontest.Apply(t, root, c.edits...)
		for range 4 {
			text := jsontest.Indent(root)
			_, _, findings := readEvidence(t, Contract{Declared, Declared}, text, false)
			if diff := gocmp.Diff(sorted(c.want), sorted(facts(t, jsontest.Parse(t, text), prefix+bm, findings))); diff != "" {
				t.Fatalf("%s (-want +got):\n%s", c.name, diff)
			}
			for _, f := range findings {
				if f.File != "r1.json" || f.Rank != 1 || f.BenchmarkID != 7 {
					t.Errorf("%s: %+v", c.name, f)
				}
			}
			jsontest.Shuffle(random, root)
		}
	}
}

// Without an execution contract no sample rule reports a raw wall time or a runtime mode.
func TestMeasurementStrictWithoutContract(t *testing.T) {
	const wall, mode = "/raw_fpms/0/wall_time", "/raw_fpms/1/benchmark_sample/cudagraph/runtime_mode"
	for _, c := range []struct {
		contract Contract
		edits    []jsontest.Edit
		want     int
	}{
		{Contract{Declared, Undeclared}, nil, 0},
		{Contract{Declared, Undeclared}, edits(jsontest.Set(wall, "-1")), 1},
		{Contract{Declared, Undeclared}, edits(jsontest.Set(wall, "null")), 1},
		{Contract{Declared, Unclear}, edits(jsontest.Del(wall)), 1},
		{Contract{Declared, Unclear}, edits(jsontest.Set(mode, `"x"`)), 0},
		{Contract{Undeclared, Undeclared}, edits(jsontest.Set(wall, "0"), jsontest.Del("/prompts")), 0},
		{Contract{Unclear, Unclear}, edits(jsontest.Set(wall, "0"), jsontest.Del("/prompts")), 0},
	} {
		root := jsontest.Parse(t, soundMeasurement(t))
		jsontest.Apply(t, root, c.edits...)
		if _, _, findings := readEvidence(t, c.contract, jsontest.Indent(root), false); len(findings) != c.want {
			t.Errorf("%+v: %+v", c.contract, findings)
		}
	}
}

func TestEvidence(t *testing.T) {
	e, samples, _ := readEvidence(t, Contract{}, soundMeasurement(t), true)
	if !e.Object || e.Prompts.Status.Text != "recorded" || e.Prompts.Requests != 2 || e.Prompts.Tokens != 7 ||
		!e.CompletedBefore.IsInteger(3) || !e.WarmupBefore.IsInteger(2) || !e.Expected.IsInteger(4) || e.Samples != 3 ||
		!e.Forward.IsInteger(10) || e.Method.Text != "adjacent_upper_median" || !slices.Equal(e.Indices, []int64{1, 2}) {
		t.Errorf("%+v", e)
	}
	if len(samples) != 3 {
		t.Fatalf("%d samples", len(samples))
	}
	x := samples[2]
	if x.At != 2 || x.Wall.Value != 0.25 || !x.Index.IsInteger(2) || !x.Forward.IsInteger(12) || x.Basis.Text != "inter_output" ||
		x.Start.Kind != 'n' || x.End.Value != 52.5 || x.Dispatch() != "FULL" || !x.Unpadded.IsInteger(3) || !x.Padded.IsInteger(4) || !x.Paddings.IsInteger(1) {
		t.Errorf("%+v", x)
	}
	for text, want := range map[string]string{
		`{"status": "observed", "runtime_mode": "A.NONE"}`: "NONE", `{"status": "observed", "runtime_mode": null}`: "",
		`{"status": "unavailable", "runtime_mode": "FULL"}`: "", `[]`: "",
	} {
		_, samples, _ := readEvidence(t, Contract{}, `{"raw_fpms": [{"benchmark_sample": {"cudagraph": `+text+`}}]}`, false)
		if got := samples[0].Dispatch(); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestSampleCanEndTheReading(t *testing.T) {
	stop := errors.New("stop")
	text := soundMeasurement(t)
	r := NewEvidenceReader(strings.NewReader(text), Contract{})
	r.Sample = func(*RawSample) error { return stop }
	if _, err := r.Read(jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Trusted, jsonstream.Limits{}), nil); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// value is what a field of the protocol must be, and values that it may and may not have.
type value struct {
	expected string
	right    []string
	wrong    []string
}

func protocolFields() map[string]value {
	const text, count, boolean = "a string", "an integer of at least 0", "true or false"
	return map[string]value{
		"/content_identity":                       {`"coordinate_rank_slot_v1"`, nil, []string{`"coordinate_rank_slot_v2"`, "null", "1"}},
		"/content_seed":                           {text, []string{`""`, `"x"`}, []string{"0", "null"}},
		"/synthetic_content":                      {"random, sharegpt, sharegpt_chain or zeros", []string{`"sharegpt"`, `"sharegpt_chain"`, `"z\u0065ros"`}, []string{`""`, `"Random"`, "null"}},
		"/synthetic_pool_tag":                     {text, []string{`"x"`}, []string{"null", "[]"}},
		"/prompt_hash_encoding":                   {`"uint32_le"`, nil, []string{`"uint32_be"`}},
		"/independent_repetitions":                {"1", nil, []string{"2", "1.0", "true", `"1"`}},
		"/timing_metric":                          {`"scheduler_wall_time"`, nil, []string{`"gpu_time"`}},
		"/input_evidence_scope":                   {`"injected_prompt_token_ids"`, nil, []string{"{}"}},
		"/preparation":                            {"an object", nil, []string{"null", "[]"}},
		"/preparation/warmup_iterations":          {count, []string{"0", "-0", "99999999999999999999"}, []string{"-1", "5.0", "true", "null"}},
		"/preparation/prefill_real_seed":          {boolean, []string{"true"}, []string{"0", "null", `"true"`}},
		"/preparation/decode_real_kv_warmup":      {boolean, []string{"false"}, []string{"1"}},
		"/preparation/giant_kv_threshold":         {count, nil, []string{"1e6", "-5"}},
		"/preparation/giant_kv_repeats":           {count, nil, []string{`"3"`}},
		"/execution_evidence/forward_index_scope": {`"rank_process"`, nil, []string{`"run"`, "null"}},
		"/execution_evidence/timing_clock":        {`"process_local_monotonic"`, nil, []string{`""`}},
		"/execution_evidence/cudagraph_source":    {`"ModelRunnerOutput.cudagraph_stats"`, nil, []string{`"x"`}},
		"/execution_evidence/warmup_scope":        {`"request_completion_and_existing_shape_validation"`, nil, []string{`"x"`, "1"}},
	}
}

const soundProtocol = `{"schema_version": 1, "content_identity": "coordinate_rank_slot_v1", "content_seed": "0", "synthetic_content": "random",
	"synthetic_pool_tag": "", "prompt_hash_encoding": "uint32_le", "independent_repetitions": 1, "timing_metric": "scheduler_wall_time",
	"input_evidence_scope": "injected_prompt_token_ids", "unobserved": ["kv_cache_tensors"],
	"preparation": {"warmup_iterations": 5, "prefill_real_seed": false, "decode_real_kv_warmup": true, "giant_kv_threshold": 1000000, "giant_kv_repeats": 0},
	"execution_evidence": {"schema_version": 1, "sample_field": "benchmark_sample", "warmup_field": "warmup_evidence", "forward_index_scope": "rank_process",
		"timing_clock": "process_local_monotonic", "cudagraph_source": "ModelRunnerOutput.cudagraph_stats", "warmup_scope": "request_completion_and_existing_shape_validation"}}`

func TestCheckValues(t *testing.T) {
	const pointer = "/measurement_protocol"
	set, del := jsontest.Set, jsontest.Del
	check := func(name string, want []said, list ...jsontest.Edit) {
		t.Helper()
		root := jsontest.Parse(t, `{"measurement_protocol": `+soundProtocol+`}`)
		jsontest.Apply(t, root, jsontest.Under(pointer, list...))
		root = jsontest.Parse(t, jsontest.Indent(root))
		out := finding.NewCollector(0)
		CheckValues(root.Get("measurement_protocol"), finding.Scope{Out: out, File: "r1.json", Rank: 1})
		if diff := gocmp.Diff(sorted(want), sorted(facts(t, root, "", out.Findings()))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	says := func(tail, expected, actual string) []said {
		return []said{{finding.ProtocolValue, pointer + tail, tail[strings.LastIndexByte(tail, '/')+1:] + " is not what the known protocol has", expected, actual}}
	}
	check("sound", nil)
	for tail, w := range protocolFields() {
		check("no "+tail, says(tail, w.expected, "absent"), del(tail))
		for _, value := range w.right {
			check(tail+" "+value, nil, set(tail, value))
		}
		for _, value := range w.wrong {
			check(tail+" "+value, says(tail, w.expected, ""), set(tail, value))
		}
	}
	list := func(actual string) []said {
		return []said{{finding.ProtocolValue, pointer + "/unobserved", "unobserved is not a list", "a list of non-empty strings", actual}}
	}
	entry := func(i string) said {
		return said{finding.ProtocolValue, pointer + "/unobserved/" + i, "an entry of unobserved is not a non-empty string", "a non-empty string", ""}
	}
	check("nothing unobserved", nil, set("/unobserved", "[]"))
	check("no unobserved", list("absent"), del("/unobserved"))
	check("unobserved null", list(""), set("/unobserved", "null"))
	check("entries", []said{entry("0"), entry("2")}, set("/unobserved", `["", "x", 1]`))
	check("unknown keys", nil, set("/x", "1"), set("/preparation/x", "null"), set("/execution_evidence/x", "[]"))
	check("no contract", nil, del("/execution_evidence"))
	check("version by value", says("/execution_evidence/schema_version", "1", ""), set("/execution_evidence/schema_version", "1.0"))
	// What the merge reports:
	check("contract of another version", nil, set("/execution_evidence/schema_version", "2"), set("/execution_evidence/sample_field", `"x"`))
	check("contract null", nil, set("/execution_evidence", "null"))
	check("another version", nil, set("/schema_version", "2"), del("/timing_metric"))
	check("no protocol", nil, set("", "7"))
	CheckValues(nil, finding.Scope{})
}

func FuzzReadEvidence(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for _, c := range strictVectors() {
		root := jsontest.Parse(f, soundMeasurement(f))
		jsontest.Apply(f, root, c.edits...)
		jsontest.Shuffle(random, root)
		if text := string(root.AppendCompact(nil)); len(text) < 1<<16 {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := jsonstream.Check(strings.NewReader(text), jsonstream.Limits{}); err != nil {
			return
		}
		_, _, findings := readEvidence(t, Contract{Declared, Declared}, text, true)
		facts(t, jsontest.Parse(t, text), prefix+bm, findings)
	})
}
