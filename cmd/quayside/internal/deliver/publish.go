package deliver

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quayside/quayside/cmd/quayside/internal/rules"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/filetree"
	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/internal/scan"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// ProposalOptions are the options for publishing upgrades.
type ProposalOptions struct {
	Branch  string        // branch name, or the prefix of several branch names
	Remote  string        // name or URL of the Git remote; empty: do not push
	Body    string        // file for the text of the pull request, or directory for several texts; empty: do not write it
	Request bool          // create or update a pull request for each upgrade
	Into    string        // target branch of pull requests; empty: the default branch
	Forge   string        // kind of forge; empty: detected from its address
	Scans   *scan.Results // scan results of images, for the text of the pull request; may be nil

	OutsideWindow string // reason to propose changes that may be merged outside of their windows

	Check bool // only report the changes: no commit, no push, no file
}

// PublishedProposal is one published upgrade.
type PublishedProposal struct {
	Branch string `json:"branch"`
	Action Action `json:"action" form:"enum=open|update|unchanged|keep" doc:"action of this run or, with --check, of a run without --check; keep: the branch has commits by others, or a person closed its pull request"`
	Commit string `json:"commit,omitempty" doc:"absent with --check"`
	Pushed string `json:"pushed,omitempty"`

	Request *forge.RequestResult `json:"pullRequest,omitempty" doc:"with --pull-request"`

	Holds []resolve.Hold `json:"-"` // holds of the operators whose upgrade a person declined

	sent  bool       // whether the push added the commit to the remote
	kept  KeptBranch // branch and reason if Action is Keep
	title string
}

// Declined returns the reason why a person declined the proposal, or "".
func (p *PublishedProposal) Declined() string {
	if p == nil || p.kept.Code != declined {
		return ""
	}
	return p.kept.Reason
}

// Propose renders an upgrade and publishes it. If several is true, the run proposes upgrades of several
// environments. In this case, the names of the branch and of the text file contain the environment.
func (b *Proposer) Propose(ctx context.Context, upgrade workspace.Upgrade, pr *workspace.Problem, several bool) (*PublishedProposal, error) {
	branch, body := b.opt.Branch, b.opt.Body
	if several {
		branch = b.environmentBranch(branch)
		body = b.bodyFile(branch)
	}
	if kept, held, err := b.declined(ctx, upgrade, branch, pr); err != nil || kept.Reason != "" {
		return &PublishedProposal{Branch: branch, Action: Keep, Holds: held, kept: kept}, err
	}
	rendered, err := b.render(ctx, upgrade)
	if err != nil {
		return nil, err
	}
	return rendered.publish(ctx, branch, body, pr.Lock, upgrade.Holds)
}

// bodyFile returns the name of the file for the text of the pull request of a branch.
func (b *Proposer) bodyFile(branch string) string {
	if b.opt.Body == "" {
		return ""
	}
	return filepath.Join(b.opt.Body, filepath.FromSlash(strings.TrimPrefix(branch, b.opt.Branch))+".md")
}

// publish writes the text to file, creates and pushes the branch, and creates or updates the pull
// request. It skips steps that the options do not request.
func (b *proposal) publish(ctx context.Context, branch, file string, before *lockfile.File, held []resolve.Hold) (*PublishedProposal, error) {
	out := &PublishedProposal{Branch: branch, title: b.title()}
	var err error
	out.kept.Branch = branch
	if out.Action, out.kept.Reason, err = b.actionFor(branch); err != nil || out.Action == Keep || b.opt.Check {
		return out, err
	}
	var text []byte
	now := b.clone.Project.Now
	pull := b.pull(branch)
	if file != "" || b.opt.Request {
		if text, err = b.body(ctx, branch, before, held, now, &pull); err != nil {
			return nil, err
		}
	}
	if file != "" {
		if _, err := filetree.WriteFile(file, text); err != nil {
			return nil, err
		}
	}
	if out.Commit, err = b.commit(ctx, branch); err != nil {
		return nil, err
	}
	if out.Action == Update && b.branches.isAt(branch, out.Commit) {
		out.Action = Unchanged
	}
	log := b.clone.Project.Log
	log.Note("committed %.12s to branch %s", out.Commit, branch)
	if b.opt.Remote == "" {
		return out, nil
	}
	if pull.Automerge != nil && (out.Action == Update || !b.window.May) { // the new commit must not be merged automatically before it is checked again
		if err := b.forge.CancelAutomerge(ctx, pull); err != nil {
			return nil, err
		}
	}
	if out.sent, err = b.repo.Push(ctx, b.opt.Remote, branch, b.token(), b.branches.remoteHash(branch)); err != nil {
		return nil, err
	}
	out.Pushed = diag.Redact(b.opt.Remote)
	if out.sent {
		log.Note("pushed %s", branch)
	} else {
		log.Note("%s already has this commit of %s", out.Pushed, branch)
	}
	if b.opt.Request {
		pull.Body = string(text)
		if pull.Automerge != nil {
			pull.Automerge.Now, pull.Automerge.Commit = now, out.Commit
		}
		out.Request, err = b.openPullRequest(ctx, pull)
	}
	return out, err
}

// pull returns the pull request of a branch, with an empty text.
func (b *proposal) pull(branch string) forge.Pull {
	return forge.Pull{Head: branch, Base: b.opt.Into, Title: b.title(), Proposal: b.id()}
}

