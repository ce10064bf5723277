package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fpm-project/fpm/internal/atomicfile"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// The name and version of the manifest's layout.
const (
	ManifestSchema  = "fpm.trace.manifest"
	ManifestVersion = 1
)

// ManifestNote stands in every manifest: what complete does not mean.
const ManifestNote = "complete means that nothing which was received here is lost. A message that its publisher dropped after numbering it, " +
	"or that the network lost, is counted as missing. What was dropped before it was numbered, sent before this recorder joined or after it left, cannot be seen from here."

// State is how far a recording has come.
type State string

// The states.
const (
	Recording State = "recording" // or killed: then the manifest is not replaced any more
	Stopped   State = "stopped"   // everything that was received is written or counted as lost
	Abandoned State = "abandoned" // writing did not end in time
)

// maxFiles is how many of a producer's newest files a manifest names.
const maxFiles = 64

// Manifest is what a recorder knows of its recording.
type Manifest struct {
	Schema        string `json:"schema"` // ManifestSchema
	SchemaVersion int    `json:"schema_version"`
	Program       string `json:"program"` // what recorded
	State         State  `json:"state"`

	// Complete is true only after a clean stop with nothing lost here.
	Complete bool   `json:"complete"`
	Note     string `json:"note"` // ManifestNote

	StartedUnixMS int64     `json:"started_unix_ms"` // wall clock
	UpdatedUnixMS int64     `json:"updated_unix_ms"`
	RecordedMS    int64     `json:"recorded_ms"` // monotonic
	Previous      *Previous `json:"previous,omitempty"`

	Prefix           string    `json:"prefix"`
	Mode             wire.Mode `json:"capture_mode"`
	SampleIntervalMS int64     `json:"sample_interval_ms,omitempty"`
	RollBytes        uint64    `json:"roll_bytes,omitempty"`
	MaxSegments      int       `json:"max_segments,omitempty"`

	Totals    Totals          `json:"totals"`
	Forgotten *Forgotten      `json:"forgotten,omitempty"`
	Endpoints []EndpointState `json:"endpoints"`
	Producers []Producer      `json:"producers"`

	path    string
	unsaved bool
}

// Saved tells whether the file at its path says the same. Where a disk is full it does not,
// and an older one may be there.
func (m *Manifest) Saved() bool { return !m.unsaved }

// Path returns where the manifest is written to.
func (m *Manifest) Path() string { return m.path }

// Previous is what the manifest said that this one replaced.
type Previous struct {
	State         State `json:"state"`
	Complete      bool  `json:"complete"`
	StartedUnixMS int64 `json:"started_unix_ms"`
	UpdatedUnixMS int64 `json:"updated_unix_ms"`
}

// Totals are the counts of all streams together.
type Totals struct {
	Counts
	Pending    uint64 `json:"pending"`          // received, neither written nor lost so far
	Crowded    uint64 `json:"crowded_out"`      // lost here: of a new stream when there were too many or their ids too long, or too large for the memory that was left
	Rejected   uint64 `json:"rejected"`         // messages that are no valid payload
	Bytes      uint64 `json:"bytes"`            // of text written
	Compressed uint64 `json:"compressed_bytes"` // as files
	Segments   uint64 `json:"segments"`         // created
	Deleted    uint64 `json:"deleted_segments"` // because a producer had too many
}

// Lost is the number of payloads that were received and are lost all the same.
func (t Totals) Lost() uint64 { return t.Counts.Lost() + t.Crowded }

// Forgotten are streams that were silent when there was no room for new ones.
type Forgotten struct {
	Streams int    `json:"streams"`
	Counts  Counts `json:"counts"`
}

// EndpointState is what is known of an endpoint.
type EndpointState struct {
	Address   string            `json:"address"`
	Namespace string            `json:"namespace"`
	Component string            `json:"component"`
	Connected bool              `json:"connected"`
	Connects  uint64            `json:"connects"`
	Delivered bool              `json:"delivered"` // a valid payload, ever
	Received  uint64            `json:"received"`  // valid payloads
	Rejected  map[string]uint64 `json:"rejected"`  // messages by reason, those that occurred
	Crowded   uint64            `json:"crowded_out"`
	Silent    string            `json:"silent,omitempty"`  // why nothing comes, as far as it can be told
	Failure   string            `json:"failure,omitempty"` // why there is no connection
}

// Producer is the files of one producer and what went into them.
type Producer struct {
	ProducerID string   `json:"producer_id"`        // its beginning and its hash when it is longer than 1024 bytes
	Disabled   string   `json:"disabled,omitempty"` // why nothing is written any more
	Files      []string `json:"files"`              // base names of the newest, in order
	FilesTotal int      `json:"files_total"`
	Streams    []Stream `json:"streams"`
}

