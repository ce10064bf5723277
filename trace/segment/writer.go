package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
)

const (
	// maxBatch is how much text is gathered before it is flushed without being asked, in
	// bytes.
	maxBatch = 1 << 20
	// DefaultRollBytes is the size at which a segment is full (bytes of text).
	DefaultRollBytes = 256 << 20
	// DefaultMaxSegments is how many segments of a producer are kept, the active one
	// included.
	DefaultMaxSegments = 4
	// DefaultMaxBuffered is how much text waits for a disk that fails, in bytes.
	DefaultMaxBuffered = 32 << 20
)

// ErrClosed is returned by the methods of a closed [Writer].
var ErrClosed = errors.New("the segment writer is closed")

// Options say where and how a [Writer] writes. Only Prefix is required.
type Options struct {
	Prefix   string // as [Prefix] returns it, taken as it is; the directory must exist
	Producer string // any text; see [InFileName]

	RollBytes   uint64 // text of a segment in bytes, line ends included; 0 is DefaultRollBytes
	MaxSegments int    // kept for this producer, older runs' included; 0 is DefaultMaxSegments
	MaxBuffered int    // text held while flushes fail, in bytes; 0 is DefaultMaxBuffered
	Fsync       bool   // make each flush durable, not only a segment's end

	Encoder *Encoder    // shared between writers; nil makes one
	Warn    func(error) // told of what went wrong without a loss of rows: deleting, syncing; may be nil
	FS      FS          // nil is the operating system's

	// Directory is shared between writers with one prefix; nil looks for each new segment
	// what there is.
	Directory *Directory
}

// Stats count what became of the rows of a [Writer]. Every row that was appended is written,
// lost, or still buffered.
type Stats struct {
	Rows       uint64 // written, in whole members
	Bytes      uint64 // of text written
	Compressed uint64 // bytes written to files
	Members    uint64
	Segments   uint64 // created
	Deleted    uint64 // segments deleted because there were too many

	LostRows      uint64 // given up because the disk failed for too long
	LostBytes     uint64 // of text given up
	FailedFlushes uint64
}

// batch is text that becomes one member.
type batch struct {
	text  []byte
	rows  uint64
	first bool // begins a segment
}

// Writer writes the rows of one producer into its series of segments. Nothing is created
// before the first flush. It is not safe for concurrent use.
type Writer struct {
	opt   Options
	name  Name // of the next segment to be created, or of the open one
	stats Stats

	batches  []batch // the last one takes rows; the others wait for a flush
	buffered int     // bytes of text in batches
	segBytes uint64  // text of the segment that the last batch goes to, batches included
	segRows  uint64
	failing  bool // the last flush failed: only an explicit one tries again

	file    File // nil between segments
	size    int64
	torn    bool // the file has bytes behind size that could not be cut off so far
	fresh   bool // the file has no member so far
	used    bool // name's index has been taken by this writer
	peers   int  // names of the series that were taken when the file was created
	written []uint64
	closed  bool
	spare   []byte // a small buffer for the next batch
}

// NewWriter returns a writer. It touches no file.
func NewWriter(opt Options) (*Writer, error) {
	if filepath.Base(opt.Prefix) == "." || opt.Prefix == "" || os.IsPathSeparator(opt.Prefix[len(opt.Prefix)-1]) {
		return nil, fmt.Errorf("the prefix %q does not end in the beginning of a file name", opt.Prefix)
	}
	if opt.MaxSegments < 0 || opt.MaxBuffered < 0 {
		return nil, errors.New("the limits of segments and of buffered bytes are not negative")
	}
	if opt.RollBytes == 0 {
		opt.RollBytes = DefaultRollBytes
	}
	if opt.MaxSegments == 0 {
		opt.MaxSegments = DefaultMaxSegments
	}
	if opt.MaxBuffered == 0 {
		opt.MaxBuffered = DefaultMaxBuffered
	}
	if opt.FS == nil {
		opt.FS = system{}
	}
	if opt.Directory == nil {
		opt.Directory = NewDirectory(opt.FS, opt.Prefix)
		opt.Directory.keep = 0
	}
	if opt.Warn == nil {
		opt.Warn = func(error) {}
	}
	if opt.Encoder == nil {
		encoder, err := NewEncoder(0)
		if err != nil {
			return nil, err
		}
		opt.Encoder = encoder
	}
	return &Writer{opt: opt, name: Name{Prefix: opt.Prefix, Producer: InFileName(opt.Prefix, opt.Producer)}}, nil
}

// Append takes a row, its line end included. The row is copied. At 1 MiB, and when the
// segment is full, what is buffered is flushed.
//
// An error tells that this flush failed. The row is kept all the same; it is written by
// the next [Writer.Flush] that succeeds, or counted as lost when more than MaxBuffered
// bytes wait. Until then Append does not try again by itself.
func (w *Writer) Append(row []byte) error {
	if w.closed {
		return ErrClosed
	}
	for w.buffered+len(row) > w.opt.MaxBuffered && w.buffered > 0 {
		w.DropOldest()
	}
	var err error
	if full := w.segRows > 0 && w.segBytes+uint64(len(row)) > w.opt.RollBytes; full {
		err = w.flushUnlessFailing()
		w.begin(true)
		w.segBytes, w.segRows = 0, 0
	}
	w.put(row)
	if err == nil && len(w.batches[len(w.batches)-1].text) >= maxBatch {
		err = w.flushUnlessFailing()
		w.begin(false)
	}
	return err
}

