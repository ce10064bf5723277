package inspect

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/protocol"
)

const (
	maxWalls    = 1 << 21 // wall times of all points
	maxDispatch = 16      // modes of one point
	maxShared   = 1 << 14 // different histograms of a file; points beyond have none
)

// groupReader reads iteration_groups.
type groupReader struct {
	r         *reader
	s         *jsonstream.Scanner
	walls     int // wall times kept
	g         group
	place     protocol.Place
	unit      fpm
	scheduled [5]jsonstream.Field
	dispatch  dispatches
}

// group is one iteration group while it is read.
type group struct {
	at      int
	off     int64
	id      jsonstream.Field
	point   point
	wall    jsonstream.Float
	walls   []float64
	forward int64
	later   int64 // offset of rank results that are still to be read, -1 when there are none
	want    counts5
	judged  bool
}

// fpm is the FPM of a rank result, or of a result, while it is read.
type fpm struct {
	off       int64
	object    bool
	wall      jsonstream.Float
	scheduled jsonstream.Field // kind and place of scheduled_requests
	forward   int64
}

func (x *groupReader) read(s *jsonstream.Scanner) error {
	f := x.r.f
	f.Points, f.PointsTotal, x.walls, x.s = nil, 0, 0, s
	x.r.evidence.Sample = x.sample
	_, _, err := s.Array(x.readGroup)
	return err
}

func (x *groupReader) readGroup(i int) (err error) {
	x.g = group{at: i, off: x.s.Offset(), forward: -1, later: -1, walls: x.g.walls[:0]}
	x.dispatch.reset()
	g := &x.g
	object := false
	g.off, object, err = x.s.Object(x.member)
	if err == nil && g.later >= 0 {
		outer := x.s
		x.s = x.r.scannerAt(1, g.later)
		err = x.readRankResults()
		x.s = outer
	}
	if err != nil {
		return err
	}
	if object && x.r.strict() {
		x.judgePoint()
		x.judgeWall()
	}
	x.keep()
	return nil
}

func (x *groupReader) member(name []byte) (err error) {
	g := &x.g
	switch string(name) {
	case "benchmark_id":
		g.id, err = x.s.Field()
	case "point":
		g.point, err = x.r.readPoint(x.s)
	case "wall_time":
		g.wall, err = x.s.Float()
	case "rank_results":
		// The strict rules hold each FPM against the point.
		if x.r.strict() && !(g.id.Present() && g.point.at.Present()) {
			var span jsonstream.Span
			span, err = x.s.Skip()
			g.later = span.Off
		} else {
			err = x.readRankResults()
		}
	default:
		_, err = x.s.Skip()
	}
	return err
}

func (x *groupReader) readRankResults() error {
	g := &x.g
	g.walls = g.walls[:0]
	if x.r.strict() {
		x.judgePoint()
		x.place = protocol.Place{Scope: x.r.scope, Group: g.at}
		if g.id.Integer {
			x.place.Scope = x.place.Scope.Of(g.id.Int)
		}
	}
	_, _, err := x.s.Array(func(i int) error {
		var rank jsonstream.Field
		x.unit = fpm{forward: -1}
		_, _, err := x.s.Object(func(name []byte) (err error) {
			switch string(name) {
			case "dp_rank":
				rank, err = x.s.Field()
			case "fpms":
				err = x.readFPMs(i)
			default:
				_, err = x.s.Skip()
			}
			return err
		})
		x.take(rank)
		return err
	})
	return err
}

// take notes what the FPM of a rank says.
func (x *groupReader) take(rank jsonstream.Field) {
	g := &x.g
	if !rank.NonNegative() || rank.Int > artifact.MaxRank || !x.room(int(rank.Int)+1) {
		return // also so that no time is spent on what is not kept
	}
	n := int(rank.Int)
	for len(g.walls) <= n {
		g.walls = append(g.walls, math.NaN())
	}
	g.walls[n] = seconds(x.unit.wall)
	if n == x.r.f.Rank {
		g.forward = x.unit.forward
	}
}

