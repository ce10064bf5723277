package inspect

import (
	"errors"
	"io"
	"math"
	"slices"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/protocol"
	"github.com/fpm-project/fpm/warmup"
)

// Options says how a rank artifact is read.
type Options struct {
	File string // path as the user gave it
	// Rank is that of the findings where neither Strict nor dp.rank tells one.
	Rank int
	// Strict, where set, takes what breaks a strict rule that concerns one file:
	// protocol.value, measurement.strict, warmup.strict, strict.scheduled, strict.wall and
	// strict.regime. Those across files are for [Compare].
	Strict *finding.Scope
	// SkipGroups leaves iteration_groups out, which are equal in every file of a run.
	// GroupsAt, where known, is where they stand, so that they are not even scanned.
	SkipGroups bool
	GroupsAt   jsonstream.Span
}

const (
	maxBlock       = 1 << 20 // bytes of a block that is held as a tree
	maxBlockValues = 50_000
	maxSkipped     = 1000
	maxRecords     = 10_000
	maxMissing     = 16
)

// reader reads one document.
type reader struct {
	src   io.ReaderAt
	opt   Options
	s     *jsonstream.Scanner
	inner [2]*jsonstream.Scanner // of what can only be read later: lists, and rank results within them
	f     *Facts
	texts texts
	scope finding.Scope // of the strict rules

	seen     map[string]int64                           // offsets of the top-level values read so far
	delayed  map[string]func(*jsonstream.Scanner) error // lists that need what stands behind them
	contract protocol.Contract
	evidence *protocol.EvidenceReader
	outline  warmup.Outline
	history  warmup.History
	reasons  reasonLists
	warm     verdict
	groups   groupReader
	results  resultReader
}

// Read reads a rank artifact. What is missing or mistyped is left out of the facts. The
// error is one of reading src or of the document's text, and comes with the facts so far;
// the text is read as one that others check: only its grammar is looked at.
func Read(src io.ReaderAt, opt Options) (*Facts, error) {
	r := &reader{
		src: src, opt: opt, f: newFacts(opt.File), texts: texts{known: map[string]string{}},
		s:    jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{}),
		seen: map[string]int64{}, delayed: map[string]func(*jsonstream.Scanner) error{},
	}
	r.groups.r, r.results.r = r, r
	err := r.read()
	return r.f, err
}

func newFacts(file string) *Facts {
	return &Facts{
		File: file, Rank: finding.NoRank, Expected: -1, Completed: -1, SkippedCount: -1,
		Elapsed: math.NaN(), Measured: math.NaN(), Blocks: map[string]*jsonvalue.Value{}, BlockAt: map[string]int64{},
	}
}

func (r *reader) strict() bool { return r.opt.Strict != nil }

func (r *reader) read() (err error) {
	if r.strict() {
		r.scope = *r.opt.Strict
	}
	if r.f.Offset, _, err = r.s.Object(r.member); err != nil {
		return err
	}
	if err := r.s.End(); err != nil {
		return err
	}
	r.settle()
	for _, name := range []string{"results", "iteration_groups"} {
		if read := r.delayed[name]; read != nil {
			if err := read(r.scannerAt(0, r.seen[name])); err != nil {
				return err
			}
		}
	}
	if r.strict() {
		return r.judge()
	}
	return nil
}

// scannerAt returns a scanner of a part that was read before.
func (r *reader) scannerAt(level int, off int64) *jsonstream.Scanner {
	if r.inner[level] == nil {
		r.inner[level] = jsonstream.New(r.src, off, 1, jsonstream.Trusted, jsonstream.Limits{Window: 64 << 10})
	} else {
		r.inner[level].Reset(r.src, off, 1, jsonstream.Trusted)
	}
	return r.inner[level]
}

func (r *reader) member(name []byte) (err error) {
	key := string(name)
	switch key {
	case "dp", "measurement_protocol", "warmup_evidence", "kvwarm", "capacity", "results", "iteration_groups":
		r.seen[key] = r.s.NextOffset()
	}
	switch key {
	case "run_id", "grid_digest", "status", "stop_reason", "error":
		return r.readTextMember(key)
	case "valid", "usable", "timing_valid":
		return r.readSwitch(key)
	case "dp":
		return r.readDP()
	case "coverage":
		return r.readCoverage()
	case "timing":
		return r.readTiming()
	case "missing_phases":
		return r.readMissing()
	case "skipped_points":
		return r.readSkipped()
	case "config", "limits", "measurement_policy", "synthetic_prompts", "capacity", "cudagraph",
		"kvwarm", "recurrent_state", "measurement_protocol", "engine":
		return r.readBlock(key)
	case "warmup_evidence":
		return r.readLedger()
	case "results":
		return r.readList(key, r.results.read)
	case "iteration_groups":
		return r.readGroups()
	}
	_, err = r.s.Skip()
	return err
}

