package record

import (
	"fmt"
	"sync"
	"time"

	"github.com/fpm-project/fpm/trace/segment"
)

const (
	finishers     = 16  // files that are made durable at a time
	maxUnfinished = 256 // files that wait for it; more are waited for
)

// finisher is a file system on which the end of a segment takes no time: the file is made
// durable and closed while the next one is written already. On a slow disk that takes
// longer than the queue can hold what arrives meanwhile, and a thousand files one after
// the other take longer than there is at the end.
//
// A segment that is to be made durable at each flush is not concerned: then whoever asked
// for it waits.
type finisher struct {
	segment.FS
	warn  func(string)
	slots chan struct{}
	queue chan struct{}
	group sync.WaitGroup
}

func newFinisher(fs segment.FS, warn func(string)) *finisher {
	return &finisher{FS: fs, warn: warn, slots: make(chan struct{}, finishers), queue: make(chan struct{}, maxUnfinished)}
}

// Create is that of the file system beneath.
func (f *finisher) Create(path string) (segment.File, error) {
	file, err := f.FS.Create(path)
	if err != nil {
		return nil, err
	}
	return &unfinished{File: file, f: f, path: path}, nil
}

// SyncDir makes the names durable later, when the files are.
func (f *finisher) SyncDir(dir string) error {
	f.later(func() error { return f.FS.SyncDir(dir) }, dir)
	return nil
}

// later does something that tells an error and that nothing waits for.
func (f *finisher) later(do func() error, path string) {
	f.queue <- struct{}{}
	f.group.Go(func() {
		defer func() { <-f.queue }()
		f.slots <- struct{}{}
		defer func() { <-f.slots }()
		if err := do(); err != nil {
			f.warn(fmt.Sprintf("%s may not be durable: %s", path, why(err)))
		}
	})
}

// wait waits until everything is durable, but not beyond the deadline.
func (f *finisher) wait(deadline <-chan time.Time) bool {
	done := make(chan struct{})
	go func() {
		f.group.Wait()
		close(done)
	}()
	return wait(done, deadline)
}

// unfinished is a segment that is made durable after it is closed.
type unfinished struct {
	segment.File
	f    *finisher
	path string
}

// Sync does nothing yet: it is called at the segment's end only, before Close.
func (u *unfinished) Sync() error { return nil }

// Close makes the file durable and closes it, later.
func (u *unfinished) Close() error {
	u.f.later(func() error {
		err := u.File.Sync()
		if closing := u.File.Close(); err == nil {
			err = closing
		}
		return err
	}, u.path)
	return nil
}
