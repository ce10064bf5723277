package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
	"github.com/fpm-project/fpm/internal/report"
)

const rootHelp = `fpm works on the artifacts of self-benchmark runs: one JSON file per data-parallel
rank, with a forward-pass metric for every measured point and the evidence that
belongs to it. It says whether the files are one run, names everything that is
wrong with file, place and rule, and merges them (merge). It checks artifacts of
every kind and explains them (validate), and shows what they say (show). It also
records the forward-pass metrics that inference workers publish, and reads what was
recorded (trace).

Every command works offline, but for what is there to reach others: probe-report --url
asks a server, serve is one, trace record and trace top subscribe to workers, and
simulate stream stands in for them.`

// newRoot returns the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:               "fpm",
		Short:             "Check and merge self-benchmark artifacts, record forward-pass metrics",
		Long:              rootHelp,
		SilenceErrors:     true, // what went wrong is reported in the format that was asked for
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	a.addFlags(root)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpTemplate(root.HelpTemplate() + exitStatusHelp())
	// A group of commands can be run so that it can say what is missing, not to be of use.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.SetHelpCommand(newHelp())
	root.AddCommand(
		newMerge(a),
		newValidate(a),
		newShow(a),
		newProbeReport(a),
		newServe(a),
		newSimulate(a),
		newTrace(a),
		newRules(a),
		newSchema(a),
		newVersion(a),
		newCompletion(a),
	)
	a.prepare(root)
	return root
}

func (a *app) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.Var((*formatFlag)(&a.opts.format), "format", "form of the report on standard output: "+formatNames())
	flags.UintVar(&a.opts.maxFindings, "max-findings", a.opts.maxFindings, "print at most `N` findings; 0 prints all")
	flags.BoolVarP(&a.opts.quiet, "quiet", "q", false, "no progress, no warnings and no notes")
	flags.BoolVar(&a.opts.noColor, "no-color", false, "no colour, even on a terminal")
	complete := cobra.FixedCompletions(strings.Split(formatNames(), ", "), cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("format", complete); err != nil {
		panic(err) // the flag is defined above
	}
}

// prepare does for every command of a tree what none may forget: arguments are checked,
// a group of commands refuses those it does not have, and the app knows when the work
// begins.
func (a *app) prepare(cmd *cobra.Command) {
	if cmd.HasSubCommands() {
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, group
	} else if cmd.Args == nil {
		panic(cmd.CommandPath() + " does not say which arguments it takes")
	}
	body := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.HasSubCommands() {
			a.started = cmd
		}
		return body(cmd, args)
	}
	for _, sub := range cmd.Commands() {
		a.prepare(sub)
	}
}

// exitStatusHelp is the table of exit statuses as it stands in every help text.
func exitStatusHelp() string {
	var b strings.Builder
	b.WriteString("\nExit Status:\n")
	for _, row := range exitcode.Table() {
		text := wrap(row.Meaning, 72)
		fmt.Fprintf(&b, "  %3d  %s\n", row.Code, strings.Join(text, "\n       "))
	}
	return b.String()
}

// wrap breaks a text at spaces into lines of at most width characters.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}

// formatFlag is the value of --format.
type formatFlag report.Format

func (f *formatFlag) String() string { return string(*f) }
func (f *formatFlag) Type() string   { return "FORMAT" }
func (f *formatFlag) Set(name string) error {
	format, err := report.ParseFormat(name)
	if err == nil {
		*f = formatFlag(format)
	}
	return err
}

func formatNames() string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// formatOf returns the format that arguments ask for, when the command line as a whole
// could not be understood.
func formatOf(args []string) report.Format {
	format := report.Text
	for i, arg := range args {
		name, ok := strings.CutPrefix(arg, "--format=")
		if arg == "--format" && i+1 < len(args) {
			name, ok = args[i+1], true
		}
		if f, err := report.ParseFormat(name); ok && err == nil {
			format = f
		}
		if arg == "--" {
			break
		}
	}
	return format
}

// commandName returns a command as it is called, without the program's name: "merge",
// "simulate run".
func commandName(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}
