package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/fpm-project/fpm/internal/exitcode"
)

// MaxLine is the longest line that is read, in bytes. A longer one is a [Hole].
const MaxLine = 16 << 20

// Record is an item of the stream: a line, or a hole.
type Record struct {
	Source *Source
	Line   []byte // without its line end; valid until the next call; nil for a hole
	Hole   *Hole  // nil for a line
	// Cut tells that the line is of a member that is cut off: no checksum proves it right.
	// The hole follows.
	Cut bool

	Number int64 // of the line in the file's text, from 1
	Offset int64 // of the line in the file's text, in bytes
}

// lines makes records of the chunks of one file.
type lines struct {
	source *Source
	text   []byte // not handed out so far
	carry  []byte // the beginning of a line whose end is in the next chunk
	large  bool   // carry is kept when it is large: there is one for all files
	skip   bool   // within a line that is too long
	cut    bool   // text is of a member that is cut off

	number, offset int64
	member         int64 // lines of this member so far
	long           *Hole // to be told
}

// feed takes the next piece of text.
func (l *lines) feed(c *chunk) {
	l.text, l.cut = c.text, c.cut
	if c.begins {
		l.member = 0
	}
}

// hole returns the record of a hole. The beginning of a line before it has no end.
func (l *lines) hole(c *chunk) Record {
	l.carry, l.skip, l.text = l.carry[:0], false, nil
	if c.begins {
		l.member = 0
	}
	c.hole.Rows = l.member
	return Record{Source: l.source, Hole: c.hole, Number: l.number + 1, Offset: l.offset}
}

// next returns the next whole line.
func (l *lines) next() (line []byte, ok bool) {
	l.blank()
	i := bytes.IndexByte(l.text, '\n')
	if i < 0 {
		l.keep()
		return nil, false
	}
	line, l.text = l.text[:i], l.text[i+1:]
	if len(l.carry) > 0 || l.skip {
		return l.finish(line)
	}
	return line, true
}

// blank passes over blank lines. They are no rows, and a few bytes of gzip can hold a
// million of them.
func (l *lines) blank() {
	if len(l.text) == 0 || l.text[0] > ' ' || len(l.carry) > 0 || l.skip {
		return
	}
	end := 0 // behind the last blank line
	for i, c := range l.text {
		if c == '\n' {
			l.number++
			end = i + 1
		} else if c != ' ' && c != '\t' && c != '\r' {
			break
		}
	}
	l.offset += int64(end)
	l.text = l.text[end:]
}

// finish ends the line that began in an earlier chunk.
func (l *lines) finish(end []byte) (line []byte, ok bool) {
	if l.skip || len(l.carry)+len(end) > MaxLine {
		l.tooLong(len(l.carry) + len(end) + 1)
		l.skip, l.carry = false, l.carry[:0]
		if l.long != nil {
			return nil, false // to be told before the next line
		}
		return l.next()
	}
	line = append(l.carry, end...)
	l.carry = l.carry[:0]
	if l.large || cap(line) <= largeCarry {
		l.carry = line[:0]
	} else {
		l.carry = nil
	}
	return line, true
}

// keep keeps the beginning of a line for the next chunk.
func (l *lines) keep() {
	if l.skip || len(l.carry)+len(l.text) > MaxLine {
		l.tooLong(len(l.carry) + len(l.text))
		l.skip, l.carry = true, l.carry[:0]
	} else {
		if n := len(l.carry) + len(l.text); n > largeCarry && cap(l.carry) < n {
			// The whole room at once: to grow into it would take it twice.
			l.carry = append(make([]byte, 0, MaxLine), l.carry...)
		}
		l.carry = append(l.carry, l.text...)
	}
	l.text = nil
}

// largeCarry is the size of a line's beginning from which on memory matters, in bytes.
const largeCarry = 4 * chunkSize

// tooLong notes that n bytes of a line are not read. The line is told of once.
func (l *lines) tooLong(n int) {
	if !l.skip {
		l.long = &Hole{Fault: LongLine, Offset: l.offset, Rows: l.member}
		l.number++
	}
	l.offset += int64(n)
}

// pull returns the next line, or the hole of one that is too long; ok is false when the
// text is used up.
func (l *lines) pull() (rec Record, ok bool) {
	if l.long == nil {
		if line, ok := l.next(); ok {
			return l.record(line), true
		}
	}
	if h := l.long; h != nil {
		l.long = nil
		return Record{Source: l.source, Hole: h, Number: l.number, Offset: h.Offset}, true
	}
	return Record{}, false
}

// record returns the record of a line.
func (l *lines) record(line []byte) Record {
	l.number++
	l.member++
	r := Record{Source: l.source, Line: line, Cut: l.cut, Number: l.number, Offset: l.offset}
	l.offset += int64(len(line)) + 1
	return r
}

// last returns the line that the file ends with when it has no line end.
func (l *lines) last() (line []byte, ok bool) {
	line, l.carry = l.carry, l.carry[:0]
	return line, len(line) > 0
}

// ReaderOptions are the options of a [Reader].
type ReaderOptions struct {
	// Read is told how many bytes of the files have been read, from another goroutine; may
	// be nil.
	Read func(bytes int64)
}

