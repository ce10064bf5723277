package merge

import (
	"math"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/protocol"
	"github.com/fpm-project/fpm/warmup"
)

// groupReader judges the reference's iteration groups and indexes them.
type groupReader struct {
	sc       *scanner
	index    *groupIndex
	fpms     *protocol.Reader
	size     int                    // global size, 0 when it is not known
	scanners [2]*jsonstream.Scanner // for what must be read after what stands behind it
	previous []int64                // last forward index of each rank
	g        group
}

// group is one iteration group while it is read.
type group struct {
	at       int
	off      int64
	id       jsonstream.Field
	pointID  jsonstream.Field
	point    *jsonvalue.Value
	pointAt  jsonstream.Span
	key      string
	keyed    bool // key was computed
	expected ranksSeen
	complete jsonstream.Field
	wall     jsonstream.Float
	wallRaw  []byte
	results  jsonstream.Field // kind and place of rank_results
	later    bool             // rank_results is to be read when the group is known
	count    int              // rank results

	largest    []byte // text of the largest FPM wall time
	largestF   float64
	wallsSound bool
	walls      int
}

// ranksSeen says whether a list holds the global ranks.
type ranksSeen struct {
	field jsonstream.Field
	same  bool
}

func (sc *scanner) indexGroups(s *jsonstream.Scanner) error {
	sc.declare()
	grid, _ := sc.head["grid_digest"].Str()
	size := sc.globalSize()
	r := &groupReader{
		sc:    sc,
		index: &groupIndex{summed: true, size: size, regular: -1},
		fpms:  protocol.NewReader(sc.contract, grid),
		size:  size,
	}
	sc.groups = r.index
	start, _, err := s.Array(func(i int) error { return r.read(s, i) })
	if err != nil {
		return err
	}
	r.index.span = jsonstream.Span{Off: start, Len: s.Offset() - start}
	if l := sc.lists["iteration_groups"]; l != nil {
		l.n = r.index.len()
	}
	if r.index.len() == 0 {
		r.all().Broken(finding.GroupEmpty, "/iteration_groups", start, "there is no iteration group", "at least one")
	}
	return r.numberGroups()
}

// globalSize is the number of global ranks that the file tells, 0 when it tells none.
func (sc *scanner) globalSize() int {
	key := "size"
	if sc.merged {
		key = "global_size"
	}
	size, _ := sc.head["dp"].Get(key).Int64()
	if size < 1 || size > MaxDPSize {
		return 0
	}
	return int(size)
}

// settleGroups makes nothing follow from a number of groups that is reported as wrong. It
// needs the coverage, which may stand behind the groups.
func (sc *scanner) settleGroups() {
	n := sc.groups.len()
	if sc.merged && n > 0 {
		return // the count of a merged artifact is another rule's, and a multiple
	}
	completed, ok := sc.head["coverage"].Get("completed_points").Int64()
	if n == 0 || (ok && completed != int64(n)) {
		sc.groups.numbered, sc.groups.summed = false, false
	}
}

func (r *groupReader) pointer(tail string) string {
	return "/iteration_groups/" + strconv.Itoa(r.g.at) + tail
}

// all is the scope of what concerns the groups. Those of a merged artifact keep the same
// rules, as one of its own.
func (r *groupReader) all() finding.Scope {
	s := r.sc.scope
	if r.sc.merged {
		s.As = finding.MergedGroups
	}
	return s
}

// scope is the scope of the group at hand.
func (r *groupReader) scope() finding.Scope {
	if r.g.id.Integer {
		return r.all().Of(r.g.id.Int)
	}
	return r.all()
}

// evidence is the scope of what an FPM of the group carries.
func (r *groupReader) evidence() finding.Scope {
	s := r.scope()
	s.As = ""
	return s
}

// field reports a value of the group, or its absence.
func (r *groupReader) field(rule finding.ID, tail string, f jsonstream.Field, message, expected string) {
	r.scope().EitherLate(rule, tail, f.Present(), f.Offset, r.g.off, message, func() (string, string) { return r.pointer(tail), expected })
}

