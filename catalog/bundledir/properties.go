package bundledir

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/quayside/quayside/bundle"
	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/k8s"
)

// propertySet collects the properties of a bundle without duplicates.
type propertySet struct {
	list   []catalog.Property
	seen   map[string]bool
	pos    diag.Pos // position of the CSV
	faults diag.List
}

func (s *propertySet) add(p catalog.Property) {
	if key := p.Type + "\x00" + string(p.Value); !s.seen[key] {
		s.seen[key] = true
		s.list = append(s.list, p)
	}
}

// bundleProperties returns the properties of a bundle, sorted by type and value, as opm does:
//   - the package of the bundle
//   - the APIs of its CRDs and API services
//   - the APIs that its CSV requires
//   - its dependencies
//   - the properties in the properties file and in the annotation olm.properties
//
// pos is the position of faults.
func bundleProperties(b *bundle.Bundle, pos diag.Pos) ([]catalog.Property, error) {
	s := &propertySet{seen: map[string]bool{}, pos: pos}
	s.add(catalog.PackageReleaseProperty(b.Package, b.CSV.Version, b.CSV.Release))
	s.addProvided(b)
	s.addRequired(b.CSV)
	for _, g := range givenProperties(b, pos, &s.faults) {
		if g.Type != catalog.TypePackage { // generated above
			s.add(g.Property)
		}
	}
	if v := b.CSV.Annotations[catalog.TypeMaxVersion]; v != "" {
		s.add(catalog.MaxOpenShiftVersionProperty(v))
	}
	slices.SortFunc(s.list, func(a, b catalog.Property) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), bytes.Compare(a.Value, b.Value))
	})
	return s.list, s.faults.Err()
}

// addProvided adds all versions of the CRDs in the bundle, served or not, and the owned API
// services.
func (s *propertySet) addProvided(b *bundle.Bundle) {
	for _, o := range b.Objects {
		if !k8s.IsCRD(o.Object) {
			continue
		}
		crd := k8s.ParseCRD(o.Object)
		for _, v := range crd.Versions {
			s.add(catalog.GVKProperty(catalog.GVK{Group: crd.Group, Version: v.Name, Kind: crd.Kind}))
		}
	}
	for _, api := range b.CSV.OwnedAPIs {
		s.add(catalog.GVKProperty(catalog.GVK{Group: api.Group, Version: api.Version, Kind: api.Kind}))
	}
}

func (s *propertySet) addRequired(csv *bundle.CSV) {
	for _, crd := range csv.RequiredCRDs {
		group, ok := catalog.GroupOf(crd.Name)
		if !ok {
			s.faults.Addf(s.pos, "%s.name: %q is not plural.group", crd.Field, crd.Name)
			continue
		}
		s.add(catalog.RequiredGVKProperty(catalog.GVK{Group: group, Version: crd.Version, Kind: crd.Kind}))
	}
	for _, api := range csv.RequiredAPIs {
		s.add(catalog.RequiredGVKProperty(catalog.GVK{Group: api.Group, Version: api.Version, Kind: api.Kind}))
	}
}

// givenProperties returns the dependencies and properties that the metadata of a bundle and the annotation
// olm.properties of its CSV contain. It converts them to properties of a file-based catalog. pos is the
// position of the CSV.
func givenProperties(b *bundle.Bundle, pos diag.Pos, faults *diag.List) []bundle.Property {
	var out []bundle.Property
	add := func(convert func(catalog.Property) (catalog.Property, error), given ...bundle.Property) {
		for _, g := range given {
			p, err := convert(g.Property)
			if err != nil {
				faults.Addf(g.Pos, "%s: property %q: %w", g.Field, g.Type, err)
				continue
			}
			g.Property = p
			out = append(out, g)
		}
	}
	add(catalog.Dependency, b.Dependencies...)
	add(catalog.CanonicalProperty, b.Properties...)
	add(catalog.CanonicalProperty, annotatedProperties(b.CSV.Annotations["olm.properties"], pos, faults)...)
	return out
}

