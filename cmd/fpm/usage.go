package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/nearest"
)

// usageError returns an error of the command line with its exit status and a hint.
func usageError(cmd *cobra.Command, err error) error {
	help := fmt.Sprintf("run '%s --help'", cmd.CommandPath())
	var own *exitcode.Error
	if !errors.As(err, &own) {
		return &exitcode.Error{Code: exitcode.Usage, Message: err.Error(), Hint: help, Err: err}
	}
	if own.Hint == "" {
		own.Hint = help
	}
	return own
}

// mistyped returns the usage error for a name that does not exist, with those near to it.
func mistyped(cmd *cobra.Command, message, name string, known []string) error {
	return mistypedOf(message, name, known, fmt.Sprintf("run '%s --help'", cmd.CommandPath()))
}

// mistypedRule is mistyped for the id of a rule: what lists them is no help text.
func mistypedRule(message, name string) error {
	return mistypedOf(message, name, ruleIDs(), "'fpm rules' lists them")
}

func mistypedOf(message, name string, known []string, hint string) error {
	if near := nearest.Names(name, known); len(near) > 0 {
		hint = fmt.Sprintf("did you mean %s? %s", strings.Join(near, " or "), hint)
	}
	return &exitcode.Error{Code: exitcode.Usage, Message: message, Hint: hint}
}

// group is what a command does that has only sub-commands: nothing it was asked for.
func group(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return unknownCommand(cmd, args[0])
	}
	return &exitcode.Error{
		Code: exitcode.Usage, Message: "no command given",
		Hint: fmt.Sprintf("the commands are %s; run '%s --help'", strings.Join(subcommands(cmd), ", "), cmd.CommandPath()),
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	message := fmt.Sprintf("unknown command %q for %q", name, cmd.CommandPath())
	return mistyped(cmd, message, name, subcommands(cmd))
}

// subcommands returns the names of the sub-commands that the help text shows.
func subcommands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	return names
}

// flagError puts an error of the flags into words. A flag that does not exist may only
// be there because the command does not: then that is what is wrong.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	var (
		unknown *pflag.NotExistError
		invalid *pflag.InvalidValueError
	)
	switch {
	case errors.As(err, &unknown):
		return mistyped(cmd, err.Error(), "--"+unknown.GetSpecifiedName(), flagNames(cmd))
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %s", invalid.GetFlag().Name, valueFault(invalid))
	default:
		return err
	}
}

func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

// kindOf says what the value of a flag must be, when its type is one of the library's.
func kindOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int", "int64", "int32":
		return "a whole number"
	case "uint", "uint64", "uint32":
		return "a whole number of 0 or more"
	case "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 90s or 5m"
	default:
		return ""
	}
}

// valueFault says what is wrong with a flag's value without naming the function that
// found out.
func valueFault(e *pflag.InvalidValueError) string {
	kind := kindOf(e.GetFlag())
	switch {
	case kind == "":
		return e.Unwrap().Error()
	case errors.Is(e.Unwrap(), strconv.ErrRange):
		return fmt.Sprintf("%s is out of range", e.GetValue())
	default:
		return fmt.Sprintf("%q is not %s", e.GetValue(), kind)
	}
}

// noArgs is for commands that take no arguments.
func noArgs(cmd *cobra.Command, args []string) error { return atMost(0)(cmd, args) }

// atMost is for commands that take up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) <= n:
			return nil
		case n == 0:
			return fmt.Errorf("%s takes no arguments, but %q is there", commandName(cmd), args[0])
		case n == 1:
			return fmt.Errorf("%s takes one argument, but %q is there, too", commandName(cmd), args[1])
		default:
			return fmt.Errorf("%s takes %d arguments at most, but %q is there, too", commandName(cmd), n, args[n])
		}
	}
}

// deferred is the value of a flag that takes any text: what is wrong with it is told
// together with everything else that is wrong, where parsing would end at the first.
type deferred struct {
	pflag.Value
	fault string
}

// Set never fails.
func (d *deferred) Set(text string) error {
	d.fault = ""
	switch err := d.Value.Set(text); {
	case errors.Is(err, strconv.ErrRange):
		d.fault = text + " is out of range"
	case err != nil:
		d.fault = fmt.Sprintf("%q is not %s", text, kindOf(&pflag.Flag{Value: d.Value}))
	}
	return nil
}

// deferFaults makes flags, of types that kindOf knows, deferred ones.
func deferFaults(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		flag := cmd.Flag(name)
		flag.Value = &deferred{Value: flag.Value}
		if flag.DefValue == "0s" {
			flag.DefValue = "0" // help shows other zeroes of types that are not the library's
		}
	}
}

// faultOf returns what is wrong with the value of a deferred flag, "" when nothing is.
func faultOf(cmd *cobra.Command, name string) string {
	if d, ok := cmd.Flag(name).Value.(*deferred); ok && d.fault != "" {
		return "--" + name + ": " + d.fault
	}
	return ""
}
