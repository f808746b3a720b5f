package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quayside/quayside/api/v1alpha1"
	"github.com/quayside/quayside/internal/k8s"
)

// reporterRole returns the ClusterRole of the reporter. It permits reading Installations and pods,
// and writing Events and the status of Installations.
func reporterRole() Object {
	o := k8s.New(k8s.RBACGroup+"/v1", "ClusterRole", "", reporterName)
	o["rules"] = []any{
		apiRule("", "pods", "", []string{"get", "list", "watch"}),
		map[string]any{"apiGroups": k8s.Values("", "events.k8s.io"), "resources": k8s.Values("events"), "verbs": k8s.Values("create", "patch")},
		apiRule(v1alpha1.Group, v1alpha1.Resource, "", []string{"get", "list", "watch"}),
		apiRule(v1alpha1.Group, v1alpha1.Resource+"/status", "", []string{"update", "patch"}),
	}
	return o
}

// roles returns a ClusterRole that permits reading the kinds of objects in an Installation, and a binding that
// grants it to the reporter. The role omits confidential kinds. If no kind remains, the result is nil.
func (r *Reporter) roles(in Installation, plurals map[[2]string]string) []Object {
	resources := map[string]map[string]bool{} // resource names by group
	for _, ref := range in.Spec.Objects {
		group := k8s.Group(ref.APIVersion)
		resource := cmp.Or(plurals[[2]string{group, ref.Kind}], k8s.Resource(group, ref.Kind))
		if resource == "" || isConfidential(ref) {
			continue
		}
		if resources[group] == nil {
			resources[group] = map[string]bool{}
		}
		resources[group][resource] = true
	}
	if len(resources) == 0 {
		return nil
	}
	name := k8s.Fit(reporterName+"."+in.Namespace+"."+in.Spec.Package, k8s.MaxSubdomain)
	o := k8s.New(k8s.RBACGroup+"/v1", "ClusterRole", "", name)
	var rules []any
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		rules = append(rules, map[string]any{
			"apiGroups": k8s.Values(group), "resources": k8s.Values(slices.Sorted(maps.Keys(resources[group]))...), "verbs": k8s.Values("get", "list", "watch"),
		})
	}
	o["rules"] = rules
	return []Object{o, newBinding("ClusterRole", "", name, name, r.Namespace, reporterName)}
}

// plurals returns the resource names of the kinds that CRDs of the tree define, by group and kind.
// It omits invalid CRDs.
func (t *tree) plurals() map[[2]string]string {
	if t.pluralCache != nil {
		return t.pluralCache
	}
	out := map[[2]string]string{}
	for _, r := range t.objects {
		if !k8s.IsCRD(r.Object) {
			continue
		}
		if crd := k8s.ParseCRD(r.Object); len(crd.Faults()) == 0 {
			out[[2]string{crd.Group, crd.Kind}] = crd.Plural
		}
	}
	t.pluralCache = out
	return out
}