// annotatedProperties decodes text, the value of the CSV annotation olm.properties. This value is a JSON list
// of properties.
func annotatedProperties(text string, pos diag.Pos, faults *diag.List) []bundle.Property {
	const field = "metadata.annotations[olm.properties]"
	if text == "" {
		return nil
	}
	var list []catalog.Property
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		faults.Addf(pos, "%s: %w", field, err)
		return nil
	}
	var out []bundle.Property
	for i, p := range list {
		if p.Type == "" || len(p.Value) == 0 {
			faults.Addf(pos, "%s: property %d lacks its type or its value", field, i+1)
			continue
		}
		out = append(out, bundle.Property{Property: p, Pos: pos, Field: diag.Item(field, i)})
	}
	return out
}

// CheckProperties checks the channels, dependencies and properties of a bundle. It returns a diag.List of the
// faults that make the catalog unreadable, or the bundle impossible to choose. checkRule returns an error if
// a CEL rule is invalid.
//
// It rejects empty values, as the types of operator-registry do (pkg/registry, Validate), and bundles
// without channels (pkg/lib/bundle, ValidateBundleFormat).
func CheckProperties(b *bundle.Bundle, checkRule func(rule string) error) error {
	var faults diag.List
	if len(b.Channels) == 0 {
		faults.Addf(diag.Pos{File: "metadata/annotations.yaml"}, `annotations["operators.operatorframework.io.bundle.channels.v1"] is missing: it must contain the channels`)
	}
	for _, g := range givenProperties(b, diag.Pos{File: b.CSV.File}, &faults) {
		var f catalog.Facts
		err := catalog.NewReader().Add(&f, g.Property)
		switch {
		case bytes.Equal(g.Value, []byte("null")):
			faults.Addf(g.Pos, "%s: property %q has no value", g.Field, g.Type)
		case err != nil:
			faults.Addf(g.Pos, "%s: %w", g.Field, err)
		case f.Unusable != "":
			faults.Addf(g.Pos, "%s: %s", g.Field, f.Unusable)
		case g.Type == catalog.TypePackage && (f.Package != b.Package || f.Version != b.CSV.Version):
			faults.Addf(g.Pos, "%s: property %s has package %q and version %q, but the bundle has package %q and version %q", g.Field, g.Type, f.Package, f.Version, b.Package, b.CSV.Version)
		default:
			for _, r := range f.Requires {
				for part := range r.Parts() {
					if field := part.EmptyField(); field != "" {
						faults.Addf(g.Pos, "%s: property %q has no %s", g.Field, g.Type, field)
					}
					if part.Kind == catalog.RequireCEL {
						if err := checkRule(part.Rule); err != nil {
							faults.Addf(g.Pos, "%s: cel rule %q: %w", g.Field, part.Rule, err)
						}
					}
				}
			}
		}
	}
	return faults.Err()
}

// relatedImages returns the related images of the CSV and the images of its
// deployments, without duplicates, sorted by image.
func relatedImages(csv *bundle.CSV) []catalog.RelatedImage {
	images := slices.Clone(csv.RelatedImages)
	have := map[string]bool{}
	for _, img := range images {
		have[img.Image] = true
	}
	for _, d := range csv.Deployments {
		for _, c := range k8s.Containers(k8s.Map(d.Spec, "template", "spec")) {
			if image := k8s.Text(c, "image"); image != "" && !have[image] {
				have[image] = true
				images = append(images, catalog.RelatedImage{Image: image})
			}
		}
	}
	slices.SortStableFunc(images, func(a, b catalog.RelatedImage) int {
		return cmp.Or(strings.Compare(a.Image, b.Image), strings.Compare(a.Name, b.Name))
	})
	return slices.Compact(images)
}

func csvMetadata(csv *bundle.CSV) catalog.Metadata {
	m := catalog.Metadata{
		Known: true, DisplayName: csv.DisplayName, Provider: csv.Provider, MinKubeVersion: csv.MinKubeVersion,
		InstallModes: csv.Modes, Keywords: csv.Keywords, Maturity: csv.Maturity,
		Description: catalog.ShortDescription(cmp.Or(csv.Annotations["description"], csv.Description)),
	}
	for _, name := range slices.Sorted(maps.Keys(csv.Annotations)) {
		if v := csv.Annotations[name]; catalog.KeepsAnnotation(name) && catalog.AnnotationFits(name, v) {
			if m.Annotations == nil {
				m.Annotations = map[string]string{}
			}
			m.Annotations[name] = v
		}
	}
	for _, crd := range csv.OwnedCRDs {
		m.Owned = append(m.Owned, crd.Name)
	}
	slices.Sort(m.Owned)
	m.Owned = slices.Compact(m.Owned)
	return m
}
