package merge

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/column"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/words"
)

// flatIndex is what is kept of the flattened results of a merged artifact until they were
// compared with the groups, in file order.
type flatIndex struct {
	ids    column.Sparse[int32] // benchmark_id of the point; 0 where it is unsound
	ranks  column.Column[int32] // dp_rank of the points whose id is sound
	points spans
	fpms   spans                 // empty where there are none
	regime column.Sparse[uint32] // bytes from the end of the FPMs to a kv_seed_regime behind them; 0 none
	far    column.Sparse[int64]  // offset of a kv_seed_regime that stands elsewhere; 0 none
}

func (x *flatIndex) len() int { return x.ids.Len() }

// name is what a result says that it is of. The id is 0 where that is unsound.
func (x *flatIndex) name(i int) (id int64, rank int) {
	at, ok := x.ids.Rank(i)
	if !ok {
		return 0, -1
	}
	return int64(x.ids.Nth(at)), int(x.ranks.At(at))
}

func (x *flatIndex) reset() {
	x.ids.Reset()
	x.ranks.Reset()
	x.points.reset()
	x.fpms.reset()
	x.regime.Reset()
	x.far.Reset()
}

// flatResult is one entry while it is read.
type flatResult struct {
	off    int64
	object bool
	point  jsonstream.Field // kind and place
	span   jsonstream.Span  // of the point
	id     jsonstream.Field
	rank   jsonstream.Field
	fpms   jsonstream.Span // of length 0 when absent
	regime int64           // offset of kv_seed_regime, -1 when there is none
}

// readFlat reads the results as they come.
func (c *mergedCheck) readFlat() error {
	_, _, err := c.s.Array(func(i int) (err error) {
		x := flatResult{off: c.s.NextOffset(), regime: -1}
		_, x.object, err = c.s.Object(func(name []byte) error { return x.member(c.s, name) })
		if err == nil {
			c.keepFlat(i, &x)
		}
		return err
	})
	return err
}

func (x *flatResult) member(s *jsonstream.Scanner, name []byte) (err error) {
	switch string(name) {
	case "point":
		x.point = jsonstream.Field{Kind: s.Peek(), Offset: s.NextOffset()}
		_, _, err = s.Object(func(name []byte) (err error) {
			switch string(name) {
			case "benchmark_id":
				x.id, err = s.Field()
			case "dp_rank":
				x.rank, err = s.Field()
			default:
				_, err = s.Skip()
			}
			return err
		})
		x.span = jsonstream.Span{Off: x.point.Offset, Len: s.Offset() - x.point.Offset}
	case "fpms":
		x.fpms, err = s.Skip()
	case "kv_seed_regime":
		x.regime = s.NextOffset()
		_, err = s.Skip()
	default:
		_, err = s.Skip()
	}
	return err
}

// keepFlat judges what an entry says by itself, and indexes it.
func (c *mergedCheck) keepFlat(i int, x *flatResult) {
	id, rank := int32(0), int32(-1)
	report := func(scope finding.Scope, tail string, f jsonstream.Field, parent int64, message, expected string) {
		scope.EitherLate(finding.MergedResults, tail, f.Present(), f.Offset, parent, message, func() (string, string) { return resultPointer(i, tail), expected })
	}
	switch {
	case !x.object:
		report(c.scope, "", jsonstream.Field{Kind: 'n', Offset: x.off}, x.off, "the result is not an object", "an object")
	case x.point.Kind != '{':
		report(c.scope, "/point", x.point, x.off, "the result has no point object", "an object")
	case !x.id.Whole || x.id.Int < 1 || x.id.Int >= math.MaxInt32:
		report(c.scope, "/point/benchmark_id", x.id, x.point.Offset, "the point's benchmark_id is no benchmark id", "an integer of at least 1")
	case !x.rank.Whole || x.rank.Int < 0 || x.rank.Int >= MaxDPSize:
		report(c.scope.Of(x.id.Int), "/point/dp_rank", x.rank, x.point.Offset, "the point's dp_rank is no rank", "a global rank")
	default:
		id, rank = int32(x.id.Int), int32(x.rank.Int)
	}
	if x.object && x.fpms.Len == 0 {
		report(c.scope.Of(int64(id)), "/fpms", jsonstream.Field{}, x.off, "the result has no FPMs", "the FPMs of the group")
	}
	if c.flat.ids.Add(id); id != 0 {
		c.flat.ranks.Add(rank)
	}
	c.flat.points.add(x.span)
	c.flat.fpms.add(x.fpms)
	c.flat.addRegime(x)
}

