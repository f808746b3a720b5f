package charts_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/charts"
)

// index returns an index.yaml with the versions of the chart lamp.
func index(versions ...string) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n  lamp:\n")
	for _, v := range versions {
		fmt.Fprintf(&b, "  - {name: lamp, version: %q, urls: [lamp.tgz]}\n", v)
	}
	return []byte(b.String())
}

// edges returns the channels of the package lamp: each entry with the entries that it replaces and skips.
func edges(t *testing.T, data []byte) []string {
	t.Helper()
	x, err := charts.ReadIndex("index.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	c := x.Content()
	if _, err := catalog.New(c); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range c.Packages {
		for _, ch := range p.Channels {
			for _, e := range ch.Entries {
				out = append(out, strings.TrimSpace(ch.Name+" "+e.Name+" "+e.Replaces+" "+e.SkipRange))
			}
		}
	}
	return out
}

func TestEdges(t *testing.T) {
	for _, test := range []struct{ versions, want string }{
		{"1.0.0", "stable lamp-1.0.0  >=0.0.0-0 <1.0.0"},
		{"1.0.2 1.0.0 1.0.1", "stable lamp-1.0.0  >=1.0.0-0 <1.0.0|stable lamp-1.0.1 lamp-1.0.0 >=1.0.0-0 <1.0.1|stable lamp-1.0.2 lamp-1.0.1 >=0.0.0-0 <1.0.2"},
		{ // the newest patch of the next minor version; an older patch only from its own
			"1.0.0 1.0.1 1.1.0 1.1.1",
			"stable lamp-1.0.0  >=1.0.0-0 <1.0.0|stable lamp-1.0.1 lamp-1.0.0 >=0.0.0-0 <1.0.1|stable lamp-1.1.0 lamp-1.0.1 >=1.1.0-0 <1.1.0|stable lamp-1.1.1 lamp-1.1.0 >=1.0.0-0 <1.1.1",
		},
		{"3.9.1 4.0.0", "stable lamp-3.9.1  >=2.0.0-0 <3.9.1|stable lamp-4.0.0 lamp-3.9.1 >=3.9.0-0 <4.0.0"},
		{"1.0.0 1.1.0-rc.1", "stable lamp-1.0.0  >=0.0.0-0 <1.0.0|all lamp-1.0.0  >=0.0.0-0 <1.0.0|all lamp-1.1.0-rc.1 lamp-1.0.0 >=1.0.0-0 <1.1.0-rc.1"},
		{"0.1.0-alpha", "all lamp-0.1.0-alpha  >=0.0.0-0 <0.1.0-alpha"},
		{"v1.0.0 1.0.0", "stable lamp-v1.0.0  >=0.0.0-0 <1.0.0"},
		{"1.0.0+a 1.0.0+b", "stable lamp-1.0.0+a  >=1.0.0-0 <1.0.0|stable lamp-1.0.0+b lamp-1.0.0+a >=0.0.0-0 <1.0.0"},
		{"devel 1.0.0", "stable lamp-1.0.0  >=0.0.0-0 <1.0.0"},
	} {
		if got := strings.Join(edges(t, index(strings.Fields(test.versions)...)), "|"); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.versions, got, test.want)
		}
	}
}