// Stream is one rank of a producer at one endpoint.
type Stream struct {
	Rank     int64  `json:"dp_rank"`
	WorkerID string `json:"worker_id"` // as the producer's id
	Endpoint string `json:"endpoint"`
	AlsoAt   string `json:"also_at,omitempty"` // endpoint at which the same worker and rank was alive when this began
	Counts
	Pending      uint64            `json:"pending"`
	Rejected     map[string]uint64 `json:"rejected"` // messages by reason, refused at the endpoint while this stream was the one there
	FirstCounter int64             `json:"first_counter"`
	LastCounter  int64             `json:"last_counter"`
	FirstUnixMS  int64             `json:"first_unix_ms"`
	LastUnixMS   int64             `json:"last_unix_ms"`
}

// pending is what of the counts is neither written nor lost so far.
func (c Counts) pending() uint64 {
	return c.Received - c.Written - c.Thinned - c.Surplus - c.Lost()
}

// Snapshot returns the manifest as it would be written now. It may be called at any time.
func (r *Recorder) Snapshot() *Manifest {
	now := r.clock.now()
	r.mu.Lock()
	state := r.state
	r.mu.Unlock()
	m := &Manifest{
		Schema: ManifestSchema, SchemaVersion: ManifestVersion, Program: "fpm " + r.opt.Version, Note: ManifestNote,
		StartedUnixMS: r.started, UpdatedUnixMS: now.wallMS, RecordedMS: now.since.Milliseconds(),
		Previous: r.manifest.previous,
		Prefix:   r.prefix, Mode: r.opt.Mode, RollBytes: r.opt.RollBytes, MaxSegments: r.opt.MaxSegments,
		State: state, Totals: r.totals(), Forgotten: r.forgotten(), path: r.manifest.path,
	}
	if r.opt.Mode == wire.Sampled {
		m.SampleIntervalMS = r.opt.SampleInterval.Milliseconds()
	}
	for _, e := range r.endpoints {
		m.Endpoints = append(m.Endpoints, e.state())
	}
	m.Producers = r.producers()
	m.Complete = m.State == Stopped && m.Totals.Lost() == 0 && m.Totals.Pending == 0
	return m
}

// Totals returns the counts of all streams together. It may be called at any time.
func (r *Recorder) Totals() Totals { return r.totals() }

func (r *Recorder) totals() (t Totals) {
	for _, s := range r.registry.list() {
		t.Counts.add(s.get())
	}
	t.Counts.add(r.registry.rest.get())
	t.Pending = t.Counts.pending()
	for _, e := range r.endpoints {
		t.Crowded += e.crowded.Load()
		for i := range e.rejected {
			t.Rejected += e.rejected[i].Load()
		}
	}
	all, stats := r.files()
	for _, s := range all {
		public, _, _ := s.published()
		stats = sum(stats, public)
	}
	t.Bytes, t.Compressed, t.Segments, t.Deleted = stats.Bytes, stats.Compressed, stats.Segments, stats.Deleted
	return t
}

func (s *stream) get() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts
}

func (r *Recorder) forgotten() *Forgotten {
	r.registry.mu.RLock()
	defer r.registry.mu.RUnlock()
	if r.registry.forgotten == 0 {
		return nil
	}
	return &Forgotten{r.registry.forgotten, r.registry.rest.get()}
}

// files returns the files of all producers, and what is known of those that are not told
// apart any more.
func (r *Recorder) files() (all []*series, past segment.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.series {
		all = append(all, s)
	}
	return all, r.past
}

func (e *endpoint) state() EndpointState {
	var rejected [reasons]uint64
	for i := range rejected {
		rejected[i] = e.rejected[i].Load()
	}
	return EndpointState{
		Address: e.address, Namespace: e.namespace, Component: e.component,
		Connected: e.connected.Load(), Connects: e.connects.Load(), Delivered: e.delivered(),
		Received: e.received.Load(), Crowded: e.crowded.Load(), Rejected: byReason(rejected), Silent: e.silence(), Failure: e.failure(),
	}
}

// byReason returns the counts that are not 0 by the names of their reasons.
func byReason(counts [reasons]uint64) map[string]uint64 {
	named := map[string]uint64{}
	for _, reason := range wire.Reasons() {
		if n := counts[reason]; n > 0 {
			named[reason.String()] = n
		}
	}
	return named
}

// producers returns the streams by producer, with the files that they are in.
func (r *Recorder) producers() (list []Producer) {
	before := ""
	for _, s := range r.registry.list() {
		if len(list) == 0 || before != s.producer {
			list = append(list, r.producer(s))
			before = s.producer
		}
		p := &list[len(list)-1]
		p.Streams = append(p.Streams, s.state())
	}
	return list
}

