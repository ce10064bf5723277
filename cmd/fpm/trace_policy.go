package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/trace"
	"github.com/fpm-project/fpm/trace/wire"
)

// policyFlags maps the variables of a recording's policy to the flags that beat them.
func policyFlags() map[string]string {
	return map[string]string{
		trace.EnvOutputPath:     "output",
		trace.EnvMode:           "mode",
		trace.EnvSampleInterval: "sample-interval",
		trace.EnvRollBytes:      "roll-bytes",
		trace.EnvMaxSegments:    "max-segments",
		trace.EnvBasePort:       "base-port",
	}
}

// addPolicyFlags adds the flags of a recording's policy, all of them texts: what is wrong
// with them is told together with what is wrong with the variables, see [app.policy].
func addPolicyFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Bool("fpm-trace", false, "record even when "+trace.EnvTrace+" says not to")
	flags.Bool("no-fpm-trace", false, "do not record")
	flags.StringP("output", "o", trace.DefaultOutput, "`PREFIX` of the segments' paths ("+trace.EnvOutputPath+")")
	flags.String("mode", string(wire.Sampled), "`MODE`: sampled, or full ("+trace.EnvMode+")")
	flags.String("sample-interval", fmt.Sprint(trace.DefaultSampleInterval), "in sampled mode, time between two writes: a duration or milliseconds ("+trace.EnvSampleInterval+")")
	flags.String("roll-bytes", fmt.Sprint(trace.DefaultRollBytes), "uncompressed `BYTES` after which a segment is full ("+trace.EnvRollBytes+")")
	flags.String("max-segments", fmt.Sprint(trace.DefaultMaxSegments), "keep `N` segments of each producer ("+trace.EnvMaxSegments+")")
	addBasePort(cmd)
	complete := cobra.FixedCompletions([]string{string(wire.Sampled), string(wire.Full)}, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc("mode", complete); err != nil {
		panic(err) // the flag is defined above
	}
}

func addBasePort(cmd *cobra.Command) {
	cmd.Flags().String("base-port", fmt.Sprint(trace.DefaultBasePort), "TCP `PORT` of DP rank 0 ("+trace.EnvBasePort+")")
}

// policy returns the policy that the flags and the environment set. Only the variables
// that are named are looked at, all of them when none is. The error is a usage error
// that says everything that is wrong.
func (a *app) policy(cmd *cobra.Command, variables ...string) (trace.Policy, error) {
	if len(variables) == 0 {
		variables = trace.Variables()
	}
	flags, env := policyFlags(), trace.EnvSettings(a.lookup)
	wanted := make(map[string]bool)
	for _, v := range variables {
		wanted[v] = true
	}
	policy, err := trace.ParsePolicy(func(variable string) (trace.Setting, bool) {
		switch {
		case !wanted[variable]:
			return trace.Setting{}, false
		case variable == trace.EnvTrace:
			return switchSetting(cmd, env)
		case isSet(cmd, flags[variable]):
			return trace.Setting{Source: "--" + flags[variable], Text: cmd.Flag(flags[variable]).Value.String(), Flag: true}, true
		default:
			return env(variable)
		}
	})
	if wanted[trace.EnvTrace] && isSet(cmd, "fpm-trace") && isSet(cmd, "no-fpm-trace") {
		return trace.Policy{}, policyFault(err, "--fpm-trace and --no-fpm-trace contradict each other")
	}
	return policy, policyFault(err)
}

// isSet tells whether a flag is on the command line.
func isSet(cmd *cobra.Command, flag string) bool { return cmd.Flags().Changed(flag) }

// switchSetting returns the setting of the master switch. Its flags are two, each with a
// value of its own: --fpm-trace=false is --no-fpm-trace.
func switchSetting(cmd *cobra.Command, env func(string) (trace.Setting, bool)) (trace.Setting, bool) {
	for flag, on := range map[string]string{"fpm-trace": "true", "no-fpm-trace": "false"} {
		if isSet(cmd, flag) {
			return trace.Setting{Source: "--" + flag, Text: fmt.Sprint(cmd.Flag(flag).Value.String() == on), Flag: true}, true
		}
	}
	return env(trace.EnvTrace)
}

// policyFault puts the problems of a policy, behind those that are known already, into one
// usage error.
func policyFault(err error, lines ...string) error {
	var refused *trace.PolicyError
	switch {
	case errors.As(err, &refused):
		for _, p := range refused.Problems {
			lines = append(lines, p.String())
		}
	case err != nil || len(lines) == 0:
		return err
	}
	return &exitcode.Error{Code: exitcode.Usage, Message: strings.Join(lines, "; "), Err: err}
}
