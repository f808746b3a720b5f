package rbac

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/quayside/quayside/internal/kobj"
)

// MaxGrants bounds what a model may hold: rules are products of lists, and
// their author may be a stranger.
const MaxGrants = 200_000

// ErrTooMany says that the roles multiply to more than MaxGrants grants.
var ErrTooMany = errors.New("too many permissions")

// Model is what every subject of a set of objects may do.
type Model struct {
	direct map[Subject][]Grant
	known  []Subject // ServiceAccounts that exist, sorted
	gifts  []Gift
}

// Gift is what one object gives to one subject: a binding, or a ClusterRole that
// is aggregated into a role of the API server.
type Gift struct {
	To     Subject
	Grants []Grant // not reduced; nobody may modify them
}

// roleID names a role; Namespace is empty for a ClusterRole.
type roleID struct{ namespace, name string }

type role struct {
	rules  []rule
	labels map[string]string
	adds   []labels.Selector // aggregation
	ready  bool
	open   bool // being resolved: cuts cycles
}

type rule struct{ verbs, groups, resources, names, urls []string }

// New reads the ServiceAccounts, Roles, ClusterRoles and bindings among
// objects, each as decoded from JSON. Other kinds are ignored, order does not
// matter, and nothing is modified. The error is ErrTooMany, with the binding.
func New(objects []map[string]any) (*Model, error) {
	m := &Model{direct: map[Subject][]Grant{}}
	roles := map[roleID]*role{}
	var bindings []map[string]any
	for _, o := range objects {
		group, _, _ := strings.Cut(kobj.Text(o, "apiVersion"), "/")
		kind, ns, name := kobj.Text(o, "kind"), kobj.Text(o, "metadata", "namespace"), kobj.Text(o, "metadata", "name")
		switch {
		case kind == "ServiceAccount" && group == "v1":
			m.known = append(m.known, Subject{"ServiceAccount", ns, name})
		case group != "rbac.authorization.k8s.io":
		case kind == "ClusterRole":
			roles[roleID{"", name}] = newRole(o)
		case kind == "Role":
			roles[roleID{ns, name}] = newRole(o)
		case kind == "RoleBinding" || kind == "ClusterRoleBinding":
			bindings = append(bindings, o)
		}
	}
	slices.SortFunc(m.known, Subject.Compare)
	ids := slices.SortedFunc(maps.Keys(roles), compareIDs)
	for _, id := range ids {
		resolve(roles, ids, roles[id])
	}
	total := 0
	for _, o := range bindings {
		if err := m.bind(roles, o, &total); err != nil {
			return nil, err
		}
	}
	if err := m.builtIn(roles, ids, &total); err != nil {
		return nil, err
	}
	for _, g := range m.gifts {
		m.direct[g.To] = append(m.direct[g.To], g.Grants...)
	}
	for s, grants := range m.direct {
		m.direct[s] = Reduce(grants)
	}
	return m, nil
}

func compareIDs(a, b roleID) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

// resolve fills a role from those that it aggregates, in the order of ids.
func resolve(roles map[roleID]*role, ids []roleID, r *role) {
	if r.ready || r.open {
		return
	}
	if len(r.adds) == 0 {
		r.ready = true
		return
	}
	r.open = true
	for _, id := range ids {
		other := roles[id]
		if id.namespace != "" || other == r || !slices.ContainsFunc(r.adds, func(s labels.Selector) bool { return s.Matches(labels.Set(other.labels)) }) {
			continue
		}
		resolve(roles, ids, other)
		r.rules = append(r.rules, other.rules...)
	}
	// cluster-admin has this label alone, in every cluster.
	if slices.ContainsFunc(r.adds, func(s labels.Selector) bool {
		return s.Matches(labels.Set{"kubernetes.io/bootstrapping": "rbac-defaults"})
	}) {
		all, _ := wellKnown(roleID{"", "cluster-admin"})
		r.rules = append(r.rules, all...)
	}
	r.open, r.ready = false, true
}

// bind adds what a binding gives to its subjects.
func (m *Model) bind(roles map[roleID]*role, b map[string]any, total *int) error {
	kind, scope := kobj.Text(b, "kind"), ""
	if kind == "RoleBinding" {
		scope = kobj.Text(b, "metadata", "namespace")
	}
	refers := kobj.Text(b, "roleRef", "kind")
	id := roleID{"", kobj.Text(b, "roleRef", "name")}
	if refers == "Role" {
		id.namespace = scope
	}
	grants := granted(roles, id, refers, scope)
	for _, s := range subjects(b) {
		if *total += len(grants); *total > MaxGrants {
			return fmt.Errorf("%s %q: %w", kind, kobj.Text(b, "metadata", "name"), ErrTooMany)
		}
		m.gifts = append(m.gifts, Gift{s, grants})
	}
	return nil
}

