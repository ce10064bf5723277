package trace

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"github.com/fpm-project/fpm/trace/wire"
)

// Layout is how a row is laid out.
type Layout uint8

// The layouts.
const (
	TraceV1  Layout = iota // dynamo.fpm.trace.v1, as this program and Dynamo write it
	Received               // {"received_at_ns", "metrics"}, as Dynamo's receive tool writes it
)

// String returns the name of the layout.
func (l Layout) String() string {
	if l == Received {
		return "received metrics"
	}
	return wire.Schema
}

// Row is a row of a trace, read.
type Row struct {
	Layout         Layout
	TimestampMS    int64 // since the writer started (ms); 0 in a row of received metrics
	Namespace      string
	Component      string
	ProducerID     string    // the worker id in a row of received metrics
	Mode           wire.Mode // "" in a row of received metrics
	ObservedUnixMS int64     // wall clock at arrival, since 1970 (ms)

	// Numbered tells whether the metric has a counter. Received metrics of early engines
	// have neither version nor counter.
	Numbered bool
	// FPM is the metric; its JSON is a part of the line.
	wire.FPM
}

// RowError says what is wrong with a row (rule trace.row).
type RowError struct {
	Offset  int    // byte of the line, from 0
	Pointer string // JSON Pointer to the value
	Message string
	// Schema is what a row of another schema says that it is, "" in any other; of a long
	// name its beginning.
	Schema string
}

// Error returns the message, with the pointer when there is one.
func (e *RowError) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return e.Pointer + ": " + e.Message
}

// Parser reads rows. It remembers the strings that repeat from row to row, so that
// reading one allocates nothing. It is not safe for concurrent use.
type Parser struct {
	names [4]interned
}

// interned are the values that a field has had.
type interned struct {
	last string
	all  map[string]string
}

// maxInterned bounds what is remembered of a field.
const maxInterned = 4096

func (n *interned) get(b []byte) string {
	if string(b) == n.last {
		return n.last
	}
	s, ok := n.all[string(b)]
	if !ok {
		s = string(b)
		if len(n.all) >= maxInterned || n.all == nil {
			n.all = map[string]string{}
		}
		n.all[s] = s
	}
	n.last = s
	return s
}

// The bits of the keys of a row.
const (
	hasTimestamp = 1 << iota
	hasEvent
	hasReceived
	hasMetrics
)