func (r *groupReader) read(s *jsonstream.Scanner, i int) error {
	r.g = group{at: i, largest: r.g.largest[:0], wallRaw: r.g.wallRaw[:0], wallsSound: true}
	g := &r.g
	r.index.begin()
	g.off = s.NextOffset()
	_, ok, err := s.Object(func(name []byte) error { return r.member(s, name) })
	if err == nil && g.later {
		err = r.readLater(g.results.Offset)
	}
	if err != nil {
		return err
	}
	if !ok {
		r.field(finding.GroupID, "", jsonstream.Field{Kind: 'n', Offset: g.off}, "the iteration group is not an object", "an object")
		r.index.summed = false
		r.keep(0)
		return nil
	}
	r.judge()
	return nil
}

func (r *groupReader) keep(id int64) {
	r.index.ids.Add(int32(min(id, math.MaxInt32))) // no file has room for so many groups
	r.index.points.add(r.g.pointAt)
}

func (r *groupReader) member(s *jsonstream.Scanner, name []byte) (err error) {
	g := &r.g
	switch string(name) {
	case "benchmark_id":
		g.id, err = s.Field()
	case "point":
		g.pointAt.Off = s.NextOffset()
		g.point, err = s.Tree(maxBlock)
		g.pointAt.Len = s.Offset() - g.pointAt.Off
		g.pointID = wholeField(g.point.Get("benchmark_id"))
		if g.point != nil && g.point.Kind != jsonvalue.Object {
			g.pointAt = jsonstream.Span{} // there is no point to compare
		}
		r.index.ranked = r.index.ranked || g.point.Get("dp_rank") != nil
	case "expected_dp_ranks":
		err = r.readExpected(s)
	case "complete":
		g.complete, err = s.Field()
	case "wall_time":
		var v jsonstream.Scalar
		v, err = s.Scalar()
		g.wallRaw = append(g.wallRaw, v.Raw...)
		g.wall = v.Float()
	case "rank_results":
		g.results.Kind, g.results.Offset = s.Peek(), s.NextOffset()
		if g.later = !g.id.Present() || g.point == nil; g.later {
			_, err = s.Skip()
		} else {
			err = r.readRankResults(s)
		}
	default:
		_, err = s.Skip()
	}
	return err
}

// readLater reads rank_results once the group's id and point are known.
func (r *groupReader) readLater(off int64) error {
	return r.readRankResults(r.scanner(0, off))
}

// scanner returns a scanner of a part of the file that was checked before. Level tells
// one that is in use from another within it.
func (r *groupReader) scanner(level int, off int64) *jsonstream.Scanner {
	if r.scanners[level] == nil {
		r.scanners[level] = jsonstream.New(r.sc.f.src, off, 0, jsonstream.Trusted, jsonstream.Limits{Window: 64 << 10})
	} else {
		r.scanners[level].Reset(r.sc.f.src, off, 0, jsonstream.Trusted)
	}
	return r.scanners[level]
}

func wholeField(v *jsonvalue.Value) jsonstream.Field {
	if v == nil {
		return jsonstream.Field{}
	}
	s := jsonstream.Scalar{Kind: 'n', Offset: v.Offset}
	if v.Kind == jsonvalue.Number {
		s.Kind, s.Raw = '0', v.Raw
	}
	return s.Field()
}

func (r *groupReader) readExpected(s *jsonstream.Scanner) (err error) {
	seen := &r.g.expected
	n := 0
	seen.same = true
	seen.field = jsonstream.Field{Kind: s.Peek(), Offset: s.NextOffset()}
	_, _, err = s.Array(func(i int) error {
		f, err := s.Field()
		seen.same = seen.same && f.Is(int64(i))
		n++
		return err
	})
	seen.same = seen.same && seen.field.Kind == '[' && n == r.size
	return err
}

// rankResult is an entry of rank_results while it is read.
type rankResult struct {
	at    int
	off   int64
	rank  jsonstream.Field
	list  jsonstream.Field // kind and place of fpms
	span  jsonstream.Span
	later bool
	n     int // FPMs
	ref   warmup.Reference
	fpm   fpmFacts
}

// fpmFacts is what a group rule asks of an FPM.
type fpmFacts struct {
	object  bool
	off     int64
	counter jsonstream.Field
	rank    jsonstream.Field
}

