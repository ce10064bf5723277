// Package detect tells by its content what a file is: a rank artifact, a merged artifact,
// a worker-probe sidecar, a trace, or something else that can be named.
//
// Names lie and are lost in copies; the top-level keys of a document do not. [Look] reads
// keys until they decide, which with a rank artifact is long before its measurements. It
// judges nothing: a file that it takes for a rank artifact may still be an unsound one,
// and the rules say so.
package detect

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// Kind is what a file is.
type Kind string

// The kinds. Only the first four hold evidence.
const (
	Rank     Kind = "rank"     // a rank artifact
	Merged   Kind = "merged"   // a merged artifact
	Sidecar  Kind = "sidecar"  // the worker-probe sidecar of a merged artifact
	Trace    Kind = "trace"    // a segment of a trace
	Replies  Kind = "replies"  // what workers replied to a probe
	Manifest Kind = "manifest" // the manifest of a trace
	Foreign  Kind = "foreign"  // another tool's document; File.What names it
	Leftover Kind = "leftover" // the temporary file of a writer that did not finish, or has not yet
	Damaged  Kind = "damaged"  // JSON that is cut off or broken before it tells what it is
	Unknown  Kind = "unknown"  // nothing that is known
)

// Kinds returns the kinds that hold evidence and can be asked for.
func Kinds() []Kind { return []Kind{Rank, Merged, Sidecar, Trace} }

// File is what is known of a file before it is checked.
type File struct {
	Kind        Kind
	What        string // the kind in words, such as "a result of vLLM's serving benchmark"
	RunID       string // run_id where it was read; empty otherwise
	DPRank      int    // dp.rank of a rank artifact where it was read; finding.NoRank otherwise
	SourceRanks []int  // dp.source_ranks of a merged artifact where they were read
}

// traceSchema is the schema of a trace's events.
const traceSchema = "dynamo.fpm.trace.v1"

// Look tells what a file is. The name matters for leftovers and for JSON lines only: a
// file without sound text whose name is that of JSON lines is one of a trace, for nothing
// else that fpm knows is kept so. The error is one of reading, not of the text.
func Look(src io.ReaderAt, name string) (File, error) {
	d := look{src: src, rank: finding.NoRank}
	err := d.read()
	var read *jsonstream.ReadError
	if errors.As(err, &read) && !isDamage(err) {
		return File{}, read.Err
	}
	f := d.decide(err)
	if !d.array && (f.Kind == Damaged || f.Kind == Unknown) && (lines(name) && f.Kind == Damaged || d.laterRow()) {
		f.Kind, f.What = Trace, aTrace
	}
	if temporary(name) {
		f.Kind, f.What = Leftover, "the temporary file of a writer that did not finish, or has not yet"
	}
	return f, nil
}

// isDamage tells whether a file cannot be read because of what it holds.
func isDamage(err error) bool {
	var corrupt *input.CorruptError
	var limit *input.LimitError
	return errors.As(err, &corrupt) || errors.As(err, &limit) || errors.Is(err, io.ErrUnexpectedEOF)
}

// temporary tells whether a name is one that a writer gives a file before it is whole:
// that of the self-benchmark, and that of fpm.
func temporary(name string) bool { return strings.HasSuffix(name, ".tmp") }

const aTrace = "a segment of a trace"

// lines tells whether a name is one of JSON lines, compressed or not.
func lines(name string) bool {
	for _, suffix := range [...]string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.HasSuffix(name, ".jsonl")
}

// maxLater bounds the text in which a row is looked for behind a first line that is none,
// in bytes: a hundred rows.
const maxLater = 64 << 10

// laterRow tells whether one of the lines behind the first is a row of a trace.
func (d *look) laterRow() bool {
	text := make([]byte, maxLater)
	n, _ := d.src.ReadAt(text, 0) // what cannot be read is not there
	_, rest, more := bytes.Cut(text[:n], []byte("\n"))
	for more {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte("\n"))
		row := look{src: bytes.NewReader(line), rank: finding.NoRank}
		if err := row.read(); err != nil || row.array {
			continue
		}
		if kind, _ := row.kind(); kind == Trace {
			return true
		}
	}
	return false
}

// look is the state of one look.
type look struct {
	src    io.ReaderAt
	array  bool // the document is a list
	object bool // the document, or the first entry of the list, is an object
	keys   map[string]bool
	texts  map[string]string // of the keys that name a kind
	inner  map[string]bool   // keys of dp
	rank   int               // dp.rank
	ranks  []int             // dp.source_ranks
	event  string            // event.schema
	more   bool              // another document follows, as in JSON lines
}

