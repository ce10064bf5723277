package subscribe_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/internal/porttest"
	"github.com/fpm-project/fpm/internal/zmqtest"
	"github.com/fpm-project/fpm/trace/subscribe"
	"github.com/fpm-project/fpm/trace/wire"
)

// The tests here have a publisher on libzmq, in Python, as the other side.

// program is a running publisher.
type program struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Writer
	out bytes.Buffer
}

// story is what a publisher says at its end about one rank.
type story struct {
	Rank      int
	Sent, Bad int
	Next      uint64
}

// publish starts a publisher, and lets it send once all who watch it are connected: each
// gets the first message, however long either side takes, and the last one.
func publish(t *testing.T, watches []*watch, args ...string) *program {
	t.Helper()
	p := bind(t, append(args, "--await", "--linger", strconv.Itoa(int(patience.Milliseconds())))...)
	for _, w := range watches {
		w.event(subscribe.Connected)
	}
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
	return p
}

// bind starts a publisher and waits until its sockets are bound.
func bind(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{t: t, cmd: exec.Command(zmqtest.Python, append([]string{"../testdata/fpm_pub.py"}, args...)...)}
	p.cmd.Stdout = &p.out
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(stderr).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("the publisher said %q, %v", line, err)
	}
	return p
}

// kill ends the publisher as kill -9 does.
func (p *program) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// stories waits for the publisher's end and returns what it says.
func (p *program) stories() (list []story) {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatal(err)
	}
	for d := json.NewDecoder(&p.out); d.More(); {
		var s story
		if err := d.Decode(&s); err != nil {
			p.t.Fatal(err)
		}
		list = append(list, s)
	}
	return list
}

// heard is what came from an endpoint, judged.
type heard struct {
	passes   []wire.FPM
	rejected map[string]int
}

// hearAll takes messages until so many came, accepted or not.
func (w *watch) hearAll(n int) heard {
	w.t.Helper()
	h := heard{rejected: map[string]int{}}
	var d wire.Decoder
	for range n {
		f, _, err := d.Decode(nil, w.message())
		var rejected *wire.RejectError
		switch {
		case errors.As(err, &rejected):
			h.rejected[rejected.Reason.String()]++
		case err != nil:
			w.t.Fatal(err)
		default:
			h.passes = append(h.passes, f)
		}
	}
	return h
}

// whole checks that the passes are those of one rank, all and in order.
func (h heard) whole(t *testing.T, rank, n int) {
	t.Helper()
	for i, f := range h.passes {
		if f.CounterID != int64(i) || f.DPRank != int64(rank) || f.WorkerID != "7587890123456789" {
			t.Fatalf("rank %d: message %d is %s", rank, i, f.JSON)
		}
	}
	if len(h.passes) != n || len(h.rejected) > 0 {
		t.Errorf("rank %d: %d of %d, rejected %v", rank, len(h.passes), n, h.rejected)
	}
}

// ranges returns a TCP and an IPC engine of n ranks: the publisher's base and the
// endpoints.
func ranges(t *testing.T, n int) map[string][]subscribe.Endpoint {
	var ranks []int
	for rank := range n {
		ranks = append(ranks, rank)
	}
	base := porttest.Row(t, n)
	tcp, err := subscribe.Range("127.0.0.1", base, ranks, subscribe.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fpm")
	ipc, err := subscribe.IPC(path, ranks, subscribe.Endpoint{})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]subscribe.Endpoint{fmt.Sprintf("tcp://127.0.0.1:%d", base): tcp, "ipc://" + path: ipc}
}

// one starts a subscription to a publisher of one rank that is yet to come, and returns it
// with the publisher's base.
func one(t *testing.T) (*watch, string) {
	path := filepath.Join(t.TempDir(), "fpm")
	return start(t, subscribe.Endpoint{Address: "ipc://" + path + ".0"}, quick()), "ipc://" + path
}

// Every message of a publisher that starts late arrives, over many ranks.
func TestLibzmqRanks(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	const ranks, count = 8, 300
	for base, endpoints := range ranges(t, ranks) {
		t.Run(base[:3], func(t *testing.T) {
			t.Parallel()
			var watches []*watch
			for _, e := range endpoints {
				watches = append(watches, start(t, e, quick()))
			}
			publish(t, watches, "--base", base, "--ranks", strconv.Itoa(ranks), "--count", strconv.Itoa(count), "--rate", "500")
			for rank, w := range watches {
				w.hearAll(count).whole(t, rank, count)
			}
		})
	}
}

// A burst is faster than a publisher's queue; what it drops shows as gaps, and nothing
// comes twice or out of order.
func TestLibzmqBurst(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	w, base := one(t)
	p := publish(t, []*watch{w}, "--base", base, "--burst", "--count", "20000")
	next := p.stories()[0].Next
	w.event(subscribe.Disconnected)
	received := len(w.messages)
	h := w.hearAll(received)
	last := int64(-1)
	for _, f := range h.passes {
		if f.CounterID <= last {
			t.Fatalf("%d came behind %d", f.CounterID, last)
		}
		last = f.CounterID
	}
	if len(h.rejected) > 0 || received < 1000 || last >= int64(next) {
		t.Errorf("%d of %d received up to %d, rejected %v", received, next, last, h.rejected)
	}
	t.Logf("%d of %d messages of a burst", received, next)
}

