package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/propose"
	"github.com/quayside/quayside/resolve"
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

func (p *proposal) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&p.branch, "branch", "", "with --commit, put the lock and the rendered tree on a new branch `NAME`; the work tree stays as it is")
	f.BoolVar(&p.commit, "commit", false, "with --branch, commit what moved, with a message that says why")
	f.StringVar(&p.push, "push", "", "push the branch to `REMOTE`, a name or a URL; GIT_TOKEN holds the password for https")
	f.StringVar(&p.body, "pr-body", "", "write the text for the pull request to `FILE`; the texts for several to a directory")
	f.BoolVar(&p.request, "pull-request", false, "with --push, open a pull request for the branch, or bring the open one up to date; GIT_TOKEN holds the token")
	f.StringVar(&p.into, "into", "", "with --pull-request, the `BRANCH` to merge into (default: the default branch of the repository there)")
	addForge(cmd, &p.forge)
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

// proposed is what one run committed.
type proposed struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	Pushed string `json:"pushed,omitempty"`

	Request *requestView `json:"pullRequest,omitempty" doc:"with --pull-request"`
}

// propose commits a lock, and what it renders to, on a branch of its own. It
// returns nil where nothing moved.
func (o *resolveOptions) propose(ctx context.Context, p *project.Project, in *project.Inputs, res *project.Resolution) (*proposed, error) {
	if len(res.Changes) == 0 {
		return nil, nil
	}
	base, err := o.base(ctx, p)
	if err != nil {
		return nil, err
	}
	made, err := base.New(ctx, project.Upgrade{Resolution: res})
	if err != nil {
		return nil, err
	}
	text, err := o.body(ctx, made, o.proposal.branch, in, o.argPath(o.proposal.body))
	if err != nil {
		return nil, err
	}
	out, _, err := o.publish(ctx, made, o.proposal.branch, text)
	return out, err
}

// base returns what upgrades stand on.
func (o *resolveOptions) base(ctx context.Context, p *project.Project) (*propose.Base, error) {
	scans, err := o.scans(o.proposal.scan)
	if err != nil {
		return nil, err
	}
	base, err := propose.Open(ctx, p)
	if err == nil {
		base.Scans = scans
	}
	return base, err
}

// body returns the text for a pull request, and writes it where a file for it is
// named; nil where nobody wants it.
func (o *resolveOptions) body(ctx context.Context, made *propose.Proposal, branch string, in *project.Inputs, file string) ([]byte, error) {
	if file == "" && !o.proposal.request {
		return nil, nil
	}
	text, err := made.Body(ctx, branch, in.Lock, time.Now())
	if err == nil && file != "" {
		_, err = filetree.WriteFile(file, text)
	}
	return text, err
}

// publish makes the branch, pushes it and has a pull request for it, as far as that
// is asked for, and reports whether the remote did not hold it yet.
func (o *resolveOptions) publish(ctx context.Context, made *propose.Proposal, branch string, text []byte) (out *proposed, sent bool, err error) {
	request := o.proposal
	out = &proposed{Branch: branch}
	if out.Commit, err = made.Commit(ctx, branch, request.force); err != nil {
		return nil, false, err
	}
	o.talk.Note("committed %.12s to branch %s", out.Commit, branch)
	if request.push == "" {
		return out, false, nil
	}
	if sent, err = made.Push(ctx, request.push, branch, o.env["GIT_TOKEN"], request.force); err != nil {
		return nil, false, err
	}
	out.Pushed = diag.Redact(request.push)
	if sent {
		o.talk.Note("pushed %s", branch)
	} else {
		o.talk.Note("%s holds this commit of %s already", out.Pushed, branch)
	}
	if request.request {
		out.Request, err = o.request(ctx, made, branch, text)
	}
	return out, sent, err
}

// split is what one run with --split committed.
type split struct {
	Environment  string        `json:"environment" doc:"what the workspace is called in titles and branches; empty for one without a name at the top of the repository"`
	PullRequests []pullRequest `json:"pullRequests" doc:"by their first operators"`
	Done         []string      `json:"done" doc:"branches of earlier runs in which nothing is left to move"`
}

// pullRequest is one branch, and what belongs to it.
type pullRequest struct {
	Branch    string           `json:"branch"`
	Commit    string           `json:"commit"`
	Pushed    string           `json:"pushed,omitempty" doc:"the remote that holds the commit now"`
	Sent      bool             `json:"sent" doc:"it did not before"`
	Title     string           `json:"title"`
	Body      string           `json:"body,omitempty" doc:"the file with the text"`
	Operators []string         `json:"operators" doc:"that were to move and do; the first gives the branch its name"`
	Changes   []project.Change `json:"changes"`
	Bonds     []resolve.Bond   `json:"bonds" doc:"why several operators move together"`
	Request   *requestView     `json:"pullRequest,omitempty" doc:"with --pull-request"`
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
	r := &resolveReport{
		Lock: project.LockFile, Pins: len(in.Lock.Pins), Changes: []project.Change{}, Warnings: append(append([]diag.Warning{}, in.Declared.Warnings...), warnings...),
		Conflicts: []*resolve.Conflict{}, Split: &split{Environment: base.Environment, PullRequests: []pullRequest{}},
	}
	var branches []string
	for _, u := range upgrades {
		made, err := base.New(ctx, u)
		if err != nil {
			return err
		}
		branch := base.BranchFor(o.proposal.branch, u.Operators[0])
		if slices.Contains(branches, branch) {
			return fmt.Errorf("two upgrades would both be branch %q: make one of them without --split", branch)
		}
		branches = append(branches, branch)
		one := pullRequest{Title: made.Title(), Operators: u.Operators, Changes: u.Changes, Bonds: append([]resolve.Bond{}, u.Bonds...)}
		if o.proposal.body != "" {
			one.Body = filepath.Join(o.argPath(o.proposal.body), filepath.FromSlash(strings.TrimPrefix(branch, o.proposal.branch))+".md")
			if err := os.MkdirAll(filepath.Dir(one.Body), 0o777); err != nil {
				return err
			}
		}
		text, err := o.body(ctx, made, branch, in, one.Body)
		if err != nil {
			return err
		}
		out, sent, err := o.publish(ctx, made, branch, text)
		if err != nil {
			return err
		}
		one.Branch, one.Commit, one.Pushed, one.Sent, one.Request = out.Branch, out.Commit, out.Pushed, sent, out.Request
		r.Split.PullRequests = append(r.Split.PullRequests, one)
	}
	done, err := base.Done(ctx, o.proposal.branch, branches)
	if err != nil {
		return err
	}
	r.Split.Done = append([]string{}, done...)
	return o.print(r, func(w io.Writer) { o.printSplit(w, r.Split) })
}

// printSplit prints each pull request with its changes.
func (o *resolveOptions) printSplit(w io.Writer, s *split) {
	for _, p := range s.PullRequests {
		fmt.Fprintf(w, "%s: %s\n", p.Branch, inert.Line(p.Title))
		for _, c := range p.Changes {
			fmt.Fprintln(w, "  "+o.out.Sign(c.Sign())+" "+inert.Line(c.String()))
		}
		for _, b := range p.Bonds {
			fmt.Fprintf(w, "  %s does not move without %s\n", inert.Line(b.Operator), inert.Line(b.With))
		}
	}
	if len(s.PullRequests) == 0 {
		o.talk.Note("nothing is left to move")
	}
	for _, branch := range s.Done {
		o.talk.Note("branch %s: nothing is left to move there, close its pull request and delete it", inert.Line(branch))
	}
}
