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

// bundleProperties returns the same properties as opm for a bundle, sorted by type and value: its
// package, the APIs of its CRDs and API services, the APIs that its CSV requires, its dependencies,
// and the properties in the properties file and in the annotation olm.properties. pos is the
// position of faults.
func bundleProperties(b *bundle.Bundle, pos diag.Pos) ([]catalog.Property, error) {
	s := &propertySet{seen: map[string]bool{}, pos: pos}
	s.add(catalog.PackageReleaseProperty(b.Package, b.CSV.Version, b.CSV.Release))
	s.addProvided(b)
	s.addRequired(b.CSV)
	for _, d := range b.Dependencies {
		s.addConverted(d, catalog.Dependency)
	}
	for _, p := range b.Properties {
		s.addGiven(p)
	}
	s.addAnnotated(b.CSV.Annotations["olm.properties"])
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

// addGiven adds a property from the properties file or the annotation. It ignores olm.package,
// because bundleProperties generates it.
func (s *propertySet) addGiven(p catalog.Property) {
	if p.Type != catalog.TypePackage {
		s.addConverted(p, catalog.CanonicalProperty)
	}
}

// addConverted adds convert(given), or a fault if convert fails.
func (s *propertySet) addConverted(given catalog.Property, convert func(catalog.Property) (catalog.Property, error)) {
	p, err := convert(given)
	if err != nil {
		s.faults.Addf(s.pos, "property %q: %w", given.Type, err)
		return
	}
	s.add(p)
}

// addAnnotated adds the properties in text, the value of the CSV annotation olm.properties: a JSON
// list.
func (s *propertySet) addAnnotated(text string) {
	if text == "" {
		return
	}
	var list []struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		s.faults.Addf(s.pos, "metadata.annotations[olm.properties]: %w", err)
		return
	}
	for i, p := range list {
		if p.Type == "" || len(p.Value) == 0 {
			s.faults.Addf(s.pos, "metadata.annotations[olm.properties]: property %d lacks its type or its value", i+1)
			continue
		}
		s.addGiven(catalog.Property{Type: p.Type, Value: p.Value})
	}
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
