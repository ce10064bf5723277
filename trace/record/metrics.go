package record

import (
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fpm-project/fpm/trace/wire"
)

// maxLabelled is how many endpoints have series of their own. The others are counted
// together, so that a scrape stays small.
const maxLabelled = 1024

// maxScrapes is how many answers are made at a time. One of a thousand endpoints takes
// some mebibytes.
const maxScrapes = 2

// otherEndpoints is the label of those that have none of their own.
const otherEndpoints = "other"

// family is one metric of the recorder. Labels are of what an operator named, never of
// what a peer sent: workers and ranks are in the manifest.
type family struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
}

// recorderFamilies returns the metrics that are collected from the recorder's counts when
// they are asked for.
func recorderFamilies() []family {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	endpoint := []string{"endpoint"}
	return []family{
		{"fpm_trace_received_total", "Valid payloads received.", counter, endpoint},
		{"fpm_trace_rejected_total", "Messages that are no valid payload, by reason.", counter, []string{"endpoint", "reason"}},
		{"fpm_trace_gaps_total", "Runs of counters that are missing.", counter, endpoint},
		{"fpm_trace_missing_total", "Messages that are missing by their numbers.", counter, endpoint},
		{"fpm_trace_restarts_total", "Times that a publisher began to number anew.", counter, endpoint},
		{"fpm_trace_connects_total", "Connections made.", counter, endpoint},
		{"fpm_trace_connected", "1 while there is a connection.", gauge, endpoint},
		{"fpm_trace_delivered", "1 when a valid payload was received, ever.", gauge, endpoint},
		{"fpm_trace_last_seen_age_seconds", "Time since the last valid payload; since the start when there was none.", gauge, endpoint},
		{"fpm_trace_written_total", "Rows written.", counter, nil},
		{"fpm_trace_written_bytes_total", "Bytes of rows written, not compressed.", counter, nil},
		{"fpm_trace_compressed_bytes_total", "Bytes written to files.", counter, nil},
		{"fpm_trace_dropped_total", "Payloads received and lost, by place: queue, disk, or streams when there were too many, or messages too large for the memory that was left.", counter, []string{"place"}},
		{"fpm_trace_thinned_total", "Payloads that sampling left out.", counter, nil},
		{"fpm_trace_heartbeats_total", "Payloads received that are heartbeats.", counter, nil},
		{"fpm_trace_streams", "Ranks of workers that are known.", gauge, nil},
		{"fpm_trace_segments_total", "Files created.", counter, nil},
		{"fpm_trace_segments_deleted_total", "Files deleted because a producer had too many.", counter, nil},
		{"fpm_trace_producers_disabled", "Producers whose files cannot be written any more.", gauge, nil},
		{"fpm_trace_pending_bytes", "Bytes of rows that are in batches and wait for the disk.", gauge, nil},
		{"fpm_trace_write_errors_total", "Attempts to write or close a file that failed.", counter, nil},
		{"fpm_trace_queue_entries", "Payloads that wait to be written.", gauge, nil},
		{"fpm_trace_queue_bytes", "Bytes of the payloads that wait to be written.", gauge, nil},
		{"fpm_trace_queue_fill_ratio", "Share of the queue that is taken, of its entries or bytes, whichever is more.", gauge, nil},
	}
}

// flushMetric is the one metric that is no count of the recorder.
const flushMetric = "fpm_trace_flush_duration_seconds"

// MetricNames returns the names of the recorder's own metrics.
func MetricNames() []string {
	names := []string{flushMetric, "fpm_build_info"}
	for _, f := range recorderFamilies() {
		names = append(names, f.name)
	}
	return names
}

// metrics serves the numbers of one recorder from a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	flushes  prometheus.Histogram

	pending     atomic.Int64  // bytes of all batches
	writeErrors atomic.Uint64 // attempts to write that failed
	failing     atomic.Int64  // producers whose files could not be written when last tried
}

func newMetrics(r *Recorder) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		flushes: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: flushMetric, Help: "Time that writing a batch took.",
			Buckets: []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5},
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fpm_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": r.opt.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.flushes, build, newCollector(r), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) flushed(took time.Duration) { m.flushes.Observe(took.Seconds()) }

// collector collects what there is to say of a recorder when it is asked.
type collector struct {
	r     *Recorder
	descs map[string]*prometheus.Desc
	kinds map[string]prometheus.ValueType
}

func newCollector(r *Recorder) *collector {
	c := &collector{r: r, descs: map[string]*prometheus.Desc{}, kinds: map[string]prometheus.ValueType{}}
	for _, f := range recorderFamilies() {
		c.descs[f.name] = prometheus.NewDesc(f.name, f.help, f.labels, nil)
		c.kinds[f.name] = f.kind
	}
	return c
}

