package trace

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/fpm-project/fpm/trace/wire"
)

// The environment variables that configure a recording. The first six are those of
// Dynamo's own writer, the last that of its engines.
const (
	EnvTrace          = "DYN_FPM_TRACE"
	EnvOutputPath     = "DYN_FPM_OUTPUT_PATH"
	EnvMode           = "DYN_FPM_MODE"
	EnvSampleInterval = "DYN_FPM_SAMPLE_INTERVAL_MS"
	EnvRollBytes      = "DYN_FPM_JSONL_GZ_ROLL_BYTES"
	EnvMaxSegments    = "DYN_FPM_MAX_SEGMENTS"
	EnvBasePort       = "DYN_FORWARDPASS_METRIC_PORT"
)

// Variables returns the environment variables of a [Policy] in the order in which their
// problems are listed.
func Variables() []string {
	return []string{EnvTrace, EnvOutputPath, EnvMode, EnvSampleInterval, EnvRollBytes, EnvMaxSegments, EnvBasePort}
}

// The defaults of a [Policy].
const (
	DefaultOutput                = "/tmp/dynamo-fpm"
	DefaultSampleInterval        = 5 * time.Second
	DefaultRollBytes      uint64 = 256 << 20
	DefaultMaxSegments           = 4
	DefaultBasePort              = 20380
)

// Policy is how a fleet is recorded.
type Policy struct {
	Enabled bool   // the master switch; see [ParsePolicy] and [PolicyFromEnv] for an unset one
	Output  string // prefix of the segments' paths, as it was given
	Mode    wire.Mode

	// SampleInterval is the time between two writes in sampled mode. A number of
	// milliseconds too large for a duration is the longest one.
	SampleInterval time.Duration

	RollBytes   uint64 // uncompressed bytes after which a segment is full
	MaxSegments int    // segments kept for each producer, the active one included
	BasePort    int    // TCP port of DP rank 0
}

// DefaultPolicy returns the policy of a recording that nothing configures.
func DefaultPolicy() Policy {
	return Policy{
		Output: DefaultOutput, Mode: wire.Sampled, SampleInterval: DefaultSampleInterval,
		RollBytes: DefaultRollBytes, MaxSegments: DefaultMaxSegments, BasePort: DefaultBasePort,
	}
}

// A Setting is the text that sets one variable of a [Policy].
type Setting struct {
	Source string // where it comes from, as its user knows it: the variable, or a flag such as "--mode"
	Text   string
	Flag   bool // comes from a flag: an interval may then have a unit, too
}

// A Problem is a setting that has no meaning.
type Problem struct {
	Source  string // the variable or the flag
	Value   string // what it was set to
	Allowed string // what it could be set to
}

// String says what is wrong and what would not be.
func (p Problem) String() string {
	if strings.TrimSpace(p.Value) == "" && !strings.HasPrefix(p.Source, "-") {
		return fmt.Sprintf("%s is empty (%q); unset it, or set it to %s", p.Source, p.Value, p.Allowed)
	}
	return fmt.Sprintf("%s is %q: it takes %s", p.Source, p.Value, p.Allowed)
}

// A PolicyError lists every setting of a policy that has no meaning.
type PolicyError struct {
	Problems []Problem // in the order of [Variables]
}

