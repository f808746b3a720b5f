package workspace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quayside/quayside/internal/base/filetree"
)

func TestFolded(t *testing.T) {
	got := foldChanges([]filetree.FileChange{
		{Path: "clusters/default/operators/ns.etcd/kustomization.yaml", Kind: "missing"},
		{Path: "clusters/default/all/kustomization.yaml", Kind: "differs"},
		{Path: "crds/etcd/a.yaml", Kind: "missing"},
		{Path: "crds/etcd/b.yaml", Kind: "missing"},
		{Path: "kustomization.yaml", Kind: "differs"},
		{Path: "operators/ns.etcd/a.yaml", Kind: "extra"},
		{Path: "pieces/ns.etcd.yaml", Kind: "missing"},
		{Path: "operators/ns.vault/a.yaml", Kind: "extra"},
		{Path: "operators/ns.vault/b.yaml", Kind: "extra"},
	})
	want := []filetree.FileChange{
		{Path: "clusters/default/ (2 files)", Kind: "differs"},
		{Path: "crds/etcd/ (2 files)", Kind: "missing"},
		{Path: "kustomization.yaml", Kind: "differs"},
		{Path: "operators/ns.etcd/a.yaml", Kind: "extra"},
		{Path: "pieces/ns.etcd.yaml", Kind: "missing"},
		{Path: "operators/ns.vault/ (2 files)", Kind: "extra"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestForeign wants a file of somebody else's to be an error where an engine applies
// it, and nowhere else.
func TestForeign(t *testing.T) {
	for name, refused := range map[string]bool{
		"pieces/own.yaml": true, "pieces/_shared/own.yaml": true, "installations/own.yaml": true, "clusters/c/installations/own.yaml": true, "crds/p/own.yaml": true,
		"operators/n.p/own.yaml": false, "README.md": false,
	} {
		r := &TreeReport{Output: "rendered", Changes: []filetree.FileChange{{Path: name, Kind: foreign}}}
		if err := r.Err(); (err != nil) != refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
