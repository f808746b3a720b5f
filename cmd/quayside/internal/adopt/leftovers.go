package adopt

import (
	"slices"
	"strings"

	"github.com/quayside/quayside/cmd/quayside/internal/adopt/snapshot"
	"github.com/quayside/quayside/internal/k8s"
)

// classify returns the class of a live object that is not in the tree.
func (c *clusterState) classify(o *snapshot.LiveObject) ClassifiedObject {
	out := ClassifiedObject{Key: o.Key, Class: OLMOnly}
	if out.RemovedAt, out.Reason = c.leftoverStage(o); out.RemovedAt == "" {
		out.Class = Unknown
	}
	return out
}

// leftoverStage returns the stage of the adoption in which a live object is removed, and the reason. The object
// must not be in the tree. If OLM did not create the object, both results are "".
func (c *clusterState) leftoverStage(o *snapshot.LiveObject) (Stage, string) {
	if o.Group == k8s.OLMGroup {
		if stage, why := olmLeftover(o); stage != "" {
			return stage, why
		}
	}
	if o.Labels[snapshot.OwnerNameV1] != "" || slices.ContainsFunc(o.Owners, isOwnerV1) || o.Is("ClusterExtension."+k8s.OLMv1Group) {
		return extensionLeftover(o)
	}
	if o.Group == k8s.RBACGroup {
		if stage, why := rbacLeftover(o); stage != "" {
			return stage, why
		}
	}
	switch {
	case snapshot.IsReleaseRecord(o.Key) && o.Labels["owner"] == "helm":
		return AtDetach, "Helm's record of the release: deleted, so that Helm forgets the operator"
	case o.Is("HelmRelease." + snapshot.FluxGroup):
		return Never, "Flux's declaration of the release: suspended, and to be removed from Git"
	case o.Is("Secret") && strings.HasSuffix(o.Name, "-service-cert"):
		return Never, "the certificate that OLM issued: in use until another provider issues a certificate; OLM no longer renews it"
	case o.IsWebhookConfig() && hasOwnerLabels(o, "ClusterServiceVersion"):
		return AtCleanUp, "OLM's webhook: the tree has its own"
	case c.unpackObjects[o.Key]:
		return Never, "OLM's unpacked bundle: deleted with its CatalogSource"
	case o.Is("CustomResourceDefinition.apiextensions.k8s.io") && isManaged(o):
		return Never, "a CRD that is not in the bundle: it is kept, because deleting it would delete its custom resources"
	case o.Labels[labelManaged] == "true":
		return Never, "installed by OLM from this or an earlier bundle, but not in the tree: it is kept without an owner, and nothing manages it"
	case hasOwnerOfKind(o, "ClusterServiceVersion"):
		return Never, "created by the operator or by hand, and owned by the ClusterServiceVersion: it is kept without an owner, because the ClusterServiceVersion is deleted with Orphan"
	case isManaged(o):
		return Never, "created by the operator or by hand, only labelled by OLM: stays unchanged"
	}
	return "", ""
}

// olmLeftover is like leftoverStage, for objects of OLM's own kinds.
func olmLeftover(o *snapshot.LiveObject) (Stage, string) {
	switch {
	case o.Kind == "ClusterServiceVersion" && o.Labels[snapshot.CopiedFrom] != "":
		return AtDetach, "OLM's copy of the ClusterServiceVersion: deleted after the original, and with Orphan, because the copy owns the operator's permissions in this namespace"
	case o.Kind == "ClusterServiceVersion":
		return AtDetach, "the installed version: deleted with Orphan, after its finalizer is removed"
	case o.Kind == "Subscription":
		return AtDetach, "OLM's upgrade settings: deleted with Orphan"
	case o.Kind == "InstallPlan":
		return AtCleanUp, "OLM's record of an installation: no longer needed"
	case o.Kind == "OperatorGroup":
		return AtCleanUp, "OLM's target namespaces: deleted with the namespace's last operator, after OLM's webhooks, which select namespaces by the label of this OperatorGroup"
	case o.Kind == "Operator":
		return AtCleanUp, "OLM's list of the operator's objects: deleted last, because OLM recreates the list while any object has the operator's label"
	case o.Kind == "OperatorCondition":
		return AtCleanUp, "OLM's OperatorCondition: the tree has its own"
	}
	return "", ""
}

