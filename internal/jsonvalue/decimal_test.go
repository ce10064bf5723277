package jsonvalue

import (
	"math/rand/v2"
	"testing"
)

func TestAppendDecimal(t *testing.T) {
	for literal, want := range map[string]string{
		"0": "0", "-0.00e99999999999999999999": "0", "12": "12e2", "-12.0": "-12e2", "1.20e1": "12e2", "0.0012": "12e-2",
		"1e1000000000000000000000": "1e1000000000000000000001", "10e999999999999999999999": "1e1000000000000000000001",
		"0.1e-1000000000000000000000": "1e-1000000000000000000000",
	} {
		if got := string(AppendDecimal([]byte("x"), []byte(literal))); got != "x"+want {
			t.Errorf("%s: %s, want x%s", literal, got, want)
		}
	}
}

// The text is the same exactly when the values are.
func TestAppendDecimalTellsValues(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	literal := func() []byte {
		return []byte(pick("", "-") + pick("0", "1", "10", "100", "12") + pick("", ".0", ".1", ".10", ".01", ".25") +
			pick("", "e0", "e1", "E+1", "e-1", "e-2", "e2", "e1000000000000000000", "e999999999999999999", "e-1000000000000000000"))
	}
	equal := 0
	for range 20_000 {
		a, b := literal(), literal()
		want := EqualNumbers(a, b)
		if got := string(AppendDecimal(nil, a)) == string(AppendDecimal(nil, b)); got != want {
			t.Fatalf("%s and %s: same text %t, same value %t", a, b, got, want)
		}
		if want {
			equal++
		}
	}
	if equal < 100 {
		t.Errorf("only %d equal pairs", equal)
	}
}
