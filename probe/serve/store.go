package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// files are what stood at the paths of a document at one time; nil where there was
// nothing to see.
type files []fs.FileInfo

// look returns what stands at the paths now. Why nothing can be seen somewhere comes out
// when the document is opened.
func look(paths []string) files {
	list := make(files, len(paths))
	for i, path := range paths {
		if info, err := os.Stat(path); err == nil {
			list[i] = info
		}
	}
	return list
}

// same tells whether nothing was replaced or written to.
func (f files) same(g files) bool {
	for i := range f {
		if (f[i] == nil) != (g[i] == nil) || f[i] != nil && (!os.SameFile(f[i], g[i]) || touched(f[i], g[i])) {
			return false
		}
	}
	return len(f) == len(g)
}

// touched tells whether one file was written to, or its mode was changed.
func touched(a, b fs.FileInfo) bool { return written(a, b) || a.Mode() != b.Mode() }

// written tells whether one file was written to.
func written(a, b fs.FileInfo) bool {
	return a.Size() != b.Size() || !a.ModTime().Equal(b.ModTime())
}

// hold opens the files that were seen, to tell later whether they were written to: their
// paths may lead elsewhere by then. It passes over what is no file, or not for this
// process to read: whether there is a document without it is not decided here.
func (f files) hold(paths []string) []*os.File {
	held := make([]*os.File, len(f))
	for i, info := range f {
		if info == nil || !info.Mode().IsRegular() {
			continue
		}
		// It may have become a FIFO, which must not hold up the opening.
		if file, err := os.OpenFile(paths[i], os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
			held[i] = file
		}
	}
	return held
}

