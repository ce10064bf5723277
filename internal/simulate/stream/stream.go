// Package stream publishes synthetic forward-pass metrics over ZMQ, as the workers of a
// fleet do while they serve: for demonstrations, tests and load.
//
// A fleet has workers, a worker has data-parallel ranks, and a rank has a PUB socket of
// its own with a counter of its own. What a rank publishes is a story that follows from
// the seed, the worker and the rank alone: requests come by day and in bursts, wait, are
// prefilled, decode for a while and end; by night there is a heartbeat a second. A clock
// only decides when the next message of the story is due. So two runs with one seed say
// the same, at any rate.
//
// A message has the three frames of an engine: an empty topic, the sequence, the payload
// in MessagePack. Messages can be left out, be wrong, and start again from 0, so that what
// a recorder says of a stream can be compared with what was done to it: see [Result].
package stream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The largest fleets. Beyond them one is a mistake of the caller.
const (
	MaxWorkers = 1 << 12
	MaxRanks   = 1 << 12
	MaxSockets = 1 << 14
	MaxRate    = 1e6
)

// The defaults of [Options].
const (
	DefaultHighWater = 1000 // as libzmq's
	DefaultDay       = 5 * time.Minute
	DefaultLinger    = 2 * time.Second
)

// Options describes a fleet and what becomes of its messages.
type Options struct {
	Workers   int
	Ranks     int      // data-parallel ranks of each worker
	Addresses []string // tcp://HOST:PORT or ipc://PATH, one for each rank of each worker; see [TCP] and [IPC]
	WorkerID  string   // of the only worker; with several, "-0", "-1" and so on behind it; numbers if empty

	Load Load
	Rate float64       // forward passes per second and rank while it is busy; 0 is as fast as can be
	Day  time.Duration // of a diurnal load
	Seed uint64        // another seed is another story

	For   time.Duration // stop after so long; 0 is never
	Count uint64        // stop each rank after so many messages, good, bad or left out; 0 is never
	Await bool          // publish nothing until every rank has a subscriber

	RestartEvery time.Duration // stop a worker and start it again, with counters from 0; 0 is never
	Drop         float64       // part of the messages that get a number and are not sent
	Bad          Bad           // make every tenth message wrong; none if empty

	HighWater int  // messages queued for a subscriber; more are lost to it
	Lossless  bool // wait for a subscriber whose queue is full, which no engine does
	Linger    time.Duration

	Ready func([]Result) // is told the publishers when all of them can be connected to; may be nil
}

// Result is what one rank has published.
type Result struct {
	Worker    string `json:"worker"`
	Rank      int    `json:"rank"`
	Address   string `json:"address"`
	Sent      uint64 `json:"sent"`      // good messages, heartbeats included
	Heartbeat uint64 `json:"heartbeat"` // heartbeats
	Bad       uint64 `json:"bad"`       // messages that were wrong
	Dropped   uint64 `json:"dropped"`   // messages that got a number and were not sent
	Lost      uint64 `json:"lost"`      // messages for which a subscriber's queue had no room, for each subscriber
	Restarts  uint64 `json:"restarts"`
	Next      uint64 `json:"next"` // the next counter
}

// An OptionError says that no fleet has such an option.
type OptionError struct {
	Option  string // the option's name in lower case
	Value   string
	Problem string // what a valid value is
}

func (e *OptionError) Error() string { return e.Option + " " + e.Value + ": " + e.Problem }

func (o *Options) check() error {
	bad := func(option string, value any, problem string) error {
		return &OptionError{option, fmt.Sprint(value), problem}
	}
	switch {
	case o.Workers < 1 || o.Workers > MaxWorkers:
		return bad("workers", o.Workers, fmt.Sprintf("must be from 1 to %d", MaxWorkers))
	case o.Ranks < 1 || o.Ranks > MaxRanks:
		return bad("ranks", o.Ranks, fmt.Sprintf("must be from 1 to %d", MaxRanks))
	case o.Workers*o.Ranks > MaxSockets:
		return bad("workers", o.Workers, fmt.Sprintf("must have %d ranks at most, all together", MaxSockets))
	case len(o.Addresses) != o.Workers*o.Ranks:
		return bad("endpoint", fmt.Sprintf("%d times", len(o.Addresses)), fmt.Sprintf("must be there %d times, once for each rank of each worker", o.Workers*o.Ranks))
	case !(o.Rate >= 0 && o.Rate <= MaxRate):
		return bad("rate", o.Rate, fmt.Sprintf("must be from 0 to %.0f", float64(MaxRate)))
	case !slices.Contains(Loads(), o.Load):
		return bad("load", fmt.Sprintf("%q", o.Load), "must be one of "+names(Loads()))
	case o.Load == Diurnal && o.Day < time.Second:
		return bad("day", o.Day, "must have a second or more")
	case o.For < 0:
		return bad("for", o.For, "must not be negative")
	case o.RestartEvery < 0:
		return bad("restart-every", o.RestartEvery, "must not be negative")
	case !(o.Drop >= 0 && o.Drop < 1):
		return bad("drop", o.Drop, "must be a part of 0 or more, and less than 1")
	case o.Bad != "" && !slices.Contains(BadKinds(), o.Bad):
		return bad("bad", fmt.Sprintf("%q", o.Bad), "must be one of "+names(BadKinds()))
	case o.HighWater < 1:
		return bad("high-water", o.HighWater, "must be 1 or more")
	case o.Linger < 0:
		return bad("linger", o.Linger, "must not be negative")
	case len(o.WorkerID) > 1<<10:
		return bad("worker-id", fmt.Sprintf("of %d bytes", len(o.WorkerID)), "must have 1024 bytes at most")
	}
	return nil
}

