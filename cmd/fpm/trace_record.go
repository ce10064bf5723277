package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/artifact"
	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/report"
	"github.com/fpm-project/fpm/probe/serve"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/record"
	"github.com/fpm-project/fpm/trace/subscribe"
)

const traceRecordHelp = `Subscribe to the forward-pass-metrics publishers of inference workers and write every
valid payload to rotating segments of gzip-compressed JSON lines,
PREFIX.PRODUCER.INDEX.jsonl.gz, a series for each worker. In the names of files characters
of a worker's id other than letters, digits, - and _ are underscores, and an id that no
file name can hold has its beginning and a hash; the rows have it whole.

Without --endpoint and --ipc-base it records the ranks of --ranks at --host, each at the
base port + its rank. Publishers need not be up: the recorder connects again for ever, and
says when nothing comes and why that may be. TensorRT-LLM and the mocker have no socket
to subscribe to, see 'fpm trace topologies'.

Nothing is lost without being counted. Beside the segments PREFIX.manifest.json says,
for each rank, what was received, written, missing by its number, refused and lost, and
whether the recording is complete. A second recorder with the same prefix writes segments
of its own, and PREFIX.manifest-2.json.

SIGINT, SIGTERM, --for and --max-rows end the recording cleanly: what was received is
written, within five seconds. The status is then 0; 1 when nothing was received until --for
was over, or every message was refused; 3 when something received could not be written, or
--require-first was not met. A second signal, a second later or of another kind, ends it at
once.

A flag beats its variable. A switch that is off (--no-fpm-trace, or ` + trace.EnvTrace + `
set to 0, false, off or no, without --fpm-trace) records nothing, with status 0; unset,
1, true, on and yes record. A variable that is set and empty is invalid: unset it.`

const traceRecordExample = `  # the two ranks of a worker on this host, every forward pass
  fpm trace record --ranks 0-1 --mode full -o /var/lib/fpm/run1

  # SGLang's ranks behind an IPC base, for an hour
  fpm trace record --ipc-base /tmp/sgl-fpm --ranks 0-7 --for 1h

  # two workers with names of their own, and metrics for Prometheus
  fpm trace record --endpoint tcp://10.0.0.1:20380,component=prefill \
    --endpoint tcp://10.0.0.2:20380,component=decode --metrics-listen 127.0.0.1:9477`

// recordFlags are the options of trace record that are not of the policy.
type recordFlags struct {
	endpoints            []string
	host, ranks, ipcBase string
	namespace, component string
	producer             string
	duration             time.Duration
	maxRows              uint64
	requireFirst         time.Duration
	fsync                bool
	metricsListen        string
}

func newTraceRecord(a *app) *cobra.Command {
	var opt recordFlags
	cmd := &cobra.Command{
		Use:     "record",
		Short:   "Record the forward passes of inference workers",
		Long:    traceRecordHelp,
		Example: traceRecordExample,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			return a.traceRecord(cmd, opt)
		},
	}
	addPolicyFlags(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&opt.endpoints, "endpoint", nil, "record from `ADDRESS`, tcp://HOST:PORT or ipc://PATH, with optional ,namespace=NAME,component=NAME,producer=NAME; may be repeated")
	flags.StringVar(&opt.host, "host", "127.0.0.1", "`HOST` of the ranks at the base port")
	flags.StringVar(&opt.ranks, "ranks", "0", "DP ranks at the base port or behind the IPC base, such as `0-7`")
	flags.StringVar(&opt.ipcBase, "ipc-base", "", "record from the sockets `PATH`.RANK; the first rank's may be the bare path")
	flags.StringVar(&opt.namespace, "namespace", "dynamo", "`NAME` in the rows' source")
	flags.StringVar(&opt.component, "component", "backend", "`NAME` in the rows' source")
	flags.StringVar(&opt.producer, "producer-id", "", "`ID` of the rows' producer instead of the worker's; one series of files")
	flags.DurationVar(&opt.duration, "for", 0, "stop after so long")
	flags.Uint64Var(&opt.maxRows, "max-rows", 0, "stop after `N` rows")
	flags.DurationVar(&opt.requireFirst, "require-first", 0, "fail when an endpoint has delivered nothing after so long")
	flags.BoolVar(&opt.fsync, "fsync", false, "make every flush durable, not only the end of a segment")
	flags.StringVar(&opt.metricsListen, "metrics-listen", "", "serve /metrics, /healthz and /readyz at `ADDRESS`, such as 127.0.0.1:9477")
	deferFaults(cmd, "for", "max-rows", "require-first")
	return cmd
}

