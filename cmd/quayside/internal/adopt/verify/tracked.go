package verify

import (
	"slices"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// trackedObject is an object that a step of the namespace changes, deletes or checks.
type trackedObject struct {
	ref k8s.Ref
	uid string // UID in the plan; empty: not in the plan
}

// trackedObjects returns the objects that the steps of a namespace change or delete, sorted by kind, group,
// namespace and name. It omits objects that OLM may create or delete at any time: copies of
// ClusterServiceVersions, InstallPlans and Operators.
func trackedObjects(p *plan.Plan, namespace string) []trackedObject {
	found := map[k8s.Key]trackedObject{}
	put := func(h trackedObject) {
		key := h.ref.Key()
		switch {
		case key.Group == k8s.OLMGroup && (key.Kind == "InstallPlan" || key.Kind == "Operator"):
		case key.Group == k8s.OLMGroup && key.Kind == "ClusterServiceVersion" && key.Namespace != namespace:
		case found[key].uid == "":
			found[key] = h
		}
	}
	for _, s := range p.Steps {
		if s.Namespace != namespace {
			continue
		}
		for _, a := range s.Actions {
			if !a.Do.ConcernsOLM() {
				put(trackedObject{a.Object, a.UID})
			}
		}
		for _, c := range slices.Concat(s.Before, s.After) {
			if c.Check == plan.SameUID || c.Check == plan.NoOwner || c.Check == plan.SameVersion {
				for _, ref := range c.Objects {
					put(trackedObject{ref: ref})
				}
			}
		}
	}
	var out []trackedObject
	for _, h := range found {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b trackedObject) int { return a.ref.Key().Compare(b.ref.Key()) })
	return out
}

// removedObjects describes the objects that a plan removes up to a certain step, including objects that are
// removed together with their owners.
type removedObjects struct {
	keys   map[k8s.Key]bool
	owned  map[string]bool  // by UID of a removed owner: whether the objects that it owns are deleted, too
	owners map[string]bool  // UIDs of removed ClusterServiceVersions, ClusterExtensions and revisions
	later  map[k8s.Key]bool // objects that later steps delete, for operators that OLM did not manage when the plan was made
	live   map[string]bool  // namespaces that are detached while OLM runs, so that their OperatorConditions are deleted
}

// removedBy returns the objects that a plan removes in its steps up to number.
func removedBy(p *plan.Plan, number int) removedObjects {
	g := removedObjects{map[k8s.Key]bool{}, map[string]bool{}, map[string]bool{}, map[k8s.Key]bool{}, map[string]bool{}}
	for _, s := range p.Steps {
		if s.Number > number {
			for _, a := range s.Actions {
				if a.Do == plan.Delete && hasDetachedOperator(p, s.Namespace) {
					g.later[a.Object.Key()] = true
				}
			}
			continue
		}
		if s.Name == plan.Detach && p.Mode == plan.Live {
			g.live[s.Namespace] = true
		}
		for _, a := range s.Actions {
			if !a.Do.Deletes() {
				continue
			}
			g.keys[a.Object.Key()] = true
			if a.UID != "" {
				g.owned[a.UID] = a.Do == plan.Delete
				g.owners[a.UID] = a.Object.Kind == "ClusterServiceVersion" || snapshot.IsOwnerInOLMv1(a.Object.APIVersion, a.Object.Kind)
			}
		}
	}
	return g
}

// has reports whether the plan removes an object.
func (g removedObjects) has(o ObjectState) bool {
	if g.keys[o.Ref.Key()] || g.live[o.Ref.Namespace] && isOperatorCondition(o.Ref.APIVersion, o.Ref.Kind) {
		return true
	}
	return slices.ContainsFunc(o.Owners, func(w snapshot.Owner) bool {
		return g.owned[w.UID] || g.live[o.Ref.Namespace] && isOperatorCondition(w.APIVersion, w.Kind)
	})
}

func isOperatorCondition(apiVersion, kind string) bool {
	return k8s.Group(apiVersion) == k8s.OLMGroup && kind == "OperatorCondition"
}

// isRestarted reports whether the plan restarts the pods of a Deployment.
func isRestarted(p *plan.Plan, ref k8s.Ref) bool {
	return slices.ContainsFunc(p.Operators, func(op plan.Operator) bool {
		return op.Namespace == ref.Namespace && slices.Contains(op.Restarts, ref.Name)
	})
}

// hasDetachedOperator reports whether OLM did not manage some operator of a namespace when the plan was made.
func hasDetachedOperator(p *plan.Plan, namespace string) bool {
	return slices.ContainsFunc(p.Operators, func(op plan.Operator) bool { return op.Detached && op.Namespace == namespace })
}
