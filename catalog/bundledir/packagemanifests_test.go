package bundledir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
)

// oldCSV returns a file with a ClusterServiceVersion.
func oldCSV(name, version, more string) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: %s}\nspec:\n  version: %s\n%s", name, version, more)}
}

func oldPackage() fstest.MapFS {
	return fstest.MapFS{
		"lamp/lamp.package.yaml":     {Data: []byte("packageName: lamp\ndefaultChannel: stable\nchannels:\n- {name: stable, currentCSV: lamp.v4}\n- {name: beta, currentCSV: lamp.v2}\n")},
		"lamp/ci.yaml":               {Data: []byte("updateGraph: replaces-mode\n")},
		"lamp/1/lamp.csv.yaml":       oldCSV("lamp.v1", "1.0.0", ""),
		"lamp/2/lamp.csv.yaml":       oldCSV("lamp.v2", "2.0.0", "  replaces: lamp.v1\n"),
		"lamp/2/lamps.crd.yaml":      {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")},
		"lamp/3/deep/lamp.csv.yaml":  oldCSV("lamp.v3", "3.0.0", "  replaces: lamp.v2\n"),
		"lamp/4/lamp.csv.yaml":       oldCSV("lamp.v4", "4.0.0", "  replaces: lamp.v2\n  skips: [lamp.v3]\n"),
		"lamp/stray/lamp.csv.yaml":   oldCSV("lamp.v0", "0.1.0", ""),
		"lamp/docs/README.md":        {Data: []byte("words about a ClusterServiceVersion")},
		"lamp/.git/config.yaml":      {Data: []byte("[")},
		"lamp/docs/notes/notes.yaml": {Data: []byte("kind: Note\n")},
	}
}

func TestPackages(t *testing.T) {
	fsys, err := Packages(oldPackage())
	if err != nil {
		t.Fatal(err)
	}
	c, err := LoadFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Packages) != 1 || c.Packages[0].DefaultChannel != "stable" {
		t.Fatalf("got %+v", c.Packages)
	}
	want := "beta: lamp.v2<lamp.v1 lamp.v1\nstable: lamp.v4<lamp.v2+lamp.v3 lamp.v3<lamp.v2 lamp.v2<lamp.v1 lamp.v1\n"
	if d := cmp.Diff(want, formatGraph(c.Packages[0])); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if _, err := catalog.New(c); err != nil {
		t.Error(err)
	}
	found, err := Find(fsys, "lamp", "lamp.v2")
	if err != nil {
		t.Fatal(err)
	}
	f, err := found.Open("manifests/lamps.crd.yaml")
	if err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	if got := Original("lamp/2/manifests/lamps.crd.yaml"); got != "lamp/2/lamps.crd.yaml" {
		t.Errorf("Original: %s", got)
	}
}

func TestPackagesFaults(t *testing.T) {
	for _, tt := range []struct{ name, file, data, want string }{
		{"unknown head", "lamp/lamp.package.yaml", "packageName: lamp\nchannels:\n- {name: stable, currentCSV: lamp.v5}\n", `lamp/lamp.package.yaml:3:30: channels[0].currentCSV: no ClusterServiceVersion "lamp.v5" below lamp (did you mean`},
		{"no name", "lamp/lamp.package.yaml", "channels: []\n", "lamp/lamp.package.yaml: packageName is missing"},
		{"unknown field", "lamp/lamp.package.yaml", "packageName: lamp\nchanels: []\n", `lamp/lamp.package.yaml:2:1: unknown field "chanels"`},
		{"channel without a name", "lamp/lamp.package.yaml", "packageName: lamp\nchannels:\n- {currentCSV: lamp.v1}\n", "channels[0].name is missing"},
		{"malformed manifest", "lamp/2/lamps.crd.yaml", "a: [\n", "lamp/2/lamps.crd.yaml:"},
		{"duplicate ClusterServiceVersion", "lamp/5/x.yaml", string(oldCSV("lamp.v1", "1.0.0", "").Data), `duplicate ClusterServiceVersion "lamp.v1" in package "lamp": first in lamp/1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys := oldPackage()
			fsys[tt.file] = &fstest.MapFile{Data: []byte(tt.data)}
			_, err := Packages(fsys)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := Packages(fstest.MapFS{"a.yaml": {Data: []byte("a: b\n")}}); err == nil {
		t.Error("a directory without packages: no error")
	}
}

func TestCorpusPackages(t *testing.T) {
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		t.Skip("QUAYSIDE_CORPUS is not set")
	}
	for _, dir := range []string{"package-manifests", "package-manifests/etcd"} {
		fsys, err := Packages(os.DirFS(filepath.Join(root, dir)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := LoadFS(fsys)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := catalog.New(c); err != nil || len(c.Packages) == 0 {
			t.Errorf("%d packages: %v", len(c.Packages), err)
		}
		for _, w := range c.Warnings {
			t.Log(w)
		}
	}
}
