// Package command contains the commands for migrating from OLM: import and adopt.
//
// Start from [Part].
package command

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/inspect"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/cli"
	"github.com/quayside/quayside/cmd/quayside/internal/garbage"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/lockfile"
)

// Part returns the import and adopt commands.
func Part() cli.Part {
	return cli.Part{
		Group: "leave", Title: "Leave OLM:",
		Commands: []func(cli.Host) *cobra.Command{newImport, newAdopt},
		Schemas:  map[string]func() []byte{"adoption-plan": plan.Schema},
		OtherNames: map[string]map[string]string{
			"quayside":       {"doctor": "quayside adopt check"},
			"quayside adopt": {"finish": "quayside adopt run --finish", "rbac": "quayside adopt plan --rbac"},
		},
	}
}

func newAdopt(h cli.Host) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Adopt operators from OLM or Helm",
		Long: cli.Doc(`
			Adopt operators that OLM or Helm installed in a cluster: from then on they are upgraded
			from Git. Their pods keep running and their custom resources do not change.

			Run the subcommands in this order: check, start, run, verify. 'start' includes 'quayside
			import', inspect, 'quayside render' and plan. For operators of Helm: plan, run, verify.
			'revert' returns operators to OLM until the clean-up, or to Helm. Only 'run' and
			'revert' write to the cluster.

			See also: docs/adopt.md`),
		Example: cli.Examples(`
			# check which operators need OLM, and which can be adopted
			quayside adopt check --context prod
			quayside adopt inspect --context prod

			# prepare one namespace
			quayside adopt start my-etcd --context prod`),
		RunE: cli.Group,
	}
	cmd.AddCommand(newAdoptCheck(h), newAdoptStart(h), newAdoptInspect(h), newAdoptPlan(h), newAdoptRun(h), newAdoptVerify(h), newAdoptRevert(h), newAdoptUninstall(h))
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
		Short: "Report which operators can be adopted from OLM or Helm, and the result for each object",
		Long: cli.Doc(`
			Compare operators that OLM or Helm installed in a cluster with the rendered lock, and report
			which of them can be adopted. Nothing is written to the cluster. The lock must pin the
			installed versions, as 'quayside import' writes it.
` + sourceDoc + `

			An operator is

			  Adoptable              no pod restarts
			  AdoptableWithRestart   pods restart once, because the workspace's settings change them
			  CannotLeave            works only with OLM
			  NeedsDecision          stays with OLM until the listed reasons are resolved
			  MustWait               stays with OLM until OLM has finished its work
			  NotSelected            stays with OLM: the tree does not have it in this cluster
			  AlreadyAdopted         no longer managed by OLM
			  NotOLM                 not installed by OLM

			--objects also lists every object: equal, changed or added by the tree, only from OLM,
			or unknown. An unknown object needs a decision.

			--record writes OLM's changes to the pods and certificates into quayside.lock. Run
			'quayside render' afterwards. The tree then keeps these changes, and no pod restarts
			until the operator's next version.

			See also: docs/adopt.md
			Exit codes: 0 no operator is CannotLeave, NeedsDecision or MustWait; 1 some are; 2 an
			error.`),
		Example: cli.Examples(`
			# the cluster of the current context, or of another one
			quayside adopt inspect
			quayside adopt inspect --context prod --objects

			# from a must-gather; record OLM's changes, to avoid restarts
			quayside adopt inspect must-gather.local.4711 --record
			quayside render`),
	}
	f := cmd.Flags()
	o.login = addSource(h, cmd, o.run)
	o.AddCluster(cmd, &o.cluster)
	f.BoolVar(&o.record, "record", false, "record in the lock which of OLM's settings to keep to avoid restarts")
	f.BoolVar(&o.objects, "objects", false, "list every object with its outcome")
	f.BoolVar(o.Offline, "offline", false, "fetch no bundles; list missing ones")
	h.AddOutput(cmd, adopt.Inspection{})
	return cmd
}

func (o *adoptInspectOptions) run(ctx context.Context, args []string) error {
	p, err := o.Open()
	if err != nil {
		return err
	}
	if o.record {
		release, err := p.LockWorkTree("quayside adopt inspect --record")
		if err != nil {
			return err
		}
		defer release()
	}
	cluster, err := p.Settings.ClusterName(o.cluster, "--cluster")
	if err != nil {
		return err
	}
	snap, err := readCluster(ctx, o.Host, args, o.login, snapshot.Selection{Releases: inspect.Releases(p)})
	if err != nil {
		return err
	}
	garbage.CollectMore() // an inspection holds a cluster and its tree in memory
	found, err := inspect.Inspect(ctx, p, snap, cluster)
	if err != nil {
		return err
	}
	if o.record {
		if _, err := p.WriteFile(workspace.LockFile, lockfile.Format(found.Lock)); err != nil {
			return err
		}
	}
	if err := o.Print(found.Report, func(w io.Writer) { found.Report.WriteText(w, o.objects) }); err != nil {
		return err
	}
	if names := found.Report.Blocked(); len(names) > 0 {
		return &workspace.DiffersError{Msg: sanitize.Line(diag.Count(len(names), "operator") + " of the tree cannot be adopted now: " + strings.Join(names, ", "))}
	}
	return nil
}
