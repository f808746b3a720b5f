package k8s

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// MaxGrants is the maximum number of grants of all objects together. The limit is needed because a rule of an
// untrusted role expands to the product of the rule's lists.
const MaxGrants = 200_000

// ErrTooManyGrants means that roles expand to more than MaxGrants grants.
var ErrTooManyGrants = errors.New("too many permissions")

// Permissions holds the permissions of all subjects in a set of objects.
type Permissions struct {
	direct       map[Subject][]Grant
	accounts     []Subject // ServiceAccounts in the set of objects, sorted
	objectGrants []ObjectGrants
	roles        map[roleID]*role
	cycles       [][]string
}

// ObjectGrants are the grants of one object to one subject. The object is a binding, or a
// ClusterRole that is aggregated into a role that is not in the set of objects.
type ObjectGrants struct {
	To     Subject
	Grants []Grant // may contain duplicates; must not be modified
}

// roleID identifies a Role or ClusterRole.
type roleID struct{ kind, namespace, name string }

func roleIDOf(o map[string]any) roleID {
	id := roleID{Text(o, "kind"), Text(o, "metadata", "namespace"), Text(o, "metadata", "name")}
	if id.kind == "ClusterRole" {
		id.namespace = ""
	}
	return id
}

type role struct {
	rules      []rule // rules in the manifest; the cluster replaces those of an aggregated role
	labels     map[string]string
	aggregated bool
	aggregates []labels.Selector // selects the ClusterRoles to aggregate
	all        []rule            // effective rules: of this role and the aggregated ones
	bound      bool              // a binding in the set refers to the role, directly or through aggregation
}

type rule struct{ verbs, groups, resources, names, urls []string }

// NewPermissions returns the permissions that result from ServiceAccounts, Roles, ClusterRoles and
// bindings. It ignores other kinds and the order of objects. The objects must be decoded from JSON, and are
// not modified. Roles with the same name are merged, such as a default role (see [DefaultRBAC]) and
// additional rules for this role. The error wraps ErrTooManyGrants and names the role or binding.
func NewPermissions(objects []map[string]any) (*Permissions, error) {
	m := &Permissions{direct: map[Subject][]Grant{}, roles: map[roleID]*role{}}
	var bindings []map[string]any
	for _, o := range objects {
		group, _, _ := strings.Cut(Text(o, "apiVersion"), "/")
		kind := Text(o, "kind")
		switch {
		case Object(o).Is("", "ServiceAccount"):
			m.accounts = append(m.accounts, Subject{"ServiceAccount", Text(o, "metadata", "namespace"), Text(o, "metadata", "name")})
		case group != "rbac.authorization.k8s.io":
		case kind == "ClusterRole" || kind == "Role":
			id := roleIDOf(o)
			m.roles[id] = newRole(o).merge(m.roles[id])
		case kind == "RoleBinding" || kind == "ClusterRoleBinding":
			bindings = append(bindings, o)
		}
	}
	slices.SortFunc(m.accounts, Subject.Compare)
	ids := slices.SortedFunc(maps.Keys(m.roles), compareIDs)
	for _, b := range bindings {
		if r := m.roles[boundRole(b)]; r != nil {
			r.bound = true
		}
	}
	if err := m.aggregate(ids); err != nil {
		return nil, err
	}
	total := 0
	for _, o := range bindings {
		if err := m.bind(o, &total); err != nil {
			return nil, err
		}
	}
	if err := m.addBuiltinSubjects(ids, &total); err != nil {
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
	return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}

// maxAggregation is the maximum product of the number of aggregated roles and the number of all roles.
const maxAggregation = 20_000_000

// aggregate sets the effective rules of each role. For an aggregated role, these are the rules of all roles
// that its selectors select, directly or through other aggregated roles. The rules in the manifest of an
// aggregated role apply in two cases only. First, none of the selected roles has rules: the controller does not
// replace rules by an empty list. Second, the role is in a cycle of roles: another role may have copied the
// rules from the manifest, and the copies remain.
func (m *Permissions) aggregate(ids []roleID) error {
	var aggregated []int
	for i, id := range ids {
		r := m.roles[id]
		if r.all = r.rules; r.aggregated {
			aggregated = append(aggregated, i)
		}
	}
	if len(aggregated)*len(ids) > maxAggregation {
		return fmt.Errorf("%d aggregated roles: %w", len(aggregated), ErrTooManyGrants)
	}
	reach := map[int]*big.Int{} // role → set of the roles that it aggregates, as indexes of ids
	for _, i := range aggregated {
		reach[i] = new(big.Int)
		for j, id := range ids {
			if i != j && id.kind == "ClusterRole" && m.roles[ids[i]].selects(m.roles[id].labels) {
				reach[i].SetBit(reach[i], j, 1)
			}
		}
	}
	for _, via := range aggregated {
		for _, i := range aggregated {
			if reach[i].Bit(via) == 1 {
				reach[i].Or(reach[i], reach[via])
			}
		}
	}
	kept := map[int]bool{} // indexes in ids of the aggregated roles whose own rules apply
	for _, i := range aggregated {
		kept[i] = reach[i].Bit(i) == 1 || !m.reachesRules(ids, reach[i])
	}
	total := 0
	for _, i := range aggregated {
		all := m.aggregatedRules(ids, i, reach[i], kept)
		if total += len(all); total > MaxGrants {
			return fmt.Errorf("ClusterRole %q: %w", ids[i].name, ErrTooManyGrants)
		}
		m.roles[ids[i]].all = all
		m.addCycle(ids, i, reach)
		for j, id := range ids {
			if m.roles[ids[i]].bound && reach[i].Bit(j) == 1 {
				m.roles[id].bound = true
			}
		}
	}
	return nil
}

// aggregatedRules returns the effective rules of aggregated role i. reached is the set of roles
// that role i aggregates.
func (m *Permissions) aggregatedRules(ids []roleID, i int, reached *big.Int, kept map[int]bool) []rule {
	var out []rule
	for j, id := range ids {
		if i != j && reached.Bit(j) == 0 {
			continue
		}
		r := m.roles[id]
		if !r.aggregated || kept[j] {
			out = append(out, r.rules...)
		}
		// In every cluster, only cluster-admin has this label.
		if r.aggregated && r.selects(map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}) {
			all, _ := builtinRoleRules(roleID{"ClusterRole", "", "cluster-admin"})
			out = append(out, all...)
		}
	}
	return out
}

