package merge

import (
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// pipeSize is how much text is written at once.
const pipeSize = 512 << 10

// pipe hands full buffers to a goroutine that writes them, so that text is made while
// other text is written.
type pipe struct {
	buf     []byte
	flushed int64
	full    chan []byte
	empty   chan empty
	done    chan struct{}
	err     error // of the writer; to be read once done is closed
	report  func(written int64)
}

// empty is a buffer that comes back, and the error that the writer had met by then.
type empty struct {
	buf []byte
	err error
}

func newPipe(w io.Writer, report func(int64)) *pipe {
	p := &pipe{
		buf:    make([]byte, 0, pipeSize+pipeSize/4),
		full:   make(chan []byte),
		empty:  make(chan empty, 1),
		done:   make(chan struct{}),
		report: report,
	}
	p.empty <- empty{buf: make([]byte, 0, pipeSize+pipeSize/4)}
	go p.run(w)
	return p
}

func (p *pipe) run(w io.Writer) {
	defer close(p.done)
	for buf := range p.full {
		if p.err == nil {
			_, p.err = w.Write(buf)
			p.report(int64(len(buf)))
		}
		p.empty <- empty{buf[:0], p.err}
	}
}

// flushIfFull passes the buffer on when it holds enough.
func (p *pipe) flushIfFull() error {
	if len(p.buf) < pipeSize {
		return nil
	}
	return p.flush()
}

func (p *pipe) flush() error {
	p.flushed += int64(len(p.buf))
	p.full <- p.buf
	back := <-p.empty
	p.buf = back.buf
	return back.err
}

// close writes what is left and returns how much was written in all.
func (p *pipe) close() (int64, error) {
	err := p.flush()
	close(p.full)
	<-p.done
	if err == nil {
		err = p.err
	}
	return p.flushed, err
}

// copier copies values of rank files into the merged document.
type copier struct {
	buf     []byte
	layout  pyjson.Reindenter
	shifter pyjson.Shifter
}

// copy copies the value at a span, laid out at a nesting level.
func (c *copier) copy(p *pipe, src io.ReaderAt, span jsonstream.Span, level int) error {
	c.layout.Reset(level)
	return c.each(p, src, span, c.layout.Append)
}

// shift copies the value at a span, which is laid out already, to a level lower by some.
func (c *copier) shift(p *pipe, src io.ReaderAt, span jsonstream.Span, levels int) error {
	c.shifter = *pyjson.NewShifter(levels)
	return c.each(p, src, span, c.shifter.Append)
}

func (c *copier) each(p *pipe, src io.ReaderAt, span jsonstream.Span, appendTo func(dst, src []byte) []byte) error {
	for at := span.Off; at < span.End(); {
		n, err := src.ReadAt(c.buf[:min(int64(len(c.buf)), span.End()-at)], at)
		if n == 0 {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return &jsonstream.ReadError{Offset: at, Err: err}
		}
		p.buf = appendTo(p.buf, c.buf[:n])
		at += int64(n)
		if err := p.flushIfFull(); err != nil {
			return err
		}
	}
	return nil
}
