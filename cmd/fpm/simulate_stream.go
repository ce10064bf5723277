package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/report"
	simulated "github.com/fpm-project/fpm/internal/simulate/stream"
	"github.com/fpm-project/fpm/internal/words"
	"github.com/fpm-project/fpm/trace"
)

const simulateStreamHelp = `Publish the forward-pass metrics of a synthetic fleet over ZMQ, as its workers would
while they serve: a PUB socket for each rank of each worker, until a signal or the end of
--for or --count. The rank r of worker w is at base port + w × ranks + r, or behind the
IPC base as .0, .1 and so on.

Requests come by day and in bursts, are prefilled, decode and end; by night there is a
heartbeat a second. What is published follows from --seed alone; --rate says when. The
addresses are printed on standard output when they can be connected to (on standard error
with a machine format), and at the end what each rank has published, to be compared with
what a recorder has received: a message is sent, bad, dropped (it got a number and was
not sent), or lost (a subscriber's queue had no room for it).`

// streamFlags are the options of simulate stream that are no options of the fleet.
type streamFlags struct {
	endpoints []string
	host      string
	ipcBase   string
	bad       string
	load      string
}

func newSimulateStream(a *app) *cobra.Command {
	opt := simulated.Options{Workers: 1, Ranks: 1, Rate: 50, HighWater: simulated.DefaultHighWater, Day: simulated.DefaultDay, Linger: simulated.DefaultLinger}
	flags := streamFlags{host: "127.0.0.1", load: string(simulated.Diurnal)}
	cmd := &cobra.Command{
		Use:   "stream",
		Short: "Publish the forward-pass metrics of a synthetic fleet",
		Long:  simulateStreamHelp,
		Example: `  fpm simulate stream --workers 2 --ranks 4
  fpm simulate stream --ranks 8 --rate 2500 --load steady --for 30s --await
  fpm simulate stream --ipc-base /tmp/fpm-demo --restart-every 1m --drop 0.001 --bad truncated`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			opt.Bad, opt.Load = simulated.Bad(flags.bad), simulated.Load(flags.load)
			return a.simulateStream(cmd, opt, flags)
		},
	}
	addFleetFlags(cmd, &opt, &flags)
	return cmd
}

func addFleetFlags(cmd *cobra.Command, opt *simulated.Options, own *streamFlags) {
	flags := cmd.Flags()
	flags.IntVar(&opt.Workers, "workers", opt.Workers, "workers, each a process of its own")
	flags.IntVar(&opt.Ranks, "ranks", opt.Ranks, "data-parallel ranks of each worker")
	flags.Float64Var(&opt.Rate, "rate", opt.Rate, "forward passes per second and rank while it is busy; 0 is as fast as can be")
	flags.StringVar(&own.load, "load", own.load, "`LOAD`: diurnal, steady (never idle), or idle (heartbeats only)")
	flags.DurationVar(&opt.Day, "day", opt.Day, "how long a day of a diurnal load lasts")
	flags.Uint64Var(&opt.Seed, "seed", 0, "another seed is another story")
	flags.DurationVar(&opt.For, "for", 0, "stop after so long")
	flags.Uint64Var(&opt.Count, "count", 0, "stop each rank after `N` messages")
	flags.BoolVar(&opt.Await, "await", false, "publish nothing until every rank has a subscriber")
	flags.DurationVar(&opt.RestartEvery, "restart-every", 0, "stop each worker so often and start it again, with counters from 0")
	flags.Float64Var(&opt.Drop, "drop", 0, "leave out this `PART` of the messages, which get a number all the same: 0.01 is one of a hundred")
	flags.StringVar(&own.bad, "bad", "", "make every tenth message wrong: `KIND` is one of "+joined(simulated.BadKinds()))
	flags.StringVar(&opt.WorkerID, "worker-id", "", "`ID` of the worker; with several, -0, -1 and so on behind it")
	flags.StringArrayVar(&own.endpoints, "endpoint", nil, "`ADDRESS` of the next rank, tcp://HOST:PORT or ipc://PATH; as often as there are ranks")
	addBasePort(cmd)
	flags.StringVar(&own.host, "host", own.host, "`HOST` to bind TCP ports of; 0.0.0.0 is all of them")
	flags.StringVar(&own.ipcBase, "ipc-base", "", "publish on Unix domain sockets with this `PATH` and the rank behind it")
	flags.IntVar(&opt.HighWater, "high-water", opt.HighWater, "messages queued for a subscriber; more are lost to it")
	flags.BoolVar(&opt.Lossless, "lossless", false, "wait for a subscriber whose queue is full, which no engine does")
	flags.DurationVar(&opt.Linger, "linger", opt.Linger, "at the end let subscribers take what is queued for so long")
	cmd.MarkFlagsMutuallyExclusive("endpoint", "base-port", "ipc-base")
	completeNames(cmd, "load", simulated.Loads())
	completeNames(cmd, "bad", simulated.BadKinds())
}

