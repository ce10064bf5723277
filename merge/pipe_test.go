package merge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fpm-project/fpm/internal/jsonstream"
)

// failingWriter takes some writes and fails from then on.
type failingWriter struct {
	bytes.Buffer
	good  int
	after int // writes that came after the failure
	err   error
}

func (w *failingWriter) Write(p []byte) (int, error) {
	switch {
	case w.good > 0:
		w.good--
		return w.Buffer.Write(p)
	case w.err == nil:
		w.err = errors.New("no space left")
	default:
		w.after++
	}
	return 0, w.err
}

func TestPipe(t *testing.T) {
	for _, writes := range []int{0, 1, 2, 3, 10} {
		var out bytes.Buffer
		reported := int64(0)
		p := newPipe(&out, func(n int64) { reported += n })
		var want strings.Builder
		for i := range writes {
			text := fmt.Sprintf("%d%s", i, strings.Repeat("x", pipeSize-2+i))
			want.WriteString(text)
			p.buf = append(p.buf, text...)
			if err := p.flushIfFull(); err != nil {
				t.Fatal(err)
			}
		}
		p.buf = append(p.buf, "end"...)
		want.WriteString("end")
		n, err := p.close()
		if err != nil || n != int64(want.Len()) || reported != n {
			t.Errorf("%d writes: %d bytes, %d reported, %v; want %d", writes, n, reported, err, want.Len())
		}
		if out.String() != want.String() {
			t.Errorf("%d writes: another text", writes)
		}
	}
}

// The writer's error comes back soon, and with close at the latest; nothing is written
// after it.
func TestPipeToAFailingWriter(t *testing.T) {
	for good := range 5 {
		w := &failingWriter{good: good}
		p := newPipe(w, func(int64) {})
		flushes := 0
		var err error
		for err == nil {
			if flushes++; flushes > good+3 {
				t.Fatalf("no error from %d writes after %d good ones", flushes, good)
			}
			p.buf = append(p.buf, make([]byte, pipeSize)...)
			err = p.flushIfFull()
		}
		if !errors.Is(err, w.err) {
			t.Errorf("%v, want %v", err, w.err)
		}
		if _, err := p.close(); !errors.Is(err, w.err) {
			t.Errorf("close: %v, want %v", err, w.err)
		}
		if w.after > 0 || w.Len() != good*pipeSize {
			t.Errorf("%d bytes written, %d writes after the failure", w.Len(), w.after)
		}
	}
	w := &failingWriter{}
	p := newPipe(w, func(int64) {})
	p.buf = append(p.buf, "little"...)
	if err := p.flushIfFull(); err != nil {
		t.Error(err)
	}
	if _, err := p.close(); !errors.Is(err, w.err) {
		t.Errorf("close: %v", err)
	}
}

// chunks is a source that gives few bytes at a time, and fails or ends at some offset.
type chunks struct {
	text string
	end  int64
	err  error
}

func (c chunks) ReadAt(p []byte, off int64) (int, error) {
	if off >= c.end {
		return 0, c.err
	}
	return copy(p, c.text[off:min(c.end, off+3)]), nil
}

func TestCopier(t *testing.T) {
	const text = `xx{"a":[1,{"b": "c,d"}],"e":{}}yy`
	span := jsonstream.Span{Off: 2, Len: int64(len(text)) - 4}
	const want = "{\n    \"a\": [\n      1,\n      {\n        \"b\": \"c,d\"\n      }\n    ],\n    \"e\": {}\n  }"
	failure := errors.New("bad sector")
	for _, c := range []struct {
		src  chunks
		want error
	}{
		{chunks{text, int64(len(text)), io.EOF}, nil},
		{chunks{text, 9, io.EOF}, io.ErrUnexpectedEOF},
		{chunks{text, 9, failure}, failure},
	} {
		var out bytes.Buffer
		p := newPipe(&out, func(int64) {})
		copier := copier{buf: make([]byte, 7)}
		err := copier.copy(p, c.src, span, 1)
		if _, closeErr := p.close(); closeErr != nil {
			t.Fatal(closeErr)
		}
		var read *jsonstream.ReadError
		switch {
		case !errors.Is(err, c.want):
			t.Errorf("%v, want %v", err, c.want)
		case c.want == nil && out.String() != want:
			t.Errorf("copied %s", out.String())
		case c.want != nil && (!errors.As(err, &read) || read.Offset != 9):
			t.Errorf("%v does not say where", err)
		}
	}
}

// A long value passes through the copier's and the pipe's buffers whole.
func TestCopyLongValue(t *testing.T) {
	var text strings.Builder
	text.WriteString("[")
	for i := range 200_000 {
		fmt.Fprintf(&text, `"%d",`, i)
	}
	text.WriteString("0]")
	var out bytes.Buffer
	p := newPipe(&out, func(int64) {})
	copier := copier{buf: make([]byte, 64<<10)}
	if err := copier.copy(p, strings.NewReader(text.String()), jsonstream.Span{Len: int64(text.Len())}, 0); err != nil {
		t.Fatal(err)
	}
	n, err := p.close()
	if err != nil || n != int64(out.Len()) {
		t.Fatal(n, err)
	}
	if got := strings.NewReplacer("\n", "", " ", "").Replace(out.String()); got != text.String() {
		t.Error("another text")
	}
	w := &failingWriter{}
	p = newPipe(w, func(int64) {})
	if err := copier.copy(p, strings.NewReader(text.String()), jsonstream.Span{Len: int64(text.Len())}, 0); !errors.Is(err, w.err) {
		t.Errorf("copying to a failing writer: %v", err)
	}
	if _, err := p.close(); !errors.Is(err, w.err) {
		t.Error(err)
	}
}
