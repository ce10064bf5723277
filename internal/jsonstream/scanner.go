// Package jsonstream reads JSON documents of any size in bounded memory.
//
// A [Scanner] walks a document once, value by value: the caller says what it expects
// ([Scanner.Object], [Scanner.Array], [Scanner.Scalar]) and gets the rest skipped. What
// is skipped is still checked in full: grammar, UTF-8, duplicate names, nesting, and the
// limits of [Limits]. Bytes that are already known to be valid can be jumped over
// ([Scanner.JumpTo]), and any place can be read again by its offset, so that a document
// is indexed by [Span]s instead of being held.
//
// Parsing is done by jsontext. What this package adds is the bounds that jsontext leaves
// to its caller, byte offsets of values, and one exception that artifacts need: a lone
// surrogate escape ("\ud800"), which Python writes and jsontext refuses, is legal text.
// Documents are read strictly first; only where such an escape stands are they read
// again in [Lenient] mode with this package's own UTF-8 and duplicate-name checks.
package jsonstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Limits bounds what one document may ask for. The zero value of a field means its
// default.
type Limits struct {
	Literal   int // bytes of one string or number; default 16 MiB
	Keys      int // names in one object; default 1,000,000
	NameBytes int // bytes of the names of all open objects, with the white space before each; default 64 MiB
	Depth     int // nesting of containers; default 512, which is also the most
	Window    int // bytes read from the source at once; default 256 KiB
}

// slack is by how much a literal together with the white space before it, or white space
// alone, may pass Limits.Literal: a decoder holds both at once.
const slack = 64 << 10

// Default limits (rules input.limit and json.depth).
const (
	DefaultLiteral   = 16 << 20
	DefaultKeys      = 1_000_000
	DefaultNameBytes = 64 << 20
	DefaultDepth     = 512
)

func (l Limits) orDefault() Limits {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&l.Literal, DefaultLiteral)
	set(&l.Keys, DefaultKeys)
	set(&l.NameBytes, DefaultNameBytes)
	set(&l.Depth, DefaultDepth)
	set(&l.Window, windowSize)
	l.Depth = min(l.Depth, DefaultDepth)
	return l
}

// Mode says how much a scanner checks.
type Mode int

// The modes.
const (
	Strict  Mode = iota // everything, by jsontext
	Lenient             // everything, but lone surrogate escapes pass; slower
	Trusted             // grammar only: for text that was checked before
)

// Span is a byte range of a document: one value without the white space around it.
type Span struct {
	Off int64
	Len int64
}

// End is the offset behind the span's last byte.
func (s Span) End() int64 { return s.Off + s.Len }

// Scalar is a value that was read. Raw is its literal text, valid until the next read;
// of a container only the kind and the offset are kept.
type Scalar struct {
	Kind   jsontext.Kind // 0 when the value is absent
	Offset int64         // of the first byte
	Raw    []byte
}

// Scanner reads one document, or one value inside it, forward.
type Scanner struct {
	dec    jsontext.Decoder
	feed   feed
	parser jsonvalue.Parser
	mode   Mode
	limits Limits

	shift    int64 // document offset minus decoder offset
	jumped   int64 // elements of an outermost array that the decoder does not know of
	depth    int   // open containers around the next value
	names    int64 // bytes of the names of all open objects, as Limits.NameBytes counts them
	nameBuf  []byte
	top      []byte            // the members read so far of an outermost object, their values null
	lastName int               // where the last of them begins
	seen     []map[string]bool // Lenient: the names of each open object, by depth
	note     func(Span)        // told of the containers that are skipped, see SkipNoting
	least    int64             // bytes of those that it is told of
	open     [DefaultDepth + 2]container
}

// container is what Skip knows of an open container.
type container struct {
	object bool
	tokens int   // names and values so far
	names  int64 // Scanner.names outside the container
	start  int64 // of a container to be noted
}

// New returns a scanner of the document src from offset off, where a value begins.
// Depth is the number of containers around that value.
func New(src io.ReaderAt, off int64, depth int, mode Mode, limits Limits) *Scanner {
	s := &Scanner{limits: limits.orDefault()}
	s.Reset(src, off, depth, mode)
	return s
}

// Reset makes the scanner read another place, keeping its buffers.
func (s *Scanner) Reset(src io.ReaderAt, off int64, depth int, mode Mode) {
	s.mode, s.depth, s.top = mode, depth, s.top[:0]
	s.jumped, s.names = 0, 0
	s.restart(src, off, nil)
}

