package fleet

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/k8s"
	"github.com/quayside/quayside/internal/settings"
)

// openQuickstart returns the fleet of the committed tree of examples/quickstart.
func openQuickstart(t *testing.T) Fleet {
	t.Helper()
	tree, err := ReadTree("", Disk{FS: os.DirFS("../../../../examples"), Name: "examples", Out: "quickstart/rendered", Pool: NewPool()})
	if err != nil {
		t.Fatal(err)
	}
	return New("test", settings.Default(), nil, tree)
}

// TestForEachGroup checks that each cluster is in one group, and that a group has the objects of the
// base and of the operators.
func TestForEachGroup(t *testing.T) {
	f := openQuickstart(t)
	base, err := f.BaseState()
	if err != nil {
		t.Fatal(err)
	}
	var clusters []string
	err = f.ForEachGroup(f.Clusters(), base, func(g Group) error {
		clusters = append(clusters, g.Clusters...)
		kinds := map[string]bool{}
		for i := range g.State.Objects {
			kinds[g.State.Objects[i].Key().Kind] = true
		}
		for _, kind := range []string{"CustomResourceDefinition", "Deployment", "Namespace"} {
			if !kinds[kind] {
				t.Errorf("clusters %v get no %s", g.Clusters, kind)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(clusters)
	if d := cmp.Diff(f.Clusters(), clusters); d != "" || len(clusters) == 0 {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestPatchWithoutOverlay checks that a cluster without an overlay of the user gets unchanged objects.
func TestPatchWithoutOverlay(t *testing.T) {
	f := openQuickstart(t)
	patch := f.Patches()
	for _, name := range f.Clusters() {
		if p := patch(name); len(p) > 0 {
			t.Errorf("cluster %s: %v", name, p)
		}
	}
}

// TestApply checks that a patch changes and removes objects, but does not add objects.
func TestApply(t *testing.T) {
	object := func(name, value string) k8s.Object {
		return k8s.Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "value": value}
	}
	a, b, c, d := object("a", "1"), object("b", "1"), object("c", "2"), object("d", "1")
	p := Patch{b.Key(): nil, c.Key(): c, d.Key(): d}
	got := p.Apply([]k8s.Object{a, b, object("c", "1")})
	if diff := cmp.Diff([]k8s.Object{a, c}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestIsUserFile checks that IsUserFile returns false for files of the tree, and true for all others.
func TestIsUserFile(t *testing.T) {
	f := openQuickstart(t)
	for name := range f.Contents {
		if f.IsUserFile(name) {
			t.Errorf("%s is in the tree", name)
		}
	}
	if !f.IsUserFile("quickstart/overlays/default/kustomization.yaml") || !f.IsUserFile(strings.TrimSuffix(f.Out, "d")) {
		t.Error("a file beside the tree is not the user's")
	}
}