// Error says all problems.
func (e *PolicyError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

// ParsePolicy makes a policy of settings, which are looked up by the name of their
// variable. What is not set has its default; a policy whose master switch is not set is
// enabled, because whoever asks for a recording wants one.
//
// The error is a *[PolicyError] with all problems. A switch that is off hides none of
// them: a command line with a mistake in it is refused whatever it was going to do.
func ParsePolicy(lookup func(variable string) (Setting, bool)) (Policy, error) {
	p := policyParser{lookup: lookup}
	policy := DefaultPolicy()
	policy.Enabled = true
	p.parse(EnvTrace, allowedBool, func(s Setting) bool { return parseBool(s.Text, &policy.Enabled) })
	p.parse(EnvOutputPath, allowedPath, func(s Setting) bool { return parsePath(s.Text, &policy.Output) })
	p.parse(EnvMode, allowedMode, func(s Setting) bool { return parseMode(s.Text, &policy.Mode) })
	p.parse(EnvSampleInterval, allowedInteger, func(s Setting) bool { return parseInterval(s, &policy.SampleInterval) })
	p.parse(EnvRollBytes, allowedInteger, func(s Setting) bool { return parseInteger(s.Text, &policy.RollBytes) })
	p.parse(EnvMaxSegments, allowedInteger, func(s Setting) bool { return parseCount(s.Text, &policy.MaxSegments) })
	p.parse(EnvBasePort, allowedPort, func(s Setting) bool { return parsePort(s.Text, &policy.BasePort) })
	if len(p.problems) > 0 {
		return Policy{}, &PolicyError{p.problems}
	}
	return policy, nil
}

// PolicyFromEnv returns the policy that the environment of the process sets, for a host
// that records as a side of its real work. It never fails its host: without
// DYN_FPM_TRACE, or with a false one, the policy is that of [DefaultPolicy], which is
// not enabled; one variable that has no meaning does the same and returns a warning. A
// value that is not UTF-8 counts as unset.
func PolicyFromEnv() (policy Policy, warning string) {
	return policyFrom(os.LookupEnv)
}

// policyFrom is [PolicyFromEnv] for any environment. A switch that is off hides all
// problems, and the first problem is the only one told: this is how Dynamo reads the
// same variables in the same process.
func policyFrom(lookup func(string) (string, bool)) (Policy, string) {
	setting := EnvSettings(lookup)
	var on bool
	s, set := setting(EnvTrace)
	if !set || parseBool(s.Text, &on) && !on {
		return DefaultPolicy(), ""
	}
	policy, err := ParsePolicy(setting)
	if err != nil {
		first := err.(*PolicyError).Problems[0]
		return DefaultPolicy(), fmt.Sprintf("invalid configuration of forward-pass tracing, which is off therefore: %s takes %s", first.Source, first.Allowed)
	}
	return policy, ""
}

// EnvSettings returns the lookup of [ParsePolicy] for an environment. A value that is
// not UTF-8 counts as unset.
func EnvSettings(lookup func(string) (string, bool)) func(variable string) (Setting, bool) {
	return func(variable string) (Setting, bool) {
		text, ok := lookup(variable)
		if !ok || strings.ToValidUTF8(text, "") != text {
			return Setting{}, false
		}
		return Setting{Source: variable, Text: text}, true
	}
}

// What a setting may be, as messages say it.
const (
	allowedBool     = "1, true, on or yes, or 0, false, off or no"
	allowedPath     = "a path that is not blank"
	allowedMode     = "sampled or full"
	allowedInteger  = "a positive integer"
	allowedInterval = "a positive number of milliseconds, or a duration such as 5s"
	allowedPort     = "a port from 1 to 65535"
)

// policyParser collects the problems of a policy.
type policyParser struct {
	lookup   func(string) (Setting, bool)
	problems []Problem
}

// parse looks a variable up and notes a problem when accept refuses its setting.
func (p *policyParser) parse(variable, allowed string, accept func(Setting) bool) {
	s, ok := p.lookup(variable)
	if !ok || accept(s) {
		return
	}
	if s.Flag && variable == EnvSampleInterval {
		allowed = allowedInterval
	}
	p.problems = append(p.problems, Problem{Source: s.Source, Value: s.Text, Allowed: allowed})
}

func parseBool(text string, to *bool) bool {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "1", "true", "on", "yes":
		*to = true
	case "0", "false", "off", "no":
		*to = false
	default:
		return false
	}
	return true
}

func parsePath(text string, to *string) bool {
	*to = strings.TrimSpace(text)
	return *to != ""
}

func parseMode(text string, to *wire.Mode) bool {
	*to = wire.Mode(strings.ToLower(strings.TrimSpace(text)))
	return *to == wire.Sampled || *to == wire.Full
}

// parseInteger accepts a positive decimal integer within 64 bits, with a plus sign if
// need be, between white space.
func parseInteger(text string, to *uint64) bool {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(text), "+"), 10, 64)
	*to = n
	return err == nil && n > 0
}

// parseCount is parseInteger for what is counted in an int. More than that of anything
// is as good as no limit.
func parseCount(text string, to *int) bool {
	var n uint64
	ok := parseInteger(text, &n)
	*to = int(min(n, math.MaxInt))
	return ok
}

func parsePort(text string, to *int) bool {
	return parseCount(text, to) && *to <= math.MaxUint16
}

func parseInterval(s Setting, to *time.Duration) bool {
	var ms uint64
	if parseInteger(s.Text, &ms) {
		*to = time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
		return true
	}
	if !s.Flag {
		return false
	}
	d, err := time.ParseDuration(strings.TrimSpace(s.Text))
	*to = d
	return err == nil && d >= time.Millisecond
}
