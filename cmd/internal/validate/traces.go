package validate

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fpm-project/fpm/cmd/internal/files"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/schemas"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
)

// Expected says what the traces among the inputs must have rows of: nothing, for the zero
// value.
type Expected struct {
	Producers     []string // producer ids, or their names in files
	ProducerCount int      // at least so many
	Ranks         artifact.RankSet
}

func (e Expected) anything() bool {
	return len(e.Producers) > 0 || e.ProducerCount > 0 || len(e.Ranks) > 0
}

// Trace is what the files of traces came to.
type Trace struct {
	Files    []string // in the order of reading
	Rejected bool
	Stats    *trace.Stats
}

// checkTraces verifies the files of traces. All of them are one capture: the segments of a
// series follow each other, and what is expected of a fleet may be in several recordings.
func (v *validation) checkTraces() {
	v.readable()
	paths := pathsOf(v.of(detect.Trace))
	if v.opt.Expected.anything() && len(paths) == 0 {
		v.failf(exitcode.Usage, "", "name the segments, their directory or their prefix", "--expect-producers and --expect-ranks ask for what a trace holds, and there is none")
		return
	}
	out := finding.NewCollector(v.opt.MaxFindings)
	manifests, broken := v.checkManifests()
	sources := v.sources(paths)
	if len(sources)+len(manifests) == 0 || v.ctx.Err() != nil {
		return
	}
	stats, err := trace.Verify(v.ctx, sources, trace.VerifyOptions{
		Producers: v.opt.Expected.Producers, ProducerCount: v.opt.Expected.ProducerCount, Ranks: v.opt.Expected.Ranks,
		Manifests: manifests, Out: out, Read: v.reading(segment.Size(sources)),
	})
	if err != nil {
		return
	}
	for _, err := range stats.Failures {
		if failure := exitcode.From(err); !slices.Contains(broken, filepath.Clean(failure.File)) {
			v.failures = append(v.failures, failure)
		}
	}
	t := Trace{Rejected: out.Errors() > 0, Stats: stats}
	for _, s := range sources {
		t.Files = append(t.Files, s.Path)
	}
	for _, path := range append(manifests, t.Files...) {
		v.checked[path], v.rejected[path] = true, v.rejected[path] || t.Rejected
	}
	v.out.Merge(out)
	if len(sources) > 0 {
		v.result.Traces = append(v.result.Traces, t)
	}
}

func pathsOf(candidates []candidate) (paths []string) {
	for _, c := range candidates {
		paths = append(paths, c.path)
	}
	return paths
}

// readable leaves out the files of traces that no reader of traces can read.
func (v *validation) readable() {
	for i := range v.candidates {
		c := &v.candidates[i]
		if c.Kind != detect.Trace {
			continue
		}
		if err := files.CheckTrace(c.path); err != nil {
			c.Kind = "" // it cannot be checked, which is said
			v.failures = append(v.failures, exitcode.From(err))
		}
	}
}

// sources returns the files to read.
func (v *validation) sources(paths []string) []*segment.Source {
	if len(paths) == 0 {
		return nil
	}
	sources, err := segment.Find(paths)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			v.failures = append(v.failures, exitcode.From(err))
		}
	} else if err != nil {
		v.failures = append(v.failures, exitcode.From(err))
	}
	return sources
}

// reading announces bytes to be read and returns what is told of them.
func (v *validation) reading(size int64) func(int64) {
	if v.opt.Progress == nil {
		return nil
	}
	v.opt.Progress.Expect(size)
	return v.opt.Progress.Add
}

// manifestSchema is the name of the schema of recorders' manifests.
const manifestSchema = "trace-manifest"

// checkManifests holds the manifests of recorders against their schema: they are small, and
// nothing else judges them. It returns those that can be compared with the segments, and
// the cleaned paths of those that cannot because of what they hold.
func (v *validation) checkManifests() (sound, broken []string) {
	candidates := v.of(detect.Manifest)
	if len(candidates) == 0 {
		return nil, nil
	}
	schema, err := schemas.CompileStream(manifestSchema)
	if err != nil {
		panic("validate: " + err.Error()) // the embedded schemas are tested
	}
	for _, c := range candidates {
		v.checked[c.path] = true
		before := v.out.Errors()
		if err := v.checkManifest(c, schema); err != nil && v.ctx.Err() == nil {
			v.failures = append(v.failures, exitcode.From(err))
			continue
		}
		if v.out.Errors() > before {
			v.rejected[c.path] = true
			broken = append(broken, filepath.Clean(c.path))
		} else {
			sound = append(sound, c.path)
		}
	}
	return sound, broken
}

func (v *validation) checkManifest(c candidate, schema *schemas.Stream) error {
	in, err := input.Open(c.path, input.Options{})
	if err != nil {
		return err
	}
	scope := finding.Scope{Out: v.out, File: c.path, Rank: finding.NoRank}
	src := files.WithContext(v.ctx, in)
	_, err = jsonstream.Check(src, jsonstream.Limits{})
	var fault *jsonstream.Fault
	switch {
	case errors.As(err, &fault):
		scope.Says(fault.Rule, fault.Pointer, fault.Offset, fault.Message, "", "")
		err = nil
	case isDamage(err):
		scope.Says(finding.JSONSyntax, "", -1, strings.TrimPrefix(err.Error(), c.path+": "), "", "")
		err = nil
	case err == nil:
		err = v.checkSchema(c, manifestSchema, schema)
	}
	return errors.Join(err, in.Close())
}
