package trace

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the deepest nesting of unknown values in a row.
const maxDepth = 512

// scan reads the JSON of one row from left to right. The first fault ends it: every
// method does nothing from then on. It is specialised to what rows look like, keys
// without escapes and short strings, and leaves the rest to jsontext.
type scan struct {
	b   []byte
	i   int
	err *RowError

	at      string // pointer of the object that is being read
	unknown int    // unknown keys in the row
	spelled bool   // the key at hand was spelled with escapes
	careful bool   // jsontext has to look at the row, too: for keys that come twice
}

// fail notes a fault at a byte of the row. The key is that of the value concerned, ""
// for the object itself.
func (s *scan) fail(offset int, key, message string) {
	if s.err == nil {
		pointer := s.at
		if key != "" {
			pointer += "/" + key
		}
		s.err = &RowError{Offset: offset, Pointer: pointer, Message: message}
	}
}

// space skips white space and returns the byte behind it, 0 at the end.
func (s *scan) space() byte {
	for ; s.i < len(s.b); s.i++ {
		if c := s.b[s.i]; c > ' ' || c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// open begins an object, the value of a key.
func (s *scan) open(key string) bool {
	if s.space() != '{' {
		s.fail(s.i, key, "not a JSON object")
		return false
	}
	s.i++
	return s.err == nil
}

// key returns the next key of an object, its colon read, as raw text; ok is false at the
// end of the object.
func (s *scan) key(first bool) (key []byte, ok bool) {
	c := s.space()
	if c == '}' {
		s.i++
		return nil, false
	}
	if !first {
		if c != ',' {
			s.fail(s.i, "", "not JSON: expected a comma or the end of the object")
			return nil, false
		}
		s.i++
		c = s.space()
	}
	if c != '"' {
		s.fail(s.i, "", "not JSON: expected a key in quotation marks")
		return nil, false
	}
	n := bytes.IndexByte(s.b[s.i+1:], '"')
	if n < 0 {
		s.fail(s.i, "", "not JSON: a string without end")
		return nil, false
	}
	key = s.b[s.i+1 : s.i+1+n]
	if n > 0 && key[n-1] == '\\' {
		return s.oddKey()
	}
	s.i += n + 2
	s.colon()
	return key, s.err == nil
}

func (s *scan) colon() {
	if s.i < len(s.b) && s.b[s.i] == ':' || s.space() == ':' {
		s.i++
		return
	}
	s.fail(s.i, "", "not JSON: expected a colon behind the key")
}

// oddKey reads a key that has an escaped quotation mark.
func (s *scan) oddKey() (key []byte, ok bool) {
	raw := s.str()
	s.colon()
	return raw, s.err == nil
}

// other deals with a key that is none of the known ones: it returns the key that it spells
// in another way, or skips its value.
func (s *scan) other(raw []byte) (again []byte) {
	spelled := s.spelled
	s.spelled = false
	if !spelled && !isPlain(raw) {
		text, err := jsontext.AppendUnquote(nil, quoted(raw))
		if err != nil {
			s.fail(s.i-len(raw)-1, "", "not JSON: a key with "+stringFault(raw))
			return nil
		}
		if bytes.IndexByte(raw, '\\') >= 0 && !bytes.Equal(text, raw) {
			s.careful, s.spelled = true, true
			return text
		}
	}
	if s.unknown++; s.unknown > 1 {
		s.careful = true
	}
	s.skip(0)
	return nil
}

// quoted returns the raw text of a string with its quotation marks.
func quoted(raw []byte) []byte {
	text := append(make([]byte, 0, len(raw)+2), '"')
	return append(append(text, raw...), '"')
}

// isPlain tells whether the raw text of a string is its value, and in ASCII.
func isPlain(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}

func stringFault(raw []byte) string {
	if !utf8.Valid(raw) {
		return "bytes that are not UTF-8"
	}
	return "a control character or a wrong escape"
}

// str reads a string and returns its raw text. It is not checked unless it is odd: see
// [scan.text].
func (s *scan) str() []byte {
	if s.space() != '"' {
		s.fail(s.i, "", "not a string")
		return nil
	}
	begin := s.i + 1
	for i := begin; ; {
		n := bytes.IndexByte(s.b[i:], '"')
		if n < 0 {
			s.fail(s.i, "", "not JSON: a string without end")
			return nil
		}
		i += n
		back := 0
		for i-1-back >= begin && s.b[i-1-back] == '\\' {
			back++
		}
		if back%2 == 0 {
			s.i = i + 1
			return s.b[begin:i]
		}
		i++
	}
}

// text reads a string value of a key and returns it without escapes.
func (s *scan) text(key string) []byte {
	start := s.i
	if s.space() != '"' {
		s.fail(s.i, key, "not a string")
		return nil
	}
	raw := s.str()
	if s.err != nil || isPlain(raw) {
		return raw
	}
	value, err := jsontext.AppendUnquote(nil, quoted(raw))
	if err != nil {
		s.fail(start, key, "not JSON: a string with "+stringFault(raw))
	}
	return value
}

// uint reads an integer of 0 or more.
func (s *scan) uint(key string, limit uint64) (v uint64) {
	c := s.space()
	start := s.i
	i := start
	for ; i < len(s.b) && s.b[i]-'0' <= 9; i++ {
		if v > (math.MaxUint64-9)/10 && (v > math.MaxUint64/10 || uint64(s.b[i]-'0') > math.MaxUint64-v*10) {
			s.fail(start, key, "an integer of more than 64 bits")
			return 0
		}
		v = v*10 + uint64(s.b[i]-'0')
	}
	s.i = i
	switch {
	case i == start && c == '-':
		s.fail(start, key, "not an integer of 0 or more")
	case i == start:
		s.fail(start, key, "not an integer")
	case c == '0' && i > start+1:
		s.fail(start, key, "not JSON: a number with a leading zero")
	case i < len(s.b) && (s.b[i] == '.' || s.b[i]|0x20 == 'e'):
		s.fail(start, key, "a number with a fraction or an exponent where an integer is required")
	case v > limit:
		s.fail(start, key, "an integer beyond "+strconv.FormatUint(limit, 10))
	}
	return v
}

// float reads a finite number of 0 or more.
func (s *scan) float(key string) float64 {
	s.space()
	start := s.i
	v, ok := s.number()
	switch {
	case !ok:
		s.fail(start, key, "not a number")
	case math.IsInf(v, 0):
		s.fail(start, key, "a number that is not finite")
	case v < 0:
		s.fail(start, key, "a number below 0")
	}
	return v
}

// number reads a JSON number, in place when its value is exact so.
func (s *scan) number() (v float64, ok bool) {
	b, i := s.b, s.i
	begin := i
	if i < len(b) && b[i] == '-' {
		i++
	}
	var mantissa uint64
	digits, scale := i, 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(b[i]-'0')
	}
	n := i - digits
	if n == 0 || n > 1 && b[digits] == '0' {
		return 0, false
	}
	if i < len(b) && b[i] == '.' {
		point := i + 1
		for i = point; i < len(b) && b[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(b[i]-'0')
		}
		if scale = i - point; scale == 0 {
			return 0, false
		}
		n += scale
	}
	exponent := i < len(b) && b[i]|0x20 == 'e'
	if exponent {
		if i = exponentEnd(b, i+1); i < 0 {
			return 0, false
		}
	}
	s.i = i
	if !exponent && n <= 19 && mantissa < 1<<53 && scale <= 22 && b[begin] != '-' {
		return float64(mantissa) / powers[scale], true // both exact, so the quotient is rounded once
	}
	v, err := strconv.ParseFloat(unsafe.String(&b[begin], i-begin), 64)
	return v, err == nil || errors.Is(err, strconv.ErrRange)
}

// powers are those of ten that a float64 holds exactly.
var powers = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// exponentEnd returns where the digits of an exponent end, -1 when there are none.
func exponentEnd(b []byte, i int) int {
	if i < len(b) && (b[i] == '+' || b[i] == '-') {
		i++
	}
	begin := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == begin {
		return -1
	}
	return i
}

// skip reads a value that nobody asks for.
func (s *scan) skip(depth int) {
	switch c := s.space(); c {
	case '"':
		s.text("")
	case '{', '[':
		s.careful = true
		s.skipNested(c, depth)
	case 't', 'f', 'n':
		for _, word := range []string{"true", "false", "null"} {
			if bytes.HasPrefix(s.b[s.i:], []byte(word)) {
				s.i += len(word)
				return
			}
		}
		s.fail(s.i, "", "not JSON: an unknown word")
	default:
		start := s.i
		if _, ok := s.number(); !ok {
			s.fail(start, "", "not JSON: expected a value")
		}
	}
}

// skipNested reads an array or object. What else is wrong in it jsontext finds.
func (s *scan) skipNested(open byte, depth int) {
	if depth == maxDepth {
		s.fail(s.i, "", "nested more than "+strconv.Itoa(maxDepth)+" deep")
		return
	}
	s.i++
	end := open + 2 // of both kinds
	if s.space() == end {
		s.i++
		return
	}
	for s.err == nil {
		if open == '{' {
			s.str()
			s.colon()
		}
		s.skip(depth + 1)
		switch c := s.space(); {
		case s.err != nil:
		case c == end:
			s.i++
			return
		case c == ',':
			s.i++
		default:
			s.fail(s.i, "", "not JSON: expected a comma or the end")
		}
	}
}

// once notes that a known key is there; it must not be there a second time.
func (s *scan) once(seen *uint32, bit uint32, key string) {
	if *seen&bit != 0 {
		s.fail(s.i, key, "the key is there twice")
	}
	*seen |= bit
}

// end checks that nothing follows, and has jsontext check what this scanner leaves to it.
func (s *scan) end() {
	if s.err == nil && (s.space() != 0 || s.i < len(s.b)) {
		s.fail(s.i, "", "not JSON: something follows the object")
	}
	if s.err != nil || !s.careful {
		return
	}
	d := jsontext.NewDecoder(bytes.NewReader(s.b))
	if _, err := d.ReadValue(); err != nil {
		offset := 0
		var syntax *jsontext.SyntacticError
		message := "not JSON"
		if errors.As(err, &syntax) {
			offset = int(syntax.ByteOffset)
			message = "not JSON: " + syntax.Err.Error()
		}
		s.at = ""
		s.fail(offset, "", message)
	}
}
