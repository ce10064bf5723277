package segment

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tail gathers what a follower hands out.
type tail struct {
	f     *Follower
	lines []string
	holes []Hole
}

func (f *tail) each(rec Record) error {
	if rec.Hole != nil {
		f.holes = append(f.holes, *rec.Hole)
	} else {
		f.lines = append(f.lines, string(rec.Line))
	}
	return nil
}

// poll polls until directories have been read again, and returns what was new.
func (f *tail) poll(t *testing.T) []string {
	t.Helper()
	f.lines = nil
	for range discoverEvery {
		must(t, f.f.Poll(f.each))
	}
	return f.lines
}

func (f *tail) want(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, f.poll(t)); diff != "" {
		t.Fatal(diff)
	}
}

func TestFollowAcrossRolls(t *testing.T) {
	w, prefix := writer(t, Options{RollBytes: 40, MaxSegments: 3})
	f := &tail{f: NewFollower([]string{prefix}, FollowOptions{})}
	f.want(t) // nothing there so far
	for i := range 50 {
		appendRows(t, w, rows(2*i, 2*i+2))
		must(t, w.Flush())
		f.want(t, rows(2*i, 2*i+2)...)
	}
	must(t, w.Close())
	second, _ := writer(t, Options{Prefix: prefix, Producer: "v"})
	appendRows(t, second, rows(7, 8))
	must(t, second.Close())
	f.want(t, rows(7, 8)...)
	f.want(t)
	if len(f.holes) > 0 || len(f.f.files) > 4 {
		t.Errorf("holes %v, %d files followed", f.holes, len(f.f.files))
	}
}

// What is deleted before it was read is told of: segments that came and went between two
// looks, and one that was read in part. What was read is not.
func TestFollowTellsOfDeletedSegments(t *testing.T) {
	w, prefix := writer(t, Options{RollBytes: 1, MaxSegments: 2})
	put := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			appendRows(t, w, rows(i, i+1))
			must(t, w.Flush())
		}
	}
	f := &tail{f: NewFollower([]string{prefix}, FollowOptions{})}
	put(0, 2)
	f.want(t, rows(0, 2)...)
	put(2, 4) // deletes 0 and 1, which was the newest
	f.want(t, rows(2, 4)...)
	if len(f.holes) != 1 || f.holes[0].Fault != Deleted || f.holes[0].Segments != 1 || f.holes[0].Offset == 0 {
		t.Errorf("%+v", f.holes)
	}
	f.holes = nil
	put(4, 10) // 4 to 7 came and went
	f.want(t, rows(8, 10)...)
	if len(f.holes) != 2 || f.holes[0].Segments != 4 || f.holes[0].Offset != 0 {
		t.Errorf("%+v", f.holes)
	}
	f.holes = nil
	f.want(t)
	put(10, 11) // deletes 8, which was read to its end by then
	f.want(t, rows(10, 11)...)
	if len(f.holes) > 0 {
		t.Errorf("%+v", f.holes)
	}
}

// A member that arrives byte by byte, and one that never ends.
func TestFollowUnfinishedMembers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.w.000000.jsonl.gz")
	f := &tail{f: NewFollower([]string{path}, FollowOptions{})}
	lines := noise(rand.New(rand.NewPCG(1, 1)), 30)
	data := append(member(t, lines[:20]...), member(t, lines[20:]...)...)
	var got []string
	for n := 0; n <= len(data); n += 7 {
		must(t, os.WriteFile(path, data[:n], 0o600))
		got = append(got, f.poll(t)...)
	}
	must(t, os.WriteFile(path, data, 0o600))
	got = append(got, f.poll(t)...)
	if diff := cmp.Diff(lines, got); diff != "" || len(f.holes) > 0 {
		t.Fatal(diff, f.holes)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range 50 {
		_, err := fmt.Fprintf(z, "line %d\n", i)
		must(t, err)
		must(t, z.Flush())
		must(t, os.WriteFile(path, append(slices.Clone(data), b.Bytes()...), 0o600))
		f.want(t, fmt.Sprintf("line %d", i))
	}
	// The next segment is there: what this one lacks will never come.
	must(t, os.WriteFile(strings.Replace(path, "000000", "000001", 1), member(t, "next"), 0o600))
	f.f.args = []string{filepath.Dir(path)}
	f.want(t, "next")
	if len(f.holes) != 1 || f.holes[0].Fault != Cut || f.holes[0].Offset != int64(len(data)) || f.holes[0].Rows != 50 {
		t.Errorf("holes %+v", f.holes)
	}
	f.want(t)
	if len(f.holes) != 1 {
		t.Errorf("the hole is told again: %+v", f.holes)
	}
}

