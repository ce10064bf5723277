package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/wire"
)

// VerifyOptions say what a capture is held against.
type VerifyOptions struct {
	// Producers must each have a row: producer ids, or their names in files.
	Producers []string
	// ProducerCount is how many producers must have rows, at least; 0 asks for none.
	ProducerCount int
	// Ranks must each have a row of some producer.
	Ranks artifact.RankSet
	// Manifests are paths of recorders' manifests, beside those that are found next to the
	// segments: the segments that they name must be there although none was given.
	Manifests []string
	// Out takes the findings.
	Out *finding.Collector
	// Read is told how many bytes of the files have been read; may be nil.
	Read func(int64)
}

// Verify reads files and tells what keeps the capture from being whole: rows that are
// none (rule trace.row), missing counters of full captures (trace.gap), damaged members
// (trace.torn), missing segments (trace.segment), producers and ranks that were expected
// (trace.producer, trace.rank), and files without rows (trace.empty). It warns of restarts
// (trace.restart), of captures whose gaps cannot be judged (trace.sampled), of wall times
// that cannot be (trace.wall-time), and of series that were recorded in more than one way
// (trace.mixed).
//
// A whole capture is one of which nothing is missing from what its publishers numbered
// between the first and the last row that a recorder has of a rank. What they dropped before
// they numbered it, and what came before, after, and between two recorders, is not judged:
// the last is told as a warning (trace.restart).
func Verify(ctx context.Context, sources []*segment.Source, opt VerifyOptions) (*Stats, error) {
	v := &verifier{
		tally: tally{stats: Stats{Files: len(sources)}, streams: map[StreamID]*Stream{}},
		out:   opt.Out, rows: map[*segment.Source]uint64{}, marked: map[*segment.Source]bool{}, series: map[string]*series{},
	}
	v.accounts(sources, opt.Manifests)
	if err := visit(ctx, sources, opt.Read, v); err != nil {
		return nil, err
	}
	stats := v.result()
	v.files(sources)
	v.mixed()
	v.warnings(stats)
	v.expected(stats, opt)
	return stats, nil
}

// verifier gathers statistics and adds findings on the way.
type verifier struct {
	tally
	out    *finding.Collector
	rows   map[*segment.Source]uint64 // lines, valid or not, of the files before the current one
	marked map[*segment.Source]bool   // files with holes
	series map[string]*series

	source *segment.Source // the current file
	lines  uint64          // its lines so far
	noted  *segment.Source // the file whose last row was recorded in this way
	way    way
}

// series is what the rows of a series of files have in common: nothing, if all goes well.
type series struct {
	ways map[way]place
}

// way is how a row was recorded.
type way struct {
	layout Layout
	mode   wire.Mode
	schema string // of rows that are not valid, since it is another one
}

func (w way) String() string {
	switch {
	case w.schema != "":
		return fmt.Sprintf("the schema %q", w.schema)
	case w.layout == Received:
		return w.layout.String()
	}
	return "the " + string(w.mode) + " capture mode"
}

// maxWays is how many ways of a series are told apart: two make a warning.
const maxWays = 8

// place is the first row of its way.
type place struct {
	file         string
	line, offset int64
}

// say adds a finding about a line of a file.
func (v *verifier) say(rule finding.ID, rec *segment.Record, f finding.Finding) {
	f.Rule, f.File, f.Line, f.Column, f.Offset = rule, rec.Source.Path, int(rec.Number), max(1, f.Column), rec.Offset+int64(max(1, f.Column)-1)
	v.out.Add(f)
}

