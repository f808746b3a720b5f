package bundledir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
)

// add adds a bundle to fsys. spec is the spec of the CSV without the version. more contains the content of
// other files by name.
func add(fsys fstest.MapFS, dir, pkg, name, version, channels, def, spec string, more map[string]string) {
	annotations := fmt.Sprintf("annotations:\n  operators.operatorframework.io.bundle.package.v1: %s\n  operators.operatorframework.io.bundle.channels.v1: %s\n", pkg, channels)
	if def != "" {
		annotations += "  operators.operatorframework.io.bundle.channel.default.v1: " + def + "\n"
	}
	csv := fmt.Sprintf("apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: %s\nspec:\n  version: %s\n", name, version)
	for line := range strings.Lines(spec) {
		csv += "  " + line
	}
	files := map[string]string{"metadata/annotations.yaml": annotations, "manifests/csv.yaml": csv}
	for f, data := range more {
		files[f] = data
	}
	for f, data := range files {
		fsys[dir+"/"+f] = &fstest.MapFile{Data: []byte(data)}
	}
}

// formatGraph returns one line for each channel, such as "c: v3<v1+v2 v1": v3 replaces v1 and skips v2.
func formatGraph(p catalog.PackageData) string {
	var b strings.Builder
	for _, ch := range p.Channels {
		fmt.Fprintf(&b, "%s:", ch.Name)
		for _, e := range ch.Entries {
			b.WriteString(" " + e.Name)
			if e.Replaces != "" {
				b.WriteString("<" + e.Replaces)
			}
			for _, s := range e.Skips {
				b.WriteString("+" + s)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestGraph checks the upgrade edges and warnings of LoadFS. In some cases, replaced bundles are missing.
func TestGraph(t *testing.T) {
	type in struct{ version, replaces, skips string }
	for _, tt := range []struct {
		name    string
		bundles []in
		want    string
		warns   string
	}{
		{"ok/as declared", []in{{"1", "", ""}, {"3", "2", ""}, {"2", "1", ""}}, "c: v3<v2 v2<v1 v1\n", ""},
		{"ok/tail replaces a missing bundle", []in{{"2", "1", ""}}, "c: v2<v1\n", ""},
		{"ok/skips", []in{{"3", "1", "2"}, {"2", "1", ""}, {"1", "", ""}}, "c: v3<v1+v2 v2<v1 v1\n", ""},
		{
			"gap/missing version",
			[]in{{"4", "3", ""}, {"2", "1", ""}, {"1", "", ""}},
			"c: v4<v2+v3 v2<v1 v1\n", `"v4" replaces "v2"`,
		},
		{
			"gap/no replaces at all",
			[]in{{"3", "", ""}, {"1", "", ""}, {"2", "", ""}},
			"c: v3<v2 v2<v1 v1\n", `"v3" replaces "v2", "v2" replaces "v1"`,
		},
		{
			"gap/two branches to one version",
			[]in{{"4", "1", ""}, {"3", "2", ""}, {"2", "1", ""}, {"1", "", ""}},
			"c: v4<v3 v3<v2 v2<v1 v1\n", `"v4" replaces "v3"`,
		},
		{
			"gap/cycle",
			[]in{{"3", "2", ""}, {"2", "1", ""}, {"1", "3", ""}},
			"c: v3<v2 v2<v1 v1\n", `"v1" replaces nothing`,
		},
		{
			"gap/skipped versions are ignored",
			[]in{{"5", "4", "3"}, {"3", "5", ""}, {"2", "", ""}},
			"c: v5<v2+v3+v4 v3 v2\n", `"v5" replaces "v2", "v3" replaces nothing`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{"README.md": {Data: []byte("words")}}
			for _, b := range tt.bundles {
				spec := ""
				if b.replaces != "" {
					spec += "replaces: v" + b.replaces + "\n"
				}
				if b.skips != "" {
					spec += "skips: [v" + b.skips + "]\n"
				}
				add(fsys, "x/"+b.version, "a", "v"+b.version, b.version+".0.0", "c", "c", spec, nil)
			}
			c, err := LoadFS(fsys)
			if err != nil {
				t.Fatal(err)
			}
			if got := formatGraph(c.Packages[0]); got != tt.want {
				t.Errorf("got %s want %s", got, tt.want)
			}
			warns := ""
			for _, w := range c.Warnings {
				if w.Subject != "a" || !strings.HasSuffix(w.Pos.File, "/manifests/csv.yaml") {
					t.Errorf("warning about %q at %s: %s", w.Subject, w.Pos, w.Msg)
				}
				_, changes, _ := strings.Cut(w.Msg, "one graph: ")
				warns += changes
			}
			if warns != tt.warns {
				t.Errorf("warnings: got %q, want %q", warns, tt.warns)
			}
			if _, err := catalog.New(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDefaultChannel checks which bundle determines the default channel.
func TestDefaultChannel(t *testing.T) {
	type in struct{ version, channels, def string }
	for _, tt := range []struct {
		name    string
		bundles []in
		want    string
		warns   int
	}{
		{"the newest decides", []in{{"1.0.0", "a,b", "a"}, {"2.0.0", "a,b", "b"}}, "b", 0},
		{"the newest that names one", []in{{"1.0.0", "a,b", "a"}, {"2.0.0", "a,b", ""}}, "a", 0},
		{"a prerelease is older than its release", []in{{"1.0.0-x", "a,b", "a"}, {"1.0.0", "a,b", "b"}}, "b", 0},
		{"the only channel", []in{{"1.0.0", "a", ""}}, "a", 0},
		{"none named", []in{{"1.0.0", "a", ""}, {"2.0.0", "c,b", ""}}, "b", 1},
		{"missing", []in{{"1.0.0", "a", "gone"}}, "a", 1},
		{"missing, the one of an older bundle exists", []in{{"1.0.0", "a,b", "b"}, {"2.0.0", "a", "gone"}}, "b", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for i, b := range tt.bundles {
				spec := ""
				if i > 0 {
					spec = "replaces: v" + tt.bundles[i-1].version + "\n"
				}
				add(fsys, b.version, "p", "v"+b.version, b.version, b.channels, b.def, spec, nil)
			}
			c, err := LoadFS(fsys)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range c.Warnings {
				if w.Subject != "p" || w.Pos.File == "" {
					t.Errorf("warning about %q at %s: %s", w.Subject, w.Pos, w.Msg)
				}
			}
			if got := c.Packages[0].DefaultChannel; got != tt.want || len(c.Warnings) != tt.warns {
				t.Errorf("got %q, warnings %v; want %q, %d warnings", got, c.Warnings, tt.want, tt.warns)
			}
		})
	}
}

const fullSpec = `displayName: A
description: |
  # All about A
  and more
minKubeVersion: 1.20.0
keywords: [k]
provider: {name: P}
installModes:
- {type: OwnNamespace, supported: true}
- {type: AllNamespaces, supported: false}
relatedImages:
- {name: side, image: example.com/side}
install:
  strategy: deployment
  spec:
    deployments:
    - name: d
      spec:
        template:
          spec:
            initContainers: [{name: i, image: example.com/init}]
            containers: [{name: c, image: example.com/main}, {name: s, image: example.com/side}]
customresourcedefinitions:
  owned: [{name: as.x.io, kind: A, version: v1}]
  required: [{name: bs.y.io, kind: B, version: v2}]
apiservicedefinitions:
  owned: [{group: z.io, version: v1, kind: Z, name: zs}]
  required: [{group: q.io, version: v1, kind: Q, name: qs}]
`

func TestBundle(t *testing.T) {
	fsys := fstest.MapFS{}
	add(fsys, "deep/down/a", "a", "a.v1", "1.0.0", "c", "c", fullSpec, map[string]string{
		"manifests/crd.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x.io}\nspec:\n  group: x.io\n  names: {kind: A, plural: as}\n  versions: [{name: v1, served: true}, {name: v1alpha1, served: false}]\n",
		"manifests/old.yaml": "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: os.x.io}\nspec:\n  group: x.io\n  version: v1\n  names: {kind: O, plural: os}\n",
		"metadata/dependencies.yaml": `dependencies:
- {type: olm.package, value: {packageName: b, version: ">=1.0.0"}}
- {type: olm.gvk, value: {group: y.io, kind: B, version: v2}}
- {type: olm.label, value: {label: l}}
- {type: olm.constraint, value: {cel: {rule: "true"}}}
`,
		"metadata/properties.yaml": "properties:\n- {type: olm.maxOpenShiftVersion, value: \"4.9\"}\n- {type: olm.gvk, value: {version: v1, kind: A, group: x.io}}\n",
	})
	c, err := LoadFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	b := c.Packages[0].Bundles[0]
	var props []string
	for _, p := range b.Properties {
		props = append(props, p.Type+" "+string(p.Value))
	}
	want := []string{
		`olm.constraint {"cel":{"rule":"true"}}`,
		`olm.gvk {"group":"x.io","kind":"A","version":"v1"}`,
		`olm.gvk {"group":"x.io","kind":"A","version":"v1alpha1"}`,
		`olm.gvk {"group":"x.io","kind":"O","version":"v1"}`,
		`olm.gvk {"group":"z.io","kind":"Z","version":"v1"}`,
		`olm.gvk.required {"group":"q.io","kind":"Q","version":"v1"}`,
		`olm.gvk.required {"group":"y.io","kind":"B","version":"v2"}`,
		`olm.label.required {"label":"l"}`,
		`olm.maxOpenShiftVersion "4.9"`,
		`olm.package {"packageName":"a","version":"1.0.0"}`,
		`olm.package.required {"packageName":"b","versionRange":">=1.0.0"}`,
	}
	if d := cmp.Diff(want, props); d != "" {
		t.Errorf("properties: -want +got\n%s", d)
	}
	images := []catalog.RelatedImage{{Image: "example.com/init"}, {Image: "example.com/main"}, {Name: "side", Image: "example.com/side"}}
	if d := cmp.Diff(images, b.RelatedImages); d != "" {
		t.Errorf("images: -want +got\n%s", d)
	}
	meta := catalog.Metadata{
		Known: true, DisplayName: "A", Description: "All about A", Provider: "P", MinKubeVersion: "1.20.0",
		InstallModes: []catalog.InstallMode{catalog.OwnNamespace}, Keywords: []string{"k"}, Owned: []string{"as.x.io"},
	}
	if d := cmp.Diff(meta, b.Metadata); d != "" {
		t.Errorf("metadata: -want +got\n%s", d)
	}
	if !b.Embedded || !json.Valid(b.Properties[0].Value) || b.Pos.File != "deep/down/a/manifests/csv.yaml" {
		t.Errorf("bundle is embedded: %t, position %s", b.Embedded, b.Pos)
	}
	found, err := Find(fsys, "a", "a.v1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(found, "manifests/csv.yaml"); err != nil {
		t.Error(err)
	}
	if _, err := Find(fsys, "a", "a.v2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing bundle: got %v", err)
	}
}

func TestFaults(t *testing.T) {
	fsys := fstest.MapFS{}
	add(fsys, "one", "a", "a.v1", "one", "c", "c", "", nil)
	add(fsys, "two", "a", "a.v2", "2.0.0", "c", "c", "customresourcedefinitions: {required: [{name: nogroup, kind: X, version: v1}]}\n", nil)
	add(fsys, "three", "", "a.v3", "3.0.0", "c", "c", "", nil)
	_, err := LoadFS(fsys)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`one/manifests/csv.yaml: spec.version: version "one":`,
		`two/manifests/csv.yaml: spec.customresourcedefinitions.required[0].name: "nogroup" is not plural.group`,
		`three/metadata/annotations.yaml: annotations["operators.operatorframework.io.bundle.package.v1"] is missing: it must contain the package name`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got\n%v\nwant it to contain\n%s", err, want)
		}
	}
	fsys["four"] = &fstest.MapFile{Data: []byte("one"), Mode: fs.ModeSymlink}
	if _, err := LoadFS(fsys); err == nil || !strings.Contains(err.Error(), "four: symbolic links to directories are not followed") {
		t.Errorf("a link to a directory: %v", err)
	}
}

// TestVersionsOfCRDs checks that the APIs of a bundle include versions that are not served, as
// in opm.
func TestVersionsOfCRDs(t *testing.T) {
	fsys := fstest.MapFS{}
	add(fsys, "a", "a", "a.v1", "1.0.0", "c", "", "", map[string]string{
		"manifests/new.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: as.g\nspec:\n  group: g\n  names: {kind: A, plural: as}\n  version: v9\n" +
			"  versions:\n  - {name: v1, served: true, storage: false}\n  - {name: v2, served: false, storage: true}\n  - {name: v3, served: false, storage: false}\n",
		"manifests/old.yaml": "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata:\n  name: bs.g\nspec:\n  group: g\n  names: {kind: B, plural: bs}\n  version: v1\n",
	})
	c, err := LoadFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Packages[0].Bundles[0].Properties {
		got = append(got, p.Type+" "+string(p.Value))
	}
	want := []string{
		`olm.gvk {"group":"g","kind":"A","version":"v1"}`, `olm.gvk {"group":"g","kind":"A","version":"v2"}`, `olm.gvk {"group":"g","kind":"A","version":"v3"}`,
		`olm.gvk {"group":"g","kind":"B","version":"v1"}`, `olm.package {"packageName":"a","version":"1.0.0"}`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