var errDecided = errors.New("decided")

// maxKeys bounds the keys that are remembered: a document with more is none that is known.
const maxKeys = 4096

func (d *look) read() error {
	d.keys, d.texts, d.inner = map[string]bool{}, map[string]string{}, map[string]bool{}
	s := jsonstream.New(d.src, 0, 0, jsonstream.Trusted, jsonstream.Limits{Window: 64 << 10}) // there can be very many files
	if s.Peek() == '[' {
		d.array = true
		_, _, err := s.Array(func(int) error {
			_, object, err := s.Object(func(name []byte) error { return d.member(s, name) })
			d.object = object
			return errors.Join(err, errDecided)
		})
		return undecided(err)
	}
	_, object, err := s.Object(func(name []byte) error { return d.member(s, name) })
	d.object = object || len(d.keys) > 0
	if err == nil {
		end := s.Offset()
		if err = s.End(); err != nil {
			d.more = d.another(end)
		}
	}
	return undecided(err)
}

func undecided(err error) error {
	if errors.Is(err, errDecided) {
		return nil
	}
	return err
}

// another tells whether an object follows on the next line.
func (d *look) another(end int64) bool {
	rest := make([]byte, 64)
	n, _ := d.src.ReadAt(rest, end) // what cannot be read is not there
	rest = rest[:n]
	trimmed := bytes.TrimLeft(rest, " \t\r\n")
	return bytes.IndexByte(rest[:len(rest)-len(trimmed)], '\n') >= 0 && bytes.HasPrefix(trimmed, []byte("{"))
}

func (d *look) member(s *jsonstream.Scanner, name []byte) error {
	key := string(name)
	if len(d.keys) < maxKeys && len(key) <= 64 {
		d.keys[key] = true
	}
	switch key {
	case "schema", "artifact_type", "run_id":
		v, err := s.Scalar()
		if err != nil {
			return err
		}
		if text, ok := v.Text(); ok && len(text) <= 4096 {
			d.texts[key] = text
		}
	case "dp":
		if _, _, err := s.Object(func(name []byte) error { return d.dpMember(s, name) }); err != nil {
			return err
		}
	case "event":
		if _, _, err := s.Object(func(name []byte) error { return d.eventMember(s, name) }); err != nil {
			return err
		}
	default:
		if _, err := s.Skip(); err != nil {
			return err
		}
	}
	if d.decided() {
		return errDecided
	}
	return nil
}

func (d *look) dpMember(s *jsonstream.Scanner, name []byte) error {
	if len(d.inner) < maxKeys {
		d.inner[string(name[:min(len(name), 64)])] = true
	}
	switch string(name) {
	case "source_ranks":
	case "rank":
		f, err := s.Field()
		if f.NonNegative() && f.Int <= artifact.MaxRank {
			d.rank = int(f.Int)
		}
		return err
	default:
		_, err := s.Skip()
		return err
	}
	_, _, err := s.Array(func(int) error {
		f, err := s.Field()
		if f.NonNegative() && f.Int <= artifact.MaxRank && len(d.ranks) <= artifact.MaxRank {
			d.ranks = append(d.ranks, int(f.Int))
		}
		return err
	})
	return err
}

func (d *look) eventMember(s *jsonstream.Scanner, name []byte) error {
	if string(name) != "schema" {
		_, err := s.Skip()
		return err
	}
	v, err := s.Scalar()
	d.event, _ = v.Text()
	return err
}

// decided tells that no later key can change the outcome.
func (d *look) decided() bool {
	switch d.texts["artifact_type"] {
	case "rank", "merged":
		return d.texts["run_id"] != "" && d.keys["dp"]
	}
	return !d.array && d.texts["schema"] == sidecarSchema && d.texts["run_id"] != ""
}

const sidecarSchema = "dynamo.fpm.benchmark_worker_probe"

// decide names the kind after what was read, until an error if there was one.
func (d *look) decide(err error) File {
	f := File{RunID: d.texts["run_id"], DPRank: d.rank, SourceRanks: d.ranks}
	f.Kind, f.What = d.kind()
	if f.Kind == Unknown && err != nil && !d.more {
		f.Kind, f.What = Damaged, "not JSON: "+why(err)
	}
	return f
}

func why(err error) string {
	var fault *jsonstream.Fault
	if errors.As(err, &fault) {
		return fault.Message
	}
	return err.Error()
}

