package merge

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
)

// resolve finds the files of the run and opens them, in rank order.
func (r *run) resolve() bool {
	for _, path := range append([]string{r.opt.Output}, r.opt.Inputs...) {
		if path == "-" {
			r.failf(exitcode.Usage, "", "give a path", "- is not a path: artifacts are files")
			return false
		}
	}
	explicit, err := r.parseInputs()
	if err != nil {
		r.fail(err)
		return false
	}
	if r.opt.Wait > 0 && !r.wait(explicit) {
		return false
	}
	if explicit {
		r.openExplicit()
	} else {
		r.openByName()
	}
	for i, f := range r.files {
		f.index = i
	}
	return r.checkTargetIsNoInput()
}

// parseInputs sets the base path and tells whether the arguments are the rank files
// themselves.
func (r *run) parseInputs() (explicit bool, err error) {
	if len(r.opt.Inputs) > 1 || r.opt.Explicit {
		return true, nil
	}
	path := r.opt.DefaultBase
	if len(r.opt.Inputs) == 1 {
		path = r.opt.Inputs[0]
	}
	if path == "" {
		return false, &exitcode.Error{Code: exitcode.Usage, Message: "the base path is empty", Hint: "name the rank 0 file, its directory, or all rank files"}
	}
	const slash = string(filepath.Separator)
	info, err := os.Stat(path)
	switch entries, dirErr := os.ReadDir(path); {
	case r.opt.Wait == 0 && dirErr == nil && len(entries) == 0:
		return false, &exitcode.Error{Code: exitcode.Usage, File: path, Message: "the directory is empty: there is no input", Hint: "name the directory of the run, or rank 0's file"}
	case r.opt.Wait == 0 && errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(path, "*?"):
		return false, &exitcode.Error{Code: exitcode.Usage, File: path, Message: "the pattern matches nothing: there is no input", Hint: "name the directory of the run, or rank 0's file"}
	}
	if strings.HasSuffix(path, slash) || (err == nil && info.IsDir()) {
		path = strings.TrimSuffix(path, slash) + slash + artifact.DefaultName
	} else if _, _, named := artifact.SplitRank(path); named {
		r.opt.Inputs = []string{path}
		return true, nil
	}
	r.base = artifact.ParseBase(path)
	return false, nil
}

// add opens a file whose name stands for a rank, or for finding.NoRank.
func (r *run) add(path string, nameRank int) *rankFile {
	in, err := input.Open(path, input.Options{Spool: r.spool})
	if err != nil {
		r.fail(&exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Err: err, Hint: hintFor(err)})
		return nil
	}
	f := &rankFile{path: path, rank: nameRank, nameRank: nameRank, in: in}
	f.src = &source{run: r, in: in}
	r.files = append(r.files, f)
	if r.opt.Progress != nil {
		r.opt.Progress.Expect(in.RawSize())
	}
	return f
}

func hintFor(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "check the path; a directory, or the rank 0 file, finds the other ranks by name"
	case errors.Is(err, fs.ErrPermission):
		return "check the permissions of the file and its directory"
	}
	return ""
}

// openExplicit opens files that were named one by one. Their rank is that of their
// content, or else that of their name.
func (r *run) openExplicit() {
	for _, path := range r.opt.Inputs {
		_, rank, named := artifact.SplitRank(path)
		if !named {
			rank = finding.NoRank
		}
		f := r.add(path, rank)
		if f == nil {
			r.reported[max(rank, 0)] = true // a name without a rank is that of rank 0
		} else if rank, _ := peekDP(f.src); rank != finding.NoRank {
			f.rank = rank
		}
	}
	slices.SortStableFunc(r.files, func(a, b *rankFile) int {
		return cmp.Or(cmp.Compare(uint(a.rank), uint(b.rank)), cmp.Compare(a.path, b.path))
	})
	if len(r.files) == 0 {
		return
	}
	lowest := r.files[0].path
	if base, _, named := artifact.SplitRank(lowest); named {
		r.base = base
	} else {
		r.base = artifact.ParseBase(lowest)
	}
	for _, f := range r.files {
		if r.opt.Ranks != nil && f.rank != finding.NoRank && !r.opt.Ranks.Contains(f.rank) {
			r.failf(exitcode.Usage, f.path, "leave the file out, or name its rank in --ranks", "rank %d is not among --ranks %s", f.rank, r.opt.Ranks)
		}
	}
}

// openByName opens the files that a base path stands for: the ranks asked for, or every
// rank of the size that rank 0's file tells.
func (r *run) openByName() {
	if r.opt.Ranks != nil {
		for _, rank := range r.opt.Ranks {
			r.openRank(rank)
		}
		return
	}
	size := 0
	if f := r.openRank(0); f != nil {
		_, size = peekDP(f.src)
	}
	if size > 0 && size <= MaxDPSize {
		for rank := 1; rank < size; rank++ {
			r.openRank(rank)
		}
		r.warnOfOthers(size)
		return
	}
	for _, rank := range r.siblings() { // what is there is checked all the same
		r.openRank(rank)
	}
}

