package bundledir

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/quayside/quayside/catalog"
)

func corpus(tb testing.TB) fs.FS {
	tb.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		tb.Skip("QUAYSIDE_CORPUS is not set")
	}
	return os.DirFS(filepath.Join(root, "bundles"))
}

func TestCorpus(t *testing.T) {
	fsys := corpus(t)
	c, err := LoadFS(fsys)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Warnings {
		t.Log(w)
	}
	cat, err := catalog.New(c)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := Dirs(fsys)
	if err != nil {
		t.Fatal(err)
	}
	bundles := 0
	for _, p := range cat.Packages() {
		for _, b := range p.Bundles() {
			bundles++
			if b.Unusable() != "" {
				t.Errorf("%s is unusable: %s", b.Name(), b.Unusable())
			}
			if _, ok := dirs[Ref{p.Name(), b.Name()}]; !ok {
				t.Errorf("%s is missing from Dirs", b.Name())
			}
		}
		for _, ch := range p.Channels() {
			walk := ch.Walk()
			for i := 1; i < len(walk); i++ {
				if walk[i-1].Bundle().Version().LT(walk[i].Bundle().Version()) {
					t.Errorf("%s %s: %s is above %s", p.Name(), ch.Name(), walk[i-1].Name(), walk[i].Name())
				}
			}
		}
	}
	if bundles != len(dirs) {
		t.Errorf("%d bundles in the catalog, %d directories", bundles, len(dirs))
	}
	t.Logf("%d packages, %d bundles", len(cat.Packages()), bundles)
}
