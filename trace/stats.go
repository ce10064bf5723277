package trace

import (
	"cmp"
	"context"
	"slices"

	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// MaxStreams is how many streams are told apart. The rows of further ones are counted, but
// no statistics are made of them: memory is bounded whatever a trace holds.
const MaxStreams = 1 << 14

// MaxGaps is how many gaps of a stream are listed. All are counted.
const MaxGaps = 10

// StreamID says whose rows they are. A producer has a stream for each rank; one recorder
// that was given a producer id can have several workers in it. Rows of a full and of a
// sampled capture are streams apart, so that the full one can be judged.
type StreamID struct {
	Namespace, Component, Producer, Worker string
	Rank                                   int64
	Mode                                   wire.Mode // "" of received metrics
}

func (id StreamID) compare(other StreamID) int {
	return cmp.Or(
		cmp.Compare(id.Namespace, other.Namespace), cmp.Compare(id.Component, other.Component),
		compareNames(id.Producer, other.Producer), compareNames(id.Worker, other.Worker), cmp.Compare(id.Rank, other.Rank),
		cmp.Compare(id.Mode, other.Mode),
	)
}

// compareNames sorts worker-9 before worker-10: shorter runs of the same beginning first.
func compareNames(a, b string) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] && (a[i] < '0' || a[i] > '9') {
		i++
	}
	x, y := digits(a[i:]), digits(b[i:])
	if x > 0 && y > 0 && x != y {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// digits returns how many digits a string begins with.
func digits(s string) (n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}

// Gap is a run of counters that are not in a full capture.
type Gap struct {
	First   int64  `json:"first_missing"`
	Last    int64  `json:"last_missing"`
	File    string `json:"file"`
	Line    int64  `json:"line"` // of the row behind the gap
	Missing int64  `json:"missing"`
}

// Stream is what the rows of one rank come to.
type Stream struct {
	ID StreamID

	Rows    uint64
	Busy    uint64 // rows that are no heartbeats
	Sampled uint64 // rows of sampled captures
	Full    uint64 // rows of full captures

	FirstUnixMS, LastUnixMS int64 // earliest and latest arrival (wall clock, ms)

	Wall        Histogram // of the wall times above 0 (s)
	WallSum     float64   // their sum (s)
	WallMax     float64   // exact
	Prefill     float64   // tokens of prompts that were scheduled
	Decode      float64   // tokens that were decoded: one for each decode request of a pass
	QueuedSum   float64   // queued requests, prefill and decode, over all rows
	QueuedMax   uint64
	Restarts    uint64 // a counter lower than the one before: another epoch, not a gap
	Repeats     uint64 // a counter twice
	Missing     uint64 // counters that are not there; full captures only
	GapRuns     uint64
	LongestGap  uint64
	Gaps        []Gap  // the first MaxGaps runs
	Unrecorded  uint64 // counters between two recorders, when none ran; they are not missing
	Recorders   uint64 // recorders beyond the first that are known by their rows
	last        last
	past        []last // of other recorders of the same series
	numbered    bool
	wallOdd     uint64 // rows with a wall time that cannot be
	wallOddFile string
	wallOddLine int64
	wallOddTime float64
}

// Seconds returns the time between the first and the last row.
func (s *Stream) Seconds() float64 { return float64(s.LastUnixMS-s.FirstUnixMS) / 1000 }

// Complete tells whether every row is of a full capture, so that sums over time mean
// something.
func (s *Stream) Complete() bool { return s.Full == s.Rows }

// BusyShare returns how much of the time the rank ran forward passes, from 0 to 1: in a full
// capture the wall times' share of the time between the first and the last row, else the
// share of rows that are no heartbeats.
func (s *Stream) BusyShare() float64 {
	if s.Complete() && s.Seconds() > 0 {
		return min(1, s.WallSum/s.Seconds())
	}
	return ratio(float64(s.Busy), float64(s.Rows))
}

// Rate returns tokens per second: of the time between the first and the last row in a full
// capture. Of a sampled one, whose other passes nobody knows, it is per second of the wall
// time of the passes that are there.
func (s *Stream) Rate(tokens float64) float64 {
	if s.Complete() {
		return s.PerSecond(tokens)
	}
	return s.PerBusySecond(tokens)
}

// Percentile returns the wall time (s) below which the share q of the passes lie, within
// [QuantileError].
func (s *Stream) Percentile(q float64) float64 { return min(s.Wall.Quantile(q), s.WallMax) }

// PerSecond returns tokens per second between the first and the last row.
func (s *Stream) PerSecond(tokens float64) float64 { return ratio(tokens, s.Seconds()) }

// PerBusySecond returns tokens per second of the wall time of the passes.
func (s *Stream) PerBusySecond(tokens float64) float64 { return ratio(tokens, s.WallSum) }

// QueueMean returns the mean number of queued requests over the rows.
func (s *Stream) QueueMean() float64 { return ratio(s.QueuedSum, float64(s.Rows)) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// last is what the next row is held against.
type last struct {
	counter     int64
	timestampMS int64 // since its recorder started
	observedMS  int64
	source      *segment.Source
}

// begun returns when its recorder started (ms).
func (l *last) begun() int64 { return l.observedMS - l.timestampMS }

// apart returns how far the starts of two rows' recorders are apart (ms).
func (l *last) apart(other *last) int64 {
	return max(l.begun()-other.begun(), other.begun()-l.begun())
}

// continues tells whether a row is of the recorder of an earlier one. The starts that the
// rows of a recorder tell are the same to the millisecond, but for a clock that is being
// adjusted; recorders that are started together are hardly ever so near, and one that is
// behind is another.
func (l *last) continues(earlier *last) bool {
	apart := l.apart(earlier)
	return apart <= startJitter || apart <= startTolerance && l.counter > earlier.counter
}

// sameSeries tells whether the files of two rows are segments of one series. A recorder
// writes no other, but what it wrote may have been renamed.
func (l *last) sameSeries(other *last) (same, segments bool) {
	if !l.source.Segment() || !other.source.Segment() {
		return false, false
	}
	return l.source.Name.Series() == other.source.Name.Series(), true
}

// step is what a row's counter says next to the one before it.
type step struct {
	gap     *Gap
	pause   *pause
	restart bool
	from    int64 // the counter before
}

// pause is a run of counters that lie between the last row of one recorder and the first
// of the next, which for that one is a late join.
type pause struct {
	missing  int64
	from, to int64 // wall clock (ms): of the row before, and of the start of the next recorder
}

// add takes a row.
func (s *Stream) add(row *Row, rec *segment.Record, starts []int64) step {
	if s.Rows++; s.Rows == 1 {
		s.FirstUnixMS, s.LastUnixMS = row.ObservedUnixMS, row.ObservedUnixMS
	}
	s.FirstUnixMS, s.LastUnixMS = min(s.FirstUnixMS, row.ObservedUnixMS), max(s.LastUnixMS, row.ObservedUnixMS)
	switch row.Mode {
	case wire.Full:
		s.Full++
	case wire.Sampled:
		s.Sampled++
	}
	s.load(row, rec)
	if !row.Numbered {
		return step{}
	}
	return s.count(row, rec, starts)
}

// The wall times of a forward pass that nobody believes: more than ten minutes, or less than
// a microsecond (s).
const (
	wallTooLong  = 600
	wallTooShort = 1e-6
)

// load takes what a row says of the pass.
func (s *Stream) load(row *Row, rec *segment.Record) {
	if !row.Heartbeat() {
		s.Busy++
	}
	if w := row.WallTime; w > 0 {
		s.Wall.Add(w)
		s.WallSum += w
		s.WallMax = max(s.WallMax, w)
		if w > wallTooLong || w < wallTooShort {
			if s.wallOdd++; s.wallOdd == 1 {
				s.wallOddFile, s.wallOddLine, s.wallOddTime = rec.Source.Path, rec.Number, w
			}
		}
	}
	s.Prefill += float64(row.Scheduled.SumPrefillTokens)
	s.Decode += float64(row.Scheduled.NumDecodeRequests)
	queued := row.Queued.NumPrefillRequests + row.Queued.NumDecodeRequests
	s.QueuedSum += float64(queued)
	s.QueuedMax = max(s.QueuedMax, queued)
}

// count judges the counter. Starts are when recorders began, as far as manifests say.
func (s *Stream) count(row *Row, rec *segment.Record, starts []int64) (st step) {
	now := last{row.CounterID, row.TimestampMS, row.ObservedUnixMS, rec.Source}
	before, known := s.last, s.numbered
	if known && before.source != rec.Source {
		before, known = s.before(&now, row.Layout)
	}
	s.last, s.numbered = now, true
	begun, other := startedSince(row, before, starts)
	if known && other {
		s.Recorders++
	}
	switch {
	case !known || row.CounterID == before.counter+1:
	case row.CounterID < before.counter:
		s.Restarts++
		return step{restart: true, from: before.counter}
	case row.CounterID == before.counter:
		s.Repeats++
	case row.Mode != wire.Full:
	case other:
		missing := row.CounterID - before.counter - 1
		s.Unrecorded += uint64(missing)
		return step{pause: &pause{missing, before.observedMS, begun}}
	default:
		return step{gap: s.gap(row, rec, before.counter)}
	}
	return step{}
}

// maxPast is how many recorders of one series are told apart.
const maxPast = 8

// before returns what the first row of another file is held against; ok is false when
// there is nothing. Counters of two recordings say nothing about each other.
//
// The segments of recorders that share a prefix take turns in one series. Each file is of
// one of them, which the start of its recorder tells. One that started before the row
// before it arrived, and is not known, ran at the same time.
func (s *Stream) before(now *last, layout Layout) (before last, ok bool) {
	same, segments := s.last.sameSeries(now)
	switch {
	case segments && !same:
		s.past = nil
		return last{}, false
	case layout == Received:
		return s.last, segments // its rows tell no start
	case !segments:
		return s.last, now.apart(&s.last) <= startTolerance
	}
	s.past = append(s.past, s.last)
	nearest := 0
	for i := range s.past {
		if now.apart(&s.past[i]) <= now.apart(&s.past[nearest]) {
			nearest = i
		}
	}
	if p := s.past[nearest]; now.continues(&p) {
		s.past = slices.Delete(s.past, nearest, nearest+1)
		return p, true
	}
	if len(s.past) > maxPast {
		s.past = slices.Delete(s.past, 0, 1)
	}
	return s.last, now.begun() > s.last.observedMS
}

// forget has the next row of a series be the first one, for rows before it were deleted
// while the files were being read.
func (t *tally) forget(series string) {
	for _, s := range t.streams {
		if s.numbered && s.last.source.Segment() && s.last.source.Name.Series() == series {
			s.numbered, s.past = false, nil
		}
	}
}

// gap notes the counters between a row and the one before it.
func (s *Stream) gap(row *Row, rec *segment.Record, before int64) *Gap {
	gap := Gap{First: before + 1, Last: row.CounterID - 1, File: rec.Source.Path, Line: rec.Number, Missing: row.CounterID - before - 1}
	s.Missing += uint64(gap.Missing)
	s.GapRuns++
	s.LongestGap = max(s.LongestGap, uint64(gap.Missing))
	if len(s.Gaps) < MaxGaps {
		s.Gaps = append(s.Gaps, gap)
	}
	return &gap
}

// startTolerance is how far the start that a row tells may be from that of a manifest, for
// a clock that is being adjusted (ms).
const startTolerance = 2000

// startJitter is how far the starts that two rows of a recorder tell are apart (ms).
const startJitter = 2

// startedSince returns when a row's recorder started (ms), and whether that was after the
// row before, so that no recorder wrote what lies between. A row tells both times, but a
// clock that was set makes it seem so, too: either the time since the start must have gone
// back, or a manifest must know of the start.
func startedSince(row *Row, before last, starts []int64) (begun int64, other bool) {
	begun = row.ObservedUnixMS - row.TimestampMS
	if row.Layout == Received || begun <= before.observedMS {
		return begun, false
	}
	known := func(start int64) bool {
		return max(start-begun, begun-start) <= startTolerance && start > before.observedMS
	}
	return begun, row.TimestampMS < before.timestampMS || slices.ContainsFunc(starts, known)
}

// Torn is a part of a file that could not be read.
type Torn struct {
	File string
	segment.Hole
}

// maxTorn bounds the holes that are listed.
const maxTorn = 100

// Stats are what a trace holds.
type Stats struct {
	Files    int
	Rows     uint64
	BadRows  uint64 // lines that are no valid rows; they count for nothing else
	TornRows uint64 // rows of damaged members that were used
	Holes    uint64
	Torn     []Torn     // the first of the holes
	Streams  []*Stream  // sorted
	Others   uint64     // rows of streams beyond [MaxStreams]
	Failures []error    // files that could not be read, or not to their end
	Accounts []*Account // manifests beside the segments; of [Verify] only
	first    *badRow
}

// badRow is the first invalid line.
type badRow struct {
	file  string
	line  int64
	fault RowError
}

// FirstBad returns where the first invalid line is and what is wrong with it.
func (s *Stats) FirstBad() (file string, line int64, fault error) {
	if s.first == nil {
		return "", 0, nil
	}
	return s.first.file, s.first.line, &s.first.fault
}

// Total returns the streams together, as one.
func (s *Stats) Total() (all Stream) {
	for i, one := range s.Streams {
		if i == 0 {
			all.FirstUnixMS, all.LastUnixMS = one.FirstUnixMS, one.LastUnixMS
		}
		all.FirstUnixMS, all.LastUnixMS = min(all.FirstUnixMS, one.FirstUnixMS), max(all.LastUnixMS, one.LastUnixMS)
		all.Rows, all.Busy = all.Rows+one.Rows, all.Busy+one.Busy
		all.Full, all.Sampled = all.Full+one.Full, all.Sampled+one.Sampled
		all.Unrecorded, all.Recorders = all.Unrecorded+one.Unrecorded, all.Recorders+one.Recorders
		all.Missing, all.GapRuns, all.Restarts = all.Missing+one.Missing, all.GapRuns+one.GapRuns, all.Restarts+one.Restarts
	}
	return all
}

// Summarise reads files and returns what they hold. Read is told of the bytes that have
// been read; it may be nil. The error is that of the context.
func Summarise(ctx context.Context, sources []*segment.Source, read func(int64)) (*Stats, error) {
	t := tally{stats: Stats{Files: len(sources)}, streams: map[StreamID]*Stream{}}
	if err := visit(ctx, sources, read, &t); err != nil {
		return nil, err
	}
	return t.result(), nil
}

// tally gathers statistics.
type tally struct {
	stats   Stats
	streams map[StreamID]*Stream
	recent  [8]*Stream // by rank: rows of one worker's ranks come in turn
	starts  []int64    // of recorders, as manifests say (ms)
}

// stream returns that of a row; nil when there are too many.
func (t *tally) stream(row *Row) *Stream {
	slot := &t.recent[row.DPRank&7]
	if s := *slot; s != nil && s.ID.Rank == row.DPRank && s.ID.Mode == row.Mode && s.ID.Producer == row.ProducerID && s.ID.Worker == row.WorkerID && s.ID.Component == row.Component && s.ID.Namespace == row.Namespace {
		return s
	}
	id := StreamID{row.Namespace, row.Component, row.ProducerID, row.WorkerID, row.DPRank, row.Mode}
	s := t.streams[id]
	if s == nil {
		if len(t.streams) == MaxStreams {
			return nil
		}
		s = &Stream{ID: id}
		t.streams[id] = s
	}
	*slot = s
	return s
}

func (t *tally) row(rec segment.Record, row *Row) {
	t.add(&rec, row)
}

// add takes a row and returns its stream, if there is room for it, and its step.
func (t *tally) add(rec *segment.Record, row *Row) (*Stream, step) {
	t.stats.Rows++
	s := t.stream(row)
	if s == nil {
		t.stats.Others++
		return nil, step{}
	}
	return s, s.add(row, rec, t.starts)
}

func (t *tally) bad(rec segment.Record, fault *RowError) {
	if t.stats.BadRows++; t.stats.BadRows == 1 {
		t.stats.first = &badRow{rec.Source.Path, rec.Number, *fault}
	}
}

func (t *tally) hole(rec segment.Record) {
	t.stats.Holes++
	if rec.Hole.Fault != segment.LongLine {
		t.stats.TornRows += uint64(rec.Hole.Rows)
	}
	if len(t.stats.Torn) < maxTorn {
		t.stats.Torn = append(t.stats.Torn, Torn{rec.Source.Path, *rec.Hole})
	}
}

func (t *tally) failure(err error) { t.stats.Failures = append(t.stats.Failures, err) }

func (t *tally) result() *Stats {
	for _, s := range t.streams {
		t.stats.Streams = append(t.stats.Streams, s)
	}
	slices.SortFunc(t.stats.Streams, func(a, b *Stream) int { return a.ID.compare(b.ID) })
	return &t.stats
}
