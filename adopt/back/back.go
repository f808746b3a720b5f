// Package back says how operators that left OLM, or were about to, return to it:
// from a plan, what of it was done, and the objects as they were before, it makes
// a plan of the way back, of the same steps and actions.
//
// It is pure; adopt/run does what it says.
package back

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kobj"
)

// Deed is an action of a plan that was begun.
type Deed struct {
	Step   int    // its number
	Action int    // of the step, from 1
	Made   string // UID of the object that it made; empty where it made none
}

// Input is what is known of a plan that was followed up to some action.
type Input struct {
	Plan   *plan.Plan
	Deeds  []Deed                   // in order
	Before map[kobj.Ref]kobj.Object // each object as it was before it was first written to
}

// Way is the way back.
type Way struct {
	Plan    *plan.Plan
	Objects map[kobj.Ref]kobj.Object // what is created, and what is restored as it was before
}

// Make returns the way back of every namespace of which nothing was cleaned up yet;
// the others stand in its plan with what to do. It has no steps where nothing was
// done. The order of the steps is that in which nothing is missing meanwhile: what
// OLM installs by comes back before anything of the tree's goes.
func Make(in Input) *Way {
	m := &maker{Input: in, way: &Way{Objects: map[kobj.Ref]kobj.Object{}}, done: map[*plan.Action]Deed{}}
	for _, d := range in.Deeds {
		m.done[&in.Plan.Steps[d.Step-1].Actions[d.Action-1]] = d
	}
	p := *in.Plan
	p.Operators, p.Left, p.Steps = []plan.Operator{}, []plan.Left{}, []plan.Step{}
	m.way.Plan = &p
	var back []*place
	for _, at := range m.places() {
		switch {
		case !at.begun():
		case at.cleaned > 0:
			p.Left = append(p.Left, m.refused(at))
		default:
			back = append(back, at)
			for _, op := range in.Plan.Operators {
				if op.Namespace == at.namespace {
					p.Operators = append(p.Operators, op)
				}
			}
		}
	}
	m.steps(back)
	return m.way
}

// maker collects the steps.
type maker struct {
	Input
	way  *Way
	done map[*plan.Action]Deed
}

// place is what was done for one namespace, or for the cluster as a whole.
type place struct {
	namespace string

	guarded []plan.Action // annotations that were set
	brought []plan.Action // deletions of what was applied under new names, of the last applied first
	changed []plan.Action // restorations of what was there before and was applied, or taken over
	stopped bool
	detach  []plan.Action // all that makes OLM forget the operators; nil where none of it was begun
	cleaned int           // objects that were deleted afterwards

	forgotten bool // OLM had forgotten the operators before the plan was made
}

func (at *place) begun() bool {
	return at.stopped || at.cleaned > 0 || len(at.guarded)+len(at.brought)+len(at.changed)+len(at.detach) > 0
}

// places returns what was done, by namespace in the order of the plan.
func (m *maker) places() []*place {
	var out []*place
	by := map[string]*place{}
	for i := range m.Plan.Steps {
		s := &m.Plan.Steps[i]
		at := by[s.Namespace]
		if at == nil {
			at = &place{namespace: s.Namespace, forgotten: m.forgotten(s.Namespace)}
			by[s.Namespace], out = at, append(out, at)
		}
		m.look(at, s)
	}
	return out
}

// forgotten reports whether OLM had forgotten all operators of a namespace before the
// plan was made.
func (m *maker) forgotten(namespace string) bool {
	return namespace != "" && !slices.ContainsFunc(m.Plan.Operators, func(op plan.Operator) bool { return op.Namespace == namespace && !op.Forgotten })
}

// look notes what was done of a step.
func (m *maker) look(at *place, s *plan.Step) {
	begun := 0
	for i := range s.Actions {
		a := &s.Actions[i]
		d, ok := m.done[a]
		if !ok {
			continue
		}
		begun++
		switch a.Do {
		case plan.Annotate:
			at.guarded = append(at.guarded, *a)
		case plan.Apply, plan.TakeOver:
			m.applied(at, a, d)
		case plan.Scale:
			at.stopped = true
		default: // of a detach or a clean-up, or it changed nothing
		}
	}
	switch {
	case begun == 0:
	case s.Name == plan.Detach:
		at.detach = slices.DeleteFunc(slices.Clone(s.Actions), func(a plan.Action) bool { return a.Do == plan.Delete })
	case s.Name == plan.CleanUp:
		at.cleaned += begun
	}
}

// applied notes what becomes of an object that was applied: what OLM had under its
// name is made as it was, even where it was deleted meanwhile; the rest goes.
func (m *maker) applied(at *place, a *plan.Action, d Deed) {
	restore := plan.Action{Do: plan.Restore, Object: a.Object, UID: cmp.Or(a.UID, d.Made)}
	_, there := m.Before[a.Object]
	switch {
	case restore.UID == "":
	case there:
		if !slices.ContainsFunc(at.changed, func(b plan.Action) bool { return b.Object == a.Object }) {
			at.changed = append(at.changed, restore)
		}
	case a.UID == "" && !a.Object.HoldsOthers():
		at.brought = slices.Insert(at.brought, 0, plan.Action{Do: plan.Delete, Object: a.Object, UID: d.Made})
	}
}

