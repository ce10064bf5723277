package merge

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonspan"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/protocol"
	"github.com/fpm-project/fpm/warmup"
)

// reading is what a file is read as: the artifact of a rank, or a merged one.
type reading interface {
	begin()                   // the reading begins, perhaps once more
	member(name []byte) error // reads the value of a top-level key
	judge() error             // applies the rules to the file that was read
}

// scanner reads rank files, one after the other. It serves one goroutine.
type scanner struct {
	r       *run
	s       *jsonstream.Scanner // of the whole file
	inner   *jsonstream.Scanner // of a part that is read again
	compare *jsonspan.Comparer
	points  resultIndex

	merged bool // what is read is a merged artifact

	// Of the file at hand:
	f        *rankFile
	mode     jsonstream.Mode
	out      *finding.Collector
	scope    finding.Scope
	head     map[string]*jsonvalue.Value
	lists    map[string]*list
	contract protocol.Contract
	declared bool         // contract was read
	groups   *groupIndex  // when the file is to be the reference
	layout   *layoutCheck // of its groups
	same     bool         // its groups have the reference's text
	status   status
}

// list is a top-level list.
type list struct {
	place
	n int
}

func newScanner(r *run) *scanner {
	return &scanner{
		r:       r,
		s:       newWhole(),
		inner:   jsonstream.New(nil, 0, 0, jsonstream.Trusted, jsonstream.Limits{Window: 64 << 10}),
		compare: jsonspan.New(),
	}
}

// newWhole returns a scanner of whole files.
func newWhole() *jsonstream.Scanner {
	return jsonstream.New(nil, 0, 0, jsonstream.Strict, jsonstream.Limits{})
}

// scan reads a file, applies every rule that needs no other file than the reference's,
// and keeps what the rest needs.
func (sc *scanner) scan(f *rankFile) { sc.scanAs(f, sc) }

func (sc *scanner) scanAs(f *rankFile, as reading) {
	sc.f = f
	defer sc.dropLayout()
	err := sc.scanIn(jsonstream.Strict, as)
	var fault *jsonstream.Fault
	if errors.As(err, &fault) {
		// What the text is at fault with, and where, is found by a plain read from its
		// beginning: parts of it may have been jumped over. A scanner that has read a million
		// keys holds them; two would hold twice as much.
		sc.s = newWhole()
		lenient, found := jsonstream.Check(f.src, jsonstream.Limits{})
		switch {
		case lenient && found == nil:
			err = sc.scanIn(jsonstream.Lenient, as)
		case found != nil:
			err = found
		}
	}
	if err == nil {
		err = as.judge()
	}
	if err != nil {
		sc.r.failText(f, err)
		return
	}
	sc.r.out.Merge(sc.out)
	if len(sc.r.files) > manyFiles {
		f.err = f.in.Suspend()
	}
}

// failText reports an error of reading a file: a finding when it is about the text, a
// failure otherwise.
func (r *run) failText(f *rankFile, err error) {
	f.parsed = false
	var fault *jsonstream.Fault
	var corrupt *input.CorruptError
	var limit *input.LimitError
	scope := r.scope(f, r.out)
	var read *jsonstream.ReadError
	at := int64(-1)
	if errors.As(err, &read) {
		at = read.Offset
	}
	about := strings.TrimPrefix(err.Error(), f.path+": ")
	switch {
	case errors.As(err, &fault):
		scope.Says(fault.Rule, fault.Pointer, fault.Offset, about, "", "")
	case errors.As(err, &corrupt), errors.Is(err, io.ErrUnexpectedEOF):
		scope.Says(finding.JSONSyntax, "", at, about, "", "")
	case errors.As(err, &limit):
		scope.Says(finding.InputLimit, "", at, about, "", "")
	default:
		f.err = err
	}
}

func (sc *scanner) reset(mode jsonstream.Mode) {
	sc.mode = mode
	sc.out = finding.NewCollector(sc.r.opt.MaxFindings)
	sc.scope = sc.r.scope(sc.f, sc.out)
	sc.head = map[string]*jsonvalue.Value{}
	sc.lists = map[string]*list{}
	sc.contract, sc.declared, sc.groups, sc.same = protocol.Contract{}, false, nil, false
	sc.points.reset()
	sc.f.members, sc.f.texts = nil, regimeTable{}
	sc.f.timing, sc.f.engine, sc.f.warmup, sc.f.groups = place{}, place{}, place{}, jsonstream.Span{}
	sc.s.Reset(sc.f.src, 0, 0, mode)
}

func (sc *scanner) scanIn(mode jsonstream.Mode, as reading) (err error) {
	sc.reset(mode)
	as.begin()
	sc.f.root, sc.f.parsed, err = sc.s.Object(as.member)
	if err != nil {
		return err
	}
	return sc.s.End()
}

// isReference tells whether the file is read as the reference.
func (sc *scanner) isReference() bool { return sc.r.ref == nil }

