package verify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/plan"
	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/rbac"
)

const rbacGroup = "rbac.authorization.k8s.io"

// authority is what the RBAC objects of a cluster permit.
type authority struct{ objects []kobj.Object }

// readRBAC reads every Role and ClusterRole of a cluster with their bindings.
func readRBAC(ctx context.Context, r Reader) (authority, error) {
	kinds := []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	found := make([][]kobj.Object, len(kinds))
	err := each(ctx, len(kinds), func(ctx context.Context, i int) (err error) {
		found[i], err = r.List(ctx, rbacGroup+"/v1", kinds[i], "", "")
		return err
	})
	return authority{slices.Concat(found...)}, err
}

// only returns the authority of what keep reports.
func (a authority) only(keep func(kobj.Object) bool) authority {
	return authority{slices.DeleteFunc(slices.Clone(a.objects), func(o kobj.Object) bool { return !keep(o) })}
}

// model returns what subjects may do, of whom only those that matter are kept: with
// all bindings of a large cluster it would be too much.
func (a authority) model(matters func(binding kobj.Object) bool) (*rbac.Model, error) {
	var objects []map[string]any
	for _, o := range a.objects {
		if !isBinding(o) || matters(o) {
			objects = append(objects, o)
		}
	}
	return rbac.New(objects)
}

// accounts returns what ServiceAccounts may do, in the order of who.
func (a authority) accounts(who []rbac.Subject, p *plan.Plan) ([]Account, error) {
	all, err := a.model(about(who))
	if err != nil {
		return nil, err
	}
	applied := appliedBy(p)
	ours, err := a.only(func(o kobj.Object) bool { return applied[o.Key()] }).model(about(who))
	if err != nil {
		return nil, err
	}
	var out []Account
	for _, s := range who {
		out = append(out, Account{s.Namespace, s.Name, permissions(has(all, s)), permissions(ours.Of(s))})
	}
	return out, nil
}

// has returns what somebody may do. A binding to a role that is not there, as while
// the garbage collector is at work, permits nothing.
func has(m *rbac.Model, s rbac.Subject) []rbac.Grant {
	return slices.DeleteFunc(slices.Clone(m.Of(s)), func(g rbac.Grant) bool { return g.Role != "" })
}

// about returns whether a binding can concern any of these ServiceAccounts.
func about(who []rbac.Subject) func(kobj.Object) bool {
	names, accounts := map[[2]string]bool{{"Group", "system:authenticated"}: true, {"Group", "system:serviceaccounts"}: true}, map[rbac.Subject]bool{}
	for _, s := range who {
		accounts[s] = true
		names[[2]string{"User", user(s)}] = true
		names[[2]string{"Group", "system:serviceaccounts:" + s.Namespace}] = true
	}
	return func(binding kobj.Object) bool {
		return slices.ContainsFunc(bound(binding), func(s rbac.Subject) bool { return accounts[s] }) ||
			slices.ContainsFunc(kobj.Items(binding, "subjects"), func(m map[string]any) bool {
				return names[[2]string{kobj.Text(m, "kind"), kobj.Text(m, "name")}]
			})
	}
}

// bound returns the ServiceAccounts of a binding. One without a namespace is in the
// binding's.
func bound(binding kobj.Object) []rbac.Subject {
	var out []rbac.Subject
	for _, m := range kobj.Items(binding, "subjects") {
		s := rbac.Subject{Kind: kobj.Text(m, "kind"), Namespace: cmp.Or(kobj.Text(m, "namespace"), binding.Namespace()), Name: kobj.Text(m, "name")}
		if s.Kind == "ServiceAccount" {
			out = append(out, s)
		}
	}
	return out
}

func isBinding(o kobj.Object) bool {
	return o.Is(rbacGroup, "RoleBinding") || o.Is(rbacGroup, "ClusterRoleBinding")
}

// user returns the name by which the API server knows a ServiceAccount.
func user(s rbac.Subject) string { return accountPrefix + s.Namespace + ":" + s.Name }

// accountPrefix is what the user names of ServiceAccounts begin with.
const accountPrefix = "system:serviceaccount:"

