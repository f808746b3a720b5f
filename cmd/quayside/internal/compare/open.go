package compare

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/health"
	"github.com/quayside/quayside/resolve"
)

// Selection selects the two states to compare.
type Selection struct {
	From         TreeSource
	Base         string            // target branch of the proposed change; empty: the default branch
	Locks, Trees bool              // whether Names are lock files, or directories of manifests
	Names        []string          // the two sides: Git revisions or artifacts, unless Locks or Trees is true
	Upgrade      *resolve.Options  // options of the upgrade to compare the lock with; nil: compare Names
	Observed     []*health.Summary // health of clusters, for stored API versions and for reasons to hold back upgrades
}

// Open opens the two sides selected by opt. In case of an error, the comparison may be non-nil and have
// messages.
func Open(ctx context.Context, p *workspace.Project, opt Selection) (*Comparison, error) {
	c, err := opt.open(ctx, p)
	if err != nil {
		return c, err
	}
	c.Stored = health.StoredVersions(opt.Observed)
	return c, nil
}

func (opt Selection) open(ctx context.Context, p *workspace.Project) (*Comparison, error) {
	switch {
	case slices.ContainsFunc(opt.Names, IsArtifact) && !opt.Locks:
		return compareArtifacts(ctx, p, opt.Names[0], strings.Join(opt.Names[1:], ""), opt.Trees)
	case opt.Trees:
		return Trees(p, opt.Names[0], opt.Names[1])
	case opt.Locks:
		return compareLocks(p, opt.From, opt.Names[0], opt.Names[1])
	case opt.Upgrade != nil:
		pr, err := workspace.ReadProblem(ctx, p, workspace.Request{Options: *opt.Upgrade, Fresh: true})
		if err != nil {
			return nil, err
		}
		if pr, err = pr.HoldBack(opt.Observed...); err != nil {
			return nil, err
		}
		return compareUpgrade(ctx, p, opt.From, pr)
	default:
		names := strings.Join(opt.Names, "")
		if !strings.Contains(names, "..") { // one revision only: the second side is the work tree
			if err := p.CheckPatterns(); err != nil {
				return nil, err
			}
		}
		c, err := Revisions(p, opt.From, opt.Base, names)
		if err == nil && c.After.rev == nil {
			c.messages = append(c.messages, Message{Warnings: workspace.WarnStale(ctx, p)})
		}
		return c, err
	}
}
