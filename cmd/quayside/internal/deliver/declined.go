package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/resolve"
)

// declined is the code of an upgrade that a person rejected by reverting it, or by closing its pull request
// unmerged.
const declined = "declined"

// proposalID returns the digest of an upgrade's changes to operators. It does not depend on the catalogs or the
// time.
func proposalID(u workspace.Upgrade) string {
	var text strings.Builder
	for _, c := range u.Changes {
		fmt.Fprintf(&text, "%s %s%s %s %s\n", c.Change, c.Operator, c.Namespace, c.From, c.To)
	}
	return string(catalog.DigestOf([]byte(text.String())))
}

// declined checks whether a person closed the pull request of an upgrade without merging it. If so, it returns
// the kept branch with the reason, and a hold for each operator. Otherwise it returns zero values. An upgrade
// of an operator that the user named never counts as declined.
func (b *Proposer) declined(ctx context.Context, u workspace.Upgrade, branch string, pr *workspace.Problem) (k KeptBranch, holds []resolve.Hold, err error) {
	if b.forge == nil || u.Named || slices.ContainsFunc(u.Changes, func(c workspace.Change) bool { return pr.IsNamed(c.Operator) }) {
		return k, nil, nil
	}
	number, err := b.forge.Declined(ctx, forge.Pull{Head: branch, Base: b.opt.Into, Proposal: proposalID(u)})
	if err != nil || number == 0 {
		return k, nil, err
	}
	k = KeptBranch{Branch: branch, Reason: fmt.Sprintf("pull request %d was closed without merging: reopen it, or name the operator to propose it again", number), Code: declined}
	for _, c := range u.Changes {
		if c.Operator != "" {
			holds = append(holds, resolve.Hold{Operator: c.Operator, Code: declined, Reason: k.Reason})
		}
	}
	b.keepNote(branch, k.Reason)
	return k, holds, nil
}

// withoutDeclined returns the upgrades that were not declined, and the kept branches and holds of
// the declined ones.
func (b *Proposer) withoutDeclined(ctx context.Context, upgrades *workspace.Upgrades) (rest []workspace.Upgrade, kept []KeptBranch, holds []resolve.Hold, err error) {
	kept = []KeptBranch{}
	for _, u := range upgrades.Parts {
		k, held, err := b.declined(ctx, u, b.branchFor(u.Operators[0]), upgrades.Problem)
		switch {
		case err != nil:
			return nil, nil, holds, err
		case k.Reason != "":
			kept, holds = append(kept, k), append(holds, held...)
		default:
			rest = append(rest, u)
		}
	}
	return rest, kept, holds, nil
}
