package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
)

const patience = time.Minute // for what happens at once if it happens at all

// options are those of a fleet of one rank on a port of the system's choice.
func options() Options {
	return Options{
		Workers: 1, Ranks: 1, Addresses: TCP("127.0.0.1", 0, 1), Load: Steady, Day: DefaultDay,
		HighWater: DefaultHighWater, Linger: patience, Await: true,
	}
}

// running is a fleet that publishes.
type running struct {
	ranks  []Result // as they were announced
	cancel context.CancelFunc
	ended  chan struct{}
	result []Result
	err    error
}

func start(t *testing.T, opt Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, ended: make(chan struct{})}
	ready := make(chan []Result, 1)
	opt.Ready = func(ranks []Result) { ready <- ranks }
	go func() {
		defer close(r.ended)
		r.result, r.err = Run(ctx, opt)
	}()
	t.Cleanup(func() { cancel(); <-r.ended })
	select {
	case r.ranks = <-ready:
	case <-r.ended:
		t.Fatalf("nothing is published: %v", r.err)
	}
	return r
}

// wait waits for the end and returns what was published.
func (r *running) wait(t *testing.T) []Result {
	t.Helper()
	select {
	case <-r.ended:
	case <-time.After(patience):
		t.Fatalf("still publishing:\n%s", stacks())
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.result
}

func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	network, at := "tcp", strings.TrimPrefix(address, "tcp://")
	if path, ok := strings.CutPrefix(address, "ipc://"); ok {
		network, at = "unix", path
	}
	conn, err := net.Dial(network, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// subscribe connects to an address as a subscriber of everything.
func subscribe(t *testing.T, address string) *zmq4.Conn {
	t.Helper()
	return subscribeOn(t, dial(t, address))
}

func subscribeOn(t testing.TB, raw net.Conn) *zmq4.Conn {
	t.Helper()
	conn, err := zmq4.Open(raw, null.Security(), zmq4.Sub, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SendMsg(zmq4.NewMsg([]byte{1})); err != nil {
		t.Fatal(err)
	}
	return conn
}

// counters reads messages up to the end of the connection.
func counters(t *testing.T, conn *zmq4.Conn) (list []uint64) {
	t.Helper()
	for {
		msg, err := conn.RecvMsg()
		if errors.Is(err, io.EOF) {
			conn.Close() // as subscribers do, and publishers wait for
			return list
		}
		if err != nil || len(msg.Frames) != 3 {
			t.Fatalf("after %d messages: %v, %d frames", len(list), err, len(msg.Frames))
		}
		list = append(list, binary.BigEndian.Uint64(msg.Frames[1]))
	}
}

func checkSequence(t *testing.T, list []uint64, n int) {
	t.Helper()
	if len(list) != n {
		t.Errorf("%d messages, want %d", len(list), n)
	}
	for i, counter := range list {
		if counter != uint64(i) {
			t.Fatalf("message %d has counter %d", i, counter)
		}
	}
}

// TestEverythingIsSentBeforeTheEnd is the trap of the library's own socket, which drops
// what is queued when it is closed.
func TestEverythingIsSentBeforeTheEnd(t *testing.T) {
	for _, address := range []string{"tcp://127.0.0.1:0", "ipc://" + filepath.Join(t.TempDir(), "fpm.0")} {
		opt := options()
		opt.Addresses, opt.Count, opt.HighWater = []string{address}, 20000, 20000
		r := start(t, opt)
		list := counters(t, subscribe(t, r.ranks[0].Address))
		checkSequence(t, list, 20000)
		got := r.wait(t)[0]
		if got.Sent != 20000 || got.Lost != 0 || got.Next != 20000 {
			t.Errorf("%+v", got)
		}
	}
}

func TestAddresses(t *testing.T) {
	if got := strings.Join(TCP("::1", 20380, 2), " "); got != "tcp://[::1]:20380 tcp://[::1]:20381" {
		t.Error(got)
	}
	if got := strings.Join(IPC("ipc:///tmp/f", 2), " "); got != "ipc:///tmp/f.0 ipc:///tmp/f.1" {
		t.Error(got)
	}
	if got := strings.Join(IPC("/tmp/f", 1), " "); got != "ipc:///tmp/f.0" {
		t.Error(got)
	}
}

// TestOneRankEach checks that every rank has a socket, a story and a count of its own.
func TestOneRankEach(t *testing.T) {
	opt := options()
	opt.Workers, opt.Ranks, opt.Count, opt.Rate = 2, 2, 30, 1000
	opt.Addresses = TCP("127.0.0.1", 0, 4)
	opt.WorkerID = "w"
	r := start(t, opt)
	var conns []*zmq4.Conn
	for _, rank := range r.ranks {
		conns = append(conns, subscribe(t, rank.Address))
	}
	for _, conn := range conns {
		checkSequence(t, counters(t, conn), 30)
	}
	for i, got := range r.wait(t) {
		want := Result{Worker: fmt.Sprintf("w-%d", i/2), Rank: i % 2, Address: r.ranks[i].Address, Sent: 30, Next: 30}
		if got != want {
			t.Errorf("rank %d: %+v, want %+v", i, got, want)
		}
	}
}

// TestMutePeersCostNothing has peers that never greet, never subscribe, or never read
// beside one that does everything right.
func TestMutePeersCostNothing(t *testing.T) {
	opt := options()
	opt.Count, opt.Rate, opt.HighWater = 50_000, 50_000, 50_000
	opt.Ranks, opt.Addresses = 2, TCP("127.0.0.1", 0, 2)
	r := start(t, opt)
	address := r.ranks[0].Address
	dial(t, address)
	if _, err := zmq4.Open(dial(t, address), null.Security(), zmq4.Sub, nil, false, nil); err != nil {
		t.Fatal(err)
	}
	deaf := subscribe(t, address)
	good := subscribe(t, address)
	other := subscribe(t, r.ranks[1].Address) // nothing was published before
	go func() {
		defer other.Close()
		for err := error(nil); err == nil; {
			_, err = other.RecvMsg()
		}
	}()
	list := counters(t, good) // of those after it has joined
	deaf.Close()              // its queue is full, and would be waited for
	r.wait(t)
	if len(list) == 0 {
		t.Fatal("no messages")
	}
	for i, counter := range list {
		if want := uint64(50_000 - len(list) + i); counter != want {
			t.Fatalf("message %d of %d has counter %d, want %d", i, len(list), counter, want)
		}
	}
}

// TestQueuesAreBounded has a subscriber that reads nothing: what it has no room for is
// counted and not kept.
func TestQueuesAreBounded(t *testing.T) {
	opt := options()
	opt.Count, opt.HighWater, opt.Linger = 200_000, 100, 50*time.Millisecond
	r := start(t, opt)
	conn := subscribe(t, r.ranks[0].Address)
	got := r.wait(t)[0]
	if got.Sent != 200_000 || got.Lost < 100_000 {
		t.Errorf("%+v", got)
	}
	conn.Close()
}

// TestWaiting checks that a lossless fleet loses nothing to a subscriber that is slower,
// and that it can be stopped while it waits for one that reads nothing.
func TestWaiting(t *testing.T) {
	opt := options()
	opt.Lossless, opt.HighWater, opt.Count = true, 10, 20000
	r := start(t, opt)
	checkSequence(t, counters(t, subscribe(t, r.ranks[0].Address)), 20000)
	if got := r.wait(t)[0]; got.Lost != 0 {
		t.Errorf("%+v", got)
	}

	opt.Count, opt.Linger = 0, 50*time.Millisecond
	r = start(t, opt)
	conn := subscribe(t, r.ranks[0].Address)
	if _, err := conn.RecvMsg(); err != nil { // it publishes, and soon waits
		t.Fatal(err)
	}
	r.cancel()
	r.wait(t)
}

func TestWhatIsDoneToMessages(t *testing.T) {
	opt := options()
	opt.Count, opt.Drop, opt.Bad, opt.Lossless = 10000, 0.1, BadSequence, true
	r := start(t, opt)
	conn := subscribe(t, r.ranks[0].Address)
	var good, bad, missing, next uint64
	for {
		msg, err := conn.RecvMsg()
		if err != nil {
			break
		}
		counter := next
		if len(msg.Frames[1]) == 8 {
			good++
			counter = binary.BigEndian.Uint64(msg.Frames[1])
		} else {
			bad++
			counter += (spoilEvery - 1 + spoilEvery - next%spoilEvery) % spoilEvery
		}
		missing += counter - next
		next = counter + 1
	}
	conn.Close()
	got := r.wait(t)[0]
	if got.Sent != good || got.Bad != bad || got.Dropped != missing+got.Next-next || got.Sent+got.Bad+got.Dropped != 10000 {
		t.Errorf("%d good, %d bad, %d missing: %+v", good, bad, missing, got)
	}
	if got.Dropped < 800 || got.Dropped > 1200 || got.Bad < 800 || got.Bad > 1000 {
		t.Errorf("not what was asked for: %+v", got)
	}
}

// TestRestart checks that a worker comes back at the same addresses with counters from 0.
func TestRestart(t *testing.T) {
	opt := options()
	opt.Rate, opt.RestartEvery = 1000, 100*time.Millisecond
	r := start(t, opt)
	address := r.ranks[0].Address
	first := counters(t, subscribe(t, address))
	if len(first) == 0 || first[0] != 0 {
		t.Fatalf("%d messages before the restart", len(first))
	}
	again(t, address)
	r.cancel()
	if got := r.wait(t)[0]; got.Restarts < 1 || got.Address != address || got.Next >= got.Sent {
		t.Errorf("%+v", got)
	}
}

// again waits until somebody publishes at an address. The worker may be between two lives,
// or end one at any moment.
func again(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); runtime.Gosched() {
		if raw, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp://")); err == nil && delivers(raw) {
			return
		}
	}
	t.Fatal("nobody publishes any more")
}

// delivers subscribes over a connection and tells whether a message comes before its end.
func delivers(raw net.Conn) bool {
	defer raw.Close()
	conn, err := zmq4.Open(raw, null.Security(), zmq4.Sub, nil, false, nil)
	if err != nil || conn.SendMsg(zmq4.NewMsg([]byte{1})) != nil {
		return false
	}
	_, err = conn.RecvMsg()
	return err == nil
}

// TestRudePeers has peers that send what no subscriber does. Each is cut off, and the
// next one is served.
func TestRudePeers(t *testing.T) {
	opt := options()
	opt.Rate = 1000
	r := start(t, opt)
	address := r.ranks[0].Address
	greeting := make([]byte, greetingBytes)
	copy(greeting, "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL")
	for name, text := range map[string]string{
		"HTTP":                  "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + strings.Repeat(" ", 100),
		"a frame of 2^62 bytes": string(greeting) + "\x06\x40\x00\x00\x00\x00\x00\x00\x00",
		"a frame of 2^40 bytes": string(greeting) + "\x02\x00\x00\x01\x00\x00\x00\x00\x00",
		"a key beyond the end":  string(greeting) + "\x04\x0a\x05READY\xff\x00\x00\x00",
		"a value without size":  string(greeting) + "\x04\x12\x05READY\x0bSocket-Type",
		"an empty READY":        string(greeting) + "\x04\x00",
		"reserved flags":        string(greeting) + "\xf8\x01x",
		"frames without end":    string(greeting) + strings.Repeat("\x01\x00", 100),
		"another mechanism":     strings.Replace(string(greeting), "NULL", "CURVE", 1),
	} {
		conn := dial(t, address)
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: not cut off", name)
		}
	}
	if _, err := subscribe(t, address).RecvMsg(); err != nil {
		t.Errorf("after the rude ones: %v", err)
	}
}

