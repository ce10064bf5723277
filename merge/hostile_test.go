package merge

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
)

// allocated is how many bytes a check of a rank file allocates.
func allocated(t *testing.T, text []byte) uint64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "benchmark_results.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out := finding.NewCollector(100)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Run(context.Background(), Options{Inputs: []string{path}, Explicit: true, Subset: true, CheckOnly: true, MaxFindings: 100, Into: out}); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if out.Errors() == 0 {
		t.Errorf("%.40s… is accepted", text)
	}
	return after.TotalAlloc - before.TotalAlloc
}

// An element that says nothing takes no more memory than its text, of whatever list it is:
// there can be millions of them in a file.
func TestEmptyElementsTakeNoMemory(t *testing.T) {
	dir := t.TempDir()
	run, err := simulate.Run(context.Background(), simulate.Options{Dir: dir, Ranks: 1, Points: 1, Raw: 2})
	if err != nil {
		t.Fatal(err)
	}
	sound, err := os.ReadFile(run.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{`"iteration_groups": [`, `"rank_results": [`, `"results": [`, `"records": [`} {
		before, behind, found := bytes.Cut(sound, []byte(list))
		if !found {
			t.Fatalf("there is no %s", list)
		}
		for _, element := range []string{"0,", "{},"} {
			with := func(n int) []byte {
				return bytes.Join([][]byte{before, []byte(list), []byte(strings.Repeat(element, n)), behind}, nil)
			}
			// Findings are told apart up to some number, which is not what is asked for here.
			const few, many = 270_000, 470_000
			small, large := allocated(t, with(few)), allocated(t, with(many))
			if each := (float64(large) - float64(small)) / (many - few); each > float64(len(element)) {
				t.Errorf("%s%s…]: each element takes %.1f bytes", list, element, each)
			}
		}
	}
}
