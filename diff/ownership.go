package diff

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
)

// The state before the change determines ownership: a change cannot make an operator the owner of an
// object that it changes.

// ownsKind reports whether the kind of an object belongs to the object's operator: see ownsGroup.
// The table of powers has the kinds that belong to no operator, whoever ships their CRDs.
func (c *comparison) ownsKind(o *Object) bool {
	key := o.Key()
	return o.Operator != "" && c.ownsGroup(o.Operator, key.Group, key.Kind)
}

// ownsGroup reports whether a kind belongs to an operator: in the state before, the operator owns the
// kind, or all kinds of the group that somebody owns. A new operator owns its kinds that nobody had
// before.
func (c *comparison) ownsGroup(operator, group, kind string) bool {
	key := k8s.Key{Group: group, Kind: kind}
	if c.before.crds[key] != nil {
		return c.isOperator(c.before.owners[key], operator)
	}
	had, others := false, false
	for k, owner := range c.before.owners {
		if k.Group == group {
			own := c.isOperator(owner, operator)
			had, others = had || own, others || !own
		}
	}
	if !had && !c.before.hasOperator(operator) {
		had = c.after.owners[key] == operator
	}
	return had && !others
}

// kindOwners returns the owners of the kinds that have a CRD: the operator that renders the CRD. If its
// pin has properties, the ClusterServiceVersion must list the kind as owned. Other kinds have no owner.
func (v *view) kindOwners() map[k8s.Key]string {
	pins := slices.Clone(v.Pins)
	for _, l := range v.Leaving {
		pins = append(pins, l.Pin)
	}
	provided := map[string][]catalog.GVK{}
	for _, p := range pins {
		if len(p.Properties) > 0 {
			provided[p.Key()] = catalog.Read(p.Properties).Provides
		}
	}
	out := map[k8s.Key]string{}
	for key, crd := range v.crds {
		kinds, known := provided[crd.Operator]
		if !known || slices.ContainsFunc(kinds, func(g catalog.GVK) bool { return g.Group == key.Group && g.Kind == key.Kind }) {
			out[key] = crd.Operator
		}
	}
	return out
}

// isOperator reports whether now is the operator was, or its successor.
func (c *comparison) isOperator(was, now string) bool {
	if was == now {
		return true
	}
	l, replaced := c.after.replacedOperator(was)
	return replaced && l.ReplacedBy == now
}

// unlistedSeverity returns the severities of a kind that the table of powers does not list: those of a
// custom resource.
func (c *comparison) unlistedSeverity(o *Object) kindSeverity {
	if c.ownsKind(o) {
		return kindSeverity{added: Info, changed: Info, removed: Low}
	}
	if c.isNamespaced(o) {
		return kindSeverity{added: Medium, changed: Medium, removed: Medium}
	}
	return kindSeverity{added: High, changed: High, removed: Medium}
}

// isNamespaced reports whether an object is in a namespace, by its kind.
func (c *comparison) isNamespaced(o *Object) bool {
	key := o.Key()
	for _, v := range []*view{c.after, c.before} {
		if crd := v.crds[k8s.Key{Group: key.Group, Kind: key.Kind}]; crd != nil {
			return k8s.Text(crd.Content, "spec", "scope") == "Namespaced"
		}
	}
	return k8s.Namespaced(key.Group, key.Kind) && key.Namespace != ""
}

