package plan

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

// hasLeftovers reports whether OLM no longer manages an operator, the lock has no OLM settings for
// it, and its objects still have leftovers of OLM.
func (m *planBuilder) hasLeftovers(op *adopt.Operator) bool {
	pin, pinned := m.Lock.Pin(op.Namespace, op.Package)
	forgotten := op.State == adopt.AlreadyAdopted || op.State == adopt.NotOLM
	return pinned && pin.Adopted == nil && forgotten && slices.ContainsFunc(m.itemsOf(op), hasOLMMarks)
}

// itemsOf returns the objects of an operator, including shared ones.
func (m *planBuilder) itemsOf(op *adopt.Operator) []item {
	var out []item
	for _, o := range op.Objects {
		out = append(out, m.newItem(o))
	}
	for _, o := range m.Report.Shared {
		if slices.Contains(o.Operators, op.Key()) {
			out = append(out, m.newItem(o))
		}
	}
	return out
}

// hasOLMMarks reports whether an object still has leftovers of OLM that the tree would remove:
// fields that OLM manages, or OLM's labels if there are no managedFields. It returns false for
// CRDs and APIServices, which would lose their CA, and for Namespaces, because OLM's webhooks
// select by their labels.
func hasOLMMarks(i item) bool {
	if i.live == nil || i.ours == nil || k8s.IsCRD(i.ours) || i.Is("APIService."+k8s.APIServiceGroup) || i.Is("Namespace") {
		return false
	}
	if entries := k8s.Items(i.live.Body(), "metadata", "managedFields"); len(entries) > 0 {
		return slices.ContainsFunc(entries, IsWrittenByOLM)
	}
	return slices.ContainsFunc(i.Fields, func(f adopt.Field) bool {
		key, label := strings.CutPrefix(f.Path, "metadata.labels.")
		return label && f.Kind == adopt.OnlyLive && !strings.HasPrefix(key, k8s.OLMv1Group+"/") && (strings.HasPrefix(key, "olm.") || strings.HasPrefix(key, k8s.OLMGroup+"/"))
	})
}

// needsRestart reports whether the pods of a Deployment change when the tree is applied after OLM's
// fields were transferred to the manager.
func (m *planBuilder) needsRestart(i item) bool {
	if !i.Is("Deployment.apps") || i.live == nil || i.ours == nil {
		return false
	}
	by := writersOf(i.live.Body(), m.plan.Manager)
	return slices.ContainsFunc(i.Fields, func(f adopt.Field) bool {
		return strings.HasPrefix(f.Path, "spec.template.") && (f.Kind != adopt.OnlyLive || by.drops(f))
	})
}

// isUpgraded reports whether the cluster and the tree have different versions of an object.
func isUpgraded(i item) bool {
	return slices.Contains(i.Fields, adopt.Field{Path: "metadata.annotations.quayside.dev/version", Kind: adopt.OtherValue})
}

// unservedReasons returns the reasons why an operator's part of the tree cannot be applied: objects of
// kinds that the cluster does not serve.
func (m *planBuilder) unservedReasons(op *operator) []string {
	served := func(group, kind string) bool {
		defines := func(crd k8s.Object) bool {
			return k8s.IsCRD(crd) && k8s.Text(crd, "spec", "group") == group && k8s.Text(crd, "spec", "names", "kind") == kind
		}
		return k8s.IsBuiltinGroup(group) || slices.ContainsFunc(m.itemsOf(op.Operator), func(i item) bool { return defines(i.ours) }) ||
			slices.ContainsFunc(m.Snapshot.Kind(k8s.CRDGroup, "CustomResourceDefinition"), func(o *snapshot.Object) bool {
				return strings.HasSuffix(o.Name, "."+group) && defines(o.Body())
			})
	}
	var out []string
	for _, i := range m.itemsOf(op.Operator) {
		if i.live == nil && i.ours != nil && m.refused[i.Key] == "" && !served(i.Group, i.Kind) {
			out = append(out, "the tree has "+i.String()+", of a kind that the cluster does not serve: install its CRD or API first")
		}
	}
	return out
}

