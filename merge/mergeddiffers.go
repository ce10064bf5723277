package merge

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonspan"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/pyjson"
	"github.com/fpm-project/fpm/internal/words"
)

// compareAgain derives the merged document from the rank files again and compares
// (merged.differs). What is wrong with the rank files is reported as a merge does; the
// comparison is then not made.
func (c *mergedCheck) compareAgain() {
	c.out = c.r.out
	c.scope.Out, c.scope.As = c.out, finding.MergedDiffers
	r := newRun(c.r.ctx, Options{Inputs: c.opt.RankFiles, Explicit: true, Subset: true, MaxFindings: c.opt.MaxFindings, Progress: c.opt.Progress})
	c.again = r
	r.openExplicit()
	for i, f := range r.files {
		f.index = i
	}
	r.read()
	r.compareRun()
	rejected := r.out.Errors() > 0 || r.ref == nil
	c.r.out.Merge(r.out)
	switch {
	case r.ctx.Err() != nil:
	case len(r.failures) > 0:
		c.result.NotCompared = "the rank files could not all be read"
	case rejected:
		c.result.NotCompared = "the rank files are not a sound run"
	case !c.sameRun():
		c.result.NotCompared = "the rank files are not those that the merged artifact was made of"
	default:
		err := c.compareNames()
		if err == nil {
			err = c.compareDerived()
		}
		if r.checkUnchanged() { // or else the change is the reason
			c.failCompare(err)
		}
	}
}

// failCompare reports why the comparison could not be made, if it could not.
func (c *mergedCheck) failCompare(err error) {
	if err == nil {
		return
	}
	c.result.NotCompared = "the comparison could not be made"
	var fault *jsonstream.Fault
	if !errors.As(err, &fault) {
		c.r.fail(err)
		return
	}
	c.scope.As = ""
	c.scope.Says(fault.Rule, fault.Pointer, fault.Offset, fault.Error(), "", "")
}

// sameRun tells whether the rank files are those of the run, and of its source ranks. What
// else differs follows from that.
func (c *mergedCheck) sameRun() bool {
	if id := c.result.RunID; id != "" && id != c.again.ref.runID {
		c.key(finding.MergedDiffers, "run_id", "the rank files are those of another run", string(pyjson.AppendString(nil, c.again.ref.runID)))
		return false
	}
	if c.source == nil {
		return true // unsound, which shows as a difference
	}
	var lacking, beyond, given artifact.RankSet
	for _, f := range c.again.files {
		given = append(given, f.rank)
		if _, ok := slices.BinarySearch(c.source, f.rank); !ok {
			beyond = append(beyond, f.rank)
		}
	}
	for _, rank := range c.source {
		if _, ok := slices.BinarySearch(given, rank); !ok {
			lacking = append(lacking, rank)
		}
	}
	var said []string
	if len(lacking) > 0 {
		said = append(said, "no rank file was given for source rank "+lacking.String())
	}
	if len(beyond) > 0 {
		said = append(said, "a rank file was given for rank "+beyond.String()+", which is no source rank")
	}
	if len(said) > 0 {
		ranks := c.head["dp"].Get("source_ranks")
		c.scope.Broken(finding.MergedDiffers, "/dp/source_ranks", ranks.Offset, strings.Join(said, ", and "), "the ranks of the files: "+given.String())
	}
	return len(said) == 0
}

// compareNames compares the paths of the rank files in the document with those given, by
// their names alone, and without what says how a file is compressed: files get moved and
// packed. A key that is missing is left to the comparison of the documents.
//
// The document's own path and its sidecar's are not compared with anything: it may have
// been written under any name, and have any other now. That the two belong together is
// merged.paths.
func (c *mergedCheck) compareNames() error {
	at, files := c.places["rank_files"], c.again.files
	if !at.exists {
		return nil
	}
	n := 0
	c.inner.Reset(c.f.src, at.Off, 1, jsonstream.Trusted)
	_, isList, err := c.inner.Array(func(i int) error {
		n++
		pointer := "/rank_files/" + strconv.Itoa(i)
		if i < len(files) {
			return c.compareName(pointer, files[i].path)
		}
		span, err := c.inner.Skip()
		c.scope.Broken(finding.MergedDiffers, pointer, span.Off, "there are not as many rank files", "absent")
		return err
	})
	if !isList && err == nil {
		c.scope.Broken(finding.MergedDiffers, "/rank_files", at.Off, "the rank files are not a list", words.Count(len(files), "path", "paths"))
		return nil
	}
	for i := n; i < len(files); i++ {
		c.scope.Absent(finding.MergedDiffers, "/rank_files/"+strconv.Itoa(i), at.Off, "a rank file is missing in the list", "a path that ends in "+filepath.Base(files[i].path))
	}
	return err
}

