package artifact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// compressions lists the suffixes that a rank file may have behind its name, in the
// order in which they are looked for.
func compressions() []string { return []string{".gz", ".zst"} }

func isCompression(ext string) bool { return slices.Contains(compressions(), ext) }

// ErrTwoForms says that a rank's file is there both plain and compressed, or compressed
// in two ways, so that nothing tells which is meant. A [TwoFormsError] wraps it.
var ErrTwoForms = errors.New("more than one form of the same rank file")

// TwoFormsError names the forms in which one rank's file was found.
type TwoFormsError struct {
	Rank  int
	Paths []string // two or three paths, the plain one first
}

func (e *TwoFormsError) Error() string {
	return fmt.Sprintf("rank %d has more than one file: %s; remove or rename all but one",
		e.Rank, strings.Join(e.Paths, " and "))
}

// Unwrap returns [ErrTwoForms].
func (e *TwoFormsError) Unwrap() error { return ErrTwoForms }

// MissingError says that a rank has no file in any form. It wraps [fs.ErrNotExist].
type MissingError struct {
	Rank int
	Path string // the plain form, which would have been taken first
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("rank %d has no file: there is no %s (nor one with %s behind it)",
		e.Rank, e.Path, strings.Join(compressions(), " or "))
}

// Unwrap returns [fs.ErrNotExist].
func (e *MissingError) Unwrap() error { return fs.ErrNotExist }

// LookupError says that the file system did not answer whether a file is there.
type LookupError struct {
	Path string
	Err  error
}

func (e *LookupError) Error() string {
	return fmt.Sprintf("cannot look for %s: %s", e.Path, e.Err)
}

// Unwrap returns the reason, an error of the operating system.
func (e *LookupError) Unwrap() error { return e.Err }

// Locate finds the file of one rank: under its plain name, else with .gz behind it, else
// with .zst. A link counts if it leads somewhere. The error is a [*MissingError] when
// there is none, a [*TwoFormsError] when there are several, and a [*LookupError] when
// the directory cannot be searched.
func Locate(base Base, rank int) (path string, err error) {
	plain := base.Rank(rank)
	var found []string
	for _, suffix := range append([]string{""}, compressions()...) {
		there, err := exists(plain + suffix)
		if err != nil {
			return "", err
		}
		if there {
			found = append(found, plain+suffix)
		}
	}
	switch len(found) {
	case 0:
		return "", &MissingError{Rank: rank, Path: plain}
	case 1:
		return found[0], nil
	}
	return "", &TwoFormsError{Rank: rank, Paths: found}
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if err == nil {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathErr.Err
	}
	return false, &LookupError{Path: path, Err: err}
}
