package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
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
	wasAt, isAt := homes(c.before), homes(c.after)
	renamed := renamedAccounts(c, wasAt, isAt)
	replaced := map[rbac.Subject]bool{}
	for _, was := range renamed {
		replaced[was] = true
	}
	for _, s := range slices.Compact(all) {
		was := s
		if from, ok := renamed[s]; ok {
			was = from
		}
		d := rbacDiff{c: c, subject: s, had: old.Of(was), has: now.Of(s)}
		if d.home = isAt[s]; d.home == nil {
			d.home = wasAt[s]
		}
		d.fresh = len(d.had) == 0 && (d.home == nil || !c.before.hasOperator(d.home.Operator))
		d.gained(rbac.Gained(d.had, now.Direct(s)))
		if !replaced[s] {
			d.lost(rbac.Gained(d.has, old.Direct(was)))
		}
	}
}

// permissions returns what the subjects of a state may do.
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
func renamedAccounts(c *comparison, wasAt, isAt map[rbac.Subject]*Object) map[rbac.Subject]rbac.Subject {
	type slot struct{ operator, namespace string }
	only := func(here, there map[rbac.Subject]*Object) map[slot][]rbac.Subject {
		out := map[slot][]rbac.Subject{}
		for s, o := range here {
			if s.Kind == "ServiceAccount" && there[s] == nil {
				k := slot{o.Operator, s.Namespace}
				out[k] = append(out[k], s)
			}
		}
		return out
	}
	gone := only(wasAt, isAt)
	out := map[rbac.Subject]rbac.Subject{}
	for k, s := range only(isAt, wasAt) {
		if len(s) == 1 && len(gone[k]) == 1 {
			was, is := gone[k][0], s[0]
			out[is] = was
			c.add("rbac.account-renamed", isAt[is], Finding{
				Before: was.Name, After: is.Name, Message: fmt.Sprintf("ServiceAccount %s takes the place of %s", is.Name, was.Name),
				steps: path("metadata", "name"),
			})
		}
	}
	return out
}

// homes returns the object that each subject's findings belong to: its
// ServiceAccount, else the first binding that names it, or the first role that
// aggregates into it.
func homes(v *view) map[rbac.Subject]*Object {
	out := map[rbac.Subject]*Object{}
	first := func(s rbac.Subject, o *Object) {
		if out[s] == nil {
			out[s] = o
		}
	}
	for _, o := range v.order {
		if r := o.Ref(); r.is("ServiceAccount") {
			out[rbac.Subject{Kind: "ServiceAccount", Namespace: r.Namespace, Name: r.Name}] = o
		}
	}
	for _, o := range v.order {
		r := o.Ref()
		switch {
		case r.Group != "rbac.authorization.k8s.io":
		case r.Kind == "ClusterRole":
			for label, value := range kobj.Map(o.Content, "metadata", "labels") {
				if role := rbac.AggregatesTo(label); role != "" && value == "true" {
					first(rbac.Subject{Kind: "ClusterRole", Name: role}, o)
				}
			}
		case strings.HasSuffix(r.Kind, "RoleBinding"):
			for _, m := range kobj.Items(o.Content, "subjects") {
				s := rbac.Subject{Kind: kobj.Text(m, "kind"), Name: kobj.Text(m, "name")}
				if s.Kind == "ServiceAccount" {
					s.Namespace = cmp.Or(kobj.Text(m, "namespace"), r.Namespace)
				}
				first(s, o)
			}
		}
	}
	return out
}

// aggregates reports whether the API server takes a ClusterRole into one of its own.
func aggregates(o *Object, into string) bool {
	for label, value := range kobj.Map(o.Content, "metadata", "labels") {
		if value == "true" && rbac.AggregatesTo(label) == into {
			return true
		}
	}
	return false
}

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
	who     string     // the subject, where the finding is not about its own object
}

func (b clause) field() string { return strings.Join(b.objects, ", ") }

func (b clause) message() string {
	return fmt.Sprintf("%smay now %s in %s", b.who, describe(b), where(b.grant.Namespace))
}

