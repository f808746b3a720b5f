package resolve

import (
	"slices"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/lockfile"
)

// TestWithEntry checks that every field that WithEntry sets is in catalogFields.
func TestWithEntry(t *testing.T) {
	cat, err := catalog.New(catalog.Content{ID: catalog.ID{Name: "cat"}, Packages: []catalog.PackageData{{
		Name: "lamp", DefaultChannel: "stable",
		Channels: []catalog.ChannelData{{Name: "stable", Entries: []catalog.EntryData{{Name: "lamp.v1"}}}},
		Bundles: []catalog.BundleData{{
			Name: "lamp.v1", Image: "quay.io/lamp/lamp:1",
			Properties:    []catalog.Property{catalog.PackageProperty("lamp", "1.0.0")},
			RelatedImages: []catalog.RelatedImage{{Name: "light", Image: "quay.io/lamp/light:1"}},
			Metadata: catalog.Metadata{
				Known: true, DisplayName: "Lamp", Description: "Lamps.", Provider: "Lamps Ltd", MinKubeVersion: "1.30.0",
				InstallModes: []catalog.InstallMode{catalog.AllNamespaces}, Keywords: []string{"light"}, Maturity: "stable",
				Annotations: map[string]string{"capabilities": "Basic Install", "categories": "Light", "repository": "https://example.com/lamp"},
				Owned:       []string{"lamps.example.com"},
			},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	pkg, _ := cat.Package("lamp")
	b, _ := pkg.Bundle("lamp.v1")
	pin := lockfile.Pin{Namespace: "ns", Package: "lamp", Bundle: "lamp.v1"}
	changes := lockfile.Diff(lockfile.New([]lockfile.Pin{pin}), lockfile.New([]lockfile.Pin{WithEntry(pin, b)}))
	if len(changes) != 1 || len(changes[0].Fields) == 0 {
		t.Fatalf("changes: %+v", changes)
	}
	for _, field := range changes[0].Fields {
		if !slices.Contains(catalogFields(), field) {
			t.Errorf("WithEntry sets %s: add it to catalogFields", field)
		}
	}
}
