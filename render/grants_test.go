package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/internal/k8s"
)

// grant is one permission of an account.
type grant struct {
	account                     string
	verb, group, resource, name string
	nonResource                 string
	namespace                   string // empty: all namespaces
}

func (g grant) compare(h grant) int {
	return cmp.Or(strings.Compare(g.account, h.account), strings.Compare(g.namespace, h.namespace), strings.Compare(g.group, h.group),
		strings.Compare(g.resource, h.resource), strings.Compare(g.name, h.name), strings.Compare(g.nonResource, h.nonResource), strings.Compare(g.verb, h.verb))
}

// grants returns all permissions that the objects give to accounts of the install namespace.
func grants(objects []Object) map[grant]bool {
	rules := map[[2]string][]map[string]any{}
	accounts := map[string]bool{"default": true}
	for _, o := range objects {
		if o.Is(k8s.RBACGroup, "Role") || o.Is(k8s.RBACGroup, "ClusterRole") {
			rules[[2]string{o.Namespace(), o.Name()}] = k8s.Items(o, "rules")
		}
		if o.Is("", "ServiceAccount") {
			accounts[o.Name()] = true
		}
	}
	out := map[grant]bool{}
	for _, o := range objects {
		if !o.Is(k8s.RBACGroup, "RoleBinding") && !o.Is(k8s.RBACGroup, "ClusterRoleBinding") {
			continue
		}
		ref := k8s.Map(o, "roleRef")
		where, bound := o.Namespace(), o.Namespace()
		if o.Kind() == "ClusterRoleBinding" {
			bound = ""
		}
		if k8s.Text(ref, "kind") == "ClusterRole" {
			where = ""
		}
		for _, s := range k8s.Items(o, "subjects") {
			if k8s.Text(s, "kind") == "ServiceAccount" && accounts[k8s.Text(s, "name")] {
				addGrants(out, k8s.Text(s, "name"), bound, rules[[2]string{where, k8s.Text(ref, "name")}])
			}
		}
	}
	return out
}

func addGrants(out map[grant]bool, account, namespace string, rules []map[string]any) {
	each := func(m map[string]any, key string) []string {
		var list []string
		values, _ := m[key].([]any)
		for _, v := range values {
			list = append(list, fmt.Sprint(v))
		}
		if len(list) == 0 {
			return []string{""}
		}
		return list
	}
	for _, rule := range rules {
		for _, verb := range each(rule, "verbs") {
			if urls := each(rule, "nonResourceURLs"); urls[0] != "" {
				for _, url := range urls {
					out[grant{account: account, verb: verb, nonResource: url, namespace: namespace}] = true
				}
				continue
			}
			for _, group := range each(rule, "apiGroups") {
				for _, resource := range each(rule, "resources") {
					for _, name := range each(rule, "resourceNames") {
						out[grant{account: account, verb: verb, group: group, resource: resource, name: name, namespace: namespace}] = true
					}
				}
			}
		}
	}
}

// compareGrants checks that quayside's objects (got) and the reference (want) give each account the same
// permissions. It ignores Roles that only quayside has: in the install namespace and for the OperatorCondition.
func compareGrants(t *testing.T, namespace string, got, want []Object) {
	t.Helper()
	g, w := grants(got), grants(want)
	for _, x := range slices.SortedFunc(maps.Keys(w), grant.compare) {
		if !g[x] {
			t.Errorf("granted only by the reference: %+v", x)
		}
	}
	for _, x := range slices.SortedFunc(maps.Keys(g), grant.compare) {
		if !w[x] && x.namespace != namespace && !(x.group == k8s.OLMGroup && x.resource == "operatorconditions") {
			t.Errorf("granted only by quayside: %+v", x)
		}
	}
}
