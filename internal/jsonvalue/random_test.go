package jsonvalue

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// document is a value that can be spelled in many ways.
type document struct {
	kind    Kind
	number  int64  // times 10^exp
	exp     int    //
	units   []rune // UTF-16 code units
	elems   []*document
	members []namedDocument
}

type namedDocument struct {
	name []rune // UTF-16 code units
	doc  *document
}

var alphabet = []rune{'a', 'b', '~', '/', '"', '\\', '\n', 0x7f, 0xe9, 0xfffd, 0xd83d, 0xde00, 0xd800, 0xdfff}

func randomUnits(r *rand.Rand) []rune {
	units := make([]rune, r.IntN(4))
	for i := range units {
		units[i] = alphabet[r.IntN(len(alphabet))]
	}
	return units
}

func randomDocument(r *rand.Rand, depth int) *document {
	kinds := []Kind{Null, False, True, String, Number, Array, Object}
	if depth == 0 {
		kinds = kinds[:5]
	}
	d := &document{kind: kinds[r.IntN(len(kinds))]}
	switch d.kind {
	case String:
		d.units = randomUnits(r)
	case Number:
		d.number, d.exp = r.Int64N(2001)-1000, r.IntN(9)-4
	case Array:
		for range r.IntN(5) {
			d.elems = append(d.elems, randomDocument(r, depth-1))
		}
	case Object:
		for i := range r.IntN(2 * indexFrom) {
			name := append(randomUnits(r), []rune(strconv.Itoa(i))...)
			d.members = append(d.members, namedDocument{name, randomDocument(r, depth-1)})
			if r.IntN(4) == 0 {
				break
			}
		}
	}
	return d
}

// spell writes the document one way of many; nil rand writes the plainest.
func (d *document) spell(r *rand.Rand) string {
	var b strings.Builder
	d.write(&b, r)
	return b.String()
}

func (d *document) write(b *strings.Builder, r *rand.Rand) {
	b.WriteString(space(r))
	switch d.kind {
	case Null:
		b.WriteString("null")
	case False:
		b.WriteString("false")
	case True:
		b.WriteString("true")
	case String:
		b.WriteString(spellUnits(r, d.units))
	case Number:
		b.WriteString(spellNumber(r, d.number, d.exp))
	case Array:
		d.writeElems(b, r)
	case Object:
		d.writeMembers(b, r)
	}
	b.WriteString(space(r))
}

func (d *document) writeElems(b *strings.Builder, r *rand.Rand) {
	b.WriteString("[")
	for i, e := range d.elems {
		if i > 0 {
			b.WriteString(",")
		}
		e.write(b, r)
	}
	b.WriteString("]")
}

func (d *document) writeMembers(b *strings.Builder, r *rand.Rand) {
	order := make([]int, len(d.members))
	for i := range order {
		order[i] = i
	}
	if r != nil {
		order = r.Perm(len(d.members))
	}
	b.WriteString("{")
	for i, at := range order {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(space(r) + spellUnits(r, d.members[at].name) + space(r) + ":")
		d.members[at].doc.write(b, r)
	}
	b.WriteString("}")
}

func space(r *rand.Rand) string {
	if r == nil {
		return ""
	}
	return []string{"", "", "", " ", "\n\t", "\r\n"}[r.IntN(6)]
}

// spellUnits quotes code units; pairs may be written raw, everything else escaped.
func spellUnits(r *rand.Rand, units []rune) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(units); i++ {
		u := units[i]
		if i+1 < len(units) && r != nil && r.IntN(2) == 0 {
			if pair := utf16.DecodeRune(u, units[i+1]); pair != 0xfffd {
				b.WriteRune(pair)
				i++
				continue
			}
		}
		b.WriteString(spellUnit(r, u))
	}
	b.WriteByte('"')
	return b.String()
}

func spellUnit(r *rand.Rand, u rune) string {
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '/': `\/`}[u]
	long := []string{fmt.Sprintf(`\u%04x`, u), fmt.Sprintf(`\u%04X`, u)}
	switch {
	case utf16.IsSurrogate(u) || r == nil && u != '/' && (u < ' ' || short != ""):
		return long[0]
	case r != nil && r.IntN(3) == 0:
		return long[r.IntN(2)]
	case short != "" && (u != '/' || r != nil && r.IntN(2) == 0):
		return short
	}
	return string(u)
}

// spellNumber writes n·10^exp.
func spellNumber(r *rand.Rand, n int64, exp int) string {
	text := strconv.FormatInt(n, 10)
	if r == nil {
		return fmt.Sprintf("%se%d", text, exp)
	}
	if n == 0 {
		return []string{"0", "-0", "0.00", "-0.0e7", "0e-99999999999999999999"}[r.IntN(5)]
	}
	sign := ""
	if n < 0 {
		sign, text = "-", text[1:]
	}
	switch r.IntN(4) {
	case 0: // more zeros behind
		zeros := r.IntN(30)
		return sign + text + strings.Repeat("0", zeros) + spellExponent(r, exp-zeros)
	case 1: // a point in front
		return sign + "0." + strings.Repeat("0", 3) + text + spellExponent(r, exp+len(text)+3)
	case 2: // a point inside
		return sign + text[:1] + "." + text[1:] + "0" + spellExponent(r, exp+len(text)-1)
	}
	return sign + text + spellExponent(r, exp)
}

func spellExponent(r *rand.Rand, exp int) string {
	if exp == 0 && r.IntN(2) == 0 {
		return ""
	}
	sign := ""
	if exp < 0 {
		sign, exp = "-", -exp
	} else if r.IntN(2) == 0 {
		sign = "+"
	}
	return []string{"e", "E"}[r.IntN(2)] + sign + strings.Repeat("0", r.IntN(25)) + strconv.Itoa(exp)
}

// mutate changes one place of the document and returns the pointer of that place.
func (d *document) mutate(r *rand.Rand) string {
	if n := len(d.elems); n > 0 && r.IntN(4) > 0 {
		i := r.IntN(n)
		return string(AppendToken(nil, strconv.Itoa(i))) + d.elems[i].mutate(r)
	}
	if n := len(d.members); n > 0 && r.IntN(4) > 0 {
		m := d.members[r.IntN(n)]
		return string(AppendToken(nil, decodeUnits(m.name))) + m.doc.mutate(r)
	}
	switch d.kind {
	case String:
		d.units = append(d.units, 'z')
	case Number:
		d.number += 1 + r.Int64N(3)
	case Array:
		d.elems = append(d.elems, &document{kind: Null})
		return "/" + strconv.Itoa(len(d.elems)-1)
	case Object:
		d.members = append(d.members, namedDocument{[]rune("new"), &document{kind: Null}})
		return "/new"
	default:
		*d = document{kind: Number, number: 1}
	}
	return ""
}

func decodeUnits(units []rune) string {
	return unquoteString([]byte(spellUnits(nil, units)))
}

func mustParse(t testing.TB, text string) *Value {
	t.Helper()
	v, err := Parse([]byte(text), 0)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return v
}
