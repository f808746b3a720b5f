package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/resolve"
)

func newWhy(a *app) *cobra.Command {
	o := &explainOptions{app: a}
	cmd := &cobra.Command{
		Use:   "why <[namespace/]package>",
		Short: "Explain why an operator is installed",
		Long:  "Show who asked for an operator: the declarations and the requirements that lead to it, the shortest chain first.",
		Example: examples(`
			quayside why vault
			quayside why vault/etcd`),
		Args:              oneArg("an operator ([namespace/]package)"),
		ValidArgsFunction: first(a.pinned),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.why(cmd, args[0]) },
	}
	addOutput(cmd, a, nil, resolve.Reasons{})
	return cmd
}

func (o *explainOptions) why(cmd *cobra.Command, arg string) error {
	target, err := operatorArg(cmd, arg, false)
	if err != nil {
		return err
	}
	s, err := o.open()
	if err != nil {
		return err
	}
	set, err := s.Declarations()
	if err != nil {
		return err
	}
	lock, err := s.NeedLock()
	if err != nil {
		return err
	}
	if set, err = project.FromLock(set, lock); err != nil {
		return err
	}
	reasons, err := resolve.Why(lock, set, target.Namespace, target.Package)
	if err != nil {
		return err
	}
	return o.printText(reasons, reasons.Text())
}