// completeNames lets the shell complete a flag that takes one of a few names.
func completeNames[T ~string](cmd *cobra.Command, flag string, names []T) {
	complete := cobra.FixedCompletions(texts(names), cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // the caller has not defined the flag
	}
}

func texts[T ~string](names []T) []string {
	list := make([]string, len(names))
	for i, s := range names {
		list[i] = string(s)
	}
	return list
}

func joined[T ~string](names []T) string { return strings.Join(texts(names), ", ") }

func (a *app) simulateStream(cmd *cobra.Command, opt simulated.Options, flags streamFlags) error {
	var err error
	if opt.Addresses, err = a.streamAddresses(cmd, &opt, flags); err != nil {
		return err
	}
	opt.Ready = a.announceStream
	begin := time.Now()
	results, err := simulated.Run(cmd.Context(), opt)
	var option *simulated.OptionError
	var network *net.OpError
	switch {
	case errors.As(err, &option):
		return usage("--" + err.Error())
	case errors.As(err, &network) && network.Addr != nil:
		return &exitcode.Error{Code: exitcode.Failed, Message: fmt.Sprintf("cannot publish at %s: %v", network.Addr, network.Err), Hint: "choose other ports with --base-port", Err: err}
	case err != nil:
		return err
	}
	return a.finish(streamReport(results, time.Since(begin)))
}

// streamAddresses returns the address of every rank. Too many ranks get none: the fleet
// itself says how many there may be.
func (a *app) streamAddresses(cmd *cobra.Command, opt *simulated.Options, flags streamFlags) ([]string, error) {
	n := max(0, min(opt.Workers, simulated.MaxWorkers)) * max(0, min(opt.Ranks, simulated.MaxRanks))
	switch {
	case n > simulated.MaxSockets:
		return nil, nil
	case isSet(cmd, "endpoint"):
		return flags.endpoints, nil
	case isSet(cmd, "ipc-base"):
		if flags.ipcBase == "" {
			return nil, usage("--ipc-base: the path is empty")
		}
		return simulated.IPC(flags.ipcBase, n), nil
	case isSet(cmd, "base-port") && cmd.Flag("base-port").Value.String() == "0":
		return simulated.TCP(flags.host, 0, n), nil // which no recorder could guess
	}
	policy, err := a.policy(cmd, trace.EnvBasePort)
	if err != nil {
		return nil, err
	}
	if last := policy.BasePort + n - 1; last > math.MaxUint16 {
		return nil, usage(fmt.Sprintf("%s from port %d on end behind port %d", words.Count(n, "rank", "ranks"), policy.BasePort, math.MaxUint16))
	}
	return simulated.TCP(flags.host, policy.BasePort, n), nil
}

// announceStream says where can be subscribed.
func (a *app) announceStream(ranks []simulated.Result) {
	var out io.Writer = a.stdout
	if a.opts.format != report.Text {
		out = a.stderr
	}
	for _, r := range ranks {
		fmt.Fprintf(out, "worker %s rank %d publishes at %s\n", report.Escape(r.Worker), r.Rank, report.Escape(r.Address)) // errors of the streams are told at the end
	}
}

func streamReport(results []simulated.Result, took time.Duration) *report.Report {
	rows := [][]string{{"WORKER", "RANK", "SENT", "HEARTBEATS", "BAD", "DROPPED", "LOST", "RESTARTS", "NEXT"}}
	items := report.Items{Key: "ranks"}
	var sent uint64
	for _, r := range results {
		row := []string{report.Escape(r.Worker), fmt.Sprint(r.Rank)}
		for _, n := range []uint64{r.Sent, r.Heartbeat, r.Bad, r.Dropped, r.Lost, r.Restarts, r.Next} {
			row = append(row, fmt.Sprint(n))
		}
		rows = append(rows, row)
		items.Values = append(items.Values, r)
		sent += r.Sent + r.Bad
	}
	perSecond := float64(sent) / max(took.Seconds(), 1e-9)
	return &report.Report{
		Command: "simulate stream", Status: report.OK, Items: items,
		Summary: fmt.Sprintf("%s\npublished %s in %s, %.0f a second", alignColumns(rows), words.Count(sent, "message", "messages"), took.Round(time.Millisecond), perSecond),
		Details: report.Object{{Key: "messages", Value: sent}, {Key: "seconds", Value: took.Seconds()}},
	}
}
