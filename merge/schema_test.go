package merge

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/schemas"
)

// schemaIsStricter lists by name the accepted runs that the schema rejects, and where. A
// merge compares numbers by value and reads only what it needs; the schema, like strict
// consumers, wants integers spelled as integers, and knows the types of the rest.
func schemaIsStricter() map[string][]string {
	return map[string][]string{
		"equal by value": {"expected_dp_ranks/0", "expected_dp_ranks/1", "rank_results/1/dp_rank", "counter_id", "fpms/0/dp_rank"},
		"results in another order, spelled otherwise": {"queued_requests/num_decode_requests", "point/batch_size"},
		"values that merge does not judge":            {"measurement_protocol/content_seed"},
		"degraded":                                    {"engine/attention"},
	}
}

// Every run that comes close to a rule and keeps it keeps the schema, too, but for those
// listed above.
func TestSchemaAcceptsWhatAMergeAccepts(t *testing.T) {
	schema, err := schemas.CompileStream("rank-artifact")
	if err != nil {
		t.Fatal(err)
	}
	stricter := map[string][]string{}
	for _, c := range allAccepted() {
		r := build(t, c.shape).apply(t, c.changes...)
		for rank := range r.ranks {
			err := schema.Check(strings.NewReader(r.text(rank)), func(l schemas.Located) {
				known := schemaIsStricter()[c.name]
				i := slices.IndexFunc(known, func(end string) bool { return strings.HasSuffix(l.Pointer, "/"+end) })
				if i < 0 {
					t.Errorf("%s: rank %d: %s: %s", c.name, rank, l.Pointer, l.Message)
				} else if !slices.Contains(stricter[c.name], known[i]) {
					stricter[c.name] = append(stricter[c.name], known[i])
				}
			})
			var syntax *schemas.SyntaxError
			if err != nil && !errors.As(err, &syntax) {
				t.Fatal(err)
			}
		}
	}
	want := schemaIsStricter()
	for _, list := range []map[string][]string{want, stricter} {
		for name := range list {
			slices.Sort(list[name])
		}
	}
	if diff := cmp.Diff(want, stricter); diff != "" {
		t.Errorf("stricter (-want +got):\n%s", diff)
	}
}

// What only warns keeps the schema.
func TestSchemaAcceptsWhatOnlyWarns(t *testing.T) {
	schema, err := schemas.CompileStream("rank-artifact")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range vectors() {
		if rejects(c.want) {
			continue
		}
		seen++
		r := build(t, c.shape).apply(t, c.changes...)
		for rank := range r.ranks {
			if err := schema.Check(strings.NewReader(r.text(rank)), func(l schemas.Located) {
				t.Errorf("%s: rank %d: %s: %s", c.name, rank, l.Pointer, l.Message)
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if seen == 0 {
		t.Error("no run only warns")
	}
}
