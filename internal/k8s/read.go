package k8s

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

func newRole(o map[string]any) *role {
	r := &role{labels: TextMap(o, "metadata", "labels"), aggregated: Text(o, "kind") == "ClusterRole" && Map(o, "aggregationRule") != nil}
	for _, s := range Items(o, "aggregationRule", "clusterRoleSelectors") {
		if selects, ok := SelectorOf(s); ok && r.aggregated {
			r.aggregates = append(r.aggregates, selects)
		}
	}
	for _, one := range Items(o, "rules") {
		r.rules = append(r.rules, newRule(one))
	}
	return r
}

// merge adds to r the rules and selectors of another role with the same name, and returns r. other may be
// nil.
func (r *role) merge(other *role) *role {
	if other == nil {
		return r
	}
	all := map[string]string{}
	maps.Copy(all, other.labels)
	maps.Copy(all, r.labels)
	return &role{
		rules: slices.Concat(other.rules, r.rules), labels: all,
		aggregated: r.aggregated || other.aggregated, aggregates: slices.Concat(other.aggregates, r.aggregates),
	}
}

// selects reports whether the role aggregates roles that have these labels.
func (r *role) selects(have map[string]string) bool {
	return slices.ContainsFunc(r.aggregates, func(s labels.Selector) bool { return s.Matches(labels.Set(have)) })
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

// BindingSubjects returns the subjects of a binding, without duplicates.
func BindingSubjects(b map[string]any) []Subject {
	var out []Subject
	for _, m := range Items(b, "subjects") {
		if s := SubjectIn(Text(b, "metadata", "namespace"), m); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// SubjectIn decodes an element of the subjects of a binding. namespace is the namespace of the binding: a
// ServiceAccount without a namespace gets it.
func SubjectIn(namespace string, m map[string]any) Subject {
	s := Subject{Kind: Text(m, "kind"), Name: Text(m, "name")}
	if s.Kind == "ServiceAccount" {
		s.Namespace = cmp.Or(Text(m, "namespace"), namespace)
	}
	return s
}

// BoundRole returns the key of the role that a binding refers to.
func BoundRole(binding Object) Key {
	role := Key{Group: RBACGroup, Kind: Text(binding, "roleRef", "kind"), Name: Text(binding, "roleRef", "name")}
	if role.Kind == "Role" {
		role.Namespace = binding.Namespace()
	}
	return role
}

// builtinRoleRules returns the rules of a role that every API server has, independent of installed
// components. It returns false for other roles.
func builtinRoleRules(id roleID) ([]rule, bool) {
	r := defaultRoles()[id]
	if r == nil || r.aggregated {
		return nil, false
	}
	return slices.Clone(r.rules), true
}
