package probe

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/fpm-project/fpm/engine"
	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Merged is an open merged artifact and what a probe needs of it. Its points and groups,
// which are nearly all of it, were read past.
type Merged struct {
	text       *text
	runID      *jsonvalue.Value // nil when absent, here and below
	outputPath jsonstream.Span  // of length 0 when absent
	rankFiles  jsonstream.Span
	engine     *jsonvalue.Value
	engineSpan jsonstream.Span
	kind       *jsonvalue.Value
	ofRank     bool // its dp object is that of a rank artifact
	ranks      *jsonvalue.Value
	sources    []source
	standsIn   *sidecar // that what is known of the artifact was taken from, when there is none
}

// source is a rank whose file took part in the merge.
type source struct {
	label string          // its key in a sidecar
	rank  int64           // -1 when the label is not an integer
	file  jsonstream.Span // of its name in the merged artifact; of length 0 when that lists none
}

// OpenMerged opens and checks a merged artifact, in little memory however large it is.
// The error is a [*TextError] when something is wrong with its text.
func OpenMerged(path string) (*Merged, error) {
	return openMerged(context.Background(), path, nil)
}

func openMerged(ctx context.Context, path string, progress Progress) (*Merged, error) {
	t, err := openText(ctx, path, progress)
	if err != nil {
		return nil, err
	}
	m := &Merged{text: t}
	if err := m.read(); err != nil {
		return nil, errors.Join(textError(path, t.file, err), t.file.Close())
	}
	return m, nil
}

func (m *Merged) read() (err error) {
	var dp *jsonvalue.Value
	m.engineSpan = get(m.text.fields, "engine")
	m.outputPath, m.rankFiles = get(m.text.fields, "merged_output_path"), get(m.text.fields, "rank_files")
	for _, part := range []struct {
		name string
		to   **jsonvalue.Value
	}{
		{"run_id", &m.runID}, {"artifact_type", &m.kind}, {"dp", &dp}, {"engine", &m.engine},
	} {
		if *part.to, err = m.text.tree(get(m.text.fields, part.name)); err != nil {
			return err
		}
	}
	m.ranks = dp.Get("ranks").Clone() // the rest of the dp object is not kept
	m.ofRank = dp.Get("rank") != nil && dp.Get("source_ranks") == nil
	return m.readSources(dp.Get("source_ranks"))
}

// maxSources bounds the source ranks of a run (input.limit).
const maxSources = artifact.MaxRank + 1

func (m *Merged) readSources(ranks *jsonvalue.Value) error {
	if ranks == nil || ranks.Kind != jsonvalue.Array {
		return nil
	}
	if len(ranks.Elems) > maxSources {
		return &jsonstream.Fault{
			Rule: finding.InputLimit, Offset: ranks.Offset, Pointer: "/dp/source_ranks",
			Message: fmt.Sprintf("more than %d source ranks", maxSources),
		}
	}
	files, err := m.files(len(ranks.Elems))
	if err != nil {
		return err
	}
	at := map[string]int{}
	for i := range ranks.Elems {
		s := newSource(&ranks.Elems[i])
		if i < len(files) {
			s.file = files[i]
		}
		if first, again := at[s.label]; again {
			m.sources[first] = s // a document has no key twice: the last one counts
			continue
		}
		at[s.label] = len(m.sources)
		m.sources = append(m.sources, s)
	}
	return nil
}

// files returns where the first n of the rank files are named.
func (m *Merged) files(n int) (files []jsonstream.Span, err error) {
	if m.rankFiles.Len == 0 {
		return nil, nil
	}
	in := m.text.scanner(m.rankFiles)
	_, _, err = in.Array(func(i int) error {
		span, err := in.Skip()
		if i < n {
			files = append(files, span)
		}
		return err
	})
	return files, err
}

func newSource(rank *jsonvalue.Value) source {
	if n, ok := rank.Int64(); ok && n >= 0 {
		return source{label: strconv.FormatInt(n, 10), rank: n}
	}
	label, ok := rank.Str()
	if !ok {
		label = string(rank.AppendCompact(nil))
	}
	return source{label: label, rank: -1}
}

// notMerged says why the document is no merged artifact; nil when it may be one. A rank
// artifact tells its own rank, and a merged one whose ranks it was made of.
func (m *Merged) notMerged() error {
	e := &exitcode.Error{Code: exitcode.Rejected, File: m.Path(), Hint: "name the merged artifact; fpm merge makes it from rank artifacts"}
	kind, named := m.kind.Str()
	switch {
	case !m.text.object:
		e.Message = "this is no merged artifact: the document is not an object"
	case named && kind != "merged":
		e.Message = "this is no merged artifact: its artifact_type is " + m.kind.Excerpt(maxExcerpt)
	case !named && m.ofRank:
		e.Message = "this is no merged artifact but that of a rank: it has dp.rank and no dp.source_ranks"
	default:
		return nil
	}
	return e
}

// Path returns the path that the artifact was opened with.
func (m *Merged) Path() string { return m.text.path }

// SidecarPath returns the path of the artifact's sidecar: next to it, whatever paths the
// artifact mentions.
func (m *Merged) SidecarPath() string { return SidecarPath(m.text.path) }

// SidecarPath returns the path of the sidecar of a merged artifact.
func SidecarPath(merged string) string {
	return artifact.Sidecar(artifact.ParseBase(merged).Rank(0))
}

// RunID returns the run id, "" when the artifact has none that is a string.
func (m *Merged) RunID() string {
	id, _ := m.runID.Str()
	return id
}

// HasEngine tells whether there is an engine object, without which a probe has nothing
// to describe (probe.no-engine).
func (m *Merged) HasEngine() bool { return m.engine != nil && m.engine.Kind == jsonvalue.Object }

// Older tells whether the artifact carries what a probe resolved in its own engine block,
// as older builds wrote it.
func (m *Merged) Older() bool { return m.HasEngine() && engine.Probed(m.engine) }

// Changed returns nil while the file is the one that was opened.
func (m *Merged) Changed() error { return m.text.file.Changed() }

// Close gives back what the artifact holds open.
func (m *Merged) Close() error { return m.text.file.Close() }
