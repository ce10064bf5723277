package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/schemas"
)

// The page of the formats names every schema, and what this program prints is one of the
// documents.
func TestSchemasOfTheProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range schemas.Names() {
		if !strings.Contains(string(page), "| [`"+name+"`](../schemas/"+name+".schema.json) | ") {
			t.Errorf("docs/formats.md does not name the schema %s", name)
		}
	}
	const demo, traces = " ../../testdata/demo", " ../../testdata/vectors/sound/recording-2"
	for _, args := range []string{
		"schema", "rules", "version", "merge /nowhere", "merge ../../testdata/broken", "merge --check" + demo, "no-such-command", "--no-such-flag", "simulate run",
		"validate --strict --schema" + demo, "validate ../../testdata/broken", "validate" + traces, "show" + demo, "show --points --warmup --engine --samples 1" + demo,
		"show" + traces, "trace verify" + traces, "trace stats" + traces, "trace capacity", "trace topologies",
	} {
		var stdout, stderr bytes.Buffer
		run(t.Context(), append(strings.Fields(args), "--format", "json"), strings.NewReader(""), &stdout, &stderr, noEnv)
		got, err := schemas.Validate("report", stdout.Bytes())
		if err != nil || len(got) > 0 {
			t.Errorf("fpm %s prints no report: %+v, %v\n%s", args, got, err, stdout.String())
		}
	}
}
