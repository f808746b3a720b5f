package render

import "strings"

// The keys that say whose an object is.
const (
	labelPackage   = "quayside.dev/package"
	labelNamespace = "quayside.dev/install-namespace"
	labelVersion   = "quayside.dev/version" // also the annotation with the exact value
	labelManagedBy = "app.kubernetes.io/managed-by"
)

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
	owner := map[string]any{labelPackage: sharedPackage, labelVersion: sharedVersion}
	if namespace != "" {
		owner[labelNamespace] = namespace
	}
	return owned(o, owner).withVersion(sharedVersion)
}

// own returns o with the labels that say whose it is. A CRD serves every
// install in the cluster and names none.
func (in *install) own(o Object) Object {
	owner := map[string]any{labelPackage: labelValue(in.pin.Package), labelVersion: labelValue(in.pin.Version)}
	if !isCRD(o) {
		owner[labelNamespace] = in.pin.Namespace
	}
	return owned(o, owner).withVersion(in.pin.Version)
}

// owned sets the owner's labels over those that o has, and managed-by where it
// is unset.
func owned(o Object, owner map[string]any) Object {
	o = label(o, map[string]string{labelManagedBy: "quayside"})
	return with(o, mergeMaps(sub(o, "metadata", "labels"), owner), "metadata", "labels")
}

func (o Object) withVersion(version string) Object {
	return with(o, version, "metadata", "annotations", labelVersion)
}

// labelValue returns s as a legal label value.
func labelValue(s string) string {
	s = strings.ReplaceAll(s, "+", "_")
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.TrimRight(s, "-._")
}
