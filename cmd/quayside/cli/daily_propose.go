package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/propose"
)

// proposal is a branch with one commit, for a pull request, or one for each
// operator.
type proposal struct {
	branch string
	split  bool
	commit bool
	push   string
	body   string
	force  bool
	scan   string

	request bool
	into    string
	forge   string
}

func (p *proposal) flags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	f.StringVar(&p.branch, "branch", "", "with --commit, put the lock and the rendered tree on a new branch `NAME`; the work tree stays as it is")
	f.BoolVar(&p.commit, "commit", false, "with --branch, commit what moved, with a message that says why")
	f.StringVar(&p.push, "push", "", "push the branch to `REMOTE`, a name or a URL; GIT_TOKEN holds the password for https")
	f.StringVar(&p.body, "pr-body", "", "write the text for the pull request to `FILE`; the texts for several to a directory")
	f.BoolVar(&p.request, "pull-request", false, "with --push, open a pull request for the branch, or bring the open one up to date; GIT_TOKEN holds the token")
	f.StringVar(&p.into, "into", "", "with --pull-request, the `BRANCH` to merge into (default: the default branch of the repository there)")
	addForge(cmd, a, &p.forge)
	addScan(cmd, &p.scan)
	f.BoolVar(&p.force, "force", false, "with --branch, replace existing branches")
}

// check refuses flags that do not belong together.
func (p *proposal) check(cmd *cobra.Command) error {
	switch {
	case p.commit != (p.branch != ""):
		return usagef(cmd, "--branch NAME and --commit go together")
	case p.branch == "" && p.split:
		return usagef(cmd, "--split needs --branch NAME --commit")
	case p.branch == "" && (p.push != "" || p.body != "" || p.force):
		return usagef(cmd, "--push, --pr-body and --force need --branch NAME --commit")
	case p.request && p.push == "":
		return usagef(cmd, "--pull-request needs --push REMOTE")
	case p.scan != "" && p.body == "" && !p.request:
		return usagef(cmd, "--scan is for the text of pull requests: add --pr-body FILE or --pull-request")
	case !p.request && p.into != "":
		return usagef(cmd, "--into needs --pull-request")
	default:
		return nil
	}
}

// base returns what upgrades stand on.
func (o *resolveOptions) base(ctx context.Context, p *project.Project) (*propose.Base, error) {
	said := o.proposal
	scans, err := o.scans(said.scan)
	if err != nil {
		return nil, err
	}
	return propose.Open(ctx, p, propose.Options{
		Branch: said.branch, Force: said.force, Remote: said.push, Body: o.argPath(said.body),
		Request: said.request, Into: said.into, Forge: said.forge, Scans: scans,
	})
}

// propose commits a lock, and what it renders to, on a branch of its own. It
// returns nil where nothing moved.
func (o *resolveOptions) propose(ctx context.Context, p *project.Project, in *project.Inputs, res *project.Resolution) (*propose.Published, error) {
	if len(res.Changes) == 0 {
		return nil, nil
	}
	base, err := o.base(ctx, p)
	if err != nil {
		return nil, err
	}
	return base.Propose(ctx, project.Upgrade{Resolution: res}, in, false)
}

// split commits what is to move in parts, each on a branch of its own.
func (o *resolveOptions) split(ctx context.Context, p *project.Project, in *project.Inputs) error {
	base, err := o.base(ctx, p)
	if err != nil {
		return err
	}
	upgrades, warnings, err := in.Split(ctx)
	if err != nil {
		return err
	}
	o.talk.Warn(in.Declared.Warnings)
	o.talk.Warn(warnings)
	r := newResolveReport(&project.Resolution{Pins: len(in.Lock.Pins), Warnings: warnings}, in.Declared.Warnings)
	if r.Split, err = base.Split(ctx, upgrades, in); err != nil {
		return err
	}
	return o.print(r, func(io.Writer) { r.Split.Print(o.out, o.talk) })
}