func (f *flatIndex) addRegime(x *flatResult) {
	near, far := x.regime-x.fpms.End(), int64(0)
	switch {
	case x.regime < 0:
		near = 0
	case near <= 0 || near > math.MaxUint32:
		near, far = 0, x.regime
	}
	f.regime.Add(uint32(near))
	f.far.Add(far)
}

// regimeAt is the offset of the kv_seed_regime of result i.
func (f *flatIndex) regimeAt(i int) (off int64, exists bool) {
	if near := f.regime.At(i); near > 0 {
		return f.fpms.at(i).End() + int64(near), true
	}
	off = f.far.At(i)
	return off, off > 0
}

// judgeFlat compares the flattened results with the groups (merged.results).
func (c *mergedCheck) judgeFlat(size int) error {
	c.as(finding.MergedResults)
	l := c.lists["results"]
	switch {
	case l == nil:
		c.scope.Absent(finding.MergedResults, "/results", c.f.root, "results is missing", "a list")
		return nil
	case l.kind != jsonvalue.Array:
		c.scope.Broken(finding.MergedResults, "/results", l.Off, "results is not a list", "a list")
		return nil
	case c.groups == nil || size == 0:
		return nil
	}
	if want := c.groups.len() * size; c.flat.len() != want {
		c.scope.Says(finding.MergedResults, "/results", l.Off, "results has not one entry for each group and global rank", words.Count(want, "entry", "entries"), words.Count(c.flat.len(), "entry", "entries"))
	}
	w := flatWalk{
		c: c, size: size, seen: newBits(c.groups.fpms.len()), group: -1, last: -1,
		flat: jsonstream.NewAhead(c.f.src), groups: jsonstream.NewAhead(c.f.src),
	}
	for i := range c.flat.len() {
		if err := w.judge(i); err != nil {
			return err
		}
	}
	w.judgeMissing()
	return nil
}

// flatWalk walks the results.
type flatWalk struct {
	c     *mergedCheck
	size  int
	seen  bits             // cells that have their result
	last  int64            // place in the order of the last result that had its place
	group int              // group of the point at hand, -1 before the first
	text  []byte           // of its point, up to the closing brace; empty when it is not laid out
	point *jsonvalue.Value // its point, nil before that is needed
	want  []byte           // buffers
	own   []byte
	// The file twice: both parts that are compared are read from front to back as a rule.
	flat, groups *jsonstream.Ahead
}

func (w *flatWalk) judge(i int) error {
	c, x := w.c, &w.c.flat
	id, rank := x.name(i)
	if id == 0 {
		return nil // reported when it was read
	}
	scope := c.scope.Of(id)
	group, ok := c.groups.find(id)
	switch {
	case !ok && !c.groups.numbered:
		return nil // an id that a group should have had
	case !ok:
		w.report(i, scope, "benchmark_id", "no iteration group has this benchmark_id", "an id of an iteration group")
		return nil
	case rank >= w.size:
		w.report(i, scope, "dp_rank", "dp_rank is no global rank", "a rank from 0 to "+strconv.Itoa(w.size-1))
		return nil
	}
	cell, ok := c.groups.cell(group, rank)
	if ok && w.seen.take(cell) {
		w.report(i, scope, "dp_rank", "an earlier result is that of this benchmark id and rank", "one result for each")
		return nil
	}
	if place := id*int64(w.size) + int64(rank); place < w.last {
		scope.Says(finding.MergedResults, resultPointer(i, "/point"), w.offset(i), "the results are not in order", "for each benchmark id ascending, each rank ascending",
			"benchmark id "+strconv.FormatInt(id, 10)+", rank "+strconv.Itoa(rank)+" behind a later one")
	} else {
		w.last = place
	}
	if at, exists := x.regimeAt(i); exists && c.source != nil && !c.isSource(strconv.Itoa(rank)) {
		scope.Broken(finding.MergedResults, resultPointer(i, "/kv_seed_regime"), at, "the rank's file was not merged, so that nothing tells its seed regime", "absent")
	}
	if err := w.comparePoint(i, group, rank, scope); err != nil || !ok {
		return err
	}
	return w.compareFPMs(i, cell, scope)
}

// offset is where a result's point stands.
func (w *flatWalk) offset(i int) int64 { return w.c.flat.points.at(i).Off }

// report reports a member of a point.
func (w *flatWalk) report(i int, scope finding.Scope, name, message, expected string) {
	at := scope.Exact(w.offset(i), func() int64 {
		at, _ := jsonstream.Find(w.c.f.src, w.offset(i), name)
		return at
	})
	scope.EitherLate(finding.MergedResults, name, true, at, at, message, func() (string, string) { return resultPointer(i, "/point/"+name), expected })
}