func (d *look) kind() (Kind, string) {
	if kind, what := d.declared(); kind != "" && !d.array {
		return kind, what
	}
	switch {
	case d.has("worker_rank") && d.array, d.has("results") && len(d.keys) == 1:
		return Replies, "the replies of workers to a probe"
	case d.array:
		return d.foreign()
	case d.has("merged", "ranks"):
		return Sidecar, aSidecar
	case d.event == traceSchema, d.has("received_at_ns", "metrics"), d.has("timestamp", "event"):
		return Trace, aTrace
	case strings.HasPrefix(d.texts["schema"], "fpm.trace.manifest"):
		return Manifest, "the manifest of a trace"
	case d.inner["source_ranks"]:
		return Merged, aMerged
	case d.rankLike():
		return Rank, aRank
	}
	return d.foreign()
}

const (
	aRank    = "a rank artifact"
	aMerged  = "a merged artifact"
	aSidecar = "a worker-probe sidecar"
)

// declared is the kind that a document says it is of, which counts more than the keys that
// it has: one that has those of another kind too is a broken document of its own kind. A
// rank artifact that calls itself merged, as nothing else in it does, is no merged one.
func (d *look) declared() (Kind, string) {
	switch {
	case d.texts["artifact_type"] == "rank":
		return Rank, aRank
	case d.texts["artifact_type"] == "merged" && (d.inner["source_ranks"] || !d.inner["rank"]):
		return Merged, aMerged
	case d.texts["schema"] == sidecarSchema:
		return Sidecar, aSidecar
	}
	return "", ""
}

func (d *look) has(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !d.keys[key] })
}

// rankLike tells a rank artifact that does not say so by keys that no other tool's
// document has, or has together.
func (d *look) rankLike() bool {
	return d.has("iteration_groups") || d.has("grid_digest") || d.has("kvwarm") || d.has("run_id", "dp") || d.has("results", "coverage")
}

// signature is how another tool's document is told.
type signature struct {
	keys []string
	what string
}

// signatures are tried in order: more special ones come first.
var signatures = [...]signature{
	{[]string{"schema", "schema_version", "command", "findings"}, "a report of fpm itself"},
	{[]string{"request_throughput", "mean_ttft_ms", "backend"}, "a result of vLLM's or SGLang's serving benchmark"},
	{[]string{"request_throughput", "mean_ttft_ms"}, "a result of a serving benchmark"},
	{[]string{"backend", "successful_requests", "total_latency"}, "a result of SGLang's offline throughput benchmark"},
	{[]string{"avg_latency", "latencies", "percentiles"}, "a result of vLLM's latency benchmark"},
	{[]string{"elapsed_time", "num_requests", "total_num_tokens", "requests_per_second"}, "a result of vLLM's throughput benchmark"},
	{[]string{"run_name", "batch_size", "input_len", "output_len"}, "a result of SGLang's one-batch benchmark"},
	{[]string{"engine", "world_info", "performance"}, "a report of TensorRT-LLM's benchmark"},
	{[]string{"iter", "iterLatencyMS"}, "an iteration log of TensorRT-LLM"},
	{[]string{"request_throughput", "time_to_first_token", "inter_token_latency"}, "a result of GenAI-Perf or AIPerf"},
	{[]string{"experiments", "endpoint", "service_kind"}, "a profile of GenAI-Perf"},
	{[]string{"mean_input_tokens", "mean_output_tokens", "num_concurrent_requests"}, "a summary of LLMPerf"},
	{[]string{"request_throughput", "output_throughput"}, "a result of a serving benchmark"},
	{[]string{"benchmark", "model", "metric"}, "results in the form of the PyTorch benchmark database"},
	{[]string{"benchmarks", "args"}, "a report of GuideLLM"},
	{[]string{"benchmarks"}, "a report of a benchmark suite"},
	{[]string{"results", "configs", "versions", "n-shot"}, "a result of lm-evaluation-harness"},
	{[]string{"traceEvents"}, "a profile in Chrome's trace format"},
	{[]string{"$schema", "runs", "version"}, "a SARIF log"},
	{[]string{"$schema"}, "a JSON Schema, or a document that names one"},
}

func (d *look) foreign() (Kind, string) {
	for _, s := range signatures {
		if d.has(s.keys...) {
			return Foreign, s.what
		}
	}
	switch {
	case d.array:
		return Unknown, "a JSON list that fpm does not know"
	case d.object && d.more:
		return Unknown, "JSON lines that fpm does not know"
	case d.object:
		return Unknown, "a JSON object that fpm does not know"
	}
	return Unknown, "no JSON object"
}
