package propose

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/inert"
	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/internal/terminal"
	"github.com/quayside/quayside/resolve"
)

// Options say what becomes of upgrades.
type Options struct {
	Branch  string        // of one; the branches of several are below it
	Force   bool          // replace branches that are there
	Remote  string        // to push to, a name or a URL; empty: none
	Body    string        // file for the text, a directory for those of several; empty: none
	Request bool          // have a pull request for each
	Into    string        // branch that these are for; empty: the default one
	Forge   string        // kind of server; empty: known by its address
	Scans   *scan.Results // what scanners found in images, for the text; may be nil
	Check   bool          // commit, push and write nothing: only say what would be
}

// Published is what one run committed.
type Published struct {
	Branch string `json:"branch"`
	Commit string `json:"commit,omitempty" doc:"absent with --check"`
	Pushed string `json:"pushed,omitempty"`

	Request *forge.Made `json:"pullRequest,omitempty" doc:"with --pull-request"`

	sent bool // the remote did not hold it
}

// Propose renders an upgrade and publishes it. Where it is one of several, it has a
// branch and a text that no other environment has.
func (b *Base) Propose(ctx context.Context, upgrade project.Upgrade, in *project.Inputs, several bool) (*Published, error) {
	made, err := b.render(ctx, upgrade)
	if err != nil {
		return nil, err
	}
	branch, body := b.opt.Branch, b.opt.Body
	if several {
		branch = b.below(branch)
		body = b.bodyOf(branch)
	}
	return made.publish(ctx, branch, body, in)
}

// bodyOf returns the file for the text of one of several branches.
func (b *Base) bodyOf(branch string) string {
	if b.opt.Body == "" {
		return ""
	}
	return filepath.Join(b.opt.Body, filepath.FromSlash(strings.TrimPrefix(branch, b.opt.Branch))+".md")
}

// publish writes the text, makes the branch, pushes it and has a pull request for it,
// as far as that is asked for.
func (b *proposal) publish(ctx context.Context, branch, file string, in *project.Inputs) (*Published, error) {
	var text []byte
	var err error
	if file != "" || b.opt.Request {
		if text, err = b.body(ctx, branch, in.Lock, time.Now()); err != nil {
			return nil, err
		}
	}
	if file != "" {
		write := filetree.WriteFile
		if file != b.opt.Body {
			write = filetree.WriteFileBelow
		}
		if _, err := write(file, text); err != nil {
			return nil, err
		}
	}
	out := &Published{Branch: branch}
	if b.opt.Check {
		return out, nil
	}
	if out.Commit, err = b.commit(ctx, branch); err != nil {
		return nil, err
	}
	talk := b.project.Talk
	talk.Note("committed %.12s to branch %s", out.Commit, branch)
	if b.opt.Remote == "" {
		return out, nil
	}
	if out.sent, err = b.repo.Push(ctx, b.opt.Remote, branch, b.project.Getenv("GIT_TOKEN"), b.opt.Force); err != nil {
		return nil, err
	}
	out.Pushed = diag.Redact(b.opt.Remote)
	if out.sent {
		talk.Note("pushed %s", branch)
	} else {
		talk.Note("%s holds this commit of %s already", out.Pushed, branch)
	}
	if b.opt.Request {
		out.Request, err = b.request(ctx, branch, text)
	}
	return out, err
}

// request has a pull request for a branch that was pushed.
func (b *proposal) request(ctx context.Context, branch string, text []byte) (*forge.Made, error) {
	remote, err := b.repo.Address(b.opt.Remote)
	if err != nil {
		return nil, err
	}
	client, err := forge.Open(b.opt.Forge, remote, b.project.Getenv)
	if err != nil {
		return nil, err
	}
	made, err := client.Propose(ctx, forge.Pull{Head: branch, Base: b.opt.Into, Title: b.title(), Body: string(text)})
	if err != nil {
		return nil, err
	}
	b.project.Talk.Note("pull request %d of %s: %s", made.Number, inert.Line(branch), made.Outcome)
	made.URL = inert.Line(made.URL)
	return &made, nil
}

