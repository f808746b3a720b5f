package deliver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/internal/sanitize"
)

// Action is the change that a run makes to a branch and its pull request.
type Action string

// The actions.
const (
	Open      Action = "open"      // create the branch
	Update    Action = "update"    // replace the commit: the upgrade or HEAD changed
	Unchanged Action = "unchanged" // the branch already has this upgrade, on the same HEAD
	Keep      Action = "keep"      // do not change the branch
	Close     Action = "close"     // delete the branch, which is obsolete
)

// branches contains the tips of the existing branches that are named ProposalOptions.Branch, or start with
// "<Branch>/".
type branches struct {
	local  map[string][]*gitrepo.Revision // local branches; without a push, also remote-tracking branches
	remote map[string]*gitrepo.Revision   // branches of the remote; nil without a push
}

// readBranches lists the existing branches.
func (b *Proposer) readBranches(ctx context.Context) (*branches, error) {
	var out branches
	var err error
	if out.local, err = b.repo.Branches(b.opt.Branch, b.opt.Remote == ""); err == nil && b.opt.Remote != "" {
		out.remote, err = b.repo.RemoteBranches(ctx, b.opt.Remote, b.opt.Branch, b.token())
	}
	return &out, err
}

// token returns the password for the remote.
func (b *Proposer) token() string { return b.clone.Project.Getenv("GIT_TOKEN") }

// tips returns the tips of a branch in the clone and in the remote.
func (h *branches) tips(branch string) []*gitrepo.Revision {
	out := slices.Clone(h.local[branch])
	if tip := h.remote[branch]; tip != nil {
		out = append(out, tip)
	}
	return out
}

// candidates returns the tips of the branches that may have pull requests. If the run does not push, these are
// the branches of the clone, otherwise those of the remote.
func (h *branches) candidates() map[string][]*gitrepo.Revision {
	if h.remote == nil {
		return maps.Clone(h.local)
	}
	out := map[string][]*gitrepo.Revision{}
	for name, tip := range h.remote {
		out[name] = []*gitrepo.Revision{tip}
	}
	return out
}

// isAt reports whether hash is the tip of the branch, both in the clone and in the remote. It
// ignores the clone or the remote if the branch does not exist there.
func (h *branches) isAt(branch, hash string) bool {
	return !slices.ContainsFunc(h.tips(branch), func(tip *gitrepo.Revision) bool { return tip.Hash() != hash })
}

// remoteHash returns the hash of the tip of a remote branch, or "".
func (h *branches) remoteHash(branch string) string {
	if tip := h.remote[branch]; tip != nil {
		return tip.Hash()
	}
	return ""
}

// actionFor returns the action for a branch of the proposal. If the branch has commits by others, the action is
// Keep, and actionFor also returns the reason.
func (b *proposal) actionFor(branch string) (action Action, reason string, err error) {
	action = Open
	for _, tip := range b.branches.tips(branch) {
		if reason := b.foreignCommitReason(tip); reason != "" {
			b.keepNote(branch, reason)
			return Keep, reason, nil
		}
		same, err := b.isCommitted(tip)
		if err != nil {
			return "", "", err
		}
		if !same {
			action = Update
		}
		if same && action == Open {
			action = Unchanged
		}
	}
	return action, "", nil
}

// foreignCommitReason returns the reason to keep a branch that has commits by others, or "" if it
// has no such commits.
func (b *Proposer) foreignCommitReason(tip *gitrepo.Revision) string {
	if b.repo.IsGenerated(tip, b.head) {
		return ""
	}
	return "not changed: it has commits by others, the last by " + sanitize.Line(tip.Author())
}

// isCommitted reports whether the tip of a generated branch is the commit of the proposal: it has
// the same message and parent, and contains the changes.
func (b *proposal) isCommitted(tip *gitrepo.Revision) (bool, error) {
	if tip.Message() != b.message() || tip.Hash() == b.head.Hash() || !tip.HasParent(b.head) {
		return false, nil
	}
	for _, c := range b.changes {
		data, err := tip.Read(c.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if !c.Removed {
				return false, nil
			}
		case err != nil:
			return false, err
		case c.Removed || !bytes.Equal(data, c.Data):
			return false, nil
		}
	}
	return true, nil
}

// close deletes an obsolete branch of the remote, which also closes its pull request. A branch with commits by
// others is kept.
func (b *Proposer) close(ctx context.Context, branch string) error {
	if b.opt.Check {
		return nil
	}
	log, tip := b.clone.Project.Log, b.branches.remote[branch]
	if tip == nil || b.foreignCommitReason(tip) != "" {
		log.Note("branch %s has no upgrades left: close its pull request and delete the branch", sanitize.Line(branch))
		return nil
	}
	if b.forge != nil {
		if err := b.forge.Withdraw(ctx, forge.Pull{Head: branch, Base: b.opt.Into}); err != nil {
			return err
		}
	}
	if err := b.repo.DeleteRemoteBranch(ctx, b.opt.Remote, branch, b.token(), tip.Hash()); err != nil {
		return err
	}
	log.Note("deleted branch %s, which has no upgrades left", sanitize.Line(branch))
	return nil
}

// BranchRow is a row of the table of branches.
type BranchRow struct {
	Action       Action
	Branch, Text string // Text is the title of the proposal, or the reason to keep or close the branch
}

// Row returns the row of a proposal.
func (p *PublishedProposal) Row() BranchRow {
	if p.Action == Keep {
		return p.kept.Row()
	}
	return BranchRow{p.Action, p.Branch, p.title}
}

// Rows returns the rows of the branches.
func (s *PublishedProposals) Rows() []BranchRow {
	var out []BranchRow
	for _, p := range s.PullRequests {
		out = append(out, BranchRow{p.Action, p.Branch, p.Title})
	}
	for _, branch := range s.Obsolete {
		out = append(out, ObsoleteRow(branch))
	}
	for _, k := range s.Kept {
		out = append(out, k.Row())
	}
	return out
}

// ObsoleteRow returns the row of an obsolete branch.
func ObsoleteRow(branch string) BranchRow {
	return BranchRow{Close, branch, "merged, superseded or no longer wanted"}
}

// Row returns the row of a branch that is kept.
func (k KeptBranch) Row() BranchRow {
	text := k.Reason
	if k.Code != "" {
		text += " [" + k.Code + "]"
	}
	return BranchRow{Keep, k.Branch, text}
}

// CountChanges returns the number of branches that change.
func CountChanges(rows []BranchRow) (n int) {
	for _, r := range rows {
		if r.Action != Keep && r.Action != Unchanged {
			n++
		}
	}
	return n
}