// accountOwners returns the operators, other than the given one, to which a ServiceAccount belongs,
// sorted: before or after, they render it, run pods as it, or bind roles to it. The user's own objects
// may use any account.
func (c *comparison) accountOwners(operator, namespace, name string) []string {
	if c.accounts == nil {
		c.accounts = map[k8s.Subject][]string{}
		for _, v := range []*view{c.before, c.after} {
			for i := range v.Objects {
				c.addAccounts(&v.Objects[i])
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(c.accounts[k8s.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: name}]), func(owner string) bool { return c.isOperator(owner, operator) })
}

// addAccounts adds the ServiceAccounts that an object renders, runs pods as or binds to c.accounts.
func (c *comparison) addAccounts(o *Object) {
	add := func(s k8s.Subject) {
		if i, found := slices.BinarySearch(c.accounts[s], o.Operator); !found && o.Operator != "" && s.Kind == "ServiceAccount" {
			c.accounts[s] = slices.Insert(c.accounts[s], i, o.Operator)
		}
	}
	key := o.Key()
	switch {
	case key.Is("ServiceAccount"):
		add(k8s.Subject{Kind: key.Kind, Namespace: key.Namespace, Name: key.Name})
	case key.Group == k8s.RBACGroup && strings.HasSuffix(key.Kind, "RoleBinding"):
		for _, m := range k8s.Items(o.Content, "subjects") {
			add(k8s.SubjectIn(key.Namespace, m))
		}
	default:
		for _, p := range podsOf(o) {
			for _, field := range []string{"serviceAccountName", "serviceAccount"} {
				if name := k8s.Text(p.spec, field); name != "" && name != "default" {
					add(k8s.Subject{Kind: "ServiceAccount", Namespace: key.Namespace, Name: name})
				}
			}
		}
	}
}

// ownsName reports whether an object of the pod's namespace that the pod refers to belongs to its
// operator: the tree has it, or the operator had its name, or a prefix of it, before.
func (d podDiff) ownsName(kind, name string) bool {
	o := d.p.after
	for _, v := range []*view{d.c.before, d.c.after} {
		if ref := v.byKey[k8s.Key{Kind: kind, Namespace: o.Key().Namespace, Name: name}]; ref != nil {
			return d.c.isOperator(ref.Operator, o.Operator)
		}
	}
	return d.c.ownsPrefix(o.Operator, o.Key().Namespace, name)
}

// ownsPrefix reports whether a name in a namespace begins with the name of an object that the operator
// had there before, or with the name of its package, and with no longer one of another operator.
func (c *comparison) ownsPrefix(operator, namespace, name string) bool {
	longest, owner := 0, ""
	note := func(prefix, by string) {
		if by != "" && len(prefix) > longest && (name == prefix || strings.HasPrefix(name, prefix+"-")) {
			longest, owner = len(prefix), by
		}
	}
	v := c.before
	if operator != "" && !v.hasOperator(operator) {
		v = c.after
	}
	for _, p := range v.Pins {
		if p.Namespace == namespace {
			note(p.Package, p.Key())
		}
	}
	for _, o := range v.order {
		if key := o.Key(); key.Namespace == namespace && (key.Is("ServiceAccount") || len(podsOf(o)) > 0) {
			note(key.Name, o.Operator)
		}
	}
	return owner != "" && c.isOperator(owner, operator)
}

// ownsNamespace reports whether an operator may have objects in a namespace: it is installed there, it
// watched the namespace before, or the state before has the Namespace, of the operator or of the user.
// Objects of no operator, which are the user's, may be in each namespace that belongs to an operator
// or is declared. A system namespace belongs only to the operators that are installed there.
func (c *comparison) ownsNamespace(operator, namespace string) bool {
	if len(c.before.order)+len(c.before.Pins) == 0 || slices.Contains(c.after.Declared, namespace) {
		return true
	}
	if in, _, _ := strings.Cut(operator, "/"); operator != "" && in == namespace {
		return true
	}
	for _, p := range c.before.Pins {
		if (operator == "" || c.isOperator(p.Key(), operator)) && (p.Namespace == namespace || slices.Contains(p.WatchNamespaces, namespace)) {
			return true
		}
	}
	if operator != "" && !c.before.hasOperator(operator) {
		if p, ok := c.after.pin(operator); ok && slices.Contains(p.WatchNamespaces, namespace) {
			return true
		}
	}
	ns := c.before.namespace(namespace)
	return ns != nil && !c.isSystemNamespace(namespace) && (operator == "" || ns.Operator == "" || c.isOperator(ns.Operator, operator))
}

// ownsService reports whether a Service in the namespace of an object is of the same operator.
func (c *comparison) ownsService(o *Object, name string) bool {
	for _, v := range []*view{c.before, c.after} {
		if s := v.byKey[k8s.Key{Kind: "Service", Namespace: o.Key().Namespace, Name: name}]; s != nil {
			return c.isOperator(s.Operator, o.Operator)
		}
	}
	return false
}
