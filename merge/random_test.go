package merge

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsontest"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// pick returns a random value of a document, each container as likely as what it holds.
func pick(random *rand.Rand, v *jsonvalue.Value) *jsonvalue.Value {
	for n := len(v.Members) + len(v.Elems); n > 0 && random.IntN(6) > 0; n = len(v.Members) + len(v.Elems) {
		if i := random.IntN(n); v.Kind == jsonvalue.Object {
			v = &v.Members[i].Value
		} else {
			v = &v.Elems[i]
		}
	}
	return v
}

// mutate changes one thing in a document.
func mutate(t testing.TB, random *rand.Rand, doc *jsonvalue.Value) {
	v := pick(random, doc)
	n := len(v.Members) + len(v.Elems)
	if n > 0 && random.IntN(2) == 0 {
		i := random.IntN(n)
		switch {
		case v.Kind == jsonvalue.Object:
			v.Members = slices.Delete(v.Members, i, i+1)
		case random.IntN(2) == 0:
			v.Elems = slices.Delete(v.Elems, i, i+1)
		default:
			v.Elems = append(v.Elems, *v.Elems[i].Clone())
		}
		return
	}
	values := []string{"null", "true", "false", "0", "-0", "1", "-1", "2", "1.0", "2.5", "1e400", "1e-400", "9223372036854775808", `""`, `"x"`, `"complete"`, "[]", "{}", "[1]", `{"a": 1}`}
	*v = *jsontest.Parse(t, values[random.IntN(len(values))])
}

// Whatever is changed in the files of a run, every finding stands where its pointer leads
// to, the findings do not depend on how the files are read, and only a sound run is merged,
// into sound JSON.
func TestRandomChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	shapes := []shape{two(), {ranks: 2, points: 2, raw: 1, legacy: true}, {ranks: 1, points: 2, raw: 1, bare: true, reversed: true}}
	merged := 0
	for range 500 {
		r := build(t, shapes[random.IntN(len(shapes))])
		everywhere := random.IntN(2) == 0 // or in one file
		seed, one := random.Uint64(), random.IntN(r.ranks)
		for rank, doc := range r.docs {
			if everywhere || rank == one {
				again := rand.New(rand.NewPCG(seed, 0))
				for range 1 + again.IntN(2) {
					mutate(t, again, doc)
				}
			}
		}
		paths := r.write(t, t.TempDir())
		result := runMerge(t, Options{Inputs: paths})
		sayings(t, result)
		if (result.Output == "") != (result.Errors > 0 || len(result.Failures) > 0) {
			t.Errorf("wrote %q: %v, %v", result.Output, result.Findings, result.Failures)
		}
		if result.Output != "" {
			merged++
			if _, err := jsonstream.Check(strings.NewReader(readFile(t, result.Output)), jsonstream.Limits{}); err != nil {
				t.Errorf("%v in the merged artifact", err)
			}
		}
		if t.Failed() {
			t.Fatalf("rank 0:\n%s", r.text(0))
		}
	}
	if merged < 10 || merged > 490 {
		t.Errorf("%d of 500 runs were merged", merged)
	}
}
