package schemas

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v5"
)

// MaxDocument bounds the text of a document to validate, in bytes. A document is decoded
// whole, which takes many times its size: larger ones are to be checked in pieces.
const MaxDocument = 64 << 20

// Violation is one way in which a document breaks its schema.
type Violation struct {
	Pointer string // JSON Pointer of the value; of its parent when a key is missing
	Keyword string // of JSON Schema: "type", "required", "minimum"
	Message string // for people; holds no text of the document
	// Expected is what the value should be, in the schema's spelling: "at least 0"; empty
	// where the schema has no short word for it.
	Expected string
}

// SyntaxError says that a document is not one strict JSON text: UTF-8, no key twice, and
// nothing behind it.
type SyntaxError struct {
	Offset int64 // in bytes
	Err    error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not strict JSON at byte %d: %v", e.Offset, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }

// SizeError says that a document is larger than [MaxDocument].
type SizeError struct{ Size int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("a document of %d bytes is more than %d", e.Size, MaxDocument)
}

// UnknownError says that there is no schema with a name.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("no schema %q", e.Name) }

// Validate compiles the schema with a name and holds a document against it: see
// [Validator.Validate]. The error can be an *[UnknownError], too.
func Validate(name string, document []byte) ([]Violation, error) {
	v, err := Compile(name)
	if err != nil {
		return nil, err
	}
	return v.Validate(document)
}

// Validator is a compiled schema, for any number of documents and goroutines.
type Validator struct {
	schema  *jsonschema.Schema
	texts   map[string]any // decoded schemas by $id, for messages
	divided bool           // the schemas leave the parts of a value to [Stream]
}

// Compile returns the validator of the schema with a name, or an *[UnknownError].
func Compile(name string) (*Validator, error) {
	info, ok := About(name)
	if !ok {
		return nil, &UnknownError{name}
	}
	v := &Validator{texts: map[string]any{}}
	var err error
	if v.schema, err = v.compiler().Compile(info.ID); err != nil {
		return nil, fmt.Errorf("schema %s: %w", name, err)
	}
	return v, nil
}

// compiler returns a compiler that knows the embedded schemas and no others.
func (v *Validator) compiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.LoadURL = v.load
	c.RegisterExtension("integer", nil, integers{})
	return c
}

// load returns the text of a schema by its $id. Without it the compiler would open files.
func (v *Validator) load(id string) (io.ReadCloser, error) {
	text, ok := byID(id)
	if !ok {
		return nil, fmt.Errorf("%q is the $id of no embedded schema", id)
	}
	decoded, err := decode(text)
	if err != nil {
		return nil, err
	}
	if v.divided {
		divideAny(decoded)
		text = []byte(jsonText(decoded))
	}
	v.texts[id] = decoded
	return io.NopCloser(bytes.NewReader(text)), nil
}

// Validate returns how a document breaks the schema, sorted by pointer, keyword and
// message, each once; none when it does not. The error is a *[SyntaxError] or a
// *[SizeError].
func (v *Validator) Validate(document []byte) ([]Violation, error) {
	doc, err := parse(document)
	if err != nil {
		return nil, err
	}
	return v.check(v.schema, doc), nil
}

// check returns how a decoded value, its numbers bounded, breaks a schema.
func (v *Validator) check(schema *jsonschema.Schema, value any) []Violation {
	err := schema.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		panic("schemas: " + err.Error()) // a schema without end, or a value that is none of JSON: a bug
	}
	list := v.violations(nil, invalid)
	// The library walks its maps as they come: its order is another one each time.
	slices.SortFunc(list, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Pointer, b.Pointer), cmp.Compare(a.Keyword, b.Keyword), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(list)
}

// parse decodes a document, its numbers bounded.
func parse(document []byte) (any, error) {
	if len(document) > MaxDocument {
		return nil, &SizeError{len(document)}
	}
	if at := firstInvalid(document); at >= 0 {
		return nil, &SyntaxError{int64(at), errors.New("invalid UTF-8")}
	}
	if err := strict(document); err != nil {
		return nil, err
	}
	doc, err := decode(document)
	return bounded(doc), err
}

