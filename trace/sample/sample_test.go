package sample

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// row is a payload as the tests hold it.
type row struct {
	key     Key
	counter int64
	bytes   int
}

func (r row) String() string { return fmt.Sprintf("%s%d/%d", r.key.WorkerID, r.key.Rank, r.counter) }

// bench is a sampler with what it wrote and dropped.
type bench struct {
	*Sampler[row]
	start            time.Time
	written, dropped []string
}

func newBench(interval time.Duration, maxKeys, maxBytes int) *bench {
	b := &bench{start: time.Unix(1_700_000_000, 0)}
	b.Sampler = New(Options[row]{
		Start: b.start, Interval: interval, MaxKeys: maxKeys, MaxBytes: maxBytes,
		Size:  func(r row) int { return r.bytes },
		Write: func(r row) { b.written = append(b.written, r.String()) },
		Drop:  func(r row) { b.dropped = append(b.dropped, r.String()) },
	})
	return b
}

func (b *bench) put(worker string, rank, counter int64) {
	key := Key{"dynamo", "backend", worker, rank}
	b.Put(key, counter, row{key, counter, 1})
}

// at moves the time to so long after the start.
func (b *bench) at(d time.Duration) bool { return b.Tick(b.start.Add(d)) }

func (b *bench) wrote(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(b.written, " "); got != want {
		t.Errorf("written %q, want %q", got, want)
	}
	b.written = nil
}

func TestSampler(t *testing.T) {
	const second = time.Second
	b := newBench(5*second, 0, 0)
	b.put("b", 1, 7)
	b.put("b", 0, 7)
	b.put("a", 10, 1)
	b.put("a", 9, 1)
	b.put("a", 9, 2) // newer
	if b.at(5*second - 1) {
		t.Error("a tick before the first interval was over")
	}
	b.wrote(t, "")
	b.at(5 * second)
	b.wrote(t, "a9/2 a10/1 b0/7 b1/7") // ranks are numbers
	b.put("a", 9, 2)
	b.put("a", 10, 0) // a restart
	b.at(10 * second)
	b.wrote(t, "a10/0")
	b.put("a", 9, 3)
	b.put("a", 9, 2) // says nothing new of the key; 3 is pending still
	b.at(15 * second)
	b.wrote(t, "a9/3")
	b.at(20 * second)
	b.wrote(t, "")
	b.put("b", 0, 8)
	b.Flush()
	b.wrote(t, "b0/8")
	b.Flush()
	b.wrote(t, "")
	if diff := cmp.Diff([]string{"a9/1", "a9/2", "a9/2"}, b.dropped); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
}

func TestLateTicks(t *testing.T) {
	const second = time.Second
	b := newBench(5*second, 0, 0)
	b.put("a", 0, 1)
	if !b.at(23 * second) {
		t.Error("no tick after 23 s")
	}
	b.put("a", 0, 2)
	for _, early := range []time.Duration{24, 25, 27} {
		if b.at(early * second) {
			t.Errorf("a tick was made up for after %d s", early)
		}
	}
	if got := b.Next().Sub(b.start); got != 28*second {
		t.Errorf("next tick after %s", got)
	}
	b.at(28 * second)
	b.wrote(t, "a0/1 a0/2")
}

// A key is the whole of its parts.
func TestKeys(t *testing.T) {
	b := newBench(time.Second, 0, 0)
	keys := []Key{{"a", "", "", 0}, {"", "a", "", 0}, {"", "", "a", 0}, {"", "", "", 1}, {}}
	for i, k := range keys {
		b.Put(k, 1, row{k, int64(i), 0})
	}
	b.Flush()
	b.wrote(t, "0/4 1/3 a0/2 0/1 0/0")
}

func TestForgetting(t *testing.T) {
	b := newBench(time.Second, 2, 0)
	b.put("a", 0, 1)
	b.put("b", 0, 1)
	b.put("a", 0, 2)
	b.put("c", 0, 1) // b was silent for longest
	b.wrote(t, "b0/1")
	b.at(time.Second)
	b.wrote(t, "a0/2 c0/1")
	b.put("b", 0, 1) // as one that is new; a has nothing pending
	b.Flush()
	b.wrote(t, "b0/1")
	if len(b.keys) != 2 {
		t.Errorf("%d keys", len(b.keys))
	}
}

func TestTooMuchPending(t *testing.T) {
	b := newBench(time.Second, 0, 3)
	for rank := range int64(3) {
		b.put("a", rank, 1)
		b.put("a", rank, 2)
	}
	b.wrote(t, "")
	b.put("a", 3, 1)
	b.wrote(t, "a0/2 a1/2 a2/2 a3/1")
	if b.bytes != 0 {
		t.Errorf("%d bytes are pending", b.bytes)
	}
	b.put("a", 0, 3)
	b.at(time.Second) // the interval is where it was
	b.wrote(t, "a0/3")
}

// Whatever arrives: each payload is written or dropped, once; what is written of a key
// never repeats its counter, and within a flush keys ascend.
func TestRandomArrivals(t *testing.T) {
	for seed := range uint64(200) {
		dice := rand.New(rand.NewPCG(seed, 1))
		var written []row
		arrived, dropped := 0, 0
		start := time.Now()
		s := New(Options[row]{
			Start: start, Interval: time.Second, MaxKeys: 1 + dice.IntN(12), MaxBytes: 1 + dice.IntN(40),
			Size:  func(r row) int { return r.bytes },
			Write: func(r row) { written = append(written, r) },
			Drop:  func(row) { dropped++ },
		})
		last := map[Key]int64{}
		now := start
		for range 300 {
			key := Key{WorkerID: string(rune('a' + dice.IntN(3))), Rank: int64(dice.IntN(3))}
			counter := int64(dice.IntN(5))
			before := len(written)
			s.Put(key, counter, row{key, counter, dice.IntN(8)})
			arrived++
			now = now.Add(time.Duration(dice.Int64N(int64(time.Second / 4))))
			ticked := len(written)
			if s.Tick(now) && !slices.IsSortedFunc(written[ticked:], func(a, b row) int { return a.key.Compare(b.key) }) {
				t.Fatalf("seed %d: not in order: %v", seed, written[ticked:])
			}
			for _, r := range written[before:] {
				if c, ok := last[r.key]; ok && c == r.counter && s.opt.MaxKeys >= 9 {
					t.Fatalf("seed %d: %v is repeated", seed, r)
				}
				last[r.key] = r.counter
			}
			if len(s.keys) > s.opt.MaxKeys || s.bytes > s.opt.MaxBytes {
				t.Fatalf("seed %d: %d keys, %d bytes", seed, len(s.keys), s.bytes)
			}
		}
		s.Flush()
		if arrived != len(written)+dropped {
			t.Fatalf("seed %d: %d arrived, %d written, %d dropped", seed, arrived, len(written), dropped)
		}
	}
}

// A thousand workers of eight ranks are held without one being forgotten.
func TestThousandProducers(t *testing.T) {
	b := newBench(time.Second, 0, 0)
	const workers, ranks = 1000, 8
	for counter := range int64(3) {
		for w := range workers {
			for r := range int64(ranks) {
				b.put(fmt.Sprint("w", w), r, counter)
			}
		}
	}
	b.wrote(t, "")
	b.at(time.Second)
	if len(b.written) != workers*ranks {
		t.Errorf("%d rows", len(b.written))
	}
}
