package k8s

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Object is a decoded Kubernetes object. Values have the types string, bool, int64, float64,
// json.Number, nil, []any and map[string]any.
type Object map[string]any

// New returns an object with apiVersion, kind and name, and with the namespace unless it is empty.
func New(apiVersion, kind, namespace, name string) Object {
	meta := map[string]any{"name": name}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return Object{"apiVersion": apiVersion, "kind": kind, "metadata": meta}
}

// APIVersion returns apiVersion.
func (o Object) APIVersion() string { return Text(o, "apiVersion") }

// Kind returns kind.
func (o Object) Kind() string { return Text(o, "kind") }

// Group returns the API group of o, or "" for the core group.
func (o Object) Group() string { return Group(o.APIVersion()) }

// Group returns the API group in an apiVersion, or "" for the core group.
func Group(apiVersion string) string {
	if group, _, ok := strings.Cut(apiVersion, "/"); ok {
		return group
	}
	return ""
}

// Name returns metadata.name.
func (o Object) Name() string { return Text(o, "metadata", "name") }

// Namespace returns metadata.namespace, "" for a cluster-scoped object.
func (o Object) Namespace() string { return Text(o, "metadata", "namespace") }

// Is reports whether o has this group and kind, in any version.
func (o Object) Is(group, kind string) bool { return o.Kind() == kind && o.Group() == group }

// IsCRD reports whether o is a CustomResourceDefinition. It accepts an empty apiVersion, because
// OLM installs such CRDs.
func IsCRD(o Object) bool {
	return o.Kind() == "CustomResourceDefinition" && (o.Group() == CRDGroup || o.APIVersion() == "")
}

// Annotate returns a copy of o with additional annotations. Existing annotations take precedence.
func Annotate(o Object, more map[string]string) Object { return addMeta(o, "annotations", more) }

// Label returns a copy of o with additional labels. Existing labels take precedence.
func Label(o Object, more map[string]string) Object { return addMeta(o, "labels", more) }

func addMeta(o Object, field string, more map[string]string) Object {
	merged := map[string]any{}
	for k, v := range more {
		merged[k] = v
	}
	maps.Copy(merged, Map(o, "metadata", field))
	if len(merged) == 0 {
		return o
	}
	return With(o, merged, "metadata", field)
}

// Key identifies an object in a cluster, without its API version.
type Key struct {
	Group     string `json:"group,omitempty" doc:"API group; absent for the core group."`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Key returns the key of o.
func (o Object) Key() Key { return Key{o.Group(), o.Kind(), o.Namespace(), o.Name()} }

// GroupKind returns "Kind.group", or "Kind" for the core group.
func (k Key) GroupKind() string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// Is reports whether the kind of k is one of kinds, each in the format of GroupKind.
func (k Key) Is(kinds ...string) bool { return slices.Contains(kinds, k.GroupKind()) }

// String returns "Kind namespace/name", with the group if it is not empty.
func (k Key) String() string {
	name := k.Name
	if k.Namespace != "" {
		name = k.Namespace + "/" + name
	}
	return k.GroupKind() + " " + name
}

// Compare orders keys by kind, group, namespace and name.
func (k Key) Compare(l Key) int {
	return cmp.Or(strings.Compare(k.Kind, l.Kind), strings.Compare(k.Group, l.Group),
		strings.Compare(k.Namespace, l.Namespace), strings.Compare(k.Name, l.Name))
}

// EscapePointer escapes a key for use in a JSON pointer.
func EscapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// Condition returns the condition with the given type in status.conditions, or nil.
func Condition(o map[string]any, kind string) map[string]any {
	for _, c := range Items(o, "status", "conditions") {
		if Text(c, "type") == kind {
			return c
		}
	}
	return nil
}

// HasCondition reports whether the condition with the given type is True.
func HasCondition(o map[string]any, kind string) bool {
	return Text(Condition(o, kind), "status") == "True"
}

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

// HoldsOthers reports whether deleting the object also deletes other objects or data: everything in a
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
