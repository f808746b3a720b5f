package layout_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/layout"
)

// read returns the layout of files. Only clusters.yaml has content.
func read(clusters string, names ...string) (*layout.Tree, error) {
	files := map[string]string{layout.ClustersFile: clusters}
	for _, name := range names {
		files[name] = ""
	}
	return layout.Read(maps.Keys(files), func(name string) ([]byte, bool) {
		text, there := files[name]
		return []byte(text), there
	})
}

// TestRead checks that a cluster without a prefix has the common directories, and that a cluster with a prefix
// has the directories below the prefix.
func TestRead(t *testing.T) {
	lies, err := read("- {cluster: b, prefix: clusters/b/}\n- {cluster: a, prefix: ''}\n",
		"operators/n.p/kustomization.yaml", "operators/n.p/x.yaml", "namespaces/n/kustomization.yaml", "reporter/kustomization.yaml",
		"installations/n.p.yaml", "crds/p/a.yaml", "clusters/b/operators/n.p/kustomization.yaml", "clusters/b/resources/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{
		"a": {"namespaces/n", "operators/n.p", "reporter"},
		"b": {"clusters/b/operators/n.p", "clusters/b/resources", "reporter"},
	}
	for _, c := range lies.Clusters {
		if d := cmp.Diff(want[c.Name], lies.Pieces(c)); d != "" {
			t.Errorf("%s: %s", c.Name, d)
		}
	}
	if a, _ := lies.Cluster("a"); !slices.Equal(lies.Installations(a), []string{"installations/n.p.yaml"}) {
		t.Errorf("installations: %q", lies.Installations(a))
	}
}

// TestHostileClusters checks that an untrusted clusters.yaml can neither refer to files outside of the tree nor
// take long to parse.
func TestHostileClusters(t *testing.T) {
	bomb := "- {cluster: a, x: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}\n"
	for i := range 9 {
		from := string(rune('0' + i))
		bomb += "- {cluster: b" + from + ", x: &a" + string(rune('1'+i)) + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+", ", 10), ", ") + "]}\n"
	}
	for name, text := range map[string]string{
		"another directory":  "- {cluster: a, prefix: ../../}\n",
		"of another cluster": "- {cluster: a, prefix: clusters/b/}\n",
		"a path":             "- {cluster: ../a, prefix: ''}\n",
		"no name":            "- {prefix: ''}\n",
		"no list":            "a: b\n",
		"text":               "- a\n",
		"too many":           strings.Repeat("- {cluster: a}\n", 100_001),
		"aliases":            bomb,
		"twice":              "- {cluster: a}\n---\n- {cluster: a}\n",
	} {
		if got, err := read(text); err == nil {
			t.Errorf("%s: %d clusters are read", name, len(got.Clusters))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("- {cluster: a, prefix: clusters/a/}\n")
	f.Fuzz(func(t *testing.T, text string) {
		lies, err := read(text, "clusters/a/operators/x.y/kustomization.yaml", "operators/x.y/kustomization.yaml")
		if err != nil {
			return
		}
		for _, c := range lies.Clusters {
			for _, dir := range lies.Pieces(c) {
				if path.Clean(dir) != dir || strings.HasPrefix(dir, "..") {
					t.Errorf("%q leads out of the tree", dir)
				}
			}
		}
	})
}

// TestIsAppliedAsIs checks IsAppliedAsIs for files in all directories of a tree.
func TestIsAppliedAsIs(t *testing.T) {
	for name, want := range map[string]bool{
		"crds/x.yaml": true, "crds/p/x.yaml": true, "installations/x.yaml": true, "pieces/x.yaml": true, "pieces/_shared/x.yaml": true,
		"clusters/c/installations/x.yaml": true, "clusters/c/operators/n.p/x.yaml": false, "operators/n.p/x.yaml": false,
		"namespaces/n/x.yaml": false, "argocd/x.yaml": false, "flux/c/x.yaml": false, "leaving/n.p/x.yaml": false, "x.yaml": false,
	} {
		if got := layout.IsAppliedAsIs(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
