package command

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
)

func newAdoptUninstall(h cli.Host) *cobra.Command {
	o := &adoptPlanOptions{Host: h}
	crds := false
	cmd := &cobra.Command{
		Use:   "uninstall-olm [FILE | DIR | -]",
		Short: "Write a plan for uninstalling OLM, when no operator needs it",
		Long: cli.Doc(`
			Write a plan for uninstalling OLM: its controllers, packageserver, catalogs, permissions
			and declarations. Nothing is written to the cluster. Review and commit the plan; 'quayside
			adopt run' executes it. It cannot be reverted.

			quayside refuses if a ClusterServiceVersion other than packageserver, a Subscription, or
			an operator in the lock that needs OLM is left ('quayside adopt check').

			OLM's CRDs stay, unless you set --crds. Even then, those stay that the tree has, that an
			operator watches, or that have custom resources. Namespaces are never deleted: the last
			step, which is yours, names them.
` + sourceDoc + `

			See also: docs/adopt.md
			Exit codes: 0 the plan is written; 1 OLM is still needed; 2 an error.`),
		Example: cli.Examples(`
			# plan, and try the plan
			quayside adopt uninstall-olm --context prod
			quayside adopt run uninstall-olm.yaml --context prod --check`),
	}
	f := cmd.Flags()
	o.login = addSource(h, cmd, func(ctx context.Context, args []string) error { return o.uninstall(ctx, args, crds) })
	o.AddCluster(cmd, &o.cluster)
	f.StringVarP(&o.file, "file", "f", "uninstall-olm.yaml", "write the plan to this `FILE`")
	f.BoolVar(&crds, "crds", false, "also delete OLM's CRDs that nothing uses")
	f.BoolVar(o.Offline, "offline", false, "fetch no bundles; list missing ones")
	h.AddOutput(cmd, adoptPlanView{})
	return cmd
}

// uninstall writes the plan for uninstalling OLM.
func (o *adoptPlanOptions) uninstall(ctx context.Context, args []string, crds bool) error {
	p, cluster, snap, err := o.read(ctx, args, snapshot.Selection{ManagedFields: true, Keep: plan.IsReadForUninstall})
	if err != nil {
		return err
	}
	v := adoptPlanView{}
	v.Plan, err = inspect.PlanUninstall(ctx, p, snap, cluster, crds)
	if err != nil {
		return err
	}
	if v.File, err = o.write(p, v.Plan); err != nil {
		return err
	}
	return o.Print(v, func(w io.Writer) { o.show(w, v) })
}
