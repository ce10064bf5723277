package jsonstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

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
	surrogate bool // strict reading stopped at a lone surrogate escape
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
	return &Fault{Rule: rule, Offset: off, Pointer: s.pointer(s.dec.StackPointer()), Message: fmt.Sprintf(format, args...)}
}

// pointer corrects a pointer of the decoder, which does not know how many elements of an
// outermost array were jumped over.
func (s *Scanner) pointer(p jsontext.Pointer) string {
	if s.jumped == 0 || p == "" {
		return string(p)
	}
	index, rest, deeper := strings.Cut(string(p[1:]), "/")
	known, err := strconv.ParseInt(index, 10, 64)
	if err != nil {
		return string(p)
	}
	corrected := "/" + strconv.FormatInt(known+s.jumped, 10)
	if deeper {
		corrected += "/" + rest
	}
	return corrected
}

// next is the pointer of the value that would be read next, or of the object whose next
// name would be.
func (s *Scanner) next() jsontext.Pointer {
	last := s.dec.StackPointer()
	kind, n := s.dec.StackIndex(s.dec.StackDepth())
	if n > 0 && (kind != '{' || n%2 == 0) {
		last = last.Parent()
	}
	if kind == '[' {
		last = last.AppendToken(strconv.FormatInt(n, 10))
	}
	return last
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
			return &Fault{Rule: finding.JSONSyntax, Offset: read.Offset, Pointer: s.pointer(s.next()), Message: read.Error(), Truncated: true}
		}
		return read
	case errors.Is(err, errLiteral):
		return s.tooLong()
	case err == io.EOF:
		return &Fault{Rule: finding.JSONSyntax, Offset: s.Offset(), Message: "the text ends before a value begins", Truncated: true}
	case !errors.As(err, &syntax):
		return &ReadError{Offset: s.Offset(), Err: err}
	}
	f := &Fault{Rule: finding.JSONSyntax, Offset: syntax.ByteOffset + s.shift, Pointer: s.pointer(syntax.JSONPointer)}
	switch text := syntax.Err.Error(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Message, f.Truncated = "the text ends too early", true
	case errors.Is(err, jsontext.ErrDuplicateName):
		f.Rule, f.Message = finding.JSONDuplicateKey, "a key appears twice in one object"
	default:
		f.Message, f.surrogate = text, strings.Contains(text, "surrogate")
		s.nameNumber(f)
		if f.Rule == finding.JSONSyntax {
			s.explain(f)
		}
	}
	return f
}

// explain puts frequent slips in the words of those who make them.
func (s *Scanner) explain(f *Fault) {
	text := make([]byte, 64)
	n, err := readFull(s.feed.src, text, f.Offset)
	if err != nil && err != io.EOF {
		return // the decoder's words do
	}
	text = text[:n]
	switch after := bytes.TrimLeft(bytes.TrimPrefix(text, []byte(",")), " \t\r\n"); {
	case bytes.HasPrefix(text, []byte(",")) && len(after) > 0 && (after[0] == '}' || after[0] == ']'):
		f.Message = "a comma before the end of an object or array"
	case bytes.HasPrefix(text, []byte("'")):
		f.Message = "a single quote: strings and keys stand in double quotes"
	case f.Offset == 0 && bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		f.Message = "a byte-order mark before the document"
	case f.Offset == 0 && (bytes.HasPrefix(text, []byte("\x1f\x8b")) || bytes.HasPrefix(text, []byte("\x28\xb5\x2f\xfd"))):
		f.Message = "compressed data: a file of it is named .gz or .zst"
	}
}

// tooLong is the fault of a literal, or of white space, that the feed cut off.
func (s *Scanner) tooLong() error {
	off, unread := s.Offset(), s.dec.UnreadBuffer()
	if literal := bytes.TrimLeft(unread, gap); len(literal) > 0 {
		off += int64(len(unread) - len(literal))
	}
	return &Fault{Rule: finding.InputLimit, Offset: off, Pointer: s.pointer(s.next()),
		Message: fmt.Sprintf("a string or number, with the white space before it, of more than %d bytes", s.limits.Literal)}
}

// nameNumber recognises the non-numbers that Python's json module writes, where a value
// is due.
func (s *Scanner) nameNumber(f *Fault) {
	before, due := s.untilValue()
	text := make([]byte, len("-Infinity")+1)
	at := s.Offset() + int64(before)
	if !due || (f.Offset != at && f.Offset != at+1) { // the decoder stops at the word, or behind its sign
		return
	}
	n, err := readFull(s.feed.src, text, at)
	if err != nil && err != io.EOF {
		return // the place is named all the same, only less well
	}
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		rest, found := bytes.CutPrefix(text[:n], []byte(word))
		if found && (len(rest) == 0 || !isWord(rest[0])) {
			f.Rule, f.Offset, f.Message = finding.JSONNumber, at, word+" is no JSON number"
		}
	}
}

// untilValue returns the length of what stands before the next token, and whether a
// value is due there.
func (s *Scanner) untilValue() (length int, due bool) {
	unread := s.dec.UnreadBuffer()
	length = len(unread) - len(bytes.TrimLeft(unread, gap))
	delimiter := strings.Trim(string(unread[:length]), " \n\r\t")
	switch kind, n := s.dec.StackIndex(s.dec.StackDepth()); {
	case kind == '{':
		return length, n%2 == 1 && delimiter == ":"
	case n > 0:
		return length, kind == '[' && delimiter == ","
	}
	return length, delimiter == ""
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// Check reads a whole document and returns what is wrong with its text: nil, a *Fault or
// a *ReadError. Lenient tells that the document is sound but has lone surrogate escapes,
// so that it must be read in that mode.
func Check(src io.ReaderAt, limits Limits) (lenient bool, err error) {
	err = checkAs(src, Strict, limits)
	var f *Fault
	if !errors.As(err, &f) || !f.surrogate {
		return false, err
	}
	err = checkAs(src, Lenient, limits)
	return err == nil, err
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

// validPrefix is the length of the valid UTF-8 that text begins with.
func validPrefix(text []byte) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}