// Describe is for the registry.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect is for the registry.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	say := func(name string, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[name], c.kinds[name], value, labels...)
	}
	c.endpoints(say)
	c.totals(say)
	entries, bytes := c.r.queue.fill()
	say("fpm_trace_pending_bytes", float64(c.r.metrics.pending.Load()))
	say("fpm_trace_write_errors_total", float64(c.r.metrics.writeErrors.Load()))
	say("fpm_trace_queue_entries", float64(entries))
	say("fpm_trace_queue_bytes", float64(bytes))
	say("fpm_trace_queue_fill_ratio", max(float64(entries)/queueEntries, float64(bytes)/queueBytes))
}

func (c *collector) totals(say func(string, float64, ...string)) {
	t := c.r.totals()
	say("fpm_trace_written_total", float64(t.Written))
	say("fpm_trace_written_bytes_total", float64(t.Bytes))
	say("fpm_trace_compressed_bytes_total", float64(t.Compressed))
	say("fpm_trace_dropped_total", float64(t.QueueDrops), "queue")
	say("fpm_trace_dropped_total", float64(t.DiskDrops), "disk")
	say("fpm_trace_dropped_total", float64(t.Crowded), "streams")
	say("fpm_trace_thinned_total", float64(t.Thinned))
	say("fpm_trace_heartbeats_total", float64(t.Heartbeats))
	say("fpm_trace_segments_total", float64(t.Segments))
	say("fpm_trace_segments_deleted_total", float64(t.Deleted))
	disabled := 0
	all, _ := c.r.files()
	for _, s := range all {
		if _, _, why := s.published(); why != "" {
			disabled++
		}
	}
	say("fpm_trace_producers_disabled", float64(disabled))
	say("fpm_trace_streams", float64(c.r.registry.size()))
}

// reading is what is said of one endpoint, or of several together.
type reading struct {
	received, gaps, missing, restarts, connects float64
	connected, delivered                        float64
	age                                         time.Duration
	rejected                                    [reasons]float64
}

func (e *endpoint) reading(now time.Duration) reading {
	v := reading{
		received: float64(e.received.Load()), gaps: float64(e.gaps.Load()), missing: float64(e.missing.Load()),
		restarts: float64(e.restarts.Load()), connects: float64(e.connects.Load()),
		age: now - time.Duration(max(0, e.heardAt.Load()-1)),
	}
	if e.connected.Load() {
		v.connected = 1
	}
	if e.delivered() {
		v.delivered = 1
	}
	for i := range v.rejected {
		v.rejected[i] = float64(e.rejected[i].Load())
	}
	return v
}

// with is what is said of endpoints together: all counts, the oldest age, and whether
// each is connected and has delivered.
func (v reading) with(o reading) reading {
	v.received += o.received
	v.gaps += o.gaps
	v.missing += o.missing
	v.restarts += o.restarts
	v.connects += o.connects
	v.connected = min(v.connected, o.connected)
	v.delivered = min(v.delivered, o.delivered)
	v.age = max(v.age, o.age)
	for i := range v.rejected {
		v.rejected[i] += o.rejected[i]
	}
	return v
}

// endpoints says what there is of each endpoint. Two with the same address are one.
func (c *collector) endpoints(say func(string, float64, ...string)) {
	now := c.r.clock.since()
	readings := map[string]reading{}
	for _, e := range c.r.endpoints {
		label := e.address
		old, ok := readings[label]
		if !ok && len(readings) >= maxLabelled {
			label = otherEndpoints
			old, ok = readings[label]
		}
		v := e.reading(now)
		if ok {
			v = v.with(old)
		}
		readings[label] = v
	}
	for label, v := range readings {
		say("fpm_trace_received_total", v.received, label)
		say("fpm_trace_gaps_total", v.gaps, label)
		say("fpm_trace_missing_total", v.missing, label)
		say("fpm_trace_restarts_total", v.restarts, label)
		say("fpm_trace_connects_total", v.connects, label)
		say("fpm_trace_connected", v.connected, label)
		say("fpm_trace_delivered", v.delivered, label)
		say("fpm_trace_last_seen_age_seconds", v.age.Seconds(), label)
		for _, reason := range wire.Reasons() {
			say("fpm_trace_rejected_total", v.rejected[reason], label, reason.String())
		}
	}
}

// handler answers /metrics, /healthz and /readyz.
func (m *metrics) handler(ready func() (bool, string), health func() string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, health()+"\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ok, why := ready(); !ok {
			answer(w, http.StatusServiceUnavailable, why+"\n")
			return
		}
		answer(w, http.StatusOK, "ready\n")
	})
	return mux
}

// answer writes a short text. A client that is gone needs none.
func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
