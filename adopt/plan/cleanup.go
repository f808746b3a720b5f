package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// The turns in which what OLM left goes. OLM makes the OperatorGroup's roles again
// while that is there, and the Operator while anything bears its label. Kubernetes'
// aggregation controller may make a role again whose rules change while it is
// deleted, so that the OperatorGroup's go before those of the APIs, which they
// aggregate.
const (
	turnWebhook = iota
	turnBinding
	turnRole
	turnCondition
	turnPlan
	turnGroup
	turnGroupRole
	turnAPI
	turnLabel
	turnOperator
)

// turnOf returns in which turn something of OLM's goes.
func turnOf(o *snapshot.Object) int {
	owned := func(kind string) bool {
		return slices.ContainsFunc(o.Owners, func(by snapshot.Owner) bool { return strings.EqualFold(by.Kind, kind) })
	}
	switch o.Group + "/" + o.Kind {
	case admissionGroup + "/ValidatingWebhookConfiguration", admissionGroup + "/MutatingWebhookConfiguration":
		return turnWebhook
	case snapshot.OLM + "/OperatorCondition":
		return turnCondition
	case snapshot.OLM + "/InstallPlan":
		return turnPlan
	case snapshot.OLM + "/OperatorGroup":
		return turnGroup
	case snapshot.OLM + "/Operator":
		return turnOperator
	}
	switch {
	case o.Labels["olm.owner.kind"] == "OperatorGroup":
		return turnGroupRole
	case owned("OperatorCondition"):
		return turnCondition
	case owned("CustomResourceDefinition"), owned("APIService"):
		return turnAPI
	case strings.HasSuffix(o.Kind, "Binding"):
		return turnBinding
	}
	return turnRole
}

// cleaned reports whether an object is one that OLM left, and that goes: nothing
// that the tree has, or that quayside made, but for an OperatorCondition that OLM
// made and the tree no longer has.
func (m *maker) cleaned(i item) bool {
	made := i.live != nil && i.live.Labels[kobj.LabelManagedBy] == kobj.Manager && !i.Is(snapshot.OLM, "OperatorCondition")
	return i.Goes == adopt.AtCleanUp && i.live != nil && i.ours == nil && !made
}

// isRole reports whether an item is a role, which goes after what binds to it.
func isRole(i item) bool { return i.Is(rbacGroup, "Role") || i.Is(rbacGroup, "ClusterRole") }

// cleanUp deletes what OLM left of a block's operators.
func (m *maker) cleanUp(b *block) {
	items := b.where(m.cleaned)
	slices.SortStableFunc(items, func(x, y item) int {
		return cmp.Or(cmp.Compare(turnOf(x.live), turnOf(y.live)), compareBool(isRole(x), isRole(y)), x.Key().Compare(y.Key()))
	})
	s := Step{
		Name: CleanUp, Namespace: b.namespace, Title: "Delete what OLM left in " + b.namespace,
		Before: append([]Check{{Check: Gone, Objects: refs(b.detached())}, {Check: Prepared}}, m.same(b)...),
	}
	if len(b.detached()) == 0 {
		s.Before = s.Before[1:]
	}
	labels := m.unlabel(b)
	for _, i := range items {
		if turnOf(i.live) > turnLabel {
			s.Actions, labels = append(s.Actions, labels...), nil
		}
		s.Actions = append(s.Actions, m.on(Delete, i))
	}
	s.Actions = append(s.Actions, labels...)
	if len(items) > 0 {
		s.After = append([]Check{{Check: Gone, Objects: refs(items)}}, m.same(b)...)
	}
	m.step(s)
}

// unlabel takes OLM's label of the operators from what stays.
func (m *maker) unlabel(b *block) []Action {
	var out []Action
	for _, i := range slices.Concat(b.items, b.others) {
		if i.live == nil || i.Goes == adopt.AtDetach || m.cleaned(i) || m.plan.Mode == Live && lostLive(i.Object) {
			continue
		}
		var unset []string
		for key := range i.live.Labels {
			if m.component(b, key) && kobj.At(i.ours, "metadata", "labels", key) == nil {
				unset = append(unset, key)
			}
		}
		if len(unset) > 0 {
			slices.Sort(unset)
			a := m.on(Unlabel, i)
			a.Unset = unset
			out = append(out, a)
		}
	}
	return out
}

// component reports whether a label says that something belongs to an operator
// that is taken over with a block or before.
func (m *maker) component(b *block, label string) bool {
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