func (v *verifier) row(rec segment.Record, row *Row) {
	v.line(rec.Source)
	if w := (way{layout: row.Layout, mode: row.Mode}); w != v.way || rec.Source != v.noted {
		v.note(&rec, w)
	}
	s, st := v.add(&rec, row)
	switch {
	case st.gap != nil:
		v.say(finding.TraceGap, &rec, finding.Finding{
			Rank: rankOf(s.ID.Rank), Pointer: pointerOf(row, "counter_id"),
			Message:  fmt.Sprintf("%s missing of rank %d of producer %s", words.Count(st.gap.Missing, "message is", "messages are"), s.ID.Rank, s.ID.Producer),
			Expected: strconv.FormatInt(st.gap.First, 10), Actual: strconv.FormatInt(row.CounterID, 10), Hint: v.gapHint(s),
		})
	case st.pause != nil:
		v.say(finding.TraceRestart, &rec, finding.Finding{
			Rank: rankOf(s.ID.Rank), Pointer: pointerOf(row, "counter_id"), Message: v.pauseText(s, st.pause),
		})
	case st.restart:
		v.say(finding.TraceRestart, &rec, finding.Finding{
			Rank: rankOf(s.ID.Rank), Pointer: pointerOf(row, "counter_id"),
			Message: fmt.Sprintf("rank %d of producer %s was restarted: its counter goes from %d back to %d", s.ID.Rank, s.ID.Producer, st.from, row.CounterID),
		})
	}
}

// gapHint points to the manifest that explains a gap, if one does.
func (v *verifier) gapHint(s *Stream) string {
	for _, account := range v.stats.Accounts {
		if n := account.Refused(s.ID); n > 0 {
			return fmt.Sprintf("%s says that the recorder refused %s of this rank, which have counters and no rows: see rejected there", account.Path, words.Count(n, "message", "messages"))
		}
	}
	return "" // that of the rule
}

// pauseText says what nobody was there to record, and since when: the recorder before ended
// some time after its last row, and only its manifest says when.
func (v *verifier) pauseText(s *Stream, p *pause) string {
	from, killed := p.from, ""
	for _, account := range v.stats.Accounts {
		before := account.Previous
		if before == nil || before.UpdatedUnixMS < p.from || before.UpdatedUnixMS > p.to {
			continue
		}
		if from = before.UpdatedUnixMS; before.State == "recording" {
			killed = "; the recorder before was killed, which can cost its last second"
		}
	}
	return fmt.Sprintf("%s of rank %d of producer %s published while no recorder ran (%s - %s)%s",
		words.Count(p.missing, "message", "messages"), s.ID.Rank, s.ID.Producer, clockText(from), clockText(p.to), killed)
}

func clockText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// rankOf returns a rank for a finding. One that no machine could have is none.
func rankOf(rank int64) int {
	if rank > artifact.MaxRank {
		return finding.NoRank
	}
	return int(rank)
}

func pointerOf(row *Row, key string) string {
	if row.Layout == Received {
		return "/metrics/" + key
	}
	return "/event/fpm/" + key
}

// line counts a line of a file, and notes when another file begins.
func (v *verifier) line(source *segment.Source) {
	if source != v.source {
		v.rows[v.source] += v.lines
		v.source, v.lines = source, 0
	}
	v.lines++
}

// note notes how a row was recorded.
func (v *verifier) note(rec *segment.Record, w way) {
	name := rec.Source.Path
	if rec.Source.Segment() {
		name = rec.Source.Name.Series()
	}
	s := v.series[name]
	if s == nil {
		s = &series{ways: map[way]place{}}
		v.series[name] = s
	}
	v.way, v.noted = w, rec.Source
	if _, ok := s.ways[w]; !ok && len(s.ways) < maxWays {
		s.ways[w] = place{rec.Source.Path, rec.Number, rec.Offset}
	}
}

func (v *verifier) failure(err error) {
	v.tally.failure(err)
	if name, ok := segment.Parse(failureOf(err)); ok && errors.Is(err, fs.ErrNotExist) {
		v.forget(name.Series())
	}
}

func (v *verifier) bad(rec segment.Record, fault *RowError) {
	v.line(rec.Source)
	v.tally.bad(rec, fault)
	if fault.Schema != "" {
		v.note(&rec, way{schema: fault.Schema})
	}
	v.say(finding.TraceRow, &rec, finding.Finding{Rank: finding.NoRank, Pointer: fault.Pointer, Message: fault.Message, Column: fault.Offset + 1})
}

