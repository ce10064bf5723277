package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

const rankArtifact = "rank-artifact"

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func load(t *testing.T, file string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, text).(map[string]any)
}

func schema(t *testing.T, name string) map[string]any {
	t.Helper()
	text, ok := Get(name)
	if !ok {
		t.Fatalf("no schema %q", name)
	}
	return decode(t, text).(map[string]any)
}

func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	text, _ := Get(name)
	id := schema(t, name)["$id"].(string)
	c := jsonschema.NewCompiler()
	if err := c.AddResource(id, bytes.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile(id)
	if err != nil {
		t.Fatalf("%#v", err)
	}
	return compiled
}

// faults returns the places of a document that break the schema, sorted: the validator's
// own order varies.
func faults(t *testing.T, s *jsonschema.Schema, doc any) []string {
	t.Helper()
	err := s.Validate(doc)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	var list []string
	for _, e := range leaves(invalid) {
		list = append(list, e.InstanceLocation+" "+e.KeywordLocation[strings.LastIndex(e.KeywordLocation, "/")+1:])
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func leaves(e *jsonschema.ValidationError) (list []*jsonschema.ValidationError) {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	for _, cause := range e.Causes {
		list = append(list, leaves(cause)...)
	}
	return list
}

func TestNamesAndGet(t *testing.T) {
	names := Names()
	if !slices.Contains(names, rankArtifact) || !slices.IsSorted(names) {
		t.Errorf("names: %q", names)
	}
	for _, name := range []string{"", "none", "rank-artifact.schema.json", "../schemas/rank-artifact", "testdata/rank-artifact"} {
		if text, ok := Get(name); ok || text != nil {
			t.Errorf("Get(%q) gives %d bytes, %v", name, len(text), ok)
		}
	}
	first, _ := Get(rankArtifact)
	first[0] = 'x'
	if second, _ := Get(rankArtifact); second[0] != '{' {
		t.Error("callers share the text")
	}
}

func TestHeads(t *testing.T) {
	for _, name := range Names() {
		compile(t, name)
		s := schema(t, name)
		if got := s["$schema"]; got != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: $schema %v", name, got)
		}
		id := regexp.MustCompile(`^urn:fpm:schema:` + regexp.QuoteMeta(name) + `:[1-9][0-9]*$`)
		if !id.MatchString(s["$id"].(string)) {
			t.Errorf("%s: $id %v", name, s["$id"])
		}
	}
}

// each calls f for every schema inside a schema, with its place.
func each(place string, s any, f func(place string, s map[string]any)) {
	switch s := s.(type) {
	case map[string]any:
		f(place, s)
		for key, sub := range s {
			if key == "properties" || key == "$defs" {
				for name, named := range sub.(map[string]any) {
					each(place+"/"+key+"/"+name, named, f)
				}
			} else if slices.Contains([]string{"items", "if", "then", "else"}, key) {
				each(place+"/"+key, sub, f)
			}
		}
	}
}

var conditional = regexp.MustCompile(`/(if|then|else)(/|$)`)

func TestEverythingIsDescribed(t *testing.T) {
	units := []struct {
		field *regexp.Regexp
		unit  string
	}{
		{regexp.MustCompile(`(_seconds|_monotonic|/wall_time|/timeout)$`), "(seconds)"},
		{regexp.MustCompile(`(tokens|max_model_len|capture_sizes?|giant_kv_threshold|/block_size)$`), "(tokens"},
		{regexp.MustCompile(`_blocks`), "(blocks)"},
	}
	for _, name := range Names() {
		seen := 0
		each("", schema(t, name), func(place string, s map[string]any) {
			isProperty := regexp.MustCompile(`/properties/[^/]+$`).MatchString(place)
			isDefinition := regexp.MustCompile(`^(|/\$defs/[^/]+)$`).MatchString(place)
			if conditional.MatchString(place) || !isProperty && !isDefinition {
				return
			}
			seen++
			text, _ := s["description"].(string)
			if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, ")") {
				t.Errorf("%s%s: description %q", name, place, text)
			}
			if title, _ := s["title"].(string); isDefinition && title == "" {
				t.Errorf("%s%s has no title", name, place)
			}
			for _, u := range units {
				if u.field.MatchString(place) && !strings.Contains(text, u.unit) {
					t.Errorf("%s%s: description %q does not say %s", name, place, text, u.unit)
				}
			}
		})
		if seen < 10 {
			t.Errorf("%s: only %d fields seen", name, seen)
		}
	}
}

