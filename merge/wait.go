package merge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// pollInterval is the time between two looks at files that are waited for. Workers rename
// a finished file into place, so that a look costs a stat as a rule.
const pollInterval = 200 * time.Millisecond

// awaited is a file that is waited for.
type awaited struct {
	rank   int    // -1 when the path is given
	path   string // as it is looked for
	looked fs.FileInfo
	state  string // why it is not ready
	ready  bool
	faulty bool // what is wrong with it will not go away by waiting
}

// waiter waits for the files of a run to be there and to be complete JSON.
type waiter struct {
	r     *run
	files []*awaited
	soft  time.Time
	hard  time.Time
	warn  bool // the warning was given
}

// wait waits for the inputs and tells whether they came in time.
func (r *run) wait(explicit bool) bool {
	w := &waiter{r: r, soft: time.Now().Add(r.opt.Wait)}
	w.hard = w.soft.Add(r.opt.Grace)
	switch {
	case explicit:
		for _, path := range r.opt.Inputs {
			w.files = append(w.files, &awaited{rank: -1, path: path})
		}
		return w.poll()
	case r.opt.Ranks != nil:
		w.addRanks(r.opt.Ranks)
		return w.poll()
	}
	w.addRanks([]int{0})
	if !w.poll() {
		return false
	}
	w.addRanks(r.otherRanks(w.files[0].path))
	return w.poll()
}

func (w *waiter) addRanks(ranks []int) {
	for _, rank := range ranks {
		w.files = append(w.files, &awaited{rank: rank, path: w.r.base.Rank(rank)})
	}
}

// otherRanks are the ranks that rank 0's file implies. None when it does not tell: what
// is wrong with it is then reported without waiting for others.
func (r *run) otherRanks(path string) (ranks []int) {
	in, err := input.Open(path, input.Options{})
	if err != nil {
		return nil
	}
	defer in.Close()
	_, size := peekDP(&source{run: r, in: in})
	for rank := 1; rank < size; rank++ {
		ranks = append(ranks, rank)
	}
	return ranks
}

// poll looks at the files until all are ready or the time is over.
func (w *waiter) poll() bool {
	for {
		pending, faulty := w.look()
		now := time.Now()
		switch {
		case len(pending) == 0 || faulty:
			return true
		case now.After(w.hard) && (w.warn || w.r.opt.Grace == 0):
			for _, a := range pending {
				w.r.failf(exitcode.Failed, a.path, "see whether the worker is still benchmarking, or wait longer", "%s after %s", a.state, w.r.opt.Wait+w.r.opt.Grace)
			}
			return false
		case now.After(w.soft) && !w.warn && w.r.opt.Grace > 0:
			w.warn = true
			w.warning(pending)
		}
		next := min(pollInterval, time.Until(w.hard)+time.Millisecond)
		if !w.warn {
			next = min(next, time.Until(w.soft)+time.Millisecond)
		}
		select {
		case <-w.r.ctx.Done():
			return false
		case <-time.After(next):
		}
	}
}

func (w *waiter) warning(pending []*awaited) {
	if w.r.opt.Warn == nil {
		return
	}
	var names []string
	for _, a := range pending {
		names = append(names, a.path)
	}
	const most = 5
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("%d more", more))
	}
	w.r.opt.Warn(fmt.Sprintf("still waiting for %s: %s are over, giving up in %s", strings.Join(names, ", "), w.r.opt.Wait, w.r.opt.Grace))
}

// look returns the files that are not ready, and whether another has a fault: that is
// reported at once.
func (w *waiter) look() (pending []*awaited, faulty bool) {
	for _, a := range w.files {
		if !a.ready {
			a.ready = w.isReady(a)
		}
		faulty = faulty || a.faulty
	}
	return slices.DeleteFunc(slices.Clone(w.files), func(a *awaited) bool { return a.ready }), faulty
}

// isReady tells whether there is no more reason to wait for a file: it is complete, or
// what is wrong with it will not go away by waiting.
func (w *waiter) isReady(a *awaited) bool {
	if a.rank >= 0 {
		path, err := artifact.Locate(w.r.base, a.rank)
		if errors.Is(err, fs.ErrNotExist) {
			a.state = "the file is missing"
			return false
		}
		if err != nil {
			a.faulty = true
			return true
		}
		a.path = path
	}
	info, err := os.Stat(a.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		a.state = "the file is missing"
		return false
	case err != nil:
		a.faulty = true
		return true
	case a.looked != nil && os.SameFile(info, a.looked) && info.Size() == a.looked.Size() && info.ModTime().Equal(a.looked.ModTime()):
		return false
	}
	a.looked, a.state = info, "the file is incomplete"
	err = w.check(a.path)
	var fault *jsonstream.Fault
	if errors.Is(err, fs.ErrNotExist) || (errors.As(err, &fault) && fault.Truncated) {
		return false
	}
	a.faulty = err != nil
	return true
}

// check reads a file to its end.
func (w *waiter) check(path string) error {
	in, err := input.Open(path, input.Options{})
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = jsonstream.Check(&source{run: w.r, in: in}, jsonstream.Limits{})
	return err
}
