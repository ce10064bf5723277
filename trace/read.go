package trace

import (
	"context"
	"errors"
	"io"

	"github.com/fpm-project/fpm/trace/segment"
)

// visitor takes what is found in the files of a trace.
type visitor interface {
	// row takes a row that keeps the rules. Both are valid during the call.
	row(rec segment.Record, row *Row)
	// bad takes a line that breaks them.
	bad(rec segment.Record, fault *RowError)
	// hole takes a part that cannot be read.
	hole(rec segment.Record)
	// failure takes an error of reading a file.
	failure(err error)
}

// cancelEvery is how many rows pass between two looks at the context.
const cancelEvery = 1024

// visit reads files in their order. It returns an error when the context is done.
func visit(ctx context.Context, sources []*segment.Source, read func(int64), v visitor) error {
	r := segment.NewReader(sources, segment.ReaderOptions{Read: read})
	defer r.Close()
	defer context.AfterFunc(ctx, r.Close)() // a call of Next can pass over any number of blank lines
	var p Parser
	var row Row
	for n := 0; ; n++ {
		if n%cancelEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		rec, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return ctx.Err()
		case err != nil:
			v.failure(err)
		case rec.Hole != nil:
			v.hole(rec)
		default:
			p.tell(rec, &row, v)
		}
	}
}

// tell parses a line and tells the visitor of it. What is not right in a member that is cut
// off is a part of the hole that follows.
func (p *Parser) tell(rec segment.Record, row *Row, v visitor) {
	err := p.Parse(rec.Line, row)
	var fault *RowError
	switch {
	case err == nil:
		v.row(rec, row)
	case errors.As(err, &fault) && !rec.Cut && !Blank(rec.Line):
		v.bad(rec, fault)
	}
}
