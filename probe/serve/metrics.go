package serve

import (
	"net/http"
	"runtime"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are the numbers of one handler, in a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	bytes    *prometheus.CounterVec
	aborted  prometheus.Counter
	inFlight prometheus.Gauge
}

func newMetrics(version string, s *store) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fpm_serve_requests_total", Help: "Requests by path, status code and content coding of the answer.",
		}, []string{"path", "code", "encoding"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "fpm_serve_response_bytes_total", Help: "Bytes of bodies that were sent, by content coding.",
		}, []string{"encoding"}),
		aborted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "fpm_serve_aborted_total", Help: "Answers that were cut off: the client went or stood still, or the document could not be read.",
		}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "fpm_serve_in_flight", Help: "Documents that are being sent.",
		}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fpm_build_info", Help: "Always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	build.Set(1)
	m.registry.MustRegister(m.requests, m.bytes, m.aborted, m.inFlight, build, &storeMetrics{store: s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) begun(path string, status int, c coding) {
	m.requests.WithLabelValues(path, strconv.Itoa(status), string(c)).Inc()
}

func (m *metrics) ended(w *response) {
	m.bytes.WithLabelValues(string(w.coding)).Add(float64(w.bytes))
	if w.aborted {
		m.aborted.Inc()
	}
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		DisableCompression:  true, // little text; and codings are counted by path
		MaxRequestsInFlight: 8,
	})
}

// storeMetrics collects what there is to say of a store when it is asked, from one look at
// it.
type storeMetrics struct{ store *store }

type description struct {
	name, help string
	kind       prometheus.ValueType
	value      func(state) float64
}

func descriptions() []description {
	flag := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	return []description{
		{"fpm_serve_reloads_total", "Replacements of the document that are served.", prometheus.CounterValue, func(s state) float64 { return float64(s.reloads) }},
		{"fpm_serve_reload_failures_total", "Attempts to serve a replacement of the document that failed.", prometheus.CounterValue, func(s state) float64 { return float64(s.failures) }},
		{"fpm_serve_document_size_bytes", "Size of the document, not compressed.", prometheus.GaugeValue, func(s state) float64 { return float64(s.size) }},
		{"fpm_serve_document_age_seconds", "Time since the newest file of the document was written.", prometheus.GaugeValue, func(s state) float64 { return s.age.Seconds() }},
		{"fpm_serve_document_stale", "1 when the files are newer than the document, but cannot be served.", prometheus.GaugeValue, func(s state) float64 { return flag(s.fault != "") }},
		{"fpm_serve_document_probed", "1 when the result of the worker probe is applied.", prometheus.GaugeValue, func(s state) float64 { return flag(s.note == "") }},
	}
}

// Describe is for the registry.
func (m *storeMetrics) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, ch) }

// Collect is for the registry.
func (m *storeMetrics) Collect(ch chan<- prometheus.Metric) {
	state := m.store.state()
	for _, d := range descriptions() {
		desc := prometheus.NewDesc(d.name, d.help, nil, nil)
		ch <- prometheus.MustNewConstMetric(desc, d.kind, d.value(state))
	}
}
