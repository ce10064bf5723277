package subscribe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fpm-project/fpm/trace/subscribe"
)

// The tests here run on a clock of their own, which stands while anything is to do. A
// goroutine that stays behind fails them.

// dialTo gives out one connection.
func dialTo(c net.Conn) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return c, nil }
}

var errRefused = fmt.Errorf("connect: %w", syscall.ECONNREFUSED)

// pipes gives out connections whose other ends it sends to the test.
func pipes() (options subscribe.Options, peers chan net.Conn) {
	peers = make(chan net.Conn, 1000)
	return subscribe.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
		one, other := net.Pipe()
		peers <- other
		return one, nil
	}}, peers
}

var somewhere = subscribe.Endpoint{Address: "tcp://there:20380"}

// The pause between attempts grows from 100 ms to 5 s and stays there.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		o := subscribe.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			at = append(at, time.Now())
			return nil, errRefused
		}}
		w := start(t, somewhere, o)
		time.Sleep(time.Minute)
		w.end()
		want := 100 * time.Millisecond
		for i := range at[1:] {
			if d := at[i+1].Sub(at[i]); d > want || d < want*3/4 {
				t.Errorf("pause %d is %v; want up to %v", i+1, d, want)
			}
			want = min(2*want, 5*time.Second)
		}
		if len(at) < 15 || len(at) > 22 {
			t.Errorf("%d attempts in a minute", len(at))
		}
	})
}

// Peers that close at once cause no storm, whether during the handshake, behind it, or
// after a message.
func TestNoStorm(t *testing.T) {
	for name, behave := range map[string]func(t *testing.T, c net.Conn){
		"at once": func(t *testing.T, c net.Conn) {},
		"in the greeting": func(t *testing.T, c net.Conn) {
			_, _ = c.Read(make([]byte, 64))
			_, _ = c.Write(greeting()[:20])
		},
		"after READY":     func(t *testing.T, c net.Conn) { welcome(t, c) },
		"after a message": func(t *testing.T, c net.Conn) { welcome(t, c).send(pass(1, nil)) },
		"in a frame":      func(t *testing.T, c net.Conn) { welcome(t, c).send(pass(1, []byte("abc"))[:14]) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, peers := pipes()
				w := start(t, somewhere, o)
				connections := 0
				for end := time.After(time.Minute); ; {
					select {
					case c := <-peers:
						connections++
						behave(t, c)
						_ = c.Close()
						continue
					case <-end:
					}
					break
				}
				w.end()
				if connections < 15 || connections > 22 {
					t.Errorf("%d connections in a minute", connections)
				}
			})
		})
	}
}

// After a connection that stood and brought messages the next pause is short; a mute one
// does not count.
func TestBackOffStartsAnew(t *testing.T) {
	for _, c := range []struct {
		name    string
		message bool
		want    time.Duration
	}{{"messages", true, 100 * time.Millisecond}, {"no messages", false, 5 * time.Second}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, peers := pipes()
				w := start(t, somewhere, o)
				for range 10 {
					_ = (<-peers).Close()
				}
				p := welcome(t, <-peers)
				if c.message {
					p.send(pass(1, nil))
				}
				time.Sleep(time.Minute)
				_ = p.Close()
				e := w.event(subscribe.Disconnected)
				if e.RetryIn > c.want || e.RetryIn < c.want*3/4 || e.For < time.Minute {
					t.Errorf("%+v", e)
				}
				w.end()
			})
		})
	}
}

// kinds returns the events until now, failures left out.
func (w *watch) kinds() (all []string) {
	synctest.Wait()
	for {
		select {
		case e := <-w.events:
			if e.Kind != subscribe.Failed {
				all = append(all, e.Kind.String())
			}
		default:
			return all
		}
	}
}

func (w *watch) expect(want string) {
	w.t.Helper()
	if got := strings.Join(w.kinds(), " "); got != want {
		w.t.Errorf("events %q; want %q", got, want)
	}
}

func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, peers := pipes()
		w := start(t, somewhere, o)
		p := welcome(t, <-peers)
		time.Sleep(2900 * time.Millisecond)
		w.expect("connected")
		time.Sleep(200 * time.Millisecond)
		if e := w.event(subscribe.Silent); e.For != 3*time.Second || e.Err != nil || !strings.Contains(e.Cause, "self-benchmark") {
			t.Errorf("%+v", e)
		}
		time.Sleep(time.Hour) // once in an episode
		w.expect("")
		p.send(pass(0, nil))
		w.expect("recovered")
		for seq := range uint64(100) { // a publisher that is well
			time.Sleep(time.Second)
			p.send(pass(1+seq, nil))
		}
		w.expect("")
		time.Sleep(2999 * time.Millisecond)
		w.expect("")
		time.Sleep(2 * time.Millisecond)
		if e := w.event(subscribe.Silent); e.For != 3*time.Second || !strings.Contains(e.Cause, "long forward pass") {
			t.Errorf("%+v", e)
		}
		p.send(pass(200, nil))
		w.expect("recovered")
		time.Sleep(4 * time.Second) // a new episode
		w.expect("silent")
		w.end()
	})
}