// openPullRequest creates or updates the pull request of a pushed branch.
func (b *proposal) openPullRequest(ctx context.Context, p forge.Pull) (*forge.RequestResult, error) {
	result, err := b.forge.Propose(ctx, p)
	if err != nil {
		return nil, err
	}
	log := b.clone.Project.Log
	log.Note("pull request %d of %s: %s", result.Number, sanitize.Line(p.Head), result.Outcome)
	if result.NotSet != "" {
		log.Note("pull request %d: cannot set its labels and reviewers (spec.propose): %s", result.Number, sanitize.Line(result.NotSet))
	}
	switch {
	case !b.window.May:
		log.Note("pull request %d %s", result.Number, sanitize.Line(rules.WindowText(b.window)))
	case result.Automerge:
		log.Note("pull request %d is merged automatically when its requirements are met", result.Number)
	case result.Refusal != "":
		log.Note("pull request %d is not merged automatically: %s", result.Number, sanitize.Line(result.Refusal))
	}
	result.URL = sanitize.Line(result.URL)
	return &result, nil
}

// configure sets the fields of a pull request that depend on spec.propose and on the report.
func (b *proposal) configure(p *forge.Pull, report *diff.Report) error {
	s := b.clone.Project.Settings.Propose
	if s == nil || !b.opt.Request {
		return nil
	}
	p.Labels, p.Reviewers, p.Draft = s.Labels, s.Reviewers, s.Draft
	if s.Automerge == nil {
		return nil
	}
	limit, err := diff.ParseSeverity(s.Automerge.MaxSeverity)
	if err != nil {
		return err
	}
	allowed := b.window.May && len(b.unreadable) == 0 && workspace.Removals(b.upgrade.Changes) == "" && report.Mergeable(limit)
	p.Automerge = &forge.Automerge{Allowed: allowed, After: time.Duration(s.Automerge.After)}
	return nil
}

// PublishedProposals is the result of publishing several upgrades.
type PublishedProposals struct {
	Environment  string        `json:"environment" doc:"name of the workspace in titles and branches; empty for an unnamed workspace at the top of the repository"`
	PullRequests []PullRequest `json:"pullRequests" doc:"pull requests, sorted by their first operators"`
	Obsolete     []string      `json:"obsolete" doc:"branches of earlier runs whose upgrades are all merged, superseded or no longer wanted; --push deletes them"`
	Kept         []KeptBranch  `json:"kept" doc:"other branches of earlier runs that this run does not propose, and branches with commits by others"`
}

// PullRequest is one branch with its upgrade.
type PullRequest struct {
	Branch    string               `json:"branch"`
	Commit    string               `json:"commit,omitempty" doc:"absent with --check"`
	Pushed    string               `json:"pushed,omitempty" doc:"remote that has the commit"`
	Updated   bool                 `json:"updated" doc:"whether this run pushed the commit"`
	Action    Action               `json:"action" form:"enum=open|update|unchanged" doc:"action of this run or, with --check, of a run without --check"`
	Title     string               `json:"title"`
	Body      string               `json:"body,omitempty" doc:"the file with the text"`
	Operators []string             `json:"operators" doc:"upgraded operators; the branch is named after the first"`
	Changes   []workspace.Change   `json:"changes"`
	Bonds     []resolve.Bond       `json:"couplings" doc:"reasons why operators are upgraded together"`
	Request   *forge.RequestResult `json:"pullRequest,omitempty" doc:"with --pull-request"`
}

// renderEach renders each upgrade. For an upgrade that cannot be rendered, it returns holds of the upgrade's
// operators instead. If the lock of HEAD cannot be rendered either, it returns the error.
func (b *Proposer) renderEach(ctx context.Context, upgrades []workspace.Upgrade, before *lockfile.File) (out []*proposal, holds []resolve.Hold, err error) {
	for _, u := range upgrades {
		rendered, err := b.render(ctx, u)
		if err == nil {
			out = append(out, rendered)
			continue
		}
		if _, fault := b.renderEdits(ctx, before); fault != nil {
			return nil, holds, err
		}
		for _, operator := range u.Operators {
			holds = append(holds, resolve.Hold{Operator: operator, Code: "not-rendered", Reason: err.Error()})
		}
	}
	return out, holds, nil
}

// ProposeEach publishes each upgrade on its own branch. It also returns all operators that are held
// back, including those whose upgrade was declined or cannot be rendered.
func (b *Proposer) ProposeEach(ctx context.Context, upgrades *workspace.Upgrades) (*PublishedProposals, []resolve.Hold, error) {
	s := &PublishedProposals{Environment: b.Environment, PullRequests: []PullRequest{}, Obsolete: []string{}}
	rest, kept, declined, err := b.withoutDeclined(ctx, upgrades)
	holds := workspace.AddHolds(upgrades.Holds, declined...)
	if err != nil {
		return nil, holds, err
	}
	s.Kept = kept
	proposals, unrendered, err := b.renderEach(ctx, rest, upgrades.Lock)
	holds = workspace.AddHolds(holds, unrendered...)
	if err != nil {
		return nil, holds, err
	}
	var branches []string
	for _, rendered := range proposals {
		u := rendered.upgrade
		branch := b.branchFor(u.Operators[0])
		if slices.Contains(branches, branch) {
			return nil, holds, fmt.Errorf("two upgrades need the same branch %q: use --one-branch", branch)
		}
		branches = append(branches, branch)
		body := b.bodyFile(branch)
		out, err := rendered.publish(ctx, branch, body, upgrades.Lock, holds)
		if err != nil {
			return nil, holds, err
		}
		if out.Action == Keep {
			s.Kept = append(s.Kept, out.kept)
			continue
		}
		s.PullRequests = append(s.PullRequests, PullRequest{
			Branch: branch, Commit: out.Commit, Pushed: out.Pushed, Updated: out.sent, Action: out.Action, Title: rendered.title(), Body: body,
			Operators: u.Operators, Changes: u.Changes, Bonds: append([]resolve.Bond{}, u.Bonds...), Request: out.Request,
		})
	}
	return s, holds, b.judgeBranches(ctx, s, upgrades, holds)
}
