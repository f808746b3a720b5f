package catalog

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lampCatalog returns a catalog with one package of two versions in one channel. change may modify the package.
func lampCatalog(t *testing.T, change func(*PackageData)) *Catalog {
	t.Helper()
	bundle := func(name, version string) BundleData {
		return BundleData{Name: name, Image: "example.com/" + name, Properties: []Property{
			{Type: "olm.package", Value: json.RawMessage(`{"packageName":"lamp","version":"` + version + `"}`)},
			{Type: "olm.constraint", Value: json.RawMessage(`{"failureMessage": "too old", "cel": {"rule": "1 > 0"}}`)},
		}}
	}
	p := PackageData{
		Name: "lamp", DefaultChannel: "stable",
		Channels: []ChannelData{{Name: "stable", Entries: []EntryData{{Name: "lamp.v2", Replaces: "lamp.v1"}, {Name: "lamp.v1"}}}},
		Bundles:  []BundleData{bundle("lamp.v1", "1.0.0"), bundle("lamp.v2", "2.0.0")},
	}
	if change != nil {
		change(&p)
	}
	c, err := New(Content{Packages: []PackageData{p}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDiff(t *testing.T) {
	empty, err := New(Content{})
	if err != nil {
		t.Fatal(err)
	}
	same := func(p *PackageData) { // equal content in another notation
		p.Bundles[0].Properties[1].Value = json.RawMessage(`{"cel":{"rule":"1 \u003e 0"},"failureMessage":"too old"}`)
		p.Channels[0].Entries[0], p.Channels[0].Entries[1] = p.Channels[0].Entries[1], p.Channels[0].Entries[0]
	}
	full := func(name, year, until string, openshift ...string) SupportedVersion {
		v := SupportedVersion{Name: name, Phases: []SupportPhase{{Name: "Full", Start: year + "-01-01", End: until + "-12-31"}}}
		for _, o := range openshift {
			v.Platforms = append(v.Platforms, SupportedPlatform{Name: "openshift", Version: o})
		}
		return v
	}
	lived1, shuffled := full("1.0", "2025", "2025", "4.16", "4.18"), full("1.0", "2025", "2025", "4.18", "4.16")
	lived2, longer := full("2.0", "2026", "2026"), full("2.0", "2026", "2027")
	supported := func(said ...SupportedVersion) func(*PackageData) {
		return func(p *PackageData) { p.Lifecycles = []LifecycleData{{Versions: said}} }
	}
	for _, tt := range []struct {
		name     string
		old, new *Catalog
		want     []Change
	}{
		{"same", lampCatalog(t, nil), lampCatalog(t, same), nil},
		{"package added", empty, lampCatalog(t, nil), []Change{{Kind: Added, Part: PartPackage, Package: "lamp", To: "2.0.0"}}},
		{"package removed", lampCatalog(t, nil), empty, []Change{{Kind: Removed, Part: PartPackage, Package: "lamp", From: "2.0.0"}}},
		{"edges and version", lampCatalog(t, nil), lampCatalog(t, func(p *PackageData) {
			p.Channels[0].Entries[0] = EntryData{Name: "lamp.v2", Skips: []string{"lamp.v1"}, SkipRange: "<2.0.0"}
			p.Bundles[1].Properties[0].Value = json.RawMessage(`{"packageName":"lamp","version":"2.0.1"}`)
		}), []Change{
			{Kind: Changed, Part: PartEdges, Package: "lamp", Channel: "stable", Bundle: "lamp.v2", From: "replaces lamp.v1", To: "skips lamp.v1; skips range <2.0.0"},
			{Kind: Changed, Part: PartVersion, Package: "lamp", Bundle: "lamp.v2", From: "2.0.0", To: "2.0.1"},
		}},
		{"related images", lampCatalog(t, nil), lampCatalog(t, func(p *PackageData) {
			p.Bundles[0].RelatedImages = []RelatedImage{{Image: "example.com/lamp.v1"}, {Image: "example.com/b"}, {Image: "example.com/a"}}
		}), []Change{{Kind: Changed, Part: PartImages, Package: "lamp", Bundle: "lamp.v1", To: "example.com/a, example.com/b"}}},
		{"lifecycles", lampCatalog(t, supported(lived1, lived2)), lampCatalog(t, supported(shuffled, longer)), []Change{
			{Kind: Changed, Part: PartLifecycle, Package: "lamp", Version: "2.0", From: "Full 2026-01-01 to 2026-12-31", To: "Full 2026-01-01 to 2027-12-31"},
		}},
		{"lifecycle added and removed", lampCatalog(t, supported(lived1)), lampCatalog(t, supported(lived2)), []Change{
			{Kind: Removed, Part: PartLifecycle, Package: "lamp", Version: "1.0", From: "Full 2025-01-01 to 2025-12-31; openshift 4.16; openshift 4.18"},
			{Kind: Added, Part: PartLifecycle, Package: "lamp", Version: "2.0", To: "Full 2026-01-01 to 2026-12-31"},
		}},
		{"deprecated", lampCatalog(t, nil), lampCatalog(t, func(p *PackageData) {
			p.Deprecations = []DeprecationData{{Schema: "olm.bundle", Name: "lamp.v1", Message: "Old."}, {Schema: "olm.channel", Name: "stable", Message: "Gone soon."}}
		}), []Change{
			{Kind: Changed, Part: PartDeprecation, Package: "lamp", Channel: "stable", To: "Gone soon."},
			{Kind: Changed, Part: PartDeprecation, Package: "lamp", Bundle: "lamp.v1", To: "Old."},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Diff(tt.old, tt.new)); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}
