package cli

import "github.com/spf13/cobra"

func newCompletion(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	cmd := &cobra.Command{
		Use:   "completion {bash | zsh | fish | powershell}",
		Short: "Print a completion script for a shell",
		Long: Doc(`
			Print a script that completes quayside's commands, flags, packages and namespaces in a
			shell. The script for bash requires the package bash-completion.

			Install the script for all sessions:

			  bash        quayside completion bash > ~/.local/share/bash-completion/completions/quayside
			  zsh         quayside completion zsh > "${fpath[1]}/_quayside"
			  fish        quayside completion fish > ~/.config/fish/completions/quayside.fish
			  powershell  quayside completion powershell >> $PROFILE`),
		Example:   Examples(`quayside completion bash`),
		ValidArgs: shells,
		Args:      WantArgs("a shell (bash, zsh, fish or powershell)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			default:
				return Usagef(cmd, "unknown shell %q: must be one of bash, zsh, fish, powershell", args[0])
			}
		},
	}
	return cmd
}
