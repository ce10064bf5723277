package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fpm-project/fpm/internal/exitcode"
)

const completionHelp = `Write the completion script of a shell to standard output.

bash, for every new shell (needs the bash-completion package):

  fpm completion bash > /etc/bash_completion.d/fpm

zsh, into a directory of $fpath:

  fpm completion zsh > "${fpath[1]}/_fpm"

fish:

  fpm completion fish > ~/.config/fish/completions/fpm.fish

PowerShell, for the running shell; add the line to the profile to keep it:

  fpm completion powershell | Out-String | Invoke-Expression`

func newCompletion(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Write the completion script of a shell",
		Long:  completionHelp,
		Example: `  source <(fpm completion bash)
  fpm completion zsh > "${fpath[1]}/_fpm"`,
		ValidArgs: shells,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &exitcode.Error{Code: exitcode.Usage, Message: fmt.Sprintf("completion takes one shell: %s", strings.Join(shells, ", "))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.noFindings(cmd); err != nil {
				return err
			}
			write, ok := completionScript(cmd.Root(), args[0])
			if !ok {
				return mistyped(cmd, fmt.Sprintf("no completion for %q: the shells are %s", args[0], strings.Join(shells, ", ")), args[0], shells)
			}
			return write(cmd.OutOrStdout())
		},
	}
}

// completionScript returns the writer of a shell's script.
func completionScript(root *cobra.Command, shell string) (write func(io.Writer) error, ok bool) {
	switch shell {
	case "bash":
		return func(w io.Writer) error { return root.GenBashCompletionV2(w, true) }, true
	case "zsh":
		return root.GenZshCompletion, true
	case "fish":
		return func(w io.Writer) error { return root.GenFishCompletion(w, true) }, true
	case "powershell":
		return root.GenPowerShellCompletionWithDesc, true
	default:
		return nil, false
	}
}
