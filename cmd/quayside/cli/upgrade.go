package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/checkup"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/project"
)

type upgradeOptions struct {
	resolveOptions
	yes      bool
	cluster  checkup.Target // the version of the cluster to ask about
	clusters []string
}

func newUpgrade(a *app) *cobra.Command {
	o := &upgradeOptions{resolveOptions: resolveOptions{app: a, upgrade: operatorFlag{versions: true}, render: true}}
	cmd := &cobra.Command{
		Use:   "upgrade [[NAMESPACE/]PACKAGE[@VERSION]]...",
		Short: "Move operators to newer versions, and render",
		Long: doc(`
			Move all operators that may move, or those that are named, write quayside.lock and
			render: 'quayside resolve --upgrade' and 'quayside render' in one step. What is
			going to move is shown first. On a terminal you are asked, unless --yes says so
			already.

			With --check and --kubernetes or --openshift, ask of every operator in the lock, and
			of everything that clusters get, whether it can live on that version of the cluster:
			what bundles say of themselves (minKubeVersion, olm.maxOpenShiftVersion) and catalogs
			of their support, objects at APIs that are no longer served there, overlays built,
			and custom resources of this repository that their definitions refuse. Where an
			operator is in the way, upgrades are looked for that can be made before the
			cluster's, as few as help: each answer was resolved, rendered and asked the same.

			Exit codes: 0 done; 1 with --check, something would move, or cannot live on that
			version; 2 an error; 3 the declarations have no solution.`),
		Example: examples(`
			# what would move?
			quayside upgrade --check

			# one operator, or all
			quayside upgrade memcached-operator-system/memcached-operator@0.0.2
			quayside upgrade

			# can the operators live on another version of the cluster?
			quayside upgrade --check --kubernetes 1.37 --offline
			quayside upgrade --check --kubernetes 1.37 --openshift 5.0 --offline -o json`),
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return matching(cmd, a.versions, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.cluster != (checkup.Target{}) || len(o.clusters) > 0 {
				return o.checkCluster(cmd, args)
			}
			return o.runUpgrade(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.hops, "hops", "1", "edges of the upgrade graph to take: a `NUMBER` or all")
	f.BoolVar(&o.yes, "yes", false, "do not ask")
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if something would move")
	f.Var((*versionFlag)(&o.cluster.Kubernetes), "kubernetes", "with --check, the `VERSION` of Kubernetes to ask about, such as 1.37")
	f.Var((*versionFlag)(&o.cluster.OpenShift), "openshift", "with --check, the `VERSION` of OpenShift to ask about, such as 5.0")
	f.StringSliceVar(&o.clusters, "cluster", nil, "with --kubernetes or --openshift, look at what `CLUSTER` gets (default: all); may be repeated")
	addOffline(cmd, a)
	addOutput(cmd, a, nil, resolveReport{}, checkup.Report{})
	addAll(cmd, a, "cluster")
	a.complete(cmd, "hops", []string{"1", "all"})
	a.offer(cmd, "cluster", a.overlays)
	return cmd
}

// runUpgrade moves operators, or says which would move.
func (o *upgradeOptions) runUpgrade(cmd *cobra.Command, args []string) error {
	if err := o.moves(cmd, args); err != nil {
		return err
	}
	moves := 0
	switch {
	case o.check:
		o.agree = func(_ context.Context, changes int) (bool, error) { moves = changes; return false, nil }
	case !o.yes && o.prompt.Can():
		o.agree = func(ctx context.Context, _ int) (bool, error) { return o.prompt.Confirm(ctx, "Do this?") }
	}
	if err := o.run(cmd); err != nil || moves == 0 {
		return err
	}
	return &project.DiffersError{Msg: diag.Count(moves, "operator") + " would move"}
}

// versionFlag is a version of a cluster, without the "v" that some put before it.
type versionFlag string

func (f *versionFlag) String() string { return string(*f) }

// Type is what help calls it.
func (f *versionFlag) Type() string { return "version" }

// Set takes 1.37, 1.37.2 or v1.37.
func (f *versionFlag) Set(s string) error {
	s = strings.TrimPrefix(s, "v")
	if !regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}(\.[0-9]{1,9})?$`).MatchString(s) {
		return fmt.Errorf("want a version such as 1.37 or 1.37.2")
	}
	*f = versionFlag(s)
	return nil
}

// checkCluster says whether what the lock installs can live on another version of
// the cluster.
func (o *upgradeOptions) checkCluster(cmd *cobra.Command, args []string) error {
	switch {
	case o.cluster == (checkup.Target{}):
		return usagef(cmd, "--cluster needs --check and --kubernetes or --openshift")
	case !o.check:
		return usagef(cmd, "--kubernetes and --openshift only ask: add --check")
	case len(args) > 0 || cmd.Flags().Changed("hops"):
		return usagef(cmd, "--kubernetes and --openshift ask of all operators: leave out --hops and arguments")
	}
	p, err := o.open()
	if err != nil {
		return err
	}
	r, err := checkup.Run(cmd.Context(), p, o.cluster, o.clusters)
	if err != nil {
		return err
	}
	o.talk.Done()
	for _, note := range r.Notes {
		o.talk.Note("%s", note)
	}
	if err := o.print(r, func(io.Writer) { r.Write(o.out) }); err != nil || r.Lives {
		return err
	}
	return errDiffers
}
