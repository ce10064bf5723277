package segment

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for path, want := range map[string]Name{
		"/tmp/dynamo-fpm.7.000000.jsonl.gz":         {"/tmp/dynamo-fpm", "7", 0},
		"a.b.c-d_E.999999.jsonl.gz":                 {"a.b", "c-d_E", 999999},
		"p.w.1000000.jsonl.gz":                      {"p", "w", 1000000},
		"d.1/p.w.18446744073709551615.jsonl.gz":     {"d.1/p", "w", 1<<64 - 1},
		"p.000001.000002.jsonl.gz":                  {"p", "000001", 2},
		"/tmp/dynamo-fpm.unknown.000012.jsonl.gz":   {"/tmp/dynamo-fpm", "unknown", 12},
		"p.w.00001.jsonl.gz":                        {}, // too short
		"p.w.0000001.jsonl.gz":                      {}, // over-padded
		"p.w.18446744073709551616.jsonl.gz":         {}, // beyond 64 bits
		"p.w.00000a.jsonl.gz":                       {},
		"p.w.+00001.jsonl.gz":                       {},
		"p.w.000001.jsonl":                          {},
		"p.w.000001.jsonl.gz.bak":                   {},
		"p.w.000000.jsonl.lock":                     {},
		"p.000001.jsonl.gz":                         {}, // no producer
		"p..000001.jsonl.gz":                        {},
		"p.w x.000001.jsonl.gz":                     {},
		".w.000001.jsonl.gz":                        {}, // no prefix
		"d/.w.000001.jsonl.gz":                      {},
		"d.w/000001.jsonl.gz":                       {},
		"d.w.x/y.000001.jsonl.gz":                   {},
		"p.ö.000001.jsonl.gz":                       {},
		"":                                          {},
		".jsonl.gz":                                 {},
		"/tmp/dynamo-fpm.7.000000.jsonl.gz/../x.gz": {},
	} {
		got, ok := Parse(path)
		if ok != (want != Name{}) || ok && got != want {
			t.Errorf("Parse(%q) = %+v, %t, want %+v", path, got, ok, want)
		}
	}
}

func TestSanitise(t *testing.T) {
	for id, want := range map[string]string{
		"": "unknown", "worker-7_A": "worker-7_A", "a:b/c.d": "a_b_c_d", "höhe": "h_he", "\xff\xfe": "__", "..": "__",
	} {
		if got := Sanitise(id); got != want {
			t.Errorf("Sanitise(%q) = %q, want %q", id, got, want)
		}
	}
}

func TestPrefix(t *testing.T) {
	for path, want := range map[string]string{
		"/tmp/x": "/tmp/x", "/tmp/x.jsonl.gz": "/tmp/x", "/tmp/x.jsonl": "/tmp/x",
		"/tmp/x.jsonl.jsonl.gz": "/tmp/x.jsonl", "x.gz": "x.gz",
	} {
		if got := Prefix(path); got != want {
			t.Errorf("Prefix(%q) = %q, want %q", path, got, want)
		}
	}
}

// FuzzParse: what is taken for a name prints back to the same path, and every name that
// can be made is taken.
func FuzzParse(f *testing.F) {
	f.Add("/tmp/dynamo-fpm.7.000000.jsonl.gz", "w", uint64(1))
	f.Add("p.w.0000001.jsonl.gz", "", uint64(1)<<63)
	f.Fuzz(func(t *testing.T, path, producer string, index uint64) {
		if n, ok := Parse(path); ok && (n.Path() != path || filepath.Base(n.Prefix) == "" || strings.ContainsAny(n.Producer, "./")) {
			t.Errorf("%q is %+v, whose path is %q", path, n, n.Path())
		}
		want := Name{"/d.x/p.q", Sanitise(producer), index}
		if got, ok := Parse(want.Path()); !ok || got != want {
			t.Errorf("%+v is read as %+v, %t", want, got, ok)
		}
	})
}

// A file can have every name, and those that it could have had anyway are as they were.
func TestInFileName(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]string{}
	for _, base := range []string{"t", strings.Repeat("b", 150)} {
		prefix := filepath.Join(dir, base)
		for _, n := range []int{0, 1, 50, 72, 73, 74, 222, 223, 224, 255, 256, 900_000} {
			for _, id := range []string{strings.Repeat("x", n), strings.Repeat("x", n) + "y", strings.Repeat("\x01", n)} {
				name := Name{prefix, InFileName(prefix, id), math.MaxUint64}
				if parsed, ok := Parse(name.Path()); !ok || parsed != name {
					t.Errorf("%d characters: %s is no segment", n, name.Path())
				}
				if err := os.WriteFile(name.Path(), nil, 0o666); err != nil {
					t.Errorf("%d characters: %v", n, err)
				}
				if short := len(base)+len(Sanitise(id))+31 <= 255; short != (name.Producer == Sanitise(id)) {
					t.Errorf("%d characters: %s", n, name.Producer)
				} else if other, ok := seen[name.Path()]; !short && ok && other != id {
					t.Errorf("two ids of %d characters have the name %s", n, name.Path())
				}
				seen[name.Path()] = id
			}
		}
	}
}