// Without a connection silence is reported as well, with the reason, and once.
func TestSilenceWithoutConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := make(chan net.Conn, 1)
		o := subscribe.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
			select {
			case c := <-up:
				return c, nil
			default:
				return nil, errRefused
			}
		}}
		w := start(t, somewhere, o)
		time.Sleep(2999 * time.Millisecond)
		w.expect("")
		time.Sleep(2 * time.Millisecond)
		if e := w.event(subscribe.Silent); !errors.Is(e.Err, errRefused) || !strings.Contains(e.Cause, "DYN_FORWARDPASS_METRIC_PORT") {
			t.Errorf("%+v", e)
		}
		time.Sleep(time.Hour)
		w.expect("")
		one, other := net.Pipe()
		up <- one
		p := welcome(t, other)
		w.expect("connected")
		time.Sleep(3500 * time.Millisecond)
		w.expect("silent") // now for another reason
		p.send(pass(0, nil))
		w.expect("recovered")
		_ = p.Close()
		time.Sleep(time.Hour)
		w.expect("disconnected silent")
		w.end()
	})
}

// Bytes that make no message break no silence.
func TestHalfAMessageIsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, peers := pipes()
		w := start(t, somewhere, o)
		p := welcome(t, <-peers)
		for _, b := range pass(0, []byte("abc"))[:12] {
			p.send([]byte{b})
			time.Sleep(time.Second)
		}
		w.expect("connected silent")
		w.end()
	})
}

// A message that comes at the pace of an engine is handed on at once, and with the time at
// which it came; one of thousands a second within 20 ms.
func TestArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, peers := pipes()
		late := make(chan time.Duration, 100)
		ctx, cancel := context.WithCancel(t.Context())
		var sent time.Time
		o.OnMessage = func(_ [][]byte, at time.Time) { late <- max(at.Sub(sent), time.Since(sent)) }
		done := make(chan error)
		go func() { done <- subscribe.Subscribe(ctx, somewhere, o) }()
		p := welcome(t, <-peers)
		gathered := false
		for seq := range uint64(40) {
			pause := max(time.Duration(20-int(seq))*time.Millisecond, 100*time.Microsecond) // ever faster, until they gather
			time.Sleep(pause)
			sent = time.Now()
			p.send(pass(seq, nil))
			synctest.Wait()
			d := <-late
			if d > 20*time.Millisecond || pause >= time.Millisecond && d > 0 {
				t.Errorf("message %d, %v after the one before, was %v late", seq, pause, d)
			}
			gathered = gathered || d > 0
		}
		if !gathered {
			t.Error("none has waited for others")
		}
		cancel()
		<-done
	})
}

// A peer that sends PINGs and never reads is dropped once its answer does not fit.
func TestPingFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, peers := pipes()
		w := start(t, somewhere, o)
		// The pipe has no buffer: the answer waits for a reader that does not come.
		welcome(t, <-peers).send(command("PING", []byte("\x00\x64")))
		begin := time.Now()
		if e := w.event(subscribe.Disconnected); !errors.Is(e.Err, os.ErrDeadlineExceeded) || e.At.Sub(begin) > 5*time.Second {
			t.Errorf("%+v", e)
		}
		w.end()
	})
}

// The causes that are told are those of the error.
func TestCausesOfNoConnection(t *testing.T) {
	for _, c := range []struct {
		endpoint subscribe.Endpoint
		err      error
		want     string
		not      string
	}{
		{somewhere, syscall.ECONNREFUSED, "its port base may be another one", "permissions"},
		{somewhere, &net.DNSError{Err: "no such host", Name: "h"}, "the host's name may be wrong", "in-process"},
		{somewhere, syscall.EHOSTUNREACH, "the host may be down", "in-process"},
		{somewhere, os.ErrDeadlineExceeded, "a firewall is in between", "in-process"},
		{somewhere, io.EOF, "the worker may have stopped", "port base"},
		{subscribe.Endpoint{Address: "ipc:///nowhere/s"}, syscall.ENOENT, "its socket may have another base path", "port base"},
		{subscribe.Endpoint{Address: "ipc:///nowhere/s"}, syscall.EACCES, "look at the permissions", "in-process"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, c.endpoint, subscribe.Options{Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, fmt.Errorf("dial: %w", c.err)
			}})
			if e := w.event(subscribe.Silent); !strings.Contains(e.Cause, c.want) || strings.Contains(e.Cause, c.not) {
				t.Errorf("%v: %s", c.err, e.Cause)
			}
			w.end()
		})
	}
}
