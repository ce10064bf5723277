package schemas

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/jsonvalue"
)

// Located is a violation and where in the document it is.
type Located struct {
	Violation
	Offset int64 // of the value that Pointer names, in bytes
}

// CheckStream compiles the schema with a name and holds a document of any size against
// it: see [Stream.Check]. The error can be an *[UnknownError], too.
func CheckStream(src io.ReaderAt, name string, fn func(Located)) error {
	s, err := CompileStream(name)
	if err != nil {
		return err
	}
	return s.Check(src, fn)
}

// Stream is a schema compiled for documents that are not held in memory, for any number
// of them and of goroutines.
//
// The document is read once. Every element of an array, and every value of an object
// whose keys the schema leaves open, is held against its own part of the schema when it
// has been read, and then forgotten; what remains of the array is as many nulls as its
// bounds need to be counted. Keys that the schema does not know are skipped. So no more
// is held than the schema has fields, times the depth.
type Stream struct {
	judge Validator // its schema is that of the root
	root  *outline
}

// outline is what of a value has to be looked at, where the schema puts it.
type outline struct {
	known    map[string]*outline
	elements *part              // of an array; nil when they may be anything
	values   *part              // of an object, under keys that are not known; likewise
	names    *jsonschema.Schema // of such an object's keys; likewise
	kept     int                // elements and unknown keys that are counted
}

// part is a value that is judged by itself.
type part struct {
	outline *outline
	schema  *jsonschema.Schema
}

// Check reads a document and calls fn for every way in which it breaks the schema: those
// of one value, its own parts aside, sorted by pointer, keyword and message, and values in
// the order in which they end. The same document gives the same calls.
//
// The text is one whose rules about JSON were checked before: of a key that comes twice
// the last value counts. The error is that of reading src, or a *[SyntaxError].
func (s *Stream) Check(src io.ReaderAt, fn func(Located)) error {
	r := &reading{
		judge:   &s.judge,
		scanner: jsonstream.New(src, 0, 0, jsonstream.Trusted, jsonstream.Limits{}),
		fn:      fn,
	}
	err := r.part(&part{s.root, s.judge.schema})
	if err == nil {
		err = r.scanner.End()
	}
	var fault *jsonstream.Fault
	if errors.As(err, &fault) {
		return &SyntaxError{fault.Offset, errors.New(fault.Message)}
	}
	return err
}

// reading is one document being checked.
type reading struct {
	judge   *Validator
	scanner *jsonstream.Scanner
	pointer []byte // of the value that is read next
	fn      func(Located)
}

// spot is where a value stands, and what is kept of it.
type spot struct {
	offset int64
	inside map[string]*spot
}

// part reads the next value and judges it.
func (r *reading) part(p *part) error {
	value, at, err := r.value(p.outline)
	if err != nil {
		return err
	}
	r.check(p.schema, value, at, "")
	return nil
}

// check judges a value. Its pointers begin with that of the reading.
func (r *reading) check(schema *jsonschema.Schema, value any, at *spot, subject string) {
	for _, v := range r.judge.check(schema, value) {
		offset := at.find(v.Pointer)
		v.Pointer = string(r.pointer) + v.Pointer
		if subject != "" {
			v.Message, v.Expected = subject+v.Message, "" // the value is another one
		}
		r.fn(Located{v, offset})
	}
}

// find returns the offset of the value that a pointer leads to, or of the innermost one
// around it.
func (p *spot) find(pointer string) int64 {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		next := p.inside[unescape(token)]
		if next == nil {
			break
		}
		p = next
	}
	return p.offset
}