// Parse reads a line into a row. The row is valid as long as the line is. A line that is
// not JSON, or whose metric breaks the rules for what a trace may hold, is a [RowError];
// unknown keys are none, and neither are variances that are not there.
func (p *Parser) Parse(line []byte, row *Row) error {
	*row = Row{}
	s := scan{b: line}
	if !s.open("") {
		return s.err
	}
	var seen uint32
	for key, ok := s.key(true); ok && s.err == nil; key, ok = s.key(false) {
		p.member(&s, row, key, &seen)
	}
	s.end()
	if s.err == nil {
		s.complete(row, seen)
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

func (p *Parser) member(s *scan, row *Row, key []byte, seen *uint32) {
	switch string(key) {
	case "timestamp":
		s.once(seen, hasTimestamp, "timestamp")
		row.TimestampMS = int64(s.uint("timestamp", math.MaxInt64))
	case "event":
		s.once(seen, hasEvent, "event")
		p.event(s, row)
	case "received_at_ns":
		s.once(seen, hasReceived, "received_at_ns")
		row.ObservedUnixMS = int64(s.uint("received_at_ns", math.MaxInt64) / 1e6)
	case "metrics":
		s.once(seen, hasMetrics, "metrics")
		row.Layout = Received
		p.metric(s, row, "metrics", "/metrics")
		row.ProducerID = row.WorkerID
	default:
		if again := s.other(key); again != nil {
			p.member(s, row, again, seen)
		}
	}
	s.at = ""
}

// complete checks that a row has the members of one layout.
func (s *scan) complete(row *Row, seen uint32) {
	s.at = ""
	switch {
	case seen&(hasEvent|hasMetrics) == hasEvent|hasMetrics:
		s.fail(0, "", "neither a trace row nor received metrics: both event and metrics are there")
	case row.Layout == Received && seen&hasReceived == 0:
		s.fail(0, "", "received_at_ns is missing")
	case row.Layout == Received:
	case seen&hasEvent == 0:
		s.fail(0, "", "neither a trace row nor received metrics: event is missing")
	case seen&hasTimestamp == 0:
		s.fail(0, "", "timestamp is missing")
	}
}

// missing reports the keys that an object lacks.
func (s *scan) missing(start int, seen, want uint32, keys []string) {
	if s.err != nil || seen&want == want {
		return
	}
	var lacking []string
	for i, key := range keys {
		if bit := uint32(1) << i; want&bit != 0 && seen&bit == 0 {
			lacking = append(lacking, key)
		}
	}
	s.fail(start, "", "missing: "+strings.Join(lacking, ", "))
}

// eventKeys are those of an event, in the order of their bits.
func eventKeys() []string {
	return []string{"schema", "source", "capture_mode", "observed_at_unix_ms", "fpm"}
}

func (p *Parser) event(s *scan, row *Row) {
	if !s.open("event") {
		return
	}
	s.at = "/event"
	start := s.i - 1
	var seen uint32
	for key, ok := s.key(true); ok && s.err == nil; key, ok = s.key(false) {
		p.eventMember(s, row, key, &seen)
	}
	s.missing(start, seen, 1<<5-1, eventKeys())
}

func (p *Parser) eventMember(s *scan, row *Row, key []byte, seen *uint32) {
	switch string(key) {
	case "schema":
		s.once(seen, 1<<0, "schema")
		start := s.i
		if name := s.text("schema"); s.err == nil && string(name) != wire.Schema {
			s.fail(start, "schema", fmt.Sprintf("%.60q is not the schema %s", name, wire.Schema))
			s.err.Schema = fmt.Sprintf("%.60s", name)
		}
	case "source":
		s.once(seen, 1<<1, "source")
		p.source(s, row)
		s.at = "/event"
	case "capture_mode":
		s.once(seen, 1<<2, "capture_mode")
		p.mode(s, row)
	case "observed_at_unix_ms":
		s.once(seen, 1<<3, "observed_at_unix_ms")
		row.ObservedUnixMS = int64(s.uint("observed_at_unix_ms", math.MaxInt64))
	case "fpm":
		s.once(seen, 1<<4, "fpm")
		p.metric(s, row, "fpm", "/event/fpm")
		s.at = "/event"
	default:
		if again := s.other(key); again != nil {
			p.eventMember(s, row, again, seen)
		}
	}
}

func (p *Parser) mode(s *scan, row *Row) {
	start := s.i
	switch mode := s.text("capture_mode"); string(mode) {
	case string(wire.Full):
		row.Mode = wire.Full
	case string(wire.Sampled):
		row.Mode = wire.Sampled
	default:
		s.fail(start, "capture_mode", fmt.Sprintf("%.60q is neither sampled nor full", mode))
	}
}

func (p *Parser) source(s *scan, row *Row) {
	if !s.open("source") {
		return
	}
	s.at = "/event/source"
	start := s.i - 1
	var seen uint32
	for key, ok := s.key(true); ok && s.err == nil; key, ok = s.key(false) {
		p.sourceMember(s, row, key, &seen)
	}
	s.missing(start, seen, 1<<3-1, []string{"namespace", "component", "producer_id"})
}

func (p *Parser) sourceMember(s *scan, row *Row, key []byte, seen *uint32) {
	switch string(key) {
	case "namespace":
		s.once(seen, 1<<0, "namespace")
		row.Namespace = p.names[0].get(s.text("namespace"))
	case "component":
		s.once(seen, 1<<1, "component")
		row.Component = p.names[1].get(s.text("component"))
	case "producer_id":
		s.once(seen, 1<<2, "producer_id")
		row.ProducerID = p.names[2].get(s.text("producer_id"))
	default:
		if again := s.other(key); again != nil {
			p.sourceMember(s, row, again, seen)
		}
	}
}

// The keys of a metric, in the order of their bits.
func metricKeys() []string {
	return []string{"version", "counter_id", "worker_id", "dp_rank", "wall_time", "scheduled_requests", "queued_requests"}
}

// metric reads a payload, the value of a key.
func (p *Parser) metric(s *scan, row *Row, key, pointer string) {
	s.space()
	start := s.i
	if !s.open(key) {
		return
	}
	s.at = pointer
	var seen uint32
	for key, ok := s.key(true); ok && s.err == nil; key, ok = s.key(false) {
		p.metricMember(s, row, key, &seen, pointer)
	}
	if s.err != nil {
		return
	}
	want := uint32(1<<7 - 1)
	if row.Layout == Received && seen&3 == 0 {
		want &^= 3 // early engines
	}
	s.missing(start, seen, want, metricKeys())
	row.Numbered = seen&2 != 0
	row.JSON = s.b[start:s.i]
}

func (p *Parser) metricMember(s *scan, row *Row, key []byte, seen *uint32, pointer string) {
	switch string(key) {
	case "version":
		s.once(seen, 1<<0, "version")
		start := s.i
		if s.uint("version", math.MaxUint64) != 1 {
			s.fail(start, "version", "not version 1")
		}
	case "counter_id":
		s.once(seen, 1<<1, "counter_id")
		row.CounterID = int64(s.uint("counter_id", math.MaxInt64))
	case "worker_id":
		s.once(seen, 1<<2, "worker_id")
		row.WorkerID = p.names[3].get(s.text("worker_id"))
	case "dp_rank":
		s.once(seen, 1<<3, "dp_rank")
		row.DPRank = int64(s.uint("dp_rank", math.MaxInt64))
	case "wall_time":
		s.once(seen, 1<<4, "wall_time")
		row.WallTime = s.float("wall_time")
	case "scheduled_requests":
		s.once(seen, 1<<5, "scheduled_requests")
		s.load(&row.Scheduled, "scheduled_requests", pointer, requiredLoad|1<<4)
		s.at = pointer
	case "queued_requests":
		s.once(seen, 1<<6, "queued_requests")
		s.load(&row.Queued, "queued_requests", pointer, requiredLoad)
		s.at = pointer
	default:
		if again := s.other(key); again != nil {
			p.metricMember(s, row, again, seen, pointer)
		}
	}
}

// loadKeys are those of a load, in the order of their bits: the first four are required of
// both, the fifth of scheduled requests.
func loadKeys() []string {
	return []string{
		"num_prefill_requests", "sum_prefill_tokens", "num_decode_requests", "sum_decode_kv_tokens", "sum_prefill_kv_tokens",
		"var_prefill_length", "var_decode_kv_tokens",
	}
}

const requiredLoad = 1<<4 - 1

func (s *scan) load(l *wire.Load, key, pointer string, want uint32) {
	s.space()
	start := s.i
	if !s.open(key) {
		return
	}
	s.at = loadPointer(pointer, key)
	var seen uint32
	for key, ok := s.key(true); ok && s.err == nil; key, ok = s.key(false) {
		s.loadMember(l, key, &seen)
	}
	s.missing(start, seen, want, loadKeys())
}

// loadPointer is a concatenation that allocates nothing for the usual pointers.
func loadPointer(pointer, key string) string {
	switch {
	case pointer == "/event/fpm" && key == "scheduled_requests":
		return "/event/fpm/scheduled_requests"
	case pointer == "/event/fpm":
		return "/event/fpm/queued_requests"
	default:
		return pointer + "/" + key
	}
}

func (s *scan) loadMember(l *wire.Load, key []byte, seen *uint32) {
	switch string(key) {
	case "num_prefill_requests":
		s.once(seen, 1<<0, "num_prefill_requests")
		l.NumPrefillRequests = s.uint("num_prefill_requests", math.MaxUint64)
	case "sum_prefill_tokens":
		s.once(seen, 1<<1, "sum_prefill_tokens")
		l.SumPrefillTokens = s.uint("sum_prefill_tokens", math.MaxUint64)
	case "num_decode_requests":
		s.once(seen, 1<<2, "num_decode_requests")
		l.NumDecodeRequests = s.uint("num_decode_requests", math.MaxUint64)
	case "sum_decode_kv_tokens":
		s.once(seen, 1<<3, "sum_decode_kv_tokens")
		l.SumDecodeKVTokens = s.uint("sum_decode_kv_tokens", math.MaxUint64)
	case "sum_prefill_kv_tokens":
		s.once(seen, 1<<4, "sum_prefill_kv_tokens")
		l.SumPrefillKVTokens = s.uint("sum_prefill_kv_tokens", math.MaxUint64)
	case "var_prefill_length":
		s.once(seen, 1<<5, "var_prefill_length")
		l.VarPrefillLength = s.float("var_prefill_length")
	case "var_decode_kv_tokens":
		s.once(seen, 1<<6, "var_decode_kv_tokens")
		l.VarDecodeKVTokens = s.float("var_decode_kv_tokens")
	default:
		if again := s.other(key); again != nil {
			s.loadMember(l, again, seen)
		}
	}
}

// Blank tells whether a line has nothing but white space, which readers of JSON lines
// pass over.
func Blank(line []byte) bool { return len(bytes.TrimSpace(line)) == 0 }
