package validate

import (
	"os"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
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