// granted returns what a role gives in a scope ("" is everywhere).
func granted(roles map[roleID]*role, id roleID, kind, scope string) []Grant {
	rules, known := wellKnown(id) // API servers add what is missing of their own again
	if r := roles[id]; r != nil {
		rules, known = append(rules, r.rules...), true
	}
	if known {
		return expand(rules, scope)
	}
	return []Grant{{Namespace: scope, Role: strings.TrimSpace(kind + " " + id.name)}}
}

// expand multiplies rules out. Non-resource URLs count only cluster-wide, as
// the API server has it. A product beyond the bound is cut just above it, so
// that the caller's count trips.
func expand(rules []rule, scope string) []Grant {
	var out []Grant
	for _, r := range rules {
		for _, verb := range r.verbs {
			for _, url := range r.urls {
				if scope == "" {
					out = append(out, Grant{Verb: verb, URL: url})
				}
			}
			for _, group := range r.groups {
				for _, res := range r.resources {
					for _, name := range r.names {
						out = append(out, Grant{Namespace: scope, Verb: verb, Group: group, Resource: res, Name: name})
					}
					if len(out) > MaxGrants {
						return out
					}
				}
			}
		}
	}
	return out
}

// builtIn adds the pseudo-subjects: everybody who is bound to a role of the API
// server that ClusterRoles of the set aggregate into.
func (m *Model) builtIn(roles map[roleID]*role, ids []roleID, total *int) error {
	for _, id := range ids {
		r := roles[id]
		for label, value := range r.labels {
			name := AggregatesTo(label)
			if id.namespace != "" || value != "true" || name == "" {
				continue
			}
			grants := expand(r.rules, "")
			if *total += len(grants); *total > MaxGrants {
				return fmt.Errorf("ClusterRole %q: %w", id.name, ErrTooMany)
			}
			m.gifts = append(m.gifts, Gift{Subject{Kind: "ClusterRole", Name: name}, grants})
		}
	}
	return nil
}

// AggregatesTo returns the role of Kubernetes or OpenShift into which the API
// server takes a ClusterRole with that label, "" where into none.
func AggregatesTo(label string) string {
	role, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
	if !ok {
		role, ok = strings.CutPrefix(label, "authorization.openshift.io/aggregate-to-")
	}
	if ok && slices.Contains([]string{"admin", "edit", "view", "cluster-reader", "basic-user"}, role) {
		return role
	}
	return ""
}

// Subjects returns everybody who is granted something and every ServiceAccount
// of the set, sorted. Groups that only ServiceAccounts can be in are subjects too.
func (m *Model) Subjects() []Subject {
	all := slices.AppendSeq(slices.Clone(m.known), maps.Keys(m.direct))
	slices.SortFunc(all, Subject.Compare)
	return slices.Compact(all)
}

// Gifts returns what each object gives, in no order. Nobody may modify it.
func (m *Model) Gifts() []Gift { return m.gifts }

// Direct returns what bindings give to exactly this subject, reduced and sorted.
func (m *Model) Direct(s Subject) []Grant { return slices.Clone(m.direct[s]) }

// Of returns all that the subject may do, reduced and sorted: what is bound to
// it, to its user name and to the groups that it is always in.
func (m *Model) Of(s Subject) []Grant {
	all := m.Direct(s)
	for _, also := range alsoKnownAs(s) {
		all = append(all, m.direct[also]...)
	}
	return Reduce(all)
}

// alsoKnownAs returns the user and the groups of a subject.
func alsoKnownAs(s Subject) []Subject {
	group := func(name string) Subject { return Subject{Kind: "Group", Name: name} }
	switch s.Kind {
	case "ServiceAccount":
		return []Subject{
			{Kind: "User", Name: "system:serviceaccount:" + s.Namespace + ":" + s.Name},
			group("system:serviceaccounts"), group("system:serviceaccounts:" + s.Namespace), group("system:authenticated"),
		}
	case "User":
		return []Subject{group("system:authenticated")}
	}
	return nil
}
