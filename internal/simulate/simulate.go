// Package simulate writes synthetic self-benchmark runs: one rank artifact per
// data-parallel rank, as an engine would have left them, for demonstrations, tests and
// load.
//
// A run is a grid of points, measured one after the other by every rank. Each rank is a
// process of its own, with a clock, a counter of forward passes and a ledger of warmups;
// what it measures at a point follows from the seed, the point and the rank alone. So a
// run of any size is written as it is made, and equal options give equal bytes, on every
// machine. Memory grows with the number of points and ranks, never with the size of the
// files, in which every rank repeats the measurements of all.
//
// The documents have the evidence blocks of a current engine and keep every rule, the
// strict ones too. [Options].Break makes one rule an exception: it names a rule, and the
// run breaks that rule and, as far as the rules allow, no other. [Breakable] tells which
// rules there are to break and what each entails.
package simulate

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
)

// The largest runs that are made. Beyond them a run is a mistake of the caller.
const (
	MaxRanks  = artifact.MaxRank + 1
	MaxPoints = 1 << 24
	MaxRaw    = 1 << 16
)

// Options describes a run.
type Options struct {
	Dir  string // directory of the files, made if it is not there
	Base string // file name of rank 0; benchmark_results.json if empty

	Ranks  int // data-parallel ranks, and files
	Points int // points of the grid
	Raw    int // raw samples of a decode point; a prefill point has one

	Seed    uint64     // another seed is another run of the same shape
	Legacy  bool       // an older engine's run: without the evidence blocks
	Shuffle bool       // execution order differs from the benchmark ids
	Break   finding.ID // the rule to break; none if empty
}

// Result tells what was written.
type Result struct {
	Files []string // paths by rank
	Bytes int64    // size of all files together
}

// An OptionError says that no run has such an option.
type OptionError struct {
	Option  string // the option's name in lower case
	Value   string
	Problem string // what a valid value is
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.Option, e.Value, e.Problem)
}

// Run writes a run's files. They get their names when all of them are whole; until then
// each has .tmp behind it, and a run that fails or is cancelled leaves nothing and
// touches no older file. The error is an *[OptionError] for an option out of range, an
// *[ExcludedError] when the rule cannot be broken under the other options, the context's
// error, or that of the file system.
func Run(ctx context.Context, opt Options) (Result, error) {
	if opt.Base == "" {
		opt.Base = artifact.DefaultName
	}
	if err := opt.Check(); err != nil {
		return Result{}, err
	}
	change, err := mutationFor(opt)
	if err != nil {
		return Result{}, err
	}
	r, err := plan(ctx, opt, change)
	if err != nil {
		return Result{}, err
	}
	return r.write(ctx)
}

// Check returns an *[OptionError] for an option out of range.
func (o Options) Check() error {
	for _, number := range []struct {
		name       string
		value, max int
	}{
		{"ranks", o.Ranks, MaxRanks},
		{"points", o.Points, MaxPoints},
		{"raw", o.Raw, MaxRaw},
	} {
		if number.value < 1 || number.value > number.max {
			return &OptionError{number.name, fmt.Sprint(number.value), fmt.Sprintf("must be from 1 to %d", number.max)}
		}
	}
	if o.Dir == "" {
		return &OptionError{"directory", `""`, "must name where the files go"}
	}
	if o.Base == "" {
		return nil
	}
	return o.checkBase()
}

func (o Options) checkBase() error {
	problem := func(what string) error {
		return &OptionError{"base", fmt.Sprintf("%q", o.Base), what}
	}
	if o.Base != filepath.Base(o.Base) || o.Base == "." || o.Base == ".." {
		return problem("must be a file name, without a directory")
	}
	if _, _, is := artifact.SplitRank(o.Base); is {
		return problem("must not itself end in a rank, such as _dp1")
	}
	if artifact.ParseBase(o.Base).Rank(0) != o.Base {
		return problem("must not end in .gz or .zst: the files are written uncompressed")
	}
	return nil
}
