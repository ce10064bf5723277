package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	extension = ".jsonl.gz"
	minDigits = 6
)

// Name is the name of a segment: a path in three parts.
type Name struct {
	Prefix   string // path and beginning of the file name, without the last dot
	Producer string // sanitised, see [Sanitise]
	Index    uint64
}

// Prefix returns the prefix that a path given by a user stands for: one trailing .jsonl.gz,
// or else .jsonl, is left out.
func Prefix(path string) string {
	if rest, ok := strings.CutSuffix(path, extension); ok {
		return rest
	}
	return strings.TrimSuffix(path, ".jsonl")
}

// Sanitise returns a producer id as it stands in file names: every character outside of
// ASCII letters, digits, - and _ is an underscore, and an empty id is "unknown". Different
// ids can have the same name; the rows tell them apart.
func Sanitise(producer string) string {
	if producer == "" {
		return "unknown"
	}
	return strings.Map(func(r rune) rune {
		if nameRune(r) {
			return r
		}
		return '_'
	}, producer)
}

// The room that a file name has, and what of it a series needs beside prefix and producer:
// two dots, an index of any size and the extension.
const (
	maxFileName = 255
	maxDigits   = 20
	reserved    = 2 + maxDigits + len(extension)

	hashDigits = 16
)

// InFileName returns a producer id as it stands in the file names of a prefix: as
// [Sanitise] gives it or, where a file could not have that name, its beginning, a dash and
// 16 hexadecimal digits of the id's SHA-256. File systems take names of up to 255 bytes,
// and a worker may call itself anything.
func InFileName(prefix, producer string) string {
	name := Sanitise(producer)
	room := max(maxFileName-len(filepath.Base(prefix))-reserved, 1+hashDigits)
	if len(name) <= room {
		return name
	}
	sum := sha256.Sum256([]byte(producer))
	return name[:room-1-hashDigits] + "-" + hex.EncodeToString(sum[:])[:hashDigits]
}

func nameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// Path returns the path of the segment.
func (n Name) Path() string {
	return fmt.Sprintf("%s.%s.%0*d%s", n.Prefix, n.Producer, minDigits, n.Index, extension)
}

// Series returns the path without index and extension: what the segments of one producer
// have in common.
func (n Name) Series() string { return n.Prefix + "." + n.Producer }

// Parse returns the parts of a segment's path. It takes exactly what [Name.Path] gives: an
// index with more zeros than needed, a producer that is not sanitised or any other
// extension makes it no segment. The prefix can have dots, the producer has none.
func Parse(path string) (n Name, ok bool) {
	stem, ok := strings.CutSuffix(path, extension)
	if !ok {
		return Name{}, false
	}
	series, digits, ok := cutLast(stem)
	if !ok {
		return Name{}, false
	}
	n.Prefix, n.Producer, ok = cutLast(series)
	if !ok || n.Producer == "" || Sanitise(n.Producer) != n.Producer || filepath.Base(series) != filepath.Base(n.Prefix)+"."+n.Producer {
		return Name{}, false
	}
	n.Index, ok = parseIndex(digits)
	return n, ok
}

// cutLast cuts a string at its last dot.
func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}

// parseIndex returns the index that is written so, and in no other way.
func parseIndex(digits string) (index uint64, ok bool) {
	index, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || fmt.Sprintf("%0*d", minDigits, index) != digits {
		return 0, false
	}
	return index, true
}
