package merge

import (
	"math"
	"strconv"

	"github.com/fpm-project/fpm/internal/column"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// resultIndex is what is kept of a file's own results until they were compared with the
// groups, in file order.
type resultIndex struct {
	ids     column.Sparse[int32] // benchmark_id of the point; 0 where it is unsound
	points  spans
	fpms    spans                // empty where there is not exactly one FPM
	rank    int32                // dp_rank of the first FPM, -1 when it is none
	others  column.Sparse[int32] // those that differ from it, 2 more than they are
	stamped column.Marks         // results that have a regime
	regimes codes                // theirs
}

// rankOf is the dp_rank of the FPM of result i, -1 when it is none.
func (x *resultIndex) rankOf(i int) int32 {
	if other := x.others.At(i); other != 0 {
		return other - 2
	}
	return x.rank
}

func (x *resultIndex) addRank(rank int32) {
	if x.others.Len() == 0 {
		x.rank = rank
	}
	if rank == x.rank {
		rank = -2
	}
	x.others.Add(rank + 2)
}

func (x *resultIndex) addRegime(code uint32) {
	if x.stamped.Add(code != 0); code != 0 {
		x.regimes.add(code)
	}
}

// regimeOf is the code of the regime of result i, 0 when it has none.
func (x *resultIndex) regimeOf(i int) uint32 {
	if at, ok := x.stamped.Rank(i); ok {
		return x.regimes.at(at)
	}
	return 0
}

func (x *resultIndex) len() int { return x.ids.Len() }

func (x *resultIndex) reset() {
	x.ids.Reset()
	x.points.reset()
	x.fpms.reset()
	x.rank = -1
	x.others.Reset()
	x.stamped.Reset()
	x.regimes.reset()
}

// result is one entry while it is read.
type result struct {
	off    int64
	point  jsonstream.Field // kind and place
	span   jsonstream.Span
	id     jsonstream.Field
	list   jsonstream.Field // kind and place of fpms
	fpms   jsonstream.Span
	n      int
	fpm    fpmFacts
	regime uint32
}

func (sc *scanner) readResults() error {
	s := sc.s
	_, _, err := s.Array(func(i int) error {
		x := result{off: s.NextOffset()}
		_, ok, err := s.Object(func(name []byte) error { return sc.resultMember(&x, name) })
		if err == nil {
			sc.keepResult(i, &x, ok)
		}
		return err
	})
	return err
}

func (sc *scanner) resultMember(x *result, name []byte) (err error) {
	s := sc.s
	switch string(name) {
	case "point":
		x.point = jsonstream.Field{Kind: s.Peek(), Offset: s.NextOffset()}
		_, _, err = s.Object(func(name []byte) (err error) {
			if string(name) == "benchmark_id" {
				x.id, err = s.Field()
			} else {
				_, err = s.Skip()
			}
			return err
		})
		x.span = jsonstream.Span{Off: x.point.Offset, Len: s.Offset() - x.point.Offset}
	case "fpms":
		x.list = jsonstream.Field{Kind: s.Peek(), Offset: s.NextOffset()}
		_, _, err = s.Array(func(i int) error {
			x.n++
			if i > 0 {
				_, err := s.Skip()
				return err
			}
			return x.fpm.read(s)
		})
		x.fpms = jsonstream.Span{Off: x.list.Offset, Len: s.Offset() - x.list.Offset}
	case "kv_seed_regime":
		x.regime, err = sc.f.texts.read(s)
	default:
		_, err = s.Skip()
	}
	return err
}

// read reads an FPM of a file's own results: its evidence is judged in the groups.
func (f *fpmFacts) read(s *jsonstream.Scanner) (err error) {
	f.off, f.object, err = s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "counter_id":
			f.counter, err = s.Field()
		case "dp_rank":
			f.rank, err = s.Field()
		default:
			_, err = s.Skip()
		}
		return err
	})
	return err
}

func resultPointer(i int, tail string) string { return "/results/" + strconv.Itoa(i) + tail }

// keepResult judges what an entry says by itself, and indexes it.
func (sc *scanner) keepResult(i int, x *result, object bool) {
	id := int64(0)
	scope := sc.scope
	report := func(rule finding.ID, tail string, f jsonstream.Field, parent int64, message, expected string) {
		scope.EitherLate(rule, tail, f.Present(), f.Offset, parent, message, func() (string, string) { return resultPointer(i, tail), expected })
	}
	switch {
	case !object:
		report(finding.ResultID, "", jsonstream.Field{Kind: 'n', Offset: x.off}, x.off, "the result is not an object", "an object")
	case x.point.Kind != '{':
		report(finding.ResultID, "/point", x.point, x.off, "the result has no point object", "an object")
	case !x.id.Whole || x.id.Int < 1:
		report(finding.ResultID, "/point/benchmark_id", x.id, x.point.Offset, "the point's benchmark_id is no benchmark id", "an integer of at least 1")
	default:
		id = x.id.Int
		scope = scope.Of(id)
	}
	rank, fpms := int32(-1), jsonstream.Span{}
	switch {
	case !object:
	case x.list.Kind != '[':
		report(finding.ResultFPMCount, "/fpms", x.list, x.off, "the result has no list of FPMs", "a list of exactly one FPM")
	case x.n != 1:
		scope.Says(finding.ResultFPMCount, resultPointer(i, "/fpms"), x.list.Offset, "the result has not exactly one FPM", "1 FPM", strconv.Itoa(x.n)+" FPMs")
	case !x.fpm.object:
		scope.Broken(finding.ResultFPMCount, resultPointer(i, "/fpms/0"), x.fpm.off, "the FPM is not an object", "an object")
	default:
		fpms = x.fpms
		if id > 0 && !x.fpm.counter.Is(id) {
			report(finding.ResultCounter, "/fpms/0/counter_id", x.fpm.counter, x.fpm.off, "the FPM's counter_id is not the point's benchmark_id", strconv.FormatInt(id, 10))
		}
		if x.fpm.rank.Whole && x.fpm.rank.Int >= 0 && x.fpm.rank.Int < MaxDPSize {
			rank = int32(x.fpm.rank.Int)
		}
	}
	sc.points.ids.Add(int32(min(id, math.MaxInt32))) // no group has such an id
	sc.points.points.add(x.span)
	sc.points.fpms.add(fpms)
	sc.points.addRank(rank)
	sc.points.addRegime(x.regime)
}

