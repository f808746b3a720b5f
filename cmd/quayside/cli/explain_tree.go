package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/resolve"
)

func newTree(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tree",
		Short:   "Show the operators in the lock and what they depend on",
		Long:    "Show the operators in the lock as trees: each declared one with the operators that it depends on below it.",
		Example: examples(`quayside tree`),
		RunE: func(*cobra.Command, []string) error {
			_, lock, err := a.locked()
			if err != nil {
				return err
			}
			nodes := resolve.Tree(lock)
			return a.printText(nodes, resolve.TreeText(nodes))
		},
	}
	addOutput(cmd, a, nil, []resolve.Node{})
	return cmd
}