func (sc *scanner) begin() {}

func (sc *scanner) member(name []byte) (err error) {
	key := string(name)
	written := sc.isReference() && !sc.r.opt.CheckOnly
	if written {
		sc.f.members = append(sc.f.members, member{raw: sc.s.NameLiteral(), name: key})
	}
	kind, start := jsonvalue.Kind(sc.s.Peek()), sc.s.NextOffset()
	switch key {
	case "schema_version", "artifact_type", "status", "valid", "usable", "stop_reason", "run_id", "grid_digest", "error":
		sc.head[key], err = sc.readScalar(kind)
	case "coverage", "dp", "timing", "measurement_protocol":
		sc.head[key], err = sc.s.Tree(maxBlock)
	case "skipped_points", "missing_phases":
		sc.lists[key], err = sc.countList()
	case "results":
		err = sc.readResults()
		sc.lists[key] = &list{n: sc.points.len()}
	case "iteration_groups":
		err = sc.readGroups(kind, start)
	default:
		_, err = sc.s.Skip()
	}
	at := place{true, kind, jsonstream.Span{Off: start, Len: sc.s.Offset() - start}}
	if l := sc.lists[key]; l != nil {
		l.place = at
	}
	switch key {
	case "timing":
		sc.f.timing = at
	case "engine":
		sc.f.engine = at
	case "warmup_evidence":
		sc.f.warmup = at
	case "iteration_groups":
		if kind == jsonvalue.Array {
			sc.f.groups = at.Span
		}
	}
	if written {
		sc.f.members[len(sc.f.members)-1].span = at.Span
	}
	return err
}

// readScalar reads a value that rules take for a scalar. Of a container, which breaks
// them, only that it is one is kept.
func (sc *scanner) readScalar(kind jsonvalue.Kind) (*jsonvalue.Value, error) {
	if kind != jsonvalue.Object && kind != jsonvalue.Array {
		return sc.s.Tree(jsonstream.DefaultLiteral)
	}
	span, err := sc.s.Skip()
	return &jsonvalue.Value{Kind: kind, Offset: span.Off}, err
}

// readGroups reads the iteration groups as they come: of the reference in full, unless
// something is still to come that judging them takes; of another file by comparing their
// text with the reference's.
func (sc *scanner) readGroups(kind jsonvalue.Kind, start int64) error {
	l := &list{}
	sc.lists["iteration_groups"] = l
	if sc.isReference() && kind == jsonvalue.Array && !sc.r.opt.CheckOnly {
		sc.dropLayout()
		sc.layout = startLayoutCheck(sc.f.src, start)
	}
	if sc.isReference() {
		if kind == jsonvalue.Array && sc.head["dp"] != nil && sc.head["grid_digest"] != nil && sc.head["measurement_protocol"] != nil {
			return sc.indexGroups(sc.s)
		}
	} else if kind == jsonvalue.Array && sc.r.groups != nil {
		end, same, err := sc.sameText(start)
		if err != nil {
			return err
		}
		if same {
			sc.same, l.n = true, sc.r.groups.len()
			return sc.s.JumpTo(end)
		}
	}
	counted, err := sc.countList()
	l.n = counted.n
	return err
}

// countList reads past a list.
func (sc *scanner) countList() (*list, error) {
	l := &list{}
	_, _, err := sc.s.Array(func(int) error { l.n++; _, err := sc.s.Skip(); return err })
	return l, err
}

// sameText tells whether the reference's groups stand in the file from start on, and
// where they end.
func (sc *scanner) sameText(start int64) (end int64, same bool, err error) {
	ref, span := sc.r.ref.src, sc.r.groups.span
	same, err = sc.compare.Bytes(ref, span, sc.f.src, start)
	if same || err != nil {
		return start + span.Len, same, err
	}
	return sc.compare.Text(ref, span, sc.f.src, jsonstream.Span{Off: start, Len: -1})
}

// judge applies the rules to the file that was read.
func (sc *scanner) judge() error {
	f := sc.f
	if !f.parsed {
		sc.scope.Broken(finding.RankSchema, "", f.root, "the document is not an object", "a rank artifact")
		return nil
	}
	if sc.isMerged() {
		f.parsed = false
		return nil
	}
	sc.judgeSchema()
	sc.judgeDP()
	sc.judgeEnvelope()
	sc.judgeIdentity()
	sc.declare()
	if err := sc.judgeGroups(); err != nil {
		return err
	}
	if err := sc.judgeResults(); err != nil {
		return err
	}
	sc.judgeTiming(0, 1e-12)
	if err := sc.readLedger(); err != nil {
		return err
	}
	if sc.isReference() {
		sc.become()
	}
	return nil
}

// dropLayout ends a layout check that nobody will ask.
func (sc *scanner) dropLayout() {
	if sc.layout != nil {
		sc.layout.cancel()
		sc.layout = nil
	}
}

