package trace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/trace/segment"
)

// Filter chooses rows. The zero Filter takes every line, as it stands.
type Filter struct {
	Since, Until time.Time // arrival, from Since to before Until; zero: no bound
	Producers    []string  // producer ids, or their names in files; empty: all
	Ranks        []int     // empty: all
	Kind         Kind
}

// Kind is what a row is about.
type Kind string

// The kinds.
const (
	Any       Kind = ""
	Busy      Kind = "busy"      // a forward pass
	Heartbeat Kind = "heartbeat" // all zeros, from an idle publisher
)

// all tells whether a filter takes every row.
func (f *Filter) all() bool {
	return f.Since.IsZero() && f.Until.IsZero() && len(f.Producers) == 0 && len(f.Ranks) == 0 && f.Kind == Any
}

// Takes tells whether a row is chosen.
func (f *Filter) Takes(row *Row) bool {
	at := row.ObservedUnixMS
	switch {
	case !f.Since.IsZero() && at < f.Since.UnixMilli(), !f.Until.IsZero() && at >= f.Until.UnixMilli():
		return false
	case len(f.Ranks) > 0 && !containsRank(f.Ranks, row.DPRank):
		return false
	case f.Kind == Busy && row.Heartbeat(), f.Kind == Heartbeat && !row.Heartbeat():
		return false
	default:
		return len(f.Producers) == 0 || containsProducer(f.Producers, row.ProducerID)
	}
}

func containsRank(ranks []int, rank int64) bool {
	for _, r := range ranks {
		if int64(r) == rank {
			return true
		}
	}
	return false
}

func containsProducer(names []string, id string) bool {
	for _, name := range names {
		if name == id || name == segment.Sanitise(id) {
			return true
		}
	}
	return false
}

// CatOptions are the options of [Cat] and [Follow].
type CatOptions struct {
	Filter
	Metric bool        // write the metric alone instead of the line
	Read   func(int64) // told how many bytes of the files have been read; may be nil
	Warn   func(error) // told by [Follow] of a failure that is not the one before; may be nil
	Lost   func(Torn)  // told by [Follow] of segments that were deleted before they were read; may be nil
}

// parses tells whether lines have to be understood.
func (o *CatOptions) parses() bool { return o.Metric || !o.all() }

// Copied is what became of the lines of a trace that was written out.
type Copied struct {
	Lines    uint64 // written
	Skipped  uint64 // rows that the filter does not take
	BadRows  uint64 // lines that are no valid rows, and therefore not written
	Torn     []Torn // the first of the holes
	Holes    uint64
	Deleted  uint64  // holes that are segments which were deleted before [Follow] had read them
	Damaged  uint64  // holes that are damage, and not the cut end of a file: see [Damage]
	Failures []error // files that could not be read, or not to their end
}

// Read returns how many rows were read, written or not.
func (c *Copied) Read() uint64 { return c.Lines + c.Skipped }

// Cat writes the chosen lines of files, one after another, as they stand in the files.
// With a filter, and when the metric alone is asked for, lines that are no valid rows are
// left out and counted; without, every line is written but blank ones, and the rows of a
// member that is cut off when they are none. The error is that of w or of the context.
func Cat(ctx context.Context, w io.Writer, sources []*segment.Source, opt CatOptions) (*Copied, error) {
	c := &copier{opt: opt, out: bufio.NewWriterSize(w, 256<<10)}
	r := segment.NewReader(sources, segment.ReaderOptions{Read: opt.Read})
	defer r.Close()
	for n := 0; ; n++ {
		if n%cancelEvery == 0 && ctx.Err() != nil {
			return &c.Copied, errors.Join(ctx.Err(), c.out.Flush())
		}
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return &c.Copied, c.out.Flush()
		case err != nil:
			c.Failures = append(c.Failures, err)
		default:
			if err := c.take(rec); err != nil {
				return &c.Copied, err
			}
		}
	}
}

// Follow is [Cat] for files that grow: it goes on with what is written to them, and with
// the segments that follow, until the context is done, which is no error. Ticks say when
// to look; what was found is written before the next wait. What fails at one look is tried
// again at the next.
func Follow(ctx context.Context, w io.Writer, args []string, opt CatOptions, ticks <-chan time.Time) (*Copied, error) {
	c := &copier{opt: opt, out: bufio.NewWriterSize(w, 256<<10)}
	f := segment.NewFollower(args, segment.FollowOptions{})
	for {
		err := f.Poll(c.take)
		if werr := c.out.Flush(); werr != nil {
			return &c.Copied, werr
		}
		// No input at all is nothing that time heals.
		if err != nil && exitcode.Of(err) == exitcode.Usage {
			return &c.Copied, err
		}
		c.failed(err)
		select {
		case <-ctx.Done():
			return &c.Copied, nil
		case <-ticks:
		}
	}
}

// failed notes the failure of a poll, nil when it was none.
func (c *copier) failed(err error) {
	if err != nil && c.opt.Warn != nil && (len(c.Failures) == 0 || c.Failures[0].Error() != err.Error()) {
		c.opt.Warn(err)
	}
	c.Failures = nil
	if err != nil {
		c.Failures = []error{err}
	}
}

// copier writes lines.
type copier struct {
	Copied
	opt    CatOptions
	out    *bufio.Writer
	parser Parser
	row    Row
}

func (c *copier) take(rec segment.Record) error {
	if rec.Hole != nil {
		c.lacks(Torn{rec.Source.Path, *rec.Hole})
		return nil
	}
	line := rec.Line
	if rec.Cut || c.opt.parses() {
		var ok bool
		if line, ok = c.choose(rec); !ok {
			return nil
		}
	}
	c.Lines++
	if _, err := c.out.Write(line); err != nil {
		return err
	}
	return c.out.WriteByte('\n')
}

// lacks notes what could not be read.
func (c *copier) lacks(t Torn) {
	c.Holes++
	if Damage(&t.Hole) {
		c.Damaged++
	}
	if len(c.Torn) < maxTorn {
		c.Torn = append(c.Torn, t)
	}
	if t.Fault == segment.Deleted {
		c.Deleted++
		if c.opt.Lost != nil {
			c.opt.Lost(t)
		}
	}
}

// Damage tells whether a hole is damage, as opposed to what a recorder that was killed
// leaves at the end of a file: a member that is cut off, or a tail that was never written.
func Damage(h *segment.Hole) bool {
	return h.Fault == segment.Damaged || (h.Fault == segment.Cut || h.Fault == segment.NotGzip) && !h.Last
}

// choose returns what is to be written of a line.
func (c *copier) choose(rec segment.Record) (line []byte, ok bool) {
	if err := c.parser.Parse(rec.Line, &c.row); err != nil {
		if !rec.Cut && !Blank(rec.Line) {
			c.BadRows++
		}
		return nil, false
	}
	if !c.opt.Takes(&c.row) {
		c.Skipped++
		return nil, false
	}
	if c.opt.Metric {
		return bytes.TrimSpace(c.row.JSON), true
	}
	return rec.Line, true
}