// accountsOf returns the ServiceAccounts among objects, those as which their pods
// run, and those that their bindings are for, sorted.
func accountsOf(objects []kobj.Object) []rbac.Subject {
	var out []rbac.Subject
	put := func(namespace, name string) {
		out = append(out, rbac.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
	}
	for _, o := range objects {
		switch {
		case o.Is("", "ServiceAccount"):
			put(o.Namespace(), o.Name())
		case o.Is("apps", "Deployment"):
			name := kobj.Text(kobj.PodSpec(o), "serviceAccountName")
			if name == "" {
				name = "default"
			}
			put(o.Namespace(), name)
		case isBinding(o):
			out = append(out, bound(o)...)
		}
	}
	slices.SortFunc(out, rbac.Subject.Compare)
	return slices.Compact(out)
}

// excused reports whether a plan takes a permission away because only OLM had a use
// for it: to read the Secret of a certificate, which pods mount, and to write an
// OperatorCondition that goes.
func (g going) excused(have rbac.Grant) bool {
	switch {
	case have.Group == "" && have.Resource == "secrets":
		return strings.HasSuffix(have.Name, "-service-cert")
	case have.Group == snapshot.OLM && strings.HasPrefix(have.Resource, "operatorconditions"):
		condition := kobj.Key{Group: snapshot.OLM, Kind: "OperatorCondition", Namespace: have.Namespace, Name: have.Name}
		return g.live[have.Namespace] || g.keys[condition] || g.later[condition]
	}
	return false
}

// missed returns what somebody had and has no longer, but for what is excused.
func (g going) missed(have, had []rbac.Grant) []rbac.Grant {
	return slices.DeleteFunc(rbac.Gained(have, had), g.excused)
}

// compareRights returns what accounts lost, and what they gained from others than
// the objects that the plan applies: by the RBAC objects, and what these do not
// explain of what the cluster answers.
func (c *comparison) compareRights(before, after *Evidence) []Finding {
	now := map[rbac.Subject]Account{}
	for _, a := range after.Accounts {
		now[a.subject()] = a
	}
	var out []Finding
	for _, a := range before.Accounts {
		s := a.subject()
		b, asked := now[s]
		if !asked {
			continue
		}
		had, have := grants(a.Permissions), grants(b.Permissions)
		planned := rbac.NewSet(grants(b.Planned))
		more := slices.DeleteFunc(rbac.Gained(had, have), planned.Covers)
		found := append(grouped(RightLost, s, "may no longer", c.gone.missed(have, had)), grouped(RightGained, s, "may now also", more)...)
		out = append(out, append(found, compareAnswers(s, rbac.NewSet(had), rbac.NewSet(have), before.Answers, after.Answers)...)...)
	}
	return out
}

// appliedBy returns what a plan applies.
func appliedBy(p *plan.Plan) map[kobj.Key]bool {
	out := map[kobj.Key]bool{}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if a.Do == plan.Apply {
				out[a.Object.Key()] = true
			}
		}
	}
	return out
}

// prepared returns what somebody may only do by what the clean-up of a namespace
// deletes: ServiceAccounts, and users that are bound to OLM's roles.
func (c *comparison) prepared(now authority, namespace string) ([]Finding, error) {
	goes := gone(&plan.Plan{Steps: stepsOf(c.plan, namespace)}, len(c.plan.Steps))
	stays := now.only(func(o kobj.Object) bool { return !goes.has(described(kobj.RefTo(o), o)) })
	concerned := func(o kobj.Object) bool {
		role := kobj.Key{Group: rbacGroup, Kind: kobj.Text(o, "roleRef", "kind"), Name: kobj.Text(o, "roleRef", "name")}
		if role.Kind == "Role" {
			role.Namespace = o.Namespace()
		}
		return goes.keys[role] || goes.has(described(kobj.RefTo(o), o))
	}
	var who []rbac.Subject
	for _, o := range now.objects {
		if isBinding(o) && concerned(o) {
			who = append(who, bound(o)...)
		}
	}
	matters := about(who)
	before, err := now.model(func(o kobj.Object) bool { return concerned(o) || matters(o) })
	if err != nil {
		return nil, err
	}
	after, err := stays.model(func(o kobj.Object) bool { return concerned(o) || matters(o) })
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, s := range before.Subjects() {
		out = append(out, grouped(RightMissing, s, "may only by what OLM made", goes.missed(has(after, s), has(before, s)))...)
	}
	return out, nil
}

// stepsOf returns the steps of a namespace.
func stepsOf(p *plan.Plan, namespace string) []plan.Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return s.Namespace != namespace })
}

// maxTold is how many permissions a finding names.
const maxTold = 5

// grouped returns a finding for each namespace in which a subject lost or gained
// something.
func grouped(code Code, s rbac.Subject, verb string, grants []rbac.Grant) []Finding {
	byNamespace, order := map[string][]rbac.Grant{}, []string{}
	for _, g := range grants {
		if byNamespace[g.Namespace] == nil {
			order = append(order, g.Namespace)
		}
		byNamespace[g.Namespace] = append(byNamespace[g.Namespace], g)
	}
	var out []Finding
	for _, ns := range order {
		where, list := "in the whole cluster", byNamespace[ns]
		if ns != "" {
			where = "in namespace " + ns
		}
		var told []string
		for _, g := range list[:min(len(list), maxTold)] {
			told = append(told, words(g))
		}
		text := strings.Join(told, ", ")
		if more := len(list) - maxTold; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, Finding{Code: code, Account: s.String(), Namespace: ns, Message: fmt.Sprintf("%s %s %s: %s", s, verb, where, text)})
	}
	return out
}

// words says what a grant permits: "get pods/log.apps (name)".
func words(g rbac.Grant) string {
	switch {
	case g.Role != "":
		return "what " + g.Role + " permits, which is not there"
	case g.URL != "":
		return g.Verb + " " + g.URL
	}
	text := g.Verb + " " + g.Resource
	if g.Group != "" {
		text += "." + g.Group
	}
	if g.Name != "" {
		text += " (" + g.Name + ")"
	}
	return text
}