// Reader reads files one after another and hands out their lines. It inflates in a
// goroutine of its own, so that two cores are at work. Its memory is bounded, whatever the
// files hold. Close ends it.
type Reader struct {
	items chan item
	free  chan *chunk
	stop  chan struct{}
	close func()
	ended chan struct{}

	current *chunk
	lines   lines
	err     error
}

// item is what the goroutine hands over: one of these.
type item struct {
	source *Source // a file begins
	chunk  *chunk
	err    error // a file cannot be read, or not to its end
	end    bool  // the file ends
}

// errStopped ends the goroutine.
var errStopped = errors.New("stopped")

const queue = 8 // chunks between the two goroutines

// NewReader returns a reader of files. They are opened one at a time.
func NewReader(sources []*Source, opt ReaderOptions) *Reader {
	r := &Reader{
		items: make(chan item, queue), free: make(chan *chunk, queue+maxHeld+2),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	r.close = sync.OnceFunc(func() { close(r.stop) })
	go r.run(sources, opt)
	return r
}

// Close ends the reader. It waits for its goroutine.
func (r *Reader) Close() {
	r.close()
	<-r.ended
}

func (r *Reader) run(sources []*Source, opt ReaderOptions) {
	defer close(r.ended)
	defer close(r.items)
	d := newDecoder()
	d.read = opt.Read
	for _, s := range sources {
		if r.send(item{source: s}) != nil {
			return
		}
		err := d.readFile(s, pipe{r})
		if errors.Is(err, errStopped) || r.send(item{err: err, end: true}) != nil {
			return
		}
	}
}

// pipe is the reader as the sink of its goroutine.
type pipe struct{ *Reader }

func (p pipe) buffer() *chunk {
	select {
	case c := <-p.free:
		*c = chunk{text: c.text[:0]}
		return c
	default:
		return &chunk{text: make([]byte, 0, chunkSize)}
	}
}

func (p pipe) take(c *chunk) error { return p.send(item{chunk: c}) }

func (r *Reader) send(i item) error {
	select {
	case r.items <- i:
		return nil
	case <-r.stop:
		return errStopped
	}
}

// openFile opens a regular file for reading.
func openFile(path string) (*os.File, int64, error) {
	// Without O_NONBLOCK the opening of a pipe would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &exitcode.Error{Code: exitcode.Failed, File: path, Message: "not a regular file"}
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// readFile reads a whole file.
func (d *decoder) readFile(s *Source, out sink) error {
	f, size, err := openFile(s.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	zipped, err := isGzip(f, s.Path)
	if err != nil {
		return err
	}
	d.drop()
	if zipped {
		_, err = d.run(f, size, 0, out)
	} else {
		_, err = d.plain(f, size, 0, out)
	}
	if err != nil && !errors.Is(err, errStopped) {
		var path *fs.PathError
		if !errors.As(err, &path) {
			err = fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return err
}

// isGzip tells whether a file is gzip, by its content. The name decides only where the
// content is neither gzip nor like JSON lines.
func isGzip(f io.ReaderAt, path string) (bool, error) {
	var head [2]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	if n == 2 && head[0] == 0x1f && head[1] == 0x8b {
		return true, nil
	}
	plain := n == 0 || head[0] == '{' || head[0] == ' ' || head[0] == '\n' || head[0] == '\r' || head[0] == '\t'
	return !plain && strings.HasSuffix(filepath.Base(path), ".gz"), nil
}

// plain hands out the text of a file that is not compressed, and returns its end.
func (d *decoder) plain(f io.ReaderAt, size, offset int64, out sink) (int64, error) {
	for offset < size {
		c := out.buffer()
		n, err := f.ReadAt(c.text[:min(int64(cap(c.text)), size-offset)], offset)
		c.text = c.text[:n]
		offset += int64(n)
		if d.read != nil {
			d.read(int64(n))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return offset, err
		}
		if n == 0 {
			return offset, nil // it became shorter
		}
		if err := out.take(c); err != nil {
			return offset, err
		}
	}
	return offset, nil
}

// Next returns the next line or hole, and [io.EOF] after the last one. Any other error is
// one of reading a file; the next call goes on with the next file.
func (r *Reader) Next() (Record, error) {
	for {
		if rec, ok := r.lines.pull(); ok {
			return rec, nil
		}
		r.recycle()
		if err := r.err; err != nil {
			r.err = nil
			return Record{}, err
		}
		i, ok := <-r.items
		if !ok {
			return Record{}, io.EOF
		}
		if rec, ok := r.take(i); ok {
			return rec, nil
		}
	}
}

// recycle gives the chunk that has been read back.
func (r *Reader) recycle() {
	if r.current == nil {
		return
	}
	select {
	case r.free <- r.current:
	default:
	}
	r.current = nil
}

// take takes an item; some are records by themselves.
func (r *Reader) take(i item) (Record, bool) {
	switch {
	case i.source != nil:
		r.lines = lines{source: i.source, carry: r.lines.carry[:0], large: true}
	case i.end:
		r.err = i.err
		if line, ok := r.lines.last(); ok && i.err == nil {
			return r.lines.record(line), true
		}
	case i.chunk.hole != nil:
		return r.lines.hole(i.chunk), true
	default:
		r.current = i.chunk
		r.lines.feed(i.chunk)
	}
	return Record{}, false
}
