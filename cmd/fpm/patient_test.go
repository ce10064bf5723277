package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// gate is a stream whose writes wait until it is open.
type gate struct {
	open chan struct{}
	text strings.Builder
	err  error
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	if g.err != nil {
		return 0, g.err
	}
	return g.text.Write(p)
}

// Nothing waits for a stream that takes nothing; what there is no room for is counted.
func TestPatient(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	p := &patient{w: g, most: 20}
	closed, never := make(chan struct{}), make(chan struct{})
	close(closed)
	for range 5 {
		if n, err := io.WriteString(p, "12345678\n"); n != 9 || err != nil {
			t.Fatal(n, err)
		}
	}
	if done, err := p.flush(closed, time.Millisecond); done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	close(g.open)
	if done, err := p.flush(never, 0); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	if _, err := io.WriteString(p, "then\n"); err != nil {
		t.Fatal(err)
	}
	if done, err := p.flush(never, 0); !done || err != nil {
		t.Errorf("done %v, %v", done, err)
	}
	if want := "12345678\n12345678\nfpm: 3 messages are missing here: nobody read them\nthen\n"; g.text.String() != want {
		t.Errorf("written: %q", g.text.String())
	}
}

// The stream's error is told.
func TestPatientError(t *testing.T) {
	g := &gate{open: make(chan struct{}), err: errors.New("full")}
	close(g.open)
	p := &patient{w: g}
	if _, err := io.WriteString(p, "text"); err != nil {
		t.Fatal(err)
	}
	if done, err := p.flush(nil, 0); !done || !errors.Is(err, g.err) {
		t.Errorf("done %v, %v", done, err)
	}
	if _, err := io.WriteString(p, "more"); !errors.Is(err, g.err) {
		t.Error(err)
	}
}
