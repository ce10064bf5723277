package show

import (
	"errors"
	"fmt"
	"os"

	"github.com/fpm-project/fpm/cmd/internal/files"
	"github.com/fpm-project/fpm/cmd/internal/tracestats"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/detect"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
)

// noRun tells whether nothing has a base path: no rank artifact in any form.
func noRun(base artifact.Base, first string) bool {
	if _, err := os.Lstat(first); err == nil || len(siblings(base)) > 0 {
		return false
	}
	_, err := artifact.Locate(base, 0)
	return err != nil && !errors.Is(err, artifact.ErrTwoForms)
}

// recording reads the files of a trace in a directory, or those that have a path for their
// prefix, and tells whether there are any.
func (r *reading) recording(path string) bool {
	paths := files.Recording(path)
	for _, path := range paths {
		r.file(path)
	}
	return len(paths) > 0
}

// summarise reads the files of traces, all together: a stream goes on from one to the next.
// What recorders keep beside them is passed over, unless it is all there is. The error is
// that of the context.
func (r *reading) summarise() error {
	sources := r.sources()
	if len(sources) == 0 {
		r.besides()
		return nil
	}
	var read func(int64)
	if p := r.opt.Progress; p != nil {
		p.Expect(segment.Size(sources))
		read = p.Add
	}
	stats, err := trace.Summarise(r.ctx, sources, read)
	if err != nil {
		return err
	}
	for _, err := range stats.Failures {
		r.fail(err)
	}
	d := &Document{Kind: detect.Trace, Trace: stats}
	for _, s := range sources {
		d.Files = append(d.Files, s.Path)
	}
	r.result.Documents = append(r.result.Documents, d)
	if stats.Rows == 0 && len(stats.Failures) == 0 {
		r.out.Add(finding.Finding{Rule: finding.TraceEmpty, Offset: -1, Rank: finding.NoRank, Message: "there is no row to summarise"})
	}
	return nil
}

// sources returns the files to read. The readers of traces know plain files and gzip.
func (r *reading) sources() []*segment.Source {
	var paths []string
	for _, path := range r.traces {
		if err := files.CheckTrace(path); err != nil {
			r.fail(err)
			continue
		}
		paths = append(paths, path)
	}
	if len(paths) == 0 {
		return nil
	}
	sources, err := segment.Find(paths)
	if err != nil {
		r.fail(err)
	}
	return sources
}

// besides speaks of manifests and locks without a trace.
func (r *reading) besides() {
	if len(r.traces) > 0 {
		return
	}
	for _, path := range r.manifests {
		r.unknown(path, "the manifest of a trace, without its segments")
	}
	if len(r.locks) > 0 && len(r.manifests)+len(r.result.Documents)+len(r.result.Failures) == 0 && len(r.runs) == 0 {
		r.failf(exitcode.Usage, r.locks[0], "name the segments beside it", "a lock holds nothing: there is no input")
	}
}

func (d *Document) traceTitle() string {
	if len(d.Files) == 1 {
		return "trace " + d.Files[0]
	}
	return fmt.Sprintf("trace, %d files, %s to %s", len(d.Files), d.Files[0], d.Files[len(d.Files)-1])
}

// traceText is the summary of 'fpm trace stats'.
func (d *Document) traceText(l Layout) []string {
	return tracestats.Lines(d.Trace, tracestats.Layout{Width: l.Width, Limit: l.rows(manyRows), More: "; --all prints all"})
}

func (d *Document) traceData() report.Object {
	streams := []report.Object{}
	for _, s := range d.Trace.Streams {
		streams = append(streams, tracestats.Stream(s))
	}
	return append(tracestats.Details(d.Trace), report.Detail{Key: "streams", Value: streams})
}
