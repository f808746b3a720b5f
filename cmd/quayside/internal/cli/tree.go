package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/resolve/explain"
)

func newTree(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Show the operators in the lock with their dependencies",
		Long: Doc(`
			Show the operators in the lock as trees, with the dependencies below each declared
			operator. The picture (svg) and the page (html) group the operators by namespace, and
			combine clusters with the same operators.`),
		Example: Examples(`
			quayside tree
			quayside tree -o svg`),
		RunE: func(*cobra.Command, []string) error { return a.printTree() },
	}
	addOutput(cmd, a, []string{"svg", "html"}, []explain.Node{})
	return cmd
}

func (a *app) printTree() error {
	p, lock, err := a.openLocked()
	if err != nil {
		return err
	}
	nodes := explain.Tree(lock)
	if a.output == "text" {
		return a.print(nodes, func(w io.Writer) {
			if fmt.Fprint(w, explain.TreeText(nodes)); len(nodes) == 0 {
				a.log.Note("%s is empty: run 'quayside add' to declare an operator", workspace.LockFile)
			}
		})
	}
	forest, err := inventory.NewForest(nodes, p.Settings.Clusters)
	if err != nil {
		return err
	}
	text, err := forest.Print(a.output)
	if err != nil {
		return err
	}
	return a.print(nodes, func(w io.Writer) { fmt.Fprintf(w, "%s", text) })
}
