package segment

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

// PollInterval is how often a follower that is run by a clock should look, at most.
const PollInterval = 200 * time.Millisecond

// discoverEvery is how many polls pass between two readings of the directories.
const discoverEvery = 5

// FollowOptions are the options of a [Follower].
type FollowOptions struct {
	// OnlyNew leaves out what the files hold at the first poll.
	OnlyNew bool
}

// Follower hands out the lines of files as they grow, across rolls: segments that appear
// later are read, too, and those that are full are let go. It keeps a position for each
// file and no file open, so that a thousand producers can be followed.
//
// What retention deletes faster than it is read is a hole ([Deleted]).
//
// A last member that is not whole is no hole as long as its segment is the newest of its
// series: its whole lines are handed out, and the rest when it is there.
type Follower struct {
	args    []string
	opt     FollowOptions
	decoder *decoder
	polls   int
	files   map[string]*followed
	highest map[string]uint64 // index found so far, by series
	missed  []Record          // segments that came and went between two looks
}

// followed is a file and how far it has been read.
type followed struct {
	source *Source
	info   fs.FileInfo // as of the last look
	offset int64       // of the first member that has not been read to its end, or of the next byte
	text   int64       // bytes of that member's text that have been read
	lines  lines
	dirty  bool // it has changed since it was read
	final  bool // what there was of it has been read to the end, holes included
	wait   int  // polls to leave it alone, for a member that takes long to read again
	waits  int
}

// NewFollower returns a follower of what arguments stand for, see [Find]. A prefix, a
// pattern or a directory may have no files so far.
func NewFollower(args []string, opt FollowOptions) *Follower {
	return &Follower{args: args, opt: opt, decoder: newDecoder(), files: map[string]*followed{}, highest: map[string]uint64{}}
}

// Run polls at once and at every tick, until the context is done or each returns an error,
// which it returns. Ticks are the caller's clock: see [PollInterval].
func (f *Follower) Run(ctx context.Context, ticks <-chan time.Time, each func(Record) error) error {
	for {
		if err := f.Poll(each); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks:
		}
	}
}

