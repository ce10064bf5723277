package record

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/fpm-project/fpm/trace/segment"
)

// series is the files of one producer. It is the writer's alone, but for what it
// publishes.
type series struct {
	name    string
	w       *segment.Writer
	runs    []run         // the rows that are buffered, in order
	failing bool          // the last flush failed
	told    bool          // that it did
	off     bool          // nothing is written any more
	keep    int           // files that are kept at most
	used    time.Duration // when the last row came
	denied  time.Duration // when passing errors began, and 1; 0 when the last attempt had none
	settled segment.Stats // the counts up to which the streams know what became of their rows

	// What earlier writers of this producer's files left behind, which were closed since
	// nothing came for long.
	before      segment.Stats
	beforeFiles []string

	mu       sync.Mutex
	public   segment.Stats
	files    []string
	closed   bool
	disabled string // why nothing is written any more; empty while it is
}

// run is so many rows of one stream, in a row.
type run struct {
	stream *stream
	rows   uint64
}

// held is what a batch holds, in bytes.
type held struct{ text, memory int }

func (s *series) held() held { return held{s.w.Buffered(), s.w.Memory()} }

// append adds a row to the batch.
func (s *series) append(row []byte, of *stream) error {
	if n := len(s.runs); n > 0 && s.runs[n-1].stream == of {
		s.runs[n-1].rows++
	} else {
		s.runs = append(s.runs, run{of, 1})
	}
	buffered := s.w.Buffered()
	err := s.w.Append(row)
	if err == nil && s.w.Buffered() == buffered+len(row) {
		return nil // nothing has left the batch, as for nearly every row
	}
	members := s.settled.Members
	s.settle()
	if err != nil || s.settled.Members != members {
		s.failing = err != nil
	}
	return err
}

// flush writes the batch.
func (s *series) flush() error {
	err := s.w.Flush()
	s.settle()
	s.failing = err != nil
	return err
}

// dropOldest gives up the oldest part of the batch.
func (s *series) dropOldest() {
	s.w.DropOldest()
	s.settle()
}

// close writes the batch and closes the files. What cannot be written is lost.
func (s *series) close() error {
	err := s.w.Close()
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return err
}

// disable gives up the files: what is in the batch is lost, and so is what comes.
func (s *series) disable(err error) {
	for s.w.Buffered() > 0 {
		s.dropOldest()
	}
	// Nothing is buffered, and why the files cannot be written is known already.
	_ = s.close()
	s.off = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disabled = err.Error()
}

// published returns what is known of the files to everybody.
func (s *series) published() (stats segment.Stats, files []string, disabled string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.public, s.files, s.disabled
}

// past returns what is known of files that are closed.
func (s *series) past() (stats segment.Stats, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.public, s.closed && s.disabled == ""
}

// settle tells the streams what became of their rows since it last did.
// Rows leave a batch at its beginning; one step either gives rows up or writes some first
// and gives up the rest, when the files are closed.
func (s *series) settle() {
	before, after := s.settled, s.w.Stats()
	if after == before {
		return
	}
	s.settled = after
	s.leave(after.Rows-before.Rows, true)
	s.leave(after.LostRows-before.LostRows, false)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.public = sum(s.before, after)
	if after.Segments != before.Segments || after.Deleted != before.Deleted || after.Members == 1 {
		s.files = append(slices.Clone(s.beforeFiles), s.w.Segments()...)
		s.files = s.files[max(0, len(s.files)-s.keep):]
	}
}

// sum adds counts of two writers, as far as they are told.
func sum(a, b segment.Stats) segment.Stats {
	a.Rows += b.Rows
	a.Bytes += b.Bytes
	a.Compressed += b.Compressed
	a.Segments += b.Segments
	a.Deleted += b.Deleted
	return a
}

// leave takes the first rows out of the batch: written, or lost.
func (s *series) leave(rows uint64, written bool) {
	done := 0
	for rows > 0 {
		r := &s.runs[done]
		n := min(r.rows, rows)
		r.stream.settle(n, written)
		r.rows -= n
		rows -= n
		if r.rows == 0 {
			done++
		}
	}
	s.runs = s.runs[:copy(s.runs, s.runs[done:])]
}

// passing tells whether an error is one of a directory that is moved, mounted anew or has
// wrong permissions for a moment: it is no end before it has lasted for deniedFor.
func passing(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist)
}

// hopeless tells whether an error of writing is one that waiting does not mend. A disk
// that is full, or one with a fault, may be well again in a while.
func hopeless(err error) bool {
	for _, e := range []error{
		fs.ErrPermission, fs.ErrNotExist, fs.ErrExist,
		syscall.EROFS, syscall.ENOTDIR, syscall.EISDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EINVAL,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
