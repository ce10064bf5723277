// Package vectors holds, for every rule, documents that keep it and documents that break
// it, for tests of this program and of others that read or write the same files.
//
// A vector is a rule with two sets of files. A set is checked as one: its files belong in
// one directory, under the names that they have there. The first must be accepted, without
// any finding; of the second exactly the rule and those that it entails must be reported.
//
//	for _, v := range vectors.Index() {
//		dir := t.TempDir()
//		if err := vectors.Copy(dir, v.Fail); err != nil {
//			t.Fatal(err)
//		}
//		… // fpm v.Command dir, and expect v.Rule and v.Entails
//	}
//
// The documents are synthetic and as small as such documents can be: one or two ranks, one
// or two points; a recording of two workers for the rules of traces. A rule about a host,
// trace.ports, has no vector.
package vectors

import (
	"embed"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed index.json sound broken manual
var files embed.FS

// File is a file of a set.
type File struct {
	Name string `json:"name"` // in the directory of the set
	Path string `json:"path"` // in [Files]; sets share files
}

// Read returns the file's content.
func (f File) Read() ([]byte, error) { return files.ReadFile(f.Path) }

// Vector is a rule with files that keep it and files that break it.
type Vector struct {
	Rule     string `json:"rule"`     // id of the rule
	Level    string `json:"level"`    // of the rule: merge, strict, probe or trace
	Severity string `json:"severity"` // of the rule: error, or warning for one that rejects nothing
	How      string `json:"how"`      // what is wrong with the failing set
	// Command is what checks a set: arguments of fpm, before the directory.
	Command []string `json:"command"`
	Entails []string `json:"entails"` // rules that are reported with it
	// Schema tells that a document of the failing set breaks its JSON Schema, too.
	Schema bool   `json:"schema"`
	Pass   []File `json:"pass"`
	Fail   []File `json:"fail"`
}

// Index returns the vectors, in the order of the rule table.
func Index() []Vector {
	text, err := files.ReadFile("index.json")
	if err != nil {
		panic("vectors: " + err.Error()) // the embedded file is always there
	}
	var index []Vector
	if err := json.Unmarshal(text, &index); err != nil {
		panic("vectors: " + err.Error()) // the embedded text is tested
	}
	return index
}

// Files returns all files, those of index.json among them.
func Files() fs.FS { return files }

// Copy writes the files of a set into a directory, which must be there.
func Copy(dir string, set []File) error {
	for _, f := range set {
		text, err := f.Read()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
