// Package schemas holds the JSON Schemas (draft 2020-12) of the documents that this
// program reads and writes, embedded in the binary.
//
// A schema describes the shape of one document on its own: its fields, their types and
// their units. Objects are open: a key that a schema does not know is no fault, for newer
// producers add some. What must hold between fields or between files is the rules'
// business, so a document can satisfy its schema and still be rejected.
//
// The $id of a schema is urn:fpm:schema:NAME:VERSION, where VERSION is the version of the
// document's layout. Schemas refer to definitions of each other by $id, and to nothing
// else: no file and no address is ever opened for one.
//
// [Validate] holds a small document against its schema:
//
//	schema text ──▶ Compile ──▶ Validator ─┐
//	                                       ├──▶ violations, by pointer
//	document ──▶ strict JSON, bounded numbers ─┘
//
// [CheckStream] does the same with a document of any size, and holds little of it: see
// [Stream].
//
// An integer is a number without fraction or exponent, as everywhere in this program:
// JSON Schema by itself takes 1.0 for one.
package schemas

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"
)

const (
	suffix   = ".schema.json"
	idPrefix = "urn:fpm:schema:"
)

//go:embed *.schema.json
var files embed.FS

// Names returns the names of the schemas, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic("schemas: " + err.Error()) // the embedded directory is always there
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	slices.Sort(names)
	return names
}

// Get returns the text of the schema with a name; ok is false when there is none. The
// text is the caller's own copy.
func Get(name string) (text []byte, ok bool) {
	text, err := files.ReadFile(name + suffix)
	return text, err == nil
}

// Info is what a schema says of itself.
type Info struct {
	Name  string
	ID    string `json:"$id"`   // urn:fpm:schema:NAME:VERSION
	Title string `json:"title"` // the kind of document, in a few words
}

// About returns what the schema with a name says of itself; ok is false when there is
// none.
func About(name string) (info Info, ok bool) {
	text, ok := Get(name)
	if !ok {
		return Info{}, false
	}
	if err := json.Unmarshal(text, &info); err != nil {
		panic("schemas: " + name + ": " + err.Error()) // the embedded texts are tested
	}
	info.Name = name
	return info, true
}

// byID returns the text of the schema with an $id.
func byID(id string) (text []byte, ok bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(id, idPrefix), ":")
	if info, ok := About(name); !ok || info.ID != id {
		return nil, false
	}
	return Get(name)
}
