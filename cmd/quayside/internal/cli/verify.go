package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/compare"
	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/cmd/quayside/internal/status"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/cluster"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/lockfile"
)

type verifyOptions struct {
	*app
	observed []string
	login    loginFlags
	live     bool // whether --context or --kubeconfig is set
	strict   bool
	source   string // value of --source
	comment  int64
	forge    string
}

func newVerify(a *app) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify [ARTIFACT | DIRECTORY --source REPOSITORY]",
		Short: "Check that the lock and the rendered tree are up to date",
		Long: Doc(`
			Check that quayside.lock is up to date with the declarations, and the rendered tree
			with the lock. Nothing is written. Files that differ (~), are missing (+), are no longer
			needed (-) or were not written by quayside (?) are listed. Your own files are errors
			only where they change the objects that a GitOps tool applies, such as in rendered/crds.

			quayside compares the lock with the declarations, the catalogs and the content of the
			bundles. It warns about content that is not available, for example without a network;
			with --strict it exits with 1. It builds the overlays of all clusters with your patches,
			and reports a failed build, a patch without a target, and a custom resource whose CRD
			the cluster does not get. It applies the rules of spec.policy with 'on: tree', and
			reports needs of operators that a cluster does not meet, as 'quayside render' does.

			With --context or --kubeconfig, quayside also looks in that cluster, read-only, for
			Subscriptions and ClusterExtensions of the locked packages: OLM and the GitOps tool
			would own the same objects.

			With an ARTIFACT (oci://registry/repository:tag, pushed by 'quayside push'), check the
			artifact instead: its digests and files, the overlays of its clusters, and its files
			against the commit that it names, if the repository has that commit. If spec.trust
			requires a signature, quayside also verifies the signatures of the artifact and of its
			provenance.

			With --source, check a DIRECTORY that 'quayside propose --tree' wrote to another
			repository: quayside renders the workspace in the source repository, at the commit that
			the directory records, and compares the two. The commit must be merged there. Name the
			repository that you trust, as a path or a URL, perhaps with @COMMIT.

			See also: docs/artifacts.md, docs/needs.md, docs/windows.md, docs/gitops.md
			Exit codes: 0 up to date; 1 out of date; 2 an error; 4 refused by the policy.`),
		Example: Examples(`
			quayside verify --offline
			quayside verify oci://registry.example.com/fleet/stage:main
			quayside verify envs/prod --source https://git.example.com/fleet.git`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (o.source != "" || compare.IsArtifact(args[0])) {
				args = args[1:]
			}
			return WantArgs()(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.live = cmd.Flags().Changed("context") || cmd.Flags().Changed("kubeconfig")
			if len(args) > 0 && o.live {
				return Usagef(cmd, "--context and --kubeconfig are for workspaces, not for artifacts")
			}
			if err := checkComment(cmd, o.comment, o.forge); err != nil {
				return err
			}
			switch {
			case len(args) == 0 && o.source != "":
				return Usagef(cmd, "--source requires the directory of a tree")
			case len(args) == 0:
				return o.run(cmd.Context())
			case o.comment > 0 || len(o.observed) > 0:
				return Usagef(cmd, "--comment and --observed are for workspaces, not for artifacts")
			case o.source != "":
				return o.verifyTreeOf(cmd, args[0])
			default:
				return o.verifyArtifact(cmd, args[0])
			}
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "also exit with 1 if something in the lock could not be checked")
	cmd.Flags().StringVar(&o.source, "source", "", "the `REPOSITORY` of the workspace that the directory was rendered from, a path or a URL; GIT_TOKEN is the password for https")
	addObservedSupply(cmd, &o.observed)
	addNow(cmd, a, "windows")
	o.login.addFlags(cmd, a)
	addComment(cmd, a, &o.comment, &o.forge, "if verify fails, write the errors to the comment of 'quayside diff --comment' on the pull request `NUMBER`; GIT_TOKEN holds the token")
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, nil, verifyReport{}, deliver.ArtifactReport{})
	addAll(cmd, a)
	return cmd
}

// verifyReport is the output of `quayside verify`.
type verifyReport struct {
	workspace.CheckReport
	workspace.TreeReport // the warnings include those about the lock
}

func (o *verifyOptions) run(ctx context.Context) error {
	r := &verifyReport{CheckReport: workspace.NewCheckReport(), TreeReport: workspace.TreeReport{Changes: []filetree.FileChange{}}}
	compared, err := o.verify(ctx, r)
	r.Finish(err)
	r.Warnings = append(r.AllWarnings, r.Warnings...)
	printed := o.print(r, func(io.Writer) {
		if compared {
			o.printRendered(&r.TreeReport)
		}
	})
	if err != nil && o.comment > 0 {
		printed = errors.Join(printed, o.postFailure(ctx, err))
	}
	return errors.Join(err, printed)
}

// checkCluster returns an error for each operator in the lock that OLM also installs in the
// selected cluster.
func (o *verifyOptions) checkCluster(ctx context.Context, p *workspace.Project, lock *lockfile.File) error {
	client, err := cluster.Open(o.login.options(o.app))
	if err != nil {
		return err
	}
	notes, err := status.CheckOLM(ctx, client, lock, p.Waive)
	o.log.Warn(notes)
	return err
}

// checkWindows checks whether the change of the lock may be merged now.
func (o *verifyOptions) checkWindows(ctx context.Context, p *workspace.Project, lock *lockfile.File, r *verifyReport) error {
	found, err := compare.CheckWindows(ctx, p, lock)
	if err != nil {
		return err
	}
	o.log.Warn(found.Warnings())
	r.AllWarnings = append(r.AllWarnings, found.Warnings()...)
	return workspace.AsDiffersErrors(found.Err())
}

// verify checks the lock and the tree. compared is false if the tree was not checked because of an
// error.
func (o *verifyOptions) verify(ctx context.Context, r *verifyReport) (compared bool, err error) {
	p, err := o.open()
	if err != nil {
		return false, err
	}
	if p.Observed, err = o.readObserved(p, o.observed...); err != nil {
		return false, err
	}
	pr, err := workspace.ReadProblem(ctx, p, workspace.Request{Options: p.ResolveOptions()})
	if err != nil {
		return false, err
	}
	stale := o.checkLock(ctx, pr, workspace.CheckScope{Content: true, Followers: !o.all}, &r.CheckReport)
	if pr.Lock == nil || exitCode(stale) == exitError {
		return false, stale
	}
	if err := o.checkWindows(ctx, p, pr.Lock, r); err != nil {
		stale = errors.Join(stale, err)
	}
	if n := len(r.Unchecked); o.strict && n > 0 {
		stale = errors.Join(stale, &workspace.DiffersError{Msg: fmt.Sprintf("--strict: not everything in %s could be checked (%s)", workspace.LockFile, diag.Count(n, "warning"))})
	}
	if o.live {
		stale = errors.Join(stale, o.checkCluster(ctx, p, pr.Lock))
	}
	if pr.LacksContent() {
		tree, err := workspace.CheckUnrendered(ctx, p)
		o.logTree(tree)
		if err == nil {
			r.TreeReport, err = *tree, tree.Err()
		}
		return false, errors.Join(stale, err)
	}
	tree, err := p.CheckTree(ctx, true)
	if err == nil {
		clusters := tree.CheckClusters()
		r.TreeReport, compared = *tree, true
		stale = errors.Join(stale, tree.Err(), clusters)
	}
	o.logTree(tree)
	return compared, errors.Join(stale, err)
}
