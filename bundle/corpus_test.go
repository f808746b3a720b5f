package bundle

import (
	"os"
	"path/filepath"
	"testing"
)

// corpusBundles returns the bundle directories of the corpus.
func corpusBundles(tb testing.TB) []string {
	tb.Helper()
	root := os.Getenv("QUAYSIDE_CORPUS")
	if root == "" {
		tb.Skip("QUAYSIDE_CORPUS is not set")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "bundles", "*", "*"))
	if err != nil || len(dirs) == 0 {
		tb.Fatalf("no bundles under %s: %v", root, err)
	}
	return dirs
}

func TestLoadCorpus(t *testing.T) {
	for _, dir := range corpusBundles(t) {
		b, err := Load(os.DirFS(dir))
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		if b.Package == "" || b.CSV.Name == "" || b.CSV.Version == "" || len(b.CSV.Deployments) == 0 {
			t.Errorf("%s: got package %q, CSV %q %q with %d deployments", dir, b.Package, b.CSV.Name, b.CSV.Version, len(b.CSV.Deployments))
		}
		warnings, err := Validate(b)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		for _, w := range warnings {
			t.Logf("%s: %s", dir, w)
		}
	}
}

func BenchmarkLoadCorpus(b *testing.B) {
	dirs := corpusBundles(b)
	for b.Loop() {
		for _, dir := range dirs {
			if _, err := Load(os.DirFS(dir)); err != nil {
				b.Fatal(err)
			}
		}
	}
}
