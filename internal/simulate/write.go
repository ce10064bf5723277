package simulate

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"

	"github.com/fpm-project/fpm/internal/pyjson"
)

// Sizes in bytes: text is written, and the groups are copied, in parts of about these.
const (
	flushSize = 1 << 20
	copySize  = 64 << 20
)

// span is a part of a file: the bytes from one offset to another.
type span struct{ from, to int64 }

// excerpt is a value whose text stands in another file already.
type excerpt struct {
	file *os.File
	span
}

// write makes all files, then gives them their names.
func (r *run) write(ctx context.Context) (Result, error) {
	var done Result
	for _, rank := range r.ranks {
		done.Files = append(done.Files, filepath.Join(r.opt.Dir, r.base.Rank(rank)))
	}
	if err := os.MkdirAll(r.opt.Dir, 0o777); err != nil {
		return Result{}, err
	}
	written, size, err := r.writeTemporary(ctx, done.Files)
	for i := 0; i < written && err == nil; i++ {
		err = os.Rename(temporary(done.Files[i]), done.Files[i])
	}
	if err != nil {
		return Result{}, errors.Join(err, remove(done.Files[:written]))
	}
	done.Bytes = size
	return done, nil
}

// temporary is the name of a file that is not whole yet, as the engine has it.
func temporary(path string) string { return path + ".tmp" }

// remove deletes what is there of the temporary files.
func remove(paths []string) error {
	var failed error
	for _, path := range paths {
		if err := os.Remove(temporary(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// writeTemporary writes the files under their temporary names. It returns how many were
// begun and how long they are together.
func (r *run) writeTemporary(ctx context.Context, paths []string) (begun int, size int64, err error) {
	first, groups, size, err := r.writeFirst(ctx, temporary(paths[0]))
	if first == nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, first.Close()) }()
	for rank := 1; rank < len(paths) && err == nil; rank++ {
		var n int64
		n, err = r.writePeer(ctx, rank, temporary(paths[rank]), excerpt{first, groups})
		size += n
		begun = rank
	}
	return begun + 1, size, err
}

// create makes a new file. One that a killed run left is in the way and goes.
func create(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}

// writeFirst writes the file of rank 0 and returns it with the place of its iteration
// groups, which are those of every file.
func (r *run) writeFirst(ctx context.Context, path string) (*os.File, span, int64, error) {
	file, err := create(path)
	if err != nil {
		return nil, span{}, 0, err
	}
	w := &writer{ctx: ctx, file: file}
	size, err := w.finish(r, r.document(0, r.groups()), r.victim() == 0)
	return file, w.groups, size, err
}

// writePeer writes the file of a rank above 0.
func (r *run) writePeer(ctx context.Context, rank int, path string, shared excerpt) (int64, error) {
	file, err := create(path)
	if err != nil {
		return 0, err
	}
	var groups any = shared
	if r.change.peerGroup != nil && rank == r.victim() {
		groups = r.peerGroups()
	}
	w := &writer{ctx: ctx, file: file}
	size, err := w.finish(r, r.document(rank, groups), rank == r.victim())
	return size, errors.Join(err, file.Close())
}

// writer writes one document as json.dump(indent=2) does.
type writer struct {
	ctx    context.Context // of the one call of run.write
	file   *os.File
	text   []byte // to be written
	size   int64  // bytes written
	groups span   // of the iteration groups
}

// finish writes a whole file. The victim's may have to lose its end.
func (w *writer) finish(r *run, doc pyjson.Object, victim bool) (int64, error) {
	if err := w.value(doc, 0); err != nil {
		return w.size, err
	}
	if err := w.flush(); err != nil {
		return w.size, err
	}
	if victim && r.change.cut > 0 {
		w.size -= r.change.cut
		return w.size, w.file.Truncate(w.size)
	}
	return w.size, nil
}

// value writes a value at a nesting level. Down to the fields of a group its members are
// written one by one, since among them are lists that are made as they are written.
func (w *writer) value(v any, level int) error {
	switch v := v.(type) {
	case iter.Seq[any]:
		return w.list(v, level)
	case excerpt:
		return w.copy(v)
	case pyjson.Object:
		if level < 3 && len(v) > 0 {
			return w.object(v, level)
		}
	}
	w.text = pyjson.Append(w.text, v, level)
	return w.flushIfLong()
}

func (w *writer) object(o pyjson.Object, level int) error {
	w.text = append(w.text, '{')
	for i, m := range o {
		w.separate(i, level+1)
		w.text = append(pyjson.AppendString(w.text, m.Key), ": "...)
		from := w.offset()
		if err := w.value(m.Value, level+1); err != nil {
			return err
		}
		if level == 0 && m.Key == "iteration_groups" {
			w.groups = span{from, w.offset()}
		}
	}
	w.text = append(pyjson.AppendMargin(w.text, level), '}')
	return w.flushIfLong()
}

func (w *writer) list(elements iter.Seq[any], level int) error {
	w.text = append(w.text, '[')
	n := 0
	for v := range elements {
		w.separate(n, level+1)
		if err := w.value(v, level+1); err != nil {
			return err
		}
		n++
	}
	if n > 0 {
		w.text = pyjson.AppendMargin(w.text, level)
	}
	w.text = append(w.text, ']')
	return w.flushIfLong()
}

func (w *writer) separate(i, level int) {
	if i > 0 {
		w.text = append(w.text, ',')
	}
	w.text = pyjson.AppendMargin(w.text, level)
}

// copy writes a value whose text is there.
func (w *writer) copy(from excerpt) error {
	if err := w.flush(); err != nil {
		return err
	}
	if _, err := from.file.Seek(from.from, io.SeekStart); err != nil {
		return err
	}
	for left := from.to - from.from; left > 0; {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		// From file to file: the kernel copies, and some file systems share the blocks.
		n, err := io.CopyN(w.file, from.file, min(left, copySize))
		w.size += n
		left -= n
		if err != nil {
			return err
		}
	}
	return nil
}

// offset is where in the file the next byte goes.
func (w *writer) offset() int64 { return w.size + int64(len(w.text)) }

func (w *writer) flushIfLong() error {
	if len(w.text) < flushSize {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	n, err := w.file.Write(w.text)
	w.size += int64(n)
	w.text = w.text[:0]
	return err
}
