package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/finding"
	"github.com/fpm-project/fpm/internal/input"
	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/probe"
	"github.com/fpm-project/fpm/probe/serve"
)

const serveHelp = `Serve the merged document, with the result of the worker probe applied, as the
get_perf_metrics endpoint does, over HTTP:

  GET /get_perf_metrics   the document; zstd or gzip when asked for, with an ETag
  GET /healthz            whether there is a document, and whether it is the newest
  GET /metrics            the same and more in numbers, for Prometheus

When the merged artifact or its sidecar is replaced, requests from then on get the new
document, and those that are being answered the old one to its end. A replacement that
cannot be served leaves the old document in its place; the log on standard error says
so. Replace the files by renaming, as fpm does: one that is overwritten where it stands
cuts off the answers that are being sent.

The address is printed on standard output when requests are answered; with a machine
format it goes to standard error, and the report of the end to standard output. There is
no authentication: whoever reaches the address can read the document.

A signal stops it: answers that are being sent may end, and the exit status is 0. A
second one stops it at once, with 130.`

// serveFlags are the options of serve.
type serveFlags struct {
	listen     string
	maxAnswers int
	stall      time.Duration
	drain      time.Duration
}

func newServe(a *app) *cobra.Command {
	var opt serveFlags
	cmd := &cobra.Command{
		Use:   "serve MERGED",
		Short: "Serve the merged document with the probe applied over HTTP",
		Long:  serveHelp,
		Example: `  fpm serve results/benchmark_results_merged.json --listen 127.0.0.1:8080
  curl --compressed http://127.0.0.1:8080/get_perf_metrics`,
		Args: oneMerged,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opt.check(); err != nil {
				return err
			}
			return a.serve(cmd, args[0], opt)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&opt.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 is one that is free")
	flags.IntVar(&opt.maxAnswers, "max-answers", serve.DefaultMaxAnswers, "send at most `N` documents at a time; others get 503")
	flags.DurationVar(&opt.stall, "stall", serve.DefaultStall, "cut off a client that takes longer than this for 64 KiB")
	flags.DurationVar(&opt.drain, "drain", 30*time.Second, "when stopped, let answers go on for so long")
	return cmd
}

func (f *serveFlags) check() error {
	_, port, err := net.SplitHostPort(f.listen)
	number, notNumber := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || notNumber != nil:
		return usage(fmt.Sprintf("--listen: %q is not HOST:PORT with a port from 0 to 65535", f.listen))
	case port != strconv.FormatUint(number, 10):
		return usage(fmt.Sprintf("--listen: the port %q is not a plain number", port))
	case f.maxAnswers < 1:
		return usage("--max-answers: a server that answers nobody is of no use; give 1 or more")
	case f.stall <= 0:
		return usage("--stall takes a duration of more than 0")
	case f.drain < 0:
		return usage("--drain takes a duration of 0 or more")
	}
	return nil
}

func (a *app) serve(cmd *cobra.Command, merged string, opt serveFlags) error {
	journal := &journal{a: a}
	handler, err := serve.New(serve.Options{
		Open:       func() (serve.Document, error) { return openServed(merged) },
		Paths:      []string{merged, probe.SidecarPath(merged)},
		MaxAnswers: opt.maxAnswers, Stall: opt.stall, Version: programVersion(), Log: journal.say,
	})
	if err != nil {
		return a.refused(err)
	}
	defer handler.Close()
	listener, err := net.Listen(network(opt.listen), opt.listen)
	if err != nil {
		return &exitcode.Error{Code: exitcode.Failed, Message: "cannot listen on " + opt.listen + ": " + bareListen(err), Hint: "choose another address with --listen", Err: err}
	}
	server := handler.Server()
	server.ErrorLog = log.New(journal, "", 0)
	a.announce(journal, handler, listener.Addr())
	err = serve.Run(cmd.Context(), server, listener, opt.drain)
	if errors.Is(err, serve.ErrCutOff) {
		a.warn(fmt.Sprintf("answers that had not ended after %s were cut off", opt.drain)) // as was asked for
		err = nil
	}
	if err != nil {
		return err
	}
	return a.finish(&report.Report{
		Command: "serve", Status: report.OK, Summary: "stopped",
		Details: report.Object{{Key: "address", Value: listener.Addr().String()}},
	})
}

// network keeps an IPv4 wildcard from standing for every IPv6 address as well.
func network(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil && net.ParseIP(host).To4() != nil {
		return "tcp4"
	}
	return "tcp"
}

// openServed keeps a nil document from becoming one that is not nil.
func openServed(merged string) (serve.Document, error) {
	d, err := probe.OpenDocument(merged)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// announce says where requests are answered, and what should be known of it.
func (a *app) announce(journal *journal, handler *serve.Handler, address net.Addr) {
	if tcp, ok := address.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		a.warn("this address is not a loopback one, and there is no authentication: whoever reaches it can read the document")
	}
	journal.say("serving " + handler.Describe())
	var out io.Writer = a.stdout
	if a.opts.format != report.Text {
		out = a.stderr
	}
	fmt.Fprintf(out, "listening on http://%s\n", address) // errors of the streams are told at the end
}

// refused reports why there is nothing to serve from the start: a finding when it is the
// file's text.
func (a *app) refused(err error) error {
	var broken *probe.TextError
	if !errors.As(err, &broken) {
		return err
	}
	out := finding.NewCollector(1)
	finding.Scope{Out: out, File: broken.Path, Rank: finding.NoRank}.Says(broken.Rule, broken.Pointer, broken.Offset, broken.Message, "", "")
	findings := out.Findings()
	for i := range findings {
		findings[i].Line, findings[i].Column = lineAndColumn(broken.Path, broken.Offset)
	}
	return a.finish(report.New("serve", findings, out.Errors(), out.Warnings()))
}

// lineAndColumn returns where an offset is, zeros when the file cannot tell any more.
func lineAndColumn(path string, offset int64) (line, column int) {
	if offset < 0 {
		return 0, 0
	}
	file, err := input.Open(path, input.Options{})
	if err != nil {
		return 0, 0
	}
	defer file.Close()
	at, _ := jsonstream.Positions(file, []int64{offset}) // a text that is cut off has an error behind it
	if len(at) == 0 {
		return 0, 0
	}
	return at[0].Line, at[0].Column
}

// bareListen returns what an error of listening says without the address.
func bareListen(err error) string {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return newBuild(info).version
}

// journal writes what operators should know to standard error, a line at a time. It may
// be used concurrently.
type journal struct {
	a  *app
	mu sync.Mutex
}

func (j *journal) say(line string) {
	if j.a.opts.quiet {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.a.stderr, "fpm serve: %s\n", report.Escape(line))
}

// Write is for the server's own log.
func (j *journal) Write(p []byte) (int, error) {
	j.say(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
