package report

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
)

// fingerprints names findings so that a service knows one again in a later report, where
// lines have moved and values have changed. It counts how often a name was given: no two
// are the same in one report.
type fingerprints map[string]int

// of returns the fingerprint of a finding: of its rule, file, pointer and rank. Neither
// its place in the text nor its message counts, for a message may quote values.
func (p fingerprints) of(f finding.Finding) string {
	return p.name(string(f.Rule), relative(f.File), f.Pointer, strconv.Itoa(f.Rank))
}

func (p fingerprints) name(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s,", len(part), part) // "a","b" is not "ab"
	}
	sum := hex.EncodeToString(h.Sum(nil)[:16])
	p[sum]++
	if n := p[sum]; n > 1 {
		sum += "-" + strconv.Itoa(n)
	}
	return sum
}

// relative returns a path with slashes and without a leading "./", as services want to
// have a path below the root of a repository.
func relative(path string) string {
	path = filepath.ToSlash(path)
	for strings.HasPrefix(path, "./") {
		path = strings.TrimLeft(path[2:], "/")
	}
	return path
}

// codeName returns the name of an exit status: "usage", "failed".
func codeName(code exitcode.Code) string {
	for _, row := range exitcode.Table() {
		if row.Code == code {
			return row.Name
		}
	}
	return strconv.Itoa(int(code))
}

// unexplained tells whether a report is no success, though nothing in it says why.
func (r *Report) unexplained() bool {
	return r.Status != OK && r.Errors == 0 && len(r.Fatal) == 0
}