// put appends a row to the last batch.
func (w *Writer) put(row []byte) {
	if len(w.batches) == 0 {
		w.begin(false)
	}
	b := &w.batches[len(w.batches)-1]
	if cap(b.text)-len(b.text) < len(row) && len(b.text) >= keep {
		if large := w.opt.Encoder.borrow(); cap(large) >= len(b.text)+len(row) {
			b.text = append(large, b.text...)
		}
	}
	if full := len(b.text) + len(row); full > cap(b.text) && full >= maxBatch {
		// Nothing follows that would fill more.
		b.text = append(make([]byte, 0, full), b.text...)
	}
	b.text = append(b.text, row...)
	b.rows++
	w.buffered += len(row)
	w.segBytes += uint64(len(row))
	w.segRows++
}

// begin opens a batch, unless the last one is empty and can be taken for it.
func (w *Writer) begin(segment bool) {
	if n := len(w.batches); n > 0 && w.batches[n-1].rows == 0 {
		w.batches[n-1].first = w.batches[n-1].first || segment
		return
	}
	w.batches = append(w.batches, batch{first: segment, text: w.spare})
	w.spare = nil
}

// Buffered returns how many bytes of text wait for a flush.
func (w *Writer) Buffered() int { return w.buffered }

// Memory returns how many bytes the buffers of the text have, what is not used of them and
// what is kept for later included.
func (w *Writer) Memory() int {
	total := cap(w.spare)
	for i := range w.batches {
		total += cap(w.batches[i].text)
	}
	return total
}

// Trim gives up the buffer that is kept for later.
func (w *Writer) Trim() { w.spare = nil }

// Stats returns the counts so far.
func (w *Writer) Stats() Stats { return w.stats }

// Path returns the path of the open segment, "" when there is none.
func (w *Writer) Path() string {
	if w.file == nil {
		return ""
	}
	return w.name.Path()
}

// Segments returns the paths of the segments that this writer has created and not deleted,
// in order. One that has no member so far is not among them.
func (w *Writer) Segments() []string {
	paths := make([]string, len(w.written))
	for i, index := range w.written {
		paths[i] = Name{w.name.Prefix, w.name.Producer, index}.Path()
	}
	return paths
}

// DropOldest gives up the oldest buffered batch, up to a mebibyte and a row, and returns
// how many rows that were: for a caller whose writers share a budget of memory. The rows
// are counted as lost.
func (w *Writer) DropOldest() (rows uint64) {
	for len(w.batches) > 0 && rows == 0 {
		b := w.batches[0]
		w.stats.LostRows += b.rows
		w.stats.LostBytes += uint64(len(b.text))
		rows = b.rows
		if !slices.ContainsFunc(w.batches[1:], func(b batch) bool { return b.first }) {
			w.segBytes -= uint64(len(b.text)) // it was for the current segment
			w.segRows -= b.rows
		}
		w.pop()
		if b.first {
			if len(w.batches) == 0 {
				w.begin(true)
			}
			w.batches[0].first = true
		}
	}
	return rows
}

// pop removes the oldest batch. A small buffer is kept for the next one, a large one is
// given back.
func (w *Writer) pop() {
	text := w.batches[0].text
	w.buffered -= len(text)
	w.batches = slices.Delete(w.batches, 0, 1)
	if cap(text) > keep {
		w.opt.Encoder.giveBack(text)
	} else {
		w.spare = text[:0]
	}
}

func (w *Writer) flushUnlessFailing() error {
	if w.failing {
		return nil
	}
	return w.Flush()
}

// Flush writes what is buffered, each batch as one complete gzip member. When it fails,
// what is not written stays buffered, and the file ends with its last whole member.
func (w *Writer) Flush() error {
	if w.closed {
		return ErrClosed
	}
	for len(w.batches) > 0 && w.buffered > 0 {
		if err := w.flushOldest(); err != nil {
			w.failing = true
			w.stats.FailedFlushes++
			return err
		}
	}
	w.failing = false
	return nil
}

// flushOldest writes the oldest batch.
func (w *Writer) flushOldest() error {
	b := &w.batches[0]
	if b.first && w.file != nil {
		if err := w.mend(); err != nil {
			return err
		}
		w.finish()
	}
	b.first = false
	if b.rows > 0 {
		if err := w.ensure(); err != nil {
			return err
		}
		if err := w.write(b.text); err != nil {
			return err
		}
		w.stats.Rows += b.rows
		w.stats.Bytes += uint64(len(b.text))
	}
	w.pop()
	return nil
}

