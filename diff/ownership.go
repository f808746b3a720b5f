package diff

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/k8s"
)

// The state before the change determines ownership: a change cannot make an operator the owner of the objects
// that it changes.

// ownsKind reports whether the kind of an object belongs to the object's operator, as defined at ownsGroup.
func (c *comparison) ownsKind(o *Object) bool {
	key := o.Key()
	return o.Operator != "" && c.ownsGroup(o.Operator, key.Group, key.Kind)
}

// ownsGroup reports whether a kind belongs to an operator. If the old state has a CRD of the kind, the operator
// must be its owner there. If not, the operator must be the only owner of kinds of the API group in the old
// state. A new operator may also be the first owner of a kind of the group.
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

// kindOwners returns the owner of each kind that has a CRD: the operator that renders the CRD. If the pin of the
// operator has properties, they must include the kind as a provided API. Other kinds have no owner.
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

// isOperator reports whether the operators was and now are the same, or now is the successor of was.
func (c *comparison) isOperator(was, now string) bool {
	if was == now {
		return true
	}
	l, replaced := c.after.replacedOperator(was)
	return replaced && l.ReplacedBy == now
}

// unlistedSeverity returns the severities of a kind that the table of powers does not list. Such a kind gets
// the severities of a custom resource.
func unlistedSeverity(c *comparison, o *Object) kindSeverity {
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

// accountOwners returns, sorted, the operators to which a ServiceAccount belongs, except for the given
// operator. An account belongs to each operator that renders it, runs pods as it, or binds roles to it, before
// or after the change. The user's own objects do not count.
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

// addAccounts records in c.accounts that the operator of o owns ServiceAccounts: the account o itself, the
// accounts that the pods in o run as, or the accounts to which the binding o grants a role.
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

// ownsName reports whether the object with this kind and name in the namespace of o belongs to the operator
// of o. If no state has the object, prefixOwner determines the owner of the name.
func ownsName(c *comparison, o *Object, kind, name string) bool {
	for _, v := range []*view{c.before, c.after} {
		if ref := v.byKey[k8s.Key{Kind: kind, Namespace: o.Key().Namespace, Name: name}]; ref != nil {
			return c.isOperator(ref.Operator, o.Operator)
		}
	}
	return c.ownsPrefix(o.Operator, o.Key().Namespace, name)
}

// ownsPrefix reports whether the operator is the owner of a name: see prefixOwner.
func (c *comparison) ownsPrefix(operator, namespace, name string) bool {
	owner := c.prefixOwner(operator, namespace, name)
	return owner != "" && c.isOperator(owner, operator)
}

// prefixOwner returns the operator to which a name in a namespace belongs, or "". The name must begin with one
// of the operator's names in the old state (see ownedNames). The longest match decides. If several operators
// have it, the given operator wins. If the given operator is new, the new state is used instead.
func (c *comparison) prefixOwner(operator, namespace, name string) string {
	longest, owner := 0, ""
	note := func(prefix, by string) {
		if by != "" && (len(prefix) > longest || len(prefix) == longest && c.isOperator(by, operator)) && (name == prefix || strings.HasPrefix(name, prefix+"-")) {
			longest, owner = len(prefix), by
		}
	}
	v := c.before
	if operator != "" && !v.hasOperator(operator) {
		v = c.after
	}
	for _, n := range v.ownedNames()[namespace] {
		note(n.name, n.operator)
	}
	return owner
}

type ownedName struct{ name, operator string }

// ownedNames returns the names of the packages, accounts and workloads of operators, by namespace.
func (v *view) ownedNames() map[string][]ownedName {
	if v.names == nil {
		v.names = map[string][]ownedName{}
		for _, p := range v.Pins {
			v.names[p.Namespace] = append(v.names[p.Namespace], ownedName{p.Package, p.Key()})
		}
		for _, o := range v.order {
			if key := o.Key(); key.Is("ServiceAccount") || len(podsOf(o)) > 0 {
				v.names[key.Namespace] = append(v.names[key.Namespace], ownedName{key.Name, o.Operator})
			}
		}
	}
	return v.names
}

// referencesOf returns an operator that, in the old state, uses an object that no operator renders: a
// ConfigMap, Secret or PersistentVolumeClaim in a pod, or the Service of a webhook or APIService. It returns ""
// if there is no such operator.
func referencesOf(c *comparison, key k8s.Key) string {
	if c.references == nil {
		c.references = map[k8s.Key]string{}
		for _, o := range c.before.order {
			note := func(kind, namespace, name string) {
				if name != "" && o.Operator != "" {
					c.references[k8s.Key{Kind: kind, Namespace: cmp.Or(namespace, o.Key().Namespace), Name: name}] = o.Operator
				}
			}
			for _, p := range podsOf(o) {
				forEachField(p.spec, "", func(_, field string, v any) {
					switch m := asMap(v); field {
					case "configMap", "configMapRef", "configMapKeyRef":
						note("ConfigMap", "", k8s.Text(m, "name"))
					case "secret", "secretRef", "secretKeyRef":
						note("Secret", "", k8s.Text(m, "name")+k8s.Text(m, "secretName"))
					case "persistentVolumeClaim":
						note("PersistentVolumeClaim", "", k8s.Text(m, "claimName"))
					}
				})
			}
			if o.Key().Is(append(webhookKinds(), "APIService.apiregistration.k8s.io")...) {
				forEachField(o.Content, "", func(_, field string, v any) {
					if field == "service" {
						note("Service", k8s.Text(asMap(v), "namespace"), k8s.Text(asMap(v), "name"))
					}
				})
			}
		}
	}
	if c.before.byKey[key] != nil {
		return ""
	}
	return c.references[key]
}

// foreignReferences returns the objects of other operators to which o refers outside of its pods. For each of
// these objects, the value is the path of one reference in o.
func foreignReferences(c *comparison, o *Object) map[k8s.Key][]string {
	out := map[k8s.Key][]string{}
	pods := k8s.PodTemplates(o.Content)
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		if slices.ContainsFunc(pods, func(p k8s.PodTemplate) bool { return slices.Equal(p.Path, path) }) {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			if key := referredKey(o, v); key.Name != "" && len(path) > 0 {
				owner := ""
				if to := cmp.Or(c.before.byKey[key], c.after.byKey[key]); to != nil {
					owner = to.Operator
				} else if key.Namespace == o.Key().Namespace && k8s.Namespaced(key.Group, key.Kind) {
					owner = c.prefixOwner(o.Operator, key.Namespace, key.Name)
				}
				if owner != "" && !c.isOperator(owner, o.Operator) {
					out[key] = path
				}
			}
			for _, name := range sortedKeys(v) {
				at := append(path[:len(path):len(path)], name)
				if account, is := v[name].(string); is && (name == "serviceAccountName" || name == "serviceAccount") && account != "" && len(c.accountOwners(o.Operator, o.Key().Namespace, account)) > 0 {
					out[k8s.Key{Kind: "ServiceAccount", Namespace: o.Key().Namespace, Name: account}] = at
				}
				walk(v[name], at)
			}
		case []any:
			for i, e := range v {
				walk(e, append(path[:len(path):len(path)], strconv.Itoa(i)))
			}
		}
	}
	walk(o.Content, nil)
	return out
}