// readFPMs reads the first FPM, of which there should be no other.
func (x *groupReader) readFPMs(index int) error {
	s := x.s
	_, _, err := s.Array(func(i int) (err error) {
		if i > 0 {
			_, err := s.Skip()
			return err
		}
		u := &x.unit
		x.place.Index = index
		x.scheduled = [5]jsonstream.Field{}
		u.off, u.object, err = s.Object(x.fpmMember)
		if err == nil && u.object && x.r.strict() {
			x.judgeFPM()
		}
		return err
	})
	return err
}

func (x *groupReader) fpmMember(name []byte) (err error) {
	s, u := x.s, &x.unit
	switch {
	case string(name) == "wall_time":
		u.wall, err = s.Float()
	case string(name) == "scheduled_requests" && x.r.strict():
		err = x.readScheduled()
	case string(name) == "benchmark_measurement":
		var e *protocol.Evidence
		var at *protocol.Place
		if x.r.strict() {
			at = &x.place
		}
		if e, err = x.r.evidence.Read(s, at); err == nil {
			u.forward = index(e.Forward)
		}
	default:
		_, err = s.Skip()
	}
	return err
}

// sample counts the dispatch of a raw sample.
func (x *groupReader) sample(raw *protocol.RawSample) error {
	if mode := raw.Dispatch(); mode != "" {
		x.dispatch.add(&x.r.texts, mode)
	} else if raw.Status.Text == "unavailable" {
		x.dispatch.add(&x.r.texts, "unavailable")
	}
	return nil
}

// room tells whether the facts have room for a point with so many wall times.
func (x *groupReader) room(walls int) bool {
	n := len(x.r.f.Points)
	return n < MaxPoints && inProportion(n, x.g.off, leastGroup) && x.walls+max(walls, x.r.f.Size) <= maxWalls
}

// keep adds the point to the facts.
func (x *groupReader) keep() {
	f, g := x.r.f, &x.g
	if f.PointsTotal++; !x.room(len(g.walls)) {
		return
	}
	n := max(len(g.walls), f.Size)
	x.walls += n
	walls := make([]float64, n)
	for i := copy(walls, g.walls); i < n; i++ {
		walls[i] = math.NaN()
	}
	p := Point{
		Coordinates: g.point.Coordinates, Position: g.at, Wall: seconds(g.wall), Walls: walls,
		Forward: g.forward, Dispatch: x.dispatch.shared(),
	}
	p.ID = g.id.Int
	f.Points = append(f.Points, p)
}

// dispatches counts the dispatches of a point, and keeps each different histogram once.
type dispatches struct {
	list  []Dispatch
	known map[string][]Dispatch
	key   []byte
}

func (d *dispatches) reset() { d.list = d.list[:0] }

func (d *dispatches) add(t *texts, mode string) {
	for i := range d.list {
		if d.list[i].Mode == mode {
			d.list[i].Samples++
			return
		}
	}
	mode = t.keep(mode)
	if len(d.list) >= maxDispatch-1 {
		mode = cut
	}
	for i := range d.list { // a mode that was cut can be one of them
		if d.list[i].Mode == mode {
			d.list[i].Samples++
			return
		}
	}
	d.list = append(d.list, Dispatch{mode, 1})
}

// shared returns the histogram, the most frequent dispatch first.
func (d *dispatches) shared() []Dispatch {
	if len(d.list) == 0 {
		return nil
	}
	slices.SortFunc(d.list, func(a, b Dispatch) int {
		return cmp.Or(cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Mode, b.Mode))
	})
	d.key = d.key[:0]
	for _, x := range d.list {
		d.key = binary.AppendUvarint(append(append(d.key, x.Mode...), 0), uint64(x.Samples))
	}
	list, ok := d.known[string(d.key)]
	if !ok && len(d.known) < maxShared {
		if d.known == nil {
			d.known = map[string][]Dispatch{}
		}
		list = slices.Clone(d.list)
		d.known[string(d.key)] = list
	}
	return list
}

func (x *groupReader) pointer(tail string) string {
	return "/iteration_groups/" + strconv.Itoa(x.g.at) + tail
}