// compareName reports the path that comes next if its file name is another one.
func (c *mergedCheck) compareName(pointer, expected string) error {
	v, err := c.inner.Scalar()
	if err != nil {
		return err
	}
	path, isText := v.Text()
	if !isText || filepath.Base(plain(path)) != filepath.Base(plain(expected)) {
		c.scope.Broken(finding.MergedDiffers, pointer, v.Offset, "the file name differs", "a path that ends in "+filepath.Base(expected))
	}
	return nil
}

// plain is a path without the suffix of a compressed file.
func plain(path string) string { return artifact.ParseBase(path).Rank(0) }

// paths are the values of the keys that hold paths, as they stand in the document that is
// compared. Their names were compared.
type paths map[string][]byte

func (c *mergedCheck) ownPaths() (paths, error) {
	own := paths{}
	for _, key := range []string{"rank_files", "merged_output_path", "worker_probe_path"} {
		v, err := c.places[key].tree(c.f)
		if err != nil {
			return nil, err
		}
		if v != nil {
			own[key] = v.AppendIndent(nil, 1)
		}
	}
	return own, nil
}

// compareDerived compares the document with the derived one while that is made, and only
// when their text differs makes it once more to compare by value.
func (c *mergedCheck) compareDerived() error {
	own, err := c.ownPaths()
	if err != nil {
		return err
	}
	w := &sameText{src: c.f.src}
	if err := c.derive(w, own); err != nil && !errors.Is(err, errDiffers) {
		return err
	}
	if same, err := w.ended(); same || err != nil {
		c.result.Compared = same
		return err
	}
	file, err := os.CreateTemp("", "fpm-merged-*")
	if err != nil {
		return noRoom(err)
	}
	defer file.Close() // nothing that was written is wanted
	if err := os.Remove(file.Name()); err != nil {
		return noRoom(err)
	}
	if err := c.derive(file, own); err != nil {
		return noRoom(err)
	}
	return c.compareValues(file)
}

func noRoom(err error) error {
	return &exitcode.Error{
		Code: exitcode.Failed, Err: err, Message: "the document that the rank files give could not be written to compare with: " + err.Error(),
		Hint: "let TMPDIR name a directory with room for another merged artifact",
	}
}

func (c *mergedCheck) derive(w io.Writer, own paths) error {
	d := newDocument(c.again, w, c.f.path)
	d.paths = own
	return d.write()
}

// compareValues reports every difference to the derived document.
func (c *mergedCheck) compareValues(derived *os.File) error {
	info, err := derived.Stat()
	if err != nil {
		return err
	}
	end, err := c.end()
	if err != nil {
		return err
	}
	whole, mine := jsonstream.Span{Len: info.Size()}, jsonstream.Span{Off: c.f.root, Len: end - c.f.root}
	err = c.compare.Each(derived, whole, c.f.src, mine, func(d jsonspan.Difference) error {
		c.differs(c.scope, derived, finding.MergedDiffers, d.Pointer, trim(d), func(message string) string { return message + " from what the rank files give" })
		return c.r.ctx.Err()
	})
	c.result.Compared = err == nil
	return err
}

// trim takes the pointer off a difference, for a report that has it already.
func trim(d jsonspan.Difference) *jsonspan.Difference {
	d.Pointer = ""
	return &d
}

// end is the offset behind the document's value.
func (c *mergedCheck) end() (int64, error) {
	c.inner.Reset(c.f.src, c.f.root, 0, jsonstream.Trusted)
	span, err := c.inner.Skip()
	return span.End(), err
}

// errDiffers ends the writing of a document whose text is not what it is compared with.
var errDiffers = errors.New("the text differs")

// sameText is a writer that compares what is written with a file.
type sameText struct {
	src io.ReaderAt
	at  int64
	buf []byte
	err error // of reading, or errDiffers
}

func (w *sameText) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if len(w.buf) < len(p) {
		w.buf = make([]byte, len(p))
	}
	n, err := w.src.ReadAt(w.buf[:len(p)], w.at)
	switch {
	case n < len(p) && err != io.EOF:
		w.err = &jsonstream.ReadError{Offset: w.at, Err: err}
	case !bytes.Equal(w.buf[:n], p):
		w.err = errDiffers
	}
	w.at += int64(n)
	return len(p), w.err
}

// ended tells whether everything that was written is the whole file.
func (w *sameText) ended() (bool, error) {
	if w.err != nil {
		if errors.Is(w.err, errDiffers) {
			return false, nil
		}
		return false, w.err
	}
	n, err := w.src.ReadAt(make([]byte, 1), w.at)
	if n == 0 && err != io.EOF {
		return false, &jsonstream.ReadError{Offset: w.at, Err: err}
	}
	return n == 0, nil
}
