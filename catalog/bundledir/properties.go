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
)

// propertySet collects properties, each once.
type propertySet struct {
	list   []catalog.Property
	seen   map[string]bool
	pos    diag.Pos // of the CSV
	faults diag.List
}

func (s *propertySet) add(typ string, value any) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // ranges are read by people
	if err := enc.Encode(value); err != nil {
		s.faults.Addf(s.pos, "property %q: %w", typ, err)
		return
	}
	raw := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	key := typ + "\x00" + string(raw)
	if !s.seen[key] {
		s.seen[key] = true
		s.list = append(s.list, catalog.Property{Type: typ, Value: raw})
	}
}

type gvk struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

// properties returns what opm would write for the bundle, sorted by type, then
// value: the package, the APIs of its CRDs and API services, what the CSV and
// the dependencies require, and the properties given by file and annotation.
func properties(b *bundle.Bundle, pos diag.Pos) ([]catalog.Property, error) {
	s := &propertySet{seen: map[string]bool{}, pos: pos}
	s.add("olm.package", struct {
		PackageName string `json:"packageName"`
		Version     string `json:"version"`
	}{b.Package, b.CSV.Version})
	s.provided(b)
	s.required(b.CSV)
	for _, d := range b.Dependencies {
		s.dependency(d)
	}
	for _, p := range b.Properties {
		s.given(p)
	}
	s.annotated(b.CSV.Annotations["olm.properties"])
	if v := b.CSV.Annotations["olm.maxOpenShiftVersion"]; v != "" {
		s.add("olm.maxOpenShiftVersion", v)
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
		if o.Kind() != "CustomResourceDefinition" || o.Group() != "apiextensions.k8s.io" {
			continue
		}
		spec, _ := o.Fields["spec"].(map[string]any)
		names, _ := spec["names"].(map[string]any)
		group, _ := spec["group"].(string)
		kind, _ := names["kind"].(string)
		versions, _ := spec["versions"].([]any)
		for _, v := range versions {
			fields, _ := v.(map[string]any)
			if name, _ := fields["name"].(string); name != "" {
				s.add("olm.gvk", gvk{group, kind, name})
			}
		}
		if v, _ := spec["version"].(string); v != "" && strings.HasSuffix(o.APIVersion(), "/v1beta1") {
			s.add("olm.gvk", gvk{group, kind, v})
		}
	}
	for _, api := range b.CSV.OwnedAPIs {
		s.add("olm.gvk", gvk{api.Group, api.Kind, api.Version})
	}
}

func (s *propertySet) required(csv *bundle.CSV) {
	for _, crd := range csv.RequiredCRDs {
		_, group, ok := strings.Cut(crd.Name, ".")
		if !ok {
			s.faults.Addf(s.pos, "%s.name: %q is not plural.group", crd.Field, crd.Name)
			continue
		}
		s.add("olm.gvk.required", gvk{group, crd.Kind, crd.Version})
	}
	for _, api := range csv.RequiredAPIs {
		s.add("olm.gvk.required", gvk{api.Group, api.Kind, api.Version})
	}
}

// dependency adds an entry of dependencies.yaml, whose types are named after
// what is required.
func (s *propertySet) dependency(d catalog.Property) {
	switch d.Type {
	case "olm.package":
		var v struct {
			PackageName string `json:"packageName"`
			Version     string `json:"version"`
		}
		if s.read(d, &v) {
			s.add("olm.package.required", struct {
				PackageName  string `json:"packageName"`
				VersionRange string `json:"versionRange"`
			}{v.PackageName, v.Version})
		}
	case "olm.gvk":
		var v gvk
		if s.read(d, &v) {
			s.add("olm.gvk.required", v)
		}
	case "olm.label":
		s.add("olm.label.required", d.Value)
	default:
		s.add(d.Type, d.Value)
	}
}

// given adds a property that the bundle's author wrote. The package is known
// already, and an API is spelled as those of the CRDs.
func (s *propertySet) given(p catalog.Property) {
	switch p.Type {
	case "olm.package":
	case "olm.gvk":
		var v gvk
		if s.read(p, &v) {
			s.add(p.Type, v)
		}
	default:
		s.add(p.Type, p.Value)
	}
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

func (s *propertySet) read(p catalog.Property, into any) bool {
	if err := json.Unmarshal(p.Value, into); err != nil {
		s.faults.Addf(s.pos, "property %q: %w", p.Type, err)
		return false
	}
	return true
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
		template, _ := d.Spec["template"].(map[string]any)
		pod, _ := template["spec"].(map[string]any)
		for _, list := range []string{"containers", "initContainers"} {
			containers, _ := pod[list].([]any)
			for _, c := range containers {
				fields, _ := c.(map[string]any)
				if image, _ := fields["image"].(string); image != "" && !have[image] {
					have[image] = true
					images = append(images, catalog.RelatedImage{Image: image})
				}
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
		if v := csv.Annotations[name]; catalog.KeepsAnnotation(name) && len(v) < 1<<10 {
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
