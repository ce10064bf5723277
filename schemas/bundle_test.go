package schemas

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// A bundle needs nothing beside it and judges like the schema.
func TestBundle(t *testing.T) {
	for _, name := range Names() {
		text, ok := Bundle(name)
		if !ok {
			t.Fatalf("%s has no bundle", name)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("urn:bundle", bytes.NewReader(text)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := c.Compile("urn:bundle")
		if err != nil {
			t.Fatalf("%s: %#v", name, err)
		}
		for _, document := range []string{row, reply, minimal} {
			doc, err := decode([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			violations, err := Validate(name, []byte(document))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.Validate(doc) == nil, len(violations) == 0; got != want {
				t.Errorf("%s: the bundle says %v of %.30s, the schema %v", name, got, document, want)
			}
		}
	}
	if text, ok := Bundle("none"); ok || text != nil {
		t.Error("an unknown schema has a bundle")
	}
}

func TestReferredTo(t *testing.T) {
	got := map[string]string{}
	for _, name := range Names() {
		info, _ := About(name)
		got[name] = strings.Join(referredTo(info.ID), " ")
	}
	want := map[string]string{
		"merged-artifact":      "urn:fpm:schema:rank-artifact:2",
		"rank-artifact":        "",
		"report":               "",
		"trace-manifest":       "",
		"trace-row":            "urn:fpm:schema:rank-artifact:2",
		"worker-probe":         "urn:fpm:schema:worker-probe-replies:1",
		"worker-probe-replies": "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
