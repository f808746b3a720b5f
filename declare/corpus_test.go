package declare_test

import (
	"os"
	"strings"
	"testing"

	"github.com/quayside/quayside/declare"
)

// TestCorpusIsIgnored parses real bundles as declarations. Their objects are of other kinds or
// are ignored because they have no namespace. With a namespace, every ClusterServiceVersion is
// accepted.
func TestCorpusIsIgnored(t *testing.T) {
	dir := os.Getenv("QUAYSIDE_CORPUS")
	if dir == "" {
		t.Skip("QUAYSIDE_CORPUS is unset: no real bundles to read")
	}
	fsys := os.DirFS(dir)
	for _, pkg := range []string{"bundles/etcd", "bundles/argocd-operator", "bundles/prometheus", "bundles/kuadrant-operator", "bundles/konflux"} {
		set, err := declare.LoadFS(fsys, declare.LoadOptions{Paths: paths(pkg)})
		if err != nil {
			t.Errorf("%s: %v", pkg, err)
			continue
		}
		if len(set.CSVs) != 0 || len(set.Warnings) == 0 || set.Warnings[0].Code != "no-state" {
			t.Errorf("%s: %d CSVs as state, warnings %v", pkg, len(set.CSVs), set.Warnings)
		}
		for _, w := range set.Warnings {
			data, err := os.ReadFile(dir + "/" + w.Pos.File)
			if err != nil {
				t.Fatal(err)
			}
			set, err := declare.Parse(w.Pos.File, []byte(strings.Replace(string(data), "\n  namespace: placeholder\n", "\n  namespace: ops\n", 1)))
			if err != nil || len(set.CSVs) != 1 || len(set.CSVs[0].Properties) == 0 {
				t.Errorf("%s: %v, %+v", w.Pos.File, err, set)
			}
		}
	}
}
