package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// PermissionRule is a set of permitted verbs on objects of one resource.
type PermissionRule struct {
	Namespace string   // empty: the whole cluster
	Group     string   // empty: the core group
	Resource  string   // "deployments"
	Names     []string // sorted; empty: all
	Verbs     []string // sorted
}

// scope identifies the objects of a permission. An empty name means all objects.
type scope struct{ namespace, group, resource, name string }

// permissionSet contains the permitted verbs for each scope.
type permissionSet map[scope]map[string]bool

func (r permissionSet) add(s scope, verbs ...string) {
	if r[s] == nil {
		r[s] = map[string]bool{}
	}
	for _, verb := range verbs {
		r[s][verb] = true
	}
}

// scopeOf returns the scope that contains only one object.
func scopeOf(r k8s.Ref) scope {
	group := k8s.Group(r.APIVersion)
	return scope{r.Namespace, group, k8s.Resource(group, r.Kind), r.Name}
}

// Rules returns exactly the permissions that are needed to execute a plan, to check the results, and to return
// to OLM. rendered contains the objects to apply. To apply a role or binding, one needs the permission to grant
// its permissions. The rules are sorted by namespace, group, resource and names. The resource of a custom
// resource is assumed to be the plural of its kind.
//
// seen is the snapshot that the plan was made from, or nil once a step has begun. Before the first step, the
// plan is made again from the cluster. Rules then adds the permissions to list the kinds of the snapshot.
func Rules(p *Plan, rendered []k8s.Object, seen *snapshot.Snapshot) []PermissionRule {
	tree := map[k8s.Key]k8s.Object{}
	for _, o := range rendered {
		tree[o.Key()] = o
	}
	r := permissionSet{}
	r.add(scope{"", "", "namespaces", "kube-system"}, "get")
	if seen != nil {
		r.addDerivation(p, seen)
	}
	for _, s := range p.State {
		r.add(scopeOf(s.Object), "get")
	}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			r.addAction(a, tree[a.Object.Key()])
		}
		r.addChecks(s)
	}
	return r.rules()
}

// addDerivation adds the permissions to list all kinds that are needed to make the plan again.
func (r permissionSet) addDerivation(p *Plan, seen *snapshot.Snapshot) {
	for _, k := range seen.ListedKinds() {
		of := scope{"", k.Group, k8s.Resource(k.Group, k.Kind), ""}
		if !k.IsConfidential() {
			r.add(of, "list")
			continue
		}
		for _, of.namespace = range p.ConfidentialNamespaces() {
			r.add(of, "list")
		}
	}
}

// addAction adds the permissions to execute an action and to undo it.
func (r permissionSet) addAction(a Action, rendered k8s.Object) {
	of, v := scopeOf(a.Object), verbs()[a.Do]
	r.add(of, v.permissions...)
	if v.canCreate && (a.UID == "" || a.Do == Create) {
		all := of
		all.name = ""
		r.add(all, "create")
	}
	if a.Do == Apply || a.Do == Restore {
		r.addGrants(of, rendered)
	}
	for _, undo := range undos(a) {
		if undo.Do != a.Do {
			r.addAction(undo, rendered)
		}
	}
}

// addGrants adds the permission to grant the permissions of o: escalate for a role, or bind for a binding.
func (r permissionSet) addGrants(of scope, o k8s.Object) {
	switch {
	case of.group != k8s.RBACGroup:
	case of.resource == "roles", of.resource == "clusterroles":
		r.add(of, "escalate")
	default:
		role := scope{of.namespace, k8s.RBACGroup, k8s.Resource(k8s.RBACGroup, k8s.Text(o, "roleRef", "kind")), k8s.Text(o, "roleRef", "name")}
		r.add(role, "bind")
	}
}

// addChecks adds the permissions to read the objects for the checks of a step.
func (r permissionSet) addChecks(s Step) {
	for _, c := range slices.Concat(s.Before, s.After) {
		for _, ref := range c.Objects {
			r.add(scopeOf(ref), "get")
		}
		if c.Check == IsStopped || c.Check == IsReady {
			for _, ref := range c.Objects {
				r.add(scope{ref.Namespace, "", "pods", ""}, "list")
			}
		}
	}
	if s.Namespace == "" {
		return
	}
	if s.Name == Forget || s.Name == Backup {
		for _, a := range s.Actions {
			if snapshot.IsReleaseRecord(a.Object.Key()) {
				r.add(scope{a.Object.Namespace, "", "secrets", ""}, "list")
			}
		}
	}
	r.add(scope{s.Namespace, "", "pods", ""}, "list")
	r.add(scope{s.Namespace, "apps", "replicasets", ""}, "list")
	r.add(scope{s.Namespace, k8s.OLMGroup, "operatorgroups", ""}, "list")
	r.add(scope{s.Namespace, k8s.OLMGroup, "installplans", ""}, "list")
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		r.add(scope{"", k8s.RBACGroup, resource, ""}, "list")
	}
	r.add(scope{"", "authorization.k8s.io", "subjectaccessreviews", ""}, "create")
}

// rules returns the permissions as rules. Objects of one resource with the same verbs are in one rule.
func (r permissionSet) rules() []PermissionRule {
	type group struct {
		scope
		verbs string
	}
	names := map[group][]string{}
	for s, verbs := range r {
		g := group{s, strings.Join(slices.Sorted(maps.Keys(verbs)), " ")}
		if g.name = ""; s.name == "" {
			g.verbs = "* " + g.verbs // keeps this rule apart from rules with names
		}
		names[g] = append(names[g], s.name)
	}
	var out []PermissionRule
	for g, list := range names {
		verbs, all := strings.CutPrefix(g.verbs, "* ")
		rule := PermissionRule{Namespace: g.namespace, Group: g.group, Resource: g.resource, Verbs: strings.Split(verbs, " ")}
		if slices.Sort(list); !all {
			rule.Names = list
		}
		out = append(out, rule)
	}
	slices.SortFunc(out, func(a, b PermissionRule) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
			slices.Compare(a.Names, b.Names), slices.Compare(a.Verbs, b.Verbs))
	})
	return out
}

// Roles converts rules to a ClusterRole for the whole cluster and a Role for each namespace. All of them have
// the given name. The rules must be sorted by namespace.
func Roles(name string, rules []PermissionRule) []k8s.Object {
	var out []k8s.Object
	for i, r := range rules {
		if i == 0 || r.Namespace != rules[i-1].Namespace {
			kind := "Role"
			if r.Namespace == "" {
				kind = "ClusterRole"
			}
			out = append(out, k8s.New(k8s.RBACGroup+"/v1", kind, r.Namespace, name))
		}
		rule := map[string]any{"apiGroups": k8s.Values(r.Group), "resources": k8s.Values(r.Resource), "verbs": k8s.Values(r.Verbs...)}
		if len(r.Names) > 0 {
			rule["resourceNames"] = k8s.Values(r.Names...)
		}
		o := out[len(out)-1]
		o["rules"] = append(k8s.List(o, "rules"), rule)
	}
	return out
}
