package render

import (
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/internal/kobj"
	"github.com/quayside/quayside/internal/yamlnode"
	"github.com/quayside/quayside/render/profile"
)

// Object is a Kubernetes object. Functions that change one change a copy.
type Object = kobj.Object

// Key names an object within a cluster.
type Key = kobj.Key

// The owner of what belongs to no single operator: the CRD of OperatorCondition
// and a Namespace that several operators share. No selector of an operator
// finds those, so that nobody deletes them with it. The version is that of the
// lock's API, for a tree depends on no version of this program.
const (
	sharedPackage = "quayside"
	sharedVersion = "v1alpha1"
)

// shared returns o with the labels of what several operators share. The
// namespace is empty for what is the whole cluster's.
func shared(o Object, namespace string) Object {
	owner := map[string]any{kobj.LabelPackage: sharedPackage}
	if namespace != "" {
		owner[kobj.LabelNamespace] = namespace
	}
	return owned(o, owner, sharedVersion)
}

// plainMetadata returns o with text for every scalar in annotations and labels,
// as kustomize and the API server need them, and without those by which a bundle
// would steer the tool that applies it, of which [bundle.Validate] warns.
func plainMetadata(o Object) Object {
	for _, field := range []string{"annotations", "labels"} {
		for key, value := range kobj.Map(o, "metadata", field) {
			if bundle.Steers(key) != "" {
				o = kobj.Without(o, "metadata", field, key)
				continue
			}
			switch value.(type) {
			case string, []any, map[string]any:
			case nil:
				o = kobj.With(o, "", "metadata", field, key)
			default:
				o = kobj.With(o, strings.TrimSpace(string(yamlnode.Encode(value))), "metadata", field, key)
			}
		}
	}
	return o
}

// withoutUnset returns o without fields that code generators write and that hold
// nothing: a creationTimestamp that is null, of the object and of its pod templates,
// and the empty status of a built-in kind. The API server ignores both. The status
// of a custom resource stays, because its definition may require it.
func withoutUnset(o Object) Object {
	for _, at := range [][]string{
		{"metadata"}, {"spec", "template", "metadata"}, {"spec", "jobTemplate", "metadata"}, {"spec", "jobTemplate", "spec", "template", "metadata"},
	} {
		if len(at) > 1 && !profile.BuiltinGroup(o.Group()) {
			break
		}
		if value, set := kobj.Map(o, at...)["creationTimestamp"]; set && value == nil {
			o = kobj.Without(o, append(at, "creationTimestamp")...)
		}
	}
	if status, set := o["status"]; set && profile.BuiltinGroup(o.Group()) && isUnset(status) {
		o = kobj.Without(o, "status")
	}
	return o
}

// isUnset reports whether v holds nothing but nulls, empty strings, lists and
// objects.
func isUnset(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case map[string]any:
		for _, e := range v {
			if !isUnset(e) {
				return false
			}
		}
		return true
	}
	return hollow(v)
}

// own returns o with the labels that say whose it is. A CRD serves every
// install in the cluster and names none.
func (in *install) own(o Object) Object {
	owner := map[string]any{kobj.LabelPackage: labelValue(in.pin.Package)}
	if !kobj.IsCRD(o) {
		owner[kobj.LabelNamespace] = in.pin.Namespace
	}
	return owned(o, owner, in.pin.Version)
}

// owned sets the owner's labels over those that o has, and managed-by where it
// is unset. Deployments and CRDs say the version too. Nothing else does, what a
// bundle writes there least of all: an upgrade is to touch the files in which
// something changes.
func owned(o Object, owner map[string]any, version string) Object {
	o = kobj.Label(o, map[string]string{kobj.LabelManagedBy: kobj.Manager})
	o = unversioned(o)
	o = kobj.With(o, mergeMaps(kobj.Map(o, "metadata", "labels"), owner), "metadata", "labels")
	if !kobj.IsCRD(o) && !o.Is("apps", "Deployment") {
		if len(kobj.Map(o, "metadata", "annotations")) == 0 {
			o = kobj.Without(o, "metadata", "annotations") // kustomize drops what is empty
		}
		return o
	}
	o = kobj.With(o, labelValue(version), "metadata", "labels", kobj.LabelVersion)
	return kobj.With(o, version, "metadata", "annotations", kobj.LabelVersion)
}

// unversioned returns o without the version in its labels and annotations.
func unversioned(o Object) Object {
	for _, field := range []string{"labels", "annotations"} {
		o = kobj.Without(o, "metadata", field, kobj.LabelVersion)
	}
	return o
}

// labelValue returns s as a legal label value.
func labelValue(s string) string {
	s = strings.ReplaceAll(s, "+", "_")
	if len(s) > kobj.MaxLabel {
		s = s[:kobj.MaxLabel]
	}
	return strings.TrimRight(s, "-._")
}
