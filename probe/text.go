package probe

import (
	"context"
	"errors"
	"io"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// maxBlock bounds, in bytes, each part of a merged artifact that is held in memory
// (input.limit): its engine object, its dp object, its list of files.
const maxBlock = 16 << 20

// maxNodes bounds the values within such a part: a tree takes about a hundred bytes for
// each.
const maxNodes = 1 << 20

// text is a file with one JSON document that was checked from its beginning to its end,
// and where the members of the document are.
type text struct {
	path   string
	file   *input.File
	size   int64   // bytes of text
	object bool    // the document is an object
	root   int64   // offset of the document's value
	fields []field // those whose names anybody could ask for

	inner *jsonstream.Scanner // of parts that are read again, made at the first
}

// field is a member of an object where it stands.
type field struct {
	name string
	span jsonstream.Span
}

// counted is a source that knows how far it was read, and that ends when nobody wants
// it any more.
type counted struct {
	ctx      context.Context
	in       io.ReaderAt
	progress Progress // may be nil
	high     int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.in.ReadAt(p, off)
	if end := off + int64(n); n > 0 && end > c.high {
		if c.progress != nil {
			c.progress.Add(end - c.high)
		}
		c.high = end
	}
	return n, err
}

// openText opens and checks a file. The error is a [*TextError] when something is wrong
// with the text.
func openText(ctx context.Context, path string, progress Progress) (*text, error) {
	file, err := input.Open(path, input.Options{})
	if err != nil {
		return nil, openError(path, err)
	}
	if progress != nil {
		progress.Expect(file.RawSize())
	}
	t := &text{path: path, file: file}
	if err := t.read(&counted{ctx: ctx, in: file, progress: progress}); err != nil {
		return nil, errors.Join(textError(path, file, err), file.Close())
	}
	return t, nil
}

// openError says what is wrong with a path in one sentence.
func openError(path string, err error) error {
	own := exitcode.From(err)
	if own.File == "" {
		return err // it names the path
	}
	return own
}

func (t *text) read(src *counted) error {
	err := t.readAs(src, jsonstream.Strict)
	var fault *jsonstream.Fault
	if errors.As(err, &fault) {
		lenient, found := jsonstream.Check(src, textLimits())
		switch {
		case lenient && found == nil:
			err = t.readAs(src, jsonstream.Lenient)
		case found != nil:
			err = found
		}
	}
	t.size = src.high
	return err
}

func (t *text) readAs(src io.ReaderAt, mode jsonstream.Mode) (err error) {
	s := jsonstream.New(src, 0, 0, mode, textLimits())
	if t.root, t.object, t.fields, err = readFields(s, maxName); err != nil {
		return err
	}
	return s.End()
}

// maxNames bounds the names of all open objects, in bytes (input.limit). A scanner holds
// them several times over; so many are a million of 32 bytes each.
const maxNames = 32 << 20

// maxName is more than any name has that a document is asked for.
const maxName = 64

func textLimits() jsonstream.Limits { return jsonstream.Limits{NameBytes: maxNames} }

// readFields reads an object and returns where its members are, but for those whose names
// are longer than longest.
func readFields(s *jsonstream.Scanner, longest int) (start int64, ok bool, fields []field, err error) {
	start, ok, err = s.Object(func(name []byte) error {
		wanted := len(name) <= longest
		f := field{}
		if wanted {
			f.name = string(name)
		}
		var err error
		if f.span, err = s.Skip(); wanted {
			fields = append(fields, f)
		}
		return err
	})
	return start, ok, fields, err
}

// fieldsAt returns the members of the object at a span of the checked text; ok is false
// when there is no object.
func (t *text) fieldsAt(span jsonstream.Span) (fields []field, ok bool, err error) {
	_, ok, fields, err = readFields(t.scanner(span), maxNames)
	return fields, ok, err
}

// scanner returns a scanner of the value at a span of the checked text.
func (t *text) scanner(span jsonstream.Span) *jsonstream.Scanner {
	if t.inner == nil {
		t.inner = jsonstream.New(t.file, span.Off, 0, jsonstream.Trusted, jsonstream.Limits{Window: 16 << 10})
	} else {
		t.inner.Reset(t.file, span.Off, 0, jsonstream.Trusted)
	}
	return t.inner
}

// elementsAt returns the spans of the elements of the array at a span, at most most.
func (t *text) elementsAt(span jsonstream.Span, most int) (elems []jsonstream.Span, ok bool, err error) {
	s := t.scanner(span)
	_, ok, err = s.Array(func(i int) error {
		elem, err := s.Skip()
		if err == nil && i >= most {
			err = s.LimitExceeded("more than %d replies", most)
		}
		elems = append(elems, elem)
		return err
	})
	return elems, ok, err
}

// get returns the place of a member, with a length of 0 when there is none.
func get(fields []field, name string) jsonstream.Span {
	for _, f := range fields {
		if f.name == name {
			return f.span
		}
	}
	return jsonstream.Span{}
}

// bytes returns the text at a span.
func (t *text) bytes(span jsonstream.Span) ([]byte, error) {
	b := make([]byte, span.Len)
	n, err := t.file.ReadAt(b, span.Off)
	if int64(n) < span.Len {
		return nil, &jsonstream.ReadError{Offset: span.Off + int64(n), Err: noEOF(err)}
	}
	return b, nil
}

// compact returns the text at a span without the white space between its tokens, at most
// limit bytes of it. How much white space a layout adds is not for a reader to suffer.
func (t *text) compact(span jsonstream.Span, limit int) ([]byte, error) {
	var b []byte
	var inString, escaped bool
	err := eachChunk(t.file, span, func(chunk []byte) error {
		for _, c := range chunk {
			switch {
			case escaped:
				escaped = false
			case c == '"':
				inString = !inString
			case inString:
				escaped = c == '\\'
			case c == ' ' || c == '\n' || c == '\r' || c == '\t':
				continue
			}
			b = append(b, c)
		}
		if len(b) > limit {
			return &jsonstream.Fault{Rule: finding.InputLimit, Offset: span.Off, Message: "responses of more than 64 MiB"}
		}
		return nil
	})
	return b, err
}

// eachChunk reads a span piece by piece.
func eachChunk(src io.ReaderAt, span jsonstream.Span, fn func(chunk []byte) error) error {
	buf := make([]byte, min(span.Len, 64<<10))
	for at := span.Off; at < span.End(); {
		n, err := src.ReadAt(buf[:min(int64(len(buf)), span.End()-at)], at)
		if n == 0 {
			return &jsonstream.ReadError{Offset: at, Err: noEOF(err)}
		}
		if err := fn(buf[:n]); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// noEOF returns the error of a read that found less than there was.
func noEOF(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// tree returns the value at a span in memory, nil for a span of length 0. A value beyond
// the bounds breaks input.limit.
func (t *text) tree(span jsonstream.Span) (*jsonvalue.Value, error) {
	if span.Len == 0 {
		return nil, nil
	}
	limit := &jsonstream.Fault{Rule: finding.InputLimit, Offset: span.Off}
	if span.Len > maxBlock {
		limit.Message = "a block of more than 16 MiB that has to be held in memory"
		return nil, limit
	}
	b, err := t.bytes(span)
	if err != nil {
		return nil, err
	}
	if nodes(b) > maxNodes {
		limit.Message = "a block of more than 1,048,576 values that has to be held in memory"
		return nil, limit
	}
	return jsonvalue.Parse(b, span.Off)
}

// nodes returns at least the number of values in a text: each but the first of its
// container follows a comma.
func nodes(text []byte) (n int) {
	for _, c := range text {
		if c == ',' || c == '[' || c == '{' {
			n++
		}
	}
	return n + 1
}

// TextError says where the text of a file breaks a rule about JSON text or limits.
type TextError struct {
	Path    string
	Rule    finding.ID
	Pointer string
	Offset  int64 // -1 when it is not known
	Message string
	src     io.ReaderAt
}

func (e *TextError) Error() string { return e.Path + ": " + e.Message }

// textError turns an error about what a file holds into a [*TextError]; others stay.
func textError(path string, src io.ReaderAt, err error) error {
	e := &TextError{Path: path, Rule: finding.JSONSyntax, Offset: -1, Message: err.Error(), src: src}
	var (
		fault   *jsonstream.Fault
		read    *jsonstream.ReadError
		corrupt *input.CorruptError
		limit   *input.LimitError
	)
	if errors.As(err, &read) {
		e.Offset = read.Offset
	}
	switch {
	case errors.As(err, &fault):
		e.Rule, e.Pointer, e.Offset, e.Message = fault.Rule, fault.Pointer, fault.Offset, fault.Message
	case errors.As(err, &corrupt), errors.Is(err, io.ErrUnexpectedEOF):
	case errors.As(err, &limit):
		e.Rule = finding.InputLimit
	default:
		return err
	}
	return e
}