// TestIndexOrder checks that the order of an index does not matter.
func TestIndexOrder(t *testing.T) {
	versions := []string{"1.0.0", "2.0.0-rc.1", "v1.4.2", "1.4.10", "0.9.0"}
	want := edges(t, index(versions...))
	slices.Reverse(versions)
	if got := edges(t, index(versions...)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestIndexFields(t *testing.T) {
	x, err := charts.ReadIndex("index.yaml", []byte(`
entries:
  lamp:
  - {name: other, version: "1.0.0", kubeVersion: ">=1.30.0-0", appVersion: 7, deprecated: true, description: "A lamp.\nSecond line.", keywords: [light], maintainers: [{name: Ada}], urls: [a.tgz], digest: abc}
  - {name: lamp}
  lib:
  - {name: lib, version: 1.1.0, type: library}
  - {name: lib, version: 1.0.0, type: library}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := x.Content()
	if len(c.Packages) != 1 {
		t.Fatalf("got %d packages, want only lamp: a library cannot be installed", len(c.Packages))
	}
	if len(c.Warnings) != 2 || !strings.Contains(c.Warnings[0].Msg, "semantic version") || !strings.Contains(c.Warnings[1].Msg, "library chart") {
		t.Errorf("got warnings %v, want one about the lamp without a version, and one about the library", c.Warnings)
	}
	p := c.Packages[0]
	b := p.Bundles[0]
	got := fmt.Sprint(p.Name, " ", b.Name, " ", b.Format, " ", b.Metadata.KubeVersions, " ", b.Metadata.Provider, " ", b.Metadata.Description, " ", b.Metadata.Keywords, " ", len(p.Deprecations))
	if want := "lamp lamp-1.0.0 helm >=1.30.0-0 Ada A lamp. [light] 1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{"", "- a", "entries: 1", "apiVersion: v1", "entries: {lamp: [1]}", "a: b\n---\nentries: {}"} {
		if _, err := charts.ReadIndex("index.yaml", []byte(text)); err == nil {
			t.Errorf("no error for %q", text)
		} else if !strings.HasPrefix(err.Error(), "index.yaml") {
			t.Errorf("%q: the error does not name the file: %v", text, err)
		}
	}
}

func TestDirectory(t *testing.T) {
	fsys := fstest.MapFS{
		"a/Chart.yaml":            {Data: []byte("apiVersion: v2\nname: lamp\nversion: 1.0.0\n")},
		"a/templates/x.yaml":      {Data: []byte("kind: X")},
		"a/charts/sub/Chart.yaml": {Data: []byte("apiVersion: v2\nname: sub\nversion: 1.0.0\n")},
		".git/Chart.yaml":         {Data: []byte("apiVersion: v2\nname: hidden\nversion: 1.0.0\n")},
		"deep/down/b/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: lamp\nversion: 1.0.1\n")},
		"README.md":               {Data: []byte("text")},
	}
	x, err := charts.ReadDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	c := x.Content()
	if len(c.Packages) != 1 || len(c.Packages[0].Bundles) != 2 || c.Packages[0].Bundles[0].Pos.File != "a" {
		t.Errorf("got %+v", c.Packages)
	}
	files, err := charts.Open(fsys, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(files, "Chart.yaml", "templates/x.yaml", "charts/sub/Chart.yaml"); err != nil {
		t.Error(err)
	}
	fsys["c/Chart.yaml"] = &fstest.MapFile{Data: []byte("name: [")}
	fsys["d.tgz"] = &fstest.MapFile{Data: []byte("no archive")}
	x, err = charts.ReadDir(fsys)
	if err != nil {
		t.Fatal(err)
	}
	c = x.Content()
	if len(c.Packages) != 1 || len(c.Warnings) != 2 || c.Warnings[0].Pos.File != "c/Chart.yaml" || c.Warnings[1].Pos.File != "d.tgz" {
		t.Errorf("got %d packages and %v, want one package and a warning for each unreadable chart", len(c.Packages), c.Warnings)
	}
	if _, err := x.Chart("d", "d-1.0.0"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "d.tgz") {
		t.Errorf("got %v, want the error of d.tgz: it may have the chart", err)
	}
	for _, dir := range []string{"a", "deep"} {
		maps.DeleteFunc(fsys, func(name string, _ *fstest.MapFile) bool { return strings.HasPrefix(name, dir+"/") })
	}
	if _, err := charts.ReadDir(fsys); err == nil || !strings.Contains(err.Error(), "c/Chart.yaml") || !strings.Contains(err.Error(), "d.tgz") {
		t.Errorf("got %v, want both faults with their files: no chart can be read", err)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(index("1.0.0", "1.1.0-rc.1", "v2"))
	f.Add([]byte("entries: {a: [{version: 1, urls: x}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		x, err := charts.ReadIndex("index.yaml", data)
		if err != nil {
			return
		}
		for _, p := range x.Content().Packages {
			for _, b := range p.Bundles {
				if _, err := x.Chart(p.Name, b.Name); err != nil {
					t.Errorf("bundle %s of %s: %v", b.Name, p.Name, err)
				}
			}
		}
	})
}

// BenchmarkIndex reads an index of 30 MB, as large as the index of a public collection of charts. Most of
// its bytes are in fields that the reader skips.
func BenchmarkIndex(b *testing.B) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nentries:\n")
	for c := 0; text.Len() < 30<<20; c++ {
		fmt.Fprintf(&text, "  chart-%d:\n", c)
		for v := range 50 {
			fmt.Fprintf(&text, "  - annotations:\n      artifacthub.io/changes: |\n%s    apiVersion: v2\n    appVersion: 1.%d.0\n    created: \"2026-01-01T00:00:00Z\"\n    description: A chart\n    digest: a%063x\n    name: chart-%d\n    urls:\n    - https://example.com/chart-%d-1.%d.0.tgz\n    version: 1.%d.0\n",
				strings.Repeat("        - changed something somewhere\n", 12), v, v, c, c, v, v)
		}
	}
	data := []byte(text.String())
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := charts.ReadIndex("index.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}
