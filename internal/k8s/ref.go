package k8s

import (
	"fmt"
	"strings"
)

// Ref identifies an object in a cluster, including its API version. Its text is "apps/v1 Deployment
// namespace/name" or "v1 Namespace name".
type Ref struct {
	APIVersion string
	Kind       string
	Namespace  string // empty for cluster-scoped objects
	Name       string
}

// RefTo returns the reference to an object.
func RefTo(o Object) Ref {
	return Ref{APIVersion: Text(o, "apiVersion"), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
}

// Key returns the key of the object, without the API version.
func (r Ref) Key() Key {
	return Key{Group: Group(r.APIVersion), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// HoldsOthers reports whether deleting the object deletes others or data: everything in a
// Namespace, all custom resources of a CRD, or the data of a PersistentVolumeClaim.
func (r Ref) HoldsOthers() bool {
	key := r.Key()
	return key.Group == "" && (key.Kind == "Namespace" || key.Kind == "PersistentVolumeClaim") || key.Group == CRDGroup && key.Kind == "CustomResourceDefinition"
}

// String returns the reference as text.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return r.APIVersion + " " + r.Kind + " " + name
}

// MarshalText returns the reference as text.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText parses the output of MarshalText.
func (r *Ref) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), " ")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return fmt.Errorf("%q is not an object reference: write it like \"apps/v1 Deployment namespace/name\"", text)
	}
	*r = Ref{APIVersion: parts[0], Kind: parts[1], Name: parts[2]}
	if namespace, name, ok := strings.Cut(parts[2], "/"); ok {
		r.Namespace, r.Name = namespace, name
	}
	return nil
}
