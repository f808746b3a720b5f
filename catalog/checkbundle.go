package catalog

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/quayside/quayside/internal/diag"
)

// newBundle builds and checks one bundle. Requirements that cannot be read are
// no fault: they make the bundle unusable.
func newBundle(p *Package, data *BundleData, known memo, faults *diag.List) *Bundle {
	b := &Bundle{pkg: p, data: data}
	if data.Name == "" {
		faults.Addf(data.Pos, "bundle of package %q has no name", p.Name())
	}
	if data.Image == "" && !data.Embedded {
		faults.Addf(data.Pos, "bundle %q of package %q has neither an image nor embedded manifests", data.Name, p.Name())
	}
	own := 0
	for i := range data.Properties {
		prop := data.Properties[i]
		if prop.Type == "" || len(prop.Value) == 0 {
			faults.Addf(data.Pos, "property %d of bundle %q of package %q lacks its type or its value", i+1, data.Name, p.Name())
			continue
		}
		if prop.Type == "olm.package" {
			own++
		}
		b.addProperty(prop, known, faults)
	}
	if own != 1 {
		faults.Addf(data.Pos, "bundle %q of package %q has %d olm.package properties: want exactly one", data.Name, p.Name(), own)
	}
	slices.SortFunc(b.provides, GVK.Compare)
	b.provides = slices.Compact(b.provides)
	slices.Sort(b.labels)
	b.labels = slices.Compact(b.labels)
	if b.unusable != "" {
		b.requires = nil
	}
	return b
}

func (b *Bundle) addProperty(prop Property, known memo, faults *diag.List) {
	switch prop.Type {
	case "olm.package":
		b.setVersion(prop.Value, faults)
	case "olm.gvk":
		g, err := known.gvk(prop.Value)
		if err != nil {
			faults.Addf(b.data.Pos, "bundle %q of package %q: property olm.gvk: %w", b.Name(), b.pkg.Name(), err)
			return
		}
		b.provides = append(b.provides, g)
	case "olm.label":
		var v struct {
			Label string `json:"label"`
		}
		if json.Unmarshal(prop.Value, &v) == nil && v.Label != "" {
			b.labels = append(b.labels, v.Label)
		}
	case "olm.deprecated":
		b.dropped = true
	case "olm.maxOpenShiftVersion":
		b.maxOCP = plainText(prop.Value)
	case "olm.gvk.required", "olm.package.required", "olm.label.required", "olm.constraint":
		r, err := known.requirement(prop)
		if err != nil {
			if b.unusable == "" {
				b.unusable = prop.Type + ": " + err.Error()
			}
			return
		}
		b.requires = append(b.requires, *r)
	}
}

func (b *Bundle) setVersion(value []byte, faults *diag.List) {
	var v struct {
		PackageName string `json:"packageName"`
		Version     string `json:"version"`
	}
	if plain, ok := plainStrings(value, "packageName", "version"); ok {
		v.PackageName, v.Version = plain[0], plain[1]
	} else if err := json.Unmarshal(value, &v); err != nil {
		faults.Addf(b.data.Pos, "bundle %q of package %q: property olm.package: %w", b.Name(), b.pkg.Name(), jsonFault(err))
		return
	}
	if v.PackageName != b.pkg.Name() {
		faults.Addf(b.data.Pos, "bundle %q of package %q: property olm.package names package %q", b.Name(), b.pkg.Name(), v.PackageName)
	}
	version, err := ParseVersion(v.Version)
	if err != nil {
		faults.Addf(b.data.Pos, "bundle %q of package %q: %w", b.Name(), b.pkg.Name(), err)
		return
	}
	b.version, b.versioned = version, true
}

// plainText returns a JSON string's text, and any other value as written.
func plainText(value []byte) string {
	var s string
	if json.Unmarshal(value, &s) == nil {
		return strings.TrimSpace(s)
	}
	return strings.TrimSpace(string(value))
}
