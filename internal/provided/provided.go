// Package provided describes objects and APIs that a cluster can provide to operators. It defines the format of
// spec.provides, and lists the APIs of OLM and of OpenShift.
package provided

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Kind describes a kind of object that operators refer to.
type Kind struct {
	Group      string
	Namespaced bool
}

// Kinds returns the kinds of objects that operators refer to, by name.
func Kinds() map[string]Kind {
	return map[string]Kind{
		"ConfigMap":             {"", true},
		"Namespace":             {"", false},
		"PersistentVolumeClaim": {"", true},
		"PriorityClass":         {"scheduling.k8s.io", false},
		"RuntimeClass":          {"node.k8s.io", false},
		"Secret":                {"", true},
		"ServiceAccount":        {"", true},
		"StorageClass":          {"storage.k8s.io", false},
	}
}

// ParseObject parses an entry of spec.provides: "Secret/namespace/name", or "StorageClass//name"
// for a cluster-scoped object.
func ParseObject(text string) (k8s.Key, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return k8s.Key{}, fmt.Errorf("%q is not an object such as Secret/ns/name or StorageClass//fast", text)
	}
	kinds := slices.Sorted(maps.Keys(Kinds()))
	kind, ok := Kinds()[parts[0]]
	switch namespace, name := parts[1], parts[2]; {
	case !ok:
		return k8s.Key{}, fmt.Errorf("unknown kind %q: no operator needs it (available: %s)%s", parts[0], strings.Join(kinds, ", "), diag.DidYouMean(parts[0], kinds))
	case kind.Namespaced && !yamlnode.IsDNS1123Label(namespace):
		return k8s.Key{}, fmt.Errorf("%q has no valid namespace: expected %s/namespace/name", text, parts[0])
	case !kind.Namespaced && namespace != "":
		return k8s.Key{}, fmt.Errorf("%q has a namespace, but the kind is cluster-scoped: expected %s//name", text, parts[0])
	case !yamlnode.IsDNS1123Subdomain(name):
		return k8s.Key{}, fmt.Errorf("%q has no valid name: expected %s/namespace/name, or Kind//name if the kind is cluster-scoped", text, parts[0])
	}
	return k8s.Key{Group: kind.Group, Kind: parts[0], Namespace: parts[1], Name: parts[2]}, nil
}

// FormatObject returns an object in the format of spec.provides.
func FormatObject(k k8s.Key) string { return k.Kind + "/" + k.Namespace + "/" + k.Name }

// Classes returns references, without names, to the kinds of classes that objects refer to, such as
// StorageClass.
func Classes() []k8s.Ref {
	return []k8s.Ref{
		{APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass"},
		{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
	}
}

// OLMAPIs returns the APIs of OLM v0.
func OLMAPIs() []string {
	return []string{k8s.OLMGroup + "/v1", k8s.OLMGroup + "/v1alpha1", k8s.OLMGroup + "/v2"}
}

// OpenShiftAPIs returns the APIs that every OpenShift cluster serves.
func OpenShiftAPIs() []string {
	return strings.Fields(`
		apiserver.openshift.io/v1 apps.openshift.io/v1 authorization.openshift.io/v1 autoscaling.openshift.io/v1
		autoscaling.openshift.io/v1beta1 build.openshift.io/v1 cloudcredential.openshift.io/v1 config.openshift.io/v1
		console.openshift.io/v1 controlplane.operator.openshift.io/v1alpha1 helm.openshift.io/v1beta1 image.openshift.io/v1
		imageregistry.operator.openshift.io/v1 ingress.operator.openshift.io/v1 k8s.cni.cncf.io/v1 machine.openshift.io/v1beta1
		machineconfiguration.openshift.io/v1 metrics.k8s.io/v1beta1 migration.k8s.io/v1alpha1 monitoring.coreos.com/v1
		monitoring.coreos.com/v1beta1 monitoring.openshift.io/v1 network.operator.openshift.io/v1 oauth.openshift.io/v1
		operator.openshift.io/v1 operator.openshift.io/v1alpha1 operators.coreos.com/v1 operators.coreos.com/v1alpha1
		operators.coreos.com/v2 packages.operators.coreos.com/v1 project.openshift.io/v1 quota.openshift.io/v1
		route.openshift.io/v1 samples.operator.openshift.io/v1 security.internal.openshift.io/v1 security.openshift.io/v1
		snapshot.storage.k8s.io/v1 template.openshift.io/v1 tuned.openshift.io/v1 user.openshift.io/v1
		whereabouts.cni.cncf.io/v1alpha1`)
}

// OpenShiftObjects returns objects that every OpenShift cluster has, in the format of
// spec.provides.
func OpenShiftObjects() []string { return []string{"PriorityClass//openshift-user-critical"} }
