package inspect

import (
	"context"
	"fmt"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/verify"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
	"github.com/quayside/quayside/render"
)

// CheckPlan makes the plan again from the current cluster. It returns an error if the result differs from pl.
func CheckPlan(ctx context.Context, p *workspace.Project, pl *plan.Plan, s *snapshot.Snapshot) error {
	if err := verify.CheckCluster(ctx, verify.SnapshotReader(s), pl); err != nil {
		return err
	}
	found, err := verify.FindChanges(ctx, verify.SnapshotReader(s), pl, pl.Namespaces()...)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return &workspace.DiffersError{Msg: verify.DescribeChanges(found)}
	}
	cluster, err := p.Settings.ClusterName(pl.Cluster, "cluster in the plan")
	if err != nil {
		return err
	}
	var derived *plan.Plan
	if pl.Mode == plan.Removal {
		derived, err = PlanUninstall(ctx, p, s, cluster, pl.DeletesCRDs())
	} else {
		derived, _, err = Plan(ctx, p, s, PlanOptions{Cluster: cluster, Mode: pl.Mode, Namespaces: pl.Namespaces()})
	}
	if err != nil {
		return fmt.Errorf("deriving the plan from the cluster again: %w", err)
	}
	return pl.CheckDerived(derived)
}

// renderFor renders the lock for a cluster. It returns the lock and the rendered objects.
func renderFor(ctx context.Context, p *workspace.Project, cluster string) (*lockfile.File, []render.Rendered, error) {
	lock, err := p.NeedLock()
	if err != nil {
		return nil, nil, err
	}
	res, err := p.Render(ctx, lock)
	if err != nil {
		return nil, nil, err
	}
	rendered, err := res.ObjectsIn(cluster)
	return lock, rendered, err
}

// RenderForPlan renders the lock for a plan's cluster. It returns an error if the lock or the
// rendered tree has changed since the plan was made.
func RenderForPlan(ctx context.Context, p *workspace.Project, pl *plan.Plan) ([]k8s.Object, error) {
	cluster, err := p.Settings.ClusterName(pl.Cluster, "cluster in the plan")
	if err != nil {
		return nil, err
	}
	lock, rendered, err := renderFor(ctx, p, cluster)
	if err != nil {
		return nil, err
	}
	if err := pl.CheckUnchanged(lock, rendered); err != nil {
		return nil, err
	}
	out := make([]k8s.Object, len(rendered))
	for i, r := range rendered {
		out[i] = r.Object
	}
	return out, nil
}
