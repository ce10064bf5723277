package merge

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"os"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/atomicfile"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/protocol"
)

// write writes the merged artifact.
func (r *run) write() {
	path := r.output()
	if !r.checkTarget(path) {
		return
	}
	file, err := atomicfile.Create(path)
	if err != nil {
		r.fail(err)
		return
	}
	if r.opt.Warn != nil {
		for _, err := range file.Leftovers() {
			r.opt.Warn(err.Error())
		}
	}
	defer func() { r.fail(file.Abort()) }()
	d := newDocument(r, file, path)
	if err := d.write(); err != nil {
		if r.checkUnchanged() { // or else the change is the reason
			r.fail(err)
		}
		return
	}
	if err := file.Sync(); err != nil {
		r.fail(err)
		return
	}
	// The target may have become another run's since it was looked at.
	if r.ctx.Err() != nil || !r.checkUnchanged() || !r.checkTarget(path) {
		return
	}
	if _, err := atomicfile.RemoveRegular(artifact.Sidecar(path)); err != nil {
		r.fail(err)
		return
	}
	if err := file.Commit(); err != nil {
		r.fail(err)
		return
	}
	r.result.Output, r.result.Bytes = path, d.written
}

// checkTarget refuses to replace a file that is not a merged artifact of this run.
func (r *run) checkTarget(path string) bool {
	resolved, info, err := atomicfile.Target(path)
	if err != nil {
		r.fail(err)
		return false
	}
	if info == nil || r.opt.Force {
		return true
	}
	f, err := os.Open(resolved)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		r.fail(err)
		return false
	}
	defer f.Close()
	kind, id := Identify(f)
	switch {
	case kind != "merged":
		r.failf(exitcode.Failed, path, "choose another --output, or replace it with --force", "the target exists and is not a merged artifact")
	case id != r.ref.runID:
		r.failf(exitcode.Failed, path, "choose another --output, or replace it with --force", "the target is the merged artifact of another run, %q", id)
	default:
		return true
	}
	return false
}

// Identify reads an artifact's artifact_type and run_id: both empty when it is none.
func Identify(src io.ReaderAt) (kind, id string) {
	s := jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{})
	_, _, err := s.Object(func(name []byte) error {
		to := &kind
		switch string(name) {
		case "artifact_type":
		case "run_id":
			to = &id
		default:
			_, err := s.Skip()
			return err
		}
		v, err := s.Scalar()
		*to, _ = v.Text()
		if kind != "" && id != "" {
			err = errEnough
		}
		return err
	})
	if err != nil && !errors.Is(err, errEnough) {
		return "", "" // whatever this is, it is no artifact
	}
	return kind, id
}

// document writes the merged artifact as json.dump(indent=2) does.
type document struct {
	r       *run
	path    string
	out     *pipe
	copier  copier
	written int64
	engine  []byte // nil leaves the key as it is
	block   bool   // the merged document has an engine object
	laid    bool   // the groups have the layout that they are to have
	text    []byte // of a point
	paths   paths  // values of keys that hold paths, in place of what they would be
}

func newDocument(r *run, w io.Writer, path string) *document {
	d := &document{r: r, path: path, laid: r.layout != nil && r.layout.laid(r.groups.span)}
	if block, ok := r.engines.Merged(); ok {
		d.engine, d.block = block.Append(nil, 1), true
	}
	report := func(int64) {}
	if r.opt.Progress != nil {
		report = r.opt.Progress.Add
		r.opt.Progress.Expect(2 * r.groups.span.Len) // every FPM is written twice, next to little else
	}
	d.out = newPipe(w, report)
	d.copier.buf = make([]byte, 256<<10)
	return d
}

// appended are the keys that a merge adds, in order, where the reference lacks them.
var appended = []string{
	"engine", "artifact_type", "dp", "rank_files", "merged_output_path", "worker_probe_path",
	"results", "iteration_groups", "rank_warmup_evidence", "timing", "coverage", "skipped_points",
}

func (d *document) write() error {
	err := d.writeMembers()
	n, closeErr := d.out.close()
	d.written = n
	if errors.Is(err, closeErr) { // the file repeats the error that a flush met before
		return err
	}
	return errors.Join(err, closeErr)
}

func (d *document) writeMembers() error {
	d.out.buf = append(d.out.buf, '{')
	have := map[string]bool{}
	for _, m := range d.r.ref.members {
		if d.drops(m.name) {
			continue
		}
		have[m.name] = true
		if err := d.member(m.raw, m.name, m.span); err != nil {
			return err
		}
	}
	for _, name := range appended {
		if have[name] {
			continue
		}
		if err := d.member(pyjson.AppendString(nil, name), name, jsonstream.Span{}); err != nil {
			return err
		}
	}
	d.out.buf = append(d.out.buf, "\n}"...)
	return nil
}

// drops tells whether a key of the reference has no place in the merged document: one
// that became another, and those of a merge which this merge does not give a value.
func (d *document) drops(name string) bool {
	switch name {
	case "warmup_evidence":
		return d.r.contract.Execution == protocol.Declared
	case "worker_probe_path":
		return !d.block
	case "rank_warmup_evidence":
		return d.r.contract.Execution != protocol.Declared
	}
	return false
}

