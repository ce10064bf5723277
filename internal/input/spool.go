package input

import (
	"errors"
	"io"
	"os"
	"sync"
)

// extentSize is the unit in which files get room in a spool. Extents of small files stay
// mostly unwritten and take no room on disk.
const extentSize = 1 << 20

var errSpoolShort = errors.New("the temporary file is shorter than what was written")

// Spool is a temporary file for decompressed text. It is removed from its directory as
// soon as it has been made, so nothing is left behind, however the process ends. Room
// that a closed [File] gives back is used again.
type Spool struct {
	dir string

	mu   sync.Mutex
	file *os.File // nil until there is text
	end  int64    // where the next new extent starts
	free []int64  // extents given back
}

// NewSpool returns a spool in directory dir; an empty dir is the system's directory for
// temporary files. The file is made when text arrives.
func NewSpool(dir string) *Spool {
	if dir == "" {
		dir = os.TempDir()
	}
	return &Spool{dir: dir}
}

// Close gives the room back. No file that uses the spool may be read afterwards.
func (s *Spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file, s.end, s.free = nil, 0, nil
	if err != nil {
		return s.fail(err)
	}
	return nil
}

func (s *Spool) fail(err error) error { return &SpoolError{Dir: s.dir, Err: bare(err)} }

// failRead keeps the end of the spool from looking like the end of a text.
func (s *Spool) failRead(err error) error {
	if err == io.EOF {
		err = errSpoolShort
	}
	return s.fail(err)
}

// open makes the file if there is none.
func (s *Spool) open() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil {
		return s.file, nil
	}
	file, err := os.CreateTemp(s.dir, "fpm-text-*")
	if err != nil {
		return nil, s.fail(err)
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close() // the error that is reported is the one that counts
		return nil, s.fail(err)
	}
	s.file = file
	return file, nil
}

// extent returns the offset of room for extentSize bytes.
func (s *Spool) extent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.free); n > 0 {
		off := s.free[n-1]
		s.free = s.free[:n-1]
		return off
	}
	off := s.end
	s.end += extentSize
	return off
}

// giveBack takes extents back.
func (s *Spool) giveBack(extents []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, extents...)
}

// region is one text's room in a spool: a sequence of bytes that grows at its end.
type region struct {
	spool   *Spool
	file    *os.File // the spool's, once there is text
	extents []int64
	size    int64
}

// append adds text at the end. After an error the size is as before.
func (r *region) append(text []byte) error {
	if r.file == nil {
		file, err := r.spool.open()
		if err != nil {
			return err
		}
		r.file = file
	}
	at := r.size
	for len(text) > 0 {
		if at == int64(len(r.extents))*extentSize {
			r.extents = append(r.extents, r.spool.extent())
		}
		piece := text[:min(int64(len(text)), extentSize-at%extentSize)]
		if _, err := r.file.WriteAt(piece, r.place(at)); err != nil {
			return r.spool.fail(err)
		}
		at += int64(len(piece))
		text = text[len(piece):]
	}
	r.size = at
	return nil
}

// readAt fills p with text at off, all of which is there.
func (r *region) readAt(p []byte, off int64) error {
	for len(p) > 0 {
		piece := p[:min(int64(len(p)), extentSize-off%extentSize)]
		if _, err := r.file.ReadAt(piece, r.place(off)); err != nil {
			return r.spool.failRead(err)
		}
		off += int64(len(piece))
		p = p[len(piece):]
	}
	return nil
}

// place returns where byte off of the text lies in the spool's file.
func (r *region) place(off int64) int64 {
	return r.extents[off/extentSize] + off%extentSize
}

// reset gives the room back.
func (r *region) reset() {
	r.spool.giveBack(r.extents)
	r.file, r.extents, r.size = nil, nil, 0
}
