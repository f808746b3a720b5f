package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// rbacKinds returns the kinds that define permissions.
func rbacKinds() []string {
	const group = ".rbac.authorization.k8s.io"
	return []string{"ServiceAccount", "Role" + group, "ClusterRole" + group, "RoleBinding" + group, "ClusterRoleBinding" + group}
}

// comparePermissions compares the effective permissions of every subject before and after the change. A change
// of roles and bindings that does not change effective permissions is not reported.
func comparePermissions(c *comparison) {
	touched := false
	c.each(func(pair) { touched = true }, rbacKinds()...)
	if !touched {
		return
	}
	unbound := unboundRoles(c)
	old, errOld := computePermissions(c.before, unbound)
	now, errNew := computePermissions(c.after, unbound)
	for _, err := range []error{errOld, errNew} {
		if err != nil {
			c.add("rbac.not-compared", nil, Finding{Message: "permissions were not compared: " + err.Error()})
			return
		}
	}
	all := append(old.Subjects(), now.Subjects()...)
	slices.SortFunc(all, k8s.Subject.Compare)
	wasAt, isAt := subjectObjects(c.before), subjectObjects(c.after)
	renamed := renamedAccounts(c, wasAt, isAt)
	replaced := map[k8s.Subject]bool{}
	for _, was := range renamed {
		replaced[was] = true
	}
	c.addCycles(old.Cycles(), now.Cycles())
	for _, role := range unbound {
		o := c.after.byKey[role]
		if o != nil && c.before.byKey[role] == nil && len(now.Direct(roleSubject(role))) == 0 && o.Content["aggregationRule"] == nil {
			if s := c.roleNameSeverity(o); s > Low {
				c.add("rbac.tool-role", o, Finding{Message: "has no rules: a role of that name in the cluster loses its permissions"}, s)
			}
		}
	}
	bound := boundRoles(c)
	rater := c.newRater(now)
	var bindings []k8s.Key
	c.each(func(p pair) {
		if p.onBothSides() {
			bindings = append(bindings, p.after.Key())
		}
	}, "RoleBinding.rbac.authorization.k8s.io", "ClusterRoleBinding.rbac.authorization.k8s.io")
	for _, s := range slices.Compact(all) {
		was := s
		if from, ok := renamed[s]; ok {
			was = from
		}
		had, has := old.Direct(was), now.Direct(s)
		if slices.Equal(had, has) {
			continue
		}
		d := rbacDiff{c: c, subject: s, before: old.Of(was), after: now.Of(s), roles: bound[s], bindings: bindings, rater: rater}
		if d.object = isAt[s]; d.object == nil {
			d.object = wasAt[s]
		}
		d.isNew = len(had) == 0 && (d.object == nil || !c.before.hasOperator(d.object.Operator))
		d.reportGained(k8s.GainedGrants(d.before, has))
		if !replaced[s] {
			d.reportLost(k8s.GainedGrants(d.after, had))
		}
	}
}

// addCycles adds findings for the new cycles of ClusterRoles.
func (c *comparison) addCycles(old, now [][]string) {
	for _, cycle := range now {
		if slices.ContainsFunc(old, func(known []string) bool { return slices.Equal(known, cycle) }) {
			continue
		}
		var first *Object
		for _, name := range cycle {
			o := c.after.byKey[k8s.Key{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: name}]
			first = cmp.Or(first, o)
		}
		c.add("rbac.aggregation-cycle", first, Finding{
			Field: "aggregationRule", After: strings.Join(cycle, ", "), Message: "ClusterRoles aggregate each other: " + diag.Some(cycle, 12),
			path: fieldAt("aggregationRule"),
		})
	}
}

// computePermissions returns the permissions of all subjects in a state, including the default
// permissions of a new cluster. Each role in unbound is itself a subject (see roleSubject).
func computePermissions(v *view, unbound []k8s.Key) (*k8s.Permissions, error) {
	_, defaults := k8s.DefaultRBAC()
	objects := slices.Clone(defaults)
	for _, o := range v.order {
		if o.Key().Is(rbacKinds()...) {
			objects = append(objects, o.Content)
		}
	}
	for i := range v.Resources {
		if v.Resources[i].Key().Is(rbacKinds()...) {
			objects = append(objects, v.Resources[i].Content)
		}
	}
	for _, role := range unbound {
		if v.byKey[role] != nil {
			objects = append(objects, bindToItself(role))
		}
	}
	m, err := k8s.NewPermissions(objects)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	return m, nil
}

