package merge

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// FuzzMerge changes bytes of one file of a tiny run. Either something is found or could
// not be done, and nothing is written; or what is written is sound JSON, and the same as
// before when the change says nothing.
func FuzzMerge(f *testing.F) {
	r := build(f, shape{ranks: 2, points: 1, raw: 1})
	texts := []string{r.text(0), r.text(1)}
	want := jsontest.Parse(f, r.merged(f))
	places := []string{`"status"`, `"run_id"`, `"rank": `, `"size"`, `"coverage"`, `"engine"`, `"measurement_protocol"`, `"records"`, `"results"`, `"kv_seed_regime"`,
		`"iteration_groups"`, `"expected_dp_ranks"`, `"rank_results"`, `"point_key"`, `"raw_fpms"`, `"wall_time"`, `"forward_index"`, `"raw_sample_indices"`, `"missing_phases"`}
	for i, place := range places {
		at := strings.Index(texts[i%2], place)
		if at < 0 {
			f.Fatalf("no %s", place)
		}
		for _, insert := range []string{"", " ", "0", ",", "\\", "\xff", "NaN", "[[", `"x": 1, `, place + ": null, "} {
			f.Add(byte(i), uint16(at), byte(0), []byte(insert))
		}
		f.Add(byte(i), uint16(at+len(place)+2), byte(1), []byte("1"))
		f.Add(byte(i), uint16(at+len(place)+2), byte(4), []byte(""))
	}
	f.Fuzz(func(t *testing.T, rank byte, at uint16, remove byte, insert []byte) {
		rank %= 2
		text := texts[rank]
		from := int(at) % (len(text) + 1)
		to := min(from+int(remove), len(text))
		changed := text[:from] + string(insert) + text[to:]
		dir := t.TempDir()
		writeFile(t, filepath.Join(dir, "run.json"), texts[0])
		writeFile(t, filepath.Join(dir, "run_dp1.json"), texts[1])
		writeFile(t, filepath.Join(dir, []string{"run.json", "run_dp1.json"}[rank]), changed)
		result := runMerge(t, Options{Inputs: []string{filepath.Join(dir, "run.json")}})
		neutral := saysTheSame(t, text, changed)
		if result.Output == "" {
			if result.Errors == 0 && len(result.Failures) == 0 {
				t.Error("nothing was written, and nothing said about it")
			}
			if neutral {
				t.Errorf("rejected, though the change says nothing: %v, %v", result.Findings, result.Failures)
			}
			return
		}
		merged := strings.ReplaceAll(readFile(t, result.Output), dir, "@DIR@")
		if _, err := jsonstream.Check(strings.NewReader(merged), jsonstream.Limits{}); err != nil {
			t.Fatalf("%v in the merged artifact:\n%s", err, merged)
		}
		if got := jsontest.Parse(t, merged); neutral && !jsonvalue.Equal(want, got) {
			t.Errorf("another merged artifact, though the change says nothing:\n%s", merged)
		}
	})
}

// saysTheSame tells whether two documents are equal and spell their numbers alike: an
// integer with a fraction is equal, but not always as good.
func saysTheSame(t *testing.T, a, b string) bool {
	t.Helper()
	if _, err := jsonstream.Check(strings.NewReader(b), jsonstream.Limits{}); err != nil {
		return false
	}
	va, vb := jsontest.Parse(t, a), jsontest.Parse(t, b)
	return jsonvalue.Equal(va, vb) && maps.Equal(numbers(va), numbers(vb))
}

// numbers counts the number literals of a value.
func numbers(v *jsonvalue.Value) map[string]int {
	counts := map[string]int{}
	var walk func(v *jsonvalue.Value)
	walk = func(v *jsonvalue.Value) {
		if v.Kind == jsonvalue.Number {
			counts[string(v.Raw)]++
		}
		for i := range v.Elems {
			walk(&v.Elems[i])
		}
		for i := range v.Members {
			walk(&v.Members[i].Value)
		}
	}
	walk(v)
	return counts
}