// referredKey returns the key of the object to which a map in o refers by its kind and name.
func referredKey(o *Object, ref map[string]any) k8s.Key {
	kind := k8s.Text(ref, "kind")
	if kind == "" {
		return k8s.Key{}
	}
	key := k8s.Key{Group: cmp.Or(k8s.Text(ref, "group"), k8s.Text(ref, "apiGroup")), Kind: kind, Namespace: cmp.Or(k8s.Text(ref, "namespace"), o.Key().Namespace), Name: k8s.Text(ref, "name")}
	if version := k8s.Text(ref, "apiVersion"); version != "" {
		key.Group = k8s.Group(version)
	}
	return key
}

// ownsNamespace reports whether an operator may have objects in a namespace. The namespace must be declared, or
// the operator is installed in it or watched it before, or the old state has the Namespace as an object of the
// operator or the user. Objects without an operator (the user's own) may be in the namespaces of all operators.
// In a system namespace, it is not enough that the old state has the Namespace.
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

// ownsService reports whether the Service with this name in the namespace of o belongs to the operator of o.
func (c *comparison) ownsService(o *Object, name string) bool {
	for _, v := range []*view{c.before, c.after} {
		if s := v.byKey[k8s.Key{Kind: "Service", Namespace: o.Key().Namespace, Name: name}]; s != nil {
			return c.isOperator(s.Operator, o.Operator)
		}
	}
	return false
}
