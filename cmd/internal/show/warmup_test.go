package show

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/inspect"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

func TestShapeText(t *testing.T) {
	for shape, want := range map[string]string{
		"": "",
		`{"prompt_lengths":[128,128,128,128],"output_tokens":1}`: "prompt_lengths 4x128, output_tokens 1",
		`{"prompt_lengths":[32]}`:                                "prompt_lengths 32",
		`{"prompt_lengths":[1,2,3]}`:                             "prompt_lengths 1…3 (3)",
		`{"prompt_lengths":[],"x":null,"y":{"z":"a"}}`:           `prompt_lengths [], x null, y {"z":"a"}`,
		`{"prompt_lengths":[1,2,…`:                               "prompt_lengths [1,2,…",
		`[1,2]`:                                                  "[1,2]",
	} {
		if got := shapeText(shape); got != want {
			t.Errorf("%s is %q, want %q", shape, got, want)
		}
	}
}

func TestSecondsRange(t *testing.T) {
	for want, times := range map[string][]float64{
		"":             nil,
		"1.46":         {1.4554321},
		"1.02 to 2.70": {2.6964576368587934, 1.0239330085824254, 1.5},
		"1.00":         {1.0001, 1.0002},
		"0.0012":       {0.0012},
		"1e+12":        {1e12},
	} {
		if got := secondsRange(times); got != want {
			t.Errorf("%v is %q, want %q", times, got, want)
		}
	}
}

// What several ranks have in common is shown once.
func TestEqualLedgersAreShownOnce(t *testing.T) {
	ledger := []inspect.WarmupRecord{{Kind: "global", Status: "completed", Start: 0, End: 5, Count: 5}}
	d := &Document{}
	for rank := range 4 {
		f := &inspect.Facts{Rank: rank, WarmupStatus: "recorded", WarmupTotal: 1, Warmup: ledger, Blocks: map[string]*jsonvalue.Value{}}
		v, err := jsonvalue.Parse([]byte(`{"stages": [{"batch": 4, "depth": 9, "build_seconds": `+strings.Repeat("1", rank+1)+`}]}`), 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Blocks["kvwarm"] = v
		d.Facts = append(d.Facts, f)
	}
	d.Facts[2].Warmup = []inspect.WarmupRecord{{Kind: "global", Status: "running", End: -1, Count: -1}}
	var titles []string
	for _, x := range append(d.timelines(), d.stages()...) {
		titles = append(titles, x.title)
		if len(x.table.Rows) != 1 {
			t.Errorf("%s: %q", x.title, x.table.Rows)
		}
	}
	want := []string{"warmup of ranks 0-1,3: recorded, 1 record", "warmup of rank 2: recorded, 1 record", "decode KV warmup of ranks 0-3: 1 stage in kvwarm, not in the ledger"}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	d.Facts[2].Warmup = []inspect.WarmupRecord{{Kind: "global", Status: "completed", Start: 0, End: 5, Count: 5, Shape: `{"a":[1,1]}`}}
	mixed := d.timelines()
	if len(mixed) != 1 || mixed[0].title != "warmup of ranks 0-3: recorded, 1 record" || mixed[0].table.Rows[0][shapeColumn] != "e.g. " {
		t.Errorf("ranks with different shapes: %+v", mixed)
	}
	if row := d.stages()[0].table.Rows[0]; row[2] != "1.00 to 1111.00" {
		t.Errorf("%q", row)
	}
}
