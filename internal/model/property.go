package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The property types with a meaning. [Requirement] lists those that are requirements.
const (
	TypePackage    = "olm.package" // one in every bundle
	TypeGVK        = "olm.gvk"
	TypeLabel      = "olm.label"
	TypeDeprecated = "olm.deprecated" // not allowed for new installations
	TypeMaxVersion = "olm.maxOpenShiftVersion"

	TypeGVKRequired     = "olm.gvk.required"
	TypePackageRequired = "olm.package.required"
	TypeLabelRequired   = "olm.label.required"
	TypeConstraint      = "olm.constraint"

	// The manifests and the metadata of a bundle. Readers omit both from its properties, because of
	// their size.
	TypeObject   = "olm.bundle.object"
	TypeMetadata = "olm.csv.metadata"
)

// Property is one {type, value}.
type Property struct {
	Type  string          `json:"type" form:"required" doc:"Type of the property, such as olm.gvk."`
	Value json.RawMessage `json:"value" doc:"Value of the property."`
}

// The values of properties and dependencies.
type (
	gvk struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	}
	ownPackage struct {
		PackageName string  `json:"packageName"`
		Release     *string `json:"release,omitempty"` // nil if omitted
		Version     string  `json:"version"`
	}
	label struct {
		Label string `json:"label"`
	}
)

// Provided returns the property of a bundle that provides an API.
func Provided(g GVK) Property { return property(TypeGVK, fields(g)) }

// Required returns the property of a bundle that needs an API.
func Required(g GVK) Property { return property(TypeGVKRequired, fields(g)) }

// PackageProperty returns the olm.package property with the name and version of a bundle's
// package.
func PackageProperty(pkg, version string) Property {
	return property(TypePackage, ownPackage{PackageName: pkg, Version: version})
}

// PackageReleaseProperty returns the olm.package property with a release. An empty release is
// omitted.
func PackageReleaseProperty(pkg, version, release string) Property {
	if release == "" {
		return PackageProperty(pkg, version)
	}
	return property(TypePackage, ownPackage{pkg, &release, version})
}

// UpTo returns an olm.maxOpenShiftVersion property.
func UpTo(version string) Property { return property(TypeMaxVersion, version) }

// Dependency converts an entry of dependencies.yaml, or of an index database, into a property. The
// types of these entries are named differently.
func Dependency(d Property) (Property, error) {
	switch d.Type {
	case TypePackage:
		var v ownPackage
		err := json.Unmarshal(d.Value, &v)
		return property(TypePackageRequired, packageConstraint{v.PackageName, v.Version}), err
	case TypeGVK:
		g, err := asGVK(d)
		return Required(g), err
	case TypeLabel:
		return Property{Type: TypeLabelRequired, Value: d.Value}, nil
	default:
		return d, nil
	}
}

// CanonicalProperty returns a property in the canonical form of this package. Other tools may write
// it with more fields, or in another order.
func CanonicalProperty(p Property) (Property, error) {
	if p.Type != TypeGVK {
		return p, nil
	}
	g, err := asGVK(p)
	return Provided(g), err
}

func asGVK(p Property) (GVK, error) {
	var v gvk
	err := json.Unmarshal(p.Value, &v)
	return GVK(v), err
}

// GroupOf returns the API group in the name of a CRD, "etcdclusters.etcd.io", and
// whether it has one.
func GroupOf(crd string) (string, bool) {
	_, group, ok := strings.Cut(crd, ".")
	return group, ok
}

func fields(g GVK) map[string]string {
	return map[string]string{"group": g.Group, "kind": g.Kind, "version": g.Version}
}

// property returns a property with a value of strings only. HTML escaping is off, so that ranges
// stay readable.
func property(typ string, value any) Property {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(fmt.Sprintf("olm: %s %v: %v", typ, value, err))
	}
	return Property{Type: typ, Value: bytes.TrimSuffix(text.Bytes(), []byte("\n"))}
}
