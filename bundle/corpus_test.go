package bundle

import (
	"os"
	"path/filepath"
	"testing"
	"time"
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

// BenchmarkLoadCorpus loads every bundle of the corpus. It also parses only the manifests, with this package and
// with the API server's parser. The metric of-ours is the parsing time divided by the parsing time of this package.
func BenchmarkLoadCorpus(b *testing.B) {
	dirs, manifests := corpusBundles(b), corpusManifests(b)
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			for _, dir := range dirs {
				if _, err := Load(os.DirFS(dir)); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	var ruler time.Duration
	for _, bench := range []struct {
		name string
		read func(data []byte)
	}{
		{"ours", func(data []byte) { _, _ = decodeDocuments("f", data) }},
		{"api-server", func(data []byte) { decodeLikeAPIServer(b, data) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				for _, data := range manifests {
					bench.read(data)
				}
			}
			each := b.Elapsed() / time.Duration(b.N)
			if ruler == 0 {
				ruler = each
			}
			b.ReportMetric(float64(each)/float64(ruler), "of-ours")
		})
	}
}
