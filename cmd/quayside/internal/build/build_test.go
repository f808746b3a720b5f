package build_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

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

// TestCatalog builds the same catalog twice, and with references instead of embedded bundles. A
// reference must have the digest of the bundle's image.
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

// TestFaults checks that errors have the user's names of the files.
func TestFaults(t *testing.T) {
	from := os.DirFS(sources + "/etcd/0.9.4")
	broken := fstest.MapFS{}
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(from, name)
		broken[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), "operators.operatorframework.io.bundle.package.v1: etcd", ""))}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = build.Bundle(broken, "my/etcd")
	var faults diag.List
	if !errors.As(err, &faults) || !strings.HasPrefix(faults[0].Pos.File, "my/etcd/metadata/") {
		t.Errorf("error %v", err)
	}
	none := []build.CatalogInput{{Text: "dir:none", Ref: "dir:none"}}
	if _, err := build.Catalog(context.Background(), none, options("")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