// readList reads a list now, or when what it is read by is known.
func (r *reader) readList(key string, read func(*jsonstream.Scanner) error) error {
	needs := []string{"dp"}
	if r.strict() {
		needs = append(needs, "measurement_protocol", "warmup_evidence", "kvwarm", "capacity")
	}
	for _, name := range needs {
		if _, ok := r.seen[name]; !ok {
			r.delayed[key] = read
			_, err := r.s.Skip()
			return err
		}
	}
	delete(r.delayed, key)
	r.settle()
	return read(r.s)
}

// settle takes what lists are read by from the blocks.
func (r *reader) settle() {
	if r.strict() {
		if r.scope.Rank == finding.NoRank {
			r.scope.Rank = r.opt.Rank
			if r.f.Rank != finding.NoRank {
				r.scope.Rank = r.f.Rank
			}
		}
		r.warm = r.f.kvWarmup()
		r.contract = protocol.Contract{Measurement: protocol.Unclear, Execution: protocol.Unclear}
		if !r.tooLarge("measurement_protocol") {
			ignored := finding.Scope{Out: finding.NewCollector(1)} // the merge reports it
			r.contract = protocol.Check(r.f.Blocks["measurement_protocol"], ignored)
		}
	}
	r.evidence = protocol.NewEvidenceReader(r.src, r.contract)
}

func (r *reader) readGroups() error {
	if !r.opt.SkipGroups {
		return r.readList("iteration_groups", r.groups.read)
	}
	if at := r.opt.GroupsAt; at.Len > 0 && at.Off == r.s.NextOffset() {
		return r.s.JumpTo(at.End())
	}
	_, err := r.s.Skip()
	return err
}

func (r *reader) readTextMember(key string) error {
	v, err := r.s.Scalar()
	text := r.texts.of(v)
	switch key {
	case "run_id":
		r.f.RunID = text
	case "grid_digest":
		r.f.GridDigest = text
	case "status":
		r.f.Status = text
	case "stop_reason":
		r.f.StopReason = text
	case "error":
		r.f.Error = text
	}
	return err
}

func (r *reader) readSwitch(key string) error {
	v, err := r.s.Scalar()
	var value *bool
	if v.Kind == 't' || v.Kind == 'f' {
		on := v.Kind == 't'
		value = &on
	}
	switch key {
	case "valid":
		r.f.Valid = value
	case "usable":
		r.f.Usable = value
	case "timing_valid":
		r.f.TimingValid = value
	}
	return err
}

