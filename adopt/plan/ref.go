package plan

import (
	"fmt"
	"strings"

	"github.com/quayside/quayside/internal/kobj"
)

// Ref names one object of a cluster. Its text is "apps/v1 Deployment ns/name",
// "v1 Namespace name".
type Ref struct {
	APIVersion string
	Kind       string
	Namespace  string // empty for what lies in none
	Name       string
}

// RefTo returns the reference to an object.
func RefTo(o kobj.Object) Ref {
	return Ref{APIVersion: kobj.Text(o, "apiVersion"), Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name()}
}

// Key returns what identifies the object, whatever the version of its API.
func (r Ref) Key() kobj.Key {
	return kobj.Key{Group: kobj.Group(r.APIVersion), Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// HoldsOthers reports whether other objects go with an object: all in a Namespace,
// every custom resource of a definition. The way back to OLM leaves such a one,
// though the plan brought it.
func (r Ref) HoldsOthers() bool {
	key := r.Key()
	return key.Group == "" && key.Kind == "Namespace" || key.Group == "apiextensions.k8s.io" && key.Kind == "CustomResourceDefinition"
}

// String returns the reference as it stands in a plan.
func (r Ref) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return r.APIVersion + " " + r.Kind + " " + name
}

// MarshalText returns the reference as it stands in a plan.
func (r Ref) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText returns.
func (r *Ref) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), " ")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return fmt.Errorf("%q is no reference to an object: write it as \"apps/v1 Deployment namespace/name\"", text)
	}
	*r = Ref{APIVersion: parts[0], Kind: parts[1], Name: parts[2]}
	if namespace, name, ok := strings.Cut(parts[2], "/"); ok {
		r.Namespace, r.Name = namespace, name
	}
	return nil
}
