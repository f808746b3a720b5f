package rbac

import "slices"

func str(v any) string { s, _ := v.(string); return s }

func strs(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func maps1(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, e := range list {
		if m, ok := e.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

func newRole(o, meta map[string]any) *role {
	r := &role{labels: labels(meta["labels"])}
	if agg, ok := o["aggregationRule"].(map[string]any); ok {
		// The API server overwrites the rules of an aggregated role.
		for _, s := range maps1(agg["clusterRoleSelectors"]) {
			r.adds = append(r.adds, newSelector(s))
		}
		return r
	}
	for _, one := range maps1(o["rules"]) {
		r.rules = append(r.rules, newRule(one))
	}
	return r
}

func newRule(m map[string]any) rule {
	r := rule{
		verbs: strs(m["verbs"]), groups: strs(m["apiGroups"]), resources: strs(m["resources"]),
		names: strs(m["resourceNames"]), urls: strs(m["nonResourceURLs"]),
	}
	if len(r.names) == 0 {
		r.names = []string{""}
	}
	return r
}

func labels(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, e := range m {
		out[k] = str(e)
	}
	return out
}

// subjects returns those of a binding. A ServiceAccount without a namespace is
// in the binding's.
func subjects(b map[string]any, namespace string) []Subject {
	var out []Subject
	for _, m := range maps1(b["subjects"]) {
		s := Subject{Kind: str(m["kind"]), Name: str(m["name"])}
		if s.Kind == "ServiceAccount" {
			if s.Namespace = str(m["namespace"]); s.Namespace == "" {
				s.Namespace = namespace
			}
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// selector is a label selector.
type selector struct {
	equal map[string]string
	exprs []expr
}

type expr struct {
	key, operator string
	values        []string
}

func newSelector(m map[string]any) selector {
	s := selector{equal: labels(m["matchLabels"])}
	for _, e := range maps1(m["matchExpressions"]) {
		s.exprs = append(s.exprs, expr{str(e["key"]), str(e["operator"]), strs(e["values"])})
	}
	return s
}

// matches reports whether the labels satisfy every part; an empty selector
// matches everything, as in the API server.
func (s selector) matches(have map[string]string) bool {
	for k, v := range s.equal {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	for _, e := range s.exprs {
		got, ok := have[e.key]
		in := ok && slices.Contains(e.values, got)
		switch e.operator {
		case "In":
			ok = in
		case "NotIn":
			ok = !in
		case "DoesNotExist":
			ok = !ok
		case "Exists":
		default:
			return false
		}
		if !ok {
			return false
		}
	}
	return true
}

// wellKnown returns the rules of roles that every API server has and that do
// not depend on what is installed (kubernetes
// plugin/pkg/auth/authorizer/rbac/bootstrappolicy).
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
