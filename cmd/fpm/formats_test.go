package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/schemas"
)

// TestMembersAreDescribed: docs/formats.md names every member of the reports of validate
// and show, and the schema of reports describes them and takes the reports.
func TestMembersAreDescribed(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	text, ok := schemas.Get("report")
	if !ok {
		t.Fatal("there is no schema of reports")
	}
	described := map[string]bool{}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	properties(schema, described)
	dir := t.TempDir()
	if status, stdout, stderr := fpm(t, "simulate", "run", "-o", dir, "--break", "probe.incomplete"); status != 0 {
		t.Fatal(stdout, stderr)
	}
	seen := map[string]bool{}
	for _, args := range [][]string{
		{"validate", "--strict", dir}, {"show", dir}, {"show", dir, "--points", "--warmup", "--engine", "--samples", "1"},
		{"show", dir + "/benchmark_results_merged.json"}, {"show", dir + "/benchmark_results_merged_worker_probe.json"},
		{"simulate", "run", "-o", dir, "--break", "strict.wall"}, {"validate", "--strict", dir},
	} {
		_, stdout, stderr := fpm(t, append(args, "--format", "json")...)
		var report map[string]any
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("%v: %v, %s%s", args, err, stdout, stderr)
		}
		if broken, err := schemas.Validate("report", []byte(stdout)); err != nil || len(broken) > 0 {
			t.Errorf("%v: %v, %v", args, broken, err)
		}
		for key, value := range report {
			seen[key] = true
			list, _ := value.([]any)
			for _, v := range list {
				entry, _ := v.(map[string]any)
				maps.Insert(seen, trues(entry))
			}
		}
	}
	if len(seen) < 40 {
		t.Errorf("only %d members seen", len(seen))
	}
	ofSimulate := []string{"bytes", "check"}
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		if !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("docs/formats.md does not name %s", key)
		}
		if !described[key] && !slices.Contains(ofSimulate, key) {
			t.Errorf("the schema of reports does not describe %s", key)
		}
	}
}

func trues(m map[string]any) func(func(string, bool) bool) {
	return func(yield func(string, bool) bool) {
		for key := range m {
			if !yield(key, true) {
				return
			}
		}
	}
}

// properties gathers the names of all properties in a schema.
func properties(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		if named, ok := v["properties"].(map[string]any); ok {
			maps.Insert(into, trues(named))
		}
		for _, sub := range v {
			properties(sub, into)
		}
	case []any:
		for _, sub := range v {
			properties(sub, into)
		}
	}
}