// reachesRules reports whether any of the reached roles has rules in its manifest.
func (m *Permissions) reachesRules(ids []roleID, reached *big.Int) bool {
	for j, id := range ids {
		if reached.Bit(j) == 1 && len(m.roles[id].rules) > 0 {
			return true
		}
	}
	return false
}

// addCycle records the cycle with role i: the roles that role i aggregates and that also aggregate role i. To
// record each cycle once, it does nothing unless role i has the first name in the cycle, in alphabetical order.
func (m *Permissions) addCycle(ids []roleID, i int, reach map[int]*big.Int) {
	var names []string
	for j, other := range reach {
		if reach[i].Bit(j) == 1 && other.Bit(i) == 1 {
			names = append(names, ids[j].name)
		}
	}
	if slices.Sort(names); len(names) > 0 && names[0] == ids[i].name {
		m.cycles = append(m.cycles, names)
	}
}

// Cycles returns the groups of ClusterRoles that aggregate each other: the names in each group, sorted.
func (m *Permissions) Cycles() [][]string { return m.cycles }

// bind adds the grants of a binding to its subjects. total counts all grants.
func (m *Permissions) bind(b map[string]any, total *int) error {
	kind := Text(b, "kind")
	grants, _ := m.expandRole(boundRole(b), bindingScope(b))
	for _, s := range BindingSubjects(b) {
		if *total += len(grants); *total > MaxGrants {
			return fmt.Errorf("%s %q: %w", kind, Text(b, "metadata", "name"), ErrTooManyGrants)
		}
		m.objectGrants = append(m.objectGrants, ObjectGrants{s, grants})
	}
	return nil
}

// bindingScope returns the namespace of a RoleBinding, or "" for a ClusterRoleBinding.
func bindingScope(b map[string]any) string {
	if Text(b, "kind") == "RoleBinding" {
		return Text(b, "metadata", "namespace")
	}
	return ""
}

// boundRole returns the role that a binding refers to.
func boundRole(b map[string]any) roleID {
	id := roleID{Text(b, "roleRef", "kind"), "", Text(b, "roleRef", "name")}
	if id.kind == "Role" {
		id.namespace = bindingScope(b)
	}
	return id
}

// RoleGrants returns the grants of a Role or ClusterRole that is bound in a namespace. If namespace is "", the
// role is bound in the whole cluster. known is false if the role does not exist.
func (m *Permissions) RoleGrants(kind, namespace, name string) (out []Grant, known bool) {
	if kind == "ClusterRole" {
		return m.expandRole(roleID{kind, "", name}, namespace)
	}
	for id := range m.roles {
		if id.kind == kind && id.name == name && (namespace == "" || id.namespace == namespace) {
			grants, _ := m.expandRole(id, id.namespace)
			out, known = append(out, grants...), true
		}
	}
	return out, known
}