func (v *verifier) hole(rec segment.Record) {
	v.tally.hole(rec)
	v.marked[rec.Source] = true
	if rec.Hole.Fault == segment.LongLine {
		v.line(rec.Source)
		v.say(finding.TraceRow, &rec, finding.Finding{Rank: finding.NoRank, Message: fmt.Sprintf("a line of more than %d MiB", segment.MaxLine>>20)})
		return
	}
	v.say(finding.TraceTorn, &rec, finding.Finding{Rank: finding.NoRank, Message: HoleText(rec.Hole)})
}

// HoleText says in words what cannot be read and what was recovered.
func HoleText(h *segment.Hole) string {
	size := fmt.Sprintf("%s at byte %d of the file", words.Count(h.End-h.Offset, "byte", "bytes"), h.Offset)
	rows := words.Count(h.Rows, "row", "rows")
	used := words.Plural(h.Rows, "is", "are") + " used"
	behind := "; reading goes on with the next member"
	if h.Last {
		behind = "; nothing readable follows"
	}
	switch h.Fault {
	case segment.Deleted:
		return deletedText(h)
	case segment.LongLine:
		return fmt.Sprintf("a line of more than %d MiB is left out", segment.MaxLine>>20)
	case segment.Cut:
		return "a gzip member is cut off, " + size + ": " + rows + " before the cut " + used + behind
	case segment.NotGzip:
		return "no gzip member begins there, " + size + behind
	default:
		return "a gzip member is damaged, " + size + ": " + rows + " of it " + used + behind
	}
}

// deletedText says what was deleted before it was read.
func deletedText(h *segment.Hole) string {
	switch {
	case h.Segments > 1:
		return fmt.Sprintf("%d segments from this one on were deleted before they were read", h.Segments)
	case h.Offset > 0:
		return fmt.Sprintf("the segment was deleted before it was read to its end: what was written to it behind byte %d is not read", h.Offset)
	default:
		return "the segment was deleted before it was read"
	}
}

