// Package schemas holds the JSON Schemas (draft 2020-12) of the documents that this
// program reads and writes, embedded in the binary.
//
// A schema describes the shape of one document on its own: its fields, their types and
// their units. Objects are open: a key that a schema does not know is no fault, for newer
// producers add some. What must hold between fields or between files is the rules'
// business, so a document can satisfy its schema and still be rejected.
//
// The $id of a schema is urn:fpm:schema:NAME:VERSION, where VERSION is the schema_version
// of the document.
package schemas

import (
	"embed"
	"slices"
	"strings"
)

const suffix = ".schema.json"

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
