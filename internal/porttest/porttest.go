// Package porttest finds TCP ports for tests.
package porttest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Row returns the first of n free ports in a row on the loopback interface, below those
// that the kernel gives out. Tests that run at the same time begin to look at different
// places.
func Row(t testing.TB, n int) int {
	t.Helper()
	for base := 21000 + rand.IntN(10000); base < 32000; base += n {
		var open []net.Listener
		for port := base; port < base+n; port++ {
			if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
				open = append(open, l)
			}
		}
		for _, l := range open {
			_ = l.Close()
		}
		if len(open) == n {
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}
