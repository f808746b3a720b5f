package cli

import (
	"context"

	"github.com/spf13/cobra"
)

func newUpgrade(a *app) *cobra.Command {
	o := &resolveOptions{app: a, upgrade: operatorFlag{versions: true}, render: true}
	yes, dry := false, false
	cmd := &cobra.Command{
		Use:   "upgrade [[NAMESPACE/]PACKAGE[@VERSION]]...",
		Short: "Move operators to newer versions, and render",
		Long: doc(`
			Move all operators that may move, or those that are named, write quayside.lock and
			render: 'quayside resolve --upgrade' and 'quayside render' in one step. What is
			going to move is shown first. On a terminal you are asked, unless --yes says so
			already.

			Exit codes: 0 done; 2 an error; 3 the declarations have no solution.`),
		Example: examples(`
			# what would move?
			quayside upgrade --dry-run

			# one operator, or all
			quayside upgrade memcached-operator-system/memcached-operator@0.0.2
			quayside upgrade`),
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
			return matching(cmd, a.versions, prefix)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.upgrade.all = len(args) == 0
			for _, arg := range args {
				if err := o.upgrade.Set(arg); err != nil {
					return usagef(cmd, "%w", err)
				}
			}
			switch {
			case dry:
				o.agree = func(context.Context) (bool, error) { return false, nil }
			case !yes && a.prompt.Can():
				o.agree = func(ctx context.Context) (bool, error) { return a.prompt.Confirm(ctx, "Do this?") }
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.hops, "hops", "1", "edges of the upgrade graph to take: a `NUMBER` or all")
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.BoolVar(&dry, "dry-run", false, "write nothing: print what would move")
	addOffline(cmd, a)
	addOutput(cmd, a, nil, resolveReport{})
	addAll(cmd, a)
	a.complete(cmd, "hops", []string{"1", "all"})
	return cmd
}
