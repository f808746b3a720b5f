package inventory_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quayside/quayside/catalog"
	"github.com/quayside/quayside/catalog/cache"
	"github.com/quayside/quayside/catalog/fbc"
	"github.com/quayside/quayside/cmd/quayside/internal/inventory"
)

// TestSearchFindsOwners searches a full catalog for each kind. The first result must be a package
// that provides the kind, or the package with the same name as the kind.
func TestSearchFindsOwners(t *testing.T) {
	corpus := os.Getenv("QUAYSIDE_CORPUS")
	if testing.Short() || corpus == "" {
		t.Skip("needs QUAYSIDE_CORPUS, a directory of real operators")
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "-C", dir, "-xf", filepath.Join(corpus, "catalogs", "full.tar.zst")).CombinedOutput(); err != nil {
		t.Skipf("unpacking the catalog: %v: %s", err, out)
	}
	content, err := fbc.LoadFS(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	content.ID = catalog.ID{Name: "full"}
	whole, err := catalog.New(content)
	if err != nil {
		t.Fatal(err)
	}
	set := (&cache.Cache{}).Open(context.Background(), nil, false)
	set.Add(cache.CatalogSpec{ID: content.ID}, whole)
	all, err := set.Search(context.Background(), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, s := range all {
		for _, api := range s.APIs {
			kinds[api.Kind] = true
		}
	}
	if len(kinds) < 500 {
		t.Fatalf("only %d kinds", len(kinds))
	}
	for kind := range kinds {
		words := []string{kind}
		match := inventory.MatchWords(words)
		found := slices.DeleteFunc(slices.Clone(all), func(s cache.Summary) bool { return !match(s.Text) })
		if len(found) == 0 {
			continue // only older versions provide it
		}
		inventory.RankPackages(found, words)
		owned := slices.ContainsFunc(found, func(s cache.Summary) bool { return s.Provides(kind) })
		if owned && !found[0].Provides(kind) && !strings.EqualFold(found[0].Name, kind) {
			t.Errorf("%s: %s is first, which does not provide it", kind, found[0].Name)
		}
	}
	t.Logf("%d kinds", len(kinds))
}
