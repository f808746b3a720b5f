package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/cmd/quayside/internal/deliver"
	"github.com/quayside/quayside/cmd/quayside/internal/edit"
	"github.com/quayside/quayside/cmd/quayside/internal/upgrade"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/terminal"
)

type proposeOptions struct {
	resolveOptions
	promotes bool   // value of --promote
	tree     bool   // value of --tree
	outside  string // value of --outside-window
	single   bool   // value of --one-branch
	strict   bool

	branch  string
	push    string
	body    string
	scan    string
	request bool
	into    string
	forge   string
}

func newPropose(a *app) *cobra.Command {
	o := &proposeOptions{resolveOptions: resolveOptions{app: a, upgrade: operatorFlag{versions: true}, unattended: true}}
	cmd := &cobra.Command{
		Use:   "propose {[[NAMESPACE/]PACKAGE[@VERSION]]... | --edited | --promote [FROM TO [NAMESPACE/PACKAGE]...] | --tree}",
		Short: "Commit upgrades to branches and open pull requests",
		Long: Doc(`
			Commit upgrades to branches, with the lock and the rendered tree. Without arguments,
			quayside proposes every upgrade that 'quayside resolve --upgrade' would make. --push
			pushes the branches, --pull-request opens a pull request for each.

			Each operator has its own branch, NAME/ENVIRONMENT/NAMESPACE/PACKAGE; operators that
			must be upgraded together share one. The branches can be merged in any order: an upgrade
			for which quayside cannot prove this is omitted, with a warning. --one-branch commits
			everything to the branch NAME, or with --all to NAME/ENVIRONMENT.

			A later run updates the branches, and with --push deletes those that are merged or
			superseded. It does not change branches with commits by others. A pull request that a
			person closed stays closed until its upgrade differs, or you name the operator.

			--edited proposes the versions that you, or a bot such as Renovate, wrote into
			quayside.lock; --prune also removes operators that nothing requires. Both use one
			branch. --promote proposes a promotion, and --tree the tree of the committed lock, in
			the repository of spec.output; both use a branch for each environment.

			An operator with a fault, such as a withdrawn package, an unreadable catalog or a bundle
			that cannot be fetched or verified, is held back; the output and each pull request list
			it. --strict exits with 3 then. --observed also holds back operators that a cluster
			reports as unhealthy or not upgradeable, in files of 'quayside status --save'.

			See also: docs/ci.md, docs/windows.md, docs/gitops.md
			Exit codes: 0 done; 1 with --check, a branch would be opened, updated or closed; 2 an
			error; 3 an operator that you named cannot be upgraded, or with --strict any operator; 4
			an operator that you named is held.`),
		Example: Examples(`
			# every night, in every environment: a pull request for each operator
			quayside propose --all --push origin --pull-request

			# one upgrade on a branch, with the text for its pull request
			quayside propose my-etcd/etcd --branch etcd --one-branch --pr-body body.md

			# after a merge: a pull request for the tree in the repository that the GitOps tool reads
			quayside propose --all --tree --pull-request

			# list the branches to open, update and close, and write nothing
			quayside propose --all --push origin --check`),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.promotes:
				return promoteArgs(cmd, args)
			case o.edited && len(args) > 0:
				return Usagef(cmd, "--edited cannot be used with the argument %q", args[0])
			case o.tree && len(args) > 0:
				return Usagef(cmd, "--tree cannot be used with the argument %q", args[0])
			}
			return nil
		},
		ValidArgsFunction: completeEach(a.completions(edit.Completer.Versions)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.checkProposal(cmd); err != nil {
				return err
			}
			if o.promotes {
				return o.promote(cmd, args)
			}
			if o.tree {
				return o.proposeTree(cmd.Context())
			}
			return o.proposeUpgrades(cmd, args)
		},
	}
	o.addProposeFlags(cmd)
	return cmd
}

