package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt"
	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// Deletion order of OLM's leftover objects:
//   - Roles of an OperatorGroup come after the OperatorGroup, because OLM would recreate them. They come before
//     the roles that they aggregate: the aggregation controller recreates a role whose rules change while it is
//     deleted.
//   - Objects of kind Operator come last, because OLM recreates an Operator while any object has its label.
const (
	rankWebhook = iota
	rankBinding
	rankRole
	rankCondition
	rankPlan
	rankGroup
	rankGroupRole
	rankAPI
	rankLabel
	rankOperator
)

// deletionRank returns the position of a leftover object in the deletion order.
func deletionRank(o *snapshot.LiveObject) int {
	owned := func(kind string) bool {
		return slices.ContainsFunc(o.Owners, func(by snapshot.Owner) bool { return strings.EqualFold(by.Kind, kind) })
	}
	switch o.Group + "/" + o.Kind {
	case k8s.AdmissionGroup + "/ValidatingWebhookConfiguration", k8s.AdmissionGroup + "/MutatingWebhookConfiguration":
		return rankWebhook
	case k8s.OLMGroup + "/OperatorCondition":
		return rankCondition
	case k8s.OLMGroup + "/InstallPlan":
		return rankPlan
	case k8s.OLMGroup + "/OperatorGroup":
		return rankGroup
	case k8s.OLMGroup + "/Operator":
		return rankOperator
	}
	switch {
	case o.Labels["olm.owner.kind"] == "OperatorGroup":
		return rankGroupRole
	case owned("OperatorCondition"):
		return rankCondition
	case owned("CustomResourceDefinition"), owned("APIService"):
		return rankAPI
	case strings.HasSuffix(o.Kind, "Binding"):
		return rankBinding
	}
	return rankRole
}

// needsCleanUp reports whether the clean-up deletes an object. It keeps objects of the tree and objects that
// quayside created. Exception: it deletes an OperatorCondition that the tree no longer has, even if quayside
// created it.
func needsCleanUp(i item) bool {
	made := i.live != nil && i.live.Labels[k8s.LabelManagedBy] == k8s.Manager && !i.Is("OperatorCondition."+k8s.OLMGroup)
	return i.RemovedAt == adopt.AtCleanUp && i.live != nil && i.ours == nil && !made
}

// isRole reports whether an item is a role, which must be deleted after its bindings.
func isRole(i item) bool { return i.Is("Role."+k8s.RBACGroup) || i.Is("ClusterRole."+k8s.RBACGroup) }

// addCleanUpStep adds the step that deletes OLM's leftover objects of a block.
func (m *planBuilder) addCleanUpStep(b *block) {
	items := b.itemsWhere(needsCleanUp)
	slices.SortStableFunc(items, func(x, y item) int {
		return cmp.Or(cmp.Compare(deletionRank(x.live), deletionRank(y.live)), compareBool(isRole(x), isRole(y)), x.Compare(y.Key))
	})
	s := Step{
		Name: CleanUp, Namespace: b.namespace, Title: "Delete OLM's leftovers in " + b.namespace,
		Before: append([]Check{{Check: Deleted, Objects: itemRefs(b.detachedItems())}, {Check: Prepared}}, unchangedChecks(b)...),
	}
	if len(b.detachedItems()) == 0 {
		s.Before = s.Before[1:]
	}
	labels := m.unlabelActions(b)
	for _, i := range items {
		if deletionRank(i.live) > rankLabel {
			s.Actions, labels = append(s.Actions, labels...), nil
		}
		s.Actions = append(s.Actions, newAction(Delete, i))
	}
	s.Actions = append(s.Actions, labels...)
	if len(items) > 0 {
		s.After = append([]Check{{Check: Deleted, Objects: itemRefs(items)}}, unchangedChecks(b)...)
	}
	m.addStep(s)
}

// unlabelActions returns actions that remove OLM's component labels from the objects that the
// clean-up keeps.
func (m *planBuilder) unlabelActions(b *block) []Action {
	var out []Action
	items := slices.DeleteFunc(slices.Clone(b.items), needsCleanUp)
	for _, i := range append(items, b.others...) {
		if i.live == nil || i.RemovedAt == adopt.AtDetach || m.Mode == Live && isLostInLiveMode(i.ClassifiedObject) {
			continue
		}
		var unset []string
		for key := range i.live.Labels {
			if m.isComponentLabel(b, key) && k8s.At(i.ours, "metadata", "labels", key) == nil {
				unset = append(unset, key)
			}
		}
		if len(unset) > 0 {
			slices.Sort(unset)
			a := newAction(Unlabel, i)
			a.Unset = unset
			out = append(out, a)
		}
	}
	return out
}

// isComponentLabel reports whether a label is the component label of an operator in block b or in an earlier
// block.
func (m *selection) isComponentLabel(b *block, label string) bool {
	for _, other := range m.blocks {
		for _, op := range other.operators {
			if adopt.ComponentLabel(op.Namespace, op.Package) == label {
				return true
			}
		}
		if other == b {
			break
		}
	}
	return false
}