// A closed object would reject the files of a newer producer; a definition that nothing
// refers to would describe nothing.
func TestOpenAndUsed(t *testing.T) {
	for _, name := range Names() {
		used := map[string]bool{}
		s := schema(t, name)
		each("", s, func(place string, s map[string]any) {
			for _, key := range []string{"additionalProperties", "unevaluatedProperties", "propertyNames", "maxProperties"} {
				if _, ok := s[key]; ok {
					t.Errorf("%s%s has %s", name, place, key)
				}
			}
			if ref, ok := s["$ref"].(string); ok {
				used[strings.TrimPrefix(ref, "#/$defs/")] = true
			}
		})
		defs, _ := s["$defs"].(map[string]any)
		if diff := cmp.Diff(slices.Sorted(maps.Keys(defs)), slices.Sorted(maps.Keys(used))); diff != "" {
			t.Errorf("%s: definitions (-defined +used):\n%s", name, diff)
		}
	}
}

const minimal = `{
	"run_id": "r", "grid_digest": "g",
	"timing": {"started_at": "a", "completed_at": "b", "benchmark_elapsed_seconds": 2, "measured_iteration_seconds": 0.5},
	"dp": {"rank": 0, "size": 1},
	"coverage": {"expected_points": 1, "completed_points": 1, "skipped_points": 0},
	"valid": true,
	"results": [{"point": {"benchmark_id": 1}, "fpms": [{"dp_rank": 0, "counter_id": 1, "wall_time": 0.5}]}],
	"iteration_groups": [{
		"benchmark_id": 1, "point": {"benchmark_id": 1}, "expected_dp_ranks": [0], "complete": true, "wall_time": 0.5,
		"rank_results": [{"dp_rank": 0, "fpms": [{"dp_rank": 0, "counter_id": 1, "wall_time": 0.5}]}]
	}]
}`

func documents(t *testing.T) map[string]any {
	return map[string]any{
		"new":     load(t, "rank-artifact.json"),
		"legacy":  load(t, "rank-artifact-legacy.json"),
		"minimal": decode(t, []byte(minimal)),
	}
}

func TestAccepts(t *testing.T) {
	s := compile(t, rankArtifact)
	for name, doc := range documents(t) {
		if got := faults(t, s, doc); got != nil {
			t.Errorf("%s: %q", name, got)
		}
		addUnknownKeys(doc)
		if got := faults(t, s, doc); got != nil {
			t.Errorf("%s with unknown keys: %q", name, got)
		}
	}
}

func addUnknownKeys(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, sub := range v {
			addUnknownKeys(sub)
		}
		v["of a newer producer"] = map[string]any{"x": nil}
	case []any:
		for _, sub := range v {
			addUnknownKeys(sub)
		}
	}
}

// Every key of a real document must be described.
func TestDescribesRealDocuments(t *testing.T) {
	s := schema(t, rankArtifact)
	for name, doc := range documents(t) {
		if got := undescribed(s, s, doc, ""); got != nil {
			t.Errorf("%s: not described: %q", name, got)
		}
	}
}