func (s *Scanner) restart(src io.ReaderAt, off int64, prefix []byte) {
	s.shift = off - int64(len(prefix))
	s.feed.reset(&s.dec, src, off, prefix, s.limits)
	lax := s.mode != Strict
	s.dec.Reset(&s.feed, jsontext.AllowInvalidUTF8(lax), jsontext.AllowDuplicateNames(lax))
}

// Offset is the offset behind the last value or delimiter that was read.
func (s *Scanner) Offset() int64 { return s.dec.InputOffset() + s.shift }

// Peek returns the kind of the next value, or the closing delimiter of the open
// container; 0 means that the next read fails.
func (s *Scanner) Peek() jsontext.Kind { return s.dec.PeekKind() }

// Scalar reads a value. A container is skipped, and only its kind and offset returned.
func (s *Scanner) Scalar() (Scalar, error) {
	kind := s.dec.PeekKind()
	if kind == '{' || kind == '[' {
		span, err := s.Skip()
		return Scalar{Kind: kind, Offset: span.Off}, err
	}
	raw, err := s.literal()
	if err != nil {
		return Scalar{Offset: s.Offset()}, err // no kind: there is no text that it could be the kind of
	}
	return Scalar{Kind: kind, Offset: s.Offset() - int64(len(raw)), Raw: raw}, nil
}

// literal reads a string, number, true, false or null.
func (s *Scanner) literal() ([]byte, error) {
	raw, err := s.dec.ReadValue()
	if err != nil {
		return nil, s.fault(err)
	}
	return raw, s.checkLiteral(raw)
}

func (s *Scanner) checkLiteral(raw []byte) error {
	if len(raw) > s.limits.Literal {
		return s.limit(s.Offset()-int64(len(raw)), "a string or number of more than %d bytes", s.limits.Literal)
	}
	if s.mode == Lenient && !utf8.Valid(raw) {
		return s.fail(finding.JSONSyntax, s.Offset()-int64(len(raw)-validPrefix(raw)), "invalid UTF-8")
	}
	return nil
}

// Object reads an object and calls fn for each member; fn must read the member's value
// by exactly one call of the scanner. Name is the unescaped name, valid until then. A
// value that is no object is skipped and ok is false.
func (s *Scanner) Object(fn func(name []byte) error) (start int64, ok bool, err error) {
	if s.dec.PeekKind() != '{' {
		v, err := s.Scalar()
		return v.Offset, false, err
	}
	if start, err = s.enter(true); err != nil {
		return start, false, err
	}
	outer := s.names
	keys := 0
	for kind := s.dec.PeekKind(); kind != '}'; kind = s.dec.PeekKind() {
		keys++
		raw, err := s.name(kind, keys)
		if err != nil {
			return start, false, err
		}
		if s.depth == 1 {
			s.lastName = len(s.top)
			s.top = append(append(s.top, raw...), ":null,"...)
		}
		if err := fn(s.unquote(raw)); err != nil {
			return start, false, err
		}
	}
	s.names = outer
	return start, true, s.leave()
}

// name reads the name that makes keys of them in its object.
func (s *Scanner) name(kind jsontext.Kind, keys int) (raw []byte, err error) {
	if kind != '"' { // a container as a name would be read whole before it is refused
		_, err := s.dec.ReadToken()
		return nil, s.fault(err)
	}
	before := s.dec.InputOffset()
	if raw, err = s.literal(); err != nil {
		return nil, err
	}
	s.names += s.dec.InputOffset() - before
	if keys > s.limits.Keys || s.names > int64(s.limits.NameBytes) {
		return nil, s.tooMany(s.Offset()-int64(len(raw)), keys)
	}
	if s.mode == Lenient {
		name := string(jsonvalue.Unquote(nil, raw))
		if s.seen[s.depth][name] {
			return nil, s.fail(finding.JSONDuplicateKey, s.Offset()-int64(len(raw)), "the key %s appears twice in one object", clip(raw))
		}
		s.seen[s.depth][name] = true
	}
	return raw, nil
}

// tooMany is the fault of the name at start, which was read last and makes keys of them
// in its object.
func (s *Scanner) tooMany(start int64, keys int) error {
	if keys > s.limits.Keys {
		return s.limit(start, "more than %d keys in one object", s.limits.Keys)
	}
	return s.limit(start, "more than %d bytes of keys in one object and those around it", s.limits.NameBytes)
}

func (s *Scanner) unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	s.nameBuf = jsonvalue.Unquote(s.nameBuf[:0], raw)
	return s.nameBuf
}

