package render

import (
	"maps"
	"slices"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kobj"
)

const rbacGroup = "rbac.authorization.k8s.io"

// serviceAccounts makes an account for whoever has permissions or runs a
// Deployment, but for "default", which is always there.
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
		out = append(out, pulling(kobj.New("v1", "ServiceAccount", in.pin.Namespace, name), in.opt.ImagePullSecrets))
	}
	return out, nil
}

// deploymentAccount returns the account that a deployment's pods run as.
func deploymentAccount(d bundle.Deployment) string {
	pod := kobj.Map(d.Spec, "template", "spec")
	for _, key := range []string{"serviceAccountName", "serviceAccount"} {
		if name := kobj.Text(pod, key); name != "" {
			return name
		}
	}
	return "default"
}

// accounts returns the names of the ServiceAccounts that belong to the bundle.
func (in *install) accounts() map[string]bool {
	made, _ := serviceAccounts(in)
	out := map[string]bool{}
	for _, o := range made {
		out[o.Name()] = true
	}
	for _, o := range in.b.Objects {
		if o.Is("", "ServiceAccount") {
			out[o.Name()] = true
		}
	}
	return out
}

// pulling adds pull secrets to a ServiceAccount that does not name them.
func pulling(account Object, secrets []string) Object {
	if len(secrets) == 0 {
		return account
	}
	var refs []any
	have := map[string]bool{}
	for _, ref := range kobj.Items(account, "imagePullSecrets") {
		refs, have[kobj.Text(ref, "name")] = append(refs, ref), true
	}
	for _, name := range secrets {
		if !have[name] {
			refs = append(refs, map[string]any{"name": name})
		}
	}
	return kobj.With(account, refs, "imagePullSecrets")
}

// roles makes one role an account and place. What an operator may do in the
// namespaces it works in becomes Roles in its own namespace and in each that
// it watches; where it watches all, it becomes part of the ClusterRole.
func roles(in *install) ([]Object, error) {
	namespaced, cluster := byAccount(in.b.CSV.Permissions), byAccount(in.b.CSV.ClusterPerms)
	if in.all {
		for account, rules := range namespaced {
			cluster[account] = union(union(cluster[account], rules), []any{apiRule("", "namespaces", "", []string{"get", "list", "watch"})})
		}
		namespaced = nil
	}
	var out []Object
	for _, account := range slices.Sorted(maps.Keys(cluster)) {
		out = append(out, in.role("ClusterRole", "", in.globalName(account), cluster[account], account)...)
	}
	for _, account := range slices.Sorted(maps.Keys(namespaced)) {
		for _, ns := range in.namespaces() {
			out = append(out, in.role("Role", ns, in.nameIn(ns, account), namespaced[account], account)...)
		}
	}
	return out, nil
}

// byAccount gathers the rules of each account, in file order.
func byAccount(permissions []bundle.Permission) map[string][]any {
	out := map[string][]any{}
	for _, p := range permissions {
		out[p.Account()] = union(out[p.Account()], p.Rules)
	}
	return out
}

// union returns the list with what of more is not in it yet; never nil.
func union(list, more []any) []any {
	out := slices.Concat([]any{}, list)
	for _, rule := range more {
		if !slices.ContainsFunc(out, func(have any) bool { return kobj.Equal(have, rule) }) {
			out = append(out, rule)
		}
	}
	return out
}

// role returns a Role or ClusterRole and the binding that gives it to accounts
// of the install namespace.
func (in *install) role(kind, namespace, name string, rules []any, accounts ...string) []Object {
	role := kobj.New(rbacGroup+"/v1", kind, namespace, name)
	role["rules"] = rules
	return []Object{role, binding(kind, namespace, name, name, in.pin.Namespace, accounts...)}
}

// binding returns the RoleBinding or ClusterRoleBinding that gives a role of
// kind roleKind to accounts of the namespace home. Without a namespace it is a
// ClusterRoleBinding.
func binding(roleKind, namespace, name, role, home string, accounts ...string) Object {
	kind := "RoleBinding"
	if namespace == "" {
		kind = "ClusterRoleBinding"
	}
	o := kobj.New(rbacGroup+"/v1", kind, namespace, name)
	o["roleRef"] = map[string]any{"apiGroup": rbacGroup, "kind": roleKind, "name": role}
	subjects := make([]any, len(accounts))
	for i, account := range accounts {
		subjects[i] = map[string]any{"kind": "ServiceAccount", "name": account, "namespace": home}
	}
	o["subjects"] = subjects
	return o
}
