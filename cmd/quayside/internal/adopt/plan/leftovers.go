package plan

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// hasLeftovers reports whether OLM no longer manages an operator whose objects still have fields or labels of
// OLM. It returns false if the lock keeps OLM's settings for the operator.
func (m *facts) hasLeftovers(op *adopt.Operator) bool {
	pin, pinned := m.Lock.Pin(op.Namespace, op.Package)
	forgotten := op.State == adopt.AlreadyAdopted || op.State == adopt.NotOLM
	return pinned && pin.Adopted == nil && forgotten && slices.ContainsFunc(m.itemsOf(op), hasOLMMarks)
}

// itemsOf returns the objects of an operator, including the objects that it shares with other operators.
func (m *facts) itemsOf(op *adopt.Operator) []item {
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

// hasOLMMarks reports whether an object still has fields of OLM that the tree would remove. Without
// managedFields, it looks for labels of OLM. It returns false for CRDs and APIServices, which would lose their
// CA, and for Namespaces, which OLM's webhooks select by label.
func hasOLMMarks(i item) bool {
	if i.live == nil || i.ours == nil || k8s.IsCRD(i.ours) || i.Is("APIService."+k8s.APIServiceGroup) || i.Is("Namespace") {
		return false
	}
	if entries := k8s.Items(i.live.Body(), "metadata", "managedFields"); len(entries) > 0 {
		return slices.ContainsFunc(entries, IsWrittenByOLM)
	}
	return slices.ContainsFunc(i.Fields, func(f adopt.Field) bool {
		key, label := strings.CutPrefix(f.Path, "metadata.labels.")
		return label && f.Kind == adopt.OnlyLive && !strings.HasPrefix(key, k8s.OLMv1Group+"/") && isLabelOfOLM(key)
	})
}

// isLabelOfOLM reports whether a label is one that OLM sets.
func isLabelOfOLM(key string) bool {
	return strings.HasPrefix(key, "olm.") || strings.HasPrefix(key, k8s.OLMGroup+"/")
}

// needsRestart reports whether applying the tree restarts the pods of a Deployment once the plan's manager owns
// OLM's fields.
func (m *facts) needsRestart(i item) bool {
	if !i.Is("Deployment.apps") || i.live == nil || i.ours == nil {
		return false
	}
	by := writersOf(i.live.Body(), m.Manager)
	return slices.ContainsFunc(i.Fields, func(f adopt.Field) bool {
		return strings.HasPrefix(f.Path, "spec.template.") && (f.Kind != adopt.OnlyLive || by.drops(f))
	})
}

// isUpgraded reports whether the cluster and the tree have different versions of an object.
func isUpgraded(i item) bool {
	return slices.Contains(i.Fields, adopt.Field{Path: "metadata.annotations.quayside.dev/version", Kind: adopt.OtherValue})
}

// unservedReasons returns a reason for each of the operator's objects in the tree whose kind the cluster does
// not serve. Such an object cannot be applied.
func (m *facts) unservedReasons(op *operator) []string {
	served := func(group, kind string) bool {
		defines := func(crd k8s.Object) bool {
			return k8s.IsCRD(crd) && k8s.Text(crd, "spec", "group") == group && k8s.Text(crd, "spec", "names", "kind") == kind
		}
		return k8s.IsBuiltinGroup(group) || slices.ContainsFunc(m.itemsOf(op.Operator), func(i item) bool { return defines(i.ours) }) ||
			slices.ContainsFunc(m.Snapshot.Kind(k8s.CRDGroup, "CustomResourceDefinition"), func(o *snapshot.LiveObject) bool {
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

// addLeftoverSteps adds the steps for operators that OLM no longer manages. The steps remove OLM's fields and
// labels from the objects of the operators.
func (m *planBuilder) addLeftoverSteps(b *block) {
	if slices.ContainsFunc(b.items, b.needsGuard) {
		m.addGuardSteps(b)
	}
	m.addSuspendTreeStep(b)
	m.addPrepareStep(b, b.addedItems(true))
	changed := b.changedItems()
	m.addStep(Step{
		Name: Backup, Namespace: b.namespace, Title: "Back up the objects to change of " + b.namespace + " to files",
		Actions: actionsFor(Save, append(b.itemsWhere(needsCleanUp), changed...)),
	})
	s := Step{
		Name: Fields, Namespace: b.namespace, Title: "Take ownership of OLM's fields in " + b.namespace + ", and apply the tree: " + b.packageNames(),
		After: readyChecks(b),
	}
	for _, i := range sortByPhase(append(changed, slices.DeleteFunc(b.addedItems(false), func(i item) bool { return m.refused[i.Key] != "" })...)) {
		if hasOLMMarks(i) {
			s.Actions = append(s.Actions, newAction(TransferFields, i))
		}
		a := newAction(Apply, i)
		if a.Force = i.live != nil; i.live != nil && i.Is("Namespace") {
			a = newApplyAction(i)
		}
		s.Actions = append(s.Actions, a)
	}
	m.addStep(s)
	m.addCleanUpStep(b)
}

// changedItems returns the items that differ from the tree or have marks of OLM. For each such role, it also
// returns the bindings, because a changed role changes the permissions of their subjects.
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

// addSuspendTreeStep adds a manual step to suspend the GitOps tools that apply the current tree. These tools
// would undo the plan's changes to objects of the tree. If the plan changes no object of the tree, it adds no
// step.
func (m *planBuilder) addSuspendTreeStep(b *block) {
	moves := slices.ContainsFunc(b.items, func(i item) bool {
		return i.ours != nil && (i.live == nil || slices.ContainsFunc(i.Changes(), func(f adopt.Field) bool { return f.Kind != adopt.OnlyLive }))
	})
	appliers := appliersOf(b.itemsWhere(func(i item) bool { return i.live != nil }), func(i item) bool { // the object may have marks of GitOps tools from its bundle
		return i.live.Labels[k8s.LabelPackage] != "" && !hasOLMMarks(i) && !i.Is("Namespace")
	})
	if !moves || appliers == "" {
		return
	}
	m.addStep(Step{
		Name: Suspend, Namespace: b.namespace, Title: "Suspend the GitOps tool for " + b.namespace,
		Manual: "Suspend the GitOps tool that applies the previous tree to namespace " + b.namespace + ", otherwise it undoes the next steps, and pods restart more than once: " +
			appliers + ". Resume it when the pull request with the tree of this plan is merged and it has fetched that commit.",
	})
}

// addedItems returns items that only the tree has. If permissions is true, it returns the roles,
// bindings, OperatorConditions and Namespaces. Otherwise it returns the items of all other kinds.
func (b *block) addedItems(permissions bool) []item {
	return b.itemsWhere(func(i item) bool {
		isPermission := i.Group == k8s.RBACGroup || i.Is("OperatorCondition."+k8s.OLMGroup) || i.Is("Namespace")
		return i.Class == adopt.Added && i.ours != nil && isPermission == permissions
	})
}