func isOwnerV1(by snapshot.Owner) bool { return snapshot.IsOwnerInOLMv1(by.APIVersion, by.Kind) }

// extensionLeftover is like leftoverStage, for objects of OLM v1.
func extensionLeftover(o *snapshot.LiveObject) (Stage, string) {
	switch {
	case o.Kind == "ClusterExtension":
		return AtDetach, "OLM v1's upgrade settings: deleted with Orphan, after the ownerReferences to this object and its finalizers are removed"
	case snapshot.IsOwnerInOLMv1(o.APIVersion, o.Kind):
		return AtDetach, "OLM's revision of the operator: deleted with Orphan, once no object names it as an owner and its finalizer is removed"
	case o.Group == k8s.RBACGroup:
		return AtCleanUp, "the operator's permissions in an object named by OLM: the tree has the same permissions under another name"
	case o.IsWebhookConfig():
		return AtCleanUp, "OLM's webhook: the tree has its own"
	case o.Is("CustomResourceDefinition.apiextensions.k8s.io"):
		return Never, "a CRD that is not in the tree: it is kept, because deleting it would delete its custom resources"
	case o.Is("Secret") && (o.Labels["owner"] == "operator-controller" || o.Labels[k8s.OLMv1Group+"/revision-name"] != ""):
		return AtCleanUp, "OLM's record of the installed manifests: until this record is deleted, a ClusterExtension of the same name would adopt the objects again"
	}
	return Never, "installed by OLM from this or an earlier bundle, but not in the tree: it is kept without an owner, and nothing manages it"
}

// rbacLeftover is like leftoverStage, for roles and bindings.
func rbacLeftover(o *snapshot.LiveObject) (Stage, string) {
	binding := o.Kind == "RoleBinding" || o.Kind == "ClusterRoleBinding"
	switch {
	case !binding && o.Kind != "Role" && o.Kind != "ClusterRole":
		return "", ""
	case hasOwnerOfKind(o, "OperatorCondition"):
		return AtCleanUp, "the operator's permission to write its OperatorCondition: deleted with the OperatorCondition"
	case hasOwnerLabels(o, "OperatorGroup"):
		return AtCleanUp, "user permissions on the APIs of the OperatorGroup: OLM deletes them with the OperatorGroup"
	case hasOwnerLabels(o, "ClusterServiceVersion"):
		return AtCleanUp, "the operator's permissions in an object named by OLM: the tree has the same permissions under another name"
	case (o.Kind == "Role" || o.Kind == "RoleBinding") && strings.HasSuffix(o.Name, "-service-cert"):
		return AtCleanUp, "the permission to read the Secret of OLM's certificate: not needed to mount the Secret"
	case o.Kind == "RoleBinding" && strings.HasSuffix(o.Name, "-service-auth-reader"):
		return AtCleanUp, "the permission to read the API server's authentication settings: the tree has it where needed"
	case o.Kind == "ClusterRole" && (hasOwnerOfKind(o, "CustomResourceDefinition") || hasOwnerOfKind(o, "APIService")):
		return AtCleanUp, "user permissions on an API, in an object named by OLM: the tree has the same permissions under another name"
	}
	return "", ""
}

// hasOwnerLabels reports whether OLM's labels name an owner of the given kind.
func hasOwnerLabels(o *snapshot.LiveObject, kind string) bool {
	return o.Labels[labelOwner] != "" && o.Labels[labelOwnerKind] == kind && o.Labels[labelOwnerNamespace] != ""
}

// isManaged reports whether an object has one of two labels of OLM: the label for objects that OLM installed,
// or the label for components of an operator.
func isManaged(o *snapshot.LiveObject) bool {
	if o.Labels[labelManaged] == "true" {
		return true
	}
	for key := range o.Labels {
		if strings.HasPrefix(key, prefixComponent) {
			return true
		}
	}
	return false
}

// hasOwnerOfKind reports whether an object has an owner of a kind. It ignores case, because OLM
// writes some kinds in lower case.
func hasOwnerOfKind(o *snapshot.LiveObject, kind string) bool {
	return slices.ContainsFunc(o.Owners, func(ref snapshot.Owner) bool { return strings.EqualFold(ref.Kind, kind) })
}
