package trace

import (
	"os"
	"strings"
	"testing"
)

func TestEphemeralOverlap(t *testing.T) {
	linux := Ports{32768, 60999}
	for _, c := range []struct {
		base, dpSize int
		overlap      string // the ports as the warning names them
	}{
		{20380, 8, ""},
		{32767, 1, ""}, // one rank: nothing behind it
		{32767, 0, ""},
		{32766, 2, "32766-32768"}, // the port behind the publishers counts
		{32760, 7, ""},
		{32760, 8, "32760-32768"},
		{40000, 1, "40000-40000"},
		{60999, 1, "60999-60999"},
		{61000, 16, ""},
		{20000, 45000, "20000-65000"}, // all around it
	} {
		block, err := BlockPorts(c.base, c.dpSize)
		if err != nil {
			t.Fatal(err)
		}
		want := ""
		if c.overlap != "" {
			want = "FPM ports " + c.overlap + " overlap this host's ephemeral port range 32768-60999; an outbound connection can take one of them first and the publisher bind then fails intermittently. Set DYN_FORWARDPASS_METRIC_PORT to a base below 32768."
		}
		if got := EphemeralOverlap(block, linux); got != want {
			t.Errorf("base %d, %d ranks:\ngot  %q\nwant %q", c.base, c.dpSize, got, want)
		}
	}
}

// The block of the highest base ends just below the range.
func TestHighestBase(t *testing.T) {
	for _, c := range []struct{ base, dpSize, low, want int }{{40000, 8, 32768, 32759}, {40000, 1, 32768, 32767}, {1, 8, 5, 0}} {
		block, err := BlockPorts(c.base, c.dpSize)
		if err != nil {
			t.Fatal(err)
		}
		ephemeral := Ports{c.low, 60999}
		got := HighestBase(block, ephemeral)
		if got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
		if free, err := BlockPorts(got, c.dpSize); got > 0 && (err != nil || free.Overlaps(ephemeral) || free.Last != c.low-1) {
			t.Errorf("%+v: %v, %v", c, free, err)
		}
	}
}

func TestBlockPortsOutOfRange(t *testing.T) {
	for _, c := range [][2]int{{0, 1}, {-1, 4}, {65535, 2}, {65536, 1}} {
		if block, err := BlockPorts(c[0], c[1]); err == nil {
			t.Errorf("base %d, %d ranks: %v", c[0], c[1], block)
		}
	}
	if block, err := BlockPorts(65535, 1); err != nil || block != (Ports{65535, 65535}) {
		t.Errorf("the last port: %v, %v", block, err)
	}
}

func TestNotAPublisher(t *testing.T) {
	for port := 20379; port < 20392; port++ {
		got := NotAPublisher(port, 20380, 8)
		if (got != "") != (port == 20388) {
			t.Errorf("port %d: %q", port, got)
		}
	}
	if got := NotAPublisher(20388, 20380, 8); !strings.Contains(got, "port 20388 is not a publisher") || !strings.Contains(got, "20380-20387") {
		t.Errorf("%q", got)
	}
	if got := NotAPublisher(20381, 20380, 1); !strings.Contains(got, "one rank publishes on port 20380") {
		t.Errorf("%q", got)
	}
	if got := NotAPublisher(20380, 20380, 0); got != "" {
		t.Errorf("no ranks: %q", got)
	}
}

func TestEphemeralPortsOfThisHost(t *testing.T) {
	text, err := os.ReadFile(ephemeralFile)
	got, gotErr := EphemeralPorts()
	if err != nil {
		if gotErr == nil {
			t.Errorf("a range of %v out of nowhere", got)
		}
		return
	}
	if gotErr != nil || strings.Join(strings.Fields(string(text)), "-") != got.String() {
		t.Errorf("%q is %v, %v", text, got, gotErr)
	}
}

func FuzzParseEphemeralPorts(f *testing.F) {
	for _, text := range []string{"32768\t60999\n", "1 65535", "60999 32768", "", "1 2 3", "0x1 2", "-1 5", "1 65536"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseEphemeralPorts(text)
		if err != nil {
			return
		}
		if p.First < 0 || p.Last > 65535 || p.First > p.Last {
			t.Fatalf("%q is %v", text, p)
		}
		if again, err := ParseEphemeralPorts(strings.ReplaceAll(p.String(), "-", " ")); err != nil || again != p {
			t.Fatalf("%q is %v, and that is %v, %v", text, p, again, err)
		}
	})
}
