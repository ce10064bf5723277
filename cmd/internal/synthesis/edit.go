package synthesis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/atomicfile"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// change is one change of a document's text: a value replaced, or a member put in front.
type change struct {
	at    []string                // names and indices that lead to the value; none for a new member
	value func(old string) string // its new text; old is the text that is there
	name  string                  // of the new member
}

// replace replaces the value at a path of names and indices, separated by slashes.
func replace(path, value string) *change {
	return replaceBy(path, func(string) string { return value })
}

func replaceBy(path string, value func(old string) string) *change {
	return &change{at: strings.Split(path, "/"), value: value}
}

// put adds a member to the document.
func put(name, value string) *change {
	return &change{name: name, value: func(string) string { return value }}
}

// later returns the text of a number of seconds that is one greater.
func later(seconds string) string {
	n, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		panic("synthesis: not a number: " + seconds) // the document was just made
	}
	return string(pyjson.Append(nil, n+1, 0))
}

// edit makes a change in a file. The file is copied, and little of it is held.
func edit(ctx context.Context, path string, c *change) (err error) {
	if c == nil {
		return nil
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	span, text, err := c.splice(in)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	out, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Abort()) }()
	parts := io.MultiReader(
		io.NewSectionReader(in, 0, span.Off),
		strings.NewReader(text),
		io.NewSectionReader(in, span.End(), 1<<62-span.End()),
	)
	if _, err := io.Copy(out, cancellable{ctx, parts}); err != nil {
		return err
	}
	return errors.Join(out.Sync(), out.Commit())
}

// cancellable ends a copy when its context ends.
type cancellable struct {
	ctx context.Context
	in  io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.in.Read(p)
}

// splice returns the bytes to replace and what comes there.
func (c *change) splice(in io.ReaderAt) (jsonstream.Span, string, error) {
	at, ok := jsonstream.Find(in, 0, c.at...)
	if !ok {
		return jsonstream.Span{}, "", fmt.Errorf("nothing at %s", strings.Join(c.at, "/"))
	}
	if len(c.at) == 0 { // behind the opening brace
		return jsonstream.Span{Off: at + 1}, fmt.Sprintf("\n  %q: %s,", c.name, c.value("")), nil
	}
	span, err := jsonstream.New(in, at, len(c.at), jsonstream.Trusted, jsonstream.Limits{}).Skip()
	if err != nil {
		return span, "", err
	}
	const longest = 4096 // only short values are looked at
	old := make([]byte, min(span.Len, longest))
	if _, err := in.ReadAt(old, span.Off); err != nil && err != io.EOF {
		return span, "", err
	}
	return span, c.value(string(old)), nil
}