func (o *proposeOptions) addProposeFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.promotes, "promote", false, "propose promotions between environments")
	f.BoolVar(&o.tree, "tree", false, "propose the rendered tree in the repository of spec.output")
	f.BoolVar(&o.edited, "edited", false, "propose the versions edited by hand in the lock")
	f.BoolVar(&o.prune, "prune", false, "also remove operators that nothing requires")
	f.StringVar(&o.hops, "hops", "1", "edges of the upgrade graph to take: a `NUMBER` or all")
	f.StringArrayVar(&o.observed, "observed", nil, "observations of clusters: a `FILE` written by 'quayside status --save', or for --promote a directory of such files; may be given several times")
	addNow(cmd, o.app, "observations and windows")
	addOutsideWindow(cmd, &o.outside)
	f.BoolVar(&o.allowDowngrade, "allow-downgrade", false, "allow downgrades")
	f.BoolVar(&o.strict, "strict", false, "exit with 3 if an operator is held back because of a fault")
	f.StringVar(&o.branch, "branch", "", "the `NAME` of the branch, or the prefix of several branches (default: upgrade; with --one-branch: upgrades; with --promote: promote; with --tree: render)")
	f.BoolVar(&o.single, "one-branch", false, "put everything on one branch")
	f.StringVar(&o.push, "push", "", "push the branches to `REMOTE`, a name or a URL; GIT_TOKEN is the password for https")
	f.StringVar(&o.body, "pr-body", "", "write the pull request's description to `FILE`, or several descriptions to a directory")
	f.BoolVar(&o.request, "pull-request", false, "with --push, open a pull request for each branch or update the open one; GIT_TOKEN is the token")
	f.StringVar(&o.into, "into", "", "with --pull-request, the target `BRANCH` (default: the repository's default branch)")
	f.BoolVar(&o.check, "check", false, "write nothing; list the branches, and exit with 1 if one would be opened, updated or closed")
	addForge(cmd, o.app, &o.forge)
	addScan(cmd, &o.scan)
	addOffline(cmd, o.app)
	addOutput(cmd, o.app, nil, resolveReport{}, upgrade.PromotionReport{}, deliver.PublishedProposal{})
	addAll(cmd, o.app)
	o.complete(cmd, "hops", []string{"1", "all"})
	for _, other := range []string{"edited", "prune", "hops", "allow-downgrade", "strict", "all"} {
		cmd.MarkFlagsMutuallyExclusive("promote", other)
	}
	for _, other := range []string{"promote", "edited", "prune", "one-branch", "hops", "allow-downgrade", "strict", "observed", "push", "into", "outside-window"} {
		cmd.MarkFlagsMutuallyExclusive("tree", other)
	}
}

// checkProposal rejects incompatible flags.
func (o *proposeOptions) checkProposal(cmd *cobra.Command) error {
	switch {
	case o.request && o.push == "" && !o.tree:
		return Usagef(cmd, "--pull-request requires --push REMOTE")
	case !o.request && o.into != "":
		return Usagef(cmd, "--into requires --pull-request")
	case o.scan != "" && o.body == "" && !o.request:
		return Usagef(cmd, "--scan requires --pr-body FILE or --pull-request")
	default:
		return nil
	}
}

// options returns the options for the proposer of a workspace. preset is the branch name if --branch is not
// set.
func (o *proposeOptions) options(preset string) (deliver.ProposalOptions, error) {
	scans, err := o.readScans(o.scan)
	return deliver.ProposalOptions{
		Branch: cmp.Or(o.branch, preset), Remote: o.push, Body: o.argPath(o.body), OutsideWindow: o.outside,
		Request: o.request, Into: o.into, Forge: o.forge, Scans: scans, Check: o.check,
	}, err
}

// openProposer opens the proposer for a workspace. preset is the branch name if --branch is not set.
func (o *proposeOptions) openProposer(ctx context.Context, p *workspace.Project, preset string) (*deliver.Proposer, error) {
	opt, err := o.options(preset)
	if err != nil {
		return nil, err
	}
	return deliver.OpenProposer(ctx, p, opt)
}

