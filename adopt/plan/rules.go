package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

// Rule is a right to objects of one resource.
type Rule struct {
	Namespace string   // empty: in the whole cluster
	Group     string   // empty: the core group
	Resource  string   // "deployments"
	Names     []string // sorted; empty: whatever the name
	Verbs     []string // sorted
}

// scope is what a right is about; an empty name stands for all.
type scope struct{ namespace, group, resource, name string }

// rights are verbs by what they are about.
type rights map[scope]map[string]bool

func (r rights) give(s scope, verbs ...string) {
	if r[s] == nil {
		r[s] = map[string]bool{}
	}
	for _, verb := range verbs {
		r[s][verb] = true
	}
}

// scopeOf returns what a right to one object is about.
func scopeOf(r kobj.Ref) scope {
	group := kobj.Group(r.APIVersion)
	return scope{r.Namespace, group, kinds.Resource(group, r.Kind), r.Name}
}

// Rules returns the rights that it takes to do a plan's steps, to check what they
// did, and to go back to OLM, and no others; by namespace, group, resource and names.
// rendered is what is applied. Objects of roles take the right to give what these
// give. A resource of which only a definition knows the name has the usual one.
func Rules(p *Plan, rendered []kobj.Object) []Rule {
	tree := map[kobj.Key]kobj.Object{}
	for _, o := range rendered {
		tree[o.Key()] = o
	}
	r := rights{}
	r.give(scope{"", "", "namespaces", "kube-system"}, "get")
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			r.action(a, tree[a.Object.Key()])
		}
		r.checks(s)
	}
	return r.rules()
}

// action gives what it takes to do an action, and to undo it.
func (r rights) action(a Action, rendered kobj.Object) {
	v, _ := verbOf(a.Do)
	of := scopeOf(a.Object)
	all := of
	all.name = ""
	r.give(of, v.rights...)
	switch {
	case a.Do == Create, a.Do == Orphan && a.Object.Kind == "Subscription":
		r.give(all, "create")
	case a.Do == Apply && a.UID == "":
		r.give(all, "create")
		if !a.Object.HoldsOthers() {
			r.give(of, "delete")
		}
	}
	if a.Do == Apply || a.Do == Restore {
		r.grants(of, rendered)
	}
}

// grants gives the right to hand on what a role has, or what a binding binds to.
func (r rights) grants(of scope, o kobj.Object) {
	switch {
	case of.group != rbacGroup:
	case of.resource == "roles", of.resource == "clusterroles":
		r.give(of, "escalate")
	default:
		role := scope{of.namespace, rbacGroup, kinds.Resource(rbacGroup, kobj.Text(o, "roleRef", "kind")), kobj.Text(o, "roleRef", "name")}
		r.give(role, "bind")
	}
}

// checks gives what is read for the checks of a step.
func (r rights) checks(s Step) {
	for _, c := range slices.Concat(s.Before, s.After) {
		for _, ref := range c.Objects {
			r.give(scopeOf(ref), "get")
		}
		if c.Check == IsStopped || c.Check == IsReady {
			for _, ref := range c.Objects {
				r.give(scope{ref.Namespace, "", "pods", ""}, "list")
			}
		}
	}
	if s.Namespace == "" {
		return
	}
	r.give(scope{s.Namespace, "", "pods", ""}, "list")
	r.give(scope{s.Namespace, "apps", "replicasets", ""}, "list")
	r.give(scope{s.Namespace, snapshot.OLM, "operatorgroups", ""}, "list")
	r.give(scope{s.Namespace, snapshot.OLM, "installplans", ""}, "list")
	for _, resource := range []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"} {
		r.give(scope{"", rbacGroup, resource, ""}, "list")
	}
	r.give(scope{"", "authorization.k8s.io", "subjectaccessreviews", ""}, "create")
}

// rules returns the rights as rules: names of one resource that take the same are
// in one.
func (r rights) rules() []Rule {
	type group struct {
		scope
		verbs string
	}
	names := map[group][]string{}
	for s, verbs := range r {
		g := group{s, strings.Join(slices.Sorted(maps.Keys(verbs)), " ")}
		if g.name = ""; s.name == "" {
			g.verbs = "* " + g.verbs // not among those with names
		}
		names[g] = append(names[g], s.name)
	}
	var out []Rule
	for g, list := range names {
		verbs, all := strings.CutPrefix(g.verbs, "* ")
		rule := Rule{Namespace: g.namespace, Group: g.group, Resource: g.resource, Verbs: strings.Split(verbs, " ")}
		if slices.Sort(list); !all {
			rule.Names = list
		}
		out = append(out, rule)
	}
	slices.SortFunc(out, func(a, b Rule) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
			slices.Compare(a.Names, b.Names), slices.Compare(a.Verbs, b.Verbs))
	})
	return out
}

// Roles returns rules as a ClusterRole, and a Role for each namespace, all of one
// name, by namespace.
func Roles(name string, rules []Rule) []kobj.Object {
	var out []kobj.Object
	for i, r := range rules {
		if i == 0 || r.Namespace != rules[i-1].Namespace {
			kind := "Role"
			if r.Namespace == "" {
				kind = "ClusterRole"
			}
			out = append(out, kobj.New(rbacGroup+"/v1", kind, r.Namespace, name))
		}
		rule := map[string]any{"apiGroups": kobj.Values(r.Group), "resources": kobj.Values(r.Resource), "verbs": kobj.Values(r.Verbs...)}
		if len(r.Names) > 0 {
			rule["resourceNames"] = kobj.Values(r.Names...)
		}
		o := out[len(out)-1]
		o["rules"] = append(kobj.List(o, "rules"), rule)
	}
	return out
}
