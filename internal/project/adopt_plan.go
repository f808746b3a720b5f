package project

import (
	"bytes"
	"context"
	"errors"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render/profile"
)

// PlanFile is where the plan of an adoption lies that is given no other name.
const PlanFile = "adopt-plan.yaml"

// PlanOptions say what a plan is made for.
type PlanOptions struct {
	Cluster    string // of quayside.yaml
	Mode       plan.Mode
	Namespaces []string // of the operators to take over; all where it is empty
}

// Plan returns how the operators of a cluster leave OLM, with what was found of
// them. The lock must say already what has to be kept of OLM's.
func (p *Project) Plan(ctx context.Context, s *snapshot.Snapshot, opt PlanOptions) (*plan.Plan, *Inspection, error) {
	found, err := p.Inspect(ctx, s, opt.Cluster)
	if err != nil {
		return nil, nil, err
	}
	lock, err := p.NeedLock()
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(lockfile.Format(lock), lockfile.Format(found.Lock)) {
		return nil, nil, errors.New("the lock does not say what the tree has to keep of OLM's so that no pod restarts: run 'quayside adopt inspect --record' on this cluster, then 'quayside render'")
	}
	by, err := profile.Of(p.Settings.Profile)
	if err != nil {
		return nil, nil, err
	}
	in := plan.Input{Snapshot: s, Report: found.Report, Lock: lock, Rendered: found.Rendered, Mode: opt.Mode, Namespaces: opt.Namespaces, Manager: by.Manager()}
	if len(p.Clusters()) > 1 {
		in.Cluster = opt.Cluster
	}
	made, err := plan.Make(in)
	return made, found, err
}
