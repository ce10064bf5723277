// Package exitcode is the one table of the program's exit statuses, and the error that
// carries one.
//
// A check never exits. It returns findings, or an error; [Of] tells which status the
// error stands for, and [Worse] which of two statuses the process ends with.
package exitcode

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"syscall"
)

// Code is the exit status of the process.
type Code int

// The exit statuses.
const (
	OK           Code = 0
	Rejected     Code = 1
	Usage        Code = 2
	Failed       Code = 3
	Undetermined Code = 4
	Bug          Code = 70
	Interrupted  Code = 130
)

// Row describes one exit status.
type Row struct {
	Code    Code
	Name    string // one word
	Meaning string
}

// Table returns every exit status in ascending order.
func Table() []Row {
	return []Row{
		{OK, "ok", "done; the evidence holds"},
		{Rejected, "rejected", "the evidence says no: a file is invalid, ranks disagree, runs do not match, or a required coverage is not met"},
		{Usage, "usage", "wrong usage: an unknown command or flag, a bad value, contradictory options, or no input at all"},
		{Failed, "failed", "the work could not be done: a file is missing or unreadable, the disk is full, no permission, network, or time-out"},
		{Undetermined, "undetermined", "a comparison could not be established"},
		{Bug, "bug", "a bug in fpm: please report it"},
		{Interrupted, "interrupted", "interrupted by a signal"},
	}
}

// byWeight lists the statuses, the one that beats all others first.
var byWeight = [...]Code{Bug, Interrupted, Usage, Failed, Rejected, Undetermined, OK}

// Worse returns the status with which a process ends to which both apply: a bug beats an
// interruption, that a usage error, that a failure, that a rejection.
func Worse(a, b Code) Code {
	if slices.Index(byWeight[:], a) < slices.Index(byWeight[:], b) {
		return a
	}
	return b
}

// Error is an error that knows its exit status and what to do about it.
type Error struct {
	Code    Code
	Message string // what is wrong, without the file; when empty, Err says it
	File    string // the path concerned, as the user gave it; may be empty
	Hint    string // what to do; may be empty
	Err     error  // the cause; may be nil
}

// Error says what is wrong with which file, once.
func (e *Error) Error() string {
	text := e.Message
	if text == "" && e.Err != nil {
		text = e.Err.Error()
	}
	if e.File != "" {
		return e.File + ": " + text
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Of returns the exit status that an error stands for: [Interrupted] when its cause is a
// cancelled context, its own when there is an [Error] in its chain, and [Failed] for any
// other, which is then an error of input or output.
func Of(err error) Code {
	var own *Error
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, &own):
		return own.Code
	default:
		return Failed
	}
}

// From returns an error in the form of [Error]. Those of the operating system are put
// into words: which operation, on which path, and why.
func From(err error) *Error {
	var (
		own  *Error
		path *fs.PathError
		link *os.LinkError
	)
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Code: Interrupted, Message: "interrupted", Err: err}
	case errors.As(err, &own):
		return own
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Failed, Message: "timed out", Err: err}
	case errors.As(err, &path):
		return &Error{Code: Failed, File: path.Path, Message: "cannot " + path.Op + ": " + path.Err.Error(), Hint: hint(err), Err: err}
	case errors.As(err, &link):
		return &Error{Code: Failed, File: link.Old, Message: "cannot " + link.Op + " to " + link.New + ": " + link.Err.Error(), Hint: hint(err), Err: err}
	default:
		return &Error{Code: Failed, Message: err.Error(), Hint: hint(err), Err: err}
	}
}

// hint says what to do about a failure of the operating system that has one usual cause.
func hint(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "check the path"
	case errors.Is(err, fs.ErrPermission):
		return "check the permissions of the file and its directory"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space there, or choose another place"
	case errors.Is(err, syscall.EROFS):
		return "choose a place that can be written to"
	default:
		return ""
	}
}
