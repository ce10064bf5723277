package jsonstream

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// generator writes random JSON text.
type generator struct {
	r    *rand.Rand
	b    []byte
	lone bool // lone surrogate escapes may occur
	keys int  // names written so far: each gets a number, so that no two are the same
}

func newGenerator(seed uint64) *generator { return &generator{r: rand.New(rand.NewPCG(seed, 1))} }

func (g *generator) pick(texts ...string) { g.b = append(g.b, texts[g.r.IntN(len(texts))]...) }

func (g *generator) space() { g.pick("", "", "", " ", "\n  ", "\t", "\r\n") }

func (g *generator) value(depth int) {
	n := 7
	if depth == 0 {
		n = 5
	}
	switch g.r.IntN(n) {
	case 0, 1:
		g.pick("0", "-0", "12", "-7", "0.062", "1e400", "1E-7", "10e-1", "18446744073709551616", "-1.50")
	case 2:
		g.pick("true", "false", "null")
	case 3, 4:
		g.text("")
	default:
		g.container(depth, g.r.IntN(5), g.r.IntN(2) == 0)
	}
}

func (g *generator) container(depth, members int, object bool) {
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	g.b = append(g.b, open)
	g.space()
	for i := range members {
		if i > 0 {
			g.pick(",")
			g.space()
		}
		if object {
			g.keys++
			g.text(fmt.Sprint(g.keys))
			g.space()
			g.pick(":")
			g.space()
		}
		g.value(depth - 1)
		g.space()
	}
	g.b = append(g.b, end)
}

func (g *generator) text(end string) {
	parts := []string{"a", "wall_time", "é", "日本", "\U0001F600", `\n`, `\"`, `\\`, `\/`, `\u00e9`, `\ud83d\ude00`, "~/", "[{", "}],:", "NaN", " "}
	if g.lone {
		parts = append(parts, `\ud800`, `\uDFFF`)
	}
	g.b = append(g.b, '"')
	for range g.r.IntN(4) {
		g.pick(parts...)
	}
	g.b = append(append(g.b, end...), '"')
}

// randomText is a random document.
func randomText(seed uint64) []byte {
	g := newGenerator(seed)
	g.space()
	g.value(4)
	g.space()
	return g.b
}

// randomContainer is a random document whose value is a container with members.
func randomContainer(seed uint64) []byte {
	g := newGenerator(seed)
	g.lone = seed%3 == 0
	g.space()
	g.container(3, 1+g.r.IntN(4), g.r.IntN(2) == 0)
	g.space()
	return g.b
}

// damage changes a few bytes of a text at random.
func damage(r *rand.Rand, text []byte) []byte {
	text = bytes.Clone(text)
	for range 1 + r.IntN(2) {
		at := r.IntN(len(text) + 1)
		switch r.IntN(3) {
		case 0:
			text = text[:at]
		case 1:
			junk := []string{",", ":", "]", "}", "{", "[", `"`, "\\", "1", ".5", "-", "e", "NaN", "\xff", "null", " ", `"x":1,`, "\ufeff"}
			text = append(text[:at:at], append([]byte(junk[r.IntN(len(junk))]), text[at:]...)...)
		default:
			from := r.IntN(at + 1) // something twice: names, perhaps
			text = append(text[:at:at], append([]byte(","), text[from:]...)...)
		}
		if len(text) == 0 {
			break
		}
	}
	return text
}

// source is the text of a document that is read n bytes at a time.
type source struct {
	text []byte
	most int
}

func (s source) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.text).ReadAt(p[:min(len(p), s.most)], off)
}

// walk reads a value member by member.
func walk(s *Scanner) error {
	var err error
	switch s.Peek() {
	case '{':
		_, _, err = s.Object(func([]byte) error { return walk(s) })
	case '[':
		_, _, err = s.Array(func(int) error { return walk(s) })
	default:
		_, err = s.Scalar()
	}
	return err
}

func walkAll(src io.ReaderAt, mode Mode, limits Limits) error {
	s := New(src, 0, 0, mode, limits)
	if err := walk(s); err != nil {
		return err
	}
	return s.End()
}

// record reads a document and writes down all that it is told. Instead of reading member
// jump of the outermost container, it jumps to where that member's value ends.
func record(src io.ReaderAt, mode Mode, jump int, end int64) (log []string, ends []int64, err error) {
	s := New(src, 0, 0, mode, Limits{Window: 64})
	say := func(format string, args ...any) { log = append(log, fmt.Sprintf(format, args...)) }
	var value func() error
	member := func(i int) error {
		if s.dec.StackDepth() > 1 {
			return value()
		}
		var err error
		at := s.NextOffset()
		if i == jump {
			err = s.JumpTo(end)
		} else {
			mark := len(log)
			err = value()
			log = log[:mark] // of a value that may be jumped over, only the place is told
		}
		if err == nil {
			say("member %d at %d to %d", i, at, s.Offset())
			ends = append(ends, s.Offset())
		}
		return err
	}
	value = func() (err error) {
		switch s.Peek() {
		case '{':
			i := -1
			var start int64
			start, _, err = s.Object(func(name []byte) error {
				say("name %q behind %d", name, s.Offset())
				i++
				return member(i)
			})
			say("object at %d to %d", start, s.Offset())
		case '[':
			var start int64
			start, _, err = s.Array(member)
			say("array at %d to %d", start, s.Offset())
		default:
			var v Scalar
			v, err = s.Scalar()
			say("%v %q at %d", v.Kind, v.Raw, v.Offset)
		}
		return err
	}
	if err = value(); err == nil {
		err = s.End()
	}
	return log, ends, err
}

// nestText is depth containers in each other.
func nestText(depth int, object bool) string {
	if object {
		return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
	}
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

// isSound tells by jsontext alone whether a text is a JSON document.
func isSound(text []byte, options ...jsontext.Options) bool {
	dec := jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(text)), options...)
	if _, err := dec.ReadValue(); err != nil {
		return false
	}
	_, err := dec.ReadToken()
	return err == io.EOF
}