// Array reads an array and calls fn for each element; fn must read the element by
// exactly one call of the scanner. A value that is no array is skipped and ok is false.
func (s *Scanner) Array(fn func(i int) error) (start int64, ok bool, err error) {
	if s.dec.PeekKind() != '[' {
		v, err := s.Scalar()
		return v.Offset, false, err
	}
	if start, err = s.enter(false); err != nil {
		return start, false, err
	}
	for i := 0; ; i++ {
		more, err := s.More()
		if err != nil || !more {
			return start, err == nil, err
		}
		if err := fn(i); err != nil {
			return start, false, err
		}
	}
}

// EnterArray reads the opening bracket of an array, for callers that walk two arrays
// side by side; [Scanner.More] is then to be called before each element and once after
// the last.
func (s *Scanner) EnterArray() (start int64, err error) {
	if s.dec.PeekKind() != '[' {
		panic("jsonstream: no array to enter")
	}
	return s.enter(false)
}

// More tells whether the array has another element, and reads its closing bracket when
// it has none.
func (s *Scanner) More() (bool, error) {
	switch s.dec.PeekKind() {
	case ']':
		return false, s.leave()
	case 0, '}':
		_, err := s.literal()
		return false, err
	}
	return true, nil
}

func (s *Scanner) enter(object bool) (start int64, err error) {
	if _, err := s.dec.ReadToken(); err != nil {
		return s.Offset(), s.fault(err)
	}
	s.depth++
	start = s.Offset() - 1
	if s.depth > s.limits.Depth {
		return start, s.fail(finding.JSONDepth, start, "nesting deeper than %d", s.limits.Depth)
	}
	if object && s.mode == Lenient {
		for len(s.seen) <= s.depth {
			s.seen = append(s.seen, nil)
		}
		s.seen[s.depth] = map[string]bool{}
	}
	return start, nil
}

func (s *Scanner) leave() error {
	if _, err := s.dec.ReadToken(); err != nil {
		return s.fault(err)
	}
	s.depth--
	return nil
}

// Skip reads a value of any kind and returns where it stands.
func (s *Scanner) Skip() (Span, error) {
	kind := s.dec.PeekKind()
	var start int64
	var err error
	switch {
	case kind != '{' && kind != '[':
		raw, err := s.literal()
		return Span{s.Offset() - int64(len(raw)), int64(len(raw))}, err
	case s.mode == Lenient && kind == '{':
		start, _, err = s.Object(func([]byte) error { _, err := s.Skip(); return err })
	case s.mode == Lenient:
		start, _, err = s.Array(func(int) error { _, err := s.Skip(); return err })
	default:
		if start, err = s.enter(kind == '{'); err == nil {
			err = s.skipRest(kind == '{')
		}
	}
	return Span{start, s.Offset() - start}, err
}

// SkipNoting is Skip for one who is going to read containers inside the value again: note
// is told of each that has least bytes or more, the value itself included, the inner before
// the outer. In Lenient mode none is noted.
func (s *Scanner) SkipNoting(least int64, note func(Span)) (Span, error) {
	s.note, s.least = note, least
	defer func() { s.note = nil }()
	return s.Skip()
}

