package bundledir

import (
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog"
)

// FuzzLoad loads a directory of bundles with arbitrary content in three files.
func FuzzLoad(f *testing.F) {
	const annotations = "annotations:\n  operators.operatorframework.io.bundle.package.v1: lamp\n  operators.operatorframework.io.bundle.channels.v1: stable,beta\n"
	csv := string(oldCSV("lamp.v1", "1.0.0", "  replaces: lamp.v0\n  skips: [lamp.v0]\n").Data)
	f.Add(annotations, csv, "dependencies:\n- {type: olm.gvk, value: {group: x.io, version: v1, kind: Oil}}\n")
	f.Add(annotations, csv, "dependencies: [{type: olm.constraint, value: {cel: {rule: 'true'}}}]")
	f.Add("annotations: {}", "- a\n---\nb: &x [*x]", "dependencies: 1")
	f.Fuzz(func(t *testing.T, annotations, csv, dependencies string) {
		c, err := LoadFS(fstest.MapFS{
			"b/metadata/annotations.yaml": {Data: []byte(annotations)}, "b/metadata/dependencies.yaml": {Data: []byte(dependencies)},
			"b/manifests/csv.yaml": {Data: []byte(csv)},
		})
		if err == nil {
			_, _ = catalog.New(c)
		}
	})
}

// FuzzPackages converts package manifests with arbitrary content, and loads the converted
// bundles.
func FuzzPackages(f *testing.F) {
	old := oldPackage()
	f.Add(string(old["lamp/lamp.package.yaml"].Data), string(old["lamp/1/lamp.csv.yaml"].Data), string(old["lamp/2/lamp.csv.yaml"].Data))
	f.Add("packageName: lamp\nchannels: [{name: a, currentCSV: lamp.v2}, {name: a, currentCSV: x}]", string(oldCSV("lamp.v1", "1", "  replaces: lamp.v2\n").Data), string(oldCSV("lamp.v2", "2", "  replaces: lamp.v1\n").Data))
	f.Add("[", "", "kind: ClusterServiceVersion\n---\nkind: ClusterServiceVersion")
	f.Fuzz(func(t *testing.T, pkg, one, two string) {
		fsys, err := Packages(fstest.MapFS{
			"x.package.yaml": {Data: []byte(pkg)}, "1/a.yaml": {Data: []byte(one)}, "2/b.yaml": {Data: []byte(two)},
		})
		if err != nil {
			return
		}
		if _, err := Dirs(fsys); err != nil {
			t.Errorf("converted, but no bundles: %v", err)
		}
		if c, err := LoadFS(fsys); err == nil {
			_, _ = catalog.New(c)
		}
	})
}
