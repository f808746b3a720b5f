package cli

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/garbage"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/lockfile"
)

func newAdopt(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Take operators over from OLM",
		Long: doc(`
			Take over the operators that OLM installed in a cluster, as they run, so that
			Git says what runs there and OLM need not.`),
		Example: examples(`
			# who needs OLM itself, and who can leave it?
			quayside adopt check --context prod
			quayside adopt inspect --context prod`),
		RunE: group,
	}
	cmd.AddCommand(newAdoptCheck(a), newAdoptInspect(a), newAdoptPlan(a), newAdoptRun(a), newAdoptVerify(a), newAdoptRevert(a))
	return cmd
}

type adoptInspectOptions struct {
	*app
	login   loginFlags
	cluster string
	record  bool
	objects bool
}

func newAdoptInspect(a *app) *cobra.Command {
	o := &adoptInspectOptions{app: a}
	cmd := &cobra.Command{
		Use:   "inspect [FILE | DIR | -]",
		Short: "Report which operators can be taken over from OLM, and what becomes of every object",
		Long: doc(`
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
		Example: examples(`
			# the current context of the kubeconfig, or another one
			quayside adopt inspect
			quayside adopt inspect --context prod --objects

			# a must-gather; keep in the lock what the tree needs for a take-over without restarts
			quayside adopt inspect must-gather.local.4711 --record
			quayside render`),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (o.login.context != "" || o.login.kubeconfig != "") {
				return usagef(cmd, "%q or a live cluster: leave out --context and --kubeconfig", args[0])
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	o.login.flags(cmd)
	f.StringVar(&o.cluster, "cluster", "", "the `NAME` of a cluster in quayside.yaml, for what it gets (default: the only one)")
	f.BoolVar(&o.record, "record", false, "write into the lock what the tree has to keep so that no pod restarts")
	f.BoolVar(&o.objects, "objects", false, "list every object and what becomes of it")
	f.BoolVar(&o.offline, "offline", false, "ask no registry for the bundles; name what is missing")
	addOutput(cmd, a, nil, adopt.Report{})
	a.offer(cmd, "context", func(context.Context, string) []string { return o.login.contexts(a) })
	a.offer(cmd, "cluster", a.overlays)
	return cmd
}

func (o *adoptInspectOptions) run(ctx context.Context, args []string) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	cluster, err := p.Cluster(o.cluster, "--cluster")
	if err != nil {
		return err
	}
	seen, err := o.snapshot(ctx, args, o.login, snapshot.Options{})
	if err != nil {
		return err
	}
	garbage.Spare() // a cluster and its tree are held at once
	found, err := p.Inspect(ctx, seen, cluster)
	if err != nil {
		return err
	}
	if o.record {
		if _, err := filetree.WriteFile(p.Path(project.LockFile), lockfile.Format(found.Lock)); err != nil {
			return err
		}
	}
	if err := o.print(found.Report, func(w io.Writer) { found.Report.Text(w, o.objects) }); err != nil {
		return err
	}
	if names := found.Report.Blocked(); len(names) > 0 {
		return &project.DiffersError{Msg: inert.Line(diag.Count(len(names), "operator") + " blocked: " + strings.Join(names, ", "))}
	}
	return nil
}
