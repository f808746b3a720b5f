package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/plan"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// rbacObjects contains the Roles, ClusterRoles and bindings of a cluster.
type rbacObjects struct{ objects []k8s.Object }

// readRBAC reads all Roles and ClusterRoles of a cluster, with their bindings.
func readRBAC(ctx context.Context, r Reader) (rbacObjects, error) {
	kinds := []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
	found := make([][]k8s.Object, len(kinds))
	err := runParallel(ctx, len(kinds), func(ctx context.Context, i int) (err error) {
		found[i], err = r.List(ctx, k8s.RBACGroup+"/v1", kinds[i], "", "")
		return err
	})
	return rbacObjects{slices.Concat(found...)}, err
}

// filterObjects returns the objects for which keep returns true.
func (a rbacObjects) filterObjects(keep func(k8s.Object) bool) rbacObjects {
	return rbacObjects{slices.DeleteFunc(slices.Clone(a.objects), func(o k8s.Object) bool { return !keep(o) })}
}

// permissions returns the permissions of subjects. It uses only bindings for which matters returns true. In a
// large cluster, using all bindings would take too long.
func (a rbacObjects) permissions(matters func(binding k8s.Object) bool) (*k8s.Permissions, error) {
	var objects []map[string]any
	for _, o := range a.objects {
		if !isBinding(o) || matters(o) {
			objects = append(objects, o)
		}
	}
	return k8s.NewPermissions(objects)
}

// accounts returns the ServiceAccounts in subjects with their permissions, in the same order.
func (a rbacObjects) accounts(subjects []k8s.Subject, p *plan.Plan) ([]Account, error) {
	all, err := a.permissions(bindingFilter(subjects))
	if err != nil {
		return nil, err
	}
	applied := appliedBy(p)
	ours, err := a.filterObjects(func(o k8s.Object) bool { return applied[o.Key()] }).permissions(bindingFilter(subjects))
	if err != nil {
		return nil, err
	}
	var out []Account
	for _, s := range subjects {
		out = append(out, Account{s.Namespace, s.Name, subjectGrants(all, s), slices.Clone(ours.Of(s))})
	}
	return out, nil
}

// subjectGrants returns the permissions of a subject. It ignores bindings to missing roles, which exist for a
// short time until the garbage collector deletes them.
func subjectGrants(m *k8s.Permissions, s k8s.Subject) []k8s.Grant {
	return slices.DeleteFunc(append([]k8s.Grant{}, m.Of(s)...), func(g k8s.Grant) bool { return g.Role != "" })
}

// bindingFilter returns a function that reports whether a binding can apply to one of the
// ServiceAccounts.
func bindingFilter(subjects []k8s.Subject) func(k8s.Object) bool {
	names, accounts := map[[2]string]bool{{"Group", "system:authenticated"}: true, {"Group", "system:serviceaccounts"}: true}, map[k8s.Subject]bool{}
	for _, s := range subjects {
		accounts[s] = true
		names[[2]string{"User", subjectName(s)}] = true
		names[[2]string{"Group", "system:serviceaccounts:" + s.Namespace}] = true
	}
	return func(binding k8s.Object) bool {
		return slices.ContainsFunc(boundSubjects(binding), func(s k8s.Subject) bool { return accounts[s] }) ||
			slices.ContainsFunc(k8s.Items(binding, "subjects"), func(m map[string]any) bool {
				return names[[2]string{k8s.Text(m, "kind"), k8s.Text(m, "name")}]
			})
	}
}

// boundSubjects returns the ServiceAccounts that a binding lists.
func boundSubjects(binding k8s.Object) []k8s.Subject {
	return slices.DeleteFunc(k8s.BindingSubjects(binding), func(s k8s.Subject) bool { return s.Kind != "ServiceAccount" })
}

func isBinding(o k8s.Object) bool {
	return o.Is(k8s.RBACGroup, "RoleBinding") || o.Is(k8s.RBACGroup, "ClusterRoleBinding")
}

// subjectName returns the user name that the API server uses for a ServiceAccount.
func subjectName(s k8s.Subject) string { return accountPrefix + s.Namespace + ":" + s.Name }

// accountPrefix is the prefix of the user names of ServiceAccounts.
const accountPrefix = "system:serviceaccount:"

// accountsOf returns the ServiceAccounts in objects, sorted. These are ServiceAccount objects, the accounts of
// pods, and the subjects of bindings.
func accountsOf(objects []k8s.Object) []k8s.Subject {
	var out []k8s.Subject
	put := func(namespace, name string) {
		out = append(out, k8s.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name})
	}
	for _, o := range objects {
		switch {
		case o.Is("", "ServiceAccount"):
			put(o.Namespace(), o.Name())
		case o.Is("apps", "Deployment"):
			name := k8s.Text(k8s.PodSpec(o), "serviceAccountName")
			if name == "" {
				name = "default"
			}
			put(o.Namespace(), name)
		case isBinding(o):
			out = append(out, boundSubjects(o)...)
		}
	}
	slices.SortFunc(out, k8s.Subject.Compare)
	return slices.Compact(out)
}

