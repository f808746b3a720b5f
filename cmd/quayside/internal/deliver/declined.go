package deliver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/forge"
	"github.com/quayside/quayside/internal/sanitize"
	"github.com/quayside/quayside/resolve"
)

// declined is the code of an upgrade that a person reverted, or whose pull request a person closed.
const declined = "declined"

// proposalID returns an identifier of the changes of an upgrade. It does not depend on the catalogs or
// the time.
func proposalID(u workspace.Upgrade) string {
	var text strings.Builder
	for _, c := range u.Changes {
		fmt.Fprintf(&text, "%s %s%s %s %s\n", c.Change, c.Operator, c.Namespace, c.From, c.To)
	}
	return string(catalog.DigestOf([]byte(text.String())))
}

// declined returns the branch of an upgrade with a reason if a person closed its pull request without
// merging it, and records its operators as held. Naming an operator proposes the upgrade again.
func (b *Proposer) declined(ctx context.Context, u workspace.Upgrade, branch string, in *workspace.Inputs) (KeptBranch, error) {
	if b.forge == nil || u.Named || slices.ContainsFunc(u.Changes, func(c workspace.Change) bool { return in.IsNamed(c.Operator) }) {
		return KeptBranch{}, nil
	}
	number, err := b.forge.Declined(ctx, forge.Pull{Head: branch, Base: b.opt.Into, Proposal: proposalID(u)})
	if err != nil || number == 0 {
		return KeptBranch{}, err
	}
	k := KeptBranch{Branch: branch, Reason: fmt.Sprintf("pull request %d was closed without merging: reopen it, or name the operator to propose it again", number), Code: declined}
	for _, c := range u.Changes {
		if c.Operator != "" {
			in.RecordHold(resolve.Hold{Operator: c.Operator, Code: declined, Reason: k.Reason})
		}
	}
	b.clone.Project.Log.Note("branch %s: %s", sanitize.Line(branch), k.Reason)
	return k, nil
}

// withoutDeclined returns the upgrades that no person declined, and the branches of the others.
func (b *Proposer) withoutDeclined(ctx context.Context, upgrades []workspace.Upgrade, in *workspace.Inputs) ([]workspace.Upgrade, []KeptBranch, error) {
	var rest []workspace.Upgrade
	kept := []KeptBranch{}
	for _, u := range upgrades {
		k, err := b.declined(ctx, u, b.branchOf(u), in)
		switch {
		case err != nil:
			return nil, nil, err
		case k.Reason != "":
			kept = append(kept, k)
		default:
			rest = append(rest, u)
		}
	}
	return rest, kept, nil
}