// comparePoint holds a result's point against its group's with the rank in it.
func (w *flatWalk) comparePoint(i, group, rank int, scope finding.Scope) (err error) {
	c, span, own := w.c, w.c.groups.points.at(group), w.c.flat.points.at(i)
	if span.Len == 0 {
		return nil // the group has no point, which is reported as that
	}
	if group != w.group {
		if err := w.enter(group, span); err != nil {
			return err
		}
	}
	if same, err := w.sameText(own, rank); same || err != nil {
		return err
	}
	if w.point == nil {
		if w.point, err = jsonstream.ReadTree(c.f.src, span); err != nil {
			return err
		}
	}
	tree, err := place{exists: true, Span: own}.tree(c.f)
	if err != nil {
		return err
	}
	w.point.Set("dp_rank", jsonvalue.Value{Kind: jsonvalue.Number, Raw: strconv.AppendInt(nil, int64(rank), 10), Offset: -1})
	jsonvalue.Diff(w.point, tree, resultPointer(i, "/point"), func(d jsonvalue.Difference) bool {
		c.differing(scope, d, "the point is not its group's")
		return true
	})
	return nil
}

// enter makes a group the one at hand.
func (w *flatWalk) enter(group int, span jsonstream.Span) (err error) {
	w.group, w.point = group, nil
	if w.text = w.text[:0]; w.c.groups.ranked {
		return nil
	}
	if w.text, err = readText(w.groups, w.text, span); err != nil {
		return err
	}
	head, laid := bytes.CutSuffix(w.text, []byte(pointEnd))
	if !laid {
		head = head[:0]
	}
	w.text = head
	return nil
}

// sameText tells whether a point stands as a merge lays it out, which needs no tree.
func (w *flatWalk) sameText(own jsonstream.Span, rank int) (same bool, err error) {
	if len(w.text) == 0 || own.Len > int64(len(w.text))+100 {
		return false, nil
	}
	p := point{head: w.text, tail: []byte(pointEnd)}
	w.want = p.append(w.want[:0], rank)
	w.own, err = readText(w.flat, w.own, own)
	return bytes.Equal(w.own, w.want), err
}

// readText reads the text of a span into buf.
func readText(src io.ReaderAt, buf []byte, span jsonstream.Span) ([]byte, error) {
	buf = slices.Grow(buf[:0], int(span.Len))[:span.Len]
	if n, err := src.ReadAt(buf, span.Off); n < len(buf) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, &jsonstream.ReadError{Offset: span.Off, Err: err}
	}
	return buf, nil
}

// differing reports a difference to what is expected.
func (c *mergedCheck) differing(scope finding.Scope, d jsonvalue.Difference, message string) {
	expected := "absent"
	if d.A != nil {
		expected = d.A.Excerpt(maxExcerpt)
	}
	if d.B != nil {
		scope.Broken(scope.As, d.Pointer, d.B.Offset, message, expected)
	} else {
		scope.Absent(scope.As, d.Pointer, d.Parent.Offset, message, expected)
	}
}

// compareFPMs holds a result's FPMs against those of its group.
func (w *flatWalk) compareFPMs(i, cell int, scope finding.Scope) error {
	c := w.c
	want, own := c.groups.fpms.at(cell), c.flat.fpms.at(i)
	if want.Len == 0 || own.Len == 0 {
		return nil
	}
	d, err := c.compare.Values(w.groups, want, w.flat, own)
	if d != nil {
		c.differs(scope, c.f.src, finding.MergedResults, resultPointer(i, "/fpms"), d, func(message string) string { return message + " from its iteration group" })
	}
	return err
}

// judgeMissing names the ranks of each group that have no result.
func (w *flatWalk) judgeMissing() {
	g := w.c.groups
	if !g.numbered {
		return // the result may be there under the id that the group should have
	}
	for group := range g.len() {
		var missing artifact.RankSet
		for cell := g.start(group); cell < g.start(group+1); cell++ {
			if !w.seen.has(cell) {
				missing = append(missing, cell-g.start(group))
			}
		}
		if at := g.points.at(group); len(missing) > 0 && at.Len > 0 {
			w.c.scope.Of(int64(g.ids.At(group))).Says(finding.MergedResults, "/iteration_groups/"+strconv.Itoa(group)+"/point", at.Off,
				"the results have none of this group for some rank", "a result for each global rank", "none for rank "+missing.String())
		}
	}
}
