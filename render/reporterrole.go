package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// reporterRole returns the right to read what the installations name, and
// nothing else but the pods that their workloads run in; to write the status
// of Installations, and events.
func (t *tree) reporterRole(all []Installation) Object {
	read := []string{"get", "list", "watch"}
	resources := map[string]map[string]bool{"": {}} // by group
	named := t.plurals()
	for _, in := range all {
		for _, ref := range in.Spec.Objects {
			group := kobj.Group(ref.APIVersion)
			resource := cmp.Or(named[[2]string{group, ref.Kind}], kinds.Resource(group, ref.Kind))
			if resource == "" || confidential(ref) {
				continue
			}
			if resources[group] == nil {
				resources[group] = map[string]bool{}
			}
			resources[group][resource] = true
		}
	}
	var rules []any
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		names := slices.Sorted(maps.Keys(resources[group]))
		if len(names) > 0 {
			rules = append(rules, map[string]any{"apiGroups": kobj.Values(group), "resources": kobj.Values(names...), "verbs": kobj.Values(read...)})
		}
	}
	if !resources[""]["pods"] {
		rules = append(rules, apiRule("", "pods", "", []string{"get", "list"}))
	}
	o := kobj.New(rbacGroup+"/v1", "ClusterRole", "", reporterName)
	o["rules"] = append(rules,
		map[string]any{"apiGroups": kobj.Values("", "events.k8s.io"), "resources": kobj.Values("events"), "verbs": kobj.Values("create", "patch")},
		apiRule(v1alpha1.Group, v1alpha1.Resource, "", read),
		apiRule(v1alpha1.Group, v1alpha1.Resource+"/status", "", []string{"update", "patch"}),
	)
	return o
}

// plurals returns the resources that the CRDs of the tree name, by group and
// kind: of those that an API server takes.
func (t *tree) plurals() map[[2]string]string {
	out := map[[2]string]string{}
	for _, r := range t.objects {
		if !kobj.IsCRD(r.Object) {
			continue
		}
		if crd := kinds.Define(r.Object); len(crd.Faults()) == 0 {
			out[[2]string{crd.Group, crd.Kind}] = crd.Plural
		}
	}
	return out
}