func (r *groupReader) readRankResults(s *jsonstream.Scanner) error {
	_, _, err := s.Array(func(i int) error {
		r.g.count = i + 1
		return r.readRankResult(s, i)
	})
	return err
}

func (r *groupReader) readRankResult(s *jsonstream.Scanner, i int) error {
	x := rankResult{at: i, off: s.NextOffset(), ref: warmup.NoReference()}
	_, ok, err := s.Object(func(name []byte) (err error) {
		switch string(name) {
		case "dp_rank":
			x.rank, err = s.Field()
		case "fpms":
			x.list = jsonstream.Field{Kind: s.Peek(), Offset: s.NextOffset()}
			x.span.Off = x.list.Offset
			if x.later = !x.rank.Present(); x.later {
				_, err = s.Skip()
			} else {
				err = r.readFPMs(s, &x)
			}
			x.span.Len = s.Offset() - x.span.Off
		default:
			_, err = s.Skip()
		}
		return err
	})
	if err == nil && x.later {
		err = r.readFPMs(r.scanner(1, x.list.Offset), &x)
	}
	if err != nil {
		return err
	}
	if x.n != 1 || !x.fpm.object {
		x.span = jsonstream.Span{} // there is no FPM to compare
		r.g.wallsSound = false
	}
	if r.size == 0 || i < r.size {
		r.index.addCell(x.span, x.ref)
	}
	r.judgeRankResult(&x, ok)
	return nil
}

func (r *groupReader) readFPMs(s *jsonstream.Scanner, x *rankResult) error {
	_, _, err := s.Array(func(i int) error {
		x.n++
		if i > 0 {
			_, err := s.Skip()
			return err
		}
		return r.readFPM(s, x)
	})
	return err
}

func (r *groupReader) readFPM(s *jsonstream.Scanner, x *rankResult) error {
	at := min(x.at, MaxDPSize) // there is no rank beyond, and what is listed for one is reported
	for len(r.previous) <= at {
		r.previous = append(r.previous, -1)
	}
	g := &r.g
	if !g.keyed {
		g.key, _ = protocol.PointKey(g.point)
		g.keyed = true
	}
	p := protocol.Place{
		Scope: r.evidence(), Group: g.at, Index: x.at,
		ID: g.id.Int, HasID: g.id.Integer && g.id.Int >= 1,
		Rank: x.rank.Int, HasRank: x.rank.Whole,
		Key: g.key, NoPoint: g.point == nil || g.point.Kind != jsonvalue.Object, Previous: &r.previous[at],
	}
	fpm, err := r.fpms.Read(s, &p)
	if err != nil {
		return err
	}
	x.fpm = fpmFacts{fpm.Object, fpm.Offset, fpm.Counter, fpm.DPRank}
	if fpm.Prepared {
		x.ref = warmup.NewReference(fpm.WarmupBefore, fpm.FirstForward)
	}
	if fpm.Measurement >= 0 {
		r.index.measured.add(fpm.Measurement, func() string { return p.Pointer("/benchmark_measurement") })
	}
	if fpm.Sample >= 0 {
		r.index.sampled.add(fpm.Sample, func() string { return p.Pointer(fpm.SamplePointer()) })
	}
	if fpm.Object {
		r.takeWall(x, fpm)
	}
	return nil
}

// takeWall keeps the largest wall time of the group, as text: equality is by decimal
// value.
func (r *groupReader) takeWall(x *rankResult, fpm *protocol.FPM) {
	g := &r.g
	wall, ok := fpm.WallTime()
	if !ok {
		g.wallsSound = false
		r.scope().Broken(finding.GroupWallTime, r.pointer("/rank_results/"+strconv.Itoa(x.at)+"/fpms/0/wall_time"), fpm.Wall.Offset,
			"the FPM's wall_time is not a finite number", "seconds")
		return
	}
	raw := fpm.WallRaw
	if fpm.Wall.Kind == 0 {
		raw = []byte("0")
	}
	if g.walls == 0 || wall > g.largestF || (wall == g.largestF && jsonvalue.CompareNumbers(raw, g.largest) > 0) {
		g.largest, g.largestF = append(g.largest[:0], raw...), wall
	}
	g.walls++
}

