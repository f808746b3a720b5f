package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve/explain"
)

func newTree(a *app) *cobra.Command {
	namespace := ""
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Show the operators in the lock with their dependencies",
		Long: Doc(`
			Show the operators in the lock as trees, with the dependencies below each declared
			operator. The picture (svg) and the page (html) group the operators by namespace, and
			combine clusters with the same operators.

			--namespace lists the operators that watch a namespace instead, with the APIs that they
			provide.`),
		Example: Examples(`
			quayside tree
			quayside tree --namespace team-a
			quayside tree -o svg`),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case namespace == "":
				return a.printTree()
			case a.output == "svg" || a.output == "html":
				return Usagef(cmd, "--namespace has no picture: use -o text, json or yaml")
			}
			return printWatchers(a, namespace)
		},
	}
	addOutput(cmd, a, []string{"svg", "html"}, []explain.Node{}, []explain.Watcher{})
	cmd.Flags().StringVar(&namespace, "namespace", "", "list the operators that watch `NAMESPACE`")
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

// printWatchers lists the operators that watch a namespace.
func printWatchers(a *app, namespace string) error {
	_, lock, err := a.openLocked()
	if err != nil {
		return err
	}
	list := explain.Watchers(lock, namespace)
	return a.print(list, func(w io.Writer) {
		if fmt.Fprint(w, explain.WatchersText(list)); len(list) == 0 {
			a.log.Note("no operator in %s watches namespace %s", workspace.LockFile, sanitize.Line(namespace))
		}
	})
}
