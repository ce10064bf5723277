// Package zmqtest is for tests that have another implementation of ZeroMQ as the other
// side: libzmq, in programs of Python.
package zmqtest

import (
	"os"
	"os/exec"
	"testing"
)

// Python is the interpreter of the system, where distributions put their packages.
const Python = "/usr/bin/python3"

// NeedLibzmq skips a test where Python's bindings of libzmq and MessagePack are missing,
// unless FPM_REQUIRE_INTEROP=1 says that they must not be.
func NeedLibzmq(t testing.TB) {
	t.Helper()
	out, err := exec.Command(Python, "-c", "import zmq, msgpack").CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("FPM_REQUIRE_INTEROP") == "1":
		t.Fatalf("python3-zmq and python3-msgpack are required: %v\n%s", err, out)
	default:
		t.Skip("needs python3-zmq and python3-msgpack")
	}
}
