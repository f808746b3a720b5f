package diff

import "github.com/quayside/quayside/internal/k8s"

// Ownership is decided by the state before: a change cannot make an operator the owner of what it
// changes.

// ownsKind reports whether the kind of an object belongs to the object's operator: see ownsGroup.
// severityTable has the kinds that belong to no operator, whoever ships their CRDs.
func (c *comparison) ownsKind(o *Object) bool {
	key := o.Key()
	return o.Operator != "" && c.ownsGroup(o.Operator, key.Group, key.Kind)
}

// ownsGroup reports whether a kind belongs to an operator: in the state before, the operator has the
// CRD, or all CRDs of the group. A new operator owns the kinds of its CRDs that nobody had before.
func (c *comparison) ownsGroup(operator, group, kind string) bool {
	if crd := c.before.crds[k8s.Key{Group: group, Kind: kind}]; crd != nil {
		return c.isOperator(crd.Operator, operator)
	}
	had, others := false, false
	for k, crd := range c.before.crds {
		if k.Group == group {
			own := c.isOperator(crd.Operator, operator)
			had, others = had || own, others || !own
		}
	}
	if !had && !c.before.hasOperator(operator) {
		crd := c.after.crds[k8s.Key{Group: group, Kind: kind}]
		had = crd != nil && crd.Operator == operator
	}
	return had && !others
}

// isOperator reports whether now is the operator was, or its successor.
func (c *comparison) isOperator(was, now string) bool {
	if was == now {
		return true
	}
	l, replaced := c.after.replacedOperator(was)
	return replaced && l.ReplacedBy == now
}

// unlistedSeverity returns the severities of a kind that severityTable does not list: those of a
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
