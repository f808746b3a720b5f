package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/internal/yamlnode"
)

func newAdoptRBAC(a *app) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "rbac PLAN",
		Short: "Print the rights that a plan takes",
		Long: doc(`
			Print the roles with the rights that it takes to do what a plan says, to check
			that nothing was lost, and to go back to OLM; and no others. There is a
			ClusterRole, and a Role in each namespace where something is changed. They are
			bound to nobody: bind them to who runs the plan, and delete them afterwards.

			A plan applies roles, so these give the right to hand on exactly these roles
			(escalate, bind), whether or not who runs the plan has what they give.

			Exit codes: 0 printed; 2 an error.`),
		Example: examples(`
			# for 'kubectl apply -f -'
			quayside adopt rbac adopt-plan.yaml`),
		Args: wantArgs("PLAN"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.adoptRBAC(cmd.Context(), args[0], name) },
	}
	cmd.ValidArgsFunction = cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	f := cmd.Flags()
	f.StringVar(&name, "name", "quayside-adopt", "the `NAME` of the roles")
	f.BoolVar(&a.offline, "offline", false, "ask no registry for the bundles; name what is missing")
	return cmd
}

func (a *app) adoptRBAC(ctx context.Context, file, name string) error {
	data, err := a.readArg(file)
	if err != nil {
		return err
	}
	made, err := plan.Parse(file, data)
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	rendered, err := p.ForPlan(ctx, made)
	a.talk.Done()
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, o := range plan.Roles(name, plan.Rules(made, rendered)) {
		b.WriteString("---\n")
		b.Write(yamlnode.Encode(o))
	}
	_, err = a.out.Write(b.Bytes())
	return err
}