func (d rbacDiff) gained(grants []rbac.Grant) {
	var ordinary []clause
	for i, b := range d.clauses(grants) {
		if i == maxClauses {
			d.c.note("%s: only the first %d kinds of permission gained are listed", d.subject, maxClauses)
			break
		}
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
	type about struct {
		rule  string
		grant rbac.Grant
	}
	var single []clause
	at := map[about]int{}
	for _, g := range grants {
		rule, verb := dangerOf(g), g.Verb
		if rule == "rbac.gained" && d.subject.Kind == "ClusterRole" {
			rule = "rbac.aggregated"
		}
		g.Verb = ""
		i, seen := at[about{rule, g}]
		if !seen {
			i = len(single)
			at[about{rule, g}] = i
			single = append(single, clause{rule: rule, grant: g, objects: []string{object(g)}, own: d.own(g)})
		}
		single[i].verbs = append(single[i].verbs, verb)
	}
	return together(single)
}

// together joins the clauses that say the same of several objects.
func together(single []clause) []clause {
	type alike struct {
		rule, namespace, group, alone, verbs string
		named, own                           bool
	}
	var out []clause
	at := map[alike]int{}
	for _, b := range single {
		slices.Sort(b.verbs)
		k := alike{b.rule, b.grant.Namespace, b.grant.Group, b.grant.URL + b.grant.Role, strings.Join(b.verbs, ","), b.grant.Name != "", b.own}
		if i, seen := at[k]; seen {
			out[i].objects = append(out[i].objects, b.objects...)
			continue
		}
		at[k] = len(out)
		out = append(out, b)
	}
	return out
}

// own reports whether g is about a kind whose definition the same operator
// brings: what it was made for.
func (d rbacDiff) own(g rbac.Grant) bool {
	resource, _, _ := strings.Cut(g.Resource, "/")
	crd := d.c.after.byKey[kobj.Key{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: resource + "." + g.Group}]
	return crd != nil && d.home != nil && crd.Operator == d.home.Operator
}

// maxClauses bounds the findings about one subject.
const maxClauses = 500

func byScope(list []clause) map[string][]clause {
	out := map[string][]clause{}
	for _, b := range list {
		out[b.grant.Namespace] = append(out[b.grant.Namespace], b)
	}
	return out
}

func (d rbacDiff) say(b clause) {
	b.who = d.who()
	f := Finding{
		Field: b.field(), Before: strings.Join(verbsOn(d.had, b.grant), ", "), After: strings.Join(verbsOn(d.has, b.grant), ", "),
		Message: b.message(), clause: &b,
	}
	if b.grant.Role != "" {
		f.Before, f.After = "", b.grant.Role
	}
	home := d.home
	if o, i := d.source(d.c.after, b); o != nil {
		f.where, f.steps = o, []step{{key: "rules"}, {key: strconv.Itoa(i), by: "#"}}
		if d.subject.Kind == "ClusterRole" {
			home = o // many may give to it: the finding is about the one that does
		}
	}
	d.c.add(b.rule, home, f, caps(b)...)
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
	by := map[string][]clause{} // by who gave it
	home := map[string]*Object{}
	for _, b := range d.clauses(grants) {
		from := d.home
		if o, _ := d.source(d.c.before, b); o != nil && d.subject.Kind == "ClusterRole" {
			from = o
		}
		operator := ""
		if from != nil {
			operator = from.Operator
		}
		by[operator] = append(by[operator], b)
		home[operator] = cmp.Or(home[operator], from)
	}
	for operator, list := range by {
		for scope, list := range byScope(list) {
			d.c.add("rbac.lost", home[operator], Finding{
				Field: where(scope), Before: some(describeAll(list), 40),
				Message: fmt.Sprintf("%smay no longer %s in %s", d.who(), some(describeAll(list), 3), where(scope)),
			})
		}
	}
}

// source finds the rule of a role that gives a clause in a state: of the same
// operator first.
func (d rbacDiff) source(v *view, b clause) (*Object, int) {
	for _, own := range []bool{true, false} {
		for _, o := range v.order {
			r := o.Ref()
			if r.Kind != "Role" && r.Kind != "ClusterRole" || r.Kind == "Role" && r.Namespace != b.grant.Namespace {
				continue
			}
			if (d.home != nil && o.Operator == d.home.Operator) != own || d.subject.Kind == "ClusterRole" && !aggregates(o, d.subject.Name) {
				continue
			}
			for i, rule := range kobj.Items(o.Content, "rules") {
				if gives(rule, b) {
					return o, i
				}
			}
		}
	}
	return nil, 0
}

func gives(rule map[string]any, b clause) bool {
	has := func(field, want string) bool { return slices.Contains(kobj.Texts(rule, field), want) }
	if !has("verbs", b.verbs[0]) {
		return false
	}
	if b.grant.URL != "" {
		return has("nonResourceURLs", b.grant.URL)
	}
	named := len(kobj.Texts(rule, "resourceNames")) == 0 && b.grant.Name == "" || has("resourceNames", b.grant.Name)
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
