package words

import (
	"math"
	"testing"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{-1: "-1 entries", 0: "0 entries", 1: "1 entry", 2: "2 entries"} {
		if got := Count(n, "entry", "entries"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
	if got, want := Count(uint64(math.MaxUint64), "entry", "entries"), "18446744073709551615 entries"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
