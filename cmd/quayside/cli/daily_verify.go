package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/diff/state"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/resolve"
)

type verifyOptions struct {
	*app
	strict bool
}

func newVerify(a *app) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify [ARTIFACT]",
		Short: "Check that the declarations, the lock and the rendered tree are in step",
		Long: doc(`
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

			An artifact (oci://registry/repository:tag, as 'quayside push' makes it) is
			verified by itself: that it holds what its digests say and files alone, that the
			overlays of its clusters build, and that it is what the commit that it names has,
			where the repository around the workspace has that commit.
			One of a registry whose signature spec.trust demands is not read unless it is
			signed, and what it was made of is, too (its provenance, as 'quayside push --sign'
			states it): who signed it is told, and what they state is compared with the
			artifact and with the commit.

			Exit codes: 0 in step; 1 something is out of step; 2 an error.`),
		Example: examples(`
			quayside verify --offline
			quayside verify oci://registry.example.com/fleet/stage:main`),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && state.IsArtifact(args[0]) {
				args = args[1:]
			}
			return wantArgs()(cmd, args)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return o.artifact(cmd, args[0])
			}
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.strict, "strict", false, "exit with 1, too, if something in the lock could not be checked")
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, nil, verifyReport{}, artifactReport{})
	addAll(cmd, a)
	return cmd
}

// verifyReport is what `quayside verify` prints.
type verifyReport struct {
	checkReport
	renderReport // with the warnings of both
}

func (o *verifyOptions) run(ctx context.Context) error {
	r := &verifyReport{checkReport: newCheckReport(), renderReport: renderReport{Changes: []filetree.Change{}}}
	tree := &renderOptions{app: o.app, check: true, foreign: true}
	compared, err := o.verify(ctx, tree, r)
	r.finish(err)
	r.Warnings = append(r.warnings, r.Warnings...)
	return errors.Join(err, o.print(r, func(w io.Writer) {
		if compared {
			tree.printChanges(w, &r.renderReport)
		}
	}))
}

// verify compares the lock and the tree, and reports whether it came to the
// tree.
func (o *verifyOptions) verify(ctx context.Context, tree *renderOptions, r *verifyReport) (bool, error) {
	p, err := o.open()
	if err != nil {
		return false, err
	}
	in, err := p.Inputs(ctx, p.ResolveOptions(), false)
	if err != nil {
		return false, err
	}
	stale := o.checkLock(ctx, in, true, &r.checkReport)
	if in.Lock == nil || exitCode(stale) == exitError {
		return false, stale
	}
	if n := len(r.Unchecked); o.strict && n > 0 {
		stale = errors.Join(stale, &project.DiffersError{Msg: fmt.Sprintf("--strict: not everything in %s could be checked (%s)", project.LockFile, diag.Count(n, "warning"))})
	}
	compared, err := tree.compare(ctx, p)
	if err != nil {
		return false, errors.Join(stale, err)
	}
	r.renderReport = *compared
	return true, errors.Join(stale, compared.differs(), state.Overlays(p, compared.result))
}

// checkReport is what `quayside resolve --check` prints, and `quayside verify`
// of the lock.
type checkReport struct {
	Lock      string           `json:"lock"`
	InStep    bool             `json:"inStep"` // nothing was found; what could not be checked is no finding
	Stale     []resolve.Reason `json:"stale"`
	Unchecked []resolve.Reason `json:"unchecked"`
	failure

	warnings []diag.Warning // not nil
}

func newCheckReport() checkReport {
	return checkReport{
		Lock: project.LockFile, Stale: []resolve.Reason{}, Unchecked: []resolve.Reason{}, failure: newFailure(), warnings: []diag.Warning{},
	}
}

// checkLock says whether the lock answers the declarations; content is asked
// for as Inputs.Check does.
func (a *app) checkLock(ctx context.Context, in *project.Inputs, content bool, r *checkReport) error {
	v, err := in.Check(ctx, content)
	r.Stale, r.Unchecked = append(r.Stale, v.Stale...), append(r.Unchecked, v.Unchecked...)
	r.warnings = append(append([]diag.Warning{}, in.AboutDeclared()...), v.Warnings...)
	a.talk.Warn(in.AboutDeclared())
	a.talk.Warn(v.Warnings)
	var unchecked []diag.Warning
	for _, u := range v.Unchecked {
		unchecked = append(unchecked, diag.Warning{Pos: u.Pos, Code: "not-checked", Msg: "not checked: " + u.Sentence()})
	}
	a.talk.Warn(in.Acknowledge(unchecked))
	if err == nil {
		a.talk.Note("%s is up to date (%s)", project.LockFile, diag.Count(len(in.Lock.Pins), "operator"))
	}
	return err
}

// finish fills in what err says and the rest of the report does not.
func (r *checkReport) finish(err error) {
	r.InStep = err == nil
	r.add(err)
}
