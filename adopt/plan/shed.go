package plan

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/render/profile"
)

// sheds reports whether OLM has forgotten an operator, the lock keeps nothing of
// OLM's for it any more, and its objects still have something of OLM's.
func (m *maker) sheds(op *adopt.Operator) bool {
	sheds, known := m.shedding[name(op)]
	if !known {
		pin, pinned := m.Lock.Pin(op.Namespace, op.Package)
		forgotten := op.State == adopt.AlreadyAdopted || op.State == adopt.NotOLM
		sheds = pinned && pin.Adopted == nil && forgotten && slices.ContainsFunc(m.itemsOf(op), marked)
		m.shedding[name(op)] = sheds
	}
	return sheds
}

// itemsOf returns what an operator has, and what it shares with others.
func (m *maker) itemsOf(op *adopt.Operator) []item {
	var out []item
	for _, o := range op.Objects {
		out = append(out, m.item(o))
	}
	for _, o := range m.Report.Shared {
		if slices.Contains(o.Operators, name(op)) {
			out = append(out, m.item(o))
		}
	}
	return out
}

// marked reports whether an object of the tree still has something of OLM's that the
// tree would shed: fields that OLM manages, or where nobody says who does, its
// labels. Definitions and APIServices keep it, for with it would go the CA by which
// they are called, and Namespaces, by whose labels OLM's webhooks select.
func marked(i item) bool {
	if i.live == nil || i.ours == nil || kobj.IsCRD(i.ours) || i.Is(apiGroup, "APIService") || i.Is("", "Namespace") {
		return false
	}
	if entries := kobj.Items(i.live.Body(), "metadata", "managedFields"); len(entries) > 0 {
		return slices.ContainsFunc(entries, ByOLM)
	}
	return slices.ContainsFunc(i.Fields, func(f adopt.Field) bool {
		key, label := strings.CutPrefix(f.Path, "metadata.labels.")
		return label && f.How == adopt.OnlyLive && (strings.HasPrefix(key, "olm.") || strings.HasPrefix(key, snapshot.OLM+"/"))
	})
}

// restarts reports whether the pods of a Deployment are others once OLM's fields are
// the manager's and that applies the tree.
func (m *maker) restarts(i item) bool {
	if !i.Is("apps", "Deployment") || i.live == nil || i.ours == nil {
		return false
	}
	by := writersOf(i.live.Body(), m.plan.Manager)
	return slices.ContainsFunc(i.Fields, func(f adopt.Field) bool {
		return strings.HasPrefix(f.Path, "spec.template.") && (f.How != adopt.OnlyLive || by.drops(f))
	})
}

// upgraded reports whether the cluster has another version of an object than the
// tree.
func upgraded(i item) bool {
	return slices.Contains(i.Fields, adopt.Field{Path: "metadata.annotations.quayside.dev/version", How: adopt.Differs})
}

// unserved returns why an operator's part of the tree cannot be applied: it has
// objects of kinds that nobody serves.
func (m *maker) unserved(op *adopt.Operator) []string {
	served := func(group, kind string) bool {
		defines := func(crd kobj.Object) bool {
			return kobj.IsCRD(crd) && kobj.Text(crd, "spec", "group") == group && kobj.Text(crd, "spec", "names", "kind") == kind
		}
		return kinds.Builtin(group) || slices.ContainsFunc(m.itemsOf(op), func(i item) bool { return defines(i.ours) }) ||
			slices.ContainsFunc(m.Snapshot.Kind("apiextensions.k8s.io", "CustomResourceDefinition"), func(o *snapshot.Object) bool {
				return strings.HasSuffix(o.Name, "."+group) && defines(o.Body())
			})
	}
	var out []string
	for _, i := range m.itemsOf(op) {
		if i.live == nil && i.ours != nil && m.refused[i.Key()] == "" && !served(i.Group, i.Kind) {
			out = append(out, "the tree has "+i.Key().String()+", of a kind that the cluster does not serve: install first what defines it")
		}
	}
	return out
}

// shed makes the steps by which operators that OLM has forgotten shed what their
// objects still have of it.
func (m *maker) shed(b *block) {
	if slices.ContainsFunc(b.items, b.guarded) {
		m.guard(b)
	}
	m.standStill(b)
	m.prepare(b, b.added(true))
	changed := b.changed()
	m.step(Step{
		Name: Backup, Namespace: b.namespace, Title: "Write what will be changed of " + b.namespace + " to files",
		Actions: m.each(Keep, append(b.where(m.cleaned), changed...)),
	})
	s := Step{
		Name: Fields, Namespace: b.namespace, Title: "Take over the fields that OLM wrote in " + b.namespace + ", and apply the tree: " + b.packages(),
		After: m.ready(b),
	}
	for _, i := range inOrder(append(changed, slices.DeleteFunc(b.added(false), func(i item) bool { return m.refused[i.Key()] != "" })...)) {
		if marked(i) {
			s.Actions = append(s.Actions, m.on(TakeOver, i))
		}
		a := m.on(Apply, i)
		if a.Force = i.live != nil; i.live != nil && i.Is("", "Namespace") {
			a = m.over(i)
		}
		s.Actions = append(s.Actions, a)
	}
	m.step(s)
	m.cleanUp(b)
}

// changed returns what the cluster has otherwise than the tree, or marked as OLM's,
// and the bindings of such roles, by which they give something to anybody.
func (b *block) changed() []item {
	differs := func(i item) bool { return i.live != nil && i.ours != nil && (len(i.Fields) > 0 || marked(i)) }
	roles := map[kobj.Key]bool{}
	for _, i := range b.where(isRole) {
		roles[i.Key()] = differs(i)
	}
	return b.where(func(i item) bool {
		role := kobj.Key{Group: rbacGroup, Kind: kobj.Text(i.ours, "roleRef", "kind"), Name: kobj.Text(i.ours, "roleRef", "name")}
		if role.Kind == "Role" {
			role.Namespace = i.Namespace
		}
		return differs(i) || i.live != nil && i.ours != nil && roles[role]
	})
}

// standStill has a person stop what applies the tree of before, where the plan
// brings another.
func (m *maker) standStill(b *block) {
	var appliers []string
	moves := false
	for _, i := range b.items {
		moves = moves || i.ours != nil && (i.live == nil || slices.ContainsFunc(i.Changes(), func(f adopt.Field) bool { return f.How != adopt.OnlyLive }))
		if i.live == nil || i.live.Labels[kobj.LabelPackage] == "" || marked(i) || i.Is("", "Namespace") { // a bundle may ship the marks of tools
			continue
		}
		if by := profile.Applier(i.live.Body()); by != "" && !slices.Contains(appliers, by) {
			appliers = append(appliers, by)
		}
	}
	if !moves || len(appliers) == 0 {
		return
	}
	slices.Sort(appliers)
	m.step(Step{
		Name: Suspend, Namespace: b.namespace, Title: "Suspend what applies the tree to " + b.namespace,
		Manual: "Suspend what applies the tree of before to namespace " + b.namespace + ", or it undoes what follows, and pods restart more than once: " +
			strings.Join(appliers, "; ") + ". Let it go on when the pull request is merged that brings the tree of this plan, and when it has read that commit.",
	})
}

// added returns what the tree brings: what gives rights and what these are for, or
// the rest.
func (b *block) added(rights bool) []item {
	return b.where(func(i item) bool {
		gives := i.Group == rbacGroup || i.Is(snapshot.OLM, "OperatorCondition") || i.Is("", "Namespace")
		return i.Class == adopt.Added && i.ours != nil && gives == rights
	})
}
