package merge

import (
	"bytes"
	"io"
	"sync/atomic"

	"github.com/fpm-project/fpm/internal/jsonstream"
	"github.com/fpm-project/fpm/internal/pyjson"
)

// layoutCheck finds out, beside the reading of the groups, whether they have the layout
// that the merged artifact has. Workers write it so; their groups can then be copied as
// they stand.
type layoutCheck struct {
	stop  atomic.Bool
	done  chan struct{}
	end   int64 // of the list, if it is laid out
	found bool
}

// listEnd is the closing bracket of a top-level list that is laid out. It can stand
// nowhere else: a line with less indentation ends the list, and no string holds a line
// break.
const listEnd = "\n  ]"

func startLayoutCheck(src io.ReaderAt, start int64) *layoutCheck {
	c := &layoutCheck{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.run(src, start)
	}()
	return c
}

// run reads ahead to where the list seems to end. That it ends there, and that it is JSON
// at all, is for the scanner to say. A read error is the scanner's to report, too.
func (c *layoutCheck) run(src io.ReaderAt, start int64) {
	check := pyjson.NewLayoutCheck(1)
	buf := make([]byte, 256<<10)
	kept := 0 // bytes of buf from the last read, among them the beginning of listEnd perhaps
	for at := start; !c.stop.Load(); {
		n, _ := src.ReadAt(buf[kept:], at)
		if n == 0 {
			return
		}
		at += int64(n)
		text := buf[:kept+n]
		if i := bytes.Index(text, []byte(listEnd)); i >= 0 {
			text = text[:i+len(listEnd)]
			c.end = at - int64(kept+n) + int64(len(text))
			c.found = check.Feed(text) && check.End()
			return
		}
		whole := max(len(text)-len(listEnd)+1, 0)
		if !check.Feed(text[:whole]) {
			return
		}
		kept = copy(buf, text[whole:])
	}
}

// laid tells whether the list at the span is laid out. It waits for the check to end.
func (c *layoutCheck) laid(span jsonstream.Span) bool {
	<-c.done
	return c.found && c.end == span.End()
}

// cancel ends the check and waits for it.
func (c *layoutCheck) cancel() {
	c.stop.Store(true)
	<-c.done
}
