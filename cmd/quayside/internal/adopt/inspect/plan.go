package inspect

import (
	"bytes"
	"context"
	"errors"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/lockfile"
)

// PlanOptions are the options of a plan.
type PlanOptions struct {
	Cluster    string // name of a cluster in quayside.yaml
	Mode       plan.Mode
	Namespaces []string // namespaces of the operators to adopt; empty: all
}

// PlanUninstall returns the plan for uninstalling OLM. If crds is true, the plan also deletes OLM's unused
// CRDs. If OLM is still needed, the error is a *workspace.DiffersError.
func PlanUninstall(ctx context.Context, p *workspace.Project, s *snapshot.Snapshot, cluster string, crds bool) (*plan.Plan, error) {
	lock, rendered, err := renderFor(ctx, p, cluster)
	if err != nil {
		return nil, err
	}
	in := newInput(p, s, cluster)
	in.Lock, in.Rendered = lock, rendered
	out, err := plan.MakeUninstall(in, crds)
	var needed *plan.NeededError
	if errors.As(err, &needed) {
		return nil, &workspace.DiffersError{Msg: err.Error()}
	}
	return out, err
}

// newInput returns the input of a plan for a cluster. The caller must set Lock and Rendered.
func newInput(p *workspace.Project, s *snapshot.Snapshot, cluster string) plan.Input {
	in := plan.Input{Snapshot: s, Manager: p.Settings.Tool().About().Manager}
	if len(p.Settings.ClusterNames()) > 1 {
		in.Cluster = cluster
	}
	return in
}

// Plan inspects a cluster. It returns the plan for adopting the cluster's operators, and the inspection. The
// lock must already contain the OLM settings to keep.
func Plan(ctx context.Context, p *workspace.Project, s *snapshot.Snapshot, opt PlanOptions) (*plan.Plan, *Inspection, error) {
	found, err := Inspect(ctx, p, s, opt.Cluster)
	if err != nil {
		return nil, nil, err
	}
	lock, err := p.NeedLock()
	if err != nil {
		return nil, nil, err
	}
	if !bytes.Equal(lockfile.Format(lock), lockfile.Format(found.Lock)) {
		return nil, nil, errors.New("the lock lacks settings of OLM that prevent pods from restarting: run 'quayside adopt inspect --record' on this cluster, then 'quayside render'")
	}
	pl, err := MakePlan(p, s, found, opt)
	return pl, found, err
}

// MakePlan returns the plan for an inspected cluster.
func MakePlan(p *workspace.Project, s *snapshot.Snapshot, found *Inspection, opt PlanOptions) (*plan.Plan, error) {
	in := newInput(p, s, opt.Cluster)
	in.Report, in.Lock, in.Rendered, in.Mode, in.Namespaces = found.Report, found.Lock, found.Rendered, opt.Mode, opt.Namespaces
	return plan.Make(in)
}
