package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/segment"
	"github.com/fpm-project/fpm/trace/top"
)

const traceTopHelp = `Show what every worker and rank does, live: its rate of forward passes, their median wall
time, the prefill and decode load, the queue, missing messages, silence, and the last
minute as a sparkline. Keys sort, filter and pause; ? lists them, q ends it.

Without a path it subscribes to endpoints as trace record does: those of --endpoint, the
sockets behind --ipc-base, or the ranks of --ranks at --host and the base port. With
paths, prefixes or patterns of segments it follows a trace as it is written.

RATE/s is forward passes a second, PREF/s tokens of prompts a second, DEC/pass decode
requests in a pass, KV their tokens. All are means over the last ten seconds.

Without a terminal it prints a table once a second; with a machine format it prints
nothing but the last one, as the report of the end. When endpoints brought nothing until
--for was over, the status is 1. A trace that is still not there then is a failure, as
for every command that reads one.`

// topFlags are the options of trace top: the endpoints are named as for trace record.
type topFlags struct {
	recordFlags
	history bool
	sort    string
	reverse bool
	filter  string
	metric  string
}

func newTraceTop(a *app) *cobra.Command {
	var opt topFlags
	cmd := &cobra.Command{
		Use:   "top [PATH...]",
		Short: "Show live what every worker and rank does",
		Long:  traceTopHelp,
		Example: `  fpm trace top --ranks 0-7
  fpm trace top /tmp/dynamo-fpm
  fpm trace top --ranks 0-7 --for 10s --sort queue --reverse | tail -20`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			return a.traceTop(cmd, args, opt)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opt.endpoints, "endpoint", nil, "watch `ADDRESS`, tcp://HOST:PORT or ipc://PATH; may be repeated")
	addBasePort(cmd)
	flags.StringVar(&opt.host, "host", "127.0.0.1", "`HOST` of the ranks at the base port")
	flags.StringVar(&opt.ranks, "ranks", "0", "DP ranks at the base port or behind the IPC base, such as `0-7`")
	flags.StringVar(&opt.ipcBase, "ipc-base", "", "watch the sockets `PATH`.RANK; the first rank's may be the bare path")
	flags.DurationVar(&opt.duration, "for", 0, "end after so long")
	flags.BoolVar(&opt.history, "history", false, "of a trace, begin with what it holds already")
	flags.StringVar(&opt.sort, "sort", string(top.ByWorker), "sort by `COLUMN`: "+joined(top.Columns()))
	flags.BoolVar(&opt.reverse, "reverse", false, "the largest first")
	flags.StringVar(&opt.filter, "filter", "", "only lines whose worker, \"rank N\" or endpoint contains `TEXT`")
	flags.StringVar(&opt.metric, "metric", string(top.DecodeMetric), "show `METRIC` in the sparklines: "+joined(top.Metrics()))
	completeNames(cmd, "sort", top.Columns())
	completeNames(cmd, "metric", top.Metrics())
	return cmd
}

