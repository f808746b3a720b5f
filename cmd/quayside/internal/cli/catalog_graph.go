package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/catalog/graph"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

func newCatalogGraph(a *app) *cobra.Command {
	o := &catalogOptions{app: a}
	var namespace string
	var all bool
	cmd := &cobra.Command{
		Use:   "graph <package>",
		Short: "Show the upgrade graph of a package",
		Long: Doc(`
			Show the upgrade graph of a package, by channel: as text, as a picture (svg), as a page
			for a browser (html), or for Graphviz (dot) or Mermaid.

			If the package is in the lock, quayside shows its channel from the pinned version to the
			head, and marks the remaining hops. Otherwise it shows the newest versions of every
			channel. --all-versions shows every version. JSON and YAML always have the whole graph.`),
		Example: Examples(`
			quayside catalog graph memcached-operator
			quayside catalog graph etcd --namespace my-etcd -o mermaid
			quayside catalog graph etcd -n vault -o svg`),
		Args:              WantArgs("a package"),
		ValidArgsFunction: completeFirst(o.packageCompletions),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.printGraph(cmd, args[0], namespace, all) },
	}
	o.addFlags(cmd, graphView{}, "dot", "mermaid", "svg", "html")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "mark the version installed in this `NAMESPACE` (default: the only one)")
	cmd.Flags().BoolVar(&all, "all-versions", false, "show every version of every channel")
	a.offer(cmd, "namespace", a.completions(edit.Completer.Namespaces))
	return cmd
}

// graphView is the output of `catalog graph`: the upgrade graph of a package in each catalog.
type graphView struct {
	Graphs []graph.Graph `json:"graphs"`
}

func (o *catalogOptions) printGraph(cmd *cobra.Command, name, namespace string, all bool) error {
	pkgs, err := o.find(cmd, name)
	if err != nil {
		return err
	}
	pin, err := o.pinOf(cmd, name, namespace)
	if err != nil {
		return err
	}
	var hops []string
	if pin != nil {
		p, err := o.open()
		if err != nil {
			return err
		}
		pr, err := workspace.ReadProblem(cmd.Context(), p, workspace.Request{Options: p.ResolveOptions()})
		if err != nil {
			return err
		}
		hops = pr.Hops(*pin)
	}
	graphs := make([]graph.Graph, len(pkgs))
	for i, p := range pkgs {
		graphs[i] = graph.New(p, pin, hops)
	}
	text, err := graph.Print(o.output, graphs, all)
	if err != nil {
		return err
	}
	return o.print(graphView{graphs}, func(w io.Writer) { fmt.Fprint(w, text) })
}

// pinOf returns the pin of a package in a namespace or, if namespace is empty, the only pin of the package. It
// returns nil if there is no lock, or if namespace is empty and the package is not pinned.
func (o *catalogOptions) pinOf(cmd *cobra.Command, name, namespace string) (*lockfile.Pin, error) {
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	lock, err := p.LockIfAny()
	if lock == nil {
		return nil, err
	}
	var found []*lockfile.Pin
	for i, p := range lock.Pins {
		if p.Package == name && (namespace == "" || p.Namespace == namespace) {
			found = append(found, &lock.Pins[i])
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, Usagef(cmd, "%q is installed in several namespaces (%s, %s): choose one with --namespace", name, found[0].Namespace, found[1].Namespace)
	case namespace != "":
		return nil, fmt.Errorf("%s/%s is not in %s", namespace, name, workspace.LockFile)
	default:
		return nil, nil
	}
}
