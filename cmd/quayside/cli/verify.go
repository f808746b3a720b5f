package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/app/compare"
	"github.com/quayside/quayside/internal/app/deliver"
	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/base/diag"
	"github.com/quayside/quayside/internal/base/filetree"
)

type verifyOptions struct {
	*app
	strict bool
}

func newVerify(a *app) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify [ARTIFACT]",
		Short: "Check that the lock and the rendered tree are up to date",
		Long: Doc(`
			Check that quayside.lock answers the declarations and that the rendered tree is
			what the lock says: 'quayside resolve --check' and 'quayside render --check' in
			one. Every file that differs (~), is missing (+), is no longer needed (-) or is
			not quayside's (?) is listed. Your own files are no fault, but among the
			CustomResourceDefinitions, where every file is applied. Nothing is written.

			The overlays of all clusters are built with your own patches over what the lock
			renders to: one that does not build, a patch that has nothing left to change, and
			a custom resource whose definition the cluster does not get, is a fault.

			Whatever the lock says is found out again: from the declarations, from the
			catalogs, and from the content of the bundles where no catalog confirms it.
			What could not be checked, for want of a network or of a catalog, is a warning
			that names it.

			The rules of spec.policy that are marked 'on: tree' judge every object that each
			cluster gets.

			An artifact (oci://registry/repository:tag, as 'quayside push' makes it) is
			verified by itself: that it holds what its digests say and files alone, that the
			overlays of its clusters build, and that it is what the commit that it names has,
			where the repository around the workspace has that commit.
			One of a registry whose signature spec.trust demands is not read unless it is
			signed, and what it was made of is, too (its provenance, as 'quayside push --sign'
			states it): who signed it is told, and what they state is compared with the
			artifact and with the commit.

			Exit codes: 0 in step; 1 something is out of step; 2 an error; 4 refused by the policy.`),
		Example: Examples(`
			quayside verify --offline
			quayside verify oci://registry.example.com/fleet/stage:main`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && compare.IsArtifact(args[0]) {
				args = args[1:]
			}
			return WantArgs()(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return o.artifact(cmd, args[0])
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "also exit with 1 if something in the lock could not be checked")
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, nil, verifyReport{}, deliver.ArtifactReport{})
	addAll(cmd, a)
	return cmd
}

// verifyReport is the output of `quayside verify`.
type verifyReport struct {
	workspace.CheckReport
	workspace.TreeReport // with the warnings of both
}

func (o *verifyOptions) run(ctx context.Context) error {
	r := &verifyReport{CheckReport: workspace.NewCheckReport(), TreeReport: workspace.TreeReport{Changes: []filetree.FileChange{}}}
	compared, err := o.verify(ctx, r)
	r.Finish(err)
	r.Warnings = append(r.Said, r.Warnings...)
	return errors.Join(err, o.print(r, func(io.Writer) {
		if compared {
			r.Print(o.out, o.log)
		}
	}))
}

// verify checks the lock and the tree, and reports whether it reached the tree.
func (o *verifyOptions) verify(ctx context.Context, r *verifyReport) (bool, error) {
	p, err := o.open()
	if err != nil {
		return false, err
	}
	in, err := p.Inputs(ctx, p.ResolveOptions(), false)
	if err != nil {
		return false, err
	}
	stale := in.CheckInto(ctx, true, &r.CheckReport)
	if in.Lock == nil || exitCode(stale) == exitError {
		return false, stale
	}
	if n := len(r.Unchecked); o.strict && n > 0 {
		stale = errors.Join(stale, &workspace.DiffersError{Msg: fmt.Sprintf("--strict: not everything in %s could be checked (%s)", workspace.LockFile, diag.Count(n, "warning"))})
	}
	compared, err := p.CheckTree(ctx, true)
	if err != nil {
		return false, errors.Join(stale, err)
	}
	r.TreeReport = *compared
	overlays := compare.Overlays(p, compared.Result)
	if overlays != nil {
		return true, errors.Join(stale, compared.Err(), overlays)
	}
	waivers, refused := compare.Rules(p, in.Lock, compared.Result)
	o.log.Warn(waivers)
	r.Warnings = append(r.Warnings, waivers...)
	return true, errors.Join(stale, compared.Err(), refused)
}