// become makes the file the reference.
func (sc *scanner) become() {
	sc.r.layout, sc.layout = sc.layout, nil
	sc.r.ref, sc.r.groups, sc.r.contract = sc.f, sc.groups, sc.contract
	sc.r.head = sc.head
	sc.r.status = sc.status
}

// declare reads the file's measurement protocol, once.
func (sc *scanner) declare() {
	if !sc.declared {
		sc.contract = protocol.Check(sc.head["measurement_protocol"], sc.scope)
		sc.declared = true
	}
}

// judgeGroups indexes the reference's groups if that was not possible as they came, and
// compares the groups of another file if their text is not the same.
func (sc *scanner) judgeGroups() error {
	l := sc.lists["iteration_groups"]
	isList := l != nil && l.kind == jsonvalue.Array
	switch {
	case sc.isReference() && isList:
		if sc.groups == nil {
			sc.inner.Reset(sc.f.src, l.Off, 1, jsonstream.Trusted)
			if err := sc.indexGroups(sc.inner); err != nil {
				return err
			}
		}
		sc.settleGroups()
	case !sc.isReference() && isList && !sc.same && sc.r.groups != nil:
		return sc.compareGroups(l)
	}
	return nil
}

// compareGroups names the first difference in each group that differs from the
// reference's.
func (sc *scanner) compareGroups(l *list) error {
	ref := sc.r.ref
	small := jsonstream.Limits{Window: 64 << 10}
	a := jsonstream.New(ref.src, sc.r.groups.span.Off, 1, jsonstream.Trusted, small)
	b := jsonstream.New(sc.f.src, l.Off, 1, jsonstream.Trusted, small)
	err := jsonspan.EachPair(a, b, func(i int, spanA, spanB jsonstream.Span) error {
		d, err := sc.compare.Values(ref.src, spanA, sc.f.src, spanB)
		if d != nil {
			scope := sc.scope.Of(int64(sc.r.groups.ids.At(i)))
			sc.differs(scope, ref.src, finding.GroupDiffers, "/iteration_groups/"+strconv.Itoa(i), d, sc.than)
		}
		return err
	})
	if err == nil && l.n != sc.r.groups.len() {
		sc.scope.Says(finding.GroupDiffers, "/iteration_groups", l.Off, sc.than("the number of iteration groups differs"),
			strconv.Itoa(sc.r.groups.len()), strconv.Itoa(l.n))
	}
	return err
}

// than says which file the reference is.
func (sc *scanner) than(message string) string {
	return message + " from the reference, " + finding.RankFile(sc.r.ref.rank, sc.r.ref.path)
}

// differs reports the first difference between a value of a, which is right, and one of
// the file at hand. Than completes the message.
func (sc *scanner) differs(scope finding.Scope, a io.ReaderAt, rule finding.ID, pointer string, d *jsonspan.Difference, than func(string) string) {
	expected := "absent"
	if !d.AbsentA {
		expected = sc.quote(a, d.OffA)
	}
	switch {
	case d.Occupied:
		scope.Broken(rule, pointer+d.Pointer, d.OffB, than("an element that is missing here makes this differ"), expected)
	case d.AbsentA:
		scope.Broken(rule, pointer+d.Pointer, d.OffB, than("an added value makes this differ"), expected)
	case d.AbsentB:
		scope.Absent(rule, pointer+d.Pointer, d.OffB, than("a missing value makes this differ"), expected)
	default:
		scope.Broken(rule, pointer+d.Pointer, d.OffB, than("the value differs"), expected)
	}
}

// quote returns the text of a value as long as a finding about it may be printed: those
// that stand first are, and they are not always found first.
func (sc *scanner) quote(src io.ReaderAt, off int64) string {
	const spare = 10_000
	if most := sc.r.opt.MaxFindings; most > 0 && sc.out.Errors() > most+spare {
		return ""
	}
	return jsonstream.Excerpt(src, off, maxExcerpt)
}

// readLedger reads the warmup ledger, or reports one that no contract declares.
func (sc *scanner) readLedger() error {
	f, w := sc.f, sc.f.warmup
	contract := sc.contract
	if !sc.isReference() { // a mixture of contracts is reported once, as protocol.mismatch
		contract = sc.r.contract
		if protocolDiffers := sc.contract != sc.r.contract; protocolDiffers {
			contract = sc.contract
			contract.Execution = protocol.Unclear
		}
	}
	switch {
	case contract.Execution == protocol.Unclear:
	case contract.Execution == protocol.Undeclared && w.exists:
		f.strayLedger = true
	case contract.Execution == protocol.Declared && !w.exists:
		sc.scope.Absent(finding.WarmupLedger, "/warmup_evidence", f.root, "the file has no warmup ledger, although its protocol declares one", "an object")
	case contract.Execution == protocol.Declared:
		sc.inner.Reset(f.src, w.Off, 1, jsonstream.Trusted)
		ledger, err := warmup.Read(sc.inner, sc.scope)
		f.ledger = ledger
		return err
	}
	return nil
}