// judgeResults compares the file's own results with the groups. As many results as there
// are groups, each of another group, leave none out; another number of them is rank.counts.
func (sc *scanner) judgeResults() error {
	groups := sc.referenceGroups()
	if groups == nil || sc.lists["results"] == nil {
		return nil
	}
	x := &sc.points
	sc.f.regimes = codes{}
	if groups.numbered { // else there is nothing to write them to
		for range groups.len() {
			sc.f.regimes.add(0)
		}
	}
	seen := newBits(groups.position.Len())
	for i := range x.len() {
		id := int64(x.ids.At(i))
		group, ok := groups.find(id)
		scope := sc.scope.Of(id)
		switch {
		case id == 0: // reported when it was read
		case !ok && !groups.numbered: // an id that a group should have had
		case !ok:
			sc.wrongID(scope, i, "no iteration group has this benchmark_id")
		case seen.take(group):
			sc.wrongID(scope, i, "an earlier result has this benchmark_id")
		default:
			if code := x.regimeOf(i); code != 0 && groups.numbered {
				sc.f.regimes.set(group, code)
			}
			if err := sc.compareResult(i, group, scope); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrongID reports the benchmark id of result i.
func (sc *scanner) wrongID(scope finding.Scope, i int, message string) {
	point := sc.points.points.at(i).Off
	at := scope.Exact(point, func() int64 {
		at, _ := jsonstream.Find(sc.f.src, point, "benchmark_id")
		return at
	})
	scope.EitherLate(finding.ResultID, "/benchmark_id", true, at, at, message, func() (string, string) {
		return resultPointer(i, "/point/benchmark_id"), "the ids of the iteration groups, each once"
	})
}

// compareResult holds a result against its group. The group is the reference's, which
// may be this very file.
func (sc *scanner) compareResult(i, group int, scope finding.Scope) error {
	x, groups := &sc.points, sc.referenceGroups()
	ref := sc.f
	if !sc.isReference() {
		ref = sc.r.ref
	}
	if rank := x.rankOf(i); x.fpms.at(i).Len > 0 && !sc.f.misnamed && sc.f.rank != finding.NoRank && int(rank) != sc.f.rank {
		at, ok := jsonstream.Find(sc.f.src, x.fpms.at(i).Off, "0", "dp_rank")
		scope.Either(finding.ResultFPMRank, resultPointer(i, "/fpms/0/dp_rank"), ok, at, at, "the FPM's dp_rank is not the file's rank", strconv.Itoa(sc.f.rank))
	}
	than := func(message string) string { return message + " from its iteration group" }
	own := x.points.at(i)
	if point := groups.points.at(group); point.Len > 0 {
		d, err := sc.compare.Values(ref.src, point, sc.f.src, own)
		if err != nil {
			return err
		}
		if d != nil {
			sc.differs(scope, ref.src, finding.ResultPoint, resultPointer(i, "/point"), d, than)
		}
	}
	cell, ok := groups.cell(group, sc.f.rank)
	fpms := x.fpms.at(i)
	if !ok || sc.f.misnamed || fpms.Len == 0 || groups.fpms.at(cell).Len == 0 {
		return nil
	}
	d, err := sc.compare.Values(ref.src, groups.fpms.at(cell), sc.f.src, fpms)
	if d != nil {
		sc.differs(scope, ref.src, finding.ResultDiffers, resultPointer(i, "/fpms"), d, than)
	}
	return err
}

// regimeTable keeps the kv_seed_regime values of one file: a few short texts as a rule,
// and places in the file for whatever is not.
type regimeTable struct {
	texts  []string
	index  map[string]uint32
	bytes  int
	places *spans // as a rule there is none, and there can be very many files
}

// maxRegimeBytes bounds the texts that are held.
const maxRegimeBytes = 64 << 10

// read reads a value and returns its code: odd for a text, even for a place, never 0.
func (t *regimeTable) read(s *jsonstream.Scanner) (code uint32, err error) {
	kind, start := s.Peek(), s.NextOffset()
	v, err := s.Scalar()
	if err != nil {
		return 0, err
	}
	if kind != '{' && kind != '[' {
		if code, ok := t.index[string(v.Raw)]; ok {
			return code, nil
		}
		if t.bytes+len(v.Raw) <= maxRegimeBytes {
			if t.index == nil {
				t.index = map[string]uint32{}
			}
			t.bytes += len(v.Raw)
			t.texts = append(t.texts, string(v.Raw))
			code = uint32(len(t.texts))<<1 - 1
			t.index[string(v.Raw)] = code
			return code, nil
		}
	}
	if t.places == nil {
		t.places = &spans{}
	}
	t.places.add(jsonstream.Span{Off: start, Len: s.Offset() - start})
	return uint32(t.places.len()) << 1, nil
}

// get returns the text, or the place, behind a code other than 0.
func (t *regimeTable) get(code uint32) (text string, span jsonstream.Span) {
	if code&1 == 1 {
		return t.texts[code>>1], jsonstream.Span{}
	}
	return "", t.places.at(int(code>>1) - 1)
}
