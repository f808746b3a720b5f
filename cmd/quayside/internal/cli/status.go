package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/status"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve/explain"
)

type statusOptions struct {
	*app
	workspace.Signing
	save    string
	login   loginFlags
	cluster string
	watched string // only the operators that watch this namespace, and its custom resources; empty: all
	custom  bool
	wait    bool
	timeout time.Duration
}

// loginFlags contains the flags --kubeconfig and --context, as in kubectl.
type loginFlags struct{ kubeconfig, context string }

// addFlags adds the flags to cmd, with completions for the contexts of the kubeconfig.
func (l *loginFlags) addFlags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.StringVar(&l.context, "context", "", "the `NAME` of a context in the kubeconfig (default: the current one)")
	f.StringVar(&l.kubeconfig, "kubeconfig", "", "the kubeconfig `FILE` (default: $KUBECONFIG, else ~/.kube/config)")
	a.offer(cmd, "context", func(context.Context, string) []string {
		names, err := cluster.Contexts(l.options(a))
		if err != nil {
			return nil // the kubeconfig cannot be read
		}
		return names
	})
}

func newStatus(a *app) *cobra.Command {
	o := &statusOptions{app: a}
	cmd := &cobra.Command{
		Use:   "status [namespace/package...]",
		Short: "Report whether a cluster runs the locked versions, and their health",
		Long: Doc(`
			Compare a cluster with quayside.lock, and report the version and health of every
			operator, or of those that you name. The output also lists custom resources of the
			operators' kinds, all objects (unhealthy ones first), and images. Custom resources do
			not affect the result.

			The cluster is that of the kubeconfig's current context, or of --context. It is only
			read, with your permissions: if one is missing, the entry of the object names it. The
			content of Secrets and ConfigMaps is not read.

			--namespace reports the operators that watch a namespace, and its custom resources.

			An operator is

			  Ready         all objects exist, match the lock and are healthy
			  Progressing   objects are missing or being rolled out
			  Failed        an object needs intervention
			  Missing       in the lock, but not in the cluster
			  OutOfSync     the cluster has another version or another pin than the lock
			  Unpinned      in the cluster, but not in the lock
			  Unknown       some objects could not be read

			--save writes the observations to a file, with environment, cluster and the UID of
			kube-system. --observed of other commands reads it to hold back or to promote
			operators. -o json prints the same format, with details. --sign also signs the file:
			the signature is in FILE.sigstore.json.

			Exit codes: 0 every operator is Ready; 1 one is not; 2 an error, such as a cluster that
			does not answer.`),
		Example: Examples(`
			quayside status
			quayside status my-etcd/etcd --context prod -o json

			# after a merge: wait until the cluster is up to date and healthy
			quayside status --wait --timeout 10m

			# upgrade only operators that are healthy and upgradeable
			quayside status --save observed.yaml
			quayside resolve --upgrade --observed observed.yaml`),
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeOperators,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case cmd.Flags().Changed("timeout") && !o.wait:
				return Usagef(cmd, "--timeout requires --wait")
			case o.watched != "" && (len(args) > 0 || o.save != ""):
				return Usagef(cmd, "--namespace cannot be used together with operators or --save")
			case o.timeout <= 0:
				return Usagef(cmd, "--timeout %s: must be a duration such as 5m", o.timeout)
			case cmd.Flags().Changed("sign") && (o.Key == "" || o.save == ""):
				return Usagef(cmd, "--sign requires --save, and a key file or 'keyless'")
			}
			return o.run(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	o.login.addFlags(cmd, a)
	f.StringVar(&o.cluster, "cluster", "", "`NAME` of the cluster in quayside.yaml (default: the only one)")
	f.StringVar(&o.watched, "namespace", "", "report only the operators that watch `NAMESPACE`, and its custom resources")
	f.StringVar(&o.save, "save", "", "also write the observations to `FILE`, for --observed of other commands")
	addSigning(cmd, &o.Signing)
	f.BoolVar(&o.custom, "custom-resources", true, "count the custom resources of the operators' kinds")
	f.BoolVar(&o.wait, "wait", false, "wait until every operator is Ready, or --timeout has passed")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "maximum `DURATION` to wait, with --wait")
	f.BoolVar(&o.offline, "offline", false, "fetch no bundles; list missing ones")
	addOutput(cmd, a, nil, status.Status{}).hint = " (--save FILE writes observations for --observed)"
	addAll(cmd, a, "save", "sign")
	o.offer(cmd, "cluster", a.completions(edit.Completer.Clusters))
	return cmd
}

func (o *statusOptions) run(ctx context.Context, args []string) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	o.log.Warn(workspace.WarnStale(ctx, p))
	if o.watched != "" {
		lock, err := p.NeedLock()
		if err != nil {
			return err
		}
		for _, w := range explain.Watchers(lock, o.watched) {
			args = append(args, w.Key())
		}
		if len(args) == 0 {
			return fmt.Errorf("no operator in %s watches namespace %s", workspace.LockFile, sanitize.Line(o.watched))
		}
	}
	want, err := status.Expect(ctx, p, o.cluster, args)
	if err != nil {
		return err
	}
	client, err := cluster.Open(o.login.options(o.app))
	if err != nil {
		return err
	}
	opt := status.ObserveOptions{Custom: o.custom, CustomIn: o.watched, Supply: o.save != "" || o.output != "text", Progress: o.log.Progress}
	if o.wait {
		opt.Wait = o.timeout
	}
	seen, err := status.Observe(ctx, client, want, opt)
	o.log.Done()
	if err != nil {
		return err
	}
	o.log.Warn(p.Waive(seen.Warnings))
	if o.save != "" {
		if err := o.writeObserved(ctx, p, seen); err != nil {
			return err
		}
	}
	if err := o.print(seen, func(io.Writer) { writeStatus(o.out, seen) }); err != nil {
		return err
	}
	unhealthy := unhealthyMessage(seen)
	switch {
	case unhealthy == "":
		o.log.Note("%s up to date and healthy", diag.Count(len(seen.Operators), "operator"))
		return nil
	case o.wait:
		unhealthy = fmt.Sprintf("after %s %s", o.timeout, unhealthy)
	}
	return &workspace.DiffersError{Msg: unhealthy}
}

// writeObserved writes the observations to --save. With --sign, it also writes a signature file beside that
// file.
func (o *statusOptions) writeObserved(ctx context.Context, p *workspace.Project, seen *status.Status) error {
	name, data := o.argPath(o.save), health.FormatObserved(seen.Summary)
	if o.Key != "" {
		signer, err := p.Signer(ctx, o.Signing)
		if err != nil {
			return err
		}
		bundle, err := signer.SignBlob(ctx, data)
		if err != nil {
			return err
		}
		if _, err := filetree.WriteFile(name+workspace.SignatureSuffix, bundle); err != nil {
			return err
		}
	}
	_, err := filetree.WriteFile(name, data)
	return err
}

// options returns the options for opening the cluster. It finds the kubeconfig as kubectl does.
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