// files looks at the files as a whole: those without rows, and the gaps between indices.
func (v *verifier) files(sources []*segment.Source) {
	v.rows[v.source] += v.lines
	there := v.shelves()
	gone := v.vanished(there)
	bySeries := map[string][]*segment.Source{}
	for _, s := range sources {
		if s.Segment() {
			bySeries[s.Name.Series()] = append(bySeries[s.Name.Series()], s)
		}
	}
	for _, s := range sources {
		if v.rows[s] == 0 && !v.failed(s) && !gone[s.Path] && !v.begun(s, bySeries[s.Name.Series()]) {
			v.out.Add(finding.Finding{Rule: finding.TraceEmpty, File: s.Path, Offset: -1, Rank: finding.NoRank, Message: "the file has no rows"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(bySeries)) {
		v.indices(bySeries[name], there)
	}
	v.manifests(there)
}

// begun tells whether a file without rows is what a recorder that is running, or was
// killed, had just created: the newest of a series that has rows, and without a byte when it
// was read.
func (v *verifier) begun(s *segment.Source, list []*segment.Source) bool {
	if len(list) < 2 || list[len(list)-1] != s || v.marked[s] {
		return false
	}
	return slices.ContainsFunc(v.stats.Accounts, func(a *Account) bool {
		prefix, ok := segment.ManifestPrefix(a.Path)
		return ok && a.State == "recording" && prefix == filepath.Clean(s.Name.Prefix)
	})
}

// failed tells whether a file could not be read.
func (v *verifier) failed(s *segment.Source) bool {
	return slices.ContainsFunc(v.stats.Failures, func(err error) bool { return failureOf(err) == s.Path })
}

// indices looks for holes among the segments of a series. Those before the first one that
// is there are what retention deletes.
func (v *verifier) indices(list []*segment.Source, there *shelves) {
	for i, s := range list[1:] {
		// A link that is older than all segments is no segment that was kept, and one that was
		// deleted while this reads was not, either.
		from, to := max(list[i].Name.Index+1, there.lowest(s.Name)), s.Name.Index
		missing := missingOf(s.Name, from, to)
		if missing == 0 {
			continue
		}
		message := fmt.Sprintf("the segment %06d before it is missing", from)
		if missing > 1 {
			message = fmt.Sprintf("%d segments between %06d and %06d are missing", missing, from-1, to)
		}
		v.out.Add(finding.Finding{Rule: finding.TraceSegment, File: s.Path, Offset: -1, Rank: finding.NoRank, Message: message})
	}
}

// maxLook bounds how many names between two segments are looked for.
const maxLook = 10_000

// missingOf returns how many of the indices from up to to are no files: they may be there
// without having been named.
func missingOf(n segment.Name, from, to uint64) (missing uint64) {
	if from >= to {
		return 0
	}
	if to-from > maxLook {
		return to - from
	}
	for n.Index = from; n.Index < to; n.Index++ {
		if _, err := os.Lstat(n.Path()); err != nil {
			missing++
		}
	}
	return missing
}

// mixed warns of series that were recorded in more than one way.
func (v *verifier) mixed() {
	for _, name := range slices.Sorted(maps.Keys(v.series)) {
		s := v.series[name]
		if len(s.ways) < 2 {
			continue
		}
		ways := slices.SortedFunc(maps.Keys(s.ways), func(a, b way) int { return comparePlace(s.ways[a], s.ways[b]) })
		second := s.ways[ways[1]]
		v.out.Add(finding.Finding{
			Rule: finding.TraceMixed, File: second.file, Line: int(second.line), Column: 1, Offset: second.offset, Rank: finding.NoRank,
			Message: fmt.Sprintf("rows of %s follow rows of %s in one series", ways[1], ways[0]),
		})
	}
}

func comparePlace(a, b place) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
}

// warnings tells of what is odd about the streams.
func (v *verifier) warnings(stats *Stats) {
	sampled := 0
	for _, s := range stats.Streams {
		if s.Sampled > 0 || s.Full == 0 {
			sampled++
		}
		if s.wallOdd > 0 {
			v.out.Add(finding.Finding{
				Rule: finding.TraceWallTime, File: s.wallOddFile, Line: int(s.wallOddLine), Column: 1, Offset: -1, Rank: rankOf(s.ID.Rank),
				Message: fmt.Sprintf("rank %d of producer %s has %s with a wall time that no forward pass has, this one %g s", s.ID.Rank, s.ID.Producer, words.Count(s.wallOdd, "row", "rows"), s.wallOddTime),
			})
		}
	}
	if sampled > 0 {
		v.out.Add(finding.Finding{
			Rule: finding.TraceSampled, Offset: -1, Rank: finding.NoRank,
			Message: fmt.Sprintf("%d of %s %s not judged", sampled, words.Count(len(stats.Streams), "stream", "streams"), words.Plural(sampled, "is no full capture: its gaps are", "are no full captures: their gaps are")),
		})
	}
}

// expected holds the streams against what was expected.
func (v *verifier) expected(stats *Stats, opt VerifyOptions) {
	producers, ranks := map[string]bool{}, map[int64]bool{}
	distinct := map[string]bool{}
	for _, s := range stats.Streams {
		distinct[s.ID.Producer] = true
		producers[s.ID.Producer], producers[segment.Sanitise(s.ID.Producer)] = true, true
		ranks[s.ID.Rank] = true
	}
	say := func(rule finding.ID, expected, actual, format string, args ...any) {
		v.out.Add(finding.Finding{Rule: rule, Offset: -1, Rank: finding.NoRank, Message: fmt.Sprintf(format, args...), Expected: expected, Actual: actual})
	}
	if len(distinct) < opt.ProducerCount {
		say(finding.TraceProducer, strconv.Itoa(opt.ProducerCount), strconv.Itoa(len(distinct)), "fewer producers have rows than were expected")
	}
	for _, name := range opt.Producers {
		if !producers[name] {
			say(finding.TraceProducer, "", "", "no row of the producer %s, which was expected", name)
		}
	}
	for _, rank := range opt.Ranks {
		if !ranks[int64(rank)] {
			say(finding.TraceRank, "", "", "no row of rank %d, which was expected", rank)
		}
	}
	if stats.Files > 0 && stats.Rows == 0 && stats.BadRows == 0 && len(stats.Failures) == 0 {
		say(finding.TraceEmpty, "", "", "there is no row at all")
	}
}