// Poll looks once for what is new and calls each with it, file by file in the order of
// reading. The error is that of each, or one of reading a file; in the second case the
// other files are read nevertheless, and the next poll tries again.
func (f *Follower) Poll(each func(Record) error) error {
	all := f.polls%discoverEvery == 0
	if all {
		if err := f.discover(); err != nil {
			return err
		}
	}
	f.polls++
	if err := f.tell(each); err != nil {
		return err
	}
	newest := f.newest()
	var errs []error
	for _, path := range slices.SortedFunc(maps.Keys(f.files), f.order) {
		file := f.files[path]
		stale := file.source.Segment() && file.source.Name.Index < newest[file.source.series()]
		if stale && !all {
			continue // a second writer may append to it even so
		}
		err := f.look(file, stale, each)
		var own *callerError
		switch {
		case errors.As(err, &own):
			return own.err
		case errors.Is(err, fs.ErrNotExist):
			delete(f.files, path) // deleted, as the oldest segments are
			if stale && !file.final {
				// One that had no newer one was deleted by somebody who may have seen it unused.
				f.missed = append(f.missed, deleted(file.source, file.offset, 1))
			}
		case err != nil:
			errs = append(errs, err)
		}
	}
	if err := f.tell(each); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// deleted returns the record of segments that are gone.
func deleted(s *Source, offset int64, segments uint64) Record {
	return Record{Source: s, Hole: &Hole{Fault: Deleted, Offset: offset, End: offset, Segments: segments}}
}

// tell tells of the segments that were not read.
func (f *Follower) tell(each func(Record) error) error {
	for len(f.missed) > 0 {
		rec := f.missed[0]
		f.missed = f.missed[1:]
		if err := each(rec); err != nil {
			return err
		}
	}
	return nil
}

func (f *Follower) order(a, b string) int { return f.files[a].source.compare(f.files[b].source) }

// discover adds the files that are new.
func (f *Follower) discover() error {
	sources, err := Find(f.args)
	if err != nil && len(sources) == 0 && f.polls == 0 && !absent(err) {
		return err
	}
	for _, s := range sources {
		if f.files[s.Path] != nil {
			continue
		}
		f.sequence(s)
		file := &followed{source: s, lines: lines{source: s}}
		if f.opt.OnlyNew && f.polls == 0 {
			if info, err := os.Stat(s.Path); err == nil {
				file.info, file.offset = info, info.Size()
			}
		}
		f.files[s.Path] = file
	}
	return nil
}

// sequence looks for segments between a new one and those before it. What is there and was
// not found is found the next time.
func (f *Follower) sequence(s *Source) {
	if !s.Segment() {
		return
	}
	series := s.series()
	next, known := f.highest[series]
	if known {
		next++
	}
	f.highest[series] = max(f.highest[series], s.Name.Index)
	if f.polls == 0 || s.Name.Index <= next || slices.Contains(f.args, s.Path) {
		return
	}
	first := s.Name
	first.Index = next
	if _, err := os.Lstat(first.Path()); errors.Is(err, fs.ErrNotExist) {
		f.missed = append(f.missed, deleted(newSource(first.Path()), 0, s.Name.Index-next))
	}
}

// absent tells whether the only thing wrong is that nothing is there so far.
func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// newest returns the highest index of each series.
func (f *Follower) newest() map[string]uint64 {
	newest := map[string]uint64{}
	for _, file := range f.files {
		if file.source.Segment() {
			series := file.source.series()
			newest[series] = max(newest[series], file.source.Name.Index)
		}
	}
	return newest
}

// callerError is an error of the caller's function.
type callerError struct{ err error }

func (e *callerError) Error() string { return e.err.Error() }

// look reads what is new in a file. A stale one is read to its end, holes included.
func (f *Follower) look(file *followed, stale bool, each func(Record) error) error {
	info, err := os.Stat(file.source.Path)
	if err != nil {
		return err
	}
	file.dirty = f.restart(file, info) || file.dirty
	switch {
	case stale && !file.final: // the last look, unless it grows
	case !file.dirty:
		return nil
	case !stale && file.wait > 0:
		file.wait--
		return nil
	}
	file.dirty, file.final = false, stale
	return f.read(file, stale, each)
}

// restart notes the state of a file, and begins again with one that is another file now or
// empty. It tells whether there is something to read.
func (f *Follower) restart(file *followed, info fs.FileInfo) bool {
	before := file.info
	file.info = info
	switch {
	case before == nil:
		return info.Size() > 0
	case !os.SameFile(before, info) || info.Size() == 0:
		file.offset, file.text, file.lines = 0, 0, lines{source: file.source}
		return info.Size() > 0
	default:
		return info.Size() != before.Size()
	}
}

// read reads a file from where it was left, and when it is stale to its end.
func (f *Follower) read(file *followed, stale bool, each func(Record) error) error {
	out := &follow{file: file, each: each, skip: file.text}
	if err := f.decode(file, stale, out); err != nil || !stale {
		return err
	}
	return out.end()
}

// decode reads what is behind the file's offset.
func (f *Follower) decode(file *followed, stale bool, out *follow) (err error) {
	opened, size, err := openFile(file.source.Path)
	if err != nil {
		return err
	}
	defer opened.Close()
	if size <= file.offset {
		return nil // cut back to whole members: what was begun will be written again
	}
	zipped, err := isGzip(opened, file.source.Path)
	if err != nil {
		return err
	}
	d := f.decoder
	d.live, d.read = !stale, nil
	d.drop()
	at := file.offset
	if zipped {
		at, err = d.run(opened, size, at, out)
	} else {
		at, err = d.plain(opened, size, at, out)
	}
	if err != nil {
		file.offset, file.text = at, 0
		return err
	}
	f.settle(file, out, at, size)
	return nil
}

// settle notes how far a file has been read.
func (f *Follower) settle(file *followed, out *follow, at, size int64) {
	file.text = out.live
	if at != file.offset {
		file.waits = 0
	}
	file.offset = at
	// A member without end, as of a writer that only flushes, is read again from its
	// beginning: the longer it is, the more seldom.
	if over := size - at; out.live > 0 && over > chunkSize {
		file.waits = int(min(over/chunkSize, 150))
	}
	file.wait = file.waits
}

// follow is the sink of one look at a file.
type follow struct {
	file *followed
	each func(Record) error
	skip int64 // bytes of the first member's text that have been read before
	live int64 // bytes of the last member's text, when it may still grow
	free *chunk
	read int64 // bytes of this member's text
}

func (o *follow) buffer() *chunk {
	if c := o.free; c != nil {
		o.free = nil
		*c = chunk{text: c.text[:0]}
		return c
	}
	return &chunk{text: make([]byte, 0, chunkSize)}
}

func (o *follow) take(c *chunk) error {
	if c.hole != nil {
		c.begins = c.begins && o.skip == 0
		o.skip, o.read = 0, 0
		return o.call(o.file.lines.hole(c))
	}
	if c.begins && o.read > 0 {
		o.skip, o.read = 0, 0 // the second member of this look
	}
	o.read += int64(len(c.text))
	rest := *c
	rest.text = c.text[min(o.skip, int64(len(c.text))):]
	rest.begins = c.begins && o.skip == 0
	o.skip -= int64(len(c.text) - len(rest.text))
	o.file.lines.feed(&rest)
	if c.live {
		o.live = o.read
	}
	for {
		rec, ok := o.file.lines.pull()
		if !ok {
			o.free = c
			return nil
		}
		if err := o.call(rec); err != nil {
			return err
		}
	}
}

// end hands out a last line that has no line end, unless it is of a member that is gone.
func (o *follow) end() error {
	if o.file.text > 0 {
		return nil
	}
	if line, ok := o.file.lines.last(); ok {
		return o.call(o.file.lines.record(line))
	}
	return nil
}

func (o *follow) call(rec Record) error {
	if err := o.each(rec); err != nil {
		return &callerError{err}
	}
	return nil
}