// Split is what one run committed of several upgrades.
type Split struct {
	Environment  string        `json:"environment" doc:"what the workspace is called in titles and branches; empty for one without a name at the top of the repository"`
	PullRequests []PullRequest `json:"pullRequests" doc:"by their first operators"`
	Done         []string      `json:"done" doc:"branches of earlier runs in which nothing is left to move"`
}

// PullRequest is one branch, and what belongs to it.
type PullRequest struct {
	Branch    string           `json:"branch"`
	Commit    string           `json:"commit,omitempty" doc:"absent with --check"`
	Pushed    string           `json:"pushed,omitempty" doc:"the remote that holds the commit now"`
	Sent      bool             `json:"sent" doc:"it did not before"`
	Title     string           `json:"title"`
	Body      string           `json:"body,omitempty" doc:"the file with the text"`
	Operators []string         `json:"operators" doc:"that were to move and do; the first gives the branch its name"`
	Changes   []project.Change `json:"changes"`
	Bonds     []resolve.Bond   `json:"bonds" doc:"why several operators move together"`
	Request   *forge.Made      `json:"pullRequest,omitempty" doc:"with --pull-request"`
}

// Split publishes upgrades, each on a branch of its own.
func (b *Base) Split(ctx context.Context, upgrades []project.Upgrade, in *project.Inputs) (*Split, error) {
	s := &Split{Environment: b.Environment, PullRequests: []PullRequest{}, Done: []string{}}
	var branches []string
	for _, u := range upgrades {
		made, err := b.render(ctx, u)
		if err != nil {
			return nil, err
		}
		branch := b.branchFor(migrationBranch)
		if len(u.Operators) > 0 {
			branch = b.branchFor(u.Operators[0])
		}
		if slices.Contains(branches, branch) {
			return nil, fmt.Errorf("two upgrades would both be branch %q: make one of them with --one-branch", branch)
		}
		branches = append(branches, branch)
		body := b.bodyOf(branch)
		out, err := made.publish(ctx, branch, body, in)
		if err != nil {
			return nil, err
		}
		s.PullRequests = append(s.PullRequests, PullRequest{
			Branch: branch, Commit: out.Commit, Pushed: out.Pushed, Sent: out.sent, Title: made.title(), Body: body,
			Operators: u.Operators, Changes: u.Changes, Bonds: append([]resolve.Bond{}, u.Bonds...), Request: out.Request,
		})
	}
	if slices.Equal(branches, []string{b.branchFor(migrationBranch)}) {
		return s, nil // the others wait: none of them is done
	}
	done, err := b.done(branches)
	s.Done = append(s.Done, done...)
	return s, err
}

// migrationBranch is in the place of the operator in the name of the branch that
// migrates the lock to a newer schema. No operator is called so: it is no Kubernetes name.
const migrationBranch = "quayside.lock/_schema"

// Print prints each pull request with its changes, and notes what is left.
func (s *Split) Print(out *terminal.Terminal, talk project.Talk) {
	for _, p := range s.PullRequests {
		fmt.Fprintf(out, "%s: %s\n", p.Branch, inert.Line(p.Title))
		for _, c := range p.Changes {
			fmt.Fprintln(out, "  "+out.Sign(c.Sign())+" "+inert.Line(c.String()))
		}
		for _, b := range p.Bonds {
			fmt.Fprintf(out, "  %s does not move without %s\n", inert.Line(b.Operator), inert.Line(b.With))
		}
	}
	if len(s.PullRequests) == 0 {
		talk.Note("nothing is left to move")
	}
	for _, branch := range s.Done {
		talk.Note("branch %s: nothing is left to move there, close its pull request and delete it", inert.Line(branch))
	}
}
