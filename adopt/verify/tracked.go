package verify

import (
	"slices"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// held is an object that a namespace's steps are about.
type held struct {
	ref kobj.Ref
	uid string // empty: the plan does not know it
}

// tracked returns what the steps of a namespace are about and that lives until
// the plan deletes it, by kind, group, namespace and name. What OLM makes and
// removes as it likes is left out: copies of ClusterServiceVersions, InstallPlans
// and its lists of components.
func tracked(p *plan.Plan, namespace string) []held {
	found := map[kobj.Key]held{}
	put := func(h held) {
		key := h.ref.Key()
		switch {
		case key.Group == snapshot.OLM && (key.Kind == "InstallPlan" || key.Kind == "Operator"):
		case key.Group == snapshot.OLM && key.Kind == "ClusterServiceVersion" && key.Namespace != namespace:
		case found[key].uid == "":
			found[key] = h
		}
	}
	for _, s := range p.Steps {
		if s.Namespace != namespace {
			continue
		}
		for _, a := range s.Actions {
			if a.Do != plan.Scale {
				put(held{a.Object, a.UID})
			}
		}
		for _, c := range slices.Concat(s.Before, s.After) {
			if c.Check == plan.SameUID || c.Check == plan.NoOwner || c.Check == plan.SameVersion {
				for _, ref := range c.Objects {
					put(held{ref: ref})
				}
			}
		}
	}
	var out []held
	for _, h := range found {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b held) int { return a.ref.Key().Compare(b.ref.Key()) })
	return out
}

// going says which objects the steps up to one make go, and of which of them what
// they own goes with them.
type going struct {
	keys  map[kobj.Key]bool
	owned map[string]bool   // by the owner's UID: goes with it
	csvs  map[string]bool   // UIDs of ClusterServiceVersions that OLM forgets
	later map[kobj.Key]bool // what steps behind make go of operators that OLM had forgotten
	live  map[string]bool   // namespaces in which OLM runs while it forgets: it writes the owner of OperatorConditions again, which goes
}

// gone returns what a plan makes go with the steps up to a number.
func gone(p *plan.Plan, number int) going {
	g := going{map[kobj.Key]bool{}, map[string]bool{}, map[string]bool{}, map[kobj.Key]bool{}, map[string]bool{}}
	for _, s := range p.Steps {
		if s.Number > number {
			for _, a := range s.Actions {
				if a.Do == plan.Delete && forgotten(p, s.Namespace) {
					g.later[a.Object.Key()] = true
				}
			}
			continue
		}
		if s.Name == plan.Detach && p.Mode == plan.Live {
			g.live[s.Namespace] = true
		}
		for _, a := range s.Actions {
			if a.Do != plan.Delete && a.Do != plan.Orphan {
				continue
			}
			g.keys[a.Object.Key()] = true
			if a.UID != "" {
				g.owned[a.UID] = a.Do == plan.Delete
				g.csvs[a.UID] = a.Object.Kind == "ClusterServiceVersion"
			}
		}
	}
	return g
}

// has reports whether the plan lets an object go.
func (g going) has(o Object) bool {
	if g.keys[o.Ref.Key()] || g.live[o.Ref.Namespace] && isCondition(o.Ref.APIVersion, o.Ref.Kind) {
		return true
	}
	return slices.ContainsFunc(o.Owners, func(w Owner) bool {
		return g.owned[w.UID] || g.live[o.Ref.Namespace] && isCondition(w.APIVersion, w.Kind)
	})
}

func isCondition(apiVersion, kind string) bool {
	return kobj.Group(apiVersion) == snapshot.OLM && kind == "OperatorCondition"
}

// restarts reports whether the plan says that the pods of a Deployment restart.
func restarts(p *plan.Plan, ref kobj.Ref) bool {
	return slices.ContainsFunc(p.Operators, func(op plan.Operator) bool {
		return op.Namespace == ref.Namespace && slices.Contains(op.Restarts, ref.Name)
	})
}

// forgotten reports whether OLM had forgotten operators of a namespace before the plan
// was made.
func forgotten(p *plan.Plan, namespace string) bool {
	return slices.ContainsFunc(p.Operators, func(op plan.Operator) bool { return op.Forgotten && op.Namespace == namespace })
}
