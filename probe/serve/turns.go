package serve

import (
	"io"
	"runtime"
)

// turns let as many goroutines compress at a time as there are processors for them. A
// hundred that are ready to run would hold up everything else by a hundred time slices
// each time: signals, other requests, the look at the files. A second signal that comes
// while the first has not been taken is lost.
type turns chan struct{}

func newTurns() turns { return make(turns, runtime.GOMAXPROCS(0)) }

func (t turns) take() { t <- struct{}{} }
func (t turns) give() { <-t }

// taking is an encoder that compresses when it is its turn. What it writes goes out
// outside of the turn, see giving: a slow client keeps nobody waiting.
type taking struct {
	io.WriteCloser
	turns turns
}

func (e taking) Write(p []byte) (int, error) {
	e.turns.take()
	defer e.turns.give()
	return e.WriteCloser.Write(p)
}

func (e taking) Close() error {
	e.turns.take()
	defer e.turns.give()
	return e.WriteCloser.Close()
}

// giving is where an encoder writes to, which has the turn.
type giving struct {
	io.Writer
	turns turns
}

func (w giving) Write(p []byte) (int, error) {
	w.turns.give()
	defer w.turns.take()
	return w.Writer.Write(p)
}