func (r *groupReader) judgeRankResult(x *rankResult, object bool) {
	pointer := func(tail string) string { return r.pointer("/rank_results/" + strconv.Itoa(x.at) + tail) }
	report := func(rule finding.ID, tail string, f jsonstream.Field, parent int64, message, expected string) {
		r.scope().EitherLate(rule, tail, f.Present(), f.Offset, parent, message, func() (string, string) { return pointer(tail), expected })
	}
	if !object {
		report(finding.GroupRanks, "", jsonstream.Field{Kind: 'n', Offset: x.off}, x.off, "the rank result is not an object", "an object")
		return
	}
	if !x.rank.Is(int64(x.at)) || (r.size > 0 && x.at >= r.size) {
		r.scope().EitherLate(finding.GroupRanks, "/dp_rank", x.rank.Present(), x.rank.Offset, x.off, "the rank results are not those of the global ranks in order",
			func() (string, string) {
				if r.size > 0 && x.at >= r.size {
					return pointer("/dp_rank"), "no rank result beyond rank " + strconv.Itoa(r.size-1)
				}
				return pointer("/dp_rank"), strconv.Itoa(x.at)
			})
	}
	switch {
	case x.list.Kind != '[':
		report(finding.GroupFPMCount, "/fpms", x.list, x.off, "the rank result has no list of FPMs", "a list of exactly one FPM")
	case x.n != 1:
		r.scope().Says(finding.GroupFPMCount, pointer("/fpms"), x.list.Offset, "the rank result has not exactly one FPM", "1 FPM", strconv.Itoa(x.n)+" FPMs")
	case !x.fpm.object:
		r.scope().Broken(finding.GroupFPMCount, pointer("/fpms/0"), x.fpm.off, "the FPM is not an object", "an object")
	default:
		r.judgeFPM(x, report)
	}
}

func (r *groupReader) judgeFPM(x *rankResult, report func(finding.ID, string, jsonstream.Field, int64, string, string)) {
	if id := r.g.id; id.Integer && id.Int >= 1 && !x.fpm.counter.Is(id.Int) {
		report(finding.GroupCounter, "/fpms/0/counter_id", x.fpm.counter, x.fpm.off, "the FPM's counter_id is not the group's benchmark_id", strconv.FormatInt(id.Int, 10))
	}
	if x.rank.Whole && !x.fpm.rank.Is(x.rank.Int) {
		report(finding.GroupFPMRank, "/fpms/0/dp_rank", x.fpm.rank, x.fpm.off, "the FPM's dp_rank is not the rank result's", strconv.FormatInt(x.rank.Int, 10))
	}
}

// judge applies the rules to the group that was read.
func (r *groupReader) judge() {
	g := &r.g
	id := int64(0)
	if g.id.Integer && g.id.Int >= 1 {
		id = g.id.Int
	} else {
		r.field(finding.GroupID, "/benchmark_id", g.id, "benchmark_id is not an integer of at least 1", "an integer of at least 1")
	}
	r.keep(id)
	switch {
	case g.point == nil || g.point.Kind != jsonvalue.Object:
		f := jsonstream.Field{}
		if g.point != nil {
			f = jsonstream.Field{Kind: 'n', Offset: g.point.Offset}
		}
		r.field(finding.GroupID, "/point", f, "the group has no point object", "an object")
	case id > 0 && !g.pointID.Is(id):
		r.scope().Either(finding.GroupID, r.pointer("/point/benchmark_id"), g.pointID.Present(), g.pointID.Offset, g.point.Offset,
			"the point's benchmark_id is not the group's", strconv.FormatInt(id, 10))
	}
	r.judgeRanks()
	r.judgeWall()
}

func (r *groupReader) judgeRanks() {
	g := &r.g
	if g.complete.Kind != 't' {
		r.field(finding.GroupIncomplete, "/complete", g.complete, "the group is not complete", "true")
	}
	if r.size > 0 && !g.expected.same {
		r.field(finding.GroupIncomplete, "/expected_dp_ranks", g.expected.field, "expected_dp_ranks are not the global ranks", globalRanks(r.size))
	}
	switch {
	case g.results.Kind != '[':
		r.field(finding.GroupRanks, "/rank_results", g.results, "the group has no list of rank results", "a list")
	case r.size > 0 && g.count < r.size:
		r.scope().Says(finding.GroupRanks, r.pointer("/rank_results"), g.results.Offset, "rank results are missing",
			globalRanks(r.size), words.Count(g.count, "rank result", "rank results"))
	}
}

