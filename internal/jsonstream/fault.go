package jsonstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/finding"
)

// Fault says where a document breaks a rule about JSON text: json.syntax, json.number,
// json.duplicate-key, json.depth or input.limit.
type Fault struct {
	Rule      finding.ID
	Offset    int64
	Pointer   string // of the innermost value around Offset
	Message   string
	Truncated bool // the text ends too early; nothing else is wrong with it
	encoding  bool // strict reading stopped at a surrogate or at UTF-8
}

func (f *Fault) Error() string { return f.Message }

// ReadError says that the document could not be read at an offset.
type ReadError struct {
	Offset int64
	Err    error
}

func (e *ReadError) Error() string { return e.Err.Error() }
func (e *ReadError) Unwrap() error { return e.Err }

var errLiteral = errors.New("string, number or gap too long")

func (s *Scanner) fail(rule finding.ID, off int64, format string, args ...any) error {
	return &Fault{Rule: rule, Offset: off, Pointer: string(s.dec.StackPointer()), Message: fmt.Sprintf(format, args...)}
}

func (s *Scanner) limit(off int64, format string, args ...any) error {
	return s.fail(finding.InputLimit, off, format, args...)
}

// LimitExceeded is the fault of a caller whose own bound is passed at the place that was
// read last (rule input.limit).
func (s *Scanner) LimitExceeded(format string, args ...any) error {
	return s.limit(s.Offset(), format, args...)
}

// fault turns an error of the decoder into a Fault, or into the ReadError behind it.
func (s *Scanner) fault(err error) error {
	var read *ReadError
	var syntax *jsontext.SyntacticError
	switch {
	case errors.As(err, &read):
		if errors.Is(read.Err, io.ErrUnexpectedEOF) {
			return &Fault{Rule: finding.JSONSyntax, Offset: read.Offset, Message: read.Error(), Truncated: true}
		}
		return read
	case errors.Is(err, errLiteral):
		return s.limit(s.Offset(), "a string, number or gap of more than %d bytes", s.limits.Literal)
	case err == io.EOF:
		f := &Fault{Rule: finding.JSONSyntax, Offset: s.Offset(), Message: "the text ends before a value begins", Truncated: true}
		return f
	case !errors.As(err, &syntax):
		return &ReadError{Offset: s.Offset(), Err: err}
	}
	f := &Fault{Rule: finding.JSONSyntax, Offset: syntax.ByteOffset + s.shift, Pointer: string(syntax.JSONPointer)}
	switch text := syntax.Err.Error(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Message, f.Truncated = "the text ends too early", true
	case errors.Is(err, jsontext.ErrDuplicateName):
		f.Rule, f.Message = finding.JSONDuplicateKey, "a key appears twice in one object"
	default:
		f.Message = text
		f.encoding = strings.Contains(text, "surrogate") || strings.Contains(text, "UTF-8")
		s.nameNumber(f)
	}
	return f
}

// nameNumber recognises the non-numbers that Python's json module writes.
func (s *Scanner) nameNumber(f *Fault) {
	const back = 1
	text := make([]byte, back+len("-Infinity"))
	from := max(f.Offset-back, 0)
	n, err := s.feed.src.ReadAt(text, from)
	if err != nil && err != io.EOF {
		return // the place is named all the same, only less well
	}
	text = text[:n]
	at := min(int(f.Offset-from), n)
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		for _, start := range []int{at, 0} {
			if bytes.HasPrefix(text[start:], []byte(word)) {
				f.Rule, f.Offset = finding.JSONNumber, from+int64(start)
				f.Message = word + " is no JSON number"
			}
		}
	}
}

// Check reads a whole document and returns what is wrong with its text: nil, a *Fault or
// a *ReadError. Lenient tells that the document is sound but has lone surrogate escapes,
// so that it must be read in that mode.
func Check(src io.ReaderAt, limits Limits) (lenient bool, err error) {
	err = checkAs(src, Strict, limits)
	var f *Fault
	if !errors.As(err, &f) || !f.encoding {
		return false, err
	}
	return true, checkAs(src, Lenient, limits)
}

func checkAs(src io.ReaderAt, mode Mode, limits Limits) error {
	s := New(src, 0, 0, mode, limits)
	if _, err := s.Skip(); err != nil {
		return err
	}
	return s.End()
}

func clip(raw []byte) string {
	const most = 80
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
