package exitcode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestTableIsWholeAndAscending(t *testing.T) {
	var codes []Code
	names := map[string]bool{}
	for _, row := range Table() {
		codes = append(codes, row.Code)
		if row.Name == "" || row.Meaning == "" || names[row.Name] {
			t.Errorf("row %+v lacks a text or repeats a name", row)
		}
		names[row.Name] = true
	}
	if diff := cmp.Diff([]Code{0, 1, 2, 3, 4, 70, 130}, codes); diff != "" {
		t.Errorf("codes (-want +got):\n%s", diff)
	}
	weighed := slices.Sorted(slices.Values(byWeight[:]))
	if diff := cmp.Diff(codes, weighed); diff != "" {
		t.Errorf("a status has no weight (-table +weights):\n%s", diff)
	}
}

func TestWorse(t *testing.T) {
	for _, c := range []struct{ a, b, want Code }{
		{OK, OK, OK},
		{OK, Rejected, Rejected},
		{Rejected, Failed, Failed}, // what could not be done beats what was found
		{Rejected, Undetermined, Rejected},
		{Usage, Failed, Usage},
		{Failed, Interrupted, Interrupted},
		{Interrupted, Bug, Bug},
	} {
		if got := Worse(c.a, c.b); got != c.want {
			t.Errorf("Worse(%d, %d) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Worse(c.b, c.a); got != c.want {
			t.Errorf("Worse(%d, %d) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func TestOfAndFrom(t *testing.T) {
	own := &Error{Code: Usage, Message: "two forms", File: "run.json"}
	for _, c := range []struct {
		name string
		err  error
		want Error
	}{
		{"own", own, *own},
		{"own, wrapped", fmt.Errorf("outer: %w", own), *own},
		{"cancelled", context.Canceled, Error{Code: Interrupted, Message: "interrupted"}},
		{"cancelled, wrapped", fmt.Errorf("read: %w", context.Canceled), Error{Code: Interrupted, Message: "interrupted"}},
		{"cancelled work", &Error{Code: Failed, Message: "not read", Err: context.Canceled}, Error{Code: Interrupted, Message: "interrupted"}},
		{"deadline", context.DeadlineExceeded, Error{Code: Failed, Message: "timed out"}},
		{
			"missing", &fs.PathError{Op: "open", Path: "run.json", Err: syscall.ENOENT},
			Error{Code: Failed, File: "run.json", Message: "cannot open: no such file or directory", Hint: "check the path"},
		},
		{
			"full", fmt.Errorf("save: %w", &fs.PathError{Op: "write", Path: "out.json", Err: syscall.ENOSPC}),
			Error{Code: Failed, File: "out.json", Message: "cannot write: no space left on device", Hint: "free some space there, or choose another place"},
		},
		{
			"rename", &os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EROFS},
			Error{Code: Failed, File: "a", Message: "cannot rename to b: read-only file system", Hint: "choose a place that can be written to"},
		},
		{"other", errors.New("odd"), Error{Code: Failed, Message: "odd"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := From(c.err)
			if diff := cmp.Diff(c.want, *got, cmpopts.IgnoreFields(Error{}, "Err")); diff != "" {
				t.Errorf("From (-want +got):\n%s", diff)
			}
			if code := Of(c.err); code != c.want.Code {
				t.Errorf("Of = %d, want %d", code, c.want.Code)
			}
			if !errors.Is(c.err, got) && !errors.Is(got, c.err) {
				t.Error("the cause is lost")
			}
		})
	}
	if Of(nil) != OK {
		t.Error("no error is not status 0")
	}
}

func TestErrorSaysEachThingOnce(t *testing.T) {
	cause := errors.New("cause")
	for want, e := range map[string]*Error{
		"what":            {Message: "what"},
		"cause":           {Err: cause},
		"what ":           {Message: "what ", Err: cause},
		"run.json: what":  {Message: "what", File: "run.json", Err: cause},
		"run.json: cause": {File: "run.json", Err: cause},
	} {
		if e.Error() != want {
			t.Errorf("got %q, want %q", e.Error(), want)
		}
	}
}
