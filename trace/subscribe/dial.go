package subscribe

import (
	"context"
	"net"
	"syscall"
	"time"
)

// dial connects. A peer whose host vanished sends no FIN; the kernel's keep-alive probes
// notice it within half a minute. Heartbeats of ZMTP would say the same, but a peer may
// leave them unanswered and still be alive.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3},
		Control:         control,
	}
	return d.DialContext(ctx, network, address)
}

// receiveBuffer is what the kernel is asked to keep for a TCP connection while this
// process does not run. A publisher queues a thousand messages and drops the rest; the
// window that TCP begins with has room for a hundred, and grows with the distance of the
// peer, not with the bursts that it sends.
const receiveBuffer = 2 << 20

// control sets a socket up before it connects, since the window's scale is agreed on then.
func control(network, _ string, c syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return nil
	}
	return c.Control(func(fd uintptr) {
		// A kernel that grants less, or nothing, costs only slack: there is nothing to do
		// about an error here, and no reason not to connect.
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, receiveBuffer)
		// A size that was set no longer grows by itself, unless it is unlocked again.
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soBufLock, 0)
	})
}

// soBufLock is Linux's SO_BUF_LOCK (5.14), which package syscall does not have.
const soBufLock = 72
