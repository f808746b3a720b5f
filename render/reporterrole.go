package render

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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
			o := Object{"apiVersion": ref.APIVersion, "kind": ref.Kind}
			if secret(ref) {
				continue
			}
			if resources[o.Group()] == nil {
				resources[o.Group()] = map[string]bool{}
			}
			resources[o.Group()][cmp.Or(named[o.Group()+"/"+o.Kind()], plural(o.Kind()))] = true
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

// plurals returns the resources that the CRDs of the tree name, by
// "group/Kind".
func (t *tree) plurals() map[string]string {
	out := map[string]string{}
	for _, r := range t.objects {
		if spec := kobj.Map(r.Object, "spec"); kobj.IsCRD(r.Object) {
			out[kobj.Text(spec, "group")+"/"+kobj.Text(spec, "names", "kind")] = kobj.Text(spec, "names", "plural")
		}
	}
	return out
}

// plural returns the resource of a kind as the API server and everyone's
// generators name it.
func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case slices.Contains([]string{"endpoints", "securitycontextconstraints"}, name):
		return name
	case strings.HasSuffix(name, "s"), strings.HasSuffix(name, "x"), strings.HasSuffix(name, "ch"), strings.HasSuffix(name, "sh"):
		return name + "es"
	case strings.HasSuffix(name, "y") && !strings.ContainsAny(name[max(0, len(name)-2):len(name)-1], "aeiou"):
		return name[:len(name)-1] + "ies"
	default:
		return name + "s"
	}
}