// Each kind of bad message is counted under its reason, and costs no good one.
func TestLibzmqBadMessages(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	for kind, want := range map[string]wire.Reason{
		"frames": wire.Frames, "sequence": wire.Sequence, "garbage": wire.MessagePack, "array": wire.NotMap,
		"version": wire.Version, "negative": wire.Field, "nan": wire.MessagePack, "bool": wire.Field,
		"truncated": wire.MessagePack, "trailing": wire.MessagePack, "binkey": wire.MessagePack, "huge": wire.MessagePack,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, base := one(t)
			p := publish(t, []*watch{w}, "--base", base, "--count", "200", "--rate", "2000", "--bad", kind)
			h := w.hearAll(200)
			s := p.stories()[0]
			if s.Bad != 20 || len(h.passes) != s.Sent {
				t.Errorf("%d of %d good messages; the publisher sent %d bad ones", len(h.passes), s.Sent, s.Bad)
			}
			if diff := cmp.Diff(map[string]int{want.String(): s.Bad}, h.rejected); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLibzmqVariants(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	t.Run("neither version nor counter", func(t *testing.T) {
		t.Parallel()
		w, base := one(t)
		publish(t, []*watch{w}, "--base", base, "--count", "50", "--rate", "500", "--v0")
		if diff := cmp.Diff(map[string]int{"version": 50}, w.hearAll(50).rejected); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("unknown keys", func(t *testing.T) {
		t.Parallel()
		w, base := one(t)
		publish(t, []*watch{w}, "--base", base, "--count", "50", "--rate", "500", "--extra")
		h := w.hearAll(50)
		h.whole(t, 0, 50)
		for _, f := range h.passes {
			if !bytes.Contains(f.JSON, []byte(`"per_request_tokens":[1,2.5,null,"x"]`)) || !bytes.HasSuffix(f.JSON, []byte(`,"timing_scope":"cuda_event","big":9223372036854775815}`)) {
				t.Fatalf("%s", f.JSON)
			}
		}
	})
	t.Run("skipped numbers", func(t *testing.T) {
		t.Parallel()
		w, base := one(t)
		publish(t, []*watch{w}, "--base", base, "--count", "250", "--rate", "1000", "--skip", "7")
		for i, f := range w.hearAll(250).passes {
			if want := int64(i + i/100*7); f.CounterID != want {
				t.Fatalf("message %d has the number %d; want %d", i, f.CounterID, want)
			}
		}
	})
	t.Run("heartbeats", func(t *testing.T) {
		t.Parallel()
		// A machine may stand still for longer than the first of them; who answers no PING is
		// dropped each time.
		for _, within := range []time.Duration{2 * time.Second, 10 * time.Second, 30 * time.Second} {
			if answers(t, within) {
				return
			}
		}
		t.Error("the publisher dropped the connection")
	})
	t.Run("bare IPC name", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		list, err := subscribe.IPC(filepath.Join(dir, "bare.0"), []int{0}, subscribe.Endpoint{})
		if err != nil {
			t.Fatal(err)
		}
		w := start(t, list[0], quick())
		publish(t, []*watch{w}, "--base", "ipc://"+filepath.Join(dir, "bare"), "--count", "20", "--rate", "100")
		w.hearAll(20).whole(t, 0, 20)
	})
}

// answers tells whether a publisher keeps a connection that it drops when a PING has no
// answer within a time: it sends for half as long again.
func answers(t *testing.T, within time.Duration) bool {
	t.Helper()
	count := int(within * 3 / 2 / (100 * time.Millisecond))
	w, base := one(t)
	publish(t, []*watch{w}, "--base", base, "--count", strconv.Itoa(count), "--rate", "10",
		"--heartbeat", "100", "--heartbeat-timeout", strconv.Itoa(int(within.Milliseconds())))
	late := time.NewTimer(within*3/2 + patience)
	defer late.Stop()
	for ended := false; !ended; {
		select {
		case e := <-w.events:
			ended = e.Kind == subscribe.Disconnected
		case <-late.C:
			t.Fatal("the connection does not end")
		}
	}
	if len(w.messages) < count {
		return false
	}
	w.hearAll(count).whole(t, 0, count)
	return true
}

// A publisher is killed, replaced by a web server, and comes back as another worker.
func TestLibzmqKilledAndReplaced(t *testing.T) {
	zmqtest.NeedLibzmq(t)
	port := strconv.Itoa(porttest.Row(t, 1))
	w := start(t, subscribe.Endpoint{Address: "tcp://127.0.0.1:" + port}, quick())
	base := "tcp://127.0.0.1:" + port
	p := publish(t, []*watch{w}, "--base", base, "--seconds", "100")
	first := w.hearAll(20)
	first.whole(t, 0, 20)
	p.kill()
	w.event(subscribe.Disconnected)

	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Second}
	served := make(chan error)
	go func() { served <- server.Serve(l) }()
	for !strings.Contains(w.event(subscribe.Failed).Err.Error(), "does not speak ZMTP") {
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	<-served

	for len(w.messages) > 0 {
		<-w.messages // of the first worker, read before it was killed
	}
	publish(t, []*watch{w}, "--base", base, "--count", "20", "--worker", "another")
	for i, f := range w.hearAll(20).passes {
		if f.WorkerID != "another" || f.CounterID != int64(i) {
			t.Fatalf("message %d: %s", i, f.JSON)
		}
	}
}
