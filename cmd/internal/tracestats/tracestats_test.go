package tracestats

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/table"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
)

// summarised makes a trace of the counters of ranks, and of lines that are no rows.
func summarised(t *testing.T, ranks map[int][]int, other ...string) *trace.Stats {
	t.Helper()
	const load = `"num_prefill_requests":1,"sum_prefill_tokens":100,"sum_prefill_kv_tokens":0,"num_decode_requests":2,"sum_decode_kv_tokens":7`
	var text bytes.Buffer
	for rank, counters := range ranks {
		for i, c := range counters {
			fmt.Fprintf(&text, `{"timestamp":1,"event":{"schema":"dynamo.fpm.trace.v1","source":{"namespace":"n","component":"c","producer_id":"p\u001b"},"capture_mode":"full","observed_at_unix_ms":%d,`+
				`"fpm":{"version":1,"worker_id":"w","dp_rank":%d,"counter_id":%d,"wall_time":0.25,"scheduled_requests":{%s},"queued_requests":{%s}}}}`+"\n", 1000*i, rank, c, load, load)
		}
	}
	text.WriteString(strings.Join(other, "\n"))
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := segment.Find([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	stats, err := trace.Summarise(t.Context(), sources, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stats
}

func TestLines(t *testing.T) {
	stats := summarised(t, map[int][]int{0: {1, 2, 5}, 1: {7, 8}}, "x", "y")
	text := strings.Join(Lines(stats, Layout{Limit: 1, More: "; ask for them"}), "\n")
	for _, want := range []string{
		"5 rows of 2 streams in 1 file, 1970-01-01T00:00:00.000Z to 1970-01-01T00:00:02.000Z",
		`p\u001b/w     0     3    2s   38%  249ms  249ms  249ms  250ms        150         3    3/3  2 (1)         0`,
		"and 1 more stream; ask for them",
		"gap of rank 0 of p\\u001b before ", "counters 3 to 4 are missing",
		"2 lines left out that are no valid rows; fpm trace verify says why",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	for width := 20; width < 140; width += 3 {
		for _, line := range Lines(stats, Layout{Width: width}) {
			if table.Width(line) > width {
				t.Errorf("%d columns of %d: %q", table.Width(line), width, line)
			}
		}
	}
	if lines := Lines(summarised(t, nil, "x"), Layout{}); len(lines) != 1 || lines[0] != "1 line left out that is no valid row; fpm trace verify says why" {
		t.Errorf("without rows: %q", lines)
	}
}

func TestData(t *testing.T) {
	stats := summarised(t, map[int][]int{4: {1, 3}})
	for name, object := range map[string]any{
		`"rows":2,`: Details(stats),
		`"gaps":[{"first_missing":2,"last_missing":2,`: Stream(stats.Streams[0]),
	} {
		text, err := json.Marshal(object)
		if err != nil || !strings.Contains(string(text), name) {
			t.Errorf("no %s in %s, %v", name, text, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"0s": Seconds(0), "12us": Seconds(12e-6), "1ms": Seconds(1e-3), "90s": Seconds(90), "3min": Seconds(180), "3h": Seconds(10800), "3d": Seconds(3 * 86400),
		"7": Digits(7), "0.12": Digits(0.123), "12.3": Digits(12.34), "1.2e-05": Digits(1.2e-5),
		"12.3k": si(12345), "4.56M": si(4.56e6), "5000000T": si(5e18),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