// addLeftoverSteps adds the steps for operators that OLM no longer manages: they remove OLM's
// leftovers from the objects.
func (m *planBuilder) addLeftoverSteps(b *block) {
	if slices.ContainsFunc(b.items, b.needsGuard) {
		m.addGuardSteps(b)
	}
	m.addSuspendTreeStep(b)
	m.addPrepareStep(b, b.addedItems(true))
	changed := b.changedItems()
	m.addStep(Step{
		Name: Backup, Namespace: b.namespace, Title: "Back up the objects to change of " + b.namespace + " to files",
		Actions: m.actionsFor(Save, append(b.itemsWhere(m.needsCleanUp), changed...)),
	})
	s := Step{
		Name: Fields, Namespace: b.namespace, Title: "Take ownership of OLM's fields in " + b.namespace + ", and apply the tree: " + b.packageNames(),
		After: m.readyChecks(b),
	}
	for _, i := range sortByPhase(append(changed, slices.DeleteFunc(b.addedItems(false), func(i item) bool { return m.refused[i.Key] != "" })...)) {
		if hasOLMMarks(i) {
			s.Actions = append(s.Actions, m.newAction(TransferFields, i))
		}
		a := m.newAction(Apply, i)
		if a.Force = i.live != nil; i.live != nil && i.Is("Namespace") {
			a = m.newApplyAction(i)
		}
		s.Actions = append(s.Actions, a)
	}
	m.addStep(s)
	m.addCleanUpStep(b)
}

// changedItems returns the items that differ from the tree or are marked as OLM's. It includes the
// bindings of such roles, because a changed role changes the permissions of their subjects.
func (b *block) changedItems() []item {
	differs := func(i item) bool { return i.live != nil && i.ours != nil && (len(i.Fields) > 0 || hasOLMMarks(i)) }
	roles := map[k8s.Key]bool{}
	for _, i := range b.itemsWhere(isRole) {
		roles[i.Key] = differs(i)
	}
	return b.itemsWhere(func(i item) bool {
		return differs(i) || i.live != nil && i.ours != nil && roles[k8s.BoundRole(i.ours)]
	})
}

// addSuspendTreeStep adds a manual step to suspend the GitOps tools that apply the previous tree,
// if the plan adds or changes objects of that tree.
func (m *planBuilder) addSuspendTreeStep(b *block) {
	var appliers []string
	moves := false
	for _, i := range b.items {
		moves = moves || i.ours != nil && (i.live == nil || slices.ContainsFunc(i.Changes(), func(f adopt.Field) bool { return f.Kind != adopt.OnlyLive }))
		if i.live == nil || i.live.Labels[k8s.LabelPackage] == "" || hasOLMMarks(i) || i.Is("Namespace") { // a bundle can contain the marks of tools
			continue
		}
		if by := profile.ApplierOf(i.live.Body()); by != "" && !slices.Contains(appliers, by) {
			appliers = append(appliers, by)
		}
	}
	if !moves || len(appliers) == 0 {
		return
	}
	slices.Sort(appliers)
	m.addStep(Step{
		Name: Suspend, Namespace: b.namespace, Title: "Suspend the GitOps tool for " + b.namespace,
		Manual: "Suspend the GitOps tool that applies the previous tree to namespace " + b.namespace + ", otherwise it undoes the next steps, and pods restart more than once: " +
			strings.Join(appliers, "; ") + ". Resume it when the pull request with the tree of this plan is merged and it has fetched that commit.",
	})
}

// addedItems returns the items that the tree adds: roles, bindings, OperatorConditions and
// Namespaces if permissions is true, otherwise the rest.
func (b *block) addedItems(permissions bool) []item {
	return b.itemsWhere(func(i item) bool {
		isPermission := i.Group == k8s.RBACGroup || i.Is("OperatorCondition."+k8s.OLMGroup) || i.Is("Namespace")
		return i.Class == adopt.Added && i.ours != nil && isPermission == permissions
	})
}