func globalRanks(size int) string {
	if size == 1 {
		return "rank 0"
	}
	return "the ranks 0 to " + strconv.Itoa(size-1) + " in order"
}

func (r *groupReader) judgeWall() {
	g := &r.g
	if !g.wall.Finite {
		r.index.summed = false
		r.field(finding.GroupWallTime, "/wall_time", jsonstream.Field{Kind: g.wall.Kind, Offset: g.wall.Offset}, "the group's wall_time is not a finite number", "seconds")
		return
	}
	r.index.sum.Add(g.wall.Value)
	if g.wallsSound && g.walls > 0 && g.count >= r.size && !jsonvalue.EqualNumbers(g.wallRaw, g.largest) {
		r.field(finding.GroupWallTime, "/wall_time", jsonstream.Field{Kind: g.wall.Kind, Offset: g.wall.Offset},
			"the group's wall_time is not the largest of its FPMs", string(g.largest[:min(len(g.largest), maxExcerpt)]))
	}
}

// unnumbered names the ids from 1 to n that no group has: ": no group is 3".
func (x *groupIndex) unnumbered() string {
	var ids []string
	more := 0
	for i := range x.len() {
		switch {
		case x.position.At(i) >= 0:
		case len(ids) < maxNamedIDs:
			ids = append(ids, strconv.Itoa(i+1))
		default:
			more++
		}
	}
	switch {
	case len(ids) == 0:
		return ""
	case more > 0:
		return ": no group is " + strings.Join(ids, ", ") + " (and " + strconv.Itoa(more) + " more)"
	}
	return ": no group is " + strings.Join(ids, " or ")
}

// maxNamedIDs is how many missing ids a message names.
const maxNamedIDs = 8

// manyGroups is how many groups have their places looked for whatever they are.
const manyGroups = 1 << 16

// numberGroups finds each id's group, and reports ids that are taken twice or leave a
// gap: n ids between 1 and n, each once, leave none.
//
// Where most of very many groups have no id, nothing is looked for by id: the places alone
// would take more memory than the text.
func (r *groupReader) numberGroups() error {
	x := r.index
	n := x.len()
	if x.numbered = x.ids.Count() == n; n > manyGroups && x.ids.Count() < n/2 {
		return nil
	}
	for range n {
		x.position.Add(-1)
	}
	sound := true
	for i := range n {
		switch id := int(x.ids.At(i)); {
		case id == 0:
		case id > n || x.position.At(id-1) >= 0:
			sound = false
		default:
			x.position.Set(id-1, int32(i))
		}
	}
	if sound {
		return nil
	}
	x.numbered = false
	return r.reportNumbers()
}

// wrongNumber says what is wrong with the id of a group, if anything is beside what was
// reported when it was read.
func (x *groupIndex) wrongNumber(group int) string {
	switch id := int(x.ids.At(group)); {
	case id == 0:
		return ""
	case id > x.len():
		return "the benchmark ids leave a gap"
	case int(x.position.At(id-1)) != group:
		return "the benchmark id is taken by an earlier group"
	}
	return ""
}

// reportNumbers reads the groups once more for the places of wrong ids.
func (r *groupReader) reportNumbers() error {
	x := r.index
	missing := x.unnumbered()
	s := r.scanner(0, x.span.Off)
	_, _, err := s.Array(func(i int) error {
		span, err := s.Skip()
		if message := x.wrongNumber(i); message != "" {
			scope := r.all().Of(int64(x.ids.At(i)))
			at := scope.Exact(span.Off, func() int64 {
				at, _ := jsonstream.Find(r.sc.f.src, span.Off, "benchmark_id")
				return at
			})
			scope.EitherLate(finding.GroupID, "/benchmark_id", true, at, at, message+missing, func() (string, string) {
				return "/iteration_groups/" + strconv.Itoa(i) + "/benchmark_id", "the ids 1 to " + strconv.Itoa(x.len()) + ", each once"
			})
		}
		return err
	})
	return err
}
