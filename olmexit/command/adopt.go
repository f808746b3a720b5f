// Package command contains the commands to leave OLM: import and adopt.
//
// Start from [Part].
package command

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/cli"
	"github.com/quayside/quayside/cmd/quayside/garbage"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/filetree"
	"github.com/quayside/quayside/internal/base/inert"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/olmexit"
	"github.com/quayside/quayside/olmexit/inspect"
	"github.com/quayside/quayside/olmexit/plan"
	"github.com/quayside/quayside/olmexit/snapshot"
)

// Part returns the import and adopt commands.
func Part() cli.Part {
	return cli.Part{
		Group: "leave", Title: "Leave OLM:",
		Commands: []func(cli.Host) *cobra.Command{newImport, newAdopt},
		Schemas:  map[string]func() []byte{"adoption-plan": plan.Schema},
		OtherWords: map[string]map[string]string{
			"quayside":       {"doctor": "quayside adopt check"},
			"quayside adopt": {"finish": "quayside adopt run --finish", "rbac": "quayside adopt plan --rbac"},
		},
	}
}

func newAdopt(h cli.Host) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Adopt operators from OLM",
		Long: cli.Doc(`
			Take over the operators that OLM installed in a cluster, as they run, so that
			Git says what runs there and OLM need not.`),
		Example: cli.Examples(`
			# who needs OLM itself, and who can leave it?
			quayside adopt check --context prod
			quayside adopt inspect --context prod`),
		RunE: cli.Group,
	}
	cmd.AddCommand(newAdoptCheck(h), newAdoptInspect(h), newAdoptPlan(h), newAdoptRun(h), newAdoptVerify(h), newAdoptRevert(h))
	return cmd
}

type adoptInspectOptions struct {
	cli.Host
	login   *cli.Login
	cluster string
	record  bool
	objects bool
}

func newAdoptInspect(h cli.Host) *cobra.Command {
	o := &adoptInspectOptions{Host: h}
	cmd := &cobra.Command{
		Use:   "inspect [FILE | DIR | -]",
		Short: "Report which operators can be adopted from OLM, and the outcome for every object",
		Long: cli.Doc(`
			Compare what OLM installed in a cluster with what the lock renders to, and report
			for every operator whether the tree can take its place, and for every object that
			belongs to it what becomes of it. Nothing is written to the cluster.

			The cluster is a file as 'kubectl get -o json' or '-o yaml' prints it ('-' for
			standard input), a directory of such files, a must-gather, or without an argument
			the live cluster of the kubeconfig's current context, or of --context. The lock
			pins what is installed there, as 'quayside import' writes it.

			An operator is Adoptable (no pod restarts), AdoptableWithRestart (the workspace's
			settings change its pods), Blocked (for the reasons given), AlreadyAdopted (OLM
			knows nothing of it any more), or NotOLM.

			An object is equal in the cluster and in the tree, changed by the tree, added by
			the tree under a name of its own, OLM's alone (it goes when OLM is made to forget
			the operator or when what OLM left is cleaned up, or it stays), or unknown, which
			blocks the operator. --objects lists them, with the fields that change.

			No pod restarts because the tree keeps what OLM did to the operator's pods and its
			certificates, until the operator's next version. --record writes into quayside.lock
			what of that the bundle does not tell; without it that is only computed. Render the
			tree after that.

			Exit codes: 0 no operator is Blocked; 1 some are; 2 an error.`),
		Example: cli.Examples(`
			# the current context of the kubeconfig, or another one
			quayside adopt inspect
			quayside adopt inspect --context prod --objects

			# a must-gather; keep in the lock what the tree needs for a take-over without restarts
			quayside adopt inspect must-gather.local.4711 --record
			quayside render`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSource(cmd, args, o.login); err != nil {
				return err
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	o.login = o.AddLogin(cmd)
	o.AddCluster(cmd, &o.cluster)
	f.BoolVar(&o.record, "record", false, "record in the lock which of OLM's settings to keep to avoid restarts")
	f.BoolVar(&o.objects, "objects", false, "list every object with its outcome")
	f.BoolVar(o.Offline, "offline", false, "fetch no bundles; list missing ones")
	h.AddOutput(cmd, olmexit.Report{})
	return cmd
}

func (o *adoptInspectOptions) run(ctx context.Context, args []string) error {
	p, err := o.Open()
	if err != nil {
		return err
	}
	cluster, err := p.Cluster(o.cluster, "--cluster")
	if err != nil {
		return err
	}
	seen, err := readCluster(ctx, o.Host, args, o.login, snapshot.Options{})
	if err != nil {
		return err
	}
	garbage.Spare() // inspecting holds a cluster and its tree in memory
	found, err := inspect.Inspect(ctx, p, seen, cluster)
	if err != nil {
		return err
	}
	if o.record {
		if _, err := filetree.WriteFile(p.Path(workspace.LockFile), lockfile.Format(found.Lock)); err != nil {
			return err
		}
	}
	if err := o.Print(found.Report, func(w io.Writer) { found.Report.Text(w, o.objects) }); err != nil {
		return err
	}
	if names := found.Report.Blocked(); len(names) > 0 {
		return &workspace.DiffersError{Msg: inert.Line(diag.Count(len(names), "operator") + " blocked: " + strings.Join(names, ", "))}
	}
	return nil
}
