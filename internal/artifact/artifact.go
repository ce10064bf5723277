// Package artifact names the files of a self-benchmark run and finds them.
//
// A run has one base path, dir/stem.ext. Data-parallel rank 0 writes to the base path
// itself and rank R > 0 to dir/stem_dpR.ext. A merge of all ranks is called
// dir/stem_merged.ext; a node-local merge whose lowest rank is S > 0 is called
// dir/stem_dpS_merged.ext. The worker-probe sidecar of a merged file m.ext is
// m_worker_probe.ext, next to it. Only the last extension counts: a.b.json has the stem
// a.b. A rank file may be kept compressed, with .gz or .zst behind its name; names of
// outputs never carry that suffix.
//
// Everything here is arithmetic on names, apart from [Locate], which looks at the file
// system. Names are built from what the user typed and from nothing else: no path that a
// document mentions takes part.
package artifact

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// DefaultBase is the base path of a run whose configuration names none.
	DefaultBase = "/tmp/benchmark_results.json"
	// DefaultName is the file name of a base path that is given as a directory.
	DefaultName = "benchmark_results.json"
	// BaseEnv is the environment variable that overrides [DefaultBase].
	BaseEnv = "DYN_FPM_BENCHMARK_OUTPUT_PATH"
	// MaxRank is the highest DP rank that a run can have (input.limit).
	MaxRank = 65535
)

const (
	rankMark    = "_dp"
	mergedMark  = "_merged"
	sidecarMark = "_worker_probe"
)

// Base is the base path of a run, taken apart. Dir is the directory as it was typed,
// with its final separator, and is never cleaned, so that Rank(0) is what the user wrote.
type Base struct{ Dir, Stem, Ext string }

// ParseBase takes a base path apart. A .gz or .zst behind the name is dropped.
func ParseBase(path string) Base {
	dir, name := filepath.Split(path)
	stem, ext := splitExt(name)
	for isCompression(ext) {
		stem, ext = splitExt(stem)
	}
	return Base{Dir: dir, Stem: stem, Ext: ext}
}

// Rank returns the path of rank r's file, without a compression suffix.
func (b Base) Rank(r int) string {
	if r == 0 {
		return b.Dir + b.Stem + b.Ext
	}
	return b.Dir + b.Stem + rankMark + strconv.Itoa(r) + b.Ext
}

// Merged returns the path of a merged file whose lowest source rank is lowest.
func (b Base) Merged(lowest int) string {
	stem := b.Stem
	if lowest > 0 {
		stem += rankMark + strconv.Itoa(lowest)
	}
	return b.Dir + stem + mergedMark + b.Ext
}

// Sidecar returns the path of the worker-probe sidecar of a merged file.
func Sidecar(merged string) string {
	dir, name := filepath.Split(merged)
	stem, ext := splitExt(name)
	return dir + stem + sidecarMark + ext
}

// SplitRank reads the rank off a rank file's name: dir/stem_dp3.json, also with .gz or
// .zst behind it, is rank 3 of the base path dir/stem.json. It reports false for a name
// that stands for no rank: one without _dp and a number at the end of its stem, or with
// a number that no writer would write, such as 03. A name ending in _dp0 does stand for
// rank 0, although that rank's usual name has no mark. A number too large for an int
// comes as the largest int.
func SplitRank(path string) (base Base, rank int, ok bool) {
	full := ParseBase(path)
	mark := strings.LastIndex(full.Stem, rankMark)
	if mark < 1 {
		return Base{}, 0, false
	}
	digits := full.Stem[mark+len(rankMark):]
	rank, err := strconv.Atoi(digits)
	switch {
	case errors.Is(err, strconv.ErrRange) && strings.Trim(digits, "0123456789") == "" && digits[0] != '0':
		rank = math.MaxInt // a number all the same, and no rank that a file can hold
	case err != nil || rank < 0 || strconv.Itoa(rank) != digits:
		return Base{}, 0, false
	}
	full.Stem = full.Stem[:mark]
	return full, rank, true
}

// splitExt splits a file name before its last dot. Dots that lead a name do not start an
// extension: .json is a hidden file without one.
func splitExt(name string) (stem, ext string) {
	hidden := len(name) - len(strings.TrimLeft(name, "."))
	dot := strings.LastIndexByte(name[hidden:], '.')
	if dot < 0 {
		return name, ""
	}
	return name[:hidden+dot], name[hidden+dot:]
}
