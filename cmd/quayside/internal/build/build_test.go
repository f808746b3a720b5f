package build_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/bundledir"
	"github.com/quayside/quayside/catalog/source"
	"github.com/quayside/quayside/cmd/quayside/internal/build"
	"github.com/quayside/quayside/internal/diag"
	"github.com/quayside/quayside/internal/oci"
)

const sources = "../../../../examples/quickstart/catalog-src"

func options(repository string) build.CatalogOptions {
	return build.CatalogOptions{Client: &oci.Client{}, Resolver: source.Resolver{Lookup: source.LookupIn("../../../../examples/quickstart")}, Repository: repository}
}

func catalogOf(t *testing.T, repository string, refs ...source.Ref) *build.CatalogImage {
	t.Helper()
	var parts []build.CatalogInput
	for _, r := range refs {
		parts = append(parts, build.CatalogInput{Text: string(r), Ref: r})
	}
	got, err := build.Catalog(context.Background(), parts, options(repository))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestCatalog builds the same catalog twice, and once with references instead of embedded bundles. A reference
// must have the digest of the bundle's image.
func TestCatalog(t *testing.T) {
	embedded := catalogOf(t, "", "bundles:catalog-src")
	if again := catalogOf(t, "", "bundles:catalog-src"); again.Packed.Digest() != embedded.Packed.Digest() {
		t.Error("the same sources give another image")
	}
	if embedded.Packages < 3 || len(embedded.Bundles) != 0 {
		t.Errorf("%d packages, %d bundles", embedded.Packages, len(embedded.Bundles))
	}
	named := catalogOf(t, "registry.example.com/ops/{package}", "bundles:catalog-src")
	if named.Packed.Digest() == embedded.Packed.Digest() || named.Packages != embedded.Packages {
		t.Errorf("named: %d packages, %s", named.Packages, named.Packed.Digest())
	}
	seen := 0
	for _, b := range named.Bundles {
		if b.Bundle.CSV.Name != "etcdoperator.v0.9.4" {
			continue
		}
		seen++
		own, _, err := build.Bundle(os.DirFS(sources+"/etcd/0.9.4"), "etcd")
		if err != nil {
			t.Fatal(err)
		}
		if want := "registry.example.com/ops/etcd@" + own.Packed.Digest(); b.Ref != want {
			t.Errorf("named %s, want %s", b.Ref, want)
		}
	}
	if seen != 1 {
		t.Errorf("etcd is named %d times", seen)
	}
}

// TestFaults checks that errors name files as the user did.
func TestFaults(t *testing.T) {
	from := os.DirFS(sources + "/etcd/0.9.4")
	for _, gone := range []string{"package.v1: etcd", "channels.v1: "} {
		broken := fstest.MapFS{}
		err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(from, name)
			broken[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), "operators.operatorframework.io.bundle."+gone, "a: "))}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = build.Bundle(broken, "my/etcd")
		var faults diag.List
		if !errors.As(err, &faults) || !strings.HasPrefix(faults[0].Pos.File, "my/etcd/metadata/") {
			t.Errorf("without %s: error %v", gone, err)
		}
	}
	none := []build.CatalogInput{{Text: "dir:none", Ref: "dir:none"}}
	if _, err := build.Catalog(context.Background(), none, options("")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestProperties validates bundles whose dependencies and properties have values of all kinds. A bundle must be
// valid only if the resolver can choose it.
func TestProperties(t *testing.T) {
	whole := fstest.MapFS{}
	for _, pattern := range []string{"metadata/*", "manifests/*"} {
		names, err := fs.Glob(os.DirFS(sources+"/etcd/0.9.4"), pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(sources + "/etcd/0.9.4/" + name)
			if err != nil {
				t.Fatal(err)
			}
			whole[name] = &fstest.MapFile{Data: data}
		}
	}
	values := []string{
		`null`, `"x"`, `4.10`, `[]`, `{}`, `{packageName: etcd}`, `{packageName: etcd, version: 0.9.4}`, `{packageName: vault, version: 1.0}`,
		`{packageName: vault, version: "~1.0"}`, `{packageName: vault, version: ">=1.0.0"}`, `{packageName: vault, versionRange: ">=1.0.0"}`,
		`{group: a.io, version: v1, kind: A}`, `{group: a.io, version: v1}`, `{group: a.io, version: 1, kind: A}`, `{label: a}`,
		`{failureMessage: m, cel: {rule: "properties.exists(p, p.type == 'a')"}}`, `{cel: {rule: "properties.exists("}}`,
		`{all: {constraints: [{package: {packageName: vault, versionRange: "1.0"}}]}}`, `{none: {constraints: []}}`, `{any: {constraints: [{gvk: {group: a.io}}]}}`,
	}
	types := []string{"olm.package", "olm.package.required", "olm.gvk", "olm.gvk.required", "olm.label", "olm.label.required", "olm.constraint", "olm.maxOpenShiftVersion", "example.com/own"}
	valid := 0
	for _, list := range []string{"dependencies", "properties"} {
		for _, typ := range types {
			for _, value := range values {
				files := fstest.MapFS{"metadata/" + list + ".yaml": {Data: []byte(list + ":\n- {type: " + typ + ", value: " + value + "}\n")}}
				maps.Copy(files, whole)
				_, _, err := build.Check(files, "etcd")
				if usable := isUsable(files); err == nil && !usable {
					t.Errorf("%s %s %s: valid, but no resolver can choose the bundle", list, typ, value)
				}
				var faults diag.List
				if errors.As(err, &faults) {
					if pos := faults[0].Pos; pos.File != "etcd/metadata/"+list+".yaml" || pos.Line != 2 {
						t.Errorf("%s %s %s: the fault is at %s: %v", list, typ, value, pos, err)
					}
				} else if err == nil {
					valid++
				}
			}
		}
	}
	if valid < 30 {
		t.Errorf("only %d lists are valid", valid)
	}
}

// isUsable reports whether the resolver can choose the bundle in fsys.
func isUsable(fsys fs.FS) bool {
	content, err := bundledir.LoadFS(fsys)
	if err != nil {
		return false
	}
	cat, err := catalog.New(content)
	return err == nil && cat.Packages()[0].Bundles()[0].Unusable() == ""
}
