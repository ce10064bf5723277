package main

import "github.com/spf13/cobra"

// newHelp returns the help command. The library's own one takes an unknown command for a
// success.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND...]",
		Short: "Show the help text of a command",
		Example: `  fpm help
  fpm help rules`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			topic, rest := topicOf(cmd.Root(), args)
			if len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return subcommands(topic), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest := topicOf(cmd.Root(), args)
			if len(rest) > 0 {
				return unknownCommand(topic, rest[0])
			}
			topic.InitDefaultHelpFlag() // as if it had been called with --help
			return topic.Help()
		},
	}
}

// topicOf follows names down the tree of commands, and returns the names that lead no
// further.
func topicOf(cmd *cobra.Command, names []string) (topic *cobra.Command, rest []string) {
	for i, name := range names {
		next := child(cmd, name)
		if next == nil {
			return cmd, names[i:]
		}
		cmd = next
	}
	return cmd, nil
}

func child(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}
