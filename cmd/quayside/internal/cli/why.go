package cli

import (
	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/resolve/explain"
)

func newWhy(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "why <[namespace/]package>",
		Short: "Explain why an operator is installed",
		Long: Doc(`
			Explain why an operator is installed: list the chains of declarations and
			requirements that lead to it, shortest first.`),
		Example: Examples(`
			quayside why vault
			quayside why vault/etcd`),
		Args:              WantArgs("an operator ([namespace/]package)"),
		ValidArgsFunction: completeFirst(a.completions(edit.Completer.Pinned)),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.printReasons(cmd, args[0]) },
	}
	addOutput(cmd, a, nil, explain.Reasons{})
	return cmd
}

func (a *app) printReasons(cmd *cobra.Command, arg string) error {
	target, err := parseOperatorArg(cmd, arg, false)
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	set, err := p.Declarations()
	if err != nil {
		return err
	}
	lock, err := p.NeedLock()
	if err != nil {
		return err
	}
	if set, err = workspace.CompleteFromLock(set, lock); err != nil {
		return err
	}
	reasons, err := explain.Why(lock, set, target.Namespace, target.Package)
	if err != nil {
		return err
	}
	return a.printText(reasons, reasons.Text())
}
