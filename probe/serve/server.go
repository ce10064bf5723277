package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// The limits of a server that are no options.
const (
	headerTimeout  = 10 * time.Second // for a request's header
	idleTimeout    = time.Minute      // between requests
	maxHeaderBytes = 16 << 10         // of a request's header
	maxConnections = 1024             // at a time; others wait to be accepted
)

// Server returns a server for the handler, with the time-outs and limits that belong to
// it. There is no time for a whole answer, see [Options.Stall].
func (h *Handler) Server() *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
	}
}

// ErrCutOff says that answers had not ended when the time for them was over.
var ErrCutOff = errors.New("answers were cut off")

// Run serves what comes in at the listener until the context ends. Then it takes no new
// requests, and gives the answers that are on their way so long to end: it returns nil
// when they did, [ErrCutOff] when not. Any other error is that of the listener, which is
// closed in any case.
func Run(ctx context.Context, server *http.Server, l net.Listener, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(limit(l, maxConnections)) }()
	select {
	case err := <-served:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := server.Shutdown(drain)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(ErrCutOff, server.Close())
	}
	<-served // which is http.ErrServerClosed: it was asked to end
	return err
}

// limited is a listener that has so many connections at a time.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func limit(l net.Listener, connections int) *limited {
	return &limited{Listener: l, slots: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept waits for room and for a connection.
func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close ends the wait for room, too.
func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	free func()
}

// Close gives the room back.
func (c *limitedConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}
