package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Property types that the resolver supports. [Requirement] is the decoded form of a required
// property.
const (
	TypePackage    = "olm.package" // every bundle has exactly one
	TypeGVK        = "olm.gvk"
	TypeLabel      = "olm.label"
	TypeDeprecated = "olm.deprecated" // forbids new installations
	TypeMaxVersion = "olm.maxOpenShiftVersion"

	TypeGVKRequired     = "olm.gvk.required"
	TypePackageRequired = "olm.package.required"
	TypeLabelRequired   = "olm.label.required"
	TypeConstraint      = "olm.constraint"

	// Property types with the manifests and metadata of a bundle. Decoders omit them from
	// Properties because of their size.
	TypeObject   = "olm.bundle.object"
	TypeMetadata = "olm.csv.metadata"
)

// Property is one property of a bundle: a type and a JSON value.
type Property struct {
	Type  string          `json:"type" form:"required" doc:"Type of the property, such as olm.gvk."`
	Value json.RawMessage `json:"value" doc:"Value of the property."`
}

// Types of the JSON values of properties and dependencies.
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

// GVKProperty returns the olm.gvk property of a bundle that provides an API.
func GVKProperty(g GVK) Property { return newProperty(TypeGVK, gvkFields(g)) }

// RequiredGVKProperty returns the olm.gvk.required property of a bundle that requires an API.
func RequiredGVKProperty(g GVK) Property { return newProperty(TypeGVKRequired, gvkFields(g)) }

// PackageProperty returns the olm.package property of a bundle with the given package and version.
func PackageProperty(pkg, version string) Property {
	return newProperty(TypePackage, ownPackage{PackageName: pkg, Version: version})
}

// PackageReleaseProperty returns the olm.package property of a bundle with the given package,
// version and release. An empty release is omitted.
func PackageReleaseProperty(pkg, version, release string) Property {
	if release == "" {
		return PackageProperty(pkg, version)
	}
	return newProperty(TypePackage, ownPackage{pkg, &release, version})
}

// MaxOpenShiftVersionProperty returns an olm.maxOpenShiftVersion property.
func MaxOpenShiftVersionProperty(version string) Property {
	return newProperty(TypeMaxVersion, version)
}

// Dependency converts a dependency from dependencies.yaml or an index database to a property of a file-based
// catalog. The types differ: for example, olm.package becomes olm.package.required.
func Dependency(d Property) (Property, error) {
	switch d.Type {
	case TypePackage:
		var v ownPackage
		err := json.Unmarshal(d.Value, &v)
		return newProperty(TypePackageRequired, packageConstraint{v.PackageName, v.Version}), err
	case TypeGVK:
		g, err := decodeGVK(d)
		return RequiredGVKProperty(g), err
	case TypeLabel:
		return Property{Type: TypeLabelRequired, Value: d.Value}, nil
	default:
		return d, nil
	}
}

// CanonicalProperty returns p in the encoding of this package. An olm.gvk property from other tools may have
// further fields, or another order of fields.
func CanonicalProperty(p Property) (Property, error) {
	if p.Type != TypeGVK {
		return p, nil
	}
	g, err := decodeGVK(p)
	return GVKProperty(g), err
}

func decodeGVK(p Property) (GVK, error) {
	var v gvk
	err := json.Unmarshal(p.Value, &v)
	return GVK(v), err
}

// GroupOf returns the API group in the name of a CRD, such as "etcd.io" for "etcdclusters.etcd.io".
// It returns false if the name contains no group.
func GroupOf(crd string) (string, bool) {
	_, group, ok := strings.Cut(crd, ".")
	return group, ok
}

func gvkFields(g GVK) map[string]string {
	return map[string]string{"group": g.Group, "kind": g.Kind, "version": g.Version}
}

// newProperty returns a property with value encoded as JSON. HTML characters are not escaped, so
// that version ranges remain readable. value must contain only strings.
func newProperty(typ string, value any) Property {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(fmt.Sprintf("catalog: %s %v: %v", typ, value, err))
	}
	return Property{Type: typ, Value: bytes.TrimSuffix(text.Bytes(), []byte("\n"))}
}
