package render

import (
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/yamlnode"
)

// Object is a Kubernetes object. Functions that change an object return a changed copy.
type Object = k8s.Object

// Key identifies an object in a cluster.
type Key = k8s.Key

// Labels of objects that belong to no single operator: CRDs of quayside, and Namespaces that several operators
// share. A label selector for an operator does not select these objects, so that users do not delete them
// together with the operator. The version is the version of quayside's API, because a tree must not depend on
// the version of this program.
const (
	sharedPackage = "quayside"
	sharedVersion = "v1alpha1"
)

// withSharedOwner returns o with the labels for shared objects. namespace is empty for CRDs.
func withSharedOwner(o Object, namespace string) Object {
	owner := map[string]any{k8s.LabelPackage: sharedPackage}
	if namespace != "" {
		owner[k8s.LabelNamespace] = namespace
	}
	return withOwner(o, owner, sharedVersion)
}

// plainMetadata returns o with all values of annotations and labels converted to strings, as kustomize and the
// API server require. It removes annotations and labels that control GitOps tools or quayside.
// [bundle.Validate] warns about these. It also removes the fields of metadata that only the API server sets.
func plainMetadata(o Object) Object {
	o = withoutServerFields(o)
	for _, field := range []string{"annotations", "labels"} {
		for key, value := range k8s.Map(o, "metadata", field) {
			if bundle.ControlledTool(key) != "" {
				o = k8s.Without(o, "metadata", field, key)
				continue
			}
			switch value.(type) {
			case string, []any, map[string]any:
			case nil:
				o = k8s.With(o, "", "metadata", field, key)
			default:
				o = k8s.With(o, strings.TrimSpace(string(yamlnode.Encode(value))), "metadata", field, key)
			}
		}
	}
	return o
}

// withoutServerFields returns o without the fields that only the API server sets, in the metadata of o and of
// its templates. The API server rejects an object with a resourceVersion or uid if the stored object has
// another value.
func withoutServerFields(o Object) Object {
	fields := []string{"uid", "resourceVersion", "generation", "selfLink", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds"}
	var paths [][]string
	var walk func(m map[string]any, at []string)
	walk = func(m map[string]any, at []string) {
		for key, v := range m {
			below, _ := v.(map[string]any)
			path := append(at[:len(at):len(at)], key)
			if key == "metadata" {
				for _, field := range fields {
					if _, has := below[field]; has {
						paths = append(paths, append(path[:len(path):len(path)], field))
					}
				}
			}
			if !k8s.IsCRD(o) { // properties of a schema are no metadata
				walk(below, path)
			}
		}
	}
	walk(o, nil)
	for _, path := range paths {
		o = k8s.Without(o, path...)
	}
	return o
}

// addOwner returns o with the labels of the operator. A CRD gets no namespace label, because all
// operators in the cluster share it. With Options.PodLabels, pod templates have the labels without the version.
func (in *install) addOwner(o Object) Object {
	owner := map[string]any{k8s.LabelPackage: k8s.LabelValue(in.pin.Package)}
	if !k8s.IsCRD(o) {
		owner[k8s.LabelNamespace] = in.pin.Namespace
	}
	o = withOwner(o, owner, in.pin.Version)
	if in.opt.PodLabels && (o.Is("apps", "Deployment") || o.Is("apps", "StatefulSet") || o.Is("apps", "DaemonSet")) {
		labels := k8s.Merge(k8s.Map(o, "spec", "template", "metadata", "labels"), owner)
		o = k8s.With(o, labels, "spec", "template", "metadata", "labels")
	}
	return o
}

// withOwner returns o with the labels in owner, which override existing labels. It adds the label managed-by if
// o has none. Only Deployments and CRDs get the version. From other objects, withOwner removes a version label
// or annotation of the bundle, so that an upgrade does not change all files.
func withOwner(o Object, owner map[string]any, version string) Object {
	o = k8s.Label(o, map[string]string{k8s.LabelManagedBy: k8s.Manager})
	o = withoutVersion(o)
	o = k8s.With(o, k8s.Merge(k8s.Map(o, "metadata", "labels"), owner), "metadata", "labels")
	if !k8s.IsCRD(o) && !o.Is("apps", "Deployment") {
		if len(k8s.Map(o, "metadata", "annotations")) == 0 {
			o = k8s.Without(o, "metadata", "annotations") // kustomize drops an empty mapping
		}
		return o
	}
	o = k8s.With(o, k8s.LabelValue(version), "metadata", "labels", k8s.LabelVersion)
	return k8s.With(o, version, "metadata", "annotations", k8s.LabelVersion)
}

// withoutVersion returns o without the version label and annotation.
func withoutVersion(o Object) Object {
	for _, field := range []string{"labels", "annotations"} {
		o = k8s.Without(o, "metadata", field, k8s.LabelVersion)
	}
	return o
}
