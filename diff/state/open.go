package state

import (
	"context"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/project"
	"github.com/quayside/quayside/report"
	"github.com/quayside/quayside/resolve"
)

// Options says which two states are compared.
type Options struct {
	From         From
	Base         string   // the branch that work is merged into; empty: the default one
	Locks, Trees bool     // Names are locks; directories of manifests
	Names        []string // else revisions or artifacts
	Upgrade      *resolve.Options
	Observed     []*report.ObservedFile // of clusters: what they store, and what holds an upgrade back
}

// Open finds the two sides that opt asks for: with Upgrade the lock and what that
// makes of it.
func Open(ctx context.Context, p *project.Project, opt Options) (*Comparison, error) {
	c, err := opt.sides(ctx, p)
	if err != nil {
		return nil, err
	}
	c.Stored = report.Stored(opt.Observed)
	return c, nil
}

func (opt Options) sides(ctx context.Context, p *project.Project) (*Comparison, error) {
	switch {
	case slices.ContainsFunc(opt.Names, IsArtifact) && !opt.Locks:
		return artifacts(ctx, p, opt.Names[0], strings.Join(opt.Names[1:], ""), opt.Trees)
	case opt.Trees:
		return Trees(p, opt.Names[0], opt.Names[1])
	case opt.Locks:
		return locks(p, opt.From, opt.Names[0], opt.Names[1])
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
