package finding

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// declared returns the ids of the constants in rules.go, in their order there.
func declared(t *testing.T) (ids []ID) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "ID" {
			id, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, ID(id))
		}
		return false
	})
	return ids
}

func TestTableHasEveryDeclaredRuleInOrder(t *testing.T) {
	var got []ID
	for _, r := range Rules() {
		got = append(got, r.ID)
	}
	want := declared(t)
	if len(want) < 50 {
		t.Fatalf("only %d ids found in rules.go", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ids (-rules.go +table):\n%s", diff)
	}
}

func TestEveryRuleIsDescribed(t *testing.T) {
	warnings := map[ID]bool{
		RankPartialRun: true, EngineUnverified: true,
		ProbeFailed: true, ProbeSkipped: true, ProbeMalformedReply: true,
		TraceRestart: true, TraceSampled: true, TraceWallTime: true, TraceMixed: true,
	}
	purposes := map[string]ID{}
	for _, r := range Rules() {
		if (r.Severity == Warning) != warnings[r.ID] || (r.Severity != Error && r.Severity != Warning) {
			t.Errorf("%s: severity %q", r.ID, r.Severity)
		}
		if r.Level != Merge && r.Level != Strict && r.Level != Trace && r.Level != Probe {
			t.Errorf("%s: level %q", r.ID, r.Level)
		}
		if !strings.HasSuffix(r.Purpose, ".") || strings.Count(r.Purpose, ". ") > 0 {
			t.Errorf("%s: the purpose is not one sentence: %q", r.ID, r.Purpose)
		}
		if other, ok := purposes[r.Purpose]; ok {
			t.Errorf("%s has the purpose of %s", r.ID, other)
		}
		purposes[r.Purpose] = r.ID
		if r.Hint == "" || strings.HasSuffix(r.Hint, ".") || unicode.IsUpper([]rune(r.Hint)[0]) {
			t.Errorf("%s: a hint is a phrase: %q", r.ID, r.Hint)
		}
		if len([]rune(r.Hint)) > 200 {
			t.Errorf("%s: the hint would be cut in text: %d characters", r.ID, len([]rune(r.Hint)))
		}
		if r.Example == "" {
			t.Errorf("%s: no example", r.ID)
		}
	}
}

func TestLookup(t *testing.T) {
	for _, want := range Rules() {
		if got, ok := Lookup(want.ID); !ok || got != want {
			t.Errorf("Lookup(%s) = %+v, %t", want.ID, got, ok)
		}
	}
	if r, ok := Lookup("no.such"); ok || r != (Rule{}) {
		t.Errorf("Lookup of an unknown id = %+v, %t", r, ok)
	}
}

func TestRulesIsACopy(t *testing.T) {
	Rules()[0].ID = "changed"
	if Rules()[0].ID == "changed" {
		t.Error("a caller can change the table")
	}
}
