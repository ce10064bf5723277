package probe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sort"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// Document is a merged artifact with the result of its worker probe applied: its text
// with the merged view of the sidecar in the engine object. It is the sidecar next to the
// merged file that is applied, and only one of the same run; without it the document is
// the merged artifact as it is, see [Document.Applied].
//
// Nothing of it is held in memory but what stands between the parts of the two files, so
// that a document of any size can be read by any number of readers. Both files stay open:
// when one is replaced, the document remains what it was, and [Document.Changed] says so.
// All methods but Close may be called concurrently.
type Document struct {
	merged   *Merged
	sidecar  *text       // nil when there is none that can be read
	before   fs.FileInfo // what was at the sidecar's path; nil when nothing was
	applied  bool
	note     string
	sections []section
	size     int64
}

// section is a part of a document: bytes of a file or of memory.
type section struct {
	start int64 // offset in the document
	size  int64
	src   io.ReaderAt
	off   int64 // offset in src
}

// OpenDocument opens a merged artifact and its sidecar. It fails when the merged artifact
// cannot be read or is none; a sidecar that is missing, of another run or no sidecar at all is not
// applied, and [Document.Note] says why.
func OpenDocument(merged string) (*Document, error) {
	m, err := OpenMerged(merged)
	if err != nil {
		return nil, err
	}
	d := &Document{merged: m}
	err = m.notMerged()
	if err == nil {
		err = d.build()
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Document) build() error {
	result, err := d.findResult()
	if err != nil {
		return err
	}
	whole := jsonstream.Span{Len: d.merged.text.size}
	if !d.applied {
		d.file(d.merged.text, whole)
		return nil
	}
	at := d.merged.engineSpan
	d.file(d.merged.text, jsonstream.Span{Len: at.Off})
	if err := d.engine(result); err != nil {
		return err
	}
	d.file(d.merged.text, jsonstream.Span{Off: at.End(), Len: whole.Len - at.End()})
	return nil
}

// findResult opens the sidecar and returns the members of its merged result, if it is one
// to apply. The only error is that of reading a file.
func (d *Document) findResult() (result []field, err error) {
	if d.before, err = os.Stat(d.merged.SidecarPath()); err != nil {
		d.before = nil
	}
	if !d.merged.HasEngine() {
		d.note = "the merged artifact has no engine object"
		return nil, nil
	}
	d.sidecar, err = openText(context.Background(), d.merged.SidecarPath(), nil)
	var broken *TextError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.note = "there is no sidecar"
		if d.merged.Older() {
			d.note += "; the engine object has what an older build put there"
		}
		return nil, nil
	case errors.As(err, &broken):
		d.note = "the sidecar is damaged: " + broken.Message
		return nil, nil
	case err != nil:
		return nil, err
	}
	s, err := readSidecar(d.sidecar)
	switch {
	case err != nil:
		return nil, err
	case s.fault != nil:
		d.note = "the sidecar is none: " + s.fault.message
	case s.older:
		d.note = "the sidecar was written by an older build, which kept the result elsewhere"
	case !equalOrNull(s.runID, d.merged.runID):
		d.note = "the sidecar is that of another run"
	default:
		return s.result, d.verify(s)
	}
	return s.result, nil
}

// verify applies the sidecar only if it follows from its responses: what was edited
// afterwards is not what the workers said.
func (d *Document) verify(s *sidecar) error {
	r := &run{ctx: context.Background(), out: finding.NewCollector(1), merged: d.merged, texts: map[string]io.ReaderAt{}}
	if err := r.check(s); err != nil {
		return err
	}
	if d.applied = r.out.Errors() == 0; !d.applied {
		d.note = "the sidecar does not follow from the responses in it; fpm probe-report names the differences"
	}
	return nil
}

// engine adds the engine object: its members in place, what the probe resolved over or
// behind them.
func (d *Document) engine(result []field) error {
	block := *d.merged.engine
	block.Members = slices.Clone(block.Members)
	spans := map[string]jsonstream.Span{}
	for _, name := range []string{"worker_probe", "resolved", "resolved_scope", "resolution"} {
		if span := get(result, name); span.Len > 0 {
			spans[name] = span
			block.Set(name, jsonvalue.Value{})
		}
	}
	if err := d.applyAttention(&block, get(result, "attention")); err != nil {
		return err
	}
	d.bytes([]byte("{"))
	for i := range block.Members {
		m := &block.Members[i]
		if i > 0 {
			d.bytes([]byte(","))
		}
		head := append(append(pyjson.AppendMargin(nil, 2), m.RawName...), ": "...)
		span, found := spans[m.Name]
		if !found {
			d.bytes(m.Value.AppendIndent(head, 2))
			continue
		}
		d.bytes(head)
		if err := d.laid(span); err != nil {
			return err
		}
	}
	d.bytes(append(pyjson.AppendMargin(nil, 1), '}'))
	return nil
}

// applyAttention puts the attention of a result over that of an engine block.
func (d *Document) applyAttention(block *jsonvalue.Value, span jsonstream.Span) error {
	attention := block.Get("attention")
	if attention == nil || attention.Kind != jsonvalue.Object || span.Len == 0 {
		return nil
	}
	resolved, err := d.sidecar.tree(span)
	if err != nil {
		return textError(d.sidecar.path, d.sidecar.file, err)
	}
	attention.Members = slices.Clone(attention.Members)
	for _, name := range attentionKeys() {
		if v := resolved.Get(name); v != nil {
			attention.Set(name, *v)
		}
	}
	return nil
}