// renamedAccounts maps new ServiceAccounts to the accounts that they replace. If an operator adds exactly one
// account and removes exactly one account in a namespace, the added account replaces the removed one. wasAt and
// isAt contain the accounts before and after the change. It adds a finding for each replacement.
func renamedAccounts(c *comparison, wasAt, isAt map[k8s.Subject]*Object) map[k8s.Subject]k8s.Subject {
	type slot struct{ operator, namespace string }
	only := func(here, there map[k8s.Subject]*Object) map[slot][]k8s.Subject {
		out := map[slot][]k8s.Subject{}
		for s, o := range here {
			if s.Kind == "ServiceAccount" && there[s] == nil {
				k := slot{o.Operator, s.Namespace}
				out[k] = append(out[k], s)
			}
		}
		return out
	}
	gone := only(wasAt, isAt)
	out := map[k8s.Subject]k8s.Subject{}
	for k, s := range only(isAt, wasAt) {
		if len(s) == 1 && len(gone[k]) == 1 {
			was, is := gone[k][0], s[0]
			out[is] = was
			c.add("rbac.account-renamed", isAt[is], Finding{
				Before: was.Name, After: is.Name, Message: fmt.Sprintf("ServiceAccount %s replaces %s", is.Name, was.Name),
				path: fieldAt("metadata", "name"), explains: wholeObject(),
			})
		}
	}
	return out
}

// subjectObjects returns the object that findings about each subject refer to. It is the
// ServiceAccount, or else the first binding of the subject, or else the first ClusterRole that is
// aggregated into the subject.
func subjectObjects(v *view) map[k8s.Subject]*Object {
	out := map[k8s.Subject]*Object{}
	first := func(s k8s.Subject, o *Object) {
		if out[s] == nil {
			out[s] = o
		}
	}
	for _, o := range v.order {
		if r := o.Key(); r.Is("ServiceAccount") {
			out[k8s.Subject{Kind: "ServiceAccount", Namespace: r.Namespace, Name: r.Name}] = o
		}
	}
	for _, o := range v.order {
		r := o.Key()
		switch {
		case r.Group != "rbac.authorization.k8s.io":
		case r.Kind == "Role":
			first(roleSubject(r), o)
		case r.Kind == "ClusterRole":
			for _, role := range aggregatesTo(o) {
				first(k8s.Subject{Kind: "ClusterRole", Name: role}, o)
			}
			first(roleSubject(r), o)
		case strings.HasSuffix(r.Kind, "RoleBinding"):
			for _, m := range k8s.Items(o.Content, "subjects") {
				s := k8s.Subject{Kind: k8s.Text(m, "kind"), Name: k8s.Text(m, "name")}
				if s.Kind == "ServiceAccount" {
					s.Namespace = cmp.Or(k8s.Text(m, "namespace"), r.Namespace)
				}
				first(s, o)
			}
		}
	}
	return out
}

// aggregatesTo returns the names of the ClusterRoles that a ClusterRole is aggregated into by its
// labels.
func aggregatesTo(o *Object) []string {
	return k8s.AggregatesTo(k8s.TextMap(o.Content, "metadata", "labels"))
}

// rbacDiff compares the permissions of one subject before and after the change.
type rbacDiff struct {
	c             *comparison
	subject       k8s.Subject
	before, after []k8s.Grant
	object        *Object
	isNew         bool // the operator is new

	rater           *rater
	roles, bindings []k8s.Key // changed roles bound to the subject; all changed bindings
}

// clause is a set of grants that one finding reports, and the detail of the finding. The grants
// have the same rule, verbs, scope and API group.
type clause struct {
	rule    string
	grant   k8s.Grant // grant on the first object, without the verb
	verbs   []string  // sorted
	objects []string  // "pods/exec", "deployments.apps"; sorted
	worst   Severity  // highest severity of its grants
	own     bool      // the CRD of the objects belongs to the same operator
	subject string    // message prefix that names the subject; empty if the finding is about its ServiceAccount
}

func (b clause) parts(whole part) []part {
	var out []part
	for _, object := range b.objects {
		whole.Field = object
		out = append(out, whole)
	}
	return out
}

