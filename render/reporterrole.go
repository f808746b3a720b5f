package render

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/report/v1alpha1"
)

// reporterRole returns the right of the reporter to read Installations and the pods
// that workloads run in, and to write the status of Installations, and events.
func reporterRole() Object {
	o := kobj.New(rbacGroup+"/v1", "ClusterRole", "", reporterName)
	o["rules"] = []any{
		apiRule("", "pods", "", []string{"get", "list", "watch"}),
		map[string]any{"apiGroups": kobj.Values("", "events.k8s.io"), "resources": kobj.Values("events"), "verbs": kobj.Values("create", "patch")},
		apiRule(v1alpha1.Group, v1alpha1.Resource, "", []string{"get", "list", "watch"}),
		apiRule(v1alpha1.Group, v1alpha1.Resource+"/status", "", []string{"update", "patch"}),
	}
	return o
}

// reporterRoles returns the right to read what an installation names, and nothing
// else, given to the reporter; none where it names nothing.
func (t *tree) reporterRoles(in Installation) []Object {
	resources := map[string]map[string]bool{} // by group
	named := t.plurals()
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
	if len(resources) == 0 {
		return nil
	}
	name := kobj.Fit(reporterName+"."+in.Namespace+"."+in.Spec.Package, kobj.MaxSubdomain)
	o := kobj.New(rbacGroup+"/v1", "ClusterRole", "", name)
	var rules []any
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		rules = append(rules, map[string]any{
			"apiGroups": kobj.Values(group), "resources": kobj.Values(slices.Sorted(maps.Keys(resources[group]))...), "verbs": kobj.Values("get", "list", "watch"),
		})
	}
	o["rules"] = rules
	return []Object{o, binding("ClusterRole", "", name, name, t.opt.Reporter.Namespace, reporterName)}
}

// plurals returns the resources that the CRDs of the tree name, by group and
// kind: of those that an API server takes.
func (t *tree) plurals() map[[2]string]string {
	if t.plural != nil {
		return t.plural
	}
	out := map[[2]string]string{}
	for _, r := range t.objects {
		if !kobj.IsCRD(r.Object) {
			continue
		}
		if crd := kinds.Define(r.Object); len(crd.Faults()) == 0 {
			out[[2]string{crd.Group, crd.Kind}] = crd.Plural
		}
	}
	t.plural = out
	return out
}
