package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/report"
)

const gcPercent = 25

// process runs the program as the process it is: with its arguments, streams,
// environment and signals.
func process() int {
	if os.Getenv("GOGC") == "" {
		// What grows with a run is an index of numbers. Collecting early keeps the heap close
		// to it and costs little: nearly nothing else is allocated.
		debug.SetGCPercent(gcPercent)
	}
	signal.Ignore(syscall.SIGPIPE) // a closed standard output is a write error, see stream
	signals := make(chan os.Signal, 2)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // nohup and background jobs of scripts ignore them
			signal.Notify(signals, s)
		}
	}
	return attend(signals, os.Stderr, time.Now, func(ctx context.Context) int {
		return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv)
	})
}

// echo is how long after a signal another of its kind is the same request: timeout(1) and
// supervisors signal the process and then its group, and both reach it.
const echo = time.Second

// attend runs the body. The first signal cancels its context, a second one ends the wait
// for it and says so on stderr.
func attend(signals <-chan os.Signal, stderr io.Writer, now func() time.Time, body func(context.Context) int) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan int, 1)
	go func() { done <- body(ctx) }()
	var first os.Signal
	var at time.Time
	for {
		select {
		case code := <-done:
			return code
		case s := <-signals:
			switch {
			case first == nil:
				first, at = s, now()
				cancel()
			case s != first || now().Sub(at) >= echo:
				fmt.Fprintln(stderr, "fpm: stopped at once by a second signal: what the first one had begun to end was cut short")
				return int(exitcode.Interrupted)
			}
		}
	}
}

// run is the program as a function: it does what the arguments say and returns the exit
// status. Lookup looks a variable of the environment up.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	a := newApp(stdout, stderr, lookup)
	root := newRoot(a)
	root.SetIn(stdin)
	return int(a.execute(ctx, root, args))
}

// execute runs the command that the arguments name and reports its error, if there is
// one that has not been reported.
func (a *app) execute(ctx context.Context, root *cobra.Command, args []string) exitcode.Code {
	root.SetArgs(args)
	root.SetOut(remembering{a.stdout})
	root.SetErr(a.stderr)
	cmd, err := a.dispatch(ctx, root)
	var done *reported
	code := exitcode.OK
	switch {
	case errors.As(err, &done):
		code = done.code
	case err != nil:
		code = a.fail(cmd, args, err)
	}
	return exitcode.Worse(code, a.stdout.outcome(a.stderr))
}

// dispatch runs a command; a panic in it becomes an error.
func (a *app) dispatch(ctx context.Context, root *cobra.Command) (cmd *cobra.Command, err error) {
	defer func() {
		if v := recover(); v != nil {
			cmd, err = root, &bug{value: v, stack: debug.Stack()}
			if a.started != nil {
				cmd = a.started
			}
		}
	}()
	return root.ExecuteContextC(ctx)
}

// bug is a panic.
type bug struct {
	value any
	stack []byte
}

func (b *bug) Error() string { return fmt.Sprintf("internal error: %v", b.value) }

// fail reports an error with which a command ended before it had a report of its own.
func (a *app) fail(cmd *cobra.Command, args []string, err error) exitcode.Code {
	if a.started == nil {
		a.opts.format = formatOf(args) // the flags may not have been read so far
	}
	var defect *bug
	if errors.As(err, &defect) {
		err = &exitcode.Error{
			Code: exitcode.Bug, Message: err.Error(), Err: err,
			Hint: "this is a bug in fpm: please report it with the command line and the output of 'fpm version'; FPM_DEBUG=1 adds a stack trace",
		}
	} else if a.started == nil || exitcode.Of(err) == exitcode.Usage {
		err = usageError(cmd, err)
	}
	r := &report.Report{Command: commandName(cmd)}
	r.Fail(err)
	code := r.Code()
	if err := a.print(r); err != nil {
		fmt.Fprintf(a.stderr, "fpm: cannot report: %s\n", report.Escape(err.Error()))
		code = exitcode.Bug
	}
	if defect != nil && a.getenv("FPM_DEBUG") != "" {
		fmt.Fprintf(a.stderr, "%s", defect.stack)
	}
	return code
}