// write appends a member, or leaves the file as it was.
func (w *Writer) write(text []byte) error {
	out, done := w.opt.Encoder.output()
	defer done()
	if err := w.opt.Encoder.member(out, text); err != nil {
		return err
	}
	n, err := w.file.WriteAt(out.Bytes(), w.size)
	if err == nil && w.opt.Fsync {
		err = w.file.Sync()
	}
	if err != nil {
		// What a failed write says it wrote is no help: os.File says 0 where a full disk took
		// a part.
		w.torn = true
		return errors.Join(err, w.mend())
	}
	w.size += int64(n)
	w.stats.Compressed += uint64(n)
	w.stats.Members++
	if w.fresh {
		w.fresh = false
		w.written = append(w.written, w.name.Index)
		w.retain()
	}
	return nil
}

// mend cuts the file back to its last whole member. As long as that is not possible
// nothing is written: the rows of a torn member would be in the trace twice.
func (w *Writer) mend() error {
	if !w.torn {
		return nil
	}
	if err := w.file.Truncate(w.size); err != nil {
		return err
	}
	w.torn = false
	return nil
}

// ensure sees to an open segment that can be appended to.
func (w *Writer) ensure() error {
	if w.file != nil {
		if err := w.mend(); err != nil {
			return err
		}
		if w.inPlace() {
			return nil
		}
		// Somebody else deleted or moved it: what is written there from now on nobody finds.
		w.finish()
	}
	return w.create()
}

// inPlace tells whether the open file is still the one with its name.
func (w *Writer) inPlace() bool {
	named, err := w.opt.FS.Lstat(w.name.Path())
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	open, err := w.file.Stat()
	return err != nil || os.SameFile(named, open)
}

// create opens the next segment: the highest index that is occupied by anything, and one.
func (w *Writer) create() error {
	next := w.name
	f, peers, err := w.opt.Directory.create(&next, w.name.Index, w.used)
	if err != nil {
		return err
	}
	w.name, w.peers = next, peers
	w.file, w.size, w.fresh, w.used = f, 0, true, true
	w.stats.Segments++
	return nil
}

func errNoIndex(n *Name) error {
	return fmt.Errorf("%s: no index is left after %d: move the segments away", n.Series(), uint64(math.MaxUint64))
}

func orHere(dir string) string {
	if dir == "" {
		return "."
	}
	return dir
}

// retain deletes the oldest segments beyond the limit. The directory is looked at again
// only when there is something to delete. The first failure ends it until the next segment.
func (w *Writer) retain() {
	if w.peers+1 <= w.opt.MaxSegments {
		return
	}
	files, err := w.regular()
	if err != nil {
		w.opt.Warn(fmt.Errorf("old segments are not deleted: %w", err))
		return
	}
	for _, index := range files[:max(0, len(files)-w.opt.MaxSegments)] {
		if index == w.name.Index {
			continue // two writers: the active one is not the oldest to be given up
		}
		if err := w.opt.Directory.unlink(Name{w.name.Prefix, w.name.Producer, index}); err != nil {
			w.opt.Warn(fmt.Errorf("old segments are not deleted: %w", err))
			return
		}
		w.stats.Deleted++
		w.written = slices.DeleteFunc(w.written, func(i uint64) bool { return i == index })
	}
}

// regular returns the indices of this series' regular files, in order. Only those count,
// and only those are deleted.
func (w *Writer) regular() (indices []uint64, err error) {
	all, err := w.opt.Directory.occupied(w.name.Producer, false)
	for _, index := range all {
		info, err := w.opt.FS.Lstat(Name{w.name.Prefix, w.name.Producer, index}.Path())
		if err == nil && info.Mode().IsRegular() {
			indices = append(indices, index)
		}
	}
	return indices, err
}

// finish closes the open segment and makes it durable. The rows are written by now, so
// what fails is told and changes nothing.
func (w *Writer) finish() {
	if err := w.mend(); err != nil {
		w.opt.Warn(fmt.Errorf("%s ends with a part of a member: %w", w.name.Path(), err))
	}
	var errs []error
	errs = append(errs, w.file.Sync(), w.file.Close(), w.opt.FS.SyncDir(orHere(filepath.Dir(w.name.Prefix))))
	if err := errors.Join(errs...); err != nil {
		w.opt.Warn(fmt.Errorf("%s may not be durable: %w", w.name.Path(), err))
	}
	if w.fresh && w.inPlaceEmpty() {
		if err := w.opt.Directory.unlink(w.name); err != nil {
			w.opt.Warn(err)
		} else {
			w.used = false
		}
	}
	w.file, w.torn = nil, false
}

// inPlaceEmpty tells whether the segment's file has nothing in it.
func (w *Writer) inPlaceEmpty() bool {
	info, err := w.opt.FS.Lstat(w.name.Path())
	return err == nil && info.Mode().IsRegular() && info.Size() == 0
}

// Close flushes, makes the segment durable and closes it. What cannot be written now is
// counted as lost. A second call does nothing.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	err := w.Flush()
	for w.buffered > 0 {
		w.DropOldest()
	}
	if w.file != nil {
		w.finish()
	}
	w.batches, w.spare, w.closed = nil, nil, true
	return err
}
