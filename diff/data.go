package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/profile"
)

func dataRules() []RuleInfo {
	const refused = "the API server refuses the change: the sync fails until the object is deleted and recreated; an entry in spec.recreate of quayside.yaml makes the GitOps tool do this, except for claims, volumes, CRDs and Namespaces"
	return []RuleInfo{
		{"data.crd-removed", Critical, "CRD removed", "deleting a CRD deletes every object of its kind in every namespace; their finalizers need a running operator; with the " + strings.Join(profile.Engines(), " and the ") + " profile a removed CRD is not pruned"},
		{"data.crd-added", High, "CRD added", "a new cluster-wide kind; if another component defines the same kind, this CRD replaces its schema and conversion"},
		{"data.resource-orphaned", Critical, "CRD of a custom resource in the repository removed", "the object is deleted with the CRD, and the file can no longer be applied"},
		{"data.namespace-removed", Critical, "Namespace removed", "deleting a namespace deletes everything in it, including volumes and Secrets"},
		{"data.volume-claim-removed", High, "PersistentVolumeClaim removed", "with reclaim policy Delete, the default of most storage classes, the data is deleted with the PersistentVolumeClaim"},
		{"data.stateful-set-removed", Medium, "StatefulSet removed", "its pods stop; persistentVolumeClaimRetentionPolicy decides whether its claims are deleted"},
		{"data.secret-removed", Medium, "Secret removed", "a credential or key may be lost for good"},
		{"data.policy-removed", High, "NetworkPolicy removed", "previously blocked traffic is allowed"},
		{"immutable.field-changed", High, "immutable field changed", refused},
		{"immutable.recreated", Medium, "object recreated", "an entry in spec.recreate of quayside.yaml requests it for this version"},
	}
}

// compareDeletions reports added CRDs, and removed objects whose deletion loses data or ends a protection.
func compareDeletions(c *comparison) {
	c.each(func(p pair) {
		switch {
		case p.before == nil:
			limit := Info
			if isForeignGroup(c, p.after) {
				limit = High
			}
			c.add("data.crd-added", p.after, Finding{
				After: diag.Some(k8s.ParseCRD(p.after.Content).Served(), 8), Message: "new kind, " + k8s.Text(p.after.Content, "spec", "scope"), path: fieldAt("metadata", "name"), explains: wholeObject(),
			}, limit)
		case p.after == nil:
			c.reportRemovedCRD(p.before)
		}
	}, crdKind)
	rules := map[string][2]string{
		"PersistentVolumeClaim":           {"data.volume-claim-removed", "the claim is deleted"},
		"StatefulSet.apps":                {"data.stateful-set-removed", "the StatefulSet is deleted"},
		"Secret":                          {"data.secret-removed", "the Secret is deleted"},
		"NetworkPolicy.networking.k8s.io": {"data.policy-removed", "the NetworkPolicy is deleted"},
	}
	c.each(func(p pair) {
		if p.after == nil {
			c.add("data.namespace-removed", p.before, Finding{explains: wholeObject(), Message: "the namespace is removed: " + c.before.describeRemoval(p.before, "and everything in it")})
		}
	}, "Namespace")
	for _, kind := range sortedKeys(rules) {
		c.each(func(p pair) {
			switch {
			case p.after != nil || isLeftBehind(c.before, c.after, p.before.Operator):
			case isKept(p.before):
				c.add(rules[kind][0], p.before, Finding{Message: "it is protected and not pruned", explains: wholeObject()}, Low)
			default:
				c.add(rules[kind][0], p.before, Finding{Message: rules[kind][1], explains: wholeObject()})
			}
		}, kind)
	}
}