func (b clause) selectParts(f Finding, indexes []int) Finding {
	b.objects = selectItems(b.objects, indexes)
	f.Field, f.Message, f.detail = b.field(), b.message(), b
	return f
}

func (clause) addTo(*findingObject) {}

func (b clause) field() string { return strings.Join(b.objects, ", ") }

func (b clause) message() string {
	return fmt.Sprintf("%smay now %s in %s", b.subject, describeClause(b), describeScope(b.grant.Namespace))
}

// reportGained reports gained permissions. The ordinary permissions of a new operator become one finding per
// scope. So do the ordinary permissions of any operator that exceed maxClauses.
func (d rbacDiff) reportGained(grants []k8s.Grant) {
	var ordinary []clause
	listed := 0
	var others []clause
	for _, b := range d.clauses(grants) {
		if listed++; listed > maxClauses && b.rule == "rbac.gained" {
			others = append(others, b)
			d.claimGrants(b)
			continue
		}
		if b.rule == "rbac.gained" && d.isNew {
			ordinary = append(ordinary, b)
			d.claimGrants(b)
			continue
		}
		d.reportClause(b)
	}
	for scope, list := range groupByScope(others) {
		d.c.add("rbac.gained", d.object, Finding{
			Field: describeScope(scope), After: strings.Join(describeAll(list), ", "), Message: fmt.Sprintf("%sgains %s in %s", d.subjectPrefix(), pluralize(len(list), "more permission", "more permissions"), describeScope(scope)),
		})
	}
	for scope, list := range groupByScope(ordinary) {
		d.c.add("rbac.gained", d.object, Finding{
			Field: describeScope(scope), After: strings.Join(describeAll(list), ", "),
			Message: fmt.Sprintf("%s of a new operator in %s", pluralize(len(list), "ordinary permission", "ordinary permissions"), describeScope(scope)),
		}, Info)
	}
}

// clauses combines grants in two steps: first the verbs on one object, then the objects of one API group that
// have the same verbs.
func (d rbacDiff) clauses(grants []k8s.Grant) []clause {
	type about struct {
		rule  string
		grant k8s.Grant
	}
	var single []clause
	at := map[about]int{}
	for _, g := range grants {
		rated := d.rater.rate(d.subject, g, maxDepth)
		rule, worst := rated.rule, rated.severity
		if isEveryone(d.subject) {
			rule, worst = "rbac.everyone", Critical
		}
		own, verb := d.isOwnResource(g), g.Verb
		if worst > Medium && d.had(rated, g.Namespace) {
			worst = Medium
		}
		switch {
		case rule == "rbac.gained" && d.subject.Kind == "ClusterRole" && k8s.IsBuiltinRole(d.subject.Name):
			rule = "rbac.aggregated"
		case rule == "rbac.gained" && isRole(d.subject) && d.object != nil && roleSubject(d.object.Key()) == d.subject:
			if s := d.c.roleNameSeverity(d.object); s > Low {
				rule, worst = "rbac.tool-role", s
			}
			worst = max(min(worst, Low), min(worst, d.c.roleNameSeverity(d.object)))
		case rule == "rbac.gained" && isRole(d.subject):
			rule, worst = "rbac.tool-role", High
		case rule == "rbac.gained" && own:
			worst = min(worst, Low)
		}
		if d.isForeignSubject() {
			worst = max(worst, Medium)
		}
		g.Verb = ""
		i, seen := at[about{rule, g}]
		if !seen {
			i = len(single)
			at[about{rule, g}] = i
			single = append(single, clause{rule: rule, grant: g, objects: []string{grantObject(g)}, own: own})
		}
		single[i].worst = max(single[i].worst, worst)
		single[i].verbs = append(single[i].verbs, verb)
	}
	return joinClauses(single)
}

// isForeignSubject reports whether the subject is a user, a group, or an account that belongs to no operator
// of the tree.
func (d rbacDiff) isForeignSubject() bool {
	switch d.subject.Kind {
	case "ServiceAccount":
		return d.object == nil || !d.object.Key().Is("ServiceAccount")
	case "Group":
		return d.object == nil || d.subject.Name != "system:serviceaccounts:"+d.object.Key().Namespace
	}
	return d.subject.Kind == "User"
}

