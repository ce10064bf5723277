package subscribe

import (
	"net"
	"syscall"
	"testing"
)

// The kernel notices a vanished peer, and buffers more than it would by itself.
func TestSocketOptions(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	option := func(c net.Conn, level, name int) (value int) {
		raw, err := c.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { value, failed = syscall.GetsockoptInt(int(fd), level, name) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return value
	}
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	ours, err := dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if option(ours, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 1 {
		t.Error("keep-alive is off")
	}
	dead := option(ours, syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE) +
		option(ours, syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL)*option(ours, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT)
	if dead != 30 {
		t.Errorf("a vanished peer is noticed after %d s", dead)
	}
	before := option(plain, syscall.SOL_SOCKET, syscall.SO_RCVBUF)
	if after := option(ours, syscall.SOL_SOCKET, syscall.SO_RCVBUF); after <= before {
		t.Errorf("the receive buffer has %d bytes, without request %d", after, before)
	}
}