// isIntended reports whether the plan removes a permission on purpose, because it was only needed with OLM:
// reading the Secret of a certificate that pods mount, or writing an OperatorCondition that the plan removes.
func (g removedObjects) isIntended(have k8s.Grant) bool {
	switch {
	case have.Group == "" && have.Resource == "secrets":
		return strings.HasSuffix(have.Name, "-service-cert")
	case have.Group == k8s.OLMGroup && strings.HasPrefix(have.Resource, "operatorconditions"):
		condition := k8s.Key{Group: k8s.OLMGroup, Kind: "OperatorCondition", Namespace: have.Namespace, Name: have.Name}
		return g.live[have.Namespace] || g.keys[condition] || g.later[condition]
	}
	return false
}

// findLostGrants returns the earlier permissions (had) that are missing from the current ones (have). It omits
// permissions that the plan removes on purpose.
func (g removedObjects) findLostGrants(have, had []k8s.Grant) []k8s.Grant {
	return slices.DeleteFunc(k8s.GainedGrants(have, had), g.isIntended)
}

// comparePermissions returns findings about permissions that accounts lost, or gained from objects outside of
// the plan. For each account, it compares the permissions in RBAC objects, and then the results of access
// reviews. It ignores a changed result if changed RBAC objects explain it.
func (c *comparison) comparePermissions(before, after *Evidence) []Finding {
	now := map[k8s.Subject]Account{}
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
		had, have := a.Permissions, b.Permissions
		planned := k8s.NewGrantSet(b.Planned)
		more := slices.DeleteFunc(k8s.GainedGrants(had, have), planned.Covers)
		found := append(groupFindings(PermissionLost, s, "lost permissions", c.removed.findLostGrants(have, had)), groupFindings(PermissionGained, s, "gained permissions", more)...)
		out = append(out, append(found, compareAnswers(s, k8s.NewGrantSet(had), k8s.NewGrantSet(have), before.Answers, after.Answers)...)...)
	}
	return out
}

// appliedBy returns the objects that a plan applies.
func appliedBy(p *plan.Plan) map[k8s.Key]bool {
	out := map[k8s.Key]bool{}
	for _, s := range p.Steps {
		for _, a := range s.Actions {
			if a.Do == plan.Apply {
				out[a.Object.Key()] = true
			}
		}
	}
	return out
}

// lostByCleanUp returns findings about the permissions that the clean-up of a namespace would remove. It checks
// ServiceAccounts, and other subjects of bindings to OLM's roles.
func (c *comparison) lostByCleanUp(now rbacObjects, namespace string) ([]Finding, error) {
	removed := removedBy(&plan.Plan{Steps: stepsOf(c.plan, namespace)}, len(c.plan.Steps))
	remaining := now.filterObjects(func(o k8s.Object) bool { return !removed.has(newObject(k8s.RefTo(o), o)) })
	isAffected := func(o k8s.Object) bool {
		return removed.keys[k8s.BoundRole(o)] || removed.has(newObject(k8s.RefTo(o), o))
	}
	var accounts []k8s.Subject
	for _, o := range now.objects {
		if isBinding(o) && isAffected(o) {
			accounts = append(accounts, boundSubjects(o)...)
		}
	}
	isRelevant := bindingFilter(accounts)
	before, err := now.permissions(func(o k8s.Object) bool { return isAffected(o) || isRelevant(o) })
	if err != nil {
		return nil, err
	}
	after, err := remaining.permissions(func(o k8s.Object) bool { return isAffected(o) || isRelevant(o) })
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, s := range before.Subjects() {
		out = append(out, groupFindings(PermissionMissing, s, "has permissions only from OLM's roles", removed.findLostGrants(subjectGrants(after, s), subjectGrants(before, s)))...)
	}
	return out, nil
}

// stepsOf returns the steps for a namespace, and the steps that stop, start or restart OLM.
func stepsOf(p *plan.Plan, namespace string) []plan.Step {
	return slices.DeleteFunc(slices.Clone(p.Steps), func(s plan.Step) bool { return s.Namespace != namespace && !concernsOLM(s) })
}

// maxListed is the maximum number of permissions in a finding.
const maxListed = 5

// groupFindings returns a finding for each namespace in which the permissions of a subject changed.
func groupFindings(code Code, s k8s.Subject, change string, grants []k8s.Grant) []Finding {
	byNamespace, order := map[string][]k8s.Grant{}, []string{}
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
		var parts []string
		for _, g := range list {
			parts = append(parts, formatGrant(g))
		}
		text := diag.Some(parts, maxListed)
		out = append(out, Finding{Code: code, Account: s.String(), Namespace: ns, Message: fmt.Sprintf("%s %s %s: %s", s, change, where, text)})
	}
	return out
}

// formatGrant formats a permission, such as "get pods/log.apps (name)".
func formatGrant(g k8s.Grant) string {
	switch {
	case g.Role != "":
		return "the permissions of " + g.Role + ", which does not exist"
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