// refused says why a namespace does not go back.
func (m *maker) refused(at *place) plan.Left {
	if at.forgotten {
		return plan.Left{Namespace: at.namespace, Reasons: []string{fmt.Sprintf(
			"%s of what OLM left deleted already, which nothing needs. OLM had forgotten these operators before: to have the pods of before back, take back the commit that finished the adoption, and apply the tree of that",
			diag.Count(at.cleaned, "object"))}}
	}
	var csvs []string
	for _, op := range m.Plan.Operators {
		if op.Namespace == at.namespace {
			csvs = append(csvs, op.CSV)
		}
	}
	return plan.Left{Namespace: at.namespace, Reasons: []string{fmt.Sprintf(
		"%s of OLM's deleted already, and only OLM can make them again. Suspend the tool that applies the tree, create the OperatorGroup if it is gone, and a Subscription with spec.startingCSV for each of %s;"+
			" once each ClusterServiceVersion is Succeeded, delete what bears %s: %s and not olm.managed: \"true\", except Namespaces and CustomResourceDefinitions",
		diag.Count(at.cleaned, "object"), strings.Join(csvs, ", "), kobj.LabelManagedBy, kobj.Manager)}}
}

// steps puts the steps in order.
func (m *maker) steps(back []*place) {
	if !slices.ContainsFunc(back, (*place).begun) {
		return
	}
	m.add(plan.Step{Name: plan.Suspend, Title: "Keep GitOps tools from applying the tree", Manual: m.suspend(back)})
	each := func(do func(*place)) {
		for _, at := range back {
			do(at)
		}
	}
	forgot := slices.ContainsFunc(back, func(at *place) bool { return at.detach != nil })
	if forgot {
		m.controllers(plan.Stop, plan.IsStopped)
	}
	each(m.forget)
	each(m.handBack)
	each(m.subscribe)
	if forgot || slices.ContainsFunc(back, func(at *place) bool { return at.stopped }) {
		m.controllers(plan.Start, plan.IsReady)
	}
	each(m.wait)
	each(m.withdraw)
	each(m.unguard)
}

func (m *maker) add(s plan.Step) {
	s.Number = len(m.way.Plan.Steps) + 1
	m.way.Plan.Steps = append(m.way.Plan.Steps, s)
}

func (m *maker) suspend(back []*place) string {
	if !slices.ContainsFunc(back, func(at *place) bool { return !at.forgotten }) {
		return "If a GitOps tool applies the tree of this plan already (its field manager is " + m.Plan.Manager + "), suspend it, and take back the commit that brought that tree." +
			" Otherwise it would undo what follows. Let it go on when all steps are done."
	}
	return "If a GitOps tool applies the tree already (its field manager is " + m.Plan.Manager + "), suspend it, and take the commit back that put the tree in the place of the Subscriptions." +
		" Otherwise it would undo what follows, and delete the Subscriptions. Let it go on when all steps are done."
}

// controllers adds the steps by which the plan stops or starts OLM's controllers,
// a person's among them; once, for all namespaces.
func (m *maker) controllers(name plan.Name, is plan.Condition) {
	seen := map[string]bool{}
	for _, s := range m.Plan.Steps {
		if s.Name != name || seen[s.Title] {
			continue
		}
		seen[s.Title] = true
		s.Namespace, s.Before = "", nil
		s.After = slices.DeleteFunc(slices.Clone(s.After), func(c plan.Check) bool { return c.Check != is })
		m.add(s)
	}
}

// forget makes OLM forget the rest where it was stopped in the middle of that, and
// waits until all is gone: a ClusterServiceVersion without its Subscription would
// keep OLM from installing.
func (m *maker) forget(at *place) {
	if at.detach == nil {
		return
	}
	m.add(plan.Step{
		Name: plan.Detach, Namespace: at.namespace, Title: "Make OLM forget the operators" + of(at) + " as far as it has not yet",
		Actions: at.detach, After: []plan.Check{{Check: plan.Gone, Objects: deleted(at.detach)}},
	})
}

func deleted(actions []plan.Action) []kobj.Ref {
	var out []kobj.Ref
	for _, a := range actions {
		if a.Do == plan.Orphan {
			out = append(out, a.Object)
		}
	}
	return out
}

func (m *maker) handBack(at *place) {
	s := plan.Step{Name: plan.HandBack, Namespace: at.namespace, Title: "Make what the tree changed as it was" + of(at)}
	for _, a := range at.changed {
		s.Actions = append(s.Actions, a)
		m.way.Objects[a.Object] = m.Before[a.Object]
	}
	if len(s.Actions) > 0 {
		m.add(s)
	}
}