// had reports whether the subject already had a grant with the same effect as r and at least the same
// severity, in namespace or in the whole cluster.
func (d rbacDiff) had(r rating, namespace string) bool {
	return r.effect != "" && slices.ContainsFunc(d.before, func(g k8s.Grant) bool {
		if g.Namespace != "" && g.Namespace != namespace {
			return false
		}
		was := d.rater.rate(d.subject, g, maxDepth)
		return was.effect == r.effect && was.severity >= r.severity
	})
}

// joinClauses combines the clauses that differ only in their objects.
func joinClauses(single []clause) []clause {
	type alike struct {
		rule, namespace, group, alone, verbs string
		named, own                           bool
		worst                                Severity
	}
	var out []clause
	at := map[alike]int{}
	for _, b := range single {
		slices.Sort(b.verbs)
		k := alike{b.rule, b.grant.Namespace, b.grant.Group, b.grant.URL + b.grant.Role, strings.Join(b.verbs, ","), b.grant.Name != "", b.own, b.worst}
		if i, seen := at[k]; seen {
			out[i].objects = append(out[i].objects, b.objects...)
			continue
		}
		at[k] = len(out)
		out = append(out, b)
	}
	return out
}

// isOwnResource reports whether g is on a resource whose kind belongs to the operator of the subject.
func (d rbacDiff) isOwnResource(g k8s.Grant) bool {
	resource, _, _ := strings.Cut(g.Resource, "/")
	crd := d.c.after.byKey[k8s.Key{Group: k8s.CRDGroup, Kind: "CustomResourceDefinition", Name: resource + "." + g.Group}]
	return crd != nil && d.object != nil && d.c.ownsGroup(d.object.Operator, g.Group, crd.definedKind().Kind)
}

// maxClauses is the maximum number of findings about ordinary permissions of one subject. Further
// permissions are combined.
const maxClauses = 500

func groupByScope(list []clause) map[string][]clause {
	out := map[string][]clause{}
	for _, b := range list {
		out[b.grant.Namespace] = append(out[b.grant.Namespace], b)
	}
	return out
}

// reportClause reports one set of gained grants.
func (d rbacDiff) reportClause(b clause) {
	b.subject = d.subjectPrefix()
	f := Finding{
		Field: b.field(), Before: strings.Join(verbsOn(d.before, b.grant), ", "), After: strings.Join(verbsOn(d.after, b.grant), ", "),
		Message: b.message(), detail: b, explains: noField(),
	}
	d.claimGrants(b)
	if b.grant.Role != "" {
		f.Before, f.After = "", b.grant.Role
	}
	about := d.object
	if o, i := d.findSource(d.c.after, b); o != nil {
		f.where, f.path = o, fieldAt("rules").index(i)
		if isRole(d.subject) || about == nil {
			about = o // several objects may add rules to the role: report the one that adds this grant
		}
	}
	d.c.add(b.rule, about, f, b.worst)
}

// reportLost reports lost permissions: one finding for each scope and each operator whose role
// granted them.
func (d rbacDiff) reportLost(grants []k8s.Grant) {
	by := map[string][]clause{} // by the operator whose role granted the permissions
	objectOf := map[string]*Object{}
	for _, b := range d.clauses(grants) {
		d.claimGrants(b)
		from := d.object
		if o, _ := d.findSource(d.c.before, b); o != nil && isRole(d.subject) {
			from = o
		}
		operator := ""
		if from != nil {
			operator = from.Operator
		}
		by[operator] = append(by[operator], b)
		objectOf[operator] = cmp.Or(objectOf[operator], from)
	}
	for operator, list := range by {
		for scope, list := range groupByScope(list) {
			d.c.add("rbac.lost", objectOf[operator], Finding{
				Field: describeScope(scope), Before: strings.Join(describeAll(list), ", "),
				Message: fmt.Sprintf("%smay no longer %s in %s", d.subjectPrefix(), diag.Some(describeAll(list), 3), describeScope(scope)),
			})
		}
	}
}

// findSource returns the role in v that grants a clause, and the index of the granting rule in this role. It
// prefers roles of the subject's operator. It returns nil if there is no such role.
func (d rbacDiff) findSource(v *view, b clause) (*Object, int) {
	for _, own := range []bool{true, false} {
		for _, o := range v.order {
			r := o.Key()
			if r.Kind != "Role" && r.Kind != "ClusterRole" || r.Kind == "Role" && r.Namespace != b.grant.Namespace {
				continue
			}
			if (d.object != nil && o.Operator == d.object.Operator) != own || isRole(d.subject) && d.subject != roleSubject(r) && !slices.Contains(aggregatesTo(o), d.subject.Name) {
				continue
			}
			for i, rule := range k8s.Items(o.Content, "rules") {
				if ruleGrants(rule, b) {
					return o, i
				}
			}
		}
	}
	return nil, 0
}

