package index_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache/index"
)

// build writes an index package by package, except for those in rest.
func build(t *testing.T, c catalog.Content, put func(b *index.Builder)) ([]byte, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "index"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := index.NewBuilder(f)
	put(b)
	err = b.Finish("key", "sha256:d", c)
	data, readErr := os.ReadFile(f.Name())
	if readErr != nil {
		t.Fatal(readErr)
	}
	return data, err
}

// TestBuilder puts the packages of a catalog in by one way and another.
func TestBuilder(t *testing.T) {
	whole := sample(4)
	cat, err := catalog.New(sample(4))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	if err := index.Write(&want, "key", "sha256:d", cat); err != nil {
		t.Fatal(err)
	}
	rest := func(from int) catalog.Content {
		return catalog.Content{Packages: sample(4).Packages[from:], Warnings: whole.Warnings}
	}
	put := func(b *index.Builder, packages []catalog.PackageData) {
		for i := range packages {
			if !b.Put(&packages[i]) {
				t.Fatalf("package %q was not taken", packages[i].Name)
			}
		}
	}
	inOrder, err := build(t, rest(5), func(b *index.Builder) { put(b, sample(4).Packages) })
	if err != nil || string(inOrder) != want.String() {
		t.Errorf("in order: %v; %d bytes, want the same %d", err, len(inOrder), want.Len())
	}
	scattered, err := build(t, rest(3), func(b *index.Builder) {
		packages := sample(4).Packages
		put(b, []catalog.PackageData{packages[2], packages[0], packages[1]})
		back, err := b.Back(packages[0].Name)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(packages[0], back); d != "" {
			t.Errorf("given back: -want +got\n%s", d)
		}
		if _, err := b.Back(packages[0].Name); err == nil {
			t.Error("a package was given back twice")
		}
		put(b, []catalog.PackageData{back})
	})
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer, _, err := ask([]byte(want.String()), "key")
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := ask(scattered, "key")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(wantAnswer, got); d != "" {
		t.Errorf("out of order: -want +got\n%s", d)
	}
}

// TestBuilderFaults leaves an invalid package to Finish, which says all that is
// wrong with the catalog.
func TestBuilderFaults(t *testing.T) {
	c := sample(3)
	c.Packages[1].DefaultChannel = "missing"
	_, err := build(t, catalog.Content{Packages: []catalog.PackageData{c.Packages[1], {
		Name: c.Packages[0].Name + "x", Undeclared: true, Channels: []catalog.ChannelData{{Name: "c"}},
	}}}, func(b *index.Builder) {
		if b.Put(&c.Packages[1]) {
			t.Error("an invalid package was taken")
		}
		b.Put(&c.Packages[0])
		b.Put(&c.Packages[2])
	})
	if err == nil || !strings.Contains(err.Error(), `default channel "missing"`) || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("got %v", err)
	}
}
