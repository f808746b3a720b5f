package k8s

import (
	"slices"
)

func newRole(o map[string]any) *role {
	r := &role{labels: TextMap(o, "metadata", "labels")}
	if Map(o, "aggregationRule") != nil {
		// The API server overwrites the rules of an aggregated role.
		for _, s := range Items(o, "aggregationRule", "clusterRoleSelectors") {
			if selects, ok := SelectorOf(s); ok {
				r.aggregates = append(r.aggregates, selects)
			}
		}
		return r
	}
	for _, one := range Items(o, "rules") {
		r.rules = append(r.rules, newRule(one))
	}
	return r
}

func newRule(m map[string]any) rule {
	set := func(field string) []string {
		list := Texts(m, field)
		slices.Sort(list)
		return slices.Compact(list)
	}
	r := rule{verbs: set("verbs"), groups: set("apiGroups"), resources: set("resources"), names: set("resourceNames"), urls: set("nonResourceURLs")}
	if len(r.names) == 0 {
		r.names = []string{""}
	}
	return r
}

// bindingSubjects returns the subjects of a binding. A ServiceAccount without a namespace is in the
// namespace of the binding.
func bindingSubjects(b map[string]any) []Subject {
	var out []Subject
	for _, m := range Items(b, "subjects") {
		s := Subject{Kind: Text(m, "kind"), Name: Text(m, "name")}
		if s.Kind == "ServiceAccount" {
			if s.Namespace = Text(m, "namespace"); s.Namespace == "" {
				s.Namespace = Text(b, "metadata", "namespace")
			}
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// wellKnown returns the rules of roles that exist in every cluster and do not depend on
// installed components (kubernetes plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
func wellKnown(id roleID) ([]rule, bool) {
	one := func(group, resource string, verbs ...string) rule {
		return rule{verbs: verbs, groups: []string{group}, resources: []string{resource}, names: []string{""}}
	}
	switch id {
	case roleID{"", "cluster-admin"}:
		return []rule{one("*", "*", "*"), {verbs: []string{"*"}, urls: []string{"*"}}}, true
	case roleID{"", "system:auth-delegator"}:
		return []rule{
			one("authentication.k8s.io", "tokenreviews", "create"),
			one("authorization.k8s.io", "subjectaccessreviews", "create"),
		}, true
	case roleID{"kube-system", "extension-apiserver-authentication-reader"}:
		r := one("", "configmaps", "get", "list", "watch")
		r.names = []string{"extension-apiserver-authentication"}
		return []rule{r}, true
	}
	return nil, false
}
