package index

import (
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/lifecycle"
)

// FuzzSegment reads any bytes as a package: no panic, and what was read is
// written and read again as the same.
func FuzzSegment(f *testing.F) {
	e := newEncoder()
	e.pkg(&catalog.PackageData{
		Name: "p", DefaultChannel: "c", Channels: []catalog.ChannelData{{Name: "c", Entries: []catalog.EntryData{{Name: "p.v1", Skips: []string{"p.v0"}}}}},
		Bundles: []catalog.BundleData{{Name: "p.v1", Metadata: catalog.Metadata{Annotations: map[string]string{"a": "b"}}}},
	})
	f.Add(e.appendTo(nil))
	e.reset()
	e.pkg(&catalog.PackageData{Name: "p", Lifecycles: []catalog.LifecycleData{{Versions: []lifecycle.Version{{
		Name: "1.2", Phases: []lifecycle.Phase{{Name: "f", Start: "2025-01-01", End: "2025-06-30"}}, Platforms: []lifecycle.Platform{{Name: "openshift", Version: "4.18"}},
	}}}}})
	f.Add(e.appendTo(nil))
	f.Add([]byte{1, 200, 1, 'x', 0})
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		d := newDecoder(data)
		var p, q catalog.PackageData
		d.pkg(&p)
		if d.bad {
			return
		}
		again := newEncoder()
		again.pkg(&p)
		text := again.appendTo(nil)
		once := newDecoder(text)
		once.pkg(&q)
		if once.bad {
			t.Fatal("what was read cannot be read again")
		}
		final := newEncoder()
		final.pkg(&q)
		if string(final.appendTo(nil)) != string(text) {
			t.Error("reading and writing changes a package")
		}
	})
}
