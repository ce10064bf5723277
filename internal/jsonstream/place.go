package jsonstream

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"

	"github.com/fpm-project/fpm/internal/finding"
)

// smallWindow is how much is read at once where a single value is looked at.
const smallWindow = 16 << 10

// Excerpt returns the text of the value at off without its line breaks and indentation,
// cut to about most bytes. The value was checked before.
func Excerpt(src io.ReaderAt, off int64, most int) string {
	text := make([]byte, 8*most)
	n, err := readFull(src, text, off)
	if err != nil && err != io.EOF {
		return "" // whoever reads the file meets the same error and reports it
	}
	text = text[:n]
	span, err := New(bytes.NewReader(text), 0, 0, Trusted, Limits{Window: smallWindow}).Skip()
	if err == nil {
		text = text[:span.End()]
	}
	text = joinLines(text)
	if err != nil || len(text) > most {
		return string(bytes.ToValidUTF8(text[:min(most, len(text))], nil)) + "…"
	}
	return string(text)
}

// joinLines removes line breaks and tabs, which no string of a valid text holds, and the
// spaces around them.
func joinLines(text []byte) []byte {
	lines := bytes.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' || c == '\t' })
	for i, line := range lines {
		lines[i] = bytes.Trim(line, " ")
	}
	return bytes.Join(lines, nil)
}

var errFound = errors.New("found")

// Find returns the offset of the value that path leads to, from the value at off: names
// and decimal array indices, unescaped. Where a step does not exist, ok is false and the
// offset is that of the innermost value that does. The text was checked before.
func Find(src io.ReaderAt, off int64, path ...string) (at int64, ok bool) {
	s := New(src, off, 0, Trusted, Limits{Window: smallWindow})
	at, err := s.find(path)
	return at, errors.Is(err, errFound)
}

// find returns errFound when the path was followed to its end.
func (s *Scanner) find(path []string) (at int64, err error) {
	if len(path) == 0 {
		at, err := s.start()
		if err != nil {
			return at, err
		}
		return at, errFound
	}
	inner := int64(-1)
	step := func(hit bool) error {
		if !hit {
			_, err := s.Skip()
			return err
		}
		inner, err = s.find(path[1:])
		return err
	}
	if s.Peek() == '[' {
		at, _, err = s.Array(func(i int) error { return step(path[0] == strconv.Itoa(i)) })
	} else {
		at, _, err = s.Object(func(name []byte) error { return step(path[0] == string(name)) })
	}
	if inner >= 0 {
		at = inner
	}
	return at, err
}

// start returns the offset of the next value; the value is then partly read.
func (s *Scanner) start() (int64, error) {
	if k := s.Peek(); k == '{' || k == '[' {
		return s.enter(k == '{')
	}
	v, err := s.Scalar()
	return v.Offset, err
}

// Position is a place in a text for people: line and column count from 1, the column in
// bytes.
type Position struct{ Line, Column int }

// Positions returns the line and column of each offset, in one pass over the text up to
// the last of them.
func Positions(src io.ReaderAt, offsets []int64) ([]Position, error) {
	order := make([]int, len(offsets))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(offsets[a], offsets[b]) })
	out := make([]Position, len(offsets))
	buf := make([]byte, windowSize)
	line, lineStart, at := 1, int64(0), int64(0)
	for _, i := range order {
		for at < offsets[i] {
			n, err := src.ReadAt(buf[:min(int64(len(buf)), offsets[i]-at)], at)
			if n == 0 {
				if err == io.EOF {
					break // a fault behind the last byte
				}
				return out, &ReadError{Offset: at, Err: err}
			}
			line += bytes.Count(buf[:n], []byte{'\n'})
			if last := bytes.LastIndexByte(buf[:n], '\n'); last >= 0 {
				lineStart = at + int64(last) + 1
			}
			at += int64(n)
		}
		out[i] = Position{Line: line, Column: int(offsets[i]-lineStart) + 1}
	}
	return out, nil
}

// Locate gives findings about one text their line and column and, where they ask for it,
// an excerpt of at most most bytes of what stands there. Each has an offset.
func Locate(src io.ReaderAt, findings []*finding.Finding, most int) error {
	offsets := make([]int64, len(findings))
	for i, f := range findings {
		offsets[i] = f.Offset
	}
	// Where the text breaks off, or can no longer be read, is what the findings are about.
	positions, err := Positions(src, offsets)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	for i, f := range findings {
		f.Line, f.Column = positions[i].Line, positions[i].Column
		if f.Excerpt && f.Actual == "" {
			f.Actual = Excerpt(src, f.Offset, most)
		}
	}
	return nil
}