// skipRest walks the tokens up to the end of the container that was just entered. The
// decoder's own SkipValue does the same, but to a depth of 10,000 and any number of keys.
func (s *Scanner) skipRest(object bool) error {
	outer := s.depth
	s.open[outer] = container{object: object, names: s.names, start: s.Offset() - 1}
	last := s.dec.InputOffset()
	for s.depth >= outer {
		tok, err := s.dec.ReadToken()
		if err != nil {
			return s.fault(err)
		}
		now := s.dec.InputOffset()
		size := now - last
		last = now
		switch kind := tok.Kind(); kind {
		case '}', ']':
			c := &s.open[s.depth]
			if s.note != nil && now+s.shift-c.start >= s.least {
				s.note(Span{c.start, now + s.shift - c.start})
			}
			s.names = c.names
			s.depth--
		default:
			if err := s.count(&s.open[s.depth], kind, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// count takes note of a token that is no closing delimiter. Size is its length with what
// stands before it: a decoder does not tell where a token begins, so that is looked up
// only where it can matter.
func (s *Scanner) count(c *container, kind jsontext.Kind, size int64) error {
	if size > int64(s.limits.Literal) {
		if err := s.checkSize(size); err != nil {
			return err
		}
	}
	if c.tokens++; c.object && c.tokens&1 == 1 {
		if s.names += size; c.tokens > 2*s.limits.Keys || s.names > int64(s.limits.NameBytes) {
			start, err := s.tokenStart(size)
			if err != nil {
				return err
			}
			return s.tooMany(start, (c.tokens+1)/2)
		}
	}
	if kind != '{' && kind != '[' {
		return nil
	}
	if s.depth++; s.depth > s.limits.Depth {
		return s.fail(finding.JSONDepth, s.Offset()-1, "nesting deeper than %d", s.limits.Depth)
	}
	s.open[s.depth] = container{object: kind == '{', names: s.names}
	if s.note != nil {
		s.open[s.depth].start = s.Offset() - 1
	}
	return nil
}

// checkSize applies the limit on literals to the token that was read last, size bytes
// with what stands before it.
func (s *Scanner) checkSize(size int64) error {
	start, err := s.tokenStart(size)
	if err == nil && s.Offset()-start > int64(s.limits.Literal) {
		return s.limit(start, "a string or number of more than %d bytes", s.limits.Literal)
	}
	return err
}

// gap is what may stand between two tokens.
const gap = ",: \n\r\t"

// tokenStart reads the source again for the first byte of the token that was read last,
// size bytes with what stands before it.
func (s *Scanner) tokenStart(size int64) (int64, error) {
	at := s.Offset() - size
	r := bufio.NewReader(io.NewSectionReader(s.feed.src, at, size))
	for ; ; at++ {
		c, err := r.ReadByte()
		if err != nil {
			return at, &ReadError{Offset: at, Err: noEOF(err)}
		}
		if strings.IndexByte(gap, c) < 0 {
			return at, nil
		}
	}
}

// Tree reads a value into memory. A value of more than max bytes breaks input.limit.
func (s *Scanner) Tree(max int64) (*jsonvalue.Value, error) {
	span, err := s.Skip()
	if err != nil {
		return nil, err
	}
	if span.Len > max {
		return nil, s.limit(span.Off, "a block of more than %d bytes that has to be compared as a whole", max)
	}
	return readTree(&s.parser, s.feed.src, span)
}

// ReadTree reads the value at a span that was checked before.
func ReadTree(src io.ReaderAt, span Span) (*jsonvalue.Value, error) {
	return readTree(new(jsonvalue.Parser), src, span)
}

func readTree(parser *jsonvalue.Parser, src io.ReaderAt, span Span) (*jsonvalue.Value, error) {
	text := make([]byte, span.Len)
	if n, err := readFull(src, text, span.Off); err != nil {
		return nil, &ReadError{Offset: span.Off + int64(n), Err: noEOF(err)}
	}
	parser.MaxValues = maxTreeValues
	v, err := parser.Parse(text, span.Off)
	if errors.Is(err, jsonvalue.ErrValues) {
		return nil, &Fault{Rule: finding.InputLimit, Offset: span.Off,
			Message: fmt.Sprintf("a block of more than %d values that has to be compared as a whole", maxTreeValues)}
	}
	return v, err
}

// maxTreeValues bounds the values of a tree, which take many times the room of their
// text (input.limit). The largest sound block names each of 65,536 ranks twice.
const maxTreeValues = 200_000

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// NameLiteral returns the text of the last name of an outermost object.
func (s *Scanner) NameLiteral() []byte {
	return bytes.TrimSuffix(slices.Clone(s.top[s.lastName:]), []byte(":null,"))
}

// NextOffset is the offset of the value, or of the closing delimiter, that comes next.
func (s *Scanner) NextOffset() int64 {
	s.dec.PeekKind()
	unread := s.dec.UnreadBuffer()
	return s.Offset() + int64(len(unread)-len(bytes.TrimLeft(unread, gap)))
}

// JumpTo says that the value which would be read next ends at offset end and is known to
// be valid; the scanner goes on behind it. It may be used for a member of the outermost
// object (as the member's one read) and for an element of an outermost array.
//
// The decoder cannot be moved, so it starts anew and is first told a short story with
// the same ending: an object of the same names, or an array of one element. Null is the
// value told, as nothing that follows can become a part of it.
func (s *Scanner) JumpTo(end int64) error {
	if s.depth != 1 || s.dec.StackDepth() != 1 {
		panic("jsonstream: a jump that is not in the outermost container")
	}
	var story []byte
	if kind, elements := s.dec.StackIndex(1); kind == '[' {
		story = []byte("[null")
		s.jumped += elements
	} else {
		story = append([]byte{'{'}, s.top[:len(s.top)-1]...)
	}
	s.restart(s.feed.src, end, story)
	for s.dec.InputOffset() < int64(len(story)) {
		if _, err := s.dec.ReadToken(); err != nil {
			return s.fault(err)
		}
	}
	return nil
}

// End checks that nothing follows the document's value.
func (s *Scanner) End() error {
	if off := s.NextOffset(); s.dec.PeekKind() != 0 {
		return s.fail(finding.JSONSyntax, off, "text after the end of the document")
	}
	_, err := s.dec.ReadToken()
	if err == io.EOF {
		return nil
	}
	return s.fault(err)
}