// member writes one key, with the merged value where there is one and the reference's
// otherwise. A key without either is left out.
func (d *document) member(raw []byte, name string, span jsonstream.Span) error {
	value := d.value(name)
	if value == nil && span.Len == 0 {
		return nil
	}
	if len(d.out.buf) != 1 || d.out.flushed > 0 {
		d.out.buf = append(d.out.buf, ',')
	}
	d.out.buf = append(d.out.buf, "\n  "...)
	d.out.buf = append(append(d.out.buf, raw...), ": "...)
	if value == nil {
		return d.copySpan(d.r.ref, span, 1)
	}
	return value()
}

// value returns what writes a key that a merge changes, nil when the reference's stays.
func (d *document) value(name string) func() error {
	r := d.r
	if text := d.paths[name]; text != nil && (name != "worker_probe_path" || d.block) {
		return d.put(func(b []byte) []byte { return append(b, text...) })
	}
	switch name {
	case "engine":
		if d.engine != nil {
			return d.put(func(b []byte) []byte { return append(b, d.engine...) })
		}
	case "artifact_type":
		return d.put(func(b []byte) []byte { return append(b, `"merged"`...) })
	case "dp":
		return d.put(func(b []byte) []byte { return pyjson.Append(b, r.mergedDP(), 1) })
	case "rank_files":
		return d.put(func(b []byte) []byte { return pyjson.Append(b, r.rankFiles(), 1) })
	case "merged_output_path":
		return d.put(func(b []byte) []byte { return pyjson.AppendString(b, d.path) })
	case "worker_probe_path":
		if d.block {
			return d.put(func(b []byte) []byte { return pyjson.AppendString(b, artifact.Sidecar(d.path)) })
		}
	case "results":
		return d.results
	case "iteration_groups":
		if d.laid {
			return func() error { return d.copier.shift(d.out, r.ref.src, r.groups.span, 0) }
		}
	case "timing":
		return d.timing
	case "coverage":
		return d.put(func(b []byte) []byte { return pyjson.Append(b, r.mergedCoverage(), 1) })
	case "skipped_points":
		if l := r.skipped(); !l.exists {
			return d.put(func(b []byte) []byte { return append(b, "[]"...) })
		}
	case "rank_warmup_evidence":
		if r.contract.Execution == protocol.Declared {
			return d.ledgers
		}
	}
	return nil
}

func (d *document) put(appendTo func([]byte) []byte) func() error {
	return func() error {
		d.out.buf = appendTo(d.out.buf)
		return d.out.flushIfFull()
	}
}

func (r *run) mergedDP() pyjson.Object {
	ranks, sources := pyjson.Array{}, pyjson.Array{}
	for rank := range r.size() {
		ranks = append(ranks, rank)
	}
	for _, f := range r.files {
		sources = append(sources, f.rank)
	}
	return pyjson.Object{
		{Key: "ranks", Value: ranks}, {Key: "source_ranks", Value: sources},
		{Key: "managed_size", Value: len(sources)}, {Key: "global_size", Value: r.size()},
	}
}

func (r *run) rankFiles() pyjson.Array {
	paths := pyjson.Array{}
	for _, f := range r.files {
		paths = append(paths, f.path)
	}
	return paths
}

func (r *run) mergedCoverage() pyjson.Object {
	var counts pyjson.Object
	for _, name := range []string{"expected_points", "completed_points", "skipped_points"} {
		n, _ := r.head["coverage"].Get(name).Int64()
		product := new(big.Int).Mul(big.NewInt(n), big.NewInt(int64(r.size())))
		counts = append(counts, pyjson.Member{Key: name, Value: pyjson.Raw(product.String())})
	}
	return counts
}

func (r *run) skipped() place {
	for _, m := range r.ref.members {
		if m.name == "skipped_points" {
			return place{exists: true, Span: m.span}
		}
	}
	return place{}
}

// timing writes the slowest rank's timing.
func (d *document) timing() error {
	r := d.r
	slowest := r.files[0]
	perRank := &jsonvalue.Value{Kind: jsonvalue.Object}
	for _, f := range r.files {
		if f.elapsed > slowest.elapsed {
			slowest = f
		}
		perRank.Members = append(perRank.Members, rankMember(f.rank, floatValue(f.elapsed)))
	}
	timing, err := slowest.timing.tree(slowest)
	if err != nil {
		return err
	}
	timing.Set("benchmark_elapsed_seconds", floatValue(slowest.elapsed))
	timing.Set("measured_iteration_seconds", floatValue(r.groups.sum.Sum()))
	timing.Set("rank_benchmark_elapsed_seconds", *perRank)
	d.out.buf = timing.AppendIndent(d.out.buf, 1)
	return d.out.flushIfFull()
}

func rankMember(rank int, value jsonvalue.Value) jsonvalue.Member {
	name := strconv.Itoa(rank)
	return jsonvalue.Member{Name: name, RawName: []byte(`"` + name + `"`), Value: value}
}