// isForeignGroup reports whether an operator adds a CRD in the API group of another owner: of another operator
// or, if the operator already existed, of a component in the table of powers. It returns false if the operator
// already owned kinds in the group or in its domain.
func isForeignGroup(c *comparison, crd *Object) bool {
	kind := crd.definedKind()
	own, others := false, false
	for known, owner := range c.before.owners {
		if known.Group == kind.Group {
			is := c.isOperator(owner, crd.Operator)
			own, others = own || is, others || !is
		}
	}
	row, _ := c.powerOf(kind)
	for known, owner := range c.before.owners {
		own = own || c.isOperator(owner, crd.Operator) && slices.ContainsFunc(strings.Fields(row.kinds), func(domain string) bool {
			return strings.HasPrefix(domain, "*.") && matchesKind(domain, known) && matchesKind(domain, kind)
		})
	}
	return !own && (others || row.added >= High && c.before.hasOperator(crd.Operator))
}

// describeRemoval describes the effect on the cluster if an object is removed from the tree. dependents names
// the objects that are deleted with it, such as "and everything in it".
func (s *State) describeRemoval(o *Object, dependents string) string {
	removal, tool := profile.RemovalOf(o.Content)
	switch {
	case !s.isProtected(o):
		return "it is deleted, " + dependents
	case !s.isNeverPruned(o) && removal == profile.RemovalConfirm:
		return tool + " deletes it after a confirmation, " + dependents
	}
	return "it is protected and not pruned; a manual deletion deletes it " + dependents
}

// isProtected reports whether the GitOps tool never prunes the object, or only after a confirmation.
func (s *State) isProtected(o *Object) bool {
	removal, _ := profile.RemovalOf(o.Content)
	return removal != profile.RemovalPrune || s.isNeverPruned(o)
}

// isKept reports whether the GitOps tool never prunes the object, according to its annotations.
func isKept(o *Object) bool {
	removal, _ := profile.RemovalOf(o.Content)
	return removal == profile.RemovalKeep
}

// isNeverPruned reports whether the GitOps tool never prunes the object, regardless of annotations. This is the case
// for CRDs if the tool does not track CRDs. It is also the case for Namespaces if the tool applies each operator
// separately: each Namespace is then the only object of an application, and such objects are not pruned.
func (s *State) isNeverPruned(o *Object) bool {
	return s.KeepsDefinitions && k8s.IsCRD(o.Content) || s.ByOperator && o.Key().Is("Namespace")
}

// reportRemovedCRD reports a removed CRD, and the custom resources in the repository that depend on
// it.
func (c *comparison) reportRemovedCRD(crd *Object) {
	serves := crd.definedKind()
	orphans := c.after.objectsOf(serves)
	f := Finding{explains: wholeObject(), Before: diag.Some(k8s.ParseCRD(crd.Content).Served(), 8), Message: fmt.Sprintf("the CRD of %s is removed: %s", serves.Kind, c.before.describeRemoval(crd, "and every object of it in the cluster"))}
	if n := len(orphans); n > 0 {
		f.Message += fmt.Sprintf("; including %s of this repository", pluralize(n, "object", "objects"))
	}
	if kin := c.newGroups(serves); kin != "" {
		f.Message += "; the kind now exists in group " + kin + ": migrate its objects first"
	}
	limit := Critical
	if crd.Operator == "quayside" {
		limit = Low // a CRD of quayside, such as OperatorCondition: its objects belong to operators
	}
	c.add("data.crd-removed", crd, f, limit)
	for _, o := range orphans {
		c.add("data.resource-orphaned", o, Finding{
			Operator: crd.Operator, Field: "kind", Message: fmt.Sprintf("the CRD of %s is removed", serves.GroupKind()), path: fieldAt("kind"), explains: noField(),
		})
	}
}

// newGroups returns the API groups of the added CRDs whose kind has the same name as the kind of a removed CRD.
// The groups are sorted and joined by commas.
func (c *comparison) newGroups(gone k8s.Key) string {
	var out []string
	for k := range c.after.crds {
		if k.Kind == gone.Kind && k.Group != gone.Group && c.before.crds[k] == nil {
			out = append(out, k.Group)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }
