package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/rbac"
)

// rbacKinds are the kinds that decide who may do what.
func rbacKinds() []string {
	const group = ".rbac.authorization.k8s.io"
	return []string{"ServiceAccount", "Role" + group, "ClusterRole" + group, "RoleBinding" + group, "ClusterRoleBinding" + group}
}

// comparePermissions compares what every subject may do, not the text of roles.
func comparePermissions(c *comparison) {
	touched := false
	c.each(func(pair) { touched = true }, rbacKinds()...)
	if !touched {
		return
	}
	old, errOld := permissions(c.before)
	now, errNew := permissions(c.after)
	for _, err := range []error{errOld, errNew} {
		if err != nil {
			c.note("permissions were not compared: %v", err)
			return
		}
	}
	all := append(old.Subjects(), now.Subjects()...)
	slices.SortFunc(all, rbac.Subject.Compare)
	renamed := renamedAccounts(c, old, now)
	for _, s := range slices.Compact(all) {
		was := s
		if from, ok := renamed[s]; ok {
			was = from
		}
		d := rbacDiff{c: c, subject: s, had: old.Of(was), has: now.Of(s)}
		d.home = home(c.after, s)
		if d.home == nil {
			d.home = home(c.before, s)
		}
		d.fresh = len(d.had) == 0 && (d.home == nil || !c.before.hasOperator(d.home.Operator))
		d.gained(rbac.Gained(d.had, now.Direct(s)))
		if !isValue(renamed, s) {
			d.lost(rbac.Gained(d.has, old.Direct(was)))
		}
	}
}

func permissions(v *view) (*rbac.Model, error) {
	var objects []map[string]any
	for _, o := range v.order {
		if o.Ref().is(rbacKinds()...) {
			objects = append(objects, o.Content)
		}
	}
	for i := range v.Resources {
		if v.Resources[i].Ref().is(rbacKinds()...) {
			objects = append(objects, v.Resources[i].Content)
		}
	}
	m, err := rbac.New(objects)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	return m, nil
}

// renamedAccounts maps new ServiceAccounts to those whose place they take: the
// only one of an operator and namespace that comes, for the only one that goes.
func renamedAccounts(c *comparison, old, now *rbac.Model) map[rbac.Subject]rbac.Subject {
	type slot struct{ operator, namespace string }
	gone, come := map[slot][]rbac.Subject{}, map[slot][]rbac.Subject{}
	collect := func(into map[slot][]rbac.Subject, m, other *rbac.Model, v *view) {
		for _, s := range m.Subjects() {
			if s.Kind == "ServiceAccount" && !slices.Contains(other.Subjects(), s) {
				if o := home(v, s); o != nil {
					k := slot{o.Operator, s.Namespace}
					into[k] = append(into[k], s)
				}
			}
		}
	}
	collect(gone, old, now, c.before)
	collect(come, now, old, c.after)
	out := map[rbac.Subject]rbac.Subject{}
	for k, s := range come {
		if len(s) == 1 && len(gone[k]) == 1 {
			out[s[0]] = gone[k][0]
		}
	}
	for _, s := range slices.SortedFunc(mapKeys(out), rbac.Subject.Compare) {
		c.add("rbac.account-renamed", home(c.after, s), Finding{
			Before: out[s].Name, After: s.Name, Message: fmt.Sprintf("ServiceAccount %s takes the place of %s", s.Name, out[s].Name),
			steps: path("metadata", "name"),
		})
	}
	return out
}

// home returns the object that a subject's findings belong to: its
// ServiceAccount, else the first binding or role that names it; nil for none.
func home(v *view, s rbac.Subject) *Object {
	if o := v.byKey[key{kind: "ServiceAccount", namespace: s.Namespace, name: s.Name}]; o != nil && s.Kind == "ServiceAccount" {
		return o
	}
	for _, o := range v.order {
		r := o.Ref()
		if s.Kind == "ClusterRole" && r.Kind == "ClusterRole" && text(o.Content, "metadata", "labels", aggregateTo+s.Name) == "true" {
			return o
		}
		if !strings.HasSuffix(r.Kind, "RoleBinding") {
			continue
		}
		for _, m := range items(o.Content, "subjects") {
			ns := text(m, "namespace")
			if text(m, "kind") == "ServiceAccount" {
				ns = or(ns, r.Namespace)
			}
			if text(m, "kind") == s.Kind && text(m, "name") == s.Name && ns == s.Namespace {
				return o
			}
		}
	}
	return nil
}

const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// rbacDiff is one subject.
type rbacDiff struct {
	c        *comparison
	subject  rbac.Subject
	had, has []rbac.Grant
	home     *Object
	fresh    bool // of an operator that was not there
}

// clause is the grants that one finding speaks of: the same verbs, under the
// same rule, in the same scope and API group.
type clause struct {
	rule    string
	grant   rbac.Grant // the first object, without its verb
	verbs   []string   // sorted
	objects []string   // "pods/exec", "deployments.apps"; sorted
	own     bool       // of a kind that the operator brings itself
}

func (d rbacDiff) gained(grants []rbac.Grant) {
	var ordinary []clause
	for _, b := range d.clauses(grants) {
		if b.rule == "rbac.gained" && d.fresh {
			ordinary = append(ordinary, b)
			continue
		}
		d.say(b)
	}
	for scope, list := range byScope(ordinary) {
		d.c.add("rbac.gained", d.home, Finding{
			Field: where(scope), After: some(describeAll(list), 40),
			Message: fmt.Sprintf("%s of a new operator in %s", plural(len(list), "ordinary permission", "ordinary permissions"), where(scope)),
		}, Info)
	}
}

// clauses groups grants: first by object, then those objects of one API group
// that have the same verbs.
func (d rbacDiff) clauses(grants []rbac.Grant) []clause {
	var single []clause
	for _, g := range grants {
		rule := dangerOf(g)
		if rule == "rbac.gained" && d.subject.Kind == "ClusterRole" {
			rule = "rbac.aggregated"
		}
		verb := g.Verb
		g.Verb = ""
		i := slices.IndexFunc(single, func(b clause) bool { return b.rule == rule && b.grant == g })
		if i < 0 {
			single = append(single, clause{rule: rule, grant: g, objects: []string{object(g)}, own: d.own(g)})
			i = len(single) - 1
		}
		single[i].verbs = append(single[i].verbs, verb)
	}
	var out []clause
	for _, b := range single {
		slices.Sort(b.verbs)
		i := slices.IndexFunc(out, func(o clause) bool {
			return o.rule == b.rule && o.own == b.own && o.grant.Namespace == b.grant.Namespace && o.grant.Group == b.grant.Group &&
				o.grant.URL == "" && b.grant.URL == "" && o.grant.Role == "" && b.grant.Role == "" &&
				(o.grant.Name == "") == (b.grant.Name == "") && slices.Equal(o.verbs, b.verbs)
		})
		if i < 0 {
			out = append(out, b)
			continue
		}
		out[i].objects = append(out[i].objects, b.objects...)
	}
	return out
}

// own reports whether g is about a kind whose definition the same operator
// brings: what it was made for.
func (d rbacDiff) own(g rbac.Grant) bool {
	resource, _, _ := strings.Cut(g.Resource, "/")
	crd := d.c.after.byKey[key{"apiextensions.k8s.io", "CustomResourceDefinition", "", resource + "." + g.Group}]
	return crd != nil && d.home != nil && crd.Operator == d.home.Operator
}

func byScope(list []clause) map[string][]clause {
	out := map[string][]clause{}
	for _, b := range list {
		out[b.grant.Namespace] = append(out[b.grant.Namespace], b)
	}
	return out
}

func (d rbacDiff) say(b clause) {
	f := Finding{
		Field: strings.Join(b.objects, ", "), Before: strings.Join(verbsOn(d.had, b.grant), ", "), After: strings.Join(verbsOn(d.has, b.grant), ", "),
		Message: fmt.Sprintf("%smay now %s in %s", d.who(), describe(b), where(b.grant.Namespace)),
	}
	if b.grant.Role != "" {
		f.Before, f.After = "", b.grant.Role
	}
	if o, i := d.source(b); o != nil {
		f.where, f.steps = o, []step{{key: "rules"}, {key: strconv.Itoa(i), by: "#"}}
	}
	d.c.add(b.rule, d.home, f, caps(b)...)
}

// caps lowers what is narrow: one namespace, one name, reading.
func caps(b clause) []Severity {
	var out []Severity
	if b.grant.Namespace != "" && b.rule != "rbac.escalate" && b.rule != "rbac.impersonate" {
		out = append(out, Medium)
	}
	if b.grant.Name != "" {
		out = append(out, Medium)
	}
	if b.own && b.rule == "rbac.gained" {
		out = append(out, Low)
	}
	reads := !slices.ContainsFunc(b.verbs, func(v string) bool { return !slices.Contains([]string{"get", "list", "watch"}, v) })
	if b.rule == "rbac.gained" && (reads || b.grant.Namespace != "") {
		out = append(out, Low)
	}
	return out
}

func (d rbacDiff) lost(grants []rbac.Grant) {
	for scope, list := range byScope(d.clauses(grants)) {
		d.c.add("rbac.lost", d.home, Finding{
			Field: where(scope), Before: some(describeAll(list), 40),
			Message: fmt.Sprintf("%smay no longer %s in %s", d.who(), some(describeAll(list), 3), where(scope)),
		})
	}
}

// source finds the rule of a role that gives a clause: of the same operator first.
func (d rbacDiff) source(b clause) (*Object, int) {
	for _, own := range []bool{true, false} {
		for _, o := range d.c.after.order {
			r := o.Ref()
			if r.Kind != "Role" && r.Kind != "ClusterRole" || r.Kind == "Role" && r.Namespace != b.grant.Namespace {
				continue
			}
			if (d.home != nil && o.Operator == d.home.Operator) != own {
				continue
			}
			for i, rule := range items(o.Content, "rules") {
				if gives(rule, b) {
					return o, i
				}
			}
		}
	}
	return nil, 0
}

func gives(rule map[string]any, b clause) bool {
	has := func(field, want string) bool { return slices.Contains(texts(rule, field), want) }
	if !has("verbs", b.verbs[0]) {
		return false
	}
	if b.grant.URL != "" {
		return has("nonResourceURLs", b.grant.URL)
	}
	named := len(texts(rule, "resourceNames")) == 0 && b.grant.Name == "" || has("resourceNames", b.grant.Name)
	return named && has("apiGroups", b.grant.Group) && has("resources", b.grant.Resource)
}

// who names the subject, where the finding is not about its own object.
func (d rbacDiff) who() string {
	switch {
	case d.subject.Kind == "ClusterRole":
		return fmt.Sprintf("everybody bound to ClusterRole %s ", d.subject.Name)
	case d.home != nil && d.home.Ref().Kind == "ServiceAccount":
		return ""
	}
	return d.subject.String() + " "
}

func where(namespace string) string {
	if namespace == "" {
		return "all namespaces"
	}
	return "namespace " + namespace
}

// object names what a grant is about: "pods/exec", "deployments.apps", "/metrics".
func object(g rbac.Grant) string {
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

func describe(b clause) string {
	if b.grant.Role != "" {
		return "do what " + b.grant.Role + " allows"
	}
	verbs := strings.Join(b.verbs, ", ")
	if verbs == "*" {
		verbs = "do anything with"
	}
	return verbs + " " + some(b.objects, 12)
}

func describeAll(list []clause) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = describe(b)
	}
	return out
}

// verbsOn returns the verbs that a set has on the object of g, or on a wider one.
func verbsOn(set []rbac.Grant, g rbac.Grant) []string {
	var out []string
	for _, have := range set {
		ask := g
		ask.Verb = have.Verb
		if have.Covers(ask) && !slices.Contains(out, have.Verb) {
			out = append(out, have.Verb)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
