package record

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// ask returns what a path answers.
func ask(t *testing.T, h http.Handler, path string) (status int, body string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(text)
}

func TestMetrics(t *testing.T) {
	b := newBench(t, 2, Options{Version: "v1"})
	h := b.Handler()
	if status, body := ask(t, h, "/readyz"); status != 503 || !strings.Contains(body, "2 of 2 endpoints have delivered nothing so far") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	b.send(0, "w", 0, 5)
	b.send(0, "w", 0, 8)
	b.send(1, "w", 1, 5)
	b.send(1, "w", 1, 4)
	b.endpoints[1].message([][]byte{{}}, time.Time{})
	b.write()
	b.hand.move(time.Second)
	b.send(0, "w", 0, 9)
	if status, body := ask(t, h, "/readyz"); status != 200 || body != "ready\n" {
		t.Errorf("/readyz: %d %s", status, body)
	}
	if status, _ := ask(t, h, "/healthz"); status != 200 {
		t.Errorf("/healthz: %d", status)
	}
	_, text := ask(t, h, "/metrics")
	for _, want := range []string{
		`fpm_trace_received_total{endpoint="tcp://h:20380"} 3`,
		`fpm_trace_missing_total{endpoint="tcp://h:20380"} 2`,
		`fpm_trace_gaps_total{endpoint="tcp://h:20380"} 1`,
		`fpm_trace_restarts_total{endpoint="tcp://h:20381"} 1`,
		`fpm_trace_rejected_total{endpoint="tcp://h:20381",reason="frames"} 1`,
		`fpm_trace_last_seen_age_seconds{endpoint="tcp://h:20381"} 2`,
		`fpm_trace_last_seen_age_seconds{endpoint="tcp://h:20380"} 0`,
		`fpm_trace_written_total 4`,
		`fpm_trace_queue_entries 1`,
		`fpm_trace_dropped_total{place="disk"} 0`,
		`fpm_trace_flush_duration_seconds_count 1`,
		`fpm_trace_streams 2`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// The names that are told are those that are served.
func TestMetricNames(t *testing.T) {
	b := newBench(t, 1, Options{})
	families, err := b.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "fpm_") {
			got = append(got, f.GetName())
		}
	}
	want := MetricNames()
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-told +served):\n%s", diff)
	}
}

// However many endpoints there are, and whatever workers call themselves, a scrape is
// bounded.
func TestMetricLabels(t *testing.T) {
	var opt Options
	for i := range maxLabelled + 10 {
		opt.Endpoints = append(opt.Endpoints, subscribe.Endpoint{Address: fmt.Sprint("tcp://h:", 1+i)})
	}
	opt.Endpoints = append(opt.Endpoints, opt.Endpoints[0])
	b := newBench(t, 0, opt)
	for i := range b.endpoints {
		b.send(i, fmt.Sprint("worker-", i), 0, 0)
	}
	_, text := ask(t, b.Handler(), "/metrics")
	if n := strings.Count(text, "\nfpm_trace_received_total{"); n != maxLabelled+1 {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(text, `fpm_trace_received_total{endpoint="other"} 10`) || !strings.Contains(text, `fpm_trace_received_total{endpoint="tcp://h:1"} 2`) {
		t.Error("the rest is not counted together")
	}
	if strings.Contains(text, "worker-") {
		t.Error("a worker's name is a label")
	}
	if len(wire.Reasons()) != reasons {
		t.Errorf("%d reasons", len(wire.Reasons()))
	}
}

func TestRegistryForgets(t *testing.T) {
	b := newBench(t, 1, Options{})
	b.registry = newRegistry(3)
	worker := func(name string, counter int64) { b.send(0, name, 0, counter) }
	worker("a", 0)
	worker("b", 0)
	worker("c", 0)
	worker("made up", 0) // everybody is alive
	if m := b.Snapshot(); m.Totals.Crowded != 1 || m.Totals.Received != 3 || m.Endpoints[0].Crowded != 1 || !strings.Contains(b.warnings(), "a payload is lost") {
		t.Errorf("%+v\n%s", m.Totals, b.warnings())
	}
	b.hand.move(quietBefore / 2)
	worker("b", 1)
	b.hand.move(quietBefore / 2)
	worker("d", 0) // a and c are silent for long
	b.writer.finish()
	m := b.Snapshot()
	var names []string
	for _, p := range m.Producers {
		names = append(names, p.ProducerID)
	}
	if strings.Join(names, " ") != "b d" || m.Forgotten == nil || m.Forgotten.Streams != 2 {
		t.Errorf("%v, forgotten %+v", names, m.Forgotten)
	}
	// What the forgotten ones had waiting was written and counted all the same.
	if m.Totals.Received != 5 || m.Totals.Written != 5 || m.Forgotten.Counts.Written != 2 || m.Totals.Pending != 0 {
		t.Errorf("%+v, forgotten %+v", m.Totals, m.Forgotten)
	}
	if m.Totals.Lost() != 1 {
		t.Errorf("%d lost", m.Totals.Lost())
	}
}

// The files of a producer that is silent for long are closed; it can come back.
func TestIdleFiles(t *testing.T) {
	b := newBench(t, 1, Options{})
	b.send(0, "w", 0, 0)
	b.write()
	b.hand.move(2 * idleFor)
	b.write()
	if len(b.writer.series) != 0 {
		t.Errorf("%d files are open", len(b.writer.series))
	}
	b.send(0, "w", 0, 1)
	b.writer.finish()
	m := b.Snapshot()
	if got := counters(b.rows("w")); got != "0/0 0/1" {
		t.Errorf("rows %s", got)
	}
	want := []string{"t.w.000000.jsonl.gz", "t.w.000001.jsonl.gz"}
	if diff := cmp.Diff(want, m.Producers[0].Files); diff != "" || m.Totals.Segments != 2 {
		t.Errorf("%d segments (-want +got):\n%s", m.Totals.Segments, diff)
	}
}

// When many files are open, those of silent producers are closed for new ones, though they
// are not idle for long.
func TestOpenFiles(t *testing.T) {
	b := newBench(t, 1, Options{})
	b.writer.maxOpen = 2
	for _, worker := range []string{"a", "b", "c"} {
		b.send(0, worker, 0, 0)
		b.write()
		b.hand.move(quietBefore)
	}
	if n := len(b.writer.series); n != 1 {
		t.Errorf("%d files are open", n)
	}
	b.writer.finish()
	for _, worker := range []string{"a", "b", "c"} {
		if got := counters(b.rows(worker)); got != "0/0" {
			t.Errorf("rows of %s: %s", worker, got)
		}
	}
}