// claimGrants records the fields that a finding about b covers: the grants in the roles of the
// subject, and the subject in bindings.
func (d rbacDiff) claimGrants(b clause) {
	for _, key := range d.bindings {
		d.c.claimed.add(key, subjectAt(d.subject))
	}
	for _, key := range d.roles {
		for _, object := range b.objects {
			for _, verb := range b.verbs {
				d.c.claimed.add(key, grantAt(verb, object))
			}
		}
	}
}

// boundRoles returns the changed roles of each subject, according to the bindings before and after the change.
// For a built-in ClusterRole, these are the changed roles that are aggregated into it.
func boundRoles(c *comparison) map[k8s.Subject][]k8s.Key {
	changed := map[k8s.Key]bool{}
	c.each(func(p pair) {
		changed[p.object().Key()] = p.onBothSides()
	}, "Role.rbac.authorization.k8s.io", "ClusterRole.rbac.authorization.k8s.io")
	out := map[k8s.Subject][]k8s.Key{}
	add := func(s k8s.Subject, role k8s.Key) {
		if changed[role] && !slices.Contains(out[s], role) {
			out[s] = append(out[s], role)
		}
	}
	for _, v := range []*view{c.before, c.after} {
		for _, o := range v.order {
			key := o.Key()
			switch {
			case key.Group != "rbac.authorization.k8s.io":
			case strings.HasSuffix(key.Kind, "RoleBinding"):
				role := k8s.BoundRole(o.Content)
				for _, m := range k8s.Items(o.Content, "subjects") {
					add(k8s.SubjectIn(key.Namespace, m), role)
				}
			case key.Kind == "Role":
				add(roleSubject(key), key)
			case key.Kind == "ClusterRole":
				for _, into := range append(aggregatesTo(o), key.Name) {
					add(k8s.Subject{Kind: "ClusterRole", Name: into}, key)
				}
			}
		}
	}
	return out
}

func ruleGrants(rule map[string]any, b clause) bool {
	has := func(field, want string) bool { return slices.Contains(k8s.Texts(rule, field), want) }
	if !has("verbs", b.verbs[0]) {
		return false
	}
	if b.grant.URL != "" {
		return has("nonResourceURLs", b.grant.URL)
	}
	named := len(k8s.Texts(rule, "resourceNames")) == 0 && b.grant.Name == "" || has("resourceNames", b.grant.Name)
	return named && has("apiGroups", b.grant.Group) && has("resources", b.grant.Resource)
}

// subjectPrefix returns a message prefix that names the subject. It returns "" if the finding is
// about the ServiceAccount itself.
func (d rbacDiff) subjectPrefix() string {
	switch {
	case isRole(d.subject):
		return fmt.Sprintf("every subject bound to %s ", d.subject)
	case d.object != nil && d.object.Key().Kind == "ServiceAccount":
		return ""
	}
	return d.subject.String() + " "
}

func describeScope(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// grantObject returns the name of the resource or URL of a grant: "pods/exec", "deployments.apps",
// "/metrics".
func grantObject(g k8s.Grant) string {
	switch {
	case g.Role != "":
		return g.Role
	case g.URL != "":
		return g.URL
	}
	s := g.Resource
	if g.Group != "" {
		s += "." + g.Group
	}
	if g.Name != "" {
		s += fmt.Sprintf(" %q", g.Name)
	}
	return s
}

func describeClause(b clause) string {
	if b.grant.Role != "" {
		return "use the permissions of " + b.grant.Role
	}
	verbs := strings.Join(b.verbs, ", ")
	if verbs == "*" {
		verbs = "use all verbs on"
	}
	return verbs + " " + diag.Some(b.objects, 12)
}

func describeAll(list []clause) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = describeClause(b)
	}
	return out
}

// verbsOn returns the verbs that grants in set allow on the resource of g, sorted.
func verbsOn(set []k8s.Grant, g k8s.Grant) []string {
	var out []string
	for _, have := range set {
		want := g
		want.Verb = have.Verb
		if have.Covers(want) && !slices.Contains(out, have.Verb) {
			out = append(out, have.Verb)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
