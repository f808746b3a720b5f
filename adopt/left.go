package adopt

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/adopt/snapshot"
	"github.com/quayside/quayside/internal/kobj"
)

// leftover is a sort of object that OLM makes and no tree has.
type leftover struct {
	is   func(c *cluster, o *snapshot.Object) bool
	goes Stage
	why  string
}

// leftovers lists them; the first that an object is counts.
func leftovers() []leftover {
	of := func(group string, kinds ...string) func(*cluster, *snapshot.Object) bool {
		return func(_ *cluster, o *snapshot.Object) bool {
			for _, kind := range kinds {
				if o.Group == group && o.Kind == kind {
					return true
				}
			}
			return false
		}
	}
	rbac := of(rbacGroup, "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
	named := func(suffix string) func(*cluster, *snapshot.Object) bool {
		return func(_ *cluster, o *snapshot.Object) bool { return strings.HasSuffix(o.Name, suffix) }
	}
	both := func(a, b func(*cluster, *snapshot.Object) bool) func(*cluster, *snapshot.Object) bool {
		return func(c *cluster, o *snapshot.Object) bool { return a(c, o) && b(c, o) }
	}
	owned := func(kind string) func(*cluster, *snapshot.Object) bool {
		return func(_ *cluster, o *snapshot.Object) bool {
			return o.Labels[labelOwner] != "" && o.Labels[labelOwnerKind] == kind && o.Labels[labelOwnerNamespace] != ""
		}
	}
	by := func(kind string) func(*cluster, *snapshot.Object) bool {
		return func(_ *cluster, o *snapshot.Object) bool { return ownedBy(o, kind) }
	}
	installed := func(_ *cluster, o *snapshot.Object) bool { return o.Labels[labelManaged] == "true" }
	marked := func(_ *cluster, o *snapshot.Object) bool { return managed(o) }
	return []leftover{
		{func(_ *cluster, o *snapshot.Object) bool {
			return o.Group == snapshot.OLM && o.Kind == "ClusterServiceVersion" && o.Labels[snapshot.CopiedFrom] != ""
		}, AtDetach, "OLM's copy of the ClusterServiceVersion: deleted with Orphan after the original, for it owns the operator's rights in this namespace"},
		{of(snapshot.OLM, "ClusterServiceVersion"), AtDetach, "what OLM installs: without its finalizer, and with Orphan"},
		{of(snapshot.OLM, "Subscription"), AtDetach, "what OLM upgrades by: with Orphan"},
		{of(snapshot.OLM, "InstallPlan"), AtCleanUp, "what OLM did: nothing needs it any more"},
		{of(snapshot.OLM, "OperatorGroup"), AtCleanUp, "where OLM's operators of the namespace work: with the last of them, after OLM's webhooks, which select by its labels"},
		{of(snapshot.OLM, "Operator"), AtCleanUp, "OLM's list of what belongs to the operator: last, for OLM makes it again while anything bears its label"},
		{of(snapshot.OLM, "OperatorCondition"), AtCleanUp, "OLM's OperatorCondition, in whose place comes the tree's"},
		{both(rbac, by("OperatorCondition")), AtCleanUp, "the operator's right to write its OperatorCondition: goes with that"},
		{both(rbac, owned("OperatorGroup")), AtCleanUp, "what users may do with the APIs of the OperatorGroup: OLM deletes it with that"},
		{both(rbac, owned("ClusterServiceVersion")), AtCleanUp, "the operator's rights under OLM's name: the tree gives them under its own"},
		{both(of(rbacGroup, "Role", "RoleBinding"), named("-service-cert")), AtCleanUp, "the right to read OLM's certificate, which pods do not need to mount it"},
		{both(of(rbacGroup, "RoleBinding"), named("-service-auth-reader")), AtCleanUp, "the right to read how the API server authenticates: the tree gives it where it is needed"},
		{both(of(rbacGroup, "ClusterRole"), func(_ *cluster, o *snapshot.Object) bool {
			return ownedBy(o, "CustomResourceDefinition") || ownedBy(o, "APIService")
		}), AtCleanUp, "what users may do with an API, under OLM's name: the tree gives it under its own"},
		{both(of("", "Secret"), named("-service-cert")), Never, "the certificate that OLM issued: in use until another provider writes one, and renewed by nobody"},
		{both(of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"), owned("ClusterServiceVersion")), AtCleanUp, "OLM's webhook, beside which stands the tree's"},
		{isUnpacked, Never, "what OLM unpacked the bundle with: goes with its CatalogSource"},
		{both(of("apiextensions.k8s.io", "CustomResourceDefinition"), marked), Never, "a definition that the bundle does not ship, or no longer: with it would go its custom resources"},
		{installed, Never, "OLM installed it from the bundle of this version or of an earlier one, and the tree does not have it: stays without an owner, and nobody manages it"},
		{by("ClusterServiceVersion"), Never, "the operator or a person made it for as long as the ClusterServiceVersion is there, with which it would go: Orphan lets it stay, without an owner, so that nothing deletes it any more"},
		{marked, Never, "the operator or a person made it, and OLM only lists it by its label: stays as it is"},
	}
}

// managed reports whether an object has a mark that OLM puts on what it installs, or
// on what belongs to that.
func managed(o *snapshot.Object) bool { return o.Labels[labelManaged] == "true" || component(o) }

// ownedBy reports whether an object has an owner of a kind, however that is spelled:
// OLM writes some in lower case.
func ownedBy(o *snapshot.Object, kind string) bool {
	return slices.ContainsFunc(o.Owners, func(ref snapshot.Owner) bool { return strings.EqualFold(ref.Kind, kind) })
}

// component reports whether OLM says of an object that it belongs to an operator.
func component(o *snapshot.Object) bool {
	for key := range o.Labels {
		if strings.HasPrefix(key, prefixComponent) {
			return true
		}
	}
	return false
}

func isUnpacked(c *cluster, o *snapshot.Object) bool { return c.unpacks[o.Key] }

// classify returns what becomes of a live object that no tree has.
func (c *cluster) classify(o *snapshot.Object) Object {
	out := described(o.Key)
	out.Class = Unknown
	for _, l := range c.leftovers {
		if l.is(c, o) {
			out.Class, out.Goes, out.Why = OLMOnly, l.goes, l.why
			break
		}
	}
	return out
}

func described(key kobj.Key) Object {
	return Object{Group: key.Group, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name}
}

// Key returns what identifies the object.
func (o Object) Key() kobj.Key {
	return kobj.Key{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}
