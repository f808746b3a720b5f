package diff

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/k8s"
)

// unboundRoles returns the added and changed roles that have no binding in at least one state that contains
// them: somebody else may bind them. It omits roles that are aggregated into another role by labels, because
// their permissions are compared for the subjects of the other role.
func unboundRoles(c *comparison) []k8s.Key {
	bound := func(v *view) map[k8s.Key]bool {
		out := map[k8s.Key]bool{}
		_, defaults := k8s.DefaultRBAC()
		objects := slices.Clone(defaults)
		for _, o := range v.order {
			objects = append(objects, o.Content)
		}
		for i := range v.Resources {
			objects = append(objects, v.Resources[i].Content)
		}
		for _, o := range objects {
			if k8s.Text(o, "roleRef", "name") != "" {
				out[k8s.BoundRole(o)] = true
			}
		}
		for grows := true; grows; { // the subjects of a bound role also get the permissions of the roles that it aggregates
			n := len(out)
			for _, o := range objects {
				if out[k8s.Object(o).Key()] {
					addAggregated(out, o, objects)
				}
			}
			grows = len(out) > n
		}
		return out
	}
	before, after := bound(c.before), bound(c.after)
	var out []k8s.Key
	c.each(func(p pair) {
		key := p.object().Key()
		isBound := (p.before == nil || before[key]) && after[key]
		if p.after != nil && !isBound && len(aggregatesTo(p.after)) == 0 {
			out = append(out, key)
		}
	}, "Role"+rbacSuffix, "ClusterRole"+rbacSuffix)
	return out
}

// addAggregated finds the ClusterRoles in objects that the aggregation rule of role selects, and adds them to roles.
func addAggregated(roles map[k8s.Key]bool, role map[string]any, objects []map[string]any) {
	for _, m := range k8s.Items(role, "aggregationRule", "clusterRoleSelectors") {
		selector, ok := k8s.SelectorOf(m)
		for _, o := range objects {
			if key := k8s.Object(o).Key(); ok && key.Is("ClusterRole"+rbacSuffix) && selector.Matches(labels.Set(k8s.TextMap(o, "metadata", "labels"))) {
				roles[key] = true
			}
		}
	}
}

const rbacSuffix = ".rbac.authorization.k8s.io"

// roleSubject returns the subject that stands for every subject bound to a role.
func roleSubject(role k8s.Key) k8s.Subject {
	return k8s.Subject{Kind: role.Kind, Name: strings.TrimPrefix(role.Namespace+"/"+role.Name, "/")}
}

// bindToItself returns a binding of a role to its roleSubject.
func bindToItself(role k8s.Key) map[string]any {
	s := roleSubject(role)
	return map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": role.Kind + "Binding", "metadata": map[string]any{"namespace": role.Namespace},
		"roleRef": map[string]any{"kind": role.Kind, "name": role.Name}, "subjects": []any{map[string]any{"kind": s.Kind, "name": s.Name}},
	}
}

// isRole reports whether a subject stands for every subject bound to a role.
func isRole(s k8s.Subject) bool { return s.Kind == "ClusterRole" || s.Kind == "Role" }

// isEveryone reports whether a subject stands for all users or all accounts of a cluster.
func isEveryone(s k8s.Subject) bool {
	switch s.Kind {
	case "Group":
		return slices.Contains([]string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:authenticated:oauth"}, s.Name)
	case "User":
		return s.Name == "system:anonymous"
	}
	return false
}

// roleNameSeverity rates the ordinary permissions of a role without a binding. The severity depends on the name
// of the role. It is High for a name of another operator, and Low for a name of the role's own operator. For
// other names it is Medium, because the cluster may contain a role with this name.
func (c *comparison) roleNameSeverity(o *Object) Severity {
	name := o.Key().Name
	plain := func(s string) string { return strings.NewReplacer("-", "", ":", "", ".", "").Replace(s) }
	_, own, _ := strings.Cut(o.Operator, "/")
	if was := c.before.byKey[o.Key()]; own != "" && strings.Contains(plain(name), plain(own)) || was != nil && c.isOperator(was.Operator, o.Operator) {
		return Low
	}
	for _, p := range slices.Concat(c.before.Pins, c.after.Pins) {
		if rest, is := strings.CutPrefix(name, p.Package); is && (rest == "" || strings.ContainsAny(rest[:1], "-:.")) {
			return High
		}
	}
	return Medium
}