// TestCommands checks the commands of ZMTP 3.1: subscriptions, and pings, which have to be
// answered with their context.
func TestCommands(t *testing.T) {
	opt := options()
	opt.Load = Idle // nothing comes between
	r := start(t, opt)
	raw := dial(t, r.ranks[0].Address)
	conn, err := zmq4.Open(raw, null.Security(), zmq4.Sub, nil, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SendCmd("PING", []byte("\x00\x0acontext")); err != nil {
		t.Fatal(err)
	}
	pong := make([]byte, 2+5+7)
	if _, err := io.ReadFull(raw, pong); err != nil || string(pong) != "\x04\x0c\x04PONGcontext" {
		t.Fatalf("%q, %v", pong, err)
	}
	if err := conn.SendCmd("SUBSCRIBE", nil); err != nil {
		t.Fatal(err)
	}
	if msg, err := conn.RecvMsg(); err != nil || len(msg.Frames) != 3 {
		t.Fatalf("%v, %v", msg, err)
	}
	if err := conn.SendCmd("CANCEL", nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.SendCmd("PING", []byte("\x00\x0a")); err != nil {
		t.Fatal(err)
	}
	for {
		msg, err := conn.RecvMsg()
		if err != nil {
			t.Fatal(err)
		}
		if msg.Type == zmq4.CmdMsg {
			break // cancelled before it
		}
	}
	r.cancel()
	if list := counters(t, conn); len(list) != 0 {
		t.Errorf("%d messages after the end of the subscription", len(list))
	}
}

func TestSockets(t *testing.T) {
	dir := t.TempDir()
	// A file is never replaced.
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	opt := options()
	opt.Addresses = []string{"ipc://" + file}
	if _, err := Run(t.Context(), opt); err == nil {
		t.Error("a file was taken for a socket")
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	// Nor is a socket of somebody who listens.
	socket := filepath.Join(dir, "socket")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	opt.Addresses = []string{"ipc://" + socket}
	if _, err := Run(t.Context(), opt); err == nil {
		t.Error("the socket of another was taken")
	}
	// One that a killed process has left is.
	l.SetUnlinkOnClose(false)
	l.Close()
	start(t, opt).cancel()
}

func TestNothingIsLeftRunning(t *testing.T) {
	opt := options()
	opt.Count, opt.Ranks, opt.Addresses = 100, 3, TCP("127.0.0.1", 0, 3)
	r := start(t, opt)
	var conns []*zmq4.Conn
	for _, rank := range r.ranks {
		conns = append(conns, subscribe(t, rank.Address))
	}
	for _, conn := range conns {
		counters(t, conn)
	}
	r.wait(t)
	for deadline := time.Now().Add(patience); ; {
		all := stacks()
		if !strings.Contains(all, "stream.(*publisher)") && !strings.Contains(all, "stream.(*peer)") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still running:\n%s", all)
		}
		runtime.Gosched()
	}
}

func TestBindFailureClosesTheOthers(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	path := filepath.Join(t.TempDir(), "first")
	opt := options()
	opt.Ranks, opt.Addresses = 2, []string{"ipc://" + path, "tcp://" + taken.Addr().String()}
	if _, err := Run(t.Context(), opt); err == nil {
		t.Error("a port was taken twice")
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the first socket is still there: %v", err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"workers 0":         func(o *Options) { o.Workers = 0 },
		"ranks -1":          func(o *Options) { o.Ranks = -1 },
		"workers 4096":      func(o *Options) { o.Workers, o.Ranks = 4096, 4096 },
		"endpoint 2 times":  func(o *Options) { o.Addresses = make([]string, 2) },
		"rate -1":           func(o *Options) { o.Rate = -1 },
		"rate NaN":          func(o *Options) { o.Rate = math.NaN() },
		`load "busy"`:       func(o *Options) { o.Load = "busy" },
		"day 1ms":           func(o *Options) { o.Load, o.Day = Diurnal, time.Millisecond },
		"for -1s":           func(o *Options) { o.For = -time.Second },
		"restart-every -1s": func(o *Options) { o.RestartEvery = -time.Second },
		"drop 1":            func(o *Options) { o.Drop = 1 },
		`bad "luck"`:        func(o *Options) { o.Bad = "luck" },
		"high-water 0":      func(o *Options) { o.HighWater = 0 },
		"linger -1s":        func(o *Options) { o.Linger = -time.Second },
		`endpoint "udp://"`: func(o *Options) { o.Addresses = []string{"udp://"} },
		`endpoint "ipc://"`: func(o *Options) { o.Addresses = []string{"ipc://"} },
		"worker-id of 2000": func(o *Options) { o.WorkerID = strings.Repeat("x", 2000) },
	} {
		opt := options()
		change(&opt)
		_, err := Run(t.Context(), opt)
		var refused *OptionError
		if !errors.As(err, &refused) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
