package schemas

import (
	"encoding/json"
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
)

const rankArtifact = "rank-artifact"

func decodeText(t *testing.T, text []byte) any {
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
	return decodeText(t, text).(map[string]any)
}

func schema(t *testing.T, name string) map[string]any {
	t.Helper()
	text, ok := Get(name)
	if !ok {
		t.Fatalf("no schema %q", name)
	}
	return decodeText(t, text).(map[string]any)
}

func compile(t testing.TB, name string) *Validator {
	t.Helper()
	v, err := Compile(name)
	if err != nil {
		t.Fatalf("%#v", err)
	}
	return v
}

// faults returns the place and the keyword of each violation of a document.
func faults(t *testing.T, v *Validator, doc any) (list []string) {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	violations, err := v.Validate(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range violations {
		list = append(list, one.Pointer+" "+one.Keyword)
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
	ids := map[any]bool{}
	for _, name := range Names() {
		compile(t, name)
		s := schema(t, name)
		if ids[s["$id"]] {
			t.Errorf("%s: $id %v is another schema's, too", name, s["$id"])
		}
		ids[s["$id"]] = true
		if info, ok := About(name); !ok || info.Name != name || info.ID != s["$id"] || info.Title != s["title"] || info.Title == "" {
			t.Errorf("%s: about: %+v, %v", name, info, ok)
		}
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
			} else if slices.Contains([]string{"items", "additionalProperties", "propertyNames", "if", "then", "else"}, key) {
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
		{regexp.MustCompile(`(_unix_ms|/timestamp)$`), "(ms)"},
		{regexp.MustCompile(`/column$`), "(bytes)"},
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
	used, defined := map[string]bool{}, map[string]bool{}
	for _, name := range Names() {
		s := schema(t, name)
		defs, _ := s["$defs"].(map[string]any)
		for def := range defs {
			defined[s["$id"].(string)+"#/$defs/"+def] = true
		}
		each("", s, func(place string, sub map[string]any) {
			if _, isSchema := sub["additionalProperties"].(map[string]any); !isSchema && sub["additionalProperties"] != nil {
				t.Errorf("%s%s is closed", name, place)
			}
			if ref, ok := sub["$ref"].(string); ok {
				if strings.HasPrefix(ref, "#") {
					ref = s["$id"].(string) + ref
				}
				if strings.Contains(ref, "#/$defs/") {
					used[whole.FindString(ref)] = true
				}
			}
		})
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(defined)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("definitions (-defined +used):\n%s", diff)
	}
}

// whole is the part of a reference that names a definition.
var whole = regexp.MustCompile(`^[^#]*#/\$defs/[^/]+`)

// What a schema says with: the numbers of a document are bounded and the messages made
// with these in mind. uniqueItems and multipleOf would see bounded numbers; what fails
// under anyOf, oneOf and not has no one place; format depends on the validator.
func TestKeywords(t *testing.T) {
	known := strings.Fields(`$schema $id $defs $ref title description examples type const enum
		properties required additionalProperties propertyNames minProperties maxProperties
		items minItems maxItems minLength pattern minimum maximum if then else`)
	for _, name := range Names() {
		each("", schema(t, name), func(place string, s map[string]any) {
			for key, value := range s {
				if !slices.Contains(known, key) {
					t.Errorf("%s%s has %s", name, place, key)
				}
				if ref, _ := value.(string); key == "$ref" && !strings.HasPrefix(ref, "#") && !strings.HasPrefix(ref, idPrefix) {
					t.Errorf("%s%s refers to %s", name, place, ref)
				}
			}
		})
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
		"minimal": decodeText(t, []byte(minimal)),
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
	for name, doc := range documents(t) {
		if got := undescribed(t, rankArtifact, doc); got != nil {
			t.Errorf("%s: not described: %q", name, got)
		}
	}
}

// undescribed returns the places of a document that its schema does not describe.
func undescribed(t *testing.T, name string, doc any) []string {
	t.Helper()
	list := place{t, schema(t, name), schema(t, name)}.undescribed(doc, "")
	slices.Sort(list)
	return slices.Compact(list)
}

// place is a schema inside the schema that is its root.
type place struct {
	t       *testing.T
	root, s map[string]any
}

// chain returns a place and those that it refers to, one after the other.
func (p place) chain() []place {
	ref, ok := p.s["$ref"].(string)
	if !ok {
		return []place{p}
	}
	id, pointer, _ := strings.Cut(ref, "#/")
	target := place{p.t, p.root, p.root}
	if id != "" {
		text, ok := byID(id)
		if !ok {
			p.t.Fatalf("no schema %q", id)
		}
		target.root = decodeText(p.t, text).(map[string]any)
		target.s = target.root
	}
	for token := range strings.SplitSeq(pointer, "/") {
		target.s = target.s[token].(map[string]any)
	}
	return append([]place{p}, target.chain()...)
}

// member returns the schema of a member, and whether the object has a form at all.
func (p place) member(key string) (sub place, found, formed bool) {
	for _, q := range p.chain() {
		properties, ok := q.s["properties"].(map[string]any)
		formed = formed || ok
		if s, ok := properties[key].(map[string]any); ok {
			return place{q.t, q.root, s}, true, true
		}
		if s, ok := q.s["additionalProperties"].(map[string]any); ok {
			return place{q.t, q.root, s}, true, true
		}
	}
	return place{}, false, formed
}

func (p place) undescribed(v any, at string) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			sub, found, formed := p.member(key)
			if found {
				list = append(list, sub.undescribed(value, at+"/"+key)...)
			} else if formed {
				list = append(list, at+"/"+key)
			}
		}
	case []any:
		for _, q := range p.chain() {
			if items, ok := q.s["items"].(map[string]any); ok {
				for _, value := range v {
					list = append(list, place{q.t, q.root, items}.undescribed(value, at+"/*")...)
				}
				return list
			}
		}
		if len(v) > 0 && p.s["type"] != nil {
			return []string{at + "/*"}
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
		parent[last] = decodeText(t, []byte(e.value))
	case []any:
		i, err := strconv.Atoi(last)
		if err != nil {
			t.Fatal(err)
		}
		parent[i] = decodeText(t, []byte(e.value))
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
