package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
)

type upgradeOptions struct {
	resolveOptions
	yes      bool
	cluster  upgrade.Platform // cluster version to check for
	clusters []string
}

func newUpgrade(a *app) *cobra.Command {
	o := &upgradeOptions{resolveOptions: resolveOptions{app: a, upgrade: operatorFlag{versions: true}, render: true}}
	cmd := &cobra.Command{
		Use:   "upgrade [[NAMESPACE/]PACKAGE[@VERSION]]...",
		Short: "Upgrade operators, or check them against another cluster version",
		Long: Doc(`
			Upgrade all operators, or those that you name, by one hop: write quayside.lock and the
			rendered tree, like 'quayside resolve --upgrade --render'. quayside prints the changes
			first. On a terminal it asks for confirmation, unless you set --yes.

			With --check and --kubernetes or --openshift, check instead whether the operators in
			the lock support that version of the cluster. quayside checks the versions that bundles
			and catalogs support, and looks for objects with removed APIs and for custom resources
			in the repository that their CRDs reject. For each operator that blocks the cluster
			upgrade, quayside prints the first version that does not. Nothing is written.

			See also: docs/cluster-upgrades.md, docs/windows.md
			Exit codes: 0 done; 1 with --check, there is something to upgrade, or the cluster
			version is not supported; 2 an error; 3 the declarations have no solution; 4 the windows
			of an operator that you named are closed.`),
		Example: Examples(`
			# list the upgrades, and write nothing
			quayside upgrade --check

			# upgrade one operator, or all
			quayside upgrade memcached-operator-system/memcached-operator@0.0.2
			quayside upgrade

			# check the operators against another version of the cluster
			quayside upgrade --check --kubernetes 1.37 --offline
			quayside upgrade --check --kubernetes 1.37 --openshift 5.0 --offline -o json`),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeEach(a.completions(edit.Completer.Versions)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.cluster != (upgrade.Platform{}) || len(o.clusters) > 0 {
				return o.checkCluster(cmd, args)
			}
			return o.runUpgrade(cmd, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.hops, "hops", "1", "edges of the upgrade graph to take: a `NUMBER` or all")
	f.BoolVar(&o.yes, "yes", false, "skip the confirmation")
	f.BoolVar(&o.check, "check", false, "write nothing; exit with 1 if something would be upgraded")
	addNow(cmd, a, "windows")
	addOutsideWindow(cmd, &o.outside)
	f.Var((*versionFlag)(&o.cluster.Kubernetes), "kubernetes", "with --check, the `VERSION` of Kubernetes to check, such as 1.37")
	f.Var((*versionFlag)(&o.cluster.OpenShift), "openshift", "with --check, the `VERSION` of OpenShift to check, such as 5.0")
	f.StringSliceVar(&o.clusters, "cluster", nil, "with --kubernetes or --openshift, check the operators of `CLUSTER` (default: all); may be given several times")
	addOffline(cmd, a)
	addOutput(cmd, a, nil, resolveReport{}, upgrade.PlatformReport{})
	addAll(cmd, a, "cluster")
	a.complete(cmd, "hops", []string{"1", "all"})
	a.offer(cmd, "cluster", a.completions(edit.Completer.Clusters))
	addWriter(cmd, a, "check")
	return cmd
}

// runUpgrade upgrades operators. With --check, it only lists the upgrades.
func (o *upgradeOptions) runUpgrade(cmd *cobra.Command, args []string) error {
	if err := o.upgradeTargets(cmd, args); err != nil {
		return err
	}
	if o.command = "quayside resolve --upgrade"; len(args) > 0 {
		o.command += "=" + strings.Join(args, " --upgrade=")
	}
	upgrades := 0
	switch {
	case o.check:
		o.confirm = func(_ context.Context, changes int) (bool, error) { upgrades = changes; return false, nil }
	case !o.yes && o.prompt.IsInteractive():
		o.confirm = func(ctx context.Context, _ int) (bool, error) { return o.prompt.Confirm(ctx, "Apply these changes?") }
	}
	if err := o.run(cmd); err != nil || upgrades == 0 {
		return err
	}
	return &workspace.DiffersError{Msg: diag.Count(upgrades, "operator") + " would be upgraded"}
}

// versionFlag is a cluster version, stored without the prefix "v".
type versionFlag string

func (f *versionFlag) String() string { return string(*f) }

// Type returns the name of the value in help.
func (f *versionFlag) Type() string { return "version" }

// Set accepts 1.37, 1.37.2 or v1.37.
func (f *versionFlag) Set(s string) error {
	s = strings.TrimPrefix(s, "v")
	if !regexp.MustCompile(`^[0-9]{1,9}\.[0-9]{1,9}(\.[0-9]{1,9})?$`).MatchString(s) {
		return fmt.Errorf("must be a version such as 1.37 or 1.37.2")
	}
	*f = versionFlag(s)
	return nil
}

// checkCluster checks whether the locked operators support another version of the cluster.
func (o *upgradeOptions) checkCluster(cmd *cobra.Command, args []string) error {
	switch {
	case o.cluster == (upgrade.Platform{}):
		return Usagef(cmd, "--cluster requires --check and --kubernetes or --openshift")
	case !o.check:
		return Usagef(cmd, "--kubernetes and --openshift require --check")
	case len(args) > 0 || cmd.Flags().Changed("hops"):
		return Usagef(cmd, "--kubernetes and --openshift cannot be used with --hops or arguments")
	}
	p, err := o.open()
	if err != nil {
		return err
	}
	r, err := upgrade.CheckPlatform(cmd.Context(), p, o.cluster, o.clusters)
	if r != nil {
		o.logMessages(r.Messages)
	}
	if err != nil {
		return err
	}
	o.log.Done()
	for _, note := range r.Notes {
		o.log.Note("%s", note)
	}
	if err := o.print(r, func(io.Writer) { printPlatform(o.out, r) }); err != nil || r.Supported {
		return err
	}
	return errDiffers
}

// printPlatform prints the operators, the problems, and the necessary upgrades.
func printPlatform(w *terminal.Terminal, r *upgrade.PlatformReport) {
	t := &terminal.Table{Head: []string{"operator", "pinned", "verdict", "upgrade to"}}
	to := map[string]string{}
	for _, s := range r.Upgrades {
		to[s.Operator] = s.To
	}
	for _, op := range r.Operators {
		t.Add(op.Operator, op.Version, string(op.Verdict), to[op.Operator])
	}
	t.Write(w)
	if len(r.Problems) > 0 {
		fmt.Fprintln(w)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(w, formatProblem(p))
	}
	if r.Supported {
		fmt.Fprintf(w, "\nready for %s\n", r.Platform)
		return
	}
	fmt.Fprintf(w, "\nnot ready for %s\n", r.Platform)
	for _, why := range r.Why {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(sanitize.Lines(why), "\n", "\n  "))
	}
	if len(r.Upgrades) > 0 {
		fmt.Fprintln(w, "upgrade first:")
		for _, s := range r.Upgrades {
			fmt.Fprintf(w, "  %s %s → %s\n", sanitize.Line(s.Operator), sanitize.Line(s.From), sanitize.Line(s.To))
		}
	}
	if r.Command != "" {
		fmt.Fprintf(w, "\n  %s\n", sanitize.Line(r.Command))
	}
}

// formatProblem formats a problem in one line that starts with its position, like an error of a
// compiler.
func formatProblem(p upgrade.Problem) string {
	level, text := "deprecated", ""
	if p.Blocks {
		level = "blocked"
	}
	if p.Place != nil {
		text = diag.Pos{File: p.Place.Path, Line: p.Place.Line, Col: p.Place.Column}.String() + ": "
	}
	text += level + ": "
	if p.Operator != "" {
		text += p.Operator + ": "
	}
	if p.Object != nil {
		text += p.Object.String() + ": "
	}
	text += p.Message
	if len(p.Clusters) > 0 {
		text += " (" + strings.Join(p.Clusters, ", ") + ")"
	}
	return sanitize.Line(text)
}
