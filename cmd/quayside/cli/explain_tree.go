package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/resolve"
)

func newTree(a *app) *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:               "tree",
		Short:             "Show the operators in the lock and what they depend on",
		Long:              "Show the operators in the lock as trees: each declared one with the operators that it depends on below it.",
		Example:           examples(`quayside tree`),
		Args:              noArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			s, err := o.open()
			if err != nil {
				return err
			}
			lock, err := s.NeedLock()
			if err != nil {
				return err
			}
			nodes := resolve.Tree(lock)
			return o.printText(nodes, resolve.TreeText(nodes))
		},
	}
	addOutput(cmd, a, nil, []resolve.Node{})
	return cmd
}