func undescribed(root, s map[string]any, v any, place string) (list []string) {
	if ref, ok := s["$ref"].(string); ok {
		s = root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	switch v := v.(type) {
	case map[string]any:
		properties, ok := s["properties"].(map[string]any)
		if !ok {
			return nil // free form
		}
		for key, sub := range v {
			described, ok := properties[key].(map[string]any)
			if !ok {
				list = append(list, place+"/"+key)
				continue
			}
			list = append(list, undescribed(root, described, sub, place+"/"+key)...)
		}
	case []any:
		items, ok := s["items"].(map[string]any)
		if !ok && len(v) > 0 {
			return []string{place + "/*"}
		}
		for _, sub := range v {
			list = append(list, undescribed(root, items, sub, place+"/*")...)
		}
	}
	return list
}

// edit sets the value at a pointer, or deletes the key when value is nil.
type edit struct {
	pointer string
	value   string // JSON text; "" deletes
}

func (e edit) apply(t *testing.T, doc any) {
	t.Helper()
	tokens := strings.Split(e.pointer, "/")[1:]
	for _, token := range tokens[:len(tokens)-1] {
		doc = child(t, doc, token)
	}
	last := tokens[len(tokens)-1]
	switch parent := doc.(type) {
	case map[string]any:
		if e.value == "" {
			if _, ok := parent[last]; !ok {
				t.Fatalf("%s: nothing to delete", e.pointer)
			}
			delete(parent, last)
			return
		}
		parent[last] = decode(t, []byte(e.value))
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil {
			t.Fatal(err)
		}
		parent[i] = decode(t, []byte(e.value))
	}
}

func child(t *testing.T, doc any, token string) any {
	t.Helper()
	switch doc := doc.(type) {
	case map[string]any:
		if sub, ok := doc[token]; ok {
			return sub
		}
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i < len(doc) {
			return doc[i]
		}
	}
	t.Fatalf("no %q in the document", token)
	return nil
}

const (
	fpm0    = "/iteration_groups/0/rank_results/0/fpms/0"
	sample0 = fpm0 + "/benchmark_measurement/raw_fpms/0/benchmark_sample"
)

func TestAcceptsVariants(t *testing.T) {
	s := compile(t, rankArtifact)
	unavailable := `{"status": "unavailable", "runtime_mode": null, "num_paddings": null}`
	for _, e := range []edit{
		{"/status", `"partial"`},
		{"/status", `"failed"`},
		{"/status", ""},
		{"/stop_reason", `"timeout"`},
		{"/error", `"out of memory"`},
		{"/timing/started_at", "null"},
		{"/skipped_points", `[{"point": {"benchmark_id": 3}, "reason": "measured_batch_size_mismatch"}]`},
		{"/missing_phases", `["decode"]`},
		{"/iteration_groups", "[]"},
		{"/engine", ""},
		{"/engine/speculative", `{"method": "mtp", "model": null, "num_speculative_tokens": 1}`},
		{"/engine/capture_error", `"hf_config missing"`},
		{"/engine/capture_error", "null"},
		{"/engine/versions/dynamo", "null"},
		{"/measurement_protocol/content_identity", `"of_the_future_v2"`},
		{"/measurement_protocol/execution_evidence", ""},
		{"/warmup_evidence", `{"status": "unavailable", "records": []}`},
		{"/warmup_evidence/records/0/forward_index_end", "null"},
		{sample0 + "/cudagraph", unavailable},
		{sample0 + "/cudagraph/runtime_mode", `"CUDAGraphMode.FULL"`},
		{sample0 + "/timing/start_monotonic", "null"},
		{fpm0 + "/wall_time", ""},
		{"/iteration_groups/0/point/rows", "[[16, 0], [15, 64]]"},
		{"/iteration_groups/0/point/sample_reasons", `["a_new_reason"]`},
	} {
		doc := load(t, "rank-artifact.json")
		e.apply(t, doc)
		if got := faults(t, s, doc); got != nil {
			t.Errorf("%s = %s: %q", e.pointer, e.value, got)
		}
	}
}

func TestRejects(t *testing.T) {
	s := compile(t, rankArtifact)
	for _, c := range []struct {
		edit
		want string // place and keyword
	}{
		{edit{"/schema_version", "1"}, "/schema_version const"},
		{edit{"/schema_version", `"2"`}, "/schema_version const"},
		{edit{"/artifact_type", `"merged"`}, "/artifact_type const"},
		{edit{"/status", `"done"`}, "/status enum"},
		{edit{"/status", "null"}, "/status type"},
		{edit{"/valid", "1"}, "/valid type"},
		{edit{"/run_id", ""}, " required"},
		{edit{"/run_id", `""`}, "/run_id minLength"},
		{edit{"/grid_digest", "7"}, "/grid_digest type"},
		{edit{"/dp", ""}, " required"},
		{edit{"/dp/rank", "-1"}, "/dp/rank minimum"},
		{edit{"/dp/rank", "true"}, "/dp/rank type"},
		{edit{"/dp/rank", "0.5"}, "/dp/rank type"},
		{edit{"/dp/size", "0"}, "/dp/size minimum"},
		{edit{"/dp/size", "65537"}, "/dp/size maximum"},
		{edit{"/coverage/completed_points", ""}, "/coverage required"},
		{edit{"/coverage/skipped_points", "-1"}, "/coverage/skipped_points minimum"},
		{edit{"/timing", "null"}, "/timing type"},
		{edit{"/timing/started_at", "5"}, "/timing/started_at type"},
		{edit{"/timing/benchmark_elapsed_seconds", "-0.5"}, "/timing/benchmark_elapsed_seconds minimum"},
		{edit{"/timing/measured_iteration_seconds", `"1"`}, "/timing/measured_iteration_seconds type"},
		{edit{"/results", ""}, " required"},
		{edit{"/results", "{}"}, "/results type"},
		{edit{"/results/0/fpms", "[]"}, "/results/0/fpms minItems"},
		{edit{"/results/0/point/benchmark_id", "0"}, "/results/0/point/benchmark_id minimum"},
		{edit{"/iteration_groups", "null"}, "/iteration_groups type"},
		{edit{"/iteration_groups/0", "7"}, "/iteration_groups/0 type"},
		{edit{"/iteration_groups/0/complete", "false"}, "/iteration_groups/0/complete const"},
		{edit{"/iteration_groups/0/wall_time", `"fast"`}, "/iteration_groups/0/wall_time type"},
		{edit{"/iteration_groups/0/expected_dp_ranks", "[]"}, "/iteration_groups/0/expected_dp_ranks minItems"},
		{edit{fpm0 + "/counter_id", ""}, fpm0 + " required"},
		{edit{fpm0 + "/scheduled_requests/num_decode_requests", "null"}, fpm0 + "/scheduled_requests/num_decode_requests type"},
		{edit{fpm0 + "/benchmark_measurement/point_key", `"ABC"`}, fpm0 + "/benchmark_measurement/point_key pattern"},
		{edit{fpm0 + "/benchmark_measurement/schema_version", "2"}, fpm0 + "/benchmark_measurement/schema_version const"},
		{edit{fpm0 + "/benchmark_measurement/preparation", ""}, fpm0 + "/benchmark_measurement required"},
		{edit{fpm0 + "/benchmark_measurement/estimate/method", `"mean"`}, fpm0 + "/benchmark_measurement/estimate/method enum"},
		{edit{fpm0 + "/benchmark_measurement/estimate/raw_sample_indices", "[]"}, fpm0 + "/benchmark_measurement/estimate/raw_sample_indices minItems"},
		{edit{sample0 + "/timing/basis", `"guess"`}, sample0 + "/timing/basis enum"},
		{edit{sample0 + "/timing/end_monotonic", "null"}, sample0 + "/timing/end_monotonic type"},
		{edit{sample0 + "/cudagraph/num_paddings", "null"}, sample0 + "/cudagraph/num_paddings type"},
		{edit{sample0 + "/cudagraph/runtime_mode", ""}, sample0 + "/cudagraph required"},
		{edit{sample0 + "/cudagraph/status", `"unavailable"`}, sample0 + "/cudagraph/runtime_mode type"},
		{edit{"/measurement_protocol/schema_version", ""}, "/measurement_protocol required"},
		{edit{"/measurement_protocol/execution_evidence/sample_field", `"other"`}, "/measurement_protocol/execution_evidence/sample_field const"},
		{edit{"/warmup_evidence/status", `"lost"`}, "/warmup_evidence/status enum"},
		{edit{"/warmup_evidence/records/0/validation", ""}, "/warmup_evidence/records/0 required"},
		{edit{"/warmup_evidence/records/0/status", "null"}, "/warmup_evidence/records/0/status type"},
		{edit{"/warmup_evidence/records/0/forward_index_start", "-1"}, "/warmup_evidence/records/0/forward_index_start minimum"},
		{edit{"/engine/kv_cache/groups/1/specs/0/head_size", `"64"`}, "/engine/kv_cache/groups/1/specs/0/head_size type"},
		{edit{"/engine/parallel/tensor_parallel_size", "0"}, "/engine/parallel/tensor_parallel_size minimum"},
	} {
		doc := load(t, "rank-artifact.json")
		c.apply(t, doc)
		if got := faults(t, s, doc); !slices.Contains(got, c.want) {
			t.Errorf("%s = %s: got %q, want %q", c.pointer, c.value, got, c.want)
		}
	}
	for _, doc := range []any{nil, []any{}, "text", 1.0, map[string]any{}} {
		if got := faults(t, s, doc); len(got) == 0 {
			t.Errorf("%v is accepted", fmt.Sprint(doc))
		}
	}
}