func of(at *place) string {
	if at.namespace == "" {
		return ""
	}
	return " in " + at.namespace
}

// subscribe creates the Subscriptions again, those of what others need first.
func (m *maker) subscribe(at *place) {
	s := plan.Step{Name: plan.Subscribe, Namespace: at.namespace, Title: "Create the Subscriptions again, at the versions that run" + of(at)}
	for _, sub := range m.subscriptions(at) {
		ref := kobj.RefTo(sub)
		s.Actions = append(s.Actions, plan.Action{Do: plan.Create, Object: ref})
		m.way.Objects[ref] = again(sub)
	}
	if len(s.Actions) > 0 {
		m.add(s)
	}
}

// subscriptions returns those that OLM was made to forget, as they were, the last
// of them first.
func (m *maker) subscriptions(at *place) []kobj.Object {
	var out []kobj.Object
	for _, ref := range deleted(at.detach) {
		if o, ok := m.Before[ref]; ok && o.Is(snapshot.OLM, "Subscription") {
			out = append(out, o)
		}
	}
	slices.Reverse(out)
	return out
}

// again returns a Subscription that installs what was installed by it.
func again(sub kobj.Object) kobj.Object {
	meta := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations"} {
		if v := kobj.At(sub, "metadata", key); v != nil {
			meta[key] = v
		}
	}
	var owners []any
	for _, o := range kobj.Items(sub, "metadata", "ownerReferences") {
		if kobj.Group(kobj.Text(o, "apiVersion")) != snapshot.OLM {
			owners = append(owners, o)
		}
	}
	if owners != nil {
		meta["ownerReferences"] = owners
	}
	if csv := kobj.Text(sub, "status", "installedCSV"); csv != "" {
		sub = kobj.With(sub, csv, "spec", "startingCSV")
	}
	return kobj.With(kobj.Without(sub, "status"), any(meta), "metadata")
}

// wait waits until OLM has installed all again; where people approve what it
// installs, after they did.
func (m *maker) wait(at *place) {
	if at.detach == nil {
		return
	}
	installed := plan.Check{Check: plan.Succeeded}
	for _, a := range at.detach {
		if a.Do == plan.Orphan && a.Object.Kind == "ClusterServiceVersion" && a.Object.Namespace == at.namespace {
			installed.Objects = append(installed.Objects, a.Object)
		}
	}
	s := plan.Step{Name: plan.Approve, Namespace: at.namespace, Title: "Wait until OLM has installed all again" + of(at), After: []plan.Check{installed}}
	if slices.ContainsFunc(m.subscriptions(at), func(o kobj.Object) bool { return kobj.Text(o, "spec", "installPlanApproval") == "Manual" }) {
		s.Title = "Approve what OLM installs" + of(at)
		s.Manual = "Approve the InstallPlan that installs what runs, and no other: kubectl get installplans -n " + at.namespace +
			"; kubectl patch installplan NAME -n " + at.namespace + ` --type merge -p '{"spec":{"approved":true}}'`
	}
	m.add(s)
}

// withdraw deletes what the tree brought.
func (m *maker) withdraw(at *place) {
	if len(at.brought) == 0 {
		return
	}
	s := plan.Step{Name: plan.Withdraw, Namespace: at.namespace, Title: "Delete what the tree brought" + of(at), Actions: slices.Clone(at.brought)}
	slices.SortStableFunc(s.Actions, func(a, b plan.Action) int { return rank(a.Object) - rank(b.Object) })
	var refs []kobj.Ref
	for _, a := range s.Actions {
		refs = append(refs, a.Object)
	}
	s.After = []plan.Check{{Check: plan.Gone, Objects: refs}}
	m.add(s)
}

// rank says when an object is deleted: first what calls a webhook, and what gives
// rights before the rights.
func rank(r kobj.Ref) int {
	i := slices.Index([]string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ClusterRoleBinding", "RoleBinding", "ClusterRole", "Role"}, r.Kind)
	if i < 0 {
		return 6
	}
	return i
}

// unguard removes the annotations that keep tools from pruning.
func (m *maker) unguard(at *place) {
	s := plan.Step{Name: plan.Unguard, Namespace: at.namespace, Title: "Let GitOps tools prune again" + of(at)}
	gone := deleted(at.detach)
	for _, a := range at.guarded {
		if slices.Contains(gone, a.Object) {
			continue
		}
		before := kobj.TextMap(m.Before[a.Object], "metadata", "annotations")
		undo := plan.Action{Do: plan.Annotate, Object: a.Object, UID: a.UID, Set: map[string]string{}}
		for _, key := range slices.Sorted(maps.Keys(a.Set)) {
			if was, ok := before[key]; ok && was != a.Set[key] {
				undo.Set[key] = was
			} else {
				undo.Unset = append(undo.Unset, key)
			}
		}
		s.Actions = append(s.Actions, undo)
	}
	if len(s.Actions) > 0 {
		m.add(s)
	}
}
