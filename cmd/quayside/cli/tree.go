package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/treeview"
	"github.com/quayside/quayside/resolve"
)

func newTree(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Show the operators in the lock and what they depend on",
		Long: doc(`
			Show the operators in the lock as trees: each declared one with the operators
			that it depends on below it. As a picture (svg) or a page (html) they stand in
			their namespaces, once for all clusters that get the same.`),
		Example: examples(`
			quayside tree
			quayside tree -o svg`),
		RunE: func(*cobra.Command, []string) error { return a.tree() },
	}
	addOutput(cmd, a, []string{"svg", "html"}, []resolve.Node{})
	return cmd
}

func (a *app) tree() error {
	p, lock, err := a.locked()
	if err != nil {
		return err
	}
	nodes := resolve.Tree(lock)
	if a.output == "text" {
		return a.print(nodes, func(w io.Writer) {
			if fmt.Fprint(w, resolve.TreeText(nodes)); len(nodes) == 0 {
				a.talk.Note("%s pins nothing: 'quayside add' declares an operator", project.LockFile)
			}
		})
	}
	clusters, err := p.Recipients(lock)
	if err != nil {
		return err
	}
	text, err := treeview.Of(nodes, clusters).Print(a.output)
	if err != nil {
		return err
	}
	return a.print(nodes, func(w io.Writer) { fmt.Fprintf(w, "%s", text) })
}
