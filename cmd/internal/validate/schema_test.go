package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/schemas"
)

// With --schema a fault that no other rule looks at is found, where it is.
func TestSchema(t *testing.T) {
	dir := t.TempDir()
	run, err := simulate.Run(t.Context(), simulate.Options{Dir: dir, Ranks: 2, Points: 2, Raw: 1, Break: finding.SchemaViolation})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Validate(t.Context(), Options{Paths: []string{dir}, Strict: true}); err != nil || got.Errors > 0 {
		t.Errorf("without the schema: %+v, %v", got.Findings, err)
	}
	got, err := Validate(t.Context(), Options{Paths: []string{dir}, Schema: true})
	if err != nil || len(got.Findings) != 1 || len(got.Failures) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	f := got.Findings[0]
	if f.Rule != finding.SchemaViolation || f.File != run.Files[1] || f.Pointer != "/synchronization/enabled" || f.Rank != 1 || f.Line < 1 || f.Actual != `"yes"` {
		t.Errorf("%+v", f)
	}
}

// Text that ends too early is no fault of the schema's.
func TestSchemaOfUnsoundText(t *testing.T) {
	dir := t.TempDir()
	run, err := simulate.Run(t.Context(), simulate.Options{Dir: dir, Ranks: 1, Points: 1, Raw: 1})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(run.Files[0])
	if err != nil {
		t.Fatal(err)
	}
	cut := strings.TrimRight(string(text), "}\n ")
	if err := os.WriteFile(run.Files[0], []byte(cut), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Validate(t.Context(), Options{Paths: run.Files, Schema: true})
	if err != nil || len(got.Failures) > 0 || got.Errors != 1 || got.Findings[0].Rule != finding.JSONSyntax {
		t.Errorf("%+v, %v", got, err)
	}
}

// Of a list with millions of faults only the first are named, and that is said first.
func TestManyViolations(t *testing.T) {
	schema, err := schemas.CompileStream("rank-artifact")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		entries, want int
		first         string
	}{
		{5, 5 + 1, "missing properties"}, // the document itself
		{500_000, maxViolations + 1, "more than 10000 places"},
	} {
		path := filepath.Join(t.TempDir(), "run.json")
		text := `{"artifact_type": "rank", "iteration_groups": [` + strings.Repeat("0,", test.entries-1) + "0]}"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		v := validation{ctx: t.Context(), out: finding.NewCollector(3), rejected: map[string]bool{}}
		if err := v.checkSchema(candidate{path: path}, "rank-artifact", schema); err != nil {
			t.Fatal(err)
		}
		f := v.out.Findings()[0]
		if got := v.out.Errors(); got != test.want || f.Offset != 0 || !strings.Contains(f.Message, test.first) {
			t.Errorf("%d entries: %d violations, want %d, the first %+v", test.entries, got, test.want, f)
		}
	}
}