// strict returns a *SyntaxError unless a text is one strict JSON value.
func strict(document []byte) error {
	// Lone surrogate escapes are legal text, and the only thing that is allowed here: raw
	// bytes were checked before.
	d := jsontext.NewDecoder(bytes.NewReader(document), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadValue(); err != nil {
		return syntaxError(err, len(document))
	}
	rest := bytes.TrimLeft(document[d.InputOffset():], " \t\r\n")
	if len(rest) > 0 {
		return &SyntaxError{int64(len(document) - len(rest)), errors.New("something stands behind the value")}
	}
	return nil
}

// syntaxError puts an error of the decoder, for a document of a length, into ours.
func syntaxError(err error, length int) error {
	var own *jsontext.SyntacticError
	if errors.As(err, &own) && own.Err != nil {
		return &SyntaxError{own.ByteOffset, own.Err}
	}
	if err == io.EOF { // there is no value at all
		err = io.ErrUnexpectedEOF
	}
	return &SyntaxError{int64(length), err}
}

// firstInvalid returns the offset of the first byte that is not UTF-8, -1 when there is
// none.
func firstInvalid(text []byte) int {
	valid := bytes.ToValidUTF8(text, nil) // text itself when it is valid
	if len(valid) == len(text) {
		return -1
	}
	for i := range valid {
		if valid[i] != text[i] {
			return i
		}
	}
	return len(valid)
}

// decode decodes a JSON text as the validating library wants it.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, &SyntaxError{d.InputOffset(), err}
	}
	return v, nil
}

// violations appends the innermost causes of an error.
func (v *Validator) violations(list []Violation, e *jsonschema.ValidationError) []Violation {
	for _, cause := range e.Causes {
		list = v.violations(list, cause)
	}
	if len(e.Causes) > 0 {
		return list
	}
	pointer, err := url.PathUnescape(e.InstanceLocation) // the library escapes tokens for URLs
	if err != nil {
		pointer = e.InstanceLocation
	}
	_, keyword, _ := cutLast(e.KeywordLocation)
	expected := v.expected(keyword, e)
	message := message(keyword, expected, e)
	if strings.Contains(e.KeywordLocation, "/propertyNames/") {
		message, expected = "the key "+message, "" // the value is the object
	}
	return append(list, Violation{pointer, keyword, message, expected})
}

// message says what is wrong. The messages of the library repeat values of the document,
// and numbers as float64.
func message(keyword, expected string, e *jsonschema.ValidationError) string {
	switch keyword {
	case "const", "enum", "minimum", "maximum":
		return "must be " + expected
	case "pattern":
		return "must match " + strings.TrimPrefix(expected, matching)
	case "minItems", "maxItems", "minProperties", "maxProperties":
		return "must have " + expected
	default:
		return e.Message
	}
}

const matching = "text that matches " // a pattern

// expected says what the schema wants, in its own spelling.
func (v *Validator) expected(keyword string, e *jsonschema.ValidationError) string {
	want := v.lookup(e.AbsoluteKeywordLocation)
	switch keyword {
	case "const":
		return jsonText(want)
	case "enum":
		return "one of " + jsonText(want)
	case "minimum":
		return "at least " + jsonText(want)
	case "maximum":
		return "at most " + jsonText(want)
	case "pattern":
		return matching + jsonText(want)
	case "minItems":
		return "at least " + jsonText(want) + " elements"
	case "maxItems":
		return "at most " + jsonText(want) + " elements"
	case "minProperties":
		return "at least " + jsonText(want) + " keys"
	case "maxProperties":
		return "at most " + jsonText(want) + " keys"
	case "type":
		return typeNames(want)
	default:
		return ""
	}
}

// typeNames returns the types of a schema in words.
func typeNames(want any) string {
	list, isList := want.([]any)
	if !isList {
		list = []any{want}
	}
	var names []string
	for _, t := range list {
		if name, ok := t.(string); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// jsonText returns the JSON text of a part of a schema.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// lookup returns the value at a location, which is the $id of a schema, # and a pointer.
func (v *Validator) lookup(location string) any {
	id, pointer, _ := strings.Cut(location, "#")
	at := v.texts[id]
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" { // the schema itself
			break
		}
		object, _ := at.(map[string]any)
		at = object[unescape(token)]
	}
	return at
}

// cutLast cuts a pointer before its last token.
func cutLast(pointer string) (before, last string, ok bool) {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return "", pointer, false
	}
	return pointer[:i], pointer[i+1:], true
}

// integers is an extension of the library that refuses 1.0 and 1e2 where a schema says
// integer.
type integers struct{}

// Compile makes the check for a schema that allows integers but not all numbers.
func (integers) Compile(_ jsonschema.CompilerContext, schema map[string]any) (jsonschema.ExtSchema, error) {
	types, isList := schema["type"].([]any)
	if !isList {
		types = []any{schema["type"]}
	}
	if slices.Contains(types, any("integer")) && !slices.Contains(types, any("number")) {
		return integers{}, nil
	}
	return nil, nil
}

// Validate checks how a number is spelled.
func (integers) Validate(ctx jsonschema.ValidationContext, v any) error {
	if n, ok := v.(json.Number); ok && strings.ContainsAny(string(n), ".eE") {
		return ctx.Error("type", "expected integer, but got a number with a fraction or an exponent")
	}
	return nil
}
