package index_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache/index"
	"github.com/quayside/quayside/catalog/lifecycle"
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

// sample returns a catalog that sets every field: each package requires the
// next by name, the last one an API of the first.
func sample(packages int) catalog.Content {
	c := catalog.Content{
		Digest:   catalog.DigestOf([]byte("sample")),
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
				Pos: at(8), Versions: []lifecycle.Version{{
					Name: "1.1", Phases: []lifecycle.Phase{{Name: "Full support", Start: "2025-01-01", End: "2025-06-30"}},
					Platforms: []lifecycle.Platform{{Name: "openshift", Version: "4.18"}},
				}},
			}, {Pos: at(9), Faults: []catalog.LifecycleFault{{Pos: at(10), Msg: "no versions"}}}}
		}
	}
	empty := catalog.BundleData{Name: "z.v1.0.0", Image: "z", Properties: []catalog.Property{{Type: "olm.package", Value: value(map[string]string{"packageName": "z", "version": "1.0.0"})}}}
	empty.Metadata.InstallModes = []catalog.InstallMode{} // told, and none: not the same as nil
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
	if err := index.Write(&buf, "key", cat.Digest(), cat); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func open(t testing.TB, data []byte) *index.File {
	t.Helper()
	f, err := index.Open(bytes.NewReader(data), int64(len(data)), "key")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRoundTrip(t *testing.T) {
	c := sample(3)
	f := open(t, write(t, c))
	got, err := index.Load([]*index.File{f}, catalog.Needs{Anything: true})
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
	var want []catalog.Summary
	for _, p := range cat.Packages() {
		want = append(want, p.Summary())
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
	if d := cmp.Diff(want[1:2], found); d != "" {
		t.Errorf("search (-want +got):\n%s", d)
	}
	if !bytes.Equal(write(t, c), write(t, c)) {
		t.Error("the same catalog gives different bytes")
	}
}

func TestLoad(t *testing.T) {
	one, two := sample(4), catalog.Content{Packages: sample(6).Packages[5:6]} // p05 needs an API of p00
	for _, tc := range []struct {
		name string
		want catalog.Needs
		got  []string
	}{
		{"nothing", catalog.Needs{}, nil},
		{"a name like no other", catalog.Needs{Packages: []string{"kafka"}}, nil},
		{"a name of another", catalog.Needs{Packages: []string{"Z"}}, []string{"z"}},
		{"what a name is nearly like", catalog.Needs{Packages: []string{"x"}}, []string{"z"}},
		{"another version of an API", catalog.Needs{APIs: []catalog.GVK{{Group: "p05.example.com", Version: "v2", Kind: "Thing"}}}, []string{"p00", "p01", "p02", "p03", "p05"}},
		{"another kind", catalog.Needs{APIs: []catalog.GVK{{Group: "p05.example.com", Version: "v1", Kind: "Think"}}}, nil},
		{"alone", catalog.Needs{Packages: []string{"z"}}, []string{"z"}},
		{"by name, then by API", catalog.Needs{Packages: []string{"p02"}}, []string{"p00", "p01", "p02", "p03"}},
		{"from one catalog to the other", catalog.Needs{Labels: []string{"p05"}}, []string{"p00", "p01", "p02", "p03", "p05"}},
		{"by API", catalog.Needs{APIs: []catalog.GVK{{Group: "p05.example.com", Version: "v1", Kind: "Thing"}}}, []string{"p00", "p01", "p02", "p03", "p05"}},
		{"anything", catalog.Needs{Anything: true}, []string{"p00", "p01", "p02", "p03", "z", "p05"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			contents, err := index.Load([]*index.File{open(t, write(t, one)), open(t, write(t, two))}, tc.want)
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

// counting counts the bytes that are read.
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
	f, err := index.Open(r, int64(len(data)), "key")
	if err != nil {
		t.Fatal(err)
	}
	before := r.n
	got, err := index.Select([]*index.File{f}, "p40", "nosuch")
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

// ask asks an index everything, and returns the first error.
func ask(data []byte, key string) ([]catalog.Content, []catalog.Summary, error) {
	f, err := index.Open(bytes.NewReader(data), int64(len(data)), key)
	if err != nil {
		return nil, nil, err
	}
	found, err := f.Search(func(string) bool { return true })
	if err != nil {
		return nil, nil, err
	}
	contents, err := index.Load([]*index.File{f}, catalog.Needs{Anything: true})
	return contents, found, err
}

// TestFlippedBits damages every byte of an index in turn.
func TestFlippedBits(t *testing.T) {
	data := write(t, sample(2))
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 1 << (i % 8)
		_, _, err := ask(bad, "key")
		var fault *index.FaultError
		if !errors.As(err, &fault) {
			t.Fatalf("byte %d of %d damaged: error %v", i, len(data), err)
		}
	}
}

func TestCutShort(t *testing.T) {
	data := write(t, sample(2))
	for n := range data {
		if _, _, err := ask(data[:n], "key"); err == nil {
			t.Fatalf("%d of %d bytes: no error", n, len(data))
		}
		if _, _, err := ask(data[n+1:], "key"); err == nil {
			t.Fatalf("without the first %d of %d bytes: no error", n+1, len(data))
		}
	}
}

func TestOtherKeyOrVersion(t *testing.T) {
	data := write(t, sample(1))
	if _, _, err := ask(data, "another key"); err == nil || !strings.Contains(err.Error(), "made from something else") {
		t.Errorf("another key: error %v", err)
	}
	data[len(data)-12]++
	if _, _, err := ask(data, "key"); err == nil || !strings.Contains(err.Error(), "version 5: want 4") {
		t.Errorf("another version: error %v", err)
	}
}

// FuzzRead feeds an index whose checksums hold, whatever its bytes are: the
// reader must not trust them.
func FuzzRead(f *testing.F) {
	data := write(f, sample(1))
	f.Add(data, uint(3), byte(0xff))
	f.Add(data, uint(len(data)-40), byte(0x80))
	f.Add([]byte("qs-index"), uint(0), byte(0))
	f.Fuzz(func(t *testing.T, data []byte, at uint, with byte) {
		data = slices.Clone(data)
		if len(data) > 20 {
			data[at%uint(len(data))] = with
			repair(data)
		}
		contents, _, err := ask(data, "key")
		if err == nil {
			for _, c := range contents {
				_, _ = catalog.New(c) // faults are well, a panic is not
			}
		}
	})
}

// repair makes the header's checksum right.
func repair(data []byte) {
	end := len(data) - 20
	size := int(uint32(data[end]) | uint32(data[end+1])<<8 | uint32(data[end+2])<<16 | uint32(data[end+3])<<24)
	if size > end {
		return
	}
	sum := crc32.Checksum(data[end-size:end], crc32.MakeTable(crc32.Castagnoli))
	for i := range 4 {
		data[end+4+i] = byte(sum >> (8 * i))
	}
}