// A writer whose flush fails cuts the file back and writes the member again, longer.
func TestFollowCutBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.w.000000.jsonl.gz")
	lines := noise(rand.New(rand.NewPCG(2, 1)), 40)
	head, torn, again := member(t, lines[:10]...), member(t, lines[10:30]...), member(t, lines[10:]...)
	f := &tail{f: NewFollower([]string{path}, FollowOptions{})}
	var got []string
	for _, data := range [][]byte{head, append(slices.Clone(head), torn[:len(torn)-30]...), head, append(slices.Clone(head), again...)} {
		must(t, os.WriteFile(path, data, 0o600))
		got = append(got, f.poll(t)...)
	}
	if diff := cmp.Diff(lines, got); diff != "" || len(f.holes) > 0 {
		t.Error(diff, f.holes)
	}
}

func TestFollowPlain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	f := &tail{f: NewFollower([]string{path}, FollowOptions{})}
	must(t, os.WriteFile(path, []byte("{a\n{b"), 0o600))
	f.want(t, "{a")
	must(t, os.WriteFile(path, []byte("{a\n{bc\n{d"), 0o600))
	f.want(t, "{bc")
	f.want(t)
	must(t, os.WriteFile(path, nil, 0o600)) // begun anew
	f.want(t)
	must(t, os.WriteFile(path, []byte("{e\n"), 0o600))
	f.want(t, "{e")
}

func TestFollowOnlyNew(t *testing.T) {
	w, prefix := writer(t, Options{})
	appendRows(t, w, rows(0, 5))
	must(t, w.Flush())
	f := &tail{f: NewFollower([]string{prefix}, FollowOptions{OnlyNew: true})}
	f.want(t)
	appendRows(t, w, rows(5, 7))
	must(t, w.Close())
	f.want(t, rows(5, 7)...)
	w, _ = writer(t, Options{Prefix: prefix})
	appendRows(t, w, rows(7, 9))
	must(t, w.Close())
	f.want(t, rows(7, 9)...)
}

func TestFollowRun(t *testing.T) {
	w, prefix := writer(t, Options{})
	appendRows(t, w, rows(0, 2))
	must(t, w.Flush())
	ctx, cancel := context.WithCancel(t.Context())
	ticks, seen := make(chan time.Time), make(chan string)
	ended := make(chan error)
	go func() {
		ended <- NewFollower([]string{prefix}, FollowOptions{}).Run(ctx, ticks, func(rec Record) error {
			seen <- string(rec.Line)
			return nil
		})
	}()
	for _, want := range rows(0, 2) {
		if got := <-seen; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	appendRows(t, w, rows(2, 3))
	must(t, w.Flush())
	ticks <- time.Time{}
	if got := <-seen; got != rows(2, 3)[0] {
		t.Errorf("got %s", got)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	stop := errors.New("enough")
	err := NewFollower([]string{prefix}, FollowOptions{}).Run(t.Context(), nil, func(Record) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("ended with %v", err)
	}
	if err := NewFollower(nil, FollowOptions{}).Poll(nil); err == nil {
		t.Error("nothing to follow is no error")
	}
}