// proposeTree proposes the tree in the repository of spec.output.
func (o *proposeOptions) proposeTree(ctx context.Context) (err error) {
	p, err := o.open()
	if err != nil {
		return err
	}
	if o.all && p.Settings.Output.Repository == "" {
		o.log.Note("the tree is in this repository")
		return nil
	}
	opt, err := o.options("render")
	if err != nil {
		return err
	}
	t, err := deliver.OpenTreeProposer(ctx, p, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	proposed, err := t.Propose(ctx)
	if o.logMessages(t.TakeMessages()); err != nil {
		return err
	}
	err = o.print(proposed, func(io.Writer) { printBranches(o.out, []deliver.BranchRow{proposed.Row()}) })
	if o.check && err == nil {
		err = checkBranches([]deliver.BranchRow{proposed.Row()})
	}
	return err
}

// proposeUpgrades proposes upgrades: each on its own branch, or with --one-branch all on one.
func (o *proposeOptions) proposeUpgrades(cmd *cobra.Command, args []string) error {
	if err := o.upgradeTargets(cmd, args); err != nil {
		return err
	}
	ctx := cmd.Context()
	p, pr, err := o.observedProblem(cmd)
	if err != nil || pr == nil {
		return err
	}
	var report *resolveReport
	var failed error
	if o.single || o.edited || o.prune {
		report, failed, err = o.proposeOne(ctx, p, pr)
	} else {
		report, failed, err = o.proposeEach(ctx, p, pr)
	}
	if err != nil {
		return err
	}
	if failed == nil && o.strict && len(report.Holds) > 0 {
		failed = &workspace.HeldError{Holds: report.Holds}
	}
	err = o.print(report, func(w io.Writer) { o.printProposed(w, report) })
	if o.check && err == nil {
		err = checkBranches(report.branches())
	}
	return errors.Join(err, failed)
}

// proposeOne proposes all upgrades on one branch. failed is the error if operators that the user named are
// held back. The report still contains the other operators.
func (o *proposeOptions) proposeOne(ctx context.Context, p *workspace.Project, pr *workspace.Problem) (r *resolveReport, failed, err error) {
	res, err := workspace.Resolve(ctx, pr)
	if res == nil {
		return nil, nil, err
	}
	o.log.Warn(pr.DeclarationWarnings())
	o.log.Warn(res.Warnings)
	if err != nil {
		return nil, nil, err
	}
	r = newResolveReport(res, pr.DeclarationWarnings())
	if res.Lock != nil && len(res.Changes) > 0 {
		proposer, err := o.openProposer(ctx, p, "upgrades") // not "upgrade", which is the prefix of the branches of single upgrades
		if err != nil {
			return nil, nil, err
		}
		r.Proposed, err = proposer.Propose(ctx, workspace.Upgrade{Resolution: res}, pr, o.all)
		if o.logMessages(proposer.TakeMessages()); err != nil {
			return nil, nil, err
		}
		r.Holds = workspace.AddHolds(r.Holds, r.Proposed.Holds...)
	}
	return r, res.Failed, nil
}

// proposeEach proposes each upgrade on its own branch.
func (o *proposeOptions) proposeEach(ctx context.Context, p *workspace.Project, pr *workspace.Problem) (r *resolveReport, failed, err error) {
	proposer, err := o.openProposer(ctx, p, "upgrade")
	if err != nil {
		return nil, nil, err
	}
	upgrades, err := workspace.Split(ctx, pr)
	if err != nil {
		return nil, nil, err
	}
	proposals, holds, err := proposer.ProposeEach(ctx, upgrades)
	o.logMessages(proposer.TakeMessages())
	pending := upgrades.Pending(holds)
	o.log.Warn(pr.Declared.Warnings)
	o.log.Warn(pending.Warnings)
	r = newResolveReport(pending, pr.Declared.Warnings)
	r.Split = proposals
	return r, pending.Failed, err
}

func (o *proposeOptions) printProposed(w io.Writer, r *resolveReport) {
	if r.Split != nil {
		o.printProposals(r.Split)
		return
	}
	if r.Proposed == nil {
		o.log.Note("no upgrades left")
	}
	o.printChanges(w, r.Changes)
	if o.check {
		printBranches(o.out, r.branches())
	}
}

// branches returns the rows for the table of branches.
func (r *resolveReport) branches() []deliver.BranchRow {
	switch {
	case r.Split != nil:
		return r.Split.Rows()
	case r.Proposed != nil:
		return []deliver.BranchRow{r.Proposed.Row()}
	}
	return nil
}

// promote proposes promotions. It also decides whether branches of earlier runs are obsolete.
func (o *proposeOptions) promote(cmd *cobra.Command, args []string) error {
	p := &promoteOptions{app: o.app, observed: o.observed, outside: o.outside, proposes: true}
	r, err := p.run(cmd, args, func(ctx context.Context, s *upgrade.PromotionStepReport, several bool) error {
		if s.Resolution == nil && !several {
			return nil
		}
		proposer, err := o.openProposer(ctx, s.Step.To.Project, "promote")
		if err == nil {
			err = s.Propose(ctx, proposer, several)
			o.logMessages(proposer.TakeMessages())
		}
		return err
	})
	if err != nil || !o.check {
		return err
	}
	if o.output == "text" {
		printBranches(o.out, r.Branches())
	}
	return checkBranches(r.Branches())
}

// checkBranches returns an error for --check if a branch would be opened, updated or closed.
func checkBranches(rows []deliver.BranchRow) error {
	if n := deliver.CountChanges(rows); n > 0 {
		return &workspace.DiffersError{Msg: diag.Count(n, "pull request") + " to open, update or close"}
	}
	return nil
}

// printProposals prints each pull request with its changes. With --check, it prints the table of
// branches.
func (o *proposeOptions) printProposals(s *deliver.PublishedProposals) {
	if o.check {
		printBranches(o.out, s.Rows())
		return
	}
	for _, p := range s.PullRequests {
		fmt.Fprintf(o.out, "%s: %s\n", p.Branch, sanitize.Line(p.Title))
		for _, c := range p.Changes {
			fmt.Fprintln(o.out, "  "+o.out.Sign(c.Sign())+" "+sanitize.Line(c.String()))
		}
		for _, b := range p.Bonds {
			fmt.Fprintf(o.out, "  %s cannot be upgraded without %s\n", sanitize.Line(b.Operator), sanitize.Line(b.With))
		}
	}
	if len(s.PullRequests) == 0 {
		o.log.Note("no upgrades left")
	}
}

func printBranches(out *terminal.Terminal, rows []deliver.BranchRow) {
	t := &terminal.Table{Uncut: true, Head: []string{"action", "branch", "why"}}
	for _, r := range rows {
		t.Add(string(r.Action), sanitize.Line(r.Branch), sanitize.Line(r.Text))
	}
	if len(rows) > 0 {
		t.Write(out)
	}
}
