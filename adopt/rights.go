package adopt

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// right is what an operator may do with one of OLM's resources.
type right struct{ verb, resource string }

func (r right) String() string { return r.verb + " " + r.resource }

// writes returns the verbs that change something.
func writes() []string {
	return []string{"create", "update", "patch", "delete", "deletecollection", "*"}
}

// rights returns what the ServiceAccounts of an operator may do with OLM's
// resources by their names, sorted: a right to everything is none to OLM's.
func rights(objects []kobj.Object) []right {
	bound := map[[3]string]bool{} // kind, namespace and name of roles
	for _, o := range objects {
		if !o.Is(rbacGroup, "RoleBinding") && !o.Is(rbacGroup, "ClusterRoleBinding") {
			continue
		}
		role := [3]string{kobj.Text(o, "roleRef", "kind"), "", kobj.Text(o, "roleRef", "name")}
		if role[0] == "Role" {
			role[1] = o.Namespace()
		}
		bound[role] = true
	}
	found := map[right]bool{}
	for _, o := range objects {
		if !bound[[3]string{o.Kind(), o.Namespace(), o.Name()}] {
			continue
		}
		for _, rule := range kobj.Items(o, "rules") {
			if !slices.Contains(kobj.Texts(rule, "apiGroups"), snapshot.OLM) {
				continue
			}
			for _, resource := range kobj.Texts(rule, "resources") {
				for _, verb := range kobj.Texts(rule, "verbs") {
					found[right{verb, resource}] = true
				}
			}
		}
	}
	var out []right
	for r := range found {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b right) int { return strings.Compare(a.resource+" "+a.verb, b.resource+" "+b.verb) })
	return out
}