// maxLaid bounds a part of a sidecar that has to be laid out anew in memory.
const maxLaid = 64 << 20

// laid adds a value of the sidecar. Its level there, below a result, is its level in the
// engine object; so the text of a sidecar that was written here goes out as it is.
func (d *Document) laid(span jsonstream.Span) error {
	check, layout := pyjson.NewLayoutCheck(2), pyjson.NewReindenter(2)
	same := true
	var text []byte
	err := eachChunk(d.sidecar.file, span, func(chunk []byte) error {
		same = same && check.Feed(chunk)
		return nil
	})
	if err != nil {
		return err
	}
	if same && check.End() {
		d.file(d.sidecar, span)
		return nil
	}
	err = eachChunk(d.sidecar.file, span, func(chunk []byte) error {
		if text = layout.Append(text, chunk); len(text) > maxLaid {
			return &TextError{Path: d.sidecar.path, Rule: finding.InputLimit, Offset: span.Off, Message: "a value of more than 64 MiB that is not laid out as fpm writes it", src: d.sidecar.file}
		}
		return nil
	})
	d.bytes(text)
	return err
}

func (d *Document) file(t *text, span jsonstream.Span) { d.add(t.file, span.Off, span.Len) }

// bytes adds text of memory, to the last section if that is of memory, too.
func (d *Document) bytes(b []byte) {
	if n := len(d.sections); n > 0 {
		if last, ok := d.sections[n-1].src.(memory); ok {
			s := &d.sections[n-1]
			s.src, s.size = append(last, b...), s.size+int64(len(b))
			d.size += int64(len(b))
			return
		}
	}
	d.add(memory(b), 0, int64(len(b)))
}

func (d *Document) add(src io.ReaderAt, off, size int64) {
	if size > 0 {
		d.sections = append(d.sections, section{start: d.size, size: size, src: src, off: off})
		d.size += size
	}
}

// memory is text that is read like a file.
type memory []byte

func (m memory) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(m)) {
		return 0, io.EOF
	}
	n := copy(p, m[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Size returns the length of the document in bytes.
func (d *Document) Size() int64 { return d.size }

// RunID returns the run id of the merged artifact, "" when it has none.
func (d *Document) RunID() string { return d.merged.RunID() }

// Applied tells whether a probe's result is applied.
func (d *Document) Applied() bool { return d.applied }

// Note says why no probe's result is applied; "" when one is. It may hold text of a file.
func (d *Document) Note() string { return d.note }

// ReadAt reads the document like a file.
func (d *Document) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("probe: negative offset")
	}
	i := sort.Search(len(d.sections), func(i int) bool { return d.sections[i].start+d.sections[i].size > off })
	for ; i < len(d.sections) && n < len(p); i++ {
		s := &d.sections[i]
		from := off + int64(n) - s.start
		want := p[n:min(int64(len(p)), int64(n)+s.size-from)]
		k, err := s.src.ReadAt(want, s.off+from)
		n += k
		if k < len(want) {
			return n, noEOF(err) // the file is shorter than it was
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// WriteTo writes the document, in pieces of bounded size.
func (d *Document) WriteTo(w io.Writer) (n int64, err error) {
	buf := make([]byte, min(d.size, 128<<10))
	for n < d.size {
		k, err := d.ReadAt(buf, n)
		if err != nil && err != io.EOF {
			return n, err
		}
		written, err := w.Write(buf[:k])
		n += int64(written)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// layChunk is how much text is laid out at once: each bracket of it can become a line
// that is indented by a thousand spaces.
const layChunk = 4 << 10

// WriteLaid writes the document as json.dump(indent=2) lays it out, which the parts of a
// merged artifact that nobody has written so are not. The literals stay as they are.
func (d *Document) WriteLaid(w io.Writer) error {
	out := bufio.NewWriterSize(w, 128<<10)
	layout := pyjson.NewReindenter(0)
	var laid []byte
	err := eachChunk(d, jsonstream.Span{Len: d.size}, func(chunk []byte) error {
		for len(chunk) > 0 {
			n := min(len(chunk), layChunk)
			laid = layout.Append(laid[:0], chunk[:n])
			if _, err := out.Write(laid); err != nil {
				return err
			}
			chunk = chunk[n:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// Changed returns nil while the document is what OpenDocument would make of the files
// now, and else what happened to one of them.
func (d *Document) Changed() error {
	if err := d.merged.Changed(); err != nil {
		return err
	}
	if d.sidecar != nil {
		return d.sidecar.file.Changed()
	}
	now, err := os.Stat(d.merged.SidecarPath())
	switch {
	case d.before == nil && err != nil:
		return nil
	case d.before != nil && err == nil && os.SameFile(d.before, now) && d.before.Size() == now.Size() && d.before.ModTime().Equal(now.ModTime()):
		return nil
	}
	return &input.ChangedError{Path: d.merged.SidecarPath(), Change: "it is another file, or the first one"}
}

// Close gives back the files.
func (d *Document) Close() error {
	err := d.merged.Close()
	if d.sidecar != nil {
		err = errors.Join(err, d.sidecar.file.Close())
	}
	return err
}
