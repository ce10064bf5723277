package jsonvalue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is the deepest nesting that [Parse] follows. The scanner of rank artifacts
// refuses documents nested deeper, so a part of one never is.
const MaxDepth = 512

// ErrDepth reports a value nested deeper than [MaxDepth].
var ErrDepth = fmt.Errorf("value nested deeper than %d", MaxDepth)

// Parse reads the text of exactly one JSON value. base, the offset of the text in its
// file, is added to every offset. The tree aliases text, which must not change
// afterwards. Names of an object are not checked for duplicates, nor strings for UTF-8:
// the scanner that found the text did that.
func Parse(text []byte, base int64) (*Value, error) { return new(Parser).Parse(text, base) }

// Parser parses one value after the other and keeps its buffers between them. It serves
// one goroutine.
type Parser struct {
	// MaxValues, where positive, bounds the values of a tree: it costs about a hundred
	// bytes for each, many times the text of a list of digits.
	MaxValues int

	p     parser
	dec   jsontext.Decoder
	input bytes.Buffer
}

// Parse is like the function of that name.
func (p *Parser) Parse(text []byte, base int64) (*Value, error) {
	p.p.rest = 0
	if p.MaxValues > 0 && len(text) > uncounted {
		if p.p.rest = countValues(text); p.p.rest >= p.MaxValues {
			return nil, ErrValues
		}
	}
	p.input = *bytes.NewBuffer(text)
	p.dec.Reset(&p.input, jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	p.p.text, p.p.base, p.p.dec = text, base, &p.dec
	p.p.left = p.MaxValues
	v := new(Value)
	if err := p.p.value(v, 0); err != nil {
		p.p = parser{}
		return nil, unexpectedEOF(err)
	}
	if p.dec.PeekKind() != 0 {
		return nil, errors.New("text after the value")
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, err
	}
	return v, nil
}

// uncounted is the length of a text whose values are counted while its tree is built only.
// Those of a longer one are counted before, so that none is built of one that is refused.
const uncounted = 64 << 10

// countValues returns the number of values in a sound JSON text, which is one more than
// there are commas and containers that are not empty. Of an unsound one it is some number.
func countValues(text []byte) int {
	n, opened := 1, false // opened: nothing came behind a bracket yet
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch c {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case ',':
			n++
		}
		if opened && c != ']' && c != '}' {
			n++
		}
		opened = c == '[' || c == '{'
	}
	return n
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parser builds a tree. Children are gathered on two stacks shared by all levels and
// copied once, when their container ends, so that each container is one allocation of
// its exact size; a large one takes the stack itself (see [pop]).
type parser struct {
	text    []byte
	base    int64
	dec     *jsontext.Decoder
	left    int // values that may still come; negative once they are too many
	rest    int // values that come yet; not above 0 where they were not counted
	elems   []Value
	members []Member
	names   map[string]string // unescaped names by their literals: documents repeat them
}

// maxNames bounds the names that are remembered.
const maxNames = 1 << 10

func (p *parser) name(raw []byte) string {
	if name, ok := p.names[string(raw)]; ok {
		return name
	}
	name := unquoteString(raw)
	if len(p.names) < maxNames && len(raw) < 1<<8 {
		if p.names == nil {
			p.names = map[string]string{}
		}
		p.names[string(raw)] = name
	}
	return name
}

// ErrValues reports a value with more parts than [Parser.MaxValues].
var ErrValues = errors.New("value of too many parts")

func (p *parser) value(v *Value, depth int) error {
	p.rest--
	if p.left--; p.left == 0 { // it never is where it began at 0
		return ErrValues
	}
	switch p.dec.PeekKind() {
	case '[':
		return p.array(v, depth+1)
	case '{':
		return p.object(v, depth+1)
	}
	raw, err := p.literal()
	if err != nil {
		return err
	}
	*v = Value{Kind: kindOf(raw[0]), Raw: raw, Offset: p.base + p.dec.InputOffset() - int64(len(raw))}
	return nil
}

// literal reads a scalar and returns its text as a part of p.text, which outlives the
// decoder's own buffer.
func (p *parser) literal() ([]byte, error) {
	raw, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	end := int(p.dec.InputOffset())
	return p.text[end-len(raw) : end : end], nil
}

// open reads the first byte of a container and returns its offset.
func (p *parser) open(depth int) (offset int64, err error) {
	if depth > MaxDepth {
		return 0, ErrDepth
	}
	if _, err := p.dec.ReadToken(); err != nil {
		return 0, err
	}
	return p.base + p.dec.InputOffset() - 1, nil
}

func (p *parser) array(v *Value, depth int) error {
	offset, err := p.open(depth)
	if err != nil {
		return err
	}
	mark := len(p.elems)
	for p.more(']') {
		var elem Value
		if err := p.value(&elem, depth); err != nil {
			return err
		}
		p.elems = push(p.elems, elem, p.rest)
	}
	*v = Value{Kind: Array, Offset: offset}
	v.Elems, p.elems = pop(p.elems, mark)
	return p.end()
}

func (p *parser) object(v *Value, depth int) error {
	offset, err := p.open(depth)
	if err != nil {
		return err
	}
	mark := len(p.members)
	for p.more('}') {
		m, err := p.member(depth)
		if err != nil {
			return err
		}
		p.members = push(p.members, m, p.rest)
	}
	*v = Value{Kind: Object, Offset: offset}
	v.Members, p.members = pop(p.members, mark)
	return p.end()
}

// much is the number of values on a stack from which on one copy of them is enough.
const much = 4096

// push puts a value on a stack, which grows once to what all that come yet can need.
func push[T any](stack []T, v T, rest int) []T {
	if len(stack) == cap(stack) && len(stack) >= much && rest > 0 {
		stack = slices.Grow(stack, rest+1)
	}
	return append(stack, v)
}

// pop takes from a stack what was pushed on it since mark, as a slice of its own. Where that
// is much, and more than what is below, that is copied in its place.
func pop[T any](stack []T, mark int) (top, rest []T) {
	top = stack[mark:]
	if len(top) >= much && len(top) > mark {
		return slices.Clip(top), slices.Clone(stack[:mark])
	}
	return slices.Clone(top), stack[:mark]
}

func (p *parser) member(depth int) (m Member, err error) {
	if m.RawName, err = p.literal(); err != nil {
		return m, err
	}
	m.Name = p.name(m.RawName)
	return m, p.value(&m.Value, depth)
}

// more tells whether the container goes on. At a syntax error it says that it does, and
// the read that follows reports the error.
func (p *parser) more(end jsontext.Kind) bool { return p.dec.PeekKind() != end }

func (p *parser) end() error {
	_, err := p.dec.ReadToken()
	return err
}

func kindOf(first byte) Kind {
	if first == '-' || '0' <= first && first <= '9' {
		return Number
	}
	return Kind(first)
}