// traceTop shows what there is to watch, until it is to end.
func (a *app) traceTop(cmd *cobra.Command, args []string, flags topFlags) error {
	view, err := flags.view()
	if err != nil {
		return err
	}
	if isSet(cmd, "for") && flags.duration <= 0 {
		return usage(fmt.Sprintf("--for is %s: it takes a duration of more than 0", flags.duration))
	}
	watch, err := a.toWatch(cmd, args, flags)
	if err != nil {
		return err
	}
	if _, err := segment.Find(args); len(args) > 0 && err != nil {
		view.Empty = "no segments with that prefix yet"
		a.warn(strings.Join(args, " ") + ": " + view.Empty)
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	if flags.duration > 0 {
		ctx, stop = context.WithTimeout(ctx, flags.duration)
		defer stop()
	}
	failed := make(chan error, 1)
	go func() {
		failed <- watch.feed(ctx)
		stop()
	}()
	if a.opts.format == report.Text {
		err = a.showTop(ctx, cmd.InOrStdin(), watch, view)
	} else {
		<-ctx.Done()
	}
	stop()
	if err := errors.Join(err, <-failed); err != nil {
		return err
	}
	r := topReport(watch.snapshot(time.Now()))
	if flags.duration > 0 && len(r.Items.Values) == 0 {
		nothingSeen(r, args)
	}
	return a.finish(r)
}

// nothingSeen makes a report one of failure when endpoints brought nothing in the time that
// they were given, as trace record does, or when there is still no file of a trace. Files
// to which nothing was added meanwhile are no failure.
func nothingSeen(r *report.Report, args []string) {
	if len(args) == 0 {
		r.Fail(&exitcode.Error{
			Code: exitcode.Rejected, Message: "nothing was received from any endpoint",
			Hint: "the lines of the endpoints say why; 'fpm trace topologies' lists which workers publish",
		})
		r.Status = report.Rejected
		return
	}
	if sources, err := segment.Find(args); len(sources) == 0 && err != nil {
		r.Fail(err)
	}
}

// view returns how the table is to look.
func (f *topFlags) view() (top.View, error) {
	for _, c := range []struct {
		flag, value string
		known       []string
	}{
		{"sort", f.sort, texts(top.Columns())},
		{"metric", f.metric, texts(top.Metrics())},
	} {
		if !slices.Contains(c.known, c.value) {
			return top.View{}, usage(fmt.Sprintf("--%s: %q is none of %s", c.flag, c.value, strings.Join(c.known, ", ")))
		}
	}
	return top.View{Sort: top.Column(f.sort), Down: f.reverse, Filter: f.filter, Metric: top.Metric(f.metric)}, nil
}

// watched is what is being watched.
type watched struct {
	board *top.Board
	feed  func(context.Context) error
	lag   time.Duration // what arrives is so old at least
}

func (w *watched) snapshot(now time.Time) top.Snapshot { return w.board.Snapshot(now.Add(-w.lag)) }

// toWatch returns what the arguments and options name: a trace, or endpoints.
func (a *app) toWatch(cmd *cobra.Command, args []string, flags topFlags) (*watched, error) {
	if len(args) > 0 {
		for _, flag := range []string{"endpoint", "base-port", "host", "ranks", "ipc-base"} {
			if isSet(cmd, flag) {
				return nil, usage(fmt.Sprintf("--%s is for endpoints, and %q is a trace: watch one or the other", flag, args[0]))
			}
		}
		board := top.NewBoard()
		feed := func(ctx context.Context) error { return top.Follow(ctx, board, args, flags.history) }
		return &watched{board, feed, top.FollowLag}, nil
	}
	if isSet(cmd, "history") {
		return nil, usage("--history is for a trace, and none is named")
	}
	policy, err := a.policy(cmd, trace.EnvBasePort)
	if err != nil {
		return nil, err
	}
	endpoints, faults := flags.sources(cmd, policy)
	if len(faults) > 0 {
		return nil, usage(strings.Join(faults, "; "))
	}
	var addresses []string
	for _, e := range endpoints {
		addresses = append(addresses, e.Address)
	}
	board := top.NewBoard(addresses...)
	return &watched{board: board, feed: func(ctx context.Context) error { return top.Watch(ctx, board, endpoints) }}, nil
}

// showTop shows a board to people: on a terminal as a program, elsewhere as a table a second.
func (a *app) showTop(ctx context.Context, stdin io.Reader, w *watched, view top.View) error {
	view.Color = a.color(a.stdout.w)
	fd, ok := descriptor(stdin)
	if !ok || !term.IsTerminal(fd) || !a.obeysEscapes(a.stdout.w) {
		return a.showTables(ctx, w, view)
	}
	model := top.NewModel(func() top.Snapshot { return w.snapshot(time.Now()) }, view)
	program := tea.NewProgram(model, tea.WithContext(ctx), tea.WithInput(stdin), tea.WithOutput(a.stdout.w), tea.WithoutSignalHandler())
	_, err := program.Run()
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return nil // it was to end
	}
	return err
}

// showTables prints a table a second, until nobody reads them any more.
func (a *app) showTables(ctx context.Context, w *watched, view top.View) error {
	ticks := time.NewTicker(top.Refresh)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticks.C:
			snap := w.snapshot(now)
			if _, err := io.WriteString(a.stdout, view.Plain(&snap)+"\n"); err != nil {
				return nil // the stream has the error
			}
		}
	}
}

// topReport is the last table for programs.
func topReport(snap top.Snapshot) *report.Report {
	items := report.Items{Key: "lines"}
	for _, l := range snap.Lines {
		// The names are those of trace stats where the meaning is.
		item := struct {
			top.Line
			WallTime struct {
				P50 float64 `json:"p50"`
			} `json:"wall_time_s"`
			Silence float64 `json:"silence_s"`
		}{Line: l, Silence: l.Silence.Seconds()}
		item.WallTime.P50 = l.Wall
		items.Values = append(items.Values, item)
	}
	endpoints := snap.Endpoints
	if endpoints == nil {
		endpoints = []top.Endpoint{}
	}
	return &report.Report{Command: "trace top", Status: report.OK, Items: items, Details: report.Object{{Key: "endpoints", Value: endpoints}}}
}
