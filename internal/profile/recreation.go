package profile

import (
	"slices"

	"github.com/quayside/quayside/internal/k8s"
)

// Recreation selects an object that an upgrade must delete and create again to change an immutable field.
type Recreation struct {
	Operator  string `json:"operator" form:"required nonempty" doc:"The operator of the object, as namespace/package."`
	Version   string `json:"version" form:"required nonempty" doc:"The version that the upgrade installs. With any other version in the lock, the entry has no effect."`
	Kind      string `json:"kind" form:"required nonempty" doc:"Kind of the object, such as Deployment or Certificate.cert-manager.io."`
	Name      string `json:"name" form:"required nonempty" doc:"Name of the object."`
	Namespace string `json:"namespace" doc:"Namespace of the object. Default: any."`
}

// Recreates reports whether the annotations of o make a GitOps tool delete o and create o again, instead of
// changing o: a hook of Argo CD, or a forced object of Flux.
func Recreates(o k8s.Object) bool {
	annotations := k8s.Map(o, "metadata", "annotations")
	return k8s.Text(annotations, argoHook) != "" || k8s.Text(annotations, fluxPrefix+"force") == "enabled"
}

// IsFor reports whether r is about an operator ("namespace/package") in this version.
func (r Recreation) IsFor(operator, version string) bool {
	return r.Operator == operator && r.Version == version
}

// Selects reports whether r selects the object with this key, regardless of its operator.
func (r Recreation) Selects(key k8s.Key) bool {
	return (r.Kind == key.Kind || r.Kind == key.GroupKind()) && r.Name == key.Name && (r.Namespace == "" || r.Namespace == key.Namespace) && !LosesData(key.Kind)
}

// LosesData reports whether recreating an object of a kind loses data that the object does not
// contain.
func LosesData(kind string) bool {
	return slices.Contains([]string{"CustomResourceDefinition", "Namespace", "PersistentVolume", "PersistentVolumeClaim"}, kind)
}
