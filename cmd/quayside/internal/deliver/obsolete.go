package deliver

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/gitrepo"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/resolve"
)

// A branch of an earlier run that this run does not propose is obsolete in these cases:
//   - Each of its upgrades is merged or superseded by a higher version, or its operator was removed.
//   - Git cannot merge it, because the main branch or a proposed branch changes one of its operators.
//
// Any other branch is kept. Its upgrade may be missing only in this run, because a catalog is unreadable, an
// operator is unhealthy, or the user named other operators.

// KeptBranch is a branch that this run does not change.
type KeptBranch struct {
	Branch string `json:"branch"`
	Reason string `json:"reason"`
	Code   string `json:"code,omitempty" doc:"declined: a person closed its pull request without merging it"`
}

// judgeBranches finds the existing branches of the environment that this run does not propose, and
// adds them to s.Obsolete or s.Kept. It deletes obsolete branches in the remote.
func (b *Proposer) judgeBranches(ctx context.Context, s *PublishedProposals, upgrades *workspace.Upgrades, holds []resolve.Hold) error {
	why := func(operator string) string { return upgrades.WhyNotProposed(operator, holds) }
	top := b.environmentBranch(b.opt.Branch)
	have := b.branches.candidates()
	proposed := map[string]string{} // branches by operator
	for _, p := range s.PullRequests {
		delete(have, p.Branch)
		for _, c := range p.Changes {
			proposed[c.Operator] = p.Branch
		}
	}
	for _, k := range s.Kept {
		delete(have, k.Branch)
	}
	for _, branch := range slices.Sorted(maps.Keys(have)) {
		if rest, below := strings.CutPrefix(branch, top+"/"); !below || strings.Count(rest, "/") != 1 {
			continue
		}
		if reason := b.keepReason(have[branch], proposed, upgrades.Problem, why); reason != "" {
			s.Kept = append(s.Kept, KeptBranch{Branch: branch, Reason: reason})
			continue
		}
		s.Obsolete = append(s.Obsolete, branch)
		if err := b.close(ctx, branch); err != nil {
			return err
		}
	}
	return nil
}

// JudgePromotion handles the branch of an earlier promotion if this run promotes nothing. It returns the branch
// with the reason to keep it. If there is no such reason, JudgePromotion deletes the branch in the remote. If
// there is no branch, the result is empty. why returns the reason why this run does not promote an operator.
func (b *Proposer) JudgePromotion(ctx context.Context, pr *workspace.Problem, why func(operator string) string) (KeptBranch, error) {
	branch := b.environmentBranch(b.opt.Branch)
	tips := b.branches.candidates()[branch]
	if tips == nil {
		return KeptBranch{}, nil
	}
	k := KeptBranch{Branch: branch, Reason: b.keepReason(tips, nil, pr, why)}
	if k.Reason == "" {
		return k, b.close(ctx, branch)
	}
	return k, nil
}

// keepReason returns the first reason to keep a branch with these tips, or "" if the branch is obsolete.
// proposed is the branch that this run proposes for each operator.
func (b *Proposer) keepReason(tips []*gitrepo.Revision, proposed map[string]string, pr *workspace.Problem, why func(operator string) string) string {
	reason := ""
	for _, tip := range tips {
		if cause, err := b.tipKeepReason(tip, proposed, pr, why); err != nil {
			reason = cmp.Or(reason, "its lock cannot be compared: "+err.Error())
		} else {
			reason = cmp.Or(reason, cause)
		}
	}
	return reason
}

// tipKeepReason returns the reason to keep a branch with this tip, or "" if the branch is obsolete.
func (b *Proposer) tipKeepReason(tip *gitrepo.Revision, proposed map[string]string, pr *workspace.Problem, why func(operator string) string) (string, error) {
	start, err := b.repo.MergeBase(b.head, tip)
	if err != nil {
		return "", err
	}
	var locks [2]*lockfile.File
	for i, rev := range []*gitrepo.Revision{start, tip} {
		if locks[i], err = b.lockAt(rev); err != nil {
			return "", err
		}
	}
	operators := map[string]bool{}
	for _, c := range lockfile.Diff(locks[0], locks[1]) {
		if c.Package != "" {
			operators[c.Namespace+"/"+c.Package] = true
		}
	}
	if !pr.IncludesAll() {
		for _, operator := range slices.Sorted(maps.Keys(operators)) {
			if !pr.IsNamed(operator) {
				return operator + " was not named", nil
			}
		}
	}
	if hasConflict(operators, locks[0], pr.Read, locks[1]) {
		return "", nil
	}
	for operator := range operators {
		if proposed[operator] != "" {
			return "", nil // Git cannot merge both branches
		}
	}
	for _, operator := range slices.Sorted(maps.Keys(operators)) {
		if !isSettled(pr.Lock, locks[0], locks[1], operator) {
			return why(operator), nil
		}
	}
	return "", nil
}

// hasConflict reports whether the locks of main and of a branch conflict. start is the lock of the merge
// base. operators are the operators that the branch has changed since start. There is a conflict if main
// changed such an operator differently. There is also a conflict if main changed other blocks and Git cannot
// merge the locks.
func hasConflict(operators map[string]bool, start, main, branch *lockfile.File) bool {
	both := false
	for _, c := range lockfile.Diff(start, main) {
		operator := c.Namespace + "/" + c.Package
		if operators[operator] && isChanged(operator, main, branch) {
			return true
		}
		both = both || operators[operator]
	}
	return !both && !lockfile.CanMerge(start, main, branch)
}

// lockAt returns the lock of the workspace in a revision, or an empty one if there is none.
func (b *Proposer) lockAt(rev *gitrepo.Revision) (*lockfile.File, error) {
	name := b.clone.Path(workspace.LockFile)
	data, err := rev.Read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return lockfile.New(nil), nil
	}
	if err != nil {
		return nil, err
	}
	return lockfile.Parse(rev.Name()+":"+name, data)
}

// isSettled reports whether the change that a branch makes to an operator is obsolete. start is the merge base.
// The change is obsolete in these cases:
//   - main has a higher version.
//   - main and the branch have the same bundle, and start has another. The blocks of main and the branch may
//     still differ, for example in the recorded catalog.
//   - main and the branch have equal blocks.
//   - main does not pin the operator, unless both start and main list its leftover objects.
func isSettled(main, start, branch *lockfile.File, operator string) bool {
	now, pinned := main.Operator(operator)
	before, _ := start.Operator(operator)
	then, changed := branch.Operator(operator)
	_, left := start.LeavingOperator(operator)
	_, leaves := main.LeavingOperator(operator)
	switch {
	case !pinned:
		return !left || !leaves
	case changed && now.Bundle != then.Bundle:
		return now.CompareVersions(then) > 0
	case changed && before.Bundle != then.Bundle:
		return true
	}
	return !isChanged(operator, main, branch)
}

// isChanged reports whether two locks differ in the blocks of an operator.
func isChanged(operator string, a, b *lockfile.File) bool {
	return slices.ContainsFunc(lockfile.Diff(a, b), func(c lockfile.Change) bool { return c.Namespace+"/"+c.Package == operator })
}
