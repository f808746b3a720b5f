package cache_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/internal/diag"
)

// value returns v as JSON.
func value(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// sample returns a catalog that sets every field. Each package requires the next one by name,
// and the last one requires an API of the first.
func sample(packages int) catalog.Content {
	c := catalog.Content{
		Warnings: []diag.Warning{{Pos: diag.Pos{File: "w.yaml", Line: 3, Col: 1}, Code: "odd", Msg: "an odd thing"}},
	}
	for i := range packages {
		name := fmt.Sprintf("p%02d", i)
		at := func(line int) diag.Pos { return diag.Pos{File: name + "/catalog.json", Line: line, Col: 5} }
		old, next := name+".v1.0.0", name+".v1.1.0"
		requires := catalog.Property{Type: "olm.package.required", Value: value(map[string]string{"packageName": fmt.Sprintf("p%02d", i+1), "versionRange": ">=1.0.0"})}
		if i == packages-1 {
			requires = catalog.Property{Type: "olm.gvk.required", Value: value(catalogGVK("p00"))}
		}
		bundle := func(bundle, version string, line int) catalog.BundleData {
			return catalog.BundleData{
				Name: bundle, Image: "quay.io/x/" + name + ":" + version, Pos: at(line), Embedded: i%2 == 1,
				Span: catalog.Span{Offset: int64(i) << 33, Size: int64(line)},
				Properties: []catalog.Property{
					{Type: "olm.package", Value: value(map[string]string{"packageName": name, "version": version})},
					{Type: "olm.gvk", Value: value(catalogGVK(name))},
					{Type: "olm.label", Value: value(map[string]string{"label": name})},
					requires,
				},
				RelatedImages: []catalog.RelatedImage{{Name: "operator", Image: "quay.io/x/op:" + version}, {Image: "quay.io/x/other"}},
				Metadata: catalog.Metadata{
					Known: true, DisplayName: "Package " + name, Description: "Does things.", Provider: "Example", MinKubeVersion: "1.20.0",
					InstallModes: []catalog.InstallMode{catalog.AllNamespaces, catalog.OwnNamespace}, Keywords: []string{"things", name}, Maturity: "alpha",
					Annotations: map[string]string{"capabilities": "Basic", "olm.x": ""}, Owned: []string{"things.example.com"},
				},
			}
		}
		c.Packages = append(c.Packages, catalog.PackageData{
			Name: name, DefaultChannel: "stable", Description: "Package of things.\nMore.", Pos: at(1),
			Channels: []catalog.ChannelData{{Name: "stable", Pos: at(2), Entries: []catalog.EntryData{
				{Name: next, Replaces: old, Skips: []string{name + ".v1.0.5"}, SkipRange: ">=0.9.0 <1.1.0", Pos: at(3)}, {Name: old, Pos: at(4)},
			}}},
			Bundles:      []catalog.BundleData{bundle(next, "1.1.0", 5), bundle(old, "1.0.0", 6)},
			Deprecations: []catalog.DeprecationData{{Schema: "olm.bundle", Name: old, Message: "old", Pos: at(7)}},
		})
		if i%2 == 0 {
			c.Packages[i].Lifecycles = []catalog.LifecycleData{{
				Pos: at(8), Versions: []catalog.SupportedVersion{{
					Name: "1.1", Phases: []catalog.SupportPhase{{Name: "Full support", Start: "2025-01-01", End: "2025-06-30"}},
					Platforms: []catalog.SupportedPlatform{{Name: "openshift", Version: "4.18"}},
				}},
			}, {Pos: at(9), Faults: []catalog.LifecycleFault{{Pos: at(10), Msg: "no versions"}}}}
		}
	}
	empty := catalog.BundleData{Name: "z.v1.0.0", Image: "z", Properties: []catalog.Property{{Type: "olm.package", Value: value(map[string]string{"packageName": "z", "version": "1.0.0"})}}}
	empty.Metadata.InstallModes = []catalog.InstallMode{} // known but empty, which differs from nil
	c.Packages = append(c.Packages, catalog.PackageData{
		Name: "z", DefaultChannel: "c", Channels: []catalog.ChannelData{{Name: "c", Entries: []catalog.EntryData{{Name: "z.v1.0.0"}}}}, Bundles: []catalog.BundleData{empty},
	})
	return c
}

func catalogGVK(name string) map[string]string {
	return map[string]string{"group": name + ".example.com", "version": "v1", "kind": "Thing"}
}

// write returns the index of c.
func write(t testing.TB, c catalog.Content) []byte {
	t.Helper()
	cat, err := catalog.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := cache.WriteIndex(&buf, "key", cat); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func open(t testing.TB, data []byte) *cache.Index {
	t.Helper()
	f, err := cache.OpenIndex(bytes.NewReader(data), int64(len(data)), "key")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestRoundTrip checks that an index returns the content, summaries and search texts of its catalog.
func TestRoundTrip(t *testing.T) {
	c := sample(3)
	f := open(t, write(t, c))
	got, err := cache.PickClosure(catalog.Needs{Anything: true})([]*cache.Index{f}, catalog.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(c, got[0]); d != "" {
		t.Errorf("content (-want +got):\n%s", d)
	}
	cat, err := catalog.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var want []cache.Summary
	for _, p := range cat.Packages() {
		s := cache.Summary{Summary: p.Summary()}
		for _, b := range p.Bundles() {
			s.APIs = append(s.APIs, b.Provides()...)
		}
		slices.SortFunc(s.APIs, catalog.GVK.Compare)
		s.APIs = slices.Compact(s.APIs)
		want = append(want, s)
	}
	all, err := f.Search(nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Errorf("summaries (-want +got):\n%s", d)
	}
	found, err := f.Search(func(text string) bool { return strings.Contains(text, "p01.example.com/v1 thing") })
	if err != nil {
		t.Fatal(err)
	}
	want[1].Text = cat.Packages()[1].SearchText()
	if d := cmp.Diff(want[1:2], found); d != "" {
		t.Errorf("search (-want +got):\n%s", d)
	}
	if !bytes.Equal(write(t, c), write(t, c)) {
		t.Error("equal catalogs have different indexes")
	}
}

// TestLoad checks that PickClosure loads the needed packages, and the packages that these require.
func TestLoad(t *testing.T) {
	one, two := sample(4), catalog.Content{Packages: sample(6).Packages[5:6]} // p05 requires an API of p00
	for _, tc := range []struct {
		name string
		want catalog.Needs
		got  []string
	}{
		{"nothing", catalog.Needs{}, nil},
		{"an unknown name", catalog.Needs{Packages: []string{"kafka"}}, nil},
		{"a name in another case", catalog.Needs{Packages: []string{"Z"}}, nil},
		{"an unknown name similar to a package", catalog.Needs{Packages: []string{"x"}}, nil},
		{"another version of an API", catalog.Needs{APIs: []catalog.GVK{{Group: "p05.example.com", Version: "v2", Kind: "Thing"}}}, []string{"p00", "p01", "p02", "p03", "p05"}},
		{"another kind", catalog.Needs{APIs: []catalog.GVK{{Group: "p05.example.com", Version: "v1", Kind: "Think"}}}, nil},
		{"without requirements", catalog.Needs{Packages: []string{"z"}}, []string{"z"}},
		{"by name, then by API", catalog.Needs{Packages: []string{"p02"}}, []string{"p00", "p01", "p02", "p03"}},
		{"requirements in the other catalog", catalog.Needs{Labels: []string{"p05"}}, []string{"p00", "p01", "p02", "p03", "p05"}},
		{"by API", catalog.Needs{APIs: []catalog.GVK{{Group: "p05.example.com", Version: "v1", Kind: "Thing"}}}, []string{"p00", "p01", "p02", "p03", "p05"}},
		{"anything", catalog.Needs{Anything: true}, []string{"p00", "p01", "p02", "p03", "z", "p05"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			contents, err := cache.PickClosure(tc.want)([]*cache.Index{open(t, write(t, one)), open(t, write(t, two))}, catalog.Needs{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range contents {
				for _, p := range c.Packages {
					got = append(got, p.Name)
				}
			}
			if d := cmp.Diff(tc.got, got); d != "" {
				t.Errorf("packages (-want +got):\n%s", d)
			}
			cat, err := catalog.New(contents[0])
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff([]string{"p00", "p01", "p02", "p03", "z"}, cat.Names()); d != "" {
				t.Errorf("names (-want +got):\n%s", d)
			}
		})
	}
}

// counting is an io.ReaderAt that counts the bytes read.
type counting struct {
	io.ReaderAt
	n int
}

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.n += len(p)
	return c.ReaderAt.ReadAt(p, at)
}

func TestSelectReadsOnePackage(t *testing.T) {
	data := write(t, sample(80))
	r := &counting{ReaderAt: bytes.NewReader(data)}
	f, err := cache.OpenIndex(r, int64(len(data)), "key")
	if err != nil {
		t.Fatal(err)
	}
	before := r.n
	got, err := cache.PickNames("p40", "nosuch")([]*cache.Index{f}, catalog.Needs{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got[0].Packages) != 1 || got[0].Packages[0].Name != "p40" {
		t.Fatalf("got %d packages", len(got[0].Packages))
	}
	if n := r.n - before; n > len(data)/50 {
		t.Errorf("read %d of %d bytes for one of 81 packages", n, len(data))
	}
}

// queryIndex queries all content of an index, and returns the first error.
func queryIndex(data []byte, key string) ([]catalog.Content, []cache.Summary, error) {
	f, err := cache.OpenIndex(bytes.NewReader(data), int64(len(data)), key)
	if err != nil {
		return nil, nil, err
	}
	found, err := f.Search(func(string) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	contents, err := cache.PickClosure(catalog.Needs{Anything: true})([]*cache.Index{f}, catalog.Needs{})
	return contents, found, err
}

// TestFlippedBits damages every byte of an index in turn. The damage must be detected, or not
// change the content.
func TestFlippedBits(t *testing.T) {
	data := write(t, sample(2))
	contents, found, err := queryIndex(data, "key")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%+v %+v", contents, found)
	faults := 0
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1 << (i % 8)
		contents, found, err := queryIndex(bad, "key")
		switch {
		case err != nil && strings.HasPrefix(err.Error(), "catalog index: "):
			faults++
		case err != nil:
			t.Fatalf("byte %d of %d damaged: error %v", i, len(data), err)
		case fmt.Sprintf("%+v %+v", contents, found) != want:
			t.Fatalf("byte %d of %d damaged: no error, but other content", i, len(data))
		}
	}
	if faults < len(data)/2 {
		t.Errorf("%d of %d damages were detected", faults, len(data))
	}
}

func TestCutShort(t *testing.T) {
	data := write(t, sample(2))
	for n := range data {
		if _, _, err := queryIndex(data[:n], "key"); err == nil {
			t.Fatalf("%d of %d bytes: no error", n, len(data))
		}
		if _, _, err := queryIndex(data[n+1:], "key"); err == nil {
			t.Fatalf("without the first %d of %d bytes: no error", n+1, len(data))
		}
	}
}

func TestOtherKey(t *testing.T) {
	if _, _, err := queryIndex(write(t, sample(1)), "another key"); err == nil || !strings.Contains(err.Error(), "out of date") {
		t.Errorf("error %v", err)
	}
}

// FuzzIndex reads an index with arbitrary entries of one package. It must not panic.
func FuzzIndex(f *testing.F) {
	entries := unpack(f, write(f, sample(1)))
	f.Add(entries["head"], entries["search"], entries["packages/p00"])
	f.Add([]byte{}, []byte{0x80}, []byte{0x9a, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, head, search, pkg []byte) {
		data := pack(t, map[string][]byte{"head": head, "search": search, "packages/p00": pkg, "packages/z": entries["packages/z"]})
		contents, _, err := queryIndex(data, "key")
		if err == nil {
			for _, c := range contents {
				_, _ = catalog.New(c) // faults are acceptable, a panic is not
			}
		}
	})
}

// unpack returns the entries of an archive.
func unpack(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	z.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor())
	out := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		if out[f.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		r.Close()
	}
	return out
}

// pack returns an archive.
func pack(t testing.TB, entries map[string][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(entries[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestHugeEntry opens an index with a wrong size in the header of an entry: too small, or above the limit.
func TestHugeEntry(t *testing.T) {
	for size, want := range map[uint64]string{1 << 40: "exceed the limit of", 10: "head: zip"} {
		var buf bytes.Buffer
		z := zip.NewWriter(&buf)
		w, err := z.CreateRaw(&zip.FileHeader{Name: "head", Method: zip.Store, CompressedSize64: 1000, UncompressedSize64: size})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := cache.OpenIndex(bytes.NewReader(buf.Bytes()), int64(buf.Len()), "key"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes: want %q, got %v", size, want, err)
		}
	}
}

// TestSwapped checks that wrong or missing entries are detected, such as the entry of another package, or
// packages that are not sorted.
func TestSwapped(t *testing.T) {
	entries := unpack(t, write(t, sample(2)))
	if _, _, err := queryIndex(pack(t, entries), "key"); err != nil {
		t.Fatalf("undamaged: %v", err)
	}
	for name, spoil := range map[string]func(map[string][]byte){
		"contains package":  func(e map[string][]byte) { e["packages/p00"] = e["packages/p01"] },
		"is missing":        func(e map[string][]byte) { delete(e, "packages/p00") },
		"search texts":      func(e map[string][]byte) { e["search"] = []byte{0x80} },
		"search is missing": func(e map[string][]byte) { delete(e, "search") },
		"not sorted":        func(e map[string][]byte) { e["head"] = bytes.ReplaceAll(e["head"], []byte("p00"), []byte("p99")) },
	} {
		bad := maps.Clone(entries)
		spoil(bad)
		if _, _, err := queryIndex(pack(t, bad), "key"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want %q, got %v", name, err)
		}
	}
}