func (r *run) openRank(rank int) *rankFile {
	path, err := artifact.Locate(r.base, rank)
	var two *artifact.TwoFormsError
	switch {
	case errors.As(err, &two):
		r.failf(exitcode.Usage, "", "", "%s", err)
	case errors.Is(err, fs.ErrNotExist):
		r.missing = append(r.missing, rank)
	case err != nil:
		r.fail(&exitcode.Error{Code: exitcode.Failed, Message: err.Error(), Err: err})
	default:
		if f := r.add(path, rank); f != nil {
			if len(r.files) > manyFiles {
				r.fail(f.in.Suspend())
			}
			return f
		}
	}
	r.reported[rank] = true
	return nil
}

// reportMissing names the ranks whose file was looked for by name and is not there.
func (r *run) reportMissing() {
	if len(r.missing) == 0 {
		return
	}
	what, hint := "", "wait for it with --wait, or name the ranks of this node with --ranks"
	if len(r.files) == 0 && len(r.siblings()) == 0 {
		what, hint = "no such file: ", "check the path: it is that of rank 0's file, or of its directory; --wait waits for files to come"
	}
	const most = 16
	for _, rank := range r.missing[:min(most, len(r.missing))] {
		r.failf(exitcode.Failed, r.base.Rank(rank), hint, "%srank %d is missing", what, rank)
	}
	if rest := r.missing[min(most, len(r.missing)):]; len(rest) > 0 {
		r.failf(exitcode.Failed, "", hint, "%srank %s is missing, too", what, rest)
	}
}

// warnOfOthers warns of files beside the base path that an earlier, larger run left: they
// are not merged, and would spoil the next run of their size.
func (r *run) warnOfOthers(size int) {
	if r.opt.Warn == nil {
		return
	}
	for _, rank := range r.siblings() {
		if rank >= size {
			r.opt.Warn(fmt.Sprintf("%s is left out: the run has %d ranks, so the file is another run's", r.base.Rank(rank), size))
		}
	}
}

// manyFiles is how many files are kept open between two looks at them.
const manyFiles = 64

// siblings lists the ranks that have a file beside the base path.
func (r *run) siblings() []int {
	dir := r.base.Dir
	if dir == "" {
		dir = "."
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // rank 0's file could not be opened there either, and that is reported
	}
	var ranks []int
	for _, e := range entries {
		base, rank, ok := artifact.SplitRank(r.base.Dir + e.Name())
		if ok && base == r.base && rank > 0 && rank < MaxDPSize {
			ranks = append(ranks, rank)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

var errEnough = errors.New("enough was read")

// peekDP reads dp.rank and dp.size ahead of the rest: NoRank and 0 where a file does not
// tell. What is wrong with the file is found when it is read in full.
func peekDP(src *source) (rank, size int) {
	rank = finding.NoRank
	s := jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	_, _, err := s.Object(func(name []byte) error {
		if string(name) != "dp" {
			_, err := s.Skip()
			return err
		}
		_, _, err := s.Object(func(name []byte) error {
			f, err := s.Field()
			switch {
			case err != nil || !f.NonNegative() || f.Int > MaxDPSize:
			case string(name) == "rank" && f.Int < MaxDPSize:
				rank = int(f.Int)
			case string(name) == "size":
				size = int(f.Int)
			}
			return err
		})
		return errors.Join(err, errEnough)
	})
	if err != nil && !errors.Is(err, errEnough) {
		return rank, size
	}
	return rank, size
}

// output is the path to write.
func (r *run) output() string {
	if r.opt.Output != "" {
		return r.opt.Output
	}
	lowest := 0
	if len(r.files) > 0 {
		lowest = max(r.files[0].rank, 0)
	}
	return r.base.Merged(lowest)
}

// checkTargetIsNoInput refuses to write, or to delete, what is read.
func (r *run) checkTargetIsNoInput() bool {
	if r.opt.CheckOnly || len(r.files) == 0 {
		return true
	}
	out := r.output()
	for _, target := range []string{out, artifact.Sidecar(out)} {
		info, err := os.Stat(target)
		if err != nil {
			continue // nothing there to lose; whatever else is wrong shows when it is written
		}
		for _, f := range r.files {
			if f.in.Is(info) {
				r.failf(exitcode.Usage, target, "leave the file out of the inputs if it is an earlier output, or choose another --output", "the output would replace an input")
				return false
			}
		}
	}
	return true
}