func names[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return strings.Join(texts, ", ")
}

// TCP returns n addresses of ports from base on. A base of 0 leaves the choice to the
// system, port by port.
func TCP(host string, base, n int) []string {
	list := make([]string, n)
	for i := range list {
		port := base
		if base > 0 {
			port += i
		}
		list[i] = "tcp://" + net.JoinHostPort(host, fmt.Sprint(port))
	}
	return list
}

// IPC returns n addresses of Unix domain sockets: base with .0, .1 and so on behind it.
func IPC(base string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("ipc://%s.%d", strings.TrimPrefix(base, "ipc://"), i)
	}
	return list
}

// listen binds an address.
func listen(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "ipc://"); ok && path != "" {
		l, err := net.Listen("unix", path)
		if errors.Is(err, syscall.EADDRINUSE) && abandoned(path) && os.Remove(path) == nil {
			return net.Listen("unix", path)
		}
		return l, err
	}
	host, ok := strings.CutPrefix(address, "tcp://")
	if _, _, err := net.SplitHostPort(host); !ok || err != nil {
		return nil, &OptionError{"endpoint", fmt.Sprintf("%q", address), "must be tcp://HOST:PORT or ipc://PATH"}
	}
	return net.Listen("tcp", strings.TrimPrefix(host, "*"))
}

// abandoned tells whether a path is a socket that nobody listens on, as a process leaves
// that is killed.
func abandoned(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}

// Run publishes until the context is done, the time is up, or every rank has published
// its count. It returns what was published, by worker and rank, also with an error, which
// is an *[OptionError] for an option out of range or that of the network; being stopped
// is none.
func Run(ctx context.Context, opt Options) ([]Result, error) {
	if err := opt.check(); err != nil {
		return nil, err
	}
	if opt.For > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.For)
		defer cancel()
	}
	fleet, err := assemble(&opt)
	if err != nil {
		return nil, err
	}
	if opt.Ready != nil {
		opt.Ready(fleet.results())
	}
	err = fleet.run(ctx)
	return fleet.results(), err
}

type fleet []*worker

// assemble binds the sockets of every worker, or none.
func assemble(opt *Options) (fleet, error) {
	var f fleet
	for i := range opt.Workers {
		w := newWorker(opt, i)
		f = append(f, w)
		if err := w.bind(); err != nil {
			for _, w := range f {
				w.close(time.Now())
			}
			return nil, err
		}
	}
	return f, nil
}

func (f fleet) run(ctx context.Context) error {
	if len(f) > 0 && f[0].opt.Await && !f.await(ctx) {
		for _, w := range f {
			w.close(time.Now())
		}
		return nil
	}
	errs := make([]error, len(f))
	var all sync.WaitGroup
	for i, w := range f {
		all.Go(func() { errs[i] = w.run(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// await waits until every rank has a subscriber. It returns false when the context is
// done first.
func (f fleet) await(ctx context.Context) bool {
	for _, w := range f {
		for _, r := range w.ranks {
			select {
			case <-r.socket.joined:
			case <-ctx.Done():
				return false
			}
		}
	}
	return true
}

func (f fleet) results() (list []Result) {
	for _, w := range f {
		for _, r := range w.ranks {
			list = append(list, r.Result)
		}
	}
	return list
}

// rank is a publisher of forward passes.
type rank struct {
	Result
	source  *source
	due     pass // the next one
	message *message
	fate    *rand.Rand // decides what becomes of messages
	socket  *publisher // nil while the worker is down
}

func newRank(opt *Options, worker, number int) *rank {
	id := opt.WorkerID
	switch {
	case id == "":
		id = fmt.Sprint(7587890123456701 + worker) // as the runtime's connection ids are
	case opt.Workers > 1:
		id = fmt.Sprintf("%s-%d", id, worker)
	}
	r := &rank{
		Result:  Result{Worker: id, Rank: number, Address: opt.Addresses[worker*opt.Ranks+number]},
		source:  newSource(opt, worker, number),
		message: newMessage(id, number),
		fate:    rand.New(rand.NewPCG(^opt.Seed, uint64(worker)<<32|uint64(number))),
	}
	r.due = r.source.next()
	return r
}

// bind opens the rank's socket. A port that the system has chosen stays the rank's.
func (r *rank) bind(opt *Options) error {
	l, err := listen(r.Address)
	if err != nil {
		return err
	}
	if at, ok := l.Addr().(*net.TCPAddr); ok && strings.HasSuffix(r.Address, ":0") {
		r.Address = strings.TrimSuffix(r.Address, "0") + fmt.Sprint(at.Port)
	}
	r.socket = newPublisher(l, opt.HighWater, opt.Lossless)
	return nil
}

// spoilEvery is how many messages there are to one that is wrong.
const spoilEvery = 10

// publish publishes what is due, and makes the next pass due.
func (r *rank) publish(opt *Options) {
	counter := r.Next
	r.Next++
	wire := r.message.set(counter, &r.due)
	switch {
	case opt.Drop > 0 && r.fate.Float64() < opt.Drop:
		r.Dropped++
		wire = nil
	case opt.Bad != "" && counter%spoilEvery == spoilEvery-1:
		r.Result.Bad++
		wire = appendMessage(nil, r.message.spoil(opt.Bad, counter, r.fate)...)
	default:
		r.Sent++
		if r.due.heartbeat() {
			r.Heartbeat++
		}
	}
	if wire != nil {
		r.Lost += uint64(r.socket.send(wire))
	}
	r.due = r.source.next()
}

// done tells whether the rank has published its count.
func (r *rank) done(opt *Options) bool {
	return opt.Count > 0 && r.Sent+r.Result.Bad+r.Dropped >= opt.Count
}