func (r *Recorder) producer(s *stream) Producer {
	p := Producer{ProducerID: identify(s.producer), Files: []string{}}
	files := r.file(s.series)
	if files == nil {
		return p
	}
	_, paths, disabled := files.published()
	p.Disabled, p.FilesTotal = disabled, len(paths)
	for _, path := range paths[max(0, len(paths)-maxFiles):] {
		p.Files = append(p.Files, filepath.Base(path))
	}
	return p
}

func (s *stream) state() Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stream{
		Rank: s.key.rank, WorkerID: identify(s.key.worker), Endpoint: s.endpoint.address, AlsoAt: s.alsoAt, Counts: s.counts, Pending: s.counts.pending(), Rejected: byReason(s.rejected),
		FirstCounter: s.first, LastCounter: s.last, FirstUnixMS: s.firstMS, LastUnixMS: s.lastMS,
	}
}

// WriteTo writes the manifest as JSON: a producer a line, so that one with many needs
// little memory and is readable.
func (m *Manifest) WriteTo(w io.Writer) (int64, error) {
	head := *m
	head.Producers = nil
	text, err := encode(head)
	if err != nil {
		return 0, err
	}
	const end = `"producers":null}`
	text = bytes.TrimSuffix(text, []byte(end))
	out := &counting{w: w}
	b := bufio.NewWriterSize(out, 64<<10)
	b.Write(text)
	b.WriteString(`"producers":[`)
	for i, p := range m.Producers {
		if text, err = encode(p); err != nil {
			return out.n, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n")
		b.Write(text)
	}
	b.WriteString("\n]}\n")
	err = b.Flush() // which has the errors of the writes before
	return out.n, err
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// manifestFile is the manifest's place. A lock beside it says whose it is.
type manifestFile struct {
	path     string
	lock     *os.File
	shared   bool // another recorder of this prefix is running
	previous *Previous
}

// claimManifest finds the manifest for a recorder of a prefix: <prefix>.manifest.json, or
// <prefix>.manifest-2.json and so on when other recorders of this prefix are running.
// Refusing to start was the alternative, but a prefix in a common directory is what
// several workers of a host share by default, and their files do not collide.
func claimManifest(prefix string) (*manifestFile, error) {
	taken := false
	for n := 1; ; n++ {
		name := prefix + ".manifest"
		if n > 1 {
			name += fmt.Sprintf("-%d", n)
		}
		lock, busy, err := claim(name + ".lock")
		taken = taken || busy
		if err == nil && lock == nil && n < maxRecorders {
			continue
		}
		if err != nil {
			return nil, err
		}
		m := &manifestFile{path: name + ".json", lock: lock, shared: taken}
		if err := m.inspect(); err != nil {
			return nil, errors.Join(err, m.release())
		}
		return m, nil
	}
}

// release gives the manifest up. The lock file stays: to remove it would let two
// recorders hold locks of one name.
func (m *manifestFile) release() error {
	if m.lock == nil {
		return nil
	}
	return m.lock.Close()
}

// inspect reads the manifest that is there, and refuses to replace anything else.
func (m *manifestFile) inspect() error {
	if err := m.regular(); err != nil {
		return err
	}
	f, err := os.Open(m.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	defer f.Close()
	var old struct {
		Schema string `json:"schema"`
		Previous
	}
	// The members that are read stand before the first list, so a part of the text does.
	head, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return err
	}
	text, _, _ := strings.Cut(string(head), `,"endpoints":`)
	if json.Unmarshal([]byte(text+"}"), &old) != nil || old.Schema != ManifestSchema {
		return &exitcode.Error{Code: exitcode.Failed, File: m.path, Message: "the file is there and is no manifest of a trace", Hint: "choose another prefix with --output, or move the file away"}
	}
	m.previous = &old.Previous
	return nil
}

// regular refuses a path that a file is not to be put in place of. A link would be
// followed, which in a directory that everybody can write to anybody could have made.
func (m *manifestFile) regular() error {
	info, err := os.Lstat(m.path)
	if err == nil && !info.Mode().IsRegular() {
		return &exitcode.Error{Code: exitcode.Failed, File: m.path, Message: "the manifest cannot be written: there is something that is no regular file", Hint: "choose another prefix with --output, or move it away"}
	}
	return nil
}

// write replaces the manifest.
func (m *manifestFile) write(content *Manifest) (err error) {
	if err := m.regular(); err != nil {
		return err
	}
	f, err := atomicfile.Create(m.path)
	if err != nil {
		return err
	}
	if _, err := content.WriteTo(f); err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Abort())
	}
	if err := f.Commit(); err != nil {
		return errors.Join(err, f.Abort())
	}
	return nil
}
