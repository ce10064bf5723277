package probe

import (
	"bufio"
	"io"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// emitter writes a document piece by piece: laid out as json.dump(indent=2) does, or
// compact, to be compared.
type emitter struct {
	w       *bufio.Writer
	compact bool
	level   int
	opened  bool // nothing stands in the open container so far
	buf     []byte
	layout  pyjson.Reindenter
	err     error // of reading what was to be copied
}

func newEmitter(w io.Writer, compact bool) *emitter {
	size := 256 << 10
	if compact { // to memory
		size = 4 << 10
	}
	return &emitter{w: bufio.NewWriterSize(w, size), compact: compact}
}

// The errors of the writer are sticky, and so are those of what is copied: flush returns
// the first.
func (e *emitter) flush() error {
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}

func (e *emitter) put(text []byte) {
	_, _ = e.w.Write(text)
	e.buf = text[:0]
}

func (e *emitter) open(bracket byte) {
	e.put(append(e.buf, bracket))
	e.level++
	e.opened = true
}

func (e *emitter) close(bracket byte) {
	e.level--
	text := e.buf
	if !e.opened && !e.compact {
		text = pyjson.AppendMargin(text, e.level)
	}
	e.opened = false
	e.put(append(text, bracket))
}

// item begins an element of an array.
func (e *emitter) item() {
	text := e.buf
	if !e.opened {
		text = append(text, ',')
	}
	e.opened = false
	if !e.compact {
		text = pyjson.AppendMargin(text, e.level)
	}
	e.put(text)
}

// key begins a member of an object.
func (e *emitter) key(name string) {
	e.item()
	text := append(pyjson.AppendString(e.buf, name), ':')
	if !e.compact {
		text = append(text, ' ')
	}
	e.put(text)
}

// value writes a value made here.
func (e *emitter) value(v any) {
	if e.compact {
		e.put(pyjson.AppendCompact(e.buf, v))
	} else {
		e.put(pyjson.Append(e.buf, v, e.level))
	}
}

// text writes a JSON text that came from elsewhere; its literals stay as they are. It
// goes piece by piece, for white space can make it much longer.
func (e *emitter) text(text []byte) {
	if e.compact {
		_, _ = e.w.Write(text)
		return
	}
	e.layout.Reset(e.level)
	e.laid(text)
}

// laid writes more of a text that is laid out anew.
func (e *emitter) laid(text []byte) {
	for len(text) > 0 {
		n := min(len(text), layChunk)
		e.put(e.layout.Append(e.buf, text[:n]))
		text = text[n:]
	}
}

// span copies a value of a file, however large it is; one that is absent is null.
func (e *emitter) span(t *text, span jsonstream.Span) {
	if span.Len == 0 {
		e.value(nil)
		return
	}
	e.layout.Reset(e.level)
	err := eachChunk(t.file, span, func(chunk []byte) error {
		if e.compact {
			_, _ = e.w.Write(chunk)
		} else {
			e.laid(chunk)
		}
		return nil
	})
	if e.err == nil {
		e.err = err
	}
}

// tree writes a value of a merged artifact; one that is absent is null.
func (e *emitter) tree(v *jsonvalue.Value) {
	if v == nil {
		e.value(nil)
		return
	}
	e.put(v.AppendIndent(e.buf, e.level))
}

// array writes an array of n elements.
func (e *emitter) array(n int, element func(i int)) {
	e.open('[')
	for i := range n {
		e.item()
		element(i)
	}
	e.close(']')
}

// object writes an object.
func (e *emitter) object(members func()) {
	e.open('{')
	members()
	e.close('}')
}

// document writes a whole sidecar.
func (e *emitter) document(p *probe) {
	e.object(func() {
		e.key("schema")
		e.value(Schema)
		e.key("schema_version")
		e.value(SchemaVersion)
		e.key("run_id")
		e.tree(p.merged.runID)
		e.key("merged_output_path")
		e.span(p.merged.text, p.merged.outputPath)
		e.key("rank_files")
		e.span(p.merged.text, p.merged.rankFiles)
		e.key("merged")
		e.object(func() { e.result(p.mergedView()) })
		e.key("ranks")
		e.object(func() {
			for _, s := range p.merged.sources {
				e.key(s.label)
				e.object(func() {
					e.key("rank_file")
					e.span(p.merged.text, s.file)
					e.result(p.rankView(s))
				})
			}
		})
	})
}

// result writes the members of a view's result.
func (e *emitter) result(v *view) {
	for _, m := range resultMembers(v) {
		e.key(m.key)
		m.write(e)
	}
}

// resultMember is a member of a result.
type resultMember struct {
	key   string
	write func(*emitter)
}

func resultMembers(v *view) []resultMember {
	members := []resultMember{
		{"resolved", v.writeResolved},
		{"resolved_scope", v.writeScope},
		{"resolution", func(e *emitter) { e.value(v.resolution) }},
		{"worker_probe", v.writeWorkerProbe},
	}
	if a := v.probe.merged.engine.Get("attention"); a != nil && a.Kind == jsonvalue.Object {
		members = append(members, resultMember{"attention", v.writeAttention})
	}
	return members
}

func (v *view) writeResolved(e *emitter) {
	if len(v.observed) == 0 {
		e.value(nil)
		return
	}
	e.text(v.reply(v.observed[0]).text)
}

func (v *view) writeScope(e *emitter) {
	if len(v.observed) == 0 {
		e.value(nil)
		return
	}
	e.value("representative_worker")
}

func (v *view) writeWorkerProbe(e *emitter) {
	e.object(func() {
		for _, m := range v.workerProbeMembers() {
			e.key(m.key)
			m.write(e)
		}
	})
}

func (v *view) workerProbeMembers() []resultMember {
	return []resultMember{
		{"schema_version", func(e *emitter) { e.value(1) }},
		{"scope", func(e *emitter) { e.value("post_collection_collective_rpc") }},
		{"responses", v.writeResponses},
		{"coverage", v.writeCoverage},
		{"disagreements", func(e *emitter) { e.value(texts(v.disagreements)) }},
		{"error", v.writeError},
	}
}

func (v *view) writeResponses(e *emitter) {
	e.array(len(v.probe.replies.list), func(i int) { v.writeResponse(e, i) })
}

func (v *view) writeError(e *emitter) {
	if v.probe.failure == "" {
		e.value(nil)
	} else {
		e.value(v.probe.failure)
	}
}

func (v *view) writeResponse(e *emitter, i int) {
	r := v.reply(i)
	e.object(func() {
		e.key("rpc_index")
		e.value(i)
		e.key("response")
		if r.nonJSON && !r.opaque {
			e.value(pyjson.Object{{Key: "unserializable_type", Value: r.typeName()}, {Key: "repr", Value: string(r.text)}})
		} else {
			e.text(r.text)
		}
		e.key("issues")
		e.value(texts(v.issuesOf(i)))
	})
}

func (v *view) writeCoverage(e *emitter) {
	e.object(func() {
		for _, m := range v.coverageMembers() {
			e.key(m.key)
			m.write(e)
		}
	})
}

func (v *view) coverageMembers() []resultMember {
	return []resultMember{
		{"scope", func(e *emitter) { e.value("artifact_workers") }},
		{"expected_dp_ranks", func(e *emitter) { e.value(v.ranksOrNull(v.expected)) }},
		{"expected_workers_per_dp", func(e *emitter) {
			if v.probe.sized {
				e.value(v.probe.layout.Workers())
			} else {
				e.value(nil)
			}
		}},
		{"observed_workers", func(e *emitter) {
			e.array(len(v.observed), func(i int) { e.value(v.reply(v.observed[i]).identity()) })
		}},
		{"missing_dp_ranks", func(e *emitter) { e.value(v.ranksOrNull(v.missing())) }},
		{"complete", func(e *emitter) { e.value(v.complete) }},
	}
}

// identity is the reply's worker, by its ranks.
func (r *reply) identity() pyjson.Object {
	return pyjson.Object{
		{Key: "dp_rank", Value: r.dp.json()},
		{Key: "worker_rank", Value: r.worker.json()},
		{Key: "tp_rank", Value: r.tp.json()},
		{Key: "pp_rank", Value: r.pp.json()},
		{Key: "pcp_rank", Value: r.pcp.json()},
	}
}

func (r rank) json() any {
	if r.literal == nil {
		return nil
	}
	return pyjson.Raw(r.literal)
}

// ranksOrNull is a list of ranks, null when nobody knows which are expected.
func (v *view) ranksOrNull(ranks []int64) any {
	if !v.known {
		return nil
	}
	list := make(pyjson.Array, len(ranks))
	for i, n := range ranks {
		list[i] = n
	}
	return list
}

func texts(list []string) pyjson.Array {
	a := make(pyjson.Array, len(list))
	for i, s := range list {
		a[i] = s
	}
	return a
}

func (v *view) writeAttention(e *emitter) {
	names := v.backends()
	resolution := v.resolution
	if len(names) > 1 {
		resolution = resolvedMixed
	}
	e.value(pyjson.Object{
		{Key: "backend_resolved", Value: v.sole(names)},
		{Key: "mla_prefill_backend_resolved", Value: v.sole(v.values(func(r *reply) int { return r.prefill }, true))},
		{Key: "resolution", Value: resolution},
	})
}

// sole returns the one value of a list of entries, and null when there is none, more than
// one, or null itself.
func (v *view) sole(entries []int) any {
	if len(entries) != 1 || entries[0] == none {
		return nil
	}
	return v.probe.replies.names.texts[entries[0]]
}
