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
	"github.com/quayside/quayside/catalog/olm"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/kinds"
	"github.com/quayside/quayside/internal/kobj"
)

// propertySet collects properties, each once.
type propertySet struct {
	list   []catalog.Property
	seen   map[string]bool
	pos    diag.Pos // of the CSV
	faults diag.List
}

func (s *propertySet) add(p catalog.Property) {
	if key := p.Type + "\x00" + string(p.Value); !s.seen[key] {
		s.seen[key] = true
		s.list = append(s.list, p)
	}
}

// properties returns what opm would write for the bundle, sorted by type, then
// value: the package, the APIs of its CRDs and API services, what the CSV and
// the dependencies require, and the properties given by file and annotation.
func properties(b *bundle.Bundle, pos diag.Pos) ([]catalog.Property, error) {
	s := &propertySet{seen: map[string]bool{}, pos: pos}
	s.add(olm.Released(b.Package, b.CSV.Version, b.CSV.Release))
	s.provided(b)
	s.required(b.CSV)
	for _, d := range b.Dependencies {
		s.read(d, olm.Dependency)
	}
	for _, p := range b.Properties {
		s.given(p)
	}
	s.annotated(b.CSV.Annotations["olm.properties"])
	if v := b.CSV.Annotations[olm.TypeMaxVersion]; v != "" {
		s.add(olm.UpTo(v))
	}
	slices.SortFunc(s.list, func(a, b catalog.Property) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), bytes.Compare(a.Value, b.Value))
	})
	return s.list, s.faults.Err()
}

// provided adds every version of every CRD in the bundle, served or not, and
// the owned API services.
func (s *propertySet) provided(b *bundle.Bundle) {
	for _, o := range b.Objects {
		if !kobj.IsCRD(o.Object) {
			continue
		}
		crd := kinds.Define(o.Object)
		for _, v := range crd.Versions {
			s.add(olm.Provided(catalog.GVK{Group: crd.Group, Version: v.Name, Kind: crd.Kind}))
		}
	}
	for _, api := range b.CSV.OwnedAPIs {
		s.add(olm.Provided(catalog.GVK{Group: api.Group, Version: api.Version, Kind: api.Kind}))
	}
}

func (s *propertySet) required(csv *bundle.CSV) {
	for _, crd := range csv.RequiredCRDs {
		group, ok := olm.GroupOf(crd.Name)
		if !ok {
			s.faults.Addf(s.pos, "%s.name: %q is not plural.group", crd.Field, crd.Name)
			continue
		}
		s.add(olm.Required(catalog.GVK{Group: group, Version: crd.Version, Kind: crd.Kind}))
	}
	for _, api := range csv.RequiredAPIs {
		s.add(olm.Required(catalog.GVK{Group: api.Group, Version: api.Version, Kind: api.Kind}))
	}
}

// given adds a property that the bundle's author wrote. The package is known
// already.
func (s *propertySet) given(p catalog.Property) {
	if p.Type != olm.TypePackage {
		s.read(p, olm.Spelled)
	}
}

// read adds a property as it is written, unless it cannot be read.
func (s *propertySet) read(given catalog.Property, as func(catalog.Property) (catalog.Property, error)) {
	p, err := as(given)
	if err != nil {
		s.faults.Addf(s.pos, "property %q: %w", given.Type, err)
		return
	}
	s.add(p)
}

// annotated adds the properties of the CSV's annotation, a JSON list.
func (s *propertySet) annotated(text string) {
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
		s.given(catalog.Property{Type: p.Type, Value: p.Value})
	}
}

// relatedImages returns the images that the CSV lists and those of its
// deployments, each once, sorted by image.
func relatedImages(csv *bundle.CSV) []catalog.RelatedImage {
	images := slices.Clone(csv.RelatedImages)
	have := map[string]bool{}
	for _, img := range images {
		have[img.Image] = true
	}
	for _, d := range csv.Deployments {
		for _, c := range kobj.Containers(kobj.Map(d.Spec, "template", "spec")) {
			if image := kobj.Text(c, "image"); image != "" && !have[image] {
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

func metadata(csv *bundle.CSV) catalog.Metadata {
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
