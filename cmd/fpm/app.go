package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/progress"
	"github.com/fpm-project/fpm/internal/report"
)

// app is what every command shares: the streams, the environment and the global flags.
type app struct {
	stdout *stream
	stderr io.Writer
	lookup func(string) (string, bool) // the environment
	opts   options

	started *cobra.Command // the command whose flags and arguments were right; nil before
}

// options are the global flags.
type options struct {
	format      report.Format
	maxFindings uint
	quiet       bool
	noColor     bool
}

func newApp(stdout, stderr io.Writer, lookup func(string) (string, bool)) *app {
	return &app{
		stdout: &stream{w: stdout}, stderr: stderr, lookup: lookup,
		opts: options{format: report.Text, maxFindings: 100},
	}
}

// getenv returns the value of an environment variable, "" when it is not set.
func (a *app) getenv(name string) string {
	value, _ := a.lookup(name)
	return value
}

// meter returns a running progress meter, or nil when nobody is there to see it. The
// label says what is being done; total is the number of bytes there are to do.
func (a *app) meter(label string, total int64) *progress.Meter {
	if a.opts.quiet || !a.obeysEscapes(a.stderr) {
		return nil
	}
	return progress.Start(a.stderr, label, total, func() int { return columns(a.stderr) })
}

// warn tells people, on standard error, of something that is no finding: that a run is
// late, say.
func (a *app) warn(message string) {
	if !a.opts.quiet {
		fmt.Fprintf(a.stderr, "fpm: warning: %s\n", report.Escape(message))
	}
}

// finish prints a report and returns what the command has to return: nil, or the exit
// status as an error.
func (a *app) finish(r *report.Report) error {
	if err := a.print(r); err != nil {
		return &bug{value: err}
	}
	if code := r.Code(); code != exitcode.OK {
		return &reported{code}
	}
	return nil
}

// finishAside is finish for a command whose data is on standard output: the report goes
// to standard error.
func (a *app) finishAside(r *report.Report) error {
	a.dress(r)
	opt := report.TextOptions{Color: a.color(a.stderr)}
	// With standard error gone there is nowhere left to say so.
	_ = report.Print(a.stderr, a.opts.format, r, opt)
	if a.opts.format == report.Text {
		_ = report.PrintFatal(a.stderr, r, opt)
	}
	if code := r.Code(); code != exitcode.OK {
		return &reported{code}
	}
	return nil
}

// print prints a report on standard output, and on standard error what people must see
// wherever the other one goes. Errors are not those of the streams.
func (a *app) print(r *report.Report) error {
	a.dress(r)
	err := report.Print(a.stdout, a.opts.format, r, report.TextOptions{Color: a.color(a.stdout.w)})
	if err != nil && a.stdout.err == nil {
		return err // those of the stream are told at the end
	}
	// With standard error gone there is nowhere left to say so.
	_ = report.PrintAside(a.stderr, a.opts.format, r, report.TextOptions{Color: a.color(a.stderr)})
	return nil
}

// dress sets what is the same for every report.
func (a *app) dress(r *report.Report) {
	r.Quiet, r.Version = a.opts.quiet, programVersion()
}

// reported is the exit status of a command that has printed its report.
type reported struct{ code exitcode.Code }

func (r *reported) Error() string { return fmt.Sprintf("exit status %d", r.code) }

// color tells whether w is to be written to in colour.
func (a *app) color(w io.Writer) bool {
	return !a.opts.noColor && a.getenv("NO_COLOR") == "" && a.obeysEscapes(w)
}

// obeysEscapes tells whether w is a terminal that understands escape sequences.
func (a *app) obeysEscapes(w io.Writer) bool {
	fd, ok := descriptor(w)
	return ok && term.IsTerminal(fd) && a.getenv("TERM") != "dumb"
}

// columns returns the width of the terminal w, 80 when it does not tell.
func columns(w io.Writer) int {
	if fd, ok := descriptor(w); ok {
		if width, _, err := term.GetSize(fd); err == nil && width > 0 {
			return width
		}
	}
	return 80
}

func descriptor(w any) (fd int, ok bool) {
	f, ok := w.(interface{ Fd() uintptr })
	if !ok {
		return 0, false
	}
	return int(f.Fd()), true
}

// stream is standard output. It remembers the first error, to be told at the end.
type stream struct {
	w   io.Writer
	err error
}

func (s *stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	s.err = err
	return n, err
}

// remembering is a stream whose errors are told at the end only. The command library gets
// it, which else would print them.
type remembering struct{ *stream }

func (r remembering) Write(p []byte) (int, error) {
	if n, err := r.stream.Write(p); err == nil {
		return n, nil
	}
	return len(p), nil // the stream has the error
}

// outcome returns the exit status for what became of the output. A reader that went away
// has read what it wanted, so nothing is said of it; any other error is.
func (s *stream) outcome(stderr io.Writer) exitcode.Code {
	if s.err == nil || errors.Is(s.err, syscall.EPIPE) || errors.Is(s.err, io.ErrClosedPipe) {
		return exitcode.OK
	}
	e := exitcode.From(s.err)
	fmt.Fprintf(stderr, "fpm: standard output: %s\n", report.Escape(e.Message))
	return exitcode.Failed
}
