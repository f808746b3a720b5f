package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/report/look"
)

type statusOptions struct {
	*app
	save    string
	login   loginFlags
	cluster string
	custom  bool
	wait    bool
	timeout time.Duration
}

// loginFlags say which cluster to talk to, as kubectl's flags of these names do.
type loginFlags struct{ kubeconfig, context string }

func (l *loginFlags) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&l.context, "context", "", "the `NAME` of a context in the kubeconfig (default: its current one)")
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE` (default: $KUBECONFIG, else ~/.kube/config)")
}

// contexts returns the contexts of the kubeconfig, as far as it can be read.
func (l loginFlags) contexts(a *app) []string {
	names, err := cluster.Contexts(l.options(a))
	if err != nil {
		return nil
	}
	return names
}

func newStatus(a *app) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status [namespace/package...]",
		Short: "Report whether a cluster runs what the lock says, and is healthy",
		Long: doc(`
			Look at a cluster and report the state of every operator in the lock, or of
			those named: the version there and in the lock, whether everything that was
			rendered for it exists and is healthy, whether it says that it may be upgraded,
			and what the reporter in the cluster says, if there is one. This is followed by
			the number of custom resources of the operators' kinds, with those that are not
			ready (they are yours, and do not affect the result), every object, unhealthy
			ones first, and the images.

			The cluster is that of the kubeconfig's current context, or of --context. It is
			only read, with your permissions; where they do not suffice, the object's entry
			says so. The content of Secrets and ConfigMaps is not fetched.

			An operator is Ready, Progressing, Failed (something needs intervention),
			Missing, OutOfStep (the cluster has a different version than the lock, or the
			same one rendered differently), Unpinned (in the cluster, not in the lock) or
			Unknown (something could not be read).

			--save writes what was seen to a file that tells 'quayside resolve --observed'
			which operators not to move.

			Exit codes: 0 every operator is Ready; 1 one is not; 2 an error, including a
			cluster that does not answer.`),
		Example: examples(`
			quayside status
			quayside status my-etcd/etcd --context prod -o json

			# after a merge: wait until the cluster has caught up
			quayside status --wait --timeout 10m

			# move no operator that says it must not be upgraded, or that is not healthy yet
			quayside status --save observed.yaml
			quayside resolve --upgrade --observed observed.yaml`),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.operators,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("timeout") && !o.wait:
				return usagef(cmd, "--timeout says how long --wait waits: add --wait")
			case o.timeout <= 0:
				return usagef(cmd, "--timeout %s: want a time such as 5m", o.timeout)
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	o.login.flags(cmd)
	f.StringVar(&o.cluster, "cluster", "", "the `NAME` of a cluster in quayside.yaml, for what it gets (default: the only one)")
	f.StringVar(&o.save, "save", "", "write what was seen to `FILE` too, for 'quayside resolve --observed'")
	f.BoolVar(&o.custom, "custom-resources", true, "count the custom resources of the operators' kinds")
	f.BoolVar(&o.wait, "wait", false, "keep looking until every operator is Ready, or --timeout has passed")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long to wait, with --wait")
	f.BoolVar(&o.offline, "offline", false, "ask no registry for the bundles; name what is missing")
	addOutput(cmd, a, nil, look.Status{}).hint = " (--save FILE writes what --observed reads)"
	addAll(cmd, a, "save")
	o.offer(cmd, "context", o.contexts)
	o.offer(cmd, "cluster", a.overlays)
	return cmd
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	want, err := p.Expected(ctx, o.cluster, args)
	if err != nil {
		return err
	}
	client, err := cluster.Open(o.login.options(o.app))
	if err != nil {
		return err
	}
	opt := look.Options{Custom: o.custom, Progress: o.talk.Progress}
	if o.wait {
		opt.Wait = o.timeout
	}
	seen, err := look.At(ctx, client, want, opt)
	o.talk.Done()
	if err != nil {
		return err
	}
	status := seen.Status(p.Environment(), client, want)
	if o.save != "" {
		if _, err := filetree.WriteFile(o.argPath(o.save), report.FormatObserved(seen.Summary)); err != nil {
			return err
		}
	}
	if err := o.print(status, func(io.Writer) { status.Write(o.out) }); err != nil {
		return err
	}
	unwell := status.Unwell()
	switch {
	case unwell == "":
		o.talk.Note("%s as the lock says, and healthy", diag.Count(len(status.Operators), "operator"))
		return nil
	case o.wait:
		unwell = fmt.Sprintf("after %s %s", o.timeout, unwell)
	}
	return &project.DiffersError{Msg: unwell}
}

// options returns where to find the kubeconfig, as kubectl would.
func (l loginFlags) options(a *app) cluster.Options {
	opt := cluster.Options{Context: l.context, InCluster: a.env["KUBERNETES_SERVICE_HOST"] != "", UserAgent: "quayside/" + a.version}
	switch list := a.env["KUBECONFIG"]; {
	case l.kubeconfig != "":
		opt.File = a.argPath(l.kubeconfig)
	case list != "":
		opt.Files = filepath.SplitList(list)
	case a.env["HOME"] != "":
		opt.Files = []string{filepath.Join(a.env["HOME"], ".kube", "config")}
	case a.env["USERPROFILE"] != "":
		opt.Files = []string{filepath.Join(a.env["USERPROFILE"], ".kube", "config")}
	}
	return opt
}

// contexts offers the contexts of the kubeconfig.
func (o *statusOptions) contexts(context.Context, string) []string { return o.login.contexts(o.app) }