// expandRole returns the grants of a role that is bound in a scope: a namespace, or "" for the whole cluster.
// It returns false if the role does not exist.
func (m *Permissions) expandRole(id roleID, scope string) ([]Grant, bool) {
	rules, known := builtinRoleRules(id) // needed even if the set contains the role, because the API server restores missing rules of built-in roles
	if r := m.roles[id]; r != nil {
		rules, known = append(rules, r.all...), true
	}
	if known {
		return expandRules(rules, scope), true
	}
	return []Grant{{Namespace: scope, Role: strings.TrimSpace(id.kind + " " + id.name)}}, false
}

// expandRules returns the grants of rules: the product of the lists in each rule. As in the API server,
// non-resource URLs apply only in the whole cluster. To limit memory, expandRules stops just above
// MaxGrants. The caller reports the error.
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

// addBuiltinSubjects handles ClusterRoles that are aggregated into roles outside of the set, such as "edit".
// For each such role, it adds a subject of kind ClusterRole. The subject stands for all users that are bound
// to the role by bindings outside of the set.
func (m *Permissions) addBuiltinSubjects(ids []roleID, total *int) error {
	for _, id := range ids {
		r := m.roles[id]
		if d := defaultRoles()[id]; id.kind != "ClusterRole" || d != nil && d.aggregated {
			continue // admin aggregates edit: its subjects get these permissions through edit
		}
		for _, name := range AggregatesTo(r.labels) {
			if r.bound && !IsBuiltinRole(name) {
				continue // the aggregating role is in the set
			}
			grants := expandRules(r.all, "")
			if *total += len(grants); *total > MaxGrants {
				return fmt.Errorf("ClusterRole %q: %w", id.name, ErrTooManyGrants)
			}
			m.objectGrants = append(m.objectGrants, ObjectGrants{Subject{Kind: "ClusterRole", Name: name}, grants})
		}
	}
	return nil
}

// AggregatesTo returns the names of the roles into which ClusterRoles with these labels are
// aggregated, sorted. It follows the convention of Kubernetes, OpenShift and others: a label
// "aggregate-to-edit" of any domain. If one of the roles is built in, the result omits OLM's roles.
func AggregatesTo(labels map[string]string) []string {
	var builtin, others, olm []string
	for label, value := range labels {
		domain, name, _ := strings.Cut(label, "/")
		role, is := strings.CutPrefix(name, "aggregate-to-")
		switch {
		case !is || role == "" || value != "true":
		case IsBuiltinRole(role) && slices.Contains([]string{"rbac.authorization.k8s.io", "authorization.openshift.io"}, domain):
			builtin = append(builtin, role)
		case domain == "olm.opgroup.permissions":
			olm = append(olm, role)
		default:
			others = append(others, role)
		}
	}
	if len(builtin) == 0 {
		others = append(others, olm...)
	}
	out := append(builtin, others...)
	slices.Sort(out)
	return slices.Compact(out)
}

// IsBuiltinRole reports whether name is a ClusterRole for users, such as "edit", that Kubernetes or OpenShift
// aggregates from other roles.
func IsBuiltinRole(name string) bool {
	return slices.Contains([]string{"admin", "edit", "view", "cluster-reader", "basic-user"}, name)
}

// Subjects returns all subjects with grants and all ServiceAccounts of the set, sorted. It includes
// groups of ServiceAccounts.
func (m *Permissions) Subjects() []Subject {
	all := slices.AppendSeq(slices.Clone(m.accounts), maps.Keys(m.direct))
	slices.SortFunc(all, Subject.Compare)
	return slices.Compact(all)
}

// ObjectGrants returns the grants of each object, in no particular order. The result must not be
// modified.
func (m *Permissions) ObjectGrants() []ObjectGrants { return m.objectGrants }

// Direct returns the grants to exactly this subject, without the grants to its groups. The result is sorted
// and reduced (see ReduceGrants).
func (m *Permissions) Direct(s Subject) []Grant { return slices.Clone(m.direct[s]) }

// Of returns all permissions of a subject: its own grants, and the grants to its user and groups. The result
// is sorted and reduced (see ReduceGrants).
func (m *Permissions) Of(s Subject) []Grant {
	all := m.Direct(s)
	for _, also := range impliedSubjects(s) {
		all = append(all, m.direct[also]...)
	}
	return ReduceGrants(all)
}

// impliedSubjects returns the user and the groups that a ServiceAccount or user always belongs to.
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
