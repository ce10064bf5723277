package merge

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// FuzzCheckMerged changes bytes of a tiny merged artifact. Whatever stands in its place, it
// is judged without a crash. Text that is no JSON is reported as that alone, and a
// comparison with the rank files finds nothing exactly when the values are equal.
func FuzzCheckMerged(f *testing.F) {
	m := mergeRun(f, build(f, shape{ranks: 2, points: 1, raw: 1}))
	sound := jsontest.Parse(f, readFile(f, m.path))
	texts := []string{
		string(sound.AppendCompact(nil)),
		jsontest.Indent(mergeRun(f, build(f, shape{ranks: 2, points: 1, raw: 1, legacy: true})).doc),
		jsontest.Indent(mergeRun(f, build(f, shape{ranks: 2, points: 2, raw: 1}), 1).doc),
		"",
	}
	for which, text := range texts {
		f.Add(uint8(which), uint16(0), uint8(0), "")
		for _, place := range []string{`"dp"`, `"ranks"`, `"global_size"`, `"results"`, `"fpms"`, `"dp_rank"`, `"benchmark_id"`, `"iteration_groups"`, `"rank_warmup_evidence"`, `"engine"`, `"rank_files"`, `"timing"`, `"coverage"`} {
			if at := strings.Index(text, place); at >= 0 {
				f.Add(uint8(which), uint16(at+1), uint8(1), "x")
				f.Add(uint8(which), uint16(at+len(place)+1), uint8(0), "0,\"x\":")
			}
		}
	}
	f.Add(uint8(3), uint16(0), uint8(0), `{"artifact_type": "merged"}`)
	f.Add(uint8(3), uint16(0), uint8(0), `{"artifact_type": "merged", "dp": {"global_size": 65536, "source_ranks": [0, 65535]}, "iteration_groups": [{}, 1],
		"results": [{"fpms": 1, "kv_seed_regime": 0}, {"point": {"benchmark_id": 1, "dp_rank": 0}}], "measurement_protocol": {"schema_version": 1}}`)
	f.Fuzz(func(t *testing.T, which uint8, at uint16, cut uint8, insert string) {
		base := texts[int(which)%len(texts)]
		from := min(int(at), len(base))
		text := []byte(base[:from] + insert + base[min(from+int(cut), len(base)):])
		path := filepath.Join(t.TempDir(), "run_merged.json")
		writeFile(t, path, string(text))
		_, textErr := jsonstream.Check(bytes.NewReader(text), jsonstream.Limits{})
		result := validated(t, path, MergedOptions{RankFiles: m.files, MaxFindings: 50})
		if len(result.Failures) > 0 {
			t.Fatal(result.Failures)
		}
		if textErr != nil {
			if len(result.Findings) != 1 || result.Sound {
				t.Fatalf("%v: %+v", textErr, result)
			}
			return
		}
		v, err := jsonvalue.Parse(bytes.TrimSpace(text), 0)
		if err != nil {
			t.Fatal(err)
		}
		differs := false
		for _, x := range result.Findings {
			differs = differs || x.Rule == finding.MergedDiffers && !isPath(strings.Split(x.Pointer+"/", "/")[1])
		}
		if result.Compared && result.Errors <= 50 && differs == equalApartFromPaths(sound, v) {
			t.Fatalf("differs %t: %+v", differs, result.Findings)
		}
	})
}

// equalApartFromPaths compares two documents without what tells where files are.
func equalApartFromPaths(a, b *jsonvalue.Value) bool {
	return jsonvalue.Equal(withoutPaths(a), withoutPaths(b))
}

func withoutPaths(v *jsonvalue.Value) *jsonvalue.Value {
	left := *v
	left.Members = nil
	for _, m := range v.Members {
		if !isPath(m.Name) {
			left.Members = append(left.Members, m)
		}
	}
	return &left
}

// isPath tells whether a top-level key of a merged artifact holds paths.
func isPath(name string) bool {
	return name == "merged_output_path" || name == "worker_probe_path" || name == "rank_files"
}
