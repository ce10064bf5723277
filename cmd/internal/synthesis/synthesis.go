// Package synthesis makes whole runs, sound or broken at one place.
//
// Most rules are about rank artifacts, which package simulate makes. A rule about a merged
// artifact, or about the sidecar of a probe, needs such a document to be broken: it is made
// of the rank artifacts as fpm makes it, and then one value of it is replaced, in the text,
// so that a run of any size is broken in bounded memory.
//
//	simulate ──▶ rank artifacts ──▶ merge ──▶ merged artifact ──▶ probe ──▶ sidecar
//	                                               │                           │
//	                                               └── one value replaced ─────┘
//
// A rule about traces has nothing to do with a run: to break it a small recording is
// written, as a recorder writes it, and no rank artifact.
package synthesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/simulate"
	"github.com/fpm-project/fpm/merge"
	"github.com/fpm-project/fpm/probe"
)

// Kind is what of a run is written.
type Kind int

// The kinds: each of the first three has the files of those before it, too. A recording
// is written instead of a run.
const (
	RankFiles Kind = iota
	WithMerged
	WithSidecar
	Recording
)

// String names the files.
func (k Kind) String() string {
	return [...]string{"the rank files", "the rank files and the merged artifact", "the rank files, the merged artifact and its sidecar", "a recording"}[k]
}

// Break is a rule that a run can be made to break.
type Break struct {
	simulate.Break
	Kind Kind // what is written of the run: what the rule is about, and what that is made of
	// Beside are rules that are reported with it only when all files of the run are checked
	// together.
	Beside []finding.ID
}

// OfHosts returns the rules that are about a host and not about files, so that nothing
// that is written breaks them.
func OfHosts() []finding.ID { return []finding.ID{finding.TracePorts} }

// Breakable returns every rule that [Run] can break, in the order of the rule table.
func Breakable() []Break {
	var all []Break
	for _, m := range mutations() {
		all = append(all, m.Break)
	}
	order := map[finding.ID]int{}
	for i, rule := range finding.Rules() {
		order[rule.ID] = i
	}
	slices.SortStableFunc(all, func(a, b Break) int { return order[a.Rule] - order[b.Rule] })
	return all
}

// Find returns the break of a rule; ok is false when no run is made to break it.
func Find(rule finding.ID) (b Break, ok bool) {
	for _, b := range Breakable() {
		if b.Rule == rule {
			return b, true
		}
	}
	return Break{}, false
}

// Result tells what was written.
type Result struct {
	Files   []string // every file: the rank files by rank, the merged artifact, the sidecar; or the segments
	Bytes   int64    // size of all files together
	Merged  string   // path of the merged artifact; empty when none was made
	Sidecar string   // path of its sidecar; likewise
}

// Merged returns where the merged artifact of a run goes.
func Merged(opt simulate.Options) string {
	base := opt.Base
	if base == "" {
		base = artifact.DefaultName
	}
	return filepath.Join(opt.Dir, artifact.ParseBase(base).Merged(0))
}

// Run writes a run as its options say, with what the rule to break is about; kind asks for
// more of it, or for a recording. Files that are there already are replaced; segments that
// are none of the recording's are an *[OccupiedError]. Any other error is one of
// [simulate.Run], or that of the file system.
func Run(ctx context.Context, opt simulate.Options, kind Kind) (Result, error) {
	m, err := mutationFor(opt)
	if err != nil {
		return Result{}, err
	}
	s := &synthesis{ctx: ctx, opt: opt, mutation: m}
	s.opt.Break = m.ranks
	kind = max(kind, m.Kind)
	if err := s.make(kind); err != nil {
		return Result{}, err
	}
	return s.result, s.size()
}

// synthesis is a run being made.
type synthesis struct {
	ctx      context.Context
	opt      simulate.Options
	mutation mutation
	result   Result
}

func (s *synthesis) make(kind Kind) error {
	if kind == Recording {
		return s.record()
	}
	if err := s.simulate(); err != nil || kind == RankFiles {
		return err
	}
	if err := s.merge(); err != nil {
		return err
	}
	if kind == WithSidecar {
		if err := s.probe(); err != nil {
			return err
		}
		if err := edit(s.ctx, s.result.Sidecar, s.mutation.sidecar); err != nil {
			return err
		}
	}
	return edit(s.ctx, s.result.Merged, s.mutation.merged)
}

func (s *synthesis) simulate() error {
	run, err := simulate.Run(s.ctx, s.opt)
	s.result.Files = run.Files
	return err
}

// merge writes the merged artifact of the rank files.
func (s *synthesis) merge() error {
	target := Merged(s.opt)
	result, err := merge.Run(s.ctx, merge.Options{Inputs: s.result.Files, Explicit: true, Output: target, Force: true})
	switch {
	case err != nil:
		return err
	case len(result.Failures) > 0:
		return result.Failures[0]
	case result.Errors > 0:
		return fmt.Errorf("the simulated run does not merge: %s", result.Findings[0].Rule) // a bug in fpm
	}
	s.result.Merged = target
	s.result.Files = append(s.result.Files, target)
	return nil
}

// probe writes the sidecar of the merged artifact.
func (s *synthesis) probe() error {
	input := s.mutation.input
	if input == nil {
		input = agreeing
	}
	if !s.mutation.stale {
		return s.probeWith(input(s.opt.Ranks))
	}
	return s.probeOther(input(s.opt.Ranks))
}

// probeOther makes the sidecar of the run as it would be without the change, and then the
// run again.
func (s *synthesis) probeOther(input probe.Input) error {
	changed := s.opt
	s.opt.Break = ""
	if err := errors.Join(s.simulate(), s.merge()); err != nil {
		return err
	}
	if err := s.probeWith(input); err != nil {
		return err
	}
	sidecar := s.result.Sidecar
	text, err := os.ReadFile(sidecar)
	if err != nil {
		return err
	}
	s.opt = changed
	if err := errors.Join(s.simulate(), s.merge()); err != nil { // which removes the sidecar
		return err
	}
	s.result.Files = append(s.result.Files, sidecar)
	return os.WriteFile(sidecar, text, 0o666)
}

func (s *synthesis) probeWith(input probe.Input) error {
	result, err := probe.Run(s.ctx, probe.Options{
		Merged: s.result.Merged,
		Probe:  func(context.Context) (probe.Input, error) { return input, nil },
		Force:  true,
	})
	switch {
	case err != nil:
		return err
	case len(result.Failures) > 0:
		return result.Failures[0]
	case !result.Written:
		return errors.New("the simulated run has no sidecar") // a bug in fpm
	}
	s.result.Sidecar = result.Sidecar
	s.result.Files = append(s.result.Files, result.Sidecar)
	return nil
}

func (s *synthesis) size() error {
	for _, path := range s.result.Files {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		s.result.Bytes += info.Size()
	}
	return nil
}
