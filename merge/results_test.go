package merge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// regimes reads a list of values into a table and returns what stands behind their codes.
func regimes(t *testing.T, values ...string) (table *regimeTable, codes []uint32, texts []string) {
	t.Helper()
	table = &regimeTable{}
	source := "[" + strings.Join(values, ", ") + "]"
	s := jsonstream.New(strings.NewReader(source), 0, 0, jsonstream.Strict, jsonstream.Limits{})
	if _, _, err := s.Array(func(int) error {
		code, err := table.read(s)
		codes = append(codes, code)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, code := range codes {
		text, span := table.get(code)
		if text == "" {
			text = source[span.Off:span.End()]
		}
		texts = append(texts, text)
	}
	return table, codes, texts
}

func TestRegimeTable(t *testing.T) {
	values := []string{`"real_kv"`, `"fake"`, `"real_kv"`, `null`, `"re\u0061l_kv"`, `""`, `{ "x": [1,  2] }`, `[]`, `1.50`, `true`, `null`, `{}`}
	table, codes, texts := regimes(t, values...)
	for i, want := range values {
		if texts[i] != want || codes[i] == 0 {
			t.Errorf("value %d is %s under code %d, want %s", i, texts[i], codes[i], want)
		}
	}
	if codes[0] != codes[2] || codes[3] != codes[10] || codes[0] == codes[4] {
		t.Errorf("codes %v: the same text has one code, another spelling another", codes)
	}
	if len(table.texts) != 7 || table.places.len() != 3 {
		t.Errorf("%d texts, %d places", len(table.texts), table.places.len())
	}
}

// Many long values do not fill the memory: they stay where they are.
func TestRegimeTableOverflows(t *testing.T) {
	var values []string
	for i := range 300 {
		values = append(values, fmt.Sprintf(`"%d%s"`, i, strings.Repeat("x", 1000)))
	}
	values = append(values, values[0], values[299], `"short"`)
	table, codes, texts := regimes(t, values...)
	for i, want := range values {
		if texts[i] != want {
			t.Fatalf("value %d is %.20s…, want %.20s…", i, texts[i], want)
		}
	}
	if table.bytes > maxRegimeBytes || len(table.texts) < 50 || table.places.len() < 200 {
		t.Errorf("%d bytes in %d texts, %d places", table.bytes, len(table.texts), table.places.len())
	}
	if codes[300] != codes[0] {
		t.Error("a text that is held was not recognised")
	}
	seen := map[uint32]bool{}
	for _, code := range codes[:300] {
		if seen[code] || code == 0 {
			t.Fatalf("code %d stands for two values", code)
		}
		seen[code] = true
	}
}

func TestRegimeTableBrokenText(t *testing.T) {
	for _, text := range []string{``, `"real`, `{"a"`, `[1`, `nul`} {
		var table regimeTable
		code, err := table.read(jsonstream.New(strings.NewReader(text), 0, 0, jsonstream.Strict, jsonstream.Limits{}))
		if err == nil || code != 0 {
			t.Errorf("%q: code %d, %v", text, code, err)
		}
	}
}