func unescape(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// value reads the next value and returns what is kept of it.
func (r *reading) value(o *outline) (any, *spot, error) {
	switch r.scanner.Peek() {
	case '{':
		return r.object(o)
	case '[':
		return r.array(o)
	}
	v, err := r.scanner.Scalar()
	return scalar(v), &spot{offset: v.Offset}, err
}

// scalar returns a scalar as the validating library wants it, and bounded: what is cut off
// a string decides no pattern and no length of a schema.
func scalar(v jsonstream.Scalar) any {
	const longest = 64 << 10
	switch v.Kind {
	case '"':
		text, _ := v.Text()
		if len(text) > longest {
			text = strings.Clone(text[:longest])
		}
		return text
	case '0':
		return boundedNumber(string(v.Raw))
	case 't', 'f':
		return v.Kind == jsontext.Kind('t')
	}
	return nil
}

func (r *reading) object(o *outline) (any, *spot, error) {
	kept := map[string]any{}
	at := &spot{inside: map[string]*spot{}}
	unknown := 0
	outer := len(r.pointer)
	start, _, err := r.scanner.Object(func(raw []byte) (err error) {
		name := string(raw) // which the next read overwrites
		r.pointer = jsonvalue.AppendToken(r.pointer[:outer], name)
		if inner := o.known[name]; inner != nil {
			kept[name], at.inside[name], err = r.value(inner)
			return err
		}
		if unknown++; unknown <= o.kept {
			kept[name] = nil
		}
		return r.unknown(o, name)
	})
	r.pointer = r.pointer[:outer]
	at.offset = start
	return kept, at, err
}

// unknown reads the value of a key that the schema does not name.
func (r *reading) unknown(o *outline, name string) error {
	if o.names != nil {
		r.check(o.names, name, &spot{offset: r.scanner.NextOffset()}, "the key ")
	}
	if o.values != nil {
		return r.part(o.values)
	}
	_, err := r.scanner.Skip()
	return err
}

func (r *reading) array(o *outline) (any, *spot, error) {
	kept := []any{}
	outer := len(r.pointer)
	start, _, err := r.scanner.Array(func(i int) error {
		if len(kept) < o.kept {
			kept = append(kept, nil)
		}
		if o.elements == nil {
			_, err := r.scanner.Skip()
			return err
		}
		r.pointer = strconv.AppendInt(append(r.pointer[:outer], '/'), int64(i), 10)
		return r.part(o.elements)
	})
	r.pointer = r.pointer[:outer]
	return kept, &spot{offset: start}, err
}

// Names that the keywords of parts get, so that the library leaves the parts to us. A
// schema may hold keywords of any name.
const (
	elementsKey = "x-items"
	valuesKey   = "x-additionalProperties"
	namesKey    = "x-propertyNames"
)

// CompileStream returns the schema with a name, or an *[UnknownError].
func CompileStream(name string) (*Stream, error) {
	info, ok := About(name)
	if !ok {
		return nil, &UnknownError{name}
	}
	s := &Stream{judge: Validator{texts: map[string]any{}, divided: true}}
	d := divider{judge: &s.judge, compiler: s.judge.compiler(), done: map[string]*outline{}}
	root, err := d.part(info.ID + "#")
	if err != nil {
		return nil, err
	}
	s.root, s.judge.schema = root.outline, root.schema
	return s, nil
}

// divide renames the keywords of parts in a schema and all below it.
func divide(schema map[string]any) {
	for _, keyword := range []string{"properties", "$defs"} {
		if inner, ok := schema[keyword].(map[string]any); ok {
			for _, v := range inner {
				divideAny(v)
			}
		}
	}
	for _, keyword := range []string{"if", "then", "else", "items", "additionalProperties", "propertyNames"} {
		divideAny(schema[keyword])
	}
	for old, renamed := range map[string]string{"items": elementsKey, "additionalProperties": valuesKey, "propertyNames": namesKey} {
		if v, ok := schema[old]; ok {
			delete(schema, old)
			schema[renamed] = v
		}
	}
}

func divideAny(v any) {
	if schema, ok := v.(map[string]any); ok {
		divide(schema)
	}
}

// divider finds the parts of a schema. Locations are the $id of a schema, # and a pointer.
type divider struct {
	judge    *Validator
	compiler *jsonschema.Compiler
	done     map[string]*outline // by the locations that it was made from
}

func (d *divider) part(location string) (*part, error) {
	schema, err := d.compiler.Compile(location)
	if err != nil {
		return nil, err
	}
	o, err := d.outline([]string{location})
	return &part{o, schema}, err
}

// outline returns the outline of a value that has to keep the schemas at all locations.
func (d *divider) outline(locations []string) (*outline, error) {
	key := strings.Join(locations, " ")
	if o := d.done[key]; o != nil {
		return o, nil
	}
	o := &outline{known: map[string]*outline{}}
	d.done[key] = o
	known := map[string][]string{}
	for _, location := range d.all(locations) {
		if err := d.take(o, location, known); err != nil {
			return nil, err
		}
	}
	for name, inner := range known {
		var err error
		if o.known[name], err = d.outline(inner); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// take puts what the schema at one location says about parts into an outline, and where
// it describes a known key into known.
func (d *divider) take(o *outline, location string, known map[string][]string) (err error) {
	schema, _ := d.judge.lookup(location).(map[string]any)
	properties, _ := schema["properties"].(map[string]any)
	for name := range properties {
		known[name] = append(known[name], location+"/properties/"+strings.TrimPrefix(string(jsonvalue.AppendToken(nil, name)), "/"))
	}
	required, _ := schema["required"].([]any)
	for _, name := range required {
		name, _ := name.(string)
		if _, ok := known[name]; !ok {
			known[name] = nil // described nowhere, and looked at for being there
		}
	}
	for keyword, place := range map[string]**part{elementsKey: &o.elements, valuesKey: &o.values} {
		if _, ok := schema[keyword]; ok {
			if *place, err = d.part(location + "/" + keyword); err != nil {
				return err
			}
		}
	}
	if _, ok := schema[namesKey]; ok {
		o.names, err = d.compiler.Compile(location + "/" + namesKey)
	}
	for _, keyword := range []string{"minItems", "maxItems", "minProperties", "maxProperties"} {
		if n, ok := schema[keyword].(json.Number); ok {
			bound, _ := n.Int64() // 0 for one that no document reaches
			o.kept = max(o.kept, int(bound)+1)
		}
	}
	return err
}

// all returns the locations and those of the schemas that apply to the same value with
// them.
func (d *divider) all(locations []string) (list []string) {
	for _, location := range locations {
		list = append(list, location)
		schema, _ := d.judge.lookup(location).(map[string]any)
		if ref, ok := schema["$ref"].(string); ok {
			if strings.HasPrefix(ref, "#") {
				id, _, _ := strings.Cut(location, "#")
				ref = id + ref
			}
			list = append(list, d.all([]string{ref})...)
		}
		for _, keyword := range []string{"if", "then", "else"} {
			if _, ok := schema[keyword]; ok {
				list = append(list, d.all([]string{location + "/" + keyword})...)
			}
		}
	}
	return list
}
