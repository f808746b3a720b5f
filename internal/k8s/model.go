package k8s

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// MaxGrants is the maximum number of grants of all objects. A rule expands to the product of its
// lists, and may be untrusted.
const MaxGrants = 200_000

// ErrTooManyGrants is returned if roles expand to more than MaxGrants grants.
var ErrTooManyGrants = errors.New("too many permissions")

// Permissions holds the permissions of every subject in a set of objects.
type Permissions struct {
	direct       map[Subject][]Grant
	known        []Subject // ServiceAccounts that exist, sorted
	objectGrants []ObjectGrants
}

// ObjectGrants holds the grants of one object to one subject. The object is a binding,
// or a ClusterRole that is aggregated into a built-in role.
type ObjectGrants struct {
	To     Subject
	Grants []Grant // not reduced; must not be modified
}

// roleID names a role; Namespace is empty for a ClusterRole.
type roleID struct{ namespace, name string }

type role struct {
	rules      []rule
	labels     map[string]string
	aggregates []labels.Selector // ClusterRoles to add
	resolved   bool
	resolving  bool // ends recursion in a cycle
}

type rule struct{ verbs, groups, resources, names, urls []string }

// NewPermissions collects the permissions in ServiceAccounts, Roles,
// ClusterRoles and bindings, each as decoded from JSON. It ignores other kinds
// and the order of objects, and modifies nothing. The error is ErrTooManyGrants,
// with the binding.
func NewPermissions(objects []map[string]any) (*Permissions, error) {
	m := &Permissions{direct: map[Subject][]Grant{}}
	roles := map[roleID]*role{}
	var bindings []map[string]any
	for _, o := range objects {
		group, _, _ := strings.Cut(Text(o, "apiVersion"), "/")
		kind, ns, name := Text(o, "kind"), Text(o, "metadata", "namespace"), Text(o, "metadata", "name")
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
		resolveAggregation(roles, ids, roles[id])
	}
	total := 0
	for _, o := range bindings {
		if err := m.bind(roles, o, &total); err != nil {
			return nil, err
		}
	}
	if err := m.addBuiltInSubjects(roles, ids, &total); err != nil {
		return nil, err
	}
	for _, g := range m.objectGrants {
		m.direct[g.To] = append(m.direct[g.To], g.Grants...)
	}
	for s, grants := range m.direct {
		m.direct[s] = ReduceGrants(grants)
	}
	return m, nil
}

func compareIDs(a, b roleID) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

// resolveAggregation adds the rules of aggregated roles to a role, in the order of ids.
func resolveAggregation(roles map[roleID]*role, ids []roleID, r *role) {
	if r.resolved || r.resolving {
		return
	}
	if len(r.aggregates) == 0 {
		r.resolved = true
		return
	}
	r.resolving = true
	for _, id := range ids {
		other := roles[id]
		if id.namespace != "" || other == r || !slices.ContainsFunc(r.aggregates, func(s labels.Selector) bool { return s.Matches(labels.Set(other.labels)) }) {
			continue
		}
		resolveAggregation(roles, ids, other)
		r.rules = append(r.rules, other.rules...)
	}
	// Every cluster has exactly one role with this label: cluster-admin.
	if slices.ContainsFunc(r.aggregates, func(s labels.Selector) bool {
		return s.Matches(labels.Set{"kubernetes.io/bootstrapping": "rbac-defaults"})
	}) {
		all, _ := wellKnown(roleID{"", "cluster-admin"})
		r.rules = append(r.rules, all...)
	}
	r.resolving, r.resolved = false, true
}

// bind adds the grants of a binding to its subjects.
func (m *Permissions) bind(roles map[roleID]*role, b map[string]any, total *int) error {
	kind, scope := Text(b, "kind"), ""
	if kind == "RoleBinding" {
		scope = Text(b, "metadata", "namespace")
	}
	refers := Text(b, "roleRef", "kind")
	id := roleID{"", Text(b, "roleRef", "name")}
	if refers == "Role" {
		id.namespace = scope
	}
	grants := expandRole(roles, id, refers, scope)
	for _, s := range bindingSubjects(b) {
		if *total += len(grants); *total > MaxGrants {
			return fmt.Errorf("%s %q: %w", kind, Text(b, "metadata", "name"), ErrTooManyGrants)
		}
		m.objectGrants = append(m.objectGrants, ObjectGrants{s, grants})
	}
	return nil
}

// expandRole returns the grants of a role in a scope ("" is the whole cluster).
func expandRole(roles map[roleID]*role, id roleID, kind, scope string) []Grant {
	rules, known := wellKnown(id) // API servers restore missing rules of built-in roles
	if r := roles[id]; r != nil {
		rules, known = append(rules, r.rules...), true
	}
	if known {
		return expandRules(rules, scope)
	}
	return []Grant{{Namespace: scope, Role: strings.TrimSpace(kind + " " + id.name)}}
}

// expandRules returns the grants of rules: the products of their lists. As in the API server,
// non-resource URLs count only cluster-wide. It stops just above MaxGrants, so that the caller
// detects the excess.
func expandRules(rules []rule, scope string) []Grant {
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

// addBuiltInSubjects adds a subject for each built-in role that aggregates ClusterRoles of the
// set. It stands for all subjects bound to that role.
func (m *Permissions) addBuiltInSubjects(roles map[roleID]*role, ids []roleID, total *int) error {
	for _, id := range ids {
		r := roles[id]
		for label, value := range r.labels {
			name := AggregatesTo(label)
			if id.namespace != "" || value != "true" || name == "" {
				continue
			}
			grants := expandRules(r.rules, "")
			if *total += len(grants); *total > MaxGrants {
				return fmt.Errorf("ClusterRole %q: %w", id.name, ErrTooManyGrants)
			}
			m.objectGrants = append(m.objectGrants, ObjectGrants{Subject{Kind: "ClusterRole", Name: name}, grants})
		}
	}
	return nil
}

// AggregatesTo returns the role of Kubernetes or OpenShift into which
// ClusterRoles with a label are aggregated, or "".
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

// Subjects returns all subjects with grants and every ServiceAccount of the set,
// sorted. It includes groups that contain only ServiceAccounts.
func (m *Permissions) Subjects() []Subject {
	all := slices.AppendSeq(slices.Clone(m.known), maps.Keys(m.direct))
	slices.SortFunc(all, Subject.Compare)
	return slices.Compact(all)
}

// ObjectGrants returns the grants of each object, unordered. It must not be modified.
func (m *Permissions) ObjectGrants() []ObjectGrants { return m.objectGrants }

// Direct returns the grants of bindings to exactly this subject, reduced and
// sorted.
func (m *Permissions) Direct(s Subject) []Grant { return slices.Clone(m.direct[s]) }

// Of returns all permissions of a subject, reduced and sorted: its own, and those of its user
// and groups.
func (m *Permissions) Of(s Subject) []Grant {
	all := m.Direct(s)
	for _, also := range impliedSubjects(s) {
		all = append(all, m.direct[also]...)
	}
	return ReduceGrants(all)
}

// impliedSubjects returns the user and the groups that a subject always belongs to.
func impliedSubjects(s Subject) []Subject {
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
