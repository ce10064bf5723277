package report

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
)

// List is a JSON list whose values are made as they are printed: one of a run's points can
// be longer than all that is known of them.
type List iter.Seq[any]

// MarshalJSON writes the list as a whole.
func (l List) MarshalJSON() ([]byte, error) { return whole(l) }

// whole returns the text of a value without any layout.
func whole(v any) ([]byte, error) {
	var b bytes.Buffer
	s := stream{w: &b}
	s.value(v, "")
	return b.Bytes(), s.err
}

// stream writes JSON part by part: objects, lists and what they hold of those. Any other
// value is written as a whole. The text is what encoding/json makes of the whole.
type stream struct {
	w      io.Writer
	indent string
	err    error // the first
}

func (s *stream) put(text string) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, text)
	}
}

// value writes a value whose lines after the first begin with a prefix.
func (s *stream) value(v any, prefix string) {
	switch v := v.(type) {
	case Object:
		s.object(v, prefix)
	case List:
		s.list(v, prefix)
	case []any:
		s.list(func(yield func(any) bool) {
			for _, value := range v {
				if !yield(value) {
					return
				}
			}
		}, prefix)
	default:
		text, err := marshal(v, prefix, s.indent)
		if s.err == nil {
			s.err = err
		}
		s.put(string(text))
	}
}

func (s *stream) object(o Object, prefix string) {
	p := parts{stream: s, prefix: prefix, open: "{", end: "}"}
	for _, d := range o {
		name, err := json.Marshal(d.Key)
		if s.err == nil {
			s.err = err
		}
		p.next()
		s.put(string(escaped(name)) + ":")
		if s.indent != "" {
			s.put(" ")
		}
		s.value(d.Value, prefix+s.indent)
	}
	p.close()
}

func (s *stream) list(l List, prefix string) {
	p := parts{stream: s, prefix: prefix, open: "[", end: "]"}
	for v := range l {
		if s.err != nil {
			return // nobody reads on
		}
		p.next()
		s.value(v, prefix+s.indent)
	}
	p.close()
}

// parts puts what is between the parts of an object or a list.
type parts struct {
	*stream
	prefix, open, end string
	some              bool
}

func (p *parts) next() {
	if p.some {
		p.put(",")
	} else {
		p.put(p.open)
	}
	p.some = true
	p.line(p.indent)
}

func (p *parts) line(more string) {
	if p.indent != "" {
		p.put("\n" + p.prefix + more)
	}
}

func (p *parts) close() {
	if !p.some {
		p.put(p.open + p.end)
		return
	}
	p.line("")
	p.put(p.end)
}
