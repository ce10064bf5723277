package trace

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fpm-project/fpm/trace/wire"
)

// environment is a lookup in a map.
func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestParsePolicy(t *testing.T) {
	on := DefaultPolicy()
	on.Enabled = true
	with := func(change func(*Policy)) Policy {
		p := on
		change(&p)
		return p
	}
	for _, c := range []struct {
		name string
		vars map[string]string
		want Policy
	}{
		{"nothing set", nil, on},
		{"switched off", map[string]string{EnvTrace: " OFF\t"}, with(func(p *Policy) { p.Enabled = false })},
		{"everything", map[string]string{
			EnvTrace: "Yes", EnvOutputPath: " /data/fpm ", EnvMode: " Full ", EnvSampleInterval: " 250 ",
			EnvRollBytes: "+1048576", EnvMaxSegments: "12", EnvBasePort: "30000",
		}, Policy{true, "/data/fpm", wire.Full, 250 * time.Millisecond, 1 << 20, 12, 30000}},
		{"the largest numbers", map[string]string{
			EnvSampleInterval: "18446744073709551615", EnvRollBytes: "18446744073709551615", EnvMaxSegments: "18446744073709551615", EnvBasePort: "65535",
		}, with(func(p *Policy) {
			p.SampleInterval = math.MaxInt64 / time.Millisecond * time.Millisecond
			p.RollBytes, p.MaxSegments, p.BasePort = math.MaxUint64, math.MaxInt, 65535
		})},
		{"an interval in full mode", map[string]string{EnvMode: "full", EnvSampleInterval: "1"}, with(func(p *Policy) { p.Mode, p.SampleInterval = wire.Full, time.Millisecond })},
		{"not UTF-8 is unset", map[string]string{EnvTrace: "\xff", EnvMode: "full\xff"}, on},
	} {
		got, err := ParsePolicy(EnvSettings(environment(c.vars)))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	for variable, values := range map[string][]string{
		EnvTrace:          {"", " ", "2", "y", "enabled", "ＯＮ", "-1"},
		EnvOutputPath:     {"", " \t\n"},
		EnvMode:           {"", "sample", "full,sampled", "0"},
		EnvSampleInterval: {"", "0", "-1", "-0", "5.0", "1_000", "0x10", "5s", "++5", "+ 5", "５", "18446744073709551616", "1e3"},
		EnvRollBytes:      {"", "0", "-5", "256MiB", "1,000", "00"},
		EnvMaxSegments:    {"", "0", "four", "4 4"},
		EnvBasePort:       {"", "0", "65536", "-20380", "http"},
	} {
		for _, value := range values {
			_, err := ParsePolicy(EnvSettings(environment(map[string]string{variable: value})))
			var refused *PolicyError
			if !errors.As(err, &refused) || len(refused.Problems) != 1 {
				t.Errorf("%s=%q: %v", variable, value, err)
				continue
			}
			if p := refused.Problems[0]; p.Source != variable || p.Value != value || p.Allowed == "" {
				t.Errorf("%s=%q: the problem is %+v", variable, value, p)
			}
		}
	}
}

func TestParsePolicyListsAllProblems(t *testing.T) {
	vars := map[string]string{
		EnvTrace: "false", EnvOutputPath: " ", EnvMode: "fast", EnvSampleInterval: "0",
		EnvRollBytes: "256MiB", EnvMaxSegments: "-1", EnvBasePort: "99999",
	}
	_, err := ParsePolicy(EnvSettings(environment(vars)))
	const want = `DYN_FPM_OUTPUT_PATH is empty (" "); unset it, or set it to a path that is not blank; ` +
		`DYN_FPM_MODE is "fast": it takes sampled or full; ` +
		`DYN_FPM_SAMPLE_INTERVAL_MS is "0": it takes a positive integer; ` +
		`DYN_FPM_JSONL_GZ_ROLL_BYTES is "256MiB": it takes a positive integer; ` +
		`DYN_FPM_MAX_SEGMENTS is "-1": it takes a positive integer; ` +
		`DYN_FORWARDPASS_METRIC_PORT is "99999": it takes a port from 1 to 65535`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestIntervalOfAFlag(t *testing.T) {
	parse := func(text string) (time.Duration, error) {
		p, err := ParsePolicy(func(variable string) (Setting, bool) {
			return Setting{Source: "--sample-interval", Text: text, Flag: true}, variable == EnvSampleInterval
		})
		return p.SampleInterval, err
	}
	for text, want := range map[string]time.Duration{"5000": 5 * time.Second, "5s": 5 * time.Second, " 1m30s ": 90 * time.Second, "1ms": time.Millisecond} {
		if got, err := parse(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "0s", "-5s", "999us", "5 s", "s"} {
		if got, err := parse(text); err == nil || !strings.Contains(err.Error(), "--sample-interval is") || !strings.Contains(err.Error(), "5s") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

func TestPolicyFromEnv(t *testing.T) {
	for _, v := range Variables() {
		t.Setenv(v, "")
	}
	p, warning := PolicyFromEnv() // an empty switch is a mistake, not an unset one
	if p.Enabled || !strings.Contains(warning, EnvTrace) {
		t.Errorf("an empty switch: %+v, %q", p, warning)
	}
	t.Setenv(EnvTrace, "0")
	if p, warning := PolicyFromEnv(); p != DefaultPolicy() || warning != "" {
		t.Errorf("off, with mistakes behind it: %+v, %q", p, warning)
	}
}

func TestLibraryPolicyNeverFailsItsHost(t *testing.T) {
	for _, c := range []struct {
		vars    map[string]string
		enabled bool
		names   string // what the warning names; no warning if empty
	}{
		{nil, false, ""},
		{map[string]string{EnvMode: "full"}, false, ""}, // other variables switch nothing on
		{map[string]string{EnvTrace: "1"}, true, ""},
		{map[string]string{EnvTrace: "maybe"}, false, EnvTrace},
		{map[string]string{EnvTrace: "\xff"}, false, ""},
		{map[string]string{EnvTrace: "1", EnvRollBytes: "no", EnvMaxSegments: "secret"}, false, EnvRollBytes},
	} {
		got, warning := policyFrom(environment(c.vars))
		if got.Enabled != c.enabled || (warning != "") != (c.names != "") || !strings.Contains(warning, c.names) {
			t.Errorf("%v: enabled %t, warning %q", c.vars, got.Enabled, warning)
		}
		if !got.Enabled && got != DefaultPolicy() {
			t.Errorf("%v: a policy that is off keeps %+v", c.vars, got)
		}
		if strings.Contains(warning, "secret") || strings.Contains(warning, EnvMaxSegments) {
			t.Errorf("%v: more than the first problem is told: %q", c.vars, warning)
		}
	}
}

// FuzzParsePolicy checks that whatever a variable holds, the policy is usable or refused
// with that variable's name, and that white space around it changes nothing.
func FuzzParsePolicy(f *testing.F) {
	for i := range Variables() {
		for _, text := range []string{"1", "full", "5s", "+5", "18446744073709551616", "\xff", " "} {
			f.Add(i, text, i%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, which int, text string, flag bool) {
		variable := Variables()[uint(which)%uint(len(Variables()))]
		parse := func(text string) (Policy, error) {
			return ParsePolicy(func(v string) (Setting, bool) { return Setting{Source: v, Text: text, Flag: flag}, v == variable })
		}
		got, err := parse(text)
		padded, errPadded := parse("\t" + text + " ")
		if got != padded || (err == nil) != (errPadded == nil) {
			t.Fatalf("%s=%q: white space changes %+v, %v to %+v, %v", variable, text, got, err, padded, errPadded)
		}
		if err != nil {
			if got != (Policy{}) || !strings.Contains(err.Error(), variable) || !strings.Contains(err.Error(), strconv.Quote(text)) {
				t.Fatalf("%s=%q: %+v, %v", variable, text, got, err)
			}
			return
		}
		if got.SampleInterval < time.Millisecond || got.RollBytes == 0 || got.MaxSegments < 1 || got.BasePort < 1 || got.BasePort > 65535 ||
			got.Output == "" || got.Mode != wire.Full && got.Mode != wire.Sampled {
			t.Fatalf("%s=%q: %+v", variable, text, got)
		}
	})
}
