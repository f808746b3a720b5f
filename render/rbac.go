package render

import (
	"maps"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
)

// serviceAccounts generates the ServiceAccounts that the CSV grants permissions to, and the ServiceAccounts
// of its Deployments. It omits "default", which every namespace has.
func serviceAccounts(in *install) ([]Object, error) {
	names := map[string]bool{}
	for _, p := range slices.Concat(in.b.CSV.Permissions, in.b.CSV.ClusterPerms) {
		names[p.Account()] = true
	}
	for _, d := range in.b.CSV.Deployments {
		names[deploymentAccount(d)] = true
	}
	delete(names, "default")
	var out []Object
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, withPullSecrets(k8s.New("v1", "ServiceAccount", in.pin.Namespace, name), in.opt.ImagePullSecrets))
	}
	return out, nil
}

// deploymentAccount returns the name of the ServiceAccount that a Deployment's pods use.
func deploymentAccount(d bundle.Deployment) string {
	pod := k8s.Map(d.Spec, "template", "spec")
	for _, key := range []string{"serviceAccountName", "serviceAccount"} {
		if name := k8s.Text(pod, key); name != "" {
			return name
		}
	}
	return "default"
}

// accounts returns the names of the ServiceAccounts that the bundle generates or ships.
func (in *install) accounts() map[string]bool {
	generated, _ := serviceAccounts(in)
	out := map[string]bool{}
	for _, o := range generated {
		out[o.Name()] = true
	}
	for _, o := range in.b.Objects {
		if o.Is("", "ServiceAccount") {
			out[o.Name()] = true
		}
	}
	return out
}

// withPullSecrets returns a ServiceAccount with additional image pull secrets.
func withPullSecrets(account Object, secrets []string) Object {
	if len(secrets) == 0 {
		return account
	}
	var refs []any
	have := map[string]bool{}
	for _, ref := range k8s.Items(account, "imagePullSecrets") {
		refs, have[k8s.Text(ref, "name")] = append(refs, ref), true
	}
	for _, name := range secrets {
		if !have[name] {
			refs = append(refs, map[string]any{"name": name})
		}
	}
	return k8s.With(account, refs, "imagePullSecrets")
}

// renderRoles generates the roles of each account. Namespaced permissions of the CSV become Roles in the
// install namespace and in each watched namespace. If the operator watches all namespaces, these permissions
// become part of the ClusterRole instead.
func renderRoles(in *install) ([]Object, error) {
	namespaced, cluster := rulesByAccount(in.b.CSV.Permissions), rulesByAccount(in.b.CSV.ClusterPerms)
	if in.watchesAll {
		for account, rules := range namespaced {
			cluster[account] = mergeLists(mergeLists(cluster[account], rules), []any{apiRule("", "namespaces", "", []string{"get", "list", "watch"})})
		}
		namespaced = nil
	}
	var out []Object
	for _, account := range slices.Sorted(maps.Keys(cluster)) {
		out = append(out, in.roleWithBinding("ClusterRole", "", in.globalName(account), cluster[account], account)...)
	}
	for _, account := range slices.Sorted(maps.Keys(namespaced)) {
		for _, ns := range in.namespaces() {
			out = append(out, in.roleWithBinding("Role", ns, in.nameIn(ns, account), namespaced[account], account)...)
		}
	}
	return out, nil
}

// rulesByAccount returns the RBAC rules by account. The rules of an account are in the order of the CSV.
func rulesByAccount(permissions []bundle.Permission) map[string][]any {
	out := map[string][]any{}
	for _, p := range permissions {
		out[p.Account()] = mergeLists(out[p.Account()], p.Rules)
	}
	return out
}

// mergeLists returns a new list with the items of list, and then the items in more that list does not contain.
// It never returns nil.
func mergeLists(list, more []any) []any {
	out := slices.Concat([]any{}, list)
	for _, rule := range more {
		if !slices.ContainsFunc(out, func(have any) bool { return k8s.Equal(have, rule) }) {
			out = append(out, rule)
		}
	}
	return out
}

// roleWithBinding returns a Role or ClusterRole, and its binding to accounts in the install namespace.
func (in *install) roleWithBinding(kind, namespace, name string, rules []any, accounts ...string) []Object {
	role := k8s.New(k8s.RBACGroup+"/v1", kind, namespace, name)
	role["rules"] = rules
	return []Object{role, newBinding(kind, namespace, name, name, in.pin.Namespace, accounts...)}
}

// newBinding returns a RoleBinding of a role to accounts in accountNamespace. If namespace is
// empty, it returns a ClusterRoleBinding.
func newBinding(roleKind, namespace, name, role, accountNamespace string, accounts ...string) Object {
	kind := "RoleBinding"
	if namespace == "" {
		kind = "ClusterRoleBinding"
	}
	o := k8s.New(k8s.RBACGroup+"/v1", kind, namespace, name)
	o["roleRef"] = map[string]any{"apiGroup": k8s.RBACGroup, "kind": roleKind, "name": role}
	subjects := make([]any, len(accounts))
	for i, account := range accounts {
		subjects[i] = map[string]any{"kind": "ServiceAccount", "name": account, "namespace": accountNamespace}
	}
	o["subjects"] = subjects
	return o
}