// readFields reads the named members of an object.
func readFields(s *jsonstream.Scanner, fields map[string]*jsonstream.Field) error {
	_, _, err := s.Object(func(name []byte) (err error) {
		if f := fields[string(name)]; f != nil {
			*f, err = s.Field()
		} else {
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (r *reader) readDP() error {
	var rank, size jsonstream.Field
	err := readFields(r.s, map[string]*jsonstream.Field{"rank": &rank, "size": &size})
	r.f.Rank, r.f.Size = finding.NoRank, 0
	if rank.NonNegative() && rank.Int <= artifact.MaxRank {
		r.f.Rank = int(rank.Int)
	}
	if size.Integer && size.Int >= 1 && size.Int <= artifact.MaxRank+1 {
		r.f.Size = int(size.Int)
	}
	return err
}

func (r *reader) readCoverage() error {
	var expected, completed, skipped jsonstream.Field
	err := readFields(r.s, map[string]*jsonstream.Field{
		"expected_points": &expected, "completed_points": &completed, "skipped_points": &skipped,
	})
	r.f.Expected, r.f.Completed, r.f.SkippedCount = index(expected), index(completed), index(skipped)
	return err
}

// index is a count or an index, -1 when the value is none.
func index(f jsonstream.Field) int64 {
	if f.NonNegative() {
		return f.Int
	}
	return -1
}

// seconds is a time, NaN when the value is no finite number.
func seconds(f jsonstream.Float) float64 {
	if f.Finite {
		return f.Value
	}
	return math.NaN()
}

func (r *reader) readTiming() error {
	f, s := r.f, r.s
	_, _, err := s.Object(func(name []byte) (err error) {
		var v jsonstream.Scalar
		switch string(name) {
		case "started_at":
			v, err = s.Scalar()
			f.StartedAt = r.texts.of(v)
		case "completed_at":
			v, err = s.Scalar()
			f.CompletedAt = r.texts.of(v)
		case "benchmark_elapsed_seconds":
			v, err = s.Scalar()
			f.Elapsed = seconds(v.Float())
		case "measured_iteration_seconds":
			v, err = s.Scalar()
			f.Measured = seconds(v.Float())
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func (r *reader) readMissing() error {
	r.f.Missing = nil
	_, _, err := r.s.Array(func(int) error {
		v, err := r.s.Scalar()
		if text := r.texts.of(v); text != "" && len(r.f.Missing) < maxMissing {
			r.f.Missing = append(r.f.Missing, text)
		}
		return err
	})
	return err
}

func (r *reader) readSkipped() error {
	f, s := r.f, r.s
	f.Skipped, f.SkippedTotal = nil, 0
	_, _, err := s.Array(func(int) error {
		var x Skipped
		_, _, err := s.Object(func(name []byte) (err error) {
			switch string(name) {
			case "point":
				var p point
				p, err = r.readPoint(s)
				x.Coordinates = p.Coordinates
			case "reason", "kv_seed_regime":
				key := name[0]
				var v jsonstream.Scalar
				v, err = s.Scalar()
				if text := r.texts.of(v); key == 'r' {
					x.Reason = text
				} else {
					x.Regime = text
				}
			default:
				_, err = s.Skip()
			}
			return err
		})
		if f.SkippedTotal++; len(f.Skipped) < maxSkipped {
			f.Skipped = append(f.Skipped, x)
		}
		return err
	})
	return err
}

// readBlock reads a small block as a tree.
func (r *reader) readBlock(key string) error {
	delete(r.f.Blocks, key)
	span, err := r.s.Skip()
	if err != nil {
		return err
	}
	r.f.BlockAt[key] = span.Off
	tree, err := r.tree(span, maxBlock)
	switch {
	case err != nil:
		return err
	case tree != nil:
		r.f.Blocks[key] = tree
	case !r.tooLarge(key):
		r.f.TooLarge = append(r.f.TooLarge, key)
	}
	return nil
}

func (r *reader) tooLarge(key string) bool { return slices.Contains(r.f.TooLarge, key) }

// tree reads a value that was scanned before; one of more than most bytes, or of too many
// values, is nil.
func (r *reader) tree(span jsonstream.Span, most int64) (*jsonvalue.Value, error) {
	if span.Len > most {
		return nil, nil
	}
	text := make([]byte, span.Len)
	if n, err := r.src.ReadAt(text, span.Off); n < len(text) {
		return nil, &jsonstream.ReadError{Offset: span.Off + int64(n), Err: err}
	}
	parser := jsonvalue.Parser{MaxValues: maxBlockValues}
	tree, err := parser.Parse(text, span.Off)
	if errors.Is(err, jsonvalue.ErrValues) {
		return nil, nil
	}
	return tree, err
}

func (r *reader) readLedger() error {
	f := r.f
	f.Warmup, f.WarmupTotal = nil, 0
	r.history.Reset()
	o, err := warmup.Walk(r.s, func(x *warmup.Record) error {
		r.history.Add(x)
		if f.WarmupTotal++; len(f.Warmup) >= maxRecords {
			return nil
		}
		shape, err := r.shape(x.Shape)
		f.Warmup = append(f.Warmup, WarmupRecord{
			Kind: r.texts.keep(x.Kind.Text), Status: r.texts.keep(x.Status.Text),
			Validation: r.texts.keep(x.Verdict.Text), Reason: r.texts.keep(x.Reason.Text),
			Start: index(x.Start), End: index(x.End), Count: index(x.Count), CompletedBefore: index(x.CompletedBefore),
			Shape: shape,
		})
		return err
	})
	r.outline = o
	f.WarmupStatus = r.texts.keep(o.Status.Text)
	return err
}

// shape is the text of a requested shape.
func (r *reader) shape(span jsonstream.Span) (string, error) {
	const most = 200
	if span.Len == 0 {
		return "", nil
	}
	tree, err := r.tree(span, 4<<10)
	if err != nil {
		return "", err
	}
	if tree == nil {
		return jsonstream.Excerpt(r.src, span.Off, most-len(cut)), nil
	}
	return tree.Excerpt(most), nil
}

// judge applies the strict rules about what was read as a whole.
func (r *reader) judge() error {
	if tree := r.f.Blocks["measurement_protocol"]; tree != nil {
		protocol.CheckValues(tree, r.scope)
	} else if r.tooLarge("measurement_protocol") {
		r.scope.Says(finding.ProtocolValue, "/measurement_protocol", r.f.BlockAt["measurement_protocol"],
			"the protocol is too large to be judged", "at most 1 MiB and 50,000 values", "")
	}
	if r.contract.Execution != protocol.Declared || !r.outline.Recorded() {
		return nil
	}
	results := math.MaxInt // how many is not known where they are no list
	if r.results.list {
		results = r.results.n
	}
	return warmup.CheckStrict(r.scannerAt(0, r.seen["warmup_evidence"]), r.scope, results)
}
