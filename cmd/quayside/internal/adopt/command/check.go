package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
)

type adoptCheckOptions struct {
	cli.Host
	login *cli.Login
}

func newAdoptCheck(h cli.Host) *cobra.Command {
	o := &adoptCheckOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "check [FILE | DIR | -]",
		Short: "Report which operators need OLM while they run",
		Long: cli.Doc(`
			Report which operators need OLM while they run, the functions that they lose without it,
			and your options. quayside looks at their permissions, their pods and their bundles.

			By default quayside checks the operators in the lock. With an argument, --context or
			--kubeconfig, it checks the operators that OLM installed in a cluster; no workspace is
			needed. The argument is a file with the output of 'kubectl get -o json' or '-o yaml'
			('-' for standard input), a directory of such files, or a must-gather. The cluster is
			only read.

			An operator

			  needs OLM               it installs other operators through OLM
			  loses something         it uses objects that only OLM fills or acts on
			  could need it           it has all permissions, or mentions OLM
			  does not need it        quayside found no sign of OLM

			See also: docs/adopt.md
			Exit codes: 0 no operator needs OLM or loses something; 1 some do; 2 an error.`),
		Example: cli.Examples(`
			# the operators in the lock
			quayside adopt check

			# the operators in a cluster
			quayside adopt check --context prod
			quayside adopt check must-gather.local.4711`),
	}
	o.login = addSource(h, cmd, o.run)
	cmd.Flags().BoolVar(o.Offline, "offline", false, "no network access; list missing content")
	h.AddOutput(cmd, adopt.Diagnosis{})
	return cmd
}

func (o *adoptCheckOptions) run(ctx context.Context, args []string) error {
	found, err := o.diagnose(ctx, args)
	if err != nil {
		return err
	}
	if err := o.Print(found, found.WriteText); err != nil {
		return err
	}
	if names := found.Dependents(); len(names) > 0 {
		return &workspace.DiffersError{Msg: sanitize.Line(diag.Count(len(names), "operator") + " affected: " + strings.Join(names, ", "))}
	}
	return nil
}

func (o *adoptCheckOptions) diagnose(ctx context.Context, args []string) (*adopt.Diagnosis, error) {
	if len(args) > 0 || o.login.Given() {
		s, err := readCluster(ctx, o.Host, args, o.login, snapshot.Selection{Keep: adopt.IsRelevant})
		if err != nil {
			return nil, err
		}
		return adopt.DiagnoseCluster(s), nil
	}
	p, err := o.Open()
	if err != nil {
		return nil, err
	}
	return inspect.Diagnose(ctx, p)
}
