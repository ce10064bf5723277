package show

import (
	"context"
	"testing"

	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/testdata/vectors"
)

// Documents that break a rule are shown like any other; only what is no text of a document
// that is known, or no JSON, is refused.
func TestVectors(t *testing.T) {
	shown := 0
	for _, v := range vectors.Index() {
		if v.Level == string(finding.Trace) {
			continue // segments are read from files: see TestDirectoriesOfVectors
		}
		for name, set := range map[string][]vectors.File{"pass": v.Pass, "fail": v.Fail} {
			for _, f := range set {
				text, err := f.Read()
				if err != nil {
					t.Fatal(err)
				}
				r, err := read(text, 1)
				refused := err != nil || r.Errors > 0
				if refused && !refusable(v.Rule) {
					t.Errorf("%s, %s, %s is refused: %v %+v", v.Rule, name, f.Name, err, r.Findings)
				}
				for _, d := range r.Documents {
					shown++
					if err := check(d, 72, 0); err != nil {
						t.Errorf("%s, %s, %s: %v", v.Rule, name, f.Name, err)
					}
				}
			}
		}
	}
	if shown < 100 {
		t.Errorf("only %d documents were shown", shown)
	}
}

// refusable tells whether a document that breaks a rule may be one that cannot be shown.
func refusable(rule string) bool {
	switch finding.ID(rule) {
	case finding.JSONSyntax, finding.JSONNumber, finding.JSONDuplicateKey, finding.JSONDepth, finding.InputLimit, finding.InputKind:
		return true
	}
	return false
}

// The sets of a rule are shown from their directories, too, whatever is in them.
func TestDirectoriesOfVectors(t *testing.T) {
	for _, v := range vectors.Index() {
		dir := t.TempDir()
		if err := vectors.Copy(dir, v.Fail); err != nil {
			t.Fatal(err)
		}
		r, err := Read(context.Background(), Options{Paths: []string{dir + "/*"}})
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[detect.Kind]int{}
		for _, d := range r.Documents {
			if kinds[d.Kind]++; d.Kind == detect.Rank && kinds[d.Kind] > 1 {
				t.Errorf("%s: rank artifacts in more than one document", v.Rule)
			}
			if (d.Kind == detect.Trace) != (v.Level == string(finding.Trace)) {
				t.Errorf("%s is shown as a %s", v.Rule, d.Kind)
			}
			if err := check(d, 100, -1); err != nil {
				t.Errorf("%s: %v", v.Rule, err)
			}
		}
		if len(r.Documents)+r.Errors+len(r.Failures) == 0 {
			t.Errorf("%s: nothing is said", v.Rule)
		}
	}
}
