package compare

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/app/workspace"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/resolve"
)

// Selection selects the two states to compare.
type Selection struct {
	From         From
	Base         string   // branch that changes are merged into; empty: the default one
	Locks, Trees bool     // Names are locks, or directories of manifests
	Names        []string // otherwise revisions or artifacts
	Upgrade      *resolve.Options
	Observed     []*health.Summary // of clusters: stored versions, and reasons to hold upgrades back
}

// Open opens the two sides selected by opt. With Upgrade, these are the lock and its
// upgraded version.
func Open(ctx context.Context, p *workspace.Project, opt Selection) (*Comparison, error) {
	c, err := opt.sides(ctx, p)
	if err != nil {
		return nil, err
	}
	c.Stored = health.StoredVersions(opt.Observed)
	return c, nil
}

func (opt Selection) sides(ctx context.Context, p *workspace.Project) (*Comparison, error) {
	switch {
	case slices.ContainsFunc(opt.Names, IsArtifact) && !opt.Locks:
		return compareArtifacts(ctx, p, opt.Names[0], strings.Join(opt.Names[1:], ""), opt.Trees)
	case opt.Trees:
		return Trees(p, opt.Names[0], opt.Names[1])
	case opt.Locks:
		return compareLocks(p, opt.From, opt.Names[0], opt.Names[1])
	case opt.Upgrade != nil:
		in, err := p.Inputs(ctx, *opt.Upgrade, true)
		if err != nil {
			return nil, err
		}
		if err := in.Hold(opt.Observed...); err != nil {
			return nil, err
		}
		return upgrade(ctx, p, opt.From, in)
	default:
		return Revisions(p, opt.From, opt.Base, strings.Join(opt.Names, ""))
	}
}