func floatValue(f float64) jsonvalue.Value {
	return jsonvalue.Value{Kind: jsonvalue.Number, Raw: pyjson.AppendFloat(nil, f)}
}

// ledgers writes every global rank's warmup ledger.
func (d *document) ledgers() error {
	files := map[int]*rankFile{}
	for _, f := range d.r.files {
		files[f.rank] = f
	}
	d.out.buf = append(d.out.buf, '{')
	for rank := range d.r.size() {
		if rank > 0 {
			d.out.buf = append(d.out.buf, ',')
		}
		d.out.buf = append(d.out.buf, "\n    \""...)
		d.out.buf = strconv.AppendInt(d.out.buf, int64(rank), 10)
		d.out.buf = append(d.out.buf, `": `...)
		f := files[rank]
		if f == nil {
			d.out.buf = pyjson.Append(d.out.buf, notLoaded(), 2)
			continue
		}
		if err := d.copySpan(f, f.warmup.Span, 2); err != nil {
			return err
		}
	}
	d.out.buf = append(d.out.buf, "\n  }"...)
	return d.out.flushIfFull()
}

// results writes each point's FPM of each rank: by benchmark id, then by rank.
func (d *document) results() error {
	r, g := d.r, d.r.groups
	files := map[int]*rankFile{}
	for _, f := range r.files {
		files[f.rank] = f
	}
	d.out.buf = append(d.out.buf, '[')
	for i := range g.len() {
		group, _ := g.find(int64(i + 1))
		point, err := d.point(group)
		if err != nil {
			return err
		}
		for rank := range r.size() {
			if err := d.result(i+rank > 0, &point, group, rank, files[rank]); err != nil {
				return err
			}
		}
	}
	d.out.buf = append(d.out.buf, "\n  ]"...)
	return d.out.flushIfFull()
}

// point is a group's point as it stands in the flattened results, apart from the rank:
// text that goes before and behind the rank, or a tree that is laid out for each.
type point struct {
	head, tail []byte
	tree       *jsonvalue.Value
}

// Level of a point, in the groups and in the flattened results alike, and what it ends
// with there.
const (
	pointLevel = 3
	pointEnd   = "\n      }"
)

func (d *document) point(group int) (p point, err error) {
	ref, span := d.r.ref, d.r.groups.points.at(group)
	if d.laid && !d.r.groups.ranked {
		d.text = slices.Grow(d.text[:0], int(span.Len))[:span.Len]
		if _, err := ref.src.ReadAt(d.text, span.Off); err != nil && err != io.EOF {
			return p, &jsonstream.ReadError{Offset: span.Off, Err: err}
		}
		if head, ok := bytes.CutSuffix(d.text, []byte(pointEnd)); ok {
			return point{head: head, tail: []byte(pointEnd)}, nil
		}
	}
	p.tree, err = jsonstream.ReadTree(ref.src, span)
	return p, err
}

func (p *point) append(dst []byte, rank int) []byte {
	text := strconv.AppendInt(nil, int64(rank), 10)
	if p.tree != nil {
		p.tree.Set("dp_rank", jsonvalue.Value{Kind: jsonvalue.Number, Raw: text})
		return p.tree.AppendIndent(dst, pointLevel)
	}
	dst = append(dst, p.head...)
	dst = append(dst, ",\n        \"dp_rank\": "...)
	return append(append(dst, text...), p.tail...)
}

func (d *document) result(comma bool, p *point, group, rank int, f *rankFile) error {
	if comma {
		d.out.buf = append(d.out.buf, ',')
	}
	d.out.buf = append(d.out.buf, "\n    {\n      \"point\": "...)
	d.out.buf = p.append(d.out.buf, rank)
	d.out.buf = append(d.out.buf, ",\n      \"fpms\": "...)
	cell, _ := d.r.groups.cell(group, rank)
	if err := d.fpms(d.r.groups.fpms.at(cell)); err != nil {
		return err
	}
	if f != nil && f.regimes.at(group) != 0 {
		text, span := f.texts.get(f.regimes.at(group))
		d.out.buf = append(d.out.buf, ",\n      \"kv_seed_regime\": "...)
		d.out.buf = append(d.out.buf, text...)
		if text == "" {
			if err := d.copySpan(f, span, 3); err != nil {
				return err
			}
		}
	}
	d.out.buf = append(d.out.buf, "\n    }"...)
	return d.out.flushIfFull()
}

// Levels of an FPM list in the groups and in the flattened results.
const (
	groupLevel  = 5
	resultLevel = 3
)

func (d *document) fpms(span jsonstream.Span) error {
	if d.laid {
		return d.copier.shift(d.out, d.r.ref.src, span, groupLevel-resultLevel)
	}
	return d.copySpan(d.r.ref, span, resultLevel)
}

// copySpan writes a value of a file, laid out at a nesting level.
func (d *document) copySpan(f *rankFile, span jsonstream.Span, level int) error {
	return d.copier.copy(d.out, f.src, span, level)
}
