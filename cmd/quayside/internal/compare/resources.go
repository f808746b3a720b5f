package compare

import (
	"context"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/fleet"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
	"github.com/quayside/quayside/cmd/quayside/internal/workspace"
	"github.com/quayside/quayside/diff"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/lockfile"
)

// ResourceOptions are the options of [Resources].
type ResourceOptions struct {
	Cluster string // only this cluster; empty: all
	ByOwner bool   // also sum by owner
	Label   string // label of workloads that has the owner; empty: spec.owners
}

// Resources returns the requested resources of the pods in the clusters, by operator and cluster. It uses the
// tree on disk if the tree is up to date with the lock. Otherwise, it renders the lock.
func Resources(ctx context.Context, p *workspace.Project, lock *lockfile.File, opt ResourceOptions) (inventory.Resources, []Message, error) {
	out := inventory.Resources{Operators: []inventory.OperatorResources{}, Clusters: []inventory.ClusterResources{}}
	c, s, err := currentSide(ctx, p, lock)
	if err != nil {
		return out, c.TakeMessages(), err
	}
	base, err := s.BaseState()
	if err != nil {
		return out, c.TakeMessages(), err
	}
	clusters := s.Clusters()
	if opt.Cluster != "" {
		clusters = []string{opt.Cluster}
	}
	err = s.ForEachGroup(clusters, base, func(got fleet.Group) error {
		operators, owners := map[string]*inventory.PodSum{}, map[string]*inventory.PodSum{}
		for i := range got.State.Objects {
			o := &got.State.Objects[i]
			var pods inventory.PodSum
			if err := pods.Add(o.Content); err != nil {
				return err
			}
			if pods.Pods == 0 {
				continue
			}
			w := inventory.Workload{Operator: o.Operator, Namespace: o.Key().Namespace}
			if opt.ByOwner {
				w.Owner = ownerOf(p, o, opt.Label)
				addTo(owners, w.Owner, &pods)
			}
			addTo(operators, w.Operator, &pods)
			if selector, ok := k8s.PodSelectorOf(o.Content); ok {
				w.Selector = selector.String()
				out.Workloads = append(out.Workloads, w)
			}
		}
		out.AddGroup(got.Clusters, operators, owners)
		return nil
	})
	return out, c.TakeMessages(), err
}

func addTo(sums map[string]*inventory.PodSum, name string, pods *inventory.PodSum) {
	if sums[name] == nil {
		sums[name] = &inventory.PodSum{}
	}
	sums[name].AddTimes(pods, 1)
}

// ownerOf returns the owner of a workload: the value of label or, if label is empty, its owner in spec.owners.
func ownerOf(p *workspace.Project, o *diff.Object, label string) string {
	if label == "" {
		return p.Settings.Owner(o.Operator)
	}
	if name := k8s.TextMap(o.Content, "metadata", "labels")[label]; name != "" {
		return name
	}
	return strings.TrimSpace(k8s.TextMap(o.Content, "spec", "template", "metadata", "labels")[label])
}