// newest returns when the last of the files was written to.
func (f files) newest() (last time.Time) {
	for _, info := range f {
		if info != nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// snapshot is an open document. It is closed when it is no longer the current one and the
// last answer from it has ended.
type snapshot struct {
	doc    Document
	size   int64
	digest string // of the text
	files  files
	held   []*os.File // the files, open; nil where there is none

	users int // guarded by store.mu; being the current one counts
}

// tag returns the strong entity tag of a representation. The encoders are deterministic,
// so that one text has one representation in each coding.
func (s *snapshot) tag(c coding) string {
	if c == identity {
		return `"` + s.digest + `"`
	}
	return `"` + s.digest + "-" + string(c) + `"`
}

// overwritten tells whether a file of the document was written to where it stood when it
// was opened, wherever it stands now. One that was replaced or removed is as good as
// before: the document has it open.
func (s *snapshot) overwritten() bool {
	for i, file := range s.held {
		if file == nil {
			continue
		}
		now, err := file.Stat()
		if err != nil || !os.SameFile(s.files[i], now) || written(s.files[i], now) {
			return true
		}
	}
	return false
}

func (s *snapshot) close() error {
	var err error
	if s.doc != nil {
		err = s.doc.Close()
	}
	for _, file := range s.held {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// store holds the current document.
type store struct {
	open  func() (Document, error)
	paths []string
	log   func(string)

	loading sync.Mutex // held while a document is opened; taken before mu

	mu       sync.Mutex
	current  *snapshot // nil after close
	failed   *fault    // of the newest files; nil when the current document is made of them
	reloads  int
	failures int
}

// fault is why files cannot be served.
type fault struct {
	files files
	until time.Time // when it is worth to try the same files again
	err   error
}

// retry is how long files that could not be served are left alone. What was wrong may not
// be with the files: too many were open, say.
const retry = 5 * time.Second

// tries is how often a document is opened anew whose files change meanwhile.
const tries = 3

func newStore(opt Options) (*store, error) {
	s := &store{open: opt.Open, paths: opt.Paths, log: opt.Log}
	first, _, err := s.load()
	if err != nil {
		return nil, err
	}
	s.current = first
	return s, nil
}

// acquire returns the document as the files are now, or the one before if they cannot be
// served. It has to be released.
func (s *store) acquire() (*snapshot, error) {
	s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.lost(); err != nil {
		return nil, err
	}
	s.current.users++
	return s.current, nil
}

// lost returns why there is nothing to serve. The caller holds mu.
func (s *store) lost() error {
	switch {
	case s.current == nil:
		return errors.New("the server is being stopped")
	case s.failed != nil && s.current.overwritten():
		return s.failed.err
	}
	return nil
}

func (s *store) release(sn *snapshot) {
	s.mu.Lock()
	sn.users--
	last := sn.users == 0
	s.mu.Unlock()
	if !last {
		return
	}
	if err := sn.close(); err != nil {
		s.log("cannot close a document: " + err.Error())
	}
}

func (s *store) close() {
	s.loading.Lock() // a document that is being opened becomes the current one first
	defer s.loading.Unlock()
	s.mu.Lock()
	last := s.current
	s.current = nil
	s.mu.Unlock()
	if last != nil {
		s.release(last)
	}
}

// refresh makes the document current that the files are now. Requests that come while it
// is opened wait: they came after the replacement, and get what is new.
func (s *store) refresh() {
	if s.fresh() {
		return
	}
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.fresh() {
		return // another request has done it
	}
	next, seen, err := s.load()
	if err != nil {
		s.keep(&fault{files: seen, until: time.Now().Add(retry), err: err})
		return
	}
	s.swap(next)
}

// fresh tells whether there is nothing to do.
func (s *store) fresh() bool {
	now := look(s.paths)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current == nil:
		return true
	case s.current.files.same(now):
		s.failed = nil // what was wrong has been taken back
		return true
	}
	return s.failed != nil && s.failed.files.same(now) && time.Now().Before(s.failed.until)
}

// keep leaves the current document in its place.
func (s *store) keep(f *fault) {
	s.mu.Lock()
	known := s.failed != nil && s.failed.err.Error() == f.err.Error()
	s.failed = f
	s.failures++
	outcome := "so the old one is kept"
	if s.lost() != nil {
		outcome = "and the old one was overwritten, so nothing is served"
	}
	s.mu.Unlock()
	if !known {
		s.log("the document was replaced by one that cannot be served, " + outcome + ": " + f.err.Error())
	}
}

func (s *store) swap(next *snapshot) {
	s.mu.Lock()
	old := s.current
	s.current, s.failed = next, nil
	s.reloads++
	s.mu.Unlock()
	s.log("the document was replaced: " + next.describe())
	s.release(old)
}

func (s *snapshot) describe() string {
	text := fmt.Sprintf("%d bytes of run %q", s.size, s.doc.RunID())
	if note := s.doc.Note(); note != "" {
		text += ", without a worker probe: " + note
	}
	return text
}

func (s *store) describe() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return "nothing"
	}
	return s.current.describe()
}

// load opens the document, and reads it once: that gives the digest, and shows that it
// can be read. It also returns what files it saw.
func (s *store) load() (next *snapshot, seen files, err error) {
	for range tries {
		seen = look(s.paths)
		next, err = s.read(seen)
		if look(s.paths).same(seen) && (err != nil || !next.overwritten()) {
			return next, seen, err
		}
		if err == nil {
			err = next.close()
		}
	}
	return nil, seen, errors.Join(errors.New("the files of the document keep changing"), err)
}

func (s *store) read(seen files) (_ *snapshot, err error) {
	next := &snapshot{files: seen, held: seen.hold(s.paths), users: 1}
	if next.doc, err = s.open(); err != nil {
		next.doc = nil // whatever came with the error
		if bad := next.close(); bad != nil {
			err = errors.Join(err, bad)
		}
		return nil, err
	}
	digest := sha256.New()
	next.size = next.doc.Size()
	// Read through a buffer of the size that answers are read with.
	n, err := io.CopyBuffer(digest, struct{ io.Reader }{io.NewSectionReader(next.doc, 0, next.size)}, make([]byte, chunkSize))
	if err == nil && n < next.size {
		err = fmt.Errorf("the document ends at byte %d of %d", n, next.size)
	}
	if err != nil {
		return nil, errors.Join(err, next.close())
	}
	const half = sha256.Size / 2 // is enough to tell texts apart
	next.digest = hex.EncodeToString(digest.Sum(nil)[:half])
	return next, nil
}

// state is what there is to say of the store.
type state struct {
	size     int64
	age      time.Duration // since the newest file of the document was written to
	runID    string
	note     string
	fault    string // why the newest files are not served; "" when they are
	lost     bool   // nothing can be served
	reloads  int
	failures int
}

// state looks at the files, so that it is right when nobody asks for the document.
func (s *store) state() state {
	s.refresh()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := state{reloads: s.reloads, failures: s.failures}
	if err := s.lost(); err != nil {
		st.lost, st.fault = true, err.Error()
	} else if s.failed != nil {
		st.fault = s.failed.err.Error()
	}
	if s.current != nil {
		st.size, st.runID, st.note = s.current.size, s.current.doc.RunID(), s.current.doc.Note()
		st.age = time.Since(s.current.files.newest())
	}
	return st
}