// traceRecord records, from the options to the report.
func (a *app) traceRecord(cmd *cobra.Command, flags recordFlags) error {
	policy, err := a.policy(cmd)
	endpoints, more := flags.check(cmd, policy)
	if err := allFaults(err, more); err != nil {
		return err
	}
	if !policy.Enabled {
		return a.finish(&report.Report{
			Command: "trace record", Status: report.OK, Details: report.Object{{Key: "recorded", Value: false}},
			Summary: "nothing is recorded: the switch is off (--no-fpm-trace, or " + trace.EnvTrace + ")",
		})
	}
	defer a.bePatient(cmd.Context())()
	a.warnOfPorts(cmd, flags, policy, endpoints)
	a.beModest()
	line := &liveLine{a: a}
	recorder, err := record.New(record.Options{
		Endpoints: endpoints, Output: policy.Output, Mode: policy.Mode, SampleInterval: policy.SampleInterval,
		RollBytes: policy.RollBytes, MaxSegments: policy.MaxSegments, Fsync: flags.fsync,
		For: flags.duration, MaxRows: flags.maxRows, RequireFirst: flags.requireFirst,
		Version: programVersion(), Warn: line.warn, Say: line.say,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	defer stop()
	served, err := a.serveMetrics(ctx, flags.metricsListen, recorder, line)
	if err != nil {
		return errors.Join(err, recorder.Close())
	}
	line.start(recorder)
	manifest, err := recorder.Run(cmd.Context())
	line.stop()
	stop()
	asked := cmd.Context().Err() != nil && manifest.Totals.Rejected == 0
	if asked && manifest.Totals.Received == 0 {
		a.warn(nothingReceived(manifest).Error())
	}
	return a.finish(recordReport(manifest, errors.Join(err, <-served), asked, a.opts.format == report.Text))
}

// The recorder's heap is bounded by its queue and batches; collecting is made to keep it
// there, and not to run for each few MiB.
const (
	recordGC     = 100
	recordMemory = 88 << 20
)

// beModest makes the process one that is little noticed beside an engine. One processor is
// enough for some 200,000 messages a second. With more of them a message costs half as
// much again, since rows go from one processor's cache to the other's and the scheduler
// looks for work; whoever has more messages sets GOMAXPROCS.
func (a *app) beModest() {
	debug.SetGCPercent(recordGC)
	debug.SetMemoryLimit(recordMemory)
	if a.getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// errUnread is the error of a report that nobody reads.
var errUnread = errors.New("nobody reads it, so the report was given up; the manifest has all of it")

// bePatient keeps the streams from stopping the recorder. What it returns is called at the
// end: it waits for whoever reads them, but not for long once the context has ended.
func (a *app) bePatient(ctx context.Context) (end func()) {
	stdout, stderr := a.stdout.w, a.stderr
	out, messages := &patient{w: stdout}, &patient{w: stderr, most: patientBytes}
	a.stdout.w, a.stderr = out, messages
	return func() {
		now := make(chan struct{})
		close(now)
		if done, _ := messages.flush(now, stderrWithin); done { // with standard error gone there is nowhere left to say so
			a.stderr = stderr
		}
		done, err := out.flush(ctx.Done(), stdoutWithin)
		if !done {
			err = errUnread
		}
		if a.stdout.err == nil {
			a.stdout.err = err
		}
		a.stdout.w = stdout
	}
}

// allFaults is one usage error for everything that is wrong with the options.
func allFaults(policy error, more []string) error {
	var own *exitcode.Error
	if policy != nil && (!errors.As(policy, &own) || own.Code != exitcode.Usage) {
		return policy
	}
	if own != nil {
		more = append([]string{own.Message}, more...)
	}
	if len(more) == 0 {
		return nil
	}
	return usage(strings.Join(more, "; "))
}

// check judges the options and returns the endpoints, or everything that is wrong.
func (f *recordFlags) check(cmd *cobra.Command, policy trace.Policy) (endpoints []subscribe.Endpoint, faults []string) {
	faults = f.bounds(cmd)
	for _, name := range []string{"namespace", "component", "producer-id", "host"} {
		if text := cmd.Flag(name).Value.String(); isSet(cmd, name) && strings.TrimSpace(text) == "" {
			faults = append(faults, "--"+name+" is blank")
		}
	}
	if f.metricsListen != "" {
		if err := checkListen(f.metricsListen); err != nil {
			faults = append(faults, "--metrics-listen: "+err.Error())
		}
	}
	if dir := policy.Output; strings.HasSuffix(dir, "/") {
		faults = append(faults, fmt.Sprintf("--output %s is a directory; add a name: %srun", dir, dir))
	}
	endpoints, more := f.sources(cmd, policy)
	return endpoints, append(faults, more...)
}

// bounds judges what ends a recording.
func (f *recordFlags) bounds(cmd *cobra.Command) (faults []string) {
	for _, b := range []struct {
		flag, needs string
		positive    bool
	}{
		{"for", "a duration of more than 0", f.duration > 0},
		{"max-rows", "a whole number of 1 or more", f.maxRows > 0},
		{"require-first", "a duration of more than 0", f.requireFirst > 0},
	} {
		switch fault := faultOf(cmd, b.flag); {
		case fault != "":
			faults = append(faults, fault)
		case isSet(cmd, b.flag) && !b.positive:
			faults = append(faults, fmt.Sprintf("--%s is %s: it takes %s", b.flag, cmd.Flag(b.flag).Value, b.needs))
		}
	}
	return faults
}

// ranged tells whether ranks at the base port are recorded: when they are asked for, and
// when nothing else is.
func (f *recordFlags) ranged(cmd *cobra.Command) bool {
	return isSet(cmd, "host") || isSet(cmd, "base-port") || (len(f.endpoints) == 0 && f.ipcBase == "")
}

// sources returns the endpoints that the options name.
func (f *recordFlags) sources(cmd *cobra.Command, policy trace.Policy) (list []subscribe.Endpoint, faults []string) {
	defaults := subscribe.Endpoint{Namespace: f.namespace, Component: f.component, Producer: f.producer}
	add := func(flag string, endpoints []subscribe.Endpoint, err error) {
		if err != nil {
			faults = append(faults, flag+": "+err.Error())
		}
		list = append(list, endpoints...)
	}
	for _, text := range f.endpoints {
		e, err := subscribe.ParseEndpoint(text, defaults)
		add("--endpoint", []subscribe.Endpoint{e}, err)
	}
	ranks, err := artifact.ParseRanks(f.ranks)
	switch {
	case err != nil:
		add("--ranks", nil, err)
	case isSet(cmd, "ranks") && !f.ranged(cmd) && f.ipcBase == "":
		faults = append(faults, "--ranks has no place with --endpoint alone: add --host, --base-port or --ipc-base")
	default:
		if f.ipcBase != "" {
			endpoints, err := subscribe.IPC(f.ipcBase, ranks, defaults)
			add("--ipc-base", endpoints, err)
		}
		if f.ranged(cmd) && policy.BasePort != 0 {
			endpoints, err := subscribe.Range(f.host, policy.BasePort, ranks, defaults)
			add("--ranks", endpoints, err)
		}
	}
	return list, append(faults, repeated(list)...)
}

// repeated says which addresses are there more than once: their rows would be, too.
func repeated(list []subscribe.Endpoint) (faults []string) {
	seen := map[string]int{}
	for _, e := range list {
		if seen[e.Address]++; seen[e.Address] == 2 && e.Address != "" {
			faults = append(faults, fmt.Sprintf("the endpoint %s is there twice, so its rows would be", e.Address))
		}
	}
	return faults
}

// warnOfPorts warns of ports at which no publisher will be, or not always.
func (a *app) warnOfPorts(cmd *cobra.Command, flags recordFlags, policy trace.Policy, endpoints []subscribe.Endpoint) {
	ephemeral, err := trace.EphemeralPorts()
	known := err == nil
	if known {
		a.warnOfEphemeral(endpoints[:len(flags.endpoints)], ephemeral)
	}
	ranks, err := artifact.ParseRanks(flags.ranks)
	if err != nil || !flags.ranged(cmd) {
		return
	}
	size := slices.Max(ranks) + 1
	for _, e := range endpoints[:len(flags.endpoints)] {
		if host, port, ok := tcp(e.Address); ok && sameHost(host, flags.host) {
			if text := trace.NotAPublisher(port, policy.BasePort, size); text != "" {
				a.warn(e.Address + ": " + text)
			}
		}
	}
	if !local(flags.host) {
		return // the range is this host's
	}
	block, err := trace.BlockPorts(policy.BasePort, size)
	if err != nil || !known {
		return
	}
	if text := trace.EphemeralOverlap(block, ephemeral); text != "" {
		a.warn(text + " For these ports that is " + freeBase(block, ephemeral) + ".")
	}
}

// warnOfEphemeral warns, once, of explicit endpoints on this host whose ports outbound
// connections can take.
func (a *app) warnOfEphemeral(endpoints []subscribe.Endpoint, ephemeral trace.Ports) {
	const shown = 8
	var addresses []string
	for _, e := range endpoints {
		if host, port, ok := tcp(e.Address); ok && local(host) && ephemeral.Contains(port) {
			addresses = append(addresses, e.Address)
		}
	}
	if n := len(addresses); n > shown {
		addresses = append(addresses[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	if len(addresses) > 0 {
		a.warn(fmt.Sprintf("%s: in this host's ephemeral port range %s; an outbound connection can take such a port first and the publisher bind then fails"+
			" intermittently. Have publishers bind ports below %d.", strings.Join(addresses, ", "), ephemeral, ephemeral.First))
	}
}

// tcp returns the host and the port of a TCP endpoint.
func tcp(address string) (host string, port int, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "tcp" {
		return "", 0, false
	}
	port, err = strconv.Atoi(u.Port())
	return u.Hostname(), port, err == nil
}

// sameHost tells whether two hosts are one for certain. All that are this one are.
func sameHost(a, b string) bool {
	a, b = strings.Trim(a, "[]"), strings.Trim(b, "[]")
	if local(a) && local(b) || strings.EqualFold(a, b) {
		return true
	}
	x, y := net.ParseIP(a), net.ParseIP(b)
	return x != nil && x.Equal(y)
}

// local tells whether a host is this one for certain.
func local(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// checkListen judges an address to listen on.
func checkListen(address string) error {
	_, port, err := net.SplitHostPort(address)
	number, notNumber := strconv.ParseUint(port, 10, 16)
	if err != nil || notNumber != nil || port != strconv.FormatUint(number, 10) {
		return fmt.Errorf("%q is not HOST:PORT with a port from 0 to 65535", address)
	}
	return nil
}

// The limits of the metrics server.
const (
	metricsTimeout = 10 * time.Second // for a request, and for its answer
	metricsIdle    = time.Minute
	metricsHeader  = 16 << 10
	metricsDrain   = 200 * time.Millisecond
)

// serveMetrics serves the recorder's metrics until the context ends. The channel has the
// outcome then, nil at once when no address is given.
func (a *app) serveMetrics(ctx context.Context, address string, r *record.Recorder, line *liveLine) (<-chan error, error) {
	outcome := make(chan error, 1)
	if address == "" {
		outcome <- nil
		return outcome, nil
	}
	listener, err := net.Listen(network(address), address)
	if err != nil {
		return nil, &exitcode.Error{Code: exitcode.Failed, Message: "cannot listen on " + address + ": " + bareListen(err), Hint: "choose another address with --metrics-listen", Err: err}
	}
	if bound, ok := listener.Addr().(*net.TCPAddr); ok && !bound.IP.IsLoopback() {
		a.warn("the address of the metrics is not a loopback one, and there is no authentication: whoever reaches it can read them")
	}
	line.say("metrics at http://" + listener.Addr().String() + "/metrics")
	server := &http.Server{
		Handler: r.Handler(), ErrorLog: log.New(line, "", 0),
		ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: metricsIdle, MaxHeaderBytes: metricsHeader,
	}
	go func() {
		err := serve.Run(ctx, server, listener, metricsDrain)
		if errors.Is(err, serve.ErrCutOff) {
			err = nil // the recording is over, and with it its metrics
		}
		if err != nil {
			line.warn("the metrics are not served any more: " + err.Error())
		}
		outcome <- err
	}()
	return outcome, nil
}
