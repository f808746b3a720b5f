package diff

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/k8s"
)

// compareSelected reports objects that are selected differently because their labels change: pods that a
// Service or NetworkPolicy newly selects, pods that a NetworkPolicy no longer selects, and Namespaces that a
// webhook or NetworkPolicy newly selects or no longer selects. It also reports Services and
// PodDisruptionBudgets that newly select pods of other operators. It ignores selectors that match everything.
func compareSelected(c *comparison) {
	for _, p := range c.changed {
		switch {
		case p.after == nil || p.after.Follows:
			continue
		case p.after.Key().Is("Service", "PodDisruptionBudget.policy"):
			comparePodSelector(c, p)
		case p.after.Key().Is("Namespace"):
			compareNamespaceLabels(c, p)
		}
		old := podsOf(p.before)
		for _, now := range podsOf(p.after) {
			d := selectedDiff{c: c, p: p, at: now.at, now: k8s.TextMap(now.meta, "labels")}
			if i := slices.IndexFunc(old, func(o pod) bool { return slices.Equal(o.at, now.at) }); i >= 0 {
				d.old = k8s.TextMap(old[i].meta, "labels")
			}
			if !reflect.DeepEqual(d.old, d.now) {
				d.compare()
			}
		}
	}
}

// selectedDiff compares the selectors that match the labels of a pod. old is nil if the pod is added.
type selectedDiff struct {
	c        *comparison
	p        pair
	at       fieldPath // path of the pod spec
	old, now map[string]string
}

func (d selectedDiff) add(rule, message string) {
	at := d.at[:max(0, len(d.at)-1)].field("metadata", "labels")
	d.c.add(rule, d.p.after, Finding{Field: at.String(), Before: formatLabels(d.old), After: formatLabels(d.now), Message: message, path: at, explains: noField()})
}

func formatLabels(set map[string]string) string { return labels.Set(set).String() }

func (d selectedDiff) compare() {
	namespace := d.p.after.Key().Namespace
	for _, o := range d.c.after.order {
		key := o.Key()
		isOther := !d.c.isOperator(o.Operator, d.p.after.Operator)
		switch {
		case key.Is("Service") && key.Namespace == namespace && isOther:
			if s := k8s.TextMap(o.Content, "spec", "selector"); len(s) > 0 && matchesMap(s, d.now) && (d.old == nil || !matchesMap(s, d.old)) {
				d.add("network.service", fmt.Sprintf("the pods get the traffic of %s, which does not belong to this operator", o.Ref()))
			}
		case key.Is(networkPolicyKind):
			if was := d.c.before.byKey[key]; d.old != nil && was != nil && key.Namespace == namespace && matchesSelector(was, d.old, "podSelector") && !matchesSelector(o, d.now, "podSelector") {
				d.add("network.allowed", fmt.Sprintf("%s no longer selects the pods", o.Ref()))
			}
			if isOther && d.c.after.admits(o, d.now, namespace) && (d.old == nil || !d.c.after.admits(o, d.old, namespace)) {
				d.add("network.allowed", fmt.Sprintf("%s, which does not belong to this operator, allows the pods to connect", o.Ref()))
			}
		}
	}
}

// matchesMap reports whether labels have all entries of the selector of a Service.
func matchesMap(selector, have map[string]string) bool {
	return labels.SelectorFromSet(selector).Matches(labels.Set(have))
}

// matchesSelector reports whether a label selector in the spec of a NetworkPolicy matches labels.
func matchesSelector(policy *Object, have map[string]string, field string) bool {
	s, ok := k8s.SelectorOf(k8s.Map(policy.Content, "spec", field))
	return ok && s.Matches(labels.Set(have))
}

// admits reports whether a NetworkPolicy allows ingress from a pod because of its labels.
func (v *view) admits(policy *Object, have map[string]string, namespace string) bool {
	for _, rule := range k8s.Items(policy.Content, "spec", "ingress") {
		for _, peer := range k8s.Items(rule, "from") {
			pods, ok := k8s.SelectorOf(k8s.Map(peer, "podSelector"))
			if !ok || pods.Empty() || !pods.Matches(labels.Set(have)) {
				continue
			}
			spaces, limited := k8s.SelectorOf(k8s.Map(peer, "namespaceSelector"))
			if !limited && policy.Key().Namespace == namespace || limited && spaces.Matches(labels.Set(v.namespaceLabels(namespace))) {
				return true
			}
		}
	}
	return false
}

// namespaceLabels returns the labels of a namespace, including kubernetes.io/metadata.name.
func (v *view) namespaceLabels(name string) map[string]string {
	out := map[string]string{}
	if ns := v.namespace(name); ns != nil {
		out = k8s.TextMap(ns.Content, "metadata", "labels")
	}
	if out == nil {
		out = map[string]string{}
	}
	out["kubernetes.io/metadata.name"] = name
	return out
}

// comparePodSelector reports a Service or a PodDisruptionBudget that newly selects pods of others.
func comparePodSelector(c *comparison, p pair) {
	selects := func(o *Object) func(map[string]string) bool {
		if o == nil {
			return func(map[string]string) bool { return false }
		}
		if o.Key().Is("Service") {
			set := k8s.TextMap(o.Content, "spec", "selector")
			return func(have map[string]string) bool { return len(set) > 0 && matchesMap(set, have) }
		}
		s, ok := k8s.SelectorOf(k8s.Map(o.Content, "spec", "selector"))
		return func(have map[string]string) bool { return ok && s.Matches(labels.Set(have)) }
	}
	old, now := selects(p.before), selects(p.after)
	rule := "objects.foreign-reference"
	if p.after.Key().Is("Service") {
		rule = "network.service"
	}
	for _, o := range c.after.order {
		if o.Operator == "" || o.Key().Namespace != p.after.Key().Namespace || c.isOperator(o.Operator, p.after.Operator) {
			continue
		}
		for _, pod := range podsOf(o) {
			if have := k8s.TextMap(pod.meta, "labels"); now(have) && !old(have) {
				c.add(rule, p.after, Finding{Field: "spec.selector", After: formatValue(k8s.At(p.after.Content, "spec", "selector")), Message: fmt.Sprintf("selects the pods of %s, which does not belong to this operator", o.Ref()), path: fieldAt("spec", "selector"), explains: noField()})
			}
		}
	}
}

// compareNamespaceLabels reports a Namespace that a webhook or NetworkPolicy selects differently,
// because its labels change.
func compareNamespaceLabels(c *comparison, p pair) {
	if p.before == nil {
		return
	}
	name := p.after.Key().Name
	old, now := c.before.namespaceLabels(name), c.after.namespaceLabels(name)
	if reflect.DeepEqual(old, now) {
		return
	}
	for _, o := range c.after.order {
		if key := o.Key(); key.Group != k8s.AdmissionGroup && !key.Is(networkPolicyKind) {
			continue
		}
		differs := false
		forEachField(o.Content, "", func(_, field string, v any) {
			if s, ok := k8s.SelectorOf(asMap(v)); ok && field == "namespaceSelector" {
				differs = differs || s.Matches(labels.Set(old)) != s.Matches(labels.Set(now))
			}
		})
		if differs {
			at := fieldAt("metadata", "labels")
			c.add("network.namespace", p.after, Finding{Field: at.String(), Before: formatLabels(old), After: formatLabels(now), Message: fmt.Sprintf("%s selects the namespace by its labels", o.Ref()), path: at, explains: noField()})
		}
	}
}
